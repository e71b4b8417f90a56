//! The index of a team: which agent has which term in which field, and which areas are whose.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::fields::{Field, Line};
use super::lexicon::{Hints, Lexicon, TermId};
use super::terms::{TermKind, each_term};
use crate::model::{Member, Team};

/// A term in an agent's field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) agent: usize,
    pub(super) field: Field,
    /// About 1; higher for frequent terms, lower in long fields.
    pub(super) amount: f64,
    /// The first line that contains it.
    pub(super) line: usize,
}

/// A term in a text.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// `None` for terms that neither the tables nor the team contain.
    pub(super) term: Option<TermId>,
    pub(super) range: Range<usize>,
    pub(super) kind: TermKind,
    /// Neither a number nor a single letter.
    pub(super) says: bool,
}

/// One item of a routing row: `API, server` has two.
pub(super) struct Entry {
    pub(super) agent: usize,
    pub(super) terms: Vec<TermId>,
    /// The content of its words, weighted by rarity.
    pub(super) worth: f64,
}

/// The occurrences of a term in the team's files.
#[derive(Clone, Debug)]
pub(super) struct Occurrence {
    /// In [`Index::postings`].
    pub(super) postings: Range<usize>,
    pub(super) rarity: f64,
}

pub(super) struct Index<'t> {
    pub(super) team: &'t Team,
    pub(super) entries: Vec<Entry>,
    pub(super) agents: Vec<&'t Member>,
    pub(super) lexicon: &'static Lexicon,
    /// Terms of the team that the tables lack.
    pub(super) own_terms: HashMap<Box<str>, TermId, FixedState>,
    /// By term.
    pub(super) terms: Vec<Occurrence>,
    pub(super) postings: Vec<Posting>,
    /// By term: indexes into `entries`, repeated for each occurrence.
    pub(super) in_entries: HashMap<TermId, Vec<usize>, FixedState>,
    /// By agent, then by area: the agent's share, 0..1.
    pub(super) areas: Vec<Vec<f64>>,
    /// By agent: the sums of its shares of kinds and of topics.
    pub(super) breadths: Vec<[f64; 2]>,
    /// By agent, then by area: the lines that give the agent the area, with their weights.
    pub(super) area_lines: Vec<Vec<Vec<(usize, f64)>>>,
    pub(super) lines: Vec<Line>,
    /// By area: the agents whose role clearly is that area, with the line.
    pub(super) roles: Vec<Vec<(usize, usize)>>,
}

/// Kinds of work that most work includes.
const GENERAL: [&str; 3] = ["implementation", "planning", "research"];
impl<'t> Index<'t> {
    pub(super) fn postings(&self, term: TermId) -> &[Posting] {
        self.terms.get(term as usize).map_or(&[], |term| &self.postings[term.postings.clone()])
    }

    /// How well a term distinguishes agents, 0..1: a word in every agent's files does not.
    pub(super) fn rarity(&self, term: TermId) -> f64 {
        self.terms.get(term as usize).map_or(1.0, |term| term.rarity)
    }

    /// The number of known terms, here and in the tables.
    pub(super) fn vocabulary(&self) -> usize {
        self.lexicon.size() as usize + self.own_terms.len()
    }

    pub(super) fn lookup(&self, term: &str) -> Option<TermId> {
        self.lexicon.id(term).or_else(|| self.own_terms.get(term).copied())
    }

    /// Calls `each` with every term in a part of a text.
    pub(super) fn each_token(&self, text: &str, part: Range<usize>, each: &mut impl FnMut(Token)) {
        let start = part.start;
        each_term(self.lexicon, &text[part], &mut |term, range, kind| {
            let range = start + range.start..start + range.end;
            each(Token { term: self.lookup(term), range, kind, says: !term.is_empty() });
        });
    }

    pub(super) fn is_general(&self, area: usize) -> bool {
        GENERAL.contains(&self.lexicon.areas[area].name)
    }

    /// Calls `each` with the hints of a sequence of terms, phrases first, and with the number of terms they cover.
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
