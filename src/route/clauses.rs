//! Splits a message at clauses and conjunctions, and tells which parts ask for separate work.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::message::Message;
use super::orders::is_order;
use super::text::Span;

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
    /// It stands in a list after a colon: `export: an endpoint, a button`.
    Listed,
    /// It adds a noun: `and a button for it`.
    Thing,
    /// A conjunction joins it to the part before: `with sound effects`.
    Joined,
    /// It only elaborates on the part before.
    Nothing,
}

/// Items of a list are short.
const WORDS: usize = 9;

pub(super) fn clauses(message: &Message<'_>) -> Vec<Clause> {
    let mut parts = split(message);
    let text = |part: &Part| &message.text[part.spans[0].range.clone()];
    let asks_of = |place: usize| {
        let part = &parts[place];
        let text_of = text(part);
        if is_order(text_of) {
            Asks::Order
        } else if part.is_joined && (is_thing(text_of) || is_like(text_of, text(&parts[place - 1]))) {
            Asks::Thing
        } else if part.is_joined {
            Asks::Joined
        } else {
            Asks::Nothing
        }
    };
    let mut asks: Vec<Asks> = (0..parts.len()).map(asks_of).collect();
    // `A new page, and a test for it` is an order without a verb.
    if asks.first() == Some(&Asks::Nothing) && is_wish(text(&parts[0])) {
        asks[0] = Asks::Order;
    }
    // A part joined to an order is an order too: `model … and describe …`.
    for place in 1..parts.len() {
        let begins = place == 1 || parts[place - 1].sentence() != parts[place - 2].sentence();
        let is_alike = parts[place].is_joined && parts[place].sentence() == parts[place - 1].sentence();
        if asks[place] == Asks::Order && begins && is_alike && parts[place].stays_in_clause {
            asks[place - 1] = Asks::Order;
        }
    }
    if let Some(list) = list(message, &parts).filter(|list| !asks[list.clone()].contains(&Asks::Order)) {
        asks[..list.start].fill(Asks::Nothing);
        asks[list].fill(Asks::Listed);
    }
    parts.drain(..).zip(asks).map(|(part, asks)| Clause { spans: part.spans, asks }).collect()
}

struct Part {
    spans: Vec<Span>,
    /// A conjunction joins it to a part before.
    is_joined: bool,
    /// It is in the same clause as that part.
    stays_in_clause: bool,
}

impl Part {
    fn sentence(&self) -> usize {
        self.spans[0].sentence
    }
}

/// The parts from a colon to the end of the sentence, if they form a list.
fn list(message: &Message<'_>, parts: &[Part]) -> Option<Range<usize>> {
    let is_after_colon = |place: usize| {
        let (before, after) = (parts[place - 1].spans.last()?, parts[place].spans.first()?);
        (before.sentence == after.sentence && message.text.get(before.range.end..after.range.start)?.contains(':'))
            .then_some(place)
    };
    let start = (1..parts.len()).find_map(is_after_colon)?;
    let sentence = parts[start].sentence();
    let end = start + parts[start..].iter().take_while(|part| part.sentence() == sentence).count();
    let words = |part: &Part| -> usize {
        part.spans.iter().map(|span| message.text[span.range.clone()].split_whitespace().count()).sum()
    };
    (end - start > 1 && parts[start..end].iter().all(|part| words(part) <= WORDS)).then_some(start..end)
}

/// Whether a part begins with a preposition that the part before contains: `to the app and to the site`.
fn is_like(part: &str, before: &str) -> bool {
    const PREPOSITIONS: [&str; 8] = ["to", "for", "in", "on", "from", "of", "by", "at"];
    let first = part.split_whitespace().next().unwrap_or_default();
    PREPOSITIONS.contains(&first) && before.split_whitespace().any(|word| word == first)
}

/// Whether a text is a request without a verb: `a new endpoint`.
fn is_wish(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    ["a", "an", "new", "another", "more"].iter().any(|word| word.eq_ignore_ascii_case(first))
}

/// Whether a part begins with an article or another determiner.
fn is_thing(part: &str) -> bool {
    const ARTICLES: [&str; 22] = [
        "a", "an", "the", "new", "another", "some", "one", "two", "three", "its", "their", "ein", "eine", "einen",
        "un", "una", "une", "um", "uma", "le", "la", "el",
    ];
    let is_joint = |word: &&str| ["and", "plus", "with", "also"].iter().any(|joint| joint.eq_ignore_ascii_case(word));
    let first = part.split_whitespace().find(|word| !is_joint(word));
    first.is_some_and(|first| ARTICLES.iter().any(|article| article.eq_ignore_ascii_case(first)))
}

fn split(message: &Message<'_>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut clause = usize::MAX;
    for span in message.spans.iter().filter(|span| span.weight > 0.3) {
        let text = &message.text[span.range.clone()];
        for (place, range) in pieces(text, span.range.start).into_iter().enumerate() {
            let piece = Span { range, ..span.clone() };
            // The first part is never joined, whatever its first word.
            let begins_joined = !parts.is_empty()
                && ["and ", "plus ", "with ", "then "]
                    .iter()
                    .any(|joint| message.text[piece.range.clone()].starts_with(joint));
            match parts.last_mut() {
                Some(part) if place == 0 && span.clause == clause => part.spans.push(piece),
                _ => parts.push(Part {
                    spans: vec![piece],
                    is_joined: place > 0 || begins_joined,
                    stays_in_clause: place > 0,
                }),
            }
        }
        clause = span.clause;
    }
    parts
}

/// Conjunctions, with spaces around them in scripts that have spaces.
static JOINT: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let words =
        [" and ", " plus ", " with ", " then ", " as well as ", " und ", " y ", " et ", " e ", "和", "并", "、"];
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
