//! The engines of a run or a watch: each is started once, when somebody first needs it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Reports;
use crate::engine::{Adapter, Engine, EngineError, Startable};
use crate::model::{AvailableModels, ConnectionState, EventKind, seconds};

pub(crate) struct Engines {
    /// That of whoever names none.
    main: String,
    /// Tried in order, loudly, when one cannot start.
    fallback: Vec<String>,
    /// How each is started that may be needed.
    startable: BTreeMap<String, Startable>,
    /// By the names under which they were asked for.
    running: Mutex<BTreeMap<String, Arc<Engine>>>,
    /// The main one, or what took its place.
    main_engine: OnceLock<Arc<Engine>>,
}

impl Engines {
    pub(crate) fn new(main: String, fallback: Vec<String>, startable: BTreeMap<String, Startable>) -> Self {
        Self { main, fallback, startable, running: Mutex::default(), main_engine: OnceLock::new() }
    }

    /// The engine of that name, or the main one. Says which it is when it starts, and what takes its place.
    pub(crate) async fn get(&self, name: Option<&str>, reports: &Reports) -> Result<Arc<Engine>, EngineError> {
        let name = name.unwrap_or(&self.main);
        let mut running = self.running.lock().await;
        if let Some(engine) = running.get(name) {
            return Ok(Arc::clone(engine));
        }
        let (mut fallbacks, mut first_error) = (Vec::new(), None);
        let others: Vec<&str> = self.fallback.iter().map(String::as_str).filter(|other| *other != name).collect();
        for (index, candidate) in std::iter::once(name).chain(others.iter().copied()).enumerate() {
            let known = running.get(candidate).cloned();
            match self.start(candidate, known, reports, &mut fallbacks).await {
                Ok(engine) => {
                    running.insert(candidate.to_owned(), Arc::clone(&engine));
                    running.insert(name.to_owned(), Arc::clone(&engine));
                    if name == self.main {
                        // It is set once: it is looked up above.
                        let _ = self.main_engine.set(Arc::clone(&engine));
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
        let nothing = || EngineError::Missing { what: "no engine is configured".to_owned(), hint: String::new() };
        Err(first_error.unwrap_or_else(nothing))
    }

    async fn start(
        &self,
        name: &str,
        known: Option<Arc<Engine>>,
        reports: &Reports,
        fallbacks: &mut Vec<(String, String, String)>,
    ) -> Result<Arc<Engine>, EngineError> {
        let asked = Instant::now();
        let is_new = known.is_none();
        let engine = match known {
            Some(engine) => engine,
            None => {
                let missing =
                    || EngineError::Missing { what: format!("there is no engine `{name}`"), hint: String::new() };
                Arc::new(self.startable.get(name).ok_or_else(missing)?.start().await?)
            }
        };
        for (from, to, reason) in fallbacks.drain(..) {
            reports.tell(None, EventKind::EngineFallback { from, to, reason });
        }
        if is_new {
            let (engine, version) = (engine.name().to_owned(), engine.version());
            reports.tell(
                None,
                EventKind::EngineStarted { engine, version, seconds: seconds(asked.elapsed()), warm: false },
            );
        }
        Ok(engine)
    }

    /// The name of the main one, or of what took its place; and its version, once it runs.
    pub(super) fn main(&self) -> (String, String) {
        match self.main_engine.get() {
            Some(engine) => (engine.name().to_owned(), engine.version()),
            None => (self.main.clone(), String::new()),
        }
    }

    /// What the main one offers, where it runs.
    pub(super) async fn offer(&self) -> AvailableModels {
        match self.main_engine.get() {
            Some(engine) => engine.offer().await,
            None => AvailableModels::default(),
        }
    }

    /// Of the main one. Where nobody has needed it, there is nothing to lose.
    pub(super) fn connection(&self) -> ConnectionState {
        self.main_engine.get().map_or(ConnectionState::Connected, |engine| engine.connection())
    }

    pub(super) async fn connection_changed(&self) {
        match self.main_engine.get() {
            Some(engine) => engine.connection_changed().await,
            None => std::future::pending().await,
        }
    }

    /// Ends all that run.
    pub(super) async fn stop(self) {
        drop(self.main_engine);
        for engine in self.running.into_inner().into_values() {
            // One may stand under two names; the last of them ends it.
            if let Some(engine) = Arc::into_inner(engine) {
                engine.stop().await;
            }
        }
    }
}

/// One that runs already.
impl From<Engine> for Engines {
    fn from(engine: Engine) -> Self {
        let (main, engine) = (engine.name().to_owned(), Arc::new(engine));
        let running = Mutex::new(BTreeMap::from([(main.clone(), Arc::clone(&engine))]));
        let main_engine = OnceLock::from(engine);
        Self { main, fallback: Vec::new(), startable: BTreeMap::new(), running, main_engine }
    }
}
