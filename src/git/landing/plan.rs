//! What a change still lacks in objects, index and work tree, and what stands against giving it.

use std::{fs, io, path::Path};

use gix::{ObjectId, objs};

use super::{AGAIN, Change, Stop, refuse};
use crate::git::{
    checkout::{Aside, Entry, Present, Staged, check_out, is_unchanged, look, restage, stored},
    error::Error,
    objects::{NewObjects, identify},
    repository::Repository,
    tree::{ObjectStore, Place, TreeEdit},
};

/// What is missing where.
pub(super) struct Plan<'a> {
    /// The branch holds every file already.
    pub(super) is_landed: bool,
    pub(super) objects: NewObjects,
    pub(super) tree: ObjectId,
    pub(super) index: Vec<(&'a str, ObjectId)>,
    pub(super) work_tree: Vec<(&'a str, &'a [u8])>,
    edits: Vec<Planned<'a>>,
}

/// An edit that is still to be made.
struct Planned<'a> {
    path: &'a str,
    old: ObjectId,
    new: Option<ObjectId>,
    present: InWorkTree,
}

enum InWorkTree {
    /// A sparse checkout keeps it out.
    Hidden,
    /// A landing of this change that was killed has taken it away.
    Gone,
    There(Vec<u8>),
}

impl<'a> Plan<'a> {
    pub(super) fn make(
        repository: &Repository,
        store: &ObjectStore,
        root: &Path,
        base: Option<ObjectId>,
        change: &'a Change,
    ) -> Result<Self, Stop> {
        let edited = change.edits.iter().map(|edit| edit.path.as_str());
        let paths: Vec<&str> = change.files.iter().map(|(path, _)| path.as_str()).chain(edited).collect();
        let staged = Staged::read(repository, &paths)?;
        let base_tree = base.map(|base| store.tree_of(&base)).transpose()?;
        let mut edit = TreeEdit::new(store, base_tree)?;
        let mut objects = NewObjects::new(store.hash());
        let (mut index, mut work_tree) = (Vec::new(), Vec::new());
        let mut is_landed = true;
        for (path, bytes) in &change.files {
            let blob = identify(store.hash(), objs::Kind::Blob, bytes)?;
            let place = edit.insert(path, blob)?;
            let missing = match place {
                Place::Same => missing_of_landed(&staged, root, path, bytes)?,
                Place::Empty => missing_of_new(&staged, root, path, bytes, blob)?,
                Place::Taken => return refuse(format!("{path} is on the branch with other content"), MOVE_AWAY),
            };
            if place == Place::Empty {
                is_landed = false;
                objects.add(objs::Kind::Blob, bytes.clone())?;
            }
            if missing.in_index {
                index.push((path.as_str(), blob));
            }
            if missing.in_work_tree {
                work_tree.push((path.as_str(), bytes.as_slice()));
            }
        }
        let mut edits = Vec::new();
        for wanted in &change.edits {
            let path = wanted.path.as_str();
            let old = identify(store.hash(), objs::Kind::Blob, &wanted.old)?;
            let new = wanted.new.as_ref().map(|bytes| objects.add(objs::Kind::Blob, bytes.clone())).transpose()?;
            if !edit.replace(path, old, new)? {
                return refuse(format!("{path} is not on the branch as it was read"), AGAIN);
            }
            is_landed = false;
            edits.push(Planned { path, old, new, present: unchanged(repository, &staged, root, path, old, new)? });
        }
        let tree = edit.finish(&mut objects)?;
        Ok(Self { is_landed, objects, tree, index, work_tree, edits })
    }
}

/// A file that is to be edited as the work tree has it. The user's own changes to it are in the way; what a landing of
/// this very change did before it was killed is not.
fn unchanged(
    repository: &Repository,
    staged: &Staged,
    root: &Path,
    path: &str,
    old: ObjectId,
    new: Option<ObjectId>,
) -> Result<InWorkTree, Stop> {
    let place = root.join(path);
    let is_begun = match staged.get(path) {
        Some(Entry::File { id, hidden: true }) if id == old => return Ok(InWorkTree::Hidden),
        Some(Entry::File { id, .. }) if id == old => false,
        Some(Entry::File { id, hidden: false }) if Some(id) == new => true,
        None if new.is_none() && staged.in_the_way(path).is_none() => true,
        _ => return refuse(format!("{path} is staged with other content"), COMMIT_FIRST),
    };
    let present = match fs::read(&place) {
        Err(cause) if is_begun && cause.kind() == io::ErrorKind::NotFound => return Ok(InWorkTree::Gone),
        answer => answer.map_err(Error::io("read", &place))?,
    };
    let is_ours = match is_begun {
        true => [Some(old), new].contains(&Some(stored(repository, path)?)),
        false => is_unchanged(repository, path)?,
    };
    if !is_ours {
        return refuse(format!("{path} has changes that are not committed"), COMMIT_FIRST);
    }
    Ok(InWorkTree::There(present))
}

const COMMIT_FIRST: &str = "commit or stash them, then try again";

const MOVE_AWAY: &str = "move it out of the way, then try again";

struct Missing {
    in_index: bool,
    in_work_tree: bool,
}

/// The branch has the file. Where the user has since changed it or put something in its place, it stays so.
fn missing_of_landed(staged: &Staged, root: &Path, path: &str, bytes: &[u8]) -> Result<Missing, Stop> {
    let is_free = staged.get(path).is_none() && staged.in_the_way(path).is_none();
    let is_hidden = matches!(staged.get(path), Some(Entry::File { hidden: true, .. }));
    let is_absent = look(root, path, bytes)? == Present::Nothing;
    Ok(Missing { in_index: is_free, in_work_tree: is_absent && !is_hidden })
}

/// The branch does not have the file: nobody else may have anything there.
fn missing_of_new(staged: &Staged, root: &Path, path: &str, bytes: &[u8], blob: ObjectId) -> Result<Missing, Stop> {
    if let Some(other) = staged.in_the_way(path) {
        return refuse(format!("{other} is staged, which stands in the way of {path}"), MOVE_AWAY);
    }
    let in_index = match staged.get(path) {
        None => true,
        Some(Entry::File { id, .. }) if id == blob => false,
        Some(_) => return refuse(format!("{path} is staged with other content"), MOVE_AWAY),
    };
    match look(root, path, bytes)? {
        Present::Nothing => Ok(Missing { in_index, in_work_tree: true }),
        Present::Same => Ok(Missing { in_index, in_work_tree: false }),
        Present::Other(what) => refuse(what, MOVE_AWAY),
    }
}

impl Plan<'_> {
    /// Index first, so that what git writes to the work tree has the line ends that the user's settings give it.
    pub(super) fn edit(&self, repository: &Repository, root: &Path, aside: &mut Aside) -> Result<(), Stop> {
        restage(repository, &self.edits.iter().map(|edit| (edit.path, edit.new)).collect::<Vec<_>>())?;
        for edit in &self.edits {
            let InWorkTree::There(present) = &edit.present else { continue };
            if !aside.take(&root.join(edit.path), present)? {
                return refuse(format!("{} is being changed", edit.path), AGAIN);
            }
        }
        let written = self.edits.iter().filter(|edit| edit.new.is_some());
        let written = written.filter(|edit| !matches!(edit.present, InWorkTree::Hidden));
        Ok(check_out(repository, &[], &written.map(|edit| edit.path).collect::<Vec<_>>())?)
    }

    pub(super) fn undo_edits(&self, repository: &Repository, aside: Aside) -> Result<(), Error> {
        aside.put_back()?;
        restage(repository, &self.edits.iter().map(|edit| (edit.path, Some(edit.old))).collect::<Vec<_>>())?;
        let gone = self.edits.iter().filter(|edit| matches!(edit.present, InWorkTree::Gone));
        // What stands there now is what we put there.
        check_out(repository, &["-f"], &gone.map(|edit| edit.path).collect::<Vec<_>>())
    }
}
