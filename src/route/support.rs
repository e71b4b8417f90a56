//! Reads a message as units, and finds what each of them says for each agent.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::areas::{How, Says, TermId};
use super::index::{Index, Support, keep_stronger};
use super::text::{OWN, Span};
use super::units::{Part, each_stem};
use crate::model::List;

/// A piece of an identifier says less than a word.
const PIECE: f64 = 0.6;
/// A word that came before says little again, and nothing the third time.
const AGAIN: f64 = 0.3;
/// A kind of work asked for at the beginning of a sentence, and of a clause.
const SENTENCE: f64 = 1.0;
const CLAUSE: f64 = 0.6;

/// A word or an identifier of the user's own text.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) range: Range<usize>,
    pub(super) quality: f64,
    pub(super) says: Says,
    /// One, or the pieces of an identifier.
    terms: Vec<Option<TermId>>,
    whole: Option<TermId>,
    /// It begins a clause, or a sentence.
    pub(super) begins: f64,
    /// Punctuation before it, or the beginning of a line.
    pub(super) is_apart: bool,
}

impl Unit {
    /// Its term, of an identifier the whole one's if it is known.
    pub(super) fn term(&self) -> Option<TermId> {
        self.whole.or_else(|| self.terms.first().copied().flatten())
    }
}

/// A message, or a part of it, and what it says.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) units: Vec<Unit>,
    /// By unit, or by the first unit of a phrase: the units that it covers, and its supports.
    pub(super) supports: Vec<(Range<usize>, Vec<Support>)>,
    /// By area of work: how clearly the beginning of a sentence or clause asks for it.
    pub(super) asked: Vec<(usize, f64)>,
    /// The kind of work that the words speak of most.
    pub(super) said: Option<usize>,
}

pub(super) fn units(index: &Index<'_>, message: &str, spans: &[Span]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let (mut sentence, mut clause) = (usize::MAX, usize::MAX);
    for span in spans {
        let mut begins = match span {
            _ if span.is_code || span.weight < OWN => 0.0,
            span if span.sentence != sentence => SENTENCE,
            span if span.clause != clause => CLAUSE,
            _ => 0.0,
        };
        let mut is_apart = span.clause != clause;
        (sentence, clause) = (span.sentence, span.clause);
        let mut whole: Option<(Range<usize>, Option<TermId>)> = None;
        each_stem(&message[span.range.clone()], &mut |stem, range, part| {
            let range = span.range.start + range.start..span.range.start + range.end;
            let term = index.lookup(stem);
            match (&whole, units.last_mut()) {
                _ if part == Part::Whole => {
                    whole = Some((range, term));
                    return;
                }
                // A further piece.
                (Some((of, _)), Some(unit)) if part == Part::Piece && unit.range == *of => {
                    unit.terms.push(term);
                    return;
                }
                _ => {}
            }
            let says = term.map_or(Says::Something, |term| index.areas.says(term));
            let (range, whole) = match whole.as_ref().filter(|(of, _)| of.start <= range.start && range.end <= of.end) {
                Some((of, term)) => (of.clone(), *term),
                None => (range, None),
            };
            let says = if part == Part::Piece { Says::Something } else { says };
            let quality = span.weight.max(0.0);
            units.push(Unit { range, quality, says, terms: vec![term], whole, begins, is_apart });
            (is_apart, begins) = (false, 0.0);
        });
    }
    units
}

impl Reading {
    pub(super) fn of(index: &Index<'_>, message: &str, units: Vec<Unit>) -> Self {
        let mut reading = Self { units, ..Self::default() };
        reading.read_requests(index, message);
        reading.read_supports(index);
        reading
    }

    /// The terms from a unit on.
    fn terms(&self, at: usize) -> impl Iterator<Item = Option<TermId>> + Clone {
        self.units[at..].iter().flat_map(|unit| unit.terms.iter().copied())
    }

    /// The same without stop words.
    fn telling<'r>(&'r self, index: &'r Index<'_>, at: usize) -> impl Iterator<Item = Option<TermId>> + Clone + 'r {
        let tells = |term: &Option<TermId>| term.is_none_or(|term| index.areas.says(term) > Says::Nothing);
        self.terms(at).filter(tells)
    }

    /// The unit after the next `terms` terms.
    fn after(&self, index: &Index<'_>, at: usize, mut terms: usize, counts_all: bool) -> usize {
        let mut end = at;
        while terms > 0 && end < self.units.len() {
            let is_counted =
                |term: &&Option<TermId>| counts_all || term.is_none_or(|term| index.areas.says(term) > Says::Nothing);
            terms = terms.saturating_sub(self.units[end].terms.iter().filter(is_counted).count());
            end += 1;
        }
        end
    }

    fn read_requests(&mut self, index: &Index<'_>, message: &str) {
        let mut begins = 0.0;
        let mut asked: Vec<(usize, f64)> = Vec::new();
        for at in 0..self.units.len() {
            let unit = &self.units[at];
            begins = f64::max(if unit.is_apart { 0.0 } else { begins }, unit.begins);
            if begins == 0.0 {
                continue;
            }
            let word = message[unit.range.clone()].to_lowercase();
            let hints = match index.areas.phrase(self.terms(at)) {
                Some((_, hints)) if hints.iter().any(|hint| hint.how == How::Asks) => hints,
                _ => unit.terms[0].map_or(&[][..], |term| index.areas.hints(term)),
            };
            for hint in hints.iter().filter(|hint| hint.how == How::Asks) {
                match asked.iter_mut().find(|(area, _)| *area == hint.area) {
                    Some((_, known)) => *known = known.max(begins),
                    None => asked.push((hint.area, begins)),
                }
            }
            if !List::any(&[List::BeforeVerb, List::Polished, List::Courtesy, List::Greeting, List::Addressed], &word) {
                begins = 0.0;
            }
        }
        self.asked = asked;
    }

    fn read_supports(&mut self, index: &Index<'_>) {
        let mut said = vec![0.0; index.areas.list.len()];
        let mut at = 0;
        let mut supports = Vec::new();
        let mut seen: HashMap<&[Option<TermId>], u32, FixedState> = HashMap::default();
        while at < self.units.len() {
            let unit = &self.units[at];
            let phrase = index.areas.phrase(self.terms(at));
            let entry = if unit.says > Says::Nothing { index.entry(self.telling(index, at)) } else { None };
            let mut found: Vec<Support> = Vec::new();
            let mut end = at + 1;
            if let Some((terms, hints)) = phrase {
                index.of_hints(hints, &mut found);
                end = self.after(index, at, terms, true);
            }
            if let Some((terms, supports)) = entry {
                end = end.max(self.after(index, at, terms, false));
                supports.iter().for_each(|support| keep_stronger(&mut found, *support));
            }
            let hints = match phrase {
                Some((_, hints)) => hints,
                None => unit.whole.or(unit.terms[0]).map_or(&[][..], |term| index.areas.hints(term)),
            };
            let kinds = hints.iter().filter(|hint| hint.how == How::Strong && index.areas.list[hint.area].is_kind);
            kinds.for_each(|hint| said[hint.area] += unit.quality);
            // What the words of a phrase say one by one may be more.
            let mut single: Vec<Support> = Vec::new();
            for unit in &self.units[at..end] {
                let mut of_unit: Vec<Support> = Vec::new();
                if let Some(whole) = unit.whole {
                    of_unit = index.supports(whole);
                }
                let factor = if unit.terms.len() > 1 { PIECE } else { 1.0 };
                let pieces = if of_unit.is_empty() { &unit.terms[..] } else { &[] };
                for support in pieces.iter().flatten().flat_map(|term| index.supports(*term)) {
                    keep_stronger(&mut of_unit, Support { weight: support.weight * factor, ..support });
                }
                for support in of_unit {
                    match single.iter_mut().find(|known| known.agent == support.agent) {
                        Some(known) if known.weight < support.weight => {
                            *known = Support { weight: known.weight + support.weight, ..support };
                        }
                        Some(known) => known.weight += support.weight,
                        None => single.push(support),
                    }
                }
            }
            single.into_iter().for_each(|support| keep_stronger(&mut found, support));
            let times = seen.entry(&unit.terms).or_default();
            let again = [1.0, AGAIN].get(*times as usize).copied().unwrap_or(0.0);
            *times += 1;
            found.iter_mut().for_each(|support| support.weight *= unit.quality * again);
            found.retain(|support| support.weight > 0.0);
            supports.push((at..end, found));
            at = end;
        }
        self.supports = supports;
        let most = said.into_iter().enumerate().filter(|(_, amount)| *amount > 0.0);
        self.said = most.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(area, _)| area);
    }

    /// The number of units that tell something.
    pub(super) fn content(&self) -> usize {
        self.units.iter().filter(|unit| unit.says > Says::Nothing && unit.quality >= OWN).count()
    }
}
