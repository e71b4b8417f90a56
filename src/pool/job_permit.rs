//! The permit of one job. It is released while the job waits for a colleague.

use std::sync::Arc;

use parking_lot::Mutex;

use super::permits::{Permit, Permits, Priority};

pub(super) struct JobPermit {
    permits: Arc<Permits>,
    priority: Priority,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    permit: Option<Permit>,
    /// Number of colleagues it waits for.
    waits: usize,
    is_over: bool,
}

impl JobPermit {
    pub(super) fn new(permits: Arc<Permits>, priority: Priority) -> Arc<Self> {
        Arc::new(Self { permits, priority, state: Mutex::default() })
    }

    /// Waits for a permit. Returns at once if none is needed, because the work is over or waits again.
    pub(super) async fn take(&self) {
        if !self.is_needed() {
            return;
        }
        let permit = self.permits.take(self.priority).await;
        let mut state = self.state.lock();
        if state.waits == 0 && !state.is_over {
            state.permit = Some(permit);
        }
    }

    /// Begins a wait and releases the permit.
    pub(super) fn begin_wait(&self) {
        let mut state = self.state.lock();
        state.waits += 1;
        state.permit = None;
    }

    /// Ends a wait. After the last one, the job needs a permit again.
    pub(super) async fn end_wait(&self) {
        self.state.lock().waits -= 1;
        self.take().await;
    }

    /// Ends the work and releases the permit.
    pub(super) fn finish(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        state.permit = None;
    }

    fn is_needed(&self) -> bool {
        let state = self.state.lock();
        state.waits == 0 && state.permit.is_none() && !state.is_over
    }
}
