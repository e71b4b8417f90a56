//! Names that people use for the engines' tools.

use super::{Access, Charter};

/// Names and the tools they stand for: those of the Copilot CLI (the defaults of version 1.0.102), aliases of custom
/// agents, and names used by other engines and editors.
const NAMES: [(&str, &[&str]); 64] = [
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
    ("notebookread", &["view"]),
    ("write", &["create", "edit"]),
    ("write_file", &["create", "edit"]),
    ("editfiles", &["create", "edit"]),
    ("edit_file", &["edit"]),
    ("multiedit", &["edit"]),
    ("notebookedit", &["edit"]),
    ("create_file", &["create"]),
    // Names of command-line agents' own tools.
    ("run_shell_command", &["bash"]),
    ("run_terminal_cmd", &["bash"]),
    ("command_execution", &["bash"]),
    ("exec_command", &["bash"]),
    ("write_stdin", &["bash"]),
    ("local_shell", &["bash"]),
    ("unified_exec", &["bash"]),
    ("file_change", &["create", "edit"]),
    ("apply_patch", &["create", "edit"]),
    ("patch", &["create", "edit"]),
    ("replace", &["create", "edit"]),
    ("str_replace", &["edit"]),
    ("str_replace_editor", &["create", "edit"]),
    ("search_replace", &["create", "edit"]),
    ("delete", &["edit"]),
    ("search", &["grep", "glob"]),
    ("codebase", &["grep", "glob", "view"]),
    ("find", &["glob"]),
    ("ls", &["glob"]),
    // Known names without a tool that a session could be given.
    ("web", &[]),
    ("web_fetch", &[]),
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
    NAMES.iter().find(|(known, _)| is_same(name, known)).map(|(_, tools)| *tools)
}

/// Whether two names differ at most in how their words are put together: `WebFetch` and `web_fetch`.
fn is_same(name: &str, other: &str) -> bool {
    fn letters(name: &str) -> impl Iterator<Item = u8> {
        name.bytes().filter(|byte| !b"_-".contains(byte)).map(|byte| byte.to_ascii_lowercase())
    }
    letters(name).eq(letters(other))
}

/// What a request is for, by our names: `tool` is the engine's name for what does `access`.
fn tools_of((tool, access): (&str, Access)) -> &'static [&'static str] {
    match (tools_called(tool), access) {
        // An engine's `edit` does not create.
        (Some(tools), _) if tools.first().is_some_and(|first| is_same(first, tool)) => &tools[..1],
        (Some(tools), _) if !tools.is_empty() => tools,
        (_, Access::Shell) => &["bash"],
        (_, Access::Write) => &["create", "edit"],
        _ => &[],
    }
}

/// Whether a name stands for something that a request is for, whatever its engine calls that. A shell's helpers go with it.
pub(crate) fn may_be_tool(name: &str, request: (&str, Access)) -> bool {
    let named = tools_called(name).unwrap_or_default();
    let is_web = ["web", "webfetch", "fetch"].iter().any(|known| is_same(name, known));
    named.contains(&"*")
        || is_same(name, request.0)
        || tools_of(request).iter().any(|tool| named.contains(tool))
        || is_denied(&[name.to_owned()], request.0)
        || is_web && request.1 == Access::Network
}

/// Whether a name stands for all that a request is for.
pub(crate) fn surely_is_tool(name: &str, request: (&str, Access)) -> bool {
    let (named, tools) = (tools_called(name).unwrap_or_default(), tools_of(request));
    let is_all = !tools.is_empty() && tools.iter().all(|tool| named.contains(tool));
    named.contains(&"*") || is_same(name, request.0) || is_all
}

/// Whether an engine's tool of this name writes files or runs commands; `None`: neither, or unknown.
pub(crate) fn change_by(tool: &str) -> Option<Access> {
    match tools_called(tool)? {
        ["bash"] => Some(Access::Shell),
        tools if tools.contains(&"edit") || tools.contains(&"create") => Some(Access::Write),
        _ => None,
    }
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
        for tool in ["bash", "Bash", "shell", "run_shell_command", "command_execution", "exec_command", "local-shell"] {
            assert_eq!(change_by(tool), Some(Access::Shell), "{tool}");
        }
        for tool in [
            "create",
            "Write",
            "Edit",
            "MultiEdit",
            "NotebookEdit",
            "write_file",
            "replace",
            "file_change",
            "apply_patch",
        ] {
            assert_eq!(change_by(tool), Some(Access::Write), "{tool}");
        }
        for tool in ["view", "Read", "read_bash", "Grep", "all", "*", "squad_log_decision", ""] {
            assert_eq!(change_by(tool), None, "{tool}");
        }
    }

    /// A name of a rule, what an engine calls the tool and what it does, and whether the name may be that tool, and surely is.
    #[test]
    fn a_name_stands_for_every_engines_tool() {
        use Access::{Mcp, Network, Read, Shell, Write};
        for (name, tool, access, may_be, surely) in [
            ("bash", "exec_command", Shell, true, true),
            ("shell", "Bash", Shell, true, true),
            ("Bash", "shell", Shell, true, true),
            ("exec_command", "bash", Shell, true, true),
            ("bash", "a_new_name", Shell, true, true),
            ("bash", "read_bash", Shell, true, false),
            ("bash", "evil_bash", Mcp, true, false),
            ("write", "apply_patch", Write, true, true),
            ("create", "apply_patch", Write, true, false),
            ("create", "edit", Write, false, false),
            ("edit", "create", Write, true, true),
            ("Write", "create", Write, true, true),
            ("apply_patch", "str_replace_editor", Write, true, true),
            ("web_fetch", "WebFetch", Network, true, true),
            ("fetch", "url", Network, true, false),
            ("web_search", "WebFetch", Network, false, false),
            ("read", "Read", Read, true, true),
            ("bash", "view", Read, false, false),
            ("all", "anything", Mcp, true, true),
            ("deploy", "deploy", Mcp, true, true),
            ("deploy", "undeploy", Mcp, false, false),
        ] {
            let request = (tool, access);
            assert_eq!((may_be_tool(name, request), surely_is_tool(name, request)), (may_be, surely), "{name}: {tool}");
        }
    }
}
