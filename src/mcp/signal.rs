//! Lets a request wait for its work to be done, for its cancellation, or for the client to disconnect.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::RequestId;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

/// Wakes the request that waits on it.
#[derive(Default)]
pub(crate) struct Signal(watch::Sender<State>);

#[derive(Default)]
struct State {
    /// The client's reason.
    cancelled: Option<String>,
    /// The client has disconnected, or is about to.
    is_closing: bool,
    is_done: bool,
}

/// Why a wait has ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Wake {
    Done,
    /// With the client's reason.
    Cancelled(String),
    Closing,
    Elapsed,
}

impl Signal {
    fn cancel(&self, reason: String) {
        self.0.send_modify(|state| {
            state.cancelled.get_or_insert(reason);
        });
    }

    pub(super) fn close(&self) {
        self.0.send_modify(|state| state.is_closing = true);
    }

    pub(crate) fn done(&self) {
        self.0.send_modify(|state| state.is_done = true);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.borrow().cancelled.is_some()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.0.borrow().is_closing
    }

    /// Returns when the client no longer expects a response: it has cancelled the request, or is disconnecting.
    pub(crate) async fn abandoned(&self) {
        // The wait cannot fail: `self` owns the sender.
        let _ = self.0.subscribe().wait_for(|state| state.cancelled.is_some() || state.is_closing).await;
    }

    /// Blocks its thread, which must be one that the runtime started for blocking work.
    pub(crate) fn wait(&self, at_most: Duration) -> Wake {
        let mut state = self.0.subscribe();
        let is_over = |state: &State| state.is_done || state.cancelled.is_some() || state.is_closing;
        Handle::current().block_on(async {
            let _ = timeout(at_most, state.wait_for(is_over)).await;
        });
        match &*self.0.borrow() {
            State { cancelled: Some(reason), .. } => Wake::Cancelled(reason.clone()),
            State { is_done: true, .. } => Wake::Done,
            State { is_closing: true, .. } => Wake::Closing,
            _ => Wake::Elapsed,
        }
    }
}

/// The calls in progress.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<HashMap<RequestId, Arc<Signal>>>>);

impl Calls {
    pub(super) fn begin(&self, id: &RequestId) -> Arc<Signal> {
        Arc::clone(self.0.lock().entry(id.clone()).or_default())
    }

    pub(super) fn end(&self, id: &RequestId) {
        self.0.lock().remove(id);
    }

    pub(super) fn cancel(&self, id: &RequestId, reason: Option<String>) {
        if let Some(signal) = self.0.lock().get(id) {
            signal.cancel(reason.unwrap_or_default());
        }
    }

    /// Wakes all calls because the client disconnects. Work they have started continues; they return its current state.
    pub(super) fn close(&self) {
        self.0.lock().values().for_each(|signal| signal.close());
    }
}
