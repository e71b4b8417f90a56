//! Large folds, by git: it finds out what objects differ in, which makes a ledger's packs many times smaller.
//!
//! That takes its time, so it goes on beside us, and whoever tidies up when it is done takes what it made. While git is
//! at it, it holds the lock of the file that it reads the objects' ids from, whoever has started it and died since.

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

/// Large repositories take their time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// New packs as large as this together are worth a large fold.
const WORTH: u64 = 2 << 20;

/// Smaller packs wait for the next one.
const SMALL: u64 = WORTH / 8;

/// What a run is to leave in new packs, at most.
const SOME: u64 = 64 << 10;

/// A pack of git's making is folded again when it has not more than so many times the new objects.
const FACTOR: u64 = 3;

/// When a large fold is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::git) enum Due {
    /// When it is worth it.
    InTime,
    /// With every new pack.
    AtRest,
    /// With everything.
    Now,
}

impl Repository {
    /// Frees the packs of writers that died, and folds what are too many.
    pub(in crate::git) fn tidy_packs(&self, lock: &LedgerLock) -> Result<(), Error> {
        let busy = self.adopt(lock, false)?;
        let packs = self.packs().tidy(lock, &busy)?;
        if busy.is_empty() && bytes_of_new(&packs) >= WORTH {
            self.start_fold(lock, Due::InTime)?.map_or(Ok(()), Call::detach)?;
        }
        Ok(())
    }

    /// Starts a large fold of what has come together, unless somebody is writing.
    pub(in crate::git) fn fold_in_background(&self) -> Result<(), Error> {
        let Some(lock) = self.ledger().try_lock()? else { return Ok(()) };
        let busy = self.adopt(&lock, false)?;
        self.packs().tidy(&lock, &busy)?;
        if busy.is_empty() {
            self.start_fold(&lock, Due::AtRest)?.map_or(Ok(()), Call::detach)?;
        }
        Ok(())
    }

    /// Folds everything now, which others need not wait for.
    pub(in crate::git) fn fold_now(&self) -> Result<(), Error> {
        let begun = |lock: &LedgerLock| {
            self.end_fold(lock)?;
            self.packs().tidy(lock, &[])?;
            self.start_fold(lock, Due::Now)
        };
        let begun = begun(&self.ledger().lock()?)?;
        begun.map_or(Ok(()), |call| call.patience(PATIENCE).succeed().map(drop))?;
        self.end_fold(&self.ledger().lock()?)
    }

    /// Waits for a fold that goes on, and takes what it made.
    pub(in crate::git) fn end_fold(&self, lock: &LedgerLock) -> Result<(), Error> {
        self.adopt(lock, true).map(drop)
    }

    fn fold_file(&self, name: &str) -> PathBuf {
        self.common_dir().join("squad").join("fold").join(name)
    }

    /// Takes what a fold made that has come to its end, or waits for that. The packs that one is being made of, if it
    /// has not.
    fn adopt(&self, _lock: &LedgerLock, waits: bool) -> Result<Vec<String>, Error> {
        let (folder, ids) = (self.fold_file(""), self.fold_file(IDS));
        let ids = match File::open(&ids) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            answer => answer.map_err(Error::io("read", &ids))?,
        };
        // A child that is just being started elsewhere in this process has the file open for a moment, and so its lock.
        let is_over = if waits { ids.lock().is_ok() } else { ids.try_lock().is_ok() };
        if !is_over {
            let names = fs::read_to_string(self.fold_file(PACKS)).unwrap_or_default();
            return Ok(names.lines().map(str::to_owned).collect());
        }
        for entry in fs::read_dir(&folder).map_err(Error::io("read", &folder))?.flatten() {
            // Its index comes last.
            if entry.path().extension().is_some_and(|kind| kind == "idx") {
                self.packs().take(&entry.path())?;
            }
        }
        drop(ids);
        fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))?;
        Ok(Vec::new())
    }

    /// The call of git that makes one pack of several; None: it is not worth it.
    fn start_fold(&self, _lock: &LedgerLock, due: Due) -> Result<Option<Call>, Error> {
        let packs = self.packs();
        let chosen = choose(packs.needed()?, due);
        let (new, count) = (bytes_of_new(&chosen), chosen.len());
        let is_worth_it = match due {
            Due::InTime => new >= WORTH,
            Due::AtRest => new >= SOME,
            Due::Now => new > 0 || count > 1,
        };
        if !is_worth_it {
            return Ok(None);
        }
        let mut ids = BTreeSet::new();
        for pack in &chosen {
            // git has removed it, in its own time.
            let Ok(index) = index::File::at(packs.file(&pack.name, "idx"), self.hash()) else { return Ok(None) };
            ids.extend(index.iter().map(|entry| entry.oid));
        }
        let lines = |lines: &mut dyn Iterator<Item = String>| lines.map(|line| line + "\n").collect::<String>();
        let names = lines(&mut chosen.into_iter().map(|pack| pack.name));
        let ids = lines(&mut ids.into_iter().map(|id| id.to_string()));
        let (folder, path) = (self.fold_file(""), self.fold_file(IDS));
        // What was not adopted is worth nothing.
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
    /// Makes a pack that git wrote elsewhere one of ours.
    fn take(&self, index: &std::path::Path) -> Result<(), Error> {
        let name = self.name(Content::Deltas);
        for (from, kind) in [(index.with_extension("pack"), "pack"), (index.to_owned(), "idx")] {
            let to = self.file(&name, kind);
            let moved = self.sharing.open_object(&from).and_then(|()| disk::rename(&from, &to));
            moved.map_err(Error::io("write", &to))?;
        }
        disk::flush_folder(&self.folder)
    }
}

fn bytes_of_new(packs: &[Foldable]) -> u64 {
    packs.iter().filter(|pack| pack.content != Content::Deltas).map(|pack| pack.bytes).sum()
}

/// New packs, and of those that git made the ones that are not much larger, so that two of them are left at most.
fn choose(packs: Vec<Foldable>, due: Due) -> Vec<Foldable> {
    let (mut made, mut chosen): (Vec<_>, Vec<_>) = packs.into_iter().partition(|pack| pack.content == Content::Deltas);
    chosen.retain(|pack| due != Due::InTime || pack.bytes >= SMALL);
    made.sort_by_key(|pack| pack.objects);
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
