//! The protocol messages that squad uses. Protocol version 3, from the CLI's `api.schema.json` and
//! `session-events.schema.json` (version 1.0.102).
//!
//! Sent messages are exact. In received messages every field is optional: a missing or new field must not fail a turn.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::options::{McpServer, McpServers, Provider, ProviderKind, WireApi};
use super::profile::{self, SystemMessage};
use crate::engine::{Opening, ToolSpec};
use crate::model::{Billed, ContextSize, Tier, ToolChoice, Usage};

/// The CLI's read-only tools.
const READ_ONLY: [&str; 3] = ["view", "grep", "glob"];
/// Tools that read and end a shell which outlives its call; without them it would be left running.
const SHELL: &str = "bash";
const SHELL_COMPANIONS: [&str; 3] = ["read_bash", "stop_bash", "list_bash"];
/// The tool that starts language servers.
const LANGUAGE_SERVERS: &str = "lsp";

/// `session.create` and `session.resume`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenParams {
    pub(crate) session_id: String,
    client_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<ProviderParams>,
    working_directory: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    custom_agents: Vec<CustomAgent>,
    /// The preselected custom agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    system_message: SystemMessage,
    /// Skips the repository's instructions, such as AGENTS.md.
    skip_custom_instructions: bool,
    coauthor_enabled: bool,
    /// The exact list of tools; if absent, all tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available_tools: Option<Vec<String>>,
    excluded_tools: Vec<String>,
    tool_filter_precedence: &'static str,
    tools: Vec<ToolParams>,
    request_permission: bool,
    request_user_input: bool,
    streaming: bool,
    /// A sub-agent's messages are not its agent's.
    include_sub_agent_streaming_events: bool,
    env_value_mode: &'static str,
    hooks: bool,
    /// A cloned repository cannot bring commands: neither MCP servers nor hooks, which the CLI runs by default.
    enable_config_discovery: bool,
    enable_file_hooks: bool,
    /// The user's own servers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) mcp_servers: McpServers,
    infinite_sessions: InfiniteSessions,
}

/// `Debug` is not derived, since this holds a key.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProviderParams {
    r#type: ProviderKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    wire_api: Option<WireApi>,
    base_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_prompt_tokens: Option<u64>,
}

impl fmt::Debug for ProviderParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderParams").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CustomAgent {
    name: String,
    display_name: String,
    description: String,
    prompt: String,
    /// `null` for all tools.
    tools: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolParams {
    name: Cow<'static, str>,
    description: Cow<'static, str>,
    parameters: Value,
    /// squad decides when the call arrives; a permission request before it would only be slower.
    skip_permission: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InfiniteSessions {
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    background_compaction_threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer_exhaustion_threshold: Option<f64>,
}

impl OpenParams {
    pub(crate) fn new(opening: &Opening, provider: Option<&Provider>) -> Self {
        let spec = &opening.spec;
        let wanted = spec.model.id.as_str();
        let model = provider.map_or(wanted, |provider| provider.model(wanted));
        let tools = available_tools(&spec.tools, &opening.tools);
        let only_decides = profile::only_decides(spec);
        // The CLI accepts no agent without a prompt.
        let agent = (!only_decides && !spec.prompt.trim().is_empty()).then(|| CustomAgent {
            name: spec.agent.to_string(),
            display_name: spec.name.clone(),
            description: spec.role.clone(),
            prompt: spec.prompt.clone(),
            tools: tools.clone(),
        });
        Self {
            session_id: opening.session.clone(),
            client_name: "squad",
            model: (!model.is_empty()).then(|| model.to_owned()),
            reasoning_effort: spec.effort.clone(),
            provider: provider.map(ProviderParams::new),
            working_directory: opening.directory.to_string_lossy().into_owned(),
            agent: agent.as_ref().map(|agent| agent.name.clone()),
            custom_agents: agent.into_iter().collect(),
            system_message: SystemMessage::new(spec),
            skip_custom_instructions: only_decides,
            coauthor_enabled: false,
            available_tools: tools,
            excluded_tools: profile::excluded_tools(opening),
            tool_filter_precedence: "excluded",
            tools: opening.tools.iter().map(ToolParams::new).collect(),
            request_permission: true,
            request_user_input: opening.asks,
            streaming: true,
            include_sub_agent_streaming_events: false,
            env_value_mode: "direct",
            hooks: true,
            enable_config_discovery: false,
            enable_file_hooks: false,
            infinite_sessions: InfiniteSessions::new(spec.compaction_threshold),
            mcp_servers: McpServers::new(),
        }
    }

    /// Whether a session has the user's MCP servers: the small tiers work without them.
    pub(crate) fn has_servers(opening: &Opening) -> bool {
        matches!(opening.spec.tier, Tier::Standard | Tier::Full)
    }

    pub(crate) fn with_servers(self, mcp_servers: McpServers) -> Self {
        Self { mcp_servers, ..self }
    }

    /// Excludes the tool that starts language servers. Returns whether the session would have had it.
    pub(crate) fn exclude_language_servers(&mut self) -> bool {
        self.excluded_tools.push(LANGUAGE_SERVERS.to_owned());
        self.available_tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == LANGUAGE_SERVERS))
    }
}

impl ProviderParams {
    fn new(provider: &Provider) -> Self {
        Self {
            r#type: provider.kind,
            wire_api: provider.wire_api,
            base_url: provider.base_url.clone(),
            api_key: provider.api_key.clone(),
            max_prompt_tokens: provider.max_prompt_tokens,
        }
    }
}

impl ToolParams {
    fn new(tool: &ToolSpec) -> Self {
        Self {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            skip_permission: true,
        }
    }
}

impl InfiniteSessions {
    fn new(threshold: Option<f64>) -> Self {
        Self {
            enabled: threshold.is_some(),
            background_compaction_threshold: threshold,
            // The level at which a turn waits for the compaction to end: not below the level at which it begins.
            buffer_exhaustion_threshold: threshold.map(|threshold| threshold.max(0.95)),
        }
    }
}

/// The exact list of a session's tools, including squad's own; `None` for all tools.
fn available_tools(choice: &ToolChoice, own: &[ToolSpec]) -> Option<Vec<String>> {
    let mut tools: Vec<String> = match choice {
        ToolChoice::All => return None,
        ToolChoice::Only(tools) if tools.iter().any(|tool| tool == "*") => return None,
        ToolChoice::Nothing => return Some(Vec::new()),
        ToolChoice::ReadOnly => READ_ONLY.map(str::to_owned).into(),
        ToolChoice::Only(tools) => tools.clone(),
    };
    if tools.iter().any(|tool| tool == SHELL) {
        tools.extend(SHELL_COMPANIONS.map(str::to_owned));
    }
    tools.extend(own.iter().map(|tool| tool.name.to_string()));
    let mut seen = std::collections::BTreeSet::new();
    tools.retain(|tool| seen.insert(tool.clone()));
    Some(tools)
}

/// The answer to `connect`, or to `status.get` from an older CLI without `connect`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HandshakeReply {
    pub(crate) protocol_version: Option<u64>,
    pub(crate) version: Option<String>,
}

/// The answer to `auth.getStatus`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Account {
    #[serde(rename = "isAuthenticated")]
    pub(crate) authenticated: bool,
    /// `user`, `env`, `gh-cli`, `hmac`, `api-key` or `token`.
    pub(crate) auth_type: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) login: Option<String>,
    pub(crate) status_message: Option<String>,
}

/// The answer to `session.create` and `session.resume`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Opened {
    pub(crate) model_state: Option<ModelState>,
    /// Where the CLI stores the session's files.
    pub(crate) workspace_path: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ModelState {
    pub(crate) model_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Models {
    pub(crate) models: Vec<Value>,
}

/// A model available to the login.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ModelInfo {
    pub(crate) id: String,
    pub(crate) name: String,
    /// In tokens, like the limits below.
    pub(crate) context_window: Option<u64>,
    pub(crate) longest_prompt: Option<u64>,
    pub(crate) longest_output: Option<u64>,
    /// How many premium requests one request counts as.
    pub(crate) multiplier: Option<f64>,
    /// `enabled`, `disabled` or `unconfigured`.
    pub(crate) policy: Option<String>,
    pub(crate) vendor: Option<String>,
    pub(crate) vision: bool,
    /// The supported reasoning efforts; empty if the model has none.
    pub(crate) efforts: Vec<String>,
}

impl fmt::Display for ModelInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        if let Some(tokens) = self.context_window {
            write!(f, ", {tokens} tokens of context")?;
        }
        if let Some(multiplier) = self.multiplier {
            write!(f, ", counts as {multiplier} premium requests")?;
        }
        if self.vision {
            write!(f, ", sees images")?;
        }
        if !self.efforts.is_empty() {
            write!(f, ", effort {}", self.efforts.join("|"))?;
        }
        Ok(())
    }
}

impl ModelInfo {
    /// `None` if the value has no id.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let count = |name: &str| value.pointer(&format!("/capabilities/limits/{name}")).and_then(Value::as_u64);
        let id = text("/id")?;
        let efforts = value.get("supportedReasoningEfforts").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            name: text("/name").unwrap_or_else(|| id.clone()),
            id,
            context_window: count("max_context_window_tokens"),
            longest_prompt: count("max_prompt_tokens"),
            longest_output: count("max_output_tokens"),
            multiplier: value.pointer("/billing/multiplier").and_then(Value::as_f64),
            policy: text("/policy/state"),
            vendor: text("/vendor"),
            vision: value.pointer("/capabilities/supports/vision").and_then(Value::as_bool).unwrap_or(false),
            efforts: efforts.filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }
}

/// `session.event`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventParams {
    pub(crate) session_id: String,
    pub(crate) event: Event,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) r#type: String,
    #[serde(default)]
    pub(crate) data: Value,
    /// The sub-agent that sent it; `None` for the session's own agent.
    #[serde(default)]
    pub(crate) agent_id: Option<String>,
}

impl Event {
    /// Parses the event's data; a default `T` if the shape does not match.
    pub(crate) fn data<T: DeserializeOwned + Default>(&self) -> T {
        T::deserialize(&self.data).unwrap_or_else(|error| {
            tracing::debug!("{} has an unknown shape: {error}", self.r#type);
            T::default()
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MessageDelta {
    pub(crate) delta_content: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AssistantMessage {
    pub(crate) content: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ToolStart {
    pub(crate) tool_call_id: String,
    pub(crate) tool_name: String,
    pub(crate) arguments: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ToolComplete {
    pub(crate) tool_call_id: String,
    pub(crate) success: bool,
    pub(crate) result: Option<ToolContent>,
    pub(crate) error: Option<ErrorMessage>,
    tool_telemetry: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolContent {
    pub(crate) content: String,
    contents: Vec<Value>,
}

impl ToolComplete {
    /// The exit code of a command, if reported: the CLI reports success for a call whose command failed.
    pub(crate) fn exit_code(&self) -> Option<i64> {
        let contents = self.result.iter().flat_map(|result| &result.contents);
        let mut exits = contents.filter(|content| content.get("type").is_some_and(|kind| kind == "shell_exit"));
        let said = exits.next_back().and_then(|content| content.get("exitCode"));
        let code = said.or_else(|| self.tool_telemetry.pointer("/metrics/exit_code"))?;
        // Hooks have whole numbers as floating-point ones.
        code.as_i64().or_else(|| code.as_f64().map(|code| code as i64))
    }
}

/// `session.error`, `session.warning` and a tool's error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ErrorMessage {
    pub(crate) message: String,
}

/// `session.error`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SessionError {
    pub(crate) message: String,
    error_type: String,
    status_code: Option<u64>,
}

impl SessionError {
    /// Whether it says that the account's quota is used up.
    pub(crate) fn is_of_quota(&self) -> bool {
        matches!(self.error_type.as_str(), "quota" | "rate_limit") || self.status_code == Some(429)
    }
}

/// `auto_mode_switch.requested`, which follows an error about a rate limit.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AutoModeSwitch {
    pub(crate) retry_after_seconds: Option<u64>,
}

/// `session.mcp_servers_loaded`, and the answer to `session.mcp.list`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct McpServersLoaded {
    pub(crate) servers: Vec<McpServerState>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct McpServerState {
    pub(crate) name: String,
    status: String,
    error: Option<String>,
}

impl McpServerState {
    pub(crate) fn is_starting(&self) -> bool {
        self.status == "pending"
    }

    /// Why it cannot be used; `None`: it can, as far as is known.
    pub(crate) fn problem(&self) -> Option<String> {
        match self.status.as_str() {
            "failed" => Some(self.error.clone().unwrap_or_else(|| "it does not say why".to_owned())),
            "needs-auth" => Some("it answers 401 Unauthorized; give it its key in `headers`".to_owned()),
            _ => None,
        }
    }
}

/// `session.create` for a session that only starts one MCP server.
pub(crate) fn server_trial(
    session: &str,
    (name, server): (&str, &McpServer),
    directory: &Path,
    provider: Option<&Provider>,
) -> Value {
    let mut params = json!({
        "sessionId": session,
        "clientName": "squad",
        "workingDirectory": directory.to_string_lossy(),
        "envValueMode": "direct",
        "enableConfigDiscovery": false,
        "enableFileHooks": false,
        "mcpServers": { name: server },
    });
    if let Some(provider) = provider {
        params["model"] = provider.model("").into();
        params["provider"] = json!(ProviderParams::new(provider));
    }
    params
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    reasoning_tokens: u64,
    /// In premium requests, not dollars.
    cost: f64,
    /// Whether the model is on the user's own endpoint.
    is_byok: bool,
}

impl ModelUsage {
    pub(crate) fn read(&self) -> Usage {
        // Requests to the user's own endpoint are not billed.
        let is_billed = !self.is_byok && self.cost > 0.0;
        let billed = Billed { unit: "premium_request".to_owned(), amount: self.cost };
        Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cache_read_tokens: self.cache_read_tokens,
            cache_write_tokens: self.cache_write_tokens,
            reasoning_tokens: self.reasoning_tokens,
            billed: is_billed.then_some(billed).into_iter().collect(),
            ..Usage::default()
        }
    }
}

/// `session.usage_info`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct UsageInfo {
    system_tokens: u64,
    tool_definitions_tokens: u64,
    conversation_tokens: u64,
    token_limit: u64,
}

impl UsageInfo {
    pub(crate) fn read(&self) -> ContextSize {
        ContextSize {
            system_tokens: self.system_tokens,
            tool_tokens: self.tool_definitions_tokens,
            conversation_tokens: self.conversation_tokens,
            limit: self.token_limit,
        }
    }
}

/// `session.compaction_complete`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Compaction {
    pub(crate) success: bool,
    pub(crate) error: Option<String>,
    pub(crate) pre_compaction_tokens: u64,
    pub(crate) post_compaction_tokens: Option<u64>,
}

/// `session.truncation`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Truncation {
    pub(crate) pre_truncation_tokens_in_messages: u64,
    pub(crate) post_truncation_tokens_in_messages: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ModelCallFailure {
    pub(crate) status_code: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TurnRetry {
    /// For example `rate_limit` or `api_error`.
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Idle {
    pub(crate) aborted: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExternalTool {
    pub(crate) request_id: String,
    pub(crate) tool_call_id: String,
    pub(crate) tool_name: String,
    pub(crate) arguments: Value,
}

/// `userInput.request`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct UserInput {
    pub(crate) session_id: String,
    pub(crate) question: String,
    pub(crate) choices: Vec<String>,
}

impl HookCall {
    /// The end of a call, as the hooks after it tell it, in the form of the event that follows.
    pub(crate) fn complete(&self, tool_call_id: String) -> ToolComplete {
        let field = |place: &str| self.input.pointer(place).and_then(Value::as_str);
        let content = field("/toolResult/textResultForLlm").unwrap_or_default().to_owned();
        let error = field("/error").or_else(|| field("/toolResult/error")).map(str::to_owned);
        let mut tool_telemetry = self.input.pointer("/toolResult/toolTelemetry").cloned().unwrap_or_default();
        if tool_telemetry.pointer("/metrics/exit_code").is_none()
            && let Some(code) = said_exit_code(&content)
        {
            tool_telemetry = serde_json::json!({ "metrics": { "exit_code": code } });
        }
        let success = error.is_none() && field("/toolResult/resultType").is_none_or(|kind| kind == "success");
        let error = error.or_else(|| (!success).then(|| content.clone())).map(|message| ErrorMessage { message });
        let result = Some(ToolContent { content, ..ToolContent::default() });
        ToolComplete { tool_call_id, success, error, result, tool_telemetry }
    }
}

/// The code in the last line of a command's output, `<shellId: 0 completed with exit code 3>`.
fn said_exit_code(output: &str) -> Option<i64> {
    let last = output.trim_end().lines().next_back()?.strip_suffix('>')?;
    last.starts_with('<').then(|| last.rsplit_once(" exit code "))?.and_then(|(_, code)| code.parse().ok())
}

/// `hooks.invoke`. For a sub-agent's tools, the session is the outer one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HookCall {
    pub(crate) session_id: String,
    pub(crate) hook_type: String,
    pub(crate) input: Value,
}

/// Parses params that squad can do without; a default `T` if the shape does not match.
pub(crate) fn lenient<T: DeserializeOwned + Default>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_else(|error| {
        tracing::debug!("a message of the engine has an unknown shape: {error}");
        T::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing;
    use super::*;

    fn provider() -> Provider {
        Provider {
            kind: ProviderKind::Openai,
            wire_api: Some(WireApi::Completions),
            base_url: "http://127.0.0.1:1/v1".into(),
            api_key: Some("not-a-real-key".into()),
            models: vec!["fake-1".into()],
            max_prompt_tokens: None,
        }
    }

    #[test]
    fn a_session_is_its_charter_its_context_and_its_tools() {
        let opening = testing::opening("squad-ada", ToolChoice::ReadOnly);
        let params = OpenParams::new(&opening, Some(&provider()));
        assert!(!format!("{params:?}").contains("not-a-real-key"));
        let tools = json!(["view", "grep", "glob", "squad_status"]);
        let notifications = profile::NOTIFICATIONS.trim();
        assert_eq!(
            serde_json::to_value(&params).expect("JSON"),
            json!({
                "sessionId": "squad-ada",
                "clientName": "squad",
                "model": "fake-1",
                "provider": {
                    "type": "openai", "wireApi": "completions", "baseUrl": "http://127.0.0.1:1/v1", "apiKey": "not-a-real-key"
                },
                "workingDirectory": "/project",
                "customAgents": [{
                    "name": "ada", "displayName": "Ada", "description": "Lead", "prompt": "You are Ada.", "tools": tools
                }],
                "agent": "ada",
                "systemMessage": {
                    "mode": "customize",
                    "sections": {
                        "identity": { "action": "replace", "content": "# Team" },
                        "preamble": { "action": "remove" },
                        "tone": { "action": "remove" },
                        "guidelines": { "action": "remove" },
                        "runtime_instructions": { "action": "replace", "content": notifications },
                        "last_instructions": { "action": "replace", "content": "# Decisions" },
                    }
                },
                "skipCustomInstructions": false,
                "coauthorEnabled": false,
                "availableTools": tools,
                "excludedTools": ["task", "read_agent", "list_agents", "write_agent", "sql", "semantic_code_search"],
                "toolFilterPrecedence": "excluded",
                "tools": [{
                    "name": "squad_status", "description": "Who does what.",
                    "parameters": { "type": "object" }, "skipPermission": true
                }],
                "requestPermission": true,
                "requestUserInput": true,
                "streaming": true,
                "includeSubAgentStreamingEvents": false,
                "envValueMode": "direct",
                "hooks": true,
                "enableConfigDiscovery": false,
                "enableFileHooks": false,
                "infiniteSessions": {
                    "enabled": true, "backgroundCompactionThreshold": 0.8, "bufferExhaustionThreshold": 0.95
                }
            })
        );
    }

    #[test]
    fn a_deciding_session_has_no_tools_and_no_agent() {
        let mut opening = testing::opening("squad-coordinator", ToolChoice::Nothing);
        opening.tools.clear();
        let params = serde_json::to_value(OpenParams::new(&opening, None)).expect("JSON");
        assert_eq!((params.get("customAgents"), params.get("agent")), (None, None));
        assert_eq!((&params["availableTools"], &params["tools"]), (&json!([]), &json!([])));
        assert_eq!(
            (&params["skipCustomInstructions"], &params["systemMessage"]["mode"]),
            (&json!(true), &json!("replace"))
        );
    }

    #[test]
    fn lists_of_tools_are_exact() {
        let own = testing::opening("s", ToolChoice::All).tools;
        assert_eq!(available_tools(&ToolChoice::All, &own), None);
        assert_eq!(available_tools(&ToolChoice::Only(vec!["*".into()]), &own), None);
        let none = available_tools(&ToolChoice::Only(Vec::new()), &own).expect("a list");
        assert_eq!(none, ["squad_status"]);
        let shell = available_tools(&ToolChoice::Only(vec!["bash".into(), "view".into()]), &own).expect("a list");
        assert_eq!(shell, ["bash", "view", "read_bash", "stop_bash", "list_bash", "squad_status"]);
    }

    #[test]
    fn an_agent_without_prompt_context_or_model_leaves_them_out() {
        let mut opening = testing::opening("s", ToolChoice::All);
        opening.spec.prompt = " ".into();
        opening.asks = false;
        opening.spec.model.id.clear();
        opening.spec.compaction_threshold = None;
        let params = serde_json::to_value(OpenParams::new(&opening, None)).expect("JSON");
        for absent in ["customAgents", "agent", "model", "provider", "availableTools"] {
            assert_eq!(params.get(absent), None, "{absent}");
        }
        assert_eq!(params["infiniteSessions"], json!({ "enabled": false }));
        assert_eq!(params.get("reasoningEffort"), None);
        opening.spec.effort = Some("high".into());
        let thinking = serde_json::to_value(OpenParams::new(&opening, None)).expect("JSON");
        assert_eq!(thinking["reasoningEffort"], "high");
        // Nobody can be asked.
        assert_eq!(params["requestUserInput"], false);
        assert_eq!(params["excludedTools"].as_array().and_then(|tools| tools.last()), Some(&json!("ask_user")));
    }

    #[test]
    fn models_are_read_with_what_they_have() {
        let full = json!({
            "id": "m", "name": "M", "vendor": "V", "policy": { "state": "enabled" }, "billing": { "multiplier": 0.33 },
            "supportedReasoningEfforts": ["low", "high"],
            "capabilities": { "supports": { "vision": true }, "limits": { "max_context_window_tokens": 128000, "max_prompt_tokens": 1, "max_output_tokens": 2 } }
        });
        let model = ModelInfo::read(&full).expect("it has an id");
        assert_eq!((model.context_window, model.multiplier), (Some(128_000), Some(0.33)));
        assert_eq!(
            model.to_string(),
            "m, 128000 tokens of context, counts as 0.33 premium requests, sees images, effort low|high"
        );
        assert_eq!(ModelInfo::read(&json!({ "id": "m", "capabilities": 7 })).expect("it has an id").name, "m");
        assert_eq!(ModelInfo::read(&json!({ "name": "M" })), None);
    }
}
