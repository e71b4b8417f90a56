//! Notifies agents of their colleagues' decisions in the run: working agents before their next model call, all others
//! with their next message.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::model::{Decision, EntryId, Event, EventKind, Slug, quote};
use crate::review::concerns;

/// Bytes of a decision quoted in a notice; `squad_decisions` returns the whole text.
const MAX_BYTES: usize = 4 * 1024;

#[derive(Default)]
pub(crate) struct Notices {
    state: Mutex<State>,
    /// The number of decisions.
    count: watch::Sender<usize>,
    /// The paths each agent owns according to the team.
    owned: BTreeMap<Slug, Vec<String>>,
}

#[derive(Default)]
struct State {
    /// In order, each with its author.
    decisions: Vec<(EntryId, Slug, Decision)>,
    /// Which agents have received which decisions.
    delivered: BTreeSet<(Slug, usize)>,
    /// Files written by agents' tools.
    written: BTreeMap<Slug, BTreeSet<String>>,
}

/// Decisions an agent has to be told.
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) decisions: Vec<Decision>,
    pub(super) entries: Vec<EntryId>,
    numbers: Vec<usize>,
}

impl Notices {
    pub(crate) fn new(owned: BTreeMap<Slug, Vec<String>>) -> Self {
        Self { owned, ..Self::default() }
    }

    /// Restores the decisions made and delivered before the run was interrupted.
    pub(crate) fn with_past(self, events: &[Event]) -> Self {
        let mut state = State::default();
        for event in events {
            match (&event.agent, &event.kind) {
                (Some(by), EventKind::DecisionLogged { decision, .. }) => {
                    state.decisions.push((event.id.clone(), by.clone(), decision.clone()));
                }
                (Some(agent), EventKind::DecisionDelivered { decisions, .. }) => {
                    let is_told = |decision: &Decision| decisions.contains(&decision.id);
                    let numbers = (0..).zip(&state.decisions).filter(|(_, (.., decision))| is_told(decision));
                    state.delivered.extend(numbers.map(|(number, _)| (agent.clone(), number)));
                }
                _ => {}
            }
        }
        Self { state: Mutex::new(state), ..self }
    }

    /// The decisions of this run, newest first.
    pub(super) fn decisions(&self) -> Vec<Decision> {
        self.state.lock().decisions.iter().rev().map(|(.., decision)| decision.clone()).collect()
    }

    pub(super) fn log(&self, by: &Slug, entry: EntryId, decision: Decision) {
        let mut state = self.state.lock();
        state.decisions.push((entry, by.clone(), decision));
        self.count.send_replace(state.decisions.len());
    }

    /// Records that an agent's tool writes this file.
    pub(super) fn write(&self, agent: &Slug, path: &str) {
        self.state.lock().written.entry(agent.clone()).or_default().insert(path.to_owned());
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// The decisions an agent has not received; they count as delivered from now on.
    pub(super) fn due(&self, agent: &Slug) -> Option<Notice> {
        let mut state = self.state.lock();
        let is_due = |number: usize, by: &Slug, decision: &Decision| {
            by != agent
                && !state.delivered.contains(&(agent.clone(), number))
                && self.is_in_scope(&state, agent, decision)
        };
        let due: Vec<(usize, (EntryId, Slug, Decision))> = state
            .decisions
            .iter()
            .enumerate()
            .filter(|(number, (_, by, decision))| is_due(*number, by, decision))
            .map(|(number, decided)| (number, decided.clone()))
            .collect();
        state.delivered.extend(due.iter().map(|(number, _)| (agent.clone(), *number)));
        let text = due.iter().map(|(_, (_, by, decision))| notice_text(by, decision)).collect::<Vec<_>>().join("\n");
        let numbers: Vec<usize> = due.iter().map(|(number, _)| *number).collect();
        let (entries, decisions) = due.into_iter().map(|(_, (entry, _, decision))| (entry, decision)).unzip();
        (!numbers.is_empty()).then_some(Notice { text, decisions, entries, numbers })
    }

    /// Marks a notice as not delivered after all.
    pub(super) fn withdraw(&self, agent: &Slug, notice: &Notice) {
        let mut state = self.state.lock();
        for number in &notice.numbers {
            state.delivered.remove(&(agent.clone(), *number));
        }
    }

    /// An agent without known paths may work on anything.
    fn is_in_scope(&self, state: &State, agent: &Slug, decision: &Decision) -> bool {
        let owned = self.owned.get(agent).into_iter().flatten();
        let paths: Vec<&str> =
            owned.chain(state.written.get(agent).into_iter().flatten()).map(String::as_str).collect();
        decision.scope.is_empty() || paths.is_empty() || concerns(&decision.scope, &paths)
    }
}

fn notice_text(by: &Slug, decision: &Decision) -> String {
    let scope = if decision.scope.is_empty() { String::new() } else { format!(" for {}", decision.scope.join(", ")) };
    let text = format!("{}\n\n{}", decision.title, decision.text);
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    format!(
        "`{by}` decided this during the run{scope}; follow it from here on (decision {}):\n\n{}",
        decision.id,
        quote(text)
    )
}
