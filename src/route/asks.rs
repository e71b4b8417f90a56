//! What a message asks for besides work, and the effort it is worth.

use super::message::{Message, Words};
use crate::model::{List, Tier};

/// Longer messages tell a story.
const SENTENCES: usize = 20;
/// A short question has at most this many bytes.
const SHORT: usize = 120;

/// What a message asks of the team, besides work for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Work,
    /// It asks something, and only that.
    Question,
    /// It asks for a decision.
    Decision,
}

impl Asks {
    pub(super) fn of(message: &Message<'_>) -> Self {
        let first = message.sentences().next().is_some_and(|first| {
            let polite = first.phrase(List::Polite, 0).unwrap_or(0);
            first.phrase(List::Leading, polite).is_some()
        });
        if first || message.sentences().take(SENTENCES).any(is_choice) {
            return Self::Decision;
        }
        let is_asked = |it: Words<'_>| is_question(it) && it.find(List::PoliteAnywhere).is_none();
        let is_all = !message.tokens.is_empty() && message.sentences().take(SENTENCES).all(is_asked);
        if is_all { Self::Question } else { Self::Work }
    }
}

/// Whether a sentence asks between things.
fn is_choice(sentence: Words<'_>) -> bool {
    sentence.asks() && (sentence.iter().any(|it| it.text == "or") || sentence.phrase(List::Choosing, 0).is_some())
}

fn is_question(sentence: Words<'_>) -> bool {
    let is_opening =
        |at: &usize| matches!(sentence.word(*at), "so" | "and" | "but" | "ok" | "okay" | "hm" | "hmm" | ",");
    let begin = (0..sentence.len()).find(|at| !is_opening(at)).unwrap_or(0);
    sentence.phrase(List::PlainlyAsking, 0).is_some()
        || (sentence.asks() && sentence.phrase(List::Asking, begin).is_some())
}

/// The tier if neither the user nor the team names one, with the reason: the full tier if the message asks for it, the
/// lightweight one for a short question, else the standard one.
pub(super) fn tier(message: &Message<'_>) -> (Tier, &'static str) {
    if message.sentences().take(SENTENCES).any(|sentence| sentence.find(List::FullTier).is_some()) {
        (Tier::Full, "the message asks for it")
    } else if message.text.trim().ends_with(['?', '？'])
        && message.text.trim().len() <= SHORT
        && Asks::of(message) == Asks::Question
    {
        (Tier::Lightweight, "a short question, nothing to change")
    } else {
        (Tier::Standard, "work to do")
    }
}
