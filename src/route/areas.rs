//! General knowledge of the trade: areas of work with their words, and words that say nothing.
//!
//! The table next to this file mentions no team.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::stems::each_stem;
use crate::model::{List, Sort};

const TABLE: &str = include_str!("areas.txt");

/// The number of a stem. Stems that only a team uses follow those of the table.
pub(super) type TermId = usize;

#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) name: &'static str,
    /// An activity (testing, documentation), not a part of a product or a technology.
    pub(super) is_kind: bool,
}

/// A term points to an area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hint {
    pub(super) area: usize,
    pub(super) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Strong,
    Weak,
    /// Only in what a team says of its members and rows.
    Role,
    /// Only at the beginning of a request.
    Asks,
}

/// What the table knows of a term.
struct Term {
    /// Whether it tells anything of the work.
    tells: bool,
    hints: Vec<Hint>,
    /// The terms after this one, and what they mean together; longest first.
    phrases: Vec<(Vec<TermId>, Vec<Hint>)>,
}

#[derive(Default)]
pub(super) struct Areas {
    pub(super) list: Vec<Area>,
    ids: HashMap<Box<str>, TermId, FixedState>,
    terms: Vec<Term>,
}

static AREAS: LazyLock<Areas> = LazyLock::new(Areas::read);

impl Areas {
    pub(super) fn get() -> &'static Self {
        &AREAS
    }

    fn read() -> Self {
        let mut areas = Self { ids: HashMap::with_capacity_and_hasher(8192, FixedState::default()), ..Self::default() };
        for word in [List::Stop, List::Talk].iter().flat_map(|list| list.entries()) {
            each_stem(word, &mut |stem, _, _| {
                areas.term(stem, false);
            });
        }
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let Some((what, words)) = line.split_once(": ") else { continue };
            if let Some((name, kind)) = what.strip_prefix("= ").and_then(|what| what.split_once(' ')) {
                areas.list.push(Area { name, is_kind: kind == "kind" });
            }
            let how = match what {
                "asks" => How::Asks,
                "weak" => How::Weak,
                "strong" => How::Strong,
                _ => How::Role,
            };
            let hint = Hint { area: areas.list.len().saturating_sub(1), how };
            words.split(',').for_each(|words| areas.hint(words, hint));
        }
        areas
            .terms
            .iter_mut()
            .for_each(|term| term.phrases.stable_sort_by_key(|(rest, _)| std::cmp::Reverse(rest.len())));
        areas
    }

    fn hint(&mut self, words: &str, hint: Hint) {
        let mut terms = Vec::new();
        each_stem(words, &mut |stem, _, is_whole| {
            if !is_whole {
                terms.push(self.term(stem, true));
            }
        });
        let Some((first, rest)) = terms.split_first() else { return };
        let term = &mut self.terms[*first];
        match term.phrases.iter_mut().find(|(known, _)| known == rest) {
            // A stop word of one language (`die`, `dos`) is a word of another.
            _ if rest.is_empty() && (!term.tells || term.hints.contains(&hint)) => {}
            _ if rest.is_empty() => term.hints.push(hint),
            Some((_, hints)) => hints.push(hint),
            None => term.phrases.push((rest.to_vec(), vec![hint])),
        }
    }

    fn term(&mut self, stem: &str, tells: bool) -> TermId {
        if let Some(known) = self.ids.get(stem) {
            return *known;
        }
        self.ids.insert(stem.into(), self.terms.len());
        self.terms.push(Term { tells, hints: Vec::new(), phrases: Vec::new() });
        self.terms.len() - 1
    }

    pub(super) fn id(&self, stem: &str) -> Option<TermId> {
        self.ids.get(stem).copied()
    }

    /// The number of terms in the table.
    pub(super) fn size(&self) -> TermId {
        self.terms.len()
    }

    pub(super) fn area(&self, name: &str) -> usize {
        self.list.iter().position(|area| area.name == name).unwrap_or(usize::MAX)
    }

    pub(super) fn tells(&self, term: TermId) -> bool {
        self.terms.get(term).is_none_or(|term| term.tells)
    }

    pub(super) fn hints(&self, term: TermId) -> &[Hint] {
        self.terms.get(term).map_or(&[], |term| &term.hints)
    }

    /// The longest phrase that terms begin with, or the first of them: how many they are, and what they mean.
    pub(super) fn longest(&self, terms: &[TermId]) -> (usize, &[Hint]) {
        let Some((first, rest)) = terms.split_first() else { return (0, &[]) };
        let phrases = self.terms.get(*first).map_or(&[][..], |term| &term.phrases);
        let phrase = phrases.iter().find(|(phrase, _)| rest.starts_with(phrase));
        phrase.map_or((1, self.hints(*first)), |(phrase, hints)| (1 + phrase.len(), &hints[..]))
    }
}
