//! The server: reads messages, answers what is quick, and gives what may take long to threads of its own.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use super::call::{Call, answer};
use super::line::{self, Line};
use super::message::{Fault, Message, Object};
use super::output::Output;
use super::questions::Questions;
use super::result::{ToolResult, complete};
use super::signal::Signal;
use super::version::Version;

/// So many calls may be worked on at the same time.
const CALLS: usize = 64;

/// What a server offers.
pub(crate) trait Service: Sync {
    /// What a model should know of it.
    fn instructions(&self) -> String;
    fn tools(&self) -> Vec<Value>;
    /// Whether calling it may take long.
    fn is_slow(&self, tool: &str) -> bool;
    fn call(&self, tool: &str, arguments: Object, call: &Call<'_>) -> Result<ToolResult, Fault>;
    fn resources(&self) -> Vec<Value>;
    fn templates(&self) -> Vec<Value>;
    /// The contents of a resource.
    fn read(&self, uri: &str) -> Result<Vec<Value>, Fault>;
    fn prompts(&self) -> Vec<Value>;
    fn prompt(&self, name: &str, arguments: &Object) -> Result<Value, Fault>;
}

/// What this connection remembers, for clients that begin with `initialize`.
#[derive(Clone, Copy, Default)]
struct Session {
    version: Option<Version>,
    can_elicit: bool,
}

/// Calls that are worked on, by their ids.
#[derive(Default)]
struct Calls(Mutex<BTreeMap<String, Arc<Signal>>>);

impl Calls {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Signal>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Server<'s, S> {
    service: &'s S,
    output: &'s Output,
    calls: &'s Calls,
    questions: &'s Questions,
}

/// Serves until the client closes its end, or reads no more.
pub(crate) fn serve<S: Service>(service: &S, input: &mut dyn BufRead, output: Box<dyn Write + Send>) -> io::Result<()> {
    let (output, calls, questions) = (Output::new(output), Calls::default(), Questions::default());
    let server = Server { service, output: &output, calls: &calls, questions: &questions };
    let mut session = Session::default();
    thread::scope(|scope| {
        let read = loop {
            match line::next(input, line::LONGEST) {
                Err(error) => break Err(error),
                Ok(Line::End) => break Ok(()),
                Ok(_) if output.is_closed() => break Ok(()),
                Ok(Line::TooLong) => {
                    let fault = Fault::no_json(format!("a line is longer than {} bytes", line::LONGEST));
                    output.send(&answer(&Value::Null, Err(fault.to_json())));
                }
                Ok(Line::Text(line)) => server.hear(&line, &mut session, scope),
            }
        };
        // What they have begun goes on without us; they say what is known of it.
        calls.all().values().for_each(|signal| signal.close());
        read
    })
}

impl<'s, S: Service> Server<'s, S> {
    fn hear<'scope>(&self, line: &[u8], session: &mut Session, scope: &'scope thread::Scope<'scope, '_>)
    where
        's: 'scope,
    {
        let (messages, is_batch) = Message::read(line);
        let mut answers = Vec::new();
        for message in messages {
            match message {
                Message::Bad { id, fault } => answers.push(answer(&id, Err(fault.to_json()))),
                Message::Response { id, result } => self.questions.answer(&id, result),
                Message::Notification { method, params } => self.note(&method, &params),
                Message::Request { id, method, params } => {
                    answers.extend(self.request((id, method, params), session, scope));
                }
            }
        }
        match (is_batch, answers.is_empty()) {
            (_, true) => {}
            (true, false) => self.output.send(&answers.into()),
            (false, false) => answers.iter().for_each(|answer| self.output.send(answer)),
        }
    }

    fn note(&self, method: &str, params: &Object) {
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
            && let Some(signal) = self.calls.all().get(&id.to_string())
        {
            signal.cancel(params.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned());
        }
    }

    /// The answer, unless a thread of its own gives it.
    fn request<'scope>(
        &self,
        (id, method, params): (Value, String, Object),
        session: &mut Session,
        scope: &'scope thread::Scope<'scope, '_>,
    ) -> Option<Value>
    where
        's: 'scope,
    {
        let tell = |outcome: Result<Value, Fault>| Some(answer(&id, outcome.map_err(|fault| fault.to_json())));
        match (method.as_str(), session.version) {
            ("initialize", _) => return tell(self.initialize(&params, session)),
            ("ping", _) if !params.contains_key("_meta") => return tell(Ok(json!({}))),
            _ => {}
        }
        let (version, can_elicit) = match caller(&params, session) {
            Ok(caller) => caller,
            Err(fault) => return tell(Err(fault)),
        };
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
        let token = token.filter(|token| token.is_string() || token.is_number()).cloned();
        let signal = Arc::<Signal>::default();
        let (output, questions) = (self.output, self.questions);
        let call = Call { version, id: id.clone(), can_elicit, token, signal, output, questions };
        if method == "tools/call" || method == "resources/read" {
            let tool = params.get("name").and_then(Value::as_str).unwrap_or_default();
            if method == "resources/read" || self.service.is_slow(tool) {
                return self.begin(call, method, params, scope).err().and_then(|fault| tell(Err(fault)));
            }
        }
        tell(answer_to(self.service, &call, &method, params))
    }

    /// Works on it in a thread of its own.
    fn begin<'scope>(
        &self,
        call: Call<'s>,
        method: String,
        params: Object,
        scope: &'scope thread::Scope<'scope, '_>,
    ) -> Result<(), Fault>
    where
        's: 'scope,
    {
        let key = call.id.to_string();
        {
            let mut calls = self.calls.all();
            if calls.contains_key(&key) {
                return Err(Fault::invalid_request(format!("a request with the id {key} is being worked on")));
            }
            if calls.len() >= CALLS {
                return Err(Fault::internal(format!("{CALLS} calls are being worked on; try again later")));
            }
            calls.insert(key.clone(), Arc::clone(&call.signal));
        }
        let (service, calls) = (self.service, self.calls);
        let work = move || {
            let outcome = answer_to(service, &call, &method, params);
            calls.all().remove(&call.id.to_string());
            call.respond(outcome.map_err(|fault| fault.to_json()));
        };
        let begun = thread::Builder::new().spawn_scoped(scope, work).map(drop);
        begun.map_err(|error| {
            self.calls.all().remove(&key);
            Fault::internal(format!("no thread can be started: {error}"))
        })
    }

    fn initialize(&self, params: &Object, session: &mut Session) -> Result<Value, Fault> {
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let asked = asked.ok_or_else(|| Fault::invalid_params("`protocolVersion` is missing"))?;
        let version = Version::agreed(asked);
        let capabilities = params.get("capabilities").unwrap_or(&Value::Null);
        *session = Session { version: Some(version), can_elicit: can_elicit(capabilities) };
        Ok(json!({
            "protocolVersion": version.name(),
            "capabilities": capabilities_of_ours(),
            "serverInfo": server_info(),
            "instructions": self.service.instructions(),
        }))
    }
}

fn capabilities_of_ours() -> Value {
    json!({"tools": {}, "resources": {}, "prompts": {}})
}

fn server_info() -> Value {
    json!({"name": "squad", "title": "squad", "version": env!("CARGO_PKG_VERSION")})
}

fn can_elicit(capabilities: &Value) -> bool {
    // Without a word on what it can ask with, it is a form.
    capabilities
        .get("elicitation")
        .and_then(Value::as_object)
        .is_some_and(|how| how.is_empty() || how.contains_key("form"))
}

/// Who asks: a client that has said so at the beginning, or one that says it with each request.
fn caller(params: &Object, session: &Session) -> Result<(Version, bool), Fault> {
    const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    let meta = params.get("_meta");
    let named = meta.and_then(|meta| meta.get(VERSION));
    match (named, session.version) {
        (None, Some(version)) => Ok((version, session.can_elicit)),
        (None, None) => Err(Fault::invalid_params(format!(
            "`initialize` comes first, or `_meta` has `{VERSION}` and `{CAPABILITIES}`"
        ))),
        (Some(named), _) => {
            let named = named.as_str().ok_or_else(|| Fault::invalid_params(format!("`{VERSION}` is not a text")))?;
            let version = Version::parse(named).ok_or_else(|| Fault::version(named, Version::names()))?;
            match meta.and_then(|meta| meta.get(CAPABILITIES)) {
                Some(capabilities @ Value::Object(_)) => Ok((version, can_elicit(capabilities))),
                _ => Err(Fault::invalid_params(format!("`_meta` has no `{CAPABILITIES}`"))),
            }
        }
    }
}

fn answer_to<S: Service>(service: &S, call: &Call<'_>, method: &str, params: Object) -> Result<Value, Fault> {
    let version = call.version;
    let kept = |name: &str, list: Vec<Value>| Ok(complete(json!({ name: list }), version, true));
    let named = |field: &str| {
        let value = params.get(field).and_then(Value::as_str).map(str::to_owned);
        value.ok_or_else(|| Fault::invalid_params(format!("`{field}` is missing or not a text")))
    };
    let arguments = || match params.get("arguments") {
        None | Some(Value::Null) => Ok(Object::new()),
        Some(Value::Object(arguments)) => Ok(arguments.clone()),
        Some(_) => Err(Fault::invalid_params("`arguments` is not an object")),
    };
    match method {
        "server/discover" => {
            let result = json!({
                "supportedVersions": Version::names(),
                "capabilities": capabilities_of_ours(),
                "instructions": service.instructions(),
                "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
            });
            Ok(complete(result, version, true))
        }
        "tools/list" => kept("tools", service.tools()),
        "tools/call" => {
            let done = service.call(&named("name")?, arguments()?, call)?;
            Ok(complete(done.into_json(version), version, false))
        }
        "resources/list" => kept("resources", service.resources()),
        "resources/templates/list" => kept("resourceTemplates", service.templates()),
        "resources/read" => {
            let contents = service.read(&named("uri")?);
            let contents =
                contents.map_err(|fault| if version.is_stateless() { fault.in_stateless() } else { fault })?;
            kept("contents", contents)
        }
        "prompts/list" => kept("prompts", service.prompts()),
        "prompts/get" => Ok(complete(service.prompt(&named("name")?, &arguments()?)?, version, false)),
        _ => Err(Fault::no_method(method)),
    }
}
