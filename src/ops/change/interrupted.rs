//! Interrupted commands: the next command that writes to the branch finishes them, every other command reports them.

use std::path::Path;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{InterruptedCommand, Recovered, Repository};
use crate::ops::team::workspace::git_environment;

/// The interrupted command of the work tree that contains `directory`.
pub(crate) fn begun(env: &Env, directory: &Path) -> Result<Option<InterruptedCommand>, Failure> {
    match find(env, directory) {
        Some(repository) => Ok(repository.begun()?),
        None => Ok(None),
    }
}

/// Finishes it or rolls it back.
pub(crate) fn finish(env: &Env, directory: &Path) -> Result<Option<Recovered>, Failure> {
    let Some(repository) = find(env, directory) else { return Ok(None) };
    match repository.begun()? {
        Some(_) => Ok(repository.recover(repository.identity().as_ref(), env.clock.now())?),
        None => Ok(None),
    }
}

/// `None` without a repository: the command itself reports that.
fn find(env: &Env, directory: &Path) -> Option<Repository> {
    let repository = Repository::discover(directory, &git_environment(env, directory)).ok()?;
    repository.work_dir()?;
    Some(repository)
}
