//! The user's messages to working agents, with a scripted engine.

use std::time::Duration;

use super::UserMessages;
use super::workers_tests::{MINUTES, job, slug, workers};
use crate::model::{End, EntryId, Event, EventKind, Outcome, RunId};

const LISTENS: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ wait = \"2s\" }, { listen = true }]\n";
const TWO: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ wait = \"2s\" }, { say = \"First.\" }]\n\
    [[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Second.\" }]\n";

#[tokio::test(start_paused = true)]
async fn a_message_reaches_only_its_agent_before_the_turn_ends() {
    let (workers, _messages) = workers(LISTENS, 1, MINUTES);
    let said = workers.requests.user_messages.clone();
    assert!(!said.say(&slug("ada"), "too early", false), "it has not begun");
    let says = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(said.say(&slug("ada"), "without the cache", false));
        assert!(!said.say(&slug("bob"), "nobody", false));
    };
    let (work, ()) = tokio::join!(workers.work(job("ada")), says);
    assert_eq!((work.outcome, work.text.as_str()), (Outcome::Completed, "I was told: without the cache"));
    assert!(!said.say(&slug("ada"), "too late", false), "it is done");
}

/// A message sent as a turn ends belongs to the next turn; no accepted message is lost.
#[tokio::test(start_paused = true)]
async fn a_message_after_the_end_of_a_turn_starts_another_turn() {
    let (workers, _messages) = workers(TWO, 1, MINUTES);
    let said = workers.requests.user_messages.clone();
    let says = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        said.put_back(&slug("ada"), ["and the tests".to_owned()]);
    };
    let (work, ()) = tokio::join!(workers.work(job("ada")), says);
    assert_eq!((work.outcome, work.text.as_str(), work.usage.turns), (Outcome::Completed, "Second.", 2));
}

/// Each of three × heard in one turn or put back.
#[tokio::test(start_paused = true)]
async fn messages_are_heard_in_their_order() {
    for (heard, last) in [(1, "one"), (2, "two"), (3, "three")] {
        let listens = "{ listen = true }, ".repeat(heard);
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ wait = \"2s\" }}, {listens}]\n");
        let (workers, _messages) = workers(&script, 1, MINUTES);
        let said = workers.requests.user_messages.clone();
        let says = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(["one", "two", "three"].iter().all(|text| said.say(&slug("ada"), text, false)));
        };
        let (work, ()) = tokio::join!(workers.work(job("ada")), says);
        assert_eq!((work.outcome, work.text), (Outcome::Completed, format!("I was told: {last}")));
    }
    let messages = UserMessages::default();
    messages.say(&slug("ada"), "three", true);
    messages.say(&slug("bob"), "another's", true);
    messages.put_back(&slug("ada"), ["one", "two"].map(str::to_owned));
    assert_eq!(messages.take(&slug("ada")), ["one", "two", "three"]);
    assert_eq!(messages.take(&slug("bob")), ["another's"]);
}

#[test]
fn a_resumed_run_knows_messages_to_unfinished_agents() {
    let said = |agent: &str, text: &str| (agent.to_owned(), EventKind::UserMessage { text: text.to_owned() });
    let told = [said("ada", "one"), said("bob", "two"), said("ada", "three")];
    let done = ("bob".to_owned(), EventKind::of_end(Outcome::Completed, End::default()));
    let events: Vec<Event> = (1..).zip(told.into_iter().chain([done])).map(event).collect();
    let messages = UserMessages::with_past(&events);
    assert_eq!(messages.take_past(&slug("ada")), ["one", "three"]);
    assert_eq!(messages.take_past(&slug("bob")), [""; 0]);
}

fn event((seq, (agent, kind)): (u64, (String, EventKind))) -> Event {
    let (at, position, causes) = Default::default();
    Event { seq, at, run: RunId::new("r"), agent: Some(slug(&agent)), kind, id: EntryId::new("e"), position, causes }
}
