//! The form of a message: an order, a question whether something should be, a question how something is.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Something is to be done; a report that something is broken is one too.
    Order,
    /// Something is to be decided.
    Decision,
    /// Something is to be found out.
    Inquiry,
}

/// Questions are short: from what is longer they are read at its end.
const LENGTH: usize = 600;

impl Form {
    pub(super) fn of(message: &str) -> Self {
        let message = message.trim();
        let mut start = message.len().saturating_sub(LENGTH);
        while !message.is_char_boundary(start) {
            start += 1;
        }
        let mut text = message[start..].to_lowercase();
        if text.contains('’') {
            text = text.replace('’', "'");
        }
        let mut form = Self::Order;
        for sentence in text.split_inclusive(['.', '!', '?', '\n', '？']) {
            let sentence = sentence.trim().trim_start_matches('¿');
            if is_decision(sentence) {
                return Self::Decision;
            }
            if sentence.ends_with(['?', '？']) && !is_polite_order(sentence) {
                form = Self::Inquiry;
            }
        }
        form
    }
}

/// What everything in `HOLDS` has.
const HAVE: [&str; 6] = [" we", "which", "worth", "pros", "sollten", "take"];

fn is_decision(sentence: &str) -> bool {
    const BEGINS: [&str; 16] = [
        "should we",
        "should our",
        "should it",
        "should this",
        "should every",
        "should each",
        "should the",
        "how should",
        "where should",
        "what should",
        "which should",
        "do we want",
        "do we need",
        "would it make sense",
        "is it worth",
        "in which order",
    ];
    const HOLDS: [&str; 14] = [
        "or should we",
        "or do we",
        "how should we",
        "how do we want",
        "how would we",
        "what would it take",
        "should we",
        "do we want",
        "shall we",
        "which approach",
        "pros and cons",
        "worth it",
        "tell me which",
        "sollten wir",
    ];
    let asks = sentence.ends_with(['?', '？']);
    let between = asks
        && sentence.contains(" or ")
        && ["would ", "should ", "is it better", "do we"].iter().any(|begin| sentence.starts_with(begin));
    let involves = asks
        && sentence.starts_with("what would ")
        && ["involve", "take", "mean", "cost"].iter().any(|verb| sentence.contains(verb));
    (asks && BEGINS.iter().any(|begin| sentence.starts_with(begin)))
        // Nearly no sentence has any of it.
        || (HAVE.iter().any(|word| sentence.contains(word)) && HOLDS.iter().any(|words| sentence.contains(words)))
        || between
        || involves
}

/// `Can you fix it?` is no question.
fn is_polite_order(sentence: &str) -> bool {
    const BEGINS: [&str; 12] = [
        "can you",
        "could you",
        "would you",
        "will you",
        "can we",
        "could we",
        "please",
        "can someone",
        "could someone",
        "can anybody",
        "puedes",
        "kannst du",
    ];
    BEGINS.iter().any(|begin| sentence.starts_with(begin))
        || sentence.contains(", can you")
        || sentence.contains("lo puedes")
}
