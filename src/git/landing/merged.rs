//! Landing a merge: a commit with two parents, whose tree is known.

use gix::ObjectId;
use jiff::Timestamp;

use super::{
    Landing, NewCommit, Stop, carry_through, check_ready, move_branch, not_landed, recovered, refuse, sign,
    wants_signature, write_commit,
};
use crate::git::{
    commit::Identity,
    error::Error,
    intent::{Contents, Intent},
    objects::NewObjects,
    repository::Repository,
    transaction::Transaction,
};

/// The commit of a merge.
pub(in crate::git) struct MergeCommit<'a> {
    pub(in crate::git) onto: ObjectId,
    /// The second parent; `None`: it has one.
    pub(in crate::git) merged: Option<ObjectId>,
    pub(in crate::git) tree: ObjectId,
    pub(in crate::git) message: &'a str,
    pub(in crate::git) committer: &'a Identity,
    pub(in crate::git) at: Timestamp,
}

impl<'a> MergeCommit<'a> {
    /// For a branch that is not checked out, without waiting for a passphrase.
    pub(in crate::git) fn write_unsigned(
        &self,
        repository: &Repository,
        objects: &mut NewObjects,
    ) -> Result<ObjectId, Error> {
        match write_commit(repository, objects, self.tree, &self.on(""), false) {
            Ok((commit, _)) => Ok(commit),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Refused { reason, .. }) => Err(Error::damaged(repository.git_dir(), reason)),
        }
    }

    /// Why it cannot be signed, where the user has commits signed.
    pub(in crate::git) fn obstacle_to_signature(&self, repository: &Repository) -> Result<Option<String>, Error> {
        if !wants_signature(repository)? {
            return Ok(None);
        }
        match sign(repository, &mut NewObjects::new(repository.hash()), self.tree, &self.on("")) {
            Ok(_) => Ok(None),
            Err(Stop::Refused { reason, .. }) => Ok(Some(reason)),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn on(&self, branch: &'a str) -> NewCommit<'a> {
        let Self { onto, merged, message, committer, at, .. } = *self;
        NewCommit { branch, base: Some(onto), merged, message, committer, at }
    }
}

/// Commits a merge to the checked-out branch, with its files. `intent` makes the intent of the commit's id.
pub(in crate::git) fn land_merge(
    repository: &Repository,
    branch: &str,
    merge: &MergeCommit<'_>,
    objects: &mut NewObjects,
    intent: impl FnOnce(ObjectId) -> Intent,
    contents: Contents,
) -> Result<Landing, Error> {
    let attempt = || {
        let lock = repository.lock_work_tree()?;
        recovered(repository, &lock, Some(merge.committer), merge.at)?;
        let (root, base) = check_ready(repository, branch, false)?;
        if base != Some(merge.onto) {
            return refuse(format!("{branch} has moved meanwhile"), super::TRY_AGAIN);
        }
        let new = merge.on(branch);
        let (commit, kept) = write_commit(repository, objects, merge.tree, &new, wants_signature(repository)?)?;
        let transaction = Transaction::begin(repository, &lock, root, intent(commit), contents)?;
        let finish = || move_branch(repository, &new, (commit, &kept));
        match carry_through(transaction, branch, |_| false, finish) {
            Ok(true) => Ok(commit),
            Ok(false) => refuse(format!("{branch} has moved meanwhile"), super::TRY_AGAIN),
            Err(Stop::Failed(error)) if error.is_refused() => refuse(format!("squad {error}"), ""),
            Err(stop) => Err(stop),
        }
    };
    match attempt() {
        Ok(commit) => Ok(Landing::Landed { commit: commit.to_string() }),
        Err(stop) => not_landed(stop),
    }
}
