//! Landing: committing files to the branch that the user has checked out, in one commit.
//!
//! The order is: write objects, intent, work tree, index; move the branch; remove the intent. After a kill between any
//! two steps, the files are at worst new and untracked or new and staged, with their final bytes; a commit the user
//! makes then can only add them. (Moving the branch first would leave an index without them, and the user's next commit
//! would delete them.) The next landing finishes the intent or rolls it back.

mod as_it_is;
mod commit;
mod merged;
mod plan;
mod ready;
mod recover;

use std::{collections::BTreeSet, path::Path, thread};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    checkout::checked_out,
    commit::Identity,
    error::Error,
    intent::{self, Contents, Intent, Planned, RawPath, Version, WorkTreeLock},
    objects::identify,
    path::check_path,
    repository::Repository,
    transaction::Transaction,
};
use crate::model::ChangeKind;
use commit::{NewCommit, move_branch, sign, wants_signature, write_commit};
pub(super) use merged::{MergeCommit, land_merge};
use plan::{Plan, PlannedFile};
use ready::{check_attributes, check_ready};
use recover::recover;
pub(crate) use recover::{Outcome, Recovered};

/// Files to commit to the user's branch.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    /// The short name of the branch; it must be checked out.
    pub(crate) branch: String,
    /// Whether this may become the branch's first commit.
    pub(crate) allow_unborn: bool,
    pub(crate) files: Vec<NewFile>,
    pub(crate) edits: Vec<Edit>,
    pub(crate) message: String,
}

/// A file to add.
#[derive(Clone, Debug)]
pub(crate) struct NewFile {
    /// From the root of the work tree, with `/`.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) executable: bool,
}

impl NewFile {
    pub(crate) fn plain(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), bytes, executable: false }
    }
}

/// A file on the branch to change or remove. Index and work tree must match the branch. A changed file stays executable.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) path: String,
    /// The content on the branch.
    pub(crate) old: Vec<u8>,
    /// `None`: remove the file.
    pub(crate) new: Option<Vec<u8>>,
}

/// The result of landing a [`Change`].
///
/// Landed: the branch has all the files, in this commit or before it. Files the branch already had are only restored
/// where index or work tree lack them; the user's later changes to them stay. NotLanded: nothing of the user's has
/// changed, and `reason` says why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Landing {
    Landed { commit: String },
    NotLanded { reason: String, hint: String },
}

/// Why an attempt stopped.
enum Stop {
    Refused { reason: String, hint: String },
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn refuse<T>(reason: impl Into<String>, hint: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Refused { reason: reason.into(), hint: hint.into() })
}

const TRY_AGAIN: &str = "try again when it is done";

impl Repository {
    /// Commits these files, and nothing else, to the checked-out branch. See [`Landing`].
    pub(crate) fn land(&self, change: &Change, committer: Option<&Identity>, at: Timestamp) -> Result<Landing, Error> {
        land(self, change, committer, at)
    }

    /// Finishes or rolls back an interrupted command of this work tree. `None`: there is none.
    pub(crate) fn recover(&self, committer: Option<&Identity>, at: Timestamp) -> Result<Option<Recovered>, Error> {
        recover(self, &self.lock_work_tree()?, committer, at)
    }

    /// Why this cannot land now, and a hint. Writes nothing.
    pub(crate) fn obstacle(&self, change: &Change) -> Result<Option<(String, String)>, Error> {
        obstacle(self, change)
    }
}

pub(super) fn land(
    repository: &Repository,
    change: &Change,
    committer: Option<&Identity>,
    at: Timestamp,
) -> Result<Landing, Error> {
    let edited = change.edits.iter().map(|edit| edit.path.as_str());
    change.files.iter().map(|file| file.path.as_str()).chain(edited).try_for_each(check_path)?;
    let lock = repository.lock_work_tree()?;
    match recovered(repository, &lock, committer, at) {
        Ok(()) => try_to_land(repository, &lock, change, &BTreeSet::new(), committer, at),
        Err(stop) => not_landed(stop),
    }
}

/// Finishes an interrupted command, which may be in the way.
fn recovered(
    repository: &Repository,
    lock: &WorkTreeLock,
    committer: Option<&Identity>,
    at: Timestamp,
) -> Result<(), Stop> {
    match recover(repository, lock, committer, at)? {
        Some(Recovered { outcome: Outcome::Waits { reason, hint }, kind, .. }) => {
            refuse(format!("`squad {kind}`, which was stopped, has to be finished first: {reason}"), hint)
        }
        _ => Ok(()),
    }
}

fn not_landed(stop: Stop) -> Result<Landing, Error> {
    match stop {
        Stop::Refused { reason, hint } => Ok(Landing::NotLanded { reason, hint }),
        Stop::Failed(error) => Err(error),
    }
}

fn try_to_land(
    repository: &Repository,
    lock: &WorkTreeLock,
    change: &Change,
    begun: &BTreeSet<String>,
    committer: Option<&Identity>,
    at: Timestamp,
) -> Result<Landing, Error> {
    // The branch moves under us only if the user or another landing commits at the same moment.
    for _ in 0..3 {
        match attempt(repository, lock, change, begun, committer, at) {
            Ok(Some(commit)) => return Ok(Landing::Landed { commit: commit.to_string() }),
            Ok(None) => {}
            Err(stop) => return not_landed(stop),
        }
    }
    Ok(Landing::NotLanded { reason: format!("the branch {} kept changing", change.branch), hint: TRY_AGAIN.into() })
}

/// `None`: the branch moved meanwhile, and work tree and index match it.
fn attempt(
    repository: &Repository,
    lock: &WorkTreeLock,
    change: &Change,
    begun: &BTreeSet<String>,
    committer: Option<&Identity>,
    at: Timestamp,
) -> Result<Option<ObjectId>, Stop> {
    let (root, base) = check_ready(repository, &change.branch, change.allow_unborn)?;
    let store = repository.objects();
    // These three ask git, so run them in parallel.
    let (plan, attributes, signs) = thread::scope(|scope| {
        let attributes = scope.spawn(|| check_attributes(repository, change));
        let signs = scope.spawn(|| wants_signature(repository));
        let plan = Plan::make(repository, &store, root, base, change, begun);
        (plan, join(attributes), join(signs))
    });
    let mut plan = plan?;
    if let (Some(base), true) = (base, plan.is_landed) {
        if !plan.files.is_empty() {
            apply(repository, lock, root, &plan, change, (Some(base), None), || Ok(true))?;
        }
        return Ok(Some(base));
    }
    let committer = known(committer)?;
    attributes?;
    let new = NewCommit { branch: &change.branch, base, merged: None, message: &change.message, committer, at };
    let (commit, kept) = write_commit(repository, &mut plan.objects, plan.tree, &new, signs?)?;
    let finish = || move_branch(repository, &new, (commit, &kept));
    let is_moved = apply(repository, lock, root, &plan, change, (base, Some(commit)), finish)?;
    drop(kept);
    repository.ledger().try_tidy();
    Ok(is_moved.then_some(commit))
}

fn known(committer: Option<&Identity>) -> Result<&Identity, Stop> {
    let Some(committer) = committer else {
        return refuse(
            "git does not know who you are",
            "git config --global user.name 'Your Name' && git config --global user.email you@example.com",
        );
    };
    Ok(committer)
}

/// A thread's result. Its panic continues here.
fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Why a change cannot land now, and a hint. Writes nothing.
pub(super) fn obstacle(repository: &Repository, change: &Change) -> Result<Option<(String, String)>, Error> {
    let looked = || {
        let (root, base) = check_ready(repository, &change.branch, change.allow_unborn)?;
        Plan::make(repository, &repository.objects(), root, base, change, &BTreeSet::new())?;
        check_attributes(repository, change)
    };
    match looked() {
        Ok(()) => Ok(None),
        Err(Stop::Refused { reason, hint }) => Ok(Some((reason, hint))),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Updates work tree and index, then runs `finish`. Unless that returns true, both are set back to match the branch.
fn apply(
    repository: &Repository,
    lock: &WorkTreeLock,
    root: &Path,
    plan: &Plan,
    change: &Change,
    (base, commit): (Option<ObjectId>, Option<ObjectId>),
    finish: impl FnOnce() -> Result<bool, Error>,
) -> Result<bool, Stop> {
    let mut contents = Contents::new();
    let files = plan.files.iter().map(|file| planned(repository, plan, file, &mut contents));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let commit = intent::Commit {
        branch: change.branch.clone(),
        base: base.map(|base| base.to_string()),
        id: commit.map(|commit| commit.to_string()),
        message: change.message.clone(),
    };
    let intent = Intent::new(&change.kind, Some(commit), None, files);
    let transaction = Transaction::begin(repository, lock, root, intent, contents)?;
    let is_tolerated = |path: &String| plan.files.iter().any(|file| file.is_tolerant && file.path == *path);
    carry_through(transaction, &change.branch, is_tolerated, finish)
}

/// Carries a transaction out to its end. `is_tolerated`: files of the user's that may stay.
fn carry_through(
    transaction: Transaction<'_>,
    branch: &str,
    is_tolerated: impl Fn(&String) -> bool,
    finish: impl FnOnce() -> Result<bool, Error>,
) -> Result<bool, Stop> {
    let carried_out = transaction.carry_out().map_err(Stop::Failed).and_then(|left| {
        match left.iter().find(|path| !is_tolerated(path)) {
            Some(path) => refuse(format!("{path} is being changed"), TRY_AGAIN),
            None => finish().map_err(Stop::Failed),
        }
    });
    // If the user has switched branches, reset or stashed meanwhile, settle again.
    if !matches!(carried_out, Ok(true)) || !transaction.is_intact(branch)? {
        transaction.settle_until_stable()?;
    }
    transaction.end()?;
    match carried_out {
        Err(Stop::Failed(Error::Locked { .. })) => {
            refuse("another git process is changing the index", "try again when it is done")
        }
        answer => answer,
    }
}

fn planned(
    repository: &Repository,
    plan: &Plan,
    file: &PlannedFile,
    contents: &mut Contents,
) -> Result<Planned, Error> {
    let id = |bytes: &[u8]| identify(repository.hash(), objs::Kind::Blob, bytes);
    let new_bytes = |blob: ObjectId| plan.objects.as_slice().iter().find(|object| object.id == blob);
    let version = |blob, work| Version::new(file.executable, blob, work);
    let old = match (file.old, &file.present) {
        (Some(blob), Some(present)) => Some(version(blob, id(present)?)),
        (old, _) => old.map(|blob| version(blob, blob)),
    };
    let new = match file.new {
        None => None,
        Some(blob) => {
            let bytes = match new_bytes(blob) {
                Some(object) => object.bytes.clone(),
                None => repository.objects().blob(&blob)?,
            };
            // If the work tree's bytes were converted from the blob, convert the new ones too.
            let is_converted = matches!((file.old, &old), (Some(old), Some(version)) if old != *version.work.as_str());
            let mut version = version(blob, blob);
            if is_converted {
                let converted = checked_out(repository, &file.path, blob)?;
                version.work = id(&converted)?.to_string();
                contents.insert(version.work.clone(), converted);
            }
            contents.insert(version.blob.clone(), bytes);
            Some(version)
        }
    };
    Ok(Planned { path: RawPath::Text(file.path.clone()), old, new })
}
