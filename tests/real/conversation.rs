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
