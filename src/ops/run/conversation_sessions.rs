//! The sessions that a conversation keeps open between its messages, without a watch.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::{RunId, Slug};
use crate::pool::{Engines, SessionPool};

/// Opened by the first message that needs an engine, and reused by the next.
#[derive(Clone)]
pub(in crate::ops) struct ConversationSessions {
    conversation: RunId,
    /// The agents that had a session in it in an earlier process.
    earlier: BTreeSet<Slug>,
    pool: Arc<Mutex<Option<Arc<SessionPool>>>>,
}

impl ConversationSessions {
    pub(super) fn of(conversation: RunId, earlier: BTreeSet<Slug>) -> Self {
        Self { conversation, earlier, pool: Arc::default() }
    }

    pub(super) fn take(&self) -> Option<Arc<SessionPool>> {
        self.pool.lock().take()
    }

    /// `None`: there are none yet, or their engine has failed for good.
    pub(super) fn usable(&self) -> Option<Arc<SessionPool>> {
        self.pool.lock().clone().filter(|pool| pool.is_usable())
    }

    pub(super) fn keep(&self, engines: Engines, places: usize) -> Arc<SessionPool> {
        let (id, earlier) = (self.conversation.clone(), self.earlier.clone());
        let pool = Arc::new(SessionPool::of_conversation(engines, places, id, earlier));
        self.pool.lock().replace(Arc::clone(&pool));
        pool
    }
}
