//! Reading the folders of a commit, and adding files to a tree.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap, hash_map::Entry},
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use gix::{
    ObjectId, hash, objs,
    objs::{Find, FindHeader, Tree, WriteTo, bstr::BStr, tree},
    odb::pack::cache::lru::MemoryCappedHashmap,
};

use super::{error::Error, objects::NewObjects, recent::RecentObjects, references::parse_id, second_copy};

/// Bytes of pack objects to cache: the next object may be a delta against one of them.
const PACK_CACHE_SIZE: usize = 2 << 20;

/// Size limit for ledger objects, in bytes.
const MAX_OBJECT_SIZE: u64 = 64 << 20;

/// Milliseconds to wait before reopening the object database and retrying a lookup that failed. The object may exist
/// all the same: in a pack that a fold added after the database was opened, when gix has no slot left after 32 others;
/// or gix sees a loose object, gc packs it and removes the file, and gix does not look elsewhere (gix-odb 0.87,
/// `try_find`).
const RETRY_DELAYS: [u64; 8] = [0, 0, 1, 2, 4, 8, 16, 32];

/// The current object database. Reopened when an object is not found.
pub(super) struct ObjectStore {
    directory: PathBuf,
    hash: hash::Kind,
    recent: RecentObjects,
    /// Opened on the first lookup that is not cached in `recent`.
    handle: RefCell<Option<gix::odb::Handle>>,
    buffer: RefCell<Vec<u8>>,
    /// A lookup failed after all retries: later ones retry once, without waiting.
    has_failed_lookup: Cell<bool>,
    /// Size limit in bytes for objects that are read; `None`: no limit.
    size_limit: Option<u64>,
}

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
    pub(super) fn new(directory: &Path, hash: hash::Kind, recent: RecentObjects) -> Self {
        let (handle, buffer, has_failed_lookup) = (RefCell::default(), RefCell::default(), Cell::default());
        Self { directory: directory.to_owned(), hash, recent, handle, buffer, has_failed_lookup, size_limit: None }
    }

    /// Adds a size limit, for reading untrusted objects: a few compressed bytes can inflate to any size.
    pub(super) fn with_size_limit(self) -> Self {
        Self { size_limit: Some(MAX_OBJECT_SIZE), ..self }
    }

    pub(super) fn open(&self) -> Result<gix::odb::Handle, Error> {
        let mut handle = gix::odb::at(&self.directory, self.hash).map_err(Error::io("open", &self.directory))?;
        // Pack entries are deltas in chains of up to 50.
        handle.set_pack_cache(|| Box::new(MemoryCappedHashmap::new(PACK_CACHE_SIZE)));
        Ok(handle)
    }

    pub(super) fn hash(&self) -> hash::Kind {
        self.hash
    }

    /// Passes the bytes of an object of this kind to `read`.
    fn with<T>(
        &self,
        id: &gix::oid,
        kind: objs::Kind,
        read: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, Error> {
        let damaged = |what: String| Error::Object { path: self.directory.clone(), what };
        let read = |found: objs::Kind, bytes: &[u8]| match found == kind {
            true => read(bytes).map_err(|cause| damaged(format!("{kind} {id}: {cause}"))),
            false => Err(damaged(format!("{id} is a {found}, not a {kind}"))),
        };
        if let Some((found, bytes)) = self.recent.find(id) {
            return read(found, &bytes);
        }
        let (mut buffer, mut handle) = (self.buffer.borrow_mut(), self.handle.borrow_mut());
        // Retry at least once: all packs from the time of opening may have been folded.
        let attempts = if self.has_failed_lookup.get() { 1 } else { RETRY_DELAYS.len() };
        let mut pauses = RETRY_DELAYS[..attempts].iter();
        loop {
            let opened = match handle.take() {
                Some(opened) => opened,
                None => self.open()?,
            };
            let opened = handle.insert(opened);
            if let Some(size_limit) = self.size_limit
                && let Ok(Some(header)) = opened.try_header(id)
                && header.size > size_limit
            {
                return Err(damaged(format!(
                    "{kind} {id} has {} bytes, and squad reads up to {size_limit}",
                    header.size
                )));
            }
            let (what, is_broken) = match opened.try_find(id, &mut buffer) {
                Ok(Some(object)) => return read(object.kind, object.data),
                Ok(None) => (format!("{kind} {id} is missing"), false),
                Err(cause) => (format!("{kind} {id}: {cause}"), true),
            };
            let Some(pause) = pauses.next() else {
                if is_broken && let Some((found, bytes)) = second_copy::find(&self.directory, self.hash, id) {
                    return read(found, &bytes);
                }
                self.check_access(id)?;
                self.has_failed_lookup.set(true);
                return Err(damaged(what));
            };
            thread::sleep(Duration::from_millis(*pause));
            *handle = None;
        }
    }

    /// Fails on missing read permission, so that such an object is not taken for lost.
    fn check_access(&self, id: &gix::oid) -> Result<(), Error> {
        let folder = self.directory.join("pack");
        let packs = fs::read_dir(&folder).map(|packs| packs.flatten().map(|file| file.path()).collect());
        let packs: Vec<PathBuf> = packs.or_else(only_permission_denied).map_err(Error::io("read", folder))?;
        let hex = id.to_string();
        let loose = [self.directory.join(&hex[..2]), self.directory.join(&hex[..2]).join(&hex[2..])];
        for path in loose.into_iter().chain(packs) {
            fs::File::open(&path).map(drop).or_else(only_permission_denied).map_err(Error::io("read", path))?;
        }
        Ok(())
    }

    /// The error for a ledger whose tip cannot be read.
    pub(super) fn no_ledger(&self) -> Error {
        let what = "the ledger's newest commit is missing, or cannot be read".to_owned();
        Error::Object { path: self.directory.clone(), what }
    }

    /// The size of an object, without reading it; `None` if unknown.
    pub(super) fn size(&self, id: &gix::oid) -> Option<u64> {
        let mut handle = self.handle.borrow_mut();
        let opened = match handle.take() {
            Some(opened) => opened,
            None => self.open().ok()?,
        };
        Some(handle.insert(opened).try_header(id).ok()??.size)
    }

    pub(super) fn bytes(&self, id: &gix::oid, kind: objs::Kind) -> Result<Vec<u8>, Error> {
        if kind == objs::Kind::Tree && id == self.hash.empty_tree() {
            return Ok(Vec::new());
        }
        self.with(id, kind, |bytes| Ok(bytes.to_vec()))
    }

    pub(super) fn blob(&self, id: &gix::oid) -> Result<Vec<u8>, Error> {
        self.bytes(id, objs::Kind::Blob)
    }

    pub(super) fn tree(&self, id: &gix::oid) -> Result<Tree, Error> {
        if id == self.hash.empty_tree() {
            return Ok(Tree { entries: Vec::new() });
        }
        self.with(id, objs::Kind::Tree, |bytes| {
            let tree = objs::TreeRef::from_bytes(bytes, self.hash).map_err(|cause| cause.to_string())?;
            Ok(tree.into_owned())
        })
    }

    pub(super) fn parse_id(&self, hex: &str) -> Result<ObjectId, Error> {
        parse_id(hex.as_bytes(), self.hash)
            .ok_or_else(|| Error::damaged(&self.directory, format!("{hex:?} is no object's id")))
    }

    pub(super) fn tree_of(&self, commit: &gix::oid) -> Result<ObjectId, Error> {
        self.with(commit, objs::Kind::Commit, |bytes| {
            objs::CommitRefIter::from_bytes(bytes, self.hash).tree_id().map_err(|cause| cause.to_string())
        })
    }

    /// A commit's tree, its parents and its message.
    pub(super) fn commit(&self, commit: &gix::oid) -> Result<(ObjectId, Vec<ObjectId>, String), Error> {
        self.with(commit, objs::Kind::Commit, |bytes| {
            let found = objs::CommitRef::from_bytes(bytes, self.hash).map_err(|cause| cause.to_string())?;
            Ok((found.tree(), found.parents().collect(), found.message.to_string()))
        })
    }

    /// A commit's committer time, in seconds since 1970.
    pub(super) fn time_of(&self, commit: &gix::oid) -> Result<i64, Error> {
        self.with(commit, objs::Kind::Commit, |bytes| {
            let header = bytes.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"committer "));
            // `Name <email> seconds zone`
            let seconds = header.and_then(|line| line.rsplit(|byte| *byte == b' ').nth(1));
            let seconds = seconds.and_then(|seconds| std::str::from_utf8(seconds).ok()?.parse().ok());
            seconds.ok_or_else(|| "no time".to_owned())
        })
    }

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

/// Ignores every error but missing permission.
fn only_permission_denied<T: Default>(cause: io::Error) -> io::Result<T> {
    if cause.kind() == io::ErrorKind::PermissionDenied { Err(cause) } else { Ok(T::default()) }
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

/// A tree's entry with this name.
pub(super) fn entry_of<'t>(tree: &'t Tree, name: &str) -> Option<&'t tree::Entry> {
    index_of(tree, name).map(|index| &tree.entries[index])
}

/// A folder sorts as if its name ended in `/`, so a name has two possible positions.
fn index_of(tree: &Tree, name: &str) -> Option<usize> {
    let search = |is_tree: bool| {
        tree.entries
            .binary_search_by(|entry| tree::name_order(&entry.filename, entry.mode.is_tree(), name.as_bytes(), is_tree))
            .ok()
            .filter(|index| tree.entries[*index].filename == BStr::new(name))
    };
    search(false).or_else(|| search(true))
}

/// Rejects paths that are not relative and plain, or that git or a file system would read differently.
pub(super) fn check_path(path: &str) -> Result<(), Error> {
    let is_bad = |name: &str| {
        let lower = name.to_ascii_lowercase();
        matches!(name, "" | "." | "..") || lower == ".git" || lower == "git~1" || name.ends_with([' ', '.'])
    };
    let has_odd_character =
        path.chars().any(|character| character.is_control() || matches!(character, '\\' | ':' | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'));
    if has_odd_character || path.split('/').any(is_bad) {
        Err(Error::BadPath { path: path.to_owned() })
    } else {
        Ok(())
    }
}
