//! A message's clauses, and what conjunctions part in them: which of them ask for work of their own.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::message::Message;
use super::orders::is_order;
use super::text::Stretch;

/// A part of a message.
pub(super) struct Clause {
    pub(super) stretches: Vec<Stretch>,
    pub(super) asks: Asks,
}

/// How a part stands to what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// It is an order: `add …`, `then test it`.
    Order,
    /// It stands in a list after a colon: `export: an endpoint, a button`.
    Listed,
    /// It names one more thing: `and a button for it`.
    Thing,
    /// A conjunction joins it to what stands before: `with sound effects`.
    Joined,
    /// It says more of what stands before.
    Nothing,
}

/// What is listed is named shortly.
const WORDS: usize = 9;

pub(super) fn clauses(message: &Message<'_>) -> Vec<Clause> {
    let mut parts = split(message);
    let text = |part: &Part| &message.text[part.stretches[0].range.clone()];
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
    // `A new page, and a test for it` orders without a verb.
    if asks.first() == Some(&Asks::Nothing) && is_wish(text(&parts[0])) {
        asks[0] = Asks::Order;
    }
    // What is joined to an order is like it: `model … and describe …`.
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
    parts.drain(..).zip(asks).map(|(part, asks)| Clause { stretches: part.stretches, asks }).collect()
}

struct Part {
    stretches: Vec<Stretch>,
    /// Whether a conjunction stands before it, and a part before that.
    is_joined: bool,
    /// Whether nothing but that conjunction does.
    stays_in_clause: bool,
}

impl Part {
    fn sentence(&self) -> usize {
        self.stretches[0].sentence
    }
}

/// The parts after a colon, up to the end of the sentence, where they are a list.
fn list(message: &Message<'_>, parts: &[Part]) -> Option<Range<usize>> {
    let is_after_colon = |place: usize| {
        let (before, after) = (parts[place - 1].stretches.last()?, parts[place].stretches.first()?);
        (before.sentence == after.sentence && message.text.get(before.range.end..after.range.start)?.contains(':'))
            .then_some(place)
    };
    let start = (1..parts.len()).find_map(is_after_colon)?;
    let sentence = parts[start].sentence();
    let end = start + parts[start..].iter().take_while(|part| part.sentence() == sentence).count();
    let words = |part: &Part| -> usize {
        part.stretches.iter().map(|stretch| message.text[stretch.range.clone()].split_whitespace().count()).sum()
    };
    (end - start > 1 && parts[start..end].iter().all(|part| words(part) <= WORDS)).then_some(start..end)
}

/// Whether a part begins with a preposition that stands in the one before: `to the app and to the site`.
fn is_like(part: &str, before: &str) -> bool {
    const PREPOSITIONS: [&str; 8] = ["to", "for", "in", "on", "from", "of", "by", "at"];
    let first = part.split_whitespace().next().unwrap_or_default();
    PREPOSITIONS.contains(&first) && before.split_whitespace().any(|word| word == first)
}

/// Whether a text names what is wanted without a verb: `a new endpoint`.
fn is_wish(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    ["a", "an", "new", "another", "more"].iter().any(|word| word.eq_ignore_ascii_case(first))
}

/// Whether a part begins with an article, or what stands for one.
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
    for stretch in message.stretches.iter().filter(|stretch| stretch.weight > 0.3) {
        let text = &message.text[stretch.range.clone()];
        for (place, range) in pieces(text, stretch.range.start).into_iter().enumerate() {
            let piece = Stretch { range, ..stretch.clone() };
            // What a message begins with is joined to nothing, whatever its first word.
            let begins_joined = !parts.is_empty()
                && ["and ", "plus ", "with ", "then "]
                    .iter()
                    .any(|joint| message.text[piece.range.clone()].starts_with(joint));
            match parts.last_mut() {
                Some(part) if place == 0 && stretch.clause == clause => part.stretches.push(piece),
                _ => parts.push(Part {
                    stretches: vec![piece],
                    is_joined: place > 0 || begins_joined,
                    stays_in_clause: place > 0,
                }),
            }
        }
        clause = stretch.clause;
    }
    parts
}

/// Conjunctions, with the spaces around them where the script has any.
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
