//! Removes secrets and e-mail addresses from text before it is stored in the object database.
//!
//! They are replaced by `[redacted:KIND]`. One pass finds the anchors of all rules; a rule is compiled and run only if
//! one of its anchors occurs.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::secret_patterns::{RULES, Rule};
use crate::model::{IntoSet, Sort};

/// The kind of values known to be secret in this project.
const KNOWN: &str = "known-secret";

/// The kind of an e-mail address, which is personal and no secret.
pub(crate) const EMAIL: &str = "email";

/// The kind of a value named by the user.
pub(crate) const SCRUBBED: &str = "scrubbed";

/// Kind and number of secrets removed from an entry, never their values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Redaction {
    pub(crate) kind: String,
    pub(crate) count: usize,
}

/// Finds secrets: common formats, and values known to be secret.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor {
    /// Longest first, so that a value that contains another is replaced as a whole.
    literals: Vec<String>,
    filter: RuleFilter,
}

/// Which rules apply in addition to the literals.
#[derive(Clone, Debug, Default, PartialEq)]
enum RuleFilter {
    #[default]
    All,
    /// Only the rules of this kind.
    Kind(String),
    /// No rules: only one named value.
    NoRules,
}

impl Redactor {
    /// `secrets` are values to remove everywhere, for example from the project's `.env` files. Values of fewer than
    /// eight characters are ignored because they would match ordinary words.
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut literals: Vec<String> = secrets.into_iter().filter(|secret| secret.chars().count() >= 8).collect();
        literals.stable_sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        literals.dedup();
        Self { literals, filter: RuleFilter::All }
    }

    /// Removes one value of any length, and nothing else.
    pub(crate) fn of_value(value: &str) -> Self {
        let escaped = Value::from(value).to_string();
        let escaped = escaped.get(1..escaped.len() - 1).unwrap_or(value).to_owned();
        // Longest first; if both are equal, it is found once.
        Self { literals: vec![escaped, value.to_owned()], filter: RuleFilter::NoRules }
    }

    pub(crate) fn is_of_value(&self) -> bool {
        self.filter == RuleFilter::NoRules
    }

    /// Removes one kind only. `None`: there is no such kind.
    pub(crate) fn of_kind(self, kind: &str) -> Option<Self> {
        let is_known = RULES.iter().any(|rule| rule.kind == kind);
        let literals = if kind == KNOWN { self.literals } else { Vec::new() };
        (is_known || kind == KNOWN).then(|| Self { literals, filter: RuleFilter::Kind(kind.to_owned()) })
    }

    /// All kinds.
    pub(crate) fn all_kinds() -> BTreeSet<&'static str> {
        RULES.iter().map(|rule| rule.kind).chain([KNOWN]).into_set()
    }

    /// The text without secrets; adds those it removed to `found`.
    pub(crate) fn text(&self, text: &str, found: &mut Vec<Redaction>) -> String {
        /// A replacement can make surrounding text match a rule, but rarely more than once.
        const ROUNDS: usize = 8;
        let mut text = text.to_owned();
        for literal in self.literals.iter().filter(|literal| !literal.is_empty()) {
            let count = text.matches(literal.as_str()).count();
            if count > 0 {
                let kind = if self.filter == RuleFilter::NoRules { SCRUBBED } else { KNOWN };
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
        let is_meant = |rule: &Rule| match &self.filter {
            RuleFilter::All => true,
            RuleFilter::Kind(kind) => rule.kind == kind,
            RuleFilter::NoRules => false,
        };
        for (rule, is_anchored) in RULES.iter().zip(anchored(&text)) {
            if is_anchored && is_meant(rule) && rule.may_match(&text) {
                text = rule.apply(text, found);
            }
        }
        text
    }

    /// Whether an unfinished text may contain the beginning of a secret.
    pub(crate) fn is_suspect(&self, text: &str) -> bool {
        let begins = |literal: &String| literal.split_whitespace().next().is_some_and(|word| text.contains(word));
        anchored(text).contains(&true) || self.literals.iter().any(begins)
    }

    /// The kinds of secrets in a text. An e-mail address does not count.
    pub(crate) fn kinds(&self, text: &str) -> BTreeSet<String> {
        let mut found = Vec::new();
        self.text(text, &mut found);
        found.into_iter().map(|redaction| redaction.kind).filter(|kind| kind != EMAIL).into_set()
    }

    /// The bytes without secrets, and the kinds removed; `None` if there are none.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Option<(Vec<u8>, Vec<Redaction>)> {
        let mut found = Vec::new();
        let clean = match std::str::from_utf8(bytes) {
            Ok(text) => self.text(text, &mut found).into_bytes(),
            // Rules need text, but literal values are also searched in other bytes.
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

    /// Redacts all texts in a JSON value, including keys.
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
    // Fall back to running every rule: slower, but complete.
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
