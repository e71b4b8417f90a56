//! Tidies what the ledger leaves: every append is a small pack, and those that earlier versions made nine loose objects.

use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::Extent;
use crate::model::RunId;
use crate::ops::ledger::log::{self, Choice};
use crate::ops::ledger::lost;
use crate::ops::repository;
use crate::ops::run::{homes, lease};
use crate::ops::team::workspace::{ledger_prefix, place, team_folder};

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Tidied {
    pub(crate) before: Extent,
    pub(crate) after: Extent,
    /// Snapshots of runs that are over, which were forgotten.
    pub(crate) snapshots: usize,
    /// What engines had stored of sessions that are over, and that was removed.
    pub(crate) sessions: usize,
    /// What these took.
    pub(crate) session_bytes: u64,
}

/// Packs loose objects, the user's own too, as git's own maintenance does, and the ledger's packs into one; deletes
/// nothing of the repository's that is in no other pack. What engines stored of sessions is cleared when it is of no use.
pub(crate) fn gc(env: &Env, directory: &Path) -> Result<Tidied, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    lost::settle(env, &repository);
    let before = repository.extent()?;
    let local = repository.common_dir().join("squad");
    let leases = lease::look(&local);
    let snapshots =
        repository.forget_snapshots(|run| RunId::parse(run).is_some_and(|run| leases.status(&run) == "running"))?;
    let folder = team_folder(&repository, &dunce::canonicalize(directory).unwrap_or(directory.to_owned()), &work_dir);
    let prefix = ledger_prefix(&folder.map(|folder| place(&folder, &work_dir)).unwrap_or_default());
    let runs = log::runs(&repository, &prefix, &leases, &Choice::default(), usize::MAX)?;
    let cleared = homes::clear(&local, &runs, env.clock.now().into());
    repository.pack()?;
    let (sessions, session_bytes) = (cleared.sessions, cleared.bytes);
    Ok(Tidied { before, after: repository.extent()?, snapshots, sessions, session_bytes })
}
