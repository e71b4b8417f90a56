//! What is wrong is said, with the place and the way out, and nothing is lost.

use expect_test::expect;

use crate::support::TestRepo;

const RUN: [&str; 4] = ["orchestrate", "--engine", "rehearsal", "x"];

#[test]
fn no_repository_no_team_no_work_tree() {
    let folder = TestRepo::folder();
    let output = folder.squad(&RUN);
    assert!(output.code == 3 && output.err.contains("no git repository"), "{output}");
    let empty = TestRepo::empty();
    expect![[r#"
        --- stderr
        error: there is no team in REPO: no `.squad/team.md` there or above
        hint: `squad init` makes a team
        --- exit 3
    "#]]
    .assert_eq(&empty.squad(&RUN).to_string());
    empty.git(&["init", "--quiet", "--bare", "bare.git"]);
    let bare = empty.root().join("bare.git");
    expect![[r#"
        --- stderr
        error: REPO/bare.git is a bare repository; squad works in a work tree
        hint: clone it, or make a work tree with `git worktree add`
        --- exit 3
    "#]]
    .assert_eq(&empty.squad_in(&bare, &RUN).to_string());
}

#[test]
fn a_team_that_cannot_be_used() {
    let repo = TestRepo::empty();
    repo.write(".squad/team.md", "");
    expect![[r#"
        --- stderr
        warning: .squad/routing.md:1: there is no routing.md
        hint: without it, routing uses only @mentions and charters
        error: .squad/team.md:1: no table in it lists a member
        hint: a roster is a table with a Name and a Role column
        --- exit 3
    "#]]
    .assert_eq(&repo.squad(&RUN).to_string());
    repo.write(".squad/team.md", "| Name | Role |\n|---|---|\n| Ada | Dev |\n");
    repo.write(".squad/routing.md", "");
    repo.write(".squad/agents/ada/charter.md", "");
    expect![[r#"
        (rehearsal) As Dev I would now work on: x
        --- stderr
        warning: .squad/agents/ada/charter.md:1: the charter is empty
        hint: say who the agent is, what it owns and where its work ends
        warning: .squad/routing.md:1: squad found no routing rule in it
        hint: rules are rows of a table such as `| Work Type | Route To | Examples |`
          squad  the rehearsal engine: a script plays, no model is asked
        ! squad  nothing may be changed: writes and commands are refused; `--permissions allow` lets agents make them
        Plan  1 ada   tier standard, run 000001   command line
          ada    read .squad/team.md
        ✓ completed in 0:00; run 000001
          ada    completed   no change
          next   squad log 000001   what happened
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "ada", "x"]).to_string());
    repo.write(".squad/config.toml", "[sessions\n");
    expect![[r#"
        --- stderr
        warning: .squad/agents/ada/charter.md:1: the charter is empty
        hint: say who the agent is, what it owns and where its work ends
        warning: .squad/routing.md:1: squad found no routing rule in it
        hint: rules are rows of a table such as `| Work Type | Route To | Examples |`
        error: .squad/config.toml:1: is not TOML: unclosed table, expected `]`
        hint: fix the file: no agent starts until then
        --- exit 3
    "#]]
    .assert_eq(&repo.squad(&RUN).to_string());
}

#[test]
fn unknown_names() {
    let repo = TestRepo::with_small_team();
    for arguments in [
        &["orchestrate", "--agent", "adda", "x"][..],
        &["orchestrate", "--agent", "scribe", "x"],
        &["orchestrate", "--engine", "copilt", "x"],
        &["orchestrate", "--timeout", "120", "x"],
        &["orchestrate", "--max-concurrent", "many", "x"],
        &["orchestrate", "--script", "missing.toml", "x"],
        &["orchestrate", "--engine", "rehearsal", ""],
        &["engines", "foo"],
        &["log", "2027"],
    ] {
        let output = repo.squad(arguments);
        assert_eq!(output.code, 2, "{arguments:?}: {output}");
        assert!(output.err.starts_with("error: "), "{arguments:?}: {output}");
        let mut json = vec!["--json"];
        json.extend(arguments);
        let output = repo.squad(&json);
        let value: serde_json::Value = serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{output}"));
        assert_eq!((value["error"]["kind"].as_str(), output.code), (Some("usage"), 2), "{output}");
    }
    expect![[r#"
        --- stderr
        error: the team has no agent `adda`
        hint: did you mean `ada`? the team's agents: ada, bob and rex
        --- exit 2
    "#]]
    .assert_eq(&repo.squad(&["orchestrate", "--agent", "adda", "x"]).to_string());
}

#[test]
fn an_unknown_engine_in_a_file_is_the_files_mistake() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/config.toml", "[engine]\nname = \"nope\"\n");
    expect![[r#"
        --- stderr
        error: .squad/config.toml:2: there is no engine `nope`
        hint: the engines are `copilot`, `rehearsal`, `claude`, `codex`, `gemini`, `cursor`, `opencode`, `copilot-print`, `claude-print` and `codex-print`
        --- exit 3
    "#]]
    .assert_eq(&repo.squad(&["orchestrate", "x"]).to_string());
}

#[test]
fn a_script_is_read_before_anything_begins() {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse("[[turn]]\nagent = \"ada\"\nsteps = [{ sing = \"la\" }]\n", &["x"]);
    assert!(output.code == 2 && output.err.contains("line 3"), "{output}");
    assert_eq!(repo.squad(&["log"]).out, "");
}

#[test]
fn the_engine_dies_in_the_middle() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ tool = \"squad_log_decision\", args = { title = \"Kept\" } }, { die = true }]\n";
    let output = repo.rehearse(script, &["--agent", "ada", "x"]);
    assert!(output.code == 1 && output.err.contains("✗ ada    failed: the engine died"), "{output}");
    // What was decided before is on the branch.
    assert!(repo.squad(&["decisions", "list"]).out.contains("in force"));
}

#[test]
fn odd_bytes_are_said_and_read_as_far_as_they_go() {
    let repo = TestRepo::with_small_team();
    std::fs::write(repo.root().join(".squad/decisions.md"), b"# Decisions\n\n### 2026-01-01: Caf\xe9\n")
        .expect("a file");
    let output = repo.squad(&["decisions", "list"]);
    assert!(output.code == 0 && output.out.contains("Café"), "{output}");
    let note = ".squad/decisions.md: is not UTF-8, and is read as Windows-1252";
    assert!(repo.squad(&["agents"]).err.contains(note));
    // Committed or not, it is one decision.
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=decisions"]);
    assert_eq!(repo.squad(&["decisions", "list"]).out.matches("Caf").count(), 1);
}

#[test]
fn untrusted_text_cannot_move_the_cursor() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"a\\u001b[2Jb\\u0007\" }]\n";
    let output = repo.rehearse(script, &["--agent", "ada", "x\u{1b}]0;t\u{7}"]);
    assert_eq!(output.out, "a[U+001B][2Jb[U+0007]\n");
    assert!(!repo.squad(&["log"]).out.contains('\u{1b}'));
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_project_is_not_followed() {
    let repo = TestRepo::with_small_team();
    let outside = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(outside.path(), "# Ada\n\nsecret\n").expect("a file");
    std::fs::create_dir_all(repo.root().join(".squad/agents/ada")).expect("a folder");
    std::os::unix::fs::symlink(outside.path(), repo.root().join(".squad/agents/ada/charter.md")).expect("a link");
    let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "ada", "x"]);
    assert!(output.err.contains(".squad/agents/ada/charter.md: is a link out of the project's files"), "{output}");
}

#[test]
fn a_folder_that_is_not_there_is_no_place_to_work_in() {
    let repo = TestRepo::with_small_team();
    let commands: [&[&str]; 6] =
        [&["agents"], &["config", "list"], &["status"], &["engines"], &["demo"], &["orchestrate", "--dry-run", "x"]];
    for command in commands {
        let output = repo.squad(&[&["-C", "nowhere"], command].concat());
        assert_eq!(output.code, 2, "{output}");
        assert!(output.err.starts_with("error: there is no folder REPO/nowhere\n"), "{output}");
    }
    let output = repo.squad(&["--json", "-C", ".squad/team.md", "config", "list"]);
    assert!(output.code == 2 && output.out.starts_with(r#"{"error":{"kind":"usage""#), "{output}");
}

#[test]
fn what_is_in_the_teams_place_is_named() {
    let repo = TestRepo::empty();
    repo.write(".squad", "notes");
    let output = repo.squad(&["status"]);
    assert!(output.out.contains("! team       none; .squad is in the way, because it is not a folder"), "{output}");
    assert!(repo.squad(&["status", "--json"]).out.contains(r#""in_the_way":".squad""#));
    std::fs::remove_file(repo.root().join(".squad")).expect("it is ours");
    assert!(repo.squad(&["status"]).out.contains("none; `squad init` installs one"));
}

/// Without and with roles, which are no team: what is looked at says how to begin, and nothing is taken for a project.
#[test]
fn without_a_team_a_team_comes_first() {
    for has_roles in [false, true] {
        let repo = TestRepo::empty();
        repo.write("README.md", "Ours.\n");
        if has_roles {
            repo.write(".squad/roles/reviewer.md", "# Reviewer\n\nYou review.\n");
        }
        repo.git(&["add", "--all"]);
        repo.git(&["commit", "--quiet", "--message=first"]);
        for command in [&["log"][..], &["decisions", "list"], &["knowledge", "list"]] {
            let output = repo.squad(command);
            assert!(output.code == 0 && output.err.ends_with("\nhint: squad init\n"), "{output}");
        }
        assert!(repo.squad(&["status"]).out.contains("none; `squad init` installs one"));
        repo.write("README.md", "Ours too.\n");
        let reviewed = repo.squad(&["review", "--engine", "rehearsal"]);
        assert_eq!(reviewed.code, 0, "{reviewed}");
        assert_eq!(repo.squad(&["squads", "--json"]).out.matches("\"path\"").count(), 0, "{has_roles}");
    }
}

#[test]
fn a_huge_file_is_refused_before_it_is_read() {
    let repo = TestRepo::with_small_team();
    let file = std::fs::File::create(repo.root().join(".squad/decisions.md")).expect("created");
    // A hole, which takes no room.
    file.set_len(3 << 30).expect("grown");
    expect![[r#"
        --- stderr
        error: .squad/decisions.md: is not read: it has 3221225472 bytes, and squad reads up to 16 MiB of such a file
        hint: move old entries to an archive: those are read too
        --- exit 3
    "#]]
    .assert_eq(&repo.squad(&["decisions", "list"]).to_string());
    assert!(repo.squad(&["agents"]).err.contains("decisions.md: is not read"));
}

#[test]
fn every_kind_of_file_has_its_bound() {
    const MIB: u64 = 1 << 20;
    for (path, largest) in [
        ("team.md", MIB),
        ("routing.md", MIB),
        ("ceremonies.md", MIB),
        ("agents/ada/charter.md", MIB),
        ("config.toml", MIB),
        ("config.json", MIB),
        ("identity/now.md", MIB),
        ("skills/a/SKILL.md", MIB),
        ("casting/registry.json", MIB),
        ("agents/ada/history.md", 16 * MIB),
        ("decisions.md", 16 * MIB),
        ("decisions/inbox/note.md", 16 * MIB),
        ("decisions/2026/01/05-tar-0a.md", 16 * MIB),
        ("decisions-archive.md", 16 * MIB),
    ] {
        let repo = TestRepo::with_small_team();
        repo.write(&format!(".squad/{path}"), "");
        let file = std::fs::OpenOptions::new().write(true).open(repo.root().join(".squad").join(path)).expect("open");
        let told = format!(".squad/{path}: is not read: it has {} bytes", largest + 1);
        let is_refused = || repo.squad(&["agents"]).err.contains(&told);
        file.set_len(largest + 1).expect("grown");
        assert!(is_refused(), "{path}");
        let output = repo.squad(&["route", "Add an endpoint"]);
        assert!(output.code == 3 && output.err.contains(&told), "{path}: {output}");
        // Zeros cost some parsers more than text does.
        if largest == MIB {
            file.set_len(largest).expect("cut");
            assert!(!repo.squad(&["agents"]).err.contains("is not read: it has"), "{path}");
        }
    }
}

#[test]
fn a_commit_is_read_within_the_same_bounds() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/routing.md", &" ".repeat((1 << 20) + 1));
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=large"]);
    let output = repo.squad(&["agents", "diff", "HEAD~1..HEAD"]);
    let told = ".squad/routing.md: it has 1048577 bytes in the commit, and at most 1048576 are read";
    assert!(output.code == 3 && output.err.contains(told), "{output}");
}

#[cfg(unix)]
#[test]
fn folders_that_are_links_are_said_once() {
    use std::os::unix::fs::symlink;
    let repo = TestRepo::with_small_team();
    repo.write("../theirs/charter.md", "# Eve — Spy\n");
    repo.write(".squad/agents/note.txt", "");
    symlink(".", repo.root().join(".squad/agents/self")).expect("linked");
    symlink("../../../theirs", repo.root().join(".squad/agents/eve")).expect("linked");
    expect![[r#"
          Ada     Backend Dev  claude-sonnet-4.5  2 routes
          Bob     Tester       claude-sonnet-4.5  1 route
          Rex     Reviewer     claude-sonnet-4.5  1 route
          Scribe  Logger       built-in helper, its work is squad's own
          Old     Backend Dev  claude-sonnet-4.5  no route: reached only as @old, retired
        --- stderr

        5 members, 3 routing rules, 0 decisions in force
        warning: .squad/agents/eve: is a link out of the project's files and is not read
        warning: .squad/agents/self: is a link to a folder above it and is not followed
        note: .squad/team.md:5: Ada has no charter at .squad/agents/ada/charter.md
        hint: write one; until then the agent only knows its name and role
        note: .squad/team.md:6: Bob has no charter at .squad/agents/bob/charter.md
        hint: write one; until then the agent only knows its name and role
        note: .squad/team.md:7: Rex has no charter at .squad/agents/rex/charter.md
        hint: write one; until then the agent only knows its name and role
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["agents"]).to_string());
}

#[test]
fn a_log_level_that_is_none_is_said() {
    let mut repo = TestRepo::with_small_team();
    repo.variables.insert("SQUAD_LOG".to_owned(), "loud".to_owned());
    let output = repo.squad(&["agents"]);
    assert!(output.code == 0 && output.err.contains("SQUAD_LOG=loud is not a level"), "{output}");
}

#[test]
fn a_usage_error_is_whole_as_json() {
    let repo = TestRepo::with_small_team();
    let error = |arguments: &[&str]| {
        let output = repo.squad(arguments);
        assert_eq!(output.code, 2, "{output}");
        let value: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
        (value["error"]["message"].as_str().unwrap_or_default().to_owned(), value["error"]["hint"].clone())
    };
    let (message, hint) = error(&["cancel", "--json"]);
    assert_eq!(message, "`squad cancel` needs a run");
    assert!(hint.as_str().is_some_and(|hint| !hint.is_empty()), "{hint}");
    let (message, hint) = error(&["decisions", "add", "--json", "x", "--why", "y"]);
    assert!(message.contains("--why") && hint.as_str().is_some_and(|hint| hint.contains("TEXT")), "{hint}");
}
