//! What a message asks for besides work, and the effort it is worth.

use super::message::Message;
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
        let plain = message.plain(SENTENCES);
        let is_polite = |sentence: &str| List::PoliteAnywhere.find(sentence).is_some();
        let whole = plain.first().map(String::as_str).unwrap_or_default();
        let first = List::Polite.begins(whole).map_or(whole, str::trim_start);
        if List::Leading.begins(first).is_some() || plain.iter().any(|it| is_choice(it)) {
            return Self::Decision;
        }
        let is_all = !plain.is_empty() && plain.iter().all(|it| is_question(it) && !is_polite(it));
        if is_all { Self::Question } else { Self::Work }
    }
}

/// Whether a sentence asks between things.
fn is_choice(sentence: &str) -> bool {
    sentence.ends_with('?') && (sentence.contains(" or ") || List::Choosing.begins(sentence).is_some())
}

fn is_question(sentence: &str) -> bool {
    const OPENINGS: [&str; 8] = ["so ", "and ", "but ", "ok ", "okay ", "hm ", "hmm ", ", "];
    let mut asked = sentence;
    while let Some(rest) = OPENINGS.iter().find_map(|opening| asked.strip_prefix(opening)) {
        asked = rest;
    }
    List::PlainlyAsking.begins(sentence).is_some() || (sentence.ends_with('?') && List::Asking.begins(asked).is_some())
}

/// The tier if neither the user nor the team names one, with the reason: the full tier if the message asks for it, the
/// lightweight one for a short question, else the standard one.
pub(super) fn tier(message: &Message<'_>) -> (Tier, &'static str) {
    const FULL: [&str; 5] = ["tier full", "full tier", "premium model", "best model", "strongest model"];
    let text = message.text.trim();
    let may_be_full = text.as_bytes().windows(4).any(|part| part == b"odel" || part == b"tier");
    if may_be_full && message.plain(SENTENCES).iter().any(|it| FULL.iter().any(|full| it.contains(full))) {
        (Tier::Full, "the message asks for it")
    } else if text.ends_with(['?', '？']) && text.len() <= SHORT && Asks::of(message) == Asks::Question {
        (Tier::Lightweight, "a short question, nothing to change")
    } else {
        (Tier::Standard, "work to do")
    }
}
