//! Bringing back objects of the ledger that this clone has lost, and going on without those that nobody has.

use std::{
    cell::RefCell,
    collections::{HashSet, VecDeque},
    fs,
    path::Path,
};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    error::Error,
    ledger::{Ledger, REFERENCE},
    ledger_tree::join,
    objects::{NewObjects, identify},
    recent::Recent,
    references::parse_id,
    repository::Repository,
    tree::{ObjectStore, Place, TreeEdit},
};
use crate::model::{Damage, DamageKind};

const KINDS: [objs::Kind; 3] = [objs::Kind::Blob, objs::Kind::Tree, objs::Kind::Commit];

/// An object as it was written; None: it is not there, or its bytes are others.
fn sound(store: &ObjectStore, id: ObjectId) -> Option<(objs::Kind, Vec<u8>)> {
    KINDS.into_iter().find_map(|kind| {
        let bytes = store.bytes(&id, kind).ok()?;
        (identify(store.hash(), kind, &bytes).ok()? == id).then_some((kind, bytes))
    })
}

/// What an object leads to.
fn links(store: &ObjectStore, id: ObjectId, kind: objs::Kind) -> Vec<ObjectId> {
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
    /// The objects that the ledger's history leads to and that are not here as they were written. Reads all of them.
    pub(crate) fn lost_objects(&self) -> Result<Vec<String>, Error> {
        let Some(tip) = self.references().read(REFERENCE)? else { return Ok(Vec::new()) };
        let store = self.objects();
        let (mut seen, mut lost) = (HashSet::from([tip]), Vec::new());
        let mut queue = vec![tip];
        while let Some(id) = queue.pop() {
            if id == store.hash().empty_tree() {
                continue;
            }
            match sound(&store, id) {
                Some((kind, _)) => queue.extend(links(&store, id, kind).into_iter().filter(|next| seen.insert(*next))),
                None => lost.push(id.to_string()),
            }
        }
        Ok(lost)
    }

    /// Copies from a remote's ledgers the objects of ours that were lost, with what they lead to. Returns how many came.
    ///
    /// The remote is asked for all it has, into a repository of its own that has none of our objects: a plain fetch would
    /// leave out what our refs pretend to have.
    pub(crate) fn fetch_lost(&self, remote: &str, lost: &[String]) -> Result<usize, Error> {
        let squad = self.common_dir().join("squad");
        let folder = tempfile::Builder::new().prefix("repair-").tempdir_in(&squad);
        let folder = folder.map_err(Error::io("write to", &squad))?;
        let place = folder.path().display().to_string();
        let format = format!("--object-format={}", self.hash());
        self.call(&["init", "--quiet", "--bare", &format, &place]).succeed()?;
        let url = self.call(&["remote", "get-url", "--", remote]).succeed()?.text();
        let ledgers = ["log", "clones/", "state"].map(|name| match name {
            "state" => "+refs/heads/squad/state*:refs/found/state*".to_owned(),
            name => format!("+refs/squad/{name}*:refs/found/{name}*"),
        });
        let git_dir = format!("--git-dir={place}");
        let call = self.call(&[&git_dir, "fetch", "--quiet", "--no-tags", "--", &url]).arguments(&ledgers);
        call.patience(std::time::Duration::from_secs(600)).succeed()?;
        let theirs = ObjectStore::new(&Path::new(&place).join("objects"), self.hash(), Recent::default());
        let ours = self.objects();
        let mut objects = NewObjects::new(self.hash());
        let mut queue: VecDeque<ObjectId> = lost.iter().filter_map(|id| parse_id(id.as_bytes(), self.hash())).collect();
        let mut seen: HashSet<ObjectId> = queue.iter().copied().collect();
        while let Some(id) = queue.pop_front() {
            if sound(&ours, id).is_some() {
                continue;
            }
            if let Some((kind, bytes)) = sound(&theirs, id) {
                objects.add(kind, bytes)?;
                queue.extend(links(&theirs, id, kind).into_iter().filter(|next| seen.insert(*next)));
            }
        }
        let brought = objects.as_slice().len();
        if brought > 0 {
            drop(self.packs().add(&objects)?);
            let ids: Vec<String> = objects.as_slice().iter().map(|object| object.id.to_string()).collect();
            self.remove_broken(&ids)?;
        }
        Ok(brought)
    }

    /// Removes what is left of objects whose files do not hold them.
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

    /// The first version, from the newest commit on, of a folder that can be read: not all of it, and the most there is.
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
    /// Goes on without what is damaged: a commit without parents, so that nothing leads there any more, and the file of
    /// `record` in it, by which other clones know. Of a folder that cannot be read, what an older version of it holds
    /// stays. Durable when it returns.
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
            let store = self.repository().ledger_objects();
            let root = store.tree_of(&tip)?;
            let is_readable = store.tree(&root).is_ok();
            let mut edit = TreeEdit::new(&store, is_readable.then_some(root))?;
            for damage in damaged {
                let object = damage.object.as_deref().and_then(|id| parse_id(id.as_bytes(), store.hash()));
                if let Some(object) = object.filter(|_| !damage.path.is_empty()) {
                    edit.remove(&damage.path, object)?;
                }
            }
            for damage in damaged.iter().filter(|damage| damage.kind == DamageKind::Unreadable) {
                for (path, blob) in self.repository().older_version(&store, tip, &damage.path) {
                    if sound(&store, blob).is_some() {
                        edit.insert(&path, blob)?;
                    }
                }
            }
            let record = record.borrow();
            let blob = objects.add(objs::Kind::Blob, record.1.clone())?;
            if edit.insert(&record.0, blob)? == Place::Taken {
                return Err(Error::Taken { path: record.0.clone() });
            }
            let tree = edit.finish(objects)?;
            objects.add(objs::Kind::Commit, commit::encode(tree, &[], committer, at, "repair")).map(Some)
        })
    }
}
