//! Large folds, done by git: its deltas make a ledger's packs many times smaller.
//!
//! This takes long, so it runs in the background, and the next tidy-up after it ends adopts the new pack. While git
//! runs, it holds the lock on the file from which it reads the object ids, even if the squad that started it has died.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    path::PathBuf,
    time::Duration,
};

use gix::odb::pack::index;

use super::{Content, PackFolder, fold::Foldable};
use crate::git::{disk, error::Error, lock::LedgerLock, program::Call, repository::Repository};
use crate::model::Sort;

/// Large repositories take long.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// The total size of new packs that makes a large fold worthwhile.
const MIN_FOLD: u64 = 2 << 20;

/// Smaller packs wait for the next one.
const MIN_PACK: u64 = MIN_FOLD / 8;

/// How many bytes of new packs a run may leave.
const MIN_IDLE_FOLD: u64 = 64 << 10;

/// A pack made by git is folded again if it has at most this many times the new objects.
const FACTOR: u64 = 3;

/// When a large fold is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::git) enum Due {
    /// If there is enough new data.
    Regular,
    /// After a run: with almost any new data.
    AfterRun,
    /// Whenever there is anything to fold.
    Now,
}

impl Repository {
    /// Releases the packs of dead writers, and folds if there are too many packs.
    pub(in crate::git) fn tidy_packs(&self, lock: &LedgerLock) -> Result<(), Error> {
        let busy = self.adopt(lock, false)?;
        let packs = self.packs().tidy(lock, &busy)?;
        if busy.is_empty() && new_bytes(&packs) >= MIN_FOLD {
            self.prepare_fold(lock, Due::Regular)?.map_or(Ok(()), Call::detach)?;
        }
        Ok(())
    }

    /// Starts a large fold of the new packs, unless somebody is writing.
    pub(in crate::git) fn fold_in_background(&self) -> Result<(), Error> {
        let Some(lock) = self.ledger().try_lock()? else { return Ok(()) };
        let busy = self.adopt(&lock, false)?;
        self.packs().tidy(&lock, &busy)?;
        if busy.is_empty() {
            self.prepare_fold(&lock, Due::AfterRun)?.map_or(Ok(()), Call::detach)?;
        }
        Ok(())
    }

    /// Folds everything now. Others can write while git works.
    pub(in crate::git) fn fold_now(&self) -> Result<(), Error> {
        let begin = |lock: &LedgerLock| {
            self.end_fold(lock)?;
            self.packs().tidy(lock, &[])?;
            self.prepare_fold(lock, Due::Now)
        };
        let call = begin(&self.ledger().lock()?)?;
        call.map_or(Ok(()), |call| call.timeout(TIMEOUT).succeed().map(drop))?;
        self.end_fold(&self.ledger().lock()?)
    }

    /// Waits for a running fold, and adopts its pack.
    pub(in crate::git) fn end_fold(&self, lock: &LedgerLock) -> Result<(), Error> {
        self.adopt(lock, true).map(drop)
    }

    fn fold_file(&self, name: &str) -> PathBuf {
        self.own_folder().join("fold").join(name)
    }

    /// Adopts the pack of a finished fold; with `waits`, waits for the end. Otherwise returns the packs that a running
    /// fold is reading.
    fn adopt(&self, _lock: &LedgerLock, waits: bool) -> Result<Vec<String>, Error> {
        let (folder, ids) = (self.fold_file(""), self.fold_file(IDS));
        let ids = match File::open(&ids) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            answer => answer.map_err(Error::io("read", &ids))?,
        };
        // A child that is just being forked elsewhere in this process holds the file, and so its lock, for a moment.
        let is_over = if waits { ids.lock().is_ok() } else { ids.try_lock().is_ok() };
        if !is_over {
            let names = fs::read_to_string(self.fold_file(PACKS)).unwrap_or_default();
            return Ok(names.lines().map(str::to_owned).collect());
        }
        for entry in fs::read_dir(&folder).map_err(Error::io("read", &folder))?.flatten() {
            // git writes the index last.
            if entry.path().extension().is_some_and(|kind| kind == "idx") {
                self.packs().adopt_pack(&entry.path())?;
            }
        }
        drop(ids);
        fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))?;
        Ok(Vec::new())
    }

    /// Prepares the git call that folds the packs; `None`: it is not worthwhile.
    fn prepare_fold(&self, _lock: &LedgerLock, due: Due) -> Result<Option<Call>, Error> {
        let packs = self.packs();
        let chosen = choose(packs.needed()?, due);
        let (new, count) = (new_bytes(&chosen), chosen.len());
        let is_worth_it = match due {
            Due::Regular => new >= MIN_FOLD,
            Due::AfterRun => new >= MIN_IDLE_FOLD,
            Due::Now => new > 0 || count > 1,
        };
        if !is_worth_it {
            return Ok(None);
        }
        let mut ids = BTreeSet::new();
        for pack in &chosen {
            // git has removed it meanwhile.
            let Ok(index) = index::File::at(packs.file(&pack.name, "idx"), self.hash()) else { return Ok(None) };
            ids.extend(index.iter().map(|entry| entry.oid));
        }
        let lines = |lines: &mut dyn Iterator<Item = String>| lines.map(|line| line + "\n").collect::<String>();
        let names = lines(&mut chosen.into_iter().map(|pack| pack.name));
        let ids = lines(&mut ids.into_iter().map(|id| id.to_string()));
        let (folder, path) = (self.fold_file(""), self.fold_file(IDS));
        // A result that was never adopted is worthless.
        let _ = fs::remove_dir_all(&folder);
        let written = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(self.fold_file(PACKS), names))
            .and_then(|()| fs::write(&path, ids))
            .and_then(|()| File::open(&path))
            .and_then(|file| file.lock().map(|()| file));
        let file = written.map_err(Error::io("write to", &folder))?;
        let settings = ["-c", "pack.packSizeLimit=0", "-c", "pack.writeReverseIndex=false"];
        let call = self.call(&settings).arguments(&["pack-objects", "--quiet", "--delta-base-offset"]);
        let call = call.arguments(&[self.fold_file("pack")]).variable("GIT_NO_LAZY_FETCH", "1");
        Ok(Some(call.holding(Some(file))))
    }
}

const IDS: &str = "ids";
const PACKS: &str = "packs";

impl PackFolder {
    /// Moves a pack that git wrote elsewhere into our folder.
    fn adopt_pack(&self, index: &std::path::Path) -> Result<(), Error> {
        let name = self.name(Content::Deltas);
        for (from, kind) in [(index.with_extension("pack"), "pack"), (index.to_owned(), "idx")] {
            let to = self.file(&name, kind);
            let moved = self.sharing.open_object(&from).and_then(|()| disk::rename(&from, &to));
            moved.map_err(Error::io("write", &to))?;
        }
        disk::flush_folder(&self.folder)
    }
}

fn new_bytes(packs: &[Foldable]) -> u64 {
    packs.iter().filter(|pack| pack.content != Content::Deltas).map(|pack| pack.bytes).sum()
}

/// New packs, and git-made ones that are not much larger, so that at most two git-made packs are left.
fn choose(packs: Vec<Foldable>, due: Due) -> Vec<Foldable> {
    let (mut made, mut chosen): (Vec<_>, Vec<_>) = packs.into_iter().partition(|pack| pack.content == Content::Deltas);
    chosen.retain(|pack| due != Due::Regular || pack.bytes >= MIN_PACK);
    made.stable_sort_by_key(|pack| pack.objects);
    let mut objects: u64 = chosen.iter().map(|pack| pack.objects).sum();
    let mut left = made.len();
    for pack in made {
        if left < 2 && due != Due::Now && pack.objects > FACTOR * objects {
            break;
        }
        left -= 1;
        objects += pack.objects;
        chosen.push(pack);
    }
    chosen
}
