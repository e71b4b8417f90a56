//! Who changed what: the outcome, the last line, the log and `why` agree, and are true.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{rest, wait_for};
use crate::support::{Output, TestRepo};
use crate::sync::Shared;

fn last(output: &Output) -> Value {
    TestRepo::events(output).pop().expect("an event")
}

/// `path class by how` of each change that a run's work reports, once each.
fn changes(end: &Value) -> Vec<String> {
    let mut shown = Vec::new();
    for change in
        end["work"].as_array().expect("work").iter().flat_map(|work| work["changed"].as_array().into_iter().flatten())
    {
        let by: Vec<&str> = change["by"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let text = |key: &str| change[key].as_str().unwrap_or("-").to_owned();
        let line = format!("{} {} {} {}", text("path"), text("class"), by.join("+"), text("how")).replace("  ", " ");
        if !shown.contains(&line) {
            shown.push(line);
        }
    }
    shown.sort();
    shown
}

/// Runs squad in a process of its own, and does something after the first snapshot and, if commands wait for it, while
/// they run.
pub(crate) fn meanwhile(repo: &TestRepo, script: &str, arguments: &[&str], act: impl Fn()) -> (Output, Option<i32>) {
    repo.write("../play.toml", script);
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.args(["orchestrate", "--json", "--script", "../play.toml"]).args(arguments);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let (mut out, mut has_acted) = (String::new(), false);
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok) {
        if line.contains("\"snapshot.taken\"") && !has_acted {
            while script.contains(WAITING) && !repo.exists("waits") {
                std::thread::sleep(Duration::from_millis(10));
            }
            act();
            let _ = std::fs::remove_file(repo.root().join("waits"));
            has_acted = true;
        }
        out.push_str(&(line + "\n"));
    }
    let code = child.wait().expect("it ends").code();
    (Output { out, err: String::new(), code: 0 }, code)
}

/// A command that waits until something has happened.
pub(crate) const WAITING: &str = "touch waits; while test -e waits; do sleep 0.01; done";

const ALLOWED: [&str; 5] = ["--json", "--permissions", "allow", "--agent", "ada"];

fn turn(agent: &str, steps: &str) -> String {
    format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{steps}, {{ say = \"Done.\" }}]\n")
}

#[test]
fn what_an_agents_commands_change_is_its_own() {
    let repo = TestRepo::with_small_team();
    let script = turn(
        "ada",
        r#"{ write = "named.txt", text = "one\n" }, { run = "printf 'a\nb\n' > commanded.txt; echo more >> named.txt" }"#,
    );
    let output = repo.rehearse(&script, &[&ALLOWED[..], &["Add it"]].concat());
    let end = last(&output);
    assert_eq!(
        changes(&end),
        ["commanded.txt own ada command", "named.txt own ada command", "named.txt own ada named"],
        "{output}"
    );
    assert_eq!(
        end["work"][0]["changed"][0],
        json!({"path": "commanded.txt", "added": 2, "removed": 0, "class": "own", "by": ["ada"], "how": "command"})
    );
    let why = repo.squad(&["why", "commanded.txt:1"]);
    assert!(why.out.contains("commanded.txt was written by ada"), "{why}");
    repo.assert_sound();
}

/// A file, or a line in it, that only the person has changed while a run was at work.
#[test]
fn why_says_that_nobody_of_the_run_changed_it() {
    let repo = TestRepo::with_small_team();
    let script = turn("ada", r#"{ write = "named.txt", text = "one\n" }, { wait = "500ms" }"#);
    let edit = || repo.write("mine.txt", "fn only_by_the_person() {}\n");
    let (output, _) = meanwhile(&repo, &script, &["--permissions", "allow", "--agent", "ada", "Add it"], edit);
    for subject in ["mine.txt", "mine.txt:1"] {
        let why = repo.squad(&["why", subject]);
        assert!(why.out.contains("changed by you or another program"), "{why}\n{output}");
        assert!(!why.out.contains("ada"), "{why}");
    }
    let why: Value = serde_json::from_str(&repo.squad(&["why", "mine.txt", "--json"]).out).expect("JSON");
    assert_eq!((&why["origins"][0]["agent"], &why["origins"][0]["class"]), (&Value::Null, &json!("yours")), "{why}");
}

#[test]
fn what_an_agent_does_to_git_is_said() {
    let repo = TestRepo::with_small_team();
    let run = r#"{ run = "echo x > a.txt; git add a.txt; git commit -qm mine; git branch other; git tag v1; git config core.hooksPath /tmp/x; mkdir -p .git/info; echo '*.bin binary' >> .git/info/attributes; echo '#!/bin/sh' > .git/hooks/pre-commit; echo y > b.txt; git add b.txt" }"#;
    let output = repo.rehearse(&turn("ada", run), &[&ALLOWED[..], &["Add it"]].concat());
    let end = last(&output);
    let git = &end["work"][0]["git"];
    assert_eq!(git["commits"].as_array().map(Vec::len), Some(1), "{end}");
    let refs: Vec<&str> =
        git["refs"].as_array().expect("refs").iter().filter_map(|moved| moved["name"].as_str()).collect();
    assert_eq!(refs, ["refs/heads/main", "refs/heads/other", "refs/tags/v1"]);
    assert_eq!(
        (&git["config"], &git["hooks"], &git["index"]),
        (&json!(["core.hooksPath", "info/attributes"]), &json!(["pre-commit"]), &json!(["b.txt"]))
    );
    assert_eq!(changes(&end), ["a.txt own ada command", "b.txt own ada command"]);
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(&turn("ada", run), &["--permissions", "allow", "--agent", "ada", "Add it"]);
    assert!(output.err.contains("! ada    changed git: 1 commit ("), "{output}");
    assert!(output.err.contains("  git       ada: 1 commit ("), "{output}");
}

/// What is put aside, moved back or fetched is no new commit.
#[test]
fn only_commits_that_an_agent_made_are_its_own() {
    const MERGED: &str = "new=$(git commit-tree -m x -p HEAD HEAD^{tree}); git update-ref refs/remotes/origin/main $new; \
                          git merge -q --ff-only $new";
    let own_on_top = format!("{MERGED}; git commit -q --allow-empty -m y");
    for (run, refs, commits) in [
        ("echo x > .squad/team.md; git stash -q", &["refs/stash"][..], 0),
        ("git commit -q --allow-empty -m x; git reset -q --hard HEAD~", &[], 0),
        ("git commit -q --allow-empty -m x", &["refs/heads/main"], 1),
        ("git switch -qc other; git commit -q --allow-empty -m x", &["HEAD", "refs/heads/other"], 1),
        ("git switch -q --detach; git commit -q --allow-empty -m x", &["HEAD"], 1),
        (
            "git update-ref refs/remotes/origin/main $(git commit-tree -m x HEAD^{tree})",
            &["refs/remotes/origin/main"],
            0,
        ),
        // Where squad keeps its own refs.
        ("git update-ref refs/squad/aside/x $(git commit-tree -m x -p HEAD HEAD^{tree})", &["refs/squad/aside/x"], 1),
        // Fetched and merged, and one of its own on top.
        (MERGED, &["refs/heads/main", "refs/remotes/origin/main"], 0),
        (&own_on_top, &["refs/heads/main", "refs/remotes/origin/main"], 1),
    ] {
        let repo = TestRepo::with_small_team();
        let output =
            repo.rehearse(&turn("ada", &format!("{{ run = {run:?} }}")), &[&ALLOWED[..], &["Add it"]].concat());
        let git = &last(&output)["work"][0]["git"];
        let moved = git["refs"].as_array().into_iter().flatten();
        assert_eq!(moved.filter_map(|moved| moved["name"].as_str()).collect::<Vec<_>>(), refs, "{run}: {output}");
        assert_eq!(git["commits"].as_array().map_or(0, Vec::len), commits, "{run}: {output}");
    }
}

/// Created, moved and deleted in each of squad's folders × alone, and beside squad's own writes there: another run, its
/// commands and landings.
#[test]
fn what_an_agent_does_to_squads_own_refs_is_its_own() {
    const FOLDERS: [&str; 8] = [
        "runs/20260105-090000-602796",
        "runs/20260105-090000-602796_merged",
        "rescue",
        "jobs",
        "links",
        "orders",
        "works",
        "remotes/origin",
    ];
    for is_beside in [false, true] {
        let repo = TestRepo::with_small_team();
        let made = |text: &str| format!("$(git commit-tree -m {text} -p HEAD HEAD^{{tree}})");
        let (mut commands, mut expected) = (vec![WAITING.to_owned()], Vec::new());
        for folder in FOLDERS {
            let name = |kind: &str| format!("refs/squad/{folder}/{kind}");
            for kind in ["deleted", "moved"] {
                repo.git(&["update-ref", &name(kind), "HEAD"]);
            }
            let change = |kind: &str| format!("git update-ref {} {}", name(kind), made(&name(kind)));
            commands.extend([change("created"), change("moved"), format!("git update-ref -d {}", name("deleted"))]);
            expected.extend(["created", "deleted", "moved"].map(name));
        }
        commands.push("cp .git/HEAD .git/refs/squad/jobs/by-hand; git pack-refs --all".to_owned());
        expected.push("refs/squad/jobs/by-hand".to_owned());
        expected.sort();
        let script = turn("ada", &format!("{{ run = {:?} }}", commands.join("; ")));
        let (output, _) = meanwhile(&repo, &script, &["--permissions", "allow", "--agent", "ada", "Add it"], || {
            if is_beside {
                let beside = turn("bob", r#"{ run = "echo x > b.txt" }, { write = "c.txt", text = "x" }"#);
                let arguments = ["--permissions", "allow", "--agent", "bob", "Add that"];
                assert_eq!(repo.rehearse(&beside, &arguments).code, 0);
                assert_eq!(repo.squad(&["decisions", "add", "Money is stored as integer cents"]).code, 0);
                assert_eq!(repo.squad(&["gc"]).code, 0);
            }
        });
        let git = &last(&output)["work"][0]["git"];
        let changes: Vec<&Value> = [git].into_iter().chain(git["together"].as_array().into_iter().flatten()).collect();
        let moved = changes.iter().flat_map(|git| git["refs"].as_array().into_iter().flatten());
        let mut moved: Vec<&str> = moved.filter_map(|moved| moved["name"].as_str()).collect();
        moved.sort_unstable();
        assert_eq!(moved, expected, "{is_beside}: {output}");
        // What the copies of remotes lead to, others have made.
        let commits: usize = changes.iter().filter_map(|git| git["commits"].as_array()).map(Vec::len).sum();
        assert_eq!(commits, 2 * (FOLDERS.len() - 1), "{is_beside}: {output}");
    }
}

/// The copies of a remote's refs that are new, moved and gone there, brought up to date while a command is at work.
#[test]
fn what_a_sync_does_beside_a_command_is_no_agents() {
    let shared = Shared::new();
    let repo = &shared.repo;
    assert_eq!(repo.squad(&["decisions", "add", "Money is stored as integer cents"]).code, 0);
    shared.sync(&repo.root());
    let copy = |name: &str| format!("refs/squad/remotes/origin/clones/{name}");
    repo.git(&["update-ref", &copy("gone"), "refs/squad/log"]);
    repo.git(&["update-ref", &copy("moved"), "refs/squad/log~1"]);
    for name in ["moved", "new"] {
        repo.git_in(&shared.hub(), &["update-ref", &format!("refs/squad/clones/{name}"), "refs/squad/log"]);
    }
    let copies = || repo.git(&["for-each-ref", "--format=%(refname) %(objectname)", &copy("")]);
    let before = copies();
    let script = turn("ada", &format!("{{ run = {WAITING:?} }}"));
    let (output, _) = meanwhile(repo, &script, &["--permissions", "allow", "--agent", "ada", "Add it"], || {
        shared.sync(&repo.root());
        assert_ne!(copies(), before, "it changed them");
        assert!(!copies().contains("gone"), "{}", copies());
    });
    let git = &last(&output)["work"][0]["git"];
    assert!(git["refs"].as_array().is_none_or(Vec::is_empty), "{output}");
}

/// What an agent does to the ledger's ref × alone, and beside what another run and a command append there.
#[test]
fn what_an_agent_does_to_the_ledgers_ref_is_its_own() {
    let commit = "$(git commit-tree -m x -p refs/squad/log refs/squad/log^{tree})";
    for (run, commits) in [
        (String::new(), None),
        (format!("git update-ref refs/squad/log {commit}"), Some(1)),
        (format!("git push -q . {commit}:refs/squad/log"), Some(1)),
        ("git update-ref -d refs/squad/log".to_owned(), Some(0)),
    ] {
        for is_beside in [false, true] {
            let repo = TestRepo::with_small_team();
            let script = turn("ada", &format!("{{ run = {:?} }}", format!("{WAITING}; {run}")));
            let (output, _) =
                meanwhile(&repo, &script, &["--permissions", "allow", "--agent", "ada", "Add it"], || {
                    if is_beside {
                        let beside = turn("bob", r#"{ write = "c.txt", text = "x" }"#);
                        assert_eq!(
                            repo.rehearse(&beside, &["--permissions", "allow", "--agent", "bob", "Add that"]).code,
                            0
                        );
                        assert_eq!(repo.squad(&["decisions", "add", "Money is stored as integer cents"]).code, 0);
                    }
                });
            let work = &last(&output)["work"][0];
            let git = [&work["git"]].into_iter().chain(work["git"]["together"].as_array().into_iter().flatten());
            let git: Vec<&Value> = git.collect();
            let refs = git.iter().flat_map(|git| git["refs"].as_array().into_iter().flatten());
            let refs: Vec<&str> = refs.filter_map(|moved| moved["name"].as_str()).collect();
            let expected: &[&str] = if commits.is_some() { &["refs/squad/log"] } else { &[] };
            assert_eq!(refs, expected, "{is_beside} {run}: {output}");
            let found: usize = git.iter().filter_map(|git| git["commits"].as_array()).map(Vec::len).sum();
            assert_eq!(found, commits.unwrap_or(0), "{is_beside} {run}: {output}");
        }
    }
}

#[test]
fn commits_that_are_too_many_to_name_are_said_to_be_more() {
    let repo = TestRepo::with_small_team();
    let commit = "echo 'commit refs/heads/many'; echo 'committer a <a@b> 0 +0000'; echo 'data 0'";
    let run = format!("i=0; (while [ $i -lt 2001 ]; do i=$((i + 1)); {commit}; done) | git fast-import --quiet");
    let output = repo.rehearse(&turn("ada", &format!("{{ run = {run:?} }}")), &[&ALLOWED[..], &["Add it"]].concat());
    let git = &last(&output)["work"][0]["git"];
    assert_eq!(git["commits"].as_array().map(Vec::len), Some(2000), "{output}");
    assert_eq!(git["has_more_commits"], true, "{output}");
    let card = repo.squad(&["log", "000001"]);
    assert!(card.out.contains("ada: more than 2000 commits ("), "{card}");
}

/// The work of an agent before an interruption is its work.
#[test]
fn what_was_changed_before_an_interruption_is_not_lost() {
    let repo = TestRepo::with_small_team();
    repo.write(
        "../play.toml",
        &turn("ada", r#"{ run = "echo BACKDOOR > one.py" }, { write = "two.py", text = "x\n" }, { die = true }"#),
    );
    let output = repo.squad(&[
        "orchestrate",
        "--json",
        "--permissions",
        "allow",
        "--script",
        "../play.toml",
        "Fix the login password check",
    ]);
    let run = last(&output)["run"].as_str().expect("a run").to_owned();
    assert_eq!(output.code, 1, "{output}");
    repo.write("meanwhile.txt", "by the person\n");
    repo.write(
        "../play.toml",
        &format!(
            "{}{}{}",
            // The turn that was played before the interruption.
            turn("ada", "{ wait = \"1s\" }"),
            turn("ada", r#"{ write = "three.py", text = "x\n" }"#),
            "[[turn]]\nagent = \"rex\"\nsteps = [{ say = \"VERDICT: approved\" }]\n"
        ),
    );
    let output =
        repo.squad(&["orchestrate", "--json", "--permissions", "allow", "--script", "../play.toml", "--resume", &run]);
    let end = last(&output);
    assert_eq!(
        changes(&end),
        ["meanwhile.txt unknown -", "one.py own ada command", "three.py own ada named", "two.py own ada named"],
        "{output}"
    );
}

#[test]
fn what_happened_to_git_before_an_interruption_is_not_lost_and_packed_refs_are_no_change() {
    let repo = TestRepo::with_small_team();
    let first = turn(
        "ada",
        r#"{ run = "git tag old; git update-ref refs/squad/runs/a/1 HEAD" }, { run = "git pack-refs --all; git commit -q --allow-empty -m one" }, { die = true }"#,
    );
    repo.write("../play.toml", &first);
    let arguments = ["orchestrate", "--json", "--permissions", "allow", "--script", "../play.toml"];
    let output = repo.squad(&[&arguments[..], &["--agent", "ada", "Explain it"]].concat());
    let run = last(&output)["run"].as_str().expect("a run").to_owned();
    assert_eq!(output.code, 1, "{output}");
    // The person's own doing.
    repo.git(&["tag", "person"]);
    repo.git(&["commit", "-q", "--allow-empty", "-m", "by the person"]);
    repo.rehearse(&turn("bob", r#"{ write = "b.txt", text = "x" }"#), &["--agent", "bob", "Add that"]);
    let more = r#"{ run = "git tag new; git update-ref refs/squad/runs/a/2 HEAD; git pack-refs --all" }"#;
    repo.write("../play.toml", &format!("{first}{}", turn("ada", more)));
    let output = repo.squad(&[&arguments[..], &["--resume", &run]].concat());
    let git = &last(&output)["work"][0]["git"];
    let refs: Vec<&str> =
        git["refs"].as_array().expect("refs").iter().filter_map(|moved| moved["name"].as_str()).collect();
    let [one, two] = ["refs/squad/runs/a/1", "refs/squad/runs/a/2"];
    assert_eq!(refs, [one, "refs/tags/old", "refs/heads/main", two, "refs/tags/new"], "{output}");
    assert_eq!(git["commits"].as_array().map(Vec::len), Some(1), "{output}");
}

/// What the person changes meanwhile is no work of an agent that was refused everything.
#[test]
fn the_persons_change_does_not_make_refused_work_done() {
    let repo = TestRepo::with_small_team();
    let script = turn("ada", r#"{ wait = "900ms" }, { write = "a.txt", text = "x" }"#);
    let (output, code) = meanwhile(&repo, &script, &["--permissions", "deny", "--agent", "ada", "Add it"], || {
        repo.write("mine.txt", "by hand\n");
    });
    let end = last(&output);
    let expected = (Some(5), &"stopped".into(), vec!["mine.txt yours -".to_owned()]);
    assert_eq!((code, &end["status"], changes(&end)), expected, "{output}");
}

/// A reviewer is shown the person's file too, but only agents' work is rejected.
#[test]
fn a_rejection_is_not_about_what_the_person_changed() {
    for is_beside in [false, true] {
        let repo = TestRepo::with_small_team();
        let script = [
            turn("ada", r#"{ wait = "900ms" }, { write = "login.txt", text = "plain" }"#),
            turn("rex", r#"{ tool = "squad_verdict", args = { approved = false, reasons = "Plain." } }"#),
            turn("coordinator", r#"{ say = '{"agents": ["nobody"], "reason": "none"}' }"#),
        ];
        let arguments = ["--permissions", "allow", "Rework the login password"];
        let (output, _) = meanwhile(&repo, &script.concat(), &arguments, || {
            if is_beside {
                repo.write("mine.txt", "by hand\n");
            }
        });
        let events = TestRepo::events(&output);
        let judged = events.iter().find(|event| event["type"] == "review.verdict").expect("a verdict");
        let shown = if is_beside { json!(["login.txt", "mine.txt"]) } else { json!(["login.txt"]) };
        let rejected = if is_beside { json!(["login.txt"]) } else { Value::Null };
        assert_eq!((&judged["files"], &judged["rejected"]), (&shown, &rejected), "{output}");
        let lockout = events.iter().find(|event| event["type"] == "review.lockout").expect("a lockout");
        assert_eq!(lockout["files"], json!(["login.txt"]), "{output}");
    }
}

/// Runs squad, and kills it some time after its agent has made the file `ready`.
fn kill_when_ready(repo: &TestRepo, arguments: &[&str], later: Duration) {
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it runs");
    while !repo.exists("ready") {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(later);
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    std::fs::remove_file(repo.root().join("ready")).expect("a file");
}

/// Killed in the middle of a command, and of another one when it is resumed: the command may have written a file, or the
/// person since.
#[test]
fn what_changed_in_a_killed_command_or_since_is_unknown() {
    let repo = TestRepo::with_small_team();
    let first = turn("ada", r#"{ run = "echo a > one.py; touch ready; sleep 20" }"#);
    repo.write("../play.toml", &first);
    let arguments = ["orchestrate", "--json", "--permissions", "allow", "--script", "../play.toml"];
    let kill_when_ready = |more: &[&str]| kill_when_ready(&repo, &[&arguments[..], more].concat(), Duration::ZERO);
    kill_when_ready(&["--agent", "ada", "Explain it"]);
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = log["runs"][0]["run"].as_str().expect("a run").to_owned();
    // A turn that was cut short is played again.
    repo.write("../play.toml", &first.replace("one.py", "two.py"));
    kill_when_ready(&["--resume", &run]);
    repo.write("../play.toml", &turn("ada", r#"{ write = "three.py", text = "x\n" }"#));
    let output = repo.squad(&[&arguments[..], &["--resume", &run]].concat());
    let expected = ["one.py unknown -", "three.py own ada named", "two.py unknown -"];
    assert_eq!(changes(&last(&output)), expected, "{output}");
}

/// Killed before the ledger has what its tools did last, once and again: what the tool named is its agent's, what the
/// person changed since is not, and the next process is told that it may have been done.
#[test]
fn what_a_tool_wrote_in_the_last_moment_before_a_kill_is_its_agents() {
    for kills in 1..=3 {
        let repo = TestRepo::with_small_team();
        let arguments = ["orchestrate", "--json", "--permissions", "allow", "--script", "../play.toml"];
        let started = || repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]).matches("tool.started").count();
        let mut run = String::new();
        for life in 1..=kills {
            let write = format!(r#"{{ wait = "600ms" }}, {{ write = "{life}.py", text = "x\n" }}"#);
            let ready = r#"{ write = "ready", text = "x" }, { wait = "20s" }"#;
            repo.write("../play.toml", &turn("ada", &format!("{write}, {ready}")));
            // The end of the process before is recorded when it is resumed.
            let known = 2 * (life - 1);
            let ask = if life == 1 { ["--agent", "ada", "Explain it"].as_slice() } else { &["--resume", &run] };
            kill_when_ready(&repo, &[&arguments[..], ask].concat(), Duration::ZERO);
            // The ledger lacks the calls: a kill leaves it as it was some moments before.
            while started() > known {
                repo.git(&["update-ref", "refs/squad/log", "refs/squad/log^"]);
            }
            repo.write(&format!("mine-{life}.py"), "x\n");
            let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
            run = log["runs"][0]["run"].as_str().expect("a run").to_owned();
        }
        repo.write("../play.toml", &turn("ada", r#"{ write = "last.py", text = "x\n" }"#));
        let output = repo.squad(&[&arguments[..], &["--resume", &run]].concat());
        let named = (1..=kills).map(|life| format!("{life}.py own ada named"));
        let unknown = (1..=kills).map(|life| format!("mine-{life}.py unknown -"));
        let expected: Vec<String> = named.chain(["last.py own ada named".to_owned()]).chain(unknown).collect();
        assert_eq!(changes(&last(&output)), expected, "{output}");
        let lost = repo.squad(&["log", &run, "--events"]).out;
        let said = format!("it is unknown whether `write: {kills}.py`");
        assert!(lost.contains(&said), "{said}: {lost}");
    }
}

/// Ways to change a file that `git status` does not show.
#[test]
fn what_an_agent_hides_from_git_is_seen() {
    let repo = TestRepo::with_small_team();
    repo.write("a.txt", "a\n");
    repo.write("b.txt", "b\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    let run = r#"{ run = "git update-index --assume-unchanged a.txt; git update-index --skip-worktree b.txt; echo x > a.txt; echo x > b.txt; echo c.txt >> .git/info/exclude; echo x > c.txt; git init -q nest; echo x > nest/d.txt" }"#;
    let output = repo.rehearse(&turn("ada", run), &[&ALLOWED[..], &["Add it"]].concat());
    let end = last(&output);
    assert_eq!(changes(&end), ["a.txt own ada command", "b.txt own ada command", "nest/ own ada command"], "{output}");
    let git = &end["work"][0]["git"];
    assert_eq!((&git["config"], &git["index"]), (&json!(["info/exclude"]), &json!(["a.txt", "b.txt"])), "{output}");
    assert!(output.out.contains("it is a repository of its own"), "{output}");
    repo.assert_sound();
}

/// After a command that changed nothing and one that did: the run's end and `squad diff`, which reads the entries.
#[test]
fn what_the_person_changes_after_a_command_is_theirs_on_all_screens() {
    for run in ["true", "echo x > x.txt"] {
        let repo = TestRepo::with_small_team();
        repo.write("../play.toml", &turn("ada", &format!("{{ run = {run:?} }}, {{ wait = \"1500ms\" }}")));
        let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        command.args(["orchestrate", "--script", "../play.toml"]).args(ALLOWED).arg("Explain it");
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        wait_for(&mut child, "\"tool.completed\"");
        // The snapshot after the command.
        std::thread::sleep(Duration::from_millis(500));
        repo.write("mine.txt", "by hand\n");
        let (out, code) = rest(child);
        assert_eq!(code, Some(0), "{out}");
        let end = last(&Output { out, err: String::new(), code: 0 });
        assert!(changes(&end).contains(&"mine.txt yours -".to_owned()), "{end}");
        let diff: Value = serde_json::from_str(&repo.squad(&["diff", "--json"]).out).expect("JSON");
        let files = diff["files"].as_array().expect("files");
        let mine = files.iter().find(|file| file["path"] == "mine.txt").expect("it is shown");
        assert_eq!((&mine["class"], &mine["by"]), (&json!("yours"), &json!([])), "{run}: {diff}");
    }
}

/// In a submodule and in a repository that git does not know × what an agent does there.
#[test]
fn what_an_agent_commits_in_a_repository_within_is_seen() {
    for (folder, shown) in [("sub", "sub"), ("nest", "nest/")] {
        for (run, is_change) in [("commit -q --allow-empty -m x", true), ("switch -qc other", true), ("log", false)] {
            let repo = TestRepo::with_small_team();
            for folder in ["sub", "nest"] {
                repo.git(&["init", "-q", folder]);
                let author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
                repo.git(&[&["-C", folder], &author[..], &["commit", "-q", "--allow-empty", "-m", "first"]].concat());
            }
            repo.git(&["add", "sub"]);
            repo.git(&["commit", "-qm", "submodule"]);
            let run = format!("git -C {folder} -c user.name=a -c user.email=a@example.com {run}");
            let script = turn("ada", &format!("{{ run = {run:?} }}"));
            let output = repo.rehearse(&script, &[&ALLOWED[..], &["Add it"]].concat());
            let expected: &[String] = if is_change { &[format!("{shown} own ada command")] } else { &[] };
            assert_eq!(changes(&last(&output)), expected, "{run}: {output}");
        }
    }
}

/// Whoever never began is not said to have changed nothing.
#[test]
fn who_was_skipped_is_said_to_be() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ fail = \"no\" }]\n";
    let output = repo.rehearse(script, &["--permissions", "allow", "First @ada adds the endpoint, then @bob tests it"]);
    assert!(output.err.contains("  ada    failed    no change\n  bob    skipped   step 1 did not"), "{output}");
    for message in ["@ada adds the endpoint, then @rex reviews it", "Rework the login password"] {
        let repo = TestRepo::with_small_team();
        let output = repo.rehearse(script, &["--permissions", "allow", message]);
        let row = "  rex    skipped   step 1 did not complete (ada: failed)";
        assert!(output.err.contains(row), "{output}");
        let run = repo.squad(&["log", "20260105"]);
        assert!(run.out.contains(row), "{run}");
        let json = repo.squad(&["log", "--json"]);
        assert!(json.out.contains(r#""agents":{"ada":"failed","rex":"skipped"}"#), "{json}");
    }
}

/// The same where the run was killed before.
#[test]
fn a_reviewer_that_a_killed_run_never_asked_was_skipped() {
    let repo = TestRepo::with_small_team();
    repo.write("../play.toml", &turn("ada", r#"{ run = "touch ready; sleep 20" }"#));
    let message = "@ada adds the endpoint, then @rex reviews it";
    let arguments = ["orchestrate", "--permissions", "allow", "--script", "../play.toml", message];
    // Killed once, and again when it is resumed.
    let mut resumes: Option<String> = None;
    for kills in 1..4 {
        let resumed = ["orchestrate", "--permissions", "allow", "--script", "../play.toml", "--resume"];
        let again = resumes.as_ref().map(|run| [&resumed[..], &[run]].concat());
        kill_when_ready(&repo, again.as_deref().unwrap_or(&arguments), Duration::ZERO);
        // It records the end.
        assert_eq!(repo.squad(&["decisions", "add", "Another"]).code, 0);
        let log = repo.squad(&["log", "--json"]).out;
        assert!(log.contains(r#""agents":{"ada":"lost","rex":"skipped"}"#), "{kills} kills: {log}");
        let log: Value = serde_json::from_str(&log).expect("JSON");
        resumes = log["runs"][0]["run"].as_str().map(str::to_owned);
    }
}

/// What commands of a killed run came to: passed, failed, and refused in every mode.
#[test]
fn a_command_that_was_refused_before_a_kill_is_none_that_failed() {
    for (commands, passed, failed, refused) in [
        (&["true", "false"][..], 2, 1, 0),
        (&["true", "rm -rf ~"], 2, 0, 1),
        (&["false", "rm -rf ~", "false"], 1, 2, 1),
    ] {
        let repo = TestRepo::with_small_team();
        let steps = commands.iter().map(|command| format!("{{ run = \"{command}\" }}, ")).collect::<String>();
        let steps = format!(r#"{steps}{{ run = "true" }}, {{ write = "ready", text = "x" }}, {{ wait = "20s" }}"#);
        repo.write("../play.toml", &turn("ada", &steps));
        let arguments = ["orchestrate", "--permissions", "allow", "--script", "../play.toml", "--agent", "ada", "x"];
        // Longer than what has happened may be on its way to the ledger.
        kill_when_ready(&repo, &arguments, Duration::from_secs(1));
        assert_eq!(repo.squad(&["decisions", "add", "Another"]).code, 0);
        let log = repo.squad(&["log", "2026", "--json"]).out;
        let end = log.lines().find(|line| line.contains("\"run.completed\"")).unwrap_or_else(|| panic!("{log}"));
        let end: Value = serde_json::from_str(end).expect("JSON");
        let work = &end["payload"]["work"][0];
        let counted = (&work["commands"], &work["refused"]);
        assert_eq!(counted, (&json!({ "passed": passed, "failed": failed }), &json!(refused)), "{commands:?} {log}");
    }
}

/// squad's own commands change files and branches while an agent works, or while its command runs.
#[test]
fn what_squad_itself_writes_is_no_agents() {
    let decide = &["decisions", "add", "Money is stored as integer cents"][..];
    for (squad, class) in [(decide, "other_run"), (&["agents", "retire", "bob"], "yours")] {
        for step in ["{ wait = \"2s\" }".to_owned(), format!("{{ run = \"{WAITING}; echo x > a.txt\" }}")] {
            let repo = TestRepo::with_small_team();
            let (output, _) = meanwhile(&repo, &turn("ada", &step), &[&ALLOWED[1..], &["Add it"]].concat(), || {
                let output = repo.squad(squad);
                assert_eq!(output.code, 0, "{output}");
            });
            let end = last(&output);
            let mut classes: Vec<String> = changes(&end);
            let own = "a.txt own ada command".to_owned();
            assert_eq!(classes.contains(&own), step.contains(WAITING), "{classes:?}");
            classes.retain(|change| *change != own);
            let is_its = |change: &String| change.starts_with(".squad/") && change.ends_with(&format!(" {class} -"));
            assert!(!classes.is_empty() && classes.iter().all(is_its), "{squad:?} {step}: {classes:?}");
            assert_eq!(end["work"][0]["git"], Value::Null, "{squad:?} {step}: {output}");
        }
    }
}

/// What an agent has squad do is the agent's.
#[test]
fn what_a_command_has_squad_write_is_the_agents() {
    let repo = TestRepo::with_small_team();
    let squad = env!("CARGO_BIN_EXE_squad");
    let script = turn("ada", &format!("{{ run = \"'{squad}' agents retire bob\" }}"));
    let (output, _) = meanwhile(&repo, &script, &[&ALLOWED[1..], &["Add it"]].concat(), || {});
    let end = last(&output);
    let changes = changes(&end);
    assert!(changes.contains(&".squad/team.md own ada command".to_owned()), "{changes:?}");
    assert_eq!(end["work"][0]["git"]["commits"].as_array().map(Vec::len), Some(1), "{output}");
}

/// The commits of a run's decisions are nobody's, and what the commands of two runs did to git is shared.
#[test]
fn what_two_runs_commands_do_to_git_is_together() {
    let repo = TestRepo::with_small_team();
    let script = turn("ada", &format!("{{ run = \"{WAITING}\" }}"));
    let (output, _) = meanwhile(&repo, &script, &[&ALLOWED[1..], &["Add it"]].concat(), || {
        let steps = r#"{ run = "git commit -q --allow-empty -m mine" }, { tool = "squad_log_decision", args = { title = "Errors are JSON", what = "One shape.", why = "Clients parse it." } }"#;
        let output = repo.rehearse(&turn("rex", steps), &["--permissions", "allow", "--agent", "rex", "Explain it"]);
        assert!(output.err.contains("together (rex and another run): 1 commit ("), "{output}");
    });
    let git = &last(&output)["work"][0]["git"];
    assert_eq!((&git["commits"], &git["together"][0]["by"]), (&json!([]), &json!(["ada"])), "{output}");
    assert_eq!(git["together"][0]["commits"].as_array().map(Vec::len), Some(1), "{output}");
}

/// Before it is resumed.
#[test]
fn what_a_killed_run_had_changed_is_known() {
    let repo = TestRepo::with_small_team();
    let steps = r#"{ run = "echo 'fn only_here_and_now() {}' > one.rs" }, { write = "two.rs", text = "fn written_by_its_tool() {}\n" }, { run = "echo 'fn in_the_killed_command() {}' > three.rs; touch ready; sleep 20" }"#;
    repo.write("../play.toml", &turn("ada", steps));
    let arguments =
        ["orchestrate", "--permissions", "allow", "--script", "../play.toml", "--agent", "ada", "Explain it"];
    kill_when_ready(&repo, &arguments, Duration::from_millis(500));
    let why = |place: &str| repo.squad(&["why", place]).to_string();
    assert!(
        why("one.rs:1").contains("agent     ada, in run") && why("one.rs:1").ends_with("exit 0\n"),
        "{}",
        why("one.rs:1")
    );
    assert!(why("two.rs:1").contains("agent     ada, in run"), "{}", why("two.rs:1"));
    assert!(why("three.rs:1").contains("unknown "), "{}", why("three.rs:1"));
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = log["runs"][0]["run"].as_str().expect("a run").to_owned();
    let log = repo.squad(&["log", &run, "--events"]);
    assert!(log.out.contains("one.rs (+1 -0; by a command)") && log.out.contains("two.rs"), "{log}");
    assert!(!log.out.contains("three.rs ("), "{log}");
    // It waits to be resumed, also once its end is recorded.
    let status = repo.squad(&["status"]).out;
    assert!(status.contains(" was killed") && !status.contains("nothing waits"), "{status}");
    // Killed again, after a tool wrote and before another snapshot.
    let steps = r#"{ write = "four.rs", text = "fn written_last() {}\n" }, { run = "true" }, { write = "ready", text = "x" }, { wait = "20s" }"#;
    repo.write("../play.toml", &turn("ada", steps));
    let arguments = ["orchestrate", "--permissions", "allow", "--script", "../play.toml", "--resume", &run];
    kill_when_ready(&repo, &arguments, Duration::from_millis(500));
    assert!(why("four.rs:1").contains("agent     ada, in run"), "{}", why("four.rs:1"));
    let log = repo.squad(&["log", &run, "--events"]).out;
    let again = log.rsplit("agent.lost").next().expect("an end");
    assert!(
        ["one.rs (+1", "four.rs (+1 -0)", "three.rs (+1 -0; unknown", "\n              ready"]
            .iter()
            .all(|text| again.contains(text)),
        "{log}"
    );
}

/// A file that several may have written has no single author.
#[test]
fn why_says_who_worked_together() {
    let repo = TestRepo::with_small_team();
    let wait = "while ! test -e b.rs; do sleep 0.01; done";
    let script = turn("ada", &format!("{{ run = \"echo 'fn by_one_of_the_two() {{}}' > a.rs; {wait}\" }}"))
        + &turn(
            "bob",
            "{ run = \"while ! test -e a.rs; do sleep 0.01; done; echo 'fn by_the_other_one() {}' > b.rs\" }",
        );
    let arguments = ["--permissions", "allow", "--agent", "ada", "--agent", "bob", "Explain it"];
    let (output, _) = meanwhile(&repo, &script, &arguments, || {});
    for place in ["a.rs", "a.rs:1"] {
        let output = repo.squad(&["why", place]);
        assert!(output.out.contains("agent     ada and bob, together: one of them, by a command, in run "), "{output}");
    }
    assert!(changes(&last(&output)).contains(&"a.rs together ada+bob command".to_owned()), "{output}");
    // The other one is of another run.
    let repo = TestRepo::with_small_team();
    let script = turn("ada", &format!("{{ run = \"{WAITING}; echo 'fn by_one_of_two_runs() {{}}' > a.rs\" }}"));
    let (output, _) = meanwhile(&repo, &script, &[&ALLOWED[1..], &["Add it"]].concat(), || {
        let steps = "{ run = \"true\" }, { write = \"b.rs\", text = \"x\" }";
        repo.rehearse(&turn("rex", steps), &["--permissions", "allow", "--agent", "rex", "Explain it"]);
    });
    assert!(changes(&last(&output)).contains(&"a.rs together ada command".to_owned()), "{output}");
    let output = repo.squad(&["why", "a.rs:1"]);
    assert!(
        output.out.contains("agent     ada and another run, together: one of them, by a command, in run "),
        "{output}"
    );
}
