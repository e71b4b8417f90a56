//! Work that agents hand to each other, and what they tell each other, in a whole run.

use expect_test::expect;

use crate::support::TestRepo;

const HANDED: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { tool = "squad_route", args = { agent = "Bob", task = "Cover src/api.txt with tests" } },
  { tool = "squad_route", args = { agent = "old", task = "Anything" } },
  { write = "src/api.txt", text = "endpoint\n" },
  { say = "The endpoint is there, and Bob has covered it." },
]
[[turn]]
agent = "bob"
steps = [
  { wait = "2s" }, { tool = "squad_log_decision", args = { title = "Tests sit beside the code" } },
  { write = "src/api_test.txt", text = "test\n" }, { say = "It is covered." },
]
[[turn]]
agent = "rex"
steps = [{ say = "Both are fine.\n\nVERDICT: approved" }]
"#;

#[test]
fn handed_on_work_is_shown_recorded_and_reviewed() {
    let repo = TestRepo::with_small_team();
    let message = "Fix the login and its password";
    let output = repo.rehearse(HANDED, &["--permissions", "allow", "--tier", "standard", message]);
    expect![[r#"
        The endpoint is there, and Bob has covered it.
        --- stderr
          squad  the rehearsal engine: a script plays, no model is asked
        Plan  1 ada   2 rex   tier standard, run 000001   .squad/routing.md:7, .squad/team.md:5
          ada    hands work to bob and waits: Cover src/api.txt with tests
        ◆ bob    decision 000000: Tests sit beside the code
        ✓ bob    write src/api_test.txt
          bob    It is covered.
        ✗ ada    squad_route    failed: `old` cannot be given work; these colleagues can: bob and rex
        ✓ ada    write src/api.txt
          rex    was told of 1 decision
          rex    Both are fine.
                 VERDICT: approved
        ✓ rex    approved: Both are fine.
        ✓ completed in 0:02; run 000001
          ada        completed   src/api.txt +1 -0
          bob        completed   src/api_test.txt +1 -0
          rex        approved    no change   no tool used
          checked    unverified: no check ran after the last change
          decision   000000 landed on main: Tests sit beside the code
          next       squad diff 000001   the files are yours to commit
                     squad undo 000001   take them back
        --- exit 0
    "#]]
    .assert_eq(&output.to_string());
    let log: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = &log["runs"][0];
    assert_eq!(run["agents"], serde_json::json!({"ada": "completed", "bob": "completed", "rex": "completed"}));
    let entries = repo.squad(&["log", run["run"].as_str().expect("an id"), "--json"]).out;
    let entries: Vec<serde_json::Value> =
        entries.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |kind: &str, agent: &str| {
        entries.iter().find(|entry| entry["type"] == kind && entry["agent"] == agent).expect(kind)
    };
    let requested = of("route.requested", "ada");
    assert_eq!(requested["text"], "Cover src/api.txt with tests");
    assert_eq!(requested["causes"], serde_json::json!([of("session.created", "ada")["id"]]));
    assert_eq!(of("session.created", "bob")["causes"], serde_json::json!([requested["id"]]));
    assert_eq!(of("decision.delivered", "rex")["causes"], serde_json::json!([of("decision.logged", "bob")["id"]]));
    let work = &entries.last().expect("an entry")["payload"]["work"];
    let work: Vec<_> = work.as_array().expect("work").iter().map(|work| work["agent"].as_str()).collect();
    assert_eq!(work, [Some("ada"), Some("bob"), Some("rex")]);
}

/// A colleague that fails makes the run fail, though who asked for it completes.
#[test]
fn a_run_fails_with_what_was_handed_on() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [\n  { tool = \"squad_route\", args = { agent = \"bob\", task = \"Test \
                  it\", wait = false } }, { say = \"Done.\" } ]\n[[turn]]\nagent = \"bob\"\nsteps = [{ wait = \"1s\" }, { \
                  fail = \"no more tokens\" }]\n";
    let output = repo.rehearse(script, &["--json", "--agent", "ada", "Add an endpoint"]);
    assert_eq!(output.code, 1, "{output}");
    let events = TestRepo::events(&output);
    let last = events.last().expect("an event");
    assert_eq!(last["agents"], serde_json::json!({"ada": "completed", "bob": "failed"}), "{output}");
}

/// A tier that only reads, a reviewer and the coordinator are offered no such tool, and told so when they call it.
#[test]
fn who_only_reads_hands_no_work_on() {
    let repo = TestRepo::with_small_team();
    let call = "{ tool = \"squad_route\", args = { agent = \"bob\", task = \"Do it\" } }, { tool = \"squad_status\" }";
    let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{call}, {{ say = \"It is there.\" }}]\n");
    let output = repo.rehearse(&script, &["--tier", "lightweight", "--agent", "ada", "Where is the parser?"]);
    assert!(output.code == 0 && output.err.matches("agents that choose, review or only read").count() == 2, "{output}");
}
