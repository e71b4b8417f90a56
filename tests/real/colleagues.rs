//! What agents on the real CLI hand and tell each other.

use serde_json::{Value, json};

use crate::model_server::Script;
use crate::support::{COORDINATOR, World, call, creed, decide, plays, shell};

fn tools_of(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

#[test]
fn a_colleague_is_handed_work_and_its_report_is_the_answer() {
    let world = World::new(|_| {
        let route = call("squad_route", &json!({ "agent": "bob", "task": "Cover the parser" }));
        let unknown = call("squad_route", &json!({ "agent": "zed", "task": "Anything" }));
        let status = call("squad_status", &json!({}));
        [
            plays("ada", &[&route, &unknown, &status, "say:It is covered."]),
            plays("bob", &[&shell("echo test > bob.txt"), "say:Seven cases are covered."]),
        ]
    });
    let ended = world.run(&[
        "orchestrate",
        "--json",
        "--permissions",
        "allow",
        "--max-concurrent",
        "1",
        "-a",
        "ada",
        "Build it",
    ]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed", "bob": "completed" }));
    let requested = ended.only("route.requested");
    assert_eq!(
        (&requested["agent"], &requested["to"], &requested["text"]),
        (&json!("ada"), &json!("bob"), &json!("Cover the parser"))
    );
    let created = ended.of("session.created").into_iter().find(|event| event["agent"] == "bob").expect("a session");
    assert_eq!(created["causes"], json!([requested["entry"]]), "{ended}");
    let told = world.requests_with("Report of `bob`:");
    assert!(
        !told.is_empty() && told[0].contains("Seven cases are covered.") && told[0].contains(creed("ada")),
        "{told:#?}"
    );
    for text in ["`zed` cannot be given work; these colleagues can: bob and cy", "- `bob`: completed"] {
        assert!(!world.requests_with(text).is_empty(), "{text}: {ended}");
    }
    let first = &world.model.requests()[0];
    assert!(["squad_route", "squad_status"].iter().all(|tool| tools_of(first).contains(tool)), "{:?}", tools_of(first));
    let handed = world.requests_with("`ada` hands you this");
    assert!(handed[0].contains(creed("bob")) && handed[0].contains("Build it"), "{handed:#?}");
    let work = &ended.only("run.completed")["work"];
    assert_eq!((&work[0]["agent"], &work[1]["agent"]), (&json!("ada"), &json!("bob")), "{ended}");
    assert_eq!(work[1]["changed"][0]["path"], "bob.txt", "{ended}");
    world.assert_left_in_order(&ended);
}

/// Bob is at work when ada hands it more: that is its next message, and it knows the first.
#[test]
fn work_for_who_is_at_work_is_its_next_message() {
    let world = World::new(|_| {
        let route = call("squad_route", &json!({ "agent": "bob", "task": "Cover the parser" }));
        [
            plays("ada", &[&route, "say:It is covered."]),
            plays("bob", &["sleep:2 say:The tests are there."]),
            Script::new(COORDINATOR, ["say:Both are done."]),
        ]
    });
    let ended = world.run(&["orchestrate", "--json", "-a", "ada", "-a", "bob", "Build it"]);
    let agents = json!({ "ada": "completed", "bob": "completed", "coordinator": "completed" });
    ended.assert_status(0, "completed", &agents);
    assert_eq!(ended.only("session.resumed")["agent"], "bob", "{ended}");
    let handed = world.requests_with("`ada` hands you this");
    assert!(handed.len() == 1 && handed[0].contains("The tests are there."), "{handed:#?}\n{ended}");
    let of_bob = ended.of("agent.completed").into_iter().filter(|event| event["agent"] == "bob").count();
    assert_eq!((of_bob, ended.only("run.completed")["work"].as_array().map(Vec::len)), (2, Some(4)), "{ended}");
    world.assert_left_in_order(&ended);
}

/// Bob's command runs while ada decides; the model hears of it in bob's next call.
#[test]
fn a_decision_reaches_a_colleague_at_work_before_its_next_model_call() {
    let world = World::new(|_| {
        [
            plays("ada", &[&decide("Errors are JSON"), "say:The endpoint is there."]),
            plays("bob", &[&shell("sleep 2"), "say:The tests are there."]),
            Script::new(COORDINATOR, ["say:Both are done."]),
        ]
    });
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "-a", "ada", "-a", "bob", "Build it"]);
    let agents = json!({ "ada": "completed", "bob": "completed", "coordinator": "completed" });
    ended.assert_status(0, "completed", &agents);
    let (logged, delivered) = (ended.only("decision.logged"), ended.only("decision.delivered"));
    assert_eq!((&delivered["agent"], &delivered["decisions"]), (&json!("bob"), &json!([logged["id"]])), "{ended}");
    assert_eq!(delivered["causes"], json!([logged["entry"]]), "{ended}");
    let calls = world.requests_with(creed("bob"));
    let told: Vec<bool> = calls.iter().map(|call| call.contains("Errors are JSON")).collect();
    assert!(told.len() > 1 && !told[0] && told[1..].iter().all(|told| *told), "{told:?}\n{ended}");
    assert!(calls[1].contains("<system_notification>") && calls[1].contains("`ada` decided this"), "{}", calls[1]);
    world.assert_left_in_order(&ended);
}
