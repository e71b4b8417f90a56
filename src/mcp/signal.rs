//! What a request waits for: that something is done, that it is cancelled, or that the client goes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a request waits on.
#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

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
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn cancel(&self, reason: String) {
        self.state().cancelled.get_or_insert(reason);
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.state().is_closing = true;
        self.changed.notify_all();
    }

    pub(crate) fn done(&self) {
        self.state().is_done = true;
        self.changed.notify_all();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.state().cancelled.is_some()
    }

    pub(crate) fn wait(&self, at_most: Duration) -> Wake {
        let is_idle = |state: &mut State| !state.is_done && state.cancelled.is_none() && !state.is_closing;
        let waited = self.changed.wait_timeout_while(self.state(), at_most, is_idle);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State { cancelled: Some(reason), .. } => Wake::Cancelled(reason.clone()),
            State { is_done: true, .. } => Wake::Done,
            State { is_closing: true, .. } => Wake::Closing,
            _ => Wake::Elapsed,
        }
    }
}
