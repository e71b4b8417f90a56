//! The processor's time that a run's events take to be shown, for `cargo bench`.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

use crate::model::{Event, EventKind};

/// The variable that names the file to which the end of a run writes them, in nanoseconds.
const FILE: &str = "BENCH_COSTS";

static COSTS: AtomicU64 = AtomicU64::new(0);

/// What one event costs, until it is dropped.
pub(super) struct Cost {
    since: u64,
    is_last: bool,
}

impl Cost {
    pub(super) fn of(event: &Event) -> Self {
        Self { since: processor_time(), is_last: matches!(event.kind, EventKind::RunCompleted(_)) }
    }
}

impl Drop for Cost {
    fn drop(&mut self) {
        let cost = processor_time() - self.since;
        let costs = COSTS.fetch_add(cost, Ordering::Relaxed) + cost;
        if let Some(file) = std::env::var_os(FILE).filter(|_| self.is_last) {
            std::fs::write(file, costs.to_string()).expect("a file");
        }
    }
}

/// Of this thread, in nanoseconds.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).unsigned_abs()
}
