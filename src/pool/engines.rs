//! The engines of a run or a watch. Each is started once, when it is first needed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::{Quotas, Reports};
use crate::engine::{Account, Adapter, Engine, EngineError, RESTART_WAIT, RESTARTS, Startable, backoff};
use crate::env::Clock;
use crate::model::{AvailableModels, Claim, ConnectionState, EventKind, seconds};
use crate::sandbox::Sandbox;

pub(crate) struct Engines {
    /// The name of the engine for agents that name none.
    main: String,
    /// Engines to try in order, with a message, when another cannot start.
    fallback: Vec<String>,
    /// All engines that may be needed.
    startable: BTreeMap<String, Startable>,
    /// By requested name. A fallback is listed under both names.
    running: Mutex<BTreeMap<String, Arc<Engine>>>,
    /// The running main engine, or its fallback.
    main_engine: parking_lot::Mutex<Option<Arc<Engine>>>,
    /// What bounds their programs.
    sandbox: Option<Sandbox>,
    quotas: Quotas,
    /// What they are known to do although they are told not to.
    broken: BTreeMap<String, Vec<Claim>>,
}

impl Engines {
    pub(crate) fn new(main: String, fallback: Vec<String>, startable: BTreeMap<String, Startable>) -> Self {
        let (running, main_engine) = <(Mutex<_>, parking_lot::Mutex<_>)>::default();
        let quotas = Quotas::new(None, Clock::System);
        Self { main, fallback, startable, running, main_engine, sandbox: None, quotas, broken: BTreeMap::new() }
    }

    /// With the claims that each is known to break, of which every run is told.
    pub(crate) fn breaking(self, broken: BTreeMap<String, Vec<Claim>>) -> Self {
        Self { broken, ..self }
    }

    pub(crate) fn within(self, sandbox: Option<Sandbox>) -> Self {
        Self { sandbox, ..self }
    }

    /// With what is known of the quotas of their accounts.
    pub(crate) fn with_quotas(self, quotas: Quotas) -> Self {
        Self { quotas, ..self }
    }

    pub(super) fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Whose quota the engine of a name uses.
    pub(super) fn account(&self, name: &str) -> Account {
        let account = self.startable.get(name).and_then(Startable::account);
        account.unwrap_or_else(|| Account::new(name, None, []))
    }

    /// Whether the engine of a name tells tokens, and what they cost.
    pub(super) fn tells_usage(&self, name: &str) -> [bool; 2] {
        self.startable.get(name).map_or([true; 2], Startable::tells_usage)
    }

    /// The engine of a name, or the main one, and those that may stand in for it.
    pub(super) fn candidates<'e>(&'e self, name: Option<&'e str>) -> Vec<&'e str> {
        let name = name.unwrap_or(&self.main);
        std::iter::once(name).chain(self.others(name)).collect()
    }

    pub(super) fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// The folders that an engine's own sandbox lets its programs write wherever they work, by its name.
    pub(super) fn writable_folders(&self) -> impl Iterator<Item = (&str, Vec<PathBuf>)> {
        self.startable.iter().map(|(name, startable)| (name.as_str(), startable.writable_folders()))
    }

    /// The engine of a name, or the main one. Starts it if necessary, and reports the start and any fallback.
    pub(crate) async fn get(&self, name: Option<&str>, reports: &Reports) -> Result<Arc<Engine>, EngineError> {
        let name = name.unwrap_or(&self.main);
        let mut running = self.running.lock().await;
        if let Some(engine) = running.get(name) {
            return Ok(Arc::clone(engine));
        }
        let (mut fallbacks, mut first_error) = (Vec::new(), None);
        let others: Vec<&str> = self.others(name).collect();
        for (index, candidate) in std::iter::once(name).chain(others.iter().copied()).enumerate() {
            let running_engine = running.get(candidate).cloned();
            match self.start(candidate, running_engine, reports, &mut fallbacks).await {
                Ok(engine) => {
                    running.insert(candidate.to_owned(), Arc::clone(&engine));
                    running.insert(name.to_owned(), Arc::clone(&engine));
                    if name == self.main {
                        *self.main_engine.lock() = Some(Arc::clone(&engine));
                    }
                    return Ok(engine);
                }
                Err(error) => {
                    if let Some(next) = others.get(index) {
                        fallbacks.push((candidate.to_owned(), (*next).to_owned(), error.to_string()));
                    }
                    first_error.get_or_insert(error);
                }
            }
        }
        let unconfigured = || EngineError::Missing { what: "no engine is configured".to_owned(), hint: String::new() };
        Err(first_error.unwrap_or_else(unconfigured))
    }

    /// Checks that the engine of a name, or the main one, is installed, or one of its fallbacks. Starts nothing.
    pub(crate) fn locate(&self, name: Option<&str>) -> Result<(), EngineError> {
        let name = name.unwrap_or(&self.main);
        let found = self.startable(name).and_then(Startable::locate).map(drop);
        let is_there = |other: &str| self.startable(other).is_ok_and(|other| other.locate().is_ok());
        if found.is_err() && self.others(name).any(is_there) { Ok(()) } else { found }
    }

    /// The engines that may stand in for one.
    fn others<'e>(&'e self, name: &'e str) -> impl Iterator<Item = &'e str> {
        self.fallback.iter().map(String::as_str).filter(move |other| *other != name)
    }

    fn startable(&self, name: &str) -> Result<&Startable, EngineError> {
        let missing = || EngineError::Missing { what: format!("there is no engine `{name}`"), hint: String::new() };
        self.startable.get(name).ok_or_else(missing)
    }

    /// Starts an engine unless it is running. On success, reports the fallbacks that led to it.
    async fn start(
        &self,
        name: &str,
        running_engine: Option<Arc<Engine>>,
        reports: &Reports,
        fallbacks: &mut Vec<(String, String, String)>,
    ) -> Result<Arc<Engine>, EngineError> {
        let started = Instant::now();
        let is_new = running_engine.is_none();
        let engine = match running_engine {
            Some(engine) => engine,
            None => Arc::new(self.start_again(name, reports).await?),
        };
        for (from, to, reason) in fallbacks.drain(..) {
            reports.tell(None, EventKind::EngineFallback { from, to, reason });
        }
        if is_new {
            let (engine, version) = (engine.name().to_owned(), engine.version());
            reports.tell(
                None,
                EventKind::EngineStarted { engine, version, seconds: seconds(started.elapsed()), warm: false },
            );
            if let Some(claims) = self.broken.get(name) {
                reports.tell(None, EventKind::EngineDisobeys { engine: name.to_owned(), claims: claims.clone() });
            }
        }
        Ok(engine)
    }

    /// Starts an engine, and again if its process dies before it is ready: nothing has been asked of it yet.
    async fn start_again(&self, name: &str, reports: &Reports) -> Result<Engine, EngineError> {
        let startable = self.startable(name)?;
        let mut attempts = 0;
        loop {
            match startable.start().await {
                Err(EngineError::Died { reason, .. }) if attempts < RESTARTS => {
                    attempts += 1;
                    let reason = format!("{reason}; it is started again");
                    reports.tell(None, EventKind::ConnectionLost { reason });
                    sleep(backoff(RESTART_WAIT, attempts)).await;
                }
                Ok(engine) if attempts > 0 => {
                    reports.tell(None, EventKind::ConnectionRestored { attempts });
                    return Ok(engine);
                }
                started => return started,
            }
        }
    }

    fn running_main(&self) -> Option<Arc<Engine>> {
        self.main_engine.lock().clone()
    }

    /// The name of the main engine or its fallback, and its version, which is empty before the start.
    pub(super) fn main(&self) -> (String, String) {
        match self.running_main() {
            Some(engine) => (engine.name().to_owned(), engine.version()),
            None => (self.main.clone(), String::new()),
        }
    }

    /// The models of the main engine; none before its start.
    pub(super) async fn offer(&self) -> AvailableModels {
        match self.running_main() {
            Some(engine) => engine.offer().await,
            None => AvailableModels::default(),
        }
    }

    /// The connection of the main engine. Before its start, there is none to lose.
    pub(super) fn connection(&self) -> ConnectionState {
        self.running_main().map_or(ConnectionState::Connected, |engine| engine.connection())
    }

    /// Returns when the main engine's connection changes; never if it has not been started.
    pub(super) async fn connection_changed(&self) {
        match self.running_main() {
            Some(engine) => engine.connection_changed().await,
            None => std::future::pending().await,
        }
    }

    /// Stops all running engines. They are started again when they are needed.
    pub(super) async fn stop(&self) {
        let running = std::mem::take(&mut *self.running.lock().await);
        self.main_engine.lock().take();
        for engine in running.into_values() {
            // An engine may be listed under several names. Only the last reference stops it.
            if let Some(engine) = Arc::into_inner(engine) {
                engine.stop().await;
            }
        }
    }
}

/// A single engine that is already running.
impl From<Engine> for Engines {
    fn from(engine: Engine) -> Self {
        let (main, engine) = (engine.name().to_owned(), Arc::new(engine));
        let running = Mutex::new(BTreeMap::from([(main.clone(), Arc::clone(&engine))]));
        let main_engine = parking_lot::Mutex::new(Some(engine));
        let (fallback, startable) = Default::default();
        let quotas = Quotas::new(None, Clock::System);
        Self { main, fallback, startable, running, main_engine, sandbox: None, quotas, broken: BTreeMap::new() }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::engine::copilot::testing::{READ, answer, options};
    use crate::pool::dispatcher::Message;

    /// The kinds of what is reported while a CLI starts that dies so often before it answers.
    async fn started(deaths: u32) -> (bool, Vec<&'static str>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let greeting = answer(1, r#"{"protocolVersion":3,"version":"1.0.102"}"#);
        let account = answer(2, r#"{"isAuthenticated":true}"#);
        let script = format!(
            "echo x >>\"$0.starts\"; [ $(wc -l <\"$0.starts\") -gt {deaths} ] || kill -KILL $$\n\
             {READ}; {greeting}; {READ}; {account}; cat >/dev/null"
        );
        let startable = Startable::Copilot(Box::new(options(&folder, &script)));
        let engines = Engines::new("copilot".to_owned(), Vec::new(), [("copilot".to_owned(), startable)].into());
        let (reports, mut messages) = Reports::channel();
        let is_started = engines.get(None, &reports).await.is_ok();
        let mut told = Vec::new();
        while let Ok(Message::Report(report)) = messages.try_recv() {
            told.push(report.kind.name());
        }
        engines.stop().await;
        (is_started, told)
    }

    #[tokio::test]
    async fn an_engine_that_dies_while_it_starts_is_started_again_twice() {
        let (lost, restored) = ("connection.lost", "connection.restored");
        assert_eq!(started(0).await, (true, vec!["engine.started"]));
        assert_eq!(started(2).await, (true, vec![lost, lost, restored, "engine.started"]));
        assert_eq!(started(3).await, (false, vec![lost, lost]));
    }
}
