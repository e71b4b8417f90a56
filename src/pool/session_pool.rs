//! The sessions of a team and the engine they run on. A one-shot run has a pool that keeps nothing; `squad watch` has one
//! that keeps a session for each agent, so that the next piece of work need not wait for it.
//!
//! ```text
//!              ┌──────────── recreate: its charter changed, or its conversation is over ────────────┐
//!              ↓                                                                                     │
//! (none) ─→ Spawning ─→ Active ─→ Idle ─→ Suspended ─→ Spawning …                    Idle, Suspended ┤
//!              │                                                                                     ↓
//!              └──────────────────────────────── cannot be opened ──────────────────────────────→ (none)
//! ```
//!
//! A kept session belongs to one conversation at a time: what one run said never reaches another run's prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::places::Places;
use super::slots::{Belonging, Claim, How, Kept, State, Then};
use super::{Engines, Reports};
use crate::engine::{Adapter, AdapterSession, EngineError, Fact, Opening, Session};
use crate::model::{ConnectionState, Offer, RunId, SessionSpec, SessionState, Slug, Tier, What, seconds};

pub(crate) struct SessionPool {
    pub(crate) engines: Engines,
    /// How many may work at the same time.
    pub(crate) places: Arc<Places>,
    /// `None`: a session ends with the work it was opened for.
    kept: Option<Arc<Kept>>,
}

/// What became of a session that was given back.
#[derive(Debug, PartialEq)]
pub(super) enum Returned {
    Kept,
    /// With the commands that it had left running, and that were stopped.
    Closed(Vec<String>),
}

/// A session that somebody works in.
pub(super) struct Lent {
    pub(super) session: Box<Session>,
    pub(super) name: String,
    pub(super) how: How,
    /// What it is to be told behind its prompt.
    pub(super) context: String,
    /// `None`: it ends with the work.
    claimed: Option<Claimed>,
}

/// An agent's session is spoken for. Dropped before it is given back, it counts as lost: whoever used it has panicked, or
/// stopped waiting for it.
struct Claimed {
    kept: Arc<Kept>,
    agent: Slug,
    is_back: bool,
}

impl SessionPool {
    pub(crate) fn of_one_run(engines: impl Into<Engines>, places: usize) -> Self {
        Self { engines: engines.into(), places: Places::new(places), kept: None }
    }

    pub(crate) fn keeping(engines: impl Into<Engines>, places: usize, reports: Reports) -> Self {
        Self::with(
            engines.into(),
            places,
            Kept { conversation: None, earlier: BTreeSet::new(), slots: Mutex::default(), reports },
        )
    }

    /// For one conversation, in a process of its own. `earlier`: those who had a session in it before.
    pub(crate) fn of_conversation(engines: Engines, places: usize, id: RunId, earlier: BTreeSet<Slug>) -> Self {
        // What happens to sessions between messages is nobody's to hear.
        let (reports, _) = Reports::channel();
        Self::with(engines, places, Kept { conversation: Some(id), earlier, slots: Mutex::default(), reports })
    }

    fn with(engines: Engines, places: usize, kept: Kept) -> Self {
        Self { engines, places: Places::new(places), kept: Some(Arc::new(kept)) }
    }

    /// A session for a run's work: the agent's own where it is free, else one that ends with the work.
    pub(super) async fn open(&self, opening: Opening, to: &Belonging, reports: &Reports) -> Result<Lent, EngineError> {
        match &self.kept {
            Some(kept) => self.open_kept(kept, opening, to, reports).await,
            None => self.open_apart(opening, reports).await,
        }
    }

    async fn open_apart(&self, opening: Opening, reports: &Reports) -> Result<Lent, EngineError> {
        let name = opening.session.clone();
        let (session, how) = self.make(opening, reports).await?;
        Ok(Lent { session, name, how, context: String::new(), claimed: None })
    }

    async fn open_kept(
        &self,
        kept: &Arc<Kept>,
        opening: Opening,
        to: &Belonging,
        reports: &Reports,
    ) -> Result<Lent, EngineError> {
        let agent = opening.spec.agent.clone();
        let (standing, context) = kept.standing(opening.clone());
        let name = standing.session.clone();
        let Some(claim) = kept.claim(&standing, to) else { return self.open_apart(opening, reports).await };
        if matches!(claim, Claim::Make { .. }) {
            reports.tell(Some(&agent), What::SessionSpawning { session: name.clone() });
        }
        let claimed = Claimed { kept: Arc::clone(kept), agent: agent.clone(), is_back: false };
        let (session, how) = match claim {
            Claim::Take(mut session) => match is_usable(&mut session).await {
                true => (session, How::Warm),
                false => self.make_again(standing, Some(session), true, reports).await?,
            },
            Claim::Make { old, resume } => self.make_again(standing, old, resume, reports).await?,
        };
        let context = kept.activate(&agent, to, context, how);
        Ok(Lent { session, name, how, context, claimed: Some(claimed) })
    }

    /// Gives a session back.
    pub(super) async fn give_back(&self, agent: &Slug, lent: Lent) -> Returned {
        let Some(mut claimed) = lent.claimed else { return Returned::Closed(lent.session.close().await) };
        claimed.is_back = true;
        match claimed.kept.rest(agent, lent.session) {
            None => {}
            Some(Then::Recreate(spec)) => self.recreate(agent, *spec).await,
            Some(Then::Dismiss) => self.dismiss(agent).await,
        }
        Returned::Kept
    }

    async fn make_again(
        &self,
        opening: Opening,
        old: Option<Box<Session>>,
        resume: bool,
        reports: &Reports,
    ) -> Result<(Box<Session>, How), EngineError> {
        if let Some(old) = old {
            old.close().await;
        }
        self.make(Opening { resume, ..opening }, reports).await
    }

    /// A session that cannot be resumed is opened afresh, and the reason is reported.
    async fn make(&self, opening: Opening, reports: &Reports) -> Result<(Box<Session>, How), EngineError> {
        let (resume, mut afresh) = (opening.resume, opening.clone());
        let engine = self.engines.get(opening.spec.engine.as_deref(), reports).await?;
        match engine.open(opening).await {
            Err(error @ EngineError::NotResumable { .. }) if resume => {
                let what = What::SessionError { session: afresh.session.clone(), reason: error.to_string() };
                reports.tell(Some(&afresh.spec.agent), what);
                afresh.resume = false;
                engine.open(afresh).await.map(|session| (Box::new(session), How::Created))
            }
            opened => opened.map(|session| (Box::new(session), if resume { How::Resumed } else { How::Created })),
        }
    }

    /// Opens a session for an agent that has none yet.
    pub(crate) async fn warm_up(&self, opening: Opening) {
        let Some(kept) = &self.kept else { return };
        let agent = opening.spec.agent.clone();
        let (opening, _) = kept.standing(opening);
        if kept.reserve(&opening) {
            self.spawn(kept, &agent, opening).await;
        }
    }

    /// Makes an agent's session of this, with its history: at once where it rests, after its turn where it works. An
    /// agent that has none gets none.
    pub(crate) async fn recreate(&self, agent: &Slug, spec: SessionSpec) {
        let Some(kept) = &self.kept else { return };
        if let Some((old, opening)) = kept.renew(agent, spec) {
            kept.tell(agent, |session| What::SessionDestroyed { session });
            kept.close(agent, *old).await;
            self.spawn(kept, agent, opening).await;
        }
    }

    /// The end of a conversation: the sessions that hold its history are made anew, without it.
    pub(crate) async fn reset(&self, conversation: &RunId) {
        let Some(kept) = &self.kept else { return };
        while let Some((agent, old, opening)) = kept.forget(conversation) {
            kept.close(&agent, *old).await;
            self.spawn(kept, &agent, opening).await;
        }
    }

    /// Suspends the sessions that have rested for this long. They are resumed when they are needed.
    pub(crate) async fn suspend(&self, idle: Duration) {
        let Some(kept) = &self.kept else { return };
        for (agent, session) in kept.rested(idle) {
            kept.close(&agent, *session).await;
            kept.tell(&agent, |session| What::SessionSuspended { session });
        }
        kept.tell_if_empty();
    }

    /// Ends the session of somebody who has left the team; one at work ends with its turn.
    pub(crate) async fn dismiss(&self, agent: &Slug) {
        let Some(kept) = &self.kept else { return };
        let Some(slot) = kept.remove(agent) else { return };
        if let State::Idle { session, .. } = slot.state {
            kept.close(agent, *session).await;
        }
        kept.reports.tell(Some(agent), What::SessionDestroyed { session: slot.opening.session });
        kept.tell_if_empty();
    }

    /// Ends all that is open.
    pub(crate) async fn stop(self) {
        if let Some(kept) = &self.kept {
            let slots = std::mem::take(&mut *kept.slots());
            for (agent, slot) in slots {
                if let State::Idle { session, .. } = slot.state {
                    kept.close(&agent, *session).await;
                }
                kept.reports.tell(Some(&agent), What::SessionDestroyed { session: slot.opening.session });
            }
        }
        self.engines.stop().await;
    }

    /// The main engine's name, and its version where it runs.
    pub(crate) fn main_engine(&self) -> (String, String) {
        self.engines.main()
    }

    /// What the main engine offers.
    pub(crate) async fn offer(&self) -> Offer {
        self.engines.offer().await
    }

    pub(crate) fn connection(&self) -> ConnectionState {
        self.engines.connection()
    }

    pub(crate) async fn connection_changed(&self) {
        self.engines.connection_changed().await;
    }

    /// Whether its engine is there, or back soon.
    pub(crate) fn is_usable(&self) -> bool {
        self.engines.connection() != ConnectionState::Error
    }

    /// The agents that have a session, with the tier it is made for.
    pub(crate) fn kept_agents(&self) -> Vec<(Slug, Tier)> {
        let Some(kept) = &self.kept else { return Vec::new() };
        kept.slots().iter().map(|(agent, slot)| (agent.clone(), slot.opening.spec.tier)).collect()
    }

    pub(crate) fn states(&self) -> BTreeMap<Slug, SessionState> {
        let Some(kept) = &self.kept else { return BTreeMap::new() };
        kept.slots().iter().map(|(agent, slot)| (agent.clone(), slot.state.name())).collect()
    }

    async fn spawn(&self, kept: &Kept, agent: &Slug, mut opening: Opening) {
        loop {
            kept.tell(agent, |session| What::SessionSpawning { session });
            let asked = Instant::now();
            let then = match self.make(opening, &kept.reports).await {
                Ok((session, how)) => kept.settle(agent, session, how, seconds(asked.elapsed())),
                Err(error) => {
                    kept.tell(agent, |session| What::SessionError { session, reason: error.to_string() });
                    return kept.vacate(agent);
                }
            };
            opening = match then {
                None => return,
                Some(Then::Dismiss) => return self.dismiss(agent).await,
                Some(Then::Recreate(spec)) => {
                    let Some((old, opening)) = kept.renew(agent, *spec) else { return };
                    kept.tell(agent, |session| What::SessionDestroyed { session });
                    kept.close(agent, *old).await;
                    opening
                }
            };
        }
    }
}

/// Whether the engine still has it: what came while nobody listened is heard.
async fn is_usable(session: &mut Session) -> bool {
    loop {
        tokio::select! {
            biased;
            fact = session.next() => if matches!(fact, Fact::Lost(_)) { return false },
            () = ready(()) => return true,
        }
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if !self.is_back {
            self.kept.vacate(&self.agent);
        }
    }
}
