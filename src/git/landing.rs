//! Landing: committing files to the branch that the user has checked out, in one commit.
//!
//! The order is: write objects, intent, work tree, index; move the branch; remove the intent. After a kill between any
//! two steps, the files are at worst new and untracked or new and staged, with their final bytes; a commit the user
//! makes then can only add them. (Moving the branch first would leave an index without them, and the user's next commit
//! would delete them.) The next landing finishes the intent or rolls it back.

mod plan;

use std::{collections::BTreeSet, path::Path, thread, time::Duration};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    checkout::checked_out,
    commit::{self, Identity},
    error::Error,
    intent::{self, Contents, Intent, Planned, RawPath, Version, WorkTreeLock},
    objects::{NewObjects, identify},
    pack::KeptPack,
    quarantine::Quarantine,
    repository::Repository,
    staging,
    transaction::{PROGRAM, Transaction},
    tree::check_path,
};
use plan::{Plan, PlannedFile};

/// How long a signing program may take before we assume that it waits for the user.
const SIGNING_TIMEOUT: Duration = Duration::from_secs(10);

/// How long we wait for another git's index lock before reporting it: that git may have died.
const INDEX_TIMEOUT: Duration = Duration::from_millis(100);

/// Files to commit to the user's branch.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The command that lands it, without the leading `squad`.
    pub(crate) command: String,
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
    if let Some(Recovered { outcome: Outcome::Waits { reason, hint }, command, .. }) =
        recover(repository, &lock, committer, at)?
    {
        let reason = format!("`squad {command}`, which was stopped, has to be finished first: {reason}");
        return Ok(Landing::NotLanded { reason, hint });
    }
    try_to_land(repository, &lock, change, &BTreeSet::new(), committer, at)
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
            Err(Stop::Refused { reason, hint }) => return Ok(Landing::NotLanded { reason, hint }),
            Err(Stop::Failed(error)) => return Err(error),
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
    let (root, base) = check_ready(repository, change)?;
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
    let Some(committer) = committer else {
        return refuse(
            "git does not know who you are",
            "git config --global user.name 'Your Name' && git config --global user.email you@example.com",
        );
    };
    attributes?;
    let (commit, kept) = write_commit(repository, &mut plan, base, change, committer, (at, signs?))?;
    let finish = || move_branch(repository, change, base, (commit, &kept), committer, at);
    let is_moved = apply(repository, lock, root, &plan, change, (base, Some(commit)), finish)?;
    drop(kept);
    repository.ledger().try_tidy();
    Ok(is_moved.then_some(commit))
}

/// A thread's result. Its panic continues here.
fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Why a change cannot land now, and a hint. Writes nothing.
pub(super) fn obstacle(repository: &Repository, change: &Change) -> Result<Option<(String, String)>, Error> {
    let looked = || {
        let (root, base) = check_ready(repository, change)?;
        Plan::make(repository, &repository.objects(), root, base, change, &BTreeSet::new())?;
        check_attributes(repository, change)
    };
    match looked() {
        Ok(()) => Ok(None),
        Err(Stop::Refused { reason, hint }) => Ok(Some((reason, hint))),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// The work tree's root and the commit to build on, if the repository is ready for a commit.
fn check_ready<'a>(repository: &'a Repository, change: &Change) -> Result<(&'a Path, Option<ObjectId>), Stop> {
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
    staging::wait_for_lock(repository, INDEX_TIMEOUT);
    let lock = staging::lock_path(repository);
    if lock.exists() {
        return refuse("another git process is changing the index", format!("if none is, remove '{}'", lock.display()));
    }
    match &head.commit {
        Some(commit) => Ok((root, Some(repository.parse_commit(commit)?))),
        None if change.allow_unborn => Ok((root, None)),
        None => refuse(format!("{branch} has no commit yet"), "make the first commit, then try again"),
    }
}

/// With some attributes git stores converted bytes, for example through the user's filter programs. A commit of the
/// plain bytes would then always show as changed.
fn check_attributes(repository: &Repository, change: &Change) -> Result<(), Stop> {
    let names = ["filter", "ident", "working-tree-encoding", "text", "eol"];
    let paths: String = change.files.iter().map(|file| format!("{}\0", file.path)).collect();
    let call = repository.call(&["check-attr", "-z", "--stdin"]).arguments(&names);
    let answer = call.input(paths).succeed()?;
    let fields: Vec<_> = answer.stdout.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    for field in fields.chunks_exact(3) {
        let (path, name, value) = (&field[0], &field[1], &field[2]);
        let is_on = !matches!(value.as_ref(), "unspecified" | "unset" | "auto");
        let has_carriage_returns = || {
            let is_it = |file: &&NewFile| file.path == *path;
            change.files.iter().filter(is_it).any(|file| file.bytes.windows(2).any(|pair| pair == b"\r\n"))
        };
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

/// Writes the commit and its objects in one pack.
fn write_commit(
    repository: &Repository,
    plan: &mut Plan,
    base: Option<ObjectId>,
    change: &Change,
    committer: &Identity,
    (at, is_signed): (Timestamp, bool),
) -> Result<(ObjectId, KeptPack), Stop> {
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
        .timeout(SIGNING_TIMEOUT);
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
    let intent = Intent::new(&change.command, Some(commit), None, files);
    let transaction = Transaction::begin(repository, lock, root, intent, contents)?;
    let carried_out = transaction.carry_out().map_err(Stop::Failed).and_then(|left| {
        let is_tolerated = |path: &String| plan.files.iter().any(|file| file.is_tolerant && file.path == *path);
        match left.iter().find(|path| !is_tolerated(path)) {
            Some(path) => refuse(format!("{path} is being changed"), TRY_AGAIN),
            None => finish().map_err(Stop::Failed),
        }
    });
    // If the user has switched branches, reset or stashed meanwhile, settle again.
    if !matches!(carried_out, Ok(true)) || !transaction.is_intact(&change.branch)? {
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

/// Moves the branch, with HEAD's reflog, from the commit we built on. False: the branch was no longer at it.
fn move_branch(
    repository: &Repository,
    change: &Change,
    base: Option<ObjectId>,
    (commit, kept): (ObjectId, &KeptPack),
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
        // If we are killed, git may still move the branch.
        .holding(kept.handle())
        .variable("GIT_COMMITTER_NAME", &committer.name)
        .variable("GIT_COMMITTER_EMAIL", &committer.email)
        .variable("GIT_COMMITTER_DATE", &date(at))
        .run()?;
    if answer.is_success() {
        // git flushes the ref but not its folder.
        return repository.references().flush(&reference).map(|()| true);
    }
    let is_at_base = repository.references().read(&reference)? == base;
    if is_at_base {
        return Err(Error::Program { command: "git update-ref".into(), message: answer.error_line() });
    }
    Ok(false)
}

/// The result of recovering an interrupted command.
#[derive(Clone, Debug)]
pub(crate) struct Recovered {
    /// Without the leading `squad`.
    pub(crate) command: String,
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
pub(super) fn recover(
    repository: &Repository,
    lock: &WorkTreeLock,
    committer: Option<&Identity>,
    at: Timestamp,
) -> Result<Option<Recovered>, Error> {
    let Some(begun) = Transaction::unfinished(repository)? else { return Ok(None) };
    let paths = begun.intent.display_paths();
    let (command, commit) = (begun.intent.command.clone(), begun.intent.commit.clone());
    let branch = commit.as_ref().map(|commit| commit.branch.clone());
    let recovered = |outcome, left| Ok(Some(Recovered { command: command.clone(), branch, paths, outcome, left }));
    let hint = "finish it: `git status` tells how".to_owned();
    if let (Some(operation), Some(_)) = (repository.operation(), &commit) {
        return recovered(Outcome::Waits { reason: format!("a {operation} is going on"), hint }, Vec::new());
    }
    if let Some(folder) = begun.missing_folder() {
        let reason = format!("there is no folder {}", folder.display());
        begun.end()?;
        return recovered(Outcome::Undone { reason, hint: format!("squad {command}") }, Vec::new());
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
        _ => {
            let change = change_of(&begun, &commit)?;
            let new = change.files.iter().map(|file| file.path.clone()).collect();
            try_to_land(repository, lock, &change, &new, committer, at)?
        }
    };
    match landed {
        Landing::Landed { commit } => {
            begun.end()?;
            recovered(Outcome::Finished { commit: Some(commit) }, left)
        }
        Landing::NotLanded { reason, hint } => {
            begun.end()?;
            recovered(Outcome::Undone { reason, hint }, left)
        }
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
        command: begun.intent.command.clone(),
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
