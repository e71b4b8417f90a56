//! What `squad undo` did.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{EntryId, RunId, SkippedFile, Slug, list, plural};

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
        let left: Vec<String> = self.left.iter().map(|left| left.path.clone()).collect();
        f.write_str(&but(&left))?;
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

/// What follows a sentence on what was done to all files, except those that were left.
pub(crate) fn but(left: &[String]) -> String {
    if left.is_empty() { String::new() } else { format!(" but {}", list(left)) }
}

/// Which of a run's changes are undone, from its entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UndoState {
    /// The undos of all, and of single agents, each with the files that the last one left.
    undone: BTreeMap<Option<Slug>, Vec<String>>,
}

impl UndoState {
    /// Takes the next entry into account. A resumed run changes files again.
    pub(crate) fn add(&mut self, undone: &Undone) {
        let Undone { only, redo, left, .. } = undone;
        if only.is_none() {
            self.undone.clear();
        }
        match redo {
            true => drop(self.undone.remove(only)),
            false => {
                let left = left.iter().map(|left| left.path.clone()).collect();
                drop(self.undone.insert(only.clone(), left));
            }
        }
    }

    fn of(&self, agent: Option<&Slug>) -> Option<&[String]> {
        let found = self.undone.get(&agent.cloned()).or_else(|| self.undone.get(&None));
        found.map(Vec::as_slice)
    }

    /// Whether the changes of this agent, or of all, are undone.
    pub(crate) fn has(&self, agent: Option<&Slug>) -> bool {
        self.of(agent).is_some()
    }

    /// Whether this very undo can be undone.
    pub(crate) fn can_redo(&self, agent: Option<&Slug>) -> bool {
        self.has(agent) && agent.is_some() != self.undone.contains_key(&None)
    }

    /// The files that the undo of this agent's changes, or of all, left as they were.
    pub(crate) fn left_of(&self, agent: Option<&Slug>) -> &[String] {
        self.of(agent).unwrap_or_default()
    }
}
