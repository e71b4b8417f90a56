//! How a command applies its changes.

use std::fs::File;

use crate::error::Failure;
use crate::git::Repository;
use crate::ops::Workspace;
use crate::ops::team::lock;
use crate::pool::Cancel;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WriteMode {
    /// In one commit on the checked-out branch.
    Commit,
    /// In the work tree, without a commit.
    WorkTree,
    /// Not at all: only shows what `Commit` or `WorkTree` would do.
    DryRun { as_commit: bool },
}

impl WriteMode {
    pub(crate) fn new(dry_run: bool, no_commit: bool) -> Self {
        match (dry_run, no_commit) {
            (true, no_commit) => Self::DryRun { as_commit: !no_commit },
            (false, true) => Self::WorkTree,
            (false, false) => Self::Commit,
        }
    }

    /// Whether the team is read from the branch, not from the work tree.
    pub(crate) fn uses_branch(self) -> bool {
        matches!(self, Self::Commit | Self::DryRun { as_commit: true })
    }

    pub(crate) fn is_dry_run(self) -> bool {
        matches!(self, Self::DryRun { .. })
    }

    /// Locks the team's files before a change is planned, except for a dry run. Fails if the team belongs to another
    /// work tree; `verb` says what to do there.
    pub(in crate::ops) fn lock(self, workspace: &Workspace, verb: &str) -> Result<Option<File>, Failure> {
        if workspace.folder.is_borrowed() {
            return Err(Failure::team("the team belongs to the main work tree").hint(format!("{verb} it there")));
        }
        if self.is_dry_run() { Ok(None) } else { lock(&workspace.repository, None).map(Some) }
    }
}

/// Takes the lock that serializes changes of this clone's teams.
pub(in crate::ops) fn lock(repository: &Repository, cancel: Option<&Cancel>) -> Result<File, Failure> {
    let path = repository.common_dir().join("squad/landing.lock");
    lock::acquire(&path, "landing decisions", repository.damage(), cancel)
}
