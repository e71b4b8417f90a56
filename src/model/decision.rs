//! A decision of the team.

use serde::{Deserialize, Deserializer, Serialize};

use super::{DecisionId, Note, RunId, Source};

/// A decision from any source: a file of its own, an entry of `decisions.md`, or the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decision {
    pub(crate) id: DecisionId,
    pub(crate) title: String,
    /// `yyyy-mm-dd` or an RFC 3339 time stamp, as written; `None` if unknown.
    pub(crate) date: Option<String>,
    pub(crate) by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunId>,
    /// An invalid id is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id_or_none")]
    pub(crate) supersedes: Option<DecisionId>,
    /// Globs of the paths the decision is about; empty: everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    /// What and why, in Markdown, without the title.
    pub(crate) text: String,
    /// It is a note of knowledge, which holds beyond this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<Note>,
    /// The status in the text of an entry in an older format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<LegacyStatus>,
    /// Where it was read; `None` for one that is only in the ledger.
    #[serde(skip)]
    pub(crate) source: Option<Source>,
}

fn id_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DecisionId>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.as_deref().and_then(DecisionId::parse))
}

/// A status found in older formats that determines whether the decision is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LegacyStatus {
    /// Not accepted yet, but still in force, because many decisions were never marked as accepted.
    Proposed,
    Superseded,
    Rejected,
}

/// A sortable form of a date. A date without milliseconds sorts before all others in the same second.
pub(crate) fn moment(date: &str) -> &str {
    date.trim_end_matches('Z')
}

impl Decision {
    /// A decision of which nothing else is known.
    pub(crate) fn new(id: DecisionId, title: String, text: String) -> Self {
        Self {
            id,
            title,
            text,
            date: None,
            by: None,
            run: None,
            supersedes: None,
            scope: Vec::new(),
            tags: Vec::new(),
            note: None,
            status: None,
            source: None,
        }
    }

    /// As an entry of this run records it. A note that a person made of an agent's words names the agent's run.
    pub(crate) fn recorded_in(self, run: Option<&RunId>) -> Self {
        let named = self.run.clone().filter(|_| self.note.is_some());
        Self { run: run.cloned().or(named), ..self }
    }

    /// See [`moment`].
    pub(crate) fn moment(&self) -> Option<&str> {
        self.date.as_deref().map(moment)
    }

    /// The state according to its own text, if not in force.
    pub(crate) fn ended(&self) -> Option<DecisionState> {
        match self.status? {
            LegacyStatus::Proposed => None,
            LegacyStatus::Superseded => Some(DecisionState::Superseded),
            LegacyStatus::Rejected => Some(DecisionState::Withdrawn),
        }
    }
}

/// The state of a decision, seen from a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionState {
    InForce,
    Superseded,
    /// Never landed anywhere.
    Unlanded,
    /// Landed on another branch only.
    Elsewhere,
    /// Landed here, but its file was deleted later; or its text says that it was rejected.
    Withdrawn,
}
