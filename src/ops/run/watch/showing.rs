//! The way to whoever shows events, which nobody waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::model::{Event, Keeping};

/// Events that may wait to be shown; then those go unshown that no record keeps.
const QUEUE: usize = 10_000;

/// The way to whoever shows events.
pub(super) struct View {
    events: Sender<Event>,
    pub(super) waiting: Arc<AtomicUsize>,
}

impl View {
    pub(super) fn channel() -> (Self, Receiver<Event>) {
        let (events, shown) = channel();
        (Self { events, waiting: Arc::default() }, shown)
    }

    pub(super) fn show(&self, event: Event) {
        if event.what.keeping() == Keeping::Never && self.waiting.load(Ordering::Relaxed) > QUEUE {
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // The one who shows them outlives the watch.
        let _ = self.events.send(event);
    }
}
