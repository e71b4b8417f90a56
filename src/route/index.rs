//! A team as the router looks things up in it: who has which term in which field, and whose which area is.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::fields::{Field, Line};
use super::lexicon::{Hints, Lexicon, TermId};
use super::terms::{Place, each_term};
use crate::model::{Member, Team};

/// A term in an agent's field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) agent: usize,
    pub(super) field: Field,
    /// About 1; more where it is said often, less where much is said.
    pub(super) amount: f64,
    /// The first line that says it.
    pub(super) line: usize,
}

/// A term as it stands in a text.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// `None`: neither a table nor the team knows the term.
    pub(super) term: Option<TermId>,
    pub(super) range: Range<usize>,
    pub(super) place: Place,
    /// Not a number nor a letter.
    pub(super) says: bool,
}

/// One thing that a routing row names: of `API, server` there are two.
pub(super) struct Entry {
    pub(super) agent: usize,
    pub(super) terms: Vec<TermId>,
    /// How much its words say and tell the agents apart.
    pub(super) worth: f64,
}

/// Where the team's files have a term.
#[derive(Clone, Debug)]
pub(super) struct Occurrence {
    /// In [`Index::postings`].
    pub(super) postings: Range<usize>,
    /// In [`Index::in_entries`].
    pub(super) entries: Range<usize>,
    pub(super) rarity: f64,
}

pub(super) struct Index<'t> {
    pub(super) team: &'t Team,
    pub(super) entries: Vec<Entry>,
    pub(super) agents: Vec<&'t Member>,
    pub(super) lexicon: &'static Lexicon,
    /// Terms of the team that are in no table.
    pub(super) own_terms: HashMap<Box<str>, TermId, FixedState>,
    /// By term.
    pub(super) terms: Vec<Occurrence>,
    pub(super) postings: Vec<Posting>,
    /// Places in `entries`.
    pub(super) in_entries: Vec<u32>,
    /// By agent, then by area: how much of it is the agent's, 0..1.
    pub(super) areas: Vec<Vec<f64>>,
    /// By area: the agents that have any of it, and how much.
    pub(super) shares: Vec<Vec<(usize, f64)>>,
    /// By agent: how much of all kinds and of all topics is the agent's.
    pub(super) breadths: Vec<[f64; 2]>,
    /// By agent, then by area: the lines that make it the agent's, and how much.
    pub(super) area_lines: Vec<Vec<Vec<(usize, f64)>>>,
    pub(super) lines: Vec<Line>,
    /// By area: the agents whose role it surely is, with the line that says so.
    pub(super) roles: Vec<Vec<(usize, usize)>>,
}

/// Kinds of work that are part of most work.
const GENERAL: [&str; 3] = ["implementation", "planning", "research"];
impl<'t> Index<'t> {
    pub(super) fn postings(&self, term: TermId) -> &[Posting] {
        self.terms.get(term as usize).map_or(&[], |term| &self.postings[term.postings.clone()])
    }

    /// The places of the row entries with a term, as often as they have it.
    pub(super) fn entries_with(&self, term: TermId) -> &[u32] {
        self.terms.get(term as usize).map_or(&[], |term| &self.in_entries[term.entries.clone()])
    }

    /// How much a term tells the agents apart, 0..1: a word that everybody's files have tells nothing.
    pub(super) fn rarity(&self, term: TermId) -> f64 {
        self.terms.get(term as usize).map_or(1.0, |term| term.rarity)
    }

    /// How many terms are known, here and in the tables.
    pub(super) fn vocabulary(&self) -> usize {
        self.lexicon.size() as usize + self.own_terms.len()
    }

    pub(super) fn lookup(&self, term: &str) -> Option<TermId> {
        self.lexicon.id(term).or_else(|| self.own_terms.get(term).copied())
    }

    /// Calls `each` with every term in a part of a text.
    pub(super) fn each_found(&self, text: &str, part: Range<usize>, each: &mut impl FnMut(Found)) {
        let start = part.start;
        each_term(self.lexicon, &text[part], &mut |term, range, place| {
            let range = start + range.start..start + range.end;
            each(Found { term: self.lookup(term), range, place, says: !term.is_empty() });
        });
    }

    /// The first of the kinds that is not part of most work.
    pub(super) fn special(&self, asked: &[usize]) -> Option<usize> {
        asked.iter().copied().find(|area| !self.is_general(*area))
    }

    pub(super) fn is_general(&self, area: usize) -> bool {
        GENERAL.contains(&self.lexicon.areas[area].name)
    }

    /// The only agent whose role is an area, with the line that says so.
    pub(super) fn only_one_for(&self, area: usize) -> Option<(usize, usize)> {
        match self.roles.get(area)?[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// What a sequence of terms speaks of: terms of several words where they are met, single ones elsewhere. `each` is
    /// given the hints and how many terms they are of.
    pub(super) fn each_hints(&self, terms: &[Option<TermId>], each: &mut dyn FnMut(Hints, usize)) {
        let mut at = 0;
        while at < terms.len() {
            let Some(term) = terms[at] else {
                at += 1;
                each(&[], 1);
                continue;
            };
            let (hints, count) = match self.lexicon.phrase(term, &terms[at + 1..]) {
                Some((after, hints)) => (hints, 1 + after),
                None => (self.lexicon.hints(term), 1),
            };
            each(hints, count);
            at += count;
        }
    }
}
