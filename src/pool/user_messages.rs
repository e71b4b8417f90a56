//! The user's messages to agents during a run: working agents get them before their next model call, waiting agents
//! with their first message.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::model::{Event, EventKind, Slug};

#[derive(Default)]
pub(crate) struct UserMessages {
    state: Mutex<State>,
    /// Signals every new message.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<Slug, Vec<String>>,
    /// Agents that are working.
    active: BTreeSet<Slug>,
    /// Messages sent before the run was interrupted, which agents may have received.
    past: BTreeMap<Slug, Vec<String>>,
}

impl UserMessages {
    /// Restores messages sent before the run was interrupted to agents that had not finished.
    pub(crate) fn with_past(events: &[Event]) -> Self {
        let mut state = State::default();
        for event in events {
            let Some(agent) = &event.agent else { continue };
            if let EventKind::UserMessage { text } = &event.kind {
                state.past.entry(agent.clone()).or_default().push(text.clone());
            } else if event.kind.end().is_some() {
                state.past.remove(agent);
            }
        }
        Self { state: Mutex::new(state), ..Self::default() }
    }

    /// `waits`: the agent's work is still to come. Returns `false` if the agent is not working.
    pub(crate) fn say(&self, agent: &Slug, text: &str, waits: bool) -> bool {
        let mut state = self.state.lock();
        let is_accepted = waits || state.active.contains(agent);
        if is_accepted {
            state.waiting.entry(agent.clone()).or_default().push(text.to_owned());
            self.changed.send_replace(());
        }
        is_accepted
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Accepts messages for the agent from now on.
    pub(super) fn listen(&self, agent: &Slug) {
        self.state.lock().active.insert(agent.clone());
    }

    pub(super) fn take(&self, agent: &Slug) -> Vec<String> {
        self.state.lock().waiting.remove(agent).unwrap_or_default()
    }

    pub(super) fn take_past(&self, agent: &Slug) -> Vec<String> {
        self.state.lock().past.remove(agent).unwrap_or_default()
    }

    /// Puts back messages that could not be delivered, before those that came meanwhile.
    pub(super) fn put_back(&self, agent: &Slug, texts: impl IntoIterator<Item = String>) {
        self.state.lock().waiting.entry(agent.clone()).or_default().splice(0..0, texts);
    }

    /// Stops accepting messages for the agent, unless some are still undelivered; those are returned.
    pub(super) fn leave(&self, agent: &Slug) -> Vec<String> {
        let mut state = self.state.lock();
        let left = state.waiting.remove(agent).unwrap_or_default();
        if left.is_empty() {
            state.active.remove(agent);
        }
        left
    }
}
