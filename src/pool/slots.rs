//! The sessions a pool keeps: one for each agent, with its configuration and what it has been told.

use std::collections::BTreeMap;
use std::future::ready;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Reports;
use super::session_id::standing_session_id;
use super::session_memory::{HeldMemory, SessionMemory, SessionStore};
use crate::engine::{AdapterSession, Fact, Opening, Session};
use crate::model::{EventKind, RunId, SessionSpec, SessionState, Slug, list};

pub(super) struct KeptSessions {
    pub(super) slots: Mutex<BTreeMap<Slug, Slot>>,
    /// What the sessions know, also those that this process does not have.
    pub(super) store: SessionStore,
    /// For session events between runs.
    pub(super) reports: Reports,
}

/// The session of one agent, open or opening.
pub(super) struct Slot {
    /// Its configuration, without the context of a task.
    pub(super) opening: Opening,
    pub(super) state: State,
    /// `None`: it is suspended, and another process may have it.
    pub(super) held: Option<HeldMemory>,
    /// The configuration it gets after its turn.
    pub(super) next: Option<SessionSpec>,
    /// The agent has left the team; the session ends after its turn.
    pub(super) is_leaving: bool,
}

/// What a standing session knows when it begins a piece of work.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Standing {
    pub(super) memory: SessionMemory,
    /// It worked in another run or conversation before.
    pub(super) is_new_task: bool,
    /// It has a history.
    pub(super) is_continued: bool,
    /// It took the place of one that could not be resumed.
    pub(super) is_replacement: bool,
    /// What it is made of has changed since it last worked.
    pub(super) is_changed: bool,
}

/// A change that was requested while the session was busy.
pub(super) enum PendingChange {
    Recreate(Box<SessionSpec>),
    Dismiss,
}

/// The conversation or run that work belongs to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionOwner {
    /// The id of the run, or of the conversation it is part of.
    pub(crate) id: RunId,
    /// More messages may follow.
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
    /// The configuration of an agent's standing session: its context comes with the messages.
    pub(super) fn standing(opening: Opening) -> Opening {
        let mut opening = Opening { session: standing_session_id(&opening.spec.agent), ..opening };
        opening.spec.context.clear();
        opening.spec.items.clear();
        opening
    }

    /// Takes what an agent's session knows. Reports why that is nothing although the session was there.
    fn take(&self, opening: &Opening, engine: &str, reports: &Reports) -> Option<HeldMemory> {
        let agent = &opening.spec.agent;
        let mut held = self.store.take(agent, engine)?;
        if let Some(why) = held.lost.take() {
            let reason = format!("its session begins anew: {why}");
            reports.tell(Some(agent), EventKind::SessionError { session: opening.session.clone(), reason });
        }
        Some(held)
    }

    /// Reserves an agent's session. `None`: it is in use, so this work gets a session of its own.
    pub(super) fn claim(&self, wanted: &Opening, to: &SessionOwner, engine: &str, reports: &Reports) -> Option<Claim> {
        let mut slots = self.slots.lock();
        let agent = &wanted.spec.agent;
        if let Some(slot) = slots.get_mut(agent)
            && let Some(held) = &slot.held
        {
            // It must resume a session that this pool does not keep.
            if wanted.resume && !held.memory.has_served(&to.id) {
                return None;
            }
            let resume = held.memory.is_used();
            let session = slot.take_idle()?;
            if slot.has_configuration_of(wanted) {
                return Some(Claim::Reuse(session));
            }
            slot.set_opening(wanted);
            return Some(Claim::Open { old: Some(session), resume });
        }
        let held = self.take(wanted, engine, reports)?;
        if wanted.resume && !held.memory.has_served(&to.id) {
            return None;
        }
        let resume = held.memory.is_used();
        slots.insert(agent.clone(), Slot::new(wanted.clone(), held));
        Some(Claim::Open { old: None, resume })
    }

    /// The last task of a session that somebody is opening, with which its history is complete.
    pub(super) fn last_task(&self, agent: &Slug) -> Option<String> {
        let slots = self.slots.lock();
        Some(slots.get(agent)?.held.as_ref()?.memory.last_task()?.to_owned())
    }

    /// Notes that what a session knew is gone.
    pub(super) fn forget(&self, agent: &Slug) {
        if let Some(held) = self.slots.lock().get_mut(agent).and_then(|slot| slot.held.as_mut()) {
            held.memory.replace();
            held.write();
        }
    }

    /// Marks the session as active. Returns what it knows. `is_shortened`: its engine has compacted it since.
    pub(super) fn activate(
        &self,
        agent: &Slug,
        to: &SessionOwner,
        origin: SessionOrigin,
        is_shortened: bool,
    ) -> Standing {
        let mut slots = self.slots.lock();
        // The agent has left the team meanwhile; this is its last work.
        let Some(slot) = slots.get_mut(agent) else { return Standing::default() };
        slot.state = State::Active;
        let Some(held) = &mut slot.held else { return Standing::default() };
        if origin == SessionOrigin::Created {
            held.memory.replace();
        }
        if is_shortened {
            held.memory.forget_context();
        }
        let is_replacement = held.memory.take_replacement();
        let is_continued = held.memory.is_used();
        let is_changed = held.memory.compile(&slot.opening.spec.compiled_hash);
        let is_new_task = held.memory.serve(&to.id);
        // Before the message is sent: whatever happens then, the session has a history.
        held.write();
        Standing { memory: held.memory.clone(), is_new_task, is_continued, is_replacement, is_changed }
    }

    /// Marks the session as idle after its turn. `memory`: what it knows since. Returns a change requested meanwhile.
    pub(super) fn set_idle(
        &self,
        agent: &Slug,
        session: Box<Session>,
        memory: Option<SessionMemory>,
    ) -> Option<PendingChange> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(agent)?;
        if let Some((held, memory)) = slot.held.as_mut().zip(memory) {
            held.memory = memory;
            held.write();
        }
        slot.state = State::Idle { session, since: Instant::now() };
        slot.take_pending()
    }

    /// Reserves the session of an agent that has none here, and says how it is opened. `None`: somebody has it.
    pub(super) fn reserve(&self, opening: &Opening, engine: &str) -> Option<Opening> {
        let mut slots = self.slots.lock();
        let agent = &opening.spec.agent;
        if let Some(slot) = slots.get_mut(agent) {
            if std::mem::take(&mut slot.is_leaving) {
                slot.set_next(opening.spec.clone());
            }
            return None;
        }
        let held = self.take(opening, engine, &self.reports)?;
        let opening = Opening { resume: held.memory.is_used(), ..opening.clone() };
        slots.insert(agent.clone(), Slot::new(opening.clone(), held));
        Some(opening)
    }

    pub(super) fn prepare_reopen(&self, agent: &Slug, spec: SessionSpec) -> Option<(Box<Session>, Opening)> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(agent)?;
        let session = slot.take_idle();
        if session.is_none() && !slot.is_suspended() {
            slot.set_next(spec);
            return None;
        }
        slot.opening = Self::standing(Opening { spec, ..slot.opening.clone() });
        let session = session?;
        slot.opening.resume = slot.held.as_ref().is_some_and(|held| held.memory.is_used());
        Some((session, slot.opening.clone()))
    }

    /// Takes the sessions that have been idle for this long, and what they know.
    pub(super) fn take_idle(&self, idle: Duration) -> Vec<(Slug, Box<Session>, Option<HeldMemory>)> {
        let mut idle_sessions = Vec::new();
        for (agent, slot) in self.slots.lock().iter_mut() {
            let is_due = matches!(&slot.state, State::Idle { since, .. } if since.elapsed() >= idle);
            if let Some(session) = is_due.then(|| slot.take_idle()).flatten() {
                slot.state = State::Suspended;
                idle_sessions.push((agent.clone(), session, slot.held.take()));
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
        if origin == SessionOrigin::Created {
            self.forget(agent);
        }
        let mut slots = self.slots.lock();
        // The pool is stopping; dropping the session ends it.
        let slot = slots.get_mut(agent)?;
        let (model, compiled_hash) = (session.model().to_owned(), slot.opening.spec.compiled_hash.clone());
        let name = slot.opening.session.clone();
        slot.state = State::Idle { session, since: Instant::now() };
        let pending = slot.take_pending();
        drop(slots);
        self.reports.tell(
            Some(agent),
            match origin {
                SessionOrigin::Resumed => EventKind::SessionResumed { session: name, seconds, changed: false },
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

    /// Closes a session and reports the processes it had left running. `held`: what it knows, unless its slot has that; it
    /// is nobody else's until the session is closed.
    pub(super) async fn close(&self, agent: &Slug, mut session: Session, mut held: Option<HeldMemory>) {
        let mut shortened = Vec::new();
        is_usable(&mut session, &mut shortened).await;
        if !shortened.is_empty() {
            let forget = |held: &mut HeldMemory| {
                held.memory.forget_context();
                held.write();
            };
            match &mut held {
                Some(held) => forget(held),
                None => {
                    let mut slots = self.slots.lock();
                    slots.get_mut(agent).and_then(|slot| slot.held.as_mut()).into_iter().for_each(forget);
                }
            }
        }
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
        self.reports.tell(Some(agent), kind(standing_session_id(agent)));
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
    fn new(opening: Opening, held: HeldMemory) -> Self {
        Self { opening, state: State::Spawning, held: Some(held), next: None, is_leaving: false }
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

/// Whether the engine still has the session. Reads the facts that arrived while it was idle, and tells when it was
/// shortened meanwhile: a compaction may end after the turn that it began in.
pub(super) async fn is_usable(session: &mut Session, shortened: &mut Vec<EventKind>) -> bool {
    loop {
        tokio::select! {
            biased;
            fact = session.next() => match fact {
                Fact::Lost(_) => return false,
                fact => shortened.extend(as_shortened(&fact)),
            },
            () = ready(()) => return true,
        }
    }
}

/// The event of a session that its engine has compacted, or dropped the oldest of.
pub(super) fn as_shortened(fact: &Fact) -> Option<EventKind> {
    let Fact::Shortened { session, is_summed_up, tokens_before, tokens_after } = fact else { return None };
    let (session, tokens_before, tokens_after) = (session.clone(), *tokens_before, *tokens_after);
    Some(match is_summed_up {
        true => EventKind::SessionCompacted { session, tokens_before, tokens_after },
        false => EventKind::SessionTruncated { session, tokens_before, tokens_after },
    })
}
