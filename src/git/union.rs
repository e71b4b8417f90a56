//! The union of two trees of immutable files, and the files that one tree lacks.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use gix::{ObjectId, objs, objs::Tree, objs::WriteTo, objs::tree};

use super::{
    error::Error,
    ledger_tree::{DEPTH, TreeReader, join, replacement_for},
    object_store::ObjectStore,
    objects::NewObjects,
};
use crate::model::{Damage, DamageKind};

/// Merges two versions of a scrubbed file. The same for (a, b) and (b, a).
pub(crate) type MergeFile<'a> = dyn Fn(&[u8], &[u8]) -> Vec<u8> + 'a;

/// What scrubs and repairs changed, so that the trees may differ.
pub(super) struct Scrubbed<'a> {
    pub(super) paths: BTreeSet<String>,
    /// Entries that were set aside as damaged, by path: they stay out, unless one that was unreadable can be read here.
    pub(super) set_aside: BTreeMap<String, Vec<Damage>>,
    pub(super) merge_file: &'a MergeFile<'a>,
}

/// Adds the trees of the union to `objects` and returns its root. The same for (a, b) and (b, a).
///
/// Of a scrubbed file, the scrubbed version wins.
///
/// If both have different entries under one name, which only a misbehaving clone can cause, the folder, or else the
/// smaller id, keeps the name; the other gets a name that ends in its id. A folder that cannot be read is kept as it
/// is, inside the union.
pub(super) fn union(
    store: &ObjectStore,
    one: ObjectId,
    other: ObjectId,
    scrubbed: &Scrubbed<'_>,
    objects: &mut NewObjects,
) -> Result<ObjectId, Error> {
    merge(&Merge { store, scrubbed, known: RefCell::default() }, "", one, other, objects)
}

struct Merge<'a> {
    store: &'a ObjectStore,
    scrubbed: &'a Scrubbed<'a>,
    /// The unions of pairs of folders, so that each pair is merged once, at however many paths it occurs.
    known: RefCell<HashMap<(ObjectId, ObjectId), ObjectId>>,
}

impl Merge<'_> {
    fn entries(&self, folder: ObjectId) -> Result<Vec<tree::Entry>, Error> {
        match self.store.tree(&folder) {
            Err(Error::Object { .. }) => Ok(replacement_for(folder).entries),
            tree => Ok(tree?.entries),
        }
    }

    fn is_set_aside(&self, path: &str, entry: &tree::Entry) -> bool {
        let Some(damaged) = self.scrubbed.set_aside.get(path) else { return false };
        let object = entry.oid.to_string();
        damaged.iter().any(|damage| {
            damage.object.as_ref() == Some(&object)
                && (damage.kind != DamageKind::Unreadable || !self.is_readable(entry))
        })
    }

    fn is_readable(&self, entry: &tree::Entry) -> bool {
        match entry.mode.is_tree() {
            true => self.store.tree(&entry.oid).is_ok(),
            false => self.store.blob(&entry.oid).is_ok(),
        }
    }

    /// Whether an entry below a folder was set aside.
    fn has_removed_below(&self, folder: &str) -> bool {
        let below = self.scrubbed.set_aside.range(folder.to_owned()..).next();
        below.is_some_and(|(path, _)| path.starts_with(folder))
    }

    /// Whether the union of two folders is independent of their path.
    fn is_path_independent(&self, folder: &str) -> bool {
        if self.has_removed_below(folder) {
            return false;
        }
        let below = self.scrubbed.paths.range(folder.to_owned()..).next();
        below.is_none_or(|path| !path.starts_with(folder))
    }

    /// The merge of two versions of a file. One that cannot be read loses.
    fn merged_file(&self, one: ObjectId, other: ObjectId, objects: &mut NewObjects) -> Result<ObjectId, Error> {
        match (self.store.blob(&one), self.store.blob(&other)) {
            (Ok(a), Ok(b)) => objects.add(objs::Kind::Blob, (self.scrubbed.merge_file)(&a, &b)),
            (Err(Error::Object { .. }), Ok(_)) => Ok(other),
            (Ok(_) | Err(Error::Object { .. }), Err(Error::Object { .. })) => Ok(one),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }
}

fn merge(
    merging: &Merge<'_>,
    folder: &str,
    one: ObjectId,
    other: ObjectId,
    objects: &mut NewObjects,
) -> Result<ObjectId, Error> {
    if one == other {
        return Ok(one);
    }
    let pair = (one.min(other), one.max(other));
    let is_known = merging.is_path_independent(folder);
    if let Some(known) = merging.known.borrow().get(&pair).filter(|_| is_known) {
        return Ok(*known);
    }
    let mut entries = merging.entries(one)?;
    entries.extend(merging.entries(other)?);
    entries.retain(|entry| !merging.is_set_aside(&format!("{folder}{}", entry.filename), entry));
    // By name; for the same name, folders first, then the smaller id.
    entries.sort_by(|a, b| (&a.filename, !a.mode.is_tree(), a.oid).cmp(&(&b.filename, !b.mode.is_tree(), b.oid)));
    entries.dedup_by(|later, earlier| later.filename == earlier.filename && later.oid == earlier.oid);
    let is_deep = folder.matches('/').count() >= DEPTH;
    let mut merged: Vec<tree::Entry> = Vec::with_capacity(entries.len());
    for mut entry in entries {
        match merged.last_mut().filter(|last| last.filename == entry.filename) {
            Some(last) if last.mode.is_tree() && entry.mode.is_tree() && !is_deep => {
                last.oid = merge(merging, &format!("{folder}{}/", last.filename), last.oid, entry.oid, objects)?;
            }
            Some(last)
                if last.mode.is_blob()
                    && entry.mode.is_blob()
                    && merging.scrubbed.paths.contains(&format!("{folder}{}", last.filename)) =>
            {
                last.oid = merging.merged_file(last.oid, entry.oid, objects)?;
            }
            Some(_) => {
                entry.filename = format!("{}~{}", entry.filename, entry.oid).into();
                merged.push(entry);
            }
            None => merged.push(entry),
        }
    }
    for entry in merged.iter_mut().filter(|entry| entry.mode.is_tree() && !is_deep) {
        let below = format!("{folder}{}/", entry.filename);
        // Folders that only one side has are filtered too.
        if merging.has_removed_below(&below) && merging.store.tree(&entry.oid).is_ok() {
            entry.oid = merge(merging, &below, entry.oid, merging.store.hash().empty_tree(), objects)?;
        }
    }
    merged.retain(|entry| entry.oid != merging.store.hash().empty_tree());
    merged.sort();
    merged.dedup_by(|later, earlier| later.filename == earlier.filename);
    let mut bytes = Vec::new();
    Tree { entries: merged }.write_to(&mut bytes).map_err(|_| Error::BadPath { path: one.to_string() })?;
    let united = objects.add(objs::Kind::Tree, bytes)?;
    if is_known {
        merging.known.borrow_mut().insert(pair, united);
    }
    Ok(united)
}

/// How many files below `tree` exist at their path in none of `bases`. Folders that a base also has are not read.
pub(super) fn count_missing(reader: &TreeReader<'_>, tree: ObjectId, bases: &[ObjectId]) -> Result<usize, Error> {
    let mut count = 0;
    missing(reader, ("", tree), bases, |file| count += usize::from(!file.is_changed))?;
    Ok(count)
}

/// A file of a tree that the bases lack.
pub(super) struct MissingFile<'a> {
    folder: &'a str,
    entry: &'a tree::Entry,
    /// Whether a base has a different file at its path.
    pub(super) is_changed: bool,
}

impl MissingFile<'_> {
    pub(super) fn path(&self) -> String {
        join(self.folder, &self.entry.filename.to_string())
    }

    pub(super) fn id(&self) -> ObjectId {
        self.entry.oid
    }
}

/// Passes each file below `tree`, whose path is `name`, that is in none of `bases` to `show`. Folders that a base also
/// has are not read, and no folder is read twice; unreadable folders are reported.
pub(super) fn missing(
    reader: &TreeReader<'_>,
    (name, tree): (&str, ObjectId),
    bases: &[ObjectId],
    mut show: impl FnMut(&MissingFile<'_>),
) -> Result<(), Error> {
    let mut pairs = vec![(name.to_owned(), tree, bases.to_vec())];
    let mut seen = HashSet::new();
    while let Some((folder, tree, bases)) = pairs.pop() {
        if bases.contains(&tree) || !seen.insert((tree, bases.clone())) {
            continue;
        }
        let read = bases.iter().map(|base| reader.tree(&folder, *base)).collect::<Result<Option<Vec<Tree>>, _>>()?;
        // If a base cannot be read, nothing counts as missing from it.
        let Some(bases) = read else { continue };
        let mut old: HashMap<_, Vec<&tree::Entry>> = HashMap::new();
        for entry in bases.iter().flat_map(|base| &base.entries) {
            old.entry(&entry.filename).or_default().push(entry);
        }
        for entry in reader.tree(&folder, tree)?.map(|tree| tree.entries).unwrap_or_default() {
            let before = old.get(&entry.filename).map_or(&[][..], Vec::as_slice);
            let file = MissingFile { folder: &folder, entry: &entry, is_changed: !before.is_empty() };
            if entry.mode.is_tree() {
                let before = before.iter().filter(|before| before.mode.is_tree()).map(|before| before.oid);
                pairs.push((file.path(), entry.oid, before.collect()));
            } else if before.iter().all(|before| before.oid != entry.oid) {
                show(&file);
            }
        }
    }
    Ok(())
}

/// The files that `tree`, whose path is `name`, adds to `base`; `None` if a file of `base` was changed or removed, or
/// if a folder is repeated. Equal folders are not read.
pub(super) fn additions(
    store: &ObjectStore,
    (name, tree): (&str, ObjectId),
    base: ObjectId,
) -> Result<Option<Vec<(String, ObjectId)>>, Error> {
    let mut added = Vec::new();
    let mut pairs = vec![(name.to_owned(), tree, Some(base))];
    let mut seen = HashSet::new();
    while let Some((folder, tree, base)) = pairs.pop() {
        if base == Some(tree) {
            continue;
        }
        if !seen.insert(tree) || folder.matches('/').count() >= DEPTH {
            return Ok(None);
        }
        let old = base.map(|base| store.tree(&base)).transpose()?.map(|tree| tree.entries).unwrap_or_default();
        let mut old: HashMap<_, _> = old.iter().map(|entry| (&entry.filename, entry)).collect();
        for entry in store.tree(&tree)?.entries {
            let before = old.remove(&entry.filename);
            let Ok(name) = std::str::from_utf8(&entry.filename) else { continue };
            let path = format!("{folder}/{name}");
            match before {
                Some(before) if before.mode != entry.mode => return Ok(None),
                Some(before) if entry.mode.is_tree() => pairs.push((path, entry.oid, Some(before.oid))),
                Some(before) if before.oid == entry.oid => {}
                Some(_) => return Ok(None),
                None if entry.mode.is_tree() => pairs.push((path, entry.oid, None)),
                None if entry.mode.is_blob() => added.push((path, entry.oid)),
                None => {}
            }
        }
        if !old.is_empty() {
            return Ok(None);
        }
    }
    Ok(Some(added))
}
