//! Extracts from a sentence what matters for comparing decisions.

use std::collections::BTreeSet;

use super::OPPOSITES;
use crate::model::{Decision, IntoSet, List, stem, words};

/// How many words of a sentence count; later ones are rarely essential.
const MAX_WORDS: usize = 24;
/// How many sentences of a decision's text count.
const MAX_SENTENCES: usize = 3;

/// A decision's title and first sentences.
pub(in crate::review) struct Statement {
    pub(super) title: Sentence,
    pub(super) body: Vec<Sentence>,
}

pub(super) struct Sentence {
    pub(super) is_title: bool,
    /// In lower case, without filler words.
    pub(super) words: Vec<String>,
    /// The stems of its subject, in order.
    pub(super) order: Vec<String>,
    /// The same stems as a set.
    pub(super) subject: BTreeSet<String>,
    /// The stems it rejects: after *instead of* and similar phrases.
    pub(super) rejected: BTreeSet<String>,
    /// The stems of each thing it rejects, if it says nothing else: *do not use X or Y*.
    pub(super) refused: Vec<BTreeSet<String>>,
    pub(super) is_negated: bool,
    pub(super) is_mandatory: bool,
    pub(super) numbers: BTreeSet<String>,
    /// What comes first and what comes after it, if the sentence says so.
    pub(super) sequence: Option<[BTreeSet<String>; 2]>,
    /// A bit per hash of each stem. Two sentences without a common bit share no stem, which rules out most pairs.
    pub(super) stem_bits: u128,
}

impl Statement {
    pub(in crate::review) fn new(decision: &Decision) -> Self {
        Self {
            title: Sentence { is_title: true, ..Sentence::new(&decision.title) },
            body: sentences(decision_line(&decision.text)),
        }
    }

    pub(super) fn sentences(&self) -> impl Iterator<Item = &Sentence> {
        std::iter::once(&self.title).chain(&self.body)
    }
}

/// A full stop ends a sentence only before a space, so `config.toml` stays a word.
fn sentences(text: &str) -> Vec<Sentence> {
    let read = text.split(". ").take(MAX_SENTENCES).map(|text| Sentence::new(text.trim().trim_end_matches('.')));
    read.filter(|sentence| sentence.subject.len() >= 2 || !sentence.refused.is_empty()).collect()
}

/// The line with the decision: from *What*, or the first line of the text, without labels and markup.
fn decision_line(text: &str) -> &str {
    let mut lines = text.lines().map(|line| line.trim().trim_start_matches(['#', '-', '*', '>', ' ']));
    let line = lines.find_map(|line| {
        let decision_line = line.trim_start_matches('*');
        let label = decision_line.split_once(':').filter(|(label, _)| label.split_whitespace().count() <= 2);
        let rest = match label {
            Some((label, rest)) => {
                let label = label.trim_matches(['*', ' ']).to_lowercase();
                matches!(label.as_str(), "what" | "decision" | "guardrails" | "rule").then_some(rest)?
            }
            None => decision_line,
        };
        let rest = rest.trim_matches(['*', ' ']);
        (rest.split_whitespace().count() >= 3).then_some(rest)
    });
    line.unwrap_or_default()
}

impl Sentence {
    fn new(text: &str) -> Self {
        let text = text.to_lowercase().replace('’', "'").replace("n't", " not").replace("no longer", "not");
        // Use one name for one thing.
        let text = text.replace("pull request", "pr").replace("prs", "pr");
        let all: Vec<String> =
            words(&text).filter(|word| !List::Fillers.has(word)).take(MAX_WORDS).map(str::to_owned).collect();
        let (asserted, rejected) = split_rejected(&text);
        let order = stems(&asserted);
        let rejected: BTreeSet<String> = rejected.map(stems).unwrap_or_default().into_iter().into_set();
        let refused = refused(&text);
        let stem_bits =
            order.iter().chain(&rejected).chain(refused.iter().flatten()).fold(0, |bits, stem| bits | bit(stem));
        Self {
            stem_bits,
            is_title: false,
            subject: order.iter().cloned().collect(),
            order,
            rejected: rejected.into_iter().filter(|stem| !List::Vague.has(stem)).collect(),
            refused,
            // Negations in quoted code are not negations of the sentence.
            is_negated: words(&without_code(&asserted)).filter(|word| List::No.has(word)).count() % 2 == 1,
            is_mandatory: words(&text).any(|word| matches!(word, "must" | "mandatory" | "required")),
            numbers: numbers(&all),
            words: all,
            sequence: sequence(&text),
        }
    }

    /// Whether the other sentence has all its significant words. Words such as *it* and *there* refer to the previous
    /// sentence, so such sentences never match.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let is_of_another = self.words.iter().any(|word| matches!(word.as_str(), "it" | "they" | "these" | "there"));
        let theirs: BTreeSet<String> = other.words.iter().filter_map(|word| stem(word)).into_set();
        let says = |word: &&String| !List::No.has(word) && !List::Choose.has(word);
        !is_of_another
            && self.words.iter().filter(says).filter_map(|word| stem(word)).all(|stem| theirs.contains(&stem))
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|other| other == word)
    }
}

fn bit(stem: &str) -> u128 {
    let hash = stem.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    1 << (hash % u128::BITS)
}

/// The stems of a text's subject.
fn stems(text: &str) -> Vec<String> {
    let is_about = |word: &&str| {
        let is_opposite = OPPOSITES.iter().any(|(one, other)| one == word || other == word);
        let is_number = word.starts_with(|c: char| c.is_ascii_digit()) || List::Counts.has(word);
        !(is_opposite || is_number || List::No.has(word) || List::Choose.has(word) || List::Fillers.has(word))
    };
    words(text).take(MAX_WORDS).filter(is_about).filter_map(stem).collect()
}

/// Its numbers, as digits or words, except those that are part of a name.
fn numbers(words: &[String]) -> BTreeSet<String> {
    let mut numbers = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        let is_name = at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|it| List::Numbered.has(it));
        let counted =
            List::Counts.entries().iter().position(|count| count == word).map(|count| (count + 1).to_string());
        let digits = word.starts_with(|c: char| c.is_ascii_digit()).then(|| word.clone()).filter(|word| !is_id(word));
        numbers.extend(digits.or(counted).filter(|_| !is_name));
    }
    numbers
}

/// `007`, `4f2a91c`: a number of a series, or a commit.
fn is_id(word: &str) -> bool {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let is_padded = word.starts_with('0') && digits > 1;
    is_padded || word.len() >= 7 && digits < word.len() && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The position of a phrase as whole words, except at the beginning.
fn mark_in(text: &str, mark: &str) -> Option<(usize, usize)> {
    let is_free = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let found = text.match_indices(mark).find(|(at, _)| {
        *at > 0 && is_free(text[..*at].chars().next_back()) && is_free(text[at + mark.len()..].chars().next())
    });
    found.map(|(at, _)| (at, at + mark.len()))
}

/// Splits a sentence into its assertion and what it rejects: `X instead of Y for Z` asserts X for Z and rejects Y.
fn split_rejected(text: &str) -> (String, Option<&str>) {
    let found = List::Over.entries().iter().filter_map(|mark| {
        let (start, end) = mark_in(text, mark)?;
        let before = &text[..start];
        let is_meant = match *mark {
            // `X, not Y`; elsewhere these words only negate.
            "not" | "without" => before.trim_end().ends_with([',', '(', '—']),
            // `prefer X over Y`; elsewhere *over* describes a route, as in *over the queue*.
            "over" => words(before).any(|word| List::Prefer.has(word)) || words(before).count() == 1,
            "from" => words(before).any(|word| matches!(word, "switch" | "move" | "migrate" | "back" | "away")),
            _ => true,
        };
        is_meant.then_some((start, end))
    });
    let Some((start, end)) = found.min() else { return (text.to_owned(), None) };
    let rest = text[end..].trim_start_matches(|c: char| !c.is_alphanumeric());
    // `not passed as a variable` rejects both words.
    let is_way = words(rest).next().is_some_and(|word| word.ends_with("ed") || word.ends_with("en"));
    let length = words(rest)
        .skip(if is_way { 2 } else { 0 })
        .find(|word| List::Bounds.has(word))
        .map(|word| word.as_ptr() as usize - rest.as_ptr() as usize)
        .into_iter()
        .chain(rest.find([',', ';', '.', ')', '—']))
        .min()
        .unwrap_or(rest.len());
    (format!("{} {}", &text[..start], &rest[length..]), Some(&rest[..length]))
}

/// What a sentence rejects if it says nothing else: *no X*, *do not use X or Y*.
fn refused(text: &str) -> Vec<BTreeSet<String>> {
    let text = text.trim();
    let Some(rest) = List::Refuse.entries().iter().find_map(|mark| text.strip_prefix(mark)?.strip_prefix(' ')) else {
        return Vec::new();
    };
    let parts = rest.split(',').flat_map(|part| part.split(" or ")).flat_map(|part| part.split(" and "));
    // Keep all words of a thing: inline styles are not all styles.
    let is_significant = |word: &&str| !(List::No.has(word) || List::Choose.has(word) || List::Fillers.has(word));
    let item = |part: &str| -> BTreeSet<String> { words(part).filter(is_significant).filter_map(stem).collect() };
    let items: Vec<BTreeSet<String>> = parts.map(item).filter(|item| !item.is_empty()).collect();
    if items.len() > 3 || items.iter().any(|item| item.len() > 2) { Vec::new() } else { items }
}

/// `X before Y`, `Y after X`.
fn sequence(text: &str) -> Option<[BTreeSet<String>; 2]> {
    let (mark, is_before) =
        [("before", true), ("after", false)].into_iter().find(|(mark, _)| mark_in(text, mark).is_some())?;
    let (start, end) = mark_in(text, mark)?;
    let sides = [&text[..start], &text[end..]].map(|side| stems(side).into_iter().into_set());
    let [first, second] = sides;
    Some(if is_before { [first, second] } else { [second, first] })
}
