//! What a repository brings that would act or loosen something: inert until the user approves it, and when it changes.

use serde_json::Value;

use crate::support::TestRepo;

const CONFIG: &str = ".squad/config.toml";
/// Something of each kind, in the order in which it is listed.
const BROUGHT: &str = "[policy]\ncommands.allow = [\"touch\"]\nquestions = 900\n[sessions]\nlimit = \"9h\"\ntimeout = \"1m\"\n\
    [engine]\nfallback = [\"rehearsal\"]\n[engines.mine]\nprogram = \"sh\"\narguments = [\"tools/run.sh\"]\n\
    [engine.copilot.provider]\nbase_url = \"https://elsewhere.example\"\n[mcp.servers.tides]\nurl = \"https://tides.example\"\n\
    [hooks.guard]\non = \"pre_tool_use\"\nrun = [\"sh\", \"tools/guard.sh\"]\n\
    [check]\nrun = [\"sh\", \"tools/check.sh\"]\n[sandbox]\nlevel = \"rules\"\nread = [\"/\"]\ngit = \"open\"\n\
    [isolation]\nsetup = [\"sh\", \"tools/setup.sh\"]\nbring = [\"tools\"]\nhost = \"far\"\n\
    [hosts.far]\nlaunch = [\"sh\", \"tools/far.sh\"]\n[links.other]\ngit = \"../other\"\n\
    [engine.rehearsal]\nscript = \"tools/script.toml\"\n\
    [engine.copilot]\npath = \"tools/run.sh\"\nhome = \"tools\"\npermission = \"allow\"\n\
    [models.override]\nall = \"dearest\"\n[git]\nprogram = \"tools/git.sh\"\n";

fn repo() -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write(CONFIG, BROUGHT);
    repo.write("tools/run.sh", "echo one\n");
    repo
}

/// Each unit, and its state.
fn states(repo: &TestRepo, place: &std::path::Path) -> Vec<(String, String)> {
    let output = repo.squad_in(place, &["trust", "--json"]);
    assert_eq!(output.code, 0, "{output}");
    let value: Value = serde_json::from_str(&output.out).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    value["trust"].as_array().expect("a list").iter().map(|unit| (text(&unit["name"]), text(&unit["state"]))).collect()
}

/// The settings of the repository's file that are in effect.
fn in_effect(repo: &TestRepo) -> Vec<String> {
    let output = repo.squad(&["config", "list", "--json"]);
    let value: Value = serde_json::from_str(&output.out).expect("JSON");
    let settings = value["settings"].as_array().expect("a list").iter();
    let ours = settings.filter(|setting| setting["source"].as_str().is_some_and(|source| source.starts_with(CONFIG)));
    ours.map(|setting| setting["name"].as_str().expect("a name").to_owned()).collect()
}

/// Servers in the front matter of charters and in another tool's file are approved like those of ours.
#[test]
fn servers_of_charters_and_of_other_tools_files_are_brought_too() {
    let repo = TestRepo::with_small_team();
    let charter = |agent: &str, servers: &str| {
        let path = format!(".squad/agents/{agent}/charter.md");
        repo.write(&path, &format!("---\r\nname: {agent}\r\n{servers}---\r\n\r\n# {agent}\r\n"));
    };
    let tides = "{command: tides, tools: ['*'], env: {DEPTH: 3}, timeout: 5000}";
    charter(
        "ada",
        &format!("mcp-servers:\r\n  tides: {tides}\r\n  winds: {{command: sh, args: [tools/winds.sh]}}\r\n"),
    );
    // As another tool writes it, with one that is the same and one that is not.
    charter("bob", &format!("mcpServers:\r\n  - tickets\r\n  - tides: {tides}\r\n  - winds: {{command: other}}\r\n"));
    repo.write("tools/winds.sh", "echo\n");
    let far = r#"{"mcpServers": {"far": {"type": "local", "url": "https://far.example", "agents": ["nobody"]}}}"#;
    repo.write(".squad/config.json", far);
    let new = |name: &str| (format!("mcp.servers.{name}"), "new".to_owned());
    assert_eq!(states(&repo, &repo.root()), [new("far"), new("tides"), new("winds")]);
    let listed = repo.squad(&["trust"]).out;
    assert!(listed.contains("file tools/winds.sh"), "{listed}");
    let doctor = repo.squad(&["doctor"]).to_string();
    let twice =
        "bob/charter.md:3: the MCP server `winds` is left out: another has this name in .squad/agents/ada/charter.md:3";
    assert!(doctor.contains(twice), "{doctor}");
    assert_eq!(in_effect(&repo), [""; 0]);
    assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0);
    let list = repo.squad(&["config", "list"]).out;
    let has = |setting: &str| list.lines().any(|line| line.starts_with(setting));
    let settings = [
        "mcp.servers.far.type = \"stdio\"",
        "mcp.servers.tides.agents = [\"ada\", \"bob\"]",
        "mcp.servers.tides.timeout = \"5000ms\"",
        "mcp.servers.winds.agents = [\"ada\"]",
    ];
    assert!(settings.iter().all(|setting| has(setting)) && !has("mcp.servers.tides.tools"), "{list}");
    let doctor = repo.squad(&["doctor"]).to_string();
    assert!(doctor.contains("config.json:1: `mcp.servers.far.agents` names `nobody`"), "{doctor}");
    // A charter that is changed elsewhere takes no approval.
    repo.write(
        ".squad/agents/ada/charter.md",
        &repo.read(".squad/agents/ada/charter.md").replace("sh, args", "env, args"),
    );
    assert!(states(&repo, &repo.root()).contains(&("mcp.servers.winds".to_owned(), "changed".to_owned())));
}

#[test]
fn each_kind_is_inert_until_it_is_approved() {
    let mut repo = repo();
    // It would be above the repository's.
    repo.variables.remove("SQUAD_SANDBOX_LEVEL");
    let names: Vec<String> = states(&repo, &repo.root()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "check.run",
            "engine.copilot.home",
            "engine.copilot.path",
            "engine.copilot.permission",
            "engine.copilot.provider.base_url",
            "engine.fallback",
            "engine.rehearsal.script",
            "engines.mine",
            "hooks.guard",
            "hosts.far",
            "isolation.bring",
            "isolation.host",
            "isolation.setup",
            "links.other.git",
            "mcp.servers.tides",
            "policy.commands.allow",
            "policy.questions",
            "sandbox.git",
            "sandbox.level",
            "sandbox.read",
            "sessions.limit"
        ]
    );
    assert_eq!(in_effect(&repo), ["sessions.timeout"]);
    for name in &names {
        let output = repo.squad(&["trust", "approve", name, "--yes"]);
        assert_eq!(output.code, 0, "{output}");
        let begins = |setting: &String| setting == name || setting.starts_with(&format!("{name}."));
        assert!(in_effect(&repo).iter().any(begins), "{name}: {:?}", in_effect(&repo));
    }
    // Nobody approves another's own choice of a model, or the git that reads the repository.
    for name in ["models.override.all", "git.program"] {
        let output = repo.squad(&["trust", "approve", name, "--yes"]);
        assert_eq!(output.code, 2, "{output}");
    }
    assert_eq!(repo.squad(&["trust", "revoke", "--all"]).code, 0);
    assert_eq!(in_effect(&repo), ["sessions.timeout"]);
}

/// A value, a file that it names, and neither.
#[test]
fn what_changes_has_to_be_approved_again() {
    let repo = repo();
    assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0);
    let changed = |repo: &TestRepo| -> Vec<String> {
        let states = states(repo, &repo.root()).into_iter();
        states.filter(|(_, state)| state != "approved").map(|(name, state)| format!("{name} {state}")).collect()
    };
    assert_eq!(changed(&repo), Vec::<String>::new());
    repo.write("tools/run.sh", "echo two\n");
    assert_eq!(changed(&repo), ["engine.copilot.path changed", "engines.mine changed"]);
    // What was approved may be there to deny something.
    let output = repo.squad(&["orchestrate", "@ada do it"]);
    assert!(output.code == 3 && output.err.contains("squad trust approve engine"), "{output}");
    repo.write("tools/run.sh", "echo one\n");
    repo.write(CONFIG, &BROUGHT.replace("elsewhere.example", "other.example"));
    assert_eq!(changed(&repo), ["engine.copilot.provider.base_url changed"]);
    // What needs no approval, comments and other servers change nothing.
    repo.write(CONFIG, &format!("# A comment\n{BROUGHT}[mcp.servers.more]\ncommand = \"x\"\n"));
    assert_eq!(changed(&repo), ["mcp.servers.more new"]);
    repo.write(CONFIG, BROUGHT);
    std::fs::remove_file(repo.root().join("tools/run.sh")).expect("the file");
    assert_eq!(changed(&repo), ["engine.copilot.path changed", "engines.mine changed"]);
}

/// Each kind of thing that was approved × how it goes away. A guard that vanished is said until somebody takes its
/// approval back, and nothing of that is approved by the way.
/// What is written in two of a team's files is approved with both: a change of either takes the approval away.
#[test]
fn a_unit_in_two_files_is_approved_with_both() {
    let repo = TestRepo::with_small_team();
    let theirs = |url: &str| format!(r#"{{"mcpServers": {{"far": {{"type": "http", "url": "{url}"}}}}}}"#);
    let ours = |timeout: &str| format!("[mcp.servers.far]\ntimeout = \"{timeout}\"\n");
    let files = [".squad/config.json", CONFIG];
    let approved = [theirs("https://far.example"), ours("5s")];
    let changed = [theirs("https://farther.example"), ours("6s")];
    let state = |word: &str| vec![("mcp.servers.far".to_owned(), word.to_owned())];
    for (file, text) in files.iter().zip(&approved) {
        repo.write(file, text);
    }
    assert_eq!(states(&repo, &repo.root()), state("new"));
    assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0);
    for place in [0, 1] {
        assert_eq!(states(&repo, &repo.root()), state("approved"));
        repo.write(files[place], &changed[place]);
        assert_eq!(states(&repo, &repo.root()), state("changed"), "{}", files[place]);
        repo.write(files[place], &approved[place]);
    }
    assert_eq!(states(&repo, &repo.root()), state("approved"));
}

#[test]
fn what_was_approved_and_is_gone_is_said() {
    let hook = "[hooks.guard]\non = \"agent_stop\"\nrun = [\"true\"]\n";
    let server = "[mcp.servers.tides]\nurl = \"https://tides.example\"\n";
    let check = "[check]\nrun = [\"true\"]\n";
    let engine = "[engines.mine]\nprogram = \"sh\"\n";
    for (name, brought) in
        [("hooks.guard", hook), ("mcp.servers.tides", server), ("check.run", check), ("engines.mine", engine)]
    {
        for left in [None, Some(""), Some("# nothing\n"), Some("[sessions]\nlimit = \"9h\"\n")] {
            let repo = TestRepo::with_small_team();
            repo.write(CONFIG, brought);
            assert_eq!(repo.squad(&["trust", "approve", name, "--yes"]).code, 0);
            match left {
                None => std::fs::remove_file(repo.root().join(CONFIG)).expect("the file"),
                Some(left) => repo.write(CONFIG, left),
            }
            let removed = (name.to_owned(), "removed".to_owned());
            assert!(states(&repo, &repo.root()).contains(&removed), "{name} {left:?}");
            let told = format!("`{name}`, which you approved, is not there any more");
            let output = repo.rehearse("", &["@ada do it"]);
            assert!(output.err.contains(&told) && output.err.contains(&format!("trust revoke {name}")), "{output}");
            let output = repo.squad(&["trust"]);
            assert!(output.out.contains(&format!("{name}  approved, and not there any more")), "{output}");
            // It is nothing to approve.
            let output = repo.squad(&["trust", "approve", name, "--yes"]);
            assert!(output.code == 2 && output.err.contains("brings no"), "{output}");
            assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0);
            assert!(states(&repo, &repo.root()).contains(&removed), "{name} {left:?}");
            // It comes back as it was, or is forgotten.
            let now = left.unwrap_or_default();
            repo.write(CONFIG, brought);
            assert!(states(&repo, &repo.root()).contains(&(name.to_owned(), "approved".to_owned())), "{name}");
            repo.write(CONFIG, now);
            assert_eq!(repo.squad(&["trust", "revoke", name]).code, 0);
            let output = repo.rehearse("", &["@ada do it"]);
            assert!(!output.err.contains(name), "{output}");
        }
    }
}

/// What holds agents back does not go away with the file that says so, whatever becomes of that.
#[test]
fn a_hook_whose_file_cannot_be_read_starts_nobody() {
    let hook = "[hooks.guard]\non = \"pre_tool_use\"\nrun = [\"false\"]\n";
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\" }, { say = \"Done.\" }]\n";
    for broken in [
        format!("{hook}["),
        format!("{hook}[hooks.guard]\n"),
        format!("<<<<<<< a\n{hook}=======\n>>>>>>> b\n"),
        hook.replace("pre_tool_use", "pre_tool"),
        hook.replace("run", "runs"),
        hook.replace("[hooks", "[hook"),
        hook.replace("false", "guard.sh"),
    ] {
        let repo = TestRepo::with_small_team();
        repo.write(CONFIG, hook);
        assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0);
        repo.write(CONFIG, &broken);
        let output = repo.rehearse(script, &["@ada do it", "--permissions", "allow"]);
        assert!(output.code == 3 && !repo.exists("a.txt"), "{broken}: {output}");
    }
}

/// A repository that would do all of it: nothing of it runs or calls, and no file of anybody's is made, while a team works.
#[cfg(unix)]
#[test]
fn nothing_that_a_repository_brings_runs_by_itself() {
    let repo = repo();
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    elsewhere.set_nonblocking(true).expect("a listener");
    let url = format!("http://{}", elsewhere.local_addr().expect("a place"));
    let places = [("https://elsewhere.example", ""), ("https://tides.example", "/mcp"), ("../other", "/other.git")];
    let brought =
        places.iter().fold(BROUGHT.to_owned(), |text, (place, path)| text.replace(place, &format!("{url}{path}")));
    repo.write(CONFIG, &brought);
    let is_called = || elsewhere.accept().is_ok();
    let programs = ["run", "guard", "check", "setup", "far", "git"].map(|name| format!("tools/{name}.sh"));
    for program in &programs {
        repo.write(program, &format!("touch {}/ran\n", repo.root().display()));
    }
    repo.write("tools/script.toml", "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"touch ran\" }]\n");
    let script =
        "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\" }, { run = \"touch ran\" }, { say = \"Done.\" }]\n";
    for isolation in ["project", "clone"] {
        let output =
            repo.rehearse(script, &["@ada do it", "--permissions", "deny", "--isolation", isolation, "--json"]);
        let at_work = |event: &Value| event["type"] == "hook.answered" || event["type"] == "check.ended";
        assert!(!repo.exists("ran") && !TestRepo::events(&output).iter().any(at_work) && !is_called(), "{output}");
    }
    for command in [
        &["doctor", "--repair"][..],
        &["status"],
        &["engines", "-v"],
        &["route", "do it"],
        &["agents"],
        &["agents", "diff", "HEAD"],
        &["config", "list"],
        &["decisions", "land"],
        &["decisions", "review", "HEAD..HEAD"],
        &["knowledge", "search", "it"],
        &["knowledge", "list"],
        &["sync"],
        &["review"],
        &["undo", "20260101-000000-000000"],
        &["merge", "20260101-000000-000000"],
        &["cancel"],
        &["mcp", "--check"],
        &["log", "--usage"],
        &["diff"],
        &["squads"],
        &["policy", "test", "touch ran"],
        &["trust"],
        &["why", ".squad/team.md:1"],
        &["history", "land"],
        &["gc"],
        &["export", "-"],
        &["remove", "--dry-run"],
        &["rescue"],
        &["hosts", "--check"],
        &["upgrade"],
        &["adopt"],
        &["demo"],
        &["init", "--yes"],
        &["orchestrate", "--dry-run", "do it"],
        &["orchestrate", "--engine", "mine", "do it"],
        &["orchestrate", "--on", "far", "do it"],
    ] {
        let output = repo.squad(command);
        let is_command = !output.err.contains("Usage:");
        assert!(is_command && !repo.exists("ran") && !is_called(), "{command:?}: {output}");
    }
}

#[test]
fn a_copy_has_no_approvals_and_a_work_tree_has_its_repositorys() {
    let repo = repo();
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "all"]);
    assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0);
    repo.git(&["clone", "-q", ".", "../copy"]);
    repo.git(&["worktree", "add", "-q", "../tree"]);
    for (place, expected) in [("../copy", "new"), ("../tree", "approved")] {
        let states = states(&repo, &repo.root().join(place));
        assert!(states.len() == 21 && states.iter().all(|(_, state)| state == expected), "{place}: {states:?}");
    }
    // Nor has another repository that takes its place.
    let root = repo.root();
    std::fs::rename(&root, root.with_file_name("moved")).expect("it moves");
    std::fs::rename(root.with_file_name("copy"), &root).expect("it moves");
    let states = states(&repo, &root);
    assert!(states.iter().all(|(_, state)| state == "new"), "{states:?}");
}

/// Without a person, without a file to keep it in, and with one that is damaged or another's: nothing is approved.
#[test]
fn whatever_goes_wrong_nothing_is_approved() {
    let mut repo = repo();
    let output = repo.squad(&["trust", "approve", "--all"]);
    assert!(output.code == 2 && output.err.contains("--yes"), "{output}");
    let data = std::path::PathBuf::from(&repo.variables["HOME"]).join(".local/share/squad/trust");
    for (was, is, told) in [
        ("}", "", "your approvals cannot be read: EOF"),
        ("\"approved\"", "\"aproved\"", "your approvals cannot be read: missing field"),
        (".git", ".tig", "your approvals are those of another repository"),
        ("\"version\": 1", "\"version\": 2", "your approvals cannot be read: a newer squad wrote them, in version 2"),
        ("", "", "your approvals cannot be read: the file is another user's"),
    ] {
        assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0);
        let file = std::fs::read_dir(&data).expect("a folder").next().expect("a file").expect("a name").path();
        let kept = std::fs::read_to_string(&file).expect("a file");
        assert!(kept.contains(was), "{kept}");
        std::fs::write(&file, kept.replace(was, is)).expect("a file");
        #[cfg(unix)]
        if was.is_empty() && std::os::unix::fs::chown(&file, Some(1), None).is_err() {
            // Only root can give a file away.
            assert_eq!(repo.squad(&["trust", "revoke", "--all"]).code, 0);
            continue;
        }
        assert_eq!(in_effect(&repo), ["sessions.timeout"]);
        // What was approved to deny something is not known, so nobody works.
        for command in [&["trust"][..], &["trust", "approve", "--all", "--yes"], &["orchestrate", "@ada do it"]] {
            let output = repo.squad(command);
            let place = file.file_name().and_then(|name| name.to_str()).expect("a name");
            let is_told = [told, place, "squad trust revoke --all"].iter().all(|text| output.err.contains(text));
            assert!(output.code == 3 && is_told, "{told}: {output}");
        }
        let output = repo.squad(&["trust", "revoke", "--all"]);
        assert_eq!(output.code, 0, "{output}");
        assert!(states(&repo, &repo.root()).iter().all(|(_, state)| state == "new"), "{told}");
    }
    assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0);
    let file = std::fs::read_dir(&data).expect("a folder").next().expect("a file").expect("a name").path();
    std::fs::remove_file(&file).expect("the file");
    std::fs::create_dir(&file).expect("a folder");
    let output = repo.squad(&["orchestrate", "@ada do it"]);
    // `revoke --all` does not replace it.
    assert!(output.code == 3 && output.err.contains("move it away"), "{output}");
    assert_eq!(repo.squad(&["trust", "revoke", "--all"]).code, 1);
    std::fs::remove_dir_all(&data).expect("the folder");
    std::fs::write(&data, "").expect("a file");
    assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 3);
    repo.variables.remove("HOME");
    assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 1);
    assert_eq!(in_effect(&repo), ["sessions.timeout"]);
}

/// Every way to name a file, and what squad makes of it.
#[test]
fn a_file_is_recognized_however_it_is_named() {
    let repo = TestRepo::with_small_team();
    for named in [
        "args = [\"tool.py\"]",
        "args = [\"-c\", \"sh tool.py\"]",
        "args = [\"-ctool.py\"]",
        "args = [\"--a=--b=tool.py\"]",
        "args = [\"@tool.py\", \" \"]",
        "args = [\" ./tool.py \"]",
        "args = [\"-c\", \"exec sh \\\"$PWD\\\"/tool.py\"]",
        "env.BASH_ENV = \"${PWD}/tool.py\"",
        "env.NODE_OPTIONS = \"--require ./lib/../tool.py\"",
    ] {
        repo.write("lib/a", "");
        repo.write("tool.py", "1");
        repo.write(CONFIG, &format!("[mcp.servers.x]\ncommand = \"sh\"\n{named}\n"));
        assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0, "{named}");
        assert_eq!(states(&repo, &repo.root())[0].1, "approved", "{named}");
        repo.write("tool.py", "2");
        assert_eq!(states(&repo, &repo.root())[0].1, "changed", "{named}");
    }
    // Files that begin where another one ends are not the same files.
    repo.write(CONFIG, "[mcp.servers.x]\ncommand = \"sh\"\nargs = [\"a\", \"b\"]\n");
    repo.write("a", "1\u{0}b2");
    assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0);
    repo.write("a", "1");
    repo.write("b", "2");
    assert_eq!(states(&repo, &repo.root())[0].1, "changed");
    // What is not there now is revoked with all.
    assert_eq!(repo.squad(&["trust", "approve", "--all", "--yes"]).code, 0);
    let config = repo.read(CONFIG);
    repo.write(CONFIG, "");
    assert_eq!(repo.squad(&["trust", "revoke", "--all"]).code, 0);
    repo.write(CONFIG, &config);
    assert_eq!(states(&repo, &repo.root())[0].1, "new");
    repo.write(CONFIG, "[mcp\n");
    assert_eq!(repo.squad(&["trust"]).code, 3);
}

#[test]
fn no_tool_writes_what_runs_as_it_was_approved() {
    let repo = repo();
    let script =
        "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"tools/run.sh\", text = \"evil\" }, { say = \"Done.\" }]\n";
    let play = || repo.rehearse(script, &["@ada do it", "--permissions", "allow", "--json"]);
    assert_eq!(repo.squad(&["trust", "approve", "engines.mine", "--yes"]).code, 0);
    let output = play();
    assert!(output.out.contains("as the user approved it") && repo.read("tools/run.sh") == "echo one\n", "{output}");
    assert_eq!(repo.squad(&["trust", "revoke", "engines.mine"]).code, 0);
    play();
    assert_eq!(repo.read("tools/run.sh"), "evil");
}
