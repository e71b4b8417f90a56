//! Messages that name a mood and no work: "it feels off", "make it better", "sort this out".

use std::sync::LazyLock;

use regex::Regex;

/// A longer message says what it is about, however it complains.
const WORDS: usize = 30;

/// Whether a message asks for nothing in particular.
pub(super) fn is_vague(message: &str) -> bool {
    message.split_whitespace().nth(WORDS).is_none() && VAGUE.is_match(message)
}

static VAGUE: LazyLock<Regex> = LazyLock::new(|| {
    let phrases = [
        "feels? (?:off|wrong|odd|weird|slow|strange|clunky|old)",
        "(?:looks?|is|are|seems?) (?:off|odd|weird|strange|bad|boring|ugly|broken|messy|a mess)",
        "sort (?:it|this|that|them) out",
        "do something",
        "somehow",
        "something(?: is|['’]s)",
        "act(?:s|ing) (?:up|weird)",
        "not (?:quite )?right",
        "make (?:it|this|that|them|everything) (?:better|nicer|faster|more)",
        "clean (?:(?:it|this|that) )?up",
        "(?:polish|improve|tidy) (?:it|this|that)",
        "(?:could|should) be (?:better|nicer)",
        "needs? (?:some )?(?:work|love)",
        "(?:like|same as) (?:last time|before|yesterday)",
        "(?:this|that) thing",
        "the (?:remaining )?stuff",
        "as discussed",
        "mach(?:t)? (?:es|das) (?:besser|schöner)",
        "(?:mejora|arregla) esto",
        "améliore(?:r|z)? (?:ça|cela)",
    ];
    Regex::new(&format!("(?i)\\b(?:{})\\b", phrases.join("|"))).expect("the phrases are an expression")
});

#[cfg(test)]
mod tests {
    use super::is_vague;

    #[test]
    fn moods_are_vague_and_work_is_not() {
        for vague in ["The whole thing feels off lately", "Make it better", "sort this out please", "mach es besser"] {
            assert!(is_vague(vague), "{vague}");
        }
        for plain in ["Clean the build folder", "The button is red", "Sort the rows by date", "Make the cache faster"] {
            assert!(!is_vague(plain), "{plain}");
        }
        assert!(!is_vague(&format!("It feels off: {}", "a word ".repeat(30))));
    }
}
