//! The engine of a watch, and its reports between runs.

use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Watch;
use super::peer::Feed;
use crate::engine::rehearsal::Script;
use crate::engine::spawn;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{ConnectionState, Event, EventKind, RunId};
use crate::ops::Project;
use crate::ops::run::recall;
use crate::ops::team::engines;
use crate::ops::team::sandbox;
use crate::ops::team::secrets;
use crate::pool::{Dispatcher, Journal, LiveSessions, Reports, SessionPool};
use crate::view::Redacting;

/// Reports events between runs, which are shown but not recorded: runs record their own messages and usage.
pub(super) fn report(
    env: &Env,
    project: &Project,
    run: &RunId,
    events: &mpsc::UnboundedSender<Event>,
) -> (Reports, JoinHandle<()>) {
    let (reports, messages) = Reports::channel();
    let feed = Feed { watch: events.clone(), client: None };
    let dispatcher = Dispatcher {
        run: run.clone(),
        past: Vec::new(),
        clock: env.clock.clone(),
        ids: env.ids.clone(),
        journal: NoJournal,
        show: Box::new(Redacting::new(Box::new(feed), secrets::redactor(env, &project.folder.root))),
        sessions: Arc::new(LiveSessions::default()),
    };
    let reporting = spawn(async move { drop(dispatcher.serve(messages).await) });
    (reports, reporting)
}

async fn start(
    env: &Env,
    project: &Project,
    run: &RunId,
    script: Option<Script>,
    reports: &Reports,
) -> Result<Arc<SessionPool>, Failure> {
    let bounds = sandbox::of_run(env, project, &[])?;
    bounds.report(reports);
    let engines = engines::prepare(env, project, run, script, bounds.sandbox.as_ref());
    engines.get(None, reports).await?;
    let (places, store) = (project.settings.sessions.max_concurrent, recall::store(project));
    Ok(Arc::new(SessionPool::keeping(engines, places, store, reports.clone())))
}

impl Watch {
    /// Starts or restarts the engine.
    pub(super) async fn start(&self, project: &Project) -> Result<Arc<SessionPool>, Failure> {
        self.is_starting.set(true);
        self.note_connection();
        let script = self.script.clone();
        let started = start(&self.env, project, &self.run, script, &self.reports).await;
        self.is_starting.set(false);
        if let Ok(pool) = &started {
            self.pool.replace(Some(Arc::clone(pool)));
            self.started.notify_one();
        }
        self.note_connection();
        started
    }

    pub(super) fn connection(&self) -> ConnectionState {
        let pool = self.pool.borrow();
        match pool.as_ref() {
            _ if self.is_starting.get() => ConnectionState::Connecting,
            Some(pool) => pool.connection(),
            None => ConnectionState::Disconnected,
        }
    }

    /// Reports the connection's state if it has changed.
    pub(super) fn note_connection(&self) {
        let state = self.connection();
        if self.reported_connection.replace(state) == state {
            return;
        }
        let engine = self.engine().0;
        self.reports.tell(None, EventKind::ConnectionChanged { engine, state });
    }

    /// The engine's name and version; before it runs, the configured name.
    pub(super) fn engine(&self) -> (String, String) {
        match self.pool.borrow().as_ref() {
            Some(pool) => pool.main_engine(),
            None => (self.engine_name.clone(), String::new()),
        }
    }

    /// Reports that the engine is lost or restored between runs.
    pub(super) async fn tell_connection(self: Rc<Self>) {
        loop {
            let pool = self.pool.borrow().clone();
            let changed = async {
                match &pool {
                    Some(pool) => pool.connection_changed().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = self.started.notified() => continue,
            }
            let kind = match self.connection() {
                ConnectionState::Connecting | ConnectionState::Connected => {
                    EventKind::ConnectionRestored { attempts: 1 }
                }
                ConnectionState::Reconnecting => {
                    EventKind::ConnectionLost { reason: "the engine has ended".to_owned() }
                }
                ConnectionState::Error => {
                    EventKind::ConnectionLost { reason: "the engine is gone for good".to_owned() }
                }
                ConnectionState::Disconnected => continue,
            };
            self.reports.tell(None, kind);
            self.note_connection();
        }
    }
}

/// A journal that records nothing.
struct NoJournal;

impl Journal for NoJournal {
    async fn write(&mut self, _: &[Event]) -> Result<(), String> {
        Ok(())
    }
}
