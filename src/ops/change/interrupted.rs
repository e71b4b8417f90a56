//! Interrupted changes: the next command that writes to the branch finishes them, every other command reports them.

use std::path::Path;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{InterruptedCommand, Recovered, Repository, may_be_begun};
use crate::model::ChangeKind;
use crate::ops::ledger::undone;
use crate::ops::team::workspace::git_environment;
use crate::program::nearest_git;

/// The interrupted change of the work tree that contains `directory`.
pub(crate) fn find(env: &Env, directory: &Path) -> Result<Option<InterruptedCommand>, Failure> {
    repository(env, directory).map_or(Ok(None), |repository| Ok(repository.begun()?))
}

/// Finishes it or rolls it back.
pub(crate) fn finish(env: &Env, directory: &Path) -> Result<Option<Recovered>, Failure> {
    match repository(env, directory) {
        None => Ok(None),
        Some(repository) => {
            let Some(begun) = repository.begun()? else { return Ok(None) };
            if let ChangeKind::Undo(record) = &begun.kind {
                undone::record(env, &repository, record)?;
            }
            Ok(repository.recover(repository.identity().as_ref(), env.clock.now())?)
        }
    }
}

/// The repository, if a change may have been interrupted in it. Without a repository, the command itself reports that.
fn repository(env: &Env, directory: &Path) -> Option<Repository> {
    // Every command asks, and opens no repository for it.
    if nearest_git(directory).is_some_and(|(_, git_dir)| !may_be_begun(&git_dir)) {
        return None;
    }
    let repository = Repository::discover(directory, &git_environment(env, directory)).ok()?;
    repository.work_dir().is_some().then_some(repository)
}
