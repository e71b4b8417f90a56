//! Two trees of immutable files become one that holds the files of both, and how many files one lacks.

use std::collections::{BTreeSet, HashMap};

use gix::{ObjectId, objs, objs::Tree, objs::WriteTo, objs::tree};

use super::{error::Error, objects::NewObjects, tree::ObjectStore};

/// How deep folders may lie in each other. Ours are seven deep; another's tree is not to end our stack.
const DEPTH: usize = 64;

/// What stands for two versions of a file of which something was taken out. The same for (a, b) and (b, a).
pub(crate) type Settle<'a> = dyn Fn(&[u8], &[u8]) -> Vec<u8> + 'a;

/// Files that may have two versions, since something was taken out of them.
pub(super) struct Scrubbed<'a> {
    pub(super) paths: BTreeSet<String>,
    pub(super) settle: &'a Settle<'a>,
}

/// Adds the trees of the union to `objects`. The same for (a, b) and (b, a).
///
/// Where something was taken out of a file in one of them, that version stands.
///
/// Where both have different things under one name, which takes a clone that did not play by the rules, the folder, or
/// else the one with the smaller id, keeps the name; the other stays beside it under a name that ends in its id.
pub(super) fn union(
    store: &ObjectStore,
    one: ObjectId,
    other: ObjectId,
    scrubbed: &Scrubbed<'_>,
    objects: &mut NewObjects,
) -> Result<ObjectId, Error> {
    merge(&Merge { store, scrubbed }, "", one, other, objects)
}

struct Merge<'a> {
    store: &'a ObjectStore,
    scrubbed: &'a Scrubbed<'a>,
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
    if folder.matches('/').count() >= DEPTH {
        return Err(Error::BadPath { path: format!("folders deeper than {DEPTH}") });
    }
    let Merge { store, scrubbed } = merging;
    let mut entries = store.tree(&one)?.entries;
    entries.extend(store.tree(&other)?.entries);
    // By name; of one name a folder first, then the smaller id.
    entries.sort_by(|a, b| (&a.filename, !a.mode.is_tree(), a.oid).cmp(&(&b.filename, !b.mode.is_tree(), b.oid)));
    entries.dedup_by(|later, earlier| later.filename == earlier.filename && later.oid == earlier.oid);
    let mut merged: Vec<tree::Entry> = Vec::with_capacity(entries.len());
    for mut entry in entries {
        match merged.last_mut().filter(|last| last.filename == entry.filename) {
            Some(last) if last.mode.is_tree() && entry.mode.is_tree() => {
                last.oid = merge(merging, &format!("{folder}{}/", last.filename), last.oid, entry.oid, objects)?;
            }
            Some(last)
                if last.mode.is_blob()
                    && entry.mode.is_blob()
                    && scrubbed.paths.contains(&format!("{folder}{}", last.filename)) =>
            {
                let settled = (scrubbed.settle)(&store.blob(&last.oid)?, &store.blob(&entry.oid)?);
                last.oid = objects.add(objs::Kind::Blob, settled)?;
            }
            Some(_) => {
                entry.filename = format!("{}~{}", entry.filename, entry.oid).into();
                merged.push(entry);
            }
            None => merged.push(entry),
        }
    }
    merged.sort();
    merged.dedup_by(|later, earlier| later.filename == earlier.filename);
    let mut bytes = Vec::new();
    Tree { entries: merged }.write_to(&mut bytes).map_err(|_| Error::BadPath { path: one.to_string() })?;
    objects.add(objs::Kind::Tree, bytes)
}

/// How many files below `tree` have no file of their name in any of `bases`. Folders that one of them has too are not
/// read.
pub(super) fn count_missing(store: &ObjectStore, tree: ObjectId, bases: &[ObjectId]) -> Result<usize, Error> {
    let mut count = 0;
    missing(store, ("", tree), bases, |file| count += usize::from(!file.is_there))?;
    Ok(count)
}

/// A file that a tree has and others have not.
pub(super) struct Missing<'a> {
    folder: &'a str,
    entry: &'a tree::Entry,
    /// Whether one of the others has another file in its place.
    pub(super) is_there: bool,
}

impl Missing<'_> {
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.folder, self.entry.filename)
    }

    pub(super) fn id(&self) -> ObjectId {
        self.entry.oid
    }
}

/// Shows each file below `tree`, which is called `name`, that is in none of `bases`. Folders that one of them has too are
/// not read.
pub(super) fn missing(
    store: &ObjectStore,
    (name, tree): (&str, ObjectId),
    bases: &[ObjectId],
    mut show: impl FnMut(&Missing<'_>),
) -> Result<(), Error> {
    let mut pairs = vec![(name.to_owned(), tree, bases.to_vec())];
    while let Some((folder, tree, bases)) = pairs.pop() {
        if bases.contains(&tree) {
            continue;
        }
        let bases: Vec<Tree> = bases.iter().map(|base| store.tree(base)).collect::<Result<_, _>>()?;
        let mut old: HashMap<_, Vec<&tree::Entry>> = HashMap::new();
        for entry in bases.iter().flat_map(|base| &base.entries) {
            old.entry(&entry.filename).or_default().push(entry);
        }
        for entry in store.tree(&tree)?.entries {
            let before = old.get(&entry.filename).map_or(&[][..], Vec::as_slice);
            let file = Missing { folder: &folder, entry: &entry, is_there: !before.is_empty() };
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

/// The files below `tree`, which is called `name`, that are not in `base`, if nothing else differs: no file of `base`
/// was changed or removed. Equal folders are not read.
pub(super) fn additions(
    store: &ObjectStore,
    (name, tree): (&str, ObjectId),
    base: ObjectId,
) -> Result<Option<Vec<(String, ObjectId)>>, Error> {
    let mut added = Vec::new();
    let mut pairs = vec![(name.to_owned(), tree, Some(base))];
    while let Some((folder, tree, base)) = pairs.pop() {
        if base == Some(tree) {
            continue;
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
