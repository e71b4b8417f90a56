//! Work that agents hand to each other: who may, the results, and protection against cycles of waiting.
//!
//! ```text
//! squad_route ─→ admit ─→ job (made by the run) ─→ route.requested ─→ perform ─→ report to a waiting caller
//! ```
//!
//! An agent does one thing at a time, in one session: work for a busy agent becomes its next message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedMutexGuard, mpsc, oneshot, watch};

use super::job_permit::JobPermit;
use crate::model::{EntryId, Slug, Tier};

/// Longest chain of agents that hand work on.
const MAX_DEPTH: usize = 3;
/// Most pieces of work handed on in a run.
const MAX_HANDED_ON: usize = 32;

/// Asks the run to make the job for work that is handed on. The error is for the model.
pub(crate) struct JobRequest<Job> {
    pub(crate) from: Slug,
    pub(crate) to: Slug,
    pub(crate) task: String,
    pub(crate) tier: Tier,
    pub(crate) reply: oneshot::Sender<Result<Job, String>>,
}

/// The origin of work that an agent handed on.
#[derive(Clone)]
pub(crate) struct HandedBy {
    /// The chain of agents; the first is one of the plan's.
    pub(crate) agents: Vec<Slug>,
    pub(crate) entry: EntryId,
}

/// A request to a colleague.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HandOnRequest {
    pub(crate) from: Slug,
    pub(crate) to: Slug,
    pub(crate) task: String,
}

/// An agent that may hand work on.
pub(super) struct Caller {
    /// The agents whose request it works on.
    pub(super) asked_by: Vec<Slug>,
    pub(super) tier: Tier,
    pub(super) permit: Arc<JobPermit>,
}

pub(crate) struct Colleagues<Job, Work> {
    job_requests: mpsc::UnboundedSender<JobRequest<Job>>,
    state: Mutex<State<Work>>,
    /// Signalled when a piece of handed-on work ends.
    work_ended: Notify,
}

struct State<Work> {
    /// One lock for each agent, held by its work. The value says whether it has a session already.
    turns: BTreeMap<Slug, Arc<tokio::sync::Mutex<bool>>>,
    /// Who waits for whom, by a unique number.
    waits: BTreeMap<u64, (Slug, Slug)>,
    next_wait: u64,
    handed_on: usize,
    /// Number of pieces handed on and unfinished.
    open: usize,
    /// Finished, and not yet collected by the run.
    done: Vec<Work>,
    /// Requests made before the run was interrupted, and their results.
    earlier_requests: BTreeMap<HandOnRequest, watch::Receiver<Option<Work>>>,
    /// Agents that may not be given work, and why.
    excluded: BTreeMap<Slug, &'static str>,
}

impl<Job, Work> Colleagues<Job, Work> {
    pub(crate) fn channel() -> (Arc<Self>, mpsc::UnboundedReceiver<JobRequest<Job>>) {
        let (job_requests, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self { job_requests, state: Mutex::new(State::new()), work_ended: Notify::new() }), receiver)
    }

    /// Returns the work finished since the last call.
    pub(crate) fn take_done(&self) -> Vec<Work> {
        std::mem::take(&mut self.state.lock().done)
    }

    /// Gives these agents no more work.
    pub(crate) fn keep_out<'a>(&self, agents: impl IntoIterator<Item = &'a Slug>, why: &'static str) {
        self.state.lock().excluded.extend(agents.into_iter().map(|agent| (agent.clone(), why)));
    }

    /// Returns when all handed-on work is finished.
    pub(crate) async fn settled(&self) {
        loop {
            let work_ended = self.work_ended.notified();
            if self.state.lock().open == 0 {
                return;
            }
            work_ended.await;
        }
    }

    /// Waits until the agent is free. The guarded value says whether it has a session.
    pub(super) async fn turn_of(&self, agent: &Slug) -> OwnedMutexGuard<bool> {
        let turn = Arc::clone(self.state.lock().turns.entry(agent.clone()).or_default());
        turn.lock_owned().await
    }

    /// Ends all waits of an agent whose work is over.
    pub(super) fn leave(&self, agent: &Slug) {
        self.state.lock().waits.retain(|_, (waiting, _)| waiting != agent);
    }

    /// Checks whether work may be handed on and waited for. Until the result is dropped, the work counts as open and
    /// the caller as waiting.
    pub(super) fn admit(
        self: &Arc<Self>,
        from: &Slug,
        asked_by: &[Slug],
        to: &Slug,
        wait: bool,
    ) -> Result<Admitted<Job, Work>, String> {
        let mut state = self.state.lock();
        if from == to {
            return Err("you cannot hand work to yourself; do it, or report it as left undone".to_owned());
        }
        if asked_by.contains(to) {
            return Err(format!("`{to}` handed you this work; put what it needs to know into your report"));
        }
        if let Some(why) = state.excluded.get(to) {
            return Err(format!("`{to}` cannot be given work in this run: {why}"));
        }
        if asked_by.len() >= MAX_DEPTH {
            return Err(format!(
                "this work has been handed on {MAX_DEPTH} times; do it yourself, or report it as left undone"
            ));
        }
        if state.handed_on >= MAX_HANDED_ON {
            return Err(format!(
                "{MAX_HANDED_ON} pieces of work have been handed on in this run, and no more can be; do it yourself, or say \
                 that it is left"
            ));
        }
        let number = if wait { Some(state.begin_to_wait(from, to)?) } else { None };
        state.handed_on += 1;
        state.open += 1;
        let waiting = number.map(|number| WaitGuard { colleagues: Arc::clone(self), number });
        Ok(Admitted { open: OpenWork(Arc::clone(self)), waiting })
    }

    pub(super) fn wait(self: &Arc<Self>, from: &Slug, to: &Slug) -> Result<WaitGuard<Job, Work>, String> {
        let number = self.state.lock().begin_to_wait(from, to)?;
        Ok(WaitGuard { colleagues: Arc::clone(self), number })
    }

    /// Counts work as open that was requested before the run was interrupted.
    pub(super) fn open(self: &Arc<Self>) -> OpenWork<Job, Work> {
        self.state.lock().open += 1;
        OpenWork(Arc::clone(self))
    }

    pub(super) fn remember(&self, request: HandOnRequest, done: watch::Receiver<Option<Work>>) {
        self.state.lock().earlier_requests.insert(request, done);
    }

    /// The result of a request made before the run was interrupted. A repeated request gets it once.
    pub(super) fn known(&self, request: &HandOnRequest) -> Option<watch::Receiver<Option<Work>>> {
        self.state.lock().earlier_requests.remove(request)
    }

    /// Asks the run for a job. An error does not count towards the limit.
    pub(super) async fn job(&self, from: &Slug, to: &Slug, task: &str, tier: Tier) -> Result<Job, String> {
        let (reply, job) = oneshot::channel();
        let request = JobRequest { from: from.clone(), to: to.clone(), task: task.to_owned(), tier, reply };
        // The receiver is gone once the run is over.
        let _ = self.job_requests.send(request);
        let job = job.await.unwrap_or_else(|_| Err("the run is over".to_owned()));
        if job.is_err() {
            self.state.lock().handed_on -= 1;
        }
        job
    }

    pub(super) fn end(&self, work: Work) {
        self.state.lock().done.push(work);
    }
}

impl<Work> State<Work> {
    fn new() -> Self {
        let (turns, waits, next_wait, handed_on, open, excluded) = Default::default();
        Self { turns, waits, next_wait, handed_on, open, done: Vec::new(), earlier_requests: BTreeMap::new(), excluded }
    }

    /// Fails if that agent already waits for this one, directly or through others.
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

/// Guards for work that may be handed on.
pub(super) struct Admitted<Job, Work> {
    pub(super) open: OpenWork<Job, Work>,
    pub(super) waiting: Option<WaitGuard<Job, Work>>,
}

/// Guard: work that was handed on and is not finished.
pub(super) struct OpenWork<Job, Work>(Arc<Colleagues<Job, Work>>);

impl<Job, Work> Drop for OpenWork<Job, Work> {
    fn drop(&mut self) {
        self.0.state.lock().open -= 1;
        self.0.work_ended.notify_waiters();
    }
}

/// Guard: an agent waits for a colleague.
pub(super) struct WaitGuard<Job, Work> {
    colleagues: Arc<Colleagues<Job, Work>>,
    number: u64,
}

impl<Job, Work> Drop for WaitGuard<Job, Work> {
    fn drop(&mut self) {
        self.colleagues.state.lock().waits.remove(&self.number);
    }
}
