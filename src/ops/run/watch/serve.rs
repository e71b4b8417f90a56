//! Serves one client of a watch.

use std::rc::Rc;
use std::sync::Arc;

use interprocess::local_socket::tokio::Stream;
use tokio::io::{AsyncWriteExt, ReadHalf};
use tokio::task::spawn_local;

use super::Watch;
use super::peer::{Client, Feed, write};
use crate::error::Failure;
use crate::ops::Project;
use crate::ops::run::host::{EngineKey, FromClient, FromHost, Incoming, Request, to_line};
use crate::ops::run::orchestrate::{self, Host, Sessions};
use crate::ops::run::order::{Order, flag_settings};
use crate::ops::run::resume;
use crate::pool::{Cancel, Canceller, SessionPool};

impl Watch {
    pub(super) async fn connect(self: Rc<Self>, stream: Stream) {
        let (receiver, mut sender) = tokio::io::split(stream);
        let mut incoming = Incoming::new(receiver);
        let mut reply = async |reply: FromHost| sender.write_all(&to_line(&reply)).await.is_ok();
        let request = match incoming.next().await {
            Some(FromClient::Orchestrate(request)) => request,
            Some(FromClient::Status {}) => {
                reply(FromHost::Watching(Box::new(self.state()))).await;
                return;
            }
            _ => return,
        };
        if !reply(FromHost::Ready {}).await || !matches!(incoming.next().await, Some(FromClient::Go {})) {
            return;
        }
        let (client, queue) = Client::new(self.answers);
        let writing = spawn_local(write(sender, queue, Arc::clone(&client)));
        self.execute_request(*request, incoming, client).await;
        // Queued messages are still sent.
        let _ = writing.await;
    }

    async fn execute_request(&self, request: Request, incoming: Incoming<ReadHalf<Stream>>, client: Arc<Client>) {
        let (project, order, pool) = match self.prepare(request).await {
            Ok(prepared) => prepared,
            Err(reason) => return client.end(&FromHost::Declined { reason }),
        };
        let (canceller, cancel) = Cancel::channel();
        let active_run = ActiveRun::begin(self, canceller.clone(), Arc::clone(&client));
        let order = Order { land: Some(client.lander()), ask: order.ask.map(|_| client.asker()), ..order };
        let feed = Feed { watch: self.events.clone(), client: Some(Arc::clone(&client)) };
        let sessions = Sessions::Team(pool);
        let host = Host { canceller: canceller.clone(), cancel, sessions };
        let ended = tokio::select! {
            (_, ended) = orchestrate::execute(&self.env, &project, order, feed, host) => ended,
            never = client.listen(incoming, || _ = canceller.run()) => match never {},
        };
        drop(active_run);
        let last = match ended {
            Ok(ended) => FromHost::Ended(Box::new(ended)),
            Err(failure) => FromHost::Failed(Box::new(failure)),
        };
        client.end(&last);
    }

    /// Reads the team again, because it may have changed since the client checked the order.
    async fn prepare(&self, request: Request) -> Result<(Project, Order, Arc<SessionPool>), String> {
        let of = |failure: Failure| failure.message;
        let project = Project::open(&self.env, &self.directory, flag_settings(&request.flags)).map_err(of)?;
        project.require_sound().map_err(of)?;
        let here = EngineKey::of(&self.env, &project);
        let differs = |engine: &EngineKey| engine.difference(&self.engine_key).or_else(|| engine.difference(&here));
        if let Some(others) = request.engine.as_ref().and_then(differs) {
            return Err(format!("it was started with different values of {others}; restart it from here"));
        }
        let resumed = match &request.resume {
            Some(run) => Some(resume::find(&self.env, &project, run.as_str()).map_err(of)?),
            None => None,
        };
        let pool = self.pool(&project).await.map_err(of)?;
        let order = Order { resumed, ..request.order(project.settings.sessions.default_tier) };
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
