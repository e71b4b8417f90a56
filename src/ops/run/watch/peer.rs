//! The other end of a connection: what is said to it, what it is asked, and what becomes of it when it does not read.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use interprocess::local_socket::tokio::Stream;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, mpsc, oneshot};

use super::wire::{FromClient, FromWatch, Incoming, written};
use crate::error::Failure;
use crate::model::{Event, RunId};
use crate::ops::decisions::landing::Landed;
use crate::ops::run::order::Land;
use crate::pool::{Ask, Question, Show};

/// Bytes that may wait for a client. One that reads more slowly is let go.
const MOST: usize = 8 * 1024 * 1024;

/// What is open between a run and the client it is for.
pub(super) struct Client {
    /// `None`: nothing is said any more.
    lines: Mutex<Option<mpsc::UnboundedSender<Vec<u8>>>>,
    /// Bytes that wait to be written.
    queued: AtomicUsize,
    /// The connection is to be closed.
    cut: Notify,
    waiting: Mutex<Waiting>,
    /// Somebody at the watch's own terminal answers what is not answered here.
    is_stood_in: bool,
    /// The run that is carried out for it.
    run: OnceLock<RunId>,
}

#[derive(Default)]
struct Waiting {
    answers: BTreeMap<u64, oneshot::Sender<String>>,
    landed: Option<oneshot::Sender<Result<Landed, Failure>>>,
    is_gone: bool,
}

/// Events to whoever looks: the watch's own view, and the client that asked for the run.
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
            client.send(&FromWatch::Event(Box::new(event.clone())));
        }
    }
}

impl Client {
    pub(super) fn new(is_stood_in: bool) -> (Arc<Self>, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (lines, queue) = mpsc::unbounded_channel();
        let (waiting, queued, cut, run) = Default::default();
        (Arc::new(Self { lines: Mutex::new(Some(lines)), queued, cut, waiting, is_stood_in, run }), queue)
    }

    /// Asks the person there.
    pub(super) fn asks(self: &Arc<Self>) -> Ask {
        let client = Arc::clone(self);
        Arc::new(move |Question { number: id, text: question }, answer| {
            let is_gone = {
                let mut waiting = client.waiting();
                if waiting.is_gone && !client.is_stood_in {
                    return;
                }
                waiting.answers.insert(id, answer);
                waiting.is_gone
            };
            if !is_gone {
                client.send(&FromWatch::Ask { id, question });
            }
        })
    }

    pub(super) fn is_of(&self, run: &RunId) -> bool {
        self.run.get() == Some(run)
    }

    /// What somebody says to a question, here or there: the first answer counts.
    pub(super) fn answer(&self, question: u64, text: String) {
        let answer = self.waiting().answers.remove(&question);
        if let Some(answer) = answer {
            // Whoever asked may have been stopped meanwhile.
            let _ = answer.send(text);
        }
    }

    /// Has the client land what was decided: only a command in the foreground commits on the user's branch.
    pub(super) fn lands(self: &Arc<Self>) -> Land {
        let client = Arc::clone(self);
        Arc::new(move |done| {
            {
                let mut waiting = client.waiting();
                if waiting.is_gone {
                    return;
                }
                waiting.landed = Some(done);
            }
            client.send(&FromWatch::Land {});
        })
    }

    fn send(&self, message: &FromWatch) {
        let line = written(message);
        let bytes = line.len();
        let lines = self.lines();
        if self.queued.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST {
            drop(lines);
            return self.let_go();
        }
        // A connection that is closed needs nothing any more.
        let _ = lines.as_ref().map(|lines| lines.send(line));
    }

    /// The last that is said to it.
    pub(super) fn end(&self, last: &FromWatch) {
        self.send(last);
        self.lines().take();
    }

    /// It reads too slowly: nobody waits for it, and it is told by the end of the connection.
    fn let_go(&self) {
        self.lines().take();
        self.leave();
        self.cut.notify_waiters();
        self.cut.notify_one();
    }

    fn lines(&self) -> MutexGuard<'_, Option<mpsc::UnboundedSender<Vec<u8>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears what the client says, also when it says nothing any more: its run goes on.
    pub(super) async fn listen(&self, mut incoming: Incoming<ReadHalf<Stream>>, cancel: impl Fn()) -> Infallible {
        loop {
            let message = tokio::select! {
                message = incoming.next() => message,
                () = self.cut.notified() => None,
            };
            let Some(message) = message else { break };
            match message {
                FromClient::Cancel {} => cancel(),
                FromClient::Answer { id, text: Some(text) } => self.answer(id, text),
                // There is nobody.
                FromClient::Answer { id, text: None } if !self.is_stood_in => drop(self.waiting().answers.remove(&id)),
                FromClient::Answer { .. } => {}
                FromClient::Landed(landed) => {
                    let done = self.waiting().landed.take();
                    // Asked for once, it is told once.
                    if let Some(done) = done {
                        let _ = done.send(*landed);
                    }
                }
                FromClient::Orchestrate(_) | FromClient::Leave { .. } => break,
            }
        }
        self.leave();
        drop(incoming);
        pending().await
    }

    /// Nobody answers there any more: whoever waits is told so by the end of his channel, or goes on waiting for somebody
    /// here.
    fn leave(&self) {
        let mut waiting = self.waiting();
        let answers = if self.is_stood_in { std::mem::take(&mut waiting.answers) } else { BTreeMap::new() };
        *waiting = Waiting { is_gone: true, answers, landed: None };
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what is said to a client, until all is said or it is let go.
pub(super) async fn write(
    mut sender: WriteHalf<Stream>,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    client: Arc<Client>,
) {
    loop {
        let line = tokio::select! {
            biased;
            () = client.cut.notified() => return,
            line = lines.recv() => line,
        };
        let Some(line) = line else { break };
        let is_written = tokio::select! {
            biased;
            () = client.cut.notified() => false,
            written = sender.write_all(&line) => written.is_ok(),
        };
        if !is_written {
            return;
        }
        client.queued.fetch_sub(line.len(), Ordering::Relaxed);
    }
    let _ = sender.flush().await;
}
