//! The running CLI: started through the protocol gate, watched while it works, and started again when it is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use super::connection::{CallError, Connection};
use super::locate::{locate, version_key};
use super::options::{Home, Options, Provider};
use super::process::{Process, processor_time};
use super::registry::Registry;
use super::wire::{Account, Greeting, ModelInfo, Models, OpenParams};
use crate::engine::{EngineError, EngineKind, Fact};
use crate::model::{ConnectionState, Offer};
use crate::program::Program;

/// The protocol versions that squad speaks. The only place that says so.
pub(crate) const PROTOCOL: std::ops::RangeInclusive<u64> = 3..=3;
/// The oldest CLI that does what squad asks of it. 1.0.34 speaks the protocol too, and takes no answer to a permission.
const OLDEST: &str = "1.0.43";
/// A CLI that speaks the last of them.
const KNOWN_GOOD: &str = "@github/copilot@1.0.102";
/// How often a lost connection is tried again.
const RETRIES: u32 = 3;

pub(crate) struct Server {
    pub(crate) options: Options,
    pub(crate) program: Program,
    pub(crate) home: Home,
    pub(crate) identity: Identity,
    pub(crate) registry: Arc<Registry>,
    state: watch::Sender<State>,
}

#[derive(Clone)]
enum State {
    Connected(Arc<Connection>),
    Reconnecting,
    /// For good, with the reason.
    Over(String),
}

/// What the CLI says of itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Identity {
    pub(crate) version: String,
    pub(crate) protocol: u64,
    pub(crate) account: Account,
}

/// A CLI that has passed the gate.
pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) connection: Arc<Connection>,
    pub(crate) identity: Identity,
    pub(crate) home: Home,
    pub(crate) program: Program,
    pub(crate) registry: Arc<Registry>,
}

/// Starts the CLI in the home that fits, whether or not it is logged in there.
pub(crate) async fn start(options: &Options) -> Result<Running, EngineError> {
    let program = locate(options)?;
    let registry = Arc::new(Registry::new(options.timeouts.request));
    let running = launch(options, &program, &options.home, &registry).await?;
    let fits = options.provider.is_some() || running.identity.account.authenticated;
    if fits || !matches!(options.home, Home::Auto { .. }) {
        return Ok(running);
    }
    // The login is in the user's own home, and stays there.
    running.process.end(&running.connection, options.timeouts.grace).await;
    launch(options, &program, &Home::User, &registry).await
}

async fn launch(
    options: &Options,
    program: &Program,
    home: &Home,
    registry: &Arc<Registry>,
) -> Result<Running, EngineError> {
    let incoming = Arc::clone(registry) as Arc<dyn super::connection::Incoming>;
    let (mut process, connection) = Process::start(program, options, home, incoming)?;
    match greet(&connection, options).await {
        Ok(identity) => Ok(Running {
            process,
            connection,
            identity,
            home: home.clone(),
            program: program.clone(),
            registry: Arc::clone(registry),
        }),
        Err(GateError::Engine(error)) => {
            process.end(&connection, options.timeouts.grace).await;
            Err(error)
        }
        Err(GateError::Call(error)) => {
            let obituary = match error {
                CallError::Silent(_) => String::new(),
                _ => format!("; {}", process.obituary().await),
            };
            process.kill().await;
            connection.fail("the engine did not start");
            let reason =
                format!("the Copilot CLI {} does not answer as a server: {error}{obituary}", program.path().display());
            let hint = format!(
                "see whether `{} --version` works; else `npm install -g {KNOWN_GOOD}`",
                program.path().display()
            );
            Err(EngineError::Unusable { reason, hint: Some(hint) })
        }
    }
}

enum GateError {
    Engine(EngineError),
    Call(CallError),
}

impl From<CallError> for GateError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// The protocol gate, and who is logged in.
async fn greet(connection: &Connection, options: &Options) -> Result<Identity, GateError> {
    let timeouts = &options.timeouts;
    let greeting = match connection.request("connect", &json!({}), timeouts.start).await {
        // 1.0.34, for example, does not know it.
        Err(error) if error.is_unknown_method() => connection.request("status.get", &json!({}), timeouts.start).await?,
        answer => answer?,
    };
    let greeting: Greeting = super::wire::lenient(greeting);
    let protocol = gate(greeting.protocol_version).map_err(GateError::Engine)?;
    let version = insist_on_version(greeting.version).map_err(GateError::Engine)?;
    let account = connection.request("auth.getStatus", &json!({}), timeouts.request).await?;
    Ok(Identity { version, protocol, account: super::wire::lenient(account) })
}

fn gate(found: Option<u64>) -> Result<u64, EngineError> {
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

/// One that does not say is taken for too old.
fn insist_on_version(found: Option<String>) -> Result<String, EngineError> {
    let is_new_enough = |version: &String| version_key(version.trim_start_matches('v')) >= version_key(OLDEST);
    match found {
        Some(version) if is_new_enough(&version) => Ok(version),
        found => {
            let found =
                found.map_or_else(|| "of an unknown version".to_owned(), |version| format!("version {version}"));
            let reason = format!("the Copilot CLI is {found}; this squad needs {OLDEST} or newer");
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
    /// The server of a CLI that is running, and the task that watches it. It ends the CLI when the sender is used or
    /// dropped.
    pub(crate) fn watch(
        options: Options,
        running: Running,
    ) -> (Arc<Self>, oneshot::Sender<()>, impl Future<Output = ()>) {
        let Running { process, connection, identity, home, program, registry } = running;
        let state = watch::Sender::new(State::Connected(Arc::clone(&connection)));
        let server = Arc::new(Self { options, program, home, identity, registry, state });
        let (stop, stopped) = oneshot::channel();
        let watching = Arc::clone(&server).supervise(process, connection, stopped);
        (server, stop, watching)
    }

    /// The connection, once there is one: a lost one is waited for.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>, EngineError> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Reconnecting)).await;
        match settled.as_deref() {
            Ok(State::Connected(connection)) => Ok(Arc::clone(connection)),
            Ok(State::Over(reason)) => Err(EngineError::Unusable { reason: reason.clone(), hint: None }),
            Ok(State::Reconnecting) | Err(_) => {
                Err(EngineError::Unusable { reason: "the engine is gone".into(), hint: None })
            }
        }
    }

    /// Ends what the tools of a session have left running. The CLI names the session to them.
    #[cfg(target_os = "linux")]
    pub(crate) async fn end_left_running(&self, session: &str) -> Vec<String> {
        let marks = [("SQUAD_RUN", self.options.run.as_str()), ("COPILOT_AGENT_SESSION_ID", session)];
        crate::engine::orphans::end_left_running(&marks).await
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn end_left_running(&self, session: &str) -> Vec<String> {
        tracing::debug!("what {session} left running cannot be looked for here");
        Vec::new()
    }

    /// The connection if there is one right now.
    pub(crate) fn connected(&self) -> Option<Arc<Connection>> {
        match &*self.state.borrow() {
            State::Connected(connection) => Some(Arc::clone(connection)),
            State::Reconnecting | State::Over(_) => None,
        }
    }

    pub(crate) fn connection_state(&self) -> ConnectionState {
        match &*self.state.borrow() {
            State::Connected(_) => ConnectionState::Connected,
            State::Reconnecting => ConnectionState::Reconnecting,
            State::Over(_) => ConnectionState::Error,
        }
    }

    pub(crate) async fn connection_changed(&self) {
        // The sender is here, so the channel is open.
        let _ = self.state.subscribe().changed().await;
    }

    /// One's own endpoint offers what one says it does; else the login decides. A model that its policy disables is
    /// not on offer.
    pub(crate) async fn offer(&self) -> Offer {
        let engine = EngineKind::Copilot.name().to_owned();
        if let Some(Provider { models, .. }) = &self.options.provider {
            let default = models.first().cloned();
            let is_users = models.len() == 1;
            return Offer {
                engine,
                models: default.is_some().then(|| models.clone()),
                default,
                efforts: None,
                is_users,
            };
        }
        let asked = match self.connection().await {
            Ok(connection) => models(&connection, self.options.timeouts.offer).await,
            Err(error) => Err(error),
        };
        let asked = asked.inspect_err(|error| tracing::debug!("which models there are is not known: {error}"));
        let offered = asked.unwrap_or_default().into_iter();
        let offered = offered.filter(|model| model.policy.as_deref() != Some("disabled"));
        let efforts: BTreeMap<String, Vec<String>> = offered.map(|model| (model.id, model.efforts)).collect();
        if efforts.is_empty() {
            return Offer { engine, ..Offer::default() };
        }
        let models = Some(efforts.keys().cloned().collect());
        Offer { engine, models, efforts: Some(efforts), ..Offer::default() }
    }

    async fn supervise(
        self: Arc<Self>,
        process: Process,
        connection: Arc<Connection>,
        mut stopped: oneshot::Receiver<()>,
    ) {
        let _unwatched = Unwatched(&self);
        let mut live = Some((process, connection));
        while let Some((mut process, connection)) = live.take() {
            tokio::select! {
                biased;
                _ = &mut stopped => {
                    process.end(&connection, self.options.timeouts.grace).await;
                    return self.over("the engine was stopped");
                }
                reason = self.loss(&mut process, &connection) => {
                    self.lost(&mut process, &connection, &reason).await;
                    live = tokio::select! {
                        biased;
                        _ = &mut stopped => return self.over("the engine was stopped"),
                        live = self.restore(&reason) => live,
                    };
                }
            }
        }
    }

    /// Waits for the loss of the connection, and says how it came.
    async fn loss(&self, process: &mut Process, connection: &Connection) -> String {
        let id = process.id();
        tokio::select! {
            reason = connection.closed() => reason,
            _ = process.ended() => "it ended".to_owned(),
            reason = self.silence(id, connection) => reason,
        }
    }

    /// Waits until a working CLI leaves a ping unanswered and does nothing meanwhile. A stopped process does not close
    /// anything, it hangs; one on a machine that is overloaded only takes its time.
    async fn silence(&self, id: Option<u32>, connection: &Connection) -> String {
        /// Where it cannot be told what a process does.
        const UNKNOWN: u32 = 3;
        let timeouts = &self.options.timeouts;
        let used = || id.and_then(processor_time);
        // Not at once: whatever has just begun to work has just answered.
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
            // That it is closed is seen elsewhere.
            if timeout(timeouts.ping, &mut ping).await.is_ok() {
                continue;
            }
            let (asked, all) = (timeouts.ping.as_secs_f64(), timeouts.hang.as_secs_f64());
            let warning = format!(
                "the engine has not answered for {asked} s; after {all} s in which it does nothing it is given up"
            );
            self.registry.each(|session| session.warn(&warning));
            let mut before = before;
            let mut patience = timeouts.hang.saturating_sub(timeouts.ping);
            if before.is_none() {
                patience *= UNKNOWN;
            }
            while timeout(patience, &mut ping).await.is_err() {
                let now = used();
                if now == before {
                    return format!("it hangs: no answer to a ping, and nothing done for {all} s");
                }
                (before, patience) = (now, timeouts.hang);
            }
        }
    }

    async fn lost(&self, process: &mut Process, connection: &Connection, reason: &str) {
        self.state.send_replace(State::Reconnecting);
        connection.fail(reason);
        let obituary = process.obituary().await;
        process.kill().await;
        tracing::debug!("the engine is lost: {reason}; {obituary}");
        self.registry.each(|session| session.report(Fact::ConnectionLost(format!("{reason}; {obituary}"))));
    }

    /// Starts the CLI again and resumes the live sessions; `None` when it cannot be.
    async fn restore(&self, reason: &str) -> Option<(Process, Arc<Connection>)> {
        let mut last = String::new();
        for attempt in 1..=RETRIES {
            sleep(backoff(self.options.timeouts.backoff, attempt)).await;
            match launch(&self.options, &self.program, &self.home, &self.registry).await {
                Ok(running) => {
                    self.reopen(&running.connection).await;
                    self.restored(attempt, reason);
                    self.state.send_replace(State::Connected(Arc::clone(&running.connection)));
                    return Some((running.process, running.connection));
                }
                Err(error) => last = error.to_string(),
            }
        }
        self.over(&format!("the engine is gone for good: {reason}; after {RETRIES} attempts: {last}"));
        None
    }

    fn restored(&self, attempts: u32, reason: &str) {
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

    fn over(&self, reason: &str) {
        if matches!(*self.state.borrow(), State::Over(_)) {
            return;
        }
        self.state.send_replace(State::Over(reason.to_owned()));
        self.registry.each(|session| session.report(Fact::Lost(reason.to_owned())));
    }
}

/// Tells every session that nobody watches the CLI any more: nobody waits for a watcher that panicked.
struct Unwatched<'a>(&'a Server);

impl Drop for Unwatched<'_> {
    fn drop(&mut self) {
        self.0.over("squad itself failed to watch the engine, which is a defect");
    }
}

/// Resumes a session after a loss. One that had not come to its first turn is on no disk: it is made anew, with a
/// warning.
async fn resume(connection: &Connection, params: &OpenParams, deadline: Duration) -> Result<Option<String>, CallError> {
    match connection.request("session.resume", params, deadline).await {
        Ok(_) => Ok(None),
        Err(CallError::Refused { message, .. }) => {
            connection.request("session.create", params, deadline).await?;
            Ok(Some(format!("the session starts afresh: {message}")))
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

/// 1, 2, 4 times the unit and up to a quarter more, so that several squads do not come back in step.
fn backoff(unit: Duration, attempt: u32) -> Duration {
    let wait = unit * 2_u32.saturating_pow(attempt - 1);
    // A fresh id's random bits are random enough for this, and need no generator of ours.
    let share = f64::from(uuid::Uuid::now_v7().as_bytes()[15]) / 255.0;
    wait + wait.mul_f64(share / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_names_both_versions_and_the_way_out() {
        assert_eq!(gate(Some(3)), Ok(3));
        let older = gate(Some(2)).expect_err("too old");
        assert_eq!(older.to_string(), "the engine speaks protocol version 2; this squad speaks 3");
        assert!(older.hint().is_some_and(|hint| hint.contains("@github/copilot@latest")));
        let newer = gate(Some(4)).expect_err("too new");
        assert!(newer.hint().is_some_and(|hint| hint.contains(KNOWN_GOOD)));
        assert!(matches!(gate(None), Err(EngineError::Protocol { found: None, .. })));
    }

    #[test]
    fn a_cli_that_is_too_old_is_refused_with_both_versions() {
        for version in ["1.0.43", "1.0.102", "v1.0.57", "1.1.0", "2.0.0-1"] {
            assert_eq!(insist_on_version(Some(version.to_owned())), Ok(version.to_owned()));
        }
        for version in ["1.0.34", "1.0.42", "1.0.43-1", "0.9.100", "1.0", "unknown", ""] {
            let error = insist_on_version(Some(version.to_owned())).expect_err(version);
            let expected = format!("the Copilot CLI is version {version}; this squad needs 1.0.43 or newer");
            assert_eq!(error.to_string(), expected);
            assert!(error.hint().is_some_and(|hint| hint.contains("npm install -g @github/copilot@latest")));
        }
        let unknown = insist_on_version(None).expect_err("it does not say").to_string();
        assert_eq!(unknown, "the Copilot CLI is of an unknown version; this squad needs 1.0.43 or newer");
    }

    #[test]
    fn waits_double_with_a_little_jitter() {
        for (attempt, seconds) in [(1, 1.0), (2, 2.0), (3, 4.0)] {
            let wait = backoff(Duration::from_secs(1), attempt).as_secs_f64();
            assert!((seconds..=seconds * 1.25).contains(&wait), "{attempt}: {wait}");
        }
    }
}
