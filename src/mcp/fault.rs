use rmcp::ErrorData;
use serde_json::json;

/// A protocol error. The failure of a tool is a result instead.
#[derive(Debug)]
pub(crate) struct Fault(pub(super) ErrorData);

impl Fault {
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self(ErrorData::invalid_params(message.into(), None))
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self(ErrorData::internal_error(message.into(), None))
    }

    pub(crate) fn no_resource(uri: &str) -> Self {
        Self(ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri}))))
    }
}
