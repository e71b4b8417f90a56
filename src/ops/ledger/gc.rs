//! `squad gc`: packs the ledger. Every append makes a small pack; earlier versions made nine loose objects each.

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
use crate::ops::team::workspace::{ledger_prefix, project_path, team_folder};

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct GcReport {
    pub(crate) before: Extent,
    pub(crate) after: Extent,
    /// Deleted snapshots of finished runs.
    pub(crate) snapshots: usize,
    /// Removed engine data of finished sessions.
    pub(crate) sessions: usize,
    /// The size of that data.
    pub(crate) session_bytes: u64,
}

/// Packs loose objects, including the user's, as git's own maintenance does, and folds the ledger's packs into one.
/// Deletes no object that is not in another pack. Clears session data of engines that is no longer useful.
pub(crate) fn gc(env: &Env, directory: &Path) -> Result<GcReport, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    lost::settle(env, &repository);
    let before = repository.extent()?;
    let local = repository.common_dir().join("squad");
    let leases = lease::look(&local);
    let snapshots =
        repository.forget_snapshots(|run| RunId::parse(run).is_some_and(|run| leases.status(&run) == "running"))?;
    for (_, path) in lease::repository_files(&local).filter(|(run, _)| leases.status(run) != "running") {
        let _ = std::fs::remove_file(path);
    }
    let folder = team_folder(&repository, &dunce::canonicalize(directory).unwrap_or(directory.to_owned()), &work_dir);
    let prefix = ledger_prefix(&folder.map(|folder| project_path(&folder, &work_dir)).unwrap_or_default());
    let runs = log::runs(&repository, &prefix, &leases, &Choice::default(), usize::MAX)?;
    let cleared = homes::clear(&local, &runs, env.clock.now().into());
    repository.pack()?;
    let (sessions, session_bytes) = (cleared.sessions, cleared.bytes);
    Ok(GcReport { before, after: repository.extent()?, snapshots, sessions, session_bytes })
}
