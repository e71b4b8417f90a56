//! Names that people use for the engines' tools.

use super::{Access, Charter};

/// Names and the tools they stand for: those of the Copilot CLI (the defaults of version 1.0.102), aliases of custom
/// agents, and names used by other engines and editors.
const NAMES: [(&str, &[&str]); 52] = [
    ("*", &["*"]),
    ("all", &["*"]),
    ("bash", &["bash"]),
    ("create", &["create"]),
    // Permission to edit includes creating files.
    ("edit", &["edit", "create"]),
    ("glob", &["glob"]),
    ("grep", &["grep"]),
    ("list_agents", &["list_agents"]),
    ("list_bash", &["list_bash"]),
    ("read_agent", &["read_agent"]),
    ("read_bash", &["read_bash"]),
    ("skill", &["skill"]),
    ("sql", &["sql"]),
    ("stop_bash", &["stop_bash"]),
    ("task", &["task"]),
    ("view", &["view"]),
    ("write_agent", &["write_agent"]),
    ("agent", &["task"]),
    ("custom-agent", &["task"]),
    ("execute", &["bash"]),
    ("shell", &["bash"]),
    ("terminal", &["bash"]),
    ("powershell", &["bash"]),
    ("runcommands", &["bash"]),
    ("run_in_terminal", &["bash"]),
    ("read", &["view"]),
    ("read_file", &["view"]),
    ("readfile", &["view"]),
    ("notebookread", &["view"]),
    ("write", &["create", "edit"]),
    ("write_file", &["create", "edit"]),
    ("editfiles", &["create", "edit"]),
    ("edit_file", &["edit"]),
    ("multiedit", &["edit"]),
    ("notebookedit", &["edit"]),
    ("create_file", &["create"]),
    ("search", &["grep", "glob"]),
    ("codebase", &["grep", "glob", "view"]),
    ("find", &["glob"]),
    ("ls", &["glob"]),
    // Known names without a tool that a session could be given.
    ("web", &[]),
    ("webfetch", &[]),
    ("web_fetch", &[]),
    ("websearch", &[]),
    ("web_search", &[]),
    ("fetch", &[]),
    ("usages", &[]),
    ("problems", &[]),
    ("changes", &[]),
    ("todo", &[]),
    ("todos", &[]),
    ("todowrite", &[]),
];

/// The engine's tools for a name; `None` if it names no tool.
pub(crate) fn tools_called(name: &str) -> Option<&'static [&'static str]> {
    NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, tools)| *tools)
}

/// Names of command-line agents' own tools that nobody writes into a charter.
const CHANGING: [(&str, Access); 7] = [
    ("run_shell_command", Access::Shell),
    ("command_execution", Access::Shell),
    ("file_change", Access::Write),
    ("apply_patch", Access::Write),
    ("patch", Access::Write),
    ("replace", Access::Write),
    ("delete", Access::Write),
];

/// Whether an engine's tool of this name writes files or runs commands; `None`: neither, or unknown.
pub(crate) fn change_by(tool: &str) -> Option<Access> {
    let listed = CHANGING.iter().find(|(name, _)| tool.eq_ignore_ascii_case(name)).map(|(_, access)| *access);
    listed.or_else(|| match tools_called(tool)? {
        ["bash"] => Some(Access::Shell),
        tools if tools.contains(&"edit") || tools.contains(&"create") => Some(Access::Write),
        _ => None,
    })
}

/// All tools that a session has by default, except those with these names.
pub(crate) fn tools_but(denied: &[String]) -> Vec<String> {
    let own = NAMES.iter().filter(|(name, tools)| *name != "*" && tools.first() == Some(name)).map(|(name, _)| *name);
    own.filter(|tool| !is_denied(denied, tool)).map(str::to_owned).collect()
}

/// Whether one of these names, in any spelling, denies the engine's tool. A shell's helpers go with it.
pub(crate) fn is_denied(denied: &[String], tool: &str) -> bool {
    let mut denied = denied.iter().filter_map(|name| tools_called(name)).flatten();
    denied.any(|denied| *denied == tool || *denied == "bash" && tool.ends_with("_bash"))
}

impl Charter {
    /// The names of tools that it allows, without those that it denies by any name.
    pub(crate) fn allowed_tools(&self) -> Option<Vec<String>> {
        let is_denied = |name: &&String| {
            let tools = tools_called(name).unwrap_or_default();
            !tools.is_empty() && tools.iter().all(|tool| is_denied(&self.denied_tools, tool))
        };
        Some(self.tools.as_ref()?.iter().filter(|name| !is_denied(name)).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_change_something_are_known_by_every_engines_name() {
        for tool in ["bash", "Bash", "shell", "run_shell_command", "command_execution"] {
            assert_eq!(change_by(tool), Some(Access::Shell), "{tool}");
        }
        for tool in ["create", "Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "replace", "file_change"] {
            assert_eq!(change_by(tool), Some(Access::Write), "{tool}");
        }
        for tool in ["view", "Read", "read_bash", "Grep", "all", "*", "squad_log_decision", ""] {
            assert_eq!(change_by(tool), None, "{tool}");
        }
    }
}
