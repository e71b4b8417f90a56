//! Requests without a response yet.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
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
    /// Adds a request. `false`: another request with this id is open.
    pub(super) fn add(&self, id: &RequestId) -> bool {
        self.0.ids.lock().insert(id.clone())
    }

    /// Removes a request that was answered or cancelled.
    pub(super) fn remove(&self, id: &RequestId) {
        self.0.ids.lock().remove(id);
        self.0.closed.notify_waiters();
    }

    pub(super) async fn wait_until_empty(&self) {
        loop {
            let closed = self.0.closed.notified();
            if self.0.ids.lock().is_empty() {
                return;
            }
            closed.await;
        }
    }
}
