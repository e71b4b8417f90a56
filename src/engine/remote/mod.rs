//! An engine on another machine: a launcher of the user's (ssh, srun, …) starts `squad worker` there, which opens the
//! sessions and reports their facts.
//!
//! ```text
//! Remote ── Session (several) ── Link ─┬─ launcher's process, started again when the stream breaks
//!                                      ├─ Connection   lines, requests and answers
//!                                      └─ Registry     facts and questions to their sessions, work to the mirror
//! ```
//!
//! The agent's clone here mirrors the one on the host. Whatever names a path in one names it in the other: texts are
//! translated on the way, so that nothing else here knows that the work is done elsewhere.

pub(crate) mod batch;
pub(crate) mod frames;
mod launcher;
mod link;
mod registry;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio::time::{sleep, timeout};

use self::batch::Mailbox;
use self::frames::{Attached, BudgetLease, Hello, OfSession, Opened, Order, method};
use self::link::Link;
use super::{Account, Adapter, AdapterSession, EngineError, Fact, Opening, Recall, backoff};
use crate::model::{Attachment, AvailableModels, SandboxLevel};
use crate::program::{Program, Variables};

/// Where the work of an agent is kept here.
pub(crate) trait Mirror: Send + Sync {
    /// The commit to work on, as it is now.
    fn base(&self) -> Result<String, String>;

    /// Writes a bundle of a commit, without what these commits have, as far as they are known here.
    fn bundle(&self, commit: &str, has: &[String], file: &Path) -> Result<(), String>;

    /// Sets the files to a commit that a bundle brings. The bundle comes from outside.
    fn take(&self, file: &Path, commit: &str) -> Result<(), String>;
}

/// What an agent may use of the run's budgets without this process.
pub(crate) trait Allowance: Send + Sync {
    /// As it is now; `None`: nothing limits it.
    fn lease(&self) -> Option<BudgetLease>;

    /// The agent's worker has the last one, and goes by no earlier one.
    fn has_arrived(&self);
}

/// Nothing limits it.
impl Allowance for () {
    fn lease(&self) -> Option<BudgetLease> {
        None
    }

    fn has_arrived(&self) {}
}

/// How to start a worker.
#[derive(Clone)]
pub(crate) struct Launch {
    /// As the configuration calls it.
    pub(crate) host: String,
    /// `None`: something else looks for the orders of a batch host.
    pub(crate) program: Option<Program>,
    pub(crate) arguments: Vec<String>,
    pub(crate) directory: PathBuf,
    pub(crate) variables: Variables,
    /// Takes the place of the program.
    #[cfg(test)]
    pub(crate) wire: Option<Arc<dyn Wire>>,
}

/// A launcher without a process.
#[cfg(test)]
pub(crate) trait Wire: Send + Sync {
    /// Its standard streams.
    fn connect(&self) -> tokio::io::DuplexStream;
}

#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) launch: Launch,
    /// Without its client and its base.
    pub(crate) order: Order,
    /// The project's root in the mirror.
    pub(crate) root: String,
    pub(crate) mirror: Arc<dyn Mirror>,
    /// Of a batch host.
    pub(crate) mailbox: Option<Arc<dyn Mailbox>>,
    pub(crate) allowance: Arc<dyn Allowance>,
}

impl Options {
    /// Whose quota is used there is not known here, so each host has one.
    pub(crate) fn account(&self) -> Account {
        Account::new(&format!("{} on {}", self.order.engine, self.launch.host), None, [])
    }
}

/// How long a host may take.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    /// Until the worker says anything: a job may have to be scheduled first.
    start: Duration,
    /// How long a host is looked for that was never reached: a laptop may just have woken up. Nothing is lost when that is
    /// given up, and whoever mistyped its name, or has other hosts, does not wait for a lease.
    first: Duration,
    request: Duration,
    /// To make the clone ready, and to open a session.
    open: Duration,
    /// How often it is asked whether it is there.
    ping: Duration,
    grace: Duration,
    /// The first wait before it is started again.
    backoff: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(120),
            first: Duration::from_secs(60),
            request: Duration::from_secs(60),
            open: Duration::from_secs(1800),
            ping: Duration::from_secs(15),
            grace: Duration::from_secs(10),
            backoff: Duration::from_secs(1),
        }
    }
}

/// Starts a worker, hears what it says first, and lets it end. Returns how long that took, without the end. The error says
/// why it cannot be reached.
pub(crate) async fn greet(launch: &Launch, limit: Duration) -> Result<(Hello, Duration), EngineError> {
    let timeouts = Timeouts { start: limit, ..Timeouts::default() };
    let started = Instant::now();
    let (mut child, connection, hello) = link::launch(launch, Arc::default(), timeouts).await?;
    let waited = started.elapsed();
    child.end(&connection, timeouts.grace).await;
    Ok((hello, waited))
}

pub(crate) struct Remote(Arc<Link>);

/// The fact with which a session ends for a reason.
type Last = fn(String) -> Fact;

pub(crate) struct Session {
    link: Arc<Link>,
    number: u64,
    opened: Opened,
    facts: mpsc::UnboundedReceiver<Fact>,
    turns: u64,
    /// How it was lost, and why.
    lost: Option<(Last, String)>,
}

/// Looks for a host whose order was given up until it is there: has its worker end, and takes what it changed to the
/// mirror. Fails if it cannot be taken.
pub(crate) async fn take_back(options: Options) -> Result<(), EngineError> {
    let timeouts = Timeouts::default();
    let mut attempts = 0;
    loop {
        attempts += 1;
        sleep(backoff(timeouts.backoff, attempts.min(link::MAX_DOUBLINGS))).await;
        match link::take_back(options.clone(), timeouts).await {
            Err(EngineError::Unreachable { reason }) => tracing::debug!("{reason}"),
            ended => return ended,
        }
    }
}

impl Remote {
    pub(crate) async fn start(options: Options) -> Result<Self, EngineError> {
        Link::start(options, Timeouts::default()).await.map(Self)
    }

    pub(crate) fn engine(&self) -> &str {
        &self.0.options.order.engine
    }

    pub(crate) fn version(&self) -> String {
        format!("{} on {}", self.0.begun().version, self.0.options.launch.host)
    }
}

impl Adapter for Remote {
    type Session = Session;

    async fn open(&self, opening: Opening) -> Result<Session, EngineError> {
        let link = Arc::clone(&self.0);
        let (number, facts) = link.registry.add(opening.clone());
        let opened = link.open(number, &opening).await;
        let opened = opened.inspect_err(|_| link.registry.remove(number))?;
        link.registry.opened(number);
        Ok(Session { link, number, opened, facts, turns: 0, lost: None })
    }

    async fn offer(&self) -> AvailableModels {
        self.0.begun().offer
    }

    async fn stop(self) {
        self.0.stop().await;
    }
}

/// Attached files with their contents.
fn attached(directory: &Path, attachments: &[Attachment]) -> Result<Vec<Attached>, EngineError> {
    let read = |Attachment { path, .. }: &Attachment| {
        let refused = |error| EngineError::Request { what: format!("reading {path}"), reason: format!("{error}") };
        let bytes = fs::read(directory.join(path)).map_err(refused)?;
        Ok(Attached { path: path.clone(), data: STANDARD.encode(bytes) })
    };
    attachments.iter().map(read).collect()
}

impl Session {
    async fn ask<T: DeserializeOwned>(&self, method: &str, text: &str) -> Result<T, EngineError> {
        let about = OfSession { session: self.number, text: text.to_owned(), ..OfSession::default() };
        self.call(method, &about).await
    }

    async fn call<T: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<T, EngineError> {
        self.link.call(method, params, self.link.timeouts.request).await
    }
}

impl AdapterSession for Session {
    fn model(&self) -> &str {
        &self.opened.model
    }

    fn workspace(&self) -> Option<String> {
        self.opened.workspace.clone()
    }

    fn reports_tools(&self) -> bool {
        self.opened.reports_tools
    }

    fn sandbox(&self) -> SandboxLevel {
        self.opened.sandbox
    }

    fn is_listed(&self) -> bool {
        self.opened.is_listed
    }

    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError> {
        let attached = attached(&self.link.options.launch.directory, attachments)?;
        self.turns += 1;
        self.link.registry.begin_turn(self.number);
        let text = prompt.to_owned();
        self.call(method::SEND, &OfSession { session: self.number, text, attachments: attached, turn: self.turns })
            .await
    }

    async fn recall(&mut self, prompt: &str) -> Option<Recall> {
        self.ask(method::RECALL, prompt).await.ok()?
    }

    async fn notify(&mut self, text: &str) -> Result<bool, EngineError> {
        self.ask(method::NOTIFY, text).await
    }

    async fn steer(&mut self, text: &str) -> Result<bool, EngineError> {
        self.ask(method::STEER, text).await
    }

    async fn next(&mut self) -> Fact {
        if let Some((fact, reason)) = &self.lost {
            return fact(reason.clone());
        }
        let fact = self.facts.recv().await;
        let fact = fact.unwrap_or_else(|| Fact::Gone(format!("{} is gone", self.link.options.launch.host)));
        self.lost = match &fact {
            Fact::Lost(reason) => Some((Fact::Lost, reason.clone())),
            Fact::Gone(reason) => Some((Fact::Gone, reason.clone())),
            _ => None,
        };
        fact
    }

    async fn abort(&mut self) {
        // It may be gone, and nobody waits for it then.
        let aborted = self.ask::<Value>(method::ABORT, "");
        let _ = timeout(self.link.timeouts.grace, aborted).await;
    }

    async fn close(self) -> Vec<String> {
        let left = match self.lost {
            None => {
                let closed = timeout(self.link.timeouts.request, self.ask(method::CLOSE, "")).await;
                closed.ok().and_then(Result::ok).unwrap_or_default()
            }
            Some(_) => Vec::new(),
        };
        self.link.registry.remove(self.number);
        left
    }
}
