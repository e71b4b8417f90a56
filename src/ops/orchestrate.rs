//! The main job: compile, route, fan out, review, answer, record.
//!
//! ```text
//! message → route ─┬─ agents ───────────────────────┬→ fan-out → review → answer → land → run.completed
//!                  ├─ abstain → coordinator chooses ─┘              ↑
//!                  └─ direct ───────────────────────────────────────┘
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::agents::compiler;
use super::journal::{LedgerJournal, aside};
use super::landing::{Lander, Left, Which};
use super::lease::{Lease, LiveRun};
use super::{Project, engines, ledger, secrets};
use crate::compile::{self, Colleague, Compiled, Compiler, Task};
use crate::engine::{Adapter, Opening, rehearsal};
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{Member, Outcome, Plan, PlanKind, RunId, SessionSpec, Slug, Tier, Usage, Verdict, What};
use crate::policy::Permissions;
use crate::pool::{Ask, Cancel, Crew, Desk, Dispatcher, Job, Reports, Show, Work, session_id};
use crate::route::{self, Wishes};
use crate::tools::Tool;

/// What the user asked for.
pub(crate) struct Order {
    pub(crate) message: String,
    pub(crate) wishes: Wishes,
    pub(crate) permissions: Permissions,
    /// Read before the run begins, so that a mistake in it costs nothing.
    pub(crate) script: Option<rehearsal::Script>,
    /// Land the run's decisions on the branch.
    pub(crate) commit: bool,
    pub(crate) ask: Option<Ask>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) run: RunId,
    pub(crate) status: Outcome,
    pub(crate) unlanded: Option<Left>,
    /// Why the end of the run is not in the ledger.
    pub(crate) unrecorded: Option<String>,
}

/// What would happen: the plan, and the session of each agent in it.
#[derive(Serialize)]
pub(crate) struct Preview {
    pub(crate) plan: Plan,
    pub(crate) sessions: Vec<PreviewedSession>,
}

#[derive(Serialize)]
pub(crate) struct PreviewedSession {
    pub(crate) agent: Slug,
    pub(crate) model: crate::model::ModelChoice,
    pub(crate) tools: crate::model::ToolChoice,
    /// Prompt and context, in bytes.
    pub(crate) bytes: usize,
    pub(crate) compiled_hash: String,
}

pub(crate) fn preview(project: &Project, order: &Order) -> Result<Preview, Failure> {
    let plan = route::plan(&project.team, &order.message, &order.wishes);
    let learnings = ledger::learnings(&project.repository, &project.ledger_prefix())?;
    let task = Task::new(&order.message);
    let compiler = compiler(project, &learnings, &task);
    let mut compiled: Vec<Compiled<'_>> = plan
        .agents
        .iter()
        .chain(&plan.reviewer)
        .filter_map(|slug| project.team.member(slug))
        .map(|member| compiler.agent(member, plan.tier))
        .collect();
    if plan.kind != PlanKind::Agents || plan.agents.len() > 1 {
        compiled.push(compiler.coordinator());
    }
    let sessions = compiled.into_iter().map(|Compiled { spec, .. }| PreviewedSession {
        bytes: spec.prompt.len() + spec.context.len(),
        agent: spec.agent,
        model: spec.model,
        tools: spec.tools,
        compiled_hash: spec.compiled_hash,
    });
    Ok(Preview { sessions: sessions.collect(), plan })
}

/// Runs. Whatever happens after the first entry is recorded, the end included.
pub(crate) fn run<S: Show + Send + 'static>(
    env: &Env,
    project: &Project,
    order: Order,
    show: S,
) -> (S, Result<Ended, Failure>) {
    match (env.runtime)() {
        Ok(runtime) => {
            let ended = runtime.block_on(execute(env, project, order, show));
            // A question that nobody answered must not keep the program.
            runtime.shutdown_background();
            ended
        }
        Err(error) => (show, Err(Failure::failed(format!("the asynchronous runtime cannot start: {error}")))),
    }
}

async fn execute<S: Show + Send + 'static>(
    env: &Env,
    project: &Project,
    mut order: Order,
    show: S,
) -> (S, Result<Ended, Failure>) {
    let at = env.clock.now();
    let run = env.ids.run(at);
    let prefix = project.ledger_prefix();
    let before = (|| {
        let learnings = ledger::learnings(&project.repository, &prefix)?;
        let head = project.repository.head()?;
        let live = LiveRun { run: run.clone(), pid: std::process::id(), started: at, message: order.message.clone() };
        let lease = Lease::take(&project.local(), &live).map_err(|error| {
            Failure::team(format!("cannot write to {}: {error}", project.local().display()))
                .hint("squad keeps its local state there; check the folder's permissions")
        })?;
        Ok::<_, Failure>((learnings, head, lease))
    })();
    let (learnings, head, _lease) = match before {
        Ok(before) => before,
        Err(failure) => return (show, Err(failure)),
    };
    let (interrupt, cancel) = Cancel::channel();
    let interrupts = tokio::spawn(interrupts(interrupt, env.signals));
    let mut interrupted = cancel.clone();
    let started = tokio::select! {
        biased;
        // What has begun to start is killed when it is dropped.
        () = interrupted.wait() => {
            Err(Failure::new(FailureKind::Interrupted, "interrupted before anything began"))
        }
        started = engines::start(env, project, &run, order.script.take()) => started,
    };
    let started = match started {
        Ok(started) => started,
        Err(failure) => return (show, Err(failure)),
    };
    let (reports, receiver) = Reports::channel();
    let journal = LedgerJournal {
        repository: project.repository.clone(),
        prefix,
        redactor: secrets::redactor(env, &project.folder.root),
        threads: env.threads,
    };
    let dispatcher = Dispatcher { run: run.clone(), clock: env.clock.clone(), ids: env.ids.clone(), journal, show };
    let dispatching = tokio::spawn(dispatcher.serve(receiver));

    let desk = Desk {
        permissions: order.permissions,
        project: project.folder.root.display().to_string(),
        branch: head.branch.clone(),
        decisions: compile::in_force(project.decisions()).into_iter().cloned().collect(),
        reports: reports.clone(),
        ask: order.ask.clone(),
    };
    let crew = Crew {
        engine: Arc::new(started.engine),
        desk: Arc::new(desk),
        reports: reports.clone(),
        cancel,
        timeout: project.settings.sessions.timeout,
        places: Arc::new(Semaphore::new(project.settings.sessions.max_concurrent)),
    };
    let opening = What::RunStarted {
        text: order.message.clone(),
        engine: crew.engine.name().to_owned(),
        version: crew.engine.version(),
        branch: head.branch,
        commit: head.commit,
    };
    // Durable before any agent starts: a ledger that cannot be written is found out here.
    let result = match reports.record(None, opening).await {
        Err(reason) => Err(Failure::team(format!("the run cannot be recorded: {reason}"))
            .hint("nothing was started; squad keeps its record under refs/squad in the repository")),
        Ok(_) => {
            for (from, to, reason) in started.fallbacks {
                reports.tell(None, What::EngineFallback { from, to, reason });
            }
            let task = Task::new(&order.message);
            let compiler = compiler(project, &learnings, &task);
            let stage = Stage { env, project, order: &order, run: &run, compiler: &compiler, crew: &crew };
            Ok(stage.perform().await)
        }
    };
    interrupts.abort();
    // Packing is git's own to do, when it is due; that it cannot be started now is no failure of the run.
    let _ = project.repository.maintain();
    reports.finish();
    if let Some(engine) = Arc::into_inner(crew.engine) {
        engine.stop().await;
    }
    match dispatching.await {
        Ok((_, show, written)) => {
            let result = result.map(|ended| Ended { unrecorded: ended.unrecorded.or(written.err()), ..ended });
            (show, result)
        }
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Ends every agent at the first signal, and the program at the second. Programs around squad may pass one Ctrl-C on
/// twice, so what comes right behind the first is the same.
async fn interrupts(interrupt: watch::Sender<bool>, heard: bool) {
    const SAME: Duration = Duration::from_millis(500);
    if !heard {
        return std::future::pending().await;
    }
    signal().await;
    interrupt.send_replace(true);
    tokio::time::sleep(SAME).await;
    signal().await;
    std::process::exit(i32::from(FailureKind::Interrupted.exit_code()));
}

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut hang_up)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

/// One run, in its order.
struct Stage<'a> {
    env: &'a Env,
    project: &'a Project,
    order: &'a Order,
    run: &'a RunId,
    compiler: &'a Compiler<'a>,
    crew: &'a Crew,
}

/// What the agents did.
#[derive(Default)]
struct Performance {
    work: Vec<Work>,
    verdict: Option<Verdict>,
    answer: Option<String>,
}

impl Stage<'_> {
    async fn perform(&self) -> Ended {
        let started = Instant::now();
        let mut performance = Performance::default();
        let plan = route::plan(&self.project.team, &self.order.message, &self.order.wishes);
        self.tell(None, What::RoutePlanned(plan.clone()));
        match plan.kind {
            PlanKind::Agents => self.agents(&plan, &mut performance).await,
            PlanKind::Direct => self.answer(&[], &mut performance).await,
            PlanKind::Abstain => {
                if let Some(plan) = self.choose(&plan, &mut performance).await {
                    self.agents(&plan, &mut performance).await;
                }
            }
        }
        self.finish(performance, started).await
    }

    /// Lets the coordinator choose. `None`: it did not, and its outcome says why.
    async fn choose(&self, plan: &Plan, performance: &mut Performance) -> Option<Plan> {
        let prompt = compile::choice_prompt(&self.order.message, plan);
        let mut work = self.crew.work(self.coordinator(prompt, false)).await;
        let chosen =
            (work.outcome == Outcome::Completed).then(|| route::choice::apply(&self.project.team, plan, &work.text));
        let plan = match chosen {
            None => None,
            Some(Ok(plan)) => {
                self.tell(None, What::RoutePlanned(plan.clone()));
                Some(plan)
            }
            Some(Err(reason)) => {
                work.outcome = Outcome::Failed;
                work.reason = reason.clone();
                let (text, usage) = (work.text.clone(), Usage::default());
                self.tell(Some(&work.agent), What::Failed { reason, text, usage });
                None
            }
        };
        performance.work.push(work);
        plan
    }

    async fn agents(&self, plan: &Plan, performance: &mut Performance) {
        let directory = self.crew.desk.project.clone();
        let members: Vec<&Member> = plan.agents.iter().filter_map(|slug| self.project.team.member(slug)).collect();
        let jobs = members.iter().map(|member| {
            let prompt =
                compile::task_prompt(&self.order.message, &plan.agents, &member.slug, &directory, self.run.as_str());
            self.job(member, plan.tier, prompt)
        });
        let done = self.crew.fan_out(jobs.collect()).await;
        performance.work.extend(done.iter().cloned());
        if let Some(reviewer) = plan.reviewer.as_ref().and_then(|slug| self.project.team.member(slug)) {
            self.review(reviewer, plan.tier, &done, performance).await;
        }
        match &done[..] {
            [only] => performance.answer = Some(only.text.clone()).filter(|_| only.outcome == Outcome::Completed),
            several if several.iter().any(|work| work.outcome == Outcome::Completed) => {
                let all = performance.work.clone();
                self.answer(&all, performance).await;
            }
            _ => {}
        }
    }

    /// The author's work goes to the reviewer, when there is any.
    async fn review(&self, reviewer: &Member, tier: Tier, done: &[Work], performance: &mut Performance) {
        let finished: Vec<&Work> = done.iter().filter(|work| work.outcome == Outcome::Completed).collect();
        if finished.is_empty() || self.crew.cancel.is_set() {
            return;
        }
        let prompt = compile::review_prompt(&self.order.message, &reports_of(done, None), &self.crew.desk.project);
        let work = self.crew.work(self.job(reviewer, tier, prompt)).await;
        if work.outcome == Outcome::Completed {
            let verdict = Verdict::read(&work.text);
            let authors = finished.iter().map(|work| work.agent.clone()).collect();
            self.tell(Some(&reviewer.slug), What::ReviewVerdict { verdict, authors, text: work.text.clone() });
            performance.verdict = Some(verdict);
        }
        performance.work.push(work);
    }

    /// The coordinator's last word: on the work of several agents, or on a message that needs none.
    async fn answer(&self, work: &[Work], performance: &mut Performance) {
        if self.crew.cancel.is_set() {
            return;
        }
        let has_chosen = work.iter().any(|work| work.agent.as_str() == Slug::COORDINATOR);
        let agents: Vec<Work> = work.iter().filter(|work| work.agent.as_str() != Slug::COORDINATOR).cloned().collect();
        let prompt = compile::answer_prompt(&self.order.message, &reports_of(&agents, performance.verdict));
        let done = self.crew.work(self.coordinator(prompt, has_chosen)).await;
        if done.outcome == Outcome::Completed {
            performance.answer = Some(done.text.clone());
        }
        performance.work.push(done);
    }

    /// Answer, landing, end: in this order, so that the last line says everything.
    async fn finish(&self, performance: Performance, started: Instant) -> Ended {
        let status = performance.status();
        let mut agents = BTreeMap::new();
        let mut usage = Usage::default();
        for work in &performance.work {
            agents.insert(work.agent.clone(), work.outcome);
            usage += &work.usage;
        }
        // Side by side, seconds do not add up.
        usage.seconds = (started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        if let Some(text) = performance.answer {
            self.tell(None, What::Answer { text });
        }
        let mut commits = Vec::new();
        let mut unlanded = None;
        let mut unrecorded = None;
        if self.order.commit {
            // On a thread of its own: a landing may wait, and a Ctrl-C is heard meanwhile.
            let lander = Lander::new(self.env, self.project);
            let landed = aside(self.env.threads, move || lander.land(Which::OfThisBranch)).await;
            match landed.map_err(Failure::failed).flatten() {
                Ok(mut landed) => {
                    unlanded = landed.left.take();
                    commits.extend(landed.commit.clone());
                    if let Some(what) = landed.event() {
                        unrecorded = self.crew.reports.record(None, what).await.err();
                    }
                }
                // The decisions are in the ledger, and the run has an end whatever became of the branch.
                Err(failure) => unlanded = Some(Left::because(failure)),
            }
        }
        let end = What::RunCompleted { status, agents, commits, usage };
        unrecorded = self.crew.reports.record(None, end).await.err().or(unrecorded);
        Ended { run: self.run.clone(), status, unlanded, unrecorded }
    }

    fn tell(&self, agent: Option<&Slug>, what: What) {
        self.crew.reports.tell(agent, what);
    }

    fn job(&self, member: &Member, tier: Tier, prompt: String) -> Job {
        self.open(self.compiler.agent(member, tier).spec, prompt, false)
    }

    fn coordinator(&self, prompt: String, resume: bool) -> Job {
        self.open(self.compiler.coordinator().spec, prompt, resume)
    }

    fn open(&self, spec: SessionSpec, prompt: String, resume: bool) -> Job {
        let session = session_id(&spec.agent, self.run);
        let tools = Tool::ALL.map(Tool::spec).to_vec();
        Job { opening: Opening { session, spec, tools, directory: self.project.folder.root.clone(), resume }, prompt }
    }
}

impl Performance {
    /// The worst that happened to any of them is what happened to the run.
    fn status(&self) -> Outcome {
        let has = |outcome| self.work.iter().any(|work| work.outcome == outcome);
        if has(Outcome::Cancelled) {
            Outcome::Cancelled
        } else if has(Outcome::Stopped) {
            Outcome::Stopped
        } else if has(Outcome::Failed) || self.verdict.is_some_and(|verdict| verdict != Verdict::Approved) {
            Outcome::Failed
        } else if has(Outcome::TimedOut) {
            Outcome::TimedOut
        } else {
            Outcome::Completed
        }
    }
}

fn reports_of(work: &[Work], verdict: Option<Verdict>) -> Vec<Colleague<'_>> {
    let last = work.len().saturating_sub(1);
    work.iter()
        .enumerate()
        .map(|(index, work)| Colleague {
            agent: &work.agent,
            outcome: work.outcome,
            text: if work.text.is_empty() { &work.reason } else { &work.text },
            // The reviewer, where there is one, reports last.
            verdict: verdict.filter(|_| index == last),
        })
        .collect()
}
