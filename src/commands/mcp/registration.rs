//! How clients are told of the server.

use std::path::Path;

use serde_json::{Value, json};

use crate::env::Env;

/// Members work for longer than clients wait by themselves.
const HOUR: u64 = 3600;

#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Client {
    Copilot,
    Claude,
    Vscode,
    Cursor,
    Codex,
}

impl Client {
    /// Where it goes.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Copilot => "~/.copilot/mcp-config.json",
            Self::Claude => ".mcp.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Codex => "~/.codex/config.toml",
        }
    }

    pub(super) fn registration(self, env: &Env, root: &Path) -> String {
        let name = env.command_name();
        let command = name.trim_matches('"');
        let arguments = ["-C", &root.display().to_string(), "mcp"];
        let mut server = json!({"command": command, "args": arguments});
        let servers = match self {
            Self::Copilot => {
                server["type"] = "local".into();
                server["tools"] = json!(["*"]);
                server["timeout"] = (HOUR * 1000).into();
                "mcpServers"
            }
            Self::Claude | Self::Cursor => "mcpServers",
            Self::Vscode => {
                server["type"] = "stdio".into();
                "servers"
            }
            Self::Codex => return toml(command, &arguments),
        };
        let all: Value = json!({ servers: {"squad": server} });
        serde_json::to_string_pretty(&all).unwrap_or_default()
    }
}

fn toml(command: &str, arguments: &[&str]) -> String {
    let arguments: toml::Value = arguments.to_vec().into();
    let command = toml::Value::from(command);
    format!("[mcp_servers.squad]\ncommand = {command}\nargs = {arguments}\ntool_timeout_sec = {HOUR}")
}
