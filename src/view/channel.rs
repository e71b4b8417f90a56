//! The channel between a watch and its view. The watch never waits for the view.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use super::Text;
use super::keys::Key;
use crate::model::{Event, Keeping, RunId, Slug};

/// How many events may be queued. Beyond that, events that are not recorded are not shown.
const QUEUE: usize = 10_000;

/// Input of a view.
#[cfg_attr(windows, expect(dead_code, reason = "a console reports neither resizes nor suspension"))]
pub(crate) enum ViewInput {
    Event(Box<Event>),
    Key(Key),
    /// What an agent changed in a run, or why there is nothing to show.
    Changes {
        run: RunId,
        agent: Slug,
        found: Result<Vec<Text>, String>,
    },
    /// The terminal was resized.
    Resized,
    /// Suspend the program, as for Ctrl-Z.
    Stop,
    /// The program was resumed.
    Resumed,
    /// The watch is ending its runs.
    Ending,
    End,
}

/// Requests of the person at the terminal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UserCommand {
    Cancel { run: RunId, agent: Slug },
    Say { run: RunId, agent: Slug, text: String },
    Answer { run: RunId, question: u64, text: String },
}

/// Sends input to the view: used by the watch and the thread that reads keys.
#[derive(Clone)]
pub(crate) struct ViewSender {
    sender: Sender<ViewInput>,
    waiting: Arc<AtomicUsize>,
}

/// Receives input in the view, and sends requests back.
pub(crate) struct ViewReceiver {
    pub(super) sender: ViewSender,
    receiver: Receiver<ViewInput>,
    pub(super) commands: mpsc::UnboundedSender<UserCommand>,
    /// Signals that the watch should end, as on Ctrl-C.
    pub(super) end: Arc<Notify>,
}

impl ViewReceiver {
    pub(crate) fn channel(commands: mpsc::UnboundedSender<UserCommand>, end: Arc<Notify>) -> (ViewSender, Self) {
        let (sender, receiver) = channel();
        let sender = ViewSender { sender, waiting: Arc::default() };
        (sender.clone(), Self { sender, receiver, commands, end })
    }

    /// The next input, or `None` if there is none within this time.
    pub(super) fn next(&self, within: Option<Duration>) -> Option<ViewInput> {
        let shown = match within {
            Some(within) => self.receiver.recv_timeout(within),
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let shown = match shown {
            Ok(shown) => shown,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => ViewInput::End,
        };
        if matches!(shown, ViewInput::Event(_)) {
            self.sender.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        Some(shown)
    }
}

impl ViewSender {
    pub(crate) fn event(&self, event: Event) {
        if event.kind.keeping() == Keeping::Never && self.waiting.load(Ordering::Relaxed) > QUEUE {
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.send(ViewInput::Event(Box::new(event)));
    }

    pub(crate) fn send(&self, shown: ViewInput) {
        // The view outlives the watch.
        let _ = self.sender.send(shown);
    }
}

/// A view of a watch.
pub(crate) trait WatchView {
    /// Whether there is a person to answer questions.
    fn answers(&self) -> bool;

    fn follow(&mut self, inputs: ViewReceiver);
}
