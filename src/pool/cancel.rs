//! Cancelling a run, or one agent of it.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::model::Slug;

#[derive(Default)]
struct Cancelled {
    run: bool,
    agents: BTreeSet<Slug>,
}

/// Tells agents to stop. What was cancelled once stays so: an agent's later work in the run does not begin.
#[derive(Clone)]
pub(crate) struct Canceller(watch::Sender<Cancelled>);

impl Canceller {
    /// Says whether that is news.
    pub(crate) fn run(&self) -> bool {
        self.0.send_if_modified(|cancelled| !std::mem::replace(&mut cancelled.run, true))
    }

    pub(crate) fn agent(&self, agent: &Slug) -> bool {
        self.0.send_if_modified(|cancelled| !cancelled.run && cancelled.agents.insert(agent.clone()))
    }
}

/// Hears of it: for the run as a whole, or for one agent.
#[derive(Clone)]
pub(crate) struct Cancel {
    cancelled: watch::Receiver<Cancelled>,
    agent: Option<Slug>,
}

impl Cancel {
    pub(crate) fn channel() -> (Canceller, Self) {
        let (sender, cancelled) = watch::channel(Cancelled::default());
        (Canceller(sender), Self { cancelled, agent: None })
    }

    /// The same for an agent, who is cancelled with the run or alone.
    pub(crate) fn of(&self, agent: &Slug) -> Self {
        Self { cancelled: self.cancelled.clone(), agent: Some(agent.clone()) }
    }

    pub(crate) fn is_set(&self) -> bool {
        is_set(&self.cancelled.borrow(), self.agent.as_ref())
    }

    /// Returns when it is set; never, when nobody can set it any more.
    pub(crate) async fn wait(&mut self) {
        let agent = self.agent.as_ref();
        if self.cancelled.wait_for(|cancelled| is_set(cancelled, agent)).await.is_err() {
            std::future::pending().await
        }
    }

    /// What became of the work.
    pub(crate) fn reason(&self) -> &'static str {
        if self.cancelled.borrow().run { "interrupted" } else { "cancelled from another terminal" }
    }
}

fn is_set(cancelled: &Cancelled, agent: Option<&Slug>) -> bool {
    cancelled.run || agent.is_some_and(|agent| cancelled.agents.contains(agent))
}
