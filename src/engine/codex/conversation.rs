//! The reader's side of a session: Codex's messages as facts, and its requests as squad's. No I/O.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::answers::{Facts, Pending, Verdict};
use super::items::{Call, FILES, text};
use crate::engine::command::usage_since;
use crate::engine::{Fact, Reply, Request, Reset, ToolCall, ToolResult, added};
use crate::model::{ContextSize, SessionSpec, Usage};

pub(super) struct Conversation {
    facts: Facts,
    /// squad's id of the session.
    session: String,
    spec: SessionSpec,
    directory: PathBuf,
    own_tools: BTreeSet<Cow<'static, str>>,
    /// Codex's id of the thread; empty until it is open.
    thread: String,
    /// It began with this session.
    is_new: bool,
    running: HashMap<String, Running>,
    turn: Option<Turn>,
    /// The number of turns begun.
    turns: u64,
    /// What the thread has used so far; `None`: a resumed thread has not said it yet.
    counted: Option<Usage>,
    /// Tokens of the last model call, and of the one before the compaction that is going on.
    context: u64,
    before_compaction: u64,
    /// When the account's quota is there again, if one is used up.
    reset: Option<Timestamp>,
}

/// A running call.
struct Running {
    call: Call,
    /// squad was asked about it.
    is_asked: bool,
    /// What its model reads in the place of a result.
    instead: Option<ToolResult>,
}

#[derive(Default)]
struct Turn {
    /// `None` until Codex has said it.
    id: Option<String>,
    /// Why squad stops it.
    stopped: Option<String>,
}

/// What a message asks squad to do.
#[derive(Debug)]
pub(super) enum Task {
    /// To answer for a call that Codex makes without asking, by rules of the user's own configuration.
    Unasked(Call),
    /// To tell the hooks of a call's end.
    Ended(ToolCall, ToolResult),
}

impl Conversation {
    pub(super) fn new(
        (session, spec): (&str, &SessionSpec),
        directory: PathBuf,
        own_tools: BTreeSet<Cow<'static, str>>,
    ) -> (Self, mpsc::UnboundedReceiver<Fact>) {
        let (facts, receiver) = mpsc::unbounded_channel();
        let (session, spec) = (session.to_owned(), spec.clone());
        let (thread, is_new, running, turn, turns) = Default::default();
        let (counted, context, before_compaction, reset) = Default::default();
        let new = Self {
            facts,
            session,
            spec,
            directory,
            own_tools,
            thread,
            is_new,
            running,
            turn,
            turns,
            counted,
            context,
            before_compaction,
            reset,
        };
        (new, receiver)
    }

    pub(super) fn opened(&mut self, thread: &str, is_new: bool) {
        thread.clone_into(&mut self.thread);
        self.is_new |= is_new;
        if is_new {
            self.counted = Some(Usage::default());
        }
    }

    pub(super) fn thread(&self) -> &str {
        &self.thread
    }

    pub(super) fn facts(&self) -> Facts {
        self.facts.clone()
    }

    pub(super) fn report(&self, fact: Fact) {
        // A dropped session needs no more facts.
        let _ = self.facts.send(fact);
    }

    pub(super) fn begin_turn(&mut self) {
        self.turn = Some(Turn::default());
        self.turns += 1;
    }

    pub(super) fn has_begun(&self) -> bool {
        self.turns > 0
    }

    /// Whether its thread is new and has no turn before this one.
    pub(super) fn is_in_first_turn(&self) -> bool {
        self.is_new && self.turns == 1
    }

    pub(super) fn name_turn(&mut self, id: Option<&str>) {
        if let (Some(turn), Some(id)) = (&mut self.turn, id) {
            turn.id.get_or_insert_with(|| id.to_owned());
        }
    }

    /// Codex's id of the turn that goes on.
    pub(super) fn turn(&self) -> Option<&str> {
        self.turn.as_ref()?.id.as_deref()
    }

    pub(super) fn is_working(&self) -> bool {
        self.turn.is_some()
    }

    /// Drops a turn that never began.
    pub(super) fn withdraw_turn(&mut self) {
        self.turn = None;
        self.turns = self.turns.saturating_sub(1);
    }

    /// The reason with which the turn fails when it ends.
    pub(super) fn stop_turn(&mut self, reason: String) {
        if let Some(turn) = &mut self.turn {
            turn.stopped.get_or_insert(reason);
        }
    }

    /// Ends the turn, if one goes on.
    pub(super) fn end_turn(&mut self, fact: Fact) {
        if self.turn.take().is_some() {
            self.running.clear();
            self.report(fact);
        }
    }

    pub(super) fn notified(&mut self, method: &str, params: &Value) -> Option<Task> {
        let of_other = text(params, "/threadId").is_some_and(|id| !self.thread.is_empty() && id != self.thread);
        match method {
            _ if of_other => self.report(Fact::Alive),
            "turn/started" => self.name_turn(text(params, "/turn/id")),
            "turn/completed" => self.turn_completed(&params["turn"]),
            "item/started" => return self.item_started(&params["item"]),
            "item/completed" => return self.item_completed(&params["item"]),
            "item/agentMessage/delta" => match text(params, "/delta") {
                Some(delta) if !delta.is_empty() => self.report(Fact::MessageDelta(delta.to_owned())),
                _ => self.report(Fact::Alive),
            },
            "thread/tokenUsage/updated" => self.used(params),
            "account/rateLimits/updated" => self.limits(&params["rateLimits"]),
            // The last one comes with the turn's end.
            "error" if params["willRetry"] == json!(true) => {
                let error = &params["error"];
                let reason = text(error, "/additionalDetails").or_else(|| text(error, "/message"));
                self.warn(format!("the model is retried after: {}", reason.unwrap_or("an error")));
            }
            "mcpServer/startupStatus/updated" if params["status"] == "failed" => {
                let name = text(params, "/name").unwrap_or("?");
                let why = text(params, "/error").unwrap_or("it does not say why");
                self.warn(format!("the MCP server `{name}` cannot be used: {why}"));
            }
            "model/rerouted" => {
                let model = |pointer| text(params, pointer).unwrap_or("?");
                self.warn(format!("`{}` answers in the place of `{}`", model("/toModel"), model("/fromModel")));
            }
            // Models of one's own endpoint are not in Codex's list.
            "warning" if text(params, "/message").is_some_and(|text| text.starts_with("Model metadata for")) => {}
            "warning" | "guardianWarning" => self.warn(text(params, "/message").unwrap_or_default().to_owned()),
            // For example: the model thinks, or a command prints.
            _ => self.report(Fact::Alive),
        }
        None
    }

    fn warn(&self, warning: String) {
        self.report(Fact::Warning(warning));
    }

    /// `None`: squad has no such method.
    pub(super) fn requested(&mut self, method: &str, params: &Value) -> Option<Pending> {
        Some(match method {
            "item/tool/call" => {
                let field = |pointer| text(params, pointer).unwrap_or_default().to_owned();
                let call =
                    ToolCall { call: field("/callId"), tool: field("/tool"), arguments: params["arguments"].clone() };
                let is_known = self.own_tools.contains(call.tool.as_str());
                Pending::Own { call, is_known }
            }
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                let (id, kind) = (text(params, "/itemId").unwrap_or_default(), method.split('/').nth(1));
                let mut item = json!({ "type": kind, "id": id });
                for field in ["command", "cwd"] {
                    item[field] = params[field].clone();
                }
                // Of a patch, only its item names the files. Input for a running command is asked about like a command.
                let known = self.running.get_mut(id).map(|running| {
                    running.is_asked = true;
                    running.call.clone()
                });
                let known = known.filter(|call| call.call.tool == FILES || item["command"].is_null());
                let call = known.or_else(|| Call::of(&item, &self.directory))?;
                self.verdict_on(call, |is_allowed| json!({ "decision": if is_allowed { "accept" } else { "decline" } }))
            }
            "mcpServer/elicitation/request" if params["_meta"]["codex_approval_kind"] == "mcp_tool_call" => {
                let meta = &params["_meta"];
                let (server, tool) = (&params["serverName"], &meta["tool_name"]);
                let item =
                    json!({ "type": "mcpToolCall", "server": server, "tool": tool, "arguments": meta["tool_params"] });
                let mut call = Call::of(&item, &self.directory)?;
                // Codex does not say which call it is. Of equal ones, any may be it.
                let is_it = |running: &Running| {
                    !running.is_asked
                        && running.call.call.tool == call.call.tool
                        && running.call.call.arguments == call.call.arguments
                };
                if let Some((id, running)) = self.running.iter_mut().find(|(_, running)| is_it(running)) {
                    running.is_asked = true;
                    call.call.call.clone_from(id);
                }
                self.verdict_on(call, |is_allowed| match is_allowed {
                    true => json!({ "action": "accept", "content": {}, "_meta": null }),
                    false => json!({ "action": "decline", "content": null, "_meta": null }),
                })
            }
            // A server asks a person for input.
            "mcpServer/elicitation/request" => {
                Pending::Now(json!({ "action": "cancel", "content": null, "_meta": null }))
            }
            "item/tool/requestUserInput" => {
                let questions = params["questions"].as_array().map(Vec::as_slice).unwrap_or_default();
                Pending::Questions(questions.iter().filter_map(|question| self.question(question)).collect())
            }
            _ => return None,
        })
    }

    /// A call that is not among the session's tools is refused without asking.
    fn verdict_on(&self, call: Call, answer: fn(bool) -> Value) -> Pending {
        let verdict = match call.beyond(&self.spec) {
            None => Verdict::Ask,
            Some(reason) => {
                let (tool, detail, reason) = (call.call.tool.clone(), call.detail.clone(), reason.to_owned());
                self.report(Fact::Denied { access: None, tool, detail, reason: reason.clone() });
                Verdict::No(ToolResult { ok: false, text: reason })
            }
        };
        Pending::Call { call, verdict, answer }
    }

    /// A question with its id.
    fn question(&self, question: &Value) -> Option<super::answers::Question> {
        let id = text(question, "/id")?.to_owned();
        let options = question["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let choices = options.iter().filter_map(|option| text(option, "/label").map(str::to_owned)).collect();
        let (reply, answer) = Reply::channel();
        let text = text(question, "/question").unwrap_or_default().to_owned();
        self.report(Fact::Request(Request::Question { text, choices, reply }));
        Some((id, answer))
    }

    /// Notes what the model of a call reads in the place of its result.
    pub(super) fn answered_instead(&mut self, id: &str, instead: ToolResult) {
        if let Some(running) = self.running.get_mut(id) {
            running.instead = Some(instead);
        }
    }

    /// Reports the end of a call of squad's own tools, before the model learns of it.
    pub(super) fn own_completed(&mut self, call: &ToolCall, result: &ToolResult) {
        if self.running.remove(&call.call).is_some() {
            let (call, tool) = (call.call.clone(), call.tool.clone());
            let (ok, detail) = (result.ok, result.text.clone());
            self.report(Fact::ToolCompleted { call, tool, ok, exit_code: None, detail });
        }
    }

    fn item_started(&mut self, item: &Value) -> Option<Task> {
        if item["type"] == "contextCompaction" {
            self.before_compaction = self.context;
        }
        let Some(call) = Call::of(item, &self.directory) else {
            self.report(Fact::Alive);
            return None;
        };
        let writes = match &call.writings[..] {
            [file] => Some((file.path.clone(), added("", &file.text))),
            _ => None,
        };
        let (id, tool, detail) = (call.call.call.clone(), call.call.tool.clone(), call.detail.clone());
        self.report(Fact::ToolStarted { call: id.clone(), tool, detail, writes });
        // A command that is asked about has no process yet.
        let is_unasked = item["type"] == "commandExecution" && item["processId"].is_string();
        let task = is_unasked.then(|| Task::Unasked(call.clone()));
        self.running.insert(id, Running { call, is_asked: is_unasked, instead: None });
        task
    }

    fn item_completed(&mut self, item: &Value) -> Option<Task> {
        match text(item, "/type").unwrap_or_default() {
            "agentMessage" => {
                let said = text(item, "/text").unwrap_or_default();
                self.report(if said.is_empty() { Fact::Alive } else { Fact::Message(said.to_owned()) });
                None
            }
            "contextCompaction" => {
                let (session, tokens_before) = (self.session.clone(), self.before_compaction);
                let tokens_after = Some(self.context).filter(|after| *after < tokens_before);
                self.report(Fact::Shortened { session, is_summed_up: true, tokens_before, tokens_after });
                None
            }
            _ => self.call_completed(item),
        }
    }

    fn call_completed(&mut self, item: &Value) -> Option<Task> {
        let Some(Running { call, instead, .. }) = text(item, "/id").and_then(|id| self.running.remove(id)) else {
            self.report(Fact::Alive);
            return None;
        };
        let exit_code = item["exitCode"].as_i64();
        let is_done = item["status"] == "completed" || item.get("status").is_none();
        let is_substituted = instead.is_some();
        let ToolResult { ok, text } = instead.unwrap_or_else(|| ToolResult { ok: is_done, text: result(item) });
        let ok = ok && exit_code.is_none_or(|code| code == 0);
        let (id, tool) = (call.call.call.clone(), call.call.tool.clone());
        self.report(Fact::ToolCompleted { call: id, tool, ok, exit_code, detail: text.clone() });
        (!is_substituted && !call.is_own).then(|| Task::Ended(call.call, ToolResult { ok, text }))
    }

    fn turn_completed(&mut self, turn: &Value) {
        // One that was given up may end late.
        if self.turn().is_some_and(|id| text(turn, "/id").is_some_and(|ended| ended != id)) {
            return;
        }
        let Some(Turn { stopped, .. }) = &mut self.turn else { return };
        let stopped = stopped.take();
        let error = &turn["error"];
        let fact = match (text(turn, "/status"), stopped) {
            (_, Some(reason)) => Fact::Failed(reason),
            (Some("completed"), None) => Fact::Idle,
            (Some("interrupted"), None) if error.is_null() => Fact::Failed("the turn was aborted".to_owned()),
            _ => self.failed(error),
        };
        self.end_turn(fact);
    }

    fn failed(&self, error: &Value) -> Fact {
        let reason = text(error, "/message").unwrap_or("it does not say why").to_owned();
        let known = self.reset.map(Reset::At);
        match (Fact::of_failure(reason), text(error, "/codexErrorInfo")) {
            (Fact::NoQuota { reason, reset }, _) => Fact::NoQuota { reason, reset: reset.or(known) },
            (Fact::Failed(reason) | Fact::NoLogin { reason, .. }, Some("usageLimitExceeded" | "rateLimitExceeded")) => {
                Fact::NoQuota { reason, reset: known }
            }
            (Fact::Failed(reason), Some("unauthorized")) => Fact::NoLogin { reason, hint: String::new() },
            (fact, _) => fact,
        }
    }

    /// The latest end of the windows that are used up.
    fn limits(&mut self, limits: &Value) {
        let windows = ["primary", "secondary"].map(|name| &limits[name]).into_iter();
        let used_up = windows.filter(|window| window["usedPercent"].as_f64().is_some_and(|percent| percent >= 100.0));
        let resets = used_up.filter_map(|window| Timestamp::from_second(window["resetsAt"].as_i64()?).ok());
        self.reset = resets.max();
        self.report(Fact::Alive);
    }

    /// Codex counts the whole thread, and says so again when a resumed one goes on.
    fn used(&mut self, params: &Value) {
        let usage = |kind: &str| {
            let number = |name: &str| params["tokenUsage"][kind][name].as_u64().unwrap_or(0);
            Usage {
                input_tokens: number("inputTokens"),
                output_tokens: number("outputTokens"),
                cache_read_tokens: number("cachedInputTokens"),
                cache_write_tokens: number("cacheWriteInputTokens"),
                reasoning_tokens: number("reasoningOutputTokens"),
                ..Usage::default()
            }
        };
        let is_current = self.turn().is_some_and(|id| text(params, "/turnId") == Some(id));
        let total = usage("total");
        let new = match &self.counted {
            Some(counted) => usage_since(&total, Some(counted)),
            None if is_current => usage("last"),
            None => Usage::default(),
        };
        self.counted = Some(total);
        self.context = params["tokenUsage"]["last"]["totalTokens"].as_u64().unwrap_or(self.context);
        if new == Usage::default() {
            return self.report(Fact::Alive);
        }
        let limit = params["tokenUsage"]["modelContextWindow"].as_u64().unwrap_or_default();
        let context = ContextSize { conversation_tokens: self.context, limit, ..ContextSize::default() };
        self.report(Fact::Usage(Usage { context: (limit > 0).then_some(context), ..new }));
    }
}

/// The result or the error of a call.
fn result(item: &Value) -> String {
    let texts = |list: &Value| {
        let texts = list.as_array().into_iter().flatten().filter_map(|part| text(part, "/text"));
        texts.collect::<Vec<_>>().join("\n")
    };
    let whole = || text(item, "/aggregatedOutput").map(str::to_owned);
    let failed = || text(item, "/error/message").map(str::to_owned);
    whole().or_else(failed).unwrap_or_else(|| match item["type"].as_str() {
        Some("mcpToolCall") => texts(&item["result"]["content"]),
        Some("dynamicToolCall") => texts(&item["contentItems"]),
        Some("fileChange") => {
            text(item, "/status").filter(|status| *status != "completed").unwrap_or_default().to_owned()
        }
        _ => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::copilot::testing::{opening, show};
    use crate::model::ToolChoice;

    fn conversation(is_new: bool) -> (Conversation, mpsc::UnboundedReceiver<Fact>) {
        let spec = opening("s", ToolChoice::All).spec;
        let own = BTreeSet::from(["squad_status".into()]);
        let (mut conversation, facts) = Conversation::new(("s", &spec), PathBuf::from("/p"), own);
        conversation.opened("t", is_new);
        conversation.begin_turn();
        (conversation, facts)
    }

    fn told(facts: &mut mpsc::UnboundedReceiver<Fact>) -> Vec<String> {
        let all = std::iter::from_fn(|| facts.try_recv().ok()).map(|fact| show(&fact));
        all.filter(|fact| fact != "alive").collect()
    }

    /// What each message of a turn becomes.
    fn facts(messages: &[(&str, Value)]) -> Vec<String> {
        let (mut conversation, mut facts) = conversation(true);
        for (method, params) in messages {
            conversation.notified(method, params);
        }
        told(&mut facts)
    }

    fn item(kind: &str, more: Value) -> Value {
        let mut item = json!({ "type": kind, "id": "c" });
        item.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        json!({ "threadId": "t", "item": item })
    }

    fn tokens(turn: &str, total: u64, last: u64, context: u64) -> Value {
        let count = |input: u64| json!({ "inputTokens": input, "outputTokens": 1, "totalTokens": context });
        let usage = json!({ "total": count(total), "last": count(last), "modelContextWindow": 1000 });
        json!({ "threadId": "t", "turnId": turn, "tokenUsage": usage })
    }

    fn ended(status: &str, error: Value) -> Value {
        json!({ "threadId": "t", "turn": { "id": "u", "status": status, "error": error } })
    }

    #[test]
    fn a_turn_becomes_facts() {
        let command = json!({ "command": "/bin/bash -lc 'make'", "cwd": "/p/sub" });
        let done = json!({ "status": "failed", "exitCode": 2, "aggregatedOutput": "no rule" });
        let seen = facts(&[
            ("turn/started", json!({ "threadId": "t", "turn": { "id": "u" } })),
            ("item/started", item("reasoning", json!({}))),
            ("item/agentMessage/delta", json!({ "threadId": "t", "delta": "he" })),
            ("item/completed", item("agentMessage", json!({ "text": "hello" }))),
            ("item/completed", item("agentMessage", json!({ "text": "" }))),
            ("item/started", item("commandExecution", command)),
            ("item/completed", item("commandExecution", done)),
            // An end without a begin, and a message of another thread.
            ("item/completed", item("fileChange", json!({ "status": "completed" }))),
            ("item/agentMessage/delta", json!({ "threadId": "other", "delta": "x" })),
            ("error", json!({ "threadId": "t", "willRetry": true, "error": { "message": "Reconnecting... 1/5" } })),
            ("warning", json!({ "threadId": "t", "message": "Model metadata for `x` not found." })),
            ("model/rerouted", json!({ "threadId": "t", "fromModel": "a", "toModel": "b" })),
            ("turn/completed", json!({ "threadId": "t", "turn": { "id": "old", "status": "interrupted" } })),
            ("turn/completed", ended("completed", Value::Null)),
            ("turn/completed", ended("completed", Value::Null)),
        ]);
        let expected = [
            "delta he",
            "message hello",
            "start c command_execution: cd '/p/sub' && make",
            "end c command_execution failed (2): no rule",
            "warning the model is retried after: Reconnecting... 1/5",
            "warning `b` answers in the place of `a`",
            "idle",
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_a_turn_used_is_counted_once() {
        let started = json!({ "threadId": "t", "turn": { "id": "u" } });
        let method = "thread/tokenUsage/updated";
        for (is_new, messages, expected) in [
            (
                true,
                vec![tokens("u", 100, 100, 110), tokens("u", 100, 100, 110), tokens("u", 250, 150, 160)],
                vec![100, 150],
            ),
            // A resumed thread says first what it had.
            (false, vec![tokens("old", 500, 100, 110), tokens("u", 620, 120, 130)], vec![120]),
            (false, vec![tokens("u", 620, 120, 130)], vec![120]),
        ] {
            let (mut conversation, mut facts) = conversation(is_new);
            conversation.notified("turn/started", &started);
            messages.iter().for_each(|message| drop(conversation.notified(method, message)));
            let used = std::iter::from_fn(|| facts.try_recv().ok()).filter_map(|fact| match fact {
                Fact::Usage(usage) => Some(usage.input_tokens),
                _ => None,
            });
            assert_eq!(used.collect::<Vec<_>>(), expected, "{messages:?}");
        }
        let compaction = item("contextCompaction", json!({}));
        let seen = facts(&[
            ("turn/started", started),
            (method, tokens("u", 900, 900, 910)),
            ("item/started", compaction.clone()),
            (method, tokens("u", 900, 0, 90)),
            ("item/completed", compaction),
        ]);
        assert_eq!(seen.last().expect("facts"), "s compacted 910 -> Some(90)");
    }

    #[test]
    fn ends_say_why() {
        let quota = json!({ "rateLimits": { "primary": { "usedPercent": 100, "resetsAt": 1_900_000_000 },
            "secondary": { "usedPercent": 20, "resetsAt": 1_950_000_000 } } });
        for (status, error, expected) in [
            ("interrupted", Value::Null, "failed the turn was aborted"),
            ("failed", json!({ "message": "bad request", "codexErrorInfo": "other" }), "failed bad request"),
            (
                "failed",
                json!({ "message": "You are out.", "codexErrorInfo": "usageLimitExceeded" }),
                "no quota: You are out.",
            ),
            (
                "failed",
                json!({ "message": "last status: 429 Too Many Requests" }),
                "no quota: last status: 429 Too Many Requests",
            ),
            ("odd", Value::Null, "failed it does not say why"),
        ] {
            let seen =
                facts(&[("account/rateLimits/updated", quota.clone()), ("turn/completed", ended(status, error))]);
            assert_eq!(seen, [expected]);
        }
        let (mut conversation, mut facts) = conversation(true);
        conversation.notified("account/rateLimits/updated", &quota);
        let error = json!({ "message": "You are out.", "codexErrorInfo": "usageLimitExceeded" });
        conversation.notified("turn/completed", &ended("failed", error));
        let reset = std::iter::from_fn(|| facts.try_recv().ok()).find_map(|fact| match fact {
            Fact::NoQuota { reset, .. } => reset,
            _ => None,
        });
        assert_eq!(reset, Timestamp::from_second(1_900_000_000).ok().map(Reset::At));
    }

    #[test]
    fn malformed_messages_never_panic() {
        let (mut conversation, _facts) = conversation(true);
        let odd = [
            Value::Null,
            json!([]),
            json!("x"),
            json!({ "item": 7 }),
            json!({ "item": { "type": "commandExecution", "id": [], "command": 1, "cwd": {} } }),
            json!({ "item": { "type": "fileChange", "changes": [7, { "path": 1 }, { "path": "a", "kind": 1 }] } }),
            json!({ "item": { "type": "mcpToolCall", "server": 1 }, "itemId": 1, "questions": 7, "_meta": { "codex_approval_kind": "mcp_tool_call" } }),
            json!({ "tokenUsage": { "total": -1, "last": [] }, "turn": 1, "error": 1, "willRetry": true, "rateLimits": 1 }),
        ];
        for method in [
            "turn/started",
            "turn/completed",
            "item/started",
            "item/completed",
            "item/agentMessage/delta",
            "thread/tokenUsage/updated",
            "account/rateLimits/updated",
            "error",
            "warning",
            "mcpServer/startupStatus/updated",
            "item/tool/call",
            "item/commandExecution/requestApproval",
            "item/fileChange/requestApproval",
            "item/tool/requestUserInput",
            "mcpServer/elicitation/request",
            "",
        ] {
            for params in &odd {
                let _ = conversation.notified(method, params);
                let _ = conversation.requested(method, params);
            }
        }
    }
}
