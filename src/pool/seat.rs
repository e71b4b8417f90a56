//! A place among those who may work at the same time. Who waits for a colleague gives it up for that time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::places::{Place, Places, Priority};

pub(super) struct Seat {
    places: Arc<Places>,
    priority: Priority,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    place: Option<Place>,
    /// Colleagues that are waited for.
    waits: usize,
    is_over: bool,
}

impl Seat {
    pub(super) fn new(places: Arc<Places>, priority: Priority) -> Arc<Self> {
        Arc::new(Self { places, priority, held: Mutex::default() })
    }

    /// Returns when there is a place; at once where none is needed any more, because the work is over or waits again.
    pub(super) async fn take(&self) {
        if !self.is_wanted() {
            return;
        }
        let place = self.places.take(self.priority).await;
        let mut held = self.held();
        if held.waits == 0 && !held.is_over {
            held.place = Some(place);
        }
    }

    /// A wait begins.
    pub(super) fn give_up(&self) {
        let mut held = self.held();
        held.waits += 1;
        held.place = None;
    }

    /// A wait has ended; the last of several needs a place again.
    pub(super) async fn take_again(&self) {
        self.held().waits -= 1;
        self.take().await;
    }

    /// The work is over.
    pub(super) fn leave(&self) {
        let mut held = self.held();
        held.is_over = true;
        held.place = None;
    }

    fn is_wanted(&self) -> bool {
        let held = self.held();
        held.waits == 0 && held.place.is_none() && !held.is_over
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
