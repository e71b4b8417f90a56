//! The way from a watch to whoever shows it, which nobody waits for, and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use super::keys::Key;
use crate::model::{Event, Keeping, RunId, Slug};

/// Events that may wait to be shown; then those go unshown that no record keeps.
const QUEUE: usize = 10_000;

/// What comes to whoever shows a watch.
#[cfg_attr(windows, expect(dead_code, reason = "a console tells of no size, and nothing stops there"))]
pub(crate) enum Shown {
    Event(Box<Event>),
    Key(Key),
    /// The terminal has another size.
    Resized,
    /// The program is to be stopped, as by Ctrl-Z.
    Stop,
    /// It was stopped, and goes on.
    GoesOn,
    /// It ends what is going on.
    Ending,
    End,
}

/// What the person there wants of the watch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Cancel { run: RunId, agent: Slug },
    Answer { run: RunId, question: u64, text: String },
}

/// The watch's end, and that of the thread that waits for keys.
#[derive(Clone)]
pub(crate) struct Showing {
    sender: Sender<Shown>,
    waiting: Arc<AtomicUsize>,
}

/// The end of whoever shows it.
pub(crate) struct Shows {
    pub(super) showing: Showing,
    receiver: Receiver<Shown>,
    pub(super) wishes: mpsc::UnboundedSender<Wish>,
    /// The watch is to end, as by Ctrl-C.
    pub(super) end: Arc<Notify>,
}

impl Shows {
    pub(crate) fn channel(wishes: mpsc::UnboundedSender<Wish>, end: Arc<Notify>) -> (Showing, Self) {
        let (sender, receiver) = channel();
        let showing = Showing { sender, waiting: Arc::default() };
        (showing.clone(), Self { showing, receiver, wishes, end })
    }

    /// The next, within this time if one is given. `None`: nothing has come.
    pub(super) fn next(&self, within: Option<Duration>) -> Option<Shown> {
        let shown = match within {
            Some(within) => self.receiver.recv_timeout(within),
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let shown = match shown {
            Ok(shown) => shown,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => Shown::End,
        };
        if matches!(shown, Shown::Event(_)) {
            self.showing.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        Some(shown)
    }
}

impl Showing {
    pub(crate) fn event(&self, event: Event) {
        if event.what.keeping() == Keeping::Never && self.waiting.load(Ordering::Relaxed) > QUEUE {
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.send(Shown::Event(Box::new(event)));
    }

    pub(crate) fn send(&self, shown: Shown) {
        // Whoever shows it outlives the watch.
        let _ = self.sender.send(shown);
    }
}

/// Shows a watch until it ends.
pub(crate) trait Follow {
    /// Whether somebody is there to answer questions.
    fn answers(&self) -> bool;

    fn follow(&mut self, shows: Shows);
}
