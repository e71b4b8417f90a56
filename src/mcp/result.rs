//! What a tool gives back, as each revision of the protocol wants it.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ProtocolVersion, Resource};
use serde_json::Value;

pub(crate) struct ToolResult(CallToolResponse);

impl ToolResult {
    /// Structured, and the same as text for clients that know only that.
    pub(crate) fn of(value: Value) -> Self {
        Self(CallToolResult::structured(value).into())
    }

    /// In words.
    pub(crate) fn said(words: &str) -> Self {
        Self(CallToolResult::success(vec![ContentBlock::text(words)]).into())
    }

    /// What the model should mend.
    pub(crate) fn error(message: &str) -> Self {
        Self(CallToolResult::error(vec![ContentBlock::text(message)]).into())
    }

    /// Instead of a result: what is needed first, or where it will be found.
    pub(super) fn instead(response: impl Into<CallToolResponse>) -> Self {
        Self(response.into())
    }

    /// A link to a resource.
    pub(crate) fn link(&mut self, uri: &str, name: &str) {
        if let CallToolResponse::Complete(result) = &mut self.0 {
            let resource = Resource::new(uri, name).with_mime_type("text/plain");
            result.content.push(ContentBlock::ResourceLink(resource));
        }
    }

    pub(super) fn into_inner(self) -> CallToolResponse {
        self.0
    }

    pub(super) fn into_response(mut self, version: &ProtocolVersion) -> CallToolResponse {
        if let CallToolResponse::Complete(result) = &mut self.0
            && *version < ProtocolVersion::V_2025_06_18
        {
            result.structured_content = None;
            result.content.retain(|block| !matches!(block, ContentBlock::ResourceLink(_)));
        }
        self.0
    }
}
