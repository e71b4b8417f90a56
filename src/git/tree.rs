//! Reading the folders of a commit.

use std::collections::{HashMap, hash_map::Entry};

use gix::{
    ObjectId,
    objs::{Tree, bstr::BStr, tree},
};

use super::{error::Error, object_store::ObjectStore};

pub(super) struct Finder<'a> {
    store: &'a ObjectStore,
    root: ObjectId,
    folders: HashMap<ObjectId, Tree>,
}

impl Finder<'_> {
    /// The entry at a path; the tree itself for the empty path.
    pub(super) fn find(&mut self, path: &str) -> Result<Option<(tree::EntryMode, ObjectId)>, Error> {
        let mut found: (tree::EntryMode, ObjectId) = (tree::EntryKind::Tree.into(), self.root);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if !found.0.is_tree() {
                return Ok(None);
            }
            let folder = match self.folders.entry(found.1) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(self.store.tree(&found.1)?),
            };
            match entry_of(folder, name) {
                Some(entry) => found = (entry.mode, entry.oid),
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }
}

impl ObjectStore {
    /// The entry at `path` below a tree; the tree itself for the empty path.
    pub(super) fn find(&self, root: ObjectId, path: &str) -> Result<Option<(tree::EntryMode, ObjectId)>, Error> {
        self.finder(root).find(path)
    }

    /// For looking up many paths below a tree: each folder is read once.
    pub(super) fn finder(&self, root: ObjectId) -> Finder<'_> {
        Finder { store: self, root, folders: HashMap::new() }
    }

    /// Every file below a folder with its path, ordered by path. Omits submodules and names that are not UTF-8: neither
    /// is ours.
    pub(super) fn files_below(&self, root: ObjectId, folder: &str) -> Result<Vec<(String, ObjectId)>, Error> {
        let mut files = self.entries_below(root, folder)?;
        files.retain(|(_, mode, _)| mode.is_blob());
        Ok(files.into_iter().map(|(path, _, id)| (path, id)).collect())
    }

    /// Every symbolic link below a folder, ordered by path, with its target file. Omits links that leave the tree or
    /// lead to anything but a file.
    pub(super) fn links_below(&self, root: ObjectId, folder: &str) -> Result<Vec<(String, ObjectId)>, Error> {
        let mut links = self.entries_below(root, folder)?;
        links.retain(|(_, mode, _)| mode.is_link());
        let mut files = Vec::new();
        for (path, _, link) in links {
            let target = self.blob(&link)?;
            let Some(target) = std::str::from_utf8(&target).ok().and_then(|target| link_target(&path, target)) else {
                continue;
            };
            if let Some((mode, file)) = self.find(root, &target)?
                && mode.is_blob()
            {
                files.push((path, file));
            }
        }
        Ok(files)
    }

    /// Every entry below a folder that is not a folder, ordered by path.
    pub(super) fn entries_below(
        &self,
        root: ObjectId,
        folder: &str,
    ) -> Result<Vec<(String, tree::EntryMode, ObjectId)>, Error> {
        let folder = folder.trim_matches('/');
        let mut entries = Vec::new();
        let top = self.find(root, folder)?.filter(|(mode, _)| mode.is_tree());
        let mut folders: Vec<(String, ObjectId)> = top.map(|(_, id)| (folder.to_owned(), id)).into_iter().collect();
        while let Some((folder, id)) = folders.pop() {
            for entry in self.tree(&id)?.entries {
                let Ok(name) = std::str::from_utf8(&entry.filename) else { continue };
                let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
                match entry.mode.is_tree() {
                    true => folders.push((path, entry.oid)),
                    false => entries.push((path, entry.mode, entry.oid)),
                }
            }
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(entries)
    }
}

/// A link's target as a path from the root of its tree; `None`: it is outside.
fn link_target(link: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = link.rsplit_once('/').map_or(Vec::new(), |(folder, _)| folder.split('/').collect());
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// A tree's entry with this name.
pub(super) fn entry_of<'t>(tree: &'t Tree, name: &str) -> Option<&'t tree::Entry> {
    index_of(tree, name).map(|index| &tree.entries[index])
}

/// A folder sorts as if its name ended in `/`, so a name has two possible positions.
pub(super) fn index_of(tree: &Tree, name: &str) -> Option<usize> {
    let search = |is_tree: bool| {
        tree.entries
            .binary_search_by(|entry| tree::name_order(&entry.filename, entry.mode.is_tree(), name.as_bytes(), is_tree))
            .ok()
            .filter(|index| tree.entries[*index].filename == BStr::new(name))
    };
    search(false).or_else(|| search(true))
}
