//! Rules for showing every kind of event. The tests of `pool` cover how each is kept, those of `record` how it is
//! written.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::{Lines, Redacting, Watched};
use crate::env::{Clock, Ids, Streams};
use crate::model::samples::every_kind;
use crate::model::{EntryId, Event, EventKind, Keeping, Position, RunId, Slug};
use crate::policy::Redactor;
use crate::pool::{Dispatcher, Journal, Reports, Show};
use crate::ui::{OutputOptions, Ui};

fn event(kind: EventKind) -> Event {
    Event {
        seq: 1,
        at: "2026-01-05T09:00:00Z".parse().expect("a time stamp"),
        run: RunId::new("20260105-090000-000001"),
        agent: Slug::fold("tester"),
        kind,
        id: EntryId::new("i"),
        position: Position::default(),
        causes: Vec::new(),
    }
}

/// The JSON pointers of all texts in a value.
fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| texts(item, &format!("{at}/{index}"), found));
        }
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            texts(item, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Inserts a secret into each text that accepts it, and counts those. Names and ids that no longer parse with it are
/// left alone.
pub(super) fn planted(kind: &EventKind, secret: &str) -> (EventKind, usize) {
    let mut value = serde_json::to_value(kind).expect("events are JSON");
    let mut places = Vec::new();
    texts(&value, "", &mut places);
    let mut count = 0;
    for place in places.iter().filter(|place| *place != "/type") {
        let text = value.pointer_mut(place).expect("it is there");
        let before = std::mem::replace(text, Value::from(format!("a {secret} b ")));
        match serde_json::from_value::<EventKind>(value.clone()) {
            Ok(_) => count += 1,
            Err(_) => *value.pointer_mut(place).expect("it is there") = before,
        }
    }
    (serde_json::from_value(value).expect("each was tried"), count)
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl Show for Seen {
    fn show(&mut self, event: &Event) {
        self.0.lock().push(serde_json::to_string(event).expect("events are JSON"));
    }
}

/// Secrets by pattern, and known secrets, one of which contains the other.
#[test]
fn nothing_of_any_kind_shows_a_secret() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let known = ["correct horse".to_owned(), "correct horse battery".to_owned()];
    let redactor = Redactor::new(known.clone());
    let mut planted_in = 0;
    for kind in every_kind() {
        for secret in [&token, &known[1]] {
            let (with_secret, count) = planted(&kind, secret);
            let seen = Seen::default();
            Redacting::new(Box::new(seen.clone()), redactor.clone()).show(&event(with_secret));
            let shown = seen.all().concat();
            assert_eq!(seen.all().len(), 1, "its number comes: {kind:?}");
            assert!(!shown.contains(secret.as_str()) && !shown.contains("battery"), "{shown}");
            // A piece of a message waits until it cannot be part of a secret.
            let is_piece = matches!(kind, EventKind::MessageDelta { .. });
            assert_eq!(shown.contains("[redacted:"), count > 0 && !is_piece, "{shown}");
            planted_in += usize::from(count > 0);
        }
    }
    assert!(planted_in > 50, "{planted_in}");
}

/// Begins a title, clears the screen, goes back in the line: as a model or a file may have it.
pub(super) const ESCAPES: &str = "\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}1A\r\u{8}";

/// What of a text a terminal would take for a command.
pub(super) fn commands(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t')).collect()
}

/// What is shown on a terminal that has no colours, so that every escape sequence is somebody else's.
#[derive(Clone, Default)]
struct Terminal(Arc<Mutex<Vec<u8>>>);

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Terminal {
    fn ui(&self, is_animated: bool, verbose: bool) -> Ui {
        let (out, err) = (Box::new(self.clone()), Box::new(self.clone()));
        let streams = Streams { out, err, err_is_terminal: is_animated, ..Streams::silent() };
        Ui::new(streams, OutputOptions { colorless: true, verbose, ..OutputOptions::default() })
    }
}

/// Every kind × a run and a watch × animated and plain × brief and verbose × an agent's and the run's.
#[test]
fn no_kind_lets_an_escape_sequence_through() {
    let first: Vec<EventKind> =
        every_kind().into_iter().filter(|kind| matches!(kind, EventKind::SessionCreated { .. })).collect();
    let mut shown = 0;
    for kind in every_kind() {
        let (planted, _) = planted(&kind, ESCAPES);
        for (is_animated, verbose, agent) in
            (0..8).map(|bits| (bits & 1 > 0, bits & 2 > 0, (bits & 4 > 0).then(|| Slug::fold("tester")).flatten()))
        {
            let terminal = Terminal::default();
            let mut lines = Lines::new(terminal.ui(is_animated, verbose));
            let events =
                first.iter().map(|kind| event(kind.clone())).chain([Event { agent, ..event(planted.clone()) }]);
            let events: Vec<Event> = events.collect();
            events.iter().for_each(|event| lines.show(event));
            let animated = lines.animated();
            lines.show(&event(EventKind::MessageDelta { text: "more".to_owned() }));
            let screen = Mutex::new(terminal.ui(is_animated, verbose));
            let mut watched = Watched::new(&screen, false);
            events.iter().for_each(|event| watched.show(event));
            let text = String::from_utf8(terminal.0.lock().clone()).expect("UTF-8");
            assert_eq!(commands(&text), [' '; 0], "{kind:?}: {text:?}");
            for text in animated {
                assert_eq!(commands(&text), [' '; 0], "animated: {kind:?}: {text:?}");
                assert!(!text.contains('\n'), "{text:?}");
                shown += usize::from(text.contains("U+001B"));
            }
            shown += usize::from(text.contains("U+001B"));
        }
    }
    assert!(shown > 150, "{shown}");
}

/// A journal that fails, as on a full disk.
struct Full;

impl Journal for Full {
    async fn write(&mut self, _: &[Event]) -> Result<(), String> {
        Err("the disk is full".to_owned())
    }
}

/// All other events are shown even if they could not be written; the run reports that at its end.
#[tokio::test(start_paused = true)]
async fn decisions_and_lessons_are_not_shown_if_their_write_failed() {
    for kind in every_kind() {
        let seen = Seen::default();
        let (reports, messages) = Reports::channel();
        let dispatcher = Dispatcher {
            run: RunId::new("r"),
            past: Vec::new(),
            clock: Clock::Stepping { start: jiff::Timestamp::UNIX_EPOCH, looks: Arc::default() },
            ids: Ids::Counting(Arc::default()),
            journal: Full,
            show: Box::new(seen.clone()),
            sessions: Arc::default(),
        };
        let serving = tokio::spawn(dispatcher.serve(messages));
        let is_promise = matches!(kind, EventKind::DecisionLogged { .. } | EventKind::MemoryLogged { .. });
        reports.tell(None, kind);
        reports.finish();
        drop(serving.await.expect("no panic"));
        assert_eq!(seen.all().is_empty(), is_promise, "{:?}", seen.all());
    }
}

/// All other events are in the ledger, and so in `squad log`. The team itself is in the repository.
#[test]
fn only_events_covered_by_other_entries_are_not_kept() {
    let passing: Vec<&str> =
        every_kind().iter().filter(|kind| kind.keeping() == Keeping::Never).map(EventKind::name).collect();
    let of_work = ["agent.message_delta"];
    // Events of a watch. Questions are recorded with the permission or tool they were for.
    let of_a_watch = ["team.changed", "charter.changed", "connection.changed", "session.spawning"];
    let of_waits = ["question.asked", "question.answered", "quota.waiting", "quota.waited", "clone.preparing"];
    assert_eq!(passing, [&of_work[..], &of_a_watch, &of_waits].concat());
}
