//! A transport for `rmcp` with one message or batch on a line.

use std::collections::VecDeque;
use std::io;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::mpsc;

use super::batch::OpenRequests;
use super::line::{Line, MAX_MESSAGE};
use super::messages::{self, Messages};
use super::signal::Calls;

pub(super) struct LineTransport {
    incoming: mpsc::Receiver<Line>,
    outgoing: mpsc::Sender<String>,
    /// Messages to pass to `rmcp`.
    messages: VecDeque<ClientJsonRpcMessage>,
    /// Responses to send that do not come from `rmcp`.
    responses: VecDeque<Value>,
    open: OpenRequests,
    calls: Calls,
}

impl LineTransport {
    pub(super) fn new(incoming: mpsc::Receiver<Line>, outgoing: mpsc::Sender<String>, calls: Calls) -> Self {
        let open = OpenRequests::default();
        Self { incoming, outgoing, messages: VecDeque::new(), responses: VecDeque::new(), open, calls }
    }

    fn handle_line(&mut self, line: &[u8]) {
        let Messages { all, is_batch } = messages::parse(line);
        let mut errors = Vec::new();
        let mut valid = Vec::new();
        for message in all {
            match message {
                Ok(message) => valid.push(message),
                Err(error) => errors.push(error),
            }
        }
        if !is_batch {
            self.responses.extend(errors);
            valid.into_iter().for_each(|message| self.enqueue(message, None));
            return;
        }
        let batch = self.open.add_batch(errors);
        valid.into_iter().for_each(|message| self.enqueue(message, Some(batch)));
        self.responses.extend(self.open.finish_batch(batch));
    }

    fn enqueue(&mut self, message: ClientJsonRpcMessage, batch: Option<usize>) {
        match &message {
            JsonRpcMessage::Request(request) if !self.open.add(&request.id, batch) => {
                let id = serde_json::to_value(&request.id).unwrap_or_default();
                self.responses.push_back(messages::invalid_request(id, "another request with this id is in progress"));
                return;
            }
            JsonRpcMessage::Notification(notification) => {
                // A cancelled request gets no response.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.responses.extend(self.open.remove(id, None));
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
        let line = serde_json::to_value(&message).map(|value| match response_id(&message) {
            Some(id) => self.open.remove(id, Some(value)),
            None => Some(value),
        });
        let outgoing = self.outgoing.clone();
        async move {
            match line? {
                Some(value) => outgoing.send(value.to_string()).await.map_err(|_| io::ErrorKind::BrokenPipe.into()),
                None => Ok(()),
            }
        }
    }

    /// Cancel safe.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            while !self.responses.is_empty() {
                let Ok(permit) = self.outgoing.reserve().await else {
                    self.calls.close();
                    return None;
                };
                if let Some(response) = self.responses.pop_front() {
                    permit.send(response.to_string());
                }
            }
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            let line = tokio::select! {
                line = self.incoming.recv() => line,
                // The client no longer reads.
                () = self.outgoing.closed() => {
                    self.calls.close();
                    return None;
                }
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
