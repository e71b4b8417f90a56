//! Requests and answers over two byte streams: matches answers to requests, with a deadline for each request.
//!
//! One task reads and one writes. Requests and notifications from the other side go to an [`Incoming`] at once and in
//! order. A [`Dialect`] says how messages are framed and what they look like.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};

use super::dialect::{Dialect, METHOD_NOT_FOUND, Message};
use super::traffic;
use super::{EngineError, Fact};
use crate::engine::spawn;

/// Receives requests and notifications from the other side. No method may block.
pub(crate) trait Incoming: Send + Sync + 'static {
    /// A message that is no JSON. Framing is still intact, so the next one may be valid; pending requests have deadlines.
    fn unreadable(&self, _: &Arc<Connection>, _content: &[u8]) {}

    fn notified(&self, connection: &Arc<Connection>, method: &str, params: Value);

    /// The responder answers the request, now or later; dropping it answers with an error.
    fn requested(&self, responder: Responder, method: &str, params: Value);
}

/// A connection that is restored when it is lost.
#[derive(Clone)]
pub(super) enum LinkState {
    Connected(Arc<Connection>),
    Reconnecting,
    /// For good, with the reason.
    Ended(String),
}

impl LinkState {
    /// The connection. Waits while a lost one is being restored, also where whoever restores it has not heard of it yet.
    pub(super) async fn settled(state: &watch::Sender<Self>) -> Result<Arc<Connection>, EngineError> {
        let mut state = state.subscribe();
        let is_settled = |state: &Self| match state {
            Self::Connected(connection) => connection.reason().is_none(),
            Self::Reconnecting => false,
            Self::Ended(_) => true,
        };
        let settled = state.wait_for(is_settled).await;
        match settled.as_deref() {
            Ok(Self::Connected(connection)) => Ok(Arc::clone(connection)),
            Ok(Self::Ended(reason)) => Err(EngineError::Unusable { reason: reason.clone(), hint: None }),
            Ok(Self::Reconnecting) | Err(_) => {
                Err(EngineError::Unusable { reason: "the engine is gone".to_owned(), hint: None })
            }
        }
    }

    /// The connection, if there is one now.
    pub(super) fn connected(&self) -> Option<Arc<Connection>> {
        match self {
            Self::Connected(connection) => Some(Arc::clone(connection)),
            Self::Reconnecting | Self::Ended(_) => None,
        }
    }
}

/// A session's facts. Once the connection is lost for good, nothing follows but that.
pub(super) struct FactQueue {
    facts: mpsc::UnboundedReceiver<Fact>,
    lost: Option<String>,
}

impl FactQueue {
    pub(super) fn new(facts: mpsc::UnboundedReceiver<Fact>) -> Self {
        Self { facts, lost: None }
    }

    pub(super) async fn next(&mut self) -> Fact {
        if let Some(reason) = &self.lost {
            return Fact::Lost(reason.clone());
        }
        let fact = self.facts.recv().await.unwrap_or_else(|| Fact::Lost("the engine is gone".to_owned()));
        if let Fact::Lost(reason) = &fact {
            self.lost = Some(reason.clone());
        }
        fact
    }
}

/// How often to look whether a stopped turn has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Waits until a turn has ended by itself. False: the deadline passed.
pub(super) async fn turn_ended(deadline: Instant, is_working: impl Fn() -> bool) -> bool {
    while is_working() {
        if Instant::now() >= deadline {
            return false;
        }
        sleep(POLL_INTERVAL).await;
    }
    true
}

pub(crate) struct Connection {
    dialect: Dialect,
    /// `None` once the other side's input is closed.
    outgoing: Mutex<Option<mpsc::UnboundedSender<Vec<u8>>>>,
    pending: Mutex<PendingRequests>,
    closed: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct PendingRequests {
    last: u64,
    requests: HashMap<u64, oneshot::Sender<Result<Value, CallError>>>,
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallError {
    Refused {
        code: i64,
        message: String,
    },
    TimedOut(Duration),
    /// The connection has ended, and why.
    Closed(String),
}

impl CallError {
    pub(crate) fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Refused { code: METHOD_NOT_FOUND, .. })
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { message, .. } => f.write_str(message),
            Self::TimedOut(deadline) => write!(f, "no answer within {} s", deadline.as_secs_f64()),
            Self::Closed(reason) => f.write_str(reason),
        }
    }
}

impl Connection {
    pub(crate) fn start(
        dialect: Dialect,
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
        incoming: Arc<dyn Incoming>,
    ) -> Arc<Self> {
        let (outgoing, frames) = mpsc::unbounded_channel();
        let connection = Arc::new(Self {
            dialect,
            outgoing: Mutex::new(Some(outgoing)),
            pending: Mutex::default(),
            closed: watch::Sender::new(None),
        });
        spawn(write(input, frames));
        spawn(Self::read(Arc::clone(&connection), output, incoming));
        connection
    }

    pub(crate) async fn request<P: Serialize>(
        &self,
        method: &str,
        params: &P,
        deadline: Duration,
    ) -> Result<Value, CallError> {
        let (request, answer) = self.register_request();
        self.send(&self.dialect.request(request.id, method, &to_value(params)));
        // Checked after posting: if the connection ends later, the pending request's sender is dropped.
        if let Some(reason) = self.reason() {
            return Err(CallError::Closed(reason));
        }
        match tokio::time::timeout(deadline, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(CallError::Closed(self.reason().unwrap_or_else(|| "the connection ended".to_owned()))),
            Err(_) => Err(CallError::TimedOut(deadline)),
        }
    }

    /// Sends a request and ignores its answer. It goes out before anything sent later.
    pub(crate) fn send_and_forget<P: Serialize>(&self, method: &str, params: &P) {
        let (request, _) = self.register_request();
        self.send(&self.dialect.request(request.id, method, &to_value(params)));
    }

    /// Ends the connection. The first reason is kept.
    pub(crate) fn fail(&self, reason: &str) {
        self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            closed.get_or_insert_with(|| reason.to_owned());
            first
        });
        self.close_input();
        self.pending.lock().requests.clear();
    }

    /// Closes the other side's input, after the messages already queued.
    pub(crate) fn close_input(&self) {
        self.outgoing.lock().take();
    }

    /// Waits for the connection's end and returns the reason.
    pub(crate) async fn closed(&self) -> String {
        let mut closed = self.closed.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let reason = closed.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        reason.unwrap_or_default()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.closed.borrow().is_none()
    }

    fn reason(&self) -> Option<String> {
        self.closed.borrow().clone()
    }

    fn register_request(&self) -> (PendingRequest<'_>, oneshot::Receiver<Result<Value, CallError>>) {
        let (sender, answer) = oneshot::channel();
        let mut pending = self.pending.lock();
        pending.last += 1;
        let id = pending.last;
        pending.requests.insert(id, sender);
        (PendingRequest { connection: self, id }, answer)
    }

    /// Sends a message that is no request, as it is.
    pub(crate) fn send(&self, message: &Value) {
        traffic::sent(message);
        if let Some(outgoing) = &*self.outgoing.lock() {
            // The writer ends only with the connection; pending requests then fail.
            let _ = outgoing.send(self.dialect.frame(message));
        }
    }

    async fn read(self: Arc<Self>, output: impl AsyncRead + Unpin, incoming: Arc<dyn Incoming>) {
        let _guard = ReaderGuard(&self);
        let mut reader = BufReader::new(output);
        let reason = loop {
            match self.dialect.read(&mut reader).await {
                // Messages from an abandoned connection must not mix with its successor's.
                Ok(_) if self.reason().is_some() => return,
                Ok(Some(content)) => {
                    traffic::received(&content);
                    self.dispatch(&content, &*incoming);
                }
                Ok(None) => break "it closed its output".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        self.fail(&reason);
    }

    fn dispatch(self: &Arc<Self>, content: &[u8], incoming: &dyn Incoming) {
        let message = match serde_json::from_slice(content) {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!("the engine sent a message that cannot be read: {error}");
                return incoming.unreadable(self, content);
            }
        };
        match self.dialect.parse(message) {
            Some(Message::Request { id, method, params }) => {
                incoming.requested(Responder { connection: Arc::clone(self), id: Some(id) }, &method, params);
            }
            Some(Message::Notification { method, params }) => incoming.notified(self, &method, params),
            Some(Message::Answer { id, result }) => self.complete_request(&id, result),
            None => tracing::warn!("the engine sent a message that is neither call nor answer"),
        }
    }

    fn complete_request(&self, id: &Value, result: Result<Value, (i64, String)>) {
        let id = id.as_u64().or_else(|| id.as_str()?.parse().ok());
        let sender = id.and_then(|id| self.pending.lock().requests.remove(&id));
        let result = result.map_err(|(code, message)| CallError::Refused { code, message });
        if let Some(sender) = sender {
            // The caller may no longer be waiting.
            let _ = sender.send(result);
        }
    }
}

/// Ends the connection when the reader task ends, so that no request waits for a reader that panicked.
struct ReaderGuard<'a>(&'a Connection);

impl Drop for ReaderGuard<'_> {
    fn drop(&mut self) {
        self.0.fail("squad failed to read on; this is a bug");
    }
}

/// A pending request. Dropping it with its future unregisters it, so that a missing answer leaks nothing.
struct PendingRequest<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.connection.pending.lock().requests.remove(&self.id);
    }
}

/// Answers one request from the other side.
pub(crate) struct Responder {
    connection: Arc<Connection>,
    /// `None` once answered.
    id: Option<Value>,
}

impl Responder {
    /// The connection that the request came over.
    pub(crate) fn connection(&self) -> Arc<Connection> {
        Arc::clone(&self.connection)
    }

    pub(crate) fn answer(mut self, result: Value) {
        if let Some(id) = self.id.take() {
            self.connection.send(&self.connection.dialect.answer(&id, Ok(result)));
        }
    }

    pub(crate) fn unknown_method(mut self, method: &str) {
        self.refuse(METHOD_NOT_FOUND, &format!("squad has no method {method}"));
    }

    pub(crate) fn invalid(mut self, why: &str) {
        self.refuse(-32602, why);
    }

    fn refuse(&mut self, code: i64, message: &str) {
        if let Some(id) = self.id.take() {
            self.connection.send(&self.connection.dialect.answer(&id, Err((code, message))));
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.refuse(-32000, "nobody can answer");
    }
}

/// What squad sends can always be JSON: its maps have strings for keys.
fn to_value(params: &impl Serialize) -> Value {
    serde_json::to_value(params).unwrap_or_default()
}

async fn write(mut input: impl AsyncWrite + Unpin, mut frames: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        if input.write_all(&frame).await.is_err() || input.flush().await.is_err() {
            // The reader sees the end too, and reports the reason.
            return;
        }
    }
    let _ = input.shutdown().await;
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt, DuplexStream};

    use super::*;

    /// Answers `echo`, drops `drop`, and records notifications.
    #[derive(Default)]
    struct Echo(Mutex<Vec<String>>);

    impl Incoming for Echo {
        fn notified(&self, _: &Arc<Connection>, method: &str, _: Value) {
            self.0.lock().push(method.to_owned());
        }

        fn requested(&self, responder: Responder, method: &str, params: Value) {
            match method {
                "echo" => responder.answer(params),
                "drop" => drop(responder),
                _ => responder.unknown_method(method),
            }
        }
    }

    fn pair() -> (Arc<Connection>, Arc<Connection>, Arc<Echo>) {
        let (left, right) = (tokio::io::duplex(64), tokio::io::duplex(64));
        let echo = Arc::new(Echo::default());
        let client = Connection::start(Dialect::Framed, left.0, right.0, Arc::new(Echo::default()));
        let server = Connection::start(Dialect::Framed, right.1, left.1, Arc::clone(&echo) as Arc<dyn Incoming>);
        (client, server, echo)
    }

    fn raw() -> (Arc<Connection>, DuplexStream, DuplexStream) {
        let (left, right) = (tokio::io::duplex(4096), tokio::io::duplex(4096));
        (Connection::start(Dialect::Framed, left.0, right.0, Arc::new(Echo::default())), left.1, right.1)
    }

    const TIMEOUT: Duration = Duration::from_millis(100);

    #[tokio::test(start_paused = true)]
    async fn every_request_has_its_own_answer() {
        let (client, _server, _) = pair();
        let (one, two) = (json!({ "n": 1 }), json!({ "n": 2 }));
        let (first, second) =
            tokio::join!(client.request("echo", &one, TIMEOUT), client.request("echo", &two, TIMEOUT));
        assert_eq!((first, second), (Ok(one), Ok(two)));
        let unknown = client.request("nothing", &(), TIMEOUT).await.expect_err("no such method");
        assert!(unknown.is_unknown_method(), "{unknown}");
        let dropped = client.request("drop", &(), TIMEOUT).await.expect_err("nobody answers");
        assert_eq!(dropped.to_string(), "nobody can answer");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_at_the_deadline_and_leaves_nothing_behind() {
        let (client, _input, _output) = raw();
        assert_eq!(client.request("echo", &(), TIMEOUT).await, Err(CallError::TimedOut(TIMEOUT)));
        assert!(client.pending.lock().requests.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_fails_pending_and_new_requests() {
        let (client, input, output) = raw();
        let (pending, ()) = tokio::join!(client.request("echo", &(), TIMEOUT), async { drop((input, output)) });
        assert_eq!(pending, Err(CallError::Closed("it closed its output".into())));
        assert_eq!(client.request("echo", &(), TIMEOUT).await, pending);
        client.fail("another reason");
        assert_eq!(client.closed().await, "it closed its output");
    }

    /// What is asked at once after a loss would fail as often as it is asked again.
    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_is_not_given_out() {
        let (lost, ..) = raw();
        assert_eq!(lost.closed().await, "it closed its output");
        for is_restored in [true, false] {
            let state = watch::Sender::new(LinkState::Connected(Arc::clone(&lost)));
            let (live, _input, _output) = raw();
            let (settled, ()) = tokio::join!(LinkState::settled(&state), async {
                tokio::task::yield_now().await;
                state.send_replace(LinkState::Reconnecting);
                tokio::task::yield_now().await;
                state.send_replace(match is_restored {
                    true => LinkState::Connected(Arc::clone(&live)),
                    false => LinkState::Ended("gone".to_owned()),
                });
            });
            assert_eq!(settled.is_ok_and(|settled| Arc::ptr_eq(&settled, &live)), is_restored);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nonsense_between_messages_is_ignored() {
        let (client, mut input, mut output) = raw();
        for nonsense in ["nonsense", "{}", "[]", "null", r#"{"id":{},"result":1}"#, r#"{"id":99,"result":1}"#] {
            let frame = format!("Content-Length: {}\r\n\r\n{nonsense}", nonsense.len());
            output.write_all(frame.as_bytes()).await.expect("the pipe is open");
        }
        let answer = Dialect::Framed.frame(&json!({ "id": 1, "result": "good" }));
        let (result, ()) = tokio::join!(client.request("x", &(), TIMEOUT), async {
            let mut start = [0; 16];
            input.read_exact(&mut start).await.expect("the request");
            output.write_all(&answer).await.expect("the pipe is open");
        });
        assert_eq!(result, Ok(json!("good")));
    }

    #[tokio::test(start_paused = true)]
    async fn notifications_arrive_in_order() {
        let (client, _server, echo) = pair();
        for method in ["a", "b", "c"] {
            client.send(&json!({ "method": method }));
        }
        let _ = client.request("echo", &(), TIMEOUT).await;
        assert_eq!(*echo.0.lock(), ["a", "b", "c"]);
    }
}
