//! The output of `opencode run --format json`.

use serde_json::Value;

use super::{StreamState, content, number, text};
use crate::engine::Fact;
use crate::model::Usage;

pub(super) fn parse(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    state.set_chat(text(value, "/sessionID"));
    let part = &value["part"];
    match text(value, "/type") {
        Some("text") => state.add_message(text(part, "/text").unwrap_or_default(), facts),
        Some("tool_use") => tool_use(part, state, facts),
        Some("step_finish") => {
            let usage = Usage {
                input_tokens: number(part, "/tokens/input"),
                output_tokens: number(part, "/tokens/output"),
                reasoning_tokens: number(part, "/tokens/reasoning"),
                cache_read_tokens: number(part, "/tokens/cache/read"),
                cache_write_tokens: number(part, "/tokens/cache/write"),
                cost_usd: part.get("cost").and_then(Value::as_f64),
                ..Usage::default()
            };
            facts.push(Fact::Usage(usage.with_cached_input()));
        }
        Some("error") => {
            let message = text(value, "/error/data/message").or_else(|| text(value, "/error/name"));
            state.error = Some(message.unwrap_or("error").to_owned());
        }
        _ => {}
    }
}

/// A call, which it reports once it has ended.
fn tool_use(part: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    let (call, result) = (text(part, "/callID").unwrap_or_default(), &part["state"]);
    let of_invalid = |pointer| text(&result["input"], pointer).filter(|_| text(part, "/tool") == Some("invalid"));
    // A call that it cannot make becomes one of the tool `invalid`.
    let (tool, error) = match (of_invalid("/tool"), of_invalid("/error")) {
        (Some(tool), error) => (tool, Some(error.unwrap_or("the call is invalid").to_owned())),
        (None, _) if text(result, "/status") == Some("completed") => (text(part, "/tool").unwrap_or_default(), None),
        (None, _) => (text(part, "/tool").unwrap_or_default(), Some(content(&result["error"]))),
    };
    state.tool_started(call, tool, &result["input"], facts);
    if error.as_ref().is_some_and(|error| is_refusal(error, tool)) {
        state.call_denied(call, error.as_deref().unwrap_or_default(), facts);
    }
    state.calls.remove(call);
    let (call, tool, ok) = (call.to_owned(), tool.to_owned(), error.is_none());
    let detail = error.unwrap_or_else(|| content(&result["output"]));
    facts.push(Fact::ToolCompleted { call, tool, ok, exit_code: None, detail });
}

fn is_refusal(error: &str, tool: &str) -> bool {
    let is_kept = ["rejected permission", "a rule which prevents"].iter().any(|text| error.contains(text));
    // Other tools that it does not have are the model's mistake.
    is_kept || (error.contains("unavailable tool") && matches!(tool, "bash" | "write" | "edit"))
}
