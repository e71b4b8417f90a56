//! Which objects, index entries and files a change still needs, and why it may be refused.

use std::{collections::BTreeSet, fs, io, path::Path};

use gix::{ObjectId, objs, objs::tree::EntryKind};

use super::{Change, NewFile, Stop, TRY_AGAIN, refuse};
use crate::git::{
    checkout::{Entry, Existing, Staged, changed, inspect},
    error::Error,
    object_store::ObjectStore,
    objects::{NewObjects, identify},
    repository::Repository,
    tree_edit::{Insertion, TreeEdit},
};

/// What has to be written to land a change.
pub(super) struct Plan {
    /// The branch already has everything.
    pub(super) is_landed: bool,
    pub(super) objects: NewObjects,
    pub(super) tree: ObjectId,
    /// The files that branch, index or work tree lack.
    pub(super) files: Vec<PlannedFile>,
}

pub(super) struct PlannedFile {
    pub(super) path: String,
    pub(super) old: Option<ObjectId>,
    pub(super) new: Option<ObjectId>,
    pub(super) executable: bool,
    /// An edited file's content in the work tree; `None`: the file is new, or a sparse checkout omits it.
    pub(super) present: Option<Vec<u8>>,
    /// The user's own version may stay.
    pub(super) is_tolerant: bool,
}

impl Plan {
    /// `begun` are the new files of an interrupted command: the user's changes to them since then stay.
    pub(super) fn make(
        repository: &Repository,
        store: &ObjectStore,
        root: &Path,
        base: Option<ObjectId>,
        change: &Change,
        begun: &BTreeSet<String>,
    ) -> Result<Self, Stop> {
        let edited = change.edits.iter().map(|edit| edit.path.as_str());
        let paths: Vec<&str> = change.files.iter().map(|file| file.path.as_str()).chain(edited).collect();
        let staged = Staged::read(repository, &paths)?;
        let base_tree = base.map(|base| store.tree_of(&base)).transpose()?;
        let mut edit = TreeEdit::new(store, base_tree)?;
        let mut objects = NewObjects::new(store.hash());
        let mut files = Vec::new();
        let mut is_landed = true;
        for NewFile { path, bytes, executable } in &change.files {
            let blob = identify(store.hash(), objs::Kind::Blob, bytes)?;
            let mut is_tolerant = begun.contains(path);
            let kind = if *executable { EntryKind::BlobExecutable } else { EntryKind::Blob };
            match edit.insert_as(kind, path, blob)? {
                Insertion::Unchanged if has_landed(&staged, root, path, bytes)? => continue,
                Insertion::Unchanged => is_tolerant = true,
                // The user has committed something else at this path.
                Insertion::Conflict if is_tolerant && change.edits.is_empty() => continue,
                Insertion::Conflict => return refuse(format!("{path} is on the branch with other content"), MOVE_AWAY),
                Insertion::Added => {
                    check_free(&staged, root, path, bytes, blob, is_tolerant)?;
                    is_landed = false;
                    objects.add(objs::Kind::Blob, bytes.clone())?;
                }
            }
            let (path, executable) = (path.clone(), *executable);
            files.push(PlannedFile { path, old: None, new: Some(blob), executable, present: None, is_tolerant });
        }
        let edited: Vec<&str> = change.edits.iter().map(|edit| edit.path.as_str()).collect();
        // Read the files before git compares them: what the user saves in between must not pass for the branch's content.
        let present: Vec<Option<Vec<u8>>> = edited.iter().map(|path| read(root, path)).collect::<Result<_, _>>()?;
        let changed = changed(repository, &edited)?;
        for (wanted, present) in change.edits.iter().zip(present) {
            let path = wanted.path.as_str();
            let old = identify(store.hash(), objs::Kind::Blob, &wanted.old)?;
            let new = wanted.new.as_ref().map(|bytes| identify(store.hash(), objs::Kind::Blob, bytes)).transpose()?;
            if edit.holds(path, new)? {
                continue;
            }
            let Some(executable) = edit.replace(path, old, new)? else {
                return refuse(format!("{path} changed on the branch after it was read"), TRY_AGAIN);
            };
            if let Some(bytes) = &wanted.new {
                objects.add(objs::Kind::Blob, bytes.clone())?;
            }
            is_landed = false;
            let present = unchanged(&changed, &staged, path, old, present)?;
            let (path, old) = (path.to_owned(), Some(old));
            files.push(PlannedFile { path, old, new, executable, present, is_tolerant: false });
        }
        let tree = edit.finish(&mut objects)?;
        Ok(Self { is_landed, objects, tree, files })
    }
}

/// The content of a file in the work tree; `None`: it has none.
fn read(root: &Path, path: &str) -> Result<Option<Vec<u8>>, Error> {
    let place = root.join(path);
    match fs::read(&place) {
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        answer => answer.map(Some).map_err(Error::io("read", place)),
    }
}

/// The work tree's content of a file to edit, `None` if a sparse checkout omits it. Refuses if the user has changed the
/// file.
fn unchanged(
    changed: &BTreeSet<String>,
    staged: &Staged,
    path: &str,
    old: ObjectId,
    present: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, Stop> {
    match staged.get(path) {
        Some(Entry::File { id, hidden: true, .. }) if id == old => return Ok(None),
        Some(Entry::File { id, .. }) if id == old => {}
        _ => return refuse(format!("{path} is staged with other content"), COMMIT_FIRST),
    }
    match present.filter(|_| !changed.contains(path)) {
        Some(present) => Ok(Some(present)),
        None => refuse(format!("{path} has changes that are not committed"), COMMIT_FIRST),
    }
}

const COMMIT_FIRST: &str = "commit or stash them, then try again";

const MOVE_AWAY: &str = "move it out of the way, then try again";

/// Whether index and work tree have the file, or something the user has put in its place since.
fn has_landed(staged: &Staged, root: &Path, path: &str, bytes: &[u8]) -> Result<bool, Stop> {
    let is_staged = staged.get(path).is_some() || staged.in_the_way(path).next().is_some();
    let is_hidden = matches!(staged.get(path), Some(Entry::File { hidden: true, .. }));
    Ok(is_staged && (is_hidden || inspect(root, path, bytes)? != Existing::Nothing))
}

/// For a file the branch lacks: refuses if the user has something else at its path. With `is_tolerant`, a changed
/// version of our file is accepted.
fn check_free(
    staged: &Staged,
    root: &Path,
    path: &str,
    bytes: &[u8],
    blob: ObjectId,
    is_tolerant: bool,
) -> Result<(), Stop> {
    if let Some(other) = staged.in_the_way(path).next() {
        return refuse(format!("{other} is staged, which stands in the way of {path}"), MOVE_AWAY);
    }
    match staged.get(path) {
        None => {}
        Some(Entry::File { id, .. }) if id == blob || is_tolerant => {}
        Some(_) => return refuse(format!("{path} is staged with other content"), MOVE_AWAY),
    }
    match inspect(root, path, bytes)? {
        Existing::Nothing | Existing::Same => Ok(()),
        Existing::Differs(_) if is_tolerant => Ok(()),
        Existing::Differs(what) | Existing::Other(what) => refuse(what, MOVE_AWAY),
    }
}
