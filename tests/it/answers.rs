//! Answers that name the way out, and never say that something is so when it is not.

use std::fs;
#[cfg(unix)]
use std::process::Stdio;

use crate::support::TestRepo;
use crate::sync::Shared;

#[cfg(unix)]
const BINARY: &str = env!("CARGO_BIN_EXE_squad");

#[test]
fn a_mistyped_agent_of_a_message_is_said_and_the_rest_is_routed() {
    let repo = TestRepo::with_small_team();
    for command in [&["route"][..], &["orchestrate", "--dry-run"]] {
        for (message, near) in [
            ("@boob raise the coverage", Some("hint: did you mean @bob?")),
            ("@Boob raise the coverage", Some("hint: did you mean @bob?")),
            ("raise the coverage, cc @adda", Some("hint: did you mean @ada?")),
            ("@bob raise the coverage", None),
            ("@bakend raise the coverage", Some("hint: `squad agents` lists them")),
            ("Raise the coverage. @bakend, begin", Some("hint: `squad agents` lists them")),
            ("raise the coverage of the @Override methods", None),
            ("raise the coverage as @dependabot says", None),
            ("raise the coverage of `@boob`", None),
        ] {
            let output = repo.squad(&[command, &[message]].concat());
            assert_eq!(output.code, 0, "{output}");
            assert_eq!(output.err.contains("nobody on the team is called @"), near.is_some(), "{message}: {output}");
            assert!(output.err.contains(near.unwrap_or_default()), "{message}: {output}");
        }
    }
}

#[test]
fn a_mistyped_agent_of_the_log_is_refused() {
    let repo = TestRepo::with_small_team();
    let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "first"]);
    assert_eq!(output.code, 0, "{output}");
    for more in [&[][..], &["2026"], &["--json"], &["--follow"], &["--since", "1d"]] {
        let output = repo.squad(&[&["log", "--agent", "boob"], more].concat());
        let said = format!("{}{}", output.out, output.err);
        assert!(output.code == 2 && said.contains("did you mean `bob`?"), "{more:?} {output}");
    }
    // Who never worked is on the team all the same; who left it has worked.
    for (name, says) in [("ada", "No run matches."), ("Ada", "No run matches."), ("Old", "No run matches.")] {
        let output = repo.squad(&["log", "--agent", name]);
        assert!(output.code == 0 && output.err.contains(says), "{name} {output}");
    }
    let team = repo.read(".squad/team.md");
    repo.write(".squad/team.md", &team.replace("| Bob | Tester | Active |\n", ""));
    let output = repo.squad(&["log", "--agent", "bob"]);
    assert!(output.code == 0 && output.out.contains("first"), "{output}");
}

#[test]
fn a_list_may_be_written_as_it_is_listed() {
    let repo = TestRepo::with_team();
    for (name, text, listed) in [
        ("sessions.core", "backend", r#"["backend"]"#),
        ("sessions.core", "backend, docs", r#"["backend", "docs"]"#),
        ("sessions.core", r#"["backend"]"#, r#"["backend"]"#),
        ("sessions.core", r#" [ "backend", 'docs' ] "#, r#"["backend", "docs"]"#),
        ("sessions.core", "[]", "[]"),
        ("models.default", "big", r#""big""#),
        ("models.default", r#""big""#, r#""big""#),
        ("models.default", "'big'", r#""big""#),
        ("models.default", "4", r#""4""#),
        ("sessions.timeout", r#""2m""#, r#""2m""#),
        ("sessions.max_concurrent", "3", "3"),
    ] {
        let output = repo.squad(&["config", "set", name, text]);
        assert_eq!(output.code, 0, "{name} {text}: {output}");
        let list = repo.squad(&["config", "list"]).out;
        let line = list.lines().find(|line| line.starts_with(&format!("{name} = "))).expect("it is listed");
        assert!(line.starts_with(&format!("{name} = {listed} ")), "{line}");
    }
    let before = repo.read(".squad/config.toml");
    for text in ["[backend]", "[\"backend\"", "[1]", "[\"a\"] b"] {
        let output = repo.squad(&["config", "set", "sessions.core", text]);
        assert!(output.code == 2 && output.err.contains("sessions.core"), "{text}: {output}");
    }
    assert_eq!(repo.read(".squad/config.toml"), before);
}

#[test]
fn what_is_set_and_unset_again_leaves_the_installed_file_as_it_was() {
    let repo = TestRepo::with_team();
    let before = repo.read(".squad/config.toml");
    let document = before.lines().fold(String::new(), |table, line| match line.strip_prefix('[') {
        Some(header) => header.trim_end_matches(']').to_owned(),
        None => {
            let commented = line.strip_prefix("# ").and_then(|line| line.split_once(" = "));
            let key = commented.filter(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
            if let Some((key, value)) = key.filter(|_| !table.is_empty()) {
                let name = format!("{table}.{key}");
                let value = value.split("  #").next().unwrap_or(value).trim();
                assert_eq!(repo.squad(&["config", "set", &name, value]).code, 0, "{name} {value}");
                assert_eq!(repo.squad(&["config", "unset", &name]).code, 0, "{name}");
                assert_eq!(repo.read(".squad/config.toml"), before, "{name}");
            }
            table
        }
    });
    assert!(!document.is_empty(), "the file has tables");
}

#[test]
fn what_is_pushed_elsewhere_is_pushed_once() {
    for (pushed_to, hub) in [("../fork.git", "fork.git"), ("../hub.git", "hub.git")] {
        let shared = Shared::new();
        let repo = &shared.repo;
        repo.git(&["clone", "--quiet", "--bare", ".", "../fork.git"]);
        repo.git(&["config", "remote.origin.pushurl", pushed_to]);
        repo.squad(&["decisions", "add", "Money is in cents"]);
        let entries = shared.entries(&repo.root());
        for sent in [entries, 0, 0] {
            let output = repo.squad(&["sync", "--yes"]);
            assert_eq!(
                output.out,
                format!("{sent} entries pushed to origin, 0 entries fetched\n"),
                "{pushed_to} {output}"
            );
        }
        let place = repo.root().join("..").join(hub);
        assert_eq!(shared.tip(&place), shared.tip(&repo.root()));
        // What another clone pushed there comes back.
        repo.git(&["clone", "--quiet", &format!("../{hub}"), "../other"]);
        let other = repo.root().join("../other");
        repo.git_in(&other, &["config", "user.name", "Bea"]);
        repo.git_in(&other, &["config", "user.email", "bea@example.com"]);
        repo.squad_in(&other, &["decisions", "add", "Errors are JSON"]);
        shared.sync(&other);
        let output = shared.sync(&repo.root());
        assert!(!output.out.contains(" 0 entries fetched"), "{output}");
        assert_eq!(shared.tip(&place), shared.tip(&repo.root()));
    }
}

#[test]
fn a_sparse_checkout_still_has_a_team() {
    let repo = TestRepo::with_small_team();
    repo.write("src/a.txt", "a\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=source"]);
    assert!(repo.squad(&["status"]).out.contains(" · 5 members · copilot · "));
    repo.git(&["sparse-checkout", "set", "src"]);
    assert!(!repo.exists(".squad"));
    let output = repo.squad(&["status"]);
    assert!(output.out.contains("! team       .squad, not in this work tree: "), "{output}");
    assert!(output.out.contains("`git sparse-checkout add .squad`"), "{output}");
    assert!(repo.squad(&["status", "--json"]).out.contains(r#""team":null,"left_out":".squad""#));
    repo.git(&["sparse-checkout", "add", ".squad"]);
    assert!(repo.squad(&["status"]).out.contains(" · 5 members · copilot · "));
}

#[test]
fn an_upgrade_of_another_tools_team_names_adopt() {
    let repo = TestRepo::with_small_team();
    for (folder, is_named) in [(".squad", false), (".ai-team", true)] {
        if folder != ".squad" {
            fs::rename(repo.root().join(".squad"), repo.root().join(folder)).expect("it is renamed");
            repo.git(&["add", "-A"]);
            repo.git(&["commit", "--quiet", "--message=old"]);
        }
        let output = repo.squad(&["upgrade"]);
        assert!(output.code == 0 && output.err.contains("There is nothing to upgrade"), "{output}");
        assert_eq!(output.err.contains("`squad adopt` takes over the team in .ai-team"), is_named, "{output}");
    }
}

#[test]
fn a_decision_that_is_superseded_but_not_landed_is_said() {
    let repo = TestRepo::with_small_team();
    let id = repo.squad(&["decisions", "add", "Money is in cents"]).out.trim().to_owned();
    // As after a kill: the new one is recorded, and git is in the middle of something that it must not land in.
    let merging = repo.root().join(".git/MERGE_HEAD");
    fs::write(&merging, repo.git(&["rev-parse", "HEAD"])).expect("it is written");
    let output = repo.squad(&["decisions", "supersede", &id, "Money is in strings"]);
    fs::remove_file(&merging).expect("it is removed");
    assert!(!output.out.is_empty(), "{output}");
    let output = repo.squad(&["decisions", "supersede", &id, "Money is in strings"]);
    assert!(output.code == 2 && output.err.contains("not landed yet"), "{output}");
    assert!(output.err.contains("hint: `squad decisions land` lands it"), "{output}");
    assert_eq!(repo.squad(&["decisions", "land"]).code, 0);
    let output = repo.squad(&["decisions", "supersede", &id, "Money is in strings"]);
    assert!(output.code == 2 && output.err.contains("already superseded by"), "{output}");
    assert!(output.err.contains("hint: squad decisions supersede ") && !output.err.contains("not landed"), "{output}");
}

#[cfg(unix)]
#[test]
fn a_process_with_few_descriptors_fails_and_does_not_panic() {
    let repo = TestRepo::with_small_team();
    let mut completed = 0;
    for count in 4..24 {
        for call in ["orchestrate --engine rehearsal --agent ada x", "mcp", "decisions add x", "status"] {
            let limited = format!("ulimit -n {count}; exec '{BINARY}' {call}");
            let mut command = repo.command("/bin/sh", &repo.root());
            let output = command.args(["-c", &limited]).stdin(Stdio::null()).output().expect("a shell runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("panicked") && output.status.code() != Some(101), "{count} {call}: {said}");
            completed += usize::from(output.status.success());
        }
    }
    assert!(completed > 0, "with enough of them it works");
}

#[cfg(unix)]
#[test]
fn a_killed_run_of_another_team_is_not_looked_for_in_this_ones_ledger() {
    use crate::process::{SLOW, wait_for};

    let repo = TestRepo::with_small_team();
    let inner = repo.root().join("inner");
    for file in [".squad/team.md", ".squad/routing.md"] {
        repo.write(&format!("inner/{file}"), &repo.read(file));
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=inner"]);
    for (place, is_ours) in [(&inner, false), (&repo.root(), true)] {
        repo.write("../script.toml", SLOW);
        let script = repo.root().join("../script.toml");
        let mut command = repo.command(BINARY, place);
        command.args(["orchestrate", "--json", "--agent", "ada", "x", "--script"]).arg(script);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("squad runs");
        let out = wait_for(&mut child, "Begun.");
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
        let first: serde_json::Value = serde_json::from_str(out.lines().next().expect("a line")).expect("JSON");
        let run = first["run"].as_str().expect("an id");
        let output = repo.squad(&["status"]);
        let says = if is_ours {
            format!("squad orchestrate --resume {}", run.rsplit('-').next().expect("a part"))
        } else {
            format!("{} was killed; this team's ledger has nothing", run.rsplit('-').next().expect("a part"))
        };
        assert!(output.out.contains(&says), "{output}");
        assert_eq!(repo.squad(&["log", run]).code, if is_ours { 0 } else { 2 });
    }
}

#[cfg(unix)]
#[test]
fn a_no_to_the_first_sync_is_no_error() {
    use crate::terminal::Person;

    for (typed, code, says, is_pushed) in [
        ("n\n", 0, "Nothing was pushed.", false),
        ("\n", 0, "Nothing was pushed.", false),
        ("y\n", 0, "pushed to origin", true),
    ] {
        let shared = Shared::new();
        shared.repo.squad(&["decisions", "add", "Money is in cents"]);
        let mut person = Person::sits_down();
        let mut command = shared.repo.command(BINARY, &shared.repo.root());
        command.arg("sync");
        let mut child = person.starts(command);
        person.waits_for("[y/N] ");
        person.types(typed);
        person.waits_for(says);
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{}", person.screen);
        assert!(!person.screen.contains("error:"), "{}", person.screen);
        let refs = shared.repo.git_in(&shared.hub(), &["for-each-ref", "refs/squad"]);
        assert_eq!(!refs.is_empty(), is_pushed, "{refs}");
    }
}
