//! Claude Code's `stream-json`, which Cursor's agent prints too.

use serde_json::Value;

use super::{StreamState, content, detail, number, text, writes};
use crate::engine::Fact;
use crate::model::Usage;

pub(super) fn parse(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    let parts = || value.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
    match text(value, "/type") {
        Some("system") if text(value, "/subtype") == Some("init") => state.set_chat(text(value, "/session_id")),
        // The program's own text for an error, which its result contains too.
        Some("assistant") if text(value, "/message/model") == Some("<synthetic>") => {}
        Some("assistant") => {
            for part in parts() {
                match text(part, "/type") {
                    Some("text") => state.add_message(text(part, "/text").unwrap_or_default(), facts),
                    Some("tool_use") => tool_started(part, facts),
                    _ => {}
                }
            }
        }
        Some("user") => {
            for part in parts().filter(|part| text(part, "/type") == Some("tool_result")) {
                facts.push(Fact::ToolCompleted {
                    call: text(part, "/tool_use_id").unwrap_or_default().to_owned(),
                    tool: String::new(),
                    ok: part.get("is_error").and_then(Value::as_bool) != Some(true),
                    exit_code: None,
                    detail: content(&part["content"]),
                });
            }
        }
        Some("tool_call") => cursor_tool(value, facts),
        Some("result") => result(value, state, facts),
        _ => {}
    }
}

fn tool_started(part: &Value, facts: &mut Vec<Fact>) {
    let input = &part["input"];
    facts.push(Fact::ToolStarted {
        call: text(part, "/id").unwrap_or_default().to_owned(),
        tool: text(part, "/name").unwrap_or_default().to_owned(),
        detail: detail(input),
        writes: writes(input),
    });
}

/// `{"tool_call":{"readToolCall":{"args":{…},"result":{…}}}}`
fn cursor_tool(value: &Value, facts: &mut Vec<Fact>) {
    let Some((name, call)) = value["tool_call"].as_object().and_then(|calls| calls.iter().next()) else { return };
    let id = text(value, "/call_id").unwrap_or_default().to_owned();
    let tool = name.trim_end_matches("ToolCall").to_owned();
    facts.push(match text(value, "/subtype") {
        Some("started") => {
            Fact::ToolStarted { call: id, tool, detail: detail(&call["args"]), writes: writes(&call["args"]) }
        }
        _ => Fact::ToolCompleted {
            call: id,
            tool,
            ok: call.pointer("/result/success").is_some(),
            exit_code: call.pointer("/result/success/exitCode").and_then(Value::as_i64),
            detail: content(&call["result"]),
        },
    });
}

fn result(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    for denied in value["permission_denials"].as_array().into_iter().flatten() {
        facts.push(Fact::Denied {
            tool: text(denied, "/tool_name").unwrap_or_default().to_owned(),
            detail: detail(&denied["tool_input"]),
            reason: "its mode does not allow it".to_owned(),
        });
    }
    let answer = text(value, "/result").unwrap_or_default();
    if value.get("is_error").and_then(Value::as_bool) == Some(true) {
        let errors = value["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let subtype = text(value, "/subtype").unwrap_or("error");
        let error = std::iter::once(answer).chain(errors).find(|text| !text.is_empty()).unwrap_or(subtype);
        state.error = Some(error.to_owned());
    } else {
        state.set_chat(text(value, "/session_id"));
        state.add_message(answer, facts);
    }
    if value.get("usage").is_some() {
        facts.push(Fact::Usage(Usage {
            input_tokens: number(value, "/usage/input_tokens"),
            output_tokens: number(value, "/usage/output_tokens"),
            cache_read_tokens: number(value, "/usage/cache_read_input_tokens"),
            cache_write_tokens: number(value, "/usage/cache_creation_input_tokens"),
            reasoning_tokens: number(value, "/usage/output_tokens_details/thinking_tokens"),
            cost_usd: value.get("total_cost_usd").and_then(Value::as_f64),
            ..Usage::default()
        }));
    }
}
