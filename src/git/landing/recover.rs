//! Finishing or rolling back what an interrupted command began.

use jiff::Timestamp;

use super::{Change, Edit, Landing, NewFile, try_to_land};
use crate::git::{
    commit::Identity,
    error::Error,
    intent::{self, Version, WorkTreeLock},
    mode::PROGRAM,
    repository::Repository,
    transaction::Transaction,
};
use crate::model::ChangeKind;

/// The result of recovering an interrupted command.
#[derive(Clone, Debug)]
pub(crate) struct Recovered {
    pub(crate) kind: ChangeKind,
    /// `None`: it makes no commit.
    pub(crate) branch: Option<String>,
    pub(crate) paths: Vec<String>,
    pub(crate) outcome: Outcome,
    /// Files that match neither the old nor the new version: the user's, left alone.
    pub(crate) left: Vec<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// With its commit, if it makes one.
    Finished { commit: Option<String> },
    /// Rolled back, because it cannot land.
    Undone { reason: String, hint: String },
    /// Left as it is, because something else has to end first.
    Waits { reason: String, hint: String },
}

/// Finishes or rolls back an interrupted command.
pub(in crate::git) fn recover(
    repository: &Repository,
    lock: &WorkTreeLock,
    committer: Option<&Identity>,
    at: Timestamp,
) -> Result<Option<Recovered>, Error> {
    let Some(begun) = Transaction::unfinished(repository)? else { return Ok(None) };
    let paths = begun.intent.display_paths();
    let (kind, commit) = (begun.intent.kind.clone(), begun.intent.commit.clone());
    let branch = commit.as_ref().map(|commit| commit.branch.clone());
    let recovered = |outcome, left| Ok(Some(Recovered { kind: kind.clone(), branch, paths, outcome, left }));
    let hint = "finish it: `git status` tells how".to_owned();
    if let (Some(operation), Some(_)) = (repository.operation(), &commit) {
        return recovered(Outcome::Waits { reason: format!("a {operation} is in progress"), hint }, Vec::new());
    }
    if let Some(folder) = begun.missing_folder() {
        let reason = format!("there is no folder {}", folder.display());
        begun.end()?;
        return recovered(Outcome::Undone { reason, hint: format!("squad {kind}") }, Vec::new());
    }
    let left = match begun.settle() {
        Err(Error::Locked { path }) => {
            let reason = "another git process is changing the index".to_owned();
            let hint = format!("if none is, remove '{}'", path.display());
            return recovered(Outcome::Waits { reason, hint }, Vec::new());
        }
        left => left?,
    };
    let Some(commit) = commit else {
        begun.end()?;
        return recovered(Outcome::Finished { commit: None }, left);
    };
    let landed = match &commit.id {
        Some(id) if is_on_branch(repository, &commit.branch, id)? => Landing::Landed { commit: id.clone() },
        _ if matches!(kind, ChangeKind::Merge { .. }) => {
            Landing::NotLanded { reason: "it had not moved the branch yet".to_owned(), hint: "merge again".to_owned() }
        }
        _ => {
            let change = change_of(&begun, &commit)?;
            let new = change.files.iter().map(|file| file.path.clone()).collect();
            try_to_land(repository, lock, &change, &new, committer, at)?
        }
    };
    begun.end()?;
    match landed {
        Landing::Landed { commit } => recovered(Outcome::Finished { commit: Some(commit) }, left),
        Landing::NotLanded { reason, hint } => recovered(Outcome::Undone { reason, hint }, left),
    }
}

fn is_on_branch(repository: &Repository, branch: &str, commit: &str) -> Result<bool, Error> {
    let branch = format!("refs/heads/{branch}");
    // A commit or branch that git cannot find counts as no.
    Ok(repository.call(&["merge-base", "--is-ancestor", commit, &branch]).run()?.is_success())
}

/// Rebuilds the change from its intent.
fn change_of(begun: &Transaction<'_>, commit: &intent::Commit) -> Result<Change, Error> {
    let mut change = Change {
        kind: begun.intent.kind.clone(),
        branch: commit.branch.clone(),
        allow_unborn: commit.base.is_none(),
        files: Vec::new(),
        edits: Vec::new(),
        message: commit.message.clone(),
    };
    for file in &begun.intent.files {
        let content =
            |version: &Option<Version>| version.as_ref().map(|version| begun.content(&version.blob)).transpose();
        let path = file.path.display();
        match (content(&file.old)?, content(&file.new)?) {
            (Some(old), new) => change.edits.push(Edit { path, old, new }),
            (None, Some(bytes)) => {
                let executable = file.new.as_ref().is_some_and(|version| version.mode == PROGRAM);
                change.files.push(NewFile { path, bytes, executable });
            }
            (None, None) => {}
        }
    }
    Ok(change)
}
