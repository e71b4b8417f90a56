//! The watch's side of a connection: messages to the client, its replies, and disconnection if it does not read.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use interprocess::local_socket::tokio::Stream;
use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::error::Failure;
use crate::model::{Event, RunId};
use crate::ops::decisions::landing::Landed;
use crate::ops::run::host::{FromClient, FromHost, Incoming, to_line};
use crate::ops::run::order::Land;
use crate::pool::{Ask, Question, Show};

/// Most bytes queued for a client. One that reads more slowly is disconnected.
const MAX_QUEUED: usize = 8 * 1024 * 1024;

/// The connection between a run and its client.
pub(super) struct Client {
    /// `None`: nothing more is sent.
    lines: Mutex<Option<mpsc::UnboundedSender<Vec<u8>>>>,
    /// Bytes queued for writing.
    queued: AtomicUsize,
    /// Signalled to close the connection.
    disconnected: Notify,
    pending_replies: Mutex<PendingReplies>,
    /// The user at the watch's terminal answers what the client does not.
    has_local_user: bool,
    /// The client's run.
    run: OnceLock<RunId>,
}

#[derive(Default)]
struct PendingReplies {
    answers: BTreeMap<u64, oneshot::Sender<String>>,
    landed: Option<oneshot::Sender<Result<Landed, Failure>>>,
    is_gone: bool,
}

/// Sends events to the watch's own view and to the client of the run.
pub(super) struct Feed {
    pub(super) watch: mpsc::UnboundedSender<Event>,
    pub(super) client: Option<Arc<Client>>,
}

impl Show for Feed {
    fn show(&mut self, event: &Event) {
        // The view outlives every run.
        let _ = self.watch.send(event.clone());
        if let Some(client) = &self.client {
            client.run.get_or_init(|| event.run.clone());
            client.send(&FromHost::Event(Box::new(event.clone())));
        }
    }
}

impl Client {
    pub(super) fn new(has_local_user: bool) -> (Arc<Self>, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (lines, queue) = mpsc::unbounded_channel();
        let (pending_replies, queued, disconnected, run) = Default::default();
        (
            Arc::new(Self {
                lines: Mutex::new(Some(lines)),
                queued,
                disconnected,
                pending_replies,
                has_local_user,
                run,
            }),
            queue,
        )
    }

    /// A function that asks the client's user.
    pub(super) fn asker(self: &Arc<Self>) -> Ask {
        let client = Arc::clone(self);
        Arc::new(move |Question { number: id, text: question, proposal }, answer| {
            let is_gone = {
                let mut pending_replies = client.pending_replies.lock();
                if pending_replies.is_gone && !client.has_local_user {
                    return;
                }
                pending_replies.answers.insert(id, answer);
                pending_replies.is_gone
            };
            if !is_gone {
                client.send(&FromHost::Ask { id, question, proposal: proposal.map(Box::new) });
            }
        })
    }

    pub(super) fn is_of(&self, run: &RunId) -> bool {
        self.run.get() == Some(run)
    }

    /// Answers a question, from either terminal. The first answer counts.
    pub(super) fn answer(&self, question: u64, text: String) {
        let answer = self.pending_replies.lock().answers.remove(&question);
        if let Some(answer) = answer {
            // The question may have been withdrawn.
            let _ = answer.send(text);
        }
    }

    /// A function that lets the client land decisions: only a command in the foreground may commit on the user's
    /// branch.
    pub(super) fn lander(self: &Arc<Self>) -> Land {
        let client = Arc::clone(self);
        Arc::new(move |done| {
            {
                let mut pending_replies = client.pending_replies.lock();
                if pending_replies.is_gone {
                    return;
                }
                pending_replies.landed = Some(done);
            }
            client.send(&FromHost::Land {});
        })
    }

    fn send(&self, message: &FromHost) {
        let line = to_line(message);
        let bytes = line.len();
        let lines = self.lines.lock();
        if self.queued.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_QUEUED {
            drop(lines);
            return self.disconnect();
        }
        // A closed connection needs nothing more.
        let _ = lines.as_ref().map(|lines| lines.send(line));
    }

    /// Sends the last message.
    pub(super) fn end(&self, last: &FromHost) {
        self.send(last);
        self.lines.lock().take();
    }

    /// Disconnects a client that reads too slowly. It notices the closed connection.
    fn disconnect(&self) {
        self.lines.lock().take();
        self.leave();
        self.disconnected.notify_waiters();
        self.disconnected.notify_one();
    }

    /// Processes the client's messages. Never returns, because its run continues after the connection has closed.
    pub(super) async fn listen(&self, mut incoming: Incoming<ReadHalf<Stream>>, cancel: impl Fn()) -> Infallible {
        loop {
            let message = tokio::select! {
                message = incoming.next() => message,
                () = self.disconnected.notified() => None,
            };
            let Some(message) = message else { break };
            match message {
                FromClient::Cancel { .. } => cancel(),
                FromClient::Answer { id, text: Some(text) } => self.answer(id, text),
                // The client has no user.
                FromClient::Answer { id, text: None } if !self.has_local_user => {
                    drop(self.pending_replies.lock().answers.remove(&id))
                }
                FromClient::Answer { .. } => {}
                FromClient::Landed(landed) => {
                    let done = self.pending_replies.lock().landed.take();
                    // Only the first reply counts.
                    if let Some(done) = done {
                        let _ = done.send(*landed);
                    }
                }
                _ => break,
            }
        }
        self.leave();
        drop(incoming);
        pending().await
    }

    /// No more replies will come from the client. Questions go unanswered, unless the watch's terminal can answer them.
    fn leave(&self) {
        let mut pending_replies = self.pending_replies.lock();
        let answers = if self.has_local_user { std::mem::take(&mut pending_replies.answers) } else { BTreeMap::new() };
        *pending_replies = PendingReplies { is_gone: true, answers, landed: None };
    }
}

/// Writes messages to a client until all are sent or it is disconnected.
pub(super) async fn write(
    mut sender: WriteHalf<Stream>,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    client: Arc<Client>,
) {
    loop {
        let line = tokio::select! {
            biased;
            () = client.disconnected.notified() => return,
            line = lines.recv() => line,
        };
        let Some(line) = line else { break };
        let is_written = tokio::select! {
            biased;
            () = client.disconnected.notified() => false,
            written = sender.write_all(&line) => written.is_ok(),
        };
        if !is_written {
            return;
        }
        client.queued.fetch_sub(line.len(), Ordering::Relaxed);
    }
    let _ = sender.flush().await;
}
