//! Requests without a response yet. The requests of one JSON-RPC batch are answered in one batch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use serde_json::Value;
use tokio::sync::Notify;

/// The open requests of one connection.
#[derive(Clone, Default)]
pub(super) struct OpenRequests(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    closed: Notify,
}

#[derive(Default)]
struct State {
    /// Each request with its batch, if it came in one.
    open: HashMap<RequestId, Option<usize>>,
    batches: HashMap<usize, Batch>,
    last_batch: usize,
}

#[derive(Default)]
struct Batch {
    open: usize,
    responses: Vec<Value>,
}

impl OpenRequests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch with the responses that are already known. Returns its number.
    pub(super) fn add_batch(&self, responses: Vec<Value>) -> usize {
        let mut state = self.state();
        state.last_batch += 1;
        let number = state.last_batch;
        state.batches.insert(number, Batch { open: 0, responses });
        number
    }

    /// Adds a request. `false`: another request with this id is open.
    pub(super) fn add(&self, id: &RequestId, batch: Option<usize>) -> bool {
        let mut state = self.state();
        if state.open.contains_key(id) {
            return false;
        }
        state.open.insert(id.clone(), batch);
        if let Some(batch) = batch.and_then(|number| state.batches.get_mut(&number)) {
            batch.open += 1;
        }
        true
    }

    /// Removes a request that was answered or cancelled. Returns what to send now: its response, or those of its batch.
    pub(super) fn remove(&self, id: &RequestId, response: Option<Value>) -> Option<Value> {
        let mut state = self.state();
        let batch = state.open.remove(id);
        self.0.closed.notify_waiters();
        match batch {
            Some(Some(number)) => {
                let batch = state.batches.get_mut(&number)?;
                batch.open -= 1;
                batch.responses.extend(response);
                state.finish_batch(number)
            }
            _ => response,
        }
    }

    /// Removes a batch and returns its responses, unless it has open requests.
    pub(super) fn finish_batch(&self, number: usize) -> Option<Value> {
        self.state().finish_batch(number)
    }

    pub(super) async fn wait_until_empty(&self) {
        loop {
            let closed = self.0.closed.notified();
            if self.state().open.is_empty() {
                return;
            }
            closed.await;
        }
    }
}

impl State {
    fn finish_batch(&mut self, number: usize) -> Option<Value> {
        if self.batches.get(&number)?.open > 0 {
            return None;
        }
        let responses = self.batches.remove(&number)?.responses;
        (!responses.is_empty()).then(|| responses.into())
    }
}
