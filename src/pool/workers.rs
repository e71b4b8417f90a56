//! Runs agents in parallel up to a limit. Each job gets an outcome, whatever happens.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::colleagues::{Caller, Colleagues, HandedBy};
use super::hooks::Stop;
use super::job_permit::JobPermit;
use super::permits::Priority;
use super::requests::{RequestHandler, Requester};
use super::session_memory::News;
use super::session_pool::{BorrowedSession, Returned, SessionPool};
use super::slots::{SessionOrigin, SessionOwner, Standing};
use super::spending::Priced;
use super::timer::Limits;
use super::{Budget, Cancel, LiveSessions, Place, Places, QuotaPolicy, Reports, WorkTree};
use crate::compile::{
    PastCall, changed_by_others, earlier_turns, hook_addition, interrupted_prompt, moved_prompt, new_task,
    recorded_work, unknown_calls, written_by_others,
};
use crate::engine::{Account, AdapterSession, EngineError, Opening, Session};
use crate::model::{
    Access, AgentGitChanges, Attachment, Change, ChangeClass, CheckRun, CommandCounts, DecisionId, End, EventKind,
    Judgement, NetworkAccess, Outcome, Position, ReachedHosts, RunId, SandboxLevel, SessionSpec, Slug, Sort, Tier,
    ToolChoice, UnavailableModel, Usage, Verdict, WorkModel, WorkReport, Written, change_by, first_line, list, seconds,
    without_hidden,
};

/// The kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkKind {
    Work,
    /// To route or to answer, without changing anything.
    Answer,
    /// To judge others' work and give a verdict, without changing anything.
    Review,
}

/// Limits of the report of processes left running: how many are named, and characters of each command line.
const MAX_PROCESSES: usize = 20;
const MAX_COMMAND: usize = 200;

/// A session to open and what to send to it.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) opening: Opening,
    pub(crate) prompt: String,
    /// Facts about the current process, appended to the prompt. They may differ when the run is resumed elsewhere.
    pub(crate) situation: String,
    /// The conversation that it is part of, with its messages and answers so far.
    pub(crate) earlier: Option<EarlierTurns>,
    /// Sent with the prompt.
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) kind: WorkKind,
    /// Set for interrupted work: the calls it made before. The parts of the prompt that its session already has are not
    /// sent again.
    pub(crate) goes_on: Option<Vec<PastCall>>,
    /// `None`: the plan assigned it.
    pub(crate) handed_by: Option<HandedBy>,
    /// A limit on working time for this job alone.
    pub(crate) limit: Option<Duration>,
    /// Whether the message asks for something to be done, and not for words alone.
    pub(crate) asks_for_work: bool,
    /// Fail rather than open a fresh session, which would lack the history that the caller refers to.
    pub(crate) must_resume: bool,
}

/// The result of a job. Every job has one.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) agent: Slug,
    pub(crate) outcome: Outcome,
    /// The agent's last message.
    pub(crate) text: String,
    /// Why it did not complete.
    pub(crate) reason: String,
    pub(crate) usage: Usage,
    /// What it changed in the work tree; `None` if unknown.
    pub(crate) changed: Option<Vec<Change>>,
    /// What its commands changed in the repository itself.
    pub(crate) git: AgentGitChanges,
    pub(crate) commands: CommandCounts,
    /// Its last command that looks like a check of the project.
    pub(crate) check: Option<CheckRun>,
    /// It used no tool and changed nothing, as far as its engine tells.
    no_tool_used: bool,
    /// Command lines of the processes it left running.
    left_running: Vec<String>,
    pub(crate) position: Position,
    /// A reviewer's verdict, once known.
    pub(crate) verdict: Option<Verdict>,
    pub(super) requester: Arc<Requester>,
    pub(super) permit: Arc<JobPermit>,
    pub(super) session: String,
    /// The engine of its session, and whose quota it uses.
    pub(super) engine: String,
    pub(super) account: Option<Account>,
    /// The others wait for what becomes of its next message: it is the first on the account after its quota was used up.
    pub(super) is_trial: bool,
    /// A limit on working time for this job alone.
    pub(super) limit: Option<Duration>,
    /// Whether it is notified of colleagues' decisions.
    pub(super) gets_decisions: bool,
    asks_for_work: bool,
    /// Whether its engine acts without asking.
    pub(super) is_unasked: bool,
    /// Its engine, if its mode refused changes without telling.
    pub(super) hides_refusals: Option<String>,
    has_session: bool,
    /// Whether it has tools and its engine reports their calls.
    reports_tools: bool,
    /// See [`End`].
    sandbox: Option<SandboxLevel>,
    network: Option<NetworkAccess>,
    pub(super) hosts: ReachedHosts,
    /// See [`End`].
    pub(super) model: Option<WorkModel>,
    /// See [`End`].
    uncounted: BTreeSet<String>,
    /// What model calls have cost by the user's prices since its engine last told, and whether some have no price.
    pub(super) priced: Priced,
    pub(super) is_unpriced: bool,
    /// It failed because nobody is logged in.
    pub(crate) no_login: Option<EngineError>,
    /// It called a tool of squad's, or asked for something.
    pub(super) has_requested: bool,
    /// Its engine has compacted the session, or dropped the oldest of it.
    pub(super) is_shortened: bool,
    /// Tool calls in progress, by call id.
    pub(super) tools_in_progress: BTreeMap<String, ToolInProgress>,
    /// Completed tool calls, including those of an earlier process.
    pub(super) calls: Vec<PastCall>,
}

/// A tool call in progress.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolInProgress {
    pub(super) tool: String,
    pub(super) detail: String,
    pub(super) writes: Option<Written>,
    pub(super) at: Instant,
}

/// A conversation until now.
#[derive(Clone, Debug)]
pub(crate) struct EarlierTurns {
    pub(crate) conversation: RunId,
    /// Each message and its answer.
    pub(crate) turns: Vec<(String, String)>,
    /// The present message, if one agent alone answers it: its session will know that turn.
    pub(crate) own: Option<String>,
}

/// What is recorded of earlier runs, read when a standing session needs it.
pub(crate) trait EarlierRuns: Send + Sync {
    /// An agent's last work, in a few words.
    fn last_work(&self, agent: &Slug) -> Option<String>;

    /// The files that others have changed since, by agent.
    fn changed_since(&self, agent: &Slug) -> BTreeMap<Slug, Vec<String>>;
}

/// Everything a worker needs besides its job.
#[derive(Clone)]
pub(crate) struct Workers {
    pub(crate) owner: SessionOwner,
    /// No agent works in its standing session.
    pub(crate) is_fresh: bool,
    pub(crate) earlier: Arc<dyn EarlierRuns>,
    pub(crate) pool: Arc<SessionPool>,
    /// The agents that get a permit first when there are too few.
    pub(crate) core: Arc<BTreeSet<Slug>>,
    pub(crate) requests: Arc<RequestHandler>,
    pub(crate) reports: Reports,
    pub(crate) cancel: Cancel,
    pub(crate) limits: Limits,
    pub(crate) budget: Arc<Budget>,
    pub(crate) quota: Arc<QuotaPolicy>,
    /// How often an agent goes on in its session after an error of its engine, or after its engine's process ended.
    pub(crate) retries: u32,
    /// Current status of all agents, for outside observers.
    pub(crate) sessions: Arc<LiveSessions>,
    pub(crate) colleagues: Arc<Colleagues<Job, Work>>,
    /// Tracks what agents change in the work tree.
    pub(crate) tree: Option<Arc<WorkTree>>,
    /// Gives agents clones; `None`: all work in the project.
    pub(crate) places: Option<Arc<dyn Places>>,
    /// The clone of the agent that these work for.
    pub(crate) place: Option<Arc<Place>>,
}

/// How work ends that this kept from going on.
pub(super) fn outcome_of(error: &EngineError) -> Outcome {
    match error {
        EngineError::Unreachable { .. } => Outcome::Lost,
        _ => Outcome::Failed,
    }
}

impl Workers {
    /// The same workers for another step and attempt.
    pub(crate) fn at(&self, position: Position) -> Self {
        Self { reports: self.reports.at(position), ..self.clone() }
    }

    /// Runs all jobs, as many at a time as there are permits; those of core agents begin first. The results are in the order
    /// of the jobs.
    pub(crate) async fn fan_out(&self, jobs: Vec<Job>) -> Vec<Work> {
        let mut set = JoinSet::new();
        let mut work: Vec<Option<Work>> = jobs.iter().map(|job| Some(self.unfinished(job))).collect();
        let mut jobs: Vec<(usize, Job)> = jobs.into_iter().enumerate().collect();
        // While permits are free, whoever asks first gets one.
        jobs.stable_sort_by_key(|(_, job)| !self.core.contains(&job.opening.spec.agent));
        for (index, job) in jobs {
            let workers = self.clone();
            set.spawn(async move { (index, workers.work(job).await) });
        }
        while let Some(done) = set.join_next().await {
            // A task that died keeps its initial outcome: failed.
            if let Ok((index, done)) = done {
                work[index] = Some(done);
            }
        }
        work.into_iter().flatten().collect()
    }

    /// Runs one job and waits for all work handed on meanwhile, so that no work is lost.
    pub(crate) async fn work(&self, job: Job) -> Work {
        // Boxed: it is large, and the futures of all who wait for it would be as large.
        let work = Box::pin(self.perform(job)).await;
        self.colleagues.settled().await;
        work
    }

    /// Runs one job and reports its outcome. A panic fails this job only.
    pub(super) async fn perform(&self, mut job: Job) -> Work {
        let mut work = self.unfinished(&job);
        let started = Instant::now();
        let mut cancel = self.cancel_of(&job);
        let turn = tokio::select! {
            biased;
            () = cancel.wait() => None,
            turn = self.enter(&job, &mut work) => Some(turn),
        };
        match turn {
            None => {
                work.end(Outcome::Cancelled, &format!("{} before it began", cancel.reason()));
                work.changed = Some(Vec::new());
            }
            Some((_, Err(reason))) => {
                work.end(Outcome::Stopped, &reason);
                work.changed = Some(Vec::new());
                work.permit.finish();
                self.colleagues.leave(&work.agent);
            }
            Some((mut has_session, Ok(fallback))) => {
                job.opening.resume |= *has_session;
                let is_on_fallback = fallback.is_some();
                if let Some(fallback) = fallback {
                    job.opening.spec.on_fallback(fallback);
                }
                match self.perform_at_place(job, is_on_fallback, &mut work, started).await {
                    Ok(()) => {}
                    Err(reason) => {
                        match cancel.is_set() {
                            true => work.end(Outcome::Cancelled, &format!("{} before it began", cancel.reason())),
                            false => work.end(Outcome::Failed, &reason),
                        }
                        work.changed = Some(Vec::new());
                    }
                }
                self.end_trial(&mut work);
                *has_session |= work.has_session;
                work.permit.finish();
                self.colleagues.leave(&work.agent);
                // Failed agents also stop receiving messages.
                self.requests.user_messages.leave(&work.agent);
            }
        }
        self.find_uncounted(&mut work);
        work.usage.refused = work.requester.refused();
        work.commands = work.requester.commands.lock().counts;
        work.check = work.requester.commands.lock().check.clone();
        work.stop_if_all_changes_refused();
        work.judge_claim(self.requests.lets_change());
        self.reports.tell(Some(&work.agent), work.event());
        work
    }

    /// Runs a job at the agent's place, and again at another one if that is gone. The error is why it has none.
    async fn perform_at_place(
        &self,
        mut job: Job,
        is_on_fallback: bool,
        work: &mut Work,
        started: Instant,
    ) -> Result<(), String> {
        loop {
            let workers = self.placed(&mut job, work).await?;
            workers.perform_at_once(job.clone(), is_on_fallback, work, started).await;
            let (Some(places), Some(_)) = (&self.places, workers.place) else { return Ok(()) };
            if work.outcome == Outcome::Lost {
                if places.move_away(&work.agent, &work.reason).await? {
                    job.situation.push_str(moved_prompt());
                    job.goes_on = Some(std::mem::take(&mut work.calls));
                    job.opening.resume = false;
                    continue;
                }
                // Of who never got to its machine, nothing is there.
                if !work.has_session && !job.opening.resume {
                    work.outcome = Outcome::Failed;
                }
            }
            places.leave(&work.agent).await;
            return Ok(());
        }
    }

    async fn perform_at_once(&self, job: Job, is_on_fallback: bool, work: &mut Work, started: Instant) {
        let tree = work.requester.tree.clone();
        if let Some(tree) = &tree {
            tree.enter(&work.agent);
        }
        if let Err(panic) = catch_panic(self.run_in_session(job, is_on_fallback, work)).await {
            self.close_calls(work);
            work.end(Outcome::Failed, &format!("squad itself failed; this is a bug: {panic}"));
        }
        work.usage.seconds = seconds(started.elapsed());
        work.usage.waited = seconds(work.requester.waited());
        match tree {
            Some(tree) => {
                let changes = tree.leave(&work.agent, !work.left_running.is_empty()).await;
                let (files, git) = changes.map(|changes| (changes.files, changes.git)).unzip();
                (work.changed, work.git) = (files, git.unwrap_or_default());
                tree.fetch_commits(&work.agent, self.pool.sandbox()).await;
            }
            None => work.changed = Some(Vec::new()),
        }
    }

    /// The workers at the agent's place. Whoever only answers works in the project.
    async fn placed(&self, job: &mut Job, work: &mut Work) -> Result<Self, String> {
        let is_any = job.kind != WorkKind::Answer && job.opening.spec.tools != ToolChoice::Nothing;
        let Some(places) = self.places.as_ref().filter(|_| is_any) else { return Ok(self.clone()) };
        let Some(place) = places.place(&work.agent).await? else { return Ok(self.clone()) };
        for attachment in &mut job.attachments {
            // The project may have a file that the clone has not.
            let path = Path::new(&self.requests.project).join(&attachment.path);
            attachment.path = path.display().to_string();
        }
        job.opening.directory = PathBuf::from(&place.project);
        let (pool, tree) = (Arc::clone(&place.pool), Some(Arc::clone(&place.tree)));
        let workers = Self { pool, tree, place: Some(place), ..self.clone() };
        work.requester = Arc::new(workers.requester(job, &work.permit));
        Ok(workers)
    }

    /// Work that completed before the run was interrupted.
    pub(crate) fn recorded(&self, agent: &Slug, end: End) -> Work {
        let mut work = self.not_begun(Requester::new(agent.clone(), self.reports.clone(), true, None));
        work.end(Outcome::Completed, "");
        let End { text, changed, git, commands, check, no_tool_used, sandbox, network, hosts, .. } = end;
        let End { model, uncounted, usage, .. } = end;
        let work = Work { network, hosts, model, uncounted, usage, ..work };
        Work { text, changed, git, commands, check, no_tool_used, sandbox, ..work }
    }

    /// Waits until the agent is free, and only then for a permit. Returns the engine that stands in for its own, if any, or
    /// why it may not start.
    async fn enter(&self, job: &Job, work: &mut Work) -> (OwnedMutexGuard<bool>, Result<Option<String>, String>) {
        let turn = self.colleagues.turn_of(&work.agent).await;
        work.permit.take().await;
        let admitted = self.admit(job.opening.spec.engine.as_deref(), work).await;
        (turn, admitted)
    }

    /// Work is cancelled together with whoever handed it on.
    fn cancel_of(&self, job: &Job) -> Cancel {
        let by = job.handed_by.iter().flat_map(|by| &by.agents);
        self.cancel.of(by.chain([&job.opening.spec.agent]).cloned().collect())
    }

    /// Reports work that is skipped.
    pub(crate) fn skip(&self, agent: &Slug, reason: &str) -> Work {
        let mut work = self.not_begun(Requester::new(agent.clone(), self.reports.clone(), true, None));
        work.changed = Some(Vec::new());
        work.end(Outcome::Skipped, reason);
        self.reports.tell(Some(agent), work.event());
        work
    }

    fn unfinished(&self, job: &Job) -> Work {
        let (kind, tier) = (job.kind, job.opening.spec.tier);
        let permit = self.permit(&job.opening.spec.agent);
        let requester = self.requester(job, &permit);
        let gets_decisions = kind != WorkKind::Answer && tier != Tier::Lightweight;
        let (session, asks_for_work) = (job.opening.session.clone(), job.asks_for_work);
        Work { permit, gets_decisions, session, asks_for_work, ..self.not_begun(requester) }
    }

    fn requester(&self, job: &Job, permit: &Arc<JobPermit>) -> Requester {
        let spec = &job.opening.spec;
        let has_no_means = matches!(spec.tools, ToolChoice::Nothing | ToolChoice::ReadOnly);
        let tree = self.tree.clone().filter(|_| !has_no_means);
        let reads_only = job.kind != WorkKind::Work || has_no_means;
        let tier = spec.tier;
        let requester = Requester::new(spec.agent.clone(), self.reports.clone(), reads_only, tree);
        let requester = requester.at_tier(tier).placed(self.place.clone());
        match job.kind {
            WorkKind::Review => requester.reviewing(),
            WorkKind::Work if tier != Tier::Lightweight => {
                let asked_by = job.handed_by.as_ref().map(|by| by.agents.clone()).unwrap_or_default();
                requester.with_caller(Caller { asked_by, tier, permit: Arc::clone(permit) })
            }
            WorkKind::Work | WorkKind::Answer => requester,
        }
    }

    fn not_begun(&self, requester: Requester) -> Work {
        Work {
            agent: requester.agent.clone(),
            outcome: Outcome::Failed,
            text: String::new(),
            reason: "squad lost track of it; this is a bug".to_owned(),
            usage: Usage::default(),
            changed: None,
            git: AgentGitChanges::default(),
            commands: CommandCounts::default(),
            check: None,
            no_tool_used: false,
            left_running: Vec::new(),
            sandbox: None,
            network: None,
            hosts: ReachedHosts::default(),
            model: None,
            uncounted: BTreeSet::new(),
            priced: Priced::default(),
            is_unpriced: false,
            position: self.reports.position(),
            verdict: None,
            permit: self.permit(&requester.agent),
            requester: Arc::new(requester),
            session: String::new(),
            engine: String::new(),
            account: None,
            is_trial: false,
            limit: None,
            gets_decisions: false,
            asks_for_work: false,
            is_unasked: false,
            hides_refusals: None,
            has_session: false,
            reports_tools: false,
            no_login: None,
            has_requested: false,
            is_shortened: false,
            tools_in_progress: BTreeMap::new(),
            calls: Vec::new(),
        }
    }

    fn permit(&self, agent: &Slug) -> Arc<JobPermit> {
        let priority = if self.core.contains(agent) { Priority::Core } else { Priority::Specialist };
        JobPermit::new(Arc::clone(&self.pool.permits), priority)
    }

    async fn run_in_session(&self, job: Job, is_on_fallback: bool, work: &mut Work) {
        work.limit = job.limit;
        self.report_unoffered_model(&job.opening.spec);
        self.requests.user_messages.listen(&work.agent);
        let mut cancel = self.cancel_of(&job);
        let asked = Instant::now();
        let may_stand = self.may_stand(&job) && !is_on_fallback;
        let opened = tokio::select! {
            biased;
            () = cancel.wait() => {
                return work.end(Outcome::Cancelled, &format!("{} before it began", cancel.reason()));
            }
            opened = self.pool.open(job.opening.clone(), may_stand, &self.owner, &self.reports) => opened,
        };
        let mut borrowed = match opened {
            Ok(borrowed) => borrowed,
            Err(error) => {
                let (session, reason) = (job.opening.session, error.to_string());
                self.reports.tell(Some(&work.agent), EventKind::SessionError { session, reason });
                return work.end(outcome_of(&error), &error.with_hint());
            }
        };
        let name = borrowed.name.clone();
        work.session.clone_from(&name);
        work.engine.clone_from(&borrowed.engine);
        work.model = Some(model_of(&job.opening.spec, &borrowed));
        let account = self.pool.engines.account(&work.engine);
        if work.account.as_ref() != Some(&account) {
            self.end_trial(work);
            work.account = Some(account);
        }
        let (session, start) = (&borrowed.session, (&*job.opening.directory, job.prompt.as_str()));
        self.sessions.set_details(&work.agent, session.model(), start, session.workspace());
        if job.must_resume && borrowed.origin != SessionOrigin::Resumed {
            work.end(Outcome::Failed, "its chat cannot be continued; start a new one");
            self.pool.release(&work.agent, borrowed).await;
            return;
        }
        work.has_session = true;
        work.sandbox = Some(borrowed.session.sandbox());
        let access = if borrowed.session.is_listed() { NetworkAccess::Listed } else { NetworkAccess::Open };
        work.network = Some(access).filter(|_| work.sandbox == Some(SandboxLevel::Full));
        let traffic = borrowed.session.traffic().map(|traffic| (traffic.mark(), traffic));
        work.reports_tools = job.kind != WorkKind::Answer
            && job.opening.spec.tools != ToolChoice::Nothing
            && borrowed.session.reports_tools();
        self.report_opened(&job, &borrowed, seconds(asked.elapsed()));
        self.report_uncounted(borrowed.session.reports_tools(), work);
        // What is not recorded would be done again when the run goes on.
        let begun = match self.reports.flush().await {
            Ok(()) => {
                let added = self.hooks_at_start(borrowed.origin, work, &cancel).await;
                added.map_err(|reason| (Outcome::Stopped, reason))
            }
            Err(reason) => Err((Outcome::Failed, reason)),
        };
        match begun {
            Ok(added) => {
                let (prompt, attachments) = self.message(job, &mut borrowed, work).await;
                let session = &mut borrowed.session;
                self.turn(session, (&(prompt + &added), &attachments), cancel.clone(), work).await;
                self.deliver_late_messages(session, cancel.clone(), work).await;
                self.hold(session, &cancel, work).await;
            }
            Err(_) if cancel.is_set() => work.end(Outcome::Cancelled, cancel.reason()),
            Err((outcome, reason)) => work.end(outcome, &reason),
        }
        self.close_calls(work);
        if let Some((mark, traffic)) = traffic {
            work.hosts = traffic.seen_since(mark);
        }
        let ended = (&work.agent, &*name, &*work.outcome.to_string());
        self.requests.hooks_of(&work.requester).session_end(ended, &self.reports).await;
        if let (true, Some(standing)) = (work.is_shortened, &mut borrowed.standing) {
            standing.memory.forget_context();
        } else if work.outcome != Outcome::Completed {
            // The message may not have reached it.
            borrowed.standing = None;
        }
        if work.outcome == Outcome::Completed {
            self.reports.tell(Some(&work.agent), EventKind::SessionIdle { session: name.clone() });
        }
        match self.pool.release(&work.agent, borrowed).await {
            Returned::Kept => {}
            Returned::Closed(left_running) => {
                let lines = left_running.iter().take(MAX_PROCESSES);
                work.left_running = lines.map(|line| first_line(line, MAX_COMMAND)).collect();
                self.reports.tell(Some(&work.agent), EventKind::SessionDestroyed { session: name });
            }
        }
    }

    /// What hooks add to the first message; the error is why the work does not begin.
    async fn hooks_at_start(&self, origin: SessionOrigin, work: &Work, cancel: &Cancel) -> Result<String, String> {
        let source = match origin {
            SessionOrigin::Resumed => "resume",
            SessionOrigin::Created | SessionOrigin::Warm => "startup",
        };
        let begun = (&work.agent, &*work.session, source);
        let added = self.requests.hooks_of(&work.requester).session_start(begun, &self.reports, cancel).await?;
        Ok(added.iter().map(|(hook, text)| hook_addition(hook, text)).collect())
    }

    /// Sends an agent back to work as long as a hook does not let it stop.
    async fn hold(&self, session: &mut Session, cancel: &Cancel, work: &mut Work) {
        for holds in 0.. {
            if work.outcome != Outcome::Completed {
                return;
            }
            let done = (&work.agent, &*work.session, &*work.text);
            match self.requests.hooks_of(&work.requester).agent_stop(done, holds, &self.reports, cancel).await {
                Stop::May => return,
                Stop::Held(message) => self.turn(session, (&message, &[]), cancel.clone(), work).await,
                Stop::Failed(_) if cancel.is_set() => work.end(Outcome::Cancelled, cancel.reason()),
                Stop::Failed(reason) => work.end(Outcome::Failed, &reason),
            }
        }
    }

    /// Whether an agent may do this in its standing session. Nobody reviews in a session that may have made the work; small
    /// work needs no history, and a choice of the coordinator only that of its conversation.
    fn may_stand(&self, job: &Job) -> bool {
        let Opening { spec, caller, .. } = &job.opening;
        let is_small = spec.tier == Tier::Lightweight || spec.agent.as_str() == Slug::COORDINATOR;
        let is_fit = job.kind != WorkKind::Review && caller.is_none() && !self.is_fresh;
        is_fit && (self.owner.is_conversation || !is_small)
    }

    fn report_unoffered_model(&self, spec: &SessionSpec) {
        if let Some(UnavailableModel { model, engine }) = &spec.model.instead_of {
            let (from, to) = (model.clone(), spec.model.shown().to_owned());
            let reason = format!("{engine} does not offer it");
            self.reports.tell(Some(&spec.agent), EventKind::ModelFallback { from, to, reason });
        }
    }

    /// Says of each engine which budgets do not hold for it, before it is asked anything.
    fn report_uncounted(&self, reports_tools: bool, work: &mut Work) {
        let [tokens, cost] = self.pool.engines.tells_usage(&work.engine);
        let cost = cost || (tokens && self.budget.price_of(work.models()).is_some());
        work.uncounted = self.budget.uncounted([tokens, cost, reports_tools], &[]);
        let engine = work.model.as_ref().map(WorkModel::shown).unwrap_or_default();
        if !work.uncounted.is_empty() && self.budget.is_news(&format!("uncounted: {engine}")) {
            let names = list(work.uncounted.iter().map(|name| format!("`{name}`")));
            let reason = format!("nothing is counted for {names} of {engine}, which does not tell it");
            self.reports.tell(None, EventKind::SessionError { session: String::new(), reason });
        }
    }

    /// What an engine that was expected to tell has not told.
    fn find_uncounted(&self, work: &mut Work) {
        let tokens = work.usage.input_tokens + work.usage.output_tokens > 0;
        // Whoever ends early may have had no answer to count.
        if tokens || work.outcome == Outcome::Completed {
            let told = [tokens, tokens && !work.is_unpriced, true];
            work.uncounted.extend(self.budget.uncounted(told, &work.usage.billed));
        }
    }

    fn report_opened(&self, job: &Job, borrowed: &BorrowedSession, seconds: f64) {
        let (spec, session) = (&job.opening.spec, borrowed.name.clone());
        let opened = match borrowed.origin {
            SessionOrigin::Resumed => {
                let changed = borrowed.standing.as_ref().is_some_and(|standing| standing.is_changed);
                EventKind::SessionResumed { session, seconds, changed }
            }
            origin @ (SessionOrigin::Created | SessionOrigin::Warm) => EventKind::SessionCreated {
                session,
                model: borrowed.session.model().to_owned(),
                compiled_hash: spec.compiled_hash.clone(),
                seconds,
                warm: origin == SessionOrigin::Warm,
            },
        };
        match &job.handed_by {
            Some(by) => self.reports.tell_because(&spec.agent, opened, vec![by.entry.clone()]),
            None => self.reports.tell(Some(&spec.agent), opened),
        }
    }

    /// The message for a job. An interrupted job whose session has the prompt gets a continuation instead.
    async fn message(&self, job: Job, borrowed: &mut BorrowedSession, work: &mut Work) -> (String, Vec<Attachment>) {
        let is_resumed = borrowed.origin == SessionOrigin::Resumed;
        let others = work.requester.tree.as_ref().map(|tree| tree.written_by_others(&work.agent)).unwrap_or_default();
        let task = without_hidden(job.prompt);
        let is_interrupted = job.goes_on.is_some();
        work.calls = job.goes_on.unwrap_or_default();
        // A call without a result may have been refused or cut short.
        for PastCall { detail, ok, exit_code, .. } in work.calls.iter().filter(|call| call.is_finished_command()) {
            work.requester.commands.lock().end(detail, *ok == Some(true), *exit_code, &self.requests.checks);
        }
        let continuation = match is_interrupted && is_resumed {
            true => self.continuation(&mut borrowed.session, &task, work).await,
            false => None,
        };
        let (prompt, attachments) = match continuation {
            Some(continuation) => (continuation, Vec::new()),
            None => {
                let before = if is_interrupted { interrupted_prompt(&work.calls) } else { String::new() };
                if let Some(unknown) = unknown_calls(&work.calls) {
                    let kind = EventKind::SessionError { session: work.session.clone(), reason: unknown_end(&unknown) };
                    self.reports.tell(Some(&work.agent), kind);
                }
                let (begins, known) = self.recalled(&job.opening.spec, borrowed.standing.as_ref());
                let told = known_to(borrowed.standing.as_mut(), job.situation, job.earlier.as_ref());
                (begins + &task + &before + &told + &written_by_others(&others) + &known, job.attachments)
            }
        };
        if let Some(standing) = &mut borrowed.standing {
            standing.memory.begin(&task);
        }
        let missed = self.earlier_messages(&mut borrowed.session, &work.agent).await;
        let news = self.news(&job.opening.spec, borrowed);
        (prompt + &missed + &news, attachments)
    }

    /// What a standing session is told of the past: before the task, that this is another one; after it, what others have
    /// changed since, or what squad has recorded in the place of a history that is gone.
    fn recalled(&self, spec: &SessionSpec, standing: Option<&Standing>) -> (String, String) {
        let Some(standing) = standing else { return Default::default() };
        let begins = if standing.is_new_task { new_task().to_owned() } else { String::new() };
        let known = if standing.is_replacement {
            self.earlier.last_work(&spec.agent).map(|record| recorded_work(&record)).unwrap_or_default()
        } else if standing.is_continued {
            changed_by_others(&self.earlier.changed_since(&spec.agent))
        } else {
            String::new()
        };
        (begins, without_hidden(known))
    }

    /// The context that a standing session has not been told. Reports the decisions in it.
    fn news(&self, spec: &SessionSpec, borrowed: &mut BorrowedSession) -> String {
        let Some(Standing { memory, .. }) = &mut borrowed.standing else { return String::new() };
        let RequestHandler { decisions, notes, .. } = &*self.requests;
        let is_in_force = |id: &DecisionId| decisions.iter().any(|decision| decision.id == *id) || notes.holds(id);
        let News { text, decisions } = memory.news(&spec.context, &spec.items, is_in_force);
        if !decisions.is_empty() {
            let kind = EventKind::DecisionDelivered { decisions, session: borrowed.name.clone() };
            self.reports.tell(Some(&spec.agent), kind);
        }
        text
    }
}

impl Work {
    /// The names of its model.
    pub(super) fn models(&self) -> [Option<&str>; 2] {
        self.model.as_ref().map_or([None; 2], |model| [model.used.as_deref(), model.asked.as_deref()])
    }

    pub(super) fn end(&mut self, outcome: Outcome, reason: &str) {
        self.outcome = outcome;
        self.reason = reason.to_owned();
    }

    /// Notes a call of an engine that acts without asking: only that it ran tells that it was allowed.
    pub(super) fn note_done(&self, tool: &str, has_written: bool, has_run: bool) {
        let access = change_by(tool).filter(|access| has_written || (*access == Access::Shell && has_run));
        if self.is_unasked {
            self.requester.note_allowed(access);
        }
    }

    /// An agent whose every change was refused has not done its work, whatever it reports.
    fn stop_if_all_changes_refused(&mut self) {
        // A change that may be someone else's does not count: this agent was not allowed any.
        let has_changed = self.changed.iter().flatten().any(|change| change.class == ChangeClass::Own);
        if self.outcome == Outcome::Completed
            && !has_changed
            && let Some(reason) = self.reported_refusals().or_else(|| self.unreported_refusals())
        {
            self.end(Outcome::Stopped, &reason);
        }
    }

    /// An agent that was asked for work and could do it, but did nothing at all, only claims that it did.
    fn judge_claim(&mut self, lets_change: bool) {
        let is_its =
            |change: &Change| change.class.is_of_agents() && (change.by.is_empty() || change.by.contains(&self.agent));
        let has_changed =
            self.changed.as_ref().is_none_or(|changed| changed.iter().any(is_its)) || !self.git.is_empty();
        let has_used_tools = !self.calls.is_empty() || self.has_requested || self.requester.refused() > 0;
        self.no_tool_used = self.outcome == Outcome::Completed && self.reports_tools && !has_used_tools && !has_changed;
        if self.no_tool_used && self.asks_for_work && lets_change && !self.requester.cannot_change() {
            self.end(Outcome::Claimed, "it was asked for work, but used no tool and changed nothing");
        }
    }

    fn reported_refusals(&self) -> Option<String> {
        Some(match self.requester.all_changes_refused()? {
            1 => "1 write or command was refused, and none was allowed".to_owned(),
            count => format!("{count} writes or commands were refused, and none was allowed"),
        })
    }

    /// Of an engine that does not report refusals, all that is known is that nothing was changed where work was asked for.
    fn unreported_refusals(&self) -> Option<String> {
        let engine = self.hides_refusals.as_ref()?;
        let was_asked = self.asks_for_work && !self.requester.reads_only && self.changed.is_some();
        was_asked.then(|| format!("{engine} does not report refusals, and in its strictest mode nothing was changed"))
    }

    fn record(&self) -> End {
        let Self {
            reason,
            text,
            changed,
            git,
            commands,
            check,
            no_tool_used,
            left_running,
            sandbox,
            network,
            hosts,
            model,
            uncounted,
            usage,
            ..
        } = self.clone();
        End {
            reason,
            text,
            changed,
            git,
            commands,
            check,
            no_tool_used,
            left_running,
            sandbox,
            network,
            hosts,
            model,
            uncounted,
            usage,
        }
    }

    fn event(&self) -> EventKind {
        EventKind::of_end(self.outcome, self.record())
    }

    /// The verdict a reviewer gave with the tool for it.
    pub(crate) fn judgement(&self) -> Option<Judgement> {
        self.requester.judgement()
    }

    pub(crate) fn report(&self) -> WorkReport {
        let Position { step, attempt } = self.position;
        WorkReport::of(self.agent.clone(), (step, attempt), self.outcome, self.record())
    }
}

/// The model that a session was to have, and has.
fn model_of(spec: &SessionSpec, borrowed: &BorrowedSession) -> WorkModel {
    let used = Some(borrowed.session.model().to_owned()).filter(|id| !id.is_empty());
    WorkModel { engine: borrowed.engine.clone(), asked: spec.model.asked().map(str::to_owned), used }
}

/// What a session is told of this run and its conversation; a standing one only what it does not know.
fn known_to(standing: Option<&mut Standing>, situation: String, earlier: Option<&EarlierTurns>) -> String {
    match (standing, earlier) {
        (None, None) => situation,
        (None, Some(EarlierTurns { turns, .. })) => situation + &earlier_turns(turns),
        (Some(Standing { memory, .. }), None) => memory.situation(situation),
        (Some(Standing { memory, .. }), Some(EarlierTurns { conversation, turns, own })) => {
            memory.situation(situation) + &earlier_turns(&memory.turns(conversation, turns, own.as_deref()))
        }
    }
}

/// Tells the user which calls of an interrupted agent have no known end.
pub(super) fn unknown_end(calls: &str) -> String {
    format!("it is unknown whether {calls} finished; it is told to check before it repeats anything")
}

/// Catches a panic and returns its message. Data the future borrowed stays as the panic left it.
async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic_message(&*panic))),
        }
    })
    .await
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it did not say why").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::workers_tests::{slug, workers};

    /// How refusals are known × whose the changes are: nothing but a change of its own tells that any was allowed.
    #[test]
    fn what_others_may_have_changed_was_allowed_to_nobody() {
        use ChangeClass::{OtherRun, Own, Together, Unknown, Yours};

        let (workers, _messages) = workers("models = [\"m\"]", 1, Duration::MAX);
        let classes = [Own, Together, Yours, OtherRun, Unknown].map(|class| Some(vec![class]));
        let seen = classes.into_iter().chain([None, Some(vec![]), Some(vec![Together, Own])]);
        for seen in seen {
            for is_hidden in [false, true] {
                let requester = Requester::new(slug("ada"), workers.reports.clone(), false, None);
                let mut work = workers.not_begun(requester);
                (work.outcome, work.asks_for_work) = (Outcome::Completed, true);
                work.hides_refusals = is_hidden.then(|| "mine".to_owned());
                if !is_hidden {
                    work.requester.note_refused(Some(Access::Write));
                }
                let change = |class: &ChangeClass| Change { class: *class, ..Change::default() };
                work.changed = seen.as_ref().map(|classes| classes.iter().map(change).collect());
                work.stop_if_all_changes_refused();
                let is_done = seen.as_ref().map_or(is_hidden, |classes| classes.contains(&Own));
                let expected = if is_done { Outcome::Completed } else { Outcome::Stopped };
                assert_eq!(work.outcome, expected, "{seen:?}, hidden: {is_hidden}");
            }
        }
    }
}
