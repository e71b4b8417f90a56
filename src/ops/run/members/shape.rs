//! What a member is told: its task, and what to do where it cannot work. Its role is its session's own prompt.

use crate::engine::command::shape::existing_chat;

/// The message to a session. `is_first`: of several that are to follow.
pub(super) fn message(task: &str, is_first: bool) -> String {
    let text = existing_chat(task);
    if is_first { text.replacen("# Task", "# Initial Task", 1) } else { text }
}

/// Role and message in one, as somebody reads what a member was told. A chat that goes on knows its role.
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
