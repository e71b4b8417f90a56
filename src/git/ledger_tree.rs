//! Reading a ledger's tree. Any part may be missing, broken or malicious.
//!
//! Unreadable objects are reported and skipped. A folder object that occurs at many paths is read at the first few
//! only, so that a few stored bytes cannot expand into unbounded work. A folder written by squad occurs at one path
//! only, since its entries have unique names.

use std::cell::Cell;

use gix::{ObjectId, objs::Tree, objs::tree};

use super::{
    error::Error,
    object_store::ObjectStore,
    walk::{Limits, Walk},
};
use crate::model::{Damage, DamageKind, DamageLog};

/// The maximum nesting of folders. Ours are nine deep.
pub(super) const DEPTH: usize = Limits::LEDGER.depth;

/// Name prefix of a displaced folder: it could not be read when a file was added to it, so it moved one level down,
/// into a new folder of its name.
pub(super) const DISPLACED: &str = "lost~";

/// The tree that replaces an unreadable folder.
pub(super) fn replacement_for(lost: ObjectId) -> Tree {
    let entry =
        tree::Entry { mode: tree::EntryKind::Tree.into(), filename: format!("{DISPLACED}{lost}").into(), oid: lost };
    Tree { entries: vec![entry] }
}

/// An entry of a ledger: its path from the root and its object.
pub(super) type PathAndId = (String, ObjectId);

/// Reads trees, and reports what it skips.
pub(super) struct TreeReader<'a> {
    pub(super) store: &'a ObjectStore,
    log: &'a DamageLog,
    is_whole: Cell<bool>,
}

impl<'a> TreeReader<'a> {
    pub(super) fn new(store: &'a ObjectStore, log: &'a DamageLog) -> Self {
        Self { store, log, is_whole: Cell::new(true) }
    }

    /// Whether every object so far could be read.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole.get()
    }

    /// The value, or `None` after reporting an unreadable object.
    pub(super) fn skip_unreadable<T>(
        &self,
        path: &str,
        id: ObjectId,
        read: Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(Error::Object { what, .. }) => {
                self.is_whole.set(false);
                self.report(path, Some(id), DamageKind::Unreadable, what);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn report(&self, path: &str, id: Option<ObjectId>, kind: DamageKind, reason: String) {
        let object = id.map(|id| id.to_string());
        self.log.add(Damage { path: path.to_owned(), object, kind, reason });
    }

    pub(super) fn tree(&self, path: &str, id: ObjectId) -> Result<Option<Tree>, Error> {
        self.skip_unreadable(path, id, self.store.tree(&id))
    }

    /// The entry at `path`. `None`: there is none, or a folder above it cannot be read.
    pub(super) fn find(&self, root: ObjectId, path: &str) -> Result<Option<(tree::EntryMode, ObjectId)>, Error> {
        let mut found: (tree::EntryMode, ObjectId) = (tree::EntryKind::Tree.into(), root);
        let mut folder_path = String::new();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if !found.0.is_tree() {
                return Ok(None);
            }
            let Some(tree) = self.tree(&folder_path, found.1)? else { return Ok(None) };
            for entry in tree.entries.iter().filter(|entry| entry.mode.is_tree()) {
                self.report_displaced(&join(&folder_path, &entry.filename.to_string()), entry.oid)?;
            }
            let Some(entry) = super::tree::entry_of(&tree, name) else { return Ok(None) };
            found = (entry.mode, entry.oid);
            folder_path = join(&folder_path, name);
        }
        Ok(Some(found))
    }

    /// Reports whether a displaced folder is still unreadable or can be read now.
    fn report_displaced(&self, path: &str, id: ObjectId) -> Result<(), Error> {
        if path.rsplit('/').next().is_some_and(|name| name.starts_with(DISPLACED)) && self.tree(path, id)?.is_some() {
            self.report(
                path,
                Some(id),
                DamageKind::Displaced,
                "the folder could not be read at first, but can be now".to_owned(),
            );
        }
        Ok(())
    }

    /// A folder's direct subfolders and files, ordered by name.
    pub(super) fn children(&self, path: &str, id: ObjectId) -> Result<(Vec<PathAndId>, Vec<PathAndId>), Error> {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        for entry in self.tree(path, id)?.map(|tree| tree.entries).unwrap_or_default() {
            let inner = join(path, &entry.filename.to_string());
            if std::str::from_utf8(&entry.filename).is_err() {
                self.report(&inner, Some(entry.oid), DamageKind::Malformed, "its name is not UTF-8".to_owned());
            } else if entry.mode.is_tree() {
                self.report_displaced(&inner, entry.oid)?;
                folders.push((inner, entry.oid));
            } else if entry.mode.is_blob() {
                files.push((inner, entry.oid));
            } else {
                self.report(&inner, Some(entry.oid), DamageKind::Malformed, "it is neither file nor folder".to_owned());
            }
        }
        Ok((folders, files))
    }

    /// Every file below a folder, ordered by path.
    pub(super) fn files_below(&self, path: &str, id: ObjectId) -> Result<Vec<PathAndId>, Error> {
        let mut all = Vec::new();
        self.walk(path, id, |file| {
            all.push(file);
            Ok(())
        })?;
        all.sort();
        Ok(all)
    }

    /// Visits every file below a folder, its own files before those of its subfolders.
    pub(super) fn walk(
        &self,
        path: &str,
        id: ObjectId,
        mut visit: impl FnMut(PathAndId) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut visited = Walk::default();
        let mut folders = vec![(path.to_owned(), id)];
        while let Some((path, id)) = folders.pop() {
            if !self.should_read(&path, id, &mut visited) {
                continue;
            }
            let (mut below, files) = self.children(&path, id)?;
            below.iter().chain(&files).for_each(|(path, _)| visited.count(path));
            files.into_iter().try_for_each(&mut visit)?;
            below.reverse();
            folders.append(&mut below);
        }
        Ok(())
    }

    /// Whether to read a folder: not if it is repeated too often or nested too deep.
    pub(super) fn should_read(&self, path: &str, id: ObjectId, walk: &mut Walk) -> bool {
        let entered = walk.enter(path, id);
        if let Err(reason) = &entered {
            self.report(path, Some(id), DamageKind::Malformed, reason.clone());
        }
        entered.is_ok()
    }
}

pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
