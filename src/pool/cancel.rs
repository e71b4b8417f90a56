//! Cancels a run, or one agent of it.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::model::Slug;

#[derive(Default)]
struct Cancelled {
    /// With the reason, if the run is cancelled.
    run: Option<&'static str>,
    agents: BTreeSet<Slug>,
}

/// Cancels agents. There is no way back: a cancelled agent's later work in the run does not begin.
#[derive(Clone)]
pub(crate) struct Canceller(watch::Sender<Cancelled>);

const BY_USER: &str = "cancelled by the user";

impl Canceller {
    /// Cancels the run because its process was told to end. Returns whether the run was not cancelled before.
    pub(crate) fn run(&self) -> bool {
        self.run_because("interrupted")
    }

    /// Cancels the run because the user asked for that.
    pub(crate) fn run_by_user(&self) -> bool {
        self.run_because(BY_USER)
    }

    fn run_because(&self, reason: &'static str) -> bool {
        self.0.send_if_modified(|cancelled| {
            let is_new = cancelled.run.is_none();
            cancelled.run.get_or_insert(reason);
            is_new
        })
    }

    pub(crate) fn agent(&self, agent: &Slug) -> bool {
        self.0.send_if_modified(|cancelled| cancelled.run.is_none() && cancelled.agents.insert(agent.clone()))
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
        self.cancelled.borrow().run.unwrap_or(BY_USER)
    }
}

fn is_set(cancelled: &Cancelled, agents: &[Slug]) -> bool {
    cancelled.run.is_some() || agents.iter().any(|agent| cancelled.agents.contains(agent))
}
