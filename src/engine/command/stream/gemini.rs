//! Gemini CLI's `stream-json`.

use serde_json::Value;

use super::{StreamState, content, number, text};
use crate::engine::Fact;
use crate::model::Usage;

pub(super) fn parse(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    let kind = text(value, "/type");
    if kind != Some("message") {
        state.end_message(facts);
    }
    let call = text(value, "/tool_id").unwrap_or_default();
    match kind {
        Some("init") => state.set_chat(text(value, "/session_id")),
        Some("message") if text(value, "/role") == Some("assistant") => {
            let message = content(&value["content"]);
            match value.get("delta").and_then(Value::as_bool) {
                Some(true) => state.add_delta(&message, facts),
                _ => state.add_message(&message, facts),
            }
        }
        Some("tool_use") => {
            state.tool_started(call, text(value, "/tool_name").unwrap_or_default(), &value["parameters"], facts);
        }
        Some("tool_result") => {
            let detail = text(value, "/error/message").map_or_else(|| content(&value["output"]), str::to_owned);
            if is_refusal(text(value, "/error/type").unwrap_or_default(), &detail, state.tool_of(call)) {
                state.call_denied(call, &detail, facts);
            }
            state.calls.remove(call);
            let (call, ok) = (call.to_owned(), text(value, "/status") == Some("success"));
            facts.push(Fact::ToolCompleted { call, tool: String::new(), ok, exit_code: None, detail });
        }
        Some("error") => facts.push(Fact::Warning(text(value, "/message").unwrap_or_default().to_owned())),
        Some("result") => {
            if text(value, "/status") == Some("error") {
                state.error = Some(text(value, "/error/message").unwrap_or("error").to_owned());
            }
            facts.push(Fact::Usage(Usage {
                input_tokens: number(value, "/stats/input_tokens"),
                output_tokens: number(value, "/stats/output_tokens"),
                cache_read_tokens: number(value, "/stats/cached"),
                ..Usage::default()
            }));
        }
        _ => {}
    }
}

/// Its modes take tools away, confine them, or forbid them by policy.
fn is_refusal(error: &str, message: &str, tool: &str) -> bool {
    match error {
        "policy_violation" | "path_not_in_workspace" => true,
        // In its mode for plans, a file that is no plan.
        "invalid_tool_params" => message.starts_with("Access denied"),
        // Other tools that it does not have are the model's mistake.
        "tool_not_registered" => matches!(tool, "run_shell_command" | "write_file" | "replace"),
        _ => false,
    }
}
