//! A decision of the team.

use serde::{Deserialize, Deserializer, Serialize};

use super::{DecisionId, RunId, Source};

/// A decision, whichever form it was read from: a file of its own, an entry of `decisions.md`, the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decision {
    pub(crate) id: DecisionId,
    pub(crate) title: String,
    /// `yyyy-mm-dd` or an RFC 3339 time stamp, as it was written; `None` when nothing says.
    pub(crate) date: Option<String>,
    pub(crate) by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunId>,
    /// A text that cannot be an id replaces nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id_or_none")]
    pub(crate) supersedes: Option<DecisionId>,
    /// Path globs the decision is about; empty: everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    /// What and why, in Markdown, without the title.
    pub(crate) text: String,
    /// What its own text says of its standing, where it was an entry of an old form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<SaidStatus>,
    /// Where it was read; `None` for one that is only in the ledger.
    #[serde(skip)]
    pub(crate) source: Option<Source>,
}

fn id_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DecisionId>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.as_deref().and_then(DecisionId::parse))
}

/// A status that a decision of an old form carries and that matters to those who would keep to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SaidStatus {
    /// Nobody has accepted it yet. It is in force all the same: so are many that were never marked accepted.
    Proposed,
    Superseded,
    Rejected,
}

/// A date as it sorts: one that does not name its millisecond comes before all of its second.
pub(crate) fn moment(date: &str) -> &str {
    date.trim_end_matches('Z')
}

impl Decision {
    /// See [`moment`].
    pub(crate) fn moment(&self) -> Option<&str> {
        self.date.as_deref().map(moment)
    }

    /// The state that its own text puts it in, where that is not *in force*.
    pub(crate) fn ended(&self) -> Option<DecisionState> {
        match self.status? {
            SaidStatus::Proposed => None,
            SaidStatus::Superseded => Some(DecisionState::Superseded),
            SaidStatus::Rejected => Some(DecisionState::Withdrawn),
        }
    }
}

/// How a decision stands, seen from a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionState {
    InForce,
    Superseded,
    /// Never landed anywhere.
    Unlanded,
    /// Landed on another branch only.
    Elsewhere,
    /// Landed here, and its file was deleted since; or its own text says that it was rejected.
    Withdrawn,
}
