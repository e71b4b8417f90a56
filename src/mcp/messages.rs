//! Parses JSON-RPC 2.0 messages, and makes the error responses to invalid ones.

use rmcp::model::{ClientJsonRpcMessage, ErrorData};
use serde_json::{Value, json};

/// The message of a line, or the error response to an invalid one.
pub(super) fn parse(line: &[u8]) -> Result<ClientJsonRpcMessage, Value> {
    match serde_json::from_slice::<Value>(line) {
        Err(error) => Err(error_response(Value::Null, ErrorData::parse_error(format!("invalid JSON: {error}"), None))),
        // Revision 2025-03-26 wants batches received, the ones before and after it know none.
        Ok(Value::Array(_)) => Err(invalid_request(Value::Null, "batches are not supported; send each message alone")),
        Ok(value) => parse_message(value),
    }
}

/// The response to a line longer than `max_bytes`.
pub(super) fn too_long(max_bytes: usize) -> Value {
    error_response(Value::Null, ErrorData::parse_error(format!("the line is longer than {max_bytes} bytes"), None))
}

pub(super) fn invalid_request(id: Value, reason: &'static str) -> Value {
    error_response(id, ErrorData::invalid_request(reason, None))
}

/// `id` is null if the request has no valid one.
fn error_response(id: Value, error: ErrorData) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

fn parse_message(mut value: Value) -> Result<ClientJsonRpcMessage, Value> {
    let is_id = |id: &Value| id.is_string() || id.is_i64();
    let Some(object) = value.as_object_mut() else {
        return Err(invalid_request(Value::Null, "the message is not a JSON object"));
    };
    let raw_id = object.get("id").cloned();
    let id = raw_id.clone().filter(is_id).unwrap_or(Value::Null);
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid_request(id, "`jsonrpc` is not \"2.0\""));
    }
    if raw_id.as_ref().is_some_and(|id| !is_id(id)) {
        return Err(invalid_request(Value::Null, "`id` is neither a string nor an integer"));
    }
    let is_response = !id.is_null() && (object.contains_key("result") || object.contains_key("error"));
    if !is_response && !object.get("method").is_some_and(Value::is_string) {
        return Err(invalid_request(id, "`method` is missing"));
    }
    // Some clients write it where they have none.
    if object.get("params").is_some_and(Value::is_null) {
        object.shift_remove("params");
    }
    if object.get("params").is_some_and(|params| !params.is_object()) {
        return Err(error_response(id, ErrorData::invalid_params("`params` is not an object", None)));
    }
    if object.get("method").and_then(Value::as_str) == Some("initialize")
        && let Some(params) = object.get_mut("params").and_then(Value::as_object_mut)
    {
        // Some clients omit these required fields.
        params.entry("clientInfo").or_insert_with(|| json!({"name": "", "version": ""}));
        params.entry("capabilities").or_insert_with(|| json!({}));
    }
    serde_json::from_value(value).map_err(|_| invalid_request(id, "this is not a message of the protocol"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_messages_get_an_error_response() {
        let error = |line: &str| match parse(line.as_bytes()) {
            Err(response) => (response["id"].clone(), response["error"]["code"].clone()),
            Ok(message) => panic!("{line}: {message:?}"),
        };
        assert!(parse(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#).is_ok());
        assert_eq!(error("{"), (Value::Null, json!(-32700)));
        assert_eq!(error(&"[".repeat(100_000)), (Value::Null, json!(-32700)));
        assert_eq!(error("7"), (Value::Null, json!(-32600)));
        assert_eq!(error("[]"), (Value::Null, json!(-32600)));
        assert_eq!(error(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#), (Value::Null, json!(-32600)));
        assert_eq!(error(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), (json!(1), json!(-32600)));
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), (Value::Null, json!(-32600)));
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), (Value::Null, json!(-32600)));
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":"a","method":7}"#), (json!("a"), json!(-32600)));
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}"#), (json!("a"), json!(-32602)));
    }
}
