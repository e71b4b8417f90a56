//! The running CLI: checks its protocol version at the start, watches it while it works, and restarts it when it is
//! lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use super::locate::{locate, version_key};
use super::options::{Home, McpServers, Options, Provider};
use super::process::{Process, processor_time};
use super::registry::Registry;
use super::servers::{self, Unusable};
use super::wire::{Account, HandshakeReply, ModelInfo, Models, OpenParams};
use crate::engine::connection::{CallError, Connection, LinkState};
use crate::engine::descendants::Descendants;
use crate::engine::{EngineError, EngineKind, Fact, backoff};
use crate::model::{AvailableModels, ConnectionState, IntoMap, Slug};
use crate::program::Program;

/// The protocol versions that squad supports. Defined only here.
pub(crate) const PROTOCOL: std::ops::RangeInclusive<u64> = 3..=3;
/// The oldest CLI that works with squad. 1.0.34 has the same protocol version, but accepts no answer to a permission
/// request.
const MIN_VERSION: &str = "1.0.43";
/// A CLI that speaks the newest supported protocol.
const KNOWN_GOOD: &str = "@github/copilot@1.0.102";
/// How many times to try to restore a lost connection.
const MAX_RETRIES: u32 = 3;

pub(crate) struct Server {
    pub(crate) options: Options,
    pub(crate) program: Program,
    pub(crate) home: Home,
    pub(crate) identity: Identity,
    pub(crate) registry: Arc<Registry>,
    state: watch::Sender<LinkState>,
    /// Which of the user's MCP servers cannot be used; tried when the first session needs them.
    unusable_servers: OnceCell<Unusable>,
    /// Those that kept a session from opening after that.
    silent_servers: Mutex<Unusable>,
}

/// The CLI's version, protocol and account.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Identity {
    pub(crate) version: String,
    pub(crate) protocol: u64,
    pub(crate) account: Account,
}

/// A CLI that has passed the version checks.
pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) connection: Arc<Connection>,
    pub(crate) identity: Identity,
    pub(crate) home: Home,
    pub(crate) program: Program,
    pub(crate) registry: Arc<Registry>,
}

/// Starts the CLI in the right home, whether or not it is logged in there.
pub(crate) async fn start(options: &Options) -> Result<Running, EngineError> {
    let program = locate(options)?;
    let registry = Arc::new(Registry::new(options.timeouts.request));
    let running = launch(options, &program, &options.home, &registry).await?;
    let fits = options.provider.is_some() || running.identity.account.authenticated;
    if fits || !matches!(options.home, Home::Auto { .. }) {
        return Ok(running);
    }
    // The login is in the user's home, and is not copied.
    running.process.end(&running.connection, options.timeouts.grace).await;
    launch(options, &program, &Home::User, &registry).await
}

async fn launch(
    options: &Options,
    program: &Program,
    home: &Home,
    registry: &Arc<Registry>,
) -> Result<Running, EngineError> {
    let incoming = Arc::clone(registry) as Arc<dyn crate::engine::connection::Incoming>;
    let (mut process, connection) = Process::start(program, options, home, incoming)?;
    match handshake(&connection, options).await {
        Ok(identity) => Ok(Running {
            process,
            connection,
            identity,
            home: home.clone(),
            program: program.clone(),
            registry: Arc::clone(registry),
        }),
        Err(HandshakeError::Engine(error)) => {
            process.end(&connection, options.timeouts.grace).await;
            Err(error)
        }
        Err(HandshakeError::Call(error)) => {
            let exit_report = match error {
                CallError::TimedOut(_) => String::new(),
                _ => format!("; {}", process.exit_report().await),
            };
            let is_dead = process.has_died();
            process.kill().await;
            connection.fail("the engine did not start");
            let reason = format!(
                "the Copilot CLI {} does not answer as a server: {error}{exit_report}",
                program.path().display()
            );
            let hint = format!(
                "check that `{} --version` works; if not: `npm install -g {KNOWN_GOOD}`",
                program.path().display()
            );
            Err(match is_dead {
                true => EngineError::Died { reason, hint: Some(hint) },
                false => EngineError::Unusable { reason, hint: Some(hint) },
            })
        }
    }
}

enum HandshakeError {
    Engine(EngineError),
    Call(CallError),
}

impl From<CallError> for HandshakeError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// Checks protocol and version, and gets the account.
async fn handshake(connection: &Connection, options: &Options) -> Result<Identity, HandshakeError> {
    let timeouts = &options.timeouts;
    let greeting = match connection.request("connect", &json!({}), timeouts.start).await {
        // 1.0.34, for example, does not have `connect`.
        Err(error) if error.is_unknown_method() => connection.request("status.get", &json!({}), timeouts.start).await?,
        answer => answer?,
    };
    let greeting: HandshakeReply = super::wire::lenient(greeting);
    let protocol = check_protocol(greeting.protocol_version).map_err(HandshakeError::Engine)?;
    let version = check_version(greeting.version).map_err(HandshakeError::Engine)?;
    let account = connection.request("auth.getStatus", &json!({}), timeouts.request).await?;
    Ok(Identity { version, protocol, account: super::wire::lenient(account) })
}

fn check_protocol(found: Option<u64>) -> Result<u64, EngineError> {
    match found {
        Some(version) if PROTOCOL.contains(&version) => Ok(version),
        _ => {
            let is_newer = found.is_some_and(|version| version > *PROTOCOL.end());
            let package = if is_newer { KNOWN_GOOD } else { "@github/copilot@latest" };
            let hint = format!("install a Copilot CLI that speaks it: `npm install -g {package}`");
            Err(EngineError::Protocol { found, supported: supported(), hint })
        }
    }
}

/// A CLI without a version is considered too old.
fn check_version(found: Option<String>) -> Result<String, EngineError> {
    let is_new_enough = |version: &String| version_key(version.trim_start_matches('v')) >= version_key(MIN_VERSION);
    match found {
        Some(version) if is_new_enough(&version) => Ok(version),
        found => {
            let found =
                found.map_or_else(|| "of an unknown version".to_owned(), |version| format!("version {version}"));
            let reason = format!("the Copilot CLI is {found}; this squad needs {MIN_VERSION} or newer");
            let hint = Some("install a newer one: `npm install -g @github/copilot@latest`".to_owned());
            Err(EngineError::Unusable { reason, hint })
        }
    }
}

fn supported() -> String {
    match (PROTOCOL.start(), PROTOCOL.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first} to {last}"),
    }
}

impl Server {
    /// The server of a running CLI, and the task that watches it. The task ends the CLI when the sender is used or
    /// dropped.
    pub(crate) fn watch(
        options: Options,
        running: Running,
    ) -> (Arc<Self>, oneshot::Sender<()>, impl Future<Output = ()>) {
        let Running { process, connection, identity, home, program, registry } = running;
        let state = watch::Sender::new(LinkState::Connected(Arc::clone(&connection)));
        let (unusable_servers, silent_servers) = Default::default();
        let server =
            Arc::new(Self { options, program, home, identity, registry, state, unusable_servers, silent_servers });
        let (stop, stopped) = oneshot::channel();
        let watcher = Arc::clone(&server).supervise(process, connection, stopped);
        (server, stop, watcher)
    }

    /// The connection. Waits while a lost one is being restored.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>, EngineError> {
        LinkState::settled(&self.state).await
    }

    /// The MCP servers of an agent that can be used, and why its others cannot.
    pub(crate) async fn mcp_servers(&self, agent: &Slug) -> (McpServers, Unusable) {
        let tried = async {
            match self.connection().await {
                Ok(connection) => servers::tried_with(&connection, &self.options).await,
                Err(_) => servers::unusable(&self.options).await,
            }
        };
        let mut all = self.unusable_servers.get_or_init(|| tried).await.clone();
        all.extend(self.silent_servers.lock().clone());
        let mut usable = self.options.mcp_servers.clone();
        usable.retain(|_, server| server.is_for(agent));
        all.retain(|name, _| usable.contains_key(name));
        usable.retain(|name, _| !all.contains_key(name));
        (usable, all)
    }

    /// Takes out of these servers, which kept a session from opening, those that do not answer now; all, if each does. The
    /// CLI opens no session before all of its servers have answered, and does not say which has not.
    pub(crate) async fn leave_out_silent(&self, servers: &mut McpServers) -> Result<Unusable, CallError> {
        let connection = self.connection().await.map_err(|error| CallError::Closed(error.to_string()))?;
        let mut silent = servers::tried_with(&connection, &self.options).await;
        silent.retain(|name, _| servers.contains_key(name));
        if silent.is_empty() {
            let why = "a session with it did not open";
            silent.extend(servers.keys().map(|name| (name.clone(), why.to_owned())));
        }
        servers.retain(|name, _| !silent.contains_key(name));
        self.silent_servers.lock().extend(silent.clone());
        Ok(silent)
    }

    /// Ends processes that a session's tools left running. They have the session's id in their environment.
    pub(crate) async fn end_left_running(&self, session: &str) -> Vec<String> {
        let variables = [("SQUAD_RUN", self.options.run.as_str()), ("COPILOT_AGENT_SESSION_ID", session)];
        Descendants::of(&variables).end_left_running().await
    }

    /// The current connection, without waiting.
    pub(crate) fn connected(&self) -> Option<Arc<Connection>> {
        self.state.borrow().connected()
    }

    pub(crate) fn connection_state(&self) -> ConnectionState {
        match &*self.state.borrow() {
            LinkState::Connected(_) => ConnectionState::Connected,
            LinkState::Reconnecting => ConnectionState::Reconnecting,
            LinkState::Ended(_) => ConnectionState::Error,
        }
    }

    pub(crate) async fn connection_changed(&self) {
        // `self` owns the sender, so the channel is open.
        let _ = self.state.subscribe().changed().await;
    }

    /// The user's own endpoint offers its configured models; otherwise the login decides. Omits models that are
    /// disabled by policy.
    pub(crate) async fn offer(&self) -> AvailableModels {
        let engine = EngineKind::Copilot.name().to_owned();
        if let Some(Provider { models, .. }) = &self.options.provider {
            let default = models.first().cloned();
            let is_users = models.len() == 1;
            return AvailableModels {
                engine,
                models: default.is_some().then(|| models.clone()),
                default,
                efforts: None,
                is_users,
            };
        }
        let answer = match self.connection().await {
            Ok(connection) => models(&connection, self.options.timeouts.offer).await,
            Err(error) => Err(error),
        };
        let answer = answer.inspect_err(|error| tracing::debug!("the list of models is unknown: {error}"));
        let offered = answer.unwrap_or_default().into_iter();
        let offered = offered.filter(|model| model.policy.as_deref() != Some("disabled"));
        let efforts: BTreeMap<String, Vec<String>> = offered.map(|model| (model.id, model.efforts)).into_map();
        if efforts.is_empty() {
            return AvailableModels { engine, ..AvailableModels::default() };
        }
        let models = Some(efforts.keys().cloned().collect());
        AvailableModels { engine, models, efforts: Some(efforts), ..AvailableModels::default() }
    }

    async fn supervise(
        self: Arc<Self>,
        process: Process,
        connection: Arc<Connection>,
        mut stopped: oneshot::Receiver<()>,
    ) {
        let _guard = WatcherGuard(&self);
        let mut live = Some((process, connection));
        while let Some((mut process, connection)) = live.take() {
            tokio::select! {
                biased;
                _ = &mut stopped => {
                    process.end(&connection, self.options.timeouts.grace).await;
                    return self.mark_ended("the engine was stopped");
                }
                reason = self.wait_for_loss(&mut process, &connection) => {
                    self.handle_loss(&mut process, &connection, &reason).await;
                    live = tokio::select! {
                        biased;
                        _ = &mut stopped => return self.mark_ended("the engine was stopped"),
                        live = self.reconnect(&reason) => live,
                    };
                }
            }
        }
    }

    /// Waits until the connection is lost, and returns the reason.
    async fn wait_for_loss(&self, process: &mut Process, connection: &Connection) -> String {
        let id = process.id();
        tokio::select! {
            reason = connection.closed() => reason,
            _ = process.ended() => "it ended".to_owned(),
            reason = self.wait_for_hang(id, connection) => reason,
        }
    }

    /// Waits until a working CLI neither answers a ping nor uses processor time. A stopped process closes nothing, it
    /// just hangs; a process on an overloaded machine is merely slow.
    async fn wait_for_hang(&self, id: Option<u32>, connection: &Connection) -> String {
        /// Factor for the timeout if the processor time is unknown.
        const UNKNOWN_FACTOR: u32 = 3;
        let timeouts = &self.options.timeouts;
        let used = || id.and_then(processor_time);
        // Not at once: a CLI that has just started working has just answered.
        let mut ticks = interval_at(Instant::now() + timeouts.ping_interval, timeouts.ping_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !self.registry.is_any_working() {
                continue;
            }
            let before = used();
            let params = json!({});
            let mut ping = std::pin::pin!(connection.request("ping", &params, Duration::MAX));
            // A closed connection is detected elsewhere.
            if timeout(timeouts.ping, &mut ping).await.is_ok() {
                continue;
            }
            let (ping_seconds, hang_seconds) = (timeouts.ping.as_secs_f64(), timeouts.hang.as_secs_f64());
            let warning = format!(
                "the engine has not answered for {ping_seconds} s; squad gives up after {hang_seconds} s without activity"
            );
            self.registry.each(|session| session.warn(&warning));
            let mut before = before;
            let mut timeout_left = timeouts.hang.saturating_sub(timeouts.ping);
            if before.is_none() {
                timeout_left *= UNKNOWN_FACTOR;
            }
            while timeout(timeout_left, &mut ping).await.is_err() {
                let now = used();
                if now == before {
                    return format!("it hangs: no answer to a ping, and nothing done for {hang_seconds} s");
                }
                (before, timeout_left) = (now, timeouts.hang);
            }
        }
    }

    async fn handle_loss(&self, process: &mut Process, connection: &Connection, reason: &str) {
        self.state.send_replace(LinkState::Reconnecting);
        connection.fail(reason);
        let exit_report = process.exit_report().await;
        process.kill().await;
        tracing::debug!("the engine is lost: {reason}; {exit_report}");
        self.registry.each(|session| session.report(Fact::ConnectionLost(format!("{reason}; {exit_report}"))));
    }

    /// Restarts the CLI and resumes the live sessions; `None` if that fails.
    async fn reconnect(&self, reason: &str) -> Option<(Process, Arc<Connection>)> {
        let mut last = String::new();
        for attempt in 1..=MAX_RETRIES {
            sleep(backoff(self.options.timeouts.backoff, attempt)).await;
            match launch(&self.options, &self.program, &self.home, &self.registry).await {
                Ok(running) => {
                    self.reopen(&running.connection).await;
                    self.report_restored(attempt, reason);
                    self.state.send_replace(LinkState::Connected(Arc::clone(&running.connection)));
                    return Some((running.process, running.connection));
                }
                Err(error) => last = error.to_string(),
            }
        }
        self.mark_ended(&format!("the engine is gone for good: {reason}; after {MAX_RETRIES} attempts: {last}"));
        None
    }

    fn report_restored(&self, attempts: u32, reason: &str) {
        self.registry.each(|session| {
            session.report(Fact::ConnectionRestored { attempts });
            session.interrupt_turn(&format!("the engine was lost in the middle of the turn: {reason}"));
        });
    }

    async fn reopen(&self, connection: &Connection) {
        for params in self.registry.open_params() {
            let id = params.session_id.clone();
            match resume(connection, &params, self.options.timeouts.open).await {
                Ok(None) => {}
                Ok(Some(warning)) => drop(self.registry.with(&id, |session| session.report(Fact::Warning(warning)))),
                Err(error) => {
                    let lost = Fact::Lost(format!("the session could not be restored: {error}"));
                    self.registry.with(&id, |session| session.report(lost));
                    self.registry.remove(&id);
                }
            }
        }
    }

    fn mark_ended(&self, reason: &str) {
        if matches!(*self.state.borrow(), LinkState::Ended(_)) {
            return;
        }
        self.state.send_replace(LinkState::Ended(reason.to_owned()));
        self.registry.each(|session| session.report(Fact::Lost(reason.to_owned())));
    }
}

/// Reports to every session that the watcher has ended, so that none waits after a watcher panicked.
struct WatcherGuard<'a>(&'a Server);

impl Drop for WatcherGuard<'_> {
    fn drop(&mut self) {
        self.0.mark_ended("squad failed to watch the engine; this is a bug");
    }
}

/// Resumes a session after a loss. A session before its first turn was never stored: it is created again, with a
/// warning.
async fn resume(connection: &Connection, params: &OpenParams, deadline: Duration) -> Result<Option<String>, CallError> {
    match connection.request("session.resume", params, deadline).await {
        Ok(_) => Ok(None),
        Err(CallError::Refused { message, .. }) => {
            connection.request("session.create", params, deadline).await?;
            Ok(Some(format!("the session starts over: {message}")))
        }
        Err(error) => Err(error),
    }
}

pub(crate) async fn models(connection: &Connection, deadline: Duration) -> Result<Vec<ModelInfo>, EngineError> {
    let models: Models = ask(connection, "models.list", &json!({}), deadline).await?;
    Ok(models.models.iter().filter_map(ModelInfo::read).collect())
}

async fn ask<T: DeserializeOwned + Default>(
    connection: &Connection,
    method: &str,
    params: &Value,
    deadline: Duration,
) -> Result<T, EngineError> {
    let answer = connection.request(method, params, deadline).await;
    answer.map(super::wire::lenient).map_err(|error| refused(method, &error))
}

pub(crate) fn refused(what: &str, error: &CallError) -> EngineError {
    EngineError::Request { what: what.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_names_both_versions_and_the_way_out() {
        assert_eq!(check_protocol(Some(3)), Ok(3));
        let older = check_protocol(Some(2)).expect_err("too old");
        assert_eq!(older.to_string(), "the engine speaks protocol version 2; this squad speaks 3");
        assert!(older.hint().is_some_and(|hint| hint.contains("@github/copilot@latest")));
        let newer = check_protocol(Some(4)).expect_err("too new");
        assert!(newer.hint().is_some_and(|hint| hint.contains(KNOWN_GOOD)));
        assert!(matches!(check_protocol(None), Err(EngineError::Protocol { found: None, .. })));
    }

    #[test]
    fn a_cli_that_is_too_old_is_refused_with_both_versions() {
        for version in ["1.0.43", "1.0.102", "v1.0.57", "1.1.0", "2.0.0-1"] {
            assert_eq!(check_version(Some(version.to_owned())), Ok(version.to_owned()));
        }
        for version in ["1.0.34", "1.0.42", "1.0.43-1", "0.9.100", "1.0", "unknown", ""] {
            let error = check_version(Some(version.to_owned())).expect_err(version);
            let expected = format!("the Copilot CLI is version {version}; this squad needs 1.0.43 or newer");
            assert_eq!(error.to_string(), expected);
            assert!(error.hint().is_some_and(|hint| hint.contains("npm install -g @github/copilot@latest")));
        }
        let unknown = check_version(None).expect_err("it does not say").to_string();
        assert_eq!(unknown, "the Copilot CLI is of an unknown version; this squad needs 1.0.43 or newer");
    }
}
