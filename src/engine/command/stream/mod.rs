//! Parses the output of known command-line agents, one JSON object per line, into facts.

mod claude;
mod codex;
mod gemini;
mod opencode;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::engine::Fact;
use crate::model::{Usage, change_by};
use crate::settings::StreamKind;

/// Parses the output of one process.
#[derive(Debug)]
pub(in crate::engine) struct StreamParser {
    kind: StreamKind,
    pub(in crate::engine) state: StreamState,
}

/// What the output has contained so far.
#[derive(Debug, Default)]
pub(in crate::engine) struct StreamState {
    /// The engine's own id of the chat.
    pub(super) chat: Option<String>,
    /// The last complete message.
    pub(super) text: String,
    /// The message that is being streamed.
    deltas: String,
    /// Why the turn failed.
    pub(in crate::engine) error: Option<String>,
    /// When the account's quota is there again, in seconds since 1970, if the engine says that it is used up.
    pub(in crate::engine) resets_at: Option<i64>,
    /// The usage of the whole chat, if the engine reports totals.
    pub(super) total_usage: Option<Usage>,
    /// Open calls by id: the tool, and what the call acts on.
    calls: BTreeMap<String, (String, String)>,
    /// Ids of refused calls: an engine may report a refusal more than once.
    denied: BTreeSet<String>,
}

impl StreamParser {
    pub(in crate::engine) fn new(kind: StreamKind) -> Self {
        Self { kind, state: StreamState::default() }
    }

    /// The facts of a line. A line that is not JSON is a warning of the program or of a tool, and is ignored.
    pub(super) fn parse(&mut self, line: &str) -> Vec<Fact> {
        serde_json::from_str(line).map(|value| self.facts(&value)).unwrap_or_default()
    }

    pub(in crate::engine) fn facts(&mut self, value: &Value) -> Vec<Fact> {
        let mut facts = Vec::new();
        let state = &mut self.state;
        match self.kind {
            StreamKind::Text => {}
            StreamKind::Claude => claude::parse(value, state, &mut facts),
            StreamKind::Codex => codex::parse(value, state, &mut facts),
            StreamKind::Gemini => gemini::parse(value, state, &mut facts),
            StreamKind::Opencode => opencode::parse(value, state, &mut facts),
        }
        facts
    }

    /// The remaining facts when the process has ended.
    pub(super) fn finish(&mut self) -> Vec<Fact> {
        let mut facts = Vec::new();
        self.state.end_message(&mut facts);
        facts
    }
}

impl StreamState {
    /// Adds a complete message, unless it repeats the last one.
    fn add_message(&mut self, text: &str, facts: &mut Vec<Fact>) {
        if !text.trim().is_empty() && self.text != text {
            text.clone_into(&mut self.text);
            facts.push(Fact::Message(text.to_owned()));
        }
    }

    fn add_delta(&mut self, text: &str, facts: &mut Vec<Fact>) {
        self.deltas.push_str(text);
        facts.push(Fact::MessageDelta(text.to_owned()));
    }

    fn end_message(&mut self, facts: &mut Vec<Fact>) {
        let text = std::mem::take(&mut self.deltas);
        self.add_message(&text, facts);
    }

    fn tool_started(&mut self, call: &str, tool: &str, arguments: &Value, facts: &mut Vec<Fact>) {
        let (call, tool, detail) = (call.to_owned(), tool.to_owned(), detail(arguments));
        self.calls.insert(call.clone(), (tool.clone(), detail.clone()));
        facts.push(Fact::ToolStarted { call, tool, detail, writes: writes(arguments) });
    }

    /// The tool of an open call; empty if unknown.
    fn tool_of(&self, call: &str) -> &str {
        self.calls.get(call).map_or("", |(tool, _)| tool)
    }

    /// The engine has refused an open call.
    fn call_denied(&mut self, call: &str, reason: &str, facts: &mut Vec<Fact>) {
        let (tool, detail) = self.calls.get(call).cloned().unwrap_or_default();
        self.denied(call, (&tool, detail), reason, facts);
    }

    /// An empty `call`: its id is unknown.
    fn denied(&mut self, call: &str, (tool, detail): (&str, String), reason: &str, facts: &mut Vec<Fact>) {
        if call.is_empty() || self.denied.insert(call.to_owned()) {
            let (tool, reason) = (tool.to_owned(), reason.trim().to_owned());
            facts.push(Fact::Denied { access: change_by(&tool), tool, detail, reason });
        }
    }

    /// A call that squad has refused and told about already.
    pub(in crate::engine) fn note_refused(&mut self, call: &str) {
        self.denied.insert(call.to_owned());
    }

    fn set_chat(&mut self, id: Option<&str>) {
        if let Some(id) = id.filter(|id| super::chats::is_chat_id(id)) {
            self.chat = Some(id.to_owned());
        }
    }
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// What a call acts on: its command or path, or else all its arguments.
fn detail(arguments: &Value) -> String {
    let names = ["command", "file_path", "filePath", "absolute_path", "path", "pattern", "query", "url", "prompt"];
    let named = names.iter().find_map(|name| arguments.get(name)?.as_str());
    named.map_or_else(|| if arguments.is_null() { String::new() } else { arguments.to_string() }, str::to_owned)
}

/// The file that a call writes, and the lines it adds.
fn writes(arguments: &Value) -> Option<(String, String)> {
    let any = |names: &[&str]| names.iter().find_map(|name| arguments.get(name)?.as_str());
    let path = any(&["file_path", "filePath", "absolute_path", "path"])?;
    let new = any(&["content", "new_string", "newString"])?;
    let old = any(&["old_string", "oldString"]).unwrap_or_default();
    Some((path.to_owned(), crate::engine::added(old, new)))
}

/// A text, or the joined texts of a list of parts.
pub(in crate::engine) fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
