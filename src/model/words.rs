//! Normalizes words of messages and team files for comparison.

use super::List;

/// The distinct stems of a text, in order.
pub(crate) fn stems(text: &str) -> Vec<String> {
    let mut stems = Vec::new();
    for stem in words(text).filter_map(stem) {
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    stems
}

/// The words of a text; `FileReader` becomes `File` and `Reader`.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| !is_word_char(c));
        let mut previous_lower = false;
        let end = rest.char_indices().find_map(|(at, c)| {
            let hump = c.is_uppercase() && previous_lower;
            previous_lower = c.is_lowercase();
            (hump || !is_word_char(c)).then_some(at)
        });
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '+' || c == '#'
}

/// The stem that a word shares with its other forms, which begins like the word; `None` for stop words.
pub(crate) fn stem(word: &str) -> Option<String> {
    let mut lower = word.to_lowercase();
    (!List::Stop.has(&lower)).then(|| {
        stem_of(&mut lower);
        lower
    })
}

/// Replaces a lower-case word by its stem, even if it is a stop word.
pub(crate) fn stem_of(word: &mut String) {
    let (rest, ending) = light_stem(word);
    let rest = rest.len();
    word.truncate(rest);
    word.push_str(ending);
}

/// A light stem of an English word, as a prefix of the word and an ending. It unifies tests/testing/tested, pages/page,
/// queries/query, stopped/stop, migrate/migration and document/documentation, but keeps `product` apart from
/// `production`.
fn light_stem(word: &str) -> (&str, &'static str) {
    // Most words do not end in the last letter of a suffix.
    let Some(last) = word.bytes().last().filter(|last| b"sentdrg".contains(last)) else { return (word, "") };
    if !has_letters(word, 4) || is_whole(word) {
        return (word, "");
    }
    // Longest first, so that `-ations` is not treated as `-s`.
    for (suffix, least, ending) in suffixes(last) {
        if let Some(rest) = word.strip_suffix(suffix).filter(|rest| has_letters(rest, *least)) {
            let fits = match *suffix {
                "ion" | "ions" => rest.ends_with(['s', 't']),
                // `speed` and `string` are whole words.
                "ed" => !rest.ends_with('e') && has_vowel(rest),
                _ => has_vowel(rest),
            };
            if fits {
                return match ending {
                    Ending::As(replacement) => (rest, replacement),
                    Ending::OfVerb => (verb(rest), ""),
                };
            }
        }
    }
    match word.strip_suffix('s').filter(|rest| has_letters(rest, 3) && !rest.ends_with(['s', 'u', 'i'])) {
        Some(rest) => light_stem(rest),
        None => (word.strip_suffix('e').map_or(word, verb), ""),
    }
}

/// Whether a text has at least this many letters.
fn has_letters(text: &str, least: usize) -> bool {
    text.len() >= least && (text.is_ascii() || text.chars().nth(least - 1).is_some())
}

/// Words that only look like forms of others: a `question` is not a quest.
fn is_whole(word: &str) -> bool {
    matches!(
        word,
        "production"
            | "process"
            | "address"
            | "access"
            | "class"
            | "question"
            | "cors"
            | "news"
            | "series"
            | "canvas"
            | "locale"
            | "express"
            | "compass"
    )
}

/// What to do with the rest of a word without its suffix.
enum Ending {
    As(&'static str),
    /// The rest is a verb that may have lost an `-e` or doubled its last letter.
    OfVerb,
}

/// The suffixes that end with a letter, each with the minimum number of letters before it.
fn suffixes(last: u8) -> &'static [(&'static str, usize, Ending)] {
    use Ending::{As, OfVerb};
    match last {
        b's' => &[
            ("ations", 4, OfVerb),
            ("ments", 5, OfVerb),
            ("ions", 5, OfVerb),
            ("ings", 4, OfVerb),
            ("ies", 3, As("y")),
            ("ers", 4, OfVerb),
            ("ors", 4, OfVerb),
        ],
        b'n' => &[("ation", 4, OfVerb), ("ion", 5, OfVerb)],
        b't' => &[("ment", 5, OfVerb)],
        b'g' => &[("ing", 3, OfVerb)],
        b'd' => &[("ied", 3, As("y")), ("ed", 3, OfVerb)],
        b'r' => &[("er", 4, OfVerb), ("or", 4, OfVerb)],
        _ => &[],
    }
}

fn has_vowel(text: &str) -> bool {
    !text.is_ascii() || text.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

fn verb(rest: &str) -> &str {
    let mut rest = rest.trim_end_matches('e');
    // `render`, `rendering` and `renderer` have one stem.
    while let Some(shorter) = rest.strip_suffix("er").or_else(|| rest.strip_suffix("or")) {
        if !has_letters(shorter, 4) {
            break;
        }
        rest = shorter;
    }
    let mut last = rest.chars().rev();
    match (last.next(), last.next()) {
        (Some(a), Some(b)) if a == b && a.is_alphabetic() && !matches!(a, 'l' | 's' | 'z') => {
            &rest[..rest.len() - a.len_utf8()]
        }
        // `migrat-e` and `migr-ation`
        _ => rest.strip_suffix("at").filter(|rest| has_letters(rest, 4)).unwrap_or(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stemmed(word: &str) -> String {
        let mut word = word.to_owned();
        stem_of(&mut word);
        word
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["test", "tests", "testing", "tested"][..],
            &["query", "queries"],
            &["page", "pages"],
            &["document", "documentation", "documents"],
            &["endpoint", "endpoints"],
            &["migrate", "migrating", "migration", "migrations"],
            &["rotate", "rotation", "rotated"],
            &["create", "creation", "creating"],
            &["stop", "stopped", "stopping"],
            &["format", "formats", "formatting"],
            &["deploy", "deployment", "deploys"],
            &["review", "reviewer", "reviews"],
            &["render", "rendering", "renderer", "rendered", "renderers"],
            &["monitor", "monitoring", "monitors"],
            &["parse", "parser", "parsing", "parses"],
        ] {
            let stems: Vec<_> = forms.iter().map(|form| stemmed(form)).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
    }

    #[test]
    fn different_words_stay_apart() {
        for (one, other) in [
            ("product", "production"),
            ("form", "format"),
            ("document", "docu"),
            ("us", "user"),
            ("stat", "status"),
            ("class", "clas"),
            ("comment", "common"),
            ("string", "strength"),
            ("speed", "special"),
            ("question", "quest"),
            ("cors", "core"),
        ] {
            assert_ne!(stemmed(one), stemmed(other));
        }
    }

    #[test]
    fn short_words_and_identifiers_survive() {
        assert_eq!(stems("Fix the UI of FileReader in CI, c++"), ["fix", "ui", "fil", "read", "ci", "c++"]);
        assert_eq!(stems("css js"), ["css", "js"]);
    }
}
