use std::{iter::once, path::PathBuf, time::Duration};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    error::Error,
    ledger_tree,
    lock::{Attempt, LedgerLock, LockFile, PendingUpdate},
    object_store::ObjectStore,
    objects::NewObjects,
    pack::NewPack,
    path::check_path,
    queue::{PendingAppend, Queue},
    references::{Durability, REFERENCE},
    repository::Repository,
    snapshot::Snapshot,
    tree_edit::{Insertion, TreeEdit},
};
use crate::env::lock::Holder;

/// The prefix of all our refs.
pub(super) const PREFIX: &str = "refs/squad/";

/// The result of adding the files of several appends to the tree.
enum AddResult {
    Tree(ObjectId),
    /// Every file was already there.
    Unchanged,
    /// This append's path is taken by a different file.
    Conflict {
        part: usize,
        path: String,
    },
}

/// The append-only ledger: files in the tree of `refs/squad/log` that never change and are never checked out.
pub(crate) struct Ledger<'a> {
    repository: &'a Repository,
}

impl Repository {
    pub(crate) fn ledger(&self) -> Ledger<'_> {
        Ledger::new(self)
    }
}

impl<'a> Ledger<'a> {
    pub(super) fn new(repository: &'a Repository) -> Self {
        Self { repository }
    }

    /// Adds files in one commit. When it returns `Ok`, files and ref are flushed to disk.
    ///
    /// Existing files with the same bytes are left alone, so an append may be repeated; if one has different bytes,
    /// nothing is added. Waits for other writers, and shares one commit with other waiting appends (see `queue`); works
    /// while git packs, collects garbage or is in the middle of a merge.
    pub(crate) fn append(
        &self,
        files: &[(String, Vec<u8>)],
        message: &str,
        committer: &Identity,
        at: Timestamp,
    ) -> Result<(), Error> {
        files.iter().try_for_each(|(path, _)| check_path(path))?;
        let queue = Queue::new(self.file("queue"), self.repository.hash(), self.repository.sharing());
        let mut lock = match self.lock_file()?.try_lock()? {
            Attempt::Locked(lock) => self.recover_lock(lock)?,
            Attempt::Busy(lock_file) => match queue.enqueue(files) {
                None => self.recover_lock(lock_file.lock(&|holder| self.tell(holder))?)?,
                Some(entry) => match entry.wait(lock_file, &|holder| self.tell(holder))? {
                    None => return Ok(()),
                    Some(lock) => self.recover_lock(lock)?,
                },
            },
        };
        self.append_with(queue.pending(), &mut lock, files, &|tree, tip, others| {
            let several = format!("entries of {} writers\n", others + 1);
            let message = if others == 0 { message } else { &several };
            commit::encode(tree, tip.as_slice(), committer, at, message)
        })
    }

    /// Makes our append and the queued ones. A queued append that conflicts is left to its own writer.
    fn append_with(
        &self,
        mut others: Vec<PendingAppend>,
        lock: &mut LedgerLock,
        files: &[(String, Vec<u8>)],
        commit: &dyn Fn(ObjectId, Option<ObjectId>, usize) -> Vec<u8>,
    ) -> Result<(), Error> {
        self.advance_under(lock, |tip, objects| {
            loop {
                let parts: Vec<_> = once(files).chain(others.iter().map(|other| &*other.files)).collect();
                match self.add(tip, &parts, objects)? {
                    AddResult::Unchanged => return Ok(None),
                    AddResult::Tree(tree) => {
                        let bytes = commit(tree, tip, others.len());
                        return objects.add(objs::Kind::Commit, bytes).map(Some);
                    }
                    AddResult::Conflict { part: 0, path } => return Err(Error::Taken { path }),
                    AddResult::Conflict { part, .. } => drop(others.remove(part - 1)),
                }
                *objects = NewObjects::new(self.repository.hash());
            }
        })?;
        // Acknowledge before the lock is released and the writers check.
        others.into_iter().for_each(PendingAppend::acknowledge);
        Ok(())
    }

    pub(super) fn repository(&self) -> &'a Repository {
        self.repository
    }

    /// Waits for the lock that keeps other squad writers out until it is dropped.
    pub(super) fn lock(&self) -> Result<LedgerLock, Error> {
        self.recover_lock(self.lock_file()?.lock(&|holder| self.tell(holder))?)
    }

    fn tell(&self, holder: &Holder) {
        self.repository.damage().say(&format!("waiting for the ledger's lock: {holder}"));
    }

    fn lock_file(&self) -> Result<LockFile, Error> {
        LockFile::open(&self.file("ledger.lock"), self.repository.sharing())
    }

    /// Moves the ref to the commit that `next` builds on the tip, after writing its new objects. If `next` returns
    /// `None`, the tip stays and is flushed.
    pub(super) fn advance(
        &self,
        next: impl Fn(Option<ObjectId>, &mut NewObjects) -> Result<Option<ObjectId>, Error>,
    ) -> Result<(), Error> {
        self.advance_under(&mut self.lock()?, next)
    }

    fn advance_under(
        &self,
        lock: &mut LedgerLock,
        mut next: impl FnMut(Option<ObjectId>, &mut NewObjects) -> Result<Option<ObjectId>, Error>,
    ) -> Result<(), Error> {
        let references = self.repository.references();
        // The ref can move under our lock: `git fetch` only takes its own.
        for _ in 0..32 {
            let tip = references.read(REFERENCE)?;
            let mut objects = NewObjects::new(self.repository.hash());
            let Some(commit) = next(tip, &mut objects)?.filter(|next| Some(*next) != tip) else {
                references.flush(REFERENCE)?;
                self.tidy(lock);
                return Ok(());
            };
            let draft = self.file("ledger.ref");
            // Files created before we wait for the objects share their file system journal commit, and journal commits
            // are the main cost of an append.
            let packs = self.repository.packs();
            let pack = (!objects.is_empty()).then(|| packs.stage(&objects)).transpose()?;
            references.prepare(commit, &draft)?;
            let kept = pack.map(NewPack::publish).transpose()?;
            lock.declare(REFERENCE, commit)?;
            references.announce_append((tip, commit));
            let moved = references.advance(REFERENCE, (tip, commit), &draft, Durability::Now)?;
            lock.clear()?;
            if moved {
                drop(kept);
                self.repository.recent().replace(objects.as_slice());
                self.tidy(lock);
                return Ok(());
            }
            if let Some(kept) = kept {
                kept.discard();
            }
        }
        Err(Error::Locked { path: self.repository.common_dir().join(REFERENCE) })
    }

    /// Durably moves another squad ref from its expected value. False: it has a different value.
    pub(super) fn move_ref(&self, reference: &str, old: Option<ObjectId>, new: ObjectId) -> Result<bool, Error> {
        self.move_ref_as(reference, (old, new), Durability::Now)
    }

    /// Like [`Self::move_ref`]; it may become durable with the next append.
    pub(super) fn move_ref_as(
        &self,
        reference: &str,
        (old, new): (Option<ObjectId>, ObjectId),
        durability: Durability,
    ) -> Result<bool, Error> {
        let mut lock = self.lock()?;
        let references = self.repository.references();
        let draft = self.file("ledger.ref");
        references.prepare(new, &draft)?;
        lock.declare(reference, new)?;
        references.announce(&[(reference.to_owned(), Some(new.to_string()))]);
        let moved = references.advance(reference, (old, new), &draft, durability)?;
        lock.clear()?;
        // The next append tidies up, too.
        if durability == Durability::Now {
            self.tidy(&lock);
        }
        Ok(moved)
    }

    /// `None`: another writer holds the lock.
    pub(super) fn try_lock(&self) -> Result<Option<LedgerLock>, Error> {
        match self.lock_file()?.try_lock()? {
            Attempt::Locked(lock) => self.recover_lock(lock).map(Some),
            Attempt::Busy(_) => Ok(None),
        }
    }

    /// Tidies up, unless somebody is writing: that writer does it then.
    pub(super) fn try_tidy(&self) {
        if let Ok(Some(lock)) = self.try_lock() {
            self.tidy(&lock);
        }
    }

    /// The ledger's newest commit; `None`: nothing was ever appended.
    pub(crate) fn tip(&self) -> Result<Option<String>, Error> {
        Ok(self.repository.references().read(REFERENCE)?.map(|tip| tip.to_string()))
    }

    /// The ledger as it is now, unaffected by later appends. `None`: nothing was ever appended.
    pub(crate) fn snapshot(&self) -> Result<Option<Snapshot>, Error> {
        match self.repository.references().read(REFERENCE)? {
            Some(tip) => self.snapshot_of(tip).map(Some),
            None => Ok(None),
        }
    }

    /// The ledger as it was at this tip.
    pub(crate) fn snapshot_at(&self, tip: &str) -> Result<Snapshot, Error> {
        self.snapshot_of(self.repository.parse_commit(tip)?)
    }

    fn snapshot_of(&self, tip: ObjectId) -> Result<Snapshot, Error> {
        Snapshot::open(self.repository.limited_objects(), tip, self.repository.damage().clone())
    }

    /// The number of commits, and the paths of files that any of them changed or removed: none, if only squad wrote to
    /// the ledger. Compares every commit with each of its parents.
    pub(crate) fn history(&self) -> Result<(usize, Vec<String>), Error> {
        let timeout = Duration::from_secs(3600);
        let count = self.repository.call(&["rev-list", "--count", REFERENCE]).timeout(timeout).succeed()?.text();
        let arguments = ["log", "-m", "-z", "--format=", "--name-only", "--no-renames", "--diff-filter=a", REFERENCE];
        let changed = self.repository.call(&arguments).arguments(&["--"]).timeout(timeout).succeed()?;
        let paths = changed.stdout.split(|byte| *byte == 0).map(|path| String::from_utf8_lossy(path).trim().to_owned());
        Ok((count.parse().unwrap_or(0), paths.filter(|path| !path.is_empty()).collect()))
    }

    /// Adds the files of several appends to the tip's tree, and the new blobs and trees to `objects`.
    fn add(
        &self,
        tip: Option<ObjectId>,
        parts: &[&[(String, Vec<u8>)]],
        objects: &mut NewObjects,
    ) -> Result<AddResult, Error> {
        let store: ObjectStore = self.repository.objects();
        let root = tip.map(|tip| store.tree_of(&tip)).transpose()?;
        let mut edit = TreeEdit::tolerant(&store, root, ledger_tree::replacement_for)?;
        let mut is_new = false;
        for (part, (path, bytes)) in
            parts.iter().enumerate().flat_map(|(part, files)| files.iter().map(move |file| (part, file)))
        {
            let blob = objects.add(objs::Kind::Blob, bytes.clone())?;
            match edit.insert(path, blob)? {
                Insertion::Added => is_new = true,
                Insertion::Unchanged => {}
                Insertion::Conflict => return Ok(AddResult::Conflict { part, path: path.clone() }),
            }
        }
        if is_new { edit.finish(objects).map(AddResult::Tree) } else { Ok(AddResult::Unchanged) }
    }

    /// On failure the next writer tidies up; nothing that was acknowledged depends on it.
    fn tidy(&self, lock: &LedgerLock) {
        let _ = self.repository.tidy_packs(lock);
    }

    /// Releases the ref locks of a holder that died.
    fn recover_lock(&self, mut lock: LedgerLock) -> Result<LedgerLock, Error> {
        let pending = lock.unfinished_update()?;
        let (references, draft) = (self.repository.references(), self.file("ledger.ref"));
        let declared = pending.as_ref().filter(|pending| pending.reference == REFERENCE).map(|pending| &*pending.new);
        references.remove_stale_lock(REFERENCE, declared, &draft)?;
        let other = pending.as_ref().filter(|pending| pending.reference.starts_with(PREFIX) && declared.is_none());
        if let Some(PendingUpdate { reference, new }) = other {
            references.remove_stale_lock(reference, Some(new), &draft)?;
        }
        if pending.is_some() {
            lock.clear()?;
        }
        Ok(lock)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.repository.own_folder().join(name)
    }
}
