//! What is known of an interrupted run, for those who resume it and those who ask what it did.

use std::collections::BTreeMap;

use super::intervals::{Interval, changes_of, git_changes_of};
use super::lines::{add_lines, unrecorded};
use crate::git::WorkTreeSnapshot;
use crate::model::{AgentGitChanges, Change, IntoMap, Slug};

/// What a resumed run knows of the time before.
pub(crate) struct Before {
    /// The run's first snapshot.
    pub(crate) first: WorkTreeSnapshot,
    /// The snapshots since the unfinished step began, at least one, each with the interval that it ended.
    pub(crate) snapshots: Vec<(WorkTreeSnapshot, Interval)>,
    /// What is known of the time since the last of them.
    pub(crate) open: Interval,
    /// The agents whose work was interrupted, each with the index of the snapshot that it began at.
    pub(crate) begun: BTreeMap<Slug, usize>,
}

/// What an agent changed, or may have.
#[derive(Default)]
pub(crate) struct AgentChanges {
    pub(crate) files: Vec<Change>,
    pub(crate) git: AgentGitChanges,
}

impl Before {
    /// Fills in what changed between the snapshots. Also returns why comparisons failed.
    pub(super) fn compared(
        mut self,
        changed: impl Fn(&WorkTreeSnapshot, &WorkTreeSnapshot) -> Result<Vec<Change>, String>,
    ) -> (Self, Vec<String>) {
        let (mut previous, mut failed): (Option<WorkTreeSnapshot>, _) = (None, Vec::new());
        for (snapshot, interval) in &mut self.snapshots {
            if let Some(from) = previous.replace(snapshot.clone()) {
                interval.changes = changed(&from, snapshot).unwrap_or_else(|reason| {
                    failed.push(reason);
                    Vec::new()
                });
            }
        }
        (self, failed)
    }

    /// What each interrupted agent had changed at the last snapshot, as far as it can be read.
    pub(crate) fn changes(
        self,
        changed: impl Fn(&WorkTreeSnapshot, &WorkTreeSnapshot) -> Result<Vec<Change>, String>,
        diff: impl Fn(&WorkTreeSnapshot, &WorkTreeSnapshot, &[String]) -> Result<String, String>,
    ) -> BTreeMap<Slug, AgentChanges> {
        let (Self { snapshots, begun, .. }, _) = self.compared(&changed);
        let (snapshots, intervals): (Vec<_>, Vec<_>) = snapshots.into_iter().unzip();
        let of_agent = |(agent, begun): (Slug, usize)| {
            let (from, to, since) = (snapshots.get(begun)?, snapshots.last()?, intervals.get(begun + 1..)?);
            let mut files = changes_of(Some(&agent), since, changed(from, to).unwrap_or_default());
            let paths = unrecorded(&files);
            if !paths.is_empty() {
                add_lines(&mut files, &diff(from, to, &paths).unwrap_or_default());
            }
            let git = git_changes_of(&agent, since);
            Some((agent, AgentChanges { files, git }))
        };
        begun.into_iter().filter_map(of_agent).into_map()
    }
}
