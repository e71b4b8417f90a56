//! The output of `codex exec --json`.

use serde_json::Value;

use super::{StreamState, content, number, text};
use crate::engine::Fact;
use crate::model::{Usage, list};

pub(super) fn parse(value: &Value, state: &mut StreamState, facts: &mut Vec<Fact>) {
    let item = &value["item"];
    match text(value, "/type") {
        Some("thread.started") => state.set_chat(text(value, "/thread_id")),
        Some("item.started") => tool_started(item, facts),
        Some("item.completed") => match text(item, "/type") {
            Some("agent_message") => state.add_message(text(item, "/text").unwrap_or_default(), facts),
            Some("error") => facts.push(Fact::Warning(text(item, "/message").unwrap_or_default().to_owned())),
            Some("reasoning" | "todo_list") => facts.push(Fact::Alive),
            _ => tool_completed(item, facts),
        },
        Some("turn.completed") => {
            // It has recovered from what it reported before.
            state.error = None;
            // Codex counts the whole thread.
            state.total_usage = Some(Usage {
                input_tokens: number(value, "/usage/input_tokens"),
                output_tokens: number(value, "/usage/output_tokens"),
                cache_read_tokens: number(value, "/usage/cached_input_tokens"),
                cache_write_tokens: number(value, "/usage/cache_write_input_tokens"),
                reasoning_tokens: number(value, "/usage/reasoning_output_tokens"),
                ..Usage::default()
            });
        }
        Some("turn.failed") => state.error = text(value, "/error/message").map(str::to_owned),
        Some("error") => match text(value, "/message") {
            Some(message) if message.starts_with("Reconnecting") => facts.push(Fact::Warning(message.to_owned())),
            message => state.error = message.map(str::to_owned),
        },
        _ => {}
    }
}

/// The tool's name, and what the call acts on.
fn tool_and_detail(item: &Value) -> (String, String) {
    let kind = text(item, "/type").unwrap_or_default();
    let detail = match kind {
        "command_execution" => text(item, "/command").unwrap_or_default().to_owned(),
        "file_change" => {
            list(item["changes"].as_array().into_iter().flatten().filter_map(|change| text(change, "/path")))
        }
        "web_search" => text(item, "/query").unwrap_or_default().to_owned(),
        "mcp_tool_call" => {
            let tool =
                format!("{}-{}", text(item, "/server").unwrap_or_default(), text(item, "/tool").unwrap_or_default());
            return (tool, content(&item["arguments"]));
        }
        _ => String::new(),
    };
    (kind.to_owned(), detail)
}

fn tool_started(item: &Value, facts: &mut Vec<Fact>) {
    let (tool, detail) = tool_and_detail(item);
    let call = text(item, "/id").unwrap_or_default().to_owned();
    facts.push(Fact::ToolStarted { call, tool, detail, writes: None });
}

fn tool_completed(item: &Value, facts: &mut Vec<Fact>) {
    let (tool, detail) = tool_and_detail(item);
    let call = text(item, "/id").unwrap_or_default().to_owned();
    // Codex does not report the start of a file change.
    if tool == "file_change" {
        facts.push(Fact::ToolStarted { call: call.clone(), tool: tool.clone(), detail, writes: None });
    }
    let failed = matches!(text(item, "/status"), Some("failed" | "declined"));
    let result = ["aggregated_output", "result", "error"].iter().map(|name| content(&item[*name]));
    facts.push(Fact::ToolCompleted {
        call,
        tool,
        ok: !failed,
        exit_code: item.get("exit_code").and_then(Value::as_i64),
        detail: result.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
    });
}
