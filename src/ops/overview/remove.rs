//! Removes squad's data from a repository, and the team too on request.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{ChangeKind, IntoSet, SkippedFile, list, plural};
use crate::ops::change::{Change, FileChange, WriteMode, branch_tip};
use crate::ops::ledger::rescue;
use crate::ops::repository;
use crate::ops::run::{lease, watch};
use crate::ops::team::hosts;
use crate::ops::team::workspace::Workspace;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Also delete the team's folder, in a commit.
    pub(crate) team: bool,
    /// Also remove what no remote has.
    pub(crate) force: bool,
    pub(crate) mode: WriteMode,
}

/// What was removed, or would be in a dry run.
#[derive(Debug, Serialize)]
pub(crate) struct Removal {
    pub(crate) references: Vec<String>,
    /// Keys of git's configuration.
    pub(crate) settings: Vec<String>,
    pub(crate) folders: Vec<String>,
    /// What no remote has: `3 ledger entries`.
    pub(crate) unshared: Vec<String>,
    /// Files of the team and files exported from it, relative to the repository's root.
    pub(crate) team: Vec<String>,
    #[serde(rename = "left")]
    pub(crate) skipped: Vec<SkippedFile>,
    pub(crate) commit: Option<String>,
}

pub(crate) fn remove(env: &Env, directory: &Path, options: Options) -> Result<Removal, Failure> {
    let (repository, _) = repository(env, directory)?;
    refuse_while_running(&repository)?;
    let data = repository.stored_state()?;
    // Rescues without files hold nothing that is not in a commit.
    let rescues = rescue::listed(env, directory)?.iter().filter(|rescue| rescue.files > 0).count();
    let team = if options.team { Some(team_removal(env, directory)?) } else { None };
    let mut removal = Removal {
        references: data.references.clone(),
        settings: data.settings.iter().map(|(key, _)| key.clone()).collect(),
        folders: data.folders.iter().map(|folder| folder.display().to_string()).collect(),
        unshared: unshared(&repository, rescues)?,
        team: team.iter().flat_map(|team| team.change.files.iter().map(|file| file.path.clone())).collect(),
        skipped: team.iter().flat_map(|team| team.skipped.clone()).collect(),
        commit: None,
    };
    if !options.mode.is_dry_run() && !removal.unshared.is_empty() && !options.force {
        return Err(Failure::failed(format!("no remote has {}", list(&removal.unshared))).hint(
            "`squad sync` shares the ledger; `squad rescue` restores files of rescues, which are never shared; --force \
             removes everything anyway",
        ));
    }
    if let Some(TeamRemoval { workspace, change, .. }) = team {
        let _lock = options.mode.lock(&workspace, "remove")?;
        removal.commit = change.apply(env, &workspace.repository, options.mode)?.commit;
        if removal.commit.is_some() {
            remove_empty(&workspace.folder.path);
        }
    }
    if options.mode.is_dry_run() {
        return Ok(removal);
    }
    // The commit may have written new data.
    repository.remove_stored_state(&repository.stored_state()?)?;
    Ok(removal)
}

/// Removes empty folders. Other people's files stay.
fn remove_empty(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_empty(&entry.path());
    }
    // Fails for a folder that is not empty.
    let _ = std::fs::remove_dir(folder);
}

/// Fails while a run or a watch uses the data.
fn refuse_while_running(repository: &Repository) -> Result<(), Failure> {
    let local = repository.own_folder();
    if let Some(run) = lease::look(&local).live.first() {
        return Err(
            Failure::failed(format!("run {} is active", run.run)).hint(format!("`squad cancel {}` ends it", run.run))
        );
    }
    if watch::is_anywhere(&local) {
        return Err(Failure::failed("`squad watch` is running in this repository").hint("end it with Ctrl-C"));
    }
    Ok(())
}

struct TeamRemoval {
    workspace: Workspace,
    change: Change,
    skipped: Vec<SkippedFile>,
}

/// Plans the removal of the team and of the files exported from it.
fn team_removal(env: &Env, directory: &Path) -> Result<TeamRemoval, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let folder = workspace.folder_in_repository();
    let (_, commit) = branch_tip(&workspace.repository, false)?;
    let found = workspace.repository.plain_files_at(&commit, &folder)?;
    let why = "a link or a very large file: delete it with `git rm`";
    let skipped = |path| SkippedFile { path, why: why.to_owned() };
    let mut skipped: Vec<SkippedFile> = found.other.into_iter().map(skipped).collect();
    let record = format!("{folder}/{}", hosts::RECORD);
    let exported =
        found.plain.iter().find(|(path, _)| *path == record).map(|(_, text)| hosts::plan_removal(&workspace, text));
    let team = found.plain.into_iter().map(|(path, old)| FileChange::new(path, Some(old), None));
    let mut files: Vec<FileChange> = team.collect();
    match exported {
        Some(Ok(exported)) => {
            files.extend(exported.changes);
            skipped.extend(exported.skipped);
        }
        Some(Err(failure)) => {
            let why = format!("the files exported from the team stay: {}", failure.message);
            skipped.push(SkippedFile { path: record, why });
        }
        None => {}
    }
    let message = format!("squad: remove the team\n\nDeletes {folder} and the files exported from it.\n");
    Ok(TeamRemoval { workspace, change: Change::new(ChangeKind::RemoveTeam, message, files), skipped })
}

fn unshared(repository: &Repository, rescues: usize) -> Result<Vec<String>, Failure> {
    let mut unshared = Vec::new();
    if let Some(snapshot) = repository.ledger().snapshot()? {
        let paths = snapshot.paths("")?;
        let folders: BTreeSet<String> =
            paths.iter().filter_map(|path| path.split_once('/')).map(|(folder, _)| folder.to_owned()).into_set();
        let missing = repository.unsynced(&folders.into_iter().collect::<Vec<_>>())?;
        match missing {
            Some(0) => {}
            Some(count) => unshared.push(plural(count, "ledger entry")),
            None => unshared.push(format!("the ledger: {}", plural(paths.len(), "entry"))),
        }
    }
    if rescues > 0 {
        unshared.push(plural(rescues, "rescue"));
    }
    Ok(unshared)
}
