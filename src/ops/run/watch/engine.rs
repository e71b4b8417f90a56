//! The engine of a watch, and what is reported of it between runs.

use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Watch;
use super::peer::Feed;
use crate::engine::rehearsal::Script;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{ConnectionState, Event, RunId, What};
use crate::ops::Project;
use crate::ops::team::engines;
use crate::ops::team::secrets;
use crate::pool::{Dispatcher, Journal, LiveSessions, Reports, SessionPool};
use crate::view::Cautious;

/// Of what happens between runs: shown, and not recorded. The runs' own record has what they said and used.
pub(super) fn report(
    env: &Env,
    project: &Project,
    run: &RunId,
    events: &mpsc::UnboundedSender<Event>,
) -> (Reports, JoinHandle<()>) {
    let (reports, messages) = Reports::channel();
    let dispatcher = Dispatcher {
        run: run.clone(),
        past: Vec::new(),
        clock: env.clock.clone(),
        ids: env.ids.clone(),
        journal: Unrecorded,
        show: Cautious::new(Feed { watch: events.clone(), client: None }, secrets::redactor(env, &project.folder.root)),
        sessions: Arc::new(LiveSessions::default()),
    };
    let reporting = tokio::spawn(async move { drop(dispatcher.serve(messages).await) });
    (reports, reporting)
}

async fn start(
    env: &Env,
    project: &Project,
    run: &RunId,
    script: Option<Script>,
    reports: &Reports,
) -> Result<Arc<SessionPool>, Failure> {
    let engines = engines::prepare(env, project, run, script);
    engines.get(None, reports).await?;
    Ok(Arc::new(SessionPool::keeping(engines, project.settings.sessions.max_concurrent, reports.clone())))
}

impl Watch {
    /// Starts the engine, for the first time or again.
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

    /// Tells of another state than the one that was told last.
    pub(super) fn note_connection(&self) {
        let state = self.connection();
        if self.told.replace(state) == state {
            return;
        }
        let engine = self.engine().0;
        self.reports.tell(None, What::ConnectionChanged { engine, state });
        self.write_state();
    }

    /// Its name and version. Until there is one, the name of the one that is to be.
    pub(super) fn engine(&self) -> (String, String) {
        match self.pool.borrow().as_ref() {
            Some(pool) => pool.main_engine(),
            None => (self.engine_name.clone(), String::new()),
        }
    }

    /// Tells that the engine is lost, and back, while nobody works.
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
            let what = match self.connection() {
                ConnectionState::Connecting | ConnectionState::Connected => What::ConnectionRestored { attempts: 1 },
                ConnectionState::Reconnecting => What::ConnectionLost { reason: "the engine has ended".to_owned() },
                ConnectionState::Error => What::ConnectionLost { reason: "the engine is gone for good".to_owned() },
                ConnectionState::Disconnected => continue,
            };
            self.reports.tell(None, what);
            self.note_connection();
        }
    }
}

/// Keeps nothing.
struct Unrecorded;

impl Journal for Unrecorded {
    async fn write(&mut self, _: &[Event]) -> Result<(), String> {
        Ok(())
    }
}
