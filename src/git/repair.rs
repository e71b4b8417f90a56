//! Recovering lost objects of the ledger, and carrying on without those that nobody has.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet, VecDeque},
    fs,
    time::Duration,
};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    error::Error,
    incoming::Incoming,
    ledger::Ledger,
    ledger_tree::{DISPLACED, TreeReader, join},
    object_store::ObjectStore,
    objects::{NewObjects, identify},
    references::{REFERENCE, parse_id},
    repository::Repository,
    scrub::RECORDS,
    tree_edit::{Insertion, TreeEdit},
};
use crate::model::{Damage, DamageKind};

/// Large repositories take long.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The folders in the ledger's root.
const FOLDERS: [&str; 5] = ["log", "decisions", "memory", "teams", RECORDS];

/// The time of a ledger commit; `None`: the commit is not a ledger's, or its root tree cannot be read.
fn ledger_time(store: &ObjectStore, commit: ObjectId) -> Option<i64> {
    let root = store.tree(&store.tree_of(&commit).ok()?).ok()?;
    let is_ours = |name: &str| FOLDERS.contains(&name) || name.starts_with(DISPLACED);
    let names = root.entries.iter().map(|entry| std::str::from_utf8(&entry.filename).unwrap_or_default());
    (!root.entries.is_empty() && names.into_iter().all(is_ours)).then(|| store.time_of(&commit).ok())?
}

const KINDS: [objs::Kind; 3] = [objs::Kind::Blob, objs::Kind::Tree, objs::Kind::Commit];

/// Reads an intact object; `None`: it is missing or corrupt. Fails if that cannot be determined.
fn read_intact(store: &ObjectStore, id: ObjectId) -> Result<Option<(objs::Kind, Vec<u8>)>, Error> {
    for kind in KINDS {
        match store.bytes(&id, kind) {
            Ok(bytes) if identify(store.hash(), kind, &bytes)? == id => return Ok(Some((kind, bytes))),
            Ok(_) | Err(Error::Object { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The original path of a displaced folder.
fn original_path(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((folder, name)) if name.starts_with(DISPLACED) => folder,
        None if path.starts_with(DISPLACED) => "",
        _ => path,
    }
}

/// The objects that an object references.
fn referenced(store: &ObjectStore, id: ObjectId, kind: objs::Kind) -> Vec<ObjectId> {
    match kind {
        objs::Kind::Commit => {
            store.commit(&id).map_or(Vec::new(), |(tree, parents, _)| parents.into_iter().chain([tree]).collect())
        }
        objs::Kind::Tree => {
            let tree = store.tree(&id).map(|tree| tree.entries).unwrap_or_default();
            tree.into_iter().filter(|entry| !entry.mode.is_commit()).map(|entry| entry.oid).collect()
        }
        _ => Vec::new(),
    }
}

impl Repository {
    /// The missing or corrupt objects of the ledger's history. Reads all of its objects.
    pub(crate) fn lost_objects(&self) -> Result<Vec<String>, Error> {
        let Some(tip) = self.references().read(REFERENCE)? else { return Ok(Vec::new()) };
        let store = self.objects();
        let (mut seen, mut lost) = (HashSet::from([tip]), Vec::new());
        let mut queue = vec![tip];
        while let Some(id) = queue.pop() {
            if id == store.hash().empty_tree() {
                continue;
            }
            match read_intact(&store, id)? {
                Some((kind, _)) => {
                    queue.extend(referenced(&store, id, kind).into_iter().filter(|next| seen.insert(*next)))
                }
                None => lost.push(id.to_string()),
            }
        }
        Ok(lost)
    }

    /// Copies our lost objects, and those they reference, from a remote's ledgers. Returns how many were copied.
    ///
    /// Fetches everything into a separate repository without our objects: a plain fetch would skip objects that our
    /// refs claim to have.
    pub(crate) fn fetch_lost(&self, remote: &str, lost: &[String]) -> Result<usize, Error> {
        let url = self.call(&["remote", "get-url", "--", remote]).succeed()?.text();
        let ledgers = ["log", "clones/", "state"].map(|name| match name {
            "state" => "+refs/heads/squad/state*:refs/found/state*".to_owned(),
            name => format!("+refs/squad/{name}*:refs/found/{name}*"),
        });
        let incoming = Incoming::fetch(self, &[], url.as_ref(), &ledgers)?;
        let theirs = incoming.repository().objects();
        let ours = self.objects();
        let mut objects = NewObjects::new(self.hash());
        let mut queue: VecDeque<ObjectId> = lost.iter().filter_map(|id| parse_id(id.as_bytes(), self.hash())).collect();
        let mut seen: HashSet<ObjectId> = queue.iter().copied().collect();
        while let Some(id) = queue.pop_front() {
            if read_intact(&ours, id)?.is_some() {
                continue;
            }
            if let Some((kind, bytes)) = read_intact(&theirs, id)? {
                objects.add(kind, bytes)?;
                queue.extend(referenced(&theirs, id, kind).into_iter().filter(|next| seen.insert(*next)));
            }
        }
        let copied = objects.as_slice().len();
        if copied > 0 {
            drop(self.packs().add(&objects)?);
            let ids: Vec<String> = objects.as_slice().iter().map(|object| object.id.to_string()).collect();
            self.remove_broken(&ids)?;
        }
        Ok(copied)
    }

    /// Removes corrupt loose objects.
    pub(crate) fn remove_broken(&self, ids: &[String]) -> Result<(), Error> {
        for id in ids {
            let (fan_out, name) = id.split_at_checked(2).unwrap_or((id, ""));
            let file = self.objects_directory().join(fan_out).join(name);
            if file.is_file() {
                fs::remove_file(&file).map_err(Error::io("remove", &file))?;
            }
        }
        Ok(())
    }

    /// The newest ledger commit that still exists, for when the ref's commit is lost. Nothing references it, so all
    /// commits are searched for those with the ledger's folders. Skips commits that a scrub has replaced.
    fn newest_ledger(&self, store: &ObjectStore) -> Result<Option<ObjectId>, Error> {
        let list = ["cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objecttype) %(objectname)"];
        let listed = self.call(&list).variable("GIT_NO_LAZY_FETCH", "1").timeout(TIMEOUT).succeed()?.text();
        let commits = listed.lines().filter_map(|line| parse_id(line.strip_prefix("commit ")?.as_bytes(), self.hash()));
        let ours: HashMap<ObjectId, (i64, Vec<ObjectId>)> = commits
            .filter_map(|commit| Some((commit, (ledger_time(store, commit)?, store.commit(&commit).ok()?.1))))
            .collect();
        let mut replaced: HashSet<ObjectId> = HashSet::new();
        let mut queue = self.replaced_commits()?;
        while let Some(commit) = queue.pop() {
            if replaced.insert(commit) {
                queue.extend(ours.get(&commit).map(|(_, parents)| parents).into_iter().flatten());
            }
        }
        let followed: HashSet<&ObjectId> = ours.values().flat_map(|(_, parents)| parents).collect();
        let last = ours.iter().filter(|(commit, _)| !followed.contains(commit) && !replaced.contains(*commit));
        Ok(last.max_by_key(|(commit, (time, _))| (*time, **commit)).map(|(commit, _)| *commit))
    }

    /// The files of the newest readable version of a folder: the most complete one that is left.
    fn older_version(&self, store: &ObjectStore, tip: ObjectId, path: &str) -> Vec<(String, ObjectId)> {
        let (mut seen, mut queue) = (HashSet::from([tip]), VecDeque::from([tip]));
        while let Some(commit) = queue.pop_front() {
            let Ok((root, parents, _)) = store.commit(&commit) else { continue };
            if let Ok(Some((mode, id))) = store.find(root, path)
                && mode.is_tree()
                && let Ok(files) = store.files_below(id, "")
            {
                return files.into_iter().map(|(name, id)| (join(path, &name), id)).collect();
            }
            queue.extend(parents.into_iter().filter(|parent| seen.insert(*parent)));
        }
        Vec::new()
    }
}

impl Ledger<'_> {
    /// Moves the contents of displaced folders that are readable again back to their original paths. Durable when it
    /// returns.
    pub(crate) fn restore_displaced(
        &self,
        displaced: &[Damage],
        committer: &Identity,
        at: Timestamp,
    ) -> Result<(), Error> {
        self.advance(|tip, objects| {
            let Some(tip) = tip else { return Ok(None) };
            let store = self.repository().limited_objects();
            let mut edit = TreeEdit::new(&store, Some(store.tree_of(&tip)?))?;
            for damage in displaced {
                let object = damage.object.as_deref().and_then(|id| parse_id(id.as_bytes(), store.hash()));
                let Some(object) = object else { continue };
                let reader = TreeReader::new(&store, self.repository().damage());
                let files = reader.files_below(original_path(&damage.path), object)?;
                let places = files.iter().map(|(path, blob)| edit.insert(path, *blob));
                let is_taken = places.collect::<Result<Vec<_>, _>>()?.contains(&Insertion::Conflict);
                // Otherwise the folder stays, and is still reported.
                if reader.is_whole() && !is_taken {
                    edit.remove(&damage.path, object)?;
                }
            }
            let tree = edit.finish(objects)?;
            objects.add(objs::Kind::Commit, commit::encode(tree, &[tip], committer, at, "repair")).map(Some)
        })
    }

    /// Drops damaged entries: makes a commit without parents, so that nothing references them any more, with the file
    /// `record`, which tells other clones. An unreadable folder is replaced by an older version of it. Durable when it
    /// returns.
    pub(crate) fn set_aside(
        &self,
        damaged: &[Damage],
        record: (String, Vec<u8>),
        committer: &Identity,
        at: Timestamp,
    ) -> Result<(), Error> {
        let record = RefCell::new(record);
        self.advance(|tip, objects| {
            let Some(tip) = tip else { return Ok(None) };
            let store = self.repository().limited_objects();
            let tip = match store.commit(&tip) {
                Err(Error::Object { .. }) => self.repository().newest_ledger(&store)?.unwrap_or(tip),
                commit => commit.map(|_| tip)?,
            };
            let root = store.tree_of(&tip).unwrap_or(store.hash().empty_tree());
            let is_readable = store.tree(&root).is_ok();
            let mut edit = TreeEdit::new(&store, is_readable.then_some(root))?;
            let mut finder = store.finder(root);
            // Only a folder has older versions; those of an entry would be looked for in the whole history.
            let mut is_file = |path: &str| matches!(finder.find(path), Ok(Some((mode, _))) if mode.is_blob());
            for damage in damaged {
                let object = damage.object.as_deref().and_then(|id| parse_id(id.as_bytes(), store.hash()));
                if let Some(object) = object.filter(|_| !damage.path.is_empty()) {
                    edit.remove(&damage.path, object)?;
                }
            }
            let lost = damaged.iter().filter(|damage| damage.kind == DamageKind::Unreadable);
            for damage in lost.filter(|damage| !(is_readable && (damage.path.is_empty() || is_file(&damage.path)))) {
                for (path, blob) in self.repository().older_version(&store, tip, original_path(&damage.path)) {
                    if read_intact(&store, blob)?.is_some() {
                        edit.insert(&path, blob)?;
                    }
                }
            }
            let record = record.borrow();
            let blob = objects.add(objs::Kind::Blob, record.1.clone())?;
            if edit.insert(&record.0, blob)? == Insertion::Conflict {
                return Err(Error::Taken { path: record.0.clone() });
            }
            let tree = edit.finish(objects)?;
            objects.add(objs::Kind::Commit, commit::encode(tree, &[], committer, at, "repair")).map(Some)
        })
    }
}
