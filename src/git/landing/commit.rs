//! Writing the commit and moving the branch to it.

use std::time::Duration;

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{Stop, refuse};
use crate::git::{
    commit::{self, Identity},
    error::Error,
    objects::NewObjects,
    pack::KeptPack,
    quarantine::Quarantine,
    repository::Repository,
};

/// How long a signing program may take before we assume that it waits for the user.
const SIGNING_TIMEOUT: Duration = Duration::from_secs(10);

/// A commit to be made on a branch.
pub(super) struct NewCommit<'a> {
    pub(super) branch: &'a str,
    /// The branch's commit; `None`: it has none.
    pub(super) base: Option<ObjectId>,
    /// The second parent of a merge.
    pub(super) merged: Option<ObjectId>,
    pub(super) message: &'a str,
    pub(super) committer: &'a Identity,
    pub(super) at: Timestamp,
}

impl NewCommit<'_> {
    fn parents(&self) -> Vec<ObjectId> {
        self.base.into_iter().chain(self.merged).collect()
    }
}

/// Writes the commit of a tree, and the objects with it, in one pack.
pub(super) fn write_commit(
    repository: &Repository,
    objects: &mut NewObjects,
    tree: ObjectId,
    new: &NewCommit<'_>,
    is_signed: bool,
) -> Result<(ObjectId, KeptPack), Stop> {
    let commit = if is_signed {
        sign(repository, objects, tree, new)?
    } else {
        let bytes = commit::encode(tree, &new.parents(), new.committer, new.at, new.message);
        objects.add(objs::Kind::Commit, bytes)?
    };
    Ok((commit, repository.packs().add(objects)?))
}

pub(super) fn wants_signature(repository: &Repository) -> Result<bool, Error> {
    Ok(repository.call(&["config", "--type=bool", "--get", "commit.gpgSign"]).run()?.text() == "true")
}

pub(super) fn sign(
    repository: &Repository,
    objects: &mut NewObjects,
    tree: ObjectId,
    new @ NewCommit { message, committer, at, .. }: &NewCommit<'_>,
) -> Result<ObjectId, Stop> {
    let mut arguments = vec!["commit-tree".to_owned(), "-S".to_owned()];
    arguments.extend(new.parents().iter().flat_map(|parent| ["-p".to_owned(), parent.to_string()]));
    arguments.push(tree.to_string());
    let quarantine = Quarantine::new(repository)?;
    quarantine.put(objects)?;
    let mut call = quarantine
        .call(repository.call(&["-c", "i18n.commitEncoding=UTF-8"]))
        .arguments(&arguments)
        .input(commit::message_text(message))
        .timeout(SIGNING_TIMEOUT);
    for role in ["AUTHOR", "COMMITTER"] {
        call = call
            .variable(&format!("GIT_{role}_NAME"), &committer.name)
            .variable(&format!("GIT_{role}_EMAIL"), &committer.email)
            .variable(&format!("GIT_{role}_DATE"), &date(*at));
    }
    let hint = "unlock your signing key, or set commit.gpgSign to false, then try again";
    match call.run() {
        Ok(answer) if answer.is_success() => {
            let commit = repository.parse_commit(&answer.text())?;
            quarantine.take(commit, objs::Kind::Commit, objects).map(drop)?;
            Ok(commit)
        }
        Ok(answer) => refuse(format!("the commit could not be signed: {}", answer.error_line()), hint),
        Err(Error::Program { message, .. }) => refuse(format!("the commit could not be signed: {message}"), hint),
        Err(error) => Err(error.into()),
    }
}

fn date(at: Timestamp) -> String {
    format!("@{} +0000", at.as_second().max(0))
}

/// Moves the branch, with HEAD's reflog, from the commit we built on. False: the branch was no longer at it.
pub(super) fn move_branch(
    repository: &Repository,
    NewCommit { branch, base, message, committer, at, .. }: &NewCommit<'_>,
    (commit, kept): (ObjectId, &KeptPack),
) -> Result<bool, Error> {
    let subject = commit::subject(message);
    let message = if base.is_some() { format!("commit: {subject}") } else { format!("commit (initial): {subject}") };
    let reference = format!("refs/heads/{branch}");
    let old = base.unwrap_or(repository.hash().null());
    let arguments = ["-m", &message, &reference, &commit.to_string(), &old.to_string()];
    let answer = repository
        .call(&["update-ref"])
        .arguments(&arguments)
        // If we are killed, git may still move the branch.
        .holding(kept.handle())
        .variable("GIT_COMMITTER_NAME", &committer.name)
        .variable("GIT_COMMITTER_EMAIL", &committer.email)
        .variable("GIT_COMMITTER_DATE", &date(*at))
        .run()?;
    if answer.is_success() {
        // git flushes the ref but not its folder.
        return repository.references().flush(&reference).map(|()| true);
    }
    let is_at_base = repository.references().read(&reference)? == *base;
    if is_at_base {
        return Err(Error::Program { command: "git update-ref".into(), message: answer.error_line() });
    }
    Ok(false)
}
