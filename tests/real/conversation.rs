//! A conversation with the real CLI: what was said before is known, and a charter that changes is followed.

use serde_json::{Value, json};

use crate::support::{World, plays, shell};
use crate::terminal::Person;

#[test]
fn a_session_remembers_what_was_said_and_colleagues_are_told() {
    let world = World::new(|_| [plays("ada", &["say:The pier is red."]), plays("bob", &["say:Tested."])]);
    let mut person = Person::sits_down();
    let mut command = world.repo.command(env!("CARGO_BIN_EXE_squad"), &world.repo.root());
    command.args(["orchestrate", "--permissions", "allow"]).env("TERM", "xterm");
    let mut child = person.starts(command);
    person.waits_for("squad> ");
    for (number, message) in
        ["@ada paint the pier\r", "@ada and the lighthouse\r", "@bob check both\r"].into_iter().enumerate()
    {
        person.types(message);
        person.waits_for_times("; run ", number + 1);
    }
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    let lighthouse = world.requests_with("and the lighthouse");
    let remembered =
        lighthouse.iter().any(|request| request.contains("paint the pier") && request.contains("assistant"));
    assert!(remembered, "ada's session goes on: {lighthouse:?}");
    let bobs = world.requests_with("check both");
    assert!(bobs.iter().any(|request| request.contains("Earlier in this conversation")), "bob is told: {bobs:?}");
    world.settle();
}

/// Twelve messages, and in between a decision is made and one is withdrawn by others.
#[test]
fn each_decision_is_told_once_in_a_conversation() {
    let world = World::new(|_| [plays("ada", &["say:It is so."]), plays("bob", &["say:Tested."])]);
    let mut person = Person::sits_down();
    let mut command = world.repo.command(env!("CARGO_BIN_EXE_squad"), &world.repo.root());
    command.args(["orchestrate", "--permissions", "allow"]).env("TERM", "xterm");
    let mut child = person.starts(command);
    person.waits_for("squad> ");
    for number in 1..=12 {
        match number {
            5 => assert_eq!(world.repo.squad(&["decisions", "add", "Lengths are metres"]).code, 0),
            9 => {
                let file = world.repo.git(&["ls-files", ".squad/decisions"]);
                let file = file.lines().find(|path| path.ends_with("0000000000a2.md")).expect("its file");
                world.repo.git(&["rm", "--quiet", file]);
                world.repo.git(&["commit", "--quiet", "--message=withdrawn"]);
            }
            _ => {}
        }
        let to = if number == 7 { "bob" } else { "ada" };
        person.types(&format!("@{to} look at pier number {number}\r"));
        person.waits_for_times("; run ", number);
    }
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    let last = world.requests_with("look at pier number 12").pop().expect("the model is told");
    let last: Value = serde_json::from_str(&last).expect("JSON");
    let all = last["messages"].to_string();
    let count = |text: &str| all.matches(text).count();
    assert_eq!(count("@ada look at pier number"), 11, "{all}");
    assert_eq!(count("Lengths are metres"), 1, "{all}");
    // Once as it was in force, and once as it was not.
    assert_eq!((count("Times are UTC"), count("No longer in force")), (2, 1), "{all}");
    // The turn of another is told, and its own are not told again.
    assert_eq!((count("Earlier in this conversation"), count("@bob look at pier number 7")), (1, 1), "{all}");
    assert_eq!((count("Sandbox: "), count("Permissions: ")), (1, 1), "what holds for the run is said once");
    // What the withdrawn one had superseded is in force again. Both have their receipts.
    assert_eq!((count("Times are local"), world.ledger("decision.delivered").len()), (1, 2), "{all}");
    world.settle();
}

/// The line reaches the model before its next call, as a message of the user's.
#[test]
fn an_agent_at_work_is_told_what_is_typed() {
    // The CLI puts the command that runs into the background, and the script begins anew with the user's message.
    let says = "say:The pier is green.";
    let world = World::new(|_| [plays("ada", &[&shell("touch begun; sleep 3"), says, says, says])]);
    let mut person = Person::sits_down();
    let mut command = world.repo.command(env!("CARGO_BIN_EXE_squad"), &world.repo.root());
    command.args(["orchestrate", "--permissions", "allow"]).env("TERM", "xterm");
    let mut child = person.starts(command);
    person.waits_for("squad> ");
    person.types("@ada paint the pier\r");
    person.waits_for("$ touch begun");
    person.types("@ada in green, not in red\r");
    person.waits_for("is told by you: in green");
    person.waits_for("The pier is green.");
    person.waits_for("; run ");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    let requests = world.requests_with("in green, not in red");
    let first: Value = serde_json::from_str(requests.first().expect("the model is told")).expect("JSON");
    let last = first["messages"].as_array().and_then(|messages| messages.last()).expect("a message");
    assert_eq!((&last["role"], &last["content"]), (&json!("user"), &json!("in green, not in red")));
    world.settle();
}
