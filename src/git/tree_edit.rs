//! Changing the tree of a commit.

use std::collections::BTreeMap;

use gix::{
    ObjectId, objs,
    objs::{Tree, WriteTo, tree},
};

use super::{
    error::Error,
    object_store::ObjectStore,
    objects::NewObjects,
    tree::{entry_of, index_of},
};

/// A tree being changed in memory. Only the folders above changed files are read.
pub(super) struct TreeEdit<'a> {
    store: &'a ObjectStore,
    /// By path; the root has the empty path.
    folders: BTreeMap<String, Tree>,
    /// Returns the replacement for a folder that cannot be read. `None`: such a folder is an error.
    replacement_for: Option<fn(ObjectId) -> Tree>,
}

/// The result of inserting a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Insertion {
    Added,
    /// The same file was already there.
    Unchanged,
    /// Something else was there, or a file was in place of a folder. The tree is unchanged.
    Conflict,
}

impl<'a> TreeEdit<'a> {
    pub(super) fn new(store: &'a ObjectStore, root: Option<ObjectId>) -> Result<Self, Error> {
        Self::with(store, root, None)
    }

    /// Like [`Self::new`], but replaces folders that cannot be read.
    pub(super) fn tolerant(
        store: &'a ObjectStore,
        root: Option<ObjectId>,
        replacement_for: fn(ObjectId) -> Tree,
    ) -> Result<Self, Error> {
        Self::with(store, root, Some(replacement_for))
    }

    fn with(
        store: &'a ObjectStore,
        root: Option<ObjectId>,
        replacement_for: Option<fn(ObjectId) -> Tree>,
    ) -> Result<Self, Error> {
        let mut edit = Self { store, folders: BTreeMap::new(), replacement_for };
        let tree = match root {
            Some(id) => edit.read(id)?,
            None => Tree { entries: Vec::new() },
        };
        edit.folders.insert(String::new(), tree);
        Ok(edit)
    }

    fn read(&self, id: ObjectId) -> Result<Tree, Error> {
        match (self.store.tree(&id), self.replacement_for) {
            (Err(Error::Object { .. }), Some(replacement_for)) => Ok(replacement_for(id)),
            (answer, _) => answer,
        }
    }

    /// Inserts a file at a free path.
    pub(super) fn insert(&mut self, path: &str, blob: ObjectId) -> Result<Insertion, Error> {
        self.insert_as(tree::EntryKind::Blob, path, blob)
    }

    pub(super) fn insert_as(&mut self, kind: tree::EntryKind, path: &str, blob: ObjectId) -> Result<Insertion, Error> {
        let Some((tree, name)) = self.folder_of(path)? else { return Ok(Insertion::Conflict) };
        if let Some(index) = index_of(tree, name) {
            let entry = &tree.entries[index];
            return Ok(if entry.mode.is_blob() && entry.oid == blob {
                Insertion::Unchanged
            } else {
                Insertion::Conflict
            });
        }
        set_entry(tree, name, kind, blob);
        Ok(Insertion::Added)
    }

    /// Whether the path has this file, or no entry for `None`.
    pub(super) fn holds(&mut self, path: &str, file: Option<ObjectId>) -> Result<bool, Error> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if !self.load(folder)? {
            return Ok(file.is_none());
        }
        let found = self.folders.get(folder).and_then(|tree| Some(&tree.entries[index_of(tree, name)?]));
        let found = found.map(|entry| (entry.mode.is_blob(), entry.oid));
        Ok(found == file.map(|file| (true, file)))
    }

    /// Replaces the file `old` with `new`, or removes it; whether it is executable. `None`: `old` is not at the path, and
    /// the tree is unchanged.
    pub(super) fn replace(&mut self, path: &str, old: ObjectId, new: Option<ObjectId>) -> Result<Option<bool>, Error> {
        let Some((tree, name)) = self.folder_of(path)? else { return Ok(None) };
        let Some(index) = index_of(tree, name) else { return Ok(None) };
        let entry = &mut tree.entries[index];
        if entry.oid != old || !entry.mode.is_blob() {
            return Ok(None);
        }
        let executable = entry.mode.is_executable();
        match new {
            Some(new) => entry.oid = new,
            None => drop(tree.entries.remove(index)),
        }
        Ok(Some(executable))
    }

    /// Removes the file or folder at a path if it is `old`.
    pub(super) fn remove(&mut self, path: &str, old: ObjectId) -> Result<(), Error> {
        if let Some((tree, name)) = self.folder_of(path)?
            && let Some(index) = index_of(tree, name).filter(|index| tree.entries[*index].oid == old)
        {
            tree.entries.remove(index);
        }
        Ok(())
    }

    /// A path's folder and its name there. `None`: something above it is not a folder.
    fn folder_of<'p>(&mut self, path: &'p str) -> Result<Option<(&mut Tree, &'p str)>, Error> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if !self.load(folder)? {
            return Ok(None);
        }
        Ok(self.folders.get_mut(folder).map(|tree| (tree, name)))
    }

    /// Loads a folder and those above it. False: one of them is not a folder.
    fn load(&mut self, folder: &str) -> Result<bool, Error> {
        if self.folders.contains_key(folder) {
            return Ok(true);
        }
        let (parent, name) = folder.rsplit_once('/').unwrap_or(("", folder));
        if !self.load(parent)? {
            return Ok(false);
        }
        let Some(above) = self.folders.get(parent) else { return Ok(false) };
        let tree = match entry_of(above, name) {
            Some(entry) if entry.mode.is_tree() => self.read(entry.oid)?,
            Some(_) => return Ok(false),
            None => Tree { entries: Vec::new() },
        };
        self.folders.insert(folder.to_owned(), tree);
        Ok(true)
    }

    /// Adds the changed trees to `objects`, deepest first, and returns the root's id.
    pub(super) fn finish(mut self, objects: &mut NewObjects) -> Result<ObjectId, Error> {
        // A folder sorts before its contents, so the reverse order visits children first.
        while let Some((folder, tree)) = self.folders.pop_last() {
            let mut bytes = Vec::new();
            tree.write_to(&mut bytes).map_err(|_| Error::BadPath { path: folder.clone() })?;
            if folder.is_empty() {
                return objects.add(objs::Kind::Tree, bytes);
            }
            let (parent, name) = folder.rsplit_once('/').unwrap_or(("", &folder));
            let Some(above) = self.folders.get_mut(parent) else { continue };
            if tree.entries.is_empty() {
                // Emptied, or loaded without a change: git has no empty folders.
                if let Some(index) = index_of(above, name) {
                    above.entries.remove(index);
                }
                continue;
            }
            let id = objects.add(objs::Kind::Tree, bytes)?;
            set_entry(above, name, tree::EntryKind::Tree, id);
        }
        objects.add(objs::Kind::Tree, Vec::new())
    }
}

fn set_entry(tree: &mut Tree, name: &str, kind: tree::EntryKind, oid: ObjectId) {
    match index_of(tree, name) {
        Some(index) => tree.entries[index].oid = oid,
        None => {
            let entry = tree::Entry { mode: kind.into(), filename: name.into(), oid };
            let index = tree.entries.partition_point(|other| other < &entry);
            tree.entries.insert(index, entry);
        }
    }
}
