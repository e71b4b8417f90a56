//! Limits how many agents work at the same time. Core agents come first; then the order of arrival counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Sorted by precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    Core,
    #[default]
    Specialist,
}

pub(crate) struct Permits {
    queue: Mutex<Queue>,
}

struct Queue {
    free: usize,
    asked: u64,
    waiting: BTreeMap<(Priority, u64), oneshot::Sender<Permit>>,
}

/// Permission to work, until it is dropped.
pub(crate) struct Permit(Option<Arc<Permits>>);

impl Permits {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        let queue = Queue { free: count, asked: 0, waiting: BTreeMap::new() };
        Arc::new(Self { queue: Mutex::new(queue) })
    }

    /// Waits for a permit. A caller that stops waiting takes none.
    pub(super) async fn take(self: &Arc<Self>, priority: Priority) -> Permit {
        let receiver = {
            let mut queue = self.queue();
            if queue.free > 0 {
                queue.free -= 1;
                return Permit(Some(Arc::clone(self)));
            }
            let (sender, receiver) = oneshot::channel();
            queue.asked += 1;
            let number = queue.asked;
            queue.waiting.insert((priority, number), sender);
            receiver
        };
        // The sender stays in the queue until it is used.
        receiver.await.unwrap_or(Permit(None))
    }

    /// Passes a free permit on to the next in the queue.
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
            match next.send(Permit(Some(Arc::clone(&self)))) {
                Ok(()) => return,
                // That caller has stopped waiting.
                Err(mut permit) => drop(permit.0.take()),
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(permits) = self.0.take() {
            permits.free();
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
    async fn core_agents_come_first_then_arrival_order_counts() {
        let permits = Permits::new(1);
        let held = permits.take(Priority::Specialist).await;
        let (sender, mut served) = mpsc::unbounded_channel();
        for (name, priority) in
            [("a", Priority::Specialist), ("b", Priority::Core), ("c", Priority::Specialist), ("d", Priority::Core)]
        {
            let (permits, sender) = (Arc::clone(&permits), sender.clone());
            tokio::spawn(async move {
                let _place = permits.take(priority).await;
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
    async fn a_caller_that_stops_waiting_takes_no_permit() {
        let permits = Permits::new(1);
        let held = permits.take(Priority::Core).await;
        for _ in 0..3 {
            let waiting = tokio::time::timeout(Duration::from_secs(1), permits.take(Priority::Core)).await;
            assert!(waiting.is_err());
        }
        drop(held);
        let again = tokio::time::timeout(Duration::from_secs(1), permits.take(Priority::Core)).await;
        assert!(again.is_ok());
    }
}
