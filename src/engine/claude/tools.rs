//! The program's own tools: by which of our names an agent gets them, and what they do.

use serde_json::{Value, json};

use crate::engine::{ToolSpec, subject};
use crate::model::{Access, SessionSpec, ToolChoice, is_denied};

/// The name under which the program knows squad as a server of tools.
pub(super) const SERVER: &str = "squad";
/// The tool by which the model asks a person.
pub(super) const ASK: &str = "AskUserQuestion";

struct OwnTool {
    name: &'static str,
    /// As charters and rules call it.
    called: &'static str,
    access: Access,
    /// The argument that says what it is about.
    about: &'static str,
}

/// Those that an agent may have. The others start agents, workflows and schedules, load skills and plan: that is squad's.
const TOOLS: [OwnTool; 9] = [
    OwnTool { name: "Read", called: "view", access: Access::Read, about: "file_path" },
    OwnTool { name: "Grep", called: "grep", access: Access::Read, about: "path" },
    OwnTool { name: "Glob", called: "glob", access: Access::Read, about: "path" },
    OwnTool { name: "Bash", called: "bash", access: Access::Shell, about: "command" },
    OwnTool { name: "Edit", called: "edit", access: Access::Write, about: "file_path" },
    OwnTool { name: "Write", called: "create", access: Access::Write, about: "file_path" },
    OwnTool { name: "NotebookEdit", called: "edit", access: Access::Write, about: "notebook_path" },
    OwnTool { name: "WebFetch", called: "web_fetch", access: Access::Network, about: "url" },
    OwnTool { name: "WebSearch", called: "web_search", access: Access::Network, about: "query" },
];

/// The program's tools that a session has.
pub(super) fn offered(spec: &SessionSpec, asks: bool) -> Vec<&'static str> {
    let is_chosen = |tool: &&OwnTool| match &spec.tools {
        ToolChoice::All => true,
        ToolChoice::ReadOnly => tool.access == Access::Read,
        ToolChoice::Nothing => false,
        ToolChoice::Only(names) => names.iter().any(|name| name == "*" || name == tool.called || name == tool.name),
    };
    let is_left = |tool: &&OwnTool| {
        let is_named = spec.denied_tools.iter().any(|name| name == tool.called || name == tool.name);
        !is_named && !is_denied(&spec.denied_tools, tool.called)
    };
    let asking = Some(ASK).filter(|_| asks && spec.tools != ToolChoice::Nothing);
    TOOLS.iter().filter(is_chosen).filter(is_left).map(|tool| tool.name).chain(asking).collect()
}

/// Whether a session may call a tool of another server, by our name for it.
pub(super) fn allows_other(spec: &SessionSpec, tool: &str) -> bool {
    match &spec.tools {
        ToolChoice::All => spec.denied_tools.iter().all(|name| name != tool),
        ToolChoice::Only(names) => names.iter().any(|name| name == "*" || name == tool),
        ToolChoice::ReadOnly | ToolChoice::Nothing => false,
    }
}

/// A tool as the program names it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tool<'n> {
    /// One of squad's, by its own name.
    Squad(&'n str),
    /// Another server's.
    Served {
        server: &'n str,
        tool: &'n str,
    },
    Own(&'n str),
}

impl<'n> Tool<'n> {
    pub(super) fn parse(name: &'n str) -> Self {
        match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
            Some((SERVER, tool)) => Self::Squad(tool),
            Some((server, tool)) => Self::Served { server, tool },
            None => Self::Own(name),
        }
    }

    /// As squad shows it.
    pub(super) fn shown(self) -> String {
        match self {
            Self::Squad(name) | Self::Own(name) => name.to_owned(),
            Self::Served { server, tool } => format!("{server}-{tool}"),
        }
    }

    /// What a call of it does, and to what. An unknown tool is shown in full to whoever decides.
    pub(super) fn access(self, arguments: &Value) -> (Access, String) {
        match self {
            Self::Squad(_) => (Access::Own, arguments.to_string()),
            Self::Served { server, tool } => (Access::Mcp, format!("{server}/{tool} {arguments}")),
            Self::Own(name) => match TOOLS.iter().find(|tool| tool.name == name) {
                Some(tool) => {
                    let about = arguments.get(tool.about).and_then(Value::as_str).map(str::to_owned);
                    // A search without a folder is one of the folder it works in.
                    let missing = || if tool.access == Access::Read { ".".to_owned() } else { arguments.to_string() };
                    (tool.access, about.unwrap_or_else(missing))
                }
                None => (Access::Other, format!("{name} {}", subject(arguments))),
            },
        }
    }
}

/// Answers a message of the program to squad as a server of tools; `None`: it is a call of a tool, which the run performs.
pub(super) fn served(message: &Value, tools: &[ToolSpec]) -> Option<Value> {
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": message.pointer("/params/protocolVersion"),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": SERVER, "version": env!("CARGO_PKG_VERSION") },
        }),
        "tools/list" => {
            let listed = tools.iter().map(
                |tool| json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.parameters }),
            );
            json!({ "tools": listed.collect::<Vec<_>>() })
        }
        "tools/call" => return None,
        "ping" => json!({}),
        method if method.starts_with("notifications/") => json!({}),
        method => {
            let error = json!({ "code": -32601, "message": format!("squad has no method {method}") });
            return Some(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
        }
    };
    Some(reply(&message["id"], &result))
}

pub(super) fn reply(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::copilot::testing;

    #[test]
    fn an_agent_gets_what_its_role_has_and_no_more() {
        let joined = |tools: ToolChoice, denied: &[&str]| {
            let mut opening = testing::opening("s", tools);
            opening.spec.denied_tools = denied.iter().map(|name| (*name).to_owned()).collect();
            offered(&opening.spec, opening.asks).join(" ")
        };
        let only = |names: &[&str]| ToolChoice::Only(names.iter().map(|name| (*name).to_owned()).collect());
        let all = "Read Grep Glob Bash Edit Write NotebookEdit WebFetch WebSearch AskUserQuestion";
        assert_eq!(joined(ToolChoice::All, &[]), all);
        assert_eq!(joined(only(&["*"]), &[]), all);
        assert_eq!(joined(ToolChoice::All, &["shell", "web_fetch"]), all.replace("Bash ", "").replace("WebFetch ", ""));
        assert_eq!(joined(ToolChoice::ReadOnly, &[]), "Read Grep Glob AskUserQuestion");
        assert_eq!(joined(only(&["view", "create"]), &["write"]), "Read AskUserQuestion");
        assert_eq!(joined(ToolChoice::Nothing, &[]), "");
    }

    #[test]
    fn a_call_says_what_it_does() {
        for (name, arguments, shown, expected) in [
            ("Bash", json!({ "command": "ls", "description": "d" }), "Bash", (Access::Shell, "ls")),
            ("Edit", json!({ "file_path": "/a", "old_string": "x" }), "Edit", (Access::Write, "/a")),
            ("Grep", json!({ "pattern": "x" }), "Grep", (Access::Read, ".")),
            ("Write", json!({ "content": "x" }), "Write", (Access::Write, "{\"content\":\"x\"}")),
            ("Agent", json!({ "prompt": "go" }), "Agent", (Access::Other, "Agent go")),
            ("mcp__squad__squad_status", json!({}), "squad_status", (Access::Own, "{}")),
            ("mcp__a__b__c", json!({}), "a-b__c", (Access::Mcp, "a/b__c {}")),
            ("mcp__", json!({}), "mcp__", (Access::Other, "mcp__ ")),
        ] {
            let tool = Tool::parse(name);
            assert_eq!(tool.shown(), shown, "{name}");
            assert_eq!(tool.access(&arguments), (expected.0, expected.1.to_owned()), "{name}");
        }
    }
}
