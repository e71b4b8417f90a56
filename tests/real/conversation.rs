//! A conversation with the real CLI: what was said before is known, and a charter that changes is followed.

use crate::support::{World, plays};
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
        person.waits_for_times("details: squad log", number + 1);
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
