//! Reading the folders of a commit.

use std::collections::{HashMap, hash_map};

use gix::{
    ObjectId,
    objs::{Tree, bstr::BStr, tree},
};

use super::{
    error::Error,
    object_store::ObjectStore,
    walk::{Limits, PassedOver, Walk},
};

/// A path from the root of a tree, and what is there.
pub(super) type Entry = (String, tree::EntryMode, ObjectId);

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
                hash_map::Entry::Occupied(known) => known.into_mut(),
                hash_map::Entry::Vacant(place) => place.insert(self.store.tree(&found.1)?),
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

    /// Those among the entries below a folder that are symbolic links to files of the same tree, each with its target.
    /// Omits links that leave the tree or lead to anything but a file.
    pub(super) fn links_among(&self, root: ObjectId, entries: &[Entry]) -> Result<Vec<(String, ObjectId)>, Error> {
        /// Bytes of the longest target that a system follows.
        const LONGEST: u64 = 4096;
        let mut files = Vec::new();
        let mut finder = self.finder(root);
        for (path, _, link) in entries.iter().filter(|(_, mode, _)| mode.is_link()) {
            if self.size(link).is_some_and(|size| size > LONGEST) {
                continue;
            }
            let target = self.blob(link)?;
            let Some(target) = std::str::from_utf8(&target).ok().and_then(|target| link_target(path, target)) else {
                continue;
            };
            if let Some((mode, file)) = finder.find(&target)?
                && mode.is_blob()
            {
                files.push((path.clone(), file));
            }
        }
        Ok(files)
    }

    /// Every entry below a folder that is not a folder, ordered by path. Fails if that is more than one walk reads.
    pub(super) fn entries_below(&self, root: ObjectId, folder: &str) -> Result<Vec<Entry>, Error> {
        let mut passed_over = Vec::new();
        let entries = self.readable_below(root, folder, &mut passed_over)?;
        passed_over.pop().map_or(Ok(entries), |passed_over| Err(Error::TooLarge(passed_over)))
    }

    /// Every entry below a folder that is not a folder, ordered by path, as far as one walk may read. The rest is added
    /// to `passed_over`.
    pub(super) fn readable_below(
        &self,
        root: ObjectId,
        folder: &str,
        passed_over: &mut Vec<PassedOver>,
    ) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        self.walk_below(root, folder, passed_over, |entry| {
            if !entry.1.is_tree() {
                entries.push(entry);
            }
        })?;
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(entries)
    }

    /// Visits every entry below a folder, folders too, as far as one walk may read. Adds to `passed_over` what it does
    /// not read: of several folders for the same reason, the one that has them all.
    pub(super) fn walk_below(
        &self,
        root: ObjectId,
        folder: &str,
        passed_over: &mut Vec<PassedOver>,
        mut visit: impl FnMut(Entry),
    ) -> Result<(), Error> {
        let folder = folder.trim_matches('/');
        let mut walk = Walk::new(Limits::below(folder));
        let mut repeated: HashMap<ObjectId, Tree> = HashMap::new();
        let top = self.find(root, folder)?.filter(|(mode, _)| mode.is_tree());
        let mut folders: Vec<(String, ObjectId)> = top.map(|(_, id)| (folder.to_owned(), id)).into_iter().collect();
        while let Some((folder, id)) = folders.pop() {
            if let Err(why) = walk.enter(&folder, id) {
                match passed_over.iter_mut().find(|passed_over| passed_over.why == why) {
                    Some(other) => other.path = common_folder(&other.path, &folder).to_owned(),
                    None => passed_over.push(PassedOver { path: folder, why }),
                }
                continue;
            }
            let read;
            let tree = match walk.is_again() {
                // Those that are repeated are few.
                true => match repeated.entry(id) {
                    hash_map::Entry::Occupied(known) => known.into_mut(),
                    hash_map::Entry::Vacant(place) => place.insert(self.tree(&id)?),
                },
                false => {
                    read = self.tree(&id)?;
                    &read
                }
            };
            for entry in &tree.entries {
                let Ok(name) = std::str::from_utf8(&entry.filename) else { continue };
                let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
                walk.count(&path);
                if entry.mode.is_tree() {
                    folders.push((path.clone(), entry.oid));
                }
                visit((path, entry.mode, entry.oid));
            }
        }
        Ok(())
    }
}

fn common_folder<'p>(one: &'p str, other: &str) -> &'p str {
    let same = one.split('/').zip(other.split('/')).take_while(|(one, other)| one == other);
    let length = same.map(|(name, _)| name.len() + 1).sum::<usize>();
    one.get(..length.saturating_sub(1)).unwrap_or(one)
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
