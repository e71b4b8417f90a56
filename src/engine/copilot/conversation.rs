//! The reader's side of one session: turns the CLI's messages into facts. No I/O.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::wire::{
    AssistantMessage, AutoModeSwitch, Compaction, ErrorMessage, Event, ExternalTool, HookCall, Idle, McpServersLoaded,
    MessageDelta, ModelCallFailure, ModelUsage, OpenParams, SessionError, ToolComplete, ToolStart, Truncation,
    TurnRetry, UsageInfo, UserInput,
};

use crate::engine::writes::writes;
use crate::engine::{Approval, Fact, Reply, Request, Reset, ToolCall, ToolResult, added, quota_error, subject};
use crate::model::{Access, ContextSize, Usage};

pub(crate) struct Conversation {
    facts: mpsc::UnboundedSender<Fact>,
    /// Parameters for reopening the session after a lost connection.
    params: OpenParams,
    own_tools: BTreeSet<Cow<'static, str>>,
    /// Running tool calls by id, since completions and permission requests do not name the tool.
    calls: HashMap<String, Call>,
    substitutes: Substitutes,
    changed: Changed,
    turn: Option<Turn>,
    /// The number of turns begun, which is the current turn's number.
    turns: u64,
    /// The size of the next model call's context, as last reported.
    context: Option<ContextSize>,
    /// Whether `session.create` or `session.resume` has succeeded.
    opened: bool,
}

/// A running tool call.
struct Call {
    tool: String,
    arguments: Value,
}

/// Results of calls that squad handled itself instead of writing their files, with the calls' arguments: the CLI passes
/// no call id to a hook.
type Substitutes = Arc<Mutex<Vec<(Value, ToolResult)>>>;

/// The arguments that calls were made with in the place of others: the new ones and the old.
type Changed = Arc<Mutex<Vec<(Value, Value)>>>;

/// The answer to a hook.
pub(crate) enum HookAnswer {
    Now(Value),
    /// Once the end of the call is durable: what the model reads in the place of its result.
    After {
        ok: bool,
        answer: oneshot::Receiver<Option<String>>,
    },
    /// Once it is decided what the call may do.
    Before {
        call: ToolCall,
        answer: oneshot::Receiver<Result<Option<Value>, String>>,
        asker: Asker,
    },
}

/// Asks about the files that a call writes.
pub(crate) struct Asker {
    facts: mpsc::UnboundedSender<Fact>,
    substitutes: Substitutes,
    changed: Changed,
}

impl HookAnswer {
    pub(crate) async fn answer(self) -> Value {
        match self {
            Self::Now(answer) => answer,
            Self::After { ok, answer } => match answer.await.ok().flatten() {
                // The CLI takes no other result for a call that failed.
                Some(text) if !ok => json!({ "output": { "additionalContext": text } }),
                Some(text) => {
                    let result = json!({ "textResultForLlm": text, "resultType": "success" });
                    json!({ "output": { "modifiedResult": result } })
                }
                None => json!({}),
            },
            Self::Before { call, answer, asker } => match answer.await {
                Ok(Err(reason)) => denial(&reason),
                Ok(Ok(changed)) => asker.writes(call, changed).await,
                // Nobody is left to ask.
                Err(_) => denial(NOBODY),
            },
        }
    }
}

impl Asker {
    /// The answer about a call that may be made, as its files say. They are those of its last arguments.
    async fn writes(self, call: ToolCall, changed: Option<Value>) -> Value {
        let answer = match &changed {
            Some(arguments) => json!({ "output": { "modifiedArgs": arguments } }),
            None => json!({}),
        };
        let files = writes(&call.tool, changed.as_ref().unwrap_or(&call.arguments));
        if let Some(new) = changed {
            self.changed.lock().push((new, call.arguments.clone()));
        }
        if files.is_empty() {
            return answer;
        }
        let (reply, instead) = Reply::channel();
        let _ = self.facts.send(Fact::Request(Request::Write(files, reply)));
        let Some(result) = instead.await.ok().flatten() else { return answer };
        let denial = denial(&result.text);
        self.substitutes.lock().push((call.arguments, result));
        denial
    }
}

/// The reason if a session has ended before its call was decided.
const NOBODY: &str = "squad did not allow this.";

/// A hook answer that denies a tool, with the reason.
fn denial(reason: &str) -> Value {
    json!({ "output": { "permissionDecision": "deny", "permissionDecisionReason": reason } })
}

#[derive(Default)]
struct Turn {
    error: Option<String>,
    /// The account's quota is used up.
    has_no_quota: bool,
    /// When it is there again, if the CLI says so.
    reset: Option<Reset>,
    /// The HTTP status of the model's last failure.
    status: Option<u64>,
    /// Whether the turn may have ended without an end event.
    end_check: EndCheck,
}

/// Whether to check that a turn is over: the CLI sends no end event if it cannot write to its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EndCheck {
    #[default]
    None,
    Suspected,
    /// The check is running.
    Checking,
}

/// A request that the CLI sent as an event. We answer it with a request.
pub(crate) enum PendingAnswer {
    Tool {
        request: String,
        answer: oneshot::Receiver<ToolResult>,
    },
    /// Allowed if all are.
    Permission {
        request: String,
        answers: Vec<oneshot::Receiver<Approval>>,
    },
}

impl Conversation {
    pub(crate) fn new(
        params: OpenParams,
        own_tools: BTreeSet<Cow<'static, str>>,
    ) -> (Self, mpsc::UnboundedReceiver<Fact>) {
        let (facts, receiver) = mpsc::unbounded_channel();
        let (calls, substitutes, changed) = Default::default();
        let (turn, turns, context, opened) = Default::default();
        (Self { facts, params, own_tools, calls, substitutes, changed, turn, turns, context, opened }, receiver)
    }

    pub(crate) fn params(&self) -> &OpenParams {
        &self.params
    }

    pub(crate) fn set_params(&mut self, params: OpenParams) {
        self.params = params;
    }

    pub(crate) fn opened(&mut self) {
        self.opened = true;
    }

    pub(crate) fn is_open(&self) -> bool {
        self.opened
    }

    pub(crate) fn begin_turn(&mut self) {
        self.changed.lock().clear();
        self.turn = Some(Turn::default());
        self.turns += 1;
    }

    /// The number of a turn that may have ended without an end event; returned once per turn.
    pub(crate) fn take_end_check(&mut self) -> Option<u64> {
        let turn = self.turn.as_mut().filter(|turn| turn.end_check == EndCheck::Suspected)?;
        turn.end_check = EndCheck::Checking;
        Some(self.turns)
    }

    pub(crate) fn is_in_turn(&self, number: u64) -> bool {
        self.turn.is_some() && self.turns == number
    }

    /// Ends a turn that turned out to be over.
    pub(crate) fn end_if_current(&mut self, number: u64) {
        if self.is_in_turn(number) {
            self.turn_became_idle(&Idle::default());
        }
    }

    /// Warns whoever is waiting for the turn's end.
    pub(crate) fn warn(&self, warning: &str) {
        if self.turn.is_some() {
            self.report(Fact::Warning(warning.to_owned()));
        }
    }

    pub(crate) fn is_working(&self) -> bool {
        self.turn.is_some()
    }

    /// Drops a turn that never began.
    pub(crate) fn withdraw_turn(&mut self) {
        self.turn = None;
    }

    /// Ends the running turn, if any, as failed.
    pub(crate) fn fail_turn(&mut self, reason: &str) {
        if self.turn.take().is_some() {
            self.calls.clear();
            self.report(Fact::Failed(reason.to_owned()));
        }
    }

    /// Ends the running turn because the CLI's process ended.
    pub(crate) fn interrupt_turn(&mut self, reason: &str) {
        if self.turn.take().is_some() {
            self.calls.clear();
            self.report(Fact::Interrupted(reason.to_owned()));
        }
    }

    pub(crate) fn report(&self, fact: Fact) {
        // A dropped session needs no more facts.
        let _ = self.facts.send(fact);
    }

    pub(crate) fn handle_event(&mut self, event: &Event) -> Option<PendingAnswer> {
        let of_sub_agent = event.agent_id.is_some();
        match event.r#type.as_str() {
            // A sub-agent's messages reach its agent as a tool result.
            "assistant.message_delta" | "assistant.message" | "session.error" | "assistant.idle" if of_sub_agent => {
                self.report(Fact::Alive);
            }
            "assistant.message_delta" => self.message_delta(event.data()),
            "assistant.message" => self.message(event.data()),
            "tool.execution_start" => self.tool_started(event.data()),
            "tool.execution_complete" => drop(self.tool_completed(event.data())),
            "session.compaction_complete" => self.compacted(event.data()),
            "session.truncation" => self.truncated(&event.data()),
            "session.usage_info" if !of_sub_agent => self.usage_info(&event.data()),
            "assistant.usage" => {
                let usage = Usage { context: self.context, ..event.data::<ModelUsage>().read() };
                self.report(Fact::Usage(usage));
            }
            "model.call_failure" => self.model_failed(&event.data()),
            "assistant.turn_retry" => self.model_retried(&event.data()),
            "session.mcp_servers_loaded" => self.servers_started(event.data()),
            "session.warning" => self.report(Fact::Warning(event.data::<ErrorMessage>().message)),
            "session.error" => self.session_error(event.data()),
            "auto_mode_switch.requested" => self.quota_resets(&event.data()),
            "session.idle" => self.turn_became_idle(&event.data()),
            "assistant.idle" => self.suspect_end(),
            "external_tool.requested" => return Some(self.tool_called(event.data())),
            "permission.requested" => return self.permission_requested(&event.data),
            // For example: the model thinks, a tool makes progress, the context is being compacted.
            _ => self.report(Fact::Alive),
        }
        None
    }

    /// A compaction that had nothing to summarize only counts as a sign of life.
    fn compacted(&self, compaction: Compaction) {
        match (compaction.success, compaction.error) {
            (false, Some(error)) => self.report(Fact::Warning(format!("the session could not be compacted: {error}"))),
            (false, None) => self.report(Fact::Alive),
            (true, _) => {
                self.session_shortened(true, compaction.pre_compaction_tokens, compaction.post_compaction_tokens);
            }
        }
    }

    fn truncated(&self, truncation: &Truncation) {
        let before = truncation.pre_truncation_tokens_in_messages;
        match truncation.post_truncation_tokens_in_messages {
            Some(after) if after >= before => self.report(Fact::Alive),
            after => self.session_shortened(false, before, after),
        }
    }

    /// A server that failed to start is only a warning; its tools are missing.
    fn servers_started(&self, loaded: McpServersLoaded) {
        for server in loaded.servers {
            if let Some(problem) = server.problem() {
                self.report(Fact::Warning(format!("the MCP server `{}` cannot be used: {problem}", server.name)));
            }
        }
    }

    fn session_shortened(&self, is_summed_up: bool, tokens_before: u64, tokens_after: Option<u64>) {
        let session = self.params.session_id.clone();
        self.report(Fact::Shortened { session, is_summed_up, tokens_before, tokens_after });
    }

    fn usage_info(&mut self, info: &UsageInfo) {
        self.context = Some(info.read());
        self.report(Fact::Alive);
    }

    fn message_delta(&self, delta: MessageDelta) {
        if !delta.delta_content.is_empty() {
            self.report(Fact::MessageDelta(delta.delta_content));
        }
    }

    fn message(&self, message: AssistantMessage) {
        // A message that only calls tools has no text.
        if !message.content.is_empty() {
            self.report(Fact::Message(message.content));
        }
    }

    fn tool_started(&mut self, start: ToolStart) {
        let detail = subject(&start.arguments);
        let writes = written(&start.tool_name, &start.arguments);
        let call = Call { tool: start.tool_name.clone(), arguments: start.arguments };
        self.calls.insert(start.tool_call_id.clone(), call);
        self.report(Fact::ToolStarted { call: start.tool_call_id, tool: start.tool_name, detail, writes });
    }

    fn tool_completed(&mut self, complete: ToolComplete) -> Option<(ToolCall, ToolResult)> {
        let exit_code = complete.exit_code();
        // A hook may have told its end already, and a resumed session also reports calls from before.
        let Call { tool, arguments } = self.calls.remove(&complete.tool_call_id)?;
        let begun = parse_arguments(&arguments);
        self.changed.lock().retain(|(_, old)| *old != begun);
        let (ok, detail) = match (self.take_substitute(&arguments), complete.error, complete.result) {
            (Some(substitute), _, _) if !complete.success => (substitute.ok, substitute.text),
            (_, Some(error), _) if !complete.success => (false, error.message),
            (_, _, result) => (complete.success, result.unwrap_or_default().content),
        };
        let ok = ok && exit_code.is_none_or(|code| code == 0);
        let (call, ended) = (complete.tool_call_id, ToolResult { ok: complete.success, text: detail.clone() });
        self.report(Fact::ToolCompleted { call: call.clone(), tool: tool.clone(), ok, exit_code, detail });
        Some((ToolCall { call, tool, arguments }, ended))
    }

    /// The result of a call with these arguments that squad handled itself.
    fn take_substitute(&self, arguments: &Value) -> Option<ToolResult> {
        let mut substitutes = self.substitutes.lock();
        if substitutes.is_empty() {
            return None;
        }
        let arguments = parse_arguments(arguments);
        let at = substitutes.iter().position(|(other, _)| *other == arguments)?;
        Some(substitutes.remove(at).1)
    }

    fn model_failed(&mut self, failure: &ModelCallFailure) {
        if let Some(turn) = &mut self.turn {
            turn.status = failure.status_code;
        }
    }

    fn model_retried(&mut self, retry: &TurnRetry) {
        let reason = retry.reason.as_deref().unwrap_or("an error").replace('_', " ");
        let status = self.turn.as_mut().and_then(|turn| turn.status.take());
        let status = status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
        self.report(Fact::Warning(format!("the model is retried after: {reason}{status}")));
    }

    fn quota_resets(&mut self, switch: &AutoModeSwitch) {
        if let (Some(turn), Some(seconds)) = (&mut self.turn, switch.retry_after_seconds) {
            turn.reset = Some(Reset::In(Duration::from_secs(seconds)));
        }
    }

    fn session_error(&mut self, error: SessionError) {
        self.suspect_end();
        if let Some(turn) = self.turn.as_mut().filter(|_| error.is_of_quota()) {
            turn.has_no_quota = true;
            turn.reset = turn.reset.or(quota_error(&error.message).flatten());
        }
        match &mut self.turn {
            // Errors may follow from one another, so the first one comes first.
            Some(Turn { error: Some(known), .. }) if known.contains(&error.message) => {}
            Some(Turn { error: Some(known), .. }) => *known = format!("{known}; {}", error.message),
            Some(turn) => turn.error = Some(error.message),
            None => self.report(Fact::Warning(error.message)),
        }
    }

    fn suspect_end(&mut self) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.end_check == EndCheck::None) {
            turn.end_check = EndCheck::Suspected;
        }
    }

    fn turn_became_idle(&mut self, idle: &Idle) {
        // Without a turn of ours, the CLI finished work of its own, such as a sub-agent's report.
        let Some(turn) = self.turn.take() else { return };
        self.calls.clear();
        self.report(match turn.error {
            Some(reason) if turn.has_no_quota => Fact::NoQuota { reason, reset: turn.reset },
            Some(reason) => Fact::of_failure(reason),
            None if idle.aborted => Fact::Failed("the turn was aborted".to_owned()),
            None => Fact::Idle,
        });
    }

    fn tool_called(&self, call: ExternalTool) -> PendingAnswer {
        let (reply, answer) = Reply::channel();
        let ExternalTool { request_id: request, tool_call_id, tool_name, arguments } = call;
        self.report(Fact::Request(Request::Tool(ToolCall { call: tool_call_id, tool: tool_name, arguments }, reply)));
        PendingAnswer::Tool { request, answer }
    }

    /// A request without an id cannot be answered, so it is ignored.
    fn permission_requested(&self, data: &Value) -> Option<PendingAnswer> {
        let request = text(data, "/requestId")?.to_owned();
        let wanted = data.get("permissionRequest").unwrap_or(&Value::Null);
        let tool = text(wanted, "/toolName")
            .or_else(|| self.calls.get(text(wanted, "/toolCallId")?).map(|call| call.tool.as_str()))
            .or_else(|| text(wanted, "/kind"))
            .unwrap_or("unknown");
        let ask = |(access, detail)| {
            let (reply, answer) = Reply::channel();
            let (call, tool) = (text(wanted, "/toolCallId").map(str::to_owned), tool.to_owned());
            self.report(Fact::Request(Request::Permission { call, access, tool, detail, reply }));
            answer
        };
        Some(PendingAnswer::Permission { request, answers: self.accesses(wanted).into_iter().map(ask).collect() })
    }

    /// The accesses in a permission request, at least one. An edit may touch several files, each with its own access.
    fn accesses(&self, wanted: &Value) -> Vec<(Access, String)> {
        let field = |name: &str| wanted.get(name).and_then(Value::as_str).map(str::to_owned);
        let (access, detail) = match text(wanted, "/kind").unwrap_or_default() {
            "shell" => (Access::Shell, field("fullCommandText")),
            "read" => (Access::Read, field("path")),
            "url" => (Access::Network, field("url")),
            "mcp" => (Access::Mcp, Some(mcp_call(wanted))),
            "custom-tool" => {
                let own = field("toolName").is_some_and(|name| self.own_tools.contains(name.as_str()));
                (if own { Access::Own } else { Access::Other }, wanted.get("args").map(Value::to_string))
            }
            "write" => {
                let files = written_files(wanted);
                if !files.is_empty() {
                    return files.into_iter().map(|file| (Access::Write, file)).collect();
                }
                (Access::Write, None)
            }
            _ => (Access::Other, None),
        };
        // An unknown request is shown in full to whoever decides.
        vec![(access, detail.unwrap_or_else(|| wanted.to_string()))]
    }

    /// Reports a question to the user and returns the receiver of the answer.
    pub(crate) fn question_requested(&self, question: &UserInput) -> oneshot::Receiver<Option<String>> {
        let (reply, answer) = Reply::channel();
        let (text, choices) = (question.question.clone(), question.choices.clone());
        self.report(Fact::Request(Request::Question { text, choices, reply }));
        answer
    }

    /// Answers a hook. Tools outside the session's list are denied, also for sub-agents; squad may handle file writes
    /// itself; everything else is left to the CLI.
    pub(crate) fn hook_called(&mut self, hook: &HookCall) -> HookAnswer {
        match hook.hook_type.as_str() {
            "preToolUse" => self.tool_begins(hook),
            "postToolUse" | "postToolUseFailure" => self.tool_ended(hook),
            _ => HookAnswer::Now(json!({})),
        }
    }

    /// Reports the end of a call before the model learns of it. The CLI's own event comes after that.
    fn tool_ended(&mut self, hook: &HookCall) -> HookAnswer {
        let tool = text(&hook.input, "/toolName").unwrap_or_default();
        let arguments = parse_arguments(hook.input.get("toolArgs").unwrap_or(&Value::Null));
        let arguments = self.as_begun(arguments);
        // The CLI passes no call id to a hook. Of equal calls, any may be the one that ended.
        let is_it = |call: &Call| call.tool == tool && parse_arguments(&call.arguments) == arguments;
        let found = self.calls.iter().find(|(_, call)| is_it(call)).map(|(id, _)| id.clone());
        let ended = found.and_then(|id| self.tool_completed(hook.complete(id)));
        // Hooks are asked about the end of a call that is not known, too.
        let (call, result) = ended.unwrap_or_else(|| {
            let ToolComplete { success, error, result, .. } = hook.complete(String::new());
            let text = error.map(|error| error.message).or(result.map(|result| result.content)).unwrap_or_default();
            let call = ToolCall { call: String::new(), tool: tool.to_owned(), arguments };
            (call, ToolResult { ok: success, text })
        });
        let ((reply, answer), ok) = (Reply::channel(), result.ok);
        self.report(Fact::Request(Request::AfterTool(call, result, reply)));
        HookAnswer::After { ok, answer }
    }

    /// The arguments with which a call began that was made with these.
    fn as_begun(&self, arguments: Value) -> Value {
        let mut changed = self.changed.lock();
        let at = changed.iter().position(|(new, _)| *new == arguments);
        at.map_or(arguments, |at| changed.swap_remove(at).1)
    }

    fn tool_begins(&self, hook: &HookCall) -> HookAnswer {
        let tool = text(&hook.input, "/toolName").unwrap_or_default();
        let allowed = self.params.available_tools.as_ref();
        if let Some(allowed) = allowed.filter(|allowed| allowed.iter().all(|name| name != tool)) {
            let reason = format!("the tool `{tool}` is not among this agent's tools: {}", allowed.join(", "));
            let denial = denial(&reason);
            let detail = subject(hook.input.get("toolArgs").unwrap_or(&Value::Null));
            self.report(Fact::Denied { access: None, tool: tool.to_owned(), detail, reason });
            return HookAnswer::Now(denial);
        }
        let arguments = parse_arguments(hook.input.get("toolArgs").unwrap_or(&Value::Null));
        // The CLI passes no call id to a hook.
        let call = ToolCall { call: String::new(), tool: tool.to_owned(), arguments };
        let (reply, answer) = Reply::channel();
        self.report(Fact::Request(Request::BeforeTool(call.clone(), reply)));
        let (substitutes, changed) = (Arc::clone(&self.substitutes), Arc::clone(&self.changed));
        let asker = Asker { facts: self.facts.clone(), substitutes, changed };
        HookAnswer::Before { call, answer, asker }
    }
}

/// Arguments may arrive as a JSON string.
fn parse_arguments(arguments: &Value) -> Value {
    let read = arguments.as_str().and_then(|text| serde_json::from_str(text).ok());
    read.unwrap_or_else(|| arguments.clone())
}

/// The paths that a write request touches: the file it names, resolved if the CLI provides that, or the files of all
/// its edits.
fn written_files(wanted: &Value) -> Vec<String> {
    let edits = wanted.get("fileEdits").and_then(Value::as_array).into_iter().flatten();
    let edited = edits.flat_map(|edit| [text(edit, "/before/path"), text(edit, "/after/path")]);
    let mut files: Vec<&str> = Vec::new();
    for file in std::iter::once(text(wanted, "/fileName")).chain(edited).flatten() {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    match (text(wanted, "/resolvedPath"), &files[..]) {
        (Some(resolved), [] | [_]) => vec![resolved.to_owned()],
        _ => files.into_iter().map(str::to_owned).collect(),
    }
}

fn mcp_call(wanted: &Value) -> String {
    let name = |pointer| text(wanted, pointer).unwrap_or("?");
    let arguments = wanted.get("args").map(Value::to_string).unwrap_or_default();
    format!("{}/{} {arguments}", name("/serverName"), name("/toolName"))
}

/// The file that a call of the CLI's `create` or `edit` writes, and the lines it adds.
fn written(tool: &str, arguments: &Value) -> Option<(String, String)> {
    let (old, new) = match tool {
        // `create` only makes new files.
        "create" => ("", text(arguments, "/file_text")?),
        "edit" => (text(arguments, "/old_str").unwrap_or_default(), text(arguments, "/new_str")?),
        _ => return None,
    };
    Some((text(arguments, "/path")?.to_owned(), added(old, new)))
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::model::ToolChoice;

    fn conversation(tools: ToolChoice) -> (Conversation, mpsc::UnboundedReceiver<Fact>) {
        let opening = testing::opening("s", tools);
        Conversation::new(OpenParams::new(&opening, None), ["squad_status".into()].into())
    }

    fn event(r#type: &str, data: Value) -> Event {
        Event { r#type: r#type.to_owned(), data, agent_id: None }
    }

    /// The facts of a turn with these events.
    fn facts(events: Vec<Event>) -> Vec<String> {
        let (mut conversation, mut receiver) = conversation(ToolChoice::All);
        conversation.begin_turn();
        let _asked: Vec<_> = events.iter().map(|event| conversation.handle_event(event)).collect();
        let mut facts = Vec::new();
        while let Ok(fact) = receiver.try_recv() {
            facts.push(testing::show(&fact));
        }
        facts.retain(|fact| fact != "alive");
        facts
    }

    #[test]
    fn every_event_in_a_turn_is_a_sign_of_life() {
        let kinds =
            ["assistant.reasoning_delta", "assistant.reasoning", "tool.execution_progress", "session.usage_info"];
        for kind in kinds {
            let (mut conversation, mut receiver) = conversation(ToolChoice::All);
            conversation.begin_turn();
            conversation.handle_event(&event(kind, json!({})));
            assert!(matches!(receiver.try_recv(), Ok(Fact::Alive)), "{kind}");
        }
    }

    #[test]
    fn a_turns_end_is_checked_once_while_it_runs() {
        for kind in ["assistant.idle", "session.error"] {
            let (mut conversation, _facts) = conversation(ToolChoice::All);
            conversation.handle_event(&event(kind, json!({})));
            assert_eq!(conversation.take_end_check(), None, "{kind}: there is no turn");
            conversation.begin_turn();
            conversation.handle_event(&event("assistant.message", json!({})));
            assert_eq!(conversation.take_end_check(), None);
            conversation.handle_event(&event(kind, json!({})));
            assert_eq!(conversation.take_end_check(), Some(1), "{kind}");
            conversation.handle_event(&event(kind, json!({})));
            assert_eq!(conversation.take_end_check(), None, "{kind}");
            conversation.handle_event(&event("session.idle", json!({})));
            conversation.begin_turn();
            assert!(!conversation.is_in_turn(1) && conversation.is_in_turn(2));
            conversation.end_if_current(1);
            assert!(conversation.is_working(), "that was another turn");
        }
    }

    #[test]
    fn a_turn_becomes_facts() {
        let call =
            json!({ "toolCallId": "c1", "toolName": "bash", "arguments": { "description": "d", "command": "ls\nx" } });
        let events = vec![
            event("assistant.message", json!({ "content": "" })),
            event(
                "assistant.usage",
                json!({ "inputTokens": 100, "outputTokens": 10, "cacheReadTokens": 7, "cacheWriteTokens": 3,
                    "reasoningTokens": 2, "cost": 0.33 }),
            ),
            event("assistant.usage", json!({ "inputTokens": 1, "cost": 1, "isByok": true })),
            event("tool.execution_start", call),
            event(
                "tool.execution_complete",
                json!({ "toolCallId": "c1", "success": true, "result": { "content": "\na\nb" } }),
            ),
            event("assistant.message_delta", json!({ "deltaContent": "he" })),
            event("assistant.message", json!({ "content": "hello" })),
            event("session.idle", json!({})),
            event("session.idle", json!({})),
        ];
        assert_eq!(
            facts(events),
            [
                "usage 100 10 7 3 2, 0.33 premium_request",
                "usage 1 0 0 0 0",
                "start c1 bash: ls\nx",
                "end c1 bash ok: \na\nb",
                "delta he",
                "message hello",
                "idle"
            ]
        );
    }

    /// The CLI reports success for a call whose command failed.
    #[test]
    fn a_command_has_its_exit_code_and_fails_with_it() {
        let ended = |complete: Value| {
            let mut data = json!({ "toolCallId": "c1", "success": true });
            data.as_object_mut().expect("a map").extend(complete.as_object().expect("a map").clone());
            let call = json!({ "toolCallId": "c1", "toolName": "bash", "arguments": { "command": "x" } });
            facts(vec![event("tool.execution_start", call), event("tool.execution_complete", data)]).remove(1)
        };
        let contents = |code: i64| {
            let exit = json!({ "type": "shell_exit", "exitCode": code });
            json!({ "result": { "content": "out", "contents": [{ "type": "text", "text": "out" }, exit] } })
        };
        let telemetry = json!({ "result": { "content": "out" }, "toolTelemetry": { "metrics": { "exit_code": 4 } } });
        for (complete, expected) in [
            (contents(3), "end c1 bash failed (3): out"),
            (contents(0), "end c1 bash ok (0): out"),
            (telemetry, "end c1 bash failed (4): out"),
            (json!({ "result": { "content": "out" }, "toolTelemetry": {} }), "end c1 bash ok: out"),
            (json!({ "result": { "content": "out", "contents": [{ "type": "shell_exit" }] } }), "end c1 bash ok: out"),
        ] {
            assert_eq!(ended(complete.clone()), expected, "{complete}");
        }
    }

    #[test]
    fn errors_end_the_turn_as_failed() {
        let error = event("session.error", json!({ "errorType": "query", "message": "400 bad" }));
        assert_eq!(facts(vec![error, event("session.idle", json!({}))]), ["failed 400 bad"]);
        assert_eq!(facts(vec![event("session.idle", json!({ "aborted": true }))]), ["failed the turn was aborted"]);
    }

    #[test]
    fn a_shortened_session_reports_token_counts() {
        let events = vec![
            event("session.compaction_start", json!({})),
            event(
                "session.compaction_complete",
                json!({ "success": true, "preCompactionTokens": 900, "postCompactionTokens": 90 }),
            ),
            event("session.compaction_complete", json!({ "success": true, "preCompactionTokens": 7 })),
            event("session.compaction_complete", json!({ "success": false })),
            event("session.compaction_complete", json!({ "success": false, "error": "no model" })),
            event(
                "session.truncation",
                json!({ "preTruncationTokensInMessages": 80, "postTruncationTokensInMessages": 20 }),
            ),
            event(
                "session.truncation",
                json!({ "preTruncationTokensInMessages": 80, "postTruncationTokensInMessages": 80 }),
            ),
        ];
        assert_eq!(
            facts(events),
            [
                "s compacted 900 -> Some(90)",
                "s compacted 7 -> None",
                "warning the session could not be compacted: no model",
                "s truncated 80 -> Some(20)"
            ]
        );
    }

    #[test]
    fn usage_includes_the_context_size() {
        let (mut conversation, mut receiver) = conversation(ToolChoice::All);
        conversation.begin_turn();
        let info = json!({ "systemTokens": 5, "toolDefinitionsTokens": 6, "conversationTokens": 7, "tokenLimit": 100 });
        conversation.handle_event(&event("session.usage_info", info));
        conversation.handle_event(&event("assistant.usage", json!({ "inputTokens": 18 })));
        let facts: Vec<Fact> = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
        let Some(Fact::Usage(usage)) = facts.last() else { panic!("{facts:?}") };
        let context = ContextSize { system_tokens: 5, tool_tokens: 6, conversation_tokens: 7, limit: 100 };
        assert_eq!((usage.input_tokens, usage.context), (18, Some(context)));
    }

    #[test]
    fn retries_are_warnings() {
        let failure = event("model.call_failure", json!({ "statusCode": 429 }));
        let retry = event("assistant.turn_retry", json!({ "reason": "rate_limit" }));
        assert_eq!(facts(vec![failure, retry]), ["warning the model is retried after: rate limit (HTTP 429)"]);
    }

    #[test]
    fn a_sub_agents_messages_are_not_the_agents() {
        let mut message = event("assistant.message", json!({ "content": "from below" }));
        message.agent_id = Some("sub".into());
        let mut error = event("session.error", json!({ "message": "below" }));
        error.agent_id = Some("sub".into());
        assert_eq!(facts(vec![message, error, event("session.idle", Value::Null)]), ["idle"]);
    }

    #[test]
    fn permissions_name_what_they_are_about() {
        let start = event("tool.execution_start", json!({ "toolCallId": "c1", "toolName": "create", "arguments": {} }));
        let asks = |request: Value| {
            let data = json!({ "requestId": "r", "permissionRequest": request });
            facts(vec![event(&start.r#type, start.data.clone()), event("permission.requested", data)]).split_off(1)
        };
        assert_eq!(
            asks(json!({ "kind": "shell", "fullCommandText": "rm -r x && ls", "toolCallId": "c0" })),
            ["may Shell shell: rm -r x && ls"]
        );
        assert_eq!(
            asks(json!({ "kind": "write", "toolCallId": "c1", "fileName": "a", "resolvedPath": "/p/a",
                "fileEdits": [{ "after": { "path": "a" } }] })),
            ["may Write create: /p/a"]
        );
        assert_eq!(
            asks(json!({ "kind": "write", "fileName": "a", "resolvedPath": "/p/a",
                "fileEdits": [{ "before": { "path": "a" }, "after": { "path": "b" } }] })),
            ["may Write write: a", "may Write write: b"]
        );
        assert_eq!(asks(json!({ "kind": "read", "path": "/etc" })), ["may Read read: /etc"]);
        assert_eq!(asks(json!({ "kind": "url", "url": "http://x" })), ["may Network url: http://x"]);
        assert_eq!(
            asks(json!({ "kind": "mcp", "serverName": "s", "toolName": "t", "args": { "a": 1 } })),
            [r#"may Mcp t: s/t {"a":1}"#]
        );
        assert_eq!(
            asks(json!({ "kind": "custom-tool", "toolName": "squad_status", "args": 1 })),
            ["may Own squad_status: 1"]
        );
        assert_eq!(asks(json!({ "kind": "custom-tool", "toolName": "other", "args": 1 })), ["may Other other: 1"]);
        assert_eq!(asks(json!({ "kind": "new" })), [r#"may Other new: {"kind":"new"}"#]);
        assert_eq!(asks(json!(7)), ["may Other unknown: 7"]);
    }

    #[test]
    fn malformed_data_never_panics() {
        let kinds = [
            "assistant.message",
            "assistant.message_delta",
            "tool.execution_start",
            "tool.execution_complete",
            "assistant.usage",
            "model.call_failure",
            "assistant.turn_retry",
            "session.warning",
            "session.error",
            "external_tool.requested",
            "permission.requested",
            "session.idle",
            "",
        ];
        for kind in kinds {
            for data in [Value::Null, json!([]), json!("x"), json!({ "content": 1, "toolCallId": [] })] {
                let _ = facts(vec![event(kind, data)]);
            }
        }
    }

    #[test]
    fn tools_outside_the_list_are_denied_by_the_hook() {
        let (mut conversation, mut facts) = conversation(ToolChoice::ReadOnly);
        let mut call = |hook: &str, tool: &str| {
            let input = json!({ "toolName": tool, "toolArgs": { "command": "ls\nrm x" } });
            match conversation.hook_called(&HookCall { session_id: "s".into(), hook_type: hook.into(), input }) {
                HookAnswer::Now(answer) => answer,
                HookAnswer::Before { call, .. } => json!(format!("asks about {}", call.tool)),
                HookAnswer::After { .. } => json!("asks about an end"),
            }
        };
        assert_eq!(call("preToolUse", "view"), json!("asks about view"));
        assert_eq!(call("preToolUse", "squad_status"), json!("asks about squad_status"));
        // Of a call that is not known, too.
        assert_eq!(call("postToolUse", "bash"), json!("asks about an end"));
        let denial = call("preToolUse", "bash");
        assert_eq!(denial.pointer("/output/permissionDecision"), Some(&json!("deny")));
        assert_eq!(
            text(&denial, "/output/permissionDecisionReason"),
            Some("the tool `bash` is not among this agent's tools: view, grep, glob, squad_status")
        );
        let mut told = || facts.try_recv().ok().map(|fact| testing::show(&fact));
        let told = [told(), told(), told(), told(), told()];
        let asked = |tool: &str| format!("before {tool} {{\"command\":\"ls\\nrm x\"}}");
        let expected = [asked("view"), asked("squad_status"), "durable".to_owned(), "denied bash: ls\nrm x".to_owned()];
        assert_eq!(told.into_iter().flatten().collect::<Vec<_>>(), expected);
    }

    /// The model learns of a call's end when the hook is answered, and the event comes only after that.
    #[test]
    fn a_hook_tells_the_end_of_a_call_before_the_model_knows() {
        let ended = |hook: &str, told: Value| {
            let (mut conversation, mut facts) = conversation(ToolChoice::All);
            let arguments = json!({ "command": "make" });
            let call = json!({ "toolCallId": "c1", "toolName": "bash", "arguments": arguments });
            conversation.handle_event(&event("tool.execution_start", call));
            let mut input = json!({ "toolName": "bash", "toolArgs": arguments });
            input.as_object_mut().expect("a map").extend(told.as_object().expect("a map").clone());
            let hook = HookCall { session_id: "s".into(), hook_type: hook.into(), input };
            let HookAnswer::After { mut answer, .. } = conversation.hook_called(&hook) else {
                panic!("it is no such call")
            };
            let complete = json!({ "toolCallId": "c1", "success": true, "result": { "content": "again" } });
            conversation.handle_event(&event("tool.execution_complete", complete));
            facts.try_recv().expect("its start");
            let end = testing::show(&facts.try_recv().expect("its end"));
            let Ok(Fact::Request(Request::AfterTool(_, _, reply))) = facts.try_recv() else {
                panic!("nobody is asked")
            };
            assert!(answer.try_recv().is_err(), "the model knows nothing yet");
            reply.send(None);
            assert!(answer.try_recv().is_ok() && facts.try_recv().is_err(), "its end is told once");
            end
        };
        let result = |text: &str, telemetry: Value| json!({ "toolResult": { "resultType": "success", "textResultForLlm": text, "toolTelemetry": telemetry } });
        let code = json!({ "metrics": { "exit_code": 3.0 } });
        for (hook, told, expected) in [
            ("postToolUse", result("out", code), "end c1 bash failed (3): out"),
            ("postToolUse", result("out", json!({})), "end c1 bash ok: out"),
            (
                "postToolUse",
                result("x\n<shellId: 0 completed with exit code 4>", Value::Null),
                "end c1 bash failed (4): x\n<shellId: 0 completed with exit code 4>",
            ),
            ("postToolUseFailure", json!({ "error": "no such file" }), "end c1 bash failed: no such file"),
        ] {
            assert_eq!(ended(hook, told.clone()), expected, "{told}");
        }
    }

    #[test]
    fn subjects_prefer_commands_and_paths() {
        assert_eq!(subject(&json!({ "description": "d", "command": "ls" })), "ls");
        assert_eq!(subject(&json!({ "n": 7, "m": 8 })), "7");
        assert_eq!(subject(&json!({})), "");
        assert_eq!(subject(&Value::Null), "");
        assert_eq!(subject(&json!("plain")), "plain");
    }
}
