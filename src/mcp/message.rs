//! JSON-RPC 2.0: what comes in, and what is wrong with it.

use serde_json::{Map, Value, json};

pub(super) type Object = Map<String, Value>;

/// A message of the client's.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Value,
        method: String,
        params: Object,
    },
    Notification {
        method: String,
        params: Object,
    },
    /// The answer to a question of ours.
    Response {
        id: Value,
        result: Option<Value>,
    },
    /// Not a message. The id is told where it can be read.
    Bad {
        id: Value,
        fault: Fault,
    },
}

/// An error of the protocol. What goes wrong inside a tool is a result of the tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl Fault {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn no_json(message: impl Into<String>) -> Self {
        Self::new(-32700, message)
    }

    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    pub(super) fn no_method(method: &str) -> Self {
        Self::new(-32601, format!("there is no method `{method}`"))
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, message)
    }

    /// Clients up to 2025-11-25 know a code of its own for it; it is set by whoever knows the version.
    pub(crate) fn no_resource(uri: &str) -> Self {
        Self { data: Some(json!({"uri": uri})), ..Self::new(NO_RESOURCE, "there is no such resource") }
    }

    pub(super) fn version(asked: &str, supported: Vec<Value>) -> Self {
        let data = json!({"requested": asked, "supported": supported});
        Self { data: Some(data), ..Self::new(-32022, "unsupported protocol version") }
    }

    pub(super) fn in_stateless(mut self) -> Self {
        if self.code == NO_RESOURCE {
            self.code = -32602;
        }
        self
    }

    pub(super) fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

const NO_RESOURCE: i32 = -32002;

impl Message {
    /// One message, or several of a batch, which clients of 2025-03-26 may send.
    pub(super) fn read(line: &[u8]) -> (Vec<Self>, bool) {
        match serde_json::from_slice::<Value>(line) {
            Err(error) => (vec![Self::bad(Value::Null, Fault::no_json(format!("not JSON: {error}")))], false),
            Ok(Value::Array(all)) if all.is_empty() => {
                (vec![Self::bad(Value::Null, Fault::invalid_request("an empty batch"))], false)
            }
            Ok(Value::Array(all)) => (all.into_iter().map(Self::of).collect(), true),
            Ok(one) => (vec![Self::of(one)], false),
        }
    }

    fn bad(id: Value, fault: Fault) -> Self {
        Self::Bad { id, fault }
    }

    fn of(value: Value) -> Self {
        let Value::Object(mut object) = value else {
            return Self::bad(Value::Null, Fault::invalid_request("a message is a JSON object"));
        };
        let id = object.remove("id");
        let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
        let known = id.clone().filter(is_id).unwrap_or(Value::Null);
        if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Self::bad(known, Fault::invalid_request("`jsonrpc` is not \"2.0\""));
        }
        if id.as_ref().is_some_and(|id| !is_id(id)) {
            return Self::bad(Value::Null, Fault::invalid_request("`id` is neither a text nor a whole number"));
        }
        let method = match object.remove("method") {
            Some(Value::String(method)) => method,
            None if known != Value::Null && (object.contains_key("result") || object.contains_key("error")) => {
                return Self::Response { id: known, result: object.remove("result") };
            }
            _ => return Self::bad(known, Fault::invalid_request("`method` is missing")),
        };
        let params = match object.remove("params") {
            None => Object::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Self::bad(known, Fault::invalid_params("`params` is not an object")),
        };
        match id {
            Some(id) => Self::Request { id, method, params },
            None => Self::Notification { method, params },
        }
    }
}
