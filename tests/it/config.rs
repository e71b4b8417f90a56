use expect_test::expect;

use crate::support::TestRepo;

#[test]
fn every_value_is_listed_with_its_source() {
    let mut repo = TestRepo::with_small_team();
    repo.write(".squad/config.json", r#"{"version": 1, "models": {"costOptimized": "small", "default": "json"}, "sessions": {"defaultTimeoutMs": 90000}}"#);
    repo.write(".squad/config.toml", "[models]\ndefault = \"toml\"\n");
    repo.write("../home/config/squad/config.toml", "[models.override]\nada = \"mine\"\n");
    repo.variables.insert("SQUAD_SESSIONS_MAX_CONCURRENT".to_owned(), "2".to_owned());
    expect![[r#"
        engine.fallback = []                  (default)
        engine.name = "copilot"               (default)
        isolation.mode = "project"            (default)
        models.default = "toml"               (.squad/config.toml:2)
        models.lightweight = "small"          (.squad/config.json:1)
        models.override.ada = "mine"          (HOME/config/squad/config.toml:2)
        models.premium = "claude-opus-4.5"    (default)
        policy.questions = 30                 (default)
        routing.threshold = 0.7               (default)
        sandbox.git = "read-only"             (default)
        sandbox.hosts = []                    (default)
        sandbox.level = "rules"               (SQUAD_SANDBOX_LEVEL)
        sandbox.read = []                     (default)
        sandbox.require = false               (default)
        sessions.compaction_threshold = 0.8   (default)
        sessions.core = ["lead", "tester"]    (default)
        sessions.default_tier = "auto"        (default)
        sessions.idle_timeout = "15m"         (default)
        sessions.infinite = true              (default)
        sessions.limit = "90000ms"            (.squad/config.json:1)
        sessions.max_concurrent = 2           (SQUAD_SESSIONS_MAX_CONCURRENT)
        sessions.retry = 1                    (default)
        sessions.standing = false             (default)
        sessions.timeout = "5m"               (default)
        sessions.tool_limit = "30m"           (default)
        sessions.workspace_limit = "256 MiB"  (default)
        --- stderr
        warning: .squad/config.json:1: `models.default` is also set in .squad/config.toml:2, which wins
        hint: delete one of them
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["config", "list"]).to_string());
    let agents: serde_json::Value = serde_json::from_str(&repo.squad(&["agents", "--json"]).out).expect("JSON");
    assert_eq!(
        (agents["agents"][0]["resolved_model"].as_str(), agents["agents"][0]["model_layer"].as_str()),
        (Some("mine"), Some("user"))
    );
}

#[test]
fn one_value_is_read_and_written() {
    let repo = TestRepo::with_team();
    let before = repo.read(".squad/config.toml");
    assert_eq!(repo.squad(&["config", "set", "models.default", "big-1"]).code, 0);
    assert_eq!(repo.squad(&["config", "get", "models.default"]).out, "big-1\n");
    let commented = "# default = \"claude-sonnet-4.5\"";
    assert!(before.contains(commented));
    assert_eq!(repo.read(".squad/config.toml"), before.replace(commented, "default = \"big-1\""));
    assert_eq!(repo.squad(&["config", "unset", "models.default"]).code, 0);
    assert_eq!(repo.squad(&["config", "get", "models.default"]).out, "claude-sonnet-4.5\n");
    let again = repo.squad(&["config", "unset", "models.default"]);
    assert!(again.code == 1 && again.err.contains("is not set there"), "{again}");
    assert_eq!(repo.squad(&["config", "set", "--user", "engine.fallback", "rehearsal"]).code, 0);
    assert_eq!(repo.squad(&["config", "get", "engine.fallback"]).out, "[\"rehearsal\"]\n");
    assert_eq!(repo.squad(&["config", "get", "engine.copilot.path"]).code, 1);
}

#[test]
fn mistakes_change_nothing() {
    let repo = TestRepo::with_team();
    let before = repo.read(".squad/config.toml");
    for (arguments, message) in [
        (&["config", "set", "--project", "models.defalt", "x"][..], "did you mean `models.default`?"),
        (&["config", "set", "--project", "engine.copilot.path", "x"], "a repository may not set"),
        (&["config", "set", "--project", "sessions.timeout", "soon"], "not a duration"),
        (&["config", "set", "--project", "--user", "models.default", "x"], "cannot be used with"),
        (&["config", "get", "nothing"], "there is no setting `nothing`; `squad config` lists them"),
        (&["config", "get", "engine.rehearsal"], "; it is a table of `engine.rehearsal.script`"),
    ] {
        let output = repo.squad(arguments);
        assert!(output.code == 2 && output.err.contains(message), "{arguments:?}: {output}");
    }
    assert_eq!(repo.read(".squad/config.toml"), before);
}

#[test]
fn several_at_once_lose_nothing() {
    let repo = TestRepo::with_team();
    std::thread::scope(|scope| {
        for number in 0..12 {
            let repo = &repo;
            scope.spawn(move || {
                let name = format!("models.roles.r{number}");
                assert_eq!(repo.squad(&["config", "set", &name, "m"]).code, 0);
            });
        }
    });
    let written = repo.read(".squad/config.toml");
    assert_eq!((0..12).filter(|number| written.contains(&format!("r{number} = \"m\""))).count(), 12, "{written}");
}

#[test]
fn what_is_half_written_is_nowhere_that_git_add_looks_and_in_nobodys_way() {
    let repo = TestRepo::with_team();
    let draft = ".git/squad/config.new";
    // As a kill leaves it.
    repo.write(draft, "[models]\ndefault = \"ha");
    assert_eq!(repo.squad(&["config", "set", "models.default", "m"]).code, 0);
    assert!(!repo.exists(draft) && repo.read(".squad/config.toml").contains("default = \"m\"\n"));
    // Where it cannot be written, it cannot be anywhere else.
    std::fs::create_dir(repo.root().join(draft)).expect("made");
    let output = repo.squad(&["config", "set", "models.default", "n"]);
    assert!(output.code == 1 && output.err.contains("cannot write"), "{output}");
    assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), " M .squad/config.toml\n");
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_within_the_project_only() {
    let repo = TestRepo::with_team();
    std::fs::remove_file(repo.root().join(".squad/config.toml")).expect("removed");
    repo.write("ours.toml", "# ours\n");
    std::os::unix::fs::symlink("../ours.toml", repo.root().join(".squad/config.toml")).expect("linked");
    assert_eq!(repo.squad(&["config", "set", "models.default", "m"]).code, 0);
    assert_eq!(repo.read("ours.toml"), "# ours\n\n[models]\ndefault = \"m\"\n");
    assert!(repo.root().join(".squad/config.toml").is_symlink());

    repo.write("../theirs.toml", "# theirs\n");
    std::fs::remove_file(repo.root().join(".squad/config.toml")).expect("removed");
    std::os::unix::fs::symlink("../../theirs.toml", repo.root().join(".squad/config.toml")).expect("linked");
    let output = repo.squad(&["config", "set", "models.default", "m"]);
    assert!(output.code == 3 && output.err.contains("out of the project's files"), "{output}");
    assert_eq!(repo.read("../theirs.toml"), "# theirs\n");
    assert!(repo.squad(&["config", "list"]).err.contains("out of the project's files"));
}

/// Who names the core agents × how many × how many may work at a time: a repository names no more than squad does.
#[test]
fn a_repository_makes_no_more_agents_core_than_squad_does() {
    let all = "\"ada\", \"bob\", \"rex\"";
    for (in_project, most, names, ignored) in [
        (true, 8, all, Some("3 agents, and a repository may name no more than 2, so squad leaves out rex")),
        (true, 2, all, Some("3 agents, and a repository may name no more than 2, so squad leaves out rex")),
        (true, 1, all, Some("3 agents, and a repository may name no more than 1, so squad leaves out bob and rex")),
        (
            true,
            1,
            "\"ada\", \"bob\"",
            Some("2 agents, and a repository may name no more than 1, so squad leaves out bob"),
        ),
        (true, 8, "\"rex\", \"bob\"", None),
        (true, 8, "", None),
        (false, 8, all, None),
        (false, 1, all, None),
    ] {
        let mut repo = TestRepo::with_small_team();
        let config = repo.root().join("../config").display().to_string();
        repo.variables.insert("XDG_CONFIG_HOME".to_owned(), config);
        let path = if in_project { ".squad/config.toml" } else { "../config/squad/config.toml" };
        repo.write(path, &format!("[sessions]\nmax_concurrent = {most}\ncore = [{names}]\n"));
        let output = repo.squad(&["agents"]);
        let said = ignored.map(|ignored| format!("warning: .squad/config.toml:3: `sessions.core` names {ignored}\n"));
        assert!(said.iter().all(|said| output.err.contains(said)), "{output}");
        assert_eq!(output.err.contains("sessions.core"), said.is_some(), "{output}");
    }
}

#[test]
fn the_doctor_names_the_models_that_a_repository_chooses() {
    let mut repo = TestRepo::with_small_team();
    let config = repo.root().join("../config").display().to_string();
    repo.variables.insert("XDG_CONFIG_HOME".to_owned(), config);
    repo.write("../config/squad/config.toml", "[models]\ndefault = \"mine\"\n");
    assert!(!repo.squad(&["doctor"]).out.contains("chooses models"));
    repo.write(
        ".squad/config.toml",
        "[models]\ndefault = \"theirs\"\npremium = \"gold\"\n[models.roles]\nada = \"x\"\n",
    );
    let said = "  config     .squad/config.toml:3: the repository chooses models: `models.premium = \"gold\"` and \
                `models.roles.ada = \"x\"`\n";
    let output = repo.squad(&["doctor"]);
    assert!(output.out.contains(said), "{output}");
}
