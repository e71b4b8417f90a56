//! Secrets and e-mail addresses, taken out of text before it is hashed into the object database.
//!
//! What is replaced becomes `[redacted:KIND]`. One pass looks for the anchors of all rules; a rule is compiled and run
//! only when one of its own occurs.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::secret_patterns::{RULES, Rule};

/// The kind of a value that is known to be secret here.
const KNOWN: &str = "known-secret";

/// The kind of a value that somebody named.
pub(crate) const SCRUBBED: &str = "scrubbed";

/// That something was taken out of an entry, of which kind and how often. Never what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Redaction {
    pub(crate) kind: String,
    pub(crate) count: usize,
}

/// Finds secrets: the common formats, and literal values that are known to be secret here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor {
    /// Longest first, so that one that contains another goes as a whole.
    literals: Vec<String>,
    reach: Reach,
}

/// What is looked for beside the literals.
#[derive(Clone, Debug, Default, PartialEq)]
enum Reach {
    #[default]
    Everything,
    /// What the rules of this kind find.
    Kind(String),
    /// Nothing: somebody named a value.
    Value,
}

impl Redactor {
    /// `secrets` are values to take out wherever they occur, such as those of the project's `.env` files. Values
    /// shorter than eight characters are left out: they would hit ordinary words.
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut literals: Vec<String> = secrets.into_iter().filter(|secret| secret.chars().count() >= 8).collect();
        literals.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        literals.dedup();
        Self { literals, reach: Reach::Everything }
    }

    /// Takes out one value, of any length, and nothing else.
    pub(crate) fn of_value(value: &str) -> Self {
        let escaped = Value::from(value).to_string();
        let escaped = escaped.get(1..escaped.len() - 1).unwrap_or(value).to_owned();
        // Longest first; where it is the same it is found once.
        Self { literals: vec![escaped, value.to_owned()], reach: Reach::Value }
    }

    pub(crate) fn is_of_value(&self) -> bool {
        self.reach == Reach::Value
    }

    /// Takes out what is of one kind, and nothing else. `None`: there is no such kind.
    pub(crate) fn of_kind(self, kind: &str) -> Option<Self> {
        let is_known = RULES.iter().any(|rule| rule.kind == kind);
        let literals = if kind == KNOWN { self.literals } else { Vec::new() };
        (is_known || kind == KNOWN).then(|| Self { literals, reach: Reach::Kind(kind.to_owned()) })
    }

    /// Every kind there is.
    pub(crate) fn all_kinds() -> BTreeSet<&'static str> {
        RULES.iter().map(|rule| rule.kind).chain([KNOWN]).collect()
    }

    /// The text without secrets. What was found is added to `found`.
    pub(crate) fn text(&self, text: &str, found: &mut Vec<Redaction>) -> String {
        /// What is taken out can make a secret of what is around it, seldom twice.
        const ROUNDS: usize = 8;
        let mut text = text.to_owned();
        for literal in self.literals.iter().filter(|literal| !literal.is_empty()) {
            let count = text.matches(literal.as_str()).count();
            if count > 0 {
                let kind = if self.reach == Reach::Value { SCRUBBED } else { KNOWN };
                text = text.replace(literal.as_str(), &format!("[redacted:{kind}]"));
                note(found, kind, count);
            }
        }
        for _ in 0..ROUNDS {
            let mut more = Vec::new();
            text = self.by_rules(text, &mut more);
            if more.is_empty() {
                break;
            }
            more.into_iter().for_each(|redaction| note(found, &redaction.kind, redaction.count));
        }
        text
    }

    fn by_rules(&self, mut text: String, found: &mut Vec<Redaction>) -> String {
        let is_meant = |rule: &Rule| match &self.reach {
            Reach::Everything => true,
            Reach::Kind(kind) => rule.kind == kind,
            Reach::Value => false,
        };
        for (rule, _) in RULES.iter().zip(anchored(&text)).filter(|(rule, is_anchored)| *is_anchored && is_meant(rule))
        {
            text = rule.apply(text, found);
        }
        text
    }

    /// Whether a secret may begin in a text that goes on.
    pub(crate) fn is_suspect(&self, text: &str) -> bool {
        let begins = |literal: &String| literal.split_whitespace().next().is_some_and(|word| text.contains(word));
        anchored(text).contains(&true) || self.literals.iter().any(begins)
    }

    /// The kinds of secrets in a text. An address is none.
    pub(crate) fn kinds(&self, text: &str) -> BTreeSet<String> {
        let mut found = Vec::new();
        self.text(text, &mut found);
        found.into_iter().map(|redaction| redaction.kind).filter(|kind| kind != "email").collect()
    }

    /// Bytes of any kind without secrets, and the kinds that were found; `None`: there are none in them.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Option<(Vec<u8>, Vec<Redaction>)> {
        let mut found = Vec::new();
        let clean = match std::str::from_utf8(bytes) {
            Ok(text) => self.text(text, &mut found).into_bytes(),
            // No rule reads such bytes, but a value may be in them.
            Err(_) => self.literals.iter().fold(bytes.to_owned(), |bytes, literal| {
                let (literal, mut clean, mut at) = (literal.as_bytes(), Vec::new(), 0);
                while let Some(next) = find(bytes.get(at..).unwrap_or_default(), literal) {
                    clean.extend_from_slice(&bytes[at..at + next]);
                    clean.extend_from_slice(format!("[redacted:{SCRUBBED}]").as_bytes());
                    note(&mut found, SCRUBBED, 1);
                    at += next + literal.len();
                }
                clean.extend_from_slice(bytes.get(at..).unwrap_or_default());
                clean
            }),
        };
        (!found.is_empty()).then_some((clean, found))
    }

    /// Every text within a JSON value, keys included.
    pub(crate) fn value(&self, value: &mut Value, found: &mut Vec<Redaction>) {
        match value {
            Value::String(text) => *text = self.text(text, found),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, found)),
            Value::Object(map) => {
                *map = std::mem::take(map)
                    .into_iter()
                    .map(|(key, mut value)| {
                        self.value(&mut value, found);
                        (self.text(&key, found), value)
                    })
                    .collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    if wanted.is_empty() { None } else { bytes.windows(wanted.len()).position(|window| window == wanted) }
}

/// Which rules have an anchor in the text.
fn anchored(text: &str) -> [bool; RULES.len()] {
    static ANCHORS: OnceLock<Option<(AhoCorasick, Vec<usize>)>> = OnceLock::new();
    let anchors = ANCHORS.get_or_init(|| {
        let all =
            || RULES.iter().enumerate().flat_map(|(at, rule)| rule.anchors.iter().map(move |anchor| (at, anchor)));
        let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(all().map(|(_, anchor)| anchor));
        Some((automaton.ok()?, all().map(|(at, _)| at).collect()))
    });
    // Without it every rule is run: slower, and nothing is missed.
    let Some((automaton, rules)) = anchors else { return [true; RULES.len()] };
    let mut anchored = [false; RULES.len()];
    for found in automaton.find_overlapping_iter(text) {
        if let Some(rule) = rules.get(found.pattern().as_usize()).and_then(|rule| anchored.get_mut(*rule)) {
            *rule = true;
        }
    }
    anchored
}

impl Rule {
    fn apply(&self, text: String, found: &mut Vec<Redaction>) -> String {
        let Some(regex) = self.regex() else { return text };
        let mut clean = String::with_capacity(text.len());
        let (mut at, mut count) = (0, 0);
        for captures in regex.captures_iter(&text) {
            let Some(secret) = captures.iter().skip(1).flatten().next().or_else(|| captures.get(0)) else { continue };
            if (self.accept)(&text, secret.range()) {
                clean.push_str(&text[at..secret.start()]);
                clean.push_str(&format!("[redacted:{}]", self.kind));
                at = secret.end();
                count += 1;
            }
        }
        if count == 0 {
            return text;
        }
        note(found, self.kind, count);
        clean.push_str(&text[at..]);
        clean
    }
}

fn note(found: &mut Vec<Redaction>, kind: &str, count: usize) {
    match found.iter_mut().find(|redaction| redaction.kind == kind) {
        Some(redaction) => redaction.count += count,
        None => found.push(Redaction { kind: kind.to_owned(), count }),
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
