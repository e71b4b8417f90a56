//! What an agent at work waits for, told from its events.

use std::collections::BTreeMap;

use super::{AgentState, EventKind};

/// What waits is not at work, whatever its engine reports meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentWaits {
    /// Its open questions to a person.
    questions: BTreeMap<u64, String>,
    /// The engine whose quota is used up.
    quota: Option<String>,
    has_lost_connection: bool,
}

impl AgentWaits {
    pub(crate) fn see(&mut self, kind: &EventKind) {
        match kind {
            EventKind::QuestionAsked { question, text, .. } => {
                self.questions.insert(*question, text.clone());
            }
            EventKind::QuestionAnswered { question } => drop(self.questions.remove(question)),
            EventKind::QuotaWaiting { engine } => self.quota = Some(engine.clone()),
            EventKind::QuotaWaited {} => self.quota = None,
            EventKind::ConnectionLost { .. } => self.has_lost_connection = true,
            // What is heard of the model comes through the connection.
            EventKind::ConnectionRestored { .. } | EventKind::Message { .. } | EventKind::MessageDelta { .. } => {
                self.has_lost_connection = false;
            }
            // Its questions end by themselves.
            EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. } => {
                (self.quota, self.has_lost_connection) = (None, false);
            }
            kind if kind.end().is_some() => *self = Self::default(),
            _ => {}
        }
    }

    /// The question that has been open for longest.
    pub(crate) fn question(&self) -> Option<(u64, &str)> {
        self.questions.iter().next().map(|(number, text)| (*number, text.as_str()))
    }

    pub(crate) fn quota(&self) -> Option<&str> {
        self.quota.as_deref()
    }

    /// `None`: it waits for nothing.
    pub(crate) fn state(&self) -> Option<AgentState> {
        match (self.questions.is_empty(), &self.quota, self.has_lost_connection) {
            (false, ..) => Some(AgentState::WaitingAnswer),
            (true, Some(_), _) => Some(AgentState::WaitingQuota),
            (true, None, true) => Some(AgentState::WaitingConnection),
            (true, None, false) => None,
        }
    }
}
