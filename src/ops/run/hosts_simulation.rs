//! Many orders over many hosts on a seeded clock: placement, links and registries are the real ones; the workers, and the
//! network between, are played. Connections break, fall silent and are slow, workers die, hosts die with all they have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::Hosts;
use crate::engine::connection::{CallError, Connection, Incoming, Responder};
use crate::engine::copilot::testing::opening;
use crate::engine::dialect::Dialect;
use crate::engine::remote::frames::{
    Begun, Hello, NumberedFact, Objects, OfSession, Opened, Order, PROTOCOL, Taken, Work, method,
};
use crate::engine::remote::{self, Launch, Mirror, Options, Remote, Wire};
use crate::engine::{Adapter, AdapterSession, EngineError, Fact, Opening};
use crate::model::{AvailableModels, SandboxLevel, ToolChoice};
use crate::program::Variables;

/// Messages of one agent.
const STEPS: usize = 4;
const LEASE: Duration = Duration::from_secs(600);

/// The same numbers for the same seed.
struct Seed(Mutex<u64>);

impl Seed {
    fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(seed)))
    }

    /// From 0 on.
    fn below(&self, end: u64) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn milliseconds(&self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }
}

struct Host {
    name: String,
    seed: Arc<Seed>,
    state: Mutex<HostState>,
}

#[derive(Default)]
struct HostState {
    is_down: bool,
    /// It answers nothing, and its connections stay.
    is_silent: bool,
    unanswered: Vec<Responder>,
    connections: Vec<Arc<Connection>>,
    orders: BTreeMap<String, Arc<Job>>,
}

/// An order at work on a host.
struct Job {
    host: Arc<Host>,
    client: Mutex<String>,
    /// On disk there, and how many facts the client had when the host had none of them any more.
    facts: Mutex<(u64, Vec<Value>)>,
    connection: watch::Sender<Option<Arc<Connection>>>,
    sessions: Mutex<BTreeMap<u64, bool>>,
    turns: Mutex<u64>,
    task: Mutex<Option<AbortHandle>>,
}

impl Job {
    fn tell(&self, session: u64, fact: Fact) {
        let mut facts = self.facts.lock();
        let number = facts.0 + facts.1.len() as u64 + 1;
        let fact = json!(NumberedFact { number, session, fact, priced: None });
        facts.1.push(fact.clone());
        self.send(&fact);
    }

    fn send(&self, fact: &Value) {
        let connection = self.connection.borrow().clone();
        if let Some(connection) = connection.filter(|_| !self.host.state.lock().is_silent) {
            connection.send(&json!({ "method": method::FACT, "params": fact }));
        }
    }

    fn stop(&self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
        self.sessions.lock().clear();
    }

    async fn work(self: Arc<Self>, session: u64) {
        for step in 0..STEPS {
            sleep(self.host.seed.milliseconds(60_000)).await;
            self.tell(session, Fact::Message(step.to_string()));
        }
        let objects = Objects { data: STANDARD.encode("work"), is_last: true };
        let work = json!(Work { commit: self.client.lock().clone(), objects, part: 0 });
        let mut current = self.connection.subscribe();
        loop {
            let Ok(connection) = current.wait_for(Option::is_some).await.map(|connection| connection.clone()) else {
                return;
            };
            let Some(connection) = connection else { continue };
            match connection.request(method::WORK, &work, Duration::from_secs(1_000_000)).await {
                Err(CallError::Closed(_)) => sleep(Duration::from_millis(20)).await,
                _ => break,
            }
        }
        self.sessions.lock().insert(session, false);
        self.tell(session, Fact::Idle);
    }
}

/// What comes over one connection.
struct Client {
    host: Arc<Host>,
    order: Mutex<Option<(Order, Arc<Job>)>>,
}

impl Incoming for Client {
    fn notified(&self, _: &Arc<Connection>, _: &str, _: Value) {}

    fn requested(&self, responder: Responder, name: &str, params: Value) {
        let host = &self.host;
        if host.state.lock().is_silent {
            return host.state.lock().unanswered.push(responder);
        }
        let answer = self.answer(&responder.connection(), name, params);
        let delay = host.seed.milliseconds(400);
        tokio::spawn(async move {
            sleep(delay).await;
            responder.answer(answer);
        });
    }
}

impl Client {
    fn answer(&self, connection: &Arc<Connection>, name: &str, params: Value) -> Value {
        if name == method::ORDER {
            let order: Order = serde_json::from_value(params).expect("an order");
            let job = Arc::clone(self.host.state.lock().orders.entry(order.id.clone()).or_insert_with(|| {
                Arc::new(Job {
                    host: Arc::clone(&self.host),
                    client: Mutex::new(order.client.clone()),
                    facts: Mutex::new((order.after, Vec::new())),
                    connection: watch::Sender::new(None),
                    sessions: Mutex::default(),
                    turns: Mutex::default(),
                    task: Mutex::default(),
                })
            }));
            if *job.client.lock() != order.client {
                job.stop();
                *job.facts.lock() = (order.after, Vec::new());
                *job.turns.lock() = 0;
                job.client.lock().clone_from(&order.client);
            }
            let sessions = job.sessions.lock().clone();
            *self.order.lock() = Some((order, job));
            return json!(Taken { lacks: false, has: Vec::new(), sessions });
        }
        let Some((order, job)) = self.order.lock().clone() else { return Value::Null };
        match name {
            method::BEGIN => {
                let before = job.connection.send_replace(Some(Arc::clone(connection)));
                if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, connection)) {
                    before.fail("another launch took over");
                }
                let (before, facts) = job.facts.lock().clone();
                facts.iter().skip(order.after.saturating_sub(before) as usize).for_each(|fact| job.send(fact));
                let root = format!("/{}/{}/p", self.host.name, order.run);
                json!(Begun { root, version: "1".to_owned(), offer: AvailableModels::default() })
            }
            method::OPEN => {
                let session = params["session"].as_u64().expect("a number");
                job.sessions.lock().entry(session).or_insert(false);
                let opened = Opened {
                    model: "m".to_owned(),
                    workspace: None,
                    reports_tools: true,
                    sandbox: SandboxLevel::Rules,
                    is_listed: false,
                };
                json!(Ok::<_, EngineError>(opened))
            }
            method::SEND => {
                let OfSession { session, turn, .. } = serde_json::from_value(params).expect("a session");
                if turn > std::mem::replace(&mut *job.turns.lock(), turn) {
                    job.sessions.lock().insert(session, true);
                    let task = tokio::spawn(Arc::clone(&job).work(session)).abort_handle();
                    *job.task.lock() = Some(task);
                }
                Value::Null
            }
            method::CLOSE => {
                job.stop();
                json!([])
            }
            method::FINISH => {
                job.stop();
                self.host.state.lock().orders.remove(&order.id);
                Value::Null
            }
            _ => Value::Null,
        }
    }
}

/// A launcher to a host.
struct To(Arc<Host>);

impl Wire for To {
    fn connect(&self) -> DuplexStream {
        let (here, there) = tokio::io::duplex(1 << 16);
        let mut state = self.0.state.lock();
        if state.is_down {
            return here;
        }
        let (output, input) = tokio::io::split(there);
        let client = Client { host: Arc::clone(&self.0), order: Mutex::default() };
        let connection = Connection::start(Dialect::Lines, input, output, Arc::new(client));
        if !state.is_silent {
            let (version, platform) = ("1".to_owned(), "x".to_owned());
            let hello = Hello { protocol: PROTOCOL, version, platform, engines: Vec::new(), busy: 0 };
            connection.send(&json!({ "method": method::HELLO, "params": hello }));
        }
        state.connections.retain(|connection| connection.is_open());
        state.connections.push(connection);
        here
    }
}

impl Host {
    fn cut(&self) {
        let connections = std::mem::take(&mut self.state.lock().connections);
        connections.iter().for_each(|connection| connection.fail("the network is gone"));
    }

    /// One thing after the other goes wrong.
    async fn live(self: Arc<Self>) {
        loop {
            sleep(Duration::from_secs(60) + self.seed.milliseconds(1_500_000)).await;
            match self.seed.below(5) {
                0 => {
                    self.state.lock().is_down = true;
                    self.cut();
                    sleep(self.seed.milliseconds(300_000)).await;
                }
                1 => {
                    self.state.lock().is_silent = true;
                    sleep(self.seed.milliseconds(300_000)).await;
                    self.state.lock().is_silent = false;
                    self.cut();
                    self.state.lock().unanswered.clear();
                }
                2 | 3 => {
                    // A worker's process dies; what it kept does not.
                    let orders: Vec<Arc<Job>> = self.state.lock().orders.values().cloned().collect();
                    if let Some(job) = orders.get(self.seed.below(orders.len().max(1) as u64) as usize) {
                        job.stop();
                        if let Some(connection) = job.connection.send_replace(None) {
                            connection.fail("it was killed");
                        }
                    }
                }
                _ => {
                    let orders = {
                        let mut state = self.state.lock();
                        state.is_down = true;
                        std::mem::take(&mut state.orders)
                    };
                    orders.values().for_each(|job| job.stop());
                    self.cut();
                    sleep(self.seed.milliseconds(3 * LEASE.as_millis() as u64)).await;
                }
            }
            self.state.lock().is_down = false;
        }
    }
}

/// Counts the work that comes for one attempt.
#[derive(Default)]
struct Attempt {
    taken: AtomicUsize,
    is_over: AtomicBool,
}

impl Mirror for Attempt {
    fn base(&self) -> Result<String, String> {
        Ok("base".to_owned())
    }

    fn bundle(&self, _: &str, _: &[String], _: &Path) -> Result<(), String> {
        Ok(())
    }

    fn take(&self, _: &Path, _: &str) -> Result<(), String> {
        assert!(!self.is_over.load(Ordering::Relaxed), "work comes after the attempt is over");
        self.taken.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A squad with many orders.
struct Squad {
    hosts: Arc<Hosts>,
    machines: BTreeMap<String, Arc<Host>>,
    permits: Semaphore,
    moved: AtomicUsize,
    interrupted: AtomicUsize,
    broken: AtomicUsize,
}

impl Squad {
    fn new(hosts: usize, slots: usize, seed: u64) -> Arc<Self> {
        let names: Vec<String> = (0..hosts).map(|at| format!("h{at}")).collect();
        let machine = |(at, name): (usize, &String)| {
            let seed = Seed::new(seed.wrapping_mul(1_000_003) + at as u64);
            (name.clone(), Arc::new(Host { name: name.clone(), seed, state: Mutex::default() }))
        };
        let free = names.iter().map(|name| (name.clone(), slots)).collect();
        Arc::new(Self {
            hosts: Arc::new(Hosts { free: Mutex::new(free), shared: BTreeMap::new(), freed: Notify::new() }),
            machines: names.iter().enumerate().map(machine).collect(),
            permits: Semaphore::new(hosts * slots),
            moved: AtomicUsize::new(0),
            interrupted: AtomicUsize::new(0),
            broken: AtomicUsize::new(0),
        })
    }

    fn options(&self, at: usize, host: &str, mirror: Arc<dyn Mirror>) -> Options {
        let run = "20260105-090000-0000b1".to_owned();
        let order = json!({
            "protocol": PROTOCOL, "version": "1", "id": format!("{run}-a{at}"), "client": "", "after": 0,
            "repository": "r", "format": "sha1", "branch": null, "head": null, "base": "", "name": "p", "inner": "",
            "run": run, "agent": "a", "engine": "e", "sandbox": "full", "requires_sandbox": false, "script": null,
            "lease": LEASE.as_secs(),
        });
        let launch = Launch {
            host: host.to_owned(),
            program: None,
            arguments: Vec::new(),
            directory: PathBuf::from("/"),
            variables: Variables::default(),
            wire: Some(Arc::new(To(Arc::clone(&self.machines[host])))),
        };
        Options {
            launch,
            order: serde_json::from_value(order).expect("an order"),
            root: format!("/squad/{run}/p"),
            mirror,
            mailbox: None,
            allowance: Arc::new(()),
        }
    }

    /// Carries an order out, on one host after the other. Returns the hosts that it was on, and what was heard on the last.
    async fn carry(self: Arc<Self>, at: usize) -> (Vec<String>, Vec<String>) {
        let _permit = self.permits.acquire().await.expect("it is open");
        let (mut gone, mut late): (Vec<String>, JoinSet<_>) = (Vec::new(), JoinSet::new());
        loop {
            let fit: Vec<&str> = self.machines.keys().map(String::as_str).collect();
            let last: Vec<&String> = gone.iter().rev().take(self.machines.len() - 1).collect();
            let fit: Vec<&str> = fit.into_iter().filter(|host| !last.iter().any(|gone| gone == host)).collect();
            let slot = self.hosts.take(&fit).await;
            let mirror = Arc::new(Attempt::default());
            let options = self.options(at, &slot.host, Arc::clone(&mirror) as Arc<dyn Mirror>);
            let heard = self.attempt(options.clone()).await;
            mirror.is_over.store(true, Ordering::Relaxed);
            gone.push(slot.host.clone());
            match heard {
                Some(heard) => {
                    assert!(mirror.taken.load(Ordering::Relaxed) > 0, "its work has come");
                    return (gone, heard);
                }
                None => {
                    self.moved.fetch_add(1, Ordering::Relaxed);
                    let mirror: Arc<dyn Mirror> = Arc::new(Attempt::default());
                    late.spawn(remote::take_back(Options { mirror, ..options }));
                }
            }
        }
    }

    /// `None`: its host is gone.
    async fn attempt(&self, options: Options) -> Option<Vec<String>> {
        let is_gone = |error: EngineError| assert!(matches!(error, EngineError::Unreachable { .. }), "{error}");
        let remote = Remote::start(options).await.map_err(is_gone).ok()?;
        let heard = self.turn(&remote, opening("s", ToolChoice::Nothing)).await.map_err(is_gone);
        remote.stop().await;
        heard.ok()
    }

    async fn turn(&self, remote: &Remote, opening: Opening) -> Result<Vec<String>, EngineError> {
        let mut session = remote.open(opening).await?;
        session.send("do it", &[]).await?;
        let mut heard = Vec::new();
        let ended = loop {
            match session.next().await {
                Fact::Message(text) => heard.push(text),
                Fact::Idle => break Ok(heard),
                Fact::Interrupted(_) => {
                    self.interrupted.fetch_add(1, Ordering::Relaxed);
                    heard.clear();
                    if let Err(error) = session.send("go on", &[]).await {
                        break Err(error);
                    }
                }
                Fact::Gone(reason) => break Err(EngineError::Unreachable { reason }),
                Fact::ConnectionLost(_) => drop(self.broken.fetch_add(1, Ordering::Relaxed)),
                Fact::ConnectionRestored { .. } => {}
                other => break Err(EngineError::Request { what: "a turn".to_owned(), reason: format!("{other:?}") }),
            }
        };
        session.close().await;
        ended
    }

    /// Carries all orders out.
    async fn carry_all(self: &Arc<Self>, count: usize) -> Vec<(Vec<String>, Vec<String>)> {
        let mut all = JoinSet::new();
        (0..count).for_each(|at| drop(all.spawn(Arc::clone(self).carry(at))));
        let mut ended = Vec::new();
        while let Some(done) = all.join_next().await {
            ended.push(done.expect("an outcome"));
        }
        ended
    }
}

fn whole() -> Vec<String> {
    (0..STEPS).map(|step| step.to_string()).collect()
}

/// Orders over 100 hosts, each of which fails in every way again and again: every order has exactly one outcome, and each of
/// its events was heard once and in order. `SQUAD_TEST_ORDERS=10000` takes some minutes.
#[tokio::test(start_paused = true)]
async fn every_order_has_one_outcome() {
    let orders = std::env::var("SQUAD_TEST_ORDERS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let squad = Squad::new(100, 8, 46);
    let mut lives = JoinSet::new();
    squad.machines.values().for_each(|host| drop(lives.spawn(Arc::clone(host).live())));
    let ended = squad.carry_all(orders).await;
    assert_eq!(ended.len(), orders);
    for (hosts, heard) in &ended {
        assert_eq!(*heard, whole(), "{hosts:?}");
    }
    let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let wrong = [of(&squad.broken), of(&squad.interrupted), of(&squad.moved)];
    eprintln!("{orders} orders: {wrong:?} broken connections, dead workers, moves");
    assert!(orders < 1000 || wrong.iter().all(|count| *count > 0), "{wrong:?}");
    assert!(squad.hosts.free.lock().values().all(|free| *free == 8), "every slot is free again");
}

/// 71 agents on two hosts. In the middle the lid is closed for ten minutes: squad and its launchers stand, the network is
/// gone, and comes back. What becomes of the agents is the same, and nothing is heard twice.
#[tokio::test(start_paused = true)]
async fn a_closed_lid_changes_nothing() {
    let mut outcomes = Vec::new();
    for minutes in [0, 9, 10] {
        let squad = Squad::new(2, 8, 71);
        let lid = {
            let squad = Arc::clone(&squad);
            async move {
                sleep(Duration::from_secs(200)).await;
                if minutes > 0 {
                    squad.machines.values().for_each(|host| host.state.lock().is_down = true);
                    squad.machines.values().for_each(|host| host.cut());
                    // The lease ends at ten minutes, and there is one more attempt.
                    sleep(Duration::from_secs(minutes * 60) - Duration::from_secs(20)).await;
                    squad.machines.values().for_each(|host| host.state.lock().is_down = false);
                }
            }
        };
        let begun = Instant::now();
        let lid = tokio::spawn(lid);
        let ended = squad.carry_all(71).await;
        lid.await.expect("it is open again");
        assert!(ended.iter().all(|(hosts, heard)| hosts.len() == 1 && *heard == whole()), "{minutes} min: {ended:?}");
        let broken = squad.broken.load(Ordering::Relaxed);
        assert_eq!(broken > 0, minutes > 0, "{minutes} min: {broken} broken connections");
        outcomes.push((ended.len(), begun.elapsed() > Duration::from_secs(60)));
    }
    assert!(outcomes.windows(2).all(|two| two[0] == two[1]), "{outcomes:?}");
}
