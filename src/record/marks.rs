//! Marks of lines: enough to know a line again, and not to read it.
//!
//! What an agent wrote stays where it wrote it; the ledger keeps a mark of each of its lines, so that `squad why` can
//! tell whose a line is after any number of squashes and rebases.

use crate::policy::Redactor;

/// Lines of one write that are marked; more of a file are hardly an agent's own words.
const MOST: usize = 4_000;
/// Letters and digits of a line that has a mark at all: `}` is everybody's.
const LEAST: usize = 3;

/// The marks of a text, in its order. A line with a secret in it has none: a mark would betray a guess of it.
pub(crate) fn of(text: &str, redactor: &Redactor) -> Vec<String> {
    let is_clean = |line: &&str| {
        let mut found = Vec::new();
        redactor.text(line, &mut found);
        found.is_empty()
    };
    text.lines().filter(is_clean).filter_map(mark).take(MOST).collect()
}

/// The mark of a line: 8 hex digits of its BLAKE3, whatever its indentation and spacing. `None` for one that says
/// nothing.
pub(crate) fn mark(line: &str) -> Option<String> {
    if weight(line) < LEAST {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(blake3::hash(words.join(" ").as_bytes()).to_hex()[..8].to_owned())
}

/// Letters and digits of a line.
pub(crate) fn weight(line: &str) -> usize {
    line.chars().filter(|c| c.is_alphanumeric()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_known_whatever_its_spacing() {
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
