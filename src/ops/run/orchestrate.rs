//! The main job: compile, route, fan out, review, answer, record.
//!
//! ```text
//! run.started → engine.started
//!
//! message → route ─┬─ agents ───────────────────────┬→ fan-out → review → answer → land → run.completed
//!                  ├─ abstain → coordinator chooses ─┘              ↑
//!                  └─ direct ─┬─ the coordinator answers ───────────┘
//!                             └─ squad answers by itself, without an engine → run.completed
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::compile::{Learnings, OfferedNote, Task};
use crate::engine::spawn;
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::git::Head;
use crate::model::{
    AvailableModels, EventKind, IntoSet, NO_ENGINE, Outcome, Plan, PlanKind, Position, RunEnd, RunId, Slug, Tier,
};
use crate::ops::ledger::journal::LedgerJournal;
use crate::ops::ledger::{contents as ledger, lost};
use crate::ops::run::attachments;
use crate::ops::run::budget::budget;
use crate::ops::run::clones::{self, Basis, Clones};
use crate::ops::run::conversation_sessions::{self, ConversationSessions};
use crate::ops::run::executor::Executor;
use crate::ops::run::host::Requests;
use crate::ops::run::hosts::{self, Hosts};
use crate::ops::run::lease::{Lease, LiveRun};
use crate::ops::run::lockouts::{self, Lockout};
use crate::ops::run::order::{Ended, Order, WAIT};
use crate::ops::run::recall;
use crate::ops::run::resume::Past;
use crate::ops::run::signals::SignalGuard;
use crate::ops::run::snapshots::{RunSnapshots, kept_state};
use crate::ops::run::{before, direct, homes, hooks, members, past, setup};
use crate::ops::team::agents::compiler;
use crate::ops::team::engines::{self, NotStarted};
use crate::ops::team::knowledge;
use crate::ops::team::sandbox;
use crate::ops::team::secrets;
use crate::ops::{Project, runtime};
use crate::policy::Redactor;
use crate::pool::{
    Cancel, Canceller, Colleagues, Dispatcher, LiveSessions, Permits, Places, QuotaPolicy, Reports, RequestHandler,
    SessionOwner, SessionPool, Show, UserMessages, WorkTree, Workers,
};
use crate::route::{Request, RouteOptions, Router, ceremonies, overlaps};
use crate::view::Redacting;

/// Plans who works on an order. Also returns squad's own answer, if no agent is needed.
pub(super) fn plan(
    project: &Project,
    order: &Order,
    lockouts: &[Lockout],
    run: Option<&RunId>,
) -> Result<(Plan, Option<String>), Failure> {
    if !order.members.is_empty() {
        return Ok((members::plan(&order.members), None));
    }
    // Past work does not matter if the user names the agents.
    let is_open = order.route_options.agents.is_empty() || order.route_options.tier == Some(Tier::Direct);
    let past = if is_open { past::work(project)? } else { Vec::new() };
    let router = Router::new(&project.team, &past).answering_from(project.settings.routing.threshold);
    let mut plan = router.plan(&Request::new(&order.message), &order.route_options);
    lockouts::bind(&mut plan, lockouts, &order.message);
    ceremonies::add(&project.team, &mut plan, &order.message);
    overlaps::add(&project.team, &mut plan);
    let answer = match plan.kind {
        // squad cannot answer from attached files.
        PlanKind::Direct if order.attachments.is_empty() => direct::answer(project, &router, &order.message, run)?,
        PlanKind::Direct | PlanKind::Agents | PlanKind::Abstain => None,
    };
    Ok((plan, answer))
}

/// Carries out an order. Everything after the first entry is recorded, including the end.
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
    let ended = runtime.block_on(run_here(env, project, order, show));
    // An unanswered question must not keep the program alive.
    runtime.shutdown_background();
    ended
}

/// What the process provides to a run.
pub(in crate::ops) struct Host {
    pub(in crate::ops) canceller: Canceller,
    pub(in crate::ops) cancel: Cancel,
    pub(in crate::ops) sessions: Sessions,
}

/// The engine's sessions that a run works in.
pub(in crate::ops) enum Sessions {
    /// The run's own, which end with it.
    Own,
    Conversation(ConversationSessions),
    /// Those of `squad watch`.
    Team(Arc<SessionPool>),
}

impl Sessions {
    /// Whether their engine is running already.
    fn is_ready(&self) -> bool {
        match self {
            Self::Own => false,
            Self::Conversation(sessions) => sessions.usable().is_some(),
            Self::Team(_) => true,
        }
    }
}

/// Carries out an order in this process, which signals may end.
async fn run_here<S: Show + Send + 'static>(
    env: &Env,
    project: &Project,
    order: Order,
    show: S,
) -> (S, Result<Ended, Failure>) {
    let (canceller, cancel) = Cancel::channel();
    // Signal handlers come first, so that a signal leaves no started process behind.
    let _signals = match SignalGuard::by(&canceller, env) {
        Ok(guard) => guard,
        Err(failure) => return (show, Err(failure)),
    };
    execute(env, project, order, show, Host { canceller, cancel, sessions: Sessions::Own }).await
}

pub(in crate::ops) async fn execute<S: Show + Send + 'static>(
    env: &Env,
    project: &Project,
    order: Order,
    show: S,
    host: Host,
) -> (S, Result<Ended, Failure>) {
    let shared = Arc::new(Mutex::new(show));
    let ended = carry_out(env, project, order, Box::new(Arc::clone(&shared)), host).await;
    let show = Arc::into_inner(shared).expect("a run's dispatcher ends with it");
    (show.into_inner(), ended)
}

async fn carry_out(
    env: &Env,
    project: &Project,
    mut order: Order,
    show: Box<dyn Show + Send>,
    host: Host,
) -> Result<Ended, Failure> {
    let Host { canceller, cancel, sessions: team } = host;
    let is_to_start = order.members.is_empty() && !team.is_ready();
    let prepared = begin(env, project, &order, is_to_start)?;
    let (reports, messages) = Reports::channel();
    let redactor = secrets::redactor_with(env, &project.folder.root, project.settings.confidential());
    let show = Box::new(Redacting::new(show, redactor.clone()));
    let journal = journal(env, project, redactor.clone());
    let (clock, ids) = (env.clock.clone(), env.ids.clone());
    let past = order.resumed.take().map(|interrupted| interrupted.past).unwrap_or_default();
    let sessions = Arc::new(LiveSessions::default());
    let dispatcher = Dispatcher {
        run: prepared.run.clone(),
        past: past.events.clone(),
        clock,
        ids,
        journal,
        show,
        sessions: Arc::clone(&sessions),
    };
    let dispatching = spawn(dispatcher.serve(messages));
    let user_messages = Arc::new(UserMessages::with_past(&past.events));
    let requests = Requests {
        lease: Arc::downgrade(&prepared.lease),
        sessions: Arc::clone(&sessions),
        canceller,
        user_messages: Arc::clone(&user_messages),
        reports: reports.clone(),
    };
    // Ends with the run; a watch process outlives many runs.
    let mut serving = JoinSet::new();
    serving.spawn(requests.serve());
    let tree = work_tree(env, project, &prepared, &reports, redactor.clone());
    let recording = record(&reports, first_event(project, &order, &prepared, &past));
    let (begun, ()) = tokio::join!(recording, async {
        // Named members start at once: the first snapshot takes as long as the first entry, so both are made together.
        if !order.members.is_empty() {
            begin_snapshots(project, &prepared, &past, &tree).await;
        }
    });
    let (result, pool) = match (begun, &prepared.answer) {
        (Err(failure), _) => {
            tree.close();
            (Err(failure), None)
        }
        (Ok(()), Some(text)) => {
            (Ok(answer_directly(prepared.plan.clone(), text.clone(), &prepared.run, &reports).await), None)
        }
        (Ok(()), None) => {
            let channels = RunChannels {
                reports: &reports,
                cancel,
                sessions,
                tree,
                redactor,
                past: &past,
                team: &team,
                user_messages,
            };
            let (ended, pool) = with_engine(env, project, &mut order, &prepared, channels).await;
            (Ok(ended), pool)
        }
    };
    reports.finish();
    // A shared pool is not stopped.
    if let Some(pool) = pool.and_then(Arc::into_inner) {
        pool.stop().await;
    }
    // Git packs the repository when it is due; a failure to start that does not fail the run.
    let _ = project.repository.maintain();
    homes::keep_to_limit(env, project);
    let written = match dispatching.await {
        Ok(written) => written,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    };
    let result = result.map(|ended| Ended { unrecorded: ended.unrecorded.or(written.err()), ..ended });
    if result.as_ref().is_ok_and(|ended| ended.unrecorded.is_some()) {
        prepared.lease.keep();
    }
    result
}

fn journal(env: &Env, project: &Project, redactor: Redactor) -> LedgerJournal {
    let (repository, prefix) = (project.repository.clone(), project.ledger_prefix());
    LedgerJournal { repository, prefix, redactor, threads: env.threads }
}

/// The channels and shared state of a run.
struct RunChannels<'a> {
    reports: &'a Reports,
    cancel: Cancel,
    sessions: Arc<LiveSessions>,
    tree: Arc<WorkTree>,
    redactor: Redactor,
    past: &'a Past,
    team: &'a Sessions,
    user_messages: Arc<UserMessages>,
}

/// Lets the agents work on a running engine, or starts one. The caller stops the returned pool.
async fn with_engine(
    env: &Env,
    project: &Project,
    order: &mut Order,
    prepared: &Prepared,
    channels: RunChannels<'_>,
) -> (Ended, Option<Arc<SessionPool>>) {
    let Prepared { run, head, plan, learnings, knowledge, lockouts, .. } = prepared;
    let RunChannels { reports, cancel, sessions, tree, redactor, past, team, user_messages } = channels;
    if order.members.is_empty() {
        begin_snapshots(project, prepared, past, &tree).await;
    }
    let is_standing =
        order.members.is_empty() && (project.settings.sessions.standing || recall::was_standing(past)) && !order.fresh;
    let cloned = cloned(project, order, plan, past);
    let script = order.script.clone().filter(|_| !cloned.is_empty());
    let pool = match sessions_of((env, project, run, plan), order, reports, &cancel, (team, is_standing)).await {
        Ok(pool) => pool,
        Err(not_started) => return (without_engine(not_started, run, reports, &tree).await, None),
    };
    let requests = setup::requests(env, project, order, head, past, lockouts, cancel.clone());
    let hooks = hooks::of_run(env, project, run, pool.sandbox());
    let budget = Arc::new(budget(env, project, run, &past.events));
    let clones = (!cloned.is_empty()).then(|| {
        let attached = attachments::absolute(project, &order.attachments).iter().map(PathBuf::from).collect();
        Clones::new(Basis {
            env: env.clone(),
            project: project.moved_to(project.repository.clone(), &project.work_dir),
            run: run.clone(),
            files: prepared.lease.files(),
            script,
            attached,
            redactor,
            hooks: hooks.clone(),
            permits: Arc::clone(&pool.permits),
            reports: reports.clone(),
            cancel: cancel.clone(),
            tree: Arc::clone(&tree),
            hosts: Hosts::new(env, &project.settings),
            budget: Arc::clone(&budget),
            cloned,
        })
    });
    let clones = match clones.transpose() {
        Ok(clones) => clones,
        Err(reason) => {
            let failure = Failure::team(format!("agents cannot work in clones: {reason}"));
            let engine = project.settings.engine.name.clone();
            return (without_engine(NotStarted { engine, failure }, run, reports, &tree).await, Some(pool));
        }
    };
    if let Some(clones) = &clones {
        clones.name_writers(pool.writable_folders());
    }
    let may_commit = requests.may_commit && clones.as_ref().is_none_or(|clones| clones.is_mixed());
    let requests = RequestHandler { user_messages, may_commit, ..requests }.with_hooks(hooks);
    let owner = match &order.conversation {
        Some(conversation) => SessionOwner { id: conversation.id.clone(), is_conversation: true },
        None => SessionOwner { id: run.clone(), is_conversation: false },
    };
    let (colleagues, job_requests) = Colleagues::channel();
    let workers = Workers {
        owner,
        is_fresh: order.fresh,
        earlier: Arc::new(recall::Record::new(project, Some(run))),
        pool,
        core: Arc::new(setup::core(project)),
        requests: Arc::new(requests),
        reports: reports.clone(),
        cancel,
        limits: setup::limits(&project.settings.sessions),
        quota: Arc::new(QuotaPolicy::new(order.flags.contains_key(WAIT))),
        budget,
        retries: project.settings.sessions.retry,
        tree: Some(tree),
        places: clones.clone().map(|clones| clones as Arc<dyn Places>),
        place: None,
        sessions,
        colleagues,
    };
    let task = Task::new(&order.message);
    let compiler = compiler(project, learnings, knowledge, &task).on(offer(&workers).await);
    let is_alone = plan.agents.len() == 1 && plan.reviewers().next().is_none();
    let clones = clones.as_deref();
    let executor =
        Executor { env, project, order, run, compiler: &compiler, workers: &workers, clones, past, is_alone };
    let ended = tokio::select! {
        ended = executor.perform(plan.clone()) => ended,
        never = executor.serve(job_requests) => match never {},
    };
    if let Some(clones) = clones {
        clones.stop().await;
    }
    (ended, Some(workers.pool))
}

/// The agents that work in clones. Members that a client names work where it says. Whoever has begun in one goes on there,
/// whatever the settings say now: what it left there is its work.
fn cloned(project: &Project, order: &Order, plan: &Plan, past: &Past) -> BTreeSet<Slug> {
    if !order.members.is_empty() || plan.kind == PlanKind::Direct {
        return BTreeSet::new();
    }
    let begun = past.cloned().filter(|agent| project.team.startable_member(agent).is_some());
    clones::cloned(project, plan).into_iter().chain(begun.cloned()).into_set()
}

fn work_tree(
    env: &Env,
    project: &Project,
    prepared: &Prepared,
    reports: &Reports,
    redactor: Redactor,
) -> Arc<WorkTree> {
    let taken = project.repository.last_snapshot(prepared.run.as_str()).unwrap_or_default();
    let run = (&prepared.run, &prepared.lease.files());
    let source = RunSnapshots::new(project, run, taken, redactor, env.clock.clone());
    WorkTree::new(Arc::new(source), env.threads, project.path_in_repository(), reports.at(Position::FIRST))
}

/// Nobody changes files for a direct answer.
async fn begin_snapshots(project: &Project, prepared: &Prepared, past: &Past, tree: &Arc<WorkTree>) {
    if prepared.plan.kind != PlanKind::Direct && !resume_snapshots(project, prepared, tree, past).await {
        tree.begin();
    }
}

/// Continues from the snapshots of a resumed run. `false`: they no longer exist.
async fn resume_snapshots(project: &Project, prepared: &Prepared, tree: &Arc<WorkTree>, past: &Past) -> bool {
    let read = |commit: &str| project.repository.snapshot_at(commit).ok();
    let first = project.repository.first_snapshot(prepared.run.as_str()).ok().flatten();
    let (root, prefix) = (project.folder.root.display().to_string(), project.path_in_repository());
    let since = before::Since::UnfinishedStep;
    let before = before::before(since, &past.events, (&root, &prefix), first.as_deref(), read);
    let Some(mut before) = before else { return false };
    let state = kept_state(&prepared.lease.files());
    if let Some((last, interval)) = before.snapshots.pop() {
        before.snapshots.push((last.with_state(state), interval));
    }
    tree.go_on(before).await;
    true
}

/// What the engine offers; empty if the user interrupts the wait.
async fn offer(workers: &Workers) -> AvailableModels {
    let mut cancel = workers.cancel.clone();
    tokio::select! {
        biased;
        () = cancel.wait() => AvailableModels::default(),
        offer = workers.pool.offer() => offer,
    }
}

/// Records the first entry before any engine starts, so that a ledger that cannot be written stops the run here.
async fn record(reports: &Reports, opening: EventKind) -> Result<(), Failure> {
    let recorded = reports.record(None, opening).await.map(drop);
    recorded.map_err(|reason| {
        Failure::team(format!("the run cannot be recorded: {reason}"))
            .hint("nothing was started; squad keeps its record under refs/squad in the repository")
    })
}

/// A run that squad answers by itself. It is recorded like every other run, but lands nothing: nobody expects a commit
/// from a question.
async fn answer_directly(plan: Plan, text: String, run: &RunId, reports: &Reports) -> Ended {
    reports.tell(None, EventKind::RoutePlanned(plan));
    reports.tell(None, EventKind::Answer { text: text.clone() });
    let status = Outcome::Completed;
    Ended { answer: Some(text), ..without_agents(run, status, None, reports).await }
}

/// Records the end of a run in which no agent worked.
async fn without_agents(run: &RunId, status: Outcome, failure: Option<Failure>, reports: &Reports) -> Ended {
    let error = failure.as_ref().map(Failure::of_run);
    let end = RunEnd { error, ..RunEnd::of(status, Vec::new(), 0.0) };
    let unrecorded = reports.record(None, EventKind::RunCompleted(end)).await.err();
    Ended { unrecorded, ..Ended::without_work(run.clone(), status, failure) }
}

/// Ends a run whose engine cannot be started; recorded like every other end.
async fn without_engine(why: NotStarted, run: &RunId, reports: &Reports, tree: &WorkTree) -> Ended {
    let NotStarted { engine, failure } = why;
    tree.close();
    let status = match failure.kind {
        FailureKind::Interrupted => Outcome::Cancelled,
        _ => {
            reports.tell(None, EventKind::ConnectionFailed { engine, reason: failure.message.clone() });
            Outcome::Failed
        }
    };
    without_agents(run, status, Some(failure), reports).await
}

/// The existing sessions, or those of an engine that starts now.
async fn sessions_of(
    (env, project, run, plan): (&Env, &Project, &RunId, &Plan),
    order: &mut Order,
    reports: &Reports,
    cancel: &Cancel,
    (sessions, is_standing): (&Sessions, bool),
) -> Result<Arc<SessionPool>, NotStarted> {
    let (open, is_of_team) = match sessions {
        Sessions::Own => (None, false),
        Sessions::Conversation(sessions) => (sessions.usable(), false),
        Sessions::Team(pool) => (Some(Arc::clone(pool)), true),
    };
    if let Some(pool) = open {
        let (engine, version) = pool.main_engine();
        reports.tell(None, EventKind::EngineStarted { engine, version, seconds: 0.0, warm: is_of_team });
        return Ok(pool);
    }
    let mut interrupted = cancel.clone();
    let given: Vec<String> = order.members.iter().filter_map(|member| member.given.engine.clone()).collect();
    let others = (&given[..], order.described.as_ref());
    let attached: Vec<PathBuf> = attachments::absolute(project, &order.attachments).iter().map(PathBuf::from).collect();
    // While the sandbox and the engine are tried.
    if env.threads {
        project.repository.ask_ahead();
    }
    let bounds = sandbox::of_run(env, project, &attached)
        .map_err(|failure| NotStarted { engine: project.settings.engine.name.clone(), failure })?;
    bounds.report(reports);
    let script = order.script.take();
    let engines = engines::prepare_with(env, project, run, script, others, bounds.sandbox.as_ref());
    tokio::select! {
        biased;
        // A half-started engine is killed when it is dropped.
        () = interrupted.wait() => Err(NotStarted {
            engine: project.settings.engine.name.clone(),
            failure: Failure::new(
                FailureKind::Interrupted,
                format!("{} before anything started", interrupted.reason()),
            ),
        }),
        started = async {
            match &order.members[..] {
                [] => engines::start(&engines, project, plan, reports).await,
                // An engine that cannot start fails only the members that need it.
                _ => Ok(()),
            }
        } => started,
    }?;
    let places = hosts::slots(&project.settings).unwrap_or(project.settings.sessions.max_concurrent);
    Ok(match sessions {
        Sessions::Conversation(sessions) => sessions.keep(engines, places),
        Sessions::Own if is_standing => {
            Arc::new(conversation_sessions::standing(engines, places, recall::store(project)))
        }
        Sessions::Own | Sessions::Team(_) => {
            // Clients start members by many calls, each of which is a run. What a member starts must not wait for the
            // member's own place.
            let is_shared = !order.members.is_empty() && env.variable("SQUAD_RUN").is_none();
            let folder = is_shared.then(|| project.local().join("places"));
            let permits = folder.map_or_else(|| Permits::new(places), |folder| Permits::shared(places, &folder));
            Arc::new(SessionPool::of_one_run(engines, permits))
        }
    })
}

/// The state of a run before anything is recorded.
struct Prepared {
    run: RunId,
    head: Head,
    plan: Plan,
    learnings: Learnings,
    knowledge: Vec<OfferedNote>,
    lockouts: Vec<Lockout>,
    /// squad's own answer, if no engine is needed.
    answer: Option<String>,
    /// Held until the run ends.
    lease: Arc<Lease>,
}

/// `starts_engine`: a missing engine is an error, and no run.
fn begin(env: &Env, project: &Project, order: &Order, starts_engine: bool) -> Result<Prepared, Failure> {
    lost::settle(env, &project.repository);
    let at = env.clock.now();
    let resumed = order.resumed.as_ref();
    let run = resumed.map_or_else(|| env.ids.run(at), |interrupted| interrupted.run.clone());
    let learnings = ledger::learnings(&project.repository, &project.ledger_prefix())?;
    let head = project.repository.head()?;
    let lockouts = lockouts::binding(project, &order.message, &order.route_options.agents, || at)?;
    let (plan, answer) = match resumed.and_then(|interrupted| interrupted.past.plan()) {
        Some(plan) => (plan.clone(), None),
        None => plan(project, order, &lockouts, Some(&run))?,
    };
    if starts_engine && answer.is_none() {
        engines::require_installed(env, project, &run, &plan)?;
    }
    let past = resumed.map(|interrupted| interrupted.past.clone()).unwrap_or_default();
    clones::require(env, project, &plan, &cloned(project, order, &plan, &past))?;
    let knowledge = match answer {
        Some(_) => Vec::new(),
        None => knowledge::offered(project, &Task::new(&order.message))?,
    };
    let (pid, message) = (std::process::id(), order.message.clone());
    let live = LiveRun { run: run.clone(), pid, started: at, message, endpoint: None };
    let lease = Lease::take(&project.local(), &live, &project.ledger_prefix()).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return Failure::usage(format!("run {run} is still running, in another process"))
                .hint(format!("`squad log {run} --follow` shows it; `squad cancel {run}` ends it"));
        }
        Failure::team(format!("cannot write to {}: {error}", project.local().display()))
            .hint("squad keeps its local state there; check the folder's permissions")
    })?;
    Ok(Prepared { run, head, plan, learnings, knowledge, lockouts, answer, lease: Arc::new(lease) })
}

fn first_event(project: &Project, order: &Order, prepared: &Prepared, past: &Past) -> EventKind {
    match past.is_empty() {
        true => opening(project, order, &prepared.head, prepared.answer.is_some()),
        false => resumption(order, &prepared.head, past),
    }
}

fn resumption(order: &Order, head: &Head, past: &Past) -> EventKind {
    let (permissions, branch, commit) = (order.permissions.name().to_owned(), head.branch.clone(), head.commit.clone());
    let (flags, attachments) = (order.flags.clone(), order.attachments.clone());
    let (steps_done, steps) = past.steps();
    EventKind::RunResumed { permissions, branch, commit, done: past.done(), steps_done, steps, flags, attachments }
}

fn opening(project: &Project, order: &Order, head: &Head, is_alone: bool) -> EventKind {
    let engine = if is_alone { NO_ENGINE.to_owned() } else { project.settings.engine.name.clone() };
    let version = is_alone.then(|| env!("CARGO_PKG_VERSION").to_owned());
    let (text, branch, commit) = (order.message.clone(), head.branch.clone(), head.commit.clone());
    let permissions = (!is_alone).then(|| order.permissions.name().to_owned());
    let RouteOptions { agents, tier, .. } = order.route_options.clone();
    let (no_commit, flags, attachments) = (!order.commit, order.flags.clone(), order.attachments.clone());
    let members = order.members.iter().map(|member| member.given.clone()).collect();
    EventKind::RunStarted {
        text,
        engine,
        version,
        permissions,
        branch,
        commit,
        work_tree: project.repository.linked_name(),
        agents,
        tier,
        no_commit,
        flags,
        attachments,
        members,
    }
}
