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

/// From text: as code, these would be larger than all else that a proof needs.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

const USAGE: &str = r#"{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}"#;

fn tool_calls(calls: &[(String, String)], id: u64) -> String {
    let call = |(index, (name, arguments)): (usize, &(String, String))| {
        let (name, arguments) = (quoted(name), quoted(arguments));
        format!(
            r#"{{"index":{index},"id":"call_{id}_{index}","type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#
        )
    };
    calls.iter().enumerate().map(call).collect::<Vec<_>>().join(",")
}

fn completion(body: &Value, act: &Act, id: u64) -> Value {
    let (message, finish) = match act {
        Act::Call(calls) => (format!(r#""content":null,"tool_calls":[{}]"#, tool_calls(calls, id)), "tool_calls"),
        Act::Say(text) => (format!(r#""content":{}"#, quoted(text)), "stop"),
    };
    let model = &body["model"];
    json(&format!(
        r#"{{"id":"chatcmpl-{id}","object":"chat.completion","created":0,"model":{model},"choices":[{{"index":0,"message":{{"role":"assistant",{message}}},"finish_reason":"{finish}"}}],"usage":{USAGE}}}"#
    ))
}

fn chunks(body: &Value, act: &Act, pieces: usize, id: u64) -> Vec<String> {
    let model = &body["model"];
    let chunk = |choices: &str, more: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-{id}\",\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":{model},\
             \"choices\":[{choices}]{more}}}\n\n"
        )
    };
    let delta = |delta: &str, finish: &str| {
        chunk(&format!(r#"{{"index":0,"delta":{{{delta}}},"finish_reason":{finish}}}"#), "")
    };
    let mut events = vec![delta(r#""role":"assistant","content":"""#, "null")];
    let finish = match act {
        Act::Call(calls) => {
            events.push(delta(&format!(r#""tool_calls":[{}]"#, tool_calls(calls, id)), "null"));
            r#""tool_calls""#
        }
        Act::Say(text) => {
            let pieces = cut(text, pieces);
            events.extend(pieces.iter().map(|piece| delta(&format!(r#""content":{}"#, quoted(piece)), "null")));
            r#""stop""#
        }
    };
    let usage = chunk("", &format!(r#","usage":{USAGE}"#));
    events.extend([delta("", finish), usage, "data: [DONE]\n\n".to_owned()]);
    events
}

fn cut(text: &str, pieces: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let size = letters.len().div_ceil(pieces.max(1)).max(1);
    letters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

fn anthropic(body: &Value, act: &Act, id: u64) -> Vec<Value> {
    let model = &body["model"];
    let mut events = vec![format!(
        r#"{{"type":"message_start","message":{{"id":"msg_{id}","type":"message","role":"assistant","model":{model},"content":[],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":10}}}}}}"#
    )];
    let mut block = |index: usize, block: &str, delta: &str| {
        events.push(format!(r#"{{"type":"content_block_start","index":{index},"content_block":{{{block}}}}}"#));
        events.push(format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{{delta}}}}}"#));
        events.push(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
    };
    let stop = match act {
        Act::Call(calls) => {
            for (index, (name, arguments)) in calls.iter().enumerate() {
                let name = quoted(name);
                let start = format!(r#""type":"tool_use","id":"toolu_{id}_{index}","name":{name},"input":{{}}"#);
                let delta = format!(r#""type":"input_json_delta","partial_json":{}"#, quoted(arguments));
                block(index, &start, &delta);
            }
            "tool_use"
        }
        act => {
            let delta = format!(r#""type":"text_delta","text":{}"#, quoted(said(act)));
            block(0, r#""type":"text","text":"""#, &delta);
            "end_turn"
        }
    };
    let delta = format!(r#"{{"stop_reason":"{stop}","stop_sequence":null}}"#);
    events.push(format!(r#"{{"type":"message_delta","delta":{delta},"usage":{{"output_tokens":10}}}}"#));
    events.push(r#"{"type":"message_stop"}"#.to_owned());
    events.iter().map(|event| json(event)).collect()
}

fn responses(body: &Value, act: &Act, id: u64) -> Vec<Value> {
    let items: Vec<Value> = match act {
        Act::Call(calls) => {
            let call = |(index, (name, arguments)): (usize, &(String, String))| {
                let mut item = json(&format!(
                    r#"{{"type":"function_call","id":"fc_{id}_{index}","call_id":"call_{id}_{index}","status":"completed"}}"#
                ));
                (item["name"], item["arguments"]) = (name.as_str().into(), arguments.as_str().into());
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
            let text = quoted(said(act));
            vec![json(&format!(
                r#"{{"type":"message","id":"msg_{id}","role":"assistant","status":"completed","content":[{{"type":"output_text","text":{text},"annotations":[]}}]}}"#
            ))]
        }
    };
    let model = &body["model"];
    let response = |status: &str, output: &str| {
        format!(
            r#"{{"id":"resp_{id}","object":"response","created_at":0,"model":{model},"status":"{status}","output":[{output}],"usage":{{"input_tokens":100,"input_tokens_details":{{"cached_tokens":0}},"output_tokens":10,"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":110}}}}"#
        )
    };
    let created = response("in_progress", "");
    let mut events = vec![format!(r#"{{"type":"response.created","response":{created}}}"#)];
    for (index, item) in items.iter().enumerate() {
        for step in ["added", "done"] {
            events.push(format!(r#"{{"type":"response.output_item.{step}","output_index":{index},"item":{item}}}"#));
        }
    }
    let all = items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    events.push(format!(r#"{{"type":"response.completed","response":{}}}"#, response("completed", &all)));
    let numbered = |(number, event): (usize, &String)| {
        let mut event = json(event);
        event["sequence_number"] = number.into();
        event
    };
    events.iter().enumerate().map(numbered).collect()
}

fn gemini(act: &Act, id: u64) -> Value {
    let part = |(name, arguments): &(String, String)| {
        let arguments = json(arguments);
        format!(r#"{{"functionCall":{{"name":{},"args":{arguments}}}}}"#, quoted(name))
    };
    let parts = match act {
        Act::Call(calls) => calls.iter().map(part).collect::<Vec<_>>().join(","),
        act => format!(r#"{{"text":{}}}"#, quoted(said(act))),
    };
    json(&format!(
        r#"{{"responseId":"{id}","candidates":[{{"index":0,"content":{{"role":"model","parts":[{parts}]}},"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":100,"candidatesTokenCount":10,"totalTokenCount":110}}}}"#
    ))
}
