//! The state of a watch, for `squad status` in another terminal.

use std::collections::BTreeMap;

use super::Watch;
use crate::model::{SessionState, SessionStatus, Slug, Sort};
use crate::ops::run::host::WatchState;
use crate::pool::standing_session_id;

impl Watch {
    pub(super) fn state(&self) -> WatchState {
        let connection = self.connection();
        let (engine, engine_version) = self.engine();
        let sessions = self.pool.borrow().as_ref().map(|pool| pool.states()).unwrap_or_default();
        let kept = self.kept(&sessions);
        WatchState { engine, engine_version, connection, sessions, kept }
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
        kept.stable_sort_by(|one, other| one.agent.cmp(&other.agent));
        kept
    }
}
