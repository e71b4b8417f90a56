//! The reader's side of one session: turns the program's messages into facts. No I/O.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;

use super::tools::Tool;
use crate::engine::command::StreamParser;
use crate::engine::{Fact, Reset, ToolCall, ToolResult};
use crate::model::Usage;
use crate::settings::StreamKind;

pub(super) struct Conversation {
    facts: mpsc::UnboundedSender<Fact>,
    session: String,
    /// Of this turn.
    parser: StreamParser,
    /// Running calls by id.
    calls: HashMap<String, ToolCall>,
    /// Results of calls that squad handled itself instead of writing their files.
    substitutes: HashMap<String, ToolResult>,
    turn: Option<Turn>,
    /// Messages that were sent and that the model has not got yet. Such a one begins a turn when it comes behind the end of
    /// another.
    queued: BTreeSet<String>,
    /// Whether the program says what became of messages.
    reports_queue: bool,
    /// US dollars that its process has counted so far, or those before it.
    cost: f64,
}

#[derive(Default)]
struct Turn {
    is_aborted: bool,
    /// Of the model call that goes on.
    started: Usage,
    /// The model calls that were reported.
    reported: Usage,
}

impl Conversation {
    pub(super) fn new(session: &str) -> (Self, mpsc::UnboundedReceiver<Fact>) {
        let (facts, receiver) = mpsc::unbounded_channel();
        let (calls, substitutes, turn, queued, reports_queue, cost) = Default::default();
        let (session, parser) = (session.to_owned(), StreamParser::new(StreamKind::Claude));
        (Self { facts, session, parser, calls, substitutes, turn, queued, reports_queue, cost }, receiver)
    }

    pub(super) fn report(&self, fact: Fact) {
        // A dropped session needs no more facts.
        let _ = self.facts.send(fact);
    }

    pub(super) fn is_working(&self) -> bool {
        self.turn.is_some()
    }

    pub(super) fn begin_turn(&mut self) {
        self.parser = StreamParser::new(StreamKind::Claude);
        self.turn = Some(Turn::default());
    }

    pub(super) fn sent(&mut self, message: String) {
        self.queued.insert(message);
    }

    pub(super) fn abort_turn(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.is_aborted = true;
        }
    }

    /// Ends the running turn, if any, with this fact.
    pub(super) fn end_turn(&mut self, last: Fact) {
        if self.turn.take().is_some() {
            self.calls.clear();
            self.substitutes.clear();
            self.report(last);
        }
    }

    /// A process begins, in a session that has cost this much.
    pub(super) fn begin_process(&mut self, cost: f64) {
        self.queued.clear();
        (self.reports_queue, self.cost) = (false, cost);
    }

    pub(super) fn has_queued(&self) -> bool {
        self.reports_queue && !self.queued.is_empty()
    }

    /// Squad has refused a call, or made it itself with this result.
    pub(super) fn refused(&mut self, call: &str, substitute: Option<ToolResult>) {
        self.parser.state.note_refused(call);
        if let Some(result) = substitute {
            self.substitutes.insert(call.to_owned(), result);
        }
    }

    pub(super) fn handle(&mut self, kind: &str, message: &Value) {
        if kind == "command_lifecycle" {
            self.reports_queue = true;
            if text(message, "/state") != Some("queued") {
                self.queued.remove(text(message, "/command_uuid").unwrap_or_default());
            }
        }
        // Without a turn, nobody waits for it.
        if self.turn.is_none() {
            return;
        }
        match kind {
            // A sub-agent's messages are not its agent's.
            _ if text(message, "/parent_tool_use_id").is_some() => self.report(Fact::Alive),
            "stream_event" => self.streamed(&message["event"]),
            "system" if text(message, "/subtype") == Some("compact_boundary") => self.compacted(message),
            "system" if text(message, "/subtype") == Some("init") => self.begun(message),
            "assistant" | "user" | "system" | "rate_limit_event" => self.parsed(message),
            "result" => self.result(message),
            _ => self.report(Fact::Alive),
        }
    }

    fn streamed(&mut self, event: &Value) {
        let Some(turn) = &mut self.turn else { return };
        match text(event, "/type").unwrap_or_default() {
            "content_block_delta" => match text(event, "/delta/text").filter(|text| !text.is_empty()) {
                Some(text) => self.report(Fact::MessageDelta(text.to_owned())),
                None => self.report(Fact::Alive),
            },
            "message_start" => turn.started = tokens(&event["message"]["usage"]),
            "message_delta" => {
                let last = tokens(&event["usage"]);
                let usage = Usage {
                    output_tokens: last.output_tokens,
                    reasoning_tokens: last.reasoning_tokens,
                    ..std::mem::take(&mut turn.started)
                };
                turn.reported += &usage;
                self.report(Fact::Usage(usage));
            }
            _ => self.report(Fact::Alive),
        }
    }

    fn compacted(&self, message: &Value) {
        let count = |pointer| message.pointer(pointer).and_then(Value::as_u64);
        self.report(Fact::Shortened {
            session: self.session.clone(),
            is_summed_up: true,
            tokens_before: count("/compact_metadata/pre_tokens").unwrap_or(0),
            tokens_after: count("/compact_metadata/post_tokens"),
        });
    }

    /// Of a server that has failed, the tools are missing.
    fn begun(&self, message: &Value) {
        let servers = message["mcp_servers"].as_array().into_iter().flatten();
        for server in servers.filter(|server| server["status"] == "failed") {
            let name = text(server, "/name").unwrap_or("?");
            self.report(Fact::Warning(format!("the MCP server `{name}` cannot be used: it does not answer")));
        }
        self.report(Fact::Alive);
    }

    fn parsed(&mut self, message: &Value) {
        let facts = self.parser.facts(message);
        if facts.is_empty() {
            self.report(Fact::Alive);
        }
        let parts = message.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
        for part in parts.filter(|part| part["type"] == "tool_use") {
            let (Some(call), Some(tool)) = (text(part, "/id"), text(part, "/name")) else { continue };
            let tool = Tool::parse(tool).shown();
            let (call, arguments) = (call.to_owned(), part["input"].clone());
            self.calls.insert(call.clone(), ToolCall { call, tool, arguments });
        }
        facts.into_iter().for_each(|fact| self.told(fact));
    }

    /// Reports what the parser has found, in squad's names. A hook may have told a call's end already.
    fn told(&mut self, fact: Fact) {
        let fact = match fact {
            Fact::ToolStarted { call, tool, detail, writes } => {
                Fact::ToolStarted { call, tool: Tool::parse(&tool).shown(), detail, writes }
            }
            Fact::Denied { access, tool, detail, reason } => {
                Fact::Denied { access, tool: Tool::parse(&tool).shown(), detail, reason }
            }
            Fact::ToolCompleted { call, ok, exit_code, detail, .. } => {
                drop(self.tool_ended(&call, ToolResult { ok, text: detail }, exit_code));
                return;
            }
            fact => fact,
        };
        self.report(fact);
    }

    /// Reports a call's end, once.
    pub(super) fn tool_ended(
        &mut self,
        call: &str,
        result: ToolResult,
        exit_code: Option<i64>,
    ) -> Option<(ToolCall, ToolResult)> {
        let ended = self.calls.remove(call)?;
        let result = self.substitutes.remove(call).unwrap_or(result);
        self.report(Fact::ToolCompleted {
            call: call.to_owned(),
            tool: ended.tool.clone(),
            ok: result.ok,
            exit_code,
            detail: result.text.clone(),
        });
        Some((ended, result))
    }

    fn result(&mut self, message: &Value) {
        let facts = self.parser.facts(message);
        let Some(turn) = &mut self.turn else { return };
        let reported = std::mem::take(&mut turn.reported);
        let total = message.get("total_cost_usd").and_then(Value::as_f64);
        let before = self.cost;
        self.cost = total.unwrap_or(before);
        for fact in facts {
            self.told(match fact {
                // What was reported of the model calls, and what the process has cost before, is not counted twice.
                Fact::Usage(usage) => Fact::Usage(Usage {
                    input_tokens: usage.input_tokens.saturating_sub(reported.input_tokens),
                    output_tokens: usage.output_tokens.saturating_sub(reported.output_tokens),
                    cache_read_tokens: usage.cache_read_tokens.saturating_sub(reported.cache_read_tokens),
                    cache_write_tokens: usage.cache_write_tokens.saturating_sub(reported.cache_write_tokens),
                    reasoning_tokens: usage.reasoning_tokens.saturating_sub(reported.reasoning_tokens),
                    cost_usd: total.map(|total| (total - before).max(0.0)),
                    ..usage
                }),
                fact => fact,
            });
        }
        let error = self.parser.state.error.take();
        let is_aborted = self.turn.as_ref().is_some_and(|turn| turn.is_aborted);
        if self.has_queued() && !is_aborted {
            // A message that came behind the model's last words begins the next part of the turn.
            return self.report(error.map_or(Fact::Alive, Fact::Warning));
        }
        let resets_at = self.parser.state.resets_at.and_then(|second| Timestamp::from_second(second).ok());
        self.end_turn(match (error, resets_at) {
            (_, _) if is_aborted => Fact::Failed("the turn was aborted".to_owned()),
            (None, _) => Fact::Idle,
            (Some(reason), Some(at)) => Fact::NoQuota { reason, reset: Some(Reset::At(at)) },
            (Some(reason), None) => Fact::of_failure(reason),
        });
    }
}

fn tokens(usage: &Value) -> Usage {
    let count = |pointer| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let usage = Usage {
        input_tokens: count("/input_tokens"),
        output_tokens: count("/output_tokens"),
        cache_read_tokens: count("/cache_read_input_tokens"),
        cache_write_tokens: count("/cache_creation_input_tokens"),
        reasoning_tokens: count("/output_tokens_details/thinking_tokens"),
        ..Usage::default()
    };
    usage.with_cached_input()
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}
