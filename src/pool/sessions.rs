//! The current status of a run's agents, for `squad status` in another terminal.

use std::collections::BTreeMap;
use std::path::Path;

use parking_lot::Mutex;

use crate::model::{
    AgentState, AgentWaits, Event, EventKind, LiveCheck, OpenQuestion, PersonTime, RunActivity, SessionState,
    SessionStatus, Slug, first_line,
};

/// Updated by the run's events; workers add details that no event has.
#[derive(Default)]
pub(crate) struct LiveSessions {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    activity: RunActivity,
    details: BTreeMap<Slug, SessionDetails>,
    waits: BTreeMap<Slug, AgentWaits>,
    person: PersonTime,
}

/// Details of an agent's session.
#[derive(Clone, Default)]
struct SessionDetails {
    model: String,
    directory: String,
    workspace: Option<String>,
}

/// Characters of a task.
const TASK_LENGTH: usize = 100;

impl LiveSessions {
    /// Records details of the session that an agent is about to start in.
    pub(super) fn set_details(&self, agent: &Slug, model: &str, opening: (&Path, &str), workspace: Option<String>) {
        let (directory, task) = opening;
        let (model, directory) = (model.to_owned(), directory.display().to_string());
        let inner = &mut *self.inner.lock();
        inner.activity.tasks.insert(agent.clone(), first_line(task, TASK_LENGTH));
        inner.details.insert(agent.clone(), SessionDetails { model, directory, workspace });
    }

    /// The status of all agents as text for an agent's model.
    pub(super) fn summary_for(&self, asking: &Slug) -> String {
        self.inner.lock().activity.summary_for(asking)
    }

    pub(crate) fn activity(&self) -> RunActivity {
        self.inner.lock().activity.clone()
    }

    pub(crate) fn note(&self, event: &Event) {
        self.inner.lock().note(event);
    }
}

impl Inner {
    fn note(&mut self, event: &Event) {
        self.person.see(event.at, event.agent.as_ref(), &event.kind);
        self.activity.person = self.person.wait();
        let questions = &mut self.activity.questions;
        match &event.kind {
            EventKind::QuestionAsked { question, text, .. } => {
                let (question, agent, text) = (*question, event.agent.clone(), text.clone());
                questions.push(OpenQuestion { question, agent, since: event.at, text, proposal: None });
            }
            EventKind::CheckStarted { command } => {
                self.activity.check = Some(LiveCheck { command: command.clone(), since: event.at });
            }
            EventKind::CheckCompleted(_) => self.activity.check = None,
            EventKind::QuestionAnswered { question } => questions.retain(|open| open.question != *question),
            _ => {}
        }
        let Some(agent) = &event.agent else {
            if let EventKind::RoutePlanned(plan) = &event.kind {
                for agent in plan.agents.iter().chain(&plan.reviewer) {
                    self.activity.agents.entry(agent.clone()).or_insert(AgentState::Waiting);
                }
            }
            return;
        };
        let waits = self.waits.entry(agent.clone()).or_default();
        waits.see(&event.kind);
        let waits_for = waits.state();
        match &event.kind {
            EventKind::RouteRequested { to, .. } => {
                let state = self.activity.agents.entry(to.clone()).or_insert(AgentState::Waiting);
                if matches!(state, AgentState::Ended(_)) {
                    *state = AgentState::Waiting;
                }
            }
            EventKind::SessionCreated { session, model, .. } => {
                self.open(event, agent, session);
                if let Some(opened) = self.activity.sessions.last_mut().filter(|opened| opened.model.is_empty()) {
                    opened.model.clone_from(model);
                }
            }
            EventKind::SessionResumed { session, .. } => self.open(event, agent, session),
            EventKind::SessionDestroyed { .. } => self.activity.sessions.retain(|session| session.agent != *agent),
            kind => match kind.end() {
                Some((outcome, _)) => drop(self.activity.agents.insert(agent.clone(), AgentState::Ended(outcome))),
                None => self.wait(agent, waits_for),
            },
        }
        if let Some(session) = self.activity.sessions.iter_mut().find(|session| session.agent == *agent) {
            session.last_activity = event.at;
            match &event.kind {
                EventKind::Message { .. } => session.messages += 1,
                EventKind::Usage(usage) => session.tokens += usage.input_tokens + usage.output_tokens,
                EventKind::SessionIdle { .. } => session.state = SessionState::Idle,
                EventKind::SessionSuspended { .. } => session.state = SessionState::Suspended,
                _ => {}
            }
        }
    }

    /// An agent that has not begun waits, and one that has ended does not.
    fn wait(&mut self, agent: &Slug, waits_for: Option<AgentState>) {
        let has_session = self.activity.sessions.iter().any(|session| session.agent == *agent);
        let Some(state) = self.activity.agents.get_mut(agent) else { return };
        *state = match (waits_for, *state) {
            (_, AgentState::Ended(outcome)) => AgentState::Ended(outcome),
            (Some(waiting), _) => waiting,
            (None, AgentState::Waiting) => AgentState::Waiting,
            (None, _) if has_session => AgentState::Working,
            (None, _) => AgentState::Waiting,
        };
    }

    fn open(&mut self, event: &Event, agent: &Slug, session: &str) {
        self.activity.step = self.activity.step.max(event.position.step);
        self.activity.agents.insert(agent.clone(), AgentState::Working);
        let SessionDetails { model, directory, workspace, .. } = self.details.get(agent).cloned().unwrap_or_default();
        self.activity.sessions.retain(|session| session.agent != *agent);
        self.activity.sessions.push(SessionStatus {
            id: session.to_owned(),
            agent: agent.clone(),
            run: Some(event.run.clone()),
            state: SessionState::Active,
            created: event.at,
            last_activity: event.at,
            messages: 1,
            tokens: 0,
            model,
            directory,
            workspace,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{End, EntryId, Outcome, Position, RunId};

    /// What an agent does × that a colleague hands it work: only one that does not work waits for it.
    #[test]
    fn who_is_handed_work_at_work_goes_on_working() {
        let slug = |name: &str| Slug::fold(name).expect("a slug");
        let event = |agent: &str, kind| {
            let (seq, at, causes) = Default::default();
            let (run, id, position) = (RunId::new("r"), EntryId::new("e"), Position::default());
            Event { seq, at, run, agent: Some(slug(agent)), kind, id, position, causes }
        };
        let opened = || EventKind::SessionResumed { session: "s".to_owned(), seconds: 0.0, changed: false };
        let ended = || EventKind::of_end(Outcome::Completed, End::default());
        let handed = || EventKind::RouteRequested { to: slug("ada"), text: "Test it.".to_owned(), wait: true };
        for (before, state) in [
            (vec![], AgentState::Waiting),
            (vec![opened()], AgentState::Working),
            (vec![opened(), ended()], AgentState::Waiting),
            (vec![opened(), ended(), opened()], AgentState::Working),
        ] {
            let sessions = LiveSessions::default();
            before.iter().for_each(|kind| sessions.note(&event("ada", kind.clone())));
            sessions.note(&event("bob", handed()));
            assert_eq!(sessions.activity().agents[&slug("ada")], state, "{before:?}");
        }
    }
}
