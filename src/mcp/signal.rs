//! What a request waits for: that something is done, that it is cancelled, or that the client goes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::RequestId;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

/// What a request waits on.
#[derive(Default)]
pub(crate) struct Signal(watch::Sender<State>);

#[derive(Default)]
struct State {
    cancelled: Option<String>,
    /// The client is gone, or about to go.
    is_closing: bool,
    /// What was waited for has happened.
    is_done: bool,
}

/// Why a wait is over.
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

    /// Until nobody waits for an answer any more.
    pub(crate) async fn given_up(&self) {
        // Its sender is `self`, and lives.
        let _ = self.0.subscribe().wait_for(|state| state.cancelled.is_some() || state.is_closing).await;
    }

    /// In a thread that a handler started.
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

/// Calls that are worked on, by their ids.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<HashMap<RequestId, Arc<Signal>>>>);

impl Calls {
    fn all(&self) -> MutexGuard<'_, HashMap<RequestId, Arc<Signal>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, id: &RequestId) -> Arc<Signal> {
        Arc::clone(self.all().entry(id.clone()).or_default())
    }

    pub(super) fn end(&self, id: &RequestId) {
        self.all().remove(id);
    }

    pub(super) fn cancel(&self, id: &RequestId, reason: Option<String>) {
        if let Some(signal) = self.all().get(id) {
            signal.cancel(reason.unwrap_or_default());
        }
    }

    /// What they have begun goes on without us; they say what is known of it.
    pub(super) fn close(&self) {
        self.all().values().for_each(|signal| signal.close());
    }
}
