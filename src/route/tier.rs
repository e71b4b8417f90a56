//! The tier for a message if the user does not choose one, with the reason.

use super::form::Form;
use super::text;
use crate::model::Tier;

/// Several agents get the full tier, a short question the lightweight one, everything else the standard one.
pub(super) fn of(message: &str, agents: usize) -> (Tier, String) {
    if agents > 1 {
        (Tier::Full, format!("tier full: {agents} agents work side by side"))
    } else if is_short_question(message) {
        (Tier::Lightweight, "tier lightweight: a short question, nothing to change".to_owned())
    } else {
        (Tier::Standard, "tier standard: work for one agent".to_owned())
    }
}

fn is_short_question(message: &str) -> bool {
    let message = message.trim();
    message.ends_with(['?', '？'])
        && message.chars().count() <= 120
        && !message.contains('\n')
        && Form::of(text::sentences(message, &text::spans(message))) == Form::Inquiry
}
