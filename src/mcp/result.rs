//! The result of a tool, adapted to the client's revision of the protocol.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ProtocolVersion, Resource};
use serde_json::Value;

pub(crate) struct ToolResult(CallToolResponse);

impl ToolResult {
    /// JSON, also as text for clients that read only text.
    pub(crate) fn structured(value: Value) -> Self {
        Self(CallToolResult::structured(value).into())
    }

    pub(crate) fn text(text: &str) -> Self {
        Self(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    /// An error for the model to act on.
    pub(crate) fn error(message: &str) -> Self {
        Self(CallToolResult::error(vec![ContentBlock::text(message)]).into())
    }

    /// A response other than a result: a request for input, or a task.
    pub(super) fn from_response(response: impl Into<CallToolResponse>) -> Self {
        Self(response.into())
    }

    /// Appends a link to a plain-text resource.
    pub(crate) fn link(&mut self, uri: &str, name: &str) {
        if let CallToolResponse::Complete(result) = &mut self.0 {
            let resource = Resource::new(uri, name).with_mime_type("text/plain");
            result.content.push(ContentBlock::ResourceLink(resource));
        }
    }

    pub(super) fn into_inner(self) -> CallToolResponse {
        self.0
    }

    /// Leaves out what the revision does not have.
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
