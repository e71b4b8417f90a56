//! Work that agents hand to each other: who may, what comes of it, and that nobody waits in a circle.
//!
//! ```text
//! squad_route ─→ admit ─→ job (made by the run) ─→ route.requested ─→ perform ─→ report to who waits
//! ```
//!
//! An agent does one thing at a time, in one session: work for somebody who is at work is its next message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedMutexGuard, mpsc, oneshot, watch};

use super::seat::Seat;
use crate::model::{EntryId, Slug, Tier};

/// How far work is handed on: to whom somebody hands it who was handed it, and so on.
const DEPTH: usize = 3;
/// Pieces of work that are handed on in a run.
const MOST: usize = 32;

/// Asks the run for the job of work that is handed on. The error is for the model.
pub(crate) struct Commission<Job> {
    pub(crate) from: Slug,
    pub(crate) to: Slug,
    pub(crate) task: String,
    pub(crate) tier: Tier,
    pub(crate) reply: oneshot::Sender<Result<Job, String>>,
}

/// Where work comes from that an agent handed on.
#[derive(Clone)]
pub(crate) struct HandedBy {
    /// The agents, the first of them the plan's.
    pub(crate) agents: Vec<Slug>,
    pub(crate) entry: EntryId,
}

/// What somebody asked of a colleague.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HandOnRequest {
    pub(crate) from: Slug,
    pub(crate) to: Slug,
    pub(crate) task: String,
}

/// Who may hand work on.
pub(super) struct Caller {
    /// Whose work it does.
    pub(super) asked_by: Vec<Slug>,
    pub(super) tier: Tier,
    pub(super) seat: Arc<Seat>,
}

pub(crate) struct Colleagues<Job, Work> {
    commissions: mpsc::UnboundedSender<Commission<Job>>,
    state: Mutex<State<Work>>,
    /// Some work that was handed on is over.
    over: Notify,
}

struct State<Work> {
    /// One for each agent: held by its work, with whether it has a session already.
    turns: BTreeMap<Slug, Arc<tokio::sync::Mutex<bool>>>,
    /// Who waits for whom, each with a number of its own.
    waits: BTreeMap<u64, (Slug, Slug)>,
    next_wait: u64,
    handed: usize,
    /// Handed on and not over.
    open: usize,
    /// Over, and not yet taken by the run.
    done: Vec<Work>,
    /// What was asked before the run was interrupted, and what becomes of it.
    before: BTreeMap<HandOnRequest, watch::Receiver<Option<Work>>>,
    /// Who may not be given work, and why.
    kept_out: BTreeMap<Slug, &'static str>,
}

impl<Job, Work> Colleagues<Job, Work> {
    pub(crate) fn channel() -> (Arc<Self>, mpsc::UnboundedReceiver<Commission<Job>>) {
        let (commissions, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self { commissions, state: Mutex::new(State::new()), over: Notify::new() }), receiver)
    }

    /// What has been handed on and is over since it was asked last.
    pub(crate) fn take_done(&self) -> Vec<Work> {
        std::mem::take(&mut self.state().done)
    }

    /// These are not given work any more.
    pub(crate) fn keep_out<'a>(&self, agents: impl IntoIterator<Item = &'a Slug>, why: &'static str) {
        self.state().kept_out.extend(agents.into_iter().map(|agent| (agent.clone(), why)));
    }

    /// Returns when nothing that was handed on is left to do.
    pub(crate) async fn settled(&self) {
        loop {
            let over = self.over.notified();
            if self.state().open == 0 {
                return;
            }
            over.await;
        }
    }

    /// Returns when the agent has nothing else to do, with whether it has a session.
    pub(super) async fn turn_of(&self, agent: &Slug) -> OwnedMutexGuard<bool> {
        let turn = Arc::clone(self.state().turns.entry(agent.clone()).or_default());
        turn.lock_owned().await
    }

    /// The agent's work is over, and with it its waiting.
    pub(super) fn leave(&self, agent: &Slug) {
        self.state().waits.retain(|_, (waiting, _)| waiting != agent);
    }

    /// Whether work may be handed on, and waited for. It counts as open, and somebody as waiting, until what is returned
    /// is dropped.
    pub(super) fn admit(
        self: &Arc<Self>,
        from: &Slug,
        asked_by: &[Slug],
        to: &Slug,
        wait: bool,
    ) -> Result<Admitted<Job, Work>, String> {
        let mut state = self.state();
        if from == to {
            return Err("you cannot hand work to yourself; do it, or say that it is left".to_owned());
        }
        if asked_by.contains(to) {
            return Err(format!(
                "`{to}` has handed on the work that you are doing; what it has to know belongs into your report"
            ));
        }
        if let Some(why) = state.kept_out.get(to) {
            return Err(format!("`{to}` is not given work in this run: {why}"));
        }
        if asked_by.len() >= DEPTH {
            return Err(format!("this work has been handed on {DEPTH} times; do it yourself, or say that it is left"));
        }
        if state.handed >= MOST {
            return Err(format!(
                "{MOST} pieces of work have been handed on in this run, and no more can be; do it yourself, or say \
                 that it is left"
            ));
        }
        let number = if wait { Some(state.begin_to_wait(from, to)?) } else { None };
        state.handed += 1;
        state.open += 1;
        let waiting = number.map(|number| Waiting { colleagues: Arc::clone(self), number });
        Ok(Admitted { open: OpenWork(Arc::clone(self)), waiting })
    }

    pub(super) fn wait(self: &Arc<Self>, from: &Slug, to: &Slug) -> Result<Waiting<Job, Work>, String> {
        let number = self.state().begin_to_wait(from, to)?;
        Ok(Waiting { colleagues: Arc::clone(self), number })
    }

    /// Work that is handed on without being asked for again.
    pub(super) fn open(self: &Arc<Self>) -> OpenWork<Job, Work> {
        self.state().open += 1;
        OpenWork(Arc::clone(self))
    }

    pub(super) fn remember(&self, request: HandOnRequest, done: watch::Receiver<Option<Work>>) {
        self.state().before.insert(request, done);
    }

    /// What becomes of a request that was made before the run was interrupted; it is repeated once.
    pub(super) fn known(&self, request: &HandOnRequest) -> Option<watch::Receiver<Option<Work>>> {
        self.state().before.remove(request)
    }

    /// The error says why there is none, and then it does not count.
    pub(super) async fn job(&self, from: &Slug, to: &Slug, task: &str, tier: Tier) -> Result<Job, String> {
        let (reply, job) = oneshot::channel();
        let commission = Commission { from: from.clone(), to: to.clone(), task: task.to_owned(), tier, reply };
        // Nobody is there any more once the run is over.
        let _ = self.commissions.send(commission);
        let job = job.await.unwrap_or_else(|_| Err("the run is over".to_owned()));
        if job.is_err() {
            self.state().handed -= 1;
        }
        job
    }

    pub(super) fn end(&self, work: Work) {
        self.state().done.push(work);
    }

    fn state(&self) -> MutexGuard<'_, State<Work>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Work> State<Work> {
    fn new() -> Self {
        let (turns, waits, next_wait, handed, open, kept_out) = Default::default();
        Self { turns, waits, next_wait, handed, open, done: Vec::new(), before: BTreeMap::new(), kept_out }
    }

    /// Fails where that one waits for it already, directly or through others.
    fn begin_to_wait(&mut self, from: &Slug, to: &Slug) -> Result<u64, String> {
        if self.waits_for(to, from) {
            return Err(format!(
                "`{to}` waits for you, directly or through others, so you cannot wait for it; use `wait`: false, or do \
                 it yourself"
            ));
        }
        let number = self.next_wait;
        self.next_wait += 1;
        self.waits.insert(number, (from.clone(), to.clone()));
        Ok(number)
    }

    fn waits_for(&self, from: &Slug, to: &Slug) -> bool {
        let mut reached = BTreeSet::from([from]);
        let mut last = Vec::from([from]);
        while let Some(agent) = last.pop() {
            if agent == to {
                return true;
            }
            let next = self.waits.values().filter(|(waiting, _)| waiting == agent).map(|(_, other)| other);
            last.extend(next.filter(|other| reached.insert(other)));
        }
        false
    }
}

/// What is held of work that may be handed on.
pub(super) struct Admitted<Job, Work> {
    pub(super) open: OpenWork<Job, Work>,
    pub(super) waiting: Option<Waiting<Job, Work>>,
}

/// Work that was handed on and is not over.
pub(super) struct OpenWork<Job, Work>(Arc<Colleagues<Job, Work>>);

impl<Job, Work> Drop for OpenWork<Job, Work> {
    fn drop(&mut self) {
        self.0.state().open -= 1;
        self.0.over.notify_waiters();
    }
}

/// Somebody waits for as long as this is held.
pub(super) struct Waiting<Job, Work> {
    colleagues: Arc<Colleagues<Job, Work>>,
    number: u64,
}

impl<Job, Work> Drop for Waiting<Job, Work> {
    fn drop(&mut self) {
        self.colleagues.state().waits.remove(&self.number);
    }
}
