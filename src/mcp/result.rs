//! Results, as each revision of the protocol wants them.

use serde_json::{Value, json};

use super::version::Version;

/// What a tool gives back.
pub(crate) struct ToolResult {
    content: Vec<Value>,
    structured: Option<Value>,
    is_error: bool,
}

/// A piece of text in a result.
pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

impl ToolResult {
    /// Structured, and the same as text for clients that know only that.
    pub(crate) fn of(value: Value) -> Self {
        Self { content: vec![text(&value.to_string())], structured: Some(value), is_error: false }
    }

    /// In words.
    pub(crate) fn said(words: &str) -> Self {
        Self { content: vec![text(words)], structured: None, is_error: false }
    }

    /// What the model should mend.
    pub(crate) fn error(message: &str) -> Self {
        Self { content: vec![text(message)], structured: None, is_error: true }
    }

    /// A link to a resource, where the client knows such.
    pub(crate) fn link(&mut self, version: Version, uri: &str, name: &str) {
        if version.has_links() {
            self.content.push(json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": "text/plain"}));
        }
    }

    pub(super) fn into_json(self, version: Version) -> Value {
        let mut result = json!({"content": self.content, "isError": self.is_error});
        if let Some(value) = self.structured.filter(|_| version.has_links()) {
            result["structuredContent"] = value;
        }
        result
    }
}

/// A result with what its revision adds. `is_kept`: of a kind that clients may keep, which must say for how long. The
/// team's files and the ledger may change at any moment.
pub(super) fn complete(mut result: Value, version: Version, is_kept: bool) -> Value {
    if version.is_stateless() {
        result["resultType"] = "complete".into();
        if is_kept {
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
    }
    result
}
