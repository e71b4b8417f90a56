//! The forms of the messages that engines exchange with squad on their standard streams.

use serde_json::{Value, json};
use tokio::io::AsyncBufRead;

use super::frame::{self, FrameError};

/// JSON-RPC's code for an unknown method.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// JSON-RPC 2.0 in `Content-Length` frames: the Copilot CLI.
    Framed,
    /// JSON-RPC without its version, a message a line: Codex.
    Lines,
    /// Claude Code's control protocol, a message a line. Whatever is not of the protocol is a notification, whose method is
    /// its `type`.
    Control,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Answer {
        id: Value,
        /// An error has a code and a message.
        result: Result<Value, (i64, String)>,
    },
}

impl Dialect {
    /// The next message's bytes; `None` at the end of the stream.
    pub(super) async fn read(self, reader: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Vec<u8>>, FrameError> {
        match self {
            Self::Framed => frame::read(reader).await,
            Self::Lines | Self::Control => frame::read_line(reader).await,
        }
    }

    pub(super) fn frame(self, message: &Value) -> Vec<u8> {
        match self {
            Self::Framed => frame::encode(message),
            Self::Lines | Self::Control => frame::encode_line(message),
        }
    }

    pub(super) fn request(self, id: u64, method: &str, params: &Value) -> Value {
        match self {
            Self::Framed => json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
            Self::Lines => json!({ "id": id, "method": method, "params": params }),
            Self::Control => {
                let mut request = params.as_object().cloned().unwrap_or_default();
                request.insert("subtype".to_owned(), method.into());
                json!({ "type": "control_request", "request_id": id.to_string(), "request": request })
            }
        }
    }

    pub(super) fn answer(self, id: &Value, result: Result<Value, (i64, &str)>) -> Value {
        match (self, result) {
            (Self::Framed, Ok(result)) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            (Self::Framed, Err((code, message))) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
            (Self::Lines, Ok(result)) => json!({ "id": id, "result": result }),
            (Self::Lines, Err((code, message))) => json!({ "id": id, "error": { "code": code, "message": message } }),
            (Self::Control, Ok(result)) => {
                let response = json!({ "subtype": "success", "request_id": id, "response": result });
                json!({ "type": "control_response", "response": response })
            }
            (Self::Control, Err((_, message))) => {
                let response = json!({ "subtype": "error", "request_id": id, "error": message });
                json!({ "type": "control_response", "response": response })
            }
        }
    }

    /// `None`: it is neither call nor answer.
    pub(super) fn parse(self, mut message: Value) -> Option<Message> {
        let kind = message["type"].as_str().map(str::to_owned);
        let mut take = |pointer: &str| message.pointer_mut(pointer).map(Value::take);
        match self {
            Self::Framed | Self::Lines => {
                let (id, method) = (take("/id").filter(|id| !id.is_null()), take("/method"));
                match (id, method) {
                    (id, Some(Value::String(method))) => {
                        let params = take("/params").unwrap_or_default();
                        Some(match id {
                            Some(id) => Message::Request { id, method, params },
                            None => Message::Notification { method, params },
                        })
                    }
                    (Some(id), _) => {
                        let error = take("/error").filter(|error| !error.is_null());
                        let result = match error {
                            Some(error) => Err((error["code"].as_i64().unwrap_or(0), text(&error["message"]))),
                            None => Ok(take("/result").unwrap_or_default()),
                        };
                        Some(Message::Answer { id, result })
                    }
                    (None, _) => None,
                }
            }
            Self::Control => match kind?.as_str() {
                "control_request" => {
                    let (id, params) = (take("/request_id")?, take("/request")?);
                    let method = text(&params["subtype"]);
                    Some(Message::Request { id, method, params })
                }
                "control_response" => {
                    let id = take("/response/request_id")?;
                    let result = match take("/response/subtype").as_ref().and_then(Value::as_str) {
                        Some("success") => Ok(take("/response/response").unwrap_or_default()),
                        _ => Err((0, text(&take("/response/error").unwrap_or_default()))),
                    };
                    Some(Message::Answer { id, result })
                }
                kind => Some(Message::Notification { method: kind.to_owned(), params: message }),
            },
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_says_the_other_understands() {
        for dialect in [Dialect::Framed, Dialect::Lines, Dialect::Control] {
            let params = json!({ "a": 1 });
            let Some(Message::Request { id, method, params: read }) = dialect.parse(dialect.request(7, "go", &params))
            else {
                panic!("{dialect:?}")
            };
            assert_eq!((method.as_str(), &read["a"]), ("go", &json!(1)), "{dialect:?}");
            let answer = dialect.parse(dialect.answer(&id, Ok(json!("well"))));
            assert_eq!(answer, Some(Message::Answer { id: id.clone(), result: Ok(json!("well")) }));
            let Some(Message::Answer { result: Err((_, why)), .. }) =
                dialect.parse(dialect.answer(&id, Err((-3, "no"))))
            else {
                panic!("{dialect:?}")
            };
            assert_eq!(why, "no");
            for nonsense in
                [json!({}), json!([]), json!(null), json!({ "type": 1 }), json!({ "type": "control_request" })]
            {
                assert_eq!(dialect.parse(nonsense.clone()), None, "{dialect:?} {nonsense}");
            }
        }
        let params = json!({ "type": "assistant", "message": {} });
        let method = "assistant".to_owned();
        assert_eq!(Dialect::Control.parse(params.clone()), Some(Message::Notification { method, params }));
    }
}
