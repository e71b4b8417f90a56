//! Commands that were stopped before their end: the next one that writes to the branch finishes them, every other one
//! names them.

use std::path::Path;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{Begun, Recovered, Repository};
use crate::ops::team::workspace::git_environment;

/// What was begun and not finished in the work tree that `directory` is in.
pub(crate) fn begun(env: &Env, directory: &Path) -> Result<Option<Begun>, Failure> {
    match find(env, directory) {
        Some(repository) => Ok(repository.begun()?),
        None => Ok(None),
    }
}

/// Finishes it, or takes it back.
pub(crate) fn finish(env: &Env, directory: &Path) -> Result<Option<Recovered>, Failure> {
    let Some(repository) = find(env, directory) else { return Ok(None) };
    match repository.begun()? {
        Some(_) => Ok(repository.recover(repository.identity().as_ref(), env.clock.now())?),
        None => Ok(None),
    }
}

/// Where there is no repository, the command itself says so.
fn find(env: &Env, directory: &Path) -> Option<Repository> {
    let repository = Repository::discover(directory, &git_environment(env, directory)).ok()?;
    repository.work_dir()?;
    Some(repository)
}
