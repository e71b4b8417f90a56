//! What a message says shall not be done.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::orders::is_order;

/// Which part of a clause says what shall not be done.
pub(super) fn negated(clause: &str) -> Option<Range<usize>> {
    let lower = clause.to_ascii_lowercase();
    let start = lower.len() - lower.trim_start().len();
    let mut head = lower.trim();
    for filler in ["please ", "and ", "but ", "also ", "so "] {
        head = head.strip_prefix(filler).unwrap_or(head);
    }
    let begins = AT_THE_BEGINNING.iter().any(|cue| head.starts_with(cue))
        || is_short_denial(head)
        || is_content(head)
        || (head.starts_with("no ") && !NO_BUT.iter().any(|word| head[3..].starts_with(word)))
        || ["not a ", "not about ", "not the ", "not our "].iter().any(|cue| head.starts_with(cue));
    let from =
        if begins { Some(start) } else { ANYWHERE.find(&lower).map(|cue| cue.start()).or_else(|| left_alone(&lower)) }?;
    // `everything but the docs`: this one ends nothing. In `don't touch anything but the docs` it does.
    let all_but = ["everything but", "anything but"].iter().find(|cue| lower[from..].trim_start().starts_with(*cue));
    let after = all_but.map_or(from, |cue| from + lower[from..].find(cue).unwrap_or(0) + cue.len());
    let end = ["but ", "just ", "only ", "instead "]
        .iter()
        .filter_map(|word| lower[after..].find(&format!(" {word}")))
        .min()
        .map_or(lower.len(), |end| after + end);
    Some(from..end)
}

/// `skip the tests`, `I don't want tests`: a longer one says of something how it is to be.
fn is_short_denial(clause: &str) -> bool {
    const SHORT: usize = 3;
    const CUES: [&str; 6] =
        ["skip the ", "skip all ", "i don't want ", "we don't want ", "i don't need ", "we don't need "];
    CUES.iter().any(|cue| clause.strip_prefix(cue).is_some_and(|rest| rest.split_whitespace().count() <= SHORT))
}

/// `The tests are fine`: nothing is to be done there.
fn is_content(clause: &str) -> bool {
    const SHORT: usize = 6;
    const ENDS: [&str; 6] = [" is fine", " are fine", " is ok", " are ok", " is okay", " are okay"];
    ENDS.iter().any(|end| clause.ends_with(end)) && clause.split_whitespace().count() <= SHORT && !is_order(clause)
}

fn left_alone(clause: &str) -> Option<usize> {
    let from = clause.find("leave ").or_else(|| clause.find("keep "))?;
    [" alone", " as is", " as it is", " as they are", " untouched", " unchanged", " out of it"]
        .iter()
        .any(|end| clause[from..].contains(end))
        .then_some(from)
}

/// What every denial has in it.
pub(super) static DENIAL: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let words = "n't n’t dont not no never nothing without leave keep except excluding nicht ohne sin sans sem senza \
                 skip rather instead everything anything";
    let ended = words.split(' ').flat_map(|word| [format!("{word} "), format!("{word}\n")]);
    let content = ["is fine", "are fine", "is ok", "are ok"].map(str::to_owned);
    AhoCorasick::builder().ascii_case_insensitive(true).build(ended.chain(content)).expect("the words are few")
});

const AT_THE_BEGINNING: [&str; 20] = [
    "rather than ",
    "instead of ",
    "everything but ",
    "everything except ",
    "anything but ",
    "nicht die ",
    "nicht das ",
    "nicht den ",
    "nicht der ",
    "don't ",
    "don’t ",
    "do not ",
    "dont ",
    "never ",
    "no need ",
    "except ",
    "excluding ",
    "leave out ",
    "bitte nicht ",
    "nothing to do with ",
];

/// `no …` that says something else.
const NO_BUT: [&str; 10] = ["idea", "one ", "matter", "longer", "way ", "luck", "response", "error", "output", "clue"];

static ANYWHERE: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let first = MatchKind::LeftmostFirst;
    AhoCorasick::builder().match_kind(first).build(DENIALS).expect("the words are few")
});

const DENIALS: [&str; 35] = [
    " rather than ",
    " instead of ",
    " everything but ",
    "don't touch",
    "don’t touch",
    "do not touch",
    "don't change",
    "don’t change",
    "do not change",
    "don't modify",
    "do not modify",
    "don't edit",
    "do not edit",
    "don't update",
    "don't bother",
    "without touching",
    "without changing",
    "without modifying",
    "without editing",
    "without altering",
    "without updating",
    "no need for",
    "no need to",
    "but not ",
    "ohne ",
    "sin cambiar",
    "sin tocar",
    "sin modificar",
    "sans toucher",
    "sans changer",
    "sans modifier",
    "sem alterar",
    "sem mexer",
    "senza toccare",
    "senza modificare",
];
