//! What people call the tools of engines.

/// A name with the tools it stands for: the Copilot CLI's own (those of version 1.0.102 by default), the aliases of
/// custom agents, and the names that other engines and editors have for the same.
const NAMES: [(&str, &[&str]); 52] = [
    ("*", &["*"]),
    ("all", &["*"]),
    ("bash", &["bash"]),
    ("create", &["create"]),
    // Who may edit may write a new file.
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
    // Known, and nothing that a session could be given.
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

/// The engine's tools that a name stands for; `None`: it is no tool's name.
pub(crate) fn tools_called(name: &str) -> Option<&'static [&'static str]> {
    NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, tools)| *tools)
}

/// Every tool that a session is offered by default but those of these names.
pub(crate) fn tools_but(denied: &[String]) -> Vec<String> {
    let denied: Vec<&str> = denied.iter().filter_map(|name| tools_called(name)).flatten().copied().collect();
    let is_denied = |tool: &str| denied.contains(&tool) || (tool.ends_with("_bash") && denied.contains(&"bash"));
    let own = NAMES.iter().filter(|(name, tools)| *name != "*" && tools.first() == Some(name)).map(|(name, _)| *name);
    own.filter(|tool| !is_denied(tool)).map(str::to_owned).collect()
}
