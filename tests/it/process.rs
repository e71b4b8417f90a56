//! The real binary: signals, pipes, processes side by side, death in the middle.

use std::io::{Read, Write};
use std::process::{Child, Stdio};
#[cfg(unix)]
use std::time::{Duration, Instant};

use crate::support::TestRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

#[cfg(unix)]
pub(crate) const SLOW: &str = "[[turn]]\nagent = \"ada\"\nsteps = [\n  { tool = \"squad_log_decision\", args = { title = \"Kept\" } },\n  \
    { say = \"Begun.\" }, { wait = \"60s\" }, { say = \"Never said.\" },\n]\n";

pub(crate) fn start(repo: &TestRepo, script: &str, arguments: &[&str]) -> Child {
    if !repo.exists("../script.toml") {
        repo.write("../script.toml", script);
    }
    let mut command = repo.command(BINARY, &repo.root());
    let agent: &[&str] = if arguments.contains(&"--resume") { &[] } else { &["--agent", "ada"] };
    command.args(["orchestrate", "--json", "--script", "../script.toml"]).args(agent).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("squad runs")
}

/// Reads until a line holds `text`, so that the signal that follows comes at a known moment.
pub(crate) fn wait_for(child: &mut Child, text: &str) -> String {
    let out = child.stdout.as_mut().expect("a pipe");
    let mut seen = Vec::new();
    let mut byte = [0];
    while out.read(&mut byte).expect("a pipe") == 1 {
        seen.push(byte[0]);
        if byte[0] == b'\n' && String::from_utf8_lossy(&seen).contains(text) {
            break;
        }
    }
    String::from_utf8_lossy(&seen).into_owned()
}

pub(crate) fn rest(mut child: Child) -> (String, Option<i32>) {
    let mut out = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("UTF-8");
    (out, child.wait().expect("it ends").code())
}

#[cfg(unix)]
pub(crate) fn signal(child: &Child, name: &str) {
    let done = std::process::Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(done.expect("kill runs").success());
}

/// Whether a process that somebody else has started ends soon.
#[cfg(unix)]
pub(crate) fn ends(id: &str) -> bool {
    (0..3000).any(|_| {
        let state = std::process::Command::new("ps").args(["-o", "stat=", "-p", id]).output().expect("ps runs");
        let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
        std::thread::sleep(Duration::from_millis(10));
        // Whoever it was left to may take no note of its end.
        state.is_empty() || state.starts_with('Z')
    })
}

/// Returns when it stands still.
#[cfg(unix)]
pub(crate) fn is_stopped(child: &Child) {
    let state = || std::process::Command::new("ps").args(["-o", "stat=", "-p", &child.id().to_string()]).output();
    while !String::from_utf8_lossy(&state().expect("ps runs").stdout).contains('T') {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_every_agent_and_records_the_outcome() {
    for name in ["INT", "TERM", "HUP"] {
        let repo = TestRepo::with_small_team();
        let mut child = start(&repo, SLOW, &["x"]);
        wait_for(&mut child, "Begun.");
        let signalled = Instant::now();
        signal(&child, name);
        let (out, code) = rest(child);
        assert!(signalled.elapsed() < Duration::from_secs(30), "it does not wait for the turn's end");
        assert_eq!(code, Some(130), "{out}");
        let last = out.lines().last().expect("a line");
        assert!(last.contains(r#""type":"run.completed","status":"cancelled","agents":{"ada":"cancelled"}"#), "{last}");
        assert!(repo.squad(&["log"]).out.contains("cancelled"));
        assert!(repo.squad(&["decisions", "list"]).out.contains("in force"), "what was decided is on the branch");
        repo.assert_sound();
    }
}

/// The engine here is a program that never says anything: squad waits for it when the signal comes.
#[cfg(unix)]
#[test]
fn an_interrupt_while_the_engine_starts_leaves_no_process() {
    let mut repo = TestRepo::with_small_team();
    let silent = repo.write_script("../silent", "#!/bin/sh\necho $$ >\"$HOME/started\"\nexec sleep 300\n");
    repo.variables.insert("COPILOT_CLI_PATH".to_owned(), silent.display().to_string());
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--json", "--agent", "ada", "x"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().expect("squad runs");
    let engine = loop {
        let started = std::fs::read_to_string(repo.root().join("../home/started")).unwrap_or_default();
        if started.ends_with('\n') {
            break started.trim().to_owned();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    signal(&child, "INT");
    let (out, code) = rest(child);
    assert!(code == Some(130) && out.contains("\"kind\":\"interrupted\""), "{code:?} {out}");
    let is_there = || std::process::Command::new("kill").args(["-0", &engine]).stderr(Stdio::null()).status();
    for _ in 0..500 {
        if !is_there().expect("kill runs").success() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the engine is still there");
}

#[cfg(unix)]
#[test]
fn killed_in_the_middle_everything_acknowledged_is_there() {
    let repo = TestRepo::with_small_team();
    let mut child = start(&repo, SLOW, &["x"]);
    // The decision's event is only shown when it is durable.
    wait_for(&mut child, "decision.logged");
    assert!(repo.squad(&["status"]).out.contains("● run "), "the run is seen while it lives");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    repo.assert_sound();
    assert!(repo.squad(&["decisions", "list"]).out.contains("unlanded"));
    assert!(repo.squad(&["log"]).out.contains("lost"), "a dead run is not running");
    assert!(!ledger_of(&repo).contains("agent.lost"), "who only looks writes nothing");
    assert!(repo.squad(&["status"]).out.contains("squad orchestrate --resume "));
    let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "x"]);
    assert!(output.code == 0 && output.err.contains(" of an earlier run landed on main"), "{output}");
    // The next command that wrote has written down what became of the run, once.
    repo.squad(&["decisions", "add", "Another"]);
    let ledger = ledger_of(&repo);
    assert_eq!((ledger.matches("agent.lost").count(), ledger.matches("run.completed").count()), (1, 2), "{ledger}");
    let runs = repo.squad(&["log", "--json"]).out;
    let runs: serde_json::Value = serde_json::from_str(&runs).expect("JSON");
    let is_first = |run: &&serde_json::Value| run["message"] == "x" && run["status"] != "completed";
    let lost = runs["runs"].as_array().expect("runs").iter().find(is_first).expect("the run");
    assert_eq!(
        (&lost["status"], &lost["agents"]["ada"], lost["ended"].is_string()),
        (&"lost".into(), &"lost".into(), true)
    );
    let run = lost["run"].as_str().expect("an id");
    let entries = repo.squad(&["log", run, "--json"]).out;
    let entries: Vec<serde_json::Value> =
        entries.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |kind: &str| entries.iter().find(|entry| entry["type"] == kind).expect(kind);
    let (end, last) = (of("agent.lost"), entries.last().expect("an entry"));
    assert_eq!((&end["payload"]["reason"], &end["step"]), (&"the process of its run died".into(), &1.into()));
    assert_eq!(end["causes"], serde_json::json!([of("session.created")["id"]]));
    assert_eq!((&last["type"], &last["causes"]), (&"run.completed".into(), &serde_json::json!([end["id"]])));
    assert_eq!(last["payload"]["work"][0]["status"], "lost");
}

#[cfg(unix)]
fn ledger_of(repo: &TestRepo) -> String {
    repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"])
}

#[test]
fn a_reader_that_goes_away_stops_no_work() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Begun.\" }, { wait = \"300ms\" }, { write = \"a.txt\", text = \"x\" }, { say = \"Done.\" }]\n";
    let mut child = start(&repo, script, &["--permissions", "allow", "x"]);
    wait_for(&mut child, "Begun.");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(repo.exists("a.txt") && repo.squad(&["log"]).out.contains("completed"));
}

#[test]
fn two_runs_at_once_lose_nothing() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ tool = \"squad_log_decision\", args = { title = \"Same title\" } }, { wait = \"200ms\" }, { say = \"Done.\" }]\n";
    let runs: Vec<Child> = (0..4).map(|_| start(&repo, script, &["x"])).collect();
    for run in runs {
        let (out, code) = rest(run);
        assert_eq!(code, Some(0), "{out}");
    }
    let value: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let runs = value["runs"].as_array().expect("runs");
    assert!(runs.len() == 4 && runs.iter().all(|run| run["status"] == "completed"), "{value}");
    // Whoever came late may have found the index locked; the next command lands what is left.
    repo.squad(&["decisions", "land"]);
    let list = repo.squad(&["decisions", "list"]);
    assert_eq!(list.out.lines().filter(|line| line.contains("in force")).count(), 4, "{list}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.assert_sound();
}

#[test]
fn works_in_a_linked_work_tree_and_from_a_folder_below() {
    let repo = TestRepo::with_small_team();
    repo.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let side = repo.root().join("../side");
    std::fs::create_dir(side.join("below")).expect("a folder");
    let output = repo.squad_in(&side.join("below"), &["decisions", "add", "Made beside"]);
    assert!(output.code == 0 && output.err.contains("landed on side"), "{output}");
    assert!(repo.git_in(&side, &["log", "-1", "--format=%s"]).contains("Made beside"));
    assert!(repo.squad(&["decisions", "list"]).out.contains("elsewhere"));
    assert_eq!(repo.git_in(&side, &["status", "--porcelain"]), "");
}

#[test]
fn a_linked_work_tree_without_a_team_uses_the_main_ones() {
    let repo = TestRepo::empty();
    repo.write("a.txt", "a\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    repo.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    assert_eq!(repo.squad(&["init"]).code, 0);
    let side = repo.root().join("../side");
    let output = repo.squad_in(&side, &["orchestrate", "--engine", "rehearsal", "--agent", "tester", "x"]);
    assert_eq!(output.code, 0, "{output}");
    let output = repo.squad_in(&side, &["decisions", "add", "Made beside"]);
    assert!(output.code == 0 && output.err.contains("the team belongs to the main work tree"), "{output}");
    assert_eq!(repo.git_in(&side, &["status", "--porcelain"]), "");
    assert!(repo.squad(&["log", "--json"]).out.contains("tester"));
}

#[test]
fn version_and_help_need_no_repository() {
    let folder = TestRepo::folder();
    let run = |arguments: &[&str]| {
        let done = folder.command(BINARY, &folder.root()).args(arguments).output().expect("squad runs");
        (String::from_utf8(done.stdout).expect("UTF-8"), done.status.code())
    };
    assert_eq!(run(&["--version"]), (concat!("squad ", env!("CARGO_PKG_VERSION"), "\n").to_owned(), Some(0)));
    for command in
        [&["init"][..], &["orchestrate"], &["decisions", "add"], &["log"], &["status"], &["engines"], &["demo"]]
    {
        let (help, code) = run(&[command, &["--help"]].concat());
        assert!(code == Some(0) && help.contains("Examples:"), "{command:?}: {help}");
    }
    let (help, code) = run(&["decisions", "--help"]);
    assert!(code == Some(0) && help.contains("Commands:"), "{help}");
}

fn triage(repo: &TestRepo) -> Child {
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["route", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("squad runs")
}

/// Each answer is there before the next issue is asked: a program can converse.
#[test]
fn triage_answers_each_issue_at_once() {
    let repo = TestRepo::with_small_team();
    let mut child = triage(&repo);
    let mut input = child.stdin.take().expect("a pipe");
    for (number, title) in [(1, "@ada look"), (2, "@bob look")] {
        writeln!(input, "{{\"number\":{number},\"title\":\"{title}\"}}").expect("it reads");
        let answer = wait_for(&mut child, "kind");
        assert!(answer.starts_with(&format!("{{\"number\":{number},\"kind\":\"agents\"")), "{answer}");
    }
    let log = "a line of a log, and nothing else\\n".repeat(150_000);
    writeln!(input, "{{\"number\":3,\"title\":\"@rex look\",\"body\":\"{log}\"}}").expect("it reads");
    assert!(wait_for(&mut child, "kind").contains("\"agents\":[\"rex\"]"), "megabytes are no trouble");
    drop(input);
    assert_eq!(rest(child), (String::new(), Some(0)));
}

#[test]
fn triage_ends_quietly_when_nobody_reads_on() {
    let repo = TestRepo::with_small_team();
    let mut child = triage(&repo);
    let mut input = child.stdin.take().expect("a pipe");
    writeln!(input, "{{\"title\":\"@ada look\"}}").expect("it reads");
    wait_for(&mut child, "kind");
    drop(child.stdout.take());
    // Another test that is just starting a program may hold the pipe for a moment longer: until then it is answered.
    while writeln!(input, "{{\"title\":\"@ada look\"}}").is_ok() {}
    let mut err = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("UTF-8");
    assert_eq!((err.as_str(), child.wait().expect("it ends").code()), ("", Some(0)));
}

/// What other processes record is shown as they do, and an interrupt loses nothing of it.
#[cfg(unix)]
#[test]
fn entries_are_followed_as_they_are_recorded() {
    let repo = TestRepo::with_small_team();
    let follow = |arguments: &[&str]| {
        let mut command = repo.command(BINARY, &repo.root());
        command.args(["log", "--follow"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("squad runs")
    };
    // From before the first entry on, so that nothing depends on when it starts.
    let mut lines = follow(&["--since", "2020-01-01"]);
    let mut json = follow(&["--json", "--agent", "ada", "--since", "2020-01-01"]);
    let mut run = start(&repo, SLOW, &["x"]);
    let shown = wait_for(&mut lines, "Begun.");
    assert!(shown.contains("run.started          x") && shown.contains("Kept"), "{shown}");
    wait_for(&mut json, "Begun.");
    let id = shown.lines().find_map(|line| line.strip_prefix("run ")).expect("a run").to_owned();
    // Following one run ends with it.
    let mut one = follow(&[&id, "--events"]);
    wait_for(&mut one, "Begun.");
    signal(&run, "INT");
    run.wait().expect("it ends");
    let (out, code) = rest(one);
    assert!(code == Some(0) && out.contains("run.completed"), "{code:?} {out}");
    // A decision of no run, and at once the interrupt.
    let added = repo.command(BINARY, &repo.root()).args(["decisions", "add", "Durable"]).output().expect("squad runs");
    assert!(added.status.success());
    for (child, is_json) in [(lines, false), (json, true)] {
        signal(&child, "INT");
        let (out, code) = rest(child);
        assert_eq!(code, Some(130), "{out}");
        assert!(out.contains("agent.cancelled"), "{out}");
        assert_eq!(out.contains("no run") && out.contains("Durable"), !is_json, "{out}");
        assert!(!is_json || out.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{out}");
    }
}

#[test]
fn following_ends_quietly_when_nobody_reads_on() {
    let repo = TestRepo::with_small_team();
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["log", "--follow", "--since", "2020-01-01"]).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("squad runs");
    repo.squad(&["decisions", "add", "One"]);
    wait_for(&mut child, "One");
    drop(child.stdout.take());
    while child.try_wait().expect("a child").is_none() {
        repo.squad(&["decisions", "add", "Another"]);
    }
    let mut err = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("UTF-8");
    assert_eq!((err.as_str(), child.wait().expect("it ends").code()), ("", Some(0)));
}
