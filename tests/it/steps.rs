//! A plan's steps: one after another, each with what the ones before it did.

use expect_test::expect;

use crate::support::TestRepo;

const THREE: &str = r#"
[[turn]]
agent = "ada"
steps = [{ wait = "1s" }, { write = "api.txt", text = "endpoint\n" }, { say = "The endpoint is there." }]
[[turn]]
agent = "bob"
steps = [{ wait = "1s" }, { write = "tests.txt", text = "tests\n" }, { say = "The tests pass." }]
[[turn]]
agent = "ada"
steps = [{ tool = "squad_decisions" }, { say = "The last touch is done." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is done." }]
"#;

const MESSAGE: &str = "First @ada adds the endpoint, then @bob tests it, after that @ada polishes it";

#[test]
fn agents_work_in_the_order_of_the_message() {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(THREE, &["--permissions", "allow", MESSAGE]);
    expect![[r#"
        All is done.
        --- stderr
          squad  the rehearsal engine: a script plays, no model is asked
        Plan  1 ada   2 bob   3 ada   tier standard, run 000001   message
          Step 1 of 3
        ✓ ada    write api.txt
          ada    The endpoint is there.
          Step 2 of 3
        ✓ bob    write tests.txt
          bob    The tests pass.
          Step 3 of 3
          ada    The last touch is done.
        ✓ completed in 0:02; run 000001
          ada       completed   api.txt +1 -0
          bob       completed   tests.txt +1 -0
          checked   unverified: no check ran after the last change
          next      squad diff 000001   the files are yours to commit
                    squad undo 000001   take them back
        --- exit 0
    "#]]
    .assert_eq(&output.to_string());
    let output = repo.rehearse(THREE, &["--permissions", "allow", "--json", MESSAGE]);
    let shown: Vec<String> = TestRepo::events(&output)
        .iter()
        .filter(|event| {
            ["step.started", "step.completed", "agent.completed"].contains(&event["type"].as_str().unwrap_or(""))
        })
        .map(|event| format!("{} {} {}", event["type"], event["step"], event["agent"]))
        .collect();
    expect![[r#"
        "step.started" 1 null
        "agent.completed" 1 "ada"
        "step.completed" 1 null
        "step.started" 2 null
        "agent.completed" 2 "bob"
        "step.completed" 2 null
        "step.started" 3 null
        "agent.completed" 3 "ada"
        "step.completed" 3 null
        "agent.completed" null "coordinator""#]]
    .assert_eq(&shown.join("\n"));
}

#[test]
fn what_follows_work_that_failed_is_skipped() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ say = "I try." }, { fail = "the model is gone" }]
"#;
    let output = repo.rehearse(script, &["--permissions", "allow", MESSAGE]);
    expect![[r#"
        --- stderr
          squad  the rehearsal engine: a script plays, no model is asked
        Plan  1 ada   2 bob   3 ada   tier standard, run 000001   message
          Step 1 of 3
          ada    I try.
        ! ada    the model is gone; it is tried again
        ✗ ada    failed: the model is gone
        - bob    skipped: step 1 did not complete (ada: failed)
        - ada    skipped: step 1 did not complete (ada: failed)
        ✗ failed: ada: the model is gone; run 000001, 0:00
          ada    skipped   step 1 did not complete (ada: failed)
          bob    skipped   step 1 did not complete (ada: failed)
          next   squad orchestrate --resume 000001   goes on with ada and bob
                 squad log 000001                    what happened
        --- exit 1
    "#]]
    .assert_eq(&output.to_string());
    let output = repo.rehearse(script, &["--permissions", "allow", "--json", MESSAGE]);
    let events = TestRepo::events(&output);
    let end = events.last().expect("an end");
    assert_eq!(end["agents"].to_string(), r#"{"ada":"skipped","bob":"skipped"}"#);
    let work: Vec<String> = end["work"]
        .as_array()
        .expect("work")
        .iter()
        .map(|work| format!("{} {}", work["step"], work["status"]))
        .collect();
    assert_eq!(work, [r#"1 "failed""#, r#"2 "skipped""#, r#"3 "skipped""#]);
    repo.assert_sound();
}

#[test]
fn steps_are_shown_before_anything_runs() {
    let repo = TestRepo::with_small_team();
    expect![[r#"
        ada, then bob, then ada work on it; tier standard, confidence 1.00
          the message says @ada (message); the message says @bob (message); --explain: all

        Sessions:
          ada          claude-sonnet-4.5, all of the engine's tools, 0.8 KB of prompt
                       and squad_log_decision, squad_remember, squad_decisions, squad_route, squad_status and squad_commit
          bob          claude-sonnet-4.5, all of the engine's tools, 0.8 KB of prompt
                       and squad_log_decision, squad_remember, squad_decisions, squad_route, squad_status and squad_commit
          coordinator  claude-sonnet-4.5, no tools, 1.1 KB of prompt

        Forecast: none; fewer than 5 runs like it are known
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["orchestrate", "--dry-run", MESSAGE]).to_string());
    let plan: serde_json::Value = serde_json::from_str(&repo.squad(&["route", "--json", MESSAGE]).out).expect("JSON");
    assert_eq!(plan["steps"].to_string(), r#"[["ada"],["bob"],["ada"]]"#);
    assert_eq!(plan["agents"].to_string(), r#"["ada","bob"]"#);
}

/// The coordinator may put agents in order.
#[test]
fn the_coordinator_orders_steps() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "coordinator"
steps = [{ say = '{"steps": [["bob"], ["ada", "bob"]], "reason": "tests first"}' }]
[[turn]]
agent = "coordinator"
steps = [{ say = "Done." }]
[[turn]]
agent = "bob"
steps = [{ say = "Tests." }]
[[turn]]
agent = "ada"
steps = [{ say = "Code." }]
[[turn]]
agent = "bob"
steps = [{ say = "More tests." }]
"#;
    let output = repo.rehearse(script, &["--json", "Make it better"]);
    let steps: Vec<String> = TestRepo::events(&output)
        .iter()
        .filter(|event| event["type"] == "step.started")
        .map(|event| event["agents"].to_string())
        .collect();
    assert_eq!(steps, [r#"["bob"]"#, r#"["ada","bob"]"#], "{output}");
    assert_eq!(output.code, 0, "{output}");
}
