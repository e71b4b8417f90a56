//! Kept sessions, with a scripted engine and a paused clock.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::dispatcher::Message;
use super::session_pool::Returned;
use super::workers_tests::{MINUTES, job, slug, workers};
use super::*;
use crate::engine::rehearsal::{Rehearsal, Script};
use crate::engine::{Caller, Engine, Form, Opening};
use crate::model::{EventKind, Outcome, RunId, SessionState};
use crate::tools::Tool;

/// Improvised work.
const ANY: &str = "models = [\"m\"]";

/// A pool that keeps sessions, workers of one run on it, and the events of both.
struct World {
    pool: Arc<SessionPool>,
    workers: Workers,
    of_pool: mpsc::UnboundedReceiver<Message>,
    of_run: mpsc::UnboundedReceiver<Message>,
}

impl World {
    fn new(script: &str) -> Self {
        let (workers, of_run) = workers(ANY, 4, MINUTES);
        let (reports, of_pool) = Reports::channel();
        let engine = Engine::Rehearsal(Rehearsal::start(Some(Script::parse(script).expect("a script"))));
        let pool = Arc::new(SessionPool::keeping(engine, 4, reports));
        let workers = Workers { pool: Arc::clone(&pool), ..workers };
        Self { pool, workers, of_pool, of_run }
    }

    fn in_run(&self, run: &str) -> Workers {
        self.workers_of(&of(run))
    }

    fn workers_of(&self, owner: &SessionOwner) -> Workers {
        Workers { owner: owner.clone(), colleagues: Colleagues::channel().0, ..self.workers.clone() }
    }

    fn state(&self, agent: &str) -> Option<SessionState> {
        self.pool.states().get(&slug(agent)).copied()
    }

    /// How the run's sessions were obtained since the last call.
    fn had(&mut self) -> Vec<(String, &'static str)> {
        heard(&mut self.of_run).into_iter().filter_map(|kind| Some((session(&kind)?.to_owned(), how(&kind)))).collect()
    }

    fn pool_events(&mut self) -> Vec<&'static str> {
        heard(&mut self.of_pool).iter().map(EventKind::name).collect()
    }
}

fn of(run: &str) -> SessionOwner {
    SessionOwner { id: RunId::new(run), is_conversation: false }
}

fn of_conversation(id: &str) -> SessionOwner {
    SessionOwner { is_conversation: true, ..of(id) }
}

fn heard(messages: &mut mpsc::UnboundedReceiver<Message>) -> Vec<EventKind> {
    let mut all = Vec::new();
    while let Ok(message) = messages.try_recv() {
        if let Message::Report(report) = message {
            all.push(report.kind);
        }
    }
    all
}

fn session(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::SessionCreated { session, .. } | EventKind::SessionResumed { session, .. } => Some(session),
        _ => None,
    }
}

fn how(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::SessionCreated { warm: true, .. } => "warm",
        EventKind::SessionCreated { .. } => "created",
        _ => "resumed",
    }
}

fn had(session: &str, how: &'static str) -> (String, &'static str) {
    (session.to_owned(), how)
}

#[tokio::test(start_paused = true)]
async fn a_run_gets_the_open_session_and_the_next_run_one_without_history() {
    let mut world = World::new(ANY);
    world.pool.warm_up(job("ada").opening).await;
    assert_eq!(world.state("ada"), Some(SessionState::Idle));
    let run = world.in_run("r1");
    let work = run.work(job("ada")).await;
    assert_eq!(work.outcome, Outcome::Completed, "{}", work.reason);
    assert_eq!(world.had(), [had("squad-ada", "warm")]);
    // More work of the same run uses it; work of another run does not.
    run.work(job("ada")).await;
    assert_eq!(world.had(), [had("squad-ada", "warm")]);
    world.in_run("r2").work(job("ada")).await;
    assert_eq!(world.had(), [had("squad-ada", "created")]);
    world.pool.reset(&RunId::new("r2")).await;
    world.in_run("r3").work(job("ada")).await;
    assert_eq!(world.had(), [had("squad-ada", "warm")]);
}

/// Who had the session × who wants it × whether it is still open: a conversation's open session is no other's.
#[tokio::test(start_paused = true)]
async fn whose_session_is_open_decides_who_gets_it() {
    let (warm, resumed) = (had("squad-ada", "warm"), had("squad-ada", "resumed"));
    let (anew, another) = (had("squad-ada", "created"), had("ada", "created"));
    for (first, second, if_open, if_suspended) in [
        (of("r1"), of("r1"), &warm, &resumed),
        (of("r1"), of("r2"), &anew, &anew),
        (of("r1"), of_conversation("c1"), &anew, &anew),
        (of_conversation("c1"), of_conversation("c1"), &warm, &resumed),
        (of_conversation("c1"), of_conversation("c2"), &another, &anew),
        (of_conversation("c1"), of("r1"), &another, &anew),
    ] {
        for (is_open, expected) in [(true, if_open), (false, if_suspended)] {
            let mut world = World::new(ANY);
            world.workers_of(&first).work(job("ada")).await;
            if !is_open {
                world.pool.suspend(Duration::ZERO).await;
            }
            world.had();
            world.workers_of(&second).work(job("ada")).await;
            assert_eq!(world.had().first(), Some(expected), "{first:?}, then {second:?}, open: {is_open}");
        }
    }
}

/// Each part of a session's configuration: with another one it is opened again.
#[tokio::test(start_paused = true)]
async fn a_session_is_used_again_only_as_it_was_opened() {
    type Change = fn(&mut Opening);
    let cases: [(Change, &str); 8] = [
        (|_| (), "warm"),
        (|opening| opening.session = "other".to_owned(), "warm"),
        (|opening| opening.spec.prompt = "Another charter.".to_owned(), "resumed"),
        (|opening| opening.tools = vec![Tool::Verdict.spec()], "resumed"),
        (|opening| opening.directory = "/other".into(), "resumed"),
        (|opening| opening.asks = true, "resumed"),
        (|opening| opening.form = Some(Form { name: "choice", schema: serde_json::json!({}) }), "resumed"),
        (|opening| opening.caller = Some(Caller { role: "writer".to_owned(), keeps_chat: false }), "resumed"),
    ];
    for (number, (change, expected)) in cases.into_iter().enumerate() {
        let mut world = World::new(ANY);
        let run = world.in_run("r1");
        run.work(job("ada")).await;
        world.had();
        let mut next = job("ada");
        change(&mut next.opening);
        run.work(next).await;
        assert_eq!(world.had(), [had("squad-ada", expected)], "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_busy_in_one_run_gets_another_session_in_the_next() {
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ wait = \"10s\" }, { say = \"Done.\" }]\n";
    let mut world = World::new(script);
    let (one, other) = (world.in_run("r1"), world.in_run("r2"));
    let first = tokio::spawn(async move { one.work(job("ada")).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.state("ada"), Some(SessionState::Active));
    other.work(job("ada")).await;
    assert_eq!(first.await.expect("no panic").outcome, Outcome::Completed);
    assert_eq!(world.had(), [had("squad-ada", "created"), had("ada", "created")]);
    assert_eq!(world.state("ada"), Some(SessionState::Idle));
}

#[tokio::test(start_paused = true)]
async fn a_changed_charter_reopens_a_session_after_its_turn() {
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ wait = \"10s\" }, { say = \"Done.\" }]\n";
    let mut world = World::new(script);
    for name in ["ada", "bob"] {
        world.pool.warm_up(job(name).opening).await;
    }
    world.pool_events();
    let workers = world.in_run("r1");
    let at_work = tokio::spawn(async move { workers.work(job("ada")).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    for name in ["ada", "bob"] {
        let mut spec = job(name).opening.spec;
        spec.prompt = "A new charter.".to_owned();
        spec.compiled_hash = "01".to_owned();
        world.pool.recreate(&slug(name), spec).await;
    }
    assert_eq!(world.pool_events(), ["session.destroyed", "session.spawning", "session.created"], "bob's");
    assert_eq!(world.state("ada"), Some(SessionState::Active));
    at_work.await.expect("no panic");
    // Its history is kept.
    assert_eq!(world.pool_events(), ["session.destroyed", "session.spawning", "session.resumed"], "ada's");
    assert_eq!(world.state("ada"), Some(SessionState::Idle));
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_are_suspended_and_resumed_when_needed() {
    let mut world = World::new(ANY);
    let idle = Duration::from_secs(900);
    world.pool.warm_up(job("ada").opening).await;
    world.in_run("r1").work(job("ada")).await;
    tokio::time::sleep(Duration::from_secs(899)).await;
    world.pool.suspend(idle).await;
    assert_eq!(world.state("ada"), Some(SessionState::Idle));
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.pool.suspend(idle).await;
    assert_eq!(world.state("ada"), Some(SessionState::Suspended));
    assert_eq!(world.pool_events(), ["session.spawning", "session.created", "session.suspended", "pool.empty"]);
    world.had();
    world.in_run("r1").work(job("ada")).await;
    assert_eq!(world.had(), [had("squad-ada", "resumed")]);
    world.had();
    // The end of a conversation resumes no suspended session.
    world.pool.suspend(Duration::ZERO).await;
    world.pool.reset(&RunId::new("r1")).await;
    assert_eq!(world.state("ada"), Some(SessionState::Suspended));
    world.pool_events();
    world.pool.dismiss(&slug("ada")).await;
    assert_eq!(world.state("ada"), None);
    assert_eq!(world.pool_events(), ["session.destroyed", "pool.empty"]);
}

/// A panic in an agent's work costs its session, and nobody waits for it.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_returned_is_opened_again() {
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ panic = \"a defect\" }]\n";
    let mut world = World::new(script);
    world.pool.warm_up(job("ada").opening).await;
    assert_eq!(world.in_run("r1").work(job("ada")).await.outcome, Outcome::Failed);
    assert_eq!(world.state("ada"), None);
    assert_eq!(world.in_run("r2").work(job("ada")).await.outcome, Outcome::Completed);
    assert_eq!(world.had(), [had("squad-ada", "warm"), had("squad-ada", "created")]);
}

/// Task context that is not part of the session's configuration is sent once.
#[tokio::test(start_paused = true)]
async fn task_context_comes_with_the_prompt() {
    let world = World::new(ANY);
    let reports = Reports::channel().0;
    let opening = |context: &str| {
        let mut opening = job("ada").opening;
        opening.spec.context = context.to_owned();
        opening
    };
    let run = of("r1");
    let (ada, mut told) = (slug("ada"), Vec::new());
    for context in ["# Decisions\n", "# Decisions\n", "# Other decisions\n"] {
        let borrowed = world.pool.open(opening(context), &run, &reports).await.expect("a session");
        told.push(borrowed.context.clone());
        assert_eq!(world.pool.release(&ada, borrowed).await, Returned::Kept);
    }
    assert_eq!(told, ["# Decisions\n", "", "# Other decisions\n"]);
}
