//! Messages, one a line, to `rmcp` and back.

use std::collections::VecDeque;
use std::io;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::mpsc;

use super::batch::OpenRequests;
use super::line::{LONGEST, Line};
use super::messages::{self, Messages};
use super::signal::Calls;

pub(super) struct Lines {
    lines: mpsc::Receiver<Line>,
    out: mpsc::Sender<String>,
    /// Messages of a batch that are still to be given on.
    messages: VecDeque<ClientJsonRpcMessage>,
    /// Answers that need no service, still to be sent.
    answers: VecDeque<Value>,
    open: OpenRequests,
    calls: Calls,
}

impl Lines {
    pub(super) fn new(lines: mpsc::Receiver<Line>, out: mpsc::Sender<String>, calls: Calls) -> Self {
        let open = OpenRequests::default();
        Self { lines, out, messages: VecDeque::new(), answers: VecDeque::new(), open, calls }
    }

    fn hear(&mut self, line: &[u8]) {
        let Messages { all, is_batch } = messages::read(line);
        let mut refusals = Vec::new();
        let mut good = Vec::new();
        for message in all {
            match message {
                Ok(message) => good.push(message),
                Err(refusal) => refusals.push(refusal),
            }
        }
        if !is_batch {
            self.answers.extend(refusals);
            good.into_iter().for_each(|message| self.take(message, None));
            return;
        }
        let batch = self.open.batch(refusals);
        good.into_iter().for_each(|message| self.take(message, Some(batch)));
        self.answers.extend(self.open.finish(batch));
    }

    fn take(&mut self, message: ClientJsonRpcMessage, batch: Option<usize>) {
        match &message {
            JsonRpcMessage::Request(request) if !self.open.open(&request.id, batch) => {
                let id = serde_json::to_value(&request.id).unwrap_or_default();
                self.answers.push_back(messages::invalid(id, "a request with this id is being worked on"));
                return;
            }
            JsonRpcMessage::Notification(notification) => {
                // It is not answered any more.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.answers.extend(self.open.close(id, None));
                }
            }
            _ => {}
        }
        self.messages.push_back(message);
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let line = serde_json::to_value(&message).map(|value| match answered(&message) {
            Some(id) => self.open.close(id, Some(value)),
            None => Some(value),
        });
        let out = self.out.clone();
        async move {
            match line? {
                Some(value) => out.send(value.to_string()).await.map_err(|_| io::ErrorKind::BrokenPipe.into()),
                None => Ok(()),
            }
        }
    }

    /// Nothing is lost when this is dropped and called again.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            while !self.answers.is_empty() {
                let Ok(place) = self.out.reserve().await else {
                    self.calls.close();
                    return None;
                };
                if let Some(answer) = self.answers.pop_front() {
                    place.send(answer.to_string());
                }
            }
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            let line = tokio::select! {
                line = self.lines.recv() => line,
                // Nobody reads any more.
                () = self.out.closed() => {
                    self.calls.close();
                    return None;
                }
            };
            match line {
                Some(Line::Text(line)) => self.hear(&line),
                Some(Line::TooLong) => self.answers.push_back(messages::too_long(LONGEST)),
                Some(Line::End) | None => {
                    self.calls.close();
                    self.open.none_left().await;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn answered(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}
