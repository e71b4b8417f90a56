//! The sessions of a team and the engines they run on. The pool of a single run keeps no sessions. The others keep one for
//! each agent, which stands: run after run works in it, also in another process, and what it was told is not told again.
//!
//! ```text
//!              ┌──────────── recreate: its charter changed ─────────────────────────────────────────┐
//!              ↓                                                                                     │
//! (none) ─→ Spawning ─→ Active ─→ Idle ─→ Suspended ─→ Spawning …                    Idle, Suspended ┤
//!              │                                                                                     ↓
//!              └──────────────────────────────── cannot be opened ──────────────────────────────→ (none)
//! ```
//!
//! One piece of work has a standing session at a time; others that want it meanwhile get sessions of their own. So does a
//! review: nobody judges work in a session that may have made it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::permits::Permits;
use super::session_memory::SessionStore;
use super::slots::{Claim, KeptSessions, PendingChange, SessionOrigin, SessionOwner, Standing, State, is_usable};
use super::{Engines, Reports};
use crate::engine::{Adapter, AdapterSession, EngineError, Opening, Session};
use crate::model::{
    AvailableModels, ConnectionState, EventKind, IntoMap, SessionSpec, SessionState, Slug, Tier, seconds,
};
use crate::sandbox::Sandbox;

pub(crate) struct SessionPool {
    pub(crate) engines: Engines,
    /// Limits how many agents work at the same time.
    pub(crate) permits: Arc<Permits>,
    /// `None`: each session ends with its work.
    kept: Option<Arc<KeptSessions>>,
}

/// What happened to a session after its work.
#[derive(Debug, PartialEq)]
pub(super) enum Returned {
    Kept,
    /// With the commands it had left running, which were stopped.
    Closed(Vec<String>),
}

/// A session in use.
pub(super) struct BorrowedSession {
    pub(super) session: Box<Session>,
    pub(super) name: String,
    pub(super) origin: SessionOrigin,
    /// The engine that it is a session of.
    pub(super) engine: String,
    /// `None`: it is the run's own, and was told its context when it was opened.
    pub(super) standing: Option<Standing>,
    /// `None`: the session ends with the work.
    guard: Option<SlotGuard>,
}

/// Reserves an agent's slot. Dropped without returning the session, it frees the slot: the user of the session has
/// panicked or stopped waiting.
struct SlotGuard {
    kept: Arc<KeptSessions>,
    agent: Slug,
    is_returned: bool,
}

impl SessionPool {
    pub(crate) fn of_one_run(engines: impl Into<Engines>, permits: Arc<Permits>) -> Self {
        Self { engines: engines.into(), permits, kept: None }
    }

    /// `reports`: for what happens to the sessions between runs.
    pub(crate) fn keeping(engines: impl Into<Engines>, permits: usize, store: SessionStore, reports: Reports) -> Self {
        let kept = KeptSessions { slots: Mutex::default(), store, reports };
        Self { engines: engines.into(), permits: Permits::new(permits), kept: Some(Arc::new(kept)) }
    }

    /// Gets a session for a run's work: the agent's standing one if it `may_stand` and is free, else one that ends with the
    /// work.
    pub(super) async fn open(
        &self,
        opening: Opening,
        may_stand: bool,
        to: &SessionOwner,
        reports: &Reports,
    ) -> Result<BorrowedSession, EngineError> {
        match &self.kept {
            Some(kept) if may_stand => self.open_kept(kept, opening, to, reports).await,
            _ => self.open_temporary(opening, reports).await,
        }
    }

    async fn open_temporary(&self, opening: Opening, reports: &Reports) -> Result<BorrowedSession, EngineError> {
        let name = opening.session.clone();
        let (session, origin, engine) = self.open_on_engine(opening, reports).await?;
        Ok(BorrowedSession { session, name, origin, engine, standing: None, guard: None })
    }

    async fn open_kept(
        &self,
        kept: &Arc<KeptSessions>,
        opening: Opening,
        to: &SessionOwner,
        reports: &Reports,
    ) -> Result<BorrowedSession, EngineError> {
        let agent = opening.spec.agent.clone();
        let own = KeptSessions::standing(opening.clone());
        let name = own.session.clone();
        let claim = kept.claim(&own, to, &self.engine_of(&own), reports);
        let Some(claim) = claim else { return self.open_temporary(opening, reports).await };
        if matches!(claim, Claim::Open { .. }) {
            reports.tell(Some(&agent), EventKind::SessionSpawning { session: name.clone() });
        }
        let guard = SlotGuard { kept: Arc::clone(kept), agent: agent.clone(), is_returned: false };
        let mut shortened = Vec::new();
        let (session, origin, engine) = match claim {
            Claim::Reuse(mut session) => match is_usable(&mut session, &mut shortened).await {
                true => (session, SessionOrigin::Warm, self.engine_of(&own)),
                false => self.reopen(kept, own, Some(session), true, reports).await?,
            },
            Claim::Open { mut old, resume } => {
                if let Some(old) = &mut old {
                    is_usable(old, &mut shortened).await;
                }
                self.reopen(kept, own, old, resume, reports).await?
            }
        };
        let standing = Some(kept.activate(&agent, to, origin, !shortened.is_empty()));
        shortened.into_iter().for_each(|kind| reports.tell(Some(&agent), kind));
        Ok(BorrowedSession { session, name, origin, engine, standing, guard: Some(guard) })
    }

    fn engine_of(&self, opening: &Opening) -> String {
        opening.spec.engine.clone().unwrap_or_else(|| self.engines.main().0)
    }

    /// Returns a session after its work. Without `standing` it knows what it knew before.
    pub(super) async fn release(&self, agent: &Slug, borrowed: BorrowedSession) -> Returned {
        let Some(mut guard) = borrowed.guard else { return Returned::Closed(borrowed.session.close().await) };
        guard.is_returned = true;
        let memory = borrowed.standing.map(|standing| standing.memory);
        match guard.kept.set_idle(agent, borrowed.session, memory) {
            None => {}
            Some(PendingChange::Recreate(spec)) => self.recreate(agent, *spec).await,
            Some(PendingChange::Dismiss) => self.dismiss(agent).await,
        }
        Returned::Kept
    }

    async fn reopen(
        &self,
        kept: &KeptSessions,
        opening: Opening,
        old: Option<Box<Session>>,
        resume: bool,
        reports: &Reports,
    ) -> Result<(Box<Session>, SessionOrigin, String), EngineError> {
        if let Some(old) = old {
            old.close().await;
        }
        self.open_standing(kept, Opening { resume, ..opening }, reports).await
    }

    /// Opens a standing session. One whose engine has lost the end of its history, as in a file that was cut short, knows
    /// nothing that can be relied on: it is told again.
    async fn open_standing(
        &self,
        kept: &KeptSessions,
        opening: Opening,
        reports: &Reports,
    ) -> Result<(Box<Session>, SessionOrigin, String), EngineError> {
        let (agent, name) = (opening.spec.agent.clone(), opening.session.clone());
        let (mut session, origin, engine) = self.open_on_engine(opening, reports).await?;
        if origin == SessionOrigin::Resumed
            && let Some(task) = kept.last_task(&agent)
            && session.recall(&task).await.is_some_and(|recall| !recall.has_prompt)
        {
            let reason =
                "its stored history lacks its last task, so it is told again what squad has recorded".to_owned();
            reports.tell(Some(&agent), EventKind::SessionError { session: name, reason });
            kept.forget(&agent);
        }
        Ok((session, origin, engine))
    }

    /// Opens a session. If it cannot be resumed, a fresh one is opened and the reason is reported.
    async fn open_on_engine(
        &self,
        opening: Opening,
        reports: &Reports,
    ) -> Result<(Box<Session>, SessionOrigin, String), EngineError> {
        let (resume, mut afresh) = (opening.resume, opening.clone());
        let engine = self.engines.get(opening.spec.engine.as_deref(), reports).await?;
        let name = engine.name().to_owned();
        let (session, origin) = match engine.open(opening).await {
            Err(error @ EngineError::NotResumable { .. }) if resume => {
                let kind = EventKind::SessionError { session: afresh.session.clone(), reason: error.to_string() };
                reports.tell(Some(&afresh.spec.agent), kind);
                afresh.resume = false;
                engine.open(afresh).await.map(|session| (session, SessionOrigin::Created))
            }
            opened => {
                opened.map(|session| (session, if resume { SessionOrigin::Resumed } else { SessionOrigin::Created }))
            }
        }?;
        Ok((Box::new(session), origin, name))
    }

    /// Opens the session of an agent that has none yet in this process.
    pub(crate) async fn warm_up(&self, opening: Opening) {
        let Some(kept) = &self.kept else { return };
        let agent = opening.spec.agent.clone();
        let opening = KeptSessions::standing(opening);
        if let Some(opening) = kept.reserve(&opening, &self.engine_of(&opening)) {
            self.spawn(kept, &agent, opening).await;
        }
    }

    /// Reopens an agent's session with a new configuration and its history: at once if idle, else after its turn. An
    /// agent without a session gets none.
    pub(crate) async fn recreate(&self, agent: &Slug, spec: SessionSpec) {
        let Some(kept) = &self.kept else { return };
        if let Some((old, opening)) = kept.prepare_reopen(agent, spec) {
            kept.tell(agent, |session| EventKind::SessionDestroyed { session });
            kept.close(agent, *old, None).await;
            self.spawn(kept, agent, opening).await;
        }
    }

    /// Suspends sessions that have been idle for this long. They are resumed when needed.
    pub(crate) async fn suspend(&self, idle: Duration) {
        let Some(kept) = &self.kept else { return };
        for (agent, session, held) in kept.take_idle(idle) {
            kept.close(&agent, *session, held).await;
            kept.tell(&agent, |session| EventKind::SessionSuspended { session });
        }
        kept.tell_if_empty();
    }

    /// Ends the session of an agent that has left the team; an active one ends after its turn.
    pub(crate) async fn dismiss(&self, agent: &Slug) {
        let Some(kept) = &self.kept else { return };
        let Some(slot) = kept.remove(agent) else { return };
        if let State::Idle { session, .. } = slot.state {
            kept.close(agent, *session, slot.held).await;
        }
        kept.reports.tell(Some(agent), EventKind::SessionDestroyed { session: slot.opening.session });
        kept.tell_if_empty();
    }

    /// Stops the engines, which are started again when they are needed. No session may be borrowed.
    pub(crate) async fn rest(&self) {
        self.engines.stop().await;
    }

    /// Closes all sessions and engines.
    pub(crate) async fn stop(self) {
        if let Some(kept) = &self.kept {
            let slots = std::mem::take(&mut *kept.slots.lock());
            for (agent, slot) in slots {
                if let State::Idle { session, .. } = slot.state {
                    kept.close(&agent, *session, slot.held).await;
                }
                kept.reports.tell(Some(&agent), EventKind::SessionDestroyed { session: slot.opening.session });
            }
        }
        self.engines.stop().await;
    }

    /// The main engine's name, and its version if it runs.
    pub(crate) fn main_engine(&self) -> (String, String) {
        self.engines.main()
    }

    /// What bounds the engines' programs.
    pub(crate) fn sandbox(&self) -> Option<&Sandbox> {
        self.engines.sandbox()
    }

    /// The folders that an engine's own sandbox lets its programs write wherever they work, by its name.
    pub(crate) fn writable_folders(&self) -> impl Iterator<Item = (&str, Vec<PathBuf>)> {
        self.engines.writable_folders()
    }

    /// What the main engine offers.
    pub(crate) async fn offer(&self) -> AvailableModels {
        self.engines.offer().await
    }

    pub(crate) fn connection(&self) -> ConnectionState {
        self.engines.connection()
    }

    pub(crate) async fn connection_changed(&self) {
        self.engines.connection_changed().await;
    }

    /// Whether its engine is connected or reconnecting.
    pub(crate) fn is_usable(&self) -> bool {
        self.engines.connection() != ConnectionState::Error
    }

    /// The agents with a session, and the tier of each session.
    pub(crate) fn kept_agents(&self) -> Vec<(Slug, Tier)> {
        let Some(kept) = &self.kept else { return Vec::new() };
        kept.slots.lock().iter().map(|(agent, slot)| (agent.clone(), slot.opening.spec.tier)).collect()
    }

    pub(crate) fn states(&self) -> BTreeMap<Slug, SessionState> {
        let Some(kept) = &self.kept else { return BTreeMap::new() };
        kept.slots.lock().iter().map(|(agent, slot)| (agent.clone(), slot.state.name())).into_map()
    }

    async fn spawn(&self, kept: &KeptSessions, agent: &Slug, mut opening: Opening) {
        loop {
            kept.tell(agent, |session| EventKind::SessionSpawning { session });
            let asked = Instant::now();
            let pending = match self.open_standing(kept, opening, &kept.reports).await {
                Ok((session, origin, _)) => kept.store(agent, session, origin, seconds(asked.elapsed())),
                Err(error) => {
                    kept.tell(agent, |session| EventKind::SessionError { session, reason: error.to_string() });
                    return kept.discard(agent);
                }
            };
            opening = match pending {
                None => return,
                Some(PendingChange::Dismiss) => return self.dismiss(agent).await,
                Some(PendingChange::Recreate(spec)) => {
                    let Some((old, opening)) = kept.prepare_reopen(agent, *spec) else { return };
                    kept.tell(agent, |session| EventKind::SessionDestroyed { session });
                    kept.close(agent, *old, None).await;
                    opening
                }
            };
        }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        if !self.is_returned {
            self.kept.discard(&self.agent);
        }
    }
}
