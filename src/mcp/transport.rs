//! A transport for `rmcp` with one message on a line.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::line::{Line, MAX_MESSAGE};
use super::messages;
use super::open_requests::OpenRequests;
use super::signal::Calls;

/// More than a pipe holds.
const BACKLOG_BYTES: usize = 1024 * 1024;
/// After the end of input, how long to wait for a client that does not read.
pub(super) const END_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait for one that does not read and has sent so much that the end of its input cannot be noticed.
const FULL_LIMIT: Duration = Duration::from_secs(60);

pub(super) struct LineTransport {
    incoming: mpsc::Receiver<Line>,
    outgoing: mpsc::Sender<String>,
    /// Messages to pass to `rmcp`.
    messages: VecDeque<ClientJsonRpcMessage>,
    /// Responses to send that do not come from `rmcp`.
    responses: VecDeque<Value>,
    open: OpenRequests,
    calls: Calls,
    backlog: Backlog,
    /// Whether the client has stopped reading.
    is_deaf: watch::Sender<bool>,
}

/// Lines that are read while `outgoing` is full, to notice the end of input behind them.
#[derive(Default)]
struct Backlog {
    lines: VecDeque<Line>,
    bytes: usize,
    has_end: bool,
}

impl Backlog {
    fn push(&mut self, line: Option<Line>) {
        match line {
            None | Some(Line::End) => self.has_end = true,
            Some(line) => {
                self.bytes += line.size();
                self.lines.push_back(line);
            }
        }
    }

    fn pop(&mut self) -> Option<Line> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.size();
        Some(line)
    }

    fn has_room(&self) -> bool {
        !self.has_end && self.bytes < BACKLOG_BYTES
    }
}

impl LineTransport {
    /// Sets `is_deaf` if the client does not read at the end.
    pub(super) fn new(
        incoming: mpsc::Receiver<Line>,
        outgoing: mpsc::Sender<String>,
        calls: Calls,
        is_deaf: watch::Sender<bool>,
    ) -> Self {
        let (messages, responses) = (VecDeque::new(), VecDeque::new());
        let (open, backlog) = (OpenRequests::default(), Backlog::default());
        Self { incoming, outgoing, messages, responses, open, calls, backlog, is_deaf }
    }

    /// Sends responses, and waits until there is room for another one, so that a client that does not read cannot pile
    /// them up. `false`: it does not read any more.
    async fn wait_for_room(&mut self) -> bool {
        loop {
            tokio::select! {
                biased;
                room = self.outgoing.reserve() => {
                    let Ok(room) = room else { return false };
                    let Some(response) = self.responses.pop_front() else { return true };
                    room.send(response.to_string());
                }
                line = self.incoming.recv(), if self.backlog.has_room() => self.backlog.push(line),
                () = sleep(if self.backlog.has_end { END_LIMIT } else { FULL_LIMIT }), if !self.backlog.has_room() => {
                    self.is_deaf.send_replace(true);
                    return false;
                }
            }
        }
    }

    fn handle_line(&mut self, line: &[u8]) {
        match messages::parse(line) {
            Ok(message) => self.enqueue(message),
            Err(error) => self.responses.push_back(error),
        }
    }

    fn enqueue(&mut self, message: ClientJsonRpcMessage) {
        match &message {
            JsonRpcMessage::Request(request) if !self.open.add(&request.id) => {
                let id = serde_json::to_value(&request.id).unwrap_or_default();
                self.responses.push_back(messages::invalid_request(id, "another request with this id is in progress"));
                return;
            }
            JsonRpcMessage::Notification(notification) => {
                // A cancelled request gets no response.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.remove(id);
                }
            }
            _ => {}
        }
        self.messages.push_back(message);
    }
}

impl Transport<RoleServer> for LineTransport {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let line = serde_json::to_string(&message);
        if let Some(id) = response_id(&message) {
            self.open.remove(id);
        }
        let outgoing = self.outgoing.clone();
        let mut is_deaf = self.is_deaf.subscribe();
        async move {
            let line = line?;
            let is_sent = tokio::select! {
                sent = outgoing.send(line) => sent.is_ok(),
                _ = is_deaf.wait_for(|&is_deaf| is_deaf) => false,
            };
            if is_sent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        }
    }

    /// Cancel safe.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if !self.wait_for_room().await {
                self.calls.close();
                return None;
            }
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            let line = match self.backlog.pop() {
                None if !self.backlog.has_end => tokio::select! {
                    line = self.incoming.recv() => line,
                    // The client no longer reads.
                    () = self.outgoing.closed() => {
                        self.calls.close();
                        return None;
                    }
                },
                line => line,
            };
            match line {
                Some(Line::Text(line)) => self.handle_line(&line),
                Some(Line::TooLong) => self.responses.push_back(messages::too_long(MAX_MESSAGE)),
                Some(Line::End) | None => {
                    self.calls.close();
                    self.open.wait_until_empty().await;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The id of the request that a response answers. `None`: the message is not a response to a request.
fn response_id(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerResult;

    use super::*;

    const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    struct Client {
        input: mpsc::Sender<Line>,
        output: mpsc::Receiver<String>,
        transport: LineTransport,
    }

    impl Client {
        fn new() -> Self {
            let (input, incoming) = mpsc::channel(2);
            let (outgoing, output) = mpsc::channel(1);
            let transport = LineTransport::new(incoming, outgoing, Calls::default(), watch::Sender::new(false));
            Self { input, output, transport }
        }

        /// It has not read an answer, so its next request waits.
        async fn unread() -> Self {
            let mut client = Self::new();
            client.say(b"no JSON").await;
            client.say(PING).await;
            let waiting = tokio::time::timeout(END_LIMIT * 10, client.transport.receive()).await;
            assert!(waiting.is_err(), "{waiting:?}");
            client
        }

        async fn say(&mut self, line: &[u8]) {
            self.input.send(Line::Text(line.to_vec())).await.expect("it reads");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_until_their_client_reads() {
        let mut client = Client::unread().await;
        assert!(client.output.recv().await.is_some_and(|line| line.contains("-32700")));
        assert!(matches!(client.transport.receive().await, Some(JsonRpcMessage::Request(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn nor_can_one_that_sends_more_than_is_kept() {
        let mut client = Client::new();
        client.say(b"no JSON").await;
        client.say(PING).await;
        let large = vec![b' '; BACKLOG_BYTES];
        let Client { input, transport, .. } = &mut client;
        let receive = tokio::time::timeout(FULL_LIMIT * 10, transport.receive());
        let (message, ()) = tokio::join!(receive, async {
            input.send(Line::Text(large)).await.expect("it reads");
        });
        assert!(matches!(message, Ok(None)), "{message:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_reads_cannot_keep_the_server() {
        let mut client = Client::unread().await;
        // More than the queue holds, so that the end is noticed behind it.
        for _ in 0..4 {
            let Client { input, transport, .. } = &mut client;
            tokio::select! {
                sent = input.send(Line::Text(PING.to_vec())) => sent.expect("it reads"),
                message = transport.receive() => panic!("{message:?}"),
            }
        }
        let (input, _incoming) = mpsc::channel(1);
        drop(std::mem::replace(&mut client.input, input));
        let response = JsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(1));
        let send = client.transport.send(response);
        assert!(client.transport.receive().await.is_none());
        assert!(send.await.is_err());
    }
}
