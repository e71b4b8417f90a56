//! Marks of lines: short hashes that identify a line without revealing it.
//!
//! The ledger does not store what an agent wrote, only a mark of each line, so that `squad why` can find a line's
//! author after any number of squashes and rebases.

use crate::policy::Redactor;

/// The maximum number of marks for one write; an agent hardly writes more lines itself.
const MAX_LINES: usize = 4_000;
/// Letters and digits that a line needs to get a mark: `}` identifies nobody.
const MIN_WEIGHT: usize = 3;

/// The marks of a text's lines, in order. A line with a secret has none, since a mark would confirm a guess of it.
pub(crate) fn of(text: &str, redactor: &Redactor) -> Vec<String> {
    let is_clean = |line: &&str| {
        let mut found = Vec::new();
        redactor.text(line, &mut found);
        found.is_empty()
    };
    text.lines().filter(is_clean).filter_map(mark).take(MAX_LINES).collect()
}

/// The mark of a line: 8 hex digits of its BLAKE3 hash, ignoring indentation and spacing. `None` if the line is too
/// short.
pub(crate) fn mark(line: &str) -> Option<String> {
    if weight(line) < MIN_WEIGHT {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(blake3::hash(words.join(" ").as_bytes()).to_hex()[..8].to_owned())
}

/// The number of letters and digits in a line.
pub(crate) fn weight(line: &str) -> usize {
    line.chars().filter(|c| c.is_alphanumeric()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_ignore_spacing() {
        assert_eq!(mark("    let a  = 1;"), mark("let a = 1;\r"));
        assert_ne!(mark("let a = 1;"), mark("let b = 1;"));
        assert_eq!((mark("  }"), mark("")), (None, None));
    }

    #[test]
    fn secrets_have_no_mark() {
        let text = "fn main() {\n    let token = \"ghp_0123456789abcdefghijABCDEFGHIJ012345\";\n}\n";
        assert_eq!(of(text, &Redactor::default()), [mark("fn main() {").expect("a mark")]);
    }
}
