//! Landing: files become one commit on the branch that the user has checked out.
//!
//! The order is: objects, work tree, index, branch. Killed between any two steps, the files are at worst new and
//! untracked or new and staged, with the bytes they are to have; a commit that the user makes then can only add them.
//! (The other order, branch first, would leave an index without them, and the user's next commit would delete them.)
//! Landing the same files again finishes the job from any of these states. Files that change or go do so in the same
//! order; what they held is on the branch.

mod plan;

use std::{path::Path, thread, time::Duration};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    checkout::{Aside, Made, stage, unstage},
    commit::{self, Identity},
    error::Error,
    objects::NewObjects,
    pack::Kept,
    quarantine::Quarantine,
    repository::Repository,
    tree::check_path,
};
use plan::Plan;

/// How long a signing program may take before we believe that it waits for somebody.
const SIGNING_PATIENCE: Duration = Duration::from_secs(10);

/// New files for the user's branch.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The short name of the branch; it must be the one that is checked out.
    pub(crate) branch: String,
    /// Whether the branch may be without a commit, so that this becomes its first.
    pub(crate) allow_unborn: bool,
    /// Paths from the root of the work tree, with `/`.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) edits: Vec<Edit>,
    pub(crate) message: String,
}

/// A file on the branch that is to change or to go. In index and work tree it must be as it is on the branch.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) path: String,
    /// What the branch holds.
    pub(crate) old: Vec<u8>,
    /// `None`: it goes.
    pub(crate) new: Option<Vec<u8>>,
}

/// What became of a [`Change`].
///
/// Landed: the branch holds all the files, in this commit or before it. Files that the branch already held are only
/// put back where index or work tree lack them; what the user did to them since then stays. NotLanded: nothing of
/// the user's has changed, and the sentence says what stood against it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Landing {
    Landed { commit: String },
    NotLanded { reason: String, hint: String },
}

/// Why an attempt ended before its goal.
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

const AGAIN: &str = "try again when it is done";

pub(super) fn land(
    repository: &Repository,
    change: &Change,
    committer: Option<&Identity>,
    at: Timestamp,
) -> Result<Landing, Error> {
    let edited = change.edits.iter().map(|edit| edit.path.as_str());
    change.files.iter().map(|(path, _)| path.as_str()).chain(edited).try_for_each(check_path)?;
    // The branch moves under us only when the user or another landing commits at this very moment.
    for _ in 0..3 {
        match attempt(repository, change, committer, at) {
            Ok(Some(commit)) => return Ok(Landing::Landed { commit: commit.to_string() }),
            Ok(None) => {}
            Err(Stop::Refused { reason, hint }) => return Ok(Landing::NotLanded { reason, hint }),
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    Ok(Landing::NotLanded { reason: format!("the branch {} moves all the time", change.branch), hint: AGAIN.into() })
}

/// None: the branch moved meanwhile, and everything is as it was before.
fn attempt(
    repository: &Repository,
    change: &Change,
    committer: Option<&Identity>,
    at: Timestamp,
) -> Result<Option<ObjectId>, Stop> {
    let (root, base) = check_place(repository, change)?;
    let store = repository.objects();
    // Three questions to git, which do not wait for each other.
    let (plan, attributes, signs) = thread::scope(|scope| {
        let attributes = scope.spawn(|| check_attributes(repository, change));
        let signs = scope.spawn(|| wants_signature(repository));
        let plan = Plan::make(repository, &store, root, base, change);
        (plan, joined(attributes), joined(signs))
    });
    let mut plan = plan?;
    if let (Some(base), true) = (base, plan.is_landed) {
        apply(repository, root, &plan, || Ok(true))?;
        return Ok(Some(base));
    }
    let Some(committer) = committer else {
        return refuse(
            "git does not know who you are",
            "git config --global user.name 'Your Name' && git config --global user.email you@example.com",
        );
    };
    attributes?;
    let (commit, kept) = write_commit(repository, &mut plan, base, change, committer, (at, signs?))?;
    let finish = || move_branch(repository, change, base, (commit, &kept), committer, at);
    let is_moved = apply(repository, root, &plan, finish)?;
    drop(kept);
    repository.ledger().try_tidy();
    Ok(is_moved.then_some(commit))
}

/// What a thread answered. A panic goes on here.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What stands against a change now, and what to do about it. Writes nothing.
pub(super) fn obstacle(repository: &Repository, change: &Change) -> Result<Option<(String, String)>, Error> {
    let looked = || {
        let (root, base) = check_place(repository, change)?;
        Plan::make(repository, &repository.objects(), root, base, change)?;
        check_attributes(repository, change)
    };
    match looked() {
        Ok(()) => Ok(None),
        Err(Stop::Refused { reason, hint }) => Ok(Some((reason, hint))),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// The work tree's root and the commit to build on, if this is a moment to commit.
fn check_place<'a>(repository: &'a Repository, change: &Change) -> Result<(&'a Path, Option<ObjectId>), Stop> {
    let branch = &change.branch;
    let Some(root) = repository.work_dir() else {
        return refuse("the repository is bare: no branch is checked out", "use a clone with a work tree");
    };
    let head = repository.head()?;
    let switch = format!("git switch {branch}");
    match &head.branch {
        None => return refuse("HEAD is detached: no branch is checked out", switch),
        Some(other) if other != branch => {
            return refuse(format!("{other} is checked out, not {branch}"), switch);
        }
        Some(_) => {}
    }
    if let Some(operation) = repository.operation() {
        return refuse(format!("a {operation} is going on"), "finish it: `git status` tells how");
    }
    let lock = repository.git_dir().join("index.lock");
    if lock.exists() {
        return refuse("another git process is changing the index", format!("if none is, remove '{}'", lock.display()));
    }
    match &head.commit {
        Some(commit) => Ok((root, Some(repository.parse_commit(commit)?))),
        None if change.allow_unborn => Ok((root, None)),
        None => refuse(format!("{branch} has no commit yet"), "make the first commit, then try again"),
    }
}

/// With some attributes git stores other bytes than the work tree holds, through programs of the user's. A commit
/// of the plain bytes would then look changed for ever.
fn check_attributes(repository: &Repository, change: &Change) -> Result<(), Stop> {
    let names = ["filter", "ident", "working-tree-encoding", "text", "eol"];
    let paths: String = change.files.iter().map(|(path, _)| format!("{path}\0")).collect();
    let call = repository.call(&["check-attr", "-z", "--stdin"]).arguments(&names);
    let answer = call.input(paths).succeed()?;
    let fields: Vec<_> = answer.stdout.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    for field in fields.chunks_exact(3) {
        let (path, name, value) = (&field[0], &field[1], &field[2]);
        let is_on = !matches!(value.as_ref(), "unspecified" | "unset" | "auto");
        let has_carriage_returns =
            || change.files.iter().any(|(file, bytes)| file == path && bytes.windows(2).any(|pair| pair == b"\r\n"));
        let converts = match name.as_ref() {
            "text" | "eol" => is_on && has_carriage_returns(),
            _ => is_on,
        };
        if converts {
            return refuse(
                format!("the attribute {name}={value} makes git store {path} in another form"),
                format!("exempt it in .gitattributes: {path} -{name}"),
            );
        }
    }
    Ok(())
}

/// The commit and what it is made of, in one pack.
fn write_commit(
    repository: &Repository,
    plan: &mut Plan<'_>,
    base: Option<ObjectId>,
    change: &Change,
    committer: &Identity,
    (at, is_signed): (Timestamp, bool),
) -> Result<(ObjectId, Kept), Stop> {
    let objects = &mut plan.objects;
    let commit = if is_signed {
        sign(repository, objects, (plan.tree, base), change, committer, at)?
    } else {
        let bytes = commit::encode(plan.tree, base.as_slice(), committer, at, &change.message);
        objects.add(objs::Kind::Commit, bytes)?
    };
    Ok((commit, repository.packs().add(objects)?))
}

fn wants_signature(repository: &Repository) -> Result<bool, Error> {
    Ok(repository.call(&["config", "--type=bool", "--get", "commit.gpgSign"]).run()?.text() == "true")
}

fn sign(
    repository: &Repository,
    objects: &mut NewObjects,
    (tree, base): (ObjectId, Option<ObjectId>),
    change: &Change,
    committer: &Identity,
    at: Timestamp,
) -> Result<ObjectId, Stop> {
    let mut arguments = vec!["commit-tree".to_owned(), "-S".to_owned()];
    arguments.extend(base.into_iter().flat_map(|base| ["-p".to_owned(), base.to_string()]));
    arguments.push(tree.to_string());
    let quarantine = Quarantine::new(repository)?;
    quarantine.put(objects)?;
    let mut call = quarantine
        .call(repository.call(&["-c", "i18n.commitEncoding=UTF-8"]))
        .arguments(&arguments)
        .input(commit::message_text(&change.message))
        .patience(SIGNING_PATIENCE);
    for role in ["AUTHOR", "COMMITTER"] {
        call = call
            .variable(&format!("GIT_{role}_NAME"), &committer.name)
            .variable(&format!("GIT_{role}_EMAIL"), &committer.email)
            .variable(&format!("GIT_{role}_DATE"), &date(at));
    }
    let hint = "unlock your signing key, or set commit.gpgSign to false, then try again";
    match call.run() {
        Ok(answer) if answer.is_success() => {
            let commit = repository.parse_commit(&answer.text())?;
            quarantine.take(commit, objs::Kind::Commit, objects)?;
            Ok(commit)
        }
        Ok(answer) => refuse(format!("the commit could not be signed: {}", answer.complaint()), hint),
        Err(Error::Program { message, .. }) => refuse(format!("the commit could not be signed: {message}"), hint),
        Err(error) => Err(error.into()),
    }
}

fn date(at: Timestamp) -> String {
    format!("@{} +0000", at.as_second().max(0))
}

/// Gives work tree and index what they lack, then runs `finish`. Unless that answers true, both are as before.
fn apply(
    repository: &Repository,
    root: &Path,
    plan: &Plan<'_>,
    finish: impl FnOnce() -> Result<bool, Error>,
) -> Result<bool, Stop> {
    let mut made = Made::default();
    for (path, bytes) in &plan.work_tree {
        if let Err(error) = made.write(root, path, bytes) {
            made.take_back();
            return Err(error.into());
        }
    }
    if let Err(error) = stage(repository, &plan.index) {
        made.take_back();
        return refuse(format!("the index could not be changed: {error}"), AGAIN);
    }
    let mut aside = Aside::default();
    let edited = plan.edit(repository, root, &mut aside);
    let answer = match edited {
        Ok(()) => finish().map_err(Stop::Failed),
        Err(stop) => Err(stop),
    };
    if !matches!(answer, Ok(true)) {
        plan.undo_edits(repository, aside)?;
        // If the index cannot be changed back, the files stay too: staged and present is a whole state.
        unstage(repository, &plan.index)?;
        made.take_back();
    }
    answer
}

/// Moves the branch, and HEAD's reflog with it, from the commit we built on. False: it was no longer there.
fn move_branch(
    repository: &Repository,
    change: &Change,
    base: Option<ObjectId>,
    (commit, kept): (ObjectId, &Kept),
    committer: &Identity,
    at: Timestamp,
) -> Result<bool, Error> {
    let subject = commit::subject(&change.message);
    let message = if base.is_some() { format!("commit: {subject}") } else { format!("commit (initial): {subject}") };
    let reference = format!("refs/heads/{}", change.branch);
    let old = base.unwrap_or(repository.hash().null());
    let arguments = ["-m", &message, &reference, &commit.to_string(), &old.to_string()];
    let answer = repository
        .call(&["update-ref"])
        .arguments(&arguments)
        // Should we be killed, git may move the branch all the same.
        .holding(kept.handle())
        .variable("GIT_COMMITTER_NAME", &committer.name)
        .variable("GIT_COMMITTER_EMAIL", &committer.email)
        .variable("GIT_COMMITTER_DATE", &date(at))
        .run()?;
    if answer.is_success() {
        // git flushes the ref and not the folder that it is in.
        return repository.references().flush(&reference).map(|()| true);
    }
    let is_at_base = repository.references().read(&reference)? == base;
    if is_at_base {
        return Err(Error::Program { command: "git update-ref".into(), message: answer.complaint() });
    }
    Ok(false)
}
