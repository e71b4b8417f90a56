//! Fan-out: agents side by side under a cap, each with an outcome, whatever happens.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::colleagues::{Caller, Colleagues, HandedBy};
use super::places::Priority;
use super::requests::{RequestHandler, Requester};
use super::seat::Seat;
use super::session_pool::{Returned, SessionPool};
use super::slots::{Belonging, How};
use super::timer::Limits;
use super::{Cancel, LiveSessions, Reports, WorkTree};
use crate::compile::{PastCall, interrupted_prompt, written_by_others};
use crate::engine::{AdapterSession, Opening};
use crate::model::{
    Attachment, Change, End, Judgement, Outcome, Position, Slug, Tier, ToolChoice, Unoffered, Usage, Verdict, What,
    WorkReport, Written, first_line, seconds, without_hidden,
};

/// What somebody is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    Work,
    /// To choose or to answer: it changes nothing.
    Answer,
    /// To judge others' work: it changes nothing, and gives a verdict.
    Review,
}

/// Processes that an agent left running, as far as they are named, and characters of a command line.
const PROCESSES: usize = 20;
const COMMAND: usize = 200;

/// A session to open and what to send to it.
pub(crate) struct Job {
    pub(crate) opening: Opening,
    pub(crate) prompt: String,
    /// What is so while it works, told behind the prompt: another process may find it otherwise.
    pub(crate) situation: String,
    /// Go with the prompt.
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) duty: Duty,
    /// It was interrupted, and did this before: what its session holds of the prompt is not sent again.
    pub(crate) goes_on: Option<Vec<PastCall>>,
    /// `None`: the plan's own.
    pub(crate) handed_by: Option<HandedBy>,
    /// Working time of its own.
    pub(crate) limit: Option<Duration>,
    /// It goes on in its session or not at all: a fresh one would know nothing of what the caller speaks of.
    pub(crate) must_resume: bool,
}

/// What became of a job. Every job has one.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) agent: Slug,
    pub(crate) outcome: Outcome,
    /// The agent's last message.
    pub(crate) text: String,
    /// Why, when it did not complete.
    pub(crate) reason: String,
    pub(crate) usage: Usage,
    /// What it changed in the work tree; `None` where nobody looked.
    pub(crate) changed: Option<Vec<Change>>,
    /// Command lines of what it had left running when it was done.
    left_running: Vec<String>,
    pub(crate) position: Position,
    /// A reviewer's, once it is known.
    pub(crate) verdict: Option<Verdict>,
    pub(super) requester: Arc<Requester>,
    seat: Arc<Seat>,
    pub(super) session: String,
    /// Working time of its own.
    pub(super) limit: Option<Duration>,
    /// It is told what colleagues decide.
    pub(super) hears_decisions: bool,
    has_session: bool,
    /// Tool calls that have begun and not ended, by the call's id.
    pub(super) under_way: BTreeMap<String, Started>,
    /// Tool calls that have ended, in an earlier process too.
    pub(super) calls: Vec<PastCall>,
}

/// A tool call that has begun.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Started {
    pub(super) tool: String,
    pub(super) detail: String,
    pub(super) writes: Option<Written>,
    pub(super) at: Instant,
}

/// Everything a worker needs beside its job.
#[derive(Clone)]
pub(crate) struct Workers {
    /// What sessions remember each other's work by.
    pub(crate) belonging: Belonging,
    pub(crate) pool: Arc<SessionPool>,
    /// Those who come first where places are rare.
    pub(crate) core: Arc<BTreeSet<Slug>>,
    pub(crate) requests: Arc<RequestHandler>,
    pub(crate) reports: Reports,
    pub(crate) cancel: Cancel,
    pub(crate) limits: Limits,
    /// What they are at, for whoever looks from outside.
    pub(crate) sessions: Arc<LiveSessions>,
    pub(crate) colleagues: Arc<Colleagues<Job, Work>>,
    /// Where what agents change is seen.
    pub(crate) tree: Option<Arc<WorkTree>>,
}

impl Workers {
    /// The same for work that belongs to this step and attempt.
    pub(crate) fn at(&self, position: Position) -> Self {
        Self { reports: self.reports.at(position), ..self.clone() }
    }

    /// Does all jobs, as many at a time as there are places, first come first served. The results are in the order of
    /// the jobs.
    pub(crate) async fn fan_out(&self, jobs: Vec<Job>) -> Vec<Work> {
        let mut set = JoinSet::new();
        let mut work: Vec<Option<Work>> = Vec::new();
        for (index, job) in jobs.into_iter().enumerate() {
            let workers = self.clone();
            work.push(Some(self.unfinished(&job)));
            set.spawn(async move { (index, workers.work(job).await) });
        }
        while let Some(done) = set.join_next().await {
            // One that is missing keeps the outcome it began with: failed.
            if let Ok((index, done)) = done {
                work[index] = Some(done);
            }
        }
        work.into_iter().flatten().collect()
    }

    /// One job from beginning to end, with all that was handed on meanwhile: nothing that has begun is lost.
    pub(crate) async fn work(&self, job: Job) -> Work {
        let work = self.perform(job).await;
        self.colleagues.settled().await;
        work
    }

    /// One job, with its outcome reported. A defect of ours in it is this job's failure and nobody else's.
    pub(super) async fn perform(&self, mut job: Job) -> Work {
        let mut work = self.unfinished(&job);
        let started = Instant::now();
        let mut cancel = self.cancel_of(&job);
        let turn = tokio::select! {
            biased;
            () = cancel.wait() => None,
            turn = self.enter(&work) => Some(turn),
        };
        match turn {
            None => {
                work.end(Outcome::Cancelled, &format!("{} before it began", cancel.reason()));
                work.changed = Some(Vec::new());
            }
            Some(mut has_session) => {
                job.opening.resume |= *has_session;
                let tree = work.requester.tree.clone();
                if let Some(tree) = &tree {
                    tree.enter(&work.agent);
                }
                if let Err(panic) = unwound(self.attend(job, &mut work)).await {
                    self.close_calls(&mut work);
                    work.end(Outcome::Failed, &format!("squad itself failed, which is a defect: {panic}"));
                }
                work.usage.seconds = seconds(started.elapsed());
                work.changed = match tree {
                    Some(tree) => tree.leave(&work.agent).await,
                    None => Some(Vec::new()),
                };
                *has_session |= work.has_session;
                work.seat.leave();
                self.colleagues.leave(&work.agent);
                // Who failed hears nothing more either.
                self.requests.user_messages.leave(&work.agent);
            }
        }
        work.usage.refused = work.requester.refused();
        work.stop_who_was_kept_from_all();
        self.reports.tell(Some(&work.agent), work.event());
        work
    }

    /// Work that was completed before its run was interrupted.
    pub(crate) fn recorded(&self, agent: &Slug, end: End) -> Work {
        let mut work = self.not_begun(Requester::new(agent.clone(), self.reports.clone(), true, None));
        work.end(Outcome::Completed, "");
        Work { text: end.text, changed: end.changed, usage: end.usage, ..work }
    }

    /// Who works is not given anything else meanwhile; only then does it take a place.
    async fn enter(&self, work: &Work) -> OwnedMutexGuard<bool> {
        let turn = self.colleagues.turn_of(&work.agent).await;
        work.seat.take().await;
        turn
    }

    /// Work is cancelled with whoever handed it on.
    fn cancel_of(&self, job: &Job) -> Cancel {
        let by = job.handed_by.iter().flat_map(|by| &by.agents);
        self.cancel.of(by.chain([&job.opening.spec.agent]).cloned().collect())
    }

    /// The outcome of one who does not begin.
    pub(crate) fn skip(&self, agent: &Slug, reason: &str) -> Work {
        let mut work = self.not_begun(Requester::new(agent.clone(), self.reports.clone(), true, None));
        work.changed = Some(Vec::new());
        work.end(Outcome::Skipped, reason);
        self.reports.tell(Some(agent), work.event());
        work
    }

    fn unfinished(&self, job: &Job) -> Work {
        let spec = &job.opening.spec;
        let has_no_means = matches!(spec.tools, ToolChoice::Nothing | ToolChoice::ReadOnly);
        let tree = self.tree.clone().filter(|_| !has_no_means);
        let reads_only = job.duty != Duty::Work || has_no_means;
        let mut requester = Requester::new(spec.agent.clone(), self.reports.clone(), reads_only, tree);
        let (seat, tier) = (self.seat(&spec.agent), spec.tier);
        match job.duty {
            Duty::Review => requester = requester.reviewing(),
            Duty::Work if tier != Tier::Lightweight => {
                let asked_by = job.handed_by.as_ref().map(|by| by.agents.clone()).unwrap_or_default();
                requester = requester.calling(Caller { asked_by, tier, seat: Arc::clone(&seat) });
            }
            Duty::Work | Duty::Answer => {}
        }
        let hears_decisions = job.duty != Duty::Answer && tier != Tier::Lightweight;
        Work { seat, hears_decisions, session: job.opening.session.clone(), ..self.not_begun(requester) }
    }

    fn not_begun(&self, requester: Requester) -> Work {
        Work {
            agent: requester.agent.clone(),
            outcome: Outcome::Failed,
            text: String::new(),
            reason: "squad lost track of it; this is a defect".to_owned(),
            usage: Usage::default(),
            changed: None,
            left_running: Vec::new(),
            position: self.reports.position(),
            verdict: None,
            seat: self.seat(&requester.agent),
            requester: Arc::new(requester),
            session: String::new(),
            limit: None,
            hears_decisions: false,
            has_session: false,
            under_way: BTreeMap::new(),
            calls: Vec::new(),
        }
    }

    fn seat(&self, agent: &Slug) -> Arc<Seat> {
        let priority = if self.core.contains(agent) { Priority::Core } else { Priority::Specialist };
        Seat::new(Arc::clone(&self.pool.places), priority)
    }

    async fn attend(&self, job: Job, work: &mut Work) {
        work.limit = job.limit;
        let (name, directory) = (job.opening.session.clone(), job.opening.directory.clone());
        let spec = job.opening.spec.clone();
        let mut cancel = self.cancel_of(&job);
        if let Some(Unoffered { model, engine }) = &spec.model.instead_of {
            let (from, to) = (model.clone(), spec.model.shown().to_owned());
            let reason = format!("{engine} does not offer it");
            self.reports.tell(Some(&spec.agent), What::ModelFallback { from, to, reason });
        }
        self.requests.user_messages.listen(&spec.agent);
        let asked = Instant::now();
        let opened = tokio::select! {
            biased;
            () = cancel.wait() => {
                return work.end(Outcome::Cancelled, &format!("{} before it began", cancel.reason()));
            }
            opened = self.pool.open(job.opening, &self.belonging, &self.reports) => opened,
        };
        let mut lent = match opened {
            Ok(lent) => lent,
            Err(error) => {
                let reason = error.to_string();
                self.reports.tell(Some(&spec.agent), What::SessionError { session: name, reason: reason.clone() });
                return work.end(Outcome::Failed, &reason);
            }
        };
        let name = lent.name.clone();
        work.session.clone_from(&name);
        let session = &mut lent.session;
        self.sessions.place(&spec.agent, session.model(), (&directory, &job.prompt), session.workspace());
        let seconds = seconds(asked.elapsed());
        let is_resumed = lent.how == How::Resumed;
        if job.must_resume && !is_resumed {
            work.end(Outcome::Failed, "its chat cannot be gone on with; start a new one");
            self.pool.give_back(&spec.agent, lent).await;
            return;
        }
        let opened = if is_resumed {
            What::SessionResumed { session: name.clone(), seconds }
        } else {
            What::SessionCreated {
                session: name.clone(),
                model: session.model().to_owned(),
                compiled_hash: spec.compiled_hash,
                seconds,
                warm: lent.how == How::Warm,
            }
        };
        work.has_session = true;
        match &job.handed_by {
            Some(by) => self.reports.tell_because(&spec.agent, opened, vec![by.entry.clone()]),
            None => self.reports.tell(Some(&spec.agent), opened),
        }
        let others = work.requester.tree.as_ref().map(|tree| tree.written_by_others(&spec.agent)).unwrap_or_default();
        let task = without_hidden(job.prompt);
        let is_interrupted = job.goes_on.is_some();
        work.calls = job.goes_on.unwrap_or_default();
        let continuation = match is_interrupted && is_resumed {
            true => self.continuation(session, &task, work).await,
            false => None,
        };
        let (prompt, attachments) = match continuation {
            Some(continuation) => (continuation, Vec::new()),
            None => {
                let before = if is_interrupted { interrupted_prompt(&work.calls) } else { String::new() };
                (task + &before + &job.situation + &written_by_others(&others), job.attachments)
            }
        };
        let unheard = self.said_before(session, &spec.agent).await;
        let prompt = prompt + &unheard + &std::mem::take(&mut lent.context);
        self.turn(session, (&prompt, &attachments), cancel.clone(), work).await;
        self.hear_out(session, cancel, work).await;
        self.close_calls(work);
        if work.outcome == Outcome::Completed {
            self.reports.tell(Some(&spec.agent), What::SessionIdle { session: name.clone() });
        }
        match self.pool.give_back(&spec.agent, lent).await {
            Returned::Kept => {}
            Returned::Closed(left_running) => {
                work.left_running = left_running.iter().take(PROCESSES).map(|line| first_line(line, COMMAND)).collect();
                self.reports.tell(Some(&spec.agent), What::SessionDestroyed { session: name });
            }
        }
    }
}

impl Work {
    pub(super) fn end(&mut self, outcome: Outcome, reason: &str) {
        self.outcome = outcome;
        self.reason = reason.to_owned();
    }

    /// Who was allowed nothing of what it wanted to change has not done the work, whatever it says.
    fn stop_who_was_kept_from_all(&mut self) {
        // What may be another's is that other's: this one was not allowed it.
        let has_changed = self.changed.iter().flatten().any(|change| change.by.is_empty());
        if self.outcome == Outcome::Completed
            && !has_changed
            && let Some(count) = self.requester.kept_from_all()
        {
            let what = if count == 1 {
                "1 write or command was".to_owned()
            } else {
                format!("{count} writes or commands were")
            };
            self.end(Outcome::Stopped, &format!("{what} refused, and none was allowed"));
        }
    }

    fn event(&self) -> What {
        let Self { reason, text, changed, left_running, usage, .. } = self.clone();
        What::of_end(self.outcome, End { reason, text, changed, left_running, usage })
    }

    /// What it said with the tool for verdicts, as a reviewer.
    pub(crate) fn judgement(&self) -> Option<Judgement> {
        self.requester.judgement()
    }

    pub(crate) fn report(&self) -> WorkReport {
        let Self { agent, outcome: status, changed, usage, .. } = self.clone();
        let Position { step, attempt } = self.position;
        WorkReport { agent, step, attempt, status, changed, refused: usage.refused, verified: None, usage }
    }
}

/// Catches a panic and returns what it said. What the future borrowed is as the panic left it.
async fn unwound<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(said(&*panic))),
        }
    })
    .await
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it did not say why").to_owned()
}
