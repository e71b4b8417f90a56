//! Reads a message as units: what each says for each agent, and the work that it begins by asking for.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::areas::{Hint, How, TermId};
use super::index::{Index, Support, keep_stronger};
use super::message::{Kind, Message, Token};
use super::stems::each_stem_in;
use crate::model::List;

/// A word, an identifier, or words that mean something together.
#[derive(Clone, Debug)]
pub(super) struct Unit<'u> {
    /// The first.
    pub(super) token: &'u Token<'u>,
    pub(super) range: Range<usize>,
    /// How many of its words tell something.
    pub(super) telling: usize,
    pub(super) supports: Cow<'u, [Support]>,
    hints: &'static [Hint],
    /// The kind of work that it nearly always means.
    pub(super) kind: Option<usize>,
}

/// A word or an identifier, and its terms: one, or the pieces of an identifier.
struct Word<'u> {
    token: &'u Token<'u>,
    range: Range<usize>,
    terms: Range<usize>,
    whole: Option<TermId>,
}

/// The units of a message.
pub(super) fn read<'u>(index: &'u Index<'_>, message: &'u Message<'_>) -> Vec<Unit<'u>> {
    let (words, terms) = words(index, message);
    let mut seen: HashSet<&[TermId], FixedState> = HashSet::default();
    let (mut units, mut rest) = (Vec::with_capacity(words.len()), &words[..]);
    while let Some(word) = rest.first() {
        let of_whole = word.whole.map(|whole| index.areas.hints(whole)).filter(|hints| !hints.is_empty());
        let (length, hints) =
            of_whole.map_or_else(|| index.areas.longest(&terms[word.terms.start..]), |hints| (1, hints));
        let next = rest.iter().skip(1).position(|next| next.terms.start >= word.terms.start + length);
        let (of, after) = rest.split_at(next.map_or(rest.len(), |next| next + 1));
        let last = &of[of.len() - 1];
        let telling =
            of.iter().filter(|it| terms[it.terms.clone()].iter().any(|term| index.areas.tells(*term))).count();
        let mut supports = Cow::default();
        // What was said before says nothing more.
        if !word.token.is_denied
            && (telling > 0 || length > 1 || word.whole.is_some())
            && seen.insert(&terms[word.terms.start..last.terms.end])
        {
            supports = of_words(index, of, &terms);
            if length > 1 {
                index.of_hints(hints).for_each(|support| keep_stronger(supports.to_mut(), support));
            }
        }
        let is_kind = |hint: &&Hint| hint.how == How::Strong && index.areas.list[hint.area].is_kind;
        let kind = hints.iter().find(is_kind).map(|hint| hint.area);
        let range = word.range.start..last.range.end;
        units.push(Unit { token: word.token, range, telling, supports, hints, kind });
        rest = after;
    }
    units
}

/// What the words of a unit say one by one: of an identifier the whole, or the strongest of its pieces.
fn of_words<'u>(index: &'u Index<'_>, words: &[Word<'_>], terms: &[TermId]) -> Cow<'u, [Support]> {
    let of_word = |word: &Word<'_>| {
        let terms = word.whole.iter().chain(&terms[word.terms.clone()]);
        merged(terms.map(|term| Cow::Borrowed(index.supports(*term))), keep_stronger)
    };
    merged(words.iter().map(of_word), |all, one| match all.iter_mut().find(|known| known.agent == one.agent) {
        Some(known) => {
            let weight = known.weight + one.weight;
            *known = Support { weight, ..if known.weight < one.weight { one } else { *known } };
        }
        None => all.push(one),
    })
}

fn merged<'u>(
    mut supports: impl Iterator<Item = Cow<'u, [Support]>>,
    merge: impl Fn(&mut Vec<Support>, Support),
) -> Cow<'u, [Support]> {
    let mut all = supports.next().unwrap_or_default();
    supports.for_each(|more| more.iter().for_each(|one| merge(all.to_mut(), *one)));
    all
}

fn words<'u>(index: &Index<'_>, message: &'u Message<'_>) -> (Vec<Word<'u>>, Vec<TermId>) {
    let mut terms: Vec<TermId> = Vec::with_capacity(message.tokens.len());
    let mut words: Vec<Word<'_>> = Vec::with_capacity(message.tokens.len());
    let mut stem = String::new();
    for token in message.tokens.iter().filter(|token| token.kind != Kind::Mark) {
        let (start, mut whole) = (token.place.start, None);
        each_stem_in(&mut stem, &message.text[token.place.clone()], &mut |stem, range, is_whole| {
            let range = start + range.start..start + range.end;
            // Whose name it is says nothing of the work.
            if message.text[..range.start].ends_with('@') && !message.text[range.end..].starts_with('/') {
                return;
            }
            let term = index.term(stem);
            if is_whole {
                whole = Some(term);
                return;
            }
            terms.push(term);
            match words.last_mut().filter(|last| last.whole.is_some() && last.range == range) {
                Some(last) => last.terms.end = terms.len(),
                None => words.push(Word { token, range, terms: terms.len() - 1..terms.len(), whole: whole.take() }),
            }
        });
    }
    (words, terms)
}

/// The kinds of work that the beginning of a sentence asks for.
pub(super) fn asked<'u>(units: impl IntoIterator<Item = &'u Unit<'u>>) -> Vec<usize> {
    // A request may go on before its verb: `and then please`.
    const FILLERS: [List; 5] = [List::BeforeVerb, List::Polished, List::Courtesy, List::Greeting, List::Addressed];
    let (mut asked, mut sentence, mut begins) = (Vec::new(), usize::MAX, false);
    for unit in units {
        begins = if unit.token.sentence == sentence { begins } else { !unit.token.is_denied };
        sentence = unit.token.sentence;
        for hint in unit.hints.iter().filter(|hint| begins && hint.how == How::Asks) {
            if !asked.contains(&hint.area) {
                asked.push(hint.area);
            }
        }
        begins &= unit.token.any(&FILLERS);
    }
    asked
}
