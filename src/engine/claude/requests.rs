//! Answers what the program asks: before and after each tool call, for permissions, calls of squad's tools, questions.
//!
//! ```text
//! PreToolUse ── BeforeTool, Write ─→ deny, or ask with the arguments to use
//! can_use_tool ── Permission, Question ─→ allow, or deny
//! mcp_message ── Tool ─→ its result
//! PostToolUse ── AfterTool ─→ what the model reads instead
//! ```
//!
//! The hook has the program ask about every call: by itself it does not about what it takes for harmless.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::tools::{self, ASK, Tool};
use crate::engine::command::content;
use crate::engine::connection::{Connection, Incoming, Responder};
use crate::engine::copilot::McpServers;
use crate::engine::writes::writes;
use crate::engine::{Approval, Fact, NO_ANSWER, Opening, Reply, Request, ToolCall, ToolResult, spawn, subject};

/// The ids of squad's hooks.
const BEFORE: &str = "before";
const AFTER: &str = "after";
/// How long the program waits for a hook, in seconds: a person may be asked.
const HOOK_SECONDS: u64 = 24 * 60 * 60;

/// The hooks as `initialize` passes them.
pub(super) fn hooks() -> Value {
    let hook = |id: &str| json!([{ "matcher": null, "hookCallbackIds": [id], "timeout": HOOK_SECONDS }]);
    json!({ "PreToolUse": hook(BEFORE), "PostToolUse": hook(AFTER), "PostToolUseFailure": hook(AFTER) })
}

pub(super) struct Requests {
    pub(super) conversation: Arc<Mutex<Conversation>>,
    pub(super) opening: Opening,
    pub(super) servers: McpServers,
}

impl Incoming for Requests {
    fn notified(&self, _: &Arc<Connection>, method: &str, params: Value) {
        self.conversation.lock().handle(method, &params);
    }

    fn requested(&self, responder: Responder, method: &str, params: Value) {
        let id = params.pointer("/callback_id").and_then(Value::as_str);
        match (method, id) {
            ("hook_callback", Some(BEFORE)) => self.before(responder, &params["input"]),
            ("hook_callback", Some(AFTER)) => self.after(responder, &params["input"]),
            ("hook_callback", _) => responder.invalid("squad has no such hook"),
            ("can_use_tool", _) => self.permission(responder, &params),
            ("mcp_message", _) => self.call(responder, &params["message"]),
            _ => responder.unknown_method(method),
        }
    }
}

impl Requests {
    fn is_working(&self) -> bool {
        self.conversation.lock().is_working()
    }

    fn before(&self, responder: Responder, input: &Value) {
        let name = text(input, "tool_name");
        let (tool, call) = (Tool::parse(name), text(input, "tool_use_id").to_owned());
        let arguments = input["tool_input"].clone();
        if let Some(reason) = self.refusal(tool) {
            let mut conversation = self.conversation.lock();
            conversation.refused(&call, None);
            let (tool, detail) = (tool.shown(), subject(&arguments));
            conversation.report(Fact::Denied { access: None, tool, detail, reason: reason.clone() });
            return responder.answer(denial(&reason));
        }
        let is_own = matches!(tool, Tool::Squad(_));
        let call = ToolCall { call, tool: tool.shown(), arguments };
        let conversation = Arc::clone(&self.conversation);
        spawn(async move {
            let id = call.call.clone();
            let tell = |fact| conversation.lock().report(fact);
            let call = match call.allowed(tell).await {
                Ok(call) => call,
                Err(reason) => {
                    conversation.lock().refused(&id, None);
                    return responder.answer(denial(&reason));
                }
            };
            let files = if is_own { Vec::new() } else { writes(&call.tool, &call.arguments) };
            if !files.is_empty() {
                let (reply, instead) = Reply::channel();
                tell(Fact::Request(Request::Write(files, reply)));
                if let Ok(Some(result)) = instead.await {
                    let denial = denial(&result.text);
                    conversation.lock().refused(&id, Some(result));
                    return responder.answer(denial);
                }
            }
            // squad decides on a call of its own tools when it arrives.
            let decision = if is_own { "allow" } else { "ask" };
            let output = json!({
                "hookEventName": "PreToolUse", "permissionDecision": decision, "updatedInput": call.arguments,
            });
            responder.answer(json!({ "hookSpecificOutput": output }));
        });
    }

    /// Why a session may not call a tool at all.
    fn refusal(&self, tool: Tool<'_>) -> Option<String> {
        let reason = || format!("the tool `{}` is not among this agent's tools", tool.shown());
        if !self.is_working() {
            return Some(NO_ANSWER.to_owned());
        }
        let is_allowed = match tool {
            Tool::Squad(name) => self.opening.tools.iter().any(|tool| tool.name == name),
            Tool::Served { server, tool: name } => {
                self.servers.get(server).is_some_and(|server| server.offers(name))
                    && tools::allows_other(&self.opening.spec, &tool.shown())
            }
            Tool::Own(name) => name == ASK || tools::offered(&self.opening.spec, false).contains(&name),
        };
        (!is_allowed).then(reason)
    }

    fn permission(&self, responder: Responder, params: &Value) {
        let name = text(params, "tool_name");
        let (tool, call, input) = (Tool::parse(name), text(params, "tool_use_id").to_owned(), params["input"].clone());
        if let Some(reason) = self.refusal(tool) {
            return responder.answer(json!({ "behavior": "deny", "message": reason }));
        }
        let allowed = |input: Value| json!({ "behavior": "allow", "updatedInput": input });
        let conversation = Arc::clone(&self.conversation);
        if tool == Tool::Own(ASK) {
            spawn(async move { responder.answer(asked(&conversation, input).await) });
            return;
        }
        if matches!(tool, Tool::Squad(_)) {
            return responder.answer(allowed(input));
        }
        let (access, detail) = tool.access(&input);
        let (reply, answer) = Reply::channel();
        let request = Request::Permission { call: Some(call.clone()), access, tool: tool.shown(), detail, reply };
        conversation.lock().report(Fact::Request(request));
        spawn(async move {
            responder.answer(match answer.await {
                Ok(Approval::Allow) => allowed(input),
                Ok(Approval::Deny(reason)) => {
                    conversation.lock().refused(&call, None);
                    json!({ "behavior": "deny", "message": reason })
                }
                Err(_) => json!({ "behavior": "deny", "message": NO_ANSWER }),
            });
        });
    }

    /// A message to squad as a server of tools.
    fn call(&self, responder: Responder, message: &Value) {
        if let Some(answer) = tools::served(message, &self.opening.tools) {
            return responder.answer(json!({ "mcp_response": answer }));
        }
        let params = &message["params"];
        let (name, id) = (text(params, "name").to_owned(), message["id"].clone());
        let call = params.pointer("/_meta/claudecode~1toolUseId").and_then(Value::as_str).unwrap_or_default();
        let is_known = self.is_working() && self.opening.tools.iter().any(|tool| tool.name == name);
        let (reply, answer) = Reply::channel();
        if is_known {
            let call = ToolCall { call: call.to_owned(), tool: name, arguments: params["arguments"].clone() };
            self.conversation.lock().report(Fact::Request(Request::Tool(call, reply)));
        }
        spawn(async move {
            let result = answer.await.unwrap_or_else(|_| ToolResult { ok: false, text: NO_ANSWER.to_owned() });
            let content = json!([{ "type": "text", "text": result.text }]);
            let answer = tools::reply(&id, &json!({ "content": content, "isError": !result.ok }));
            responder.answer(json!({ "mcp_response": answer }));
        });
    }

    /// Reports a call's end before the model learns of it.
    fn after(&self, responder: Responder, input: &Value) {
        let error = input.get("error").and_then(Value::as_str);
        let response = &input["tool_response"];
        let result = ToolResult {
            ok: error.is_none() && response["isError"] != true,
            text: error.map_or_else(|| said(response), str::to_owned),
        };
        let exit_code = error.and_then(exit_code);
        let (name, event) = (text(input, "tool_name"), text(input, "hook_event_name").to_owned());
        let mut conversation = self.conversation.lock();
        let ended = conversation.tool_ended(text(input, "tool_use_id"), result, exit_code);
        let Some((call, result)) = ended else { return responder.answer(json!({})) };
        let (reply, instead) = Reply::channel();
        let (ok, shape) = (result.ok, Shape::of(Tool::parse(name)));
        conversation.report(Fact::Request(Request::AfterTool(call, result, reply)));
        spawn(async move {
            let Ok(Some(text)) = instead.await else { return responder.answer(json!({})) };
            let mut output = json!({ "hookEventName": event });
            match shape {
                Shape::Parts if ok => output["updatedToolOutput"] = json!([{ "type": "text", "text": text }]),
                Shape::Command if ok => {
                    output["updatedToolOutput"] =
                        json!({ "stdout": text, "stderr": "", "interrupted": false, "isImage": false });
                }
                // The program takes no other result for it.
                _ => output["additionalContext"] = text.into(),
            }
            responder.answer(json!({ "hookSpecificOutput": output }));
        });
    }
}

/// The form of a tool's result.
#[derive(Clone, Copy)]
enum Shape {
    Parts,
    Command,
    Other,
}

impl Shape {
    fn of(tool: Tool<'_>) -> Self {
        match tool {
            Tool::Squad(_) | Tool::Served { .. } => Self::Parts,
            Tool::Own("Bash") => Self::Command,
            Tool::Own(_) => Self::Other,
        }
    }
}

/// Puts the model's questions to the person, one after the other.
async fn asked(conversation: &Mutex<Conversation>, mut input: Value) -> Value {
    let mut answers = serde_json::Map::new();
    for question in input["questions"].as_array().into_iter().flatten() {
        let options = question["options"].as_array().into_iter().flatten();
        let choices = options.filter_map(|option| option["label"].as_str()).map(str::to_owned).collect();
        let asked = text(question, "question").to_owned();
        let (reply, answer) = Reply::channel();
        conversation.lock().report(Fact::Request(Request::Question { text: asked.clone(), choices, reply }));
        match answer.await {
            Ok(Some(answer)) => drop(answers.insert(asked, answer.into())),
            _ => return json!({ "behavior": "deny", "message": "nobody answers; decide by yourself" }),
        }
    }
    input["answers"] = answers.into();
    json!({ "behavior": "allow", "updatedInput": input })
}

fn denial(reason: &str) -> Value {
    let output = json!({
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
    });
    json!({ "hookSpecificOutput": output })
}

/// "Exit code 2", and what the command printed.
fn exit_code(error: &str) -> Option<i64> {
    error.strip_prefix("Exit code ")?.lines().next()?.trim().parse().ok()
}

/// What a tool's result says, as far as each tool's own form of it is known.
fn said(response: &Value) -> String {
    let field = |name: &str| response.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let (Some(output), errors) = (response.get("stdout").and_then(Value::as_str), field("stderr")) {
        return [output].into_iter().chain(errors).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    }
    let named = || {
        response["filenames"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
    };
    let file = || response.pointer("/file/content").and_then(Value::as_str).map(str::to_owned);
    let written = || field("filePath").map(str::to_owned);
    file()
        .or_else(written)
        .or_else(|| field("content").map(str::to_owned))
        .or_else(named)
        .unwrap_or_else(|| content(response.get("content").unwrap_or(response)))
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
