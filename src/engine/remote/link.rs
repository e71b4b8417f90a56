//! The connection to a host, made again when it breaks.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::frames::{Alive, Begun, Hello, Opened, PROTOCOL, Parts, Taken, is_root, method};
use super::launcher::Launcher;
use super::registry::{Receiver, Registry};
use super::{Launch, Options, Timeouts};
use crate::engine::connection::{CallError, Connection, LinkState};
use crate::engine::{EngineError, Fact, Opening, backoff, spawn, spawn_blocking};
use crate::env::unique_id;

/// The longest wait before a host is tried again is the first one times two to the power of this, less one.
pub(super) const MAX_DOUBLINGS: u32 = 5;
/// How many connections may break over one request.
const BREAKS: u32 = 8;
/// A closed connection is noticed here a moment before it is made again.
const SETTLING: Duration = Duration::from_millis(20);

pub(super) struct Link {
    pub(super) options: Options,
    pub(super) timeouts: Timeouts,
    pub(super) registry: Arc<Registry>,
    state: watch::Sender<LinkState>,
    begun: Mutex<Begun>,
    stop: watch::Sender<bool>,
    /// Set when the launcher's process has ended for good.
    over: watch::Sender<bool>,
}

/// A worker that takes requests.
struct Attached {
    child: Launcher,
    connection: Arc<Connection>,
    taken: Taken,
    begun: Begun,
}

/// Starts a worker and waits for its first word.
pub(super) async fn launch(
    launch: &Launch,
    registry: Arc<Registry>,
    timeouts: Timeouts,
) -> Result<(Launcher, Arc<Connection>, Hello), EngineError> {
    let unusable = |why: String| EngineError::Unusable { reason: format!("host {}: {why}", launch.host), hint: None };
    let unreachable = |why: String| EngineError::Unreachable { reason: format!("host {}: {why}", launch.host) };
    let hello = watch::Sender::new(None);
    let mut said = hello.subscribe();
    let receiver = Arc::new(Receiver { registry, hello });
    let (mut child, connection) = Launcher::start(launch, receiver).map_err(unusable)?;
    let first = async {
        match said.wait_for(Option::is_some).await.ok().and_then(|hello| hello.clone()) {
            Some(hello) => hello,
            // The connection has ended, and that is reported.
            None => pending().await,
        }
    };
    let silent = tokio::select! {
        hello = timeout(timeouts.start, first) => match hello {
            Ok(hello) if hello.protocol == PROTOCOL => return Ok((child, connection, hello)),
            Ok(Hello { version, .. }) => {
                let own = env!("CARGO_PKG_VERSION");
                unusable(format!("its squad {version} does not understand this one, {own}"))
            }
            Err(_) => unreachable(format!("`squad worker` said nothing within {} s", timeouts.start.as_secs())),
        },
        _ = connection.closed() => unreachable(child.exit_report().await),
    };
    child.kill().await;
    connection.fail(&silent.to_string());
    Err(silent)
}

/// Has a worker end that was given up, whatever it does, and takes what it changed to the mirror.
pub(super) async fn take_back(mut options: Options, timeouts: Timeouts) -> Result<(), EngineError> {
    // Another client than the one that gave the order: its sessions end, and its work is sent.
    options.order.client = unique_id().to_string();
    let registry = Registry::new(Arc::clone(&options.mirror));
    let (mut child, connection, _) = launch(&options.launch, Arc::clone(&registry), timeouts).await?;
    let taken = async {
        let base = Arc::clone(&options.mirror);
        options.order.base = aside(move || base.base()).await?;
        let taken: Taken = ask(&connection, method::ORDER, &options.order, timeouts.request).await?;
        // Otherwise it never had the order.
        if !taken.lacks {
            let _: Value = ask(&connection, method::BEGIN, &json!({}), timeouts.open).await?;
        }
        let _: Value = ask(&connection, method::FINISH, &json!({}), timeouts.request).await?;
        registry.refused().map_or(Ok(()), Err)
    };
    let taken: Result<(), String> = taken.await;
    let is_open = connection.is_open();
    child.end(&connection, timeouts.grace).await;
    taken.map_err(|why| {
        let reason = format!("host {}: {why}", options.launch.host);
        if is_open { EngineError::Unusable { reason, hint: None } } else { EngineError::Unreachable { reason } }
    })
}

impl Link {
    pub(super) async fn start(mut options: Options, timeouts: Timeouts) -> Result<Arc<Self>, EngineError> {
        options.order.client = unique_id().to_string();
        let registry = Registry::new(Arc::clone(&options.mirror));
        let end = Instant::now() + timeouts.first.min(Duration::from_secs(options.order.lease));
        let is_passing = |error: &EngineError| matches!(error, EngineError::Unreachable { .. });
        let attached = match attach(&options, &registry, timeouts).await {
            Err(error) if is_passing(&error) && Instant::now() < end => {
                retry(&options, &registry, timeouts, end, is_passing).await?.0
            }
            first => first?,
        };
        let Attached { child, connection, begun, .. } = attached;
        let link = Arc::new(Self {
            options,
            timeouts,
            registry,
            state: watch::Sender::new(LinkState::Connected(Arc::clone(&connection))),
            begun: Mutex::new(begun),
            stop: watch::Sender::new(false),
            over: watch::Sender::new(false),
        });
        spawn(Arc::clone(&link).supervise(child, connection));
        Ok(link)
    }

    pub(super) fn begun(&self) -> Begun {
        self.begun.lock().clone()
    }

    /// Calls the worker, over the next connection if this one breaks. The worker knows what it was asked already.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        deadline: Duration,
    ) -> Result<T, EngineError> {
        let refused = |reason: String| EngineError::Request {
            what: format!("`{method}` on {}", self.options.launch.host),
            reason,
        };
        let params = serde_json::to_value(params).map_err(|error| refused(error.to_string()))?;
        let params = self.registry.outward(params);
        for _ in 0..BREAKS {
            let connection = LinkState::settled(&self.state).await;
            let connection = connection.map_err(|error| EngineError::Unreachable { reason: error.to_string() })?;
            match connection.request(method, &params, deadline).await {
                Ok(answer) => {
                    let answer = self.registry.inward(answer);
                    return serde_json::from_value(answer).map_err(|error| refused(error.to_string()));
                }
                Err(CallError::Closed(_)) => sleep(SETTLING).await,
                Err(error) => return Err(refused(error.to_string())),
            }
        }
        Err(refused(format!("its worker ended {BREAKS} times before it answered")))
    }

    pub(super) async fn open(&self, number: u64, opening: &Opening) -> Result<Opened, EngineError> {
        let params = OpenSession { session: number, opening };
        self.call::<Result<Opened, EngineError>>(method::OPEN, &params, self.timeouts.open).await?
    }

    /// Ends the worker, which keeps the clone.
    pub(super) async fn stop(&self) {
        let connection = self.state.borrow().connected();
        if let Some(connection) = connection {
            let _ = connection.request(method::FINISH, &json!({}), self.timeouts.grace).await;
        }
        self.stop.send_replace(true);
        is_set(&mut self.over.subscribe()).await;
    }

    /// Makes the connection again when it breaks, until the worker's lease is over.
    async fn supervise(self: Arc<Self>, mut child: Launcher, mut connection: Arc<Connection>) {
        let mut stop = self.stop.subscribe();
        loop {
            let reason = tokio::select! {
                () = is_set(&mut stop) => {
                    child.end(&connection, self.timeouts.grace).await;
                    break;
                }
                reason = self.broken(&connection) => reason,
            };
            connection.fail(&reason);
            let report = child.exit_report().await;
            child.kill().await;
            let host = &self.options.launch.host;
            if self.registry.has_several() {
                self.state.send_replace(LinkState::Ended(reason.clone()));
                self.registry.report_all(|| Fact::Lost(format!("host {host}: {reason}")));
                break;
            }
            self.state.send_replace(LinkState::Reconnecting);
            self.registry.report_all(|| Fact::ConnectionLost(format!("{host}: {reason}; {report}")));
            let again = tokio::select! {
                () = is_set(&mut stop) => break,
                again = self.again() => again,
            };
            match again {
                Ok(attached) => (child, connection) = attached,
                Err(error) => {
                    let reason = format!("{host} is gone: {error}");
                    self.state.send_replace(LinkState::Ended(reason.clone()));
                    self.registry.report_all(|| Fact::Gone(reason.clone()));
                    break;
                }
            }
        }
        self.over.send_replace(true);
    }

    /// Returns why the connection is of no more use.
    async fn broken(&self, connection: &Connection) -> String {
        let silent = async {
            loop {
                sleep(self.timeouts.ping).await;
                let alive = Alive { after: self.registry.last_fact(), budget: self.options.allowance.lease() };
                match connection.request(method::ALIVE, &json!(alive), self.timeouts.request).await {
                    Ok(_) => self.options.allowance.has_arrived(),
                    Err(error @ CallError::TimedOut(_)) => return error.to_string(),
                    Err(_) => {}
                }
            }
        };
        tokio::select! {
            reason = connection.closed() => reason,
            reason = silent => reason,
        }
    }

    async fn again(&self) -> Result<(Launcher, Arc<Connection>), EngineError> {
        let end = Instant::now() + Duration::from_secs(self.options.order.lease);
        let (attached, attempts) = retry(&self.options, &self.registry, self.timeouts, end, |_| true).await?;
        let Attached { child, connection, taken, begun } = attached;
        *self.begun.lock() = begun;
        self.registry.report_all(|| Fact::ConnectionRestored { attempts });
        self.reopen(&connection, &taken.sessions).await;
        self.state.send_replace(LinkState::Connected(Arc::clone(&connection)));
        Ok((child, connection))
    }

    /// Opens the sessions again that ended with a worker's process.
    async fn reopen(&self, connection: &Connection, open: &BTreeMap<u64, bool>) {
        for (number, opening, is_working) in self.registry.sessions() {
            if open.contains_key(&number) {
                continue;
            }
            let opening = &Opening { resume: true, ..opening };
            let params = serde_json::to_value(OpenSession { session: number, opening }).unwrap_or_default();
            let params = self.registry.outward(params);
            let opened = connection.request(method::OPEN, &params, self.timeouts.open).await;
            let opened = opened.map_err(|error| error.to_string()).and_then(|answer| {
                let opened: Result<Opened, EngineError> =
                    serde_json::from_value(answer).map_err(|error| error.to_string())?;
                opened.map_err(|error| error.to_string())
            });
            let reason = format!("the worker on {} ended", self.options.launch.host);
            match opened {
                Ok(_) if is_working => self.registry.report(number, Fact::Interrupted(reason)),
                Ok(_) => {}
                Err(error) => self.registry.report(number, Fact::Gone(format!("{reason}: {error}"))),
            }
        }
    }
}

/// A session to open, under a number by which the client calls it from then on.
#[derive(Serialize)]
struct OpenSession<'o> {
    session: u64,
    opening: &'o Opening,
}

/// Attaches again and again until `end`, with waits that double, and at least once. Returns how often it tried.
async fn retry(
    options: &Options,
    registry: &Arc<Registry>,
    timeouts: Timeouts,
    end: Instant,
    is_passing: impl Fn(&EngineError) -> bool,
) -> Result<(Attached, u32), EngineError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        sleep(backoff(timeouts.backoff, attempts.min(MAX_DOUBLINGS))).await;
        match attach(options, registry, timeouts).await {
            Ok(attached) => return Ok((attached, attempts)),
            Err(error) if Instant::now() >= end || !is_passing(&error) => return Err(error),
            Err(error) => tracing::debug!("{}: {error}", options.launch.host),
        }
    }
}

/// Launches a worker and gives it the order, with what it lacks for that.
async fn attach(options: &Options, registry: &Arc<Registry>, timeouts: Timeouts) -> Result<Attached, EngineError> {
    let (mut child, connection, hello) = launch(&options.launch, Arc::clone(registry), timeouts).await?;
    match give_order(options, registry, &connection, timeouts).await {
        Ok((taken, begun)) => Ok(Attached { child, connection, taken, begun }),
        Err(reason) => {
            let of_host = |reason| format!("host {}, squad {}: {reason}", options.launch.host, hello.version);
            let error = match connection.is_open() || registry.has_several() {
                true => EngineError::Unusable { reason: of_host(reason), hint: None },
                false => {
                    let reason = format!("{reason}; {}", child.exit_report().await);
                    EngineError::Unreachable { reason: of_host(reason) }
                }
            };
            child.end(&connection, timeouts.grace).await;
            Err(error)
        }
    }
}

async fn give_order(
    options: &Options,
    registry: &Registry,
    connection: &Connection,
    timeouts: Timeouts,
) -> Result<(Taken, Begun), String> {
    let base = aside({
        let mirror = Arc::clone(&options.mirror);
        move || mirror.base()
    });
    let mut order = options.order.clone();
    order.base = base.await?;
    order.after = registry.last_fact();
    order.budget = options.allowance.lease();
    let taken: Taken = ask(connection, method::ORDER, &order, timeouts.request).await?;
    options.allowance.has_arrived();
    if taken.lacks {
        let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let (mirror, has, path) = (Arc::clone(&options.mirror), taken.has.clone(), file.path().to_owned());
        aside(move || mirror.bundle(&order.base, &has, &path)).await?;
        for objects in Parts::of(file.path())? {
            let _: Value = ask(connection, method::OBJECTS, &objects?, timeouts.open).await?;
        }
    }
    let begun: Begun = ask(connection, method::BEGIN, &json!({}), timeouts.open).await?;
    if !is_root(&begun.root, &options.order.run) {
        return Err(format!("it has no folder for the project: `{}`", begun.root));
    }
    registry.translate(&options.root, &begun.root);
    Ok((taken, begun))
}

async fn ask<T: for<'de> Deserialize<'de>>(
    connection: &Connection,
    method: &str,
    params: &impl Serialize,
    deadline: Duration,
) -> Result<T, String> {
    let answer = connection.request(method, params, deadline).await.map_err(|error| error.to_string())?;
    serde_json::from_value(answer).map_err(|error| format!("its answer to `{method}` cannot be read: {error}"))
}

pub(super) async fn is_set(flag: &mut watch::Receiver<bool>) {
    // Its sender is a field of the link.
    let _ = flag.wait_for(|is_set| *is_set).await;
}

pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.map_err(|error| error.to_string())?
}
