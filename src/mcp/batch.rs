//! Which requests are open, and which of them came in one list: those are answered in one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use serde_json::Value;
use tokio::sync::Notify;

/// The requests of one connection that have no answer yet.
#[derive(Clone, Default)]
pub(super) struct OpenRequests(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    closed: Notify,
}

#[derive(Default)]
struct State {
    /// With the batch they came in.
    open: HashMap<RequestId, Option<usize>>,
    batches: HashMap<usize, Batch>,
    last: usize,
}

#[derive(Default)]
struct Batch {
    missing: usize,
    answers: Vec<Value>,
}

impl OpenRequests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new batch with what is answered at once.
    pub(super) fn batch(&self, answers: Vec<Value>) -> usize {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        state.batches.insert(number, Batch { missing: 0, answers });
        number
    }

    /// Whether nothing else with that id is being worked on.
    pub(super) fn open(&self, id: &RequestId, batch: Option<usize>) -> bool {
        let mut state = self.state();
        if state.open.contains_key(id) {
            return false;
        }
        state.open.insert(id.clone(), batch);
        if let Some(batch) = batch.and_then(|number| state.batches.get_mut(&number)) {
            batch.missing += 1;
        }
        true
    }

    /// What is to be sent now that it is answered, or never will be.
    pub(super) fn close(&self, id: &RequestId, answer: Option<Value>) -> Option<Value> {
        let mut state = self.state();
        let batch = state.open.remove(id);
        self.0.closed.notify_waiters();
        match batch {
            Some(Some(number)) => {
                let batch = state.batches.get_mut(&number)?;
                batch.missing -= 1;
                batch.answers.extend(answer);
                state.finish(number)
            }
            _ => answer,
        }
    }

    /// The answers of a batch all of whose requests are answered.
    pub(super) fn finish(&self, number: usize) -> Option<Value> {
        self.state().finish(number)
    }

    pub(super) async fn none_left(&self) {
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
    fn finish(&mut self, number: usize) -> Option<Value> {
        if self.batches.get(&number)?.missing > 0 {
            return None;
        }
        let answers = self.batches.remove(&number)?.answers;
        (!answers.is_empty()).then(|| answers.into())
    }
}
