//! Removes squad's data from a repository, and the team too on request.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{SkippedFile, list, plural};
use crate::ops::decisions::landing::Lander;
use crate::ops::ledger::rescue;
use crate::ops::repository;
use crate::ops::run::{lease, watch};
use crate::ops::team::changeset::{Changeset, FileChange};
use crate::ops::team::hosts;
use crate::ops::team::workspace::Workspace;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Also delete the team's folder, in a commit.
    pub(crate) team: bool,
    /// Also remove what no remote has.
    pub(crate) force: bool,
    pub(crate) dry_run: bool,
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
        team: team.iter().flat_map(|team| team.changeset.files.iter().map(|file| file.path.clone())).collect(),
        skipped: team.iter().flat_map(|team| team.skipped.clone()).collect(),
        commit: None,
    };
    if options.dry_run {
        if let Some(team) = team.filter(|team| !team.changeset.files.is_empty()) {
            team.changeset.check_committable(&team.workspace.repository)?;
        }
        return Ok(removal);
    }
    if !removal.unshared.is_empty() && !options.force {
        return Err(Failure::failed(format!("no remote has {}", list(&removal.unshared))).hint(
            "`squad sync` shares the ledger; `squad rescue` restores files of rescues, which are never shared; --force \
             removes everything anyway",
        ));
    }
    if let Some(TeamRemoval { workspace, changeset, .. }) = team.filter(|team| !team.changeset.files.is_empty()) {
        let _lock = Lander::new(env, &workspace).lock()?;
        removal.commit = Some(changeset.commit(env, &workspace.repository)?);
        remove_empty(&workspace.folder.path);
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
    changeset: Changeset,
    skipped: Vec<SkippedFile>,
}

/// Plans the removal of the team and of the files exported from it.
fn team_removal(env: &Env, directory: &Path) -> Result<TeamRemoval, Failure> {
    let workspace = Workspace::find(env, directory)?;
    if workspace.folder.is_borrowed() {
        return Err(Failure::team("the team belongs to the main work tree").hint("remove it there"));
    }
    let folder = workspace.folder_in_repository();
    let head = workspace.repository.head()?;
    let Some(commit) = head.commit.filter(|_| head.branch.is_some()) else {
        let reason = if head.branch.is_some() { "the branch has no commit yet" } else { "HEAD is detached" };
        return Err(Failure::failed(format!("cannot commit: {reason}")).hint("`git switch` to the team's branch"));
    };
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
    let changeset = Changeset { must_commit: true, ..Changeset::new("remove --team", message, files) };
    Ok(TeamRemoval { workspace, changeset, skipped })
}

fn unshared(repository: &Repository, rescues: usize) -> Result<Vec<String>, Failure> {
    let mut unshared = Vec::new();
    if let Some(snapshot) = repository.ledger().snapshot()? {
        let paths = snapshot.paths("")?;
        let folders: BTreeSet<String> =
            paths.iter().filter_map(|path| path.split_once('/')).map(|(folder, _)| folder.to_owned()).collect();
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
