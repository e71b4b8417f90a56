//! What is recorded of a run is what happened.

use std::collections::BTreeMap;

use expect_test::expect;
use serde_json::{Value, json};

use crate::support::TestRepo;

/// The entries of the newest run.
fn entries(repo: &TestRepo) -> Vec<Value> {
    let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = runs["runs"][0]["run"].as_str().expect("a run").to_owned();
    let entries = repo.squad(&["log", &run, "--json"]).out;
    entries.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn one<'e>(entries: &'e [Value], kind: &str) -> &'e Value {
    entries.iter().find(|entry| entry["kind"] == kind).expect(kind)
}

/// `kind agent step.attempt ← kind agent, …` for each entry that has causes.
fn lineage(entries: &[Value]) -> String {
    let name = |entry: &Value| {
        let agent = entry["agent"].as_str().map(|agent| format!(" {agent}")).unwrap_or_default();
        format!("{}{agent}", entry["kind"].as_str().expect("a kind"))
    };
    let names: BTreeMap<&str, String> =
        entries.iter().map(|entry| (entry["id"].as_str().expect("an id"), name(entry))).collect();
    let line = |entry: &Value| {
        let causes = entry["causes"].as_array().expect("causes");
        let causes: Vec<&str> = causes.iter().map(|id| names[id.as_str().expect("an id")].as_str()).collect();
        let place = entry.get("step").map(|step| format!(" ({step}.{})", entry["attempt"])).unwrap_or_default();
        let arrow = if causes.is_empty() { "" } else { " ← " };
        format!("{}{place}{arrow}{}\n", name(entry), causes.join(", "))
    };
    entries.iter().map(line).collect()
}

#[test]
fn every_entry_says_what_it_follows_from_and_where_it_belongs() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ tool = "squad_log_decision", args = { title = "Errors are JSON", what = "One shape." } }, { say = "Done." }]
[[turn]]
agent = "rex"
steps = [{ say = "No.\n\nVERDICT: rejected" }]
"#;
    repo.rehearse(script, &["--permissions", "allow", "Fix the login password check"]);
    expect![[r#"
        run.started
        engine.started ← run.started
        route.planned ← run.started
        session.created ada (1.1) ← route.planned
        decision.logged ada (1.1) ← session.created ada
        tool.completed ada (1.1) ← session.created ada
        agent.message ada (1.1) ← session.created ada
        session.idle ada (1.1) ← session.created ada
        session.destroyed ada (1.1) ← session.created ada
        agent.completed ada (1.1) ← session.created ada
        session.created rex (1.1) ← route.planned, agent.completed ada
        agent.message rex (1.1) ← session.created rex
        session.idle rex (1.1) ← session.created rex
        session.destroyed rex (1.1) ← session.created rex
        agent.completed rex (1.1) ← session.created rex
        review.verdict rex (1.1) ← agent.completed ada, agent.completed rex
        review.lockout ada (1.1) ← review.verdict rex
        run.answer ← agent.completed ada, agent.completed rex
        decision.landed ← decision.logged ada
        run.completed ← agent.completed ada, agent.completed rex
    "#]]
    .assert_eq(&lineage(&entries(&repo)));
    let script = r#"
[[turn]]
agent = "coordinator"
steps = [{ say = '{"agents": ["ada", "bob"], "reason": "both"}' }]
"#;
    repo.rehearse(script, &["Make it better"]);
    expect![[r#"
        run.started
        engine.started ← run.started
        route.planned ← run.started
        session.created coordinator ← route.planned
        agent.message coordinator ← session.created coordinator
        session.idle coordinator ← session.created coordinator
        session.destroyed coordinator ← session.created coordinator
        agent.completed coordinator ← session.created coordinator
        route.planned ← agent.completed coordinator
        session.created ada (1.1) ← route.planned
        session.created bob (1.1) ← route.planned
        agent.message ada (1.1) ← session.created ada
        session.idle ada (1.1) ← session.created ada
        session.destroyed ada (1.1) ← session.created ada
        agent.completed ada (1.1) ← session.created ada
        agent.message bob (1.1) ← session.created bob
        session.idle bob (1.1) ← session.created bob
        session.destroyed bob (1.1) ← session.created bob
        agent.completed bob (1.1) ← session.created bob
        session.resumed coordinator ← route.planned, agent.completed ada, agent.completed bob
        agent.message coordinator ← session.resumed coordinator
        session.idle coordinator ← session.resumed coordinator
        session.destroyed coordinator ← session.resumed coordinator
        agent.completed coordinator ← session.resumed coordinator
        run.answer ← agent.completed coordinator
        run.completed ← agent.completed ada, agent.completed bob, agent.completed coordinator
    "#]]
    .assert_eq(&lineage(&entries(&repo)));
}

/// The run is on record before the engine starts, so that one which cannot start leaves a trace.
#[test]
fn a_run_without_an_engine_has_a_beginning_and_an_end() {
    let repo = TestRepo::with_small_team();
    let output = repo.squad(&["orchestrate", "--json", "--agent", "bob", "x"]);
    assert_eq!(output.code, 4, "{output}");
    let types: Vec<String> =
        output.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["type"].to_string()).collect();
    assert_eq!(types, ["\"run.started\"", "\"connection.failed\"", "\"run.completed\"", "null"], "the error is last");
    let entries = entries(&repo);
    assert_eq!(one(&entries, "run.started")["payload"]["engine"], "copilot");
    assert_eq!(one(&entries, "run.completed")["payload"]["status"], "failed");
    assert_eq!(one(&entries, "run.completed")["payload"]["work"], json!([]));
    assert!(repo.squad(&["log"]).out.contains("failed     x"));
    let output = repo.squad(&["orchestrate", "--agent", "bob", "x"]);
    assert!(output.code == 4 && !output.err.contains("nobody") && output.err.contains("hint:"), "{output}");
}

#[test]
fn a_run_names_the_engine_that_was_asked_for_and_then_the_one_that_started() {
    let mut repo = TestRepo::with_small_team();
    repo.variables.insert("SQUAD_ENGINE_FALLBACK".to_owned(), "rehearsal".to_owned());
    repo.squad(&["orchestrate", "--agent", "bob", "x"]);
    let entries = entries(&repo);
    let kinds: Vec<&str> = entries.iter().take(3).filter_map(|entry| entry["kind"].as_str()).collect();
    assert_eq!(kinds, ["run.started", "engine.fallback", "engine.started"]);
    assert_eq!(one(&entries, "run.started")["payload"]["engine"], "copilot");
    assert_eq!(one(&entries, "engine.started")["payload"]["engine"], "rehearsal");
}

#[test]
fn the_end_of_a_run_lists_its_work() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ wait = "1s" }, { say = "Done." }]
[[turn]]
agent = "bob"
steps = [{ fail = "no" }]
"#;
    repo.rehearse(script, &["--agent", "ada", "--agent", "bob", "x"]);
    let entries = entries(&repo);
    let work = one(&entries, "run.completed")["payload"]["work"].as_array().expect("work").clone();
    let told: Vec<Value> = work
        .iter()
        .map(|work| {
            json!([work["agent"], work["step"], work["attempt"], work["status"], work["verified"], work["refused"]])
        })
        .collect();
    let expected = [
        json!(["ada", 1, 1, "completed", null, 0]),
        json!(["bob", 1, 1, "failed", null, 0]),
        json!(["coordinator", null, null, "completed", null, 0]),
    ];
    assert_eq!(told, expected);
    assert_eq!(work[0]["usage"]["seconds"], 1.0);
}
