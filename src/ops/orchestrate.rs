//! The main job: compile, route, fan out, review, answer, record.
//!
//! ```text
//! message → route ─┬─ agents ───────────────────────┬→ fan-out → review → answer → land → run.completed
//!                  ├─ abstain → coordinator chooses ─┘              ↑
//!                  └─ direct ───────────────────────────────────────┘
//! ```

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::{Semaphore, watch};

use super::agents::compiler;
use super::engines::Started;
use super::journal::LedgerJournal;
use super::landing::Left;
use super::lease::{Lease, LiveRun};
use super::signals::Signals;
use super::stage::Stage;
use super::{Project, engines, ledger, runtime, secrets};
use crate::compile::{self, Compiled, Learnings, Task};
use crate::engine::{Adapter, Engine, rehearsal};
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::git::Head;
use crate::model::{Offer, Outcome, Plan, PlanKind, RunId, Slug, What};
use crate::policy::Permissions;
use crate::pool::{Ask, Cancel, Crew, Desk, Dispatcher, Reports, Show};
use crate::route::{Request, Router, Wishes};

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
    let mut plan = Router::new(&project.team, &[]).plan(&Request::new(&order.message), &order.wishes);
    let learnings = ledger::learnings(&project.repository, &project.ledger_prefix())?;
    let task = Task::new(&order.message);
    let compiler = compiler(project, &learnings, &task);
    plan.evidence.extend(compiler.model_evidence(&plan));
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
    let runtime = match runtime(env) {
        Ok(runtime) => runtime,
        Err(failure) => return (show, Err(failure)),
    };
    let ended = runtime.block_on(execute(env, project, order, show));
    // A question that nobody answered must not keep the program.
    runtime.shutdown_background();
    ended
}

async fn execute<S: Show + Send + 'static>(
    env: &Env,
    project: &Project,
    mut order: Order,
    show: S,
) -> (S, Result<Ended, Failure>) {
    let (interrupt, cancel) = Cancel::channel();
    // Before anything is started that a signal must not leave behind.
    let interrupts = match env.signals.then(Signals::listen) {
        None => tokio::spawn(keep(interrupt)),
        Some(Ok(signals)) => tokio::spawn(signals.obey(interrupt)),
        Some(Err(error)) => return (show, Err(Failure::failed(format!("signals cannot be heard: {error}")))),
    };
    let began = match begin(env, project, &mut order, &cancel).await {
        Ok(began) => began,
        Err(failure) => return (show, Err(failure)),
    };
    let (reports, messages) = Reports::channel();
    let journal = LedgerJournal {
        repository: project.repository.clone(),
        prefix: project.ledger_prefix(),
        redactor: secrets::redactor(env, &project.folder.root),
        threads: env.threads,
    };
    let (run, clock, ids) = (began.run.clone(), env.clock.clone(), env.ids.clone());
    let dispatching = tokio::spawn(Dispatcher { run, clock, ids, journal, show }.serve(messages));
    let crew = crew(project, &order, &began.head, began.started.engine, &reports, cancel);

    // Durable before any agent starts: a ledger that cannot be written is found out here.
    let result = match reports.record(None, opening(&order, &began.head, &crew)).await {
        Err(reason) => Err(Failure::team(format!("the run cannot be recorded: {reason}"))
            .hint("nothing was started; squad keeps its record under refs/squad in the repository")),
        Ok(_) => {
            for (from, to, reason) in began.started.fallbacks {
                reports.tell(None, What::EngineFallback { from, to, reason });
            }
            let task = Task::new(&order.message);
            let compiler = compiler(project, &began.learnings, &task).on(offer(&crew).await);
            let stage = Stage { env, project, order: &order, run: &began.run, compiler: &compiler, crew: &crew };
            Ok(stage.perform().await)
        }
    };

    reports.finish();
    if let Some(engine) = Arc::into_inner(crew.engine) {
        engine.stop().await;
    }
    // Packing is git's own to do, when it is due; that it cannot be started now is no failure of the run.
    let _ = project.repository.maintain();
    let (show, written) = match dispatching.await {
        Ok((_, show, written)) => (show, written),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    };
    interrupts.abort();
    (show, result.map(|ended| Ended { unrecorded: ended.unrecorded.or(written.err()), ..ended }))
}

/// What the engine offers. Whoever interrupts does not wait for it.
async fn offer(crew: &Crew) -> Offer {
    let mut cancel = crew.cancel.clone();
    tokio::select! {
        biased;
        () = cancel.wait() => Offer::default(),
        offer = crew.engine.offer() => offer,
    }
}

/// Nobody interrupts: the sender is held, so that nobody takes its end for an interrupt.
async fn keep(interrupt: watch::Sender<bool>) {
    let _held = interrupt;
    std::future::pending().await
}

/// What a run has in hand before anything of it is recorded.
struct Began {
    run: RunId,
    head: Head,
    learnings: Learnings,
    started: Started,
    /// Held until the run ends.
    _lease: Lease,
}

async fn begin(env: &Env, project: &Project, order: &mut Order, cancel: &Cancel) -> Result<Began, Failure> {
    let at = env.clock.now();
    let run = env.ids.run(at);
    let learnings = ledger::learnings(&project.repository, &project.ledger_prefix())?;
    let head = project.repository.head()?;
    let live = LiveRun { run: run.clone(), pid: std::process::id(), started: at, message: order.message.clone() };
    let lease = Lease::take(&project.local(), &live).map_err(|error| {
        Failure::team(format!("cannot write to {}: {error}", project.local().display()))
            .hint("squad keeps its local state there; check the folder's permissions")
    })?;
    let mut interrupted = cancel.clone();
    let started = tokio::select! {
        biased;
        // What has begun to start is killed when it is dropped.
        () = interrupted.wait() => Err(Failure::new(FailureKind::Interrupted, "interrupted before anything began")),
        started = engines::start(env, project, &run, order.script.take()) => started,
    }?;
    Ok(Began { run, head, learnings, started, _lease: lease })
}

fn crew(project: &Project, order: &Order, head: &Head, engine: Engine, reports: &Reports, cancel: Cancel) -> Crew {
    let desk = Desk {
        permissions: order.permissions,
        project: project.folder.root.display().to_string(),
        branch: head.branch.clone(),
        decisions: compile::in_force(project.decisions()).into_iter().cloned().collect(),
        reports: reports.clone(),
        ask: order.ask.clone(),
    };
    Crew {
        engine: Arc::new(engine),
        desk: Arc::new(desk),
        reports: reports.clone(),
        cancel,
        timeout: project.settings.sessions.timeout,
        places: Arc::new(Semaphore::new(project.settings.sessions.max_concurrent)),
    }
}

fn opening(order: &Order, head: &Head, crew: &Crew) -> What {
    What::RunStarted {
        text: order.message.clone(),
        engine: crew.engine.name().to_owned(),
        version: crew.engine.version(),
        branch: head.branch.clone(),
        commit: head.commit.clone(),
    }
}
