//! Changing files of the work tree only: index and branch stay.

use std::{fs, path::Path};

use gix::objs;

use super::{
    error::Error,
    intent::{Contents, Intent, Planned, RawPath, Version},
    landing::Change,
    mode::{PROGRAM, mode_of},
    objects::identify,
    path::check_path,
    repository::Repository,
    transaction::Transaction,
};
use crate::model::ChangeKind;

impl Repository {
    /// Makes a change in the work tree only: index and branch stay. Returns the paths that no longer have the expected
    /// content. A changed file stays executable.
    pub(crate) fn rewrite(&self, change: &Change) -> Result<Vec<String>, Error> {
        let Some(root) = self.work_dir() else { return Ok(Vec::new()) };
        let mut contents = Contents::new();
        let mut version = |bytes: &[u8], executable: bool| {
            let id = identify(self.hash(), objs::Kind::Blob, bytes)?;
            contents.insert(id.to_string(), bytes.to_owned());
            Ok(Version::new(executable, id, id))
        };
        let edits = change.edits.iter().map(|edit| (&edit.path, Some(&edit.old), edit.new.as_ref(), false));
        let added = change.files.iter().map(|file| (&file.path, None, Some(&file.bytes), file.executable));
        let planned = edits.chain(added).map(|(path, old, new, executable)| {
            check_path(path)?;
            let existing = fs::symlink_metadata(root.join(path));
            let executable = existing.map_or(executable, |metadata| mode_of(&metadata) == PROGRAM);
            let old = old.map(|bytes| version(bytes, executable)).transpose()?;
            let new = new.map(|bytes| version(bytes, executable)).transpose()?;
            Ok(Planned { path: RawPath::Text(path.clone()), old, new })
        });
        let planned = planned.collect::<Result<Vec<_>, Error>>()?;
        write_files(self, &change.kind, root, planned, contents)
    }
}

/// Writes files to a work tree or another folder only. Returns those the user has just changed, which were left alone.
pub(super) fn write_files(
    repository: &Repository,
    kind: &ChangeKind,
    root: &Path,
    files: Vec<Planned>,
    contents: Contents,
) -> Result<Vec<String>, Error> {
    if files.is_empty() { Ok(Vec::new()) } else { write_files_and(repository, kind, root, files, contents, || Ok(())) }
}

/// The same, and something else before it counts as done: after a kill, whoever finishes it has to do that, too.
pub(super) fn write_files_and(
    repository: &Repository,
    kind: &ChangeKind,
    root: &Path,
    files: Vec<Planned>,
    contents: Contents,
    and: impl FnOnce() -> Result<(), Error>,
) -> Result<Vec<String>, Error> {
    let lock = repository.lock_work_tree()?;
    if let Some((intent, _)) = Intent::read(repository)? {
        return Err(Error::InterruptedCommand { command: intent.kind.to_string() });
    }
    let elsewhere = Some(root).filter(|root| repository.work_dir() != Some(root));
    let intent = Intent::new(kind, None, elsewhere, files);
    let transaction = Transaction::begin(repository, &lock, root, intent, contents)?;
    let left = match transaction.carry_out() {
        Ok(left) => left,
        Err(error) => {
            // What cannot be taken back either stays begun.
            if transaction.take_back().is_ok() {
                transaction.end()?;
            }
            return Err(error);
        }
    };
    and()?;
    transaction.end()?;
    Ok(left)
}
