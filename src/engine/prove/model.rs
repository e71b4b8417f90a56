//! A model on loopback that does what its prompt says: [`Turn`]s, in each engine's own tools.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use super::turn::{Deed, Turn};
use super::wires::{self, Wire};
use crate::engine::spawn;

/// Bytes of a request.
const MOST: usize = 32 << 20;

/// Serves until it is dropped.
pub(crate) struct LoopbackModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

#[derive(Default)]
struct Shared {
    /// The bodies of the requests for an answer.
    requests: Mutex<Vec<String>>,
    ids: AtomicU64,
}

impl LoopbackModel {
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (address, shared) = (listener.local_addr()?, Arc::new(Shared::default()));
        let serving = Arc::clone(&shared);
        let accepting = spawn(async move {
            // It fails when there is no free file descriptor; then no engine works either.
            while let Ok((stream, _)) = listener.accept().await {
                let serving = Arc::clone(&serving);
                spawn(async move {
                    let service = service_fn(|request| async { Ok::<_, Infallible>(serving.receive(request).await) });
                    // A client that goes away is how an engine ends that was killed.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { address, shared, accepting: accepting.abort_handle() })
    }

    /// Without a path.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How often it was asked.
    pub(super) fn asked(&self) -> usize {
        self.shared.requests.lock().len()
    }

    /// Whether it was told this, since it had been asked so often.
    pub(super) fn was_told(&self, text: &str, since: usize) -> bool {
        self.shared.requests.lock().iter().skip(since).any(|request| request.contains(text))
    }
}

impl Drop for LoopbackModel {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    async fn receive(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        match Wire::of(path) {
            _ if parts.method == Method::HEAD => respond(StatusCode::OK, "text/plain", String::new()),
            _ if path.ends_with("/models") => {
                json_answer(&json!({ "object": "list", "data": [{ "id": MODEL, "object": "model" }] }))
            }
            _ if path.ends_with("/count_tokens") => json_answer(&json!({ "input_tokens": 100 })),
            Some(wire) => {
                let body = Limited::new(body, MOST).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                self.requests.lock().push(String::from_utf8_lossy(&body).into_owned());
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                let id = self.ids.fetch_add(1, Ordering::Relaxed);
                let act = act(wire, &body);
                match wire.whole(&body, &act, id) {
                    Some(whole) => json_answer(&whole),
                    None => respond(StatusCode::OK, "text/event-stream", wire.events(&body, &act, 1, id).concat()),
                }
            }
            None => respond(StatusCode::NOT_FOUND, "application/json", "{}".to_owned()),
        }
    }
}

/// The only model that it has.
pub(crate) const MODEL: &str = "squad-proof";

fn json_answer(value: &Value) -> Response<Full<Bytes>> {
    respond(StatusCode::OK, "application/json", value.to_string())
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

/// What the model does next: the deed of the last turn that it was given, by how often it has answered since.
fn act(wire: Wire, body: &Value) -> wires::Act {
    let messages = wire.messages(body);
    let turn_of = |message: &Value| (message["role"] == "user").then(|| Turn::of_prompt(&wires::text(message)))?;
    let found = messages.iter().enumerate().rev().find_map(|(at, message)| Some((at, turn_of(message)?)));
    let over = || wires::Act::Say("There is nothing to do.".to_owned());
    let Some((at, turn)) = found else { return over() };
    let answered = messages[at..].iter().filter(|message| message["role"] == "assistant").count();
    let Some(deed) = turn.0.get(answered) else { return over() };
    call(deed, wire, body).map_or_else(|| wires::Act::Say("Done.".to_owned()), |call| wires::Act::Call(vec![call]))
}

/// A tool that an engine offers its model.
struct Offered {
    /// As it is called.
    name: String,
    /// Its arguments by name, with their JSON Schemas; `None`: it takes a text.
    parameters: Option<Vec<(String, Value)>>,
    required: Vec<String>,
}

impl Offered {
    fn of(tool: &Value, space: Option<&str>) -> Option<Self> {
        let tool = tool.get("function").filter(|function| function.is_object()).unwrap_or(tool);
        let name = tool["name"].as_str()?;
        let name = space.map_or_else(|| name.to_owned(), |space| format!("{space}.{name}"));
        let schemas = ["parameters", "input_schema", "parametersJsonSchema", "inputSchema"];
        let schema = schemas.iter().find_map(|key| tool.get(key));
        let parameters = schema.map(|schema| {
            let fields = schema["properties"].as_object().into_iter().flatten();
            fields.map(|(name, schema)| (name.clone(), schema.clone())).collect()
        });
        let required = schema.and_then(|schema| schema["required"].as_array()).into_iter().flatten();
        let required = required.filter_map(|name| name.as_str().map(str::to_owned)).collect();
        Some(Self { name, parameters, required })
    }

    fn all(wire: Wire, body: &Value) -> Vec<Self> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let tools = list(&body["tools"]);
        let tools = match wire {
            Wire::Contents => tools.iter().flat_map(|tool| list(&tool["functionDeclarations"])).collect(),
            _ => tools,
        };
        let one = |tool: &Value| match tool["type"].as_str() {
            Some("namespace") => {
                list(&tool["tools"]).iter().filter_map(|inner| Self::of(inner, tool["name"].as_str())).collect()
            }
            _ => Vec::from_iter(Self::of(tool, None)),
        };
        tools.iter().flat_map(one).collect()
    }

    /// Its arguments, from values for the names that tools have for them, each with its other names.
    fn arguments(&self, values: &[(&[&str], Value)]) -> Value {
        let Some(parameters) = &self.parameters else {
            return values.first().map(|(_, value)| value.clone()).unwrap_or_default();
        };
        let mut arguments = serde_json::Map::new();
        for (name, schema) in parameters {
            let value = values.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, value)| value);
            match value {
                // A program and its arguments.
                Some(Value::String(line)) if schema["type"] == "array" => {
                    arguments.insert(name.clone(), json!(["sh", "-c", line]));
                }
                Some(value) => drop(arguments.insert(name.clone(), value.clone())),
                None if self.required.contains(name) => {
                    let value = match schema["type"].as_str() {
                        Some("integer" | "number") => json!(1),
                        Some("boolean") => json!(false),
                        Some("array") => json!([]),
                        Some("object") => json!({}),
                        _ => schema["enum"].get(0).cloned().unwrap_or_else(|| json!("proof")),
                    };
                    arguments.insert(name.clone(), value);
                }
                None => {}
            }
        }
        Value::Object(arguments)
    }
}

const WRITES: [&str; 8] =
    ["create", "Write", "write_file", "write", "file_ops", "apply_patch", "str_replace_editor", "edit_file"];
const RUNS: [&str; 9] = [
    "bash",
    "Bash",
    "exec_command",
    "shell_command",
    "shell",
    "run_shell_command",
    "local_shell",
    "run_terminal_cmd",
    "execute_command",
];
const DELEGATES: [&str; 6] = ["task", "Task", "Agent", "spawn_agent", "agent", "delegate"];

const PATH: &[&str] = &["path", "file_path", "filePath", "absolute_path", "target_file", "filename"];
const TEXT: &[&str] = &["file_text", "content", "contents", "text"];
const COMMAND: &[&str] = &["command", "cmd", "script"];
const PROMPT: &[&str] = &["prompt", "message", "task", "instructions"];

/// The call that does it, of a tool that is offered, else of the one that such engines usually have; `None`: it needs no
/// call.
fn call(deed: &Deed, wire: Wire, body: &Value) -> Option<(String, String)> {
    let offered = Offered::all(wire, body);
    let find = |names: &[&str]| names.iter().find_map(|name| offered.iter().find(|tool| tool.name == *name));
    let one = |names: &[&str], values: &[(&[&str], Value)]| {
        // A model may call what it was not offered, and an engine must not do it then.
        let unoffered = |name: &str| {
            let first = values.iter().map(|(names, value)| (names[0].to_owned(), value.clone()));
            (name.to_owned(), Value::Object(first.collect()))
        };
        let usual = usize::from(wire == Wire::Messages);
        find(names).map_or_else(|| unoffered(names[usual]), |tool| (tool.name.clone(), tool.arguments(values)))
    };
    let (name, arguments) = match deed {
        Deed::Write(path, text) => match find(&WRITES) {
            Some(tool) if tool.parameters.is_none() || tool.name == "apply_patch" => {
                let patch = json!(format!("*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch"));
                (tool.name.clone(), tool.arguments(&[(&["input", "patch"], patch)]))
            }
            // A program that writes by commands alone is asked to do so.
            None if find(&RUNS).is_some() => one(&RUNS, &[(COMMAND, json!(format!("echo {text} > '{path}'")))]),
            _ => one(
                &WRITES,
                &[(PATH, json!(path)), (TEXT, json!(text)), (&["operation", "action", "op"], json!("write"))],
            ),
        },
        Deed::Run(line) => one(&RUNS, &[(COMMAND, json!(line))]),
        Deed::Delegate(turn) => one(&DELEGATES, &[(PROMPT, json!(turn.prompt()))]),
        Deed::Tool(name, arguments) => {
            // A server's name stands before it.
            let own = offered.iter().find(|tool| tool.name.ends_with(name.as_str()));
            (own.map_or_else(|| name.clone(), |tool| tool.name.clone()), arguments.clone())
        }
        Deed::Hear | Deed::Say => return None,
    };
    Some((name, arguments.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(wire: Wire, tools: &Value, deed: Deed) -> (String, Value) {
        let (name, arguments) = call(&deed, wire, &json!({ "tools": tools })).expect("a call");
        (name, serde_json::from_str(&arguments).expect("JSON"))
    }

    #[test]
    fn a_deed_becomes_a_call_of_what_is_offered() {
        let schema =
            json!({ "properties": { "cmd": { "type": "array" }, "why": {}, "rest": {} }, "required": ["why"] });
        let shell = json!([{ "type": "function", "name": "shell", "parameters": schema }]);
        assert_eq!(
            asked(Wire::Responses, &shell, Deed::Run("ls".into())),
            ("shell".to_owned(), json!({ "cmd": ["sh", "-c", "ls"], "why": "proof" }))
        );
        let (name, arguments) = asked(Wire::Responses, &shell, Deed::Write("a".into(), "b".into()));
        assert_eq!((name.as_str(), &arguments["cmd"][2]), ("shell", &json!("echo b > 'a'")));
        let patch = json!([{ "type": "custom", "name": "apply_patch" }]);
        let (name, text) = asked(Wire::Responses, &patch, Deed::Write("a".into(), "b".into()));
        assert!(name == "apply_patch" && text.as_str().is_some_and(|text| text.contains("Add File: a\n+b")), "{text}");
        let served = json!([{ "type": "namespace", "name": "mcp__squad", "tools": [{ "name": "squad_status" }] }]);
        let (name, _) = asked(Wire::Responses, &served, Deed::Tool("squad_status".into(), json!({})));
        assert_eq!(name, "mcp__squad.squad_status");
        // What is not offered is called all the same.
        assert_eq!(
            asked(Wire::Messages, &json!([]), Deed::Run("ls".into())),
            ("Bash".into(), json!({ "command": "ls" }))
        );
        assert_eq!(asked(Wire::Chat, &json!([]), Deed::Delegate(Turn(vec![]))).0, "task");
    }
}
