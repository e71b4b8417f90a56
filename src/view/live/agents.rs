//! The state of a watch's agents, derived from its events.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{ConnectionState, Event, EventKind, OpenQuestion, Outcome, RunId, SessionState, Slug};
use crate::pool::standing_session_id;
use crate::view::rows;

pub(super) struct Agents {
    rows: BTreeMap<Key, Row>,
    runs: BTreeSet<RunId>,
    pub(super) engine: String,
    pub(super) connection: ConnectionState,
}

/// Each agent has a row for its own session, and one for each extra session that a run has opened for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) agent: Slug,
    /// The run of an extra session; `None`: the agent's own session.
    of: Option<RunId>,
}

#[derive(Default)]
pub(super) struct Row {
    /// `None`: no session yet.
    pub(super) state: Option<SessionState>,
    pub(super) work: Option<Work>,
    /// How its last work ended.
    pub(super) ended: Option<Outcome>,
    /// The run of its last work.
    last: Option<RunId>,
}

pub(super) struct Work {
    pub(super) run: RunId,
    /// The same as in the terminal of the run.
    pub(super) row: rows::Row,
    pub(super) questions: Vec<OpenQuestion>,
}

impl Default for Agents {
    fn default() -> Self {
        let (rows, runs, engine) = Default::default();
        Self { rows, runs, engine, connection: ConnectionState::Disconnected }
    }
}

impl Agents {
    pub(super) fn rows(&self) -> &BTreeMap<Key, Row> {
        &self.rows
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// How many questions are open.
    pub(super) fn questions(&self) -> usize {
        self.rows.values().filter_map(|row| row.work.as_ref()).map(|work| work.questions.len()).sum()
    }

    /// Whether elapsed times have to be updated.
    pub(super) fn is_anyone_at_work(&self) -> bool {
        self.rows.values().any(|row| row.work.is_some())
    }

    pub(super) fn works_in(&self, run: &RunId, agent: &Slug) -> bool {
        let matches =
            |(key, row): (&Key, &Row)| key.agent == *agent && row.work.as_ref().is_some_and(|work| work.run == *run);
        self.rows.iter().any(matches)
    }

    pub(super) fn is_open(&self, run: &RunId, question: u64) -> bool {
        let mut works = self.rows.values().filter_map(|row| row.work.as_ref()).filter(|work| work.run == *run);
        works.any(|work| work.questions.iter().any(|open| open.question == question))
    }

    pub(super) fn note(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted { .. } | EventKind::RunResumed { .. } => {
                self.runs.insert(event.run.clone());
            }
            EventKind::ConnectionChanged { engine, state } => {
                self.connection = *state;
                if self.engine.split(' ').next() != Some(engine.as_str()) {
                    self.engine.clone_from(engine);
                }
            }
            _ if self.runs.contains(&event.run) => self.note_of_run(event),
            EventKind::EngineStarted { engine, version, .. } => self.engine = format!("{engine} {version}"),
            kind => {
                if let Some(agent) = &event.agent {
                    self.note_between_runs(agent, kind);
                }
            }
        }
    }

    fn note_between_runs(&mut self, agent: &Slug, kind: &EventKind) {
        let key = Key { agent: agent.clone(), of: None };
        let state = match kind {
            EventKind::SessionSpawning { .. } => SessionState::Spawning,
            EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. } => SessionState::Idle,
            EventKind::SessionSuspended { .. } => SessionState::Suspended,
            EventKind::SessionDestroyed { .. } => return self.close(key),
            // The session could not be opened.
            EventKind::SessionError { .. }
                if self.rows.get(&key).is_some_and(|row| row.state == Some(SessionState::Spawning)) =>
            {
                return self.close(key);
            }
            _ => return,
        };
        let row = self.rows.entry(key).or_default();
        // This event may arrive after the session has begun to work.
        if row.work.is_none() || state == SessionState::Spawning {
            row.state = Some(state);
        }
    }

    /// Removes a session's row. Its work, if any, keeps a row until it ends.
    fn close(&mut self, key: Key) {
        let Some(row) = self.rows.remove(&key) else { return };
        if let Some(run) = row.work.as_ref().map(|work| work.run.clone()) {
            self.rows.insert(Key { of: Some(run), ..key }, row);
        }
    }

    fn note_of_run(&mut self, event: &Event) {
        match (&event.agent, &event.kind) {
            (_, EventKind::StepStarted { agents }) => {
                for agent in agents {
                    self.begin(event, agent, None);
                }
            }
            (_, EventKind::RunCompleted(_)) => self.end_run(&event.run),
            (agent, EventKind::QuestionAsked { question, text, proposal }) => {
                // Questions of the run itself are shown as the coordinator's.
                let asks = agent.clone().unwrap_or_else(Slug::coordinator);
                let (question, agent, text, proposal) = (*question, agent.clone(), text.clone(), proposal.clone());
                let question = OpenQuestion { question, agent, since: event.at, text, proposal };
                let work = match self.has_work(&asks, &event.run) {
                    true => self.work_of(&asks, &event.run),
                    false => Some(self.begin(event, &asks, None)),
                };
                let Some(work) = work else { return };
                work.row.see(&event.kind, event.at);
                work.questions.push(question);
            }
            (agent, EventKind::QuestionAnswered { question }) => {
                let asked = agent.clone().unwrap_or_else(Slug::coordinator);
                let Some(work) = self.work_of(&asked, &event.run) else { return };
                work.row.see(&event.kind, event.at);
                work.questions.retain(|open| open.question != *question);
                if agent.is_none() {
                    self.end(&asked, &event.run, None);
                }
            }
            (Some(agent), kind) => self.note_of_agent(event, agent, kind),
            _ => {}
        }
    }

    fn note_of_agent(&mut self, event: &Event, agent: &Slug, kind: &EventKind) {
        let session = match kind {
            EventKind::SessionSpawning { session } => Some((session, SessionState::Spawning)),
            EventKind::SessionCreated { session, .. } | EventKind::SessionResumed { session, .. } => {
                Some((session, SessionState::Active))
            }
            _ => None,
        };
        if let Some((session, state)) = session {
            self.begin(event, agent, Some((session, state))).row.see(kind, event.at);
        } else if let Some((outcome, _)) = kind.end() {
            self.end(agent, &event.run, Some(outcome));
        } else if let Some(work) = self.work_of(agent, &event.run) {
            work.row.see(kind, event.at);
        }
    }

    /// Starts an agent's work in a run, in its own session or an extra one.
    fn begin(&mut self, event: &Event, agent: &Slug, session: Option<(&str, SessionState)>) -> &mut Work {
        let (own, of_run) = keys(agent, &event.run);
        let is_in = |row: Option<&Row>| row.and_then(|row| row.work.as_ref()).is_some_and(|work| work.run == event.run);
        let is_own_free = self.rows.get(&own).is_some_and(|row| row.work.is_none());
        let key = match session {
            Some((session, _)) if session == standing_session_id(agent) => own.clone(),
            None if is_own_free || is_in(self.rows.get(&own)) => own.clone(),
            _ => of_run.clone(),
        };
        // The work may have been assigned to the other row.
        let other = if key == own { of_run } else { own };
        let before = self.rows.get_mut(&other).filter(|row| is_in(Some(row))).and_then(|row| row.work.take());
        if other.of.is_some() && before.is_some() {
            self.rows.remove(&other);
        }
        let row = self.rows.entry(key).or_default();
        let before = before.or_else(|| row.work.take());
        if let Some((_, state)) = session {
            row.state = Some(state);
        }
        row.ended = None;
        row.work.insert(before.unwrap_or_else(|| Work {
            run: event.run.clone(),
            row: rows::Row::waiting(agent.clone(), "waits for a slot", event.at),
            questions: Vec::new(),
        }))
    }

    fn has_work(&self, agent: &Slug, run: &RunId) -> bool {
        let (own, of_run) = keys(agent, run);
        let is_in =
            |key| self.rows.get(key).and_then(|row: &Row| row.work.as_ref()).is_some_and(|work| work.run == *run);
        is_in(&own) || is_in(&of_run)
    }

    fn work_of(&mut self, agent: &Slug, run: &RunId) -> Option<&mut Work> {
        let (own, of_run) = keys(agent, run);
        let is_own = self.rows.get(&own).and_then(|row| row.work.as_ref()).is_some_and(|work| work.run == *run);
        self.rows.get_mut(if is_own { &own } else { &of_run })?.work.as_mut()
    }

    fn end(&mut self, agent: &Slug, run: &RunId, outcome: Option<Outcome>) {
        let (own, of_run) = keys(agent, run);
        self.rows.remove(&of_run);
        if let Some(row) = self.rows.get_mut(&own).filter(|row| row.work.as_ref().is_some_and(|work| work.run == *run))
        {
            row.set_idle(outcome);
        }
    }

    fn end_run(&mut self, run: &RunId) {
        self.runs.remove(run);
        self.rows.retain(|key, _| key.of.as_ref() != Some(run));
        for row in self.rows.values_mut().filter(|row| row.work.as_ref().is_some_and(|work| work.run == *run)) {
            row.set_idle(None);
        }
    }
}

impl Row {
    /// The run that it works in, or worked in last.
    pub(super) fn run(&self) -> Option<&RunId> {
        self.work.as_ref().map(|work| &work.run).or(self.last.as_ref())
    }

    fn set_idle(&mut self, outcome: Option<Outcome>) {
        self.last = self.work.take().map(|work| work.run).or(self.last.take());
        self.ended = outcome;
        if self.state == Some(SessionState::Active) {
            self.state = Some(SessionState::Idle);
        }
    }
}

fn keys(agent: &Slug, run: &RunId) -> (Key, Key) {
    (Key { agent: agent.clone(), of: None }, Key { agent: agent.clone(), of: Some(run.clone()) })
}
