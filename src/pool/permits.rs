//! Limits how many agents work at the same time. Core agents come first; then the order of arrival counts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::env::lock;

/// Sorted by precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    Core,
    #[default]
    Specialist,
}

pub(crate) struct Permits {
    queue: Mutex<Queue>,
    places: Option<Places>,
}

struct Queue {
    free: usize,
    asked: u64,
    waiting: BTreeMap<(Priority, u64), oneshot::Sender<Permit>>,
}

/// Permission to work, until it is dropped.
pub(crate) struct Permit {
    permits: Option<Arc<Permits>>,
    /// A place that it has among other processes.
    place: Option<File>,
}

/// Files to lock, one for each agent that may work at the same time in several processes. The kernel frees those of a
/// process that dies.
struct Places {
    folder: PathBuf,
    count: usize,
    /// Where to look first: places that this process has just taken need not be tried again.
    next: AtomicUsize,
}

/// How often to look for a free place: the system tells of a freed lock only one that waits for this very lock.
const PLACE_INTERVAL: Duration = Duration::from_millis(50);
/// How long to wait for a place. Members work for five minutes unless the caller says otherwise; one that holds its place
/// for longer may be suspended, or waits for the one that waits here.
const PLACE_LIMIT: Duration = Duration::from_secs(600);

impl Permits {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Self::with(count, None)
    }

    /// Counts the agents of every process that uses this folder.
    pub(crate) fn shared(count: usize, folder: &Path) -> Arc<Self> {
        Self::with(count, Some(Places { folder: folder.to_owned(), count, next: AtomicUsize::new(0) }))
    }

    fn with(count: usize, places: Option<Places>) -> Arc<Self> {
        let queue = Queue { free: count, asked: 0, waiting: BTreeMap::new() };
        Arc::new(Self { queue: Mutex::new(queue), places })
    }

    /// Waits for a permit. A caller that stops waiting takes none.
    pub(crate) async fn take(self: &Arc<Self>, priority: Priority) -> Permit {
        let mut permit = self.take_here(priority).await;
        if let Some(places) = &self.places {
            permit.place = places.take().await;
        }
        permit
    }

    async fn take_here(self: &Arc<Self>, priority: Priority) -> Permit {
        let receiver = {
            let mut queue = self.queue.lock();
            if queue.free > 0 {
                queue.free -= 1;
                return Permit::of(self);
            }
            let (sender, receiver) = oneshot::channel();
            queue.asked += 1;
            let number = queue.asked;
            queue.waiting.insert((priority, number), sender);
            receiver
        };
        // The sender stays in the queue until it is used.
        receiver.await.unwrap_or(Permit { permits: None, place: None })
    }

    /// Passes a free permit on to the next in the queue.
    fn free(self: Arc<Self>) {
        loop {
            let next = {
                let mut queue = self.queue.lock();
                let Some((_, next)) = queue.waiting.pop_first() else {
                    queue.free += 1;
                    return;
                };
                next
            };
            match next.send(Permit::of(&self)) {
                Ok(()) => return,
                // That caller has stopped waiting.
                Err(mut permit) => drop(permit.permits.take()),
            }
        }
    }
}

impl Places {
    /// `None`: places cannot be counted here, or none was freed in time. That keeps nobody from working.
    async fn take(&self) -> Option<File> {
        let deadline = Instant::now() + PLACE_LIMIT;
        loop {
            match self.free() {
                Ok(Some(place)) => return Some(place),
                Ok(None) if Instant::now() >= deadline => {
                    tracing::warn!("no slot became free for {} seconds", PLACE_LIMIT.as_secs());
                    return None;
                }
                Ok(None) => sleep(PLACE_INTERVAL).await,
                Err(error) => {
                    tracing::warn!("agents of other runs are not counted: {}: {error}", self.folder.display());
                    return None;
                }
            }
        }
    }

    fn free(&self) -> io::Result<Option<File>> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for number in (0..self.count).map(|number| (first + number) % self.count) {
            let path = self.folder.join(number.to_string());
            let place = lock::open(&path)?;
            if lock::try_take(&place)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}

impl Permit {
    fn of(permits: &Arc<Permits>) -> Self {
        Self { permits: Some(Arc::clone(permits)), place: None }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // Before another agent of this process gets the permit, and looks for a place.
        self.place = None;
        if let Some(permits) = self.permits.take() {
            permits.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

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
    #[tokio::test]
    async fn processes_share_places() {
        let folder = tempfile::tempdir().expect("a folder");
        // Each stands for a process: file locks belong to the open file.
        let [one, other] = [(); 2].map(|()| Permits::shared(2, &folder.path().join("places")));
        let held = [one.take(Priority::Core).await, other.take(Priority::Core).await];
        let waiting = tokio::time::timeout(4 * PLACE_INTERVAL, one.take(Priority::Core)).await;
        assert!(waiting.is_err(), "two work, and that is the limit of both");
        drop(held);
        let _held = [one.take(Priority::Core).await, one.take(Priority::Core).await];
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_place_for_ever() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, other] = [(); 2].map(|()| Permits::shared(1, folder.path()));
        let _held = one.take(Priority::Core).await;
        let begun = Instant::now();
        other.take(Priority::Core).await;
        assert!(begun.elapsed() >= PLACE_LIMIT);
    }

    #[tokio::test]
    async fn agents_work_where_places_cannot_be_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("places"), "in the way").expect("a file");
        Permits::shared(1, &folder.path().join("places")).take(Priority::Core).await;
    }
}
