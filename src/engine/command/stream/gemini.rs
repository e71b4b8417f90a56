//! Gemini CLI's `stream-json`.

use serde_json::Value;

use super::{StreamState, content, detail, number, text, writes};
use crate::engine::Fact;
use crate::model::Usage;

pub(super) fn parse(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    let kind = text(value, "/type");
    if kind != Some("message") {
        state.end_message(facts);
    }
    let call = || text(value, "/tool_id").unwrap_or_default().to_owned();
    match kind {
        Some("init") => state.set_chat(text(value, "/session_id")),
        Some("message") if text(value, "/role") == Some("assistant") => {
            let message = content(&value["content"]);
            match value.get("delta").and_then(Value::as_bool) {
                Some(true) => state.add_delta(&message, facts),
                _ => state.add_message(&message, facts),
            }
        }
        Some("tool_use") => facts.push(Fact::ToolStarted {
            call: call(),
            tool: text(value, "/tool_name").unwrap_or_default().to_owned(),
            detail: detail(&value["parameters"]),
            writes: writes(&value["parameters"]),
        }),
        Some("tool_result") => facts.push(Fact::ToolCompleted {
            call: call(),
            tool: String::new(),
            ok: text(value, "/status") == Some("success"),
            exit_code: None,
            detail: text(value, "/error/message").map_or_else(|| content(&value["output"]), str::to_owned),
        }),
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
