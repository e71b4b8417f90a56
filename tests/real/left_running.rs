//! Processes that an agent leaves behind.

use serde_json::json;

use crate::support::{World, plays, shell};

#[test]
fn what_an_agent_left_running_is_stopped_at_its_end_and_named() {
    let world = World::new(|_| {
        [
            plays("ada", &[&shell("setsid sleep 7311 > /dev/null 2>&1 & echo started"), "say:It runs."]),
            plays("bob", &[&shell("pgrep -f 'sleep 731[1]' || echo nothing runs"), "say:I looked."]),
        ]
    });
    let ended = world.run(&[
        "orchestrate",
        "--json",
        "--permissions",
        "allow",
        "First @ada starts it, then @bob lists what runs",
    ]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed", "bob": "completed", "coordinator": "completed" }));
    let left: Vec<_> = ended.of("agent.completed").into_iter().map(|event| event["left_running"].clone()).collect();
    assert_eq!(left, [json!(["sleep 7311"]), json!(null), json!(null)], "{ended}");
    let looked = ended.of("tool.completed").pop().expect("bob's call");
    assert!(looked["result"].to_string().contains("nothing runs"), "{ended}");
    assert!(world.ledger("agent.completed").concat().contains("sleep 7311"));

    let ended = world.run(&["orchestrate", "--agent", "ada", "--permissions", "allow", "Again"]);
    assert!(ended.err.contains("left 1 process running, now stopped: sleep 7311"), "{ended}");
}

#[test]
fn a_shell_in_the_background_keeps_nobody_at_work() {
    let background = format!("tool:bash {}", json!({ "command": "sleep 7312", "description": "d", "mode": "async" }));
    let world = World::new(|_| [plays("ada", &[&background, "say:It runs."])]);
    let ended = world.run(&[
        "orchestrate",
        "--json",
        "--agent",
        "ada",
        "--permissions",
        "allow",
        "--timeout",
        "20s",
        "Start it",
    ]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed" }));
    let left = ended.only("agent.completed")["left_running"].to_string();
    assert!(left.contains("sleep 7312"), "{ended}");
}
