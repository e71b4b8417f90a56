//! Taking squad out of a repository, and the team with it where that is asked for.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{list, plural};
use crate::ops::decisions::landing::Lander;
use crate::ops::ledger::rescue;
use crate::ops::repository;
use crate::ops::run::{lease, watch};
use crate::ops::team::changeset::{Changeset, FileChange};
use crate::ops::team::hosts::{self, LeftFile};
use crate::ops::team::workspace::Workspace;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// The team's folder too, in a commit.
    pub(crate) team: bool,
    /// What is shared nowhere too.
    pub(crate) force: bool,
    pub(crate) dry_run: bool,
}

/// What goes, or would.
#[derive(Debug, Serialize)]
pub(crate) struct Removal {
    pub(crate) references: Vec<String>,
    /// Keys of git's configuration.
    pub(crate) settings: Vec<String>,
    pub(crate) folders: Vec<String>,
    /// What no remote has, in words.
    pub(crate) unshared: Vec<String>,
    /// Files of the team and those exported from it, from the repository's root.
    pub(crate) team: Vec<String>,
    pub(crate) left: Vec<LeftFile>,
    pub(crate) commit: Option<String>,
}

pub(crate) fn remove(env: &Env, directory: &Path, wish: Wish) -> Result<Removal, Failure> {
    let (repository, _) = repository(env, directory)?;
    insist_on_rest(&repository)?;
    let belongings = repository.belongings()?;
    // The others hold nothing that is not in a commit.
    let rescues = rescue::listed(env, directory)?.iter().filter(|rescue| rescue.files > 0).count();
    let team = if wish.team { Some(team_removal(env, directory)?) } else { None };
    let mut removal = Removal {
        references: belongings.references.clone(),
        settings: belongings.settings.iter().map(|(key, _)| key.clone()).collect(),
        folders: belongings.folders.iter().map(|folder| folder.display().to_string()).collect(),
        unshared: unshared(&repository, rescues)?,
        team: team.iter().flat_map(|team| team.changeset.files.iter().map(|file| file.path.clone())).collect(),
        left: team.iter().flat_map(|team| team.left.clone()).collect(),
        commit: None,
    };
    if wish.dry_run {
        if let Some(team) = team.filter(|team| !team.changeset.files.is_empty()) {
            team.changeset.insist_on_room(&team.workspace.repository)?;
        }
        return Ok(removal);
    }
    if !removal.unshared.is_empty() && !wish.force {
        return Err(Failure::failed(format!("no remote has {}", list(&removal.unshared))).hint(
            "`squad sync` shares the ledger; rescues are never shared, `squad rescue` gives back their files; \
             --force removes it all the same",
        ));
    }
    if let Some(TeamRemoval { workspace, changeset, .. }) = team.filter(|team| !team.changeset.files.is_empty()) {
        let _turn = Lander::new(env, &workspace).turn()?;
        removal.commit = Some(changeset.commit(env, &workspace.repository)?);
        remove_empty(&workspace.folder.path);
    }
    // The commit may have left something there.
    repository.remove_belongings(&repository.belongings()?)?;
    Ok(removal)
}

/// Removes folders in which nothing is left. What is not the team's stays.
fn remove_empty(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_empty(&entry.path());
    }
    // It fails where anything is left.
    let _ = std::fs::remove_dir(folder);
}

/// Nobody may be at work on what goes.
fn insist_on_rest(repository: &Repository) -> Result<(), Failure> {
    let local = repository.common_dir().join("squad");
    if let Some(run) = lease::look(&local).live.first() {
        return Err(
            Failure::failed(format!("run {} is going on", run.run)).hint(format!("`squad cancel {}` ends it", run.run))
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
    left: Vec<LeftFile>,
}

/// The removal of the team in this folder, and of the files exported from it.
fn team_removal(env: &Env, directory: &Path) -> Result<TeamRemoval, Failure> {
    let workspace = Workspace::find(env, directory)?;
    if workspace.folder.is_borrowed() {
        return Err(Failure::team("the team is the main work tree's").hint("remove it there"));
    }
    let folder = workspace.folder_in_repository();
    let head = workspace.repository.head()?;
    let Some(commit) = head.commit.filter(|_| head.branch.is_some()) else {
        let reason = if head.branch.is_some() { "the branch has no commit yet" } else { "HEAD is detached" };
        return Err(Failure::failed(format!("cannot commit: {reason}")).hint("`git switch` to the team's branch"));
    };
    let found = workspace.repository.plain_files_at(&commit, &folder)?;
    let why = "a link or a very large file: `git rm` it";
    let mut left: Vec<LeftFile> = found.other.into_iter().map(|path| LeftFile { path, why: why.to_owned() }).collect();
    let record = format!("{folder}/{}", hosts::RECORD);
    let exported =
        found.plain.iter().find(|(path, _)| *path == record).map(|(_, text)| hosts::removal(&workspace, text));
    let team = found.plain.into_iter().map(|(path, old)| FileChange::new(path, Some(old), None));
    let mut files: Vec<FileChange> = team.collect();
    match exported {
        Some(Ok(exported)) => {
            files.extend(exported.changes);
            left.extend(exported.left);
        }
        Some(Err(failure)) => {
            let why = format!("the files exported from the team stay: {}", failure.message);
            left.push(LeftFile { path: record, why });
        }
        None => {}
    }
    let message = format!("squad: remove the team\n\nTakes {folder} out of the repository.\n");
    let changeset = Changeset { must_commit: true, ..Changeset::new("remove --team", message, files) };
    Ok(TeamRemoval { workspace, changeset, left })
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
