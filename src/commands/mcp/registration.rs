//! How clients are told of the server.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::env::Env;
use crate::error::Failure;

/// Members work for longer than clients wait by themselves.
const HOUR: u64 = 3600;

/// Variables that configure the server. Hosts do not pass on their own.
const VARIABLES: [&str; 8] = [
    "AGENTS_DIRECTORY_PATH",
    "CREATE_CHAT_TEMPLATE_PATH",
    "ENGINE_COMMAND",
    "PROCESS_TIMEOUT_MS",
    "RUN_TEMPLATE_PATH",
    "SQUAD_ENGINE",
    "SQUAD_MODEL",
    "STATE_MODE",
];

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

    /// Registers a server with these arguments, and the variables of this environment that configure it.
    pub(super) fn registration(self, env: &Env, root: &Path, options: &[String]) -> Result<String, Failure> {
        let name = env.command_name();
        let command = name.trim_matches('"');
        let root = root.to_str().ok_or_else(|| {
            Failure::usage(format!("{} is not Unicode, so it cannot be written to a configuration", root.display()))
                .hint("rename the folder, or reach it by a link with a plain name and `-C`")
        })?;
        let mut arguments = vec!["-C", root, "mcp"];
        arguments.extend(options.iter().map(String::as_str));
        let variables: BTreeMap<&str, &str> =
            VARIABLES.into_iter().filter_map(|name| Some((name, env.variable(name)?))).collect();
        let mut server = json!({"command": command, "args": arguments});
        if !variables.is_empty() {
            server["env"] = json!(variables);
        }
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
            Self::Codex => return Ok(toml(command, &arguments, &variables)),
        };
        let all: Value = json!({ servers: {"squad": server} });
        Ok(serde_json::to_string_pretty(&all).unwrap_or_default())
    }
}

fn toml(command: &str, arguments: &[&str], variables: &BTreeMap<&str, &str>) -> String {
    let arguments: toml::Value = arguments.to_vec().into();
    let command = toml::Value::from(command);
    let mut text = format!("[mcp_servers.squad]\ncommand = {command}\nargs = {arguments}\ntool_timeout_sec = {HOUR}");
    if !variables.is_empty() {
        text.push_str("\n\n[mcp_servers.squad.env]");
    }
    for (name, value) in variables {
        text.push_str(&format!("\n{name} = {}", toml::Value::from(*value)));
    }
    text
}
