//! The state of a watch, for `squad status` in another terminal.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until};

use super::Watch;
use super::lease::WatchFiles;
use crate::model::{ConnectionState, SessionState, SessionStatus, Slug};
use crate::ops::run::local_file;
use crate::pool::standing_session_id;

/// Minimum time between two writes.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// The state of a watch as `squad status` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WatchState {
    pub(crate) engine: String,
    pub(crate) engine_version: String,
    pub(crate) connection: ConnectionState,
    /// The state of each agent's session.
    pub(crate) sessions: BTreeMap<Slug, SessionState>,
    /// Details of the same sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<SessionStatus>,
}

/// The state of a watch, if it has written any.
pub(crate) fn state(files: &WatchFiles) -> Option<WatchState> {
    local_file::read(&files.state)
}

impl Watch {
    /// Writes the state after changes.
    pub(super) async fn tell_state(self: Rc<Self>) {
        let mut may_write = Instant::now();
        loop {
            self.changed.notified().await;
            sleep_until(may_write).await;
            may_write = Instant::now() + MIN_INTERVAL;
            self.write_state();
        }
    }

    pub(super) fn write_state(&self) {
        let connection = self.connection();
        let (engine, engine_version) = self.engine();
        let sessions = self.pool.borrow().as_ref().map(|pool| pool.states()).unwrap_or_default();
        let kept = self.kept(&sessions);
        let state = WatchState { engine, engine_version, connection, sessions, kept };
        // After a failure, readers see the previous state.
        let _ = local_file::replace(&self.files.state, &state);
    }

    /// The pool's sessions, with details from events.
    fn kept(&self, states: &BTreeMap<Slug, SessionState>) -> Vec<SessionStatus> {
        let known = self.sessions.activity().sessions;
        let of_pool = |session: SessionStatus| {
            let state = *states.get(&session.agent).filter(|_| session.id == standing_session_id(&session.agent))?;
            let run = session.run.filter(|run| state == SessionState::Active && *run != self.run);
            let directory = self.root.display().to_string();
            Some(SessionStatus { run, state, directory, ..session })
        };
        let mut kept: Vec<SessionStatus> = known.into_iter().filter_map(of_pool).collect();
        kept.sort_by(|one, other| one.agent.cmp(&other.agent));
        kept
    }
}
