//! Ends HTTP sessions that nobody uses any more.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use http::Extensions;
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};
use tokio::time::Instant;

/// The sessions of `rmcp`. It would end them when no message has passed for a while, and lose the answer of a call that
/// takes longer; here a session with a request in progress is never idle.
pub(super) struct Sessions {
    pub(super) manager: Arc<LocalSessionManager>,
    uses: Mutex<HashMap<SessionId, Use>>,
}

struct Use {
    /// Each request in progress holds a copy.
    lease: Lease,
    last: Instant,
}

/// A request holds it in its extensions, and `rmcp` passes these on to whoever handles the request.
#[derive(Clone)]
struct Lease(Arc<()>);

impl Use {
    fn begin(now: Instant) -> Self {
        Self { lease: Lease(Arc::default()), last: now }
    }

    fn is_idle(&mut self, now: Instant, limit: Duration) -> bool {
        if Arc::strong_count(&self.lease.0) > 1 {
            self.last = now;
        }
        now.duration_since(self.last) > limit
    }
}

impl Sessions {
    pub(super) fn new() -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = None;
        Self { manager: Arc::new(manager), uses: Mutex::default() }
    }

    /// Notes that a session is used for as long as these extensions of a request live.
    pub(super) fn begin(&self, id: &str, extensions: &mut Extensions) {
        let now = Instant::now();
        let mut uses = self.uses.lock();
        let session = uses.entry(id.into()).or_insert_with(|| Use::begin(now));
        session.last = now;
        extensions.insert(session.lease.clone());
    }

    /// Ends the sessions without a request for longer than `limit`.
    pub(super) async fn end_idle(&self, limit: Duration) {
        let open: HashSet<SessionId> = self.manager.sessions.read().await.keys().cloned().collect();
        for id in self.idle(open, limit) {
            // It has ended already if this fails.
            let _ = self.manager.close_session(&id).await;
        }
    }

    fn idle(&self, open: HashSet<SessionId>, limit: Duration) -> Vec<SessionId> {
        let now = Instant::now();
        let mut uses = self.uses.lock();
        uses.retain(|id, _| open.contains(id));
        let mut is_idle =
            |id: &SessionId| uses.entry(Arc::clone(id)).or_insert_with(|| Use::begin(now)).is_idle(now, limit);
        open.into_iter().filter(|id| is_idle(id)).collect()
    }
}
