//! Runs whose end is not in the ledger: each is resumed where it was begun, and nowhere else.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::process::{rest, wait_for};
use crate::support::TestRepo;
use crate::sync::Shared;

const SLOW: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "api.txt", text = "one\n" }, { say = "Begun." }, { wait = "700ms" }, { say = "There." }]
"#;

const ORDERED: &str = "First @ada adds the endpoint, then @bob tests it, after that @rex documents it";

fn command(repo: &TestRepo, arguments: &[&str]) -> Command {
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.args(["orchestrate", "--json", "--permissions", "allow", "--script", "../script.toml"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(repo: &TestRepo, script: &str, message: &str) -> Child {
    repo.write("../script.toml", script);
    command(repo, &[message]).spawn().expect("squad runs")
}

fn killed(repo: &TestRepo, message: &str) {
    let mut child = start(repo, SLOW, message);
    wait_for(&mut child, "Begun.");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

fn newest(repo: &TestRepo) -> Value {
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    log["runs"][0].clone()
}

fn id(run: &Value) -> &str {
    run["run"].as_str().expect("an id")
}

fn resumed(repo: &TestRepo) -> (String, Option<i32>) {
    rest(command(repo, &["--resume", id(&newest(repo))]).spawn().expect("squad runs"))
}

fn deletes_local_state(repo: &TestRepo) {
    // A process that was just killed may still be writing.
    while fs::remove_dir_all(repo.root().join(".git/squad")).is_err() {}
}

/// Takes the place of a full disk: nothing can be appended until the result is removed.
fn blocks_the_ledger(repo: &TestRepo) -> PathBuf {
    let draft = repo.root().join(".git/squad/ledger.ref");
    // It may be there for a moment.
    while fs::create_dir_all(draft.join("full")).is_err() {}
    draft
}

#[test]
fn a_run_whose_end_could_not_be_written_is_lost_and_resumed() {
    let repo = TestRepo::with_small_team();
    let mut child: Child = start(&repo, SLOW, "@ada x");
    wait_for(&mut child, "Begun.");
    let blocked = blocks_the_ledger(&repo);
    let (out, code) = rest(child);
    assert_eq!(code, Some(1), "{out}");
    fs::remove_dir_all(blocked).expect("it is there");
    assert_eq!(newest(&repo)["status"], "lost");
    let (out, code) = resumed(&repo);
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(newest(&repo)["status"], "completed");
    repo.assert_sound();
}

/// Otherwise it would be done again when the run goes on: a call of the agent at work × the agents after it, who work or
/// review, and the coordinator.
#[test]
fn what_cannot_be_recorded_does_not_begin() {
    for (message, later) in
        [(ORDERED, &["bob", "rex"][..]), ("First @ada adds the endpoint, then @rex reviews it", &["rex"])]
    {
        does_not_begin(message, later);
    }
}

fn does_not_begin(message: &str, later: &[&str]) {
    let repo = TestRepo::with_small_team();
    let reviews = message.contains("reviews");
    let script = SLOW.replace("{ say = \"There.\" }", "{ run = \"echo x >> ada.txt\" }, { say = \"There.\" }");
    let turn = |agent: &str| {
        format!(
            "[[turn]]\nagent = \"{agent}\"\nsteps = [{{ run = \"echo x >> {agent}.txt\" }}, {{ say = \"Done.\" }}]\n"
        )
    };
    let review = "[[turn]]\nagent = \"rex\"\nsteps = [{ say = \"VERDICT: approved\" }]\n".to_owned();
    let (bob, rex) = (turn("bob"), if reviews { review } else { turn("rex") });
    let script = format!("{script}{bob}{rex}");
    let mut child = start(&repo, &script, message);
    wait_for(&mut child, "Begun.");
    let blocked = blocks_the_ledger(&repo);
    let (out, code) = rest(child);
    assert_eq!(code, Some(1), "{out}");
    for agent in ["ada", "bob", "rex"] {
        assert!(!repo.exists(&format!("{agent}.txt")), "{agent}: {out}");
    }
    for agent in later.iter().chain(&["coordinator"]) {
        assert!(!out.contains(&format!("\"agent\":\"{agent}\",\"type\":\"agent.message\"")), "{agent}: {out}");
    }
    assert!(out.contains("\"type\":\"run.completed\",\"status\":\"failed\""), "{out}");
    assert!(out.contains("what happens cannot be recorded: "), "{out}");
    fs::remove_dir_all(blocked).expect("it is there");
    repo.squad(&["decisions", "add", "Whatever writes records the end"]);
    let run = newest(&repo);
    let skipped: String = later.iter().map(|agent| format!(",\"{agent}\":\"skipped\"")).collect();
    let agents = format!("{{\"ada\":\"lost\"{skipped}}}");
    assert_eq!((run["status"].as_str(), run["agents"].to_string()), (Some("lost"), agents), "{out}");
    let (out, code) = resumed(&repo);
    assert_eq!(code, Some(0), "{out}");
    let workers = later.iter().filter(|_| !reviews).chain(&["ada"]);
    for agent in workers {
        assert_eq!(repo.read(&format!("{agent}.txt")), "x\n", "{out}");
    }
}

#[test]
fn a_killed_run_is_resumed_though_the_local_state_was_deleted() {
    let repo = TestRepo::with_small_team();
    killed(&repo, "@ada x");
    deletes_local_state(&repo);
    assert_eq!(newest(&repo)["status"], "unknown");
    let (out, code) = resumed(&repo);
    assert_eq!(code, Some(0), "{out}");
    let run = newest(&repo);
    assert_eq!((&run["status"], &run["agents"]["ada"]), (&"completed".into(), &"completed".into()));
    let entries = repo.squad(&["log", "--json", id(&run)]).out;
    assert_eq!(entries.matches("\"agent.lost\"").count(), 1, "{entries}");
}

/// Its first end is not its last word.
#[test]
fn a_run_that_is_killed_after_it_ended_and_was_resumed_can_be_resumed() {
    let repo = TestRepo::with_small_team();
    // The session goes on with its next turn.
    let turn = |steps: &str| format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}]\n");
    let fails = turn("{ fail = \"the model is gone\" }");
    let then = |steps: &str| fails.clone() + &turn(steps);
    assert_eq!(rest(start(&repo, &fails, "@ada x")).1, Some(1));
    let run = id(&newest(&repo)).to_owned();
    let over = repo.squad(&["cancel", &run]);
    assert!(over.err.contains("is over: failed"), "{over}");
    repo.write("../script.toml", &then("{ say = \"Begun.\" }, { hang = true }"));
    let mut child = command(&repo, &["--resume", &run]).spawn().expect("squad runs");
    wait_for(&mut child, "Begun.");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let dead = repo.squad(&["cancel", &run]);
    assert!(dead.err.contains("its process has died"), "{dead}");
    let status = repo.squad(&["status"]).out;
    let short = run.rsplit('-').next().expect("an id");
    assert!(status.contains(&format!("squad orchestrate --resume {short}")), "{status}");
    repo.write("../script.toml", &then("{ say = \"There.\" }"));
    let (out, code) = resumed(&repo);
    assert_eq!((code, newest(&repo)["status"].as_str()), (Some(0), Some("completed")), "{out}");
}

#[test]
fn a_live_run_is_not_resumed_though_the_local_state_was_deleted() {
    let repo = TestRepo::with_small_team();
    let script = SLOW.replace("700ms", "3s");
    let mut child = start(&repo, &script, "@ada x");
    wait_for(&mut child, "Begun.");
    deletes_local_state(&repo);
    let (out, code) = resumed(&repo);
    assert!(code == Some(2) && out.contains("is still running, in process"), "{code:?} {out}");
    let (out, code) = rest(child);
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(newest(&repo)["status"], "completed");
    assert!(!repo.squad(&["status"]).out.contains("was killed"), "its lease is given back");
}

#[test]
fn the_run_of_another_clone_is_not_resumed_here_while_it_may_go_on_there() {
    let shared = Shared::new();
    let repo = &shared.repo;
    killed(repo, "@ada x");
    deletes_local_state(repo);
    shared.sync(&repo.root());
    let other = shared.clone("other", &[]);
    shared.sync(&other);
    let run = newest(repo);
    let output = repo.squad_in(&other, &["orchestrate", "--engine", "rehearsal", "--resume", id(&run)]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.err.contains("came from another clone") && output.err.contains("hint: resume it there"), "{output}");
    let (out, code) = resumed(repo);
    assert_eq!(code, Some(0), "{out}");
    // Once its end is known, it is an ended run like any other.
    shared.sync(&repo.root());
    shared.sync(&other);
    let output = repo.squad_in(&other, &["orchestrate", "--engine", "rehearsal", "--resume", id(&run)]);
    assert!(output.code == 2 && output.err.contains("has completed"), "{output}");
}

#[test]
fn who_never_began_is_skipped_and_begins_on_resume() {
    let repo = TestRepo::with_small_team();
    killed(&repo, ORDERED);
    repo.squad(&["decisions", "add", "Whatever writes records the end"]);
    let run = newest(&repo);
    let agents = r#"{"ada":"lost","bob":"skipped","rex":"skipped"}"#;
    assert_eq!((run["status"].as_str(), run["agents"].to_string().as_str()), (Some("lost"), agents));
    let log = repo.squad(&["log", id(&run), "--events"]).out;
    let line = "bob          agent.skipped        the process of its run died before it began";
    assert!(log.contains(line), "{log}");
    let (out, code) = resumed(&repo);
    assert_eq!(code, Some(0), "{out}");
    let run = newest(&repo);
    for agent in ["ada", "bob", "rex"] {
        assert_eq!(run["agents"][agent], "completed", "{out}");
    }
}

/// What a model was told of is never forgotten: it would be done a second time.
#[test]
fn a_finished_call_is_durable_before_the_model_knows() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"x\" }, { say = \"Begun.\" }, { wait = \"60s\" }]\n";
    let mut child = start(&repo, script, "@ada x");
    wait_for(&mut child, "agent.message_delta");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let entries = repo.squad(&["log", "--json", id(&newest(&repo))]).out;
    for kind in ["tool.started", "tool.completed"] {
        assert!(entries.contains(&format!("\"type\":\"{kind}\"")), "{kind}: {entries}");
    }
}

#[test]
fn a_call_without_a_known_end_is_named_in_the_log_and_on_resume() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "ada"
steps = [
  { write = "a.txt", text = "x" }, { tool = "squad_route", args = { agent = "bob", task = "Wait\nfor it" } },
]
[[turn]]
agent = "bob"
steps = [{ say = "Begun." }, { wait = "60s" }]
"#;
    let mut child = start(&repo, script, "@ada x");
    wait_for(&mut child, "Begun.");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let done = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Done.\" }]\n";
    repo.write("../script.toml", &format!("{done}{}", done.replace("ada", "bob")));
    let run = newest(&repo);
    let (out, code) = resumed(&repo);
    assert_eq!(code, Some(0), "{out}");
    let unknown = "it is unknown whether `squad_route` finished";
    assert!(out.contains(&format!("{unknown}; it is told to check before it repeats anything")), "{out}");
    assert!(!out.contains("`write"), "what finished is known: {out}");
    let log = repo.squad(&["log", id(&run), "--events"]).out;
    assert!(log.contains(&format!("agent.lost           the process of its run died; {unknown}")), "{log}");
    assert!(!log.contains("tool.started"), "{log}");
    assert!(repo.squad(&["log", "-v", "--events", id(&run)]).out.contains("tool.started"));
}
