//! Messages that follow upon each other, each of them a run: sessions stay open between them, and what was said is known.

use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::env::Env;
use crate::error::Failure;
use crate::model::RunId;
use crate::ops::run::orchestrate::{self, Host};
use crate::ops::run::order::{self, Ended, Order};
use crate::ops::run::signals::Signals;
use crate::ops::run::watch::{self, Asked, WatchFiles};
use crate::ops::team::engines;
use crate::ops::{Project, runtime};
use crate::pool::{Cancel, SessionPool, Show};

pub(crate) struct Conversation<'a> {
    env: &'a Env,
    runtime: Runtime,
    id: RunId,
    /// Message and answer, the oldest first.
    turns: Vec<(String, String)>,
    /// Its own sessions, where no watch has them.
    pool: Option<Arc<SessionPool>>,
    /// Where a watch has them, if it has.
    watched: Option<WatchFiles>,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(env: &'a Env) -> Result<Self, Failure> {
        let id = env.ids.run(env.clock.now());
        Ok(Self { env, runtime: runtime(env)?, id, turns: Vec::new(), pool: None, watched: None })
    }

    /// Carries out the next message: in the sessions of `squad watch`, or in its own.
    pub(crate) fn send<S: Show + Send + 'static>(
        &mut self,
        project: &Project,
        order: Order,
        mut show: S,
    ) -> (S, Result<Ended, Failure>) {
        let conversation = Some(order::Conversation { id: self.id.clone(), earlier: self.turns.clone() });
        let order = Order { conversation, ..order };
        let message = order.message.clone();
        let (show, ended) = match watch::orchestrate(self.env, project, &order, &mut show) {
            Asked::Ran(ended) => {
                self.watched = Some(WatchFiles::of(project));
                (show, *ended)
            }
            Asked::Nobody | Asked::Declined(_) => {
                let mut pool = self.pool.take();
                let done = self.runtime.block_on(send_here(self.env, project, order, show, (&self.id, &mut pool)));
                self.pool = pool;
                done
            }
        };
        if let Ok(Ended { answer: Some(answer), .. }) = &ended {
            self.turns.push((message, answer.clone()));
        }
        (show, ended)
    }

    /// Ends its sessions, which can be resumed, and its engine.
    pub(crate) fn close(self) {
        if let Some(pool) = self.pool.and_then(Arc::into_inner) {
            self.runtime.block_on(pool.stop());
        }
        if let Some(files) = &self.watched {
            self.runtime.block_on(watch::leave(files, self.id));
        }
        // A question that nobody answered must not keep the program.
        self.runtime.shutdown_background();
    }
}

async fn send_here<S: Show + Send + 'static>(
    env: &Env,
    project: &Project,
    mut order: Order,
    show: S,
    (id, pool): (&RunId, &mut Option<Arc<SessionPool>>),
) -> (S, Result<Ended, Failure>) {
    let (canceller, cancel) = Cancel::channel();
    let obeying = match env.signals.then(Signals::listen) {
        None => None,
        Some(Ok(signals)) => Some(tokio::spawn(signals.obey(canceller.clone()))),
        Some(Err(error)) => return (show, Err(Failure::failed(format!("cannot install signal handlers: {error}")))),
    };
    let usable = match pool.take() {
        Some(usable) if usable.is_usable() => Ok(usable),
        _ => start(env, project, &mut order, id).await,
    };
    let done = match usable {
        Ok(usable) => {
            *pool = Some(Arc::clone(&usable));
            orchestrate::execute(env, project, order, show, Host { canceller, cancel, pool: Some(usable) }).await
        }
        Err(failure) => (show, Err(failure)),
    };
    obeying.inspect(|obeying| obeying.abort());
    done
}

async fn start(env: &Env, project: &Project, order: &mut Order, id: &RunId) -> Result<Arc<SessionPool>, Failure> {
    let started = engines::start(env, project, id, order.script.take()).await?;
    let places = project.settings.sessions.max_concurrent;
    Ok(Arc::new(SessionPool::of_conversation(started.engine, places, id.clone())))
}
