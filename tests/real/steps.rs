//! Steps and the hand-off of rejected work, with the real CLI.

use serde_json::json;

use crate::model_server::Script;
use crate::support::{COORDINATOR, World, call, create, plays, shell};

const RUN: [&str; 4] = ["orchestrate", "--json", "--permissions", "allow"];

#[test]
fn each_step_is_told_what_the_ones_before_it_did() {
    let world = World::new(|root| {
        [
            plays("ada", &[&create(&root.join("api.txt"), "endpoint\n"), "say:The endpoint is in api.txt."]),
            plays("bob", &[&create(&root.join("tests.txt"), "tests\n"), "say:They pass."]),
            Script::new(COORDINATOR, ["say:Both are done."]),
        ]
    });
    let message = "First @ada adds the endpoint, then @bob tests it";
    let ended = world.run(&[&RUN[..], &[message]].concat());
    ended.assert_status(0, "completed", &json!({ "ada": "completed", "bob": "completed", "coordinator": "completed" }));
    let order: Vec<String> = ended
        .events()
        .iter()
        .filter(|event| ["step.started", "step.completed"].contains(&event["type"].as_str().unwrap_or_default()))
        .map(|event| format!("{} {}", event["type"].as_str().unwrap_or_default(), event["step"]))
        .collect();
    assert_eq!(order, ["step.started 1", "step.completed 1", "step.started 2", "step.completed 2"], "{ended}");
    let prompts: Vec<String> = world.model.requests().iter().map(ToString::to_string).collect();
    let told = |prompt: &&String| prompt.contains("Step 2 of 2 is yours");
    let second = prompts.iter().find(told).expect("bob's prompt");
    assert!(
        second.contains("Report of `ada` (completed)") && second.contains("The endpoint is in api.txt."),
        "{second}"
    );
    assert!(second.contains("Files it changed: `api.txt` (+1 -0)"), "{second}");
    world.assert_left_in_order(&ended);
}

#[test]
fn a_meeting_before_the_work_is_a_step_and_its_report_reaches_the_others() {
    let world = World::new(|_| {
        [
            plays("cy", &["say:Settled: the field is called `id`."]),
            plays("ada", &["say:Built."]),
            plays("bob", &["say:Tested."]),
            Script::new(COORDINATOR, ["say:All is done."]),
        ]
    });
    world.repo.write(
        ".squad/ceremonies.md",
        "## Design Review\n\n| Field | Value |\n|---|---|\n| Trigger | auto |\n| When | before |\n\
         | Condition | multi-agent task |\n| Facilitator | Cy |\n\n1. Agree on names\n",
    );
    let ended = world.run(&[&RUN[..], &["@ada @bob explain the endpoint"]].concat());
    let completed = json!({ "ada": "completed", "bob": "completed", "coordinator": "completed", "cy": "completed" });
    ended.assert_status(0, "completed", &completed);
    let prompts: Vec<String> = world.model.requests().iter().map(ToString::to_string).collect();
    let of = |text: &str| prompts.iter().filter(|prompt| prompt.contains(text)).count();
    assert_eq!(of("Step 1 of 2 is yours"), 1, "{prompts:?}");
    assert!(
        prompts.iter().any(|prompt| prompt.contains("Facilitate a meeting") && prompt.contains("> - Agree on names"))
    );
    let told = |prompt: &&String| prompt.contains("Step 2 of 2 is yours");
    assert_eq!(prompts.iter().filter(told).count(), 2);
    assert!(prompts.iter().filter(told).all(|prompt| prompt.contains("Settled: the field is called `id`.")));
}

#[test]
fn what_the_reviewer_rejects_is_revised_by_somebody_else() {
    let world = World::new(|root| {
        let verdict =
            |approved: bool, reasons: &str| call("squad_verdict", &json!({ "approved": approved, "reasons": reasons }));
        [
            Script::new("Write the final answer", ["say:bob has mended it."]),
            // By what they are asked, before by who they are: the reviewer is asked twice.
            Script::new("This was done by", [shell("echo hashed > login.txt").as_str(), "say:It is hashed."]),
            Script::new("rejected what", [r#"say:{"agents": ["bob"], "reason": "knows it"}"#]),
            Script::new("It is hashed.", [verdict(true, "Good.").as_str(), "say:Approved."]),
            Script::new(
                "Review what your colleagues did",
                [
                    shell("touch review.txt").as_str(),
                    shell("git diff --stat").as_str(),
                    verdict(false, "Passwords are stored in plain text.").as_str(),
                    "say:Rejected.",
                ],
            ),
            plays("ada", &[&create(&root.join("login.txt"), "plain\n"), "say:Did it."]),
        ]
    });
    world.repo.write(
        ".squad/routing.md",
        "# Routing\n\n| Work Type | Route To | Examples |\n|---|---|---|\n| Security | Ada + Cy (review) | login, password |\n",
    );
    world.repo.git(&["add", ".squad"]);
    world.repo.git(&["commit", "--quiet", "--message=routing", "--", ".squad"]);
    let ended = world.run(&[&RUN[..], &["Rework the login password"]].concat());
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(world.repo.read("login.txt"), "hashed\n");
    assert!(!world.repo.exists("review.txt"), "a reviewer changes nothing: {ended}");
    let verdicts: Vec<String> = ended.of("review.verdict").iter().map(|event| event["verdict"].to_string()).collect();
    assert_eq!(verdicts, [r#""rejected""#, r#""approved""#], "{ended}");
    let lockout = ended.only("review.lockout");
    assert_eq!((&lockout["agent"], &lockout["files"]), (&json!("ada"), &json!(["login.txt"])), "{ended}");
    let shown = world.model.requests().iter().any(|request| request.to_string().contains("> +plain"));
    assert!(shown, "the reviewer sees the lines: {ended}");
    let log = world.run(&["log", ended.events()[0]["run"].as_str().expect("a run")]);
    assert!(log.out.contains("✓ completed after 1 rejection in "), "{log}");
    world.assert_left_in_order(&ended);
}
