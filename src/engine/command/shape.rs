//! Prompts for an agent that knows nothing of squad: its role and its task in one text.

/// Ends every prompt.
const FOOTER: &str = "\n\n---\n\n# Setup & Reporting Rules\n\n\
If you notice any setup or environment problems that prevent you from completing your task,\n\
you MUST clearly report them as SETUP / ENVIRONMENT ISSUES.\n\n\
Explain what you observed and suggest specific steps for the human to fix.\n\
Do not pretend the task succeeded if the environment blocks you.\n";

/// For an engine without chats.
pub(crate) fn stateless(role: &str, task: &str) -> String {
    with_role(role, "Task", task)
}

/// The first message of a chat.
pub(crate) fn new_chat(role: &str, task: &str) -> String {
    with_role(role, "Initial Task", task)
}

/// A later message of a chat, which already contains the role.
pub(crate) fn existing_chat(task: &str) -> String {
    format!("# Task\n\n{}{FOOTER}", task.trim())
}

/// A role whose task comes later.
pub(crate) fn role_alone(role: &str) -> String {
    format!("# Role\n\n{}{FOOTER}", role.trim())
}

fn with_role(role: &str, heading: &str, task: &str) -> String {
    format!("# Role\n\n{}\n\n---\n\n# {heading}\n\n{}{FOOTER}", role.trim(), task.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_shapes() {
        let footer = "\n\n---\n\n# Setup & Reporting Rules\n\nIf you notice";
        let stateless = stateless("You test.\n", "Test it.\n");
        assert!(stateless.starts_with(&format!("# Role\n\nYou test.\n\n---\n\n# Task\n\nTest it.{footer}")));
        let new = new_chat("You test.", "Test it.");
        assert!(new.starts_with("# Role\n\nYou test.\n\n---\n\n# Initial Task\n\nTest it."), "{new}");
        let existing = existing_chat("Test it.");
        assert!(existing.starts_with(&format!("# Task\n\nTest it.{footer}")), "{existing}");
        assert!(existing.ends_with("if the environment blocks you.\n"));
    }
}
