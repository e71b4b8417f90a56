//! What the agents of a run are at: for `squad status` in another terminal.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::model::{AgentState, Event, OpenQuestion, RunActivity, SessionState, SessionStatus, Slug, What, first_line};

/// Learns from the run's events; the workers add what no event says.
#[derive(Default)]
pub(crate) struct LiveSessions {
    known: Mutex<Known>,
    changed: Notify,
}

#[derive(Default)]
struct Known {
    activity: RunActivity,
    places: BTreeMap<Slug, Place>,
}

/// Where an agent's session is.
#[derive(Clone, Default)]
struct Place {
    model: String,
    directory: String,
    workspace: Option<String>,
    /// The beginning of what it was told to do.
    task: String,
}

/// Characters of a task.
const TASK: usize = 100;

impl LiveSessions {
    /// The session that an agent is about to begin in.
    pub(super) fn place(&self, agent: &Slug, model: &str, opening: (&Path, &str), workspace: Option<String>) {
        let (directory, task) = opening;
        let (model, directory, task) = (model.to_owned(), directory.display().to_string(), first_line(task, TASK));
        self.known().places.insert(agent.clone(), Place { model, directory, workspace, task });
    }

    /// Who is at what, for the model of an agent.
    pub(super) fn told(&self, asking: &Slug) -> String {
        let known = self.known();
        let line = |(agent, state): (&Slug, &AgentState)| {
            let you = if agent == asking { " (you)" } else { "" };
            let session = known.activity.sessions.iter().find(|session| session.agent == *agent);
            let doing = match (state, session) {
                (AgentState::Waiting, _) => "has not begun".to_owned(),
                (AgentState::Ended(outcome), _) => outcome.to_string(),
                (AgentState::Working, None) => "works".to_owned(),
                (AgentState::Working, Some(session)) => {
                    let task = known.places.get(agent).map(|place| place.task.as_str()).unwrap_or_default();
                    let since = session.created.strftime("%H:%M:%S UTC");
                    format!("works since {since}, {} tokens, on: {task}", session.tokens)
                }
            };
            format!("- `{agent}`{you}: {doing}\n")
        };
        known.activity.agents.iter().map(line).collect()
    }

    /// Returns when something has changed since it returned last.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(crate) fn activity(&self) -> RunActivity {
        self.known().activity.clone()
    }

    pub(crate) fn note(&self, event: &Event) {
        self.known().note(event);
        self.changed.notify_one();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note(&mut self, event: &Event) {
        let questions = &mut self.activity.questions;
        match &event.what {
            What::QuestionAsked { question, text } => {
                let (question, agent, text) = (*question, event.agent.clone(), text.clone());
                questions.push(OpenQuestion { question, agent, since: event.at, text });
            }
            What::QuestionAnswered { question } => questions.retain(|open| open.question != *question),
            _ => {}
        }
        let Some(agent) = &event.agent else {
            if let What::RoutePlanned(plan) = &event.what {
                for agent in plan.agents.iter().chain(&plan.reviewer) {
                    self.activity.agents.entry(agent.clone()).or_insert(AgentState::Waiting);
                }
            }
            return;
        };
        match &event.what {
            What::RouteRequested { to, .. } => {
                let state = self.activity.agents.entry(to.clone()).or_insert(AgentState::Waiting);
                if *state != AgentState::Working {
                    *state = AgentState::Waiting;
                }
            }
            What::SessionCreated { session, model, .. } => {
                self.open(event, agent, session);
                if let Some(opened) = self.activity.sessions.last_mut().filter(|opened| opened.model.is_empty()) {
                    opened.model.clone_from(model);
                }
            }
            What::SessionResumed { session, .. } => self.open(event, agent, session),
            What::SessionDestroyed { .. } => self.activity.sessions.retain(|session| session.agent != *agent),
            what => {
                if let Some((outcome, _)) = what.end() {
                    self.activity.agents.insert(agent.clone(), AgentState::Ended(outcome));
                }
            }
        }
        if let Some(session) = self.activity.sessions.iter_mut().find(|session| session.agent == *agent) {
            session.last_activity = event.at;
            match &event.what {
                What::Message { .. } => session.messages += 1,
                What::Usage(usage) => session.tokens += usage.input_tokens + usage.output_tokens,
                What::SessionIdle { .. } => session.state = SessionState::Idle,
                What::SessionSuspended { .. } => session.state = SessionState::Suspended,
                _ => {}
            }
        }
    }

    fn open(&mut self, event: &Event, agent: &Slug, session: &str) {
        self.activity.step = self.activity.step.max(event.position.step);
        self.activity.agents.insert(agent.clone(), AgentState::Working);
        let Place { model, directory, workspace, .. } = self.places.get(agent).cloned().unwrap_or_default();
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
