//! The sessions that a conversation keeps open between its messages, without a watch.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::pool::{Engines, Reports, SessionPool, SessionStore};

/// Opened by the first message that needs an engine, and reused by the next.
#[derive(Clone)]
pub(in crate::ops) struct ConversationSessions {
    store: SessionStore,
    pool: Arc<Mutex<Option<Arc<SessionPool>>>>,
}

impl ConversationSessions {
    pub(super) fn new(store: SessionStore) -> Self {
        Self { store, pool: Arc::default() }
    }

    pub(super) fn take(&self) -> Option<Arc<SessionPool>> {
        self.pool.lock().take()
    }

    /// `None`: there are none yet, or their engine has failed for good.
    pub(super) fn usable(&self) -> Option<Arc<SessionPool>> {
        self.pool.lock().clone().filter(|pool| pool.is_usable())
    }

    pub(super) fn keep(&self, engines: Engines, places: usize) -> Arc<SessionPool> {
        let pool = Arc::new(standing(engines, places, self.store.clone()));
        self.pool.lock().replace(Arc::clone(&pool));
        pool
    }
}

/// The standing sessions of a process that nobody follows between its runs.
pub(super) fn standing(engines: Engines, places: usize, store: SessionStore) -> SessionPool {
    let (reports, _) = Reports::channel();
    SessionPool::keeping(engines, places, store, reports)
}
