//! Splits a message at clauses and conjunctions, and tells which parts ask for separate work.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::message::Message;
use super::orders::is_order;
use super::text::Span;
use crate::model::List;

/// A part of a message.
pub(super) struct Clause {
    pub(super) spans: Vec<Span>,
    pub(super) asks: Asks,
}

/// What a part asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// It is an order: `add …`, `then test it`.
    Order,
    /// A conjunction joins it to the part before: `with unit tests`.
    Joined,
    /// It only elaborates on the part before.
    Nothing,
}

pub(super) fn clauses(message: &Message<'_>) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    let mut number = usize::MAX;
    for span in message.spans.iter().filter(|span| span.weight > 0.3) {
        let pieces = pieces(&message.text[span.range.clone()], span.range.start);
        for (place, range) in pieces.into_iter().enumerate() {
            let text = &message.text[range.clone()];
            let piece = Span { range, ..span.clone() };
            // The first part is never joined, whatever its first word.
            let is_joined = place > 0 || (!clauses.is_empty() && List::Joins.begins(text).is_some());
            let asks = match is_order(text) {
                true => Asks::Order,
                false if is_joined => Asks::Joined,
                false => Asks::Nothing,
            };
            match clauses.last_mut() {
                Some(clause) if place == 0 && span.clause == number => clause.spans.push(piece),
                _ => clauses.push(Clause { spans: vec![piece], asks }),
            }
        }
        number = span.clause;
    }
    clauses
}

/// Conjunctions, with spaces around them in scripts that have spaces.
static JOINT: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let words = List::Joint.entries().iter().map(|word| match word.is_ascii() {
        true => format!(" {word} "),
        false => (*word).to_owned(),
    });
    AhoCorasick::new(words).expect("the words are few")
});

fn pieces(text: &str, start: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for joint in JOINT.find_iter(text) {
        pieces.push(start + from..start + joint.start());
        from = joint.end();
    }
    pieces.push(start + from..start + text.len());
    pieces
}
