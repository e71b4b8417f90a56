//! Detects decisions that seem to contradict each other on the same subject.
//!
//! Compares titles and the first sentences of two decisions. Two sentences with the same
//! subject are opposed if
//!
//! - one says no where the other says yes,
//! - one has a word and the other its opposite,
//! - they give different numbers,
//! - they make different choices: *store times in UTC*, *store times in local time*,
//! - they give a different order: *X before Y*, *Y before X*,
//! - one adopts what the other rejects: *X instead of Y*, *do not use Y*.
//!
//! Words that many decisions share say little about the subject, so rare words weigh more.

mod sentence;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use sentence::Sentence;
pub(super) use sentence::Statement;

use crate::model::{IntoSet, List, Sort, list, stem};

/// Pairs of words that exclude each other.
static OPPOSITES: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| List::Opposites.entries().iter().filter_map(|pair| pair.split_once('/')).collect());

/// Two sentences have the same subject if they share this fraction of the smaller subject's weight.
const SAME_SUBJECT: f64 = 0.6;
/// Two sentences that share this fraction of the larger subject's weight say the same.
const SAME: f64 = 0.85;

/// Why two decisions seem to be opposed.
pub(super) struct Reason {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Reason {
    fn new(code: &'static str, message: String) -> Self {
        Self { code, message }
    }
}

/// How frequent each word is among the decisions.
pub(super) struct WordFrequencies {
    count: usize,
    frequency: BTreeMap<String, usize>,
}

impl WordFrequencies {
    pub(super) fn new<'s>(statements: impl ExactSizeIterator<Item = &'s Statement>) -> Self {
        let (count, mut frequency) = (statements.len(), BTreeMap::new());
        for statement in statements {
            let stems: BTreeSet<&String> =
                statement.sentences().flat_map(|sentence| sentence.subject.iter().chain(&sentence.rejected)).into_set();
            for stem in stems {
                *frequency.entry(stem.clone()).or_insert(0) += 1;
            }
        }
        Self { count, frequency }
    }

    pub(super) fn opposition(&self, one: &Statement, other: &Statement) -> Option<Reason> {
        if let Some(reason) = self.opposed(&one.title, &other.title, 1) {
            return Some(reason);
        }
        let stem_bits =
            |statement: &Statement| statement.sentences().fold(0, |bits, sentence| bits | sentence.stem_bits);
        if stem_bits(one) & stem_bits(other) == 0 {
            return None;
        }
        let like_titles = one.title.subject.intersection(&other.title.subject).count() >= 2;
        let are_apart = like_titles && have_different_subjects(&one.title, &other.title);
        let mut pairs: Vec<(usize, &Sentence, &Sentence)> = Vec::new();
        for (a, first) in one.sentences().enumerate() {
            pairs.extend(other.sentences().enumerate().map(|(b, second)| (a.max(b), first, second)));
        }
        // Later sentences matter less.
        pairs.stable_sort_by_key(|(depth, ..)| *depth);
        pairs.into_iter().skip(1).find_map(|(depth, a, b)| {
            // Sentences of a text share words by chance more often than titles do.
            let reason = self.opposed(a, b, 2)?;
            let is_firm = a.subject.intersection(&b.subject).count() >= 3
                || (if a.is_negated { a.is_within(b) } else { b.is_within(a) });
            let is_told = match reason.code {
                "yes-and-no" => !are_apart && (is_firm || (depth == 1 && !a.is_title && !b.is_title)),
                "opposite-words" | "other-order" => true,
                _ => depth == 1,
            };
            is_told.then_some(reason)
        })
    }

    /// `least`: how many words the two sentences must share.
    fn opposed(&self, one: &Sentence, other: &Sentence, least: usize) -> Option<Reason> {
        if one.stem_bits & other.stem_bits == 0 {
            return None;
        }
        let shared: Vec<&String> = one.subject.intersection(&other.subject).collect();
        let about = || list(shared.iter().take(4).map(|stem| format!("“{}”", self.word(stem, one))));
        if let Some(reason) = self.refused(one, other).or_else(|| self.adopted_and_rejected(one, other, least)) {
            return Some(reason);
        }
        if shared.len() < least {
            return None;
        }
        if let Some(reason) = different_order(one, other) {
            return Some(reason);
        }
        let weight =
            |stems: &BTreeSet<String>| stems.iter().map(|stem| self.weight(stem, shared.contains(&stem))).sum::<f64>();
        let common: f64 = shared.iter().map(|stem| self.weight(stem, true)).sum();
        let (a, b) = (weight(&one.subject), weight(&other.subject));
        let (small, large) = (a.min(b), a.max(b));
        if common < SAME_SUBJECT * small {
            return alternative(one, other);
        }
        if let Some((a, b)) = opposite_words(one, other) {
            return Some(Reason::new(
                "opposite-words",
                format!("about {}, one says “{a}” and the other “{b}”", about()),
            ));
        }
        let is_enough = shared.len() >= 2 || one.subject.len().max(other.subject.len()) <= 2;
        if one.is_negated != other.is_negated && is_enough && !have_different_subjects(one, other) {
            return Some(Reason::new("yes-and-no", format!("one says yes and the other no to {}", about())));
        }
        if let Some((a, b)) = different_numbers(one, other).filter(|_| common >= SAME * large || shared.len() >= 2) {
            return Some(Reason::new(
                "different-numbers",
                format!("about {}, one says {a} and the other {b}", about()),
            ));
        }
        let is_same = common >= SAME * large && shared.len() >= 3;
        let same = || Reason::new("same-subject", format!("both are about {}", about()));
        alternative(one, other).or_else(|| is_same.then(same))
    }

    /// One sentence only rejects something, and the other adopts it.
    fn refused(&self, one: &Sentence, other: &Sentence) -> Option<Reason> {
        let adopted = |a: &Sentence, b: &Sentence| {
            let item = a.refused.iter().find(|item| item.is_subset(&b.subject))?;
            let words = || list(item.iter().map(|stem| format!("“{}”", self.word(stem, b))));
            (!b.is_negated).then(|| turned_down(&words()))
        };
        adopted(one, other).or_else(|| adopted(other, one))
    }

    fn adopted_and_rejected(&self, one: &Sentence, other: &Sentence, least: usize) -> Option<Reason> {
        let adopted = |a: &Sentence, b: &Sentence| {
            // There is no conflict if both reject it, or if it is rejected only for one of two subjects.
            let about = a.subject.intersection(&b.subject).count();
            let found = a.rejected.iter().find(|stem| !a.subject.contains(*stem))?;
            // `from X to Y`, and the other sentence is about X only.
            let is_all = b.subject.is_subset(&a.rejected);
            let is_same = about >= least || is_all || !b.rejected.is_disjoint(&a.subject);
            let fits = !b.is_negated && is_same && a.rejected.is_subset(&b.subject);
            fits.then(|| turned_down(&format!("“{}”", self.word(found, b))))
        };
        adopted(one, other).or_else(|| adopted(other, one))
    }

    /// Rare words weigh more when comparing subjects. A word that only the two sentences have counts as if one had it.
    fn weight(&self, stem: &str, is_shared: bool) -> f64 {
        let frequency = self.frequency.get(stem).copied().unwrap_or(1);
        let frequency = frequency.saturating_sub(usize::from(is_shared)).max(1);
        (1.0 + self.count as f64 / frequency as f64).ln()
    }

    /// A stem in the form it has in the sentence.
    fn word(&self, wanted: &str, sentence: &Sentence) -> String {
        let word = sentence.words.iter().find(|word| stem(word).as_deref() == Some(wanted));
        word.map_or_else(|| wanted.to_owned(), Clone::clone)
    }
}

fn turned_down(words: &str) -> Reason {
    Reason::new("turned-down", format!("one turns down {words}, which the other takes"))
}

fn opposite_words<'s>(one: &'s Sentence, other: &'s Sentence) -> Option<(&'static str, &'static str)> {
    OPPOSITES
        .iter()
        .flat_map(|(a, b)| [(*a, *b), (*b, *a)])
        .find(|(a, b)| {
            one.has(a) && other.has(b) && !one.has(b) && !other.has(a)
            // Negating one word means the other.
            && one.is_negated == other.is_negated
        })
        .or_else(|| {
            let is_mild = |sentence: &Sentence| sentence.has("optional") && !sentence.is_mandatory;
            let (a, b) = (one.is_mandatory && is_mild(other), other.is_mandatory && is_mild(one));
            (a || b).then_some(if a { ("must", "optional") } else { ("optional", "must") })
        })
}

/// Whether both start with a subject that the other does not mention.
fn have_different_subjects(one: &Sentence, other: &Sentence) -> bool {
    let starts_with_own_subject =
        |a: &Sentence, b: &Sentence| a.order.first().is_some_and(|first| !b.subject.contains(first));
    starts_with_own_subject(one, other) && starts_with_own_subject(other, one)
}

/// `X before Y`, and `Y before X`.
fn different_order(one: &Sentence, other: &Sentence) -> Option<Reason> {
    let ([a, b], [c, d]) = (one.sequence.as_ref()?, other.sequence.as_ref()?);
    let first = a.intersection(d).find(|stem| !b.contains(*stem) && !c.contains(*stem))?;
    let second = b.intersection(c).find(|stem| !a.contains(*stem) && !d.contains(*stem))?;
    Some(Reason::new("other-order", format!("they put “{first}” and “{second}” in a different order")))
}

fn different_numbers(one: &Sentence, other: &Sentence) -> Option<(String, String)> {
    let differ = !one.numbers.is_empty() && !other.numbers.is_empty() && one.numbers.is_disjoint(&other.numbers);
    let shown = |numbers: &BTreeSet<String>| numbers.iter().next().cloned().unwrap_or_default();
    differ.then(|| (shown(&one.numbers), shown(&other.numbers)))
}

/// Different words in the same position of otherwise similar sentences, if that position holds a choice.
fn alternative(one: &Sentence, other: &Sentence) -> Option<Reason> {
    /// A choice is named by a few words.
    const FEW: usize = 3;
    let (a, b) = (&one.words, &other.words);
    let is_like = |(x, y): &(&String, &String)| x == y || stem(x).is_some_and(|x| Some(x) == stem(y));
    let before = a.iter().zip(b).take_while(is_like).count();
    let room = a.len().min(b.len()) - before;
    let after = a.iter().rev().zip(b.iter().rev()).take_while(is_like).take(room).count();
    let (mine, theirs) = (&a[before..a.len() - after], &b[before..b.len() - after]);
    if mine.is_empty() || theirs.is_empty() || mine.len() > FEW || theirs.len() > FEW {
        return None;
    }
    let says = |word: &&String| !List::Choose.has(word) && stem(word).is_some();
    let shared_words = a[..before].iter().chain(&a[a.len() - after..]).filter(says).count();
    let is_done = a.first().is_some_and(|word| List::Do.has(word));
    let is_verb = |word: &String| List::Choose.has(word);
    let is_chosen = match a[..before].last() {
        Some(verb) if is_verb(verb) => shared_words >= 1,
        Some(word) => {
            List::As.has(word) && (shared_words >= 2 || (shared_words == 1 && a[..before].iter().any(is_verb)))
        }
        // `X is the store`, `Y is the store`.
        None => {
            matches!(a.get(a.len() - after).map(String::as_str), Some("is" | "are")) && shared_words >= 1 && after >= 3
        }
    };
    if !is_chosen || is_done {
        return None;
    }
    let (mine, theirs) = (mine.join(" "), theirs.join(" "));
    Some(Reason::new("alternatives", format!("in the same place one says “{mine}” and the other “{theirs}”")))
}
