//! Reads a message as units: what each says for each agent, and the work that it begins by asking for.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::areas::{Hint, How, TermId};
use super::index::{Index, Support, keep_stronger};
use super::message::Span;
use super::stems::each_stem;
use crate::model::List;

/// A word, an identifier, or words that mean something together.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit<'i> {
    pub(super) range: Range<usize>,
    pub(super) is_denied: bool,
    /// How many of its words tell something.
    pub(super) telling: usize,
    pub(super) supports: Cow<'i, [Support]>,
    hints: &'static [Hint],
    /// The kind of work that it nearly always means.
    pub(super) kind: Option<usize>,
    /// It begins a sentence.
    begins: bool,
    /// Punctuation before it, or the beginning of a line.
    pub(super) is_apart: bool,
    /// A request may go on before its verb: `and then please`.
    is_filler: bool,
    /// Its clause says how things stand.
    pub(super) is_finite: bool,
    pub(super) joins: Joins,
}

/// How a word joins what is before it to what follows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Joins {
    #[default]
    No,
    /// `and`, `then`
    Always,
    /// `with tests`, but not `with care`
    With,
}

/// A word or an identifier, and its terms: one, or the pieces of an identifier.
struct Word<'i> {
    terms: Range<usize>,
    whole: Option<TermId>,
    unit: Unit<'i>,
}

/// The units of a message.
pub(super) fn read<'i>(index: &'i Index<'_>, message: &str, spans: &[Span]) -> Vec<Unit<'i>> {
    let mut terms: Vec<TermId> = Vec::with_capacity(message.len() / 4);
    let mut words = words(index, message, spans, &mut terms);
    let mut seen: HashSet<&[TermId], FixedState> = HashSet::default();
    let (mut units, mut at) = (Vec::with_capacity(words.len()), 0);
    while let Some(word) = words.get(at) {
        let of_whole = word.whole.map(|whole| index.areas.hints(whole)).filter(|hints| !hints.is_empty());
        let (length, hints) =
            of_whole.map_or_else(|| index.areas.longest(&terms[word.terms.start..]), |hints| (1, hints));
        let end = words[at + 1..].iter().position(|next| next.terms.start >= word.terms.start + length);
        let end = end.map_or(words.len(), |end| at + 1 + end);
        let tells = |word: &&Word<'_>| terms[word.terms.clone()].iter().any(|term| index.areas.tells(*term));
        let of = &words[at..end];
        let telling = of.iter().filter(tells).count();
        let range = word.unit.range.start..of.last().map_or(word.unit.range.end, |last| last.unit.range.end);
        // What was said before says nothing more.
        let of_unit = &terms[word.terms.start..of.last().map_or(word.terms.end, |last| last.terms.end)];
        let mut supports = Cow::default();
        if !word.unit.is_denied && (telling > 0 || length > 1 || word.whole.is_some()) && seen.insert(of_unit) {
            supports = of_words(index, of, &terms);
            if length > 1 {
                index.of_hints(hints).for_each(|support| keep_stronger(supports.to_mut(), support));
            }
        }
        let is_kind = |hint: &&Hint| hint.how == How::Strong && index.areas.list[hint.area].is_kind;
        let kind = hints.iter().find(is_kind).map(|hint| hint.area);
        let unit = std::mem::take(&mut words[at].unit);
        units.push(Unit { range, telling, supports, hints, kind, ..unit });
        at = end;
    }
    units
}

/// What the words of a unit say one by one: of an identifier the whole, or the strongest of its pieces.
fn of_words<'i>(index: &'i Index<'_>, words: &[Word<'_>], terms: &[TermId]) -> Cow<'i, [Support]> {
    let of_word = |word: &Word<'_>| {
        let terms = word.whole.iter().chain(&terms[word.terms.clone()]);
        let mut supports = terms.map(|term| Cow::Borrowed(index.supports(*term)));
        let first = supports.next().unwrap_or_default();
        supports.flat_map(Cow::into_owned).fold(first, |mut all, one| {
            keep_stronger(all.to_mut(), one);
            all
        })
    };
    let mut words = words.iter().map(of_word);
    let first = words.next().unwrap_or_default();
    words.flat_map(Cow::into_owned).fold(first, |mut all, one| {
        match all.to_mut().iter_mut().find(|known| known.agent == one.agent) {
            Some(known) => {
                let weight = known.weight + one.weight;
                *known = Support { weight, ..if known.weight < one.weight { one } else { *known } };
            }
            None => all.to_mut().push(one),
        }
        all
    })
}

fn words<'i>(index: &Index<'_>, message: &str, spans: &[Span], terms: &mut Vec<TermId>) -> Vec<Word<'i>> {
    const FILLERS: [List; 5] = [List::BeforeVerb, List::Polished, List::Courtesy, List::Greeting, List::Addressed];
    let mut words: Vec<Word<'_>> = Vec::with_capacity(message.len() / 5);
    let (mut sentence, mut clause, mut lower) = (usize::MAX, usize::MAX, String::new());
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
            lower.clear();
            match &message[range.clone()] {
                word if word.is_ascii() => lower.push_str(word),
                word => lower.extend(word.chars().flat_map(char::to_lowercase)),
            }
            lower.make_ascii_lowercase();
            let joins = match lower.as_str() {
                "and" | "then" | "plus" | "including" => Joins::Always,
                "with" => Joins::With,
                _ => Joins::No,
            };
            let lists = List::of(&lower);
            let (is_filler, is_finite) = (FILLERS.iter().any(|list| lists.has(*list)), lists.has(List::Finite));
            let is_denied = span.is_denied;
            let unit = Unit { range, is_denied, begins, is_apart, is_filler, is_finite, joins, ..Unit::default() };
            words.push(Word { terms: terms.len() - 1..terms.len(), whole: whole.take(), unit });
            (is_apart, begins) = (false, false);
        });
    }
    words
}

/// The kinds of work that the beginning of a sentence asks for. `begins`: whether the first unit begins one.
pub(super) fn asked<'u>(units: impl IntoIterator<Item = &'u Unit<'u>>, mut begins: bool) -> Vec<usize> {
    let mut asked = Vec::new();
    for unit in units {
        begins |= unit.begins;
        if begins {
            let areas = unit.hints.iter().filter(|hint| hint.how == How::Asks).map(|hint| hint.area);
            areas.for_each(|area| {
                if !asked.contains(&area) {
                    asked.push(area)
                }
            });
        }
        begins &= unit.is_filler;
    }
    asked
}
