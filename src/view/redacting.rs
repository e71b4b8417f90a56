//! Redacts secrets and addresses from a run's output, as in its records. Output may be kept too, in CI or in a file, so
//! screen, NDJSON and ledger hold the same text.

use std::collections::BTreeMap;

use crate::model::{Actor, EntryId, Event, EventKind, Slug};
use crate::policy::Redactor;
use crate::pool::Show;
use crate::record::Entry;

/// Redacts the events that another view shows.
pub(crate) struct Redacting {
    show: Box<dyn Show + Send>,
    redactor: Redactor,
    /// Agents' messages in progress, with text not shown yet.
    partial: BTreeMap<Slug, PartialMessage>,
}

impl Redacting {
    pub(crate) fn new(show: Box<dyn Show + Send>, redactor: Redactor) -> Self {
        Self { show, redactor, partial: BTreeMap::new() }
    }

    fn clean(&mut self, event: &Event) -> EventKind {
        if let (Some(agent), EventKind::MessageDelta { text }) = (&event.agent, &event.kind) {
            let text = self.partial.entry(agent.clone()).or_default().push(text, &self.redactor);
            return EventKind::MessageDelta { text };
        }
        if let Some(agent) = &event.agent {
            // The message is complete or will never be.
            self.partial.remove(agent);
        }
        let mut entry = Entry::new(EntryId::unrecorded(), event.at, Actor::Squad, &event.kind, &self.redactor);
        // Every kind of event can be read back. If one could not, its number must still be shown.
        entry.take_understood().ok().flatten().unwrap_or(EventKind::MessageDelta { text: String::new() })
    }
}

impl Show for Redacting {
    fn show(&mut self, event: &Event) {
        #[cfg(all(feature = "bench", unix))]
        let _cost = super::costs::Cost::of(event);
        let kind = self.clean(event);
        let Event { run, agent, id, causes, .. } = event;
        let (run, agent, id, causes) = (run.clone(), agent.clone(), id.clone(), causes.clone());
        let Event { seq, at, position, .. } = *event;
        self.show.show(&Event { seq, at, run, agent, kind, id, position, causes });
    }
}

/// A message that arrives in pieces. A secret may be split, so text is shown only once it cannot be part of one: up to
/// the end of a word, or up to the end of a line if the line looks like the start of a secret. A private key is held
/// back to its end.
#[derive(Default)]
struct PartialMessage {
    pending: String,
}

impl PartialMessage {
    /// Adds a piece and returns the text that can be shown now.
    fn push(&mut self, piece: &str, redactor: &Redactor) -> String {
        self.pending.push_str(piece);
        let mut shown = String::new();
        if let Some(end) = self.pending.rfind('\n').filter(|end| !is_open_key(&self.pending[..*end])) {
            let rest = self.pending.split_off(end + 1);
            shown = redactor.text(&std::mem::replace(&mut self.pending, rest), &mut Vec::new());
        }
        if !redactor.is_suspect(&self.pending)
            && let Some(end) = self.pending.rfind(char::is_whitespace)
        {
            let next = end + self.pending[end..].chars().next().map_or(0, char::len_utf8);
            let rest = self.pending.split_off(next);
            shown.push_str(&std::mem::replace(&mut self.pending, rest));
        }
        shown
    }
}

fn is_open_key(text: &str) -> bool {
    text.rfind("-----BEGIN ").is_some_and(|begin| !text[begin..].contains("-----END "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Position, RunId};

    fn shown_pieces(pieces: &[&str]) -> Vec<String> {
        let redactor = Redactor::new(["blue whale seven".to_owned()]);
        let mut partial = PartialMessage::default();
        pieces.iter().map(|piece| partial.push(piece, &redactor)).collect()
    }

    #[test]
    fn plain_words_are_shown_at_once() {
        assert_eq!(
            shown_pieces(&["I am ", "wri", "ting a te", "st.\n", "More"]),
            ["I am ", "", "writing a ", "test.\n", ""]
        );
    }

    #[test]
    fn a_secret_in_pieces_is_not_shown() {
        assert_eq!(
            shown_pieces(&["the pass", "word: hun", "ter2 ", "is old\nnext "]),
            ["the ", "", "", "password: [redacted:password] is old\nnext "]
        );
        assert_eq!(shown_pieces(&["a blue ", "whale ", "seven\n"]).concat(), "a [redacted:known-secret]\n");
        let token = format!("ghp_{}", "a1B2".repeat(9));
        assert_eq!(
            shown_pieces(&["is ", &token[..9], &token[9..], " ok\n"]).concat(),
            "is [redacted:github-token] ok\n"
        );
        let key = format!("x\n-----BEGIN {0}-----\nMIIE\nabcd\n-----END {0}-----\ny\n", "PRIVATE KEY");
        let pieces: Vec<&str> = key.split_inclusive('\n').collect();
        assert_eq!(shown_pieces(&pieces).concat(), "x\n[redacted:private-key]\ny\n");
    }

    /// What an agent's message holds back × its own next event, another agent's and the run's.
    #[test]
    fn what_is_held_back_waits_for_its_own_agent() {
        #[derive(Clone, Default)]
        struct Seen(std::sync::Arc<parking_lot::Mutex<String>>);
        impl Show for Seen {
            fn show(&mut self, event: &Event) {
                if let EventKind::MessageDelta { text } = &event.kind {
                    self.0.lock().push_str(text);
                }
            }
        }
        let say = |text: &str| EventKind::MessageDelta { text: text.to_owned() };
        let ends = EventKind::Message { text: "It is done.".to_owned() };
        for (agent, kind, shown) in [
            (None, ends.clone(), "the works end"),
            (Some("bob"), ends.clone(), "the works end"),
            (Some("bob"), say("I "), "the I works end"),
            (Some("ada"), ends, "the ks end"),
        ] {
            let seen = Seen::default();
            let mut view = Redacting::new(Box::new(seen.clone()), Redactor::default());
            let event = |agent: Option<&str>, kind| Event {
                seq: 1,
                at: jiff::Timestamp::UNIX_EPOCH,
                run: RunId::parse("20260101-000000-abcdef").expect("an id"),
                agent: agent.and_then(Slug::fold),
                kind,
                id: EntryId::unrecorded(),
                position: Position::default(),
                causes: Vec::new(),
            };
            view.show(&event(Some("ada"), say("the wor")));
            view.show(&event(agent, kind));
            view.show(&event(Some("ada"), say("ks en")));
            view.show(&event(Some("ada"), say("d\n")));
            assert_eq!(seen.0.lock().trim_end(), shown, "{agent:?}");
        }
    }
}
