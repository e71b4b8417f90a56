//! Distinguishes secrets from text that looks similar.

use std::collections::BTreeMap;
use std::ops::Range;

/// Rejects words joined by hyphens: a class name may begin like a key.
pub(super) fn is_mixed(text: &str, range: Range<usize>) -> bool {
    let value = &text[range];
    let has_digit = value.bytes().any(|b| b.is_ascii_digit());
    let longest = value.split('-').map(str::len).max().unwrap_or(0);
    has_digit && longest >= 12 || longest >= 30
}

/// Rejects variables, placeholders, expressions and text already redacted, if the whole value is one: a password may
/// contain an ordinary word.
pub(super) fn is_secret_value(text: &str, range: Range<usize>) -> bool {
    const PLACEHOLDERS: [&str; 12] = [
        "password",
        "passwort",
        "passwd",
        "pass",
        "secret",
        "token",
        "example",
        "changeme",
        "placeholder",
        "redacted",
        "username",
        "none",
    ];
    const EXPRESSIONS: [&str; 9] =
        ["process.env", "os.environ", "os.getenv", "env.", "env[", "secrets.", "config.", "settings.", "your"];
    let value = &text[range];
    let lower = value.to_lowercase();
    let bare = lower.trim_end_matches([']', ')', '}']);
    // Also `ghp_xxxxxxxxxxxx`.
    let is_filler = lower.chars().all(is_filling) || lower.chars().rev().take_while(|c| is_filling(*c)).count() >= 8;
    !(value.starts_with(['$', '<', '{', '[', '%', '*', '(', '&'])
        || is_filler
        || PLACEHOLDERS.contains(&bare)
        || EXPRESSIONS.iter().any(|start| lower.starts_with(start)))
}

fn is_filling(c: char) -> bool {
    matches!(c, 'x' | '*' | '.' | '-' | '_')
}

/// In prose, a long word may follow *basic*; a credential has digits, or its line names the header.
pub(super) fn is_authorization(text: &str, range: Range<usize>) -> bool {
    let value = &text[range.clone()];
    let line = text[..range.start].rsplit('\n').next().unwrap_or_default().to_lowercase();
    let has_mark = value.bytes().any(|b| b.is_ascii_digit()) || value.ends_with('=');
    (has_mark || line.contains("authorization")) && entropy(value) >= 3.0 && is_secret_value(text, range)
}

/// Whether the name before a value says that it belongs to a public key: `PublicKeyToken=` is in every .NET assembly.
fn is_public_key(before: &str) -> bool {
    let name = before.trim_end_matches(|c: char| !c.is_alphanumeric());
    let name = name.rsplit(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-')).next().unwrap_or_default();
    name.to_lowercase().replace(['_', '-'], "").contains("publickey")
}

/// Whether a value looks generated rather than written by a person: letters and digits with enough entropy.
pub(super) fn is_random_value(text: &str, range: Range<usize>) -> bool {
    let value = &text[range.clone()];
    let letters = value.bytes().any(|b| b.is_ascii_alphabetic());
    let others = value.bytes().any(|b| b.is_ascii_digit() || b"!@#$%^&*+/=_".contains(&b));
    !is_code(text, &range)
        && !is_public_key(&text[..range.start])
        && letters
        && others
        && value.bytes().any(|b| b.is_ascii_digit())
        && entropy(value) >= 2.75
        && is_secret_value(text, range)
}

/// Code that computes a value or declares a type: `params[0]`, `a::B1`, `uuid4()`, `node.or2_token`, `TOKEN: Kind_3 =
/// …`.
fn is_code(text: &str, range: &Range<usize>) -> bool {
    let (value, after) = (&text[range.clone()], &text[range.end..]);
    let is_name = |name: &str| {
        let mut words = name.split('_').filter(|word| !word.is_empty());
        words.all(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).bytes().all(|b| b.is_ascii_alphabetic()))
    };
    let is_member = value.contains('.') && value.split('.').all(|name| !name.is_empty() && is_name(name));
    let is_indexed = value.split_once('[').is_some_and(|(name, _)| name.split('.').all(is_name));
    let is_type = after.strip_prefix(" = ").is_some() && text[..range.start].trim_end().ends_with(':');
    is_indexed || value.contains("::") || after.starts_with('(') || is_member && has_few_digits(value) || is_type
}

/// Names have few digits; keys have many.
fn has_few_digits(value: &str) -> bool {
    value.bytes().filter(u8::is_ascii_digit).count() <= 2
}

/// Rejects paths: in shells `PWD` is the working directory.
pub(super) fn is_password(text: &str, range: Range<usize>) -> bool {
    let value = &text[range.clone()];
    let is_indexed = value.ends_with(']') && is_code(text, &range);
    !value.starts_with(['/', '.', '~']) && !is_indexed && is_secret_value(text, range)
}

/// Rejects `git@host:path`, `user@host:dir/file` and `ssh://user@host`, which are remotes, not people.
pub(super) fn is_email(text: &str, range: Range<usize>) -> bool {
    let local = text[range.clone()].split('@').next().unwrap_or_default();
    let path = text[range.end..].strip_prefix(':').and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
    let is_remote = path.contains('/') || path.ends_with(".git");
    let word = text[..range.start].rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_user = word.rsplit_once("://").is_some_and(|(_, authority)| !authority.contains('/'));
    !(local == "git" || is_user || is_remote)
}

/// Shannon entropy in bits per byte.
fn entropy(text: &str) -> f64 {
    let mut counts = BTreeMap::new();
    for byte in text.bytes() {
        *counts.entry(byte).or_insert(0u32) += 1;
    }
    let length = text.len() as f64;
    counts.values().map(|&count| f64::from(count) / length).map(|share| -share * share.log2()).sum()
}
