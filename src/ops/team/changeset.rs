//! Planned changes of files, which a command shows, commits or writes to the work tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;
use similar::TextDiff;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{Change, Edit, Landing, NewFile, Repository, Rewrite};
use crate::model::list;
use crate::ops::ledger::rescue::{self, Reason};
use crate::ops::team::write_mode::WriteMode;

/// Paths are from the repository's root, with `/`.
#[derive(Clone, Debug)]
pub(crate) struct Changeset {
    /// The command without the leading `squad`.
    pub(crate) command: String,
    pub(crate) message: String,
    pub(crate) files: Vec<FileChange>,
    /// The command has no `--no-commit` option, so no hint may suggest it.
    pub(crate) must_commit: bool,
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

impl FileChange {
    pub(crate) fn new(path: String, old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> Self {
        Self { path, from: None, old, new, executable: false }
    }

    fn kind(&self) -> &'static str {
        match (&self.from, &self.old, &self.new) {
            (Some(_), _, _) => "moved",
            (None, None, _) => "added",
            (None, Some(_), Some(_)) => "changed",
            (None, Some(_), None) => "removed",
        }
    }

    /// In the format of `git diff`, so that `git apply` accepts it.
    fn diff(&self) -> String {
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
        let lines = TextDiff::from_lines(&before, &after);
        let mut hunks = lines.unified_diff();
        hunks.context_radius(3).header(&name(self.old.is_some(), 'a', old), &name(self.new.is_some(), 'b', new));
        diff + &hunks.to_string()
    }
}

impl Changeset {
    pub(crate) fn new(command: impl Into<String>, message: String, files: Vec<FileChange>) -> Self {
        Self { command: command.into(), message, files, must_commit: false }
    }

    /// All changes as one patch.
    pub(crate) fn diff(&self) -> String {
        self.files.iter().map(FileChange::diff).collect()
    }

    pub(crate) fn changed_files(&self) -> Vec<ChangedFile> {
        let changed =
            |file: &FileChange| ChangedFile { path: file.path.clone(), from: file.from.clone(), change: file.kind() };
        self.files.iter().map(changed).collect()
    }

    /// The changes as a commit on the checked-out branch.
    fn change(&self, repository: &Repository) -> Result<Change, Failure> {
        let Some(branch) = repository.head()?.branch else {
            return Err(self.refused("HEAD is detached", SWITCH));
        };
        let mut change = Change {
            command: self.command.clone(),
            branch,
            allow_unborn: false,
            files: Vec::new(),
            edits: Vec::new(),
            message: self.message.clone(),
        };
        for FileChange { path, from, old, new, executable } in &self.files {
            match (from, old, new) {
                (None, Some(old), new) => {
                    change.edits.push(Edit { path: path.clone(), old: old.clone(), new: new.clone() });
                }
                (from, old, Some(new)) => {
                    let (path, bytes) = (path.clone(), new.clone());
                    change.files.push(NewFile { path, bytes, executable: *executable });
                    let gone = from.clone().zip(old.clone());
                    change.edits.extend(gone.map(|(path, old)| Edit { path, old, new: None }));
                }
                (_, _, None) => {}
            }
        }
        Ok(change)
    }

    /// Commits or writes the changes, or only checks that they could be committed. Returns the commit's id, if there is
    /// one. Without changes there is nothing to do.
    pub(super) fn apply(&self, env: &Env, repository: &Repository, mode: WriteMode) -> Result<Option<String>, Failure> {
        match mode {
            _ if self.files.is_empty() => {}
            WriteMode::Commit => return self.commit(env, repository).map(Some),
            WriteMode::WorkTree => self.write(repository)?,
            WriteMode::DryRun { as_commit: true } => self.check_committable(repository)?,
            WriteMode::DryRun { as_commit: false } => {}
        }
        Ok(None)
    }

    /// Fails if the changes cannot be committed now. Writes nothing.
    pub(crate) fn check_committable(&self, repository: &Repository) -> Result<(), Failure> {
        match repository.obstacle(&self.change(repository)?)? {
            Some((reason, hint)) => Err(self.refused(&reason, &hint)),
            None => Ok(()),
        }
    }

    /// Commits exactly these files. Returns the commit's id.
    pub(crate) fn commit(&self, env: &Env, repository: &Repository) -> Result<String, Failure> {
        let change = self.change(repository)?;
        self.check_committable(repository)?;
        let touches: Vec<String> = change.edits.iter().map(|edit| edit.path.clone()).collect();
        if !touches.is_empty() {
            let why = format!("`squad {}` changes {}", self.command, list(&touches));
            rescue::save(env, repository, Reason { command: &self.command, why, touches })?;
        }
        match repository.land(&change, repository.identity().as_ref(), env.clock.now())? {
            Landing::Landed { commit } => {
                self.finish_moves(repository);
                Ok(commit)
            }
            Landing::NotLanded { reason, hint } => Err(self.refused(&reason, &hint)),
        }
    }

    fn refused(&self, reason: &str, hint: &str) -> Failure {
        match self.must_commit {
            true => Failure::failed(format!("cannot commit: {reason}")).hint(hint),
            false => refused(reason, hint),
        }
    }

    /// Writes the files and commits nothing.
    fn write(&self, repository: &Repository) -> Result<(), Failure> {
        write_files(repository, &self.command, &self.files)?;
        self.finish_moves(repository);
        Ok(())
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
        let moves: BTreeSet<(String, String)> = moves.collect();
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

/// Writes files to the work tree. Fails if somebody has changed one of them since it was read.
pub(super) fn write_files(repository: &Repository, command: &str, changes: &[FileChange]) -> Result<(), Failure> {
    let mut files: Vec<Rewrite<'_>> = Vec::new();
    for FileChange { path, from, old, new, executable } in changes {
        let old = match from {
            Some(from) => {
                files.push(Rewrite::new(from, old.as_deref(), None));
                None
            }
            None => old.as_deref(),
        };
        files.push(Rewrite { executable: *executable, ..Rewrite::new(path, old, new.as_deref()) });
    }
    match repository.rewrite(command, &files)?.first() {
        None => Ok(()),
        Some(path) => Err(Failure::failed("it has changed meanwhile, so squad did not overwrite it")
            .at(path)
            .hint("move it away, then try again")),
    }
}

/// The commit of the checked-out branch. Fails if no branch with commits is checked out.
pub(super) fn branch_tip(repository: &Repository) -> Result<String, Failure> {
    let head = repository.head()?;
    match (head.branch, head.commit) {
        (Some(_), Some(commit)) => Ok(commit),
        (Some(branch), None) => Err(refused(&format!("{branch} has no commit yet"), "make the first commit")),
        (None, _) => Err(refused("HEAD is detached", SWITCH)),
    }
}

const SWITCH: &str = "`git switch BRANCH`, or `git switch --create NAME` here";

const NO_COMMIT_HINT: &str = "--no-commit writes the files and leaves the commit to you";

fn refused(reason: &str, hint: &str) -> Failure {
    Failure::failed(format!("cannot commit: {reason}")).hint(format!("{hint}; or {NO_COMMIT_HINT}"))
}
