//! A run is shown as it is recorded: without secrets and addresses. What squad prints may be kept as well, by whoever
//! runs it in CI or pipes it into a file, so screen, NDJSON and ledger hold the same text.

use std::collections::BTreeMap;

use crate::model::{Actor, EntryId, Event, Slug, What};
use crate::policy::Redactor;
use crate::pool::Show;
use crate::record::Entry;

/// Redacts what another one shows.
pub(crate) struct Cautious<S> {
    show: S,
    redactor: Redactor,
    /// What agents are saying and what is not shown yet.
    saying: BTreeMap<Slug, Saying>,
}

impl<S: Show> Cautious<S> {
    pub(crate) fn new(show: S, redactor: Redactor) -> Self {
        Self { show, redactor, saying: BTreeMap::new() }
    }

    pub(crate) fn into_inner(self) -> S {
        self.show
    }

    fn clean(&mut self, event: &Event) -> What {
        if let (Some(agent), What::MessageDelta { text }) = (&event.agent, &event.what) {
            let text = self.saying.entry(agent.clone()).or_default().more(text, &self.redactor);
            return What::MessageDelta { text };
        }
        if let Some(agent) = &event.agent {
            // The whole message has come, or none will.
            self.saying.remove(agent);
        }
        let entry = Entry::new(EntryId::unrecorded(), event.at, Actor::Squad, &event.what, &self.redactor);
        // Every kind of event reads back; if one did not, its number must still come.
        entry.what().unwrap_or(What::MessageDelta { text: String::new() })
    }
}

impl<S: Show> Show for Cautious<S> {
    fn show(&mut self, event: &Event) {
        let what = self.clean(event);
        self.show.show(&Event { what, ..event.clone() });
    }
}

/// A message in pieces. A secret may come in several, so a piece is shown when nothing of it can belong to one: at the
/// end of a word, or of a line in which something looks like the beginning of a secret, or of a private key.
#[derive(Default)]
struct Saying {
    held: String,
}

impl Saying {
    /// What can be shown now.
    fn more(&mut self, piece: &str, redactor: &Redactor) -> String {
        self.held.push_str(piece);
        let mut shown = String::new();
        if let Some(end) = self.held.rfind('\n').filter(|end| !is_open_key(&self.held[..*end])) {
            let rest = self.held.split_off(end + 1);
            shown = redactor.text(&std::mem::replace(&mut self.held, rest), &mut Vec::new());
        }
        if !redactor.is_suspect(&self.held)
            && let Some(end) = self.held.rfind(char::is_whitespace)
        {
            let next = end + self.held[end..].chars().next().map_or(0, char::len_utf8);
            let rest = self.held.split_off(next);
            shown.push_str(&std::mem::replace(&mut self.held, rest));
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

    fn said(pieces: &[&str]) -> Vec<String> {
        let redactor = Redactor::new(["blue whale seven".to_owned()]);
        let mut saying = Saying::default();
        pieces.iter().map(|piece| saying.more(piece, &redactor)).collect()
    }

    #[test]
    fn plain_words_come_as_they_are_said() {
        assert_eq!(said(&["I am ", "wri", "ting a te", "st.\n", "More"]), ["I am ", "", "writing a ", "test.\n", ""]);
    }

    #[test]
    fn a_secret_in_pieces_is_not_shown() {
        assert_eq!(
            said(&["the pass", "word: hun", "ter2 ", "is old\nnext "]),
            ["the ", "", "", "password: [redacted:password] is old\nnext "]
        );
        assert_eq!(said(&["a blue ", "whale ", "seven\n"]).concat(), "a [redacted:known-secret]\n");
        let token = format!("ghp_{}", "a1B2".repeat(9));
        assert_eq!(said(&["is ", &token[..9], &token[9..], " ok\n"]).concat(), "is [redacted:github-token] ok\n");
        let key = format!("x\n-----BEGIN {0}-----\nMIIE\nabcd\n-----END {0}-----\ny\n", "PRIVATE KEY");
        let pieces: Vec<&str> = key.split_inclusive('\n').collect();
        assert_eq!(said(&pieces).concat(), "x\n[redacted:private-key]\ny\n");
    }
}
