//! What a watch does for one client.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interprocess::local_socket::tokio::Stream;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;

use super::wire::{FromClient, FromWatch, Incoming, Request, written};
use super::{Feed, Watch, engine_key};
use crate::error::Failure;
use crate::model::Outcome;
use crate::ops::Project;
use crate::ops::decisions::landing::Landed;
use crate::ops::run::orchestrate::{self, Host};
use crate::ops::run::order::{Land, Order, flag_settings};
use crate::ops::run::resume;
use crate::pool::{Ask, Cancel, SessionPool};
use crate::route::Wishes;

/// Lines that may wait for a client. One that reads more slowly is let go.
const QUEUE: usize = 10_000;

/// What is open between a run and the client it is for.
struct Client {
    lines: mpsc::Sender<Vec<u8>>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    asked: u64,
    answers: BTreeMap<u64, oneshot::Sender<String>>,
    landed: Option<oneshot::Sender<Result<Landed, Failure>>>,
    is_gone: bool,
}

impl Watch {
    pub(super) async fn connect(self: Rc<Self>, stream: Stream) {
        let (receiver, sender) = tokio::io::split(stream);
        let mut incoming = Incoming::new(receiver);
        let Some(FromClient::Orchestrate(request)) = incoming.next().await else { return };
        let (lines, queue) = mpsc::channel(QUEUE);
        let writing = spawn_local(write(sender, queue));
        self.carry_out(*request, incoming, lines).await;
        // What is queued is still sent.
        let _ = writing.await;
    }

    async fn carry_out(&self, request: Request, incoming: Incoming<ReadHalf<Stream>>, lines: mpsc::Sender<Vec<u8>>) {
        let (project, order, pool) = match self.prepare(request).await {
            Ok(prepared) => prepared,
            Err(reason) => return drop(lines.send(written(&FromWatch::Declined { reason })).await),
        };
        let (canceller, cancel) = Cancel::channel();
        let number = self.connections.replace(self.connections.get() + 1);
        self.at_work.borrow_mut().insert(number, canceller.clone());
        let client = Arc::new(Client { lines: lines.clone(), waiting: Mutex::default() });
        let is_alone = order.conversation.is_none();
        let order = Order { land: Some(client.lands()), ask: order.ask.map(|_| client.asks()), ..order };
        let feed = Feed { watch: self.events.clone(), client: Some(lines.clone()) };
        let host = Host { canceller: canceller.clone(), cancel, pool: Some(Arc::clone(&pool)) };
        let ended = tokio::select! {
            (_, ended) = orchestrate::execute(&self.env, &project, order, feed, host) => ended,
            never = client.listen(incoming, || _ = canceller.run()) => match never {},
        };
        self.at_work.borrow_mut().remove(&number);
        self.ended.notify_one();
        // Who may be resumed keeps what was said, and so does a conversation.
        let over = ended
            .as_ref()
            .ok()
            .filter(|ended| is_alone && ended.status == Outcome::Completed)
            .map(|ended| ended.run.clone());
        let last = match ended {
            Ok(ended) => FromWatch::Ended(Box::new(ended)),
            Err(failure) => FromWatch::Failed(Box::new(failure)),
        };
        // A client that is gone needs no end.
        let _ = lines.try_send(written(&last));
        drop((lines, client));
        if let Some(run) = over {
            pool.reset(&run).await;
        }
    }

    /// What a client has checked is read anew: the team is what it is here and now.
    async fn prepare(&self, request: Request) -> Result<(Project, Order, Arc<SessionPool>), String> {
        let of = |failure: Failure| failure.message;
        let Request { message, agents, tier, flags, attachments, permissions, asks, commit, .. } = request;
        let Request { resume, conversation, engine, .. } = request;
        let project = Project::open(&self.env, &self.directory, flag_settings(&flags)).map_err(of)?;
        project.insist_on_sound().map_err(of)?;
        if engine != self.engine_key || engine_key(&self.env, &project) != engine {
            return Err("its engine, keys or endpoint are others".to_owned());
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
            wishes: Wishes { agents, tier, default_tier },
            flags,
            attachments,
            permissions,
            script: None,
            commit,
            ask: asks.then_some(nobody),
            land: None,
            conversation,
            resumed,
        };
        Ok((project, order, pool))
    }
}

impl Client {
    /// Asks the person there.
    fn asks(self: &Arc<Self>) -> Ask {
        let client = Arc::clone(self);
        Arc::new(move |question, answer| {
            let id = {
                let mut waiting = client.waiting();
                if waiting.is_gone {
                    return;
                }
                waiting.asked += 1;
                let id = waiting.asked;
                waiting.answers.insert(id, answer);
                id
            };
            client.send(&FromWatch::Ask { id, question });
        })
    }

    /// Has the client land what was decided: only a command in the foreground commits on the user's branch.
    fn lands(self: &Arc<Self>) -> Land {
        let client = Arc::clone(self);
        Arc::new(move |done| {
            {
                let mut waiting = client.waiting();
                if waiting.is_gone {
                    return;
                }
                waiting.landed = Some(done);
            }
            client.send(&FromWatch::Land {});
        })
    }

    fn send(&self, message: &FromWatch) {
        // Who reads too slowly is let go, and answers nothing.
        if self.lines.try_send(written(message)).is_err() {
            self.leave();
        }
    }

    /// Hears what the client says, also when it says nothing any more: its run goes on.
    async fn listen(&self, mut incoming: Incoming<ReadHalf<Stream>>, cancel: impl Fn()) -> Infallible {
        while let Some(message) = incoming.next().await {
            match message {
                FromClient::Cancel {} => cancel(),
                FromClient::Answer { id, text } => {
                    let answer = self.waiting().answers.remove(&id);
                    if let (Some(answer), Some(text)) = (answer, text) {
                        let _ = answer.send(text);
                    }
                }
                FromClient::Landed(landed) => {
                    let done = self.waiting().landed.take();
                    // Asked for once, it is told once.
                    if let Some(done) = done {
                        let _ = done.send(*landed);
                    }
                }
                FromClient::Orchestrate(_) => break,
            }
        }
        self.leave();
        pending().await
    }

    /// Nobody answers any more: whoever waits is told so by the end of his channel.
    fn leave(&self) {
        *self.waiting() = Waiting { is_gone: true, ..Waiting::default() };
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(mut sender: WriteHalf<Stream>, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if sender.write_all(&line).await.is_err() {
            return;
        }
    }
    let _ = sender.flush().await;
}
