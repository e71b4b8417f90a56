//! Requests without a response yet.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

/// The open requests of one connection.
#[derive(Clone, Default)]
pub(super) struct OpenRequests(Arc<Shared>);

#[derive(Default)]
struct Shared {
    ids: Mutex<HashSet<RequestId>>,
    closed: Notify,
}

impl OpenRequests {
    fn ids(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request. `false`: another request with this id is open.
    pub(super) fn add(&self, id: &RequestId) -> bool {
        self.ids().insert(id.clone())
    }

    /// Removes a request that was answered or cancelled.
    pub(super) fn remove(&self, id: &RequestId) {
        self.ids().remove(id);
        self.0.closed.notify_waiters();
    }

    pub(super) async fn wait_until_empty(&self) {
        loop {
            let closed = self.0.closed.notified();
            if self.ids().is_empty() {
                return;
            }
            closed.await;
        }
    }
}
