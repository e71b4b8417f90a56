//! An account whose quota is used up: nothing starts on it, in no squad of the user's, until it is there again.

use serde_json::{Value, json};

use crate::support::{Output, TestRepo};

const WORK: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "a.txt", text = "a\n" }, { quota = "10m" }, { write = "b.txt", text = "b\n" }, { say = "Both." }]
[[turn]]
agent = "bob"
steps = [{ write = "c.txt", text = "c\n" }, { say = "One." }]
[[turn]]
agent = "ada"
steps = [{ write = "b.txt", text = "b\n" }, { say = "The rest." }]
"#;

const MESSAGE: &str = "First @ada adds the files, then @bob adds one";

fn run(repo: &TestRepo, arguments: &[&str]) -> (Output, Vec<Value>) {
    let output = repo.rehearse(WORK, &[&["--permissions", "allow", "--json"], arguments].concat());
    let events = TestRepo::events(&output);
    (output, events)
}

fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

fn files(repo: &TestRepo) -> String {
    ["a", "b", "c"].into_iter().filter(|name| repo.exists(&format!("{name}.txt"))).collect()
}

fn status(repo: &TestRepo) -> Value {
    serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON")
}

/// What is stopped is kept, said everywhere, shared with another repository of the user's, and goes on later.
#[test]
fn a_run_stops_and_goes_on_when_the_quota_is_there_again() {
    let repo = TestRepo::with_small_team();
    let (output, events) = run(&repo, &[MESSAGE]);
    assert_eq!((output.code, files(&repo).as_str()), (5, "a"), "{output}");
    let opened = of(&events, "quota.opened");
    assert_eq!((opened.len(), &opened[0]["engine"]), (1, &json!("rehearsal")), "{output}");
    assert!(of(&events, "session.error").is_empty(), "nothing is tried again: {output}");
    let end = events.last().expect("an end");
    assert_eq!(
        (&end["status"], &end["agents"]),
        (&json!("stopped"), &json!({"ada": "stopped", "bob": "skipped"})),
        "{end}"
    );
    let run_id = end["run"].as_str().expect("a run").to_owned();
    let used_up = &status(&repo)["quotas"];
    assert_eq!((used_up.as_array().map(Vec::len), &used_up[0]["account"]), (Some(1), &json!("rehearsal")), "{used_up}");
    let shown = repo.squad(&["status"]);
    assert!(shown.out.contains("! quota      the quota of rehearsal is used up until 2026-01-05 09:"), "{shown}");
    // Another team of the same user's.
    let mut other = TestRepo::with_small_team();
    other.variables.insert("HOME".to_owned(), repo.home().display().to_string());
    let (elsewhere, events) = run(&other, &["--agent", "bob", "Add one"]);
    assert_eq!((elsewhere.code, files(&other).as_str()), (5, ""), "{elsewhere}");
    assert!(of(&events, "session.created").is_empty() && of(&events, "quota.opened").len() == 1, "{elsewhere}");
    // Still used up.
    let (again, _) = run(&repo, &["--resume", &run_id]);
    assert_eq!((again.code, files(&repo).as_str()), (5, "a"), "{again}");
    let (resumed, events) = run(&repo, &["--resume", &run_id, "--wait"]);
    assert_eq!((resumed.code, files(&repo).as_str()), (0, "abc"), "{resumed}");
    assert_eq!((of(&events, "quota.opened").len(), of(&events, "quota.closed").len()), (1, 1), "{resumed}");
    assert_eq!(status(&repo)["quotas"], Value::Null);
}

/// With `--wait` an agent in the middle of its work sleeps, and goes on in its session.
#[test]
fn a_run_that_waits_sleeps_and_goes_on_by_itself() {
    let repo = TestRepo::with_small_team();
    let (output, events) = run(&repo, &["--wait", MESSAGE]);
    assert_eq!((output.code, files(&repo).as_str()), (0, "abc"), "{output}");
    assert_eq!((of(&events, "quota.opened").len(), of(&events, "quota.closed").len()), (1, 1), "{output}");
    assert_eq!(of(&events, "session.created").len(), 3, "ada's session goes on: {output}");
}

#[test]
fn the_card_says_how_to_go_on() {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(WORK, &["--permissions", "allow", MESSAGE]);
    assert!(
        output.err.contains("squad orchestrate --resume 000001 --wait   sleeps until the quota is there again\n"),
        "{output}"
    );
    let log = repo.squad(&["log", "000001", "--events"]).out;
    assert!(log.contains("quota.opened         rehearsal until 2026-01-05T09:"), "{log}");
}

/// Nothing is known of any account: nothing starts, and the message names the file, also in `status`.
#[test]
fn a_file_of_rubbish_is_named_and_stops_all() {
    let repo = TestRepo::with_small_team();
    repo.write("../home/.local/state/squad/quota.json", "{\"accounts\": 1}");
    let (output, events) = run(&repo, &["--agent", "ada", "Add files"]);
    assert_eq!((output.code, files(&repo).as_str()), (5, ""), "{output}");
    let reason = events.last().expect("an end")["work"][0]["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.contains("quota.json is not as squad writes it") && reason.contains("delete it"), "{reason}");
    assert!(repo.squad(&["status"]).out.contains("quota.json is not as squad writes it"));
}

/// A program that is told so by its service: no retry, and only an engine that the user named stands in for it.
#[cfg(unix)]
#[test]
fn a_program_says_so_and_a_fallback_stands_in() {
    let refused = "#!/bin/sh\ncat >/dev/null\necho x >>\"$0.starts\"\necho 'Error: 429 Too Many Requests, try again in 20 minutes' >&2\nexit 1\n";
    let other = "[engines.other]\nprogram = \"other-agent\"\nargs = [\"{mode}\"]\nprompt = \"stdin\"\nstrict = [\"--safe\"]\nfree = [\"--yes\"]\n";
    for (fallback, completed) in [("", 0), ("other", 1)] {
        let setting = format!(
            "{other}[engine]\nfallback = [{}]\n",
            if fallback.is_empty() { String::new() } else { format!("\"{fallback}\"") }
        );
        let repo = crate::engines::world(refused, &setting);
        repo.write_script("../bin/other-agent", "#!/bin/sh\ncat >/dev/null\necho c >c.txt\necho Done.\n");
        let arguments =
            ["orchestrate", "--json", "--engine", "mine", "--permissions", "allow", "--max-concurrent", "1"];
        let output = crate::engines::squad(&repo, &[&arguments[..], &["--agent", "ada,bob", "Add tests"]].concat());
        let events = TestRepo::events(&output);
        let agents = &events.last().expect("an end")["agents"];
        let ends = ["ada", "bob"].map(|agent| agents[agent].as_str().unwrap_or_default().to_owned());
        assert_eq!(ends.iter().filter(|end| *end == "completed").count(), completed, "{output}");
        assert_eq!(ends.iter().filter(|end| *end == "stopped").count(), 2 - completed, "{output}");
        assert_eq!(repo.read("../bin/my-agent.starts"), "x\n", "started once: {output}");
        let stood_in = of(&events, "engine.fallback");
        assert_eq!(stood_in.is_empty(), fallback.is_empty(), "{output}");
        if let Some(first) = stood_in.first() {
            assert!(
                first["reason"].as_str().is_some_and(|reason| reason.starts_with("the quota of mine is used up until")),
                "{first}"
            );
        }
    }
}
