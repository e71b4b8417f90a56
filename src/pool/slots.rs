//! The sessions a pool keeps: one for each agent, with its configuration and the conversation it belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Reports;
use super::session_id::{session_id, standing_session_id};
use crate::engine::{AdapterSession, Opening, Session};
use crate::model::{EventKind, RunId, SessionSpec, SessionState, Slug, list};

pub(super) struct KeptSessions {
    /// The conversation they serve exclusively; `None`: they serve the whole team.
    pub(super) conversation: Option<RunId>,
    /// Agents that already had a session of the same name before this process.
    pub(super) earlier: BTreeSet<Slug>,
    pub(super) slots: Mutex<BTreeMap<Slug, Slot>>,
    /// For session events between runs.
    pub(super) reports: Reports,
}

/// The session of one agent, open or opening.
pub(super) struct Slot {
    /// Its configuration, without the context of a task.
    pub(super) opening: Opening,
    pub(super) state: State,
    /// Whose history it contains; `None`: no history yet.
    pub(super) conversation: Option<SessionOwner>,
    /// The task context it has received in this conversation.
    pub(super) sent_context: String,
    /// The configuration it gets after its turn.
    pub(super) next: Option<SessionSpec>,
    /// The agent has left the team; the session ends after its turn.
    pub(super) is_leaving: bool,
}

/// A change that was requested while the session was busy.
pub(super) enum PendingChange {
    Recreate(Box<SessionSpec>),
    Dismiss,
}

/// The conversation or run that work belongs to. A session's history never crosses it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionOwner {
    /// The id of the run, or of the conversation it is part of.
    pub(crate) id: RunId,
    /// More messages may follow: others cannot take its sessions while they are open.
    pub(crate) is_conversation: bool,
}

/// A session can be taken only while idle; the types allow nothing else.
pub(super) enum State {
    Spawning,
    Active,
    Idle { session: Box<Session>, since: Instant },
    Suspended,
}

/// How a session was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionOrigin {
    Created,
    Resumed,
    /// It was already open.
    Warm,
}

/// How to serve a request for a session.
pub(super) enum Claim {
    Reuse(Box<Session>),
    /// Open the agent's session, replacing this one.
    Open {
        old: Option<Box<Session>>,
        resume: bool,
    },
}

impl KeptSessions {
    /// The configuration of an agent's own session, and the context for its task.
    pub(super) fn split_context(&self, opening: Opening) -> (Opening, String) {
        let session = self.name(&opening.spec.agent);
        let mut opening = Opening { session, ..opening };
        let context = std::mem::take(&mut opening.spec.context);
        (opening, context)
    }

    pub(super) fn name(&self, agent: &Slug) -> String {
        self.conversation.as_ref().map_or_else(|| standing_session_id(agent), |id| session_id(agent, id))
    }

    /// Reserves an agent's session. `None`: it is in use, so this work gets a session of its own.
    pub(super) fn claim(&self, wanted: &Opening, to: &SessionOwner) -> Option<Claim> {
        let mut slots = self.slots.lock();
        let agent = &wanted.spec.agent;
        let Some(slot) = slots.get_mut(agent) else {
            slots.insert(agent.clone(), Slot::new(wanted.clone()));
            return Some(Claim::Open { old: None, resume: self.earlier.contains(agent) });
        };
        let is_own = slot.conversation.as_ref() == Some(to);
        // It must resume a session that this pool does not keep.
        if wanted.resume && !is_own {
            return None;
        }
        let is_open = matches!(slot.state, State::Idle { .. });
        if is_open && !is_own && slot.conversation.as_ref().is_some_and(|other| other.is_conversation) {
            return None;
        }
        let is_suitable = slot.has_configuration_of(wanted) && (is_own || slot.conversation.is_none());
        let old = slot.take_idle();
        if old.is_none() && !slot.is_suspended() {
            return None;
        }
        slot.state = State::Spawning;
        match old {
            Some(session) if is_suitable => Some(Claim::Reuse(session)),
            old => {
                slot.set_opening(wanted);
                Some(Claim::Open { old, resume: is_own })
            }
        }
    }

    /// Marks the session as active. Returns the context to send with the prompt.
    pub(super) fn activate(&self, agent: &Slug, to: &SessionOwner, context: String, origin: SessionOrigin) -> String {
        let mut slots = self.slots.lock();
        // The agent has left the team meanwhile; this is its last work.
        let Some(slot) = slots.get_mut(agent) else { return context };
        slot.state = State::Active;
        let is_known =
            origin != SessionOrigin::Created && slot.conversation.as_ref() == Some(to) && slot.sent_context == context;
        slot.conversation = Some(to.clone());
        slot.sent_context.clone_from(&context);
        if is_known { String::new() } else { context }
    }

    /// Marks the session as idle after its turn. Returns a change requested meanwhile.
    pub(super) fn set_idle(&self, agent: &Slug, session: Box<Session>) -> Option<PendingChange> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(agent)?;
        slot.state = State::Idle { session, since: Instant::now() };
        slot.take_pending()
    }

    pub(super) fn reserve(&self, opening: &Opening) -> bool {
        let mut slots = self.slots.lock();
        let agent = &opening.spec.agent;
        if let Some(slot) = slots.get_mut(agent) {
            if std::mem::take(&mut slot.is_leaving) {
                slot.set_next(opening.spec.clone());
            }
            return false;
        }
        slots.insert(agent.clone(), Slot::new(opening.clone()));
        true
    }

    pub(super) fn prepare_reopen(&self, agent: &Slug, spec: SessionSpec) -> Option<(Box<Session>, Opening)> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(agent)?;
        let session = slot.take_idle();
        if session.is_none() && !slot.is_suspended() {
            slot.set_next(spec);
            return None;
        }
        slot.opening = self.split_context(Opening { spec, ..slot.opening.clone() }).0;
        let session = session?;
        slot.opening.resume = slot.conversation.is_some();
        Some((session, slot.opening.clone()))
    }

    /// Takes the next session with a conversation's history, to be reopened without it. One at a time, so that a
    /// session and its slot change together.
    pub(super) fn take_from_conversation(&self, conversation: &RunId) -> Option<(Slug, Box<Session>, Opening)> {
        for (agent, slot) in self
            .slots
            .lock()
            .iter_mut()
            .filter(|(_, slot)| slot.conversation.as_ref().is_some_and(|one| one.id == *conversation))
        {
            if let Some(session) = slot.take_idle() {
                slot.conversation = None;
                slot.opening.resume = false;
                return Some((agent.clone(), session, slot.opening.clone()));
            }
            if slot.is_suspended() {
                slot.conversation = None;
            }
        }
        None
    }

    pub(super) fn take_idle(&self, idle: Duration) -> Vec<(Slug, Box<Session>)> {
        let mut idle_sessions = Vec::new();
        for (agent, slot) in self.slots.lock().iter_mut() {
            let is_due = matches!(&slot.state, State::Idle { since, .. } if since.elapsed() >= idle);
            if let Some(session) = is_due.then(|| slot.take_idle()).flatten() {
                slot.state = State::Suspended;
                idle_sessions.push((agent.clone(), session));
            }
        }
        idle_sessions
    }

    /// Stores a session that has been opened. Returns a change requested meanwhile.
    pub(super) fn store(
        &self,
        agent: &Slug,
        session: Box<Session>,
        origin: SessionOrigin,
        seconds: f64,
    ) -> Option<PendingChange> {
        let mut slots = self.slots.lock();
        // The pool is stopping; dropping the session ends it.
        let slot = slots.get_mut(agent)?;
        let (model, compiled_hash) = (session.model().to_owned(), slot.opening.spec.compiled_hash.clone());
        let name = slot.opening.session.clone();
        if origin == SessionOrigin::Created {
            slot.conversation = None;
        }
        slot.state = State::Idle { session, since: Instant::now() };
        let pending = slot.take_pending();
        drop(slots);
        self.reports.tell(
            Some(agent),
            match origin {
                SessionOrigin::Resumed => EventKind::SessionResumed { session: name, seconds },
                SessionOrigin::Created | SessionOrigin::Warm => {
                    EventKind::SessionCreated { session: name, model, compiled_hash, seconds, warm: false }
                }
            },
        );
        pending
    }

    /// Removes the slot of an agent that has left the team, unless its session is busy and ends later.
    pub(super) fn remove(&self, agent: &Slug) -> Option<Slot> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(agent)?;
        slot.is_leaving = matches!(slot.state, State::Spawning | State::Active);
        if slot.is_leaving { None } else { slots.remove(agent) }
    }

    /// Closes a session and reports the processes it had left running.
    pub(super) async fn close(&self, agent: &Slug, session: Session) {
        let left = session.close().await;
        if !left.is_empty() {
            let reason = format!("stopped what was left running: {}", list(left));
            self.tell(agent, |session| EventKind::SessionError { session, reason });
        }
    }

    /// Removes the slot of a session that no longer exists.
    pub(super) fn discard(&self, agent: &Slug) {
        if self.slots.lock().remove(agent).is_some() {
            self.tell(agent, |session| EventKind::SessionDestroyed { session });
        }
    }

    pub(super) fn tell(&self, agent: &Slug, kind: impl FnOnce(String) -> EventKind) {
        self.reports.tell(Some(agent), kind(self.name(agent)));
    }

    pub(super) fn tell_if_empty(&self) {
        let is_empty = {
            let slots = self.slots.lock();
            slots.values().all(Slot::is_suspended)
        };
        if is_empty {
            self.reports.tell(None, EventKind::PoolEmpty { waiting: 0 });
        }
    }
}

impl Slot {
    fn new(opening: Opening) -> Self {
        Self {
            opening,
            state: State::Spawning,
            conversation: None,
            sent_context: String::new(),
            next: None,
            is_leaving: false,
        }
    }

    /// Takes an idle session, which is then to be opened again.
    fn take_idle(&mut self) -> Option<Box<Session>> {
        match std::mem::replace(&mut self.state, State::Spawning) {
            State::Idle { session, .. } => Some(session),
            other => {
                self.state = other;
                None
            }
        }
    }

    fn is_suspended(&self) -> bool {
        matches!(self.state, State::Suspended)
    }

    /// Whether its session has the wanted configuration: charter, model, tools, permissions, form.
    fn has_configuration_of(&self, wanted: &Opening) -> bool {
        let Opening { session: _, spec, tools, directory, resume: _, asks, form, caller } = &self.opening;
        (spec, tools, directory, asks, form, caller)
            == (&wanted.spec, &wanted.tools, &wanted.directory, &wanted.asks, &wanted.form, &wanted.caller)
    }

    fn take_pending(&mut self) -> Option<PendingChange> {
        match self.is_leaving {
            true => Some(PendingChange::Dismiss),
            false => self.next.take().map(|spec| PendingChange::Recreate(Box::new(spec))),
        }
    }

    /// The configuration may have changed back meanwhile.
    fn set_next(&mut self, spec: SessionSpec) {
        self.next = Some(spec).filter(|spec| spec.compiled_hash != self.opening.spec.compiled_hash);
    }

    fn set_opening(&mut self, wanted: &Opening) {
        self.opening = wanted.clone();
        self.next = None;
    }
}

impl State {
    pub(super) fn name(&self) -> SessionState {
        match self {
            Self::Spawning => SessionState::Spawning,
            Self::Active => SessionState::Active,
            Self::Idle { .. } => SessionState::Idle,
            Self::Suspended => SessionState::Suspended,
        }
    }
}
