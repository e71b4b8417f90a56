//! Whether two decisions seem to say opposite things about one subject.
//!
//! A decision is compared by its title and by the first sentences of what it says. Two such sentences are opposed when
//! they are about the same thing and
//!
//! - one says no where the other says yes,
//! - one has a word and the other its opposite,
//! - they give different numbers,
//! - they put different things in the same place: *store times in UTC*, *store times in local time*,
//! - they put two things in a different order: *X before Y*, *Y before X*,
//! - one takes what the other has turned down: *X instead of Y*, *do not use Y*.
//!
//! Words that many decisions share say little about what one is about, so rare ones weigh more.

mod sentence;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use sentence::Sentence;
pub(super) use sentence::Statement;

use crate::model::{List, list, stem};

/// Words that exclude each other.
static OPPOSITES: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| List::Opposites.entries().iter().filter_map(|pair| pair.split_once('/')).collect());

/// How much of the smaller one's subject two sentences share, in weights, so that they are about the same.
const SAME_SUBJECT: f64 = 0.6;
/// Two sentences that share this much of the larger one's subject say the same.
const SAME: f64 = 0.85;

/// Why two decisions look opposed.
pub(super) struct Reason {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// How usual each word is among the decisions.
pub(super) struct Subjects {
    count: usize,
    frequency: BTreeMap<String, usize>,
}

impl Subjects {
    pub(super) fn new(statements: &[Statement]) -> Self {
        let mut frequency = BTreeMap::new();
        for statement in statements {
            let stems: BTreeSet<&String> =
                statement.sentences().flat_map(|sentence| sentence.subject.iter().chain(&sentence.rejected)).collect();
            for stem in stems {
                *frequency.entry(stem.clone()).or_insert(0) += 1;
            }
        }
        Self { count: statements.len(), frequency }
    }

    pub(super) fn opposition(&self, one: &Statement, other: &Statement) -> Option<Reason> {
        if let Some(reason) = self.opposed(&one.title, &other.title, 1) {
            return Some(reason);
        }
        let reach = |statement: &Statement| statement.sentences().fold(0, |bits, sentence| bits | sentence.reach);
        if reach(one) & reach(other) == 0 {
            return None;
        }
        let like_titles = one.title.subject.intersection(&other.title.subject).count() >= 2;
        let are_apart = like_titles && are_of_two_things(&one.title, &other.title);
        let mut pairs: Vec<(usize, &Sentence, &Sentence)> = Vec::new();
        for (a, first) in one.sentences().enumerate() {
            pairs.extend(other.sentences().enumerate().map(|(b, second)| (a.max(b), first, second)));
        }
        // Later sentences are less its point.
        pairs.sort_by_key(|(depth, ..)| *depth);
        pairs.into_iter().skip(1).find_map(|(depth, a, b)| {
            // Sentences of a text share words more easily than titles do.
            let reason = self.opposed(a, b, 2)?;
            let is_firm = a.subject.intersection(&b.subject).count() >= 3
                || (if a.says_no { a.is_within(b) } else { b.is_within(a) });
            let is_told = match reason.code {
                "yes-and-no" => !are_apart && (is_firm || (depth == 1 && !a.is_title && !b.is_title)),
                "opposite-words" | "other-order" => true,
                _ => depth == 1,
            };
            is_told.then_some(reason)
        })
    }

    /// `least`: the words two sentences have to share.
    fn opposed(&self, one: &Sentence, other: &Sentence, least: usize) -> Option<Reason> {
        if one.reach & other.reach == 0 {
            return None;
        }
        let shared: Vec<&String> = one.subject.intersection(&other.subject).collect();
        let about = || list(shared.iter().take(4).map(|stem| format!("“{}”", self.word(stem, one))));
        if let Some(reason) = self.refused(one, other).or_else(|| self.taken_and_turned_down(one, other, least)) {
            return Some(reason);
        }
        if shared.len() < least {
            return None;
        }
        if let Some(reason) = in_other_order(one, other) {
            return Some(reason);
        }
        let weight =
            |stems: &BTreeSet<String>| stems.iter().map(|stem| self.weight(stem, shared.contains(&stem))).sum::<f64>();
        let common: f64 = shared.iter().map(|stem| self.weight(stem, true)).sum();
        let (a, b) = (weight(&one.subject), weight(&other.subject));
        let (small, large) = (a.min(b), a.max(b));
        if common < SAME_SUBJECT * small {
            return alternative(one, other).map(|(a, b)| self.in_one_place(&a, &b));
        }
        if let Some((a, b)) = opposite_words(one, other) {
            let message = format!("about {}, one says “{a}” and the other “{b}”", about());
            return Some(Reason { code: "opposite-words", message });
        }
        let is_enough = shared.len() >= 2 || one.subject.len().max(other.subject.len()) <= 2;
        if one.says_no != other.says_no && is_enough && !are_of_two_things(one, other) {
            return Some(Reason {
                code: "yes-and-no",
                message: format!("one says yes and the other no to {}", about()),
            });
        }
        if let Some((a, b)) = other_numbers(one, other).filter(|_| common >= SAME * large || shared.len() >= 2) {
            let message = format!("about {}, one says {a} and the other {b}", about());
            return Some(Reason { code: "different-numbers", message });
        }
        if let Some((a, b)) = alternative(one, other).or_else(|| other_choice(one, other)) {
            return Some(self.in_one_place(&a, &b));
        }
        (common >= SAME * large && shared.len() >= 3)
            .then(|| Reason { code: "same-subject", message: format!("both are about {}", about()) })
    }

    /// One says no to a thing and nothing else, and the other takes it.
    fn refused(&self, one: &Sentence, other: &Sentence) -> Option<Reason> {
        let taken = |a: &Sentence, b: &Sentence| {
            let item = a.refused.iter().find(|item| item.is_subset(&b.subject))?;
            let word = list(item.iter().map(|stem| format!("“{}”", self.word(stem, b))));
            (!b.says_no).then(|| Reason {
                code: "turned-down",
                message: format!("one turns down {word}, which the other takes"),
            })
        };
        taken(one, other).or_else(|| taken(other, one))
    }

    fn in_one_place(&self, a: &str, b: &str) -> Reason {
        Reason {
            code: "alternatives", message: format!("in the same place one says “{a}” and the other “{b}”")
        }
    }

    fn taken_and_turned_down(&self, one: &Sentence, other: &Sentence, least: usize) -> Option<Reason> {
        let taken = |a: &Sentence, b: &Sentence| {
            // What both turn down is no quarrel, nor what is turned down for one of two things only.
            let about = a.subject.intersection(&b.subject).count();
            let found = a.rejected.iter().find(|stem| !a.subject.contains(*stem))?;
            // `from X to Y`, and the other is about nothing but X.
            let is_all = b.subject.is_subset(&a.rejected);
            let is_same = about >= least || is_all || !b.rejected.is_disjoint(&a.subject);
            let fits = !b.says_no && is_same && a.rejected.is_subset(&b.subject);
            let word = self.word(found, b);
            fits.then(|| Reason {
                code: "turned-down",
                message: format!("one turns down “{word}”, which the other takes"),
            })
        };
        taken(one, other).or_else(|| taken(other, one))
    }

    /// The rarer, the more two sentences that share it are about the same. What only the two have is as rare as what one
    /// has.
    fn weight(&self, stem: &str, is_shared: bool) -> f64 {
        let frequency = self.frequency.get(stem).copied().unwrap_or(1);
        let frequency = frequency.saturating_sub(usize::from(is_shared)).max(1);
        (1.0 + self.count as f64 / frequency as f64).ln()
    }

    /// A stem as the sentence has it.
    fn word(&self, wanted: &str, sentence: &Sentence) -> String {
        let word = sentence.words.iter().find(|word| stem(word).as_deref() == Some(wanted));
        word.map_or_else(|| wanted.to_owned(), Clone::clone)
    }
}

fn opposite_words<'s>(one: &'s Sentence, other: &'s Sentence) -> Option<(&'static str, &'static str)> {
    OPPOSITES
        .iter()
        .flat_map(|(a, b)| [(*a, *b), (*b, *a)])
        .find(|(a, b)| {
            one.has(a) && other.has(b) && !one.has(b) && !other.has(a)
            // Saying no to the one is saying the other.
            && one.says_no == other.says_no
        })
        .or_else(|| {
            let is_mild = |sentence: &Sentence| sentence.has("optional") && !sentence.is_must;
            let (a, b) = (one.is_must && is_mild(other), other.is_must && is_mild(one));
            (a || b).then_some(if a { ("must", "optional") } else { ("optional", "must") })
        })
}

/// What they are said of comes first in both, and is nothing that the other speaks of.
fn are_of_two_things(one: &Sentence, other: &Sentence) -> bool {
    let strange = |a: &Sentence, b: &Sentence| a.order.first().is_some_and(|first| !b.subject.contains(first));
    strange(one, other) && strange(other, one)
}

/// `X before Y`, and `Y before X`.
fn in_other_order(one: &Sentence, other: &Sentence) -> Option<Reason> {
    let ([a, b], [c, d]) = (one.sequence.as_ref()?, other.sequence.as_ref()?);
    let first = a.intersection(d).find(|stem| !b.contains(*stem) && !c.contains(*stem))?;
    let second = b.intersection(c).find(|stem| !a.contains(*stem) && !d.contains(*stem))?;
    Some(Reason {
        code: "other-order", message: format!("they put “{first}” and “{second}” in a different order")
    })
}

/// Sentences that differ in a single thing, and that thing is chosen, whatever order their words have.
fn other_choice(one: &Sentence, other: &Sentence) -> Option<(String, String)> {
    let shared = one.subject.intersection(&other.subject).count();
    let mine: Vec<&String> = one.subject.difference(&other.subject).collect();
    let theirs: Vec<&String> = other.subject.difference(&one.subject).collect();
    let is_done = |sentence: &Sentence| sentence.words.first().is_some_and(|word| List::Do.has(word));
    let ([a], [b]) = (mine.as_slice(), theirs.as_slice()) else { return None };
    let is_chosen = |sentence: &Sentence, wanted: &str| {
        let at = sentence.words.iter().position(|word| stem(word).as_deref() == Some(wanted));
        let before = at.and_then(|at| at.checked_sub(1)).and_then(|at| sentence.words.get(at));
        before.is_some_and(|word| List::As.has(word) || List::Choose.has(word))
    };
    let fits = shared >= 3 && !is_done(one) && !is_done(other) && (is_chosen(one, a) || is_chosen(other, b));
    fits.then(|| ((*a).clone(), (*b).clone()))
}

fn other_numbers(one: &Sentence, other: &Sentence) -> Option<(String, String)> {
    let differ = !one.numbers.is_empty() && !other.numbers.is_empty() && one.numbers.is_disjoint(&other.numbers);
    let shown = |numbers: &BTreeSet<String>| numbers.iter().next().cloned().unwrap_or_default();
    differ.then(|| (shown(&one.numbers), shown(&other.numbers)))
}

/// Different words in the same place of otherwise like sentences, where that place holds what is chosen.
fn alternative(one: &Sentence, other: &Sentence) -> Option<(String, String)> {
    /// A choice is named in few words.
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
    let frame = a[..before].iter().chain(&a[a.len() - after..]).filter(says).count();
    let is_done = a.first().is_some_and(|word| List::Do.has(word));
    let is_verb = |word: &String| List::Choose.has(word);
    let is_chosen = match a[..before].last() {
        Some(verb) if is_verb(verb) => frame >= 1,
        Some(word) => List::As.has(word) && (frame >= 2 || (frame == 1 && a[..before].iter().any(is_verb))),
        // `X is the store`, `Y is the store`.
        None => matches!(a.get(a.len() - after).map(String::as_str), Some("is" | "are")) && frame >= 1 && after >= 3,
    };
    (is_chosen && !is_done).then(|| (mine.join(" "), theirs.join(" ")))
}
