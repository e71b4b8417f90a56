//! Lines to messages: JSON-RPC 2.0, and what is wrong with it.

use rmcp::model::{ClientJsonRpcMessage, ErrorData};
use serde_json::{Value, json};

/// What a line holds: each message, or the answer that it is none.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) all: Vec<Result<ClientJsonRpcMessage, Value>>,
    /// Clients of 2025-03-26 may send several in a list, and are answered with one.
    pub(super) is_batch: bool,
}

pub(super) fn read(line: &[u8]) -> Messages {
    let one = |message| Messages { all: vec![message], is_batch: false };
    match serde_json::from_slice::<Value>(line) {
        Err(error) => {
            one(Err(refusal(Value::Null, ErrorData::parse_error(format!("this is not JSON: {error}"), None))))
        }
        Ok(Value::Array(all)) if all.is_empty() => one(Err(invalid(Value::Null, "an empty batch"))),
        Ok(Value::Array(all)) => Messages { all: all.into_iter().map(message).collect(), is_batch: true },
        Ok(value) => one(message(value)),
    }
}

/// The answer to a line that is too long to be read.
pub(super) fn too_long(most: usize) -> Value {
    refusal(Value::Null, ErrorData::parse_error(format!("a line is longer than {most} bytes"), None))
}

pub(super) fn invalid(id: Value, reason: &'static str) -> Value {
    refusal(id, ErrorData::invalid_request(reason, None))
}

/// The id is told where it can be read.
fn refusal(id: Value, error: ErrorData) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

fn message(mut value: Value) -> Result<ClientJsonRpcMessage, Value> {
    let is_id = |id: &Value| id.is_string() || id.is_i64();
    let Some(object) = value.as_object_mut() else {
        return Err(invalid(Value::Null, "a message is a JSON object"));
    };
    let given = object.get("id").cloned();
    let id = given.clone().filter(is_id).unwrap_or(Value::Null);
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(id, "`jsonrpc` is not \"2.0\""));
    }
    if given.as_ref().is_some_and(|id| !is_id(id)) {
        return Err(invalid(Value::Null, "`id` is neither a text nor a whole number"));
    }
    let is_answer = !id.is_null() && (object.contains_key("result") || object.contains_key("error"));
    if !is_answer && !object.get("method").is_some_and(Value::is_string) {
        return Err(invalid(id, "`method` is missing"));
    }
    if object.get("params").is_some_and(|params| !params.is_object()) {
        return Err(refusal(id, ErrorData::invalid_params("`params` is not an object", None)));
    }
    if object.get("method").and_then(Value::as_str) == Some("initialize")
        && let Some(params) = object.get_mut("params").and_then(Value::as_object_mut)
    {
        // Some clients do not say who they are.
        params.entry("clientInfo").or_insert_with(|| json!({"name": "", "version": ""}));
        params.entry("capabilities").or_insert_with(|| json!({}));
    }
    serde_json::from_value(value).map_err(|_| invalid(id, "this is no message of the protocol"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_told_why() {
        let fault = |line: &str| match read(line.as_bytes()).all.remove(0) {
            Err(answer) => (answer["id"].clone(), answer["error"]["code"].clone()),
            Ok(message) => panic!("{line}: {message:?}"),
        };
        assert_eq!(fault("{"), (Value::Null, json!(-32700)));
        assert_eq!(fault(&"[".repeat(100_000)), (Value::Null, json!(-32700)));
        assert_eq!(fault("7"), (Value::Null, json!(-32600)));
        assert_eq!(fault("[]"), (Value::Null, json!(-32600)));
        assert_eq!(fault(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), (json!(1), json!(-32600)));
        assert_eq!(fault(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), (Value::Null, json!(-32600)));
        assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), (Value::Null, json!(-32600)));
        assert_eq!(fault(r#"{"jsonrpc":"2.0","id":"a","method":7}"#), (json!("a"), json!(-32600)));
        assert_eq!(fault(r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}"#), (json!("a"), json!(-32602)));
    }
}
