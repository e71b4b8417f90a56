//! Compiles the tables at build time, because stemming them takes milliseconds.
//!
//! Of each term, in the order they are found, a record; numbers are a byte, but those of terms two, the lower one first:
//!
//! ```text
//! record: length, text · content class · hints · number of phrases; for each: count, terms after the first · hints
//! hints: count; of each: area, code
//! ```

use std::collections::BTreeMap;

use super::lexicon::Lexicon;
use super::terms::{TermKind, each_term};
use crate::model::List;

/// The source and strength of a hint, as `Hint` in the lexicon.
const STRONG: u8 = 1;
const OF_ROLES: u8 = 2;
const OF_REQUESTS: u8 = 4;

const SAYS_NOTHING: u8 = 0;
const SAYS_LITTLE: u8 = 1;
const SAYS_SOMETHING: u8 = 2;

type Hints = Vec<[u8; 2]>;

struct Term {
    text: String,
    says: u8,
    hints: Hints,
    phrases: Vec<(Vec<u16>, Hints)>,
}

#[derive(Default)]
struct Tables {
    ids: BTreeMap<String, u16>,
    terms: Vec<Term>,
}

/// The table of terms, from the table of areas and the word lists.
pub(crate) fn compile(areas: &str) -> Vec<u8> {
    let mut tables = Tables::default();
    for (list, says) in [(List::Stop, SAYS_NOTHING), (List::Talk, SAYS_NOTHING), (List::Common, SAYS_LITTLE)] {
        for word in list.entries() {
            each_word(word, |term| {
                tables.term(term, says);
            });
        }
    }
    tables.read_areas(areas);
    // A stop word of one language (`die`, `dos`) is only a weak hint in another.
    for term in tables.terms.iter_mut().filter(|term| term.says == SAYS_NOTHING) {
        term.hints.retain(|[_, code]| code & STRONG == 0);
    }
    tables.bytes()
}

impl Tables {
    fn read_areas(&mut self, areas: &str) {
        let (mut area, mut builds) = (u8::MAX, false);
        for line in areas.lines().filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix("= ") {
                area = area.wrapping_add(1);
                builds = name.starts_with("implementation ");
            } else if let Some((strength, words)) = line.split_once(": ") {
                let code = match strength {
                    "role" => STRONG | OF_ROLES,
                    "asks" if builds => OF_REQUESTS,
                    "asks" => STRONG | OF_REQUESTS,
                    "weak" => 0,
                    _ => STRONG,
                };
                for phrase in words.split(',') {
                    let mut terms = Vec::new();
                    each_word(phrase, |term| terms.push(self.term(term, SAYS_SOMETHING)));
                    self.hint(&terms, [area, code]);
                }
            }
        }
    }

    /// Adds a hint from a term to an area.
    fn hint(&mut self, terms: &[u16], hint: [u8; 2]) {
        let Some((first, rest)) = terms.split_first() else { return };
        let entry = &mut self.terms[usize::from(*first)];
        let hints = if rest.is_empty() {
            &mut entry.hints
        } else {
            let place = entry.phrases.iter().position(|(known, _)| known == rest).unwrap_or(entry.phrases.len());
            if place == entry.phrases.len() {
                entry.phrases.push((rest.to_vec(), Vec::new()));
            }
            &mut entry.phrases[place].1
        };
        // The first hint of a term for an area wins; strong ones come first.
        if !hints.iter().any(|[area, code]| *area == hint[0] && (code ^ hint[1]) & !STRONG == 0) {
            hints.push(hint);
        }
    }

    /// The number of a term; a new term gets this content class.
    fn term(&mut self, text: &str, says: u8) -> u16 {
        if let Some(known) = self.ids.get(text) {
            return *known;
        }
        let id = u16::try_from(self.terms.len()).expect("the tables are small");
        self.ids.insert(text.to_owned(), id);
        self.terms.push(Term { text: text.to_owned(), says, hints: Vec::new(), phrases: Vec::new() });
        id
    }

    fn bytes(&self) -> Vec<u8> {
        let mut records = Vec::new();
        for term in &self.terms {
            records.push(length(term.text.len()));
            records.extend(term.text.bytes());
            records.push(term.says);
            push_hints(&mut records, &term.hints);
            records.push(length(term.phrases.len()));
            for (rest, hints) in &term.phrases {
                records.push(length(rest.len()));
                records.extend(rest.iter().flat_map(|term| term.to_le_bytes()));
                push_hints(&mut records, hints);
            }
        }
        records
    }
}

fn push_hints(records: &mut Vec<u8>, hints: &Hints) {
    records.push(length(hints.len()));
    records.extend(hints.iter().flatten());
}

fn length(length: usize) -> u8 {
    u8::try_from(length).expect("what a term has is few")
}

/// Calls `each` with every term of a line.
fn each_word(text: &str, mut each: impl FnMut(&str)) {
    // The table of files does not exist yet, so file names imply nothing here.
    each_term(&Lexicon, text, &mut |term, _, place| {
        if place == TermKind::Word && !term.is_empty() {
            each(term);
        }
    });
}
