//! JSON-RPC 2.0 over two byte streams: requests find their responses, and everything has a deadline.
//!
//! One task reads and one writes. What the other side asks or tells goes to an [`Incoming`] at once and in order.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot, watch};

use super::{frame, traffic};

/// JSON-RPC's code for a method that the receiver does not have.
const UNKNOWN_METHOD: i64 = -32601;

/// Receives what the other side sends by itself. Neither method may block.
pub(crate) trait Incoming: Send + Sync + 'static {
    fn notified(&self, connection: &Arc<Connection>, method: &str, params: Value);

    /// The responder answers the request, now or later; dropped, it answers with an error.
    fn asked(&self, responder: Responder, method: &str, params: Value);
}

pub(crate) struct Connection {
    /// `None` once the input of the other side is closed.
    outgoing: Mutex<Option<mpsc::UnboundedSender<Vec<u8>>>>,
    waiting: Mutex<Waiting>,
    closed: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct Waiting {
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
    Silent(Duration),
    /// The connection ended, with the reason.
    Closed(String),
}

impl CallError {
    pub(crate) fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Refused { code: UNKNOWN_METHOD, .. })
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { message, .. } => f.write_str(message),
            Self::Silent(deadline) => write!(f, "no answer within {} s", deadline.as_secs_f64()),
            Self::Closed(reason) => f.write_str(reason),
        }
    }
}

#[derive(Deserialize)]
struct Message {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

#[derive(Serialize)]
struct Call<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

impl Connection {
    pub(crate) fn start(
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
        incoming: Arc<dyn Incoming>,
    ) -> Arc<Self> {
        let (outgoing, frames) = mpsc::unbounded_channel();
        let connection = Arc::new(Self {
            outgoing: Mutex::new(Some(outgoing)),
            waiting: Mutex::default(),
            closed: watch::Sender::new(None),
        });
        tokio::spawn(write(input, frames));
        tokio::spawn(Self::read(Arc::clone(&connection), output, incoming));
        connection
    }

    pub(crate) async fn request<P: Serialize>(
        &self,
        method: &str,
        params: &P,
        deadline: Duration,
    ) -> Result<Value, CallError> {
        let (ticket, answer) = self.ticket();
        self.post(&Call { jsonrpc: "2.0", id: ticket.id, method, params });
        // Asked after posting: a connection that ends in between drops the ticket's sender.
        if let Some(reason) = self.reason() {
            return Err(CallError::Closed(reason));
        }
        match tokio::time::timeout(deadline, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(CallError::Closed(self.reason().unwrap_or_else(|| "the connection ended".to_owned()))),
            Err(_) => Err(CallError::Silent(deadline)),
        }
    }

    /// Sends a request whose answer matters to nobody, before whatever is sent next.
    pub(crate) fn tell<P: Serialize>(&self, method: &str, params: &P) {
        let (ticket, _) = self.ticket();
        self.post(&Call { jsonrpc: "2.0", id: ticket.id, method, params });
    }

    /// Ends the connection. The first reason stays.
    pub(crate) fn fail(&self, reason: &str) {
        self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            closed.get_or_insert_with(|| reason.to_owned());
            first
        });
        self.close_input();
        lock(&self.waiting).requests.clear();
    }

    /// Tells the other side that nothing more will come, after what is already on its way.
    pub(crate) fn close_input(&self) {
        lock(&self.outgoing).take();
    }

    /// Waits for the connection's end and says why.
    pub(crate) async fn closed(&self) -> String {
        let mut closed = self.closed.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let reason = closed.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        reason.unwrap_or_default()
    }

    fn reason(&self) -> Option<String> {
        self.closed.borrow().clone()
    }

    fn ticket(&self) -> (Ticket<'_>, oneshot::Receiver<Result<Value, CallError>>) {
        let (sender, answer) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        waiting.last += 1;
        let id = waiting.last;
        waiting.requests.insert(id, sender);
        (Ticket { connection: self, id }, answer)
    }

    fn post(&self, message: &impl Serialize) {
        traffic::sent(message);
        match frame::encode(message) {
            Ok(frame) => {
                if let Some(outgoing) = &*lock(&self.outgoing) {
                    // The writer is gone only when the connection is; whoever waits is told so.
                    let _ = outgoing.send(frame);
                }
            }
            Err(error) => tracing::warn!("a message to the engine cannot be written: {error}"),
        }
    }

    async fn read(self: Arc<Self>, output: impl AsyncRead + Unpin, incoming: Arc<dyn Incoming>) {
        let _unread = Unread(&self);
        let mut reader = BufReader::new(output);
        let reason = loop {
            match frame::read(&mut reader).await {
                // What was still on its way from a connection given up must not mix with its successor's.
                Ok(_) if self.reason().is_some() => return,
                Ok(Some(content)) => {
                    traffic::received(&content);
                    self.take(&content, &*incoming);
                }
                Ok(None) => break "it closed its output".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        self.fail(&reason);
    }

    fn take(self: &Arc<Self>, content: &[u8], incoming: &dyn Incoming) {
        match serde_json::from_slice::<Message>(content) {
            Ok(Message { id: Some(id), method: Some(method), params, .. }) => {
                incoming.asked(Responder { connection: Arc::clone(self), id: Some(id) }, &method, params);
            }
            Ok(Message { method: Some(method), params, .. }) => incoming.notified(self, &method, params),
            Ok(Message { id: Some(id), result, error, .. }) => self.answered(&id, result, error),
            // The frames are still in step, so the next message may be a good one; who waited has a deadline.
            Ok(_) => tracing::warn!("the engine sent a message that is neither call nor answer"),
            Err(error) => tracing::warn!("the engine sent a message that cannot be read: {error}"),
        }
    }

    fn answered(&self, id: &Value, result: Value, error: Option<Refusal>) {
        let sender = id.as_u64().and_then(|id| lock(&self.waiting).requests.remove(&id));
        let result = match error {
            None => Ok(result),
            Some(Refusal { code, message }) => Err(CallError::Refused { code, message }),
        };
        if let Some(sender) = sender {
            // Nobody may be waiting any more.
            let _ = sender.send(result);
        }
    }
}

/// Ends a connection that nobody reads any more: nobody is left waiting for a reader that panicked.
struct Unread<'a>(&'a Connection);

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        self.0.fail("squad itself failed to read on, which is a defect");
    }
}

/// A request that waits. Dropped with its future, so that an answer that never comes costs nothing.
struct Ticket<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        lock(&self.connection.waiting).requests.remove(&self.id);
    }
}

/// The way back of a request's answer.
pub(crate) struct Responder {
    connection: Arc<Connection>,
    /// `None` once answered.
    id: Option<Value>,
}

impl Responder {
    pub(crate) fn answer(mut self, result: Value) {
        if let Some(id) = self.id.take() {
            self.connection.post(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
    }

    pub(crate) fn unknown_method(mut self, method: &str) {
        self.refuse(UNKNOWN_METHOD, &format!("squad has no method {method}"));
    }

    pub(crate) fn invalid(mut self, why: &str) {
        self.refuse(-32602, why);
    }

    fn refuse(&mut self, code: i64, message: &str) {
        if let Some(id) = self.id.take() {
            let error = json!({ "code": code, "message": message });
            self.connection.post(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.refuse(-32000, "nobody is there to answer");
    }
}

async fn write(mut input: impl AsyncWrite + Unpin, mut frames: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        if input.write_all(&frame).await.is_err() || input.flush().await.is_err() {
            // The reader sees the end too, and knows the reason.
            return;
        }
    }
    let _ = input.shutdown().await;
}

/// Locks without giving up on a lock that a panicking thread held: nothing here is left half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, DuplexStream};

    use super::*;

    /// Answers `echo`, keeps `drop` unanswered, and notes what it is told.
    #[derive(Default)]
    struct Echo(Mutex<Vec<String>>);

    impl Incoming for Echo {
        fn notified(&self, _: &Arc<Connection>, method: &str, _: Value) {
            lock(&self.0).push(method.to_owned());
        }

        fn asked(&self, responder: Responder, method: &str, params: Value) {
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
        let client = Connection::start(left.0, right.0, Arc::new(Echo::default()));
        let server = Connection::start(right.1, left.1, Arc::clone(&echo) as Arc<dyn Incoming>);
        (client, server, echo)
    }

    fn raw() -> (Arc<Connection>, DuplexStream, DuplexStream) {
        let (left, right) = (tokio::io::duplex(4096), tokio::io::duplex(4096));
        (Connection::start(left.0, right.0, Arc::new(Echo::default())), left.1, right.1)
    }

    const SOON: Duration = Duration::from_millis(100);

    #[tokio::test(start_paused = true)]
    async fn every_request_has_its_own_answer() {
        let (client, _server, _) = pair();
        let (one, two) = (json!({ "n": 1 }), json!({ "n": 2 }));
        let (first, second) = tokio::join!(client.request("echo", &one, SOON), client.request("echo", &two, SOON));
        assert_eq!((first, second), (Ok(one), Ok(two)));
        let unknown = client.request("nothing", &(), SOON).await.expect_err("no such method");
        assert!(unknown.is_unknown_method(), "{unknown}");
        let dropped = client.request("drop", &(), SOON).await.expect_err("nobody answers");
        assert_eq!(dropped.to_string(), "nobody is there to answer");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_at_the_deadline_and_leaves_nothing_behind() {
        let (client, _input, _output) = raw();
        assert_eq!(client.request("echo", &(), SOON).await, Err(CallError::Silent(SOON)));
        assert!(lock(&client.waiting).requests.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_fails_those_who_wait_and_those_who_come() {
        let (client, input, output) = raw();
        let (waiting, ()) = tokio::join!(client.request("echo", &(), SOON), async { drop((input, output)) });
        assert_eq!(waiting, Err(CallError::Closed("it closed its output".into())));
        assert_eq!(client.request("echo", &(), SOON).await, waiting);
        client.fail("another reason");
        assert_eq!(client.closed().await, "it closed its output");
    }

    #[tokio::test(start_paused = true)]
    async fn nonsense_between_messages_is_survived() {
        let (client, mut input, mut output) = raw();
        for nonsense in ["nonsense", "{}", "[]", "null", r#"{"id":{},"result":1}"#, r#"{"id":99,"result":1}"#] {
            let frame = format!("Content-Length: {}\r\n\r\n{nonsense}", nonsense.len());
            output.write_all(frame.as_bytes()).await.expect("the pipe is open");
        }
        let answer = frame::encode(&json!({ "id": 1, "result": "good" })).expect("JSON");
        let (result, ()) = tokio::join!(client.request("x", &(), SOON), async {
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
            client.post(&json!({ "method": method }));
        }
        let _ = client.request("echo", &(), SOON).await;
        assert_eq!(*lock(&echo.0), ["a", "b", "c"]);
    }
}
