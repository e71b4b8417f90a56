//! Serves one client of a watch.

use std::rc::Rc;
use std::sync::Arc;

use interprocess::local_socket::tokio::Stream;
use tokio::io::{AsyncWriteExt, ReadHalf};
use tokio::task::spawn_local;

use super::Watch;
use super::engine_key::EngineKey;
use super::peer::{Client, Feed, write};
use super::wire::{FromClient, FromWatch, Incoming, Request, to_line};
use crate::error::Failure;
use crate::model::Outcome;
use crate::ops::Project;
use crate::ops::run::orchestrate::{self, Host, Sessions};
use crate::ops::run::order::{Order, flag_settings};
use crate::ops::run::resume;
use crate::pool::{Ask, Cancel, Canceller, SessionPool};
use crate::route::RouteOptions;

impl Watch {
    pub(super) async fn connect(self: Rc<Self>, stream: Stream) {
        let (receiver, mut sender) = tokio::io::split(stream);
        if sender.write_all(&to_line(&FromWatch::Ready {})).await.is_err() {
            return;
        }
        let mut incoming = Incoming::new(receiver);
        let request = match incoming.next().await {
            Some(FromClient::Orchestrate(request)) => request,
            Some(FromClient::Leave { conversation }) => {
                let pool = self.pool.borrow().clone();
                if let Some(pool) = pool {
                    pool.reset(&conversation).await;
                }
                return;
            }
            _ => return,
        };
        let (client, queue) = Client::new(self.answers);
        let writing = spawn_local(write(sender, queue, Arc::clone(&client)));
        self.execute_request(*request, incoming, client).await;
        // Queued messages are still sent.
        let _ = writing.await;
    }

    async fn execute_request(&self, request: Request, incoming: Incoming<ReadHalf<Stream>>, client: Arc<Client>) {
        let (project, order, pool) = match self.prepare(request).await {
            Ok(prepared) => prepared,
            Err(reason) => return client.end(&FromWatch::Declined { reason }),
        };
        let (canceller, cancel) = Cancel::channel();
        let active_run = ActiveRun::begin(self, canceller.clone(), Arc::clone(&client));
        let is_alone = order.conversation.is_none();
        let order = Order { land: Some(client.lander()), ask: order.ask.map(|_| client.asker()), ..order };
        let feed = Feed { watch: self.events.clone(), client: Some(Arc::clone(&client)) };
        let sessions = Sessions::Team(Arc::clone(&pool));
        let host = Host { canceller: canceller.clone(), cancel, sessions };
        let ended = tokio::select! {
            (_, ended) = orchestrate::execute(&self.env, &project, order, feed, host) => ended,
            never = client.listen(incoming, || _ = canceller.run()) => match never {},
        };
        drop(active_run);
        // Sessions keep their history for a run that may be resumed, and for a conversation.
        let over = ended
            .as_ref()
            .ok()
            .filter(|ended| is_alone && ended.status == Outcome::Completed)
            .map(|ended| ended.run.clone());
        let last = match ended {
            Ok(ended) => FromWatch::Ended(Box::new(ended)),
            Err(failure) => FromWatch::Failed(Box::new(failure)),
        };
        client.end(&last);
        if let Some(run) = over {
            pool.reset(&run).await;
        }
    }

    /// Reads the team again, because it may have changed since the client checked the order.
    async fn prepare(&self, request: Request) -> Result<(Project, Order, Arc<SessionPool>), String> {
        let of = |failure: Failure| failure.message;
        let Request { message, agents, tier, flags, attachments, permissions, asks, commit, .. } = request;
        let Request { resume, conversation, engine, .. } = request;
        let project = Project::open(&self.env, &self.directory, flag_settings(&flags)).map_err(of)?;
        project.require_sound().map_err(of)?;
        let here = EngineKey::of(&self.env, &project);
        if let Some(others) = engine.difference(&self.engine_key).or_else(|| engine.difference(&here)) {
            return Err(format!("it was started with different values of {others}; restart it from here"));
        }
        let resumed = match resume {
            Some(run) => Some(resume::find(&self.env, &project, run.as_str()).map_err(of)?),
            None => None,
        };
        let pool = self.pool(&project).await.map_err(of)?;
        let default_tier = project.settings.sessions.default_tier;
        let nobody: Ask = Arc::new(|_, _| ());
        let order = Order {
            message,
            route_options: RouteOptions { agents, tier, default_tier },
            flags,
            attachments,
            permissions,
            script: None,
            commit,
            ask: asks.then_some(nobody),
            land: None,
            conversation,
            resumed,
            members: Vec::new(),
            described: None,
        };
        Ok((project, order, pool))
    }
}

/// Registers an active run, so that the watch can cancel it, until it is dropped.
struct ActiveRun<'w> {
    watch: &'w Watch,
    number: u64,
}

impl<'w> ActiveRun<'w> {
    fn begin(watch: &'w Watch, canceller: Canceller, client: Arc<Client>) -> Self {
        let number = watch.connections.replace(watch.connections.get() + 1);
        watch.active_runs.borrow_mut().insert(number, (canceller, client));
        Self { watch, number }
    }
}

impl Drop for ActiveRun<'_> {
    fn drop(&mut self) {
        self.watch.active_runs.borrow_mut().remove(&self.number);
        self.watch.ended.notify_one();
    }
}
