//! Detects a git operation in progress.

use std::fs;

use super::{error::Error, repository::Repository};

impl Repository {
    /// The operation in progress: "merge", "rebase", "git am", "cherry-pick", "revert" or "bisect".
    pub(crate) fn operation(&self) -> Option<&'static str> {
        // In the order `git status` checks; see wt_status_get_state() in git's wt-status.c.
        const TRACES: [(&str, &str); 8] = [
            ("rebase-apply/applying", "git am"),
            ("rebase-apply", "rebase"),
            ("rebase-merge", "rebase"),
            ("MERGE_HEAD", "merge"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
            ("sequencer", "cherry-pick"),
            ("BISECT_LOG", "bisect"),
        ];
        TRACES.iter().find(|(trace, _)| self.git_dir().join(trace).exists()).map(|(_, operation)| *operation)
    }

    /// The branch that was checked out when a rebase or bisection began.
    pub(super) fn left_branch(&self) -> Result<Option<String>, Error> {
        for trace in ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"] {
            let Ok(name) = fs::read_to_string(self.git_dir().join(trace)) else { continue };
            let name = name.trim();
            let name = name.strip_prefix("refs/heads/").unwrap_or(name);
            // If it began on a detached HEAD, the file holds a commit id or a note.
            let is_branch = !name.contains(' ') && self.references().read(&format!("refs/heads/{name}"))?.is_some();
            return Ok(is_branch.then(|| name.to_owned()));
        }
        Ok(None)
    }
}
