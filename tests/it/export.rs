//! Moves teams from one repository to another in a file.

use std::fs;

use crate::support::TestRepo;

/// A team with files that are easily damaged on the way: CRLF, no final newline, bytes that are not text.
fn team() -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/skills/ship/SKILL.md", "---\r\nname: ship\r\n---\r\nShip it.");
    fs::write(repo.root().join(".squad/skills/ship/logo.png"), [0x89, b'P', 0, 0xff, b'\r', b'\n']).expect("written");
    repo.git(&["-c", "core.autocrlf=false", "add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=skill"]);
    repo
}

fn tree(repo: &TestRepo) -> String {
    repo.git(&["rev-parse", "HEAD:.squad"])
}

fn copied(from: &TestRepo, to: &TestRepo, name: &str) {
    fs::copy(from.root().join(name), to.root().join("..").join(name)).expect("copied");
}

#[test]
fn a_team_arrives_byte_for_byte_with_its_ledger() {
    let (from, to) = (team(), TestRepo::empty());
    assert_eq!(from.squad(&["decisions", "add", "Money is integer cents"]).code, 0);
    let exported = from.squad(&["export", "team.squad", "--ledger"]);
    assert!(exported.code == 0 && exported.err.contains("and the ledger"), "{exported}");
    copied(&from, &to, "team.squad");
    let shown = to.squad(&["import", "../team.squad", "--dry-run"]);
    assert!(shown.code == 0 && shown.out.contains(".squad/skills/ship/logo.png"), "{shown}");
    assert!(!to.exists(".squad"));
    let imported = to.squad(&["import", "../team.squad"]);
    assert!(imported.code == 0 && imported.err.contains("of the ledger were added"), "{imported}");
    assert_eq!(tree(&to), tree(&from));
    assert_eq!(to.git(&["status", "--porcelain"]), "");
    assert!(to.squad(&["decisions", "list"]).out.contains("Money is integer cents"));
    assert_eq!(to.git(&["for-each-ref", "refs/squad/imports"]), "");
    let again = to.squad(&["import", "../team.squad"]);
    assert!(again.code == 0 && again.err.contains("there already, with the same files"), "{again}");
    to.git(&["revert", "--no-edit", "HEAD"]);
    assert!(!to.exists(".squad"));
    to.assert_sound();
}

#[test]
fn without_a_team_the_ledger_is_exported() {
    let (mut from, to) = (TestRepo::empty(), TestRepo::empty());
    from.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    from.write("a.txt", "one\n");
    from.git(&["add", "--all"]);
    from.git(&["commit", "--quiet", "--message=first"]);
    from.write("a.txt", "two\n");
    assert_eq!(from.squad(&["review"]).code, 0);
    let refused = from.squad(&["export", "it.squad"]);
    assert!(refused.code == 3 && refused.err.contains("`--ledger` exports what was recorded"), "{refused}");
    let exported = from.squad(&["export", "it.squad", "--ledger"]);
    assert!(exported.code == 0 && exported.err.starts_with("Exported the ledger to "), "{exported}");
    copied(&from, &to, "it.squad");
    let imported = to.squad(&["import", "../it.squad"]);
    assert!(imported.code == 0 && imported.err.ends_with("of the ledger were added.\n"), "{imported}");
    assert!(!imported.err.contains("team"), "{imported}");
    let log = to.squad(&["log"]);
    assert!(log.out.contains("Review 1 file against HEAD") && !to.exists(".squad"), "{log}");
    to.assert_sound();
}

#[test]
fn the_ledger_is_exported_only_on_request_and_exports_are_reproducible() {
    let (from, to) = (team(), TestRepo::empty());
    assert_eq!(from.squad(&["decisions", "add", "Money is integer cents"]).code, 0);
    let refs = from.git(&["for-each-ref"]);
    assert_eq!(from.squad(&["export", "one.squad"]).code, 0);
    assert_eq!(from.squad(&["export", "two.squad"]).code, 0);
    assert_eq!(from.git(&["for-each-ref"]), refs);
    let heads = |name: &str| from.git(&["bundle", "list-heads", name]);
    assert_eq!(heads("one.squad"), heads("two.squad"));
    copied(&from, &to, "one.squad");
    let imported = to.squad(&["import", "../one.squad", "--json"]);
    assert!(imported.code == 0 && imported.out.contains("\"entries\":0"), "{imported}");
    // The files hold the decisions; only the ledger knows by whom and when they were made.
    assert_eq!(tree(&to), tree(&from));
}

#[test]
fn an_address_is_said_and_stops_nothing() {
    const KEY: &str = "key: ghp_0123456789abcdefghijklmnopqrstuvwxyz\n";
    let address = "# Notes\n\n**By:** Ann <ann@example.com>\n";
    for (text, has_secret) in [(address.to_owned(), false), (format!("{address}{KEY}"), true)] {
        let repo = team();
        repo.write(".squad/notes.md", &text);
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "--quiet", "--message=notes"]);
        let exported = repo.squad(&["export", "team.squad"]);
        assert_eq!(exported.code, u8::from(has_secret), "{exported}");
        if has_secret {
            assert!(
                exported.err.contains(".squad/notes.md:4: it holds what looks like a secret (github-"),
                "{exported}"
            );
            assert_eq!(repo.squad(&["export", "team.squad", "--force"]).code, 0);
        } else {
            assert!(exported.err.contains(".squad/notes.md:3: it holds 1 e-mail address"), "{exported}");
            assert!(!exported.err.contains("ann@"), "{exported}");
        }
        let other = TestRepo::empty();
        copied(&repo, &other, "team.squad");
        let imported = other.squad(&["import", "../team.squad"]);
        assert_eq!(imported.code, u8::from(has_secret), "{imported}");
        assert_eq!(other.exists(".squad"), !has_secret);
        let said = if has_secret { "looks like a secret (github-" } else { "it holds 1 e-mail address" };
        assert!(imported.err.contains(said), "{imported}");
    }
}

#[test]
fn a_suspected_secret_stops_the_export() {
    let repo = team();
    repo.write(".squad/notes.md", "# Notes\n\nkey: ghp_0123456789abcdefghijklmnopqrstuvwxyz\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=notes"]);
    let refused = repo.squad(&["export", "team.squad"]);
    assert!(refused.code == 1 && refused.err.contains(".squad/notes.md:3"), "{refused}");
    assert!(!refused.err.contains("ghp_") && !repo.exists("team.squad"));
    let forced = repo.squad(&["export", "team.squad", "--force"]);
    assert!(forced.code == 0 && forced.err.contains("looks like a secret"), "{forced}");

    let other = TestRepo::empty();
    copied(&repo, &other, "team.squad");
    let refused = other.squad(&["import", "../team.squad"]);
    assert!(refused.code == 1 && refused.err.contains("notes.md:3") && !refused.err.contains("ghp_"), "{refused}");
    assert!(!other.exists(".squad"));
    assert_eq!(other.squad(&["import", "../team.squad", "--force"]).code, 0);
}

/// What the npm tool installs holds examples of secrets.
#[test]
fn files_that_the_other_tool_installs_hold_no_secrets() {
    let mut repo = team();
    let example = "# Secrets\n\nNever write `token = \"ghp_0123456789abcdefghijABCDEFGHIJ012345\"`.\n";
    repo.write(".squad/templates/skills/secrets/SKILL.md", example);
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=templates"]);
    let refused = repo.squad(&["export", "team.squad"]);
    assert!(refused.code == 1 && refused.err.contains("looks like a secret"), "{refused}");
    repo.installed.push(example.to_owned());
    let exported = repo.squad(&["export", "team.squad"]);
    assert_eq!(exported.code, 0, "{exported}");
    let mut to = TestRepo::empty();
    to.installed.push(example.to_owned());
    copied(&repo, &to, "team.squad");
    let imported = to.squad(&["import", "../team.squad"]);
    assert_eq!(imported.code, 0, "{imported}");
}

/// Logs are called after the time of day. Where a colon is a character like others, such a team can be moved.
#[cfg(unix)]
#[test]
fn names_that_other_systems_forbid_are_said_and_stop_nothing() {
    let (from, to) = (team(), TestRepo::empty());
    for name in ["log/14:30.md", "log/a?b*c.md", "orchestration-log/2026-02-25T01:15:12Z-alex.md"] {
        from.write(&format!(".squad/{name}"), "Done.\n");
    }
    from.git(&["add", "--all"]);
    from.git(&["commit", "--quiet", "--message=logs"]);
    let exported = from.squad(&["export", "team.squad"]);
    let said = ".squad/log/14:30.md: its name cannot be that of a file on every system";
    assert!(exported.code == 0 && exported.err.contains(said), "{exported}");
    copied(&from, &to, "team.squad");
    let imported = to.squad(&["import", "../team.squad"]);
    assert_eq!(imported.code, 0, "{imported}");
    assert_eq!(tree(&to), tree(&from));
    to.assert_sound();
    from.git(&["mv", ".squad", ".ai-team"]);
    from.git(&["commit", "--quiet", "--message=as before"]);
    let adopted = from.squad(&["adopt"]);
    assert!(adopted.code == 0 && from.exists(".squad/log/14:30.md"), "{adopted}");
    from.assert_sound();
}

#[test]
fn half_a_merge_is_not_exported() {
    let repo = team();
    for force in [&["export", "team.squad"][..], &["export", "team.squad", "--force"]] {
        let text = "# Notes\n\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> side\n";
        repo.write(".squad/agents/ada/charter.md", text);
        repo.git(&["add", "--all"]);
        repo.git(&["commit", "--quiet", "--allow-empty", "--message=half"]);
        let output = repo.squad(force);
        assert!(output.code == 3 && output.err.contains(".squad/agents/ada/charter.md:3"), "{output}");
        assert!(!repo.exists("team.squad"));
    }
}

#[test]
fn uncommitted_changes_are_reported_and_not_exported() {
    let repo = team();
    repo.write(".squad/routing.md", "# Mine\n");
    let exported = repo.squad(&["export", "team.squad"]);
    assert!(exported.code == 0 && exported.err.contains("1 file with uncommitted changes"), "{exported}");
    let again = repo.squad(&["export", "team.squad"]);
    assert!(again.code == 2 && again.err.contains("already exists") && again.err.contains("--force"), "{again}");
    let bare = TestRepo::empty();
    let none = bare.squad(&["export"]);
    assert!(none.code == 3, "{none}");
}

#[test]
fn executable_files_stay_executable() {
    let (from, to) = (team(), TestRepo::empty());
    from.write(".squad/skills/check/run.sh", "#!/bin/sh\n");
    from.git(&["add", "-A"]);
    from.git(&["update-index", "--chmod=+x", ".squad/skills/check/run.sh"]);
    from.git(&["commit", "--quiet", "--message=program"]);
    assert_eq!(from.squad(&["export", "--force", "team.squad"]).code, 0);
    copied(&from, &to, "team.squad");
    let imported = to.squad(&["import", "../team.squad"]);
    assert!(imported.code == 0 && !imported.err.contains("warning"), "{imported}");
    assert_eq!((tree(&to), to.git(&["status", "--porcelain"])), (tree(&from), String::new()));

    let written = TestRepo::empty();
    copied(&from, &written, "team.squad");
    assert_eq!(written.squad(&["import", "--no-commit", "../team.squad"]).code, 0);
    written.git(&["add", ".squad"]);
    written.git(&["commit", "--quiet", "--message=team"]);
    assert_eq!(tree(&written), tree(&from));
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link_or_read_from_a_device() {
    let repo = team();
    repo.write("../outside.txt", "mine\n");
    for (target, link) in [("../outside.txt", "there.squad"), ("../fresh.txt", "dangling.squad")] {
        std::os::unix::fs::symlink(target, repo.root().join(link)).expect("a link");
        let refused = repo.squad(&["export", "--force", link]);
        assert!(refused.code == 2 && refused.err.contains("it is a link"), "{refused}");
    }
    assert!(repo.read("../outside.txt") == "mine\n" && !repo.exists("../fresh.txt"));
    let refused = repo.squad(&["export", "missing/team.squad"]);
    assert!(refused.code == 1 && refused.err.contains("there is no folder for it"), "{refused}");
    let refused = repo.squad(&["export", "--force", "."]);
    assert!(refused.code == 2 && refused.err.contains("it is not a regular file"), "{refused}");
    let refused = TestRepo::empty().squad(&["import", "/dev/zero"]);
    assert!(refused.code == 1 && refused.err.contains("it is not a regular file"), "{refused}");
}

#[cfg(unix)]
#[test]
fn links_are_reported_and_not_imported() {
    let (from, to) = (team(), TestRepo::empty());
    std::os::unix::fs::symlink("/etc/passwd", from.root().join(".squad/out.md")).expect("a link");
    from.git(&["add", "-A"]);
    from.git(&["commit", "--quiet", "--message=link"]);
    assert_eq!(from.squad(&["export", "team.squad"]).code, 0);
    copied(&from, &to, "team.squad");
    let imported = to.squad(&["import", "../team.squad"]);
    assert!(
        imported.code == 0 && imported.err.contains(".squad/out.md: links and submodules are not imported"),
        "{imported}"
    );
    assert!(!to.exists(".squad/out.md"));
}

#[test]
fn an_existing_team_is_not_replaced() {
    let (from, to) = (team(), TestRepo::with_team());
    assert_eq!(from.squad(&["export", "team.squad"]).code, 0);
    copied(&from, &to, "team.squad");
    let before = (to.git(&["for-each-ref"]), to.git(&["status", "--porcelain"]));
    let refused = to.squad(&["import", "../team.squad"]);
    assert!(refused.code == 3 && refused.err.contains("there is another team already"), "{refused}");
    assert_eq!((to.git(&["for-each-ref"]), to.git(&["status", "--porcelain"])), before);
}

/// What git itself would refuse to fetch.
#[test]
fn a_team_in_objects_that_are_no_gits_is_refused() {
    for (author, is_taken) in [("author Ann <ann@example.com> 0 +0000\n", true), ("", false)] {
        let (from, to) = (team(), TestRepo::empty());
        let tree = from.git(&["rev-parse", "HEAD^{tree}"]);
        let commit = format!("tree {tree}{author}committer Ann <ann@example.com> 0 +0000\n\nteam\n");
        from.write("../commit", &commit);
        let commit = from.git(&["hash-object", "-t", "commit", "-w", "--literally", "../commit"]);
        from.git(&["update-ref", "refs/heads/team", commit.trim()]);
        from.git(&["symbolic-ref", "HEAD", "refs/heads/team"]);
        from.git(&["bundle", "create", "--quiet", "team.squad", "HEAD", "refs/heads/team"]);
        copied(&from, &to, "team.squad");
        let output = to.squad(&["import", "../team.squad"]);
        assert_eq!((output.code == 0, to.exists(".squad")), (is_taken, is_taken), "{output}");
    }
}

#[test]
fn a_file_without_a_team_is_refused() {
    let repo = TestRepo::empty();
    repo.write("code.txt", "x\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=code"]);
    repo.git(&["bundle", "create", "--quiet", "../code.squad", "HEAD"]);
    let whole = fs::read(repo.root().join("../code.squad")).expect("read");
    let torn = [10, 30, whole.len() / 2, whole.len() - 1].map(|end| {
        let name = format!("torn-{end}.squad");
        fs::write(repo.root().join("..").join(&name), &whole[..end]).expect("written");
        name
    });
    repo.write("../list.json", "[1, 2]");
    repo.write("../newer.json", r#"{"version": "2.0", "agents": {}}"#);
    repo.write("../out.json", r##"{"version": "1.0", "agents": {"../../x": {"charter": "# X"}}}"##);
    let torn = torn.iter().map(String::as_str);
    for name in ["none", "code.squad", "list.json", "newer.json", "out.json"].into_iter().chain(torn) {
        let refused = repo.squad(&["import", &format!("../{name}")]);
        assert!(refused.code != 0 && !refused.err.contains("panicked"), "{name}: {refused}");
        // git's command line says nothing to a user.
        assert!(!refused.err.contains("--git-dir") && !refused.err.contains("fatal"), "{name}: {refused}");
        assert!(!repo.exists(".squad") && repo.git(&["for-each-ref", "refs/squad"]).is_empty(), "{name}");
    }
    repo.assert_sound();
}

#[test]
fn an_export_of_the_npm_tool_is_imported() {
    let repo = TestRepo::empty();
    let team = "# Team\n\n## Members\n\n| Name | Role | Charter | Status |\n|---|---|---|---|\n\
        | Ann | Dev | `.squad/agents/ann/charter.md` | Active |\n";
    let export = serde_json::json!({
        "version": "1.0", "exported_at": "2026-01-02T03:04:05.000Z", "squad_version": "0.10.0",
        "casting": {"policy": {"universe": "none"}},
        "team_md": team, "team": team, "routing_md": "# Routing\n", "decisions_md": "",
        "agents": {"ann": {"charter": "# Ann — Dev\n", "history": "# History\n"}},
        "skills": ["---\nname: \"Ship It\"\n---\nShip.\n"],
    });
    repo.write("../squad-export.json", &export.to_string());
    let imported = repo.squad(&["import", "../squad-export.json"]);
    assert_eq!(imported.code, 0, "{imported}");
    assert_eq!(repo.read(".squad/team.md"), team);
    assert_eq!(repo.read(".squad/skills/ship-it/SKILL.md"), "---\nname: \"Ship It\"\n---\nShip.\n");
    assert!(repo.exists(".squad/casting/policy.json") && !repo.exists(".squad/decisions.md"));
    let agents = repo.squad(&["agents", "--json"]);
    assert!(agents.out.contains("\"slug\":\"ann\"") && agents.out.contains(".squad/agents/ann/charter.md"), "{agents}");
}

/// The very files × in which folder they are: only `.squad/` is where they are imported to.
#[test]
fn the_same_team_in_another_tools_folder_is_not_imported_already() {
    let from = TestRepo::with_small_team();
    let output = from.squad(&["export", "../team.squad"]);
    assert_eq!(output.code, 0, "{output}");
    let bundle = from.root().join("../team.squad").display().to_string();
    for (folder, code) in [(".squad", 0), (".ai-team", 3)] {
        let repo = TestRepo::empty();
        for file in ["team.md", "routing.md"] {
            repo.write(&format!("{folder}/{file}"), &from.read(&format!(".squad/{file}")));
        }
        repo.git(&["add", "--all"]);
        repo.git(&["commit", "--quiet", "--message=team"]);
        let output = repo.squad(&["import", &bundle]);
        assert_eq!((output.code, output.err.contains("`squad adopt`")), (code, code != 0), "{folder}: {output}");
    }
}
