//! The form of a message: an order, a request for a decision, or a question.

use crate::model::List;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Work to do; a bug report is one too.
    Order,
    /// A decision to make.
    Decision,
    /// Information to find.
    Inquiry,
}

impl Form {
    /// From the sentences that the user wrote, with their punctuation.
    pub(super) fn of<'s>(sentences: impl IntoIterator<Item = &'s str>) -> Self {
        let mut form = Self::Order;
        for sentence in sentences {
            let sentence = sentence.trim().trim_start_matches('¿').to_lowercase().replace('’', "'");
            let asks = sentence.ends_with(['?', '？']);
            let begins_decision = asks && List::DecisionBegins.begins(&sentence).is_some();
            if begins_decision || List::Decision.find(&sentence).is_some() {
                return Self::Decision;
            }
            if asks && List::Polite.begins(&sentence).is_none() && !sentence.contains(", can you") {
                form = Self::Inquiry;
            }
        }
        form
    }
}
