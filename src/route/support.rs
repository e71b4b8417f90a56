//! Reads a message as units: what each says for each agent, and the work that it begins by asking for.

use std::collections::HashSet;
use std::ops::Range;

use super::areas::{How, TermId};
use super::index::{Index, Support, keep_stronger};
use super::text::Span;
use super::units::each_stem;
use crate::model::List;

/// A word, an identifier, or words that mean something together.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    pub(super) range: Range<usize>,
    pub(super) is_denied: bool,
    /// How many of its words tell something.
    pub(super) telling: usize,
    pub(super) supports: Vec<Support>,
    /// The kind of work that it nearly always means.
    pub(super) kind: Option<usize>,
    /// The kinds that it asks for where a request begins.
    pub(super) asks: Vec<usize>,
    /// It begins a sentence.
    begins: bool,
    /// Punctuation before it, or the beginning of a line.
    pub(super) is_apart: bool,
    /// A request may go on before its verb: `and then please`.
    is_filler: bool,
}

/// A word or an identifier, and its terms: one, or the pieces of an identifier.
struct Word {
    terms: Range<usize>,
    whole: Option<TermId>,
    unit: Unit,
}

/// The units of a message.
pub(super) fn read(index: &Index<'_>, message: &str, spans: &[Span]) -> Vec<Unit> {
    let mut terms: Vec<TermId> = Vec::new();
    let words = words(index, message, spans, &mut terms);
    let (mut units, mut seen, mut at) = (Vec::new(), HashSet::new(), 0);
    while let Some(word) = words.get(at) {
        let of_whole = word.whole.map(|whole| index.areas.hints(whole)).filter(|hints| !hints.is_empty());
        let (length, hints) =
            of_whole.map_or_else(|| index.areas.longest(&terms[word.terms.start..]), |hints| (1, hints));
        let end = words[at + 1..].iter().position(|next| next.terms.start >= word.terms.start + length);
        let of = &words[at..end.map_or(words.len(), |end| at + 1 + end)];
        at += of.len();
        let tells = |word: &&Word| terms[word.terms.clone()].iter().any(|term| index.areas.tells(*term));
        let hinted = |how: How| hints.iter().filter(move |hint| hint.how == how).map(|hint| hint.area);
        let mut unit = word.unit.clone();
        unit.range.end = of.last().map_or(unit.range.end, |last| last.unit.range.end);
        unit.telling = of.iter().filter(tells).count();
        unit.kind = hinted(How::Strong).find(|area| index.areas.list[*area].is_kind);
        unit.asks = hinted(How::Asks).collect();
        // What was said before says nothing more.
        let of_unit = &terms[word.terms.start..of.last().map_or(word.terms.end, |last| last.terms.end)];
        if !unit.is_denied && seen.insert(of_unit) {
            unit.supports = supports(index, of, &terms);
            index.of_hints(hints).for_each(|support| keep_stronger(&mut unit.supports, support));
        }
        units.push(unit);
    }
    units
}

/// What the words of a unit say one by one: of an identifier the whole, or the strongest of its pieces.
fn supports(index: &Index<'_>, words: &[Word], terms: &[TermId]) -> Vec<Support> {
    let mut all: Vec<Support> = Vec::new();
    for word in words {
        let mut of_word: Vec<Support> = Vec::new();
        for term in word.whole.iter().chain(&terms[word.terms.clone()]) {
            let of_term = index.of_lines(*term).iter().copied().chain(index.of_hints(index.areas.hints(*term)));
            of_term.for_each(|support| keep_stronger(&mut of_word, support));
        }
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
        let mut begins = span.sentence != sentence && !span.is_denied;
        let mut is_apart = span.clause != clause;
        (sentence, clause) = (span.sentence, span.clause);
        let mut whole = None;
        each_stem(&message[span.range.clone()], &mut |stem, range, is_whole| {
            let term = index.term(stem);
            if is_whole {
                whole = Some(term);
                return;
            }
            let range = span.range.start + range.start..span.range.start + range.end;
            // Whose name it is says nothing of the work.
            if message[..range.start].ends_with('@') && !message[range.end..].starts_with('/') {
                return;
            }
            terms.push(term);
            if let Some(last) = words.last_mut().filter(|last| last.whole.is_some() && last.unit.range == range) {
                last.terms.end = terms.len();
                return;
            }
            let is_filler = List::any(&FILLERS, &message[range.clone()].to_lowercase());
            let unit = Unit { range, is_denied: span.is_denied, begins, is_apart, is_filler, ..Unit::default() };
            words.push(Word { terms: terms.len() - 1..terms.len(), whole: whole.take(), unit });
            (is_apart, begins) = (false, false);
        });
    }
    words
}

/// The kinds of work that the beginning of a sentence asks for. `begins`: whether the first unit begins one.
pub(super) fn asked<'u>(units: impl IntoIterator<Item = &'u Unit>, mut begins: bool) -> Vec<usize> {
    let mut asked = Vec::new();
    for unit in units {
        begins |= unit.begins;
        if begins {
            asked.extend(unit.asks.iter().filter(|area| !asked.contains(*area)).copied().collect::<Vec<_>>());
        }
        begins &= unit.is_filler;
    }
    asked
}
