//! What `squad undo` did.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{EntryId, RunId, SkippedFile, Slug, plural};

/// A run's changes were taken out of the work tree, or brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Undone {
    /// Only the changes of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) only: Option<Slug>,
    /// An undo was undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) redo: bool,
    /// The changed files, relative to the repository's root.
    pub(crate) files: Vec<String>,
    /// Files of the run that stayed as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<SkippedFile>,
    /// The rescue that has the files as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rescue: Option<String>,
    /// The commit that reverts what was committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.redo { "brought back" } else { "taken back" };
        let only = self.only.as_ref().map(|agent| format!(" of {agent}")).unwrap_or_default();
        write!(f, "{}{only} {verb}", plural(self.files.len(), "file"))?;
        if !self.left.is_empty() {
            write!(f, ", {} left", plural(self.left.len(), "file"))?;
        }
        self.rescue.iter().try_for_each(|rescue| write!(f, "; rescue {rescue}"))
    }
}

/// The entry that records it. The intent of the change has it, so that whoever finishes the change can record it, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UndoRecord {
    pub(crate) run: RunId,
    /// The team's folder in the ledger.
    pub(crate) team: String,
    pub(crate) entry: EntryId,
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) causes: Vec<EntryId>,
    pub(crate) undone: Undone,
}

/// Which of a run's changes are undone, from its entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UndoState {
    whole: bool,
    agents: Vec<Slug>,
    /// Files that the undos left.
    left: Vec<String>,
}

impl UndoState {
    /// Takes the next entry into account. A resumed run changes files again.
    pub(crate) fn add(&mut self, undone: &Undone) {
        match (&undone.only, undone.redo) {
            (None, false) => self.whole = true,
            (Some(agent), false) => self.agents.push(agent.clone()),
            (None, true) => *self = Self::default(),
            (Some(agent), true) => self.agents.retain(|other| other != agent),
        }
        if !undone.redo {
            self.left.extend(undone.left.iter().map(|left| left.path.clone()));
        }
    }

    /// Whether the changes of this agent, or of all, are undone.
    pub(crate) fn has(&self, agent: Option<&Slug>) -> bool {
        self.whole || agent.is_some_and(|agent| self.agents.contains(agent))
    }

    /// Whether this very undo can be undone.
    pub(crate) fn can_redo(&self, agent: Option<&Slug>) -> bool {
        match agent {
            None => self.whole,
            Some(agent) => !self.whole && self.agents.contains(agent),
        }
    }

    pub(crate) fn has_left(&self, path: &str) -> bool {
        self.left.iter().any(|left| left == path)
    }
}
