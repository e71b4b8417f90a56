//! Messages that follow upon each other, each of them a run: sessions stay open between them, and what was said is known.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Runtime;

use crate::engine::Engine;
use crate::env::Env;
use crate::error::Failure;
use crate::model::RunId;
use crate::ops::run::orchestrate::{self, Host, Sessions};
use crate::ops::run::order::{self, Ended, Order};
use crate::ops::run::signals::Obeyed;
use crate::ops::run::watch::{self, Asked, WatchFiles};
use crate::ops::{Project, runtime};
use crate::pool::{Cancel, SessionPool, Show};

pub(crate) struct Conversation<'a> {
    env: &'a Env,
    runtime: Runtime,
    id: RunId,
    /// Message and answer, the oldest first.
    turns: Vec<(String, String)>,
    /// Its own sessions, where no watch has them.
    sessions: KeptSessions,
    /// Where a watch has them, if it has.
    watched: Option<WatchFiles>,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(env: &'a Env) -> Result<Self, Failure> {
        let id = env.ids.run(env.clock.now());
        let sessions = KeptSessions::none(id.clone());
        Ok(Self { env, runtime: runtime(env)?, id, turns: Vec::new(), sessions, watched: None })
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
                self.runtime.block_on(send_here(self.env, project, order, show, self.sessions.clone()))
            }
        };
        if let Ok(Ended { answer: Some(answer), .. }) = &ended {
            self.turns.push((message, answer.clone()));
        }
        (show, ended)
    }

    /// Ends its sessions, which can be resumed, and its engine.
    pub(crate) fn close(self) {
        let pool = self.sessions.pool().take();
        if let Some(pool) = pool.and_then(Arc::into_inner) {
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
    order: Order,
    show: S,
    sessions: KeptSessions,
) -> (S, Result<Ended, Failure>) {
    let (canceller, cancel) = Cancel::channel();
    let _obeyed = match Obeyed::by(&canceller, env) {
        Ok(obeyed) => obeyed,
        Err(failure) => return (show, Err(failure)),
    };
    let sessions = Sessions::OfConversation(sessions);
    orchestrate::execute(env, project, order, show, Host { canceller, cancel, sessions }).await
}

/// The sessions of a conversation: begun by the first message that needs any, and left for the next.
#[derive(Clone)]
pub(in crate::ops) struct KeptSessions {
    conversation: RunId,
    pool: Arc<Mutex<Option<Arc<SessionPool>>>>,
}

impl KeptSessions {
    fn none(conversation: RunId) -> Self {
        Self { conversation, pool: Arc::default() }
    }

    /// `None`: there are none yet, or their engine is gone for good.
    pub(super) fn usable(&self) -> Option<Arc<SessionPool>> {
        self.pool().clone().filter(|pool| pool.is_usable())
    }

    pub(super) fn keep(&self, engine: Engine, places: usize) -> Arc<SessionPool> {
        let pool = Arc::new(SessionPool::of_conversation(engine, places, self.conversation.clone()));
        self.pool().replace(Arc::clone(&pool));
        pool
    }

    fn pool(&self) -> MutexGuard<'_, Option<Arc<SessionPool>>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
