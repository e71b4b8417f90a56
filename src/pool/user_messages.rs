//! What the user says to agents of a run that is going on: to those at work before their next model call, to those who
//! wait with their first message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::model::{Event, Slug, What};

#[derive(Default)]
pub(crate) struct UserMessages {
    state: Mutex<State>,
    /// Moves with every message.
    said: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<Slug, Vec<String>>,
    /// Those whose work has begun and is not over.
    listening: BTreeSet<Slug>,
    /// What was said before the run was interrupted, and may have been heard.
    past: BTreeMap<Slug, Vec<String>>,
}

impl UserMessages {
    /// What was said before the run was interrupted, to those who were not done.
    pub(crate) fn with_past(events: &[Event]) -> Self {
        let mut state = State::default();
        for event in events {
            let Some(agent) = &event.agent else { continue };
            if let What::UserMessage { text } = &event.what {
                state.past.entry(agent.clone()).or_default().push(text.clone());
            } else if event.what.end().is_some() {
                state.past.remove(agent);
            }
        }
        Self { state: Mutex::new(state), ..Self::default() }
    }

    /// `false`: the agent is not at work. `waits`: its work is still to come.
    pub(crate) fn say(&self, agent: &Slug, text: &str, waits: bool) -> bool {
        let mut state = self.state();
        let is_heard = waits || state.listening.contains(agent);
        if is_heard {
            state.waiting.entry(agent.clone()).or_default().push(text.to_owned());
            self.said.send_replace(());
        }
        is_heard
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.said.subscribe()
    }

    /// From now on the agent hears what is said to it.
    pub(super) fn listen(&self, agent: &Slug) {
        self.state().listening.insert(agent.clone());
    }

    pub(super) fn take(&self, agent: &Slug) -> Vec<String> {
        self.state().waiting.remove(agent).unwrap_or_default()
    }

    pub(super) fn take_past(&self, agent: &Slug) -> Vec<String> {
        self.state().past.remove(agent).unwrap_or_default()
    }

    /// It was not heard after all.
    pub(super) fn give_back(&self, agent: &Slug, text: String) {
        self.state().waiting.entry(agent.clone()).or_default().insert(0, text);
    }

    /// The agent hears nothing any more; unless something is still to be heard, which this returns.
    pub(super) fn leave(&self, agent: &Slug) -> Vec<String> {
        let mut state = self.state();
        let left = state.waiting.remove(agent).unwrap_or_default();
        if left.is_empty() {
            state.listening.remove(agent);
        }
        left
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
