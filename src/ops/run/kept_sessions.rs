//! The sessions that a conversation keeps between its messages, in a process of its own.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::{RunId, Slug};
use crate::pool::{Engines, SessionPool};

/// Begun by the first message that needs any, and left for the next.
#[derive(Clone)]
pub(in crate::ops) struct KeptSessions {
    conversation: RunId,
    /// Those who had a session in it before this process.
    earlier: BTreeSet<Slug>,
    pool: Arc<Mutex<Option<Arc<SessionPool>>>>,
}

impl KeptSessions {
    pub(super) fn of(conversation: RunId, earlier: BTreeSet<Slug>) -> Self {
        Self { conversation, earlier, pool: Arc::default() }
    }

    pub(super) fn take(&self) -> Option<Arc<SessionPool>> {
        self.pool().take()
    }

    /// `None`: there are none yet, or their engine is gone for good.
    pub(super) fn usable(&self) -> Option<Arc<SessionPool>> {
        self.pool().clone().filter(|pool| pool.is_usable())
    }

    pub(super) fn keep(&self, engines: Engines, places: usize) -> Arc<SessionPool> {
        let (id, earlier) = (self.conversation.clone(), self.earlier.clone());
        let pool = Arc::new(SessionPool::of_conversation(engines, places, id, earlier));
        self.pool().replace(Arc::clone(&pool));
        pool
    }

    fn pool(&self) -> MutexGuard<'_, Option<Arc<SessionPool>>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
