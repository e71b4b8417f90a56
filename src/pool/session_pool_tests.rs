//! Kept sessions, with a scripted engine and a paused clock.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::mpsc;

use super::dispatcher::Message;
use super::session_pool::Returned;
use super::workers_tests::{MINUTES, job, slug, workers};
use super::*;
use crate::engine::rehearsal::{Rehearsal, Script};
use crate::engine::{Engine, Form, Opening};
use crate::model::{ContextItem, EventKind, Outcome, RunId, SessionState, Tier};
use crate::tools::Tool;

/// Improvised work.
const ANY: &str = "models = [\"m\"]";

/// A pool that keeps sessions, workers of one run on it, and the events of both.
struct World {
    pool: Arc<SessionPool>,
    workers: Workers,
    of_pool: mpsc::UnboundedReceiver<Message>,
    of_run: mpsc::UnboundedReceiver<Message>,
    folder: Arc<TempDir>,
}

impl World {
    fn new(script: &str) -> Self {
        Self::in_folder(script, Arc::new(tempfile::tempdir().expect("a folder")))
    }

    /// Another process for the same team.
    fn again(&self) -> Self {
        Self::in_folder(ANY, Arc::clone(&self.folder))
    }

    fn in_folder(script: &str, folder: Arc<TempDir>) -> Self {
        let (workers, of_run) = workers(ANY, 4, MINUTES);
        let (reports, of_pool) = Reports::channel();
        let engine = Engine::Rehearsal(Rehearsal::start(Some(Script::parse(script).expect("a script"))));
        let store = SessionStore::new(folder.path().to_owned(), "key".to_owned());
        let pool = Arc::new(SessionPool::keeping(engine, 4, store, reports));
        let workers = Workers { pool: Arc::clone(&pool), ..workers };
        Self { pool, workers, of_pool, of_run, folder }
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
async fn an_agents_session_serves_run_after_run() {
    let mut world = World::new(ANY);
    world.pool.warm_up(job("ada").opening).await;
    assert_eq!(world.state("ada"), Some(SessionState::Idle));
    let run = world.in_run("r1");
    let work = run.work(job("ada")).await;
    assert_eq!(work.outcome, Outcome::Completed, "{}", work.reason);
    run.work(job("ada")).await;
    world.in_run("r2").work(job("ada")).await;
    assert_eq!(world.had(), [had("squad-ada", "warm"), had("squad-ada", "warm"), had("squad-ada", "warm")]);
    // A process that ends, however it ends, leaves it to the next one; meanwhile nobody else has it.
    let mut next = world.again();
    next.in_run("r3").work(job("ada")).await;
    assert_eq!(next.had(), [had("ada", "created")]);
    drop((world, run));
    next.pool.warm_up(job("ada").opening).await;
    assert_eq!(next.pool_events().last(), Some(&"session.resumed"));
    next.in_run("r4").work(job("ada")).await;
    assert_eq!(next.had(), [had("squad-ada", "warm")]);
}

/// Who had the session × who wants it × whether it is still open.
#[tokio::test(start_paused = true)]
async fn a_free_session_is_everybodys() {
    for first in [of("r1"), of_conversation("c1")] {
        for second in [of("r1"), of("r2"), of_conversation("c1"), of_conversation("c2")] {
            for (is_open, expected) in [(true, "warm"), (false, "resumed")] {
                let mut world = World::new(ANY);
                world.workers_of(&first).work(job("ada")).await;
                if !is_open {
                    world.pool.suspend(Duration::ZERO).await;
                }
                world.had();
                world.workers_of(&second).work(job("ada")).await;
                let expected = had("squad-ada", expected);
                assert_eq!(world.had().first(), Some(&expected), "{first:?}, then {second:?}, open: {is_open}");
            }
        }
    }
}

/// A review, small work outside of a conversation, and whoever wants none: in sessions of their own.
#[tokio::test(start_paused = true)]
async fn not_all_work_is_done_in_a_standing_session() {
    let review = |job: Job| Job { kind: WorkKind::Review, ..job };
    let small = |mut job: Job| {
        job.opening.spec.tier = Tier::Lightweight;
        job
    };
    for (owner, is_fresh, is_review, is_small, expected) in [
        (of("r1"), false, false, false, "squad-ada"),
        (of("r1"), false, true, false, "ada"),
        (of("r1"), false, false, true, "ada"),
        (of("r1"), true, false, false, "ada"),
        (of_conversation("c1"), false, false, true, "squad-ada"),
        (of_conversation("c1"), false, true, false, "ada"),
    ] {
        let mut world = World::new(ANY);
        world.in_run("r0").work(job("ada")).await;
        world.had();
        let job = if is_review { review(job("ada")) } else { job("ada") };
        let job = if is_small { small(job) } else { job };
        Workers { is_fresh, ..world.workers_of(&owner) }.work(job).await;
        assert_eq!(world.had()[0].0, expected, "{owner:?}, fresh {is_fresh}, review {is_review}, small {is_small}");
        // The standing session is still there.
        world.in_run("r2").work(self::job("ada")).await;
        assert_eq!(world.had()[0].0, "squad-ada");
    }
}

/// Each part of a session's configuration: with another one it is opened again.
#[tokio::test(start_paused = true)]
async fn a_session_is_used_again_only_as_it_was_opened() {
    type Change = fn(&mut Opening);
    let cases: [(Change, &str); 7] = [
        (|_| (), "warm"),
        (|opening| opening.session = "other".to_owned(), "warm"),
        (|opening| opening.spec.prompt = "Another charter.".to_owned(), "resumed"),
        (|opening| opening.tools = vec![Tool::Verdict.spec()], "resumed"),
        (|opening| opening.directory = "/other".into(), "resumed"),
        (|opening| opening.asks = true, "resumed"),
        (|opening| opening.form = Some(Form { name: "choice".into(), schema: serde_json::json!({}) }), "resumed"),
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
    world.pool.suspend(Duration::ZERO).await;
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
    assert_eq!(world.had(), [had("squad-ada", "warm"), had("squad-ada", "resumed")]);
}

/// Task context that is not part of the session's configuration is told once, and what is new with the next message.
#[tokio::test(start_paused = true)]
async fn task_context_comes_with_the_prompt() {
    let world = World::new(ANY);
    let reports = Reports::channel().0;
    let item = |text: &str| ContextItem::new("# Decisions\n", text.to_owned());
    let opening = |items: &[&str]| {
        let mut opening = job("ada").opening;
        opening.spec.items = items.iter().map(|text| item(text)).collect();
        opening.spec.context = format!("# Decisions\n{}", items.concat());
        opening
    };
    let (ada, mut told) = (slug("ada"), Vec::new());
    for (run, items) in [("r1", &["a", "b"][..]), ("r1", &["a", "b"]), ("r2", &["b", "c"]), ("r2", &["a", "c", "d"])] {
        let mut borrowed = world.pool.open(opening(items), true, &of(run), &reports).await.expect("a session");
        let standing = borrowed.standing.as_mut().expect("it stands");
        let news = standing.memory.news(&opening(items).spec.context, &opening(items).spec.items, |_| true);
        told.push((standing.is_new_task, news.text));
        assert_eq!(world.pool.release(&ada, borrowed).await, Returned::Kept);
    }
    let expected = [(false, "# Decisions\nab"), (false, ""), (true, "# Decisions\nc"), (false, "# Decisions\nd")];
    assert_eq!(told, expected.map(|(is_new, text)| (is_new, text.to_owned())));
}
