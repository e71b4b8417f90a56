//! `squad gc`: packs the ledger. Every append makes a small pack; earlier versions made nine loose objects each.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::env::files::{Measured, measure};
use crate::env::{Env, real};
use crate::error::Failure;
use crate::git::{Extent, Repository, RunOfSnapshots};
use crate::model::{Problem, RunId, SkippedFile};
use crate::ops::ledger::log::{self, Choice};
use crate::ops::ledger::lost;
use crate::ops::run::lease::Leases;
use crate::ops::run::{clones, homes, lease};
use crate::ops::team::sandbox;
use crate::ops::team::workspace::{ledger_prefix, project_path, team_folder};
use crate::ops::{Workspace, repository, team_settings};

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct GcReport {
    /// What is wrong with the settings: other limits hold than it seems.
    #[serde(skip)]
    pub(crate) problems: Vec<Problem>,
    pub(crate) before: Extent,
    pub(crate) after: Extent,
    /// Deleted snapshots of finished runs.
    pub(crate) snapshots: usize,
    /// Old runs whose snapshots hold what is nowhere else: they stay, or with `force` are deleted with it.
    pub(crate) only_copies: Vec<OnlyCopies>,
    pub(crate) force: bool,
    /// Nothing was changed: what is counted would be removed.
    pub(crate) dry_run: bool,
    /// Removed clones of ended runs.
    pub(crate) clones: usize,
    /// The size of these clones.
    pub(crate) clone_bytes: u64,
    /// Runs with clones whose work is on no branch.
    pub(crate) unmerged: Vec<RunId>,
    /// Clones of ended runs that stay.
    pub(crate) clones_kept: Vec<SkippedFile>,
    /// Removed engine data of finished sessions.
    pub(crate) sessions: usize,
    /// The size of that data.
    pub(crate) session_bytes: u64,
    /// Removed folders of sandboxes: caches and temporary files.
    pub(crate) sandboxes: usize,
    /// The size of these folders.
    pub(crate) sandbox_bytes: u64,
}

/// What the snapshots of one run hold that is nowhere else.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct OnlyCopies {
    pub(crate) run: String,
    /// As git takes them: `REF:PATH` or `commit ID`.
    pub(crate) copies: Vec<String>,
}

/// How long all snapshots of a run are kept: as long as it can be resumed.
const KEPT: Duration = homes::RESUMABLE;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Also delete old snapshots and clones that hold what is nowhere else.
    pub(crate) force: bool,
    pub(crate) dry_run: bool,
}

/// Packs loose objects, including the user's, as git's own maintenance does, and folds the ledger's packs into one.
/// Deletes no object that is not in another pack. Clears session data of engines that is no longer useful.
pub(crate) fn gc(env: &Env, directory: &Path, options: Options) -> Result<GcReport, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    let Options { force, dry_run } = options;
    if !dry_run {
        lost::settle(env, &repository);
    }
    let before = repository.extent()?;
    let local = repository.own_folder();
    let leases = lease::look(&local);
    let activity = env.damage.activity();
    activity.begin("looking for snapshots that may go");
    let (snapshots, only_copies) = forget_snapshots(env, &repository, &leases, options)?;
    let is_over = |(run, _): &(RunId, _)| !dry_run && leases.status(run) != "running";
    for (_, path) in lease::repository_files(&local).filter(is_over) {
        let _ = std::fs::remove_file(path);
    }
    let folder = team_folder(&repository, &real(directory), &work_dir);
    let prefix = ledger_prefix(&folder.map(|folder| project_path(&folder, &work_dir)).unwrap_or_default());
    let runs = log::runs(&repository, &prefix, &leases, &Choice::default(), usize::MAX)?;
    activity.begin("removing what ended runs left");
    let unmerged = clones::unmerged(&repository)?.into_keys().filter(|run| leases.status(run) != "running").collect();
    let (clones, clone_bytes, clones_kept) = clones::clear(env, &repository, &leases, force, dry_run);
    let (sandboxes, sandbox_bytes) = sandbox::clear(env, KEPT, dry_run);
    let (settings, problems) = team_settings(env, Workspace::find(env, directory).ok().as_ref());
    let cleared = homes::clear(&local, &runs, settings.sessions.workspace_limit, env.clock.now().into(), dry_run);
    if !dry_run {
        activity.begin("packing the repository");
        repository.pack()?;
    }
    let (sessions, session_bytes, after) = (cleared.sessions, cleared.bytes, repository.extent()?);
    Ok(GcReport {
        problems,
        before,
        after,
        snapshots,
        only_copies,
        force,
        dry_run,
        clones,
        clone_bytes,
        unmerged,
        clones_kept,
        sessions,
        session_bytes,
        sandboxes,
        sandbox_bytes,
    })
}

/// What runs have left that [`gc`] clears by age and size: engines' sessions and output, and caches of sandboxes, those
/// of other repositories too. At most that many files are looked at.
pub(crate) fn left_by_runs(env: &Env, repository: &Repository, most: usize) -> Measured {
    let local = repository.own_folder();
    measure(["homes", "output"].map(|name| local.join(name)).into_iter().chain(sandbox::folders(env)), most)
}

/// Deletes the snapshots of old runs, and returns their number.
fn forget_snapshots(
    env: &Env,
    repository: &Repository,
    leases: &Leases,
    Options { force, dry_run }: Options,
) -> Result<(usize, Vec<OnlyCopies>), Failure> {
    let now = env.clock.now();
    let is_kept = |snapshots: &RunOfSnapshots| {
        // The refs of a run's clones lie beside its own: `RUN.AGENT`, `RUN_merged`.
        let run = snapshots.run.split(['.', '_']).next().and_then(RunId::parse);
        // A run may have been resumed long after it began.
        let last = snapshots.at.max(run.as_ref().and_then(RunId::began));
        let is_recent = last.is_some_and(|at| Duration::try_from(now.duration_since(at)).is_ok_and(|age| age < KEPT));
        is_recent || last.is_some_and(|at| at > now) || run.is_some_and(|run| leases.status(&run) == "running")
    };
    let runs = repository.runs_of_snapshots()?;
    let (kept, old): (Vec<_>, Vec<_>) = runs.iter().partition(|run| is_kept(run));
    // Nobody can tell where a part of the history cannot be read.
    let unknown = |error| vec![vec![format!("unknown: {error}")]; old.len()];
    let copies = repository.only_copies(&old, &kept).unwrap_or_else(unknown);
    let unwanted = old.iter().zip(&copies).filter(|(_, copies)| force || copies.is_empty());
    let unwanted: Vec<&str> = unwanted.map(|(run, _)| run.run.as_str()).collect();
    let only_copies = old.iter().zip(copies.iter().cloned()).filter(|(_, copies)| !copies.is_empty());
    let only_copies = only_copies.map(|(run, copies)| OnlyCopies { run: run.run.clone(), copies }).collect();
    // Not all but those that stay: a run may have begun meanwhile.
    let is_wanted = |run: &str| !unwanted.contains(&run);
    let deleted = match dry_run {
        true => repository.snapshots_without(is_wanted)?.len(),
        false => repository.forget_snapshots(is_wanted)?,
    };
    Ok((deleted, only_copies))
}
