//! What known command-line agents print, one JSON object a line, as facts.

mod claude;
mod codex;
mod gemini;
mod opencode;

use serde_json::Value;

use crate::engine::Fact;
use crate::model::Usage;
use crate::settings::StreamKind;

/// Reads the output of one process.
#[derive(Debug)]
pub(super) struct Reader {
    kind: StreamKind,
    pub(super) state: StreamState,
}

/// What is known from it so far.
#[derive(Debug, Default)]
pub(super) struct StreamState {
    /// The engine's own id of the chat.
    pub(super) chat: Option<String>,
    /// The last whole message.
    pub(super) text: String,
    /// A message that comes in pieces.
    pieces: String,
    /// That the turn went wrong.
    pub(super) error: Option<String>,
    /// Used up by the chat as a whole, where it is counted so.
    pub(super) counted: Option<Usage>,
}

impl Reader {
    pub(super) fn new(kind: StreamKind) -> Self {
        Self { kind, state: StreamState::default() }
    }

    /// What a line says. What is no JSON is no line of the stream: a warning of the program's, or of a tool of its.
    pub(super) fn line(&mut self, line: &str) -> Vec<Fact> {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        let mut facts = Vec::new();
        let state = &mut self.state;
        match self.kind {
            StreamKind::Text => {}
            StreamKind::Claude => claude::read(&value, state, &mut facts),
            StreamKind::Codex => codex::read(&value, state, &mut facts),
            StreamKind::Gemini => gemini::read(&value, state, &mut facts),
            StreamKind::Opencode => opencode::read(&value, state, &mut facts),
        }
        facts
    }

    /// What is left when the process has ended.
    pub(super) fn end(&mut self) -> Vec<Fact> {
        let mut facts = Vec::new();
        self.state.end_pieces(&mut facts);
        facts
    }
}

impl StreamState {
    /// A whole message, said once.
    fn say(&mut self, text: &str, facts: &mut Vec<Fact>) {
        if !text.trim().is_empty() && self.text != text {
            text.clone_into(&mut self.text);
            facts.push(Fact::Message(text.to_owned()));
        }
    }

    fn piece(&mut self, text: &str, facts: &mut Vec<Fact>) {
        self.pieces.push_str(text);
        facts.push(Fact::MessageDelta(text.to_owned()));
    }

    fn end_pieces(&mut self, facts: &mut Vec<Fact>) {
        let text = std::mem::take(&mut self.pieces);
        self.say(&text, facts);
    }

    fn chat(&mut self, id: Option<&str>) {
        if let Some(id) = id.filter(|id| super::chats::is_id(id)) {
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

/// What a call is about: its command, its path, or else all of its arguments.
fn detail(arguments: &Value) -> String {
    let names = ["command", "file_path", "filePath", "absolute_path", "path", "pattern", "query", "url", "prompt"];
    let named = names.iter().find_map(|name| arguments.get(name)?.as_str());
    named.map_or_else(|| if arguments.is_null() { String::new() } else { arguments.to_string() }, str::to_owned)
}

/// The file that a call writes, and the lines it adds there.
fn writes(arguments: &Value) -> Option<(String, String)> {
    let any = |names: &[&str]| names.iter().find_map(|name| arguments.get(name)?.as_str());
    let path = any(&["file_path", "filePath", "absolute_path", "path"])?;
    let new = any(&["content", "new_string", "newString"])?;
    let old = any(&["old_string", "oldString"]).unwrap_or_default();
    Some((path.to_owned(), crate::engine::added(old, new)))
}

/// A text, or the texts of a list of parts.
fn content(value: &Value) -> String {
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
