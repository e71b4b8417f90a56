//! The wires of other makers: what they ask, as chat completions do, and answers in their form.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::Act;

#[derive(Clone, Copy)]
pub(super) enum Wire {
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
    /// Gemini's `generateContent`.
    Contents,
}

impl Wire {
    pub(super) fn of(line: &str) -> Option<Self> {
        let path = line.split(' ').nth(1)?.split('?').next()?;
        match path {
            _ if path.ends_with("/responses") => Some(Self::Responses),
            _ if path.ends_with("/messages") => Some(Self::Messages),
            _ if path.ends_with(":streamGenerateContent") => Some(Self::Contents),
            _ => None,
        }
    }

    /// The conversation as chat completions have it.
    pub(super) fn messages(self, body: &Value) -> Value {
        let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
        let messages: Vec<Value> = match self {
            Self::Messages => {
                let system = json!({ "role": "system", "content": body["system"] });
                std::iter::once(system).chain(list("messages").iter().map(of_anthropic)).collect()
            }
            Self::Responses => list("input").iter().filter_map(of_responses).collect(),
            Self::Contents => list("contents").iter().map(of_gemini).collect(),
        };
        json!({ "messages": messages })
    }

    pub(super) fn error(self, status: u16) -> Value {
        let error = json!({ "type": "api_error", "message": "scripted error", "code": status.to_string() });
        json!({ "type": "error", "error": error })
    }

    /// Streamed, as these clients ask for it; ended by the end of the connection.
    pub(super) fn answer(self, stream: &mut TcpStream, body: &Value, act: &Act, id: u64) -> std::io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        let events = match self {
            Self::Messages => anthropic(body, act, id),
            Self::Responses => responses(body, act, id),
            Self::Contents => vec![gemini(act, id)],
        };
        for event in events {
            if let Some(name) = event["type"].as_str() {
                stream.write_all(format!("event: {name}\n").as_bytes())?;
            }
            stream.write_all(format!("data: {event}\n\n").as_bytes())?;
        }
        stream.flush()?;
        stream.shutdown(std::net::Shutdown::Both)
    }
}

fn of_anthropic(message: &Value) -> Value {
    let parts = message["content"].as_array().cloned().unwrap_or_default();
    let role =
        if parts.iter().any(|part| part["type"] == "tool_result") { json!("tool") } else { message["role"].clone() };
    json!({ "role": role, "content": message["content"] })
}

fn of_responses(item: &Value) -> Option<Value> {
    match item["type"].as_str().unwrap_or("message") {
        "message" => Some(json!({ "role": item["role"], "content": item["content"] })),
        "function_call" | "custom_tool_call" => Some(json!({ "role": "assistant", "content": "" })),
        "function_call_output" | "custom_tool_call_output" => Some(json!({ "role": "tool", "content": "" })),
        _ => None,
    }
}

fn of_gemini(content: &Value) -> Value {
    let parts = content["parts"].as_array().cloned().unwrap_or_default();
    let role = match content["role"].as_str() {
        Some("model") => "assistant",
        _ if parts.iter().any(|part| part.get("functionResponse").is_some()) => "tool",
        _ => "user",
    };
    json!({ "role": role, "content": parts })
}

fn said(act: &Act) -> &str {
    match act {
        Act::Say(text) | Act::Plain(text) => text,
        Act::Call(_) | Act::Fail(_) => "",
    }
}

fn anthropic(body: &Value, act: &Act, id: u64) -> Vec<Value> {
    let usage = json!({
        "input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10
    });
    let message = json!({
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage
    });
    let mut events = vec![json!({ "type": "message_start", "message": message })];
    let mut block = |index: usize, block: Value, delta: Value| {
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    };
    let stop = match act {
        Act::Call(calls) => {
            for (index, (name, arguments)) in calls.iter().enumerate() {
                let start =
                    json!({ "type": "tool_use", "id": format!("toolu_{id}_{index}"), "name": name, "input": {} });
                block(index, start, json!({ "type": "input_json_delta", "partial_json": arguments }));
            }
            "tool_use"
        }
        act => {
            block(0, json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": said(act) }));
            "end_turn"
        }
    };
    let delta = json!({ "stop_reason": stop, "stop_sequence": null });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 10 } }));
    events.push(json!({ "type": "message_stop" }));
    events
}

fn responses(body: &Value, act: &Act, id: u64) -> Vec<Value> {
    let items: Vec<Value> = match act {
        Act::Call(calls) => {
            let call = |(index, (name, arguments)): (usize, &(String, String))| {
                let mut item = json!({
                    "type": "function_call", "id": format!("fc_{id}_{index}"), "call_id": format!("call_{id}_{index}"),
                    "name": name, "arguments": arguments, "status": "completed"
                });
                // Codex calls the tools of an MCP server so.
                if let Some((space, name)) = name.split_once('.') {
                    (item["namespace"], item["name"]) = (space.into(), name.into());
                }
                // Codex takes some tools' input as text.
                let text: Value = serde_json::from_str(arguments).unwrap_or_default();
                if let ("apply_patch" | "exec", Some(input)) = (name.as_str(), text["input"].as_str()) {
                    (item["type"], item["input"]) = ("custom_tool_call".into(), input.into());
                }
                item
            };
            calls.iter().enumerate().map(call).collect()
        }
        act => {
            let content = json!([{ "type": "output_text", "text": said(act), "annotations": [] }]);
            vec![json!({
                "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
                "content": content
            })]
        }
    };
    let response = |status: &str, output: &[Value]| {
        json!({
            "id": format!("resp_{id}"), "object": "response", "created_at": 0, "model": body["model"], "status": status,
            "output": output, "usage": {
                "input_tokens": 100, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 10,
                "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 110
            }
        })
    };
    let mut events = vec![json!({ "type": "response.created", "response": response("in_progress", &[]) })];
    for (index, item) in items.iter().enumerate() {
        events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": item }));
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    }
    events.push(json!({ "type": "response.completed", "response": response("completed", &items) }));
    events
        .into_iter()
        .enumerate()
        .map(|(number, mut event)| {
            event["sequence_number"] = json!(number);
            event
        })
        .collect()
}

fn gemini(act: &Act, id: u64) -> Value {
    let parts: Vec<Value> = match act {
        Act::Call(calls) => {
            let arguments = |text: &str| serde_json::from_str::<Value>(text).expect("arguments are JSON");
            let call = |(name, text): &(String, String)| json!({ "name": name, "args": arguments(text) });
            calls.iter().map(|named| json!({ "functionCall": call(named) })).collect()
        }
        act => vec![json!({ "text": said(act) })],
    };
    json!({
        "responseId": id.to_string(),
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": parts }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110 }
    })
}
