//! What a run answers to other processes: what its agents do, messages to them, and that it is to end.

use std::future::pending;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::tokio::Listener as _;
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use super::frames::{FromClient, FromHost, Incoming, to_line};
use super::socket::listen;
use crate::model::{AgentState, EventKind, Slug};
use crate::ops::run::lease::{LEASE_CHECK, Lease};
use crate::pool::{Canceller, LiveSessions, Reports, UserMessages};

/// Delay after a failed connection.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The run's side of its socket.
#[derive(Clone)]
pub(in crate::ops) struct Requests {
    /// Gone when the run has ended.
    pub(in crate::ops) lease: Weak<Lease>,
    pub(in crate::ops) sessions: Arc<LiveSessions>,
    pub(in crate::ops) canceller: Canceller,
    pub(in crate::ops) user_messages: Arc<UserMessages>,
    pub(in crate::ops) reports: Reports,
}

impl Requests {
    /// Serves until it is dropped.
    pub(in crate::ops) async fn serve(self) {
        let mut listener = self.listen();
        let mut serving = JoinSet::new();
        let mut check = interval(LEASE_CHECK);
        loop {
            tokio::select! {
                connection = accept(listener.as_ref()) => match connection {
                    Ok(connection) => drop(serving.spawn(self.clone().reply(connection))),
                    // For example too many open files; a later connection may succeed.
                    Err(_) => sleep(RETRY_DELAY).await,
                },
                Some(_) = serving.join_next() => {}
                _ = check.tick() => if self.lease.upgrade().is_some_and(|lease| lease.restore()) {
                    listener = self.listen();
                },
            }
        }
    }

    /// `None`: no socket can be made here; the run goes on, and cannot be asked anything.
    fn listen(&self) -> Option<Listener> {
        let listener = listen(self.lease.upgrade()?.endpoint());
        listener.inspect_err(|error| tracing::warn!("other processes cannot reach this run: {error}")).ok()
    }

    async fn reply(self, stream: Stream) {
        let (receiver, mut sender) = tokio::io::split(stream);
        if let Some(reply) = self.handle(receiver).await {
            // Whoever asked may be gone.
            let _ = sender.write_all(&to_line(&reply)).await;
            let _ = sender.flush().await;
        }
    }

    async fn handle(&self, receiver: impl AsyncRead + Unpin) -> Option<FromHost> {
        match Incoming::new(receiver).next().await? {
            FromClient::Status {} => return Some(FromHost::Activity(Box::new(self.sessions.activity()))),
            FromClient::Cancel { agent } => self.cancel(agent.as_ref()).await,
            FromClient::Say { agent, text } => {
                if !self.say(&agent, &text).await {
                    return Some(FromHost::Declined { reason: format!("{agent} is not working") });
                }
            }
            _ => return Some(FromHost::Declined { reason: "a run takes no such request".to_owned() }),
        }
        Some(FromHost::Done {})
    }

    /// `false`: the agent is not working, and does not get the message.
    async fn say(&self, agent: &Slug, text: &str) -> bool {
        let waits = self.sessions.activity().agents.get(agent) == Some(&AgentState::Waiting);
        let is_delivered = self.user_messages.say(agent, text, waits);
        if is_delivered {
            // The message is delivered even if it cannot be recorded.
            let _ = self.reports.record(Some(agent), EventKind::UserMessage { text: text.to_owned() }).await;
        }
        is_delivered
    }

    async fn cancel(&self, agent: Option<&Slug>) {
        let is_new = match agent {
            Some(agent) => self.canceller.agent(agent),
            None => self.canceller.run_by_user(),
        };
        if is_new {
            let reason = "requested by the user".to_owned();
            // It is cancelled even if that cannot be recorded.
            let _ = self.reports.record(agent, EventKind::CancelRequested { reason }).await;
        }
    }
}

async fn accept(listener: Option<&Listener>) -> io::Result<Stream> {
    match listener {
        Some(listener) => listener.accept().await,
        None => pending().await,
    }
}
