//! The output of `opencode run --format json`.

use serde_json::Value;

use super::{StreamState, content, detail, number, text, writes};
use crate::engine::Fact;
use crate::model::Usage;

pub(super) fn parse(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    state.set_chat(text(value, "/sessionID"));
    let part = &value["part"];
    match text(value, "/type") {
        Some("text") => state.add_message(text(part, "/text").unwrap_or_default(), facts),
        Some("tool_use") => {
            let call = text(part, "/callID").unwrap_or_default().to_owned();
            let tool = text(part, "/tool").unwrap_or_default().to_owned();
            let (input, state) = (&part["state"]["input"], &part["state"]);
            let ok = text(state, "/status") == Some("completed");
            let (detail, writes) = (detail(input), writes(input));
            facts.push(Fact::ToolStarted { call: call.clone(), tool: tool.clone(), detail, writes });
            let detail = content(&state[if ok { "output" } else { "error" }]);
            facts.push(Fact::ToolCompleted { call, tool, ok, exit_code: None, detail });
        }
        Some("step_finish") => facts.push(Fact::Usage(Usage {
            input_tokens: number(part, "/tokens/input"),
            output_tokens: number(part, "/tokens/output"),
            reasoning_tokens: number(part, "/tokens/reasoning"),
            cache_read_tokens: number(part, "/tokens/cache/read"),
            cache_write_tokens: number(part, "/tokens/cache/write"),
            cost_usd: part.get("cost").and_then(Value::as_f64),
            ..Usage::default()
        })),
        Some("error") => {
            let message = text(value, "/error/data/message").or_else(|| text(value, "/error/name"));
            state.error = Some(message.unwrap_or("error").to_owned());
        }
        _ => {}
    }
}
