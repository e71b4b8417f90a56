//! The project's own check decides whether work holds, whatever agents say of it. With real processes: a check takes
//! the time that it takes.

use std::process::Stdio;

use expect_test::expect;
use serde_json::{Value, json};

use crate::process::{rest, wait_for};
use crate::support::{Output, TestRepo};

const BINARY: &str = env!("CARGO_BIN_EXE_squad");
/// Passes if a.txt holds the word, wherever there is git.
const IS_GOOD: &str = r#"["git", "grep", "--untracked", "-q", "good", "--", "a.txt"]"#;

/// The user's own configuration names the check.
fn repo(run: &str) -> TestRepo {
    let repo = TestRepo::with_small_team();
    configure(&repo, &format!("[check]\nrun = {run}\n"));
    repo
}

fn configure(repo: &TestRepo, config: &str) {
    repo.write("../home/config/squad/config.toml", config);
}

/// ada writes this and says that.
fn writes(text: &str, says: &str) -> String {
    format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [{{ write = \"a.txt\", text = \"{text}\\n\" }}, {{ say = \"{says}\" }}]\n"
    )
}

fn run_with(repo: &TestRepo, script: &str, arguments: &[&str]) -> Output {
    repo.write("../play.toml", script);
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--script", "../play.toml", "--permissions"]).args(arguments);
    let output = command.stdin(Stdio::null()).output().expect("squad runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().and_then(|code| code.try_into().ok()).expect("a code");
    Output { out: text(&output.stdout), err: text(&output.stderr), code }
}

/// ada alone, who may do anything.
fn ada(repo: &TestRepo, script: &str) -> Output {
    run_with(repo, script, &["allow", "--json", "--agent", "ada", "Add tests"])
}

fn of_type(output: &Output, kind: &str) -> Vec<Value> {
    TestRepo::events(output).into_iter().filter(|event| event["type"] == kind).collect()
}

fn results(output: &Output) -> Vec<bool> {
    of_type(output, "check.completed").iter().map(|check| check["passed"] == true).collect()
}

fn end(output: &Output) -> Value {
    TestRepo::events(output).pop().expect("an end")
}

fn newest(repo: &TestRepo) -> String {
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    log["runs"][0]["run"].as_str().expect("a run").to_owned()
}

/// What the agent says × what the check finds: the check is believed, everywhere.
#[test]
fn the_check_is_believed_and_not_the_agent() {
    for (text, says, passed) in [
        ("bad", "All tests pass.", false),
        ("bad", "The tests fail.", false),
        ("good", "All tests pass.", true),
        ("good", "The tests fail.", true),
    ] {
        let repo = repo(IS_GOOD);
        let output = ada(&repo, &writes(text, says));
        let code = u8::from(!passed);
        assert_eq!((output.code, results(&output)), (code, vec![passed]), "{text} {says}: {output}");
        let end = end(&output);
        let status = if passed { "completed" } else { "failed" };
        assert_eq!((&end["status"], &end["work"][0]["verified"]), (&json!(status), &json!(passed)), "{end}");
        assert_eq!(
            (&end["work"][0]["status"], &end["check"]["exit_code"]),
            (&json!("completed"), &json!(code)),
            "{end}"
        );
        let found = if passed { "passed" } else { "failed, exit 1" };
        let run = newest(&repo);
        let log = repo.squad(&["log", &run]).out;
        assert!(log.contains(&format!("$ git grep --untracked -q good -- a.txt    {found}")), "{log}");
        assert!(log.contains(&format!("checked   git grep --untracked -q good -- a.txt {found}")), "{log}");
        let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
        assert_eq!((&runs["runs"][0]["verified"], &runs["runs"][0]["status"]), (&json!(passed), &json!(status)));
        let why = repo.squad(&["why", "a.txt"]);
        assert!(why.out.contains(&format!("  checked   git grep --untracked -q good -- a.txt {found}\n")), "{why}");
        let status = repo.squad(&["status"]);
        assert!(
            status.out.contains(if passed { ", check passed: Add tests" } else { ", check failed: Add tests" }),
            "{status}"
        );
    }
}

#[test]
fn the_card_says_that_the_check_failed_and_where_to_look() {
    let repo = repo(r#"["git", "rev-parse", "--verify", "nosuch"]"#);
    let output = run_with(&repo, &writes("bad", "Done."), &["allow", "--agent", "ada", "Add tests"]);
    let run = newest(&repo);
    let short = &run[run.len() - 6..];
    let shown: String = output
        .without_durations()
        .replace(short, "RUN")
        .lines()
        .filter(|line| !line.contains("engine"))
        .map(|line| format!("{line}\n"))
        .collect();
    expect![[r#"
        Plan  1 ada   tier standard, run RUN   command line
        ✓ ada    write a.txt
          squad  checks all changes: $ git rev-parse --verify nosuch
        ✗ squad  $ git rev-parse --verify nosuch    failed, exit 128
                 fatal: Needed a single revision
        ✗ failed: the check git rev-parse --verify nosuch failed, exit 128; run RUN, TIME
          ada       completed   a.txt +1 -0
          checked   git rev-parse --verify nosuch failed, exit 128 after the last change
          next      squad log RUN    what the check printed
                    squad diff RUN   what it changed
                    squad undo RUN   take it back
    "#]]
    .assert_eq(&shown);
}

/// Nothing of the project changed, nothing may be changed, or the user does not want it.
#[test]
fn what_did_not_change_is_not_checked() {
    let repo = repo(IS_GOOD);
    let reads = "[[turn]]\nagent = \"ada\"\nsteps = [{ tool = \"squad_status\" }, { say = \"It is fine.\" }]\n";
    let of_team = writes("bad", "Done.").replace("a.txt", ".squad/notes.md");
    for (script, arguments) in [
        (reads, &["allow", "--agent", "ada", "How is it tested?"][..]),
        (reads, &["deny", "--agent", "ada", "How is it tested?"]),
        (&writes("bad", "Done."), &["deny", "--agent", "ada", "Add tests"]),
        (&writes("bad", "Done."), &["allow", "--tier", "lightweight", "--agent", "ada", "Add tests"]),
        (&writes("bad", "Done."), &["allow", "--no-check", "--agent", "ada", "Add tests"]),
        (&of_team, &["allow", "--agent", "ada", "Add notes"]),
    ] {
        let output = run_with(&repo, script, &[arguments, &["--json"]].concat());
        let end = end(&output);
        assert!(of_type(&output, "check.started").is_empty() && end["check"].is_null(), "{arguments:?}: {output}");
        assert!(end["work"].as_array().expect("work").iter().all(|work| work["verified"].is_null()), "{end}");
        assert!(end["status"] != "failed", "{arguments:?}: {output}");
    }
}

/// A check that cannot be run finds nothing right.
#[test]
fn whatever_keeps_the_check_from_its_end_fails_the_run() {
    for (run, limit, reason) in [
        (r#"["no-such-program"]"#, "30m", "`no-such-program` is in no folder of PATH"),
        (r#"["tools/none.sh"]"#, "30m", "the project has no file `tools/none.sh`"),
        (r#"["git", "hash-object", "--stdin-paths", "--no-such"]"#, "30m", ""),
        // It waits for a signal.
        (r#"["git", "-c", "alias.hang=!sleep 60", "hang"]"#, "1s", "it took too long"),
    ] {
        let repo = TestRepo::with_small_team();
        configure(&repo, &format!("[check]\nrun = {run}\n[sessions]\ntool_limit = \"{limit}\"\n"));
        let output = ada(&repo, &writes("good", "Done."));
        let check = end(&output)["check"].clone();
        assert_eq!((output.code, &check["passed"]), (1, &json!(false)), "{run}: {output}");
        assert_eq!(check["reason"].as_str().unwrap_or_default(), reason, "{run}: {output}");
        assert_eq!(check["exit_code"].is_null(), !reason.is_empty(), "{run}: {output}");
    }
}

#[test]
fn a_check_that_nobody_can_read_lets_nobody_start() {
    for (run, reason) in [
        ("\"cargo test\"", "needs a list of strings like [\"cargo\", \"test\"], not a string"),
        ("[]", "names no program; it needs a list of strings like [\"cargo\", \"test\"]"),
        ("[\" \", \"test\"]", "has an empty name for its program"),
        ("[\"cargo\", 1]", "needs a list of strings like [\"cargo\", \"test\"], not an integer"),
    ] {
        let repo = repo(run);
        let output = ada(&repo, &writes("good", "Done."));
        assert_eq!(output.code, 3, "{run}: {output}");
        let error: Value = serde_json::from_str(&output.out).expect("JSON");
        assert_eq!(error["error"]["message"], format!("`check.run` {reason}"), "{run}");
        assert!(error["error"]["source"].as_str().is_some_and(|source| source.ends_with("config.toml:2")), "{error}");
    }
    let repo = TestRepo::with_small_team();
    let output = ada(&repo, &writes("good", "Done."));
    assert_eq!((output.code, end(&output)["check"].is_null()), (0, true), "{output}");
    let output = run_with(&repo, &writes("good", "Done."), &["allow", "--check", "--agent", "ada", "Add tests"]);
    assert_eq!(output.code, 3, "{output}");
    assert!(
        output.err.contains("error: --check: no check is configured\nhint: squad config set --user check.run "),
        "{output}"
    );
}

/// The repository's own check is inert until it is approved, and again once a file changes that it names.
#[test]
fn a_repository_brings_no_check_that_was_not_approved() {
    let repo = TestRepo::with_small_team();
    let check = ["git", "grep", "--untracked", "-q", "good", "--", "a.txt"];
    let run = format!("[check]\nrun = {check:?}\n");
    repo.write(".squad/config.toml", &run);
    let output = ada(&repo, &writes("bad", "Done."));
    assert_eq!((output.code, results(&output)), (0, Vec::new()), "{output}");
    assert!(output.err.contains("`check.run` is ignored: a repository may not set it"), "{output}");
    let required = run_with(&repo, &writes("good", "Done."), &["allow", "--check", "--agent", "ada", "Add tests"]);
    assert!(required.code == 3 && required.err.contains("hint: squad trust approve check.run"), "{required}");
    assert_eq!(repo.squad(&["trust", "approve", "check.run", "--yes"]).code, 0);
    // a.txt is one of its arguments: what ada's command writes there is nothing that anybody has approved.
    let by_command = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"echo good >a.txt\" }, { say = \"Done.\" }]\n";
    let output = ada(&repo, by_command);
    assert_eq!((output.code, results(&output)), (1, vec![false]), "{output}");
    let reason = end(&output)["check"]["reason"].clone();
    assert_eq!(reason, "what `check.run` runs is not as it was approved: `squad trust` shows it", "{output}");
    // Another file is no argument of the check.
    repo.write(".squad/config.toml", &run.replace("a.txt", "*.txt"));
    assert_eq!(repo.squad(&["trust", "approve", "check.run", "--yes"]).code, 0);
    let output = ada(&repo, &writes("good too", "Done."));
    assert_eq!((output.code, results(&output)), (0, vec![true]), "{output}");
}

/// What a check changes is said, and nobody's: not the agent's before it, and not the one's after it.
#[test]
fn what_the_check_changes_is_no_agents() {
    let repo = repo(r#"["git", "-c", "alias.make=!echo made >made.txt", "make"]"#);
    let script = writes("good", "Done.")
        + "[[turn]]\nagent = \"rex\"\nsteps = [{ tool = \"squad_verdict\", args = { approved = true, reasons = \"Good.\" } }, { say = \"Good.\" }]\n\
           [[turn]]\nagent = \"bob\"\nsteps = [{ run = \"echo b >b.txt\" }, { say = \"Tested.\" }]\n";
    let message = "First @ada adds it, then @rex reviews it, then @bob tests it";
    let output = run_with(&repo, &script, &["allow", "--json", message]);
    assert_eq!((output.code, results(&output)), (0, vec![true, true]), "{output}");
    let checks = of_type(&output, "check.completed");
    assert_eq!((&checks[0]["changed"][0]["path"], &checks[0]["changed"][0]["by"]), (&json!("made.txt"), &json!([])));
    assert_eq!(checks[1]["changed"], json!([]), "it was there");
    for work in end(&output)["work"].as_array().expect("work") {
        let changed: Vec<&Value> = work["changed"].as_array().expect("changes").iter().map(|it| &it["path"]).collect();
        assert!(!changed.contains(&&json!("made.txt")), "{work}");
    }
    let run = newest(&repo);
    assert!(repo.squad(&["log", &run]).out.contains("check: made.txt changed while it ran"), "{output}");
    assert_eq!(repo.squad(&["undo", &run, "--yes"]).code, 0);
    assert!(repo.exists("made.txt") && !repo.exists("a.txt") && !repo.exists("b.txt"));
}

const REVIEWED: &str = r#"
[[turn]]
agent = "rex"
steps = [{ tool = "squad_verdict", args = { approved = false, reasons = "The check fails." } }, { say = "No." }]
[[turn]]
agent = "coordinator"
steps = [{ say = '{"agents": ["bob"], "reason": "knows it"}' }]
[[turn]]
agent = "bob"
steps = [{ write = "a.txt", text = "good\n" }, { say = "Mended." }]
[[turn]]
agent = "rex"
steps = [{ tool = "squad_verdict", args = { approved = true, reasons = "Good." } }, { say = "Yes." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "bob has mended it." }]
"#;

/// Before each review, and never twice for the same content; the last result counts.
#[test]
fn reviewers_see_the_result_and_a_revision_is_checked_again() {
    let repo = repo(IS_GOOD);
    let script = writes("bad", "Done.") + REVIEWED;
    let output = run_with(&repo, &script, &["allow", "--json", "Rework the login password"]);
    assert_eq!((output.code, results(&output)), (0, vec![false, true]), "{output}");
    let events = TestRepo::events(&output);
    let order: Vec<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .filter(|kind| ["check.completed", "review.verdict", "run.answer"].contains(kind))
        .collect();
    assert_eq!(order, ["check.completed", "review.verdict", "check.completed", "review.verdict", "run.answer"]);
    let verified: Vec<Value> = end(&output)["work"]
        .as_array()
        .expect("work")
        .iter()
        .map(|work| json!([work["agent"], work["verified"]]))
        .collect();
    assert_eq!(
        json!(verified),
        json!([
            ["ada", true],
            ["rex", null],
            ["coordinator", null],
            ["bob", true],
            ["rex", null],
            ["coordinator", null]
        ])
    );
    // An approval does not outweigh it.
    let approving = writes("bad", "Done.")
        + "[[turn]]\nagent = \"rex\"\nsteps = [{ tool = \"squad_verdict\", args = { approved = true, reasons = \"Good.\" } }, { say = \"Yes.\" }]\n";
    let output = run_with(&repo, &approving, &["allow", "--json", "Rework the login password"]);
    assert_eq!(
        (output.code, results(&output), &end(&output)["status"]),
        (1, vec![false], &json!("failed")),
        "{output}"
    );
}

/// Killed while it is checked, and after that; and resumed with the same and with other content.
#[test]
fn a_resumed_run_is_checked_once() {
    let repo = repo(r#"["git", "-c", "alias.slow=!echo x >>../runs; sleep 1; grep -q good a.txt", "slow"]"#);
    let runs = |repo: &TestRepo| repo.read("../runs").lines().count();
    let script = writes("good", "Done.");
    let start = |arguments: &[&str]| {
        repo.write("../play.toml", &script);
        let mut command = repo.command(BINARY, &repo.root());
        command.args(["orchestrate", "--json", "--script", "../play.toml", "--permissions", "allow"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("squad runs")
    };
    let mut child = start(&["--agent", "ada", "Add tests"]);
    wait_for(&mut child, "check.started");
    while !repo.exists("../runs") {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let run = newest(&repo);
    let before = std::fs::read_to_string(repo.root().join("../runs")).unwrap_or_default().lines().count();
    let mut child = start(&["--resume", &run]);
    wait_for(&mut child, "check.completed");
    child.kill().expect("it runs, or has ended");
    child.wait().expect("it ends");
    assert_eq!(runs(&repo), before + 1);
    let (out, code) = rest(start(&["--resume", &run]));
    assert!(code == Some(0) || out.contains("has completed"), "{out}");
    assert_eq!(runs(&repo), before + 1, "{out}");
    if code == Some(0) {
        assert!(out.lines().last().is_some_and(|line| line.contains("\"verified\":true")), "{out}");
    }
}

/// What failed stays failed until something changes.
#[test]
fn a_resumed_run_that_failed_its_check_is_checked_when_something_has_changed() {
    let repo = repo(IS_GOOD);
    assert_eq!(ada(&repo, &writes("bad", "Done.")).code, 1);
    let run = newest(&repo);
    let resume = |flags: &[&str]| {
        run_with(&repo, &writes("bad", "Done."), &[&["allow", "--json", "--resume", &run], flags].concat())
    };
    let again = resume(&[]);
    assert_eq!(
        (again.code, results(&again), &end(&again)["check"]["passed"]),
        (1, Vec::new(), &json!(false)),
        "{again}"
    );
    repo.write("a.txt", "good\n");
    let mended = resume(&[]);
    assert_eq!((mended.code, results(&mended)), (0, vec![true]), "{mended}");
    assert_eq!(end(&mended)["work"][0]["verified"], true);
}

/// What did not end says nothing of the content, which need not change.
#[test]
fn a_check_that_did_not_end_is_run_again_when_the_run_is_resumed() {
    let repo = TestRepo::with_small_team();
    let run = r#"["git", "-c", "alias.slow=!sh ../check.sh", "slow"]"#;
    configure(&repo, &format!("[check]\nrun = {run}\n[sessions]\ntool_limit = \"1s\"\n"));
    repo.write("../check.sh", "sleep 60\n");
    let output = ada(&repo, &writes("good", "Done."));
    assert_eq!((output.code, &end(&output)["check"]["reason"]), (1, &json!("it took too long")), "{output}");
    repo.write("../check.sh", "exit 0\n");
    let run = newest(&repo);
    let resumed = run_with(&repo, &writes("good", "Done."), &["allow", "--json", "--resume", &run]);
    assert_eq!((resumed.code, results(&resumed)), (0, vec![true]), "{resumed}");
}

/// Told to end × killed: the check ends with all that it started, and is run when the run is resumed.
#[cfg(unix)]
#[test]
fn the_check_and_all_that_it_started_end_with_squad() {
    for signal in ["INT", "KILL"] {
        let repo = repo(r#"["sh", "-c", "sleep 300 & echo $! >../sleeper; wait"]"#);
        repo.write("../play.toml", &writes("good", "Done."));
        let mut command = repo.command(BINARY, &repo.root());
        command.args(["orchestrate", "--json", "--script", "../play.toml", "--permissions", "allow"]);
        command.args(["--agent", "ada", "x"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("squad runs");
        wait_for(&mut child, "check.started");
        // What one process shows, others may learn of a moment later.
        let is_told = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            repo.squad(&["status"]).out.contains("runs sh -c")
        });
        assert!(is_told, "{}", repo.squad(&["status"]));
        let sleeper = loop {
            match std::fs::read_to_string(repo.root().join("../sleeper")) {
                Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
                _ => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        };
        crate::process::signal(&child, signal);
        let (out, code) = rest(child);
        assert_eq!(code, (signal == "INT").then_some(130), "{out}");
        let is_cancelled = out.contains(r#""type":"run.completed","status":"cancelled""#);
        assert!(!out.contains("check.completed") && is_cancelled == (signal == "INT"), "{out}");
        assert!(crate::process::ends(&sleeper), "{sleeper} is still there");
        let run = newest(&repo);
        configure(&repo, &format!("[check]\nrun = {IS_GOOD}\n"));
        let resumed = run_with(&repo, &writes("good", "Done."), &["allow", "--json", "--resume", &run]);
        assert_eq!((resumed.code, results(&resumed)), (0, vec![true]), "{resumed}");
    }
}

/// The end of much output is kept, and all of it is in a file. Whoever rewrites the check is named.
#[cfg(unix)]
#[test]
fn output_is_bounded_and_a_rewritten_check_is_named() {
    let repo = repo(r#"["sh", "tools/check.sh"]"#);
    repo.write("tools/check.sh", "exit 1\n");
    let flood = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 0";
    let script = format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [{{ write = \"tools/check.sh\", text = \"{flood}\\n\" }}, {{ say = \"Done.\" }}]\n"
    );
    let output = ada(&repo, &script);
    let check = end(&output)["check"].clone();
    assert_eq!((output.code, &check["rewritten"]), (0, &json!(["tools/check.sh"])), "{output}");
    let shown = check["output"].as_str().expect("a text");
    assert!(shown.len() <= 4096 && shown.ends_with("line 2999\n"), "{shown}");
    let file = format!(".git/squad/{}", check["output_file"].as_str().expect("a file"));
    assert_eq!(
        (repo.read(&file).lines().count(), check["output_bytes"].as_u64()),
        (3000, Some(repo.read(&file).len() as u64))
    );
    let log = repo.squad(&["log", &newest(&repo)]).out;
    assert!(log.contains("agents changed tools/check.sh, which it runs or reads"), "{log}");
}

/// It executes what agents wrote.
#[cfg(target_os = "linux")]
#[test]
fn the_check_is_bounded_as_the_agents_are() {
    let Some(world) = crate::sandbox::World::at("files") else { return };
    let config = world.home("config/squad/config.toml");
    world.write(
        &config,
        "[check]\nrun = [\"sh\", \"-c\", \"echo out >../escaped; cat ../home/.ssh/key; echo in >inside.txt\"]\n",
    );
    world.write(&world.home(".ssh/key"), "secret\n");
    let output = world.run(&["echo x >a.txt"]);
    let check = end(&output)["check"].clone();
    assert_eq!(check["passed"], true, "{output}");
    assert!(world.repo.exists("inside.txt") && !world.repo.exists("../escaped"), "{output}");
    assert!(!check["output"].as_str().expect("a text").contains("secret"), "{check}");
}

#[test]
fn init_proposes_what_it_found_and_leaves_it_to_the_user() {
    let repo = TestRepo::empty();
    repo.write("Cargo.toml", "[package]\nname = \"x\"\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    let output = repo.squad(&["init"]);
    let line = "  checked   cargo test, run by squad itself after changes  (Cargo.toml)\n";
    assert!(output.err.contains(line) && output.err.contains("squad trust approve check.run"), "{output}");
    assert!(repo.read(".squad/config.toml").contains("From Cargo.toml:\nrun = [\"cargo\", \"test\"]\n"));
    let listed = |repo: &TestRepo| repo.squad(&["config", "list"]).out.contains("check.run = [\"cargo\", \"test\"]");
    assert!(!listed(&repo));
    assert_eq!(repo.squad(&["trust", "approve", "check.run", "--yes"]).code, 0);
    assert!(listed(&repo));
    let unasked = TestRepo::empty();
    unasked.write("Cargo.toml", "[package]\nname = \"x\"\n");
    let output = unasked.squad(&["init", "--yes"]);
    assert!(listed(&unasked) && !output.err.contains("squad trust approve"), "{output}");
    // Neither a shell's line nor a build alone is proposed before a test.
    let plain = TestRepo::empty();
    plain.write("CMakeLists.txt", "project(x)\n");
    assert!(!plain.squad(&["init"]).err.contains("  checked "));
}

/// A program that squad does not ask, in each of its modes.
#[cfg(unix)]
#[test]
fn what_another_engine_changed_is_checked_too() {
    for (text, passed) in [("good", true), ("bad", false)] {
        let agent =
            format!("#!/bin/sh\ncat >/dev/null\n[ \"$1\" = --yes ] && echo {text} >a.txt\necho All tests pass.\n");
        let repo = crate::engines::world(&agent, &format!("[check]\nrun = {IS_GOOD}\n"));
        for (mode, checks) in [("allow", vec![passed]), ("deny", vec![])] {
            let flags =
                ["orchestrate", "--json", "--engine", "mine", "--agent", "ada", "--permissions", mode, "Add tests"];
            let output = crate::engines::squad(&repo, &flags);
            assert_eq!(results(&output), checks, "{text} {mode}: {output}");
            assert!(mode == "deny" || end(&output)["work"][0]["verified"] == passed, "{output}");
        }
    }
}

/// A run beside it has a command at work while the check changes a file: that is not its agent's alone.
#[cfg(unix)]
#[test]
fn what_the_check_changes_is_not_the_agents_of_a_run_beside_it() {
    let repo = repo(r#"["sh", "-c", "sleep 1; echo made >made.txt; sleep 2"]"#);
    repo.write("../play.toml", &writes("good", "Done."));
    let mut command = repo.command(BINARY, &repo.root());
    command.args([
        "orchestrate",
        "--json",
        "--script",
        "../play.toml",
        "--permissions",
        "allow",
        "--agent",
        "ada",
        "x",
    ]);
    let mut first = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("squad runs");
    wait_for(&mut first, "check.started");
    repo.write(
        "../beside.toml",
        "[[turn]]\nagent = \"bob\"\nsteps = [{ run = \"sleep 2; echo b >b.txt\" }, { say = \"Done.\" }]\n",
    );
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--json", "--script", "../beside.toml", "--permissions", "allow", "--no-check"]);
    let output = command.args(["--agent", "bob", "y"]).stdin(Stdio::null()).output().expect("squad runs");
    let (out, code) = rest(first);
    assert_eq!(code, Some(0), "{out}");
    let beside = String::from_utf8_lossy(&output.stdout);
    let end: Value = serde_json::from_str(beside.lines().last().expect("an end")).expect("JSON");
    let changed = end["work"][0]["changed"].as_array().expect("changes");
    let class = |path: &str| changed.iter().find(|change| change["path"] == path).map(|change| change["class"].clone());
    assert!(class("b.txt").is_some() && class("made.txt") != Some(json!("own")), "{beside}");
}
