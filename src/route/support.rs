//! Reads a message as units: what each says for each agent, and the work that it begins by asking for.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::areas::{How, Says, TermId};
use super::index::{Index, Support, keep_stronger};
use super::text::Span;
use super::units::each_stem;
use crate::model::List;

/// A kind of work asked for at the beginning of a sentence, and of a clause.
pub(super) const SENTENCE: f64 = 1.0;
const CLAUSE: f64 = 0.6;

/// A word, an identifier, or words that mean something together.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    pub(super) range: Range<usize>,
    pub(super) is_denied: bool,
    /// How many of its words tell something, and whether one is no common word.
    pub(super) telling: usize,
    pub(super) is_solid: bool,
    pub(super) supports: Vec<Support>,
    /// The kind of work that it nearly always means.
    pub(super) kind: Option<usize>,
    /// The kinds that it asks for where a request begins.
    pub(super) asks: Vec<usize>,
    /// It begins a clause, or a sentence.
    begins: f64,
    /// Punctuation before it, or the beginning of a line.
    pub(super) is_apart: bool,
    /// A request may go on before its verb: `and then please`.
    is_filler: bool,
}

/// A word or an identifier, and its terms: one, or the pieces of an identifier.
struct Word {
    range: Range<usize>,
    terms: Range<usize>,
    whole: Option<TermId>,
    unit: Unit,
}

/// The units of a message.
pub(super) fn read(index: &Index<'_>, message: &str, spans: &[Span]) -> Vec<Unit> {
    let mut terms: Vec<TermId> = Vec::new();
    let words = words(index, message, spans, &mut terms);
    let mut units = Vec::new();
    let mut seen: HashMap<&[TermId], (), FixedState> = HashMap::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let (length, hints) = match word.whole.map(|whole| index.areas.hints(whole)) {
            Some(hints) if !hints.is_empty() => (1, hints),
            _ => index.areas.longest(&terms[word.terms.start..]),
        };
        let end = words[at..].iter().position(|next| next.terms.start >= word.terms.start + length);
        let end = end.map_or(words.len(), |end| at + end.max(1));
        let of = &words[at..end];
        let of_unit = word.terms.start..of.last().map_or(0, |last| last.terms.end);
        let says = |term: &TermId| index.areas.says(*term);
        let hinted = |how: How| hints.iter().filter(move |hint| hint.how == how).map(|hint| hint.area);
        let mut unit = Unit {
            range: word.range.start..of.last().map_or(word.range.end, |last| last.range.end),
            telling: of
                .iter()
                .filter(|word| terms[word.terms.clone()].iter().any(|term| says(term) > Says::Nothing))
                .count(),
            is_solid: of.iter().any(|word| word.terms.len() > 1 || says(&terms[word.terms.start]) == Says::Something),
            kind: hinted(How::Strong).find(|area| index.areas.list[*area].is_kind),
            asks: hinted(How::Asks).collect(),
            ..word.unit.clone()
        };
        // What was said before says nothing more.
        if !unit.is_denied && seen.insert(&terms[of_unit], ()).is_none() {
            unit.supports = supports(index, of, &terms);
            index.of_hints(hints).for_each(|support| keep_stronger(&mut unit.supports, support));
        }
        units.push(unit);
        at = end;
    }
    units
}

/// What the words of a unit say one by one: of an identifier the whole, or the strongest of its pieces.
fn supports(index: &Index<'_>, words: &[Word], terms: &[TermId]) -> Vec<Support> {
    let mut all: Vec<Support> = Vec::new();
    for word in words {
        let mut of_word: Vec<Support> = Vec::new();
        let mut add = |term: TermId| {
            let of_lines = index.of_lines(term).iter().copied();
            of_lines.chain(index.of_hints(index.areas.hints(term))).for_each(|it| keep_stronger(&mut of_word, it));
        };
        word.whole.into_iter().for_each(&mut add);
        terms[word.terms.clone()].iter().copied().for_each(add);
        for support in of_word {
            match all.iter_mut().find(|known| known.agent == support.agent) {
                Some(known) => {
                    let reason = if known.weight < support.weight { support.reason } else { known.reason };
                    *known = Support { weight: known.weight + support.weight, reason, ..*known };
                }
                None => all.push(support),
            }
        }
    }
    all
}

fn words(index: &Index<'_>, message: &str, spans: &[Span], terms: &mut Vec<TermId>) -> Vec<Word> {
    const FILLERS: [List; 5] = [List::BeforeVerb, List::Polished, List::Courtesy, List::Greeting, List::Addressed];
    let mut words: Vec<Word> = Vec::new();
    let (mut sentence, mut clause) = (usize::MAX, usize::MAX);
    for span in spans {
        let mut begins = match span {
            _ if span.is_code || span.is_denied => 0.0,
            span if span.sentence != sentence => SENTENCE,
            span if span.clause != clause => CLAUSE,
            _ => 0.0,
        };
        let mut is_apart = span.clause != clause;
        (sentence, clause) = (span.sentence, span.clause);
        let mut whole = None;
        each_stem(&message[span.range.clone()], &mut |stem, range, is_whole| {
            let term = index.term(stem);
            if is_whole {
                whole = Some(term);
                return;
            }
            terms.push(term);
            let range = span.range.start + range.start..span.range.start + range.end;
            if let Some(last) = words.last_mut().filter(|last| last.whole.is_some() && last.range == range) {
                last.terms.end = terms.len();
                return;
            }
            let text = message[range.clone()].to_lowercase();
            let is_filler = List::any(&FILLERS, &text);
            let unit = Unit { is_denied: span.is_denied, begins, is_apart, is_filler, ..Unit::default() };
            words.push(Word { range, terms: terms.len() - 1..terms.len(), whole: whole.take(), unit });
            (is_apart, begins) = (false, 0.0);
        });
    }
    words
}

/// By kind of work: how clearly the beginning of a sentence or clause asks for it. `first`: what the first unit begins.
pub(super) fn asked<'u>(units: impl IntoIterator<Item = &'u Unit>, first: f64) -> Vec<(usize, f64)> {
    let mut begins: f64 = first;
    let mut asked: Vec<(usize, f64)> = Vec::new();
    for (at, unit) in units.into_iter().enumerate() {
        begins = f64::max(if unit.is_apart && at > 0 { 0.0 } else { begins }, unit.begins);
        if begins == 0.0 {
            continue;
        }
        for area in &unit.asks {
            match asked.iter_mut().find(|(known, _)| known == area) {
                Some((_, known)) => *known = known.max(begins),
                None => asked.push((*area, begins)),
            }
        }
        if !unit.is_filler {
            begins = 0.0;
        }
    }
    asked
}
