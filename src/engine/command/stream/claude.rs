//! Claude Code's `stream-json`, which Cursor's agent prints too.

use serde_json::Value;

use super::{StreamState, content, detail, number, text};
use crate::engine::Fact;
use crate::model::Usage;

/// The reason of a refusal that has none.
const NOT_ALLOWED: &str = "its mode does not allow it";

pub(super) fn parse(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    let parts = || value.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
    match text(value, "/type") {
        Some("system") => system(value, state, facts),
        // The program's own text for an error, which its result contains too.
        Some("assistant") if text(value, "/message/model") == Some("<synthetic>") => {}
        Some("assistant") => {
            for part in parts() {
                match text(part, "/type") {
                    Some("text") => state.add_message(text(part, "/text").unwrap_or_default(), facts),
                    Some("tool_use") => {
                        let of = |pointer| text(part, pointer).unwrap_or_default();
                        state.tool_started(of("/id"), of("/name"), &part["input"], facts);
                    }
                    _ => {}
                }
            }
        }
        Some("user") => {
            for part in parts().filter(|part| text(part, "/type") == Some("tool_result")) {
                tool_completed(part, state, facts);
            }
        }
        Some("rate_limit_event") if text(value, "/rate_limit_info/status") == Some("rejected") => {
            state.resets_at = value.pointer("/rate_limit_info/resetsAt").and_then(Value::as_i64);
        }
        Some("tool_call") => cursor_tool(value, state, facts),
        Some("result") => result(value, state, facts),
        _ => {}
    }
}

fn system(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    match text(value, "/subtype") {
        Some("init") => state.set_chat(text(value, "/session_id")),
        Some("permission_denied") => {
            let reason = text(value, "/decision_reason").or_else(|| text(value, "/message"));
            state.call_denied(text(value, "/tool_use_id").unwrap_or_default(), reason.unwrap_or(NOT_ALLOWED), facts);
        }
        Some("api_retry") => facts.push(Fact::Warning(retry(value))),
        _ => {}
    }
}

fn retry(value: &Value) -> String {
    let what = match (value.pointer("/error_status").and_then(Value::as_u64), text(value, "/error")) {
        (Some(status), _) => format!("the model's service answered {status}"),
        (None, Some(error)) => format!("the model's service failed ({error})"),
        (None, None) => "the model's service failed".to_owned(),
    };
    let tenths = number(value, "/retry_delay_ms") / 100;
    let (attempt, most) = (number(value, "/attempt"), number(value, "/max_retries"));
    format!("{what}; retry {attempt} of {most} in {}.{} s", tenths / 10, tenths % 10)
}

fn tool_completed(part: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    let call = text(part, "/tool_use_id").unwrap_or_default();
    let ok = part.get("is_error").and_then(Value::as_bool) != Some(true);
    let result = content(&part["content"]);
    // Other tools that it does not have are the model's mistake.
    if !ok && result.contains("No such tool available") && result.contains("disabled") {
        let reason = result.replace("<tool_use_error>", "").replace("</tool_use_error>", "");
        state.call_denied(call, reason.trim_start_matches("Error: "), facts);
    }
    // "Exit code 2", and what the command printed.
    let exit_code =
        result.strip_prefix("Exit code ").filter(|_| !ok).and_then(|rest| rest.lines().next()?.parse().ok());
    state.calls.remove(call);
    facts.push(Fact::ToolCompleted { call: call.to_owned(), tool: String::new(), ok, exit_code, detail: result });
}

/// `{"tool_call":{"readToolCall":{"args":{…},"result":{…}}}}`
fn cursor_tool(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    let Some((name, call)) = value["tool_call"].as_object().and_then(|calls| calls.iter().next()) else { return };
    let id = text(value, "/call_id").unwrap_or_default();
    let tool = name.trim_end_matches("ToolCall");
    if text(value, "/subtype") == Some("started") {
        return state.tool_started(id, tool, &call["args"], facts);
    }
    let refused = ["rejected", "permissionDenied"].iter().find_map(|name| call["result"].get(name));
    if let Some(refused) = refused {
        let reason = text(refused, "/reason").filter(|reason| !reason.is_empty()).unwrap_or(NOT_ALLOWED);
        state.denied(id, (tool, detail(&call["args"])), reason, facts);
    }
    state.calls.remove(id);
    facts.push(Fact::ToolCompleted {
        call: id.to_owned(),
        tool: tool.to_owned(),
        ok: call.pointer("/result/success").is_some(),
        exit_code: call.pointer("/result/success/exitCode").and_then(Value::as_i64),
        detail: content(&call["result"]),
    });
}

fn result(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    for denied in value["permission_denials"].as_array().into_iter().flatten() {
        let of = |pointer| text(denied, pointer).unwrap_or_default();
        state.denied(of("/tool_use_id"), (of("/tool_name"), detail(&denied["tool_input"])), NOT_ALLOWED, facts);
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
        let usage = Usage {
            input_tokens: number(value, "/usage/input_tokens"),
            output_tokens: number(value, "/usage/output_tokens"),
            cache_read_tokens: number(value, "/usage/cache_read_input_tokens"),
            cache_write_tokens: number(value, "/usage/cache_creation_input_tokens"),
            reasoning_tokens: number(value, "/usage/output_tokens_details/thinking_tokens"),
            cost_usd: value.get("total_cost_usd").and_then(Value::as_f64),
            ..Usage::default()
        };
        facts.push(Fact::Usage(usage.with_cached_input()));
    }
}
