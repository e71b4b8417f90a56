//! The message that a member gets: its task, and what to do if it cannot work. The role is the session's own prompt.

use crate::engine::command::shape::existing_chat;

/// The message to a session. `is_first`: others may follow in this session.
pub(super) fn message(task: &str, is_first: bool) -> String {
    let text = existing_chat(task);
    if is_first { text.replacen("# Task", "# Initial Task", 1) } else { text }
}

/// Role and message in one text, as a record of the prompt. A chat that continues has the role already.
pub(super) fn whole(role: Option<&str>, message: &str) -> String {
    match role {
        Some(role) => format!("# Role\n\n{role}\n\n---\n\n{message}"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::command::shape;

    #[test]
    fn they_are_those_of_other_engines() {
        let first = whole(Some("You test."), &message("Test it.", true));
        assert_eq!(first, shape::new_chat("You test.", "Test it."));
        assert_eq!(whole(Some("You test."), &message("Test it.", false)), shape::stateless("You test.", "Test it."));
        assert_eq!(whole(None, &message("Again.", false)), existing_chat("Again."));
    }
}
