//! Properties over random sequences of steps: a session is in one state at a time and makes only allowed transitions,
//! and every message has one outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::dispatcher::Message;
use super::workers_tests::{MINUTES, job, slug, workers};
use super::*;
use crate::engine::Engine;
use crate::engine::rehearsal::{Rehearsal, Script};
use crate::model::{EventKind, RunId, SessionState};

const AGENTS: [&str; 3] = ["ada", "bob", "cy"];
const RUNS: [&str; 3] = ["r1", "r2", "r3"];
/// Possible turns of an agent. The engine rarely dies, because nothing happens after that until it is restarted.
const TURNS: [&str; 7] = [
    "{ say = \"Done.\" }",
    "{ wait = \"20s\" }, { say = \"Done.\" }",
    "{ wait = \"90s\" }, { say = \"Done.\" }",
    "{ hang = true }",
    "{ fail = \"no\" }",
    "{ panic = \"a defect\" }",
    "{ die = true }",
];

#[derive(Clone, Debug)]
enum Step {
    /// A message to this agent in this run.
    Say(usize, usize),
    Edit(usize, u8),
    CancelAgent(usize, usize),
    CancelRun(usize),
    WarmUp(usize),
    Dismiss(usize),
    Suspend(u64),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (agent, run) = (0..AGENTS.len(), 0..RUNS.len());
    let step = prop_oneof![
        8 => (agent.clone(), run.clone()).prop_map(|(agent, run)| Step::Say(agent, run)),
        4 => (agent.clone(), any::<u8>()).prop_map(|(agent, to)| Step::Edit(agent, to % 3)),
        1 => (agent.clone(), run.clone()).prop_map(|(agent, run)| Step::CancelAgent(agent, run)),
        1 => run.prop_map(Step::CancelRun),
        3 => agent.clone().prop_map(Step::WarmUp),
        2 => agent.prop_map(Step::Dismiss),
        2 => prop_oneof![Just(0), Just(60)].prop_map(Step::Suspend),
        8 => prop_oneof![Just(0_u64), 1..4_u64, 10..120_u64].prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..40)
}

fn script() -> impl Strategy<Value = String> {
    let turn = (0..AGENTS.len(), prop_oneof![20 => 0..TURNS.len() - 1, 1 => Just(TURNS.len() - 1)]);
    let written =
        |(agent, turn): (usize, usize)| format!("[[turn]]\nagent = \"{}\"\nsteps = [{}]\n", AGENTS[agent], TURNS[turn]);
    prop::collection::vec(turn.prop_map(written), 1..20).prop_map(|turns| turns.concat())
}

/// The state of an agent's own session according to events.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    None,
    Spawning,
    Open,
    Suspended,
}

impl Life {
    /// The state after this event; `None`: the event is not allowed here.
    fn after(self, kind: &EventKind) -> Option<Self> {
        match (self, kind) {
            // Replaces another session or is the first; never while one is already opening.
            (Self::None | Self::Open | Self::Suspended, EventKind::SessionSpawning { .. }) => Some(Self::Spawning),
            (Self::Spawning, EventKind::SessionCreated { warm: false, .. } | EventKind::SessionResumed { .. }) => {
                Some(Self::Open)
            }
            (Self::Open, EventKind::SessionCreated { warm: true, .. }) => Some(Self::Open),
            (Self::Open, EventKind::SessionSuspended { .. }) => Some(Self::Suspended),
            (Self::Spawning | Self::Open | Self::Suspended, EventKind::SessionDestroyed { .. }) => Some(Self::None),
            (_, EventKind::SessionError { .. }) | (Self::Open, EventKind::SessionIdle { .. }) => Some(self),
            _ => None,
        }
    }

    fn is(self, state: Option<SessionState>) -> bool {
        match self {
            Self::None => state.is_none(),
            Self::Spawning => state == Some(SessionState::Spawning),
            Self::Open => matches!(state, Some(SessionState::Idle | SessionState::Active)),
            Self::Suspended => state == Some(SessionState::Suspended),
        }
    }
}

fn session(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::SessionSpawning { session }
        | EventKind::SessionCreated { session, .. }
        | EventKind::SessionResumed { session, .. }
        | EventKind::SessionSuspended { session }
        | EventKind::SessionDestroyed { session }
        | EventKind::SessionIdle { session }
        | EventKind::SessionError { session, .. } => Some(session),
        _ => None,
    }
}

struct World {
    pool: Arc<SessionPool>,
    runs: Vec<(Workers, Canceller)>,
    heard: mpsc::UnboundedReceiver<Message>,
    lives: BTreeMap<String, Life>,
    /// Which version of its charter each agent has.
    charters: [u8; AGENTS.len()],
    said: Vec<JoinHandle<Work>>,
    between: Vec<JoinHandle<()>>,
    outcomes: usize,
    trail: Vec<String>,
    _folder: TempDir,
}

impl World {
    fn new(script: &str, opening: u64) -> Self {
        let (reports, heard) = Reports::unwritten();
        let rehearsal = Rehearsal::start(Some(Script::parse(script).expect("a script")));
        let engine = Engine::Rehearsal(rehearsal.opening_in(Duration::from_secs(opening)));
        let folder = tempfile::tempdir().expect("a folder");
        let store = SessionStore::new(folder.path().to_owned(), "key".to_owned());
        let pool = Arc::new(SessionPool::keeping(engine, 2, store, reports.clone()));
        let of_run = |run: &&str| {
            let (canceller, cancel) = Cancel::channel();
            let owner = SessionOwner { id: RunId::new(*run), is_conversation: false };
            let (pool, reports, colleagues) = (Arc::clone(&pool), reports.clone(), Colleagues::channel().0);
            let workers = workers("models = [\"m\"]", 2, MINUTES).0;
            (Workers { owner, pool, reports, cancel, colleagues, ..workers }, canceller)
        };
        let runs = RUNS.iter().map(of_run).collect();
        let lives = AGENTS.iter().map(|agent| (format!("squad-{agent}"), Life::None)).collect();
        let (charters, said, between, outcomes, trail) = Default::default();
        Self { pool, runs, heard, lives, charters, said, between, outcomes, trail, _folder: folder }
    }

    fn job(&self, agent: usize) -> Job {
        let mut job = job(AGENTS[agent]);
        job.opening.spec.prompt = format!("Charter {}.", self.charters[agent]);
        job.opening.spec.compiled_hash = format!("{:02}", self.charters[agent]);
        job
    }

    /// Runs concurrently, like the watch's own tasks.
    fn meanwhile(&mut self, act: impl Future<Output = ()> + Send + 'static) {
        self.between.push(tokio::spawn(act));
    }

    async fn take(&mut self, step: &Step) {
        let pool = Arc::clone(&self.pool);
        match *step {
            Step::Say(agent, run) => {
                let (workers, job) = (self.runs[run].0.clone(), self.job(agent));
                self.said.push(tokio::spawn(async move { workers.work(job).await }));
            }
            Step::Edit(agent, to) => {
                self.charters[agent] = to;
                let spec = self.job(agent).opening.spec;
                self.meanwhile(async move { pool.recreate(&slug(AGENTS[agent]), spec).await });
            }
            Step::CancelAgent(agent, run) => drop(self.runs[run].1.agent(&slug(AGENTS[agent]))),
            Step::CancelRun(run) => _ = self.runs[run].1.run(),
            Step::WarmUp(agent) => {
                let opening = self.job(agent).opening;
                self.meanwhile(async move { pool.warm_up(opening).await });
            }
            Step::Dismiss(agent) => self.meanwhile(async move { pool.dismiss(&slug(AGENTS[agent])).await }),
            Step::Suspend(idle) => self.meanwhile(async move { pool.suspend(Duration::from_secs(idle)).await }),
            Step::Pass(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        }
        // Lets everything finish that does not have to wait.
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.trail.push(format!("{step:?}"));
        self.check();
    }

    /// Checks that events are allowed and match the actual states.
    fn check(&mut self) {
        while let Ok(message) = self.heard.try_recv() {
            let Message::Report(report) = message else { continue };
            self.outcomes += usize::from(report.kind.end().is_some());
            let Some(life) = session(&report.kind).and_then(|session| self.lives.get_mut(session)) else { continue };
            self.trail.push(format!("  {:?}", report.kind));
            let after = life.after(&report.kind);
            assert!(after.is_some(), "{life:?} and then {:?}\n{}", report.kind, self.trail.join("\n"));
            *life = after.unwrap_or(*life);
        }
        let states = self.pool.states();
        for agent in AGENTS {
            let (life, state) = (self.lives[&format!("squad-{agent}")], states.get(&slug(agent)).copied());
            assert!(life.is(state), "{agent} is {state:?}, and was said to be {life:?}\n{}", self.trail.join("\n"));
        }
    }

    async fn end(mut self) {
        let said = std::mem::take(&mut self.said);
        let messages = said.len();
        for work in said {
            work.await.expect("no panic leaves an agent's work");
        }
        for task in std::mem::take(&mut self.between) {
            task.await.expect("no panic");
        }
        self.check();
        assert_eq!(self.outcomes, messages, "{}", self.trail.join("\n"));
        // Nobody works any more, and every permit is free.
        let busy = |state: &SessionState| matches!(state, SessionState::Spawning | SessionState::Active);
        assert!(!self.pool.states().values().any(busy), "{:?}\n{}", self.pool.states(), self.trail.join("\n"));
    }
}

proptest::proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_is_in_one_state_and_a_message_has_one_outcome(script in script(), steps in steps(), opening in 0..3_u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let mut world = World::new(&script, opening);
            for step in &steps {
                world.take(step).await;
            }
            world.end().await;
        });
    }
}
