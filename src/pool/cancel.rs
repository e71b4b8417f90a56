//! Cancels a run, or one agent of it.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::model::Slug;

#[derive(Default)]
struct Cancelled {
    run: bool,
    agents: BTreeSet<Slug>,
}

/// Cancels agents. There is no way back: a cancelled agent's later work in the run does not begin.
#[derive(Clone)]
pub(crate) struct Canceller(watch::Sender<Cancelled>);

impl Canceller {
    /// Returns whether the run was not cancelled before.
    pub(crate) fn run(&self) -> bool {
        self.0.send_if_modified(|cancelled| !std::mem::replace(&mut cancelled.run, true))
    }

    pub(crate) fn agent(&self, agent: &Slug) -> bool {
        self.0.send_if_modified(|cancelled| !cancelled.run && cancelled.agents.insert(agent.clone()))
    }
}

/// Observes cancellation of the run or of certain agents.
#[derive(Clone)]
pub(crate) struct Cancel {
    cancelled: watch::Receiver<Cancelled>,
    agents: Vec<Slug>,
}

impl Cancel {
    pub(crate) fn channel() -> (Canceller, Self) {
        let (sender, cancelled) = watch::channel(Cancelled::default());
        (Canceller(sender), Self { cancelled, agents: Vec::new() })
    }

    /// The same for work that is cancelled together with any of these agents.
    pub(crate) fn of(&self, agents: Vec<Slug>) -> Self {
        Self { cancelled: self.cancelled.clone(), agents }
    }

    pub(crate) fn is_set(&self) -> bool {
        is_set(&self.cancelled.borrow(), &self.agents)
    }

    /// Returns when cancelled. Never returns if nobody can cancel any more.
    pub(crate) async fn wait(&mut self) {
        let agents = &self.agents;
        if self.cancelled.wait_for(|cancelled| is_set(cancelled, agents)).await.is_err() {
            std::future::pending().await
        }
    }

    /// The reason recorded as the outcome.
    pub(crate) fn reason(&self) -> &'static str {
        if self.cancelled.borrow().run { "interrupted" } else { "cancelled by the user" }
    }
}

fn is_set(cancelled: &Cancelled, agents: &[Slug]) -> bool {
    cancelled.run || agents.iter().any(|agent| cancelled.agents.contains(agent))
}
