//! How much of the machinery a message gets, when the user does not say.

use crate::model::Tier;

/// Several agents get the full tier, a short question the lightweight one, everything else the standard one.
pub(super) fn of(message: &str, agents: usize) -> Tier {
    if agents > 1 {
        Tier::Full
    } else if is_short_question(message) {
        Tier::Lightweight
    } else {
        Tier::Standard
    }
}

fn is_short_question(message: &str) -> bool {
    let message = message.trim();
    message.ends_with('?') && message.chars().count() <= 120 && !message.contains('\n')
}
