use std::{iter::once, path::PathBuf, time::Duration};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    error::Error,
    ledger_tree,
    lock::{Attempt, Door, Intent, LedgerLock},
    objects::NewObjects,
    pack::NewPack,
    queue::{Queue, Waiting},
    repository::Repository,
    snapshot::Snapshot,
    tree::{ObjectStore, Place, TreeEdit, check_path},
};

/// The one ref that holds everything.
pub(super) const REFERENCE: &str = "refs/squad/log";

/// What all our refs begin with.
const OWN: &str = "refs/squad/";

/// What became of the files of several appends.
enum Added {
    Tree(ObjectId),
    /// Every file is there.
    Nothing,
    /// Another file has the place of one of this append's.
    Refused {
        part: usize,
        path: String,
    },
}

/// The append-only ledger: files that never change, in the tree of `refs/squad/log`, never checked out.
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

    /// Adds files in one commit. When it returns Ok, they are on disk and flushed, and so is the ref.
    ///
    /// A file that is there already with the same bytes is left alone, so an append may be repeated; with other
    /// bytes, nothing is added. Waits for other writers, and with others who wait becomes one commit (see `queue`);
    /// works while git packs, collects garbage or is in the middle of a merge.
    pub(crate) fn append(
        &self,
        files: &[(String, Vec<u8>)],
        message: &str,
        committer: &Identity,
        at: Timestamp,
    ) -> Result<(), Error> {
        files.iter().try_for_each(|(path, _)| check_path(path))?;
        let queue = Queue::new(self.file("queue"), self.repository.hash(), self.repository.sharing());
        let mut lock = match self.door()?.try_lock()? {
            Attempt::Held(lock) => self.recovered(lock)?,
            Attempt::Refused(door) => match queue.join(files) {
                None => self.recovered(door.lock()?)?,
                Some(ticket) => match ticket.wait(door)? {
                    None => return Ok(()),
                    Some(lock) => self.recovered(lock)?,
                },
            },
        };
        self.append_with(queue.waiting(), &mut lock, files, &|tree, tip, others| {
            let several = format!("entries of {} writers\n", others + 1);
            let message = if others == 0 { message } else { &several };
            commit::encode(tree, tip.as_slice(), committer, at, message)
        })
    }

    /// Appends for us and for others who wait. Those whose files cannot be added are left to themselves.
    fn append_with(
        &self,
        mut others: Vec<Waiting>,
        lock: &mut LedgerLock,
        files: &[(String, Vec<u8>)],
        commit: &dyn Fn(ObjectId, Option<ObjectId>, usize) -> Vec<u8>,
    ) -> Result<(), Error> {
        self.advance_under(lock, |tip, objects| {
            loop {
                let parts: Vec<_> = once(files).chain(others.iter().map(|other| &*other.files)).collect();
                match self.add(tip, &parts, objects)? {
                    Added::Nothing => return Ok(None),
                    Added::Tree(tree) => {
                        let bytes = commit(tree, tip, others.len());
                        return objects.add(objs::Kind::Commit, bytes).map(Some);
                    }
                    Added::Refused { part: 0, path } => return Err(Error::Taken { path }),
                    Added::Refused { part, .. } => drop(others.remove(part - 1)),
                }
                *objects = NewObjects::new(self.repository.hash());
            }
        })?;
        // Before the lock goes, and they look.
        others.into_iter().for_each(Waiting::acknowledge);
        Ok(())
    }

    pub(super) fn repository(&self) -> &'a Repository {
        self.repository
    }

    /// Waits until nobody of ours writes; until the lock is dropped nobody does.
    pub(super) fn lock(&self) -> Result<LedgerLock, Error> {
        self.recovered(self.door()?.lock()?)
    }

    fn door(&self) -> Result<Door, Error> {
        Door::open(&self.file("ledger.lock"), self.repository.sharing())
    }

    /// Moves the ref to the commit that `next` makes of the tip; its new objects are written before. None: the tip is
    /// where it should be, and is flushed.
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
        // The ref can move under our lock: `git fetch` knows only its own.
        for _ in 0..32 {
            let tip = references.read(REFERENCE)?;
            let mut objects = NewObjects::new(self.repository.hash());
            let Some(commit) = next(tip, &mut objects)?.filter(|next| Some(*next) != tip) else {
                references.flush(REFERENCE)?;
                self.tidy(lock);
                return Ok(());
            };
            let draft = self.file("ledger.ref");
            // What is created before the objects are awaited shares the file system's journal commit with them, and
            // those commits are what an append costs.
            let packs = self.repository.packs();
            let pack = (!objects.is_empty()).then(|| packs.stage(&objects)).transpose()?;
            references.prepare(commit, &draft)?;
            let kept = pack.map(NewPack::publish).transpose()?;
            lock.declare(REFERENCE, commit)?;
            let moved = references.advance(REFERENCE, tip, commit, &draft)?;
            lock.clear()?;
            if moved {
                drop(kept);
                self.repository.recent().keep(objects.as_slice());
                self.tidy(lock);
                return Ok(());
            }
            if let Some(kept) = kept {
                kept.discard();
            }
        }
        Err(Error::Locked { path: self.repository.common_dir().join(REFERENCE) })
    }

    /// Moves another ref of squad's from the value it is expected to have, durably. False: it has another one.
    pub(super) fn point(&self, reference: &str, old: Option<ObjectId>, new: ObjectId) -> Result<bool, Error> {
        let mut lock = self.lock()?;
        let references = self.repository.references();
        let draft = self.file("ledger.ref");
        references.prepare(new, &draft)?;
        lock.declare(reference, new)?;
        let moved = references.advance(reference, old, new, &draft)?;
        lock.clear()?;
        self.tidy(&lock);
        Ok(moved)
    }

    /// None: somebody is writing.
    pub(super) fn try_lock(&self) -> Result<Option<LedgerLock>, Error> {
        match self.door()?.try_lock()? {
            Attempt::Held(lock) => self.recovered(lock).map(Some),
            Attempt::Refused(_) => Ok(None),
        }
    }

    /// Tidies up unless somebody is writing, who does it then.
    pub(super) fn try_tidy(&self) {
        if let Ok(Some(lock)) = self.try_lock() {
            self.tidy(&lock);
        }
    }

    /// Identifies what the ledger holds now; None: nothing was ever appended.
    pub(crate) fn tip(&self) -> Result<Option<String>, Error> {
        Ok(self.repository.references().read(REFERENCE)?.map(|tip| tip.to_string()))
    }

    /// The ledger as it is now; it stays as it is while others append. None: nothing was ever appended.
    pub(crate) fn snapshot(&self) -> Result<Option<Snapshot>, Error> {
        match self.repository.references().read(REFERENCE)? {
            Some(tip) => self.snapshot_of(tip).map(Some),
            None => Ok(None),
        }
    }

    /// The ledger as it was when this was its tip.
    pub(crate) fn snapshot_at(&self, tip: &str) -> Result<Snapshot, Error> {
        self.snapshot_of(self.repository.parse_commit(tip)?)
    }

    fn snapshot_of(&self, tip: ObjectId) -> Result<Snapshot, Error> {
        Snapshot::open(self.repository.ledger_objects(), tip, self.repository.damage().clone())
    }

    /// How many commits the ledger has, and the paths of files that any of them changed or removed: there are none
    /// where nothing but squad wrote it. Compares every commit with each of its parents.
    pub(crate) fn history(&self) -> Result<(usize, Vec<String>), Error> {
        let patience = Duration::from_secs(3600);
        let count = self.repository.call(&["rev-list", "--count", REFERENCE]).patience(patience).succeed()?.text();
        let arguments = ["log", "-m", "-z", "--format=", "--name-only", "--no-renames", "--diff-filter=a", REFERENCE];
        let changed = self.repository.call(&arguments).arguments(&["--"]).patience(patience).succeed()?;
        let paths = changed.stdout.split(|byte| *byte == 0).map(|path| String::from_utf8_lossy(path).trim().to_owned());
        Ok((count.parse().unwrap_or(0), paths.filter(|path| !path.is_empty()).collect()))
    }

    /// The tree with the new files of several appends, its blobs and trees in `objects`.
    fn add(
        &self,
        tip: Option<ObjectId>,
        parts: &[&[(String, Vec<u8>)]],
        objects: &mut NewObjects,
    ) -> Result<Added, Error> {
        let store: ObjectStore = self.repository.objects();
        let root = tip.map(|tip| store.tree_of(&tip)).transpose()?;
        let mut edit = TreeEdit::tolerant(&store, root, ledger_tree::in_place_of)?;
        let mut is_new = false;
        for (part, (path, bytes)) in
            parts.iter().enumerate().flat_map(|(part, files)| files.iter().map(move |file| (part, file)))
        {
            let blob = objects.add(objs::Kind::Blob, bytes.clone())?;
            match edit.insert(path, blob)? {
                Place::Empty => is_new = true,
                Place::Same => {}
                Place::Taken => return Ok(Added::Refused { part, path: path.clone() }),
            }
        }
        if is_new { edit.finish(objects).map(Added::Tree) } else { Ok(Added::Nothing) }
    }

    /// What it fails at is done by the next writer, and nothing that was acknowledged waits for it.
    fn tidy(&self, lock: &LedgerLock) {
        let _ = self.repository.tidy_packs(lock);
    }

    /// If the last holder died before the end, what it had locked is free again.
    fn recovered(&self, mut lock: LedgerLock) -> Result<LedgerLock, Error> {
        let intent = lock.left_behind()?;
        let (references, draft) = (self.repository.references(), self.file("ledger.ref"));
        let declared = intent.as_ref().filter(|intent| intent.reference == REFERENCE).map(|intent| &*intent.new);
        references.clear_lock_of_dead(REFERENCE, declared, &draft)?;
        let other = intent.as_ref().filter(|intent| intent.reference.starts_with(OWN) && declared.is_none());
        if let Some(Intent { reference, new }) = other {
            references.clear_lock_of_dead(reference, Some(new), &draft)?;
        }
        if intent.is_some() {
            lock.clear()?;
        }
        Ok(lock)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.repository.common_dir().join("squad").join(name)
    }
}
