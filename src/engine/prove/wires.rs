//! How a model is asked and answers: the wires that engines speak.

use serde_json::{Value, json};

/// What a model answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act {
    Say(String),
    /// Names of tools and their arguments, as JSON.
    Call(Vec<(String, String)>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    /// OpenAI chat completions.
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
    /// Gemini's `generateContent`.
    Contents,
}

impl Wire {
    /// Of the path of a request's address.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let ends = [
            ("/chat/completions", Self::Chat),
            ("/responses", Self::Responses),
            ("/messages", Self::Messages),
            (":streamGenerateContent", Self::Contents),
        ];
        ends.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, wire)| wire)
    }

    /// The conversation as chat completions have it.
    pub(crate) fn messages(self, body: &Value) -> Vec<Value> {
        let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
        match self {
            Self::Chat => list("messages"),
            Self::Messages => {
                let system = json!({ "role": "system", "content": body["system"] });
                std::iter::once(system).chain(list("messages").iter().map(of_anthropic)).collect()
            }
            Self::Responses => list("input").iter().filter_map(of_responses).collect(),
            Self::Contents => list("contents").iter().map(of_gemini).collect(),
        }
    }

    /// The answer in one piece; `None`: it is asked for in events.
    pub(crate) fn whole(self, body: &Value, act: &Act, id: u64) -> Option<Value> {
        (self == Self::Chat && body["stream"] != json!(true)).then(|| completion(body, act, id))
    }

    /// The answer as server-sent events. A text of chat completions comes in as many pieces.
    pub(crate) fn events(self, body: &Value, act: &Act, pieces: usize, id: u64) -> Vec<String> {
        let events = match self {
            Self::Chat => return chunks(body, act, pieces, id),
            Self::Messages => anthropic(body, act, id),
            Self::Responses => responses(body, act, id),
            Self::Contents => vec![gemini(act, id)],
        };
        let written = |event: &Value| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => data(event),
        };
        events.iter().map(written).collect()
    }
}

fn data(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// A message's text, given as one or in parts.
pub(crate) fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
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
        Act::Say(text) => text,
        Act::Call(_) => "",
    }
}

fn usage() -> Value {
    json!({ "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 })
}

fn tool_calls(calls: &[(String, String)], id: u64) -> Value {
    let call = |(index, (name, arguments)): (usize, &(String, String))| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "index": index, "id": format!("call_{id}_{index}"), "type": "function", "function": function })
    };
    calls.iter().enumerate().map(call).collect()
}

fn completion(body: &Value, act: &Act, id: u64) -> Value {
    let (message, finish) = match act {
        Act::Call(calls) => {
            (json!({ "role": "assistant", "content": null, "tool_calls": tool_calls(calls, id) }), "tool_calls")
        }
        Act::Say(text) => (json!({ "role": "assistant", "content": text }), "stop"),
    };
    json!({
        "id": format!("chatcmpl-{id}"), "object": "chat.completion", "created": 0, "model": body["model"],
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }], "usage": usage()
    })
}

fn chunks(body: &Value, act: &Act, pieces: usize, id: u64) -> Vec<String> {
    let chunk = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{id}"), "object": "chat.completion.chunk", "created": 0, "model": body["model"],
            "choices": choices
        })
    };
    let delta =
        |delta: Value, finish: Value| data(&chunk(json!([{ "index": 0, "delta": delta, "finish_reason": finish }])));
    let mut events = vec![delta(json!({ "role": "assistant", "content": "" }), Value::Null)];
    let finish = match act {
        Act::Call(calls) => {
            events.push(delta(json!({ "tool_calls": tool_calls(calls, id) }), Value::Null));
            "tool_calls"
        }
        Act::Say(text) => {
            events.extend(cut(text, pieces).iter().map(|piece| delta(json!({ "content": piece }), Value::Null)));
            "stop"
        }
    };
    events.push(delta(json!({}), json!(finish)));
    let mut last = chunk(json!([]));
    last["usage"] = usage();
    events.extend([data(&last), "data: [DONE]\n\n".to_owned()]);
    events
}

fn cut(text: &str, pieces: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let size = letters.len().div_ceil(pieces.max(1)).max(1);
    letters.chunks(size).map(|piece| piece.iter().collect()).collect()
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
                let parsed: Value = serde_json::from_str(arguments).unwrap_or_default();
                let input = match name.as_str() {
                    "apply_patch" | "exec" => parsed["input"].as_str(),
                    _ => None,
                };
                if let Some(input) = parsed.as_str().or(input) {
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
            let arguments = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
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
