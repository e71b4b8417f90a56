//! Whether a message asks for work.

use super::orders::is_order;

/// Whether a message asks for something to be done, and not for words alone.
pub(crate) fn asks_for_work(message: &str) -> bool {
    message.split(['.', ';', ',', ':', '\n']).any(is_order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_ask_for_work_and_questions_do_not() {
        assert!(asks_for_work("Add a page") && asks_for_work("@ada, please fix the build."));
        assert!(!asks_for_work("Why is the page slow?"));
    }
}
