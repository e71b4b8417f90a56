//! What of Codex's own a session has, as arguments of its process: they come before all files, and hold after a resume.

use serde_json::{Map, Value, json};

use super::items::{may_change, may_read};
use crate::engine::Opening;
use crate::engine::command::{Shared, codex_projects};
use crate::engine::copilot::{McpOffer, McpServer, McpServers};
use crate::model::Tier;

/// What a process is for.
pub(super) enum Purpose<'o> {
    /// To ask about the program.
    Inspect,
    Serve(&'o Opening),
}

/// Off for all: agents, goals and schedules of its own, what it would load beside the team's prompt, hooks that files
/// configure, its own web tools, and what only its own interfaces need. Terminals too: nobody is asked about what is typed
/// into one, such as commands into a shell. A version that lacks one of them ignores it.
const OFF: [&str; 23] = [
    "unified_exec_tty",
    "multi_agent",
    "multi_agent_v2",
    "goals",
    "memories",
    "hooks",
    "apps",
    "plugins",
    "remote_plugin",
    "plugin_sharing",
    "recommended_plugins",
    "skill_search",
    "tool_suggest",
    "image_generation",
    "browser_use",
    "computer_use",
    "in_app_browser",
    "in_app_local_automation",
    "auth_elicitation",
    "daemon_auto_start",
    "sleep_tool",
    "send_message_to_user_async",
    "request_permissions_tool",
];
/// More of that, each a key and its value in TOML. Models ask for agents of their own, whatever the features say.
const SET: [&str; 11] = [
    "agents.enabled=false",
    "web_search=\"disabled\"",
    "skills.bundled.enabled=false",
    "skills.include_instructions=false",
    "include_apps_instructions=false",
    "include_collaboration_mode_instructions=false",
    "include_permissions_instructions=false",
    "suppress_unstable_features_warning=true",
    // squad passes the repository's on.
    "project_doc_max_bytes=0",
    // Commands see no keys of the model's, and nothing that is meant for Codex.
    "shell_environment_policy.exclude=[\"RUST_LOG\"]",
    "shell_environment_policy.ignore_default_excludes=false",
];

pub(super) fn arguments(shared: &Shared, purpose: &Purpose<'_>) -> Vec<String> {
    let mut settings: Vec<String> = OFF.iter().map(|name| format!("features.{name}=false")).collect();
    settings.extend(SET.map(str::to_owned));
    settings.push(codex_projects(match purpose {
        Purpose::Inspect => shared.directory(),
        Purpose::Serve(opening) => &opening.directory,
    }));
    if let Purpose::Serve(opening) = purpose {
        settings.push(format!("features.default_mode_request_user_input={}", opening.asks));
        if !may_read(&opening.spec) && !may_change(&opening.spec) {
            settings.extend(["features.shell_tool=false", "features.unified_exec=false"].map(str::to_owned));
        }
    }
    let settings = settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]);
    std::iter::once("app-server".to_owned()).chain(settings).collect()
}

/// The user's MCP servers, as Codex has them in its configuration: the small tiers work without them. They are no
/// arguments, which all of the machine's users may read.
pub(super) fn servers(servers: &McpServers, opening: &Opening) -> Value {
    let has_servers = matches!(opening.spec.tier, Tier::Standard | Tier::Full);
    let of_agent = servers.iter().filter(|(_, server)| has_servers && server.is_for(&opening.spec.agent));
    of_agent.filter_map(|(name, server)| Some((name.clone(), server_table(server)?))).collect::<Map<_, _>>().into()
}

/// `None`: Codex does not speak to such servers.
fn server_table(server: &McpServer) -> Option<Value> {
    let (mut table, McpOffer { tools, timeout, .. }) = match server {
        McpServer::Local { command, args, env, offer } => {
            (json!({ "command": command, "args": args, "env": env }), offer)
        }
        McpServer::Http { url, headers, offer } => (json!({ "url": url, "http_headers": headers }), offer),
        McpServer::Sse { .. } => return None,
    };
    // A server may claim of any tool that it only reads.
    table["default_tools_approval_mode"] = "prompt".into();
    if let Some(tools) = tools.as_ref().filter(|tools| tools.iter().all(|tool| tool != "*")) {
        table["enabled_tools"] = tools.clone().into();
    }
    if let Some(milliseconds) = timeout {
        table["tool_timeout_sec"] = milliseconds.div_ceil(1_000).into();
    }
    Some(table)
}
