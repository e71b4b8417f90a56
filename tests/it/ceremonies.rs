//! The team's automatic meetings: steps of a plan, or left to people.

use expect_test::expect;
use serde_json::Value;

use crate::support::TestRepo;

const SCRIPT: &str = r#"
[[turn]]
agent = "rex"
steps = [{ say = "Agree on the field names first." }]
[[turn]]
agent = "ada"
steps = [{ write = "api.txt", text = "endpoint\n" }, { say = "The endpoint is there." }]
[[turn]]
agent = "bob"
steps = [{ write = "tests.txt", text = "tests\n" }, { say = "They pass." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is done." }]
"#;

const MESSAGE: &str = "@ada @bob build the endpoint";

fn row(name: &str, trigger: &str, when: &str, condition: &str, facilitator: &str, enabled: &str) -> String {
    format!(
        "## {name}\n\n| Field | Value |\n|---|---|\n| **Trigger** | {trigger} |\n| **When** | {when} |\n\
         | **Condition** | {condition} |\n| **Facilitator** | {facilitator} |\n| **Enabled** | {enabled} |\n\n\
         **Agenda:**\n1. Agree on interfaces\n\n---\n\n"
    )
}

const DUE: &str = "multi-agent task involving 2+ agents";

fn meeting(rows: &[String]) -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/ceremonies.md", &format!("# Ceremonies\n\n{}", rows.concat()));
    repo
}

fn plan(repo: &TestRepo, arguments: &[&str]) -> Value {
    let output = repo.squad(&[&["route", "--json"], arguments].concat());
    serde_json::from_str(&output.out).expect("JSON")
}

#[test]
fn a_meeting_that_is_due_is_a_step_and_others_are_left_to_people() {
    let repo = meeting(&[
        row("Design Review", "auto", "before", DUE, "Rex", "✅ yes"),
        row("Retrospective", "auto", "after", "build failure, or reviewer rejection", "Rex", "✅ yes"),
        row("Health Check", "manual", "after", "always", "Rex", "✅ yes"),
        row("Weekly", "auto", "weekly", "always", "Rex", "✅ yes"),
        row("Stand-up", "auto", "before", "always", "Rex", "❌ no"),
    ]);
    let output = repo.rehearse(SCRIPT, &["--permissions", "allow", MESSAGE]);
    expect![[r#"
        All is done.
        --- stderr
          squad  the rehearsal engine: a script plays, no model is asked
        Plan  1 rex   2 ada, bob   tier standard, run 000001   message
          squad  left to people: Retrospective after the work (.squad/ceremonies.md:18)
          Step 1 of 2
          rex    Agree on the field names first.
          Step 2 of 2
        ✓ bob    write tests.txt
        ✓ ada    write api.txt
          bob    They pass.
          ada    The endpoint is there.
        ✓ completed in 0:42; run 000001
          ada       completed   api.txt +1 -0
          bob       completed   tests.txt +1 -0
          rex       completed   no change   no tool used
          checked   unverified: no check ran after the last change
          next      squad diff 000001   the files are yours to commit
                    squad undo 000001   take them back
        --- exit 0
    "#]]
    .assert_eq(&output.to_string());
    let found = plan(&repo, &[MESSAGE]);
    assert_eq!(found["steps"].to_string(), r#"[["rex"],["ada","bob"]]"#);
    assert_eq!(found["agents"].to_string(), r#"["ada","bob","rex"]"#);
    expect![[r#"[{"name":"Design Review","when":"before","source":".squad/ceremonies.md:3","step":1},{"name":"Retrospective","when":"after","source":".squad/ceremonies.md:18"}]"#]].assert_eq(&found["ceremonies"].to_string());
    let evidence = found["evidence"].as_array().expect("a list");
    let of_file: Vec<String> = evidence
        .iter()
        .filter(|one| one["source"].as_str().is_some_and(|source| source.contains("ceremonies.md")))
        .map(|one| format!("{} {} ({})", one["agent"], one["why"], one["source"]))
        .collect();
    expect![[r#"
        "rex" "facilitates Design Review before the work: multi-agent task involving 2+ agents" (".squad/ceremonies.md:3")
        "coordinator" "Retrospective (after the work: build failure, or reviewer rejection) is left to people: squad cannot tell whether it is due" (".squad/ceremonies.md:18")"#]].assert_eq(&of_file.join("\n"));
    let preview = repo.squad(&["orchestrate", "--dry-run", MESSAGE]);
    assert!(preview.out.starts_with("rex, then ada and bob work on it; "), "{preview}");
    // A single agent's work is no reason to meet.
    assert_eq!(plan(&repo, &["@ada builds the endpoint"])["steps"].to_string(), r#"[["ada"]]"#);
}

#[test]
fn a_meeting_of_the_coordinators_choice_is_held_too_and_teaches_routing_nothing() {
    let repo = meeting(&[row("Design Review", "auto", "before", DUE, "Rex", "yes")]);
    let choice = "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = '{\"agents\": [\"ada\", \"bob\"], \"reason\": \"both\"}' }]\n";
    let message = "Untangle the zeppelin hangar";
    let output = repo.rehearse(&format!("{choice}{SCRIPT}"), &["--permissions", "allow", "--json", message]);
    let steps: Vec<String> = TestRepo::events(&output)
        .iter()
        .filter(|event| event["type"] == "step.started")
        .map(|event| event["agents"].to_string())
        .collect();
    assert_eq!(
        (&steps[..], output.code),
        (&[r#"["rex"]"#.to_owned(), r#"["ada","bob"]"#.to_owned()][..], 0),
        "{output}"
    );
    // The facilitator did not build it.
    let taught = plan(&repo, &[message])["evidence"].to_string();
    assert!(taught.contains("past work") && !taught.contains("\"rex\""), "{taught}");
}

#[test]
fn nobody_is_made_to_facilitate() {
    let held = |facilitator: &str, arguments: &[&str]| {
        let repo = meeting(&[row("Design Review", "auto", "before", DUE, facilitator, "yes")]);
        let found = plan(&repo, arguments);
        (found["steps"].to_string(), found["ceremonies"][0]["step"].is_u64(), found.to_string())
    };
    for (facilitator, message, why) in [
        ("Old", MESSAGE, "nobody who can be started facilitates it"),
        ("lead", MESSAGE, "nobody who can be started facilitates it"),
        ("Rex", "@ada @bob build the endpoint, but not @rex", "the message rules rex out"),
    ] {
        let (steps, is_held, plan) = held(facilitator, &[message]);
        assert!(steps == r#"[["ada","bob"]]"# && !is_held && plan.contains(why), "{plan}");
    }
    let (_, is_held, plan) = held("Rex", &["--tier", "lightweight", MESSAGE]);
    assert!(!is_held && plan.contains("tier lightweight"), "{plan}");
    // Who begins anyway needs no step for it.
    let (steps, is_held, plan) = held("Ada", &["First @ada builds the endpoint, then @bob tests it"]);
    assert!(steps == r#"[["ada"],["bob"]]"# && !is_held && plan.contains("works before the others anyway"), "{plan}");
    let (steps, is_held, _) = held("Ada", &[MESSAGE]);
    assert_eq!((steps.as_str(), is_held), (r#"[["ada"],["ada","bob"]]"#, true));
}

#[test]
fn a_file_of_meetings_does_not_flood_a_run() {
    let many: Vec<String> =
        (0..500).map(|at| row(&format!("Meeting {at}\u{1b}[2J"), "auto", "before", "always", "Rex", "yes")).collect();
    let repo = meeting(&many);
    let found = plan(&repo, &[MESSAGE]);
    assert_eq!(found["steps"].as_array().expect("steps").len(), 5, "{found}");
    assert_eq!(found["ceremonies"].as_array().expect("a list").len(), 20);
    let output = repo.rehearse(SCRIPT, &["--permissions", "allow", MESSAGE]);
    assert!(output.err.contains("left to people: Meeting 4") && output.err.contains("and 13 more"), "{output}");
    assert!(!output.err.contains('\u{1b}'), "{output}");
}

#[test]
fn a_run_that_stopped_at_its_meeting_goes_on_there_and_meets_once() {
    let repo = meeting(&[
        row("Design Review", "auto", "before", DUE, "Rex", "yes"),
        row("Wrap-up", "auto", "after", "every task", "Rex", "yes"),
    ]);
    let fails = "[[turn]]\nagent = \"rex\"\nsteps = [{ fail = \"the model is gone\" }]\n";
    let closes = "[[turn]]\nagent = \"rex\"\nsteps = [{ say = \"Names were settled late.\" }]\n";
    let script = format!("{fails}{SCRIPT}{closes}");
    let output = repo.rehearse(&script, &["--permissions", "allow", "--json", MESSAGE]);
    let events = TestRepo::events(&output);
    let agents = &events.last().expect("an end")["agents"];
    assert_eq!(agents.to_string(), r#"{"ada":"skipped","bob":"skipped","rex":"skipped"}"#, "{output}");
    let run = events[0]["run"].as_str().expect("an id");
    let output = repo.rehearse(&script, &["--permissions", "allow", "--json", "--resume", run]);
    let ended: Vec<String> = TestRepo::events(&output)
        .iter()
        .filter(|event| event["type"] == "agent.completed")
        .map(|event| format!("{} {}", event["step"], event["agent"]))
        .collect();
    assert_eq!(ended[0], r#"1 "rex""#, "{output}");
    assert_eq!(ended[3..], [r#"3 "rex""#, r#"null "coordinator""#], "{output}");
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn a_meeting_is_not_what_the_reviewer_judges() {
    let repo = meeting(&[row("Design Review", "auto", "before", "always", "Bob", "yes")]);
    let script = r#"
[[turn]]
agent = "bob"
steps = [{ say = "Hash them." }]
[[turn]]
agent = "ada"
steps = [{ write = "login.txt", text = "plain\n" }, { say = "Did it." }]
[[turn]]
agent = "rex"
steps = [{ tool = "squad_verdict", args = { approved = false, reasons = "Plain text." } }, { say = "No." }]
[[turn]]
agent = "bob"
steps = [{ write = "login.txt", text = "hashed\n" }, { say = "Hashed." }]
[[turn]]
agent = "rex"
steps = [{ tool = "squad_verdict", args = { approved = true, reasons = "Good." } }, { say = "Yes." }]
"#;
    let output = repo.rehearse(script, &["--permissions", "allow", "--json", "Fix the login password check"]);
    let events = TestRepo::events(&output);
    let verdicts: Vec<String> = events
        .iter()
        .filter(|event| event["type"] == "review.verdict")
        .map(|event| event["authors"].to_string())
        .collect();
    assert_eq!(verdicts, [r#"["ada"]"#, r#"["bob"]"#], "{output}");
    assert_eq!(repo.read("login.txt"), "hashed\n");
}
