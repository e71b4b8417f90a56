//! Tidies what the ledger leaves: every append is a small pack, and those that earlier versions made nine loose objects.

use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::Extent;
use crate::model::RunId;
use crate::ops::ledger::lost;
use crate::ops::repository;
use crate::ops::run::lease;

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Tidied {
    pub(crate) before: Extent,
    pub(crate) after: Extent,
    /// Snapshots of runs that are over, which were forgotten.
    pub(crate) snapshots: usize,
}

/// Packs loose objects, the user's own too, as git's own maintenance does, and the ledger's packs into one; deletes
/// nothing that is in no other pack.
pub(crate) fn gc(env: &Env, directory: &Path) -> Result<Tidied, Failure> {
    let (repository, _) = repository(env, directory)?;
    lost::settle(env, &repository);
    let before = repository.extent()?;
    let leases = lease::look(&repository.common_dir().join("squad"));
    let snapshots =
        repository.forget_snapshots(|run| RunId::parse(run).is_some_and(|run| leases.status(&run) == "running"))?;
    repository.pack()?;
    Ok(Tidied { before, after: repository.extent()?, snapshots })
}
