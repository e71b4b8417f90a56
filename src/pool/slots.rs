//! The sessions that a pool keeps: one for each agent, what it is made of, and whose it is at the moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Reports;
use super::session_id::{session_id, standing_session_id};
use crate::engine::{AdapterSession, Opening, Session};
use crate::model::{RunId, SessionSpec, SessionState, Slug, What, list};

pub(super) struct Kept {
    /// The conversation they are for alone; `None`: they are the team's, one for each agent.
    pub(super) conversation: Option<RunId>,
    /// Those who had a session in it before this process, by the same name.
    pub(super) earlier: BTreeSet<Slug>,
    pub(super) slots: Mutex<BTreeMap<Slug, Slot>>,
    /// Of what happens to sessions between runs.
    pub(super) reports: Reports,
}

/// An agent's session, or what becomes one.
pub(super) struct Slot {
    /// What it is made of, without what is told for a task.
    pub(super) opening: Opening,
    pub(super) state: State,
    /// Whose history it holds; `None`: it has none.
    pub(super) conversation: Option<Belonging>,
    /// What it was told for a task of this conversation.
    pub(super) told: String,
    /// What it is to be made of after its turn.
    pub(super) next: Option<SessionSpec>,
    /// Its agent has left the team: it ends with its turn.
    pub(super) is_leaving: bool,
}

/// What has come up while a session was busy.
pub(super) enum Then {
    Recreate(Box<SessionSpec>),
    Dismiss,
}

/// What work belongs to, and so what a session may know of other work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Belonging {
    /// Of a run, or of the conversation it is part of.
    pub(crate) id: RunId,
    /// More messages may come: nobody else takes its sessions while they are open.
    pub(crate) is_conversation: bool,
}

/// Only an idle session is here to be taken: no state allows what another one does.
pub(super) enum State {
    Spawning,
    Active,
    Idle { session: Box<Session>, since: Instant },
    Suspended,
}

/// How a session was had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Created,
    Resumed,
    /// It was there.
    Warm,
}

/// What is to be done for somebody who asks for a session.
pub(super) enum Claim {
    Take(Box<Session>),
    /// Make the agent's session, in place of this one.
    Make {
        old: Option<Box<Session>>,
        resume: bool,
    },
}

impl Kept {
    pub(super) fn slots(&self) -> MutexGuard<'_, BTreeMap<Slug, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The opening of an agent's own session, and what it is told for a task.
    pub(super) fn standing(&self, opening: Opening) -> (Opening, String) {
        let session = self.name(&opening.spec.agent);
        let mut opening = Opening { session, ..opening };
        let context = std::mem::take(&mut opening.spec.context);
        (opening, context)
    }

    pub(super) fn name(&self, agent: &Slug) -> String {
        self.conversation.as_ref().map_or_else(|| standing_session_id(agent), |id| session_id(agent, id))
    }

    /// Speaks for an agent's session. `None`: it is in use, and one is made for this work alone.
    pub(super) fn claim(&self, wanted: &Opening, to: &Belonging) -> Option<Claim> {
        let mut slots = self.slots();
        let agent = &wanted.spec.agent;
        let Some(slot) = slots.get_mut(agent) else {
            slots.insert(agent.clone(), Slot::new(wanted.clone()));
            return Some(Claim::Make { old: None, resume: self.earlier.contains(agent) });
        };
        let is_own = slot.conversation.as_ref() == Some(to);
        // It goes on in a session that this pool does not keep.
        if wanted.resume && !is_own {
            return None;
        }
        let is_open = matches!(slot.state, State::Idle { .. });
        if is_open && !is_own && slot.conversation.as_ref().is_some_and(|other| other.is_conversation) {
            return None;
        }
        let is_fit = slot.is_made_like(wanted) && (is_own || slot.conversation.is_none());
        match std::mem::replace(&mut slot.state, State::Spawning) {
            State::Idle { session, .. } if is_fit => Some(Claim::Take(session)),
            State::Idle { session, .. } => {
                slot.make_of(wanted);
                Some(Claim::Make { old: Some(session), resume: is_own })
            }
            State::Suspended => {
                slot.make_of(wanted);
                Some(Claim::Make { old: None, resume: is_own })
            }
            busy @ (State::Spawning | State::Active) => {
                slot.state = busy;
                None
            }
        }
    }

    /// The session is at work from here on. Returns what it has to be told.
    pub(super) fn activate(&self, agent: &Slug, to: &Belonging, context: String, how: How) -> String {
        let mut slots = self.slots();
        // Whoever has left the team meanwhile works for the last time.
        let Some(slot) = slots.get_mut(agent) else { return context };
        slot.state = State::Active;
        let is_known = how != How::Created && slot.conversation.as_ref() == Some(to) && slot.told == context;
        slot.conversation = Some(to.clone());
        slot.told.clone_from(&context);
        if is_known { String::new() } else { context }
    }

    /// The turn is over. Returns what is to become of the session now.
    pub(super) fn rest(&self, agent: &Slug, session: Box<Session>) -> Option<Then> {
        let mut slots = self.slots();
        let slot = slots.get_mut(agent)?;
        slot.state = State::Idle { session, since: Instant::now() };
        slot.then()
    }

    pub(super) fn reserve(&self, opening: &Opening) -> bool {
        let mut slots = self.slots();
        let agent = &opening.spec.agent;
        if let Some(slot) = slots.get_mut(agent) {
            if std::mem::take(&mut slot.is_leaving) {
                slot.next_is(opening.spec.clone());
            }
            return false;
        }
        slots.insert(agent.clone(), Slot::new(opening.clone()));
        true
    }

    pub(super) fn renew(&self, agent: &Slug, spec: SessionSpec) -> Option<(Box<Session>, Opening)> {
        let mut slots = self.slots();
        let slot = slots.get_mut(agent)?;
        match std::mem::replace(&mut slot.state, State::Spawning) {
            State::Idle { session, .. } => {
                slot.opening = self.standing(Opening { spec, ..slot.opening.clone() }).0;
                slot.opening.resume = slot.conversation.is_some();
                Some((session, slot.opening.clone()))
            }
            State::Suspended => {
                slot.opening = self.standing(Opening { spec, ..slot.opening.clone() }).0;
                slot.state = State::Suspended;
                None
            }
            busy @ (State::Spawning | State::Active) => {
                slot.state = busy;
                slot.next_is(spec);
                None
            }
        }
    }

    /// The next session that holds the history of a conversation, and is made anew without it. The others are theirs
    /// still: what a session is, and what is said of it, change together.
    pub(super) fn forget(&self, conversation: &RunId) -> Option<(Slug, Box<Session>, Opening)> {
        for (agent, slot) in self
            .slots()
            .iter_mut()
            .filter(|(_, slot)| slot.conversation.as_ref().is_some_and(|one| one.id == *conversation))
        {
            match std::mem::replace(&mut slot.state, State::Spawning) {
                State::Idle { session, .. } => {
                    slot.conversation = None;
                    slot.opening.resume = false;
                    return Some((agent.clone(), session, slot.opening.clone()));
                }
                State::Suspended => {
                    slot.conversation = None;
                    slot.state = State::Suspended;
                }
                busy @ (State::Spawning | State::Active) => slot.state = busy,
            }
        }
        None
    }

    pub(super) fn rested(&self, idle: Duration) -> Vec<(Slug, Box<Session>)> {
        let mut rested = Vec::new();
        for (agent, slot) in self.slots().iter_mut() {
            slot.state = match std::mem::replace(&mut slot.state, State::Suspended) {
                State::Idle { session, since } if since.elapsed() >= idle => {
                    rested.push((agent.clone(), session));
                    State::Suspended
                }
                other => other,
            };
        }
        rested
    }

    /// The session is there. Returns what is to become of it now.
    pub(super) fn settle(&self, agent: &Slug, session: Box<Session>, how: How, seconds: f64) -> Option<Then> {
        let mut slots = self.slots();
        // The pool is at its end: dropped, it is ended.
        let slot = slots.get_mut(agent)?;
        let (model, compiled_hash) = (session.model().to_owned(), slot.opening.spec.compiled_hash.clone());
        let name = slot.opening.session.clone();
        if how == How::Created {
            slot.conversation = None;
        }
        slot.state = State::Idle { session, since: Instant::now() };
        let then = slot.then();
        drop(slots);
        self.reports.tell(
            Some(agent),
            match how {
                How::Resumed => What::SessionResumed { session: name, seconds },
                How::Created | How::Warm => {
                    What::SessionCreated { session: name, model, compiled_hash, seconds, warm: false }
                }
            },
        );
        then
    }

    /// Takes the slot of somebody who has left the team, unless the session is busy and ends later.
    pub(super) fn remove(&self, agent: &Slug) -> Option<Slot> {
        let mut slots = self.slots();
        let slot = slots.get_mut(agent)?;
        slot.is_leaving = matches!(slot.state, State::Spawning | State::Active);
        if slot.is_leaving { None } else { slots.remove(agent) }
    }

    /// Closes a session, and says what it had left running.
    pub(super) async fn close(&self, agent: &Slug, session: Session) {
        let left = session.close().await;
        if !left.is_empty() {
            let reason = format!("stopped what was left running: {}", list(left));
            self.tell(agent, |session| What::SessionError { session, reason });
        }
    }

    /// There is no session any more.
    pub(super) fn vacate(&self, agent: &Slug) {
        if self.slots().remove(agent).is_some() {
            self.tell(agent, |session| What::SessionDestroyed { session });
        }
    }

    pub(super) fn tell(&self, agent: &Slug, what: impl FnOnce(String) -> What) {
        self.reports.tell(Some(agent), what(self.name(agent)));
    }

    pub(super) fn tell_if_empty(&self) {
        let is_empty = {
            let slots = self.slots();
            slots.values().all(|slot| matches!(slot.state, State::Suspended))
        };
        if is_empty {
            self.reports.tell(None, What::PoolEmpty { waiting: 0 });
        }
    }
}

impl Slot {
    fn new(opening: Opening) -> Self {
        Self { opening, state: State::Spawning, conversation: None, told: String::new(), next: None, is_leaving: false }
    }

    /// Whether its session is what would be made now: charter, model, tools, permissions, form.
    fn is_made_like(&self, wanted: &Opening) -> bool {
        let Opening { session: _, spec, tools, directory, resume: _, asks, form } = &self.opening;
        (spec, tools, directory, asks, form)
            == (&wanted.spec, &wanted.tools, &wanted.directory, &wanted.asks, &wanted.form)
    }

    fn then(&mut self) -> Option<Then> {
        match self.is_leaving {
            true => Some(Then::Dismiss),
            false => self.next.take().map(|spec| Then::Recreate(Box::new(spec))),
        }
    }

    /// It may have become again what it was.
    fn next_is(&mut self, spec: SessionSpec) {
        self.next = Some(spec).filter(|spec| spec.compiled_hash != self.opening.spec.compiled_hash);
    }

    fn make_of(&mut self, wanted: &Opening) {
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
