//! Places for those who work at the same time. Core agents come before others; among equals, whoever asked first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The order is the order in which places are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    Core,
    #[default]
    Specialist,
}

pub(crate) struct Places {
    queue: Mutex<Queue>,
}

struct Queue {
    free: usize,
    asked: u64,
    waiting: BTreeMap<(Priority, u64), oneshot::Sender<Place>>,
}

/// A place, until it is dropped.
pub(crate) struct Place(Option<Arc<Places>>);

impl Places {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        let queue = Queue { free: count, asked: 0, waiting: BTreeMap::new() };
        Arc::new(Self { queue: Mutex::new(queue) })
    }

    /// Waits for a place. Whoever stops waiting takes none.
    pub(super) async fn take(self: &Arc<Self>, priority: Priority) -> Place {
        let receiver = {
            let mut queue = self.queue();
            if queue.free > 0 {
                queue.free -= 1;
                return Place(Some(Arc::clone(self)));
            }
            let (sender, receiver) = oneshot::channel();
            queue.asked += 1;
            let number = queue.asked;
            queue.waiting.insert((priority, number), sender);
            receiver
        };
        // The sender stays in the queue until it is used.
        receiver.await.unwrap_or(Place(None))
    }

    /// Gives a place that is free to whoever is next.
    fn free(self: Arc<Self>) {
        loop {
            let next = {
                let mut queue = self.queue();
                let Some((_, next)) = queue.waiting.pop_first() else {
                    queue.free += 1;
                    return;
                };
                next
            };
            match next.send(Place(Some(Arc::clone(&self)))) {
                Ok(()) => return,
                // That one has stopped waiting.
                Err(mut place) => drop(place.0.take()),
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(places) = self.0.take() {
            places.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn core_agents_come_first_and_then_whoever_asked_first() {
        let places = Places::new(1);
        let held = places.take(Priority::Specialist).await;
        let (sender, mut served) = mpsc::unbounded_channel();
        for (name, priority) in
            [("a", Priority::Specialist), ("b", Priority::Core), ("c", Priority::Specialist), ("d", Priority::Core)]
        {
            let (places, sender) = (Arc::clone(&places), sender.clone());
            tokio::spawn(async move {
                let _place = places.take(priority).await;
                sender.send(name).expect("the test listens");
                sleep(Duration::from_secs(1)).await;
            });
            tokio::task::yield_now().await;
        }
        drop((held, sender));
        let mut order = Vec::new();
        while let Some(name) = served.recv().await {
            order.push(name);
        }
        assert_eq!(order, ["b", "d", "a", "c"]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waiting_costs_nobody_a_place() {
        let places = Places::new(1);
        let held = places.take(Priority::Core).await;
        for _ in 0..3 {
            let waiting = tokio::time::timeout(Duration::from_secs(1), places.take(Priority::Core)).await;
            assert!(waiting.is_err());
        }
        drop(held);
        let again = tokio::time::timeout(Duration::from_secs(1), places.take(Priority::Core)).await;
        assert!(again.is_ok());
    }
}
