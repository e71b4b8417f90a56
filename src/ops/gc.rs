//! Tidies what the ledger leaves: every append is about nine loose objects.

use std::path::Path;

use serde::Serialize;

use super::{lost, repository};
use crate::env::Env;
use crate::error::Failure;
use crate::git::Loose;

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Tidied {
    pub(crate) before: Loose,
    pub(crate) after: Loose,
}

/// Packs loose objects, the user's own too, as git's own maintenance does; deletes nothing that is in no pack.
pub(crate) fn gc(env: &Env, directory: &Path) -> Result<Tidied, Failure> {
    let (repository, _) = repository(env, directory)?;
    lost::settle(env, &repository);
    let before = repository.loose()?;
    repository.pack()?;
    Ok(Tidied { before, after: repository.loose()? })
}
