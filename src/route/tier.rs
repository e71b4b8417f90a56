//! The tier for a message if the user does not choose one, with the reason.

use std::sync::LazyLock;

use regex::Regex;

use super::rules::{self, Asks};
use super::text;
use crate::model::Tier;

static FULL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(tier full|full tier|(premium|best|strongest) model)\b").expect("the pattern is fixed")
});

/// The full tier if the message asks for it, the lightweight one for a short question, else the standard one.
pub(super) fn of(message: &str) -> (Tier, String) {
    let (tier, why) = match message {
        message if FULL.is_match(message) => (Tier::Full, "the message asks for it"),
        message if is_short_question(message) => (Tier::Lightweight, "a short question, nothing to change"),
        _ => (Tier::Standard, "work to do"),
    };
    (tier, format!("tier {tier}: {why}"))
}

fn is_short_question(message: &str) -> bool {
    let message = message.trim();
    message.ends_with(['?', '？'])
        && message.chars().count() <= 120
        && !message.contains('\n')
        && rules::asks(message, &text::spans(message)) == Asks::Question
}
