//! Tidies what the ledger leaves: every append is a small pack, and those that earlier versions made nine loose objects.

use std::path::Path;

use serde::Serialize;

use super::{lost, repository};
use crate::env::Env;
use crate::error::Failure;
use crate::git::Extent;

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Tidied {
    pub(crate) before: Extent,
    pub(crate) after: Extent,
}

/// Packs loose objects, the user's own too, as git's own maintenance does, and the ledger's packs into one; deletes
/// nothing that is in no other pack.
pub(crate) fn gc(env: &Env, directory: &Path) -> Result<Tidied, Failure> {
    let (repository, _) = repository(env, directory)?;
    lost::settle(env, &repository);
    let before = repository.extent()?;
    repository.pack()?;
    Ok(Tidied { before, after: repository.extent()? })
}
