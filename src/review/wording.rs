//! Whether two decisions seem to say opposite things about one subject.
//!
//! A decision is compared by its title and by the first sentence of what it says. Two such sentences are opposed when
//! they are about the same thing and
//!
//! - one says no where the other says yes,
//! - one has a word and the other its opposite,
//! - they give different numbers,
//! - they put different things in the same place: *store times in UTC*, *store times in local time*,
//! - one takes what the other has turned down: *X instead of Y*.
//!
//! Words that many decisions share say little about what one is about, so rare ones weigh more.

mod lists;

use std::collections::{BTreeMap, BTreeSet};

use lists::{AS, BOUNDS, CHOOSE, DO, FILLERS, NO, NUMBERED, OPPOSITES, OVER};

use crate::model::{Decision, list, stem, words};

/// Words of one sentence that count; what follows is no longer its point.
const LONGEST: usize = 24;
/// How much of the smaller one's subject two sentences share, in weights, so that they are about the same.
const SAME_SUBJECT: f64 = 0.6;
/// Two sentences that share this much of the larger one's subject say the same.
const SAME: f64 = 0.85;

/// What a decision says, in two sentences.
pub(super) struct Statement {
    title: Sentence,
    body: Option<Sentence>,
}

struct Sentence {
    /// In lower case, without fillers.
    words: Vec<String>,
    /// What it is about.
    subject: BTreeSet<String>,
    /// What it turns down: behind *instead of* and its like.
    rejected: BTreeSet<String>,
    says_no: bool,
    numbers: BTreeSet<String>,
}

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

impl Statement {
    pub(super) fn new(decision: &Decision) -> Self {
        let body = first_sentence(&decision.text);
        Self {
            title: Sentence::new(&decision.title),
            body: (!body.is_empty()).then(|| Sentence::new(body)).filter(|body| body.subject.len() >= 2),
        }
    }

    fn sentences(&self) -> impl Iterator<Item = &Sentence> {
        std::iter::once(&self.title).chain(&self.body)
    }
}

/// The first sentence of *What*, or of the text, without labels and marks.
fn first_sentence(text: &str) -> &str {
    let mut lines = text.lines().map(|line| line.trim().trim_start_matches(['#', '-', '*', '>', ' ']));
    let line = lines.find_map(|line| {
        let said = line.trim_start_matches('*');
        let label = said.split_once(':').filter(|(label, _)| label.split_whitespace().count() <= 2);
        let rest = match label {
            Some((label, rest)) => {
                let label = label.trim_matches(['*', ' ']).to_lowercase();
                matches!(label.as_str(), "what" | "decision").then_some(rest)?
            }
            None => said,
        };
        let rest = rest.trim_matches(['*', ' ']);
        (rest.split_whitespace().count() >= 3).then_some(rest)
    });
    let line = line.unwrap_or_default();
    line.split_once(". ").map_or(line, |(sentence, _)| sentence)
}

impl Sentence {
    fn new(text: &str) -> Self {
        let text = text.to_lowercase().replace('’', "'").replace("n't", " not").replace("no longer", "not");
        let all: Vec<String> =
            words(&text).filter(|word| !FILLERS.contains(word)).take(LONGEST).map(str::to_owned).collect();
        let numbers = all
            .iter()
            .enumerate()
            .filter(|(at, word)| {
                word.starts_with(|c: char| c.is_ascii_digit())
                    && at.checked_sub(1).is_none_or(|before| !NUMBERED.contains(&all[before].as_str()))
            })
            .map(|(_, word)| word.clone())
            .collect();
        let (asserted, rejected) = turned_down(&text);
        let is_about = |word: &&str| {
            let is_opposite = OPPOSITES.iter().any(|(one, other)| one == word || other == word);
            let is_number = word.starts_with(|c: char| c.is_ascii_digit());
            !(is_opposite || is_number || NO.contains(word) || CHOOSE.contains(word))
        };
        let stems =
            |text: &str| -> BTreeSet<String> { words(text).take(LONGEST).filter(is_about).filter_map(stem).collect() };
        Self {
            subject: stems(&asserted),
            rejected: rejected.map(stems).unwrap_or_default(),
            says_no: words(&asserted).filter(|word| NO.contains(word)).count() % 2 == 1,
            words: all,
            numbers,
        }
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|other| other == word)
    }
}

/// What a sentence says, and what it says that against: `X instead of Y for Z` says X for Z, against Y.
fn turned_down(text: &str) -> (String, Option<&str>) {
    let found = OVER.iter().filter_map(|mark| {
        let (at, _) = text.match_indices(mark).find(|(at, _)| {
            let is_free = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            *at > 0 && is_free(text[..*at].chars().next_back()) && is_free(text[at + mark.len()..].chars().next())
        })?;
        // `X, not Y`; elsewhere the word only says no.
        (*mark != "not" || text[..at].trim_end().ends_with([',', '(', '—'])).then_some((at, at + mark.len()))
    });
    let Some((start, end)) = found.min() else { return (text.to_owned(), None) };
    let rest = &text[end..];
    let length = words(rest)
        .find(|word| BOUNDS.contains(word))
        .map(|word| word.as_ptr() as usize - rest.as_ptr() as usize)
        .into_iter()
        .chain(rest.find([',', ';', '.', ')', '—']))
        .min()
        .unwrap_or(rest.len());
    (format!("{} {}", &text[..start], &rest[length..]), Some(&rest[..length]))
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
        let titles = self.opposed(&one.title, &other.title, 1);
        titles.or_else(|| {
            one.sentences()
                .flat_map(|a| other.sentences().map(move |b| (a, b)))
                .skip(1)
                // Sentences of a text share words more easily than titles do.
                .find_map(|(a, b)| self.opposed(a, b, 2))
        })
    }

    /// `least`: the words two sentences have to share.
    fn opposed(&self, one: &Sentence, other: &Sentence, least: usize) -> Option<Reason> {
        let shared: Vec<&String> = one.subject.intersection(&other.subject).collect();
        let about = || list(shared.iter().take(4).map(|stem| format!("“{}”", self.word(stem, one))));
        if let Some(reason) = self.taken_and_turned_down(one, other, least) {
            return Some(reason);
        }
        if shared.len() < least {
            return None;
        }
        let weight = |stems: &BTreeSet<String>| stems.iter().map(|stem| self.weight(stem)).sum::<f64>();
        let common: f64 = shared.iter().map(|stem| self.weight(stem)).sum();
        let (small, large) =
            (weight(&one.subject).min(weight(&other.subject)), weight(&one.subject).max(weight(&other.subject)));
        if common < SAME_SUBJECT * small {
            return alternative(one, other).map(|(a, b)| self.in_one_place(&a, &b));
        }
        if let Some((a, b)) = opposite_words(one, other) {
            let message = format!("about {}, one says “{a}” and the other “{b}”", about());
            return Some(Reason { code: "opposite-words", message });
        }
        let is_enough = shared.len() >= 2 || one.subject.len().max(other.subject.len()) <= 2;
        if one.says_no != other.says_no && is_enough {
            return Some(Reason {
                code: "yes-and-no",
                message: format!("one says yes and the other no to {}", about()),
            });
        }
        if let Some((a, b)) = other_numbers(one, other).filter(|_| common >= SAME * large || shared.len() >= 2) {
            let message = format!("about {}, one says {a} and the other {b}", about());
            return Some(Reason { code: "different-numbers", message });
        }
        if let Some((a, b)) = alternative(one, other) {
            return Some(self.in_one_place(&a, &b));
        }
        (common >= SAME * large && shared.len() >= 3)
            .then(|| Reason { code: "same-subject", message: format!("both are about {}", about()) })
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
            let found = a.rejected.iter().find(|stem| b.subject.contains(*stem) && !a.subject.contains(*stem));
            let found = found.filter(|_| !b.says_no && (about >= least || !b.rejected.is_disjoint(&a.subject)))?;
            let word = self.word(found, b);
            Some(Reason { code: "turned-down", message: format!("one turns down “{word}”, which the other takes") })
        };
        taken(one, other).or_else(|| taken(other, one))
    }

    /// The rarer, the more two sentences that share it are about the same.
    fn weight(&self, stem: &str) -> f64 {
        let frequency = self.frequency.get(stem).copied().unwrap_or(1) as f64;
        (1.0 + self.count as f64 / frequency).ln()
    }

    /// A stem as the sentence has it.
    fn word(&self, wanted: &str, sentence: &Sentence) -> String {
        let word = sentence.words.iter().find(|word| stem(word).as_deref() == Some(wanted));
        word.map_or_else(|| wanted.to_owned(), Clone::clone)
    }
}

fn opposite_words<'s>(one: &'s Sentence, other: &'s Sentence) -> Option<(&'static str, &'static str)> {
    OPPOSITES.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).find(|(a, b)| {
        one.has(a) && other.has(b) && !one.has(b) && !other.has(a)
            // Saying no to the one is saying the other.
            && one.says_no == other.says_no
    })
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
    let says = |word: &&String| !CHOOSE.contains(&word.as_str()) && stem(word).is_some();
    let frame = a[..before].iter().chain(&a[a.len() - after..]).filter(says).count();
    let is_done = a.first().is_some_and(|word| DO.contains(&word.as_str()));
    let is_verb = |word: &String| CHOOSE.contains(&word.as_str());
    let is_chosen = match a[..before].last() {
        Some(verb) if is_verb(verb) => frame >= 1,
        Some(word) => AS.contains(&word.as_str()) && (frame >= 2 || (frame == 1 && a[..before].iter().any(is_verb))),
        // `X is the store`, `Y is the store`.
        None => matches!(a.get(a.len() - after).map(String::as_str), Some("is" | "are")) && frame >= 1 && after >= 3,
    };
    (is_chosen && !is_done).then(|| (mine.join(" "), theirs.join(" ")))
}
