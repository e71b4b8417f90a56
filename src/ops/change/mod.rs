//! Changes of the repository's files: planned, then shown, committed, or only written to the work tree.
//!
//! Every command that changes files makes one [`Change`]. It commits exactly its files, backs up what they replace, and
//! after a kill the next command finishes it.

pub(crate) mod interrupted;
mod merge;
mod mode;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{self, Edit, Landing, NewFile, Repository};
use crate::model::{ChangeKind, IntoSet, LineDiff, list};
use crate::ops::ledger::rescue::{self, Reason};
pub(crate) use merge::Conflict;
pub(in crate::ops) use merge::{Merged, conflict_copy, merged, same};
pub(crate) use mode::WriteMode;
pub(in crate::ops) use mode::lock;
pub(in crate::ops) use tree::{Found, Tree};

/// Paths are from the repository's root, with `/`.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    pub(crate) message: String,
    pub(crate) files: Vec<FileChange>,
    /// Written to the work tree before the rest, and never committed.
    pub(crate) copies: Vec<FileChange>,
}

#[derive(Clone, Debug)]
pub(crate) struct FileChange {
    pub(crate) path: String,
    /// The old path of a file that moves.
    pub(crate) from: Option<String>,
    pub(crate) old: Option<Vec<u8>>,
    /// `None`: the file is deleted.
    pub(crate) new: Option<Vec<u8>>,
    /// Whether a new file is executable. An existing file keeps its mode.
    pub(crate) executable: bool,
}

/// A changed file, for the command's output.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ChangedFile {
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// `added`, `changed`, `moved` or `removed`.
    pub(crate) change: &'static str,
}

/// What a change did, or would do in a dry run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) files: Vec<ChangedFile>,
    pub(crate) commit: Option<String>,
    #[serde(skip)]
    pub(crate) is_dry_run: bool,
    /// Of a dry run: all changes as one patch.
    #[serde(skip)]
    pub(crate) diff: String,
    /// Why the files were written and not committed.
    #[serde(skip)]
    pub(crate) uncommitted: Option<String>,
    /// A written file that git ignores.
    #[serde(skip)]
    pub(crate) ignored: Option<String>,
}

/// The answer of a command that changes files: what it has to say itself, and the report of its change.
#[derive(Debug, Serialize)]
pub(crate) struct Changed<T> {
    #[serde(skip)]
    pub(crate) kind: ChangeKind,
    #[serde(flatten)]
    pub(crate) details: T,
    #[serde(flatten)]
    pub(crate) change: Report,
}

impl<T> Deref for Changed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.details
    }
}

impl<T> DerefMut for Changed<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.details
    }
}

impl Report {
    /// Of new files that an earlier call began to commit.
    pub(crate) fn of_added(paths: Vec<String>, commit: Option<String>) -> Self {
        let files = paths.into_iter().map(|path| ChangedFile { path, from: None, change: "added" }).collect();
        Self { files, commit, ..Self::default() }
    }
}

impl FileChange {
    pub(crate) fn new(path: String, old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> Self {
        Self { path, from: None, old, new, executable: false }
    }

    pub(crate) fn added(path: String, bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(path, None, Some(bytes.into()))
    }

    fn kind(&self) -> &'static str {
        match (&self.from, &self.old, &self.new) {
            (Some(_), _, _) => "moved",
            (None, None, _) => "added",
            (None, Some(_), Some(_)) => "changed",
            (None, Some(_), None) => "removed",
        }
    }

    pub(in crate::ops) fn changes(&self) -> bool {
        self.old != self.new || self.from.is_some()
    }

    /// In the format of `git diff`, so that `git apply` accepts it.
    pub(in crate::ops) fn diff(&self) -> String {
        let (old, new) = (self.from.as_ref().unwrap_or(&self.path), &self.path);
        let mode = if self.executable { "100755" } else { "100644" };
        let mut diff = format!("diff --git a/{old} b/{new}\n");
        match (&self.from, &self.old, &self.new) {
            (Some(old), ..) => diff.push_str(&format!("rename from {old}\nrename to {new}\n")),
            (None, None, _) => diff.push_str(&format!("new file mode {mode}\n")),
            (None, Some(_), None) => diff.push_str(&format!("deleted file mode {mode}\n")),
            _ => {}
        }
        let text = |bytes: &Option<Vec<u8>>| String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
        let (before, after) = (text(&self.old), text(&self.new));
        let name = |exists: bool, side: char, path: &str| {
            if exists { format!("{side}/{path}") } else { "/dev/null".to_owned() }
        };
        let lines = LineDiff::new(&before, &after).unified(3);
        if !lines.is_empty() {
            let (old, new) = (name(self.old.is_some(), 'a', old), name(self.new.is_some(), 'b', new));
            diff.push_str(&format!("--- {old}\n+++ {new}\n{lines}"));
        }
        diff
    }
}

impl Change {
    pub(crate) fn new(kind: ChangeKind, message: impl Into<String>, files: Vec<FileChange>) -> Self {
        Self { kind, message: message.into(), files, copies: Vec::new() }
    }

    /// What it would do.
    pub(crate) fn report(&self, mode: WriteMode) -> Report {
        let changed =
            |file: &FileChange| ChangedFile { path: file.path.clone(), from: file.from.clone(), change: file.kind() };
        let diff = if mode.is_dry_run() { self.files.iter().map(FileChange::diff).collect() } else { String::new() };
        let files = self.files.iter().map(changed).collect();
        Report { files, diff, is_dry_run: mode.is_dry_run(), ..Report::default() }
    }

    /// Commits or writes it, or only checks that it could be committed. Without files there is nothing to do.
    pub(crate) fn apply(&self, env: &Env, repository: &Repository, mode: WriteMode) -> Result<Report, Failure> {
        let mut report = self.report(mode);
        match mode {
            _ if self.files.is_empty() => {}
            WriteMode::Commit => {
                if !self.copies.is_empty() {
                    self.require_committable(repository)?;
                    self.write(repository, &self.copies)?;
                }
                report.commit = Some(self.commit(env, repository)?);
            }
            WriteMode::WorkTree => self.write_all(repository)?,
            WriteMode::DryRun { as_commit: true } => self.require_committable(repository)?,
            WriteMode::DryRun { as_commit: false } => {}
        }
        Ok(report)
    }

    /// Commits it, or only writes it where a commit is not wanted or not possible.
    pub(crate) fn apply_somehow(&self, env: &Env, repository: &Repository, commits: bool) -> Result<Report, Failure> {
        let mut report = self.report(WriteMode::Commit);
        let ignored = self.ignored_file(repository)?;
        report.ignored = ignored.map(str::to_owned);
        report.uncommitted = match (commits, ignored) {
            (false, _) => Some("--no-commit".to_owned()),
            (true, Some(path)) => Some(format!("git ignores {path}")),
            (true, None) => match self.land(env, repository) {
                Ok(Landing::Landed { commit }) => {
                    report.commit = Some(commit);
                    None
                }
                Ok(Landing::NotLanded { reason, hint }) => Some(format!("{reason} ({hint})")),
                Err(failure) => Some(failure.message),
            },
        };
        if report.uncommitted.is_some() {
            self.write_all(repository)?;
        }
        Ok(report)
    }

    /// A new file that git ignores: nobody expects one in a commit.
    pub(crate) fn ignored_file(&self, repository: &Repository) -> Result<Option<&str>, Failure> {
        let mut seen = BTreeSet::new();
        for FileChange { path, .. } in self.files.iter().filter(|file| file.old.is_none()) {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            if seen.insert(folder) && repository.would_ignore(path)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Commits exactly these files. Returns the commit's id.
    pub(crate) fn commit(&self, env: &Env, repository: &Repository) -> Result<String, Failure> {
        match self.land(env, repository)? {
            Landing::Landed { commit } => Ok(commit),
            Landing::NotLanded { reason, hint } => Err(refused(&reason, &hint, self.kind.takes_no_commit())),
        }
    }

    /// Fails if the changes cannot be committed now. Writes nothing.
    pub(crate) fn require_committable(&self, repository: &Repository) -> Result<(), Failure> {
        match self.obstacle(repository)? {
            Some((reason, hint)) => Err(refused(&reason, &hint, self.kind.takes_no_commit())),
            None => Ok(()),
        }
    }

    fn obstacle(&self, repository: &Repository) -> Result<Option<(String, String)>, Failure> {
        match repository.head()?.branch {
            Some(branch) => Ok(repository.obstacle(&self.on_branch(branch))?),
            None => Ok(Some(("HEAD is detached".to_owned(), SWITCH.to_owned()))),
        }
    }

    fn land(&self, env: &Env, repository: &Repository) -> Result<Landing, Failure> {
        let Some(branch) = repository.head()?.branch else {
            return Ok(Landing::NotLanded { reason: "HEAD is detached".to_owned(), hint: SWITCH.to_owned() });
        };
        let change = self.on_branch(branch);
        let touches: Vec<String> = change.edits.iter().map(|edit| edit.path.clone()).collect();
        if !touches.is_empty() {
            if let Some((reason, hint)) = repository.obstacle(&change)? {
                return Ok(Landing::NotLanded { reason, hint });
            }
            let why = format!("`squad {}` changes {}", self.kind, list(&touches));
            rescue::save(env, repository, Reason { command: &self.kind.to_string(), why, touches })?;
        }
        let landing = repository.land(&change, repository.identity().as_ref(), env.clock.now())?;
        if matches!(landing, Landing::Landed { .. }) {
            self.finish_moves(repository);
        }
        Ok(landing)
    }

    /// The changes as a commit on this branch.
    pub(in crate::ops) fn on_branch(&self, branch: String) -> git::Change {
        self.with_files(branch, &self.files)
    }

    fn with_files(&self, branch: String, changes: &[FileChange]) -> git::Change {
        let allow_unborn = matches!(self.kind, ChangeKind::Init | ChangeKind::Import);
        let (kind, message) = (self.kind.clone(), self.message.clone());
        let (mut files, mut edits) = (Vec::new(), Vec::new());
        for FileChange { path, from, old, new, executable } in changes {
            match (from, old, new) {
                (None, Some(old), new) => {
                    edits.push(Edit { path: path.clone(), old: old.clone(), new: new.clone() });
                }
                (from, old, Some(new)) => {
                    let (path, bytes) = (path.clone(), new.clone());
                    files.push(NewFile { path, bytes, executable: *executable });
                    let gone = from.clone().zip(old.clone());
                    edits.extend(gone.map(|(path, old)| Edit { path, old, new: None }));
                }
                (_, _, None) => {}
            }
        }
        git::Change { kind, branch, allow_unborn, files, edits, message }
    }

    /// Writes the files and commits nothing.
    fn write_all(&self, repository: &Repository) -> Result<(), Failure> {
        self.write(repository, &self.copies)?;
        self.write(repository, &self.files)?;
        self.finish_moves(repository);
        Ok(())
    }

    /// Fails if somebody has changed one of these files since it was read.
    fn write(&self, repository: &Repository, files: &[FileChange]) -> Result<(), Failure> {
        match repository.rewrite(&self.with_files(String::new(), files))?.first() {
            None => Ok(()),
            Some(path) => Err(Failure::failed("it has changed meanwhile, so squad did not overwrite it")
                .at(path)
                .hint("move it away, then try again")),
        }
    }

    /// Moves untracked files along with a moved folder, and removes the folders that are empty now.
    fn finish_moves(&self, repository: &Repository) {
        let Some(root) = repository.work_dir() else { return };
        self.move_untracked(repository, root);
        self.remove_empty_folders(root);
    }

    fn move_untracked(&self, repository: &Repository, root: &Path) {
        let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let moves = self.files.iter().filter_map(|file| Some((folder(file.from.as_ref()?)?, folder(&file.path)?)));
        let moves: BTreeSet<(String, String)> = moves.into_set();
        let folders: Vec<&str> = moves.iter().map(|(from, _)| from.as_str()).collect();
        if folders.is_empty() {
            return;
        }
        // Tracked files that are not part of the move stay, with the folders above them.
        let Ok(tracked) = repository.tracked_files(&folders) else { return };
        let is_known = |path: &str| tracked.iter().any(|known| Path::new(known).starts_with(path));
        for (from, to) in &moves {
            for entry in fs::read_dir(root.join(from)).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let target = root.join(to).join(&name);
                // A file that cannot be moved stays in the old folder.
                if !is_known(&format!("{from}/{}", name.to_string_lossy())) && target.symlink_metadata().is_err() {
                    let _ = fs::rename(entry.path(), target);
                }
            }
        }
    }

    /// Removes the folders that these changes have emptied.
    fn remove_empty_folders(&self, root: &Path) {
        for file in &self.files {
            let gone = if file.new.is_none() { Some(&file.path) } else { file.from.as_ref() };
            for above in gone.iter().flat_map(|path| Path::new(path).ancestors().skip(1)) {
                // Fails for a folder that is not empty.
                if above.as_os_str().is_empty() || fs::remove_dir(root.join(above)).is_err() {
                    break;
                }
            }
        }
    }
}

/// The checked-out branch and its commit. Fails if no branch with commits is checked out.
pub(in crate::ops) fn branch_tip(repository: &Repository, takes_no_commit: bool) -> Result<(String, String), Failure> {
    let head = repository.head()?;
    let (reason, hint) = match (head.branch, head.commit) {
        (Some(branch), Some(commit)) => return Ok((branch, commit)),
        (Some(branch), None) => (format!("{branch} has no commit yet"), "make the first commit"),
        (None, _) => ("HEAD is detached".to_owned(), SWITCH),
    };
    Err(refused(&reason, hint, takes_no_commit))
}

const SWITCH: &str = "`git switch BRANCH`, or `git switch --create NAME` here";

fn refused(reason: &str, hint: &str, takes_no_commit: bool) -> Failure {
    let or = if takes_no_commit { "; or --no-commit writes the files and leaves the commit to you" } else { "" };
    Failure::failed(format!("cannot commit: {reason}")).hint(format!("{hint}{or}"))
}
