//! Folding our small packs into few larger ones, since every look-up searches each pack.
//!
//! A folded pack stays until the next fold, since another process may have it open. It is removed once another pack of
//! ours has all its objects. No state is recorded, so a kill leaves nothing to repair.

use std::{
    collections::{BTreeMap, HashSet},
    fs, io,
    time::Duration,
};

use gix::odb::pack::{index, multi_index};

use super::{Content, KEEP_TEXT, PackFolder, UNFINISHED, encode};
use crate::git::{disk, error::Error, lock::LedgerLock};
use crate::program::may_be_alive;

/// A fold is due with this many packs of ours: there should be at most twelve, including the new one.
const MAX_PACKS: usize = 11;

/// Or with this many since the last fold.
const MAX_NEW_PACKS: usize = 5;

/// Packs with a larger total are folded by git, which computes deltas. Our own fold happens in memory.
const MAX_FOLD_BYTES: u64 = 1 << 20;

/// At most this many folded packs wait for a running `git gc` to end.
const MAX_WAITING: usize = 200;

/// A pack is folded with smaller ones unless it has more than this many times their bytes.
const FACTOR: u64 = 3;

/// The files of a pack of ours, with their sizes.
#[derive(Clone, Copy, Debug, Default)]
struct Files {
    pack: Option<u64>,
    index: Option<u64>,
    has_keep: bool,
    has_unfinished: bool,
}

/// A complete pack without a `.keep`.
#[derive(Clone, Debug)]
pub(super) struct Foldable {
    pub(super) name: String,
    pub(super) content: Content,
    pub(super) bytes: u64,
    pub(super) objects: u64,
}

impl PackFolder {
    /// Releases the packs of dead writers, and folds if there are too many packs, except those in `busy`.
    pub(super) fn tidy(&self, _lock: &LedgerLock, busy: &[String]) -> Result<Vec<Foldable>, Error> {
        let files = self.files().map_err(Error::io("read", &self.folder))?;
        let foldable = self.remove_dead(files);
        if self.is_due(&foldable) {
            self.fold(&foldable, busy)?;
        }
        Ok(foldable)
    }

    /// The complete packs without a `.keep` that are in no multi-pack-index and not contained in another pack.
    pub(super) fn needed(&self) -> Result<Vec<Foldable>, Error> {
        let files = self.files().map_err(Error::io("read", &self.folder))?;
        let Some(indexed) = self.indexed() else { return Ok(Vec::new()) };
        let files = files.into_iter().filter(|(name, files)| !files.has_keep && !indexed.contains(name));
        let mut packs: Vec<Foldable> = files.filter_map(|(name, files)| self.complete(name, files)).collect();
        let redundant = self.redundant(&packs);
        packs.retain(|pack| !redundant.contains(&pack.name));
        Ok(packs)
    }

    /// How many packs of ours are needed, and their size.
    pub(in crate::git) fn extent(&self) -> Result<(usize, u64), Error> {
        let packs = self.needed()?;
        Ok((packs.len(), packs.iter().map(|pack| pack.bytes).sum()))
    }

    fn complete(&self, name: String, files: Files) -> Option<Foldable> {
        let Files { pack: Some(bytes), index: Some(index), has_unfinished: false, .. } = files else { return None };
        let id = self.hash.len_in_bytes() as u64;
        // Header and fan-out table, two checksums, and for each object an id, a checksum and an offset.
        let objects = index.saturating_sub(8 + 1024 + 2 * id) / (id + 8);
        Some(Foldable { content: self.content_of(&name)?, name, bytes, objects })
    }

    /// Every file of a pack of ours.
    fn files(&self) -> io::Result<BTreeMap<String, Files>> {
        let mut all: BTreeMap<String, Files> = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some((name, kind)) = name.to_str().and_then(|name| name.split_once('.')) else { continue };
            if self.content_of(name).is_none() {
                continue;
            }
            // The file may just be going away.
            let size = || entry.metadata().ok().map(|metadata| metadata.len());
            let files = all.entry(name.to_owned()).or_default();
            match kind {
                "pack" => files.pack = size(),
                "idx" => files.index = size(),
                "keep" => files.has_keep = true,
                UNFINISHED => files.has_unfinished = true,
                _ => {}
            }
        }
        Ok(all)
    }

    /// Removes the `.keep` files of dead writers, and packs without an index. A dead writer has moved its ref or never
    /// will; a live one holds the lock on its `.keep`.
    fn remove_dead(&self, files: BTreeMap<String, Files>) -> Vec<Foldable> {
        let mut foldable = Vec::new();
        for (name, files) in files {
            if files.has_keep && !self.release_stale(&name) {
                continue;
            }
            let Some(pack) = self.complete(name.clone(), files) else {
                // Check in this order: a writer renames its index before it removes the `.keep`.
                if !self.file(&name, "keep").exists() && !self.file(&name, "idx").exists() {
                    // If this fails, the next tidy-up does it.
                    let _ = self.remove(&name);
                }
                continue;
            };
            foldable.push(pack);
        }
        foldable
    }

    /// Removes a `.keep` if it is ours and unlocked.
    fn release_stale(&self, name: &str) -> bool {
        let path = self.file(name, "keep");
        let Ok(file) = fs::File::open(&path) else { return false };
        if file.try_lock_shared().is_err() {
            return false;
        }
        let Ok((content, metadata)) = fs::read(&path).and_then(|content| Ok((content, file.metadata()?))) else {
            return false;
        };
        // A power cut may have truncated our file, which is read-only.
        let is_cut_short = KEEP_TEXT.as_bytes().starts_with(&content) && metadata.permissions().readonly();
        (content.starts_with(KEEP_TEXT.as_bytes()) || is_cut_short) && disk::remove(&path).is_ok()
    }

    fn is_due(&self, packs: &[Foldable]) -> bool {
        // The id in a name begins with its time.
        let time = |pack: &Foldable| pack.name.get(super::PREFIX.len() + 1..).map(str::to_owned);
        let last = packs.iter().filter(|pack| pack.content != Content::Written).map(time).max().flatten();
        let new = packs.iter().filter(|pack| pack.content == Content::Written && time(pack) > last);
        packs.len() >= MAX_PACKS || new.count() >= MAX_NEW_PACKS
    }

    fn fold(&self, packs: &[Foldable], busy: &[String]) -> Result<(), Error> {
        // If it cannot be read, we do not know which packs may be removed.
        let Some(indexed) = self.indexed() else { return Ok(()) };
        let mut packs: Vec<Foldable> = packs.iter().filter(|pack| !indexed.contains(&pack.name)).cloned().collect();
        if !self.is_due(&packs) {
            return Ok(());
        }
        let is_waiting = self.remove_folded(&mut packs);
        if is_waiting && !self.is_due(&packs) {
            return Ok(());
        }
        let is_crowded = packs.len() >= MAX_PACKS;
        packs.retain(|pack| pack.content != Content::Deltas && !busy.contains(&pack.name));
        packs.sort_by_key(|pack| pack.bytes);
        match choose(&packs, MAX_FOLD_BYTES) {
            Some(chosen) => self.copy(chosen),
            // git has not folded them yet.
            None if is_crowded => choose(&packs, u64::MAX).map_or(Ok(()), |chosen| self.copy(chosen)),
            None => Ok(()),
        }
    }

    /// The packs listed in git's multi-pack-index; `None`: it cannot be read.
    fn indexed(&self) -> Option<HashSet<String>> {
        let mut files = vec![self.folder.join("multi-pack-index")];
        let chain = fs::read_dir(self.folder.join("multi-pack-index.d")).into_iter().flatten().flatten();
        files
            .extend(chain.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "midx")));
        let mut indexed = HashSet::new();
        for file in files.into_iter().filter(|file| file.exists()) {
            let index = multi_index::File::at(&file, None).ok()?;
            let names = index.index_names().iter().filter_map(|name| name.file_stem()?.to_str().map(str::to_owned));
            indexed.extend(names);
        }
        Some(indexed)
    }

    /// The packs whose objects are all in one other pack.
    fn redundant(&self, packs: &[Foldable]) -> HashSet<String> {
        let open = |pack: &Foldable| index::File::at(self.file(&pack.name, "idx"), self.hash).ok();
        let indexes: Vec<_> = packs.iter().filter_map(|pack| Some((&pack.name, open(pack)?))).collect();
        let is_folded = |name: &str, own: &index::File| {
            // Of two equal packs, one stays.
            let larger = |other: &str, index: &index::File| (index.num_objects(), other) > (own.num_objects(), name);
            indexes
                .iter()
                .any(|(other, index)| larger(other, index) && own.iter().all(|entry| index.lookup(entry.oid).is_some()))
        };
        let redundant = indexes.iter().filter(|(name, own)| is_folded(name, own));
        redundant.map(|(name, _)| (*name).clone()).collect()
    }

    /// Removes the packs that an existing pack fully contains. Returns whether they have to stay for now.
    fn remove_folded(&self, packs: &mut Vec<Foldable>) -> bool {
        let redundant = self.redundant(packs);
        // `git gc` lists all packs at its start and dies if one is missing at its end.
        let is_to_wait = redundant.len() <= MAX_WAITING && self.is_gc_running();
        // A pack that is open and cannot be removed now is removed later.
        packs.retain(|pack| !redundant.contains(&pack.name) || (!is_to_wait && self.remove(&pack.name).is_err()));
        is_to_wait
    }

    /// Whether `git gc` is running, that is, whether the process named in its lock is alive. Like git, distrusts a lock
    /// older than twelve hours.
    fn is_gc_running(&self) -> bool {
        const MAX_LOCK_AGE: Duration = Duration::from_secs(12 * 3600);
        let path = self.common_dir.join("gc.pid");
        let Ok(text) = fs::read_to_string(&path) else { return false };
        let age = fs::metadata(&path).and_then(|facts| facts.modified()).ok().and_then(|at| at.elapsed().ok());
        let id = text.split_whitespace().next().and_then(|id| id.parse().ok());
        age.is_none_or(|age| age < MAX_LOCK_AGE) && id.is_none_or(may_be_alive)
    }

    /// Copies the objects of several packs into one, durably.
    fn copy(&self, packs: &[Foldable]) -> Result<(), Error> {
        let bytes = packs.iter().map(|pack| pack.bytes).sum::<u64>();
        let mut encoder = encode::Encoder::with_capacity(self.hash, usize::try_from(bytes).unwrap_or_default());
        let mut known = HashSet::new();
        for pack in packs {
            let path = self.file(&pack.name, "pack");
            let bytes = match fs::read(&path) {
                // git has repacked and removed it.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
                answer => answer.map_err(Error::io("read", &path))?,
            };
            let damaged = || Error::damaged(&path, "it is not the pack that its index describes");
            let Ok(index) = index::File::at(self.file(&pack.name, "idx"), self.hash) else { return Ok(()) };
            let mut entries: Vec<_> = index.iter().collect();
            entries.sort_by_key(|entry| entry.pack_offset);
            let ends = entries.iter().skip(1).map(|entry| entry.pack_offset);
            let end = bytes.len().saturating_sub(self.hash.len_in_bytes()) as u64;
            for (entry, end) in entries.iter().zip(ends.chain([end])) {
                let range = usize::try_from(entry.pack_offset).ok().zip(usize::try_from(end).ok());
                let entry_bytes = range.and_then(|(start, end)| bytes.get(start..end)).ok_or_else(damaged)?;
                let is_sound =
                    encode::is_whole(entry_bytes) && entry.crc32.is_none_or(|crc| crc == crc32fast::hash(entry_bytes));
                if !is_sound {
                    return Err(damaged());
                }
                if known.insert(entry.oid) {
                    encoder.copy(entry.oid, entry_bytes);
                }
            }
        }
        let encoded = encoder.finish().map_err(Error::io("write to", &self.folder))?;
        self.write(self.name(Content::Folded), None, &encoded)?.publish().map(drop)
    }
}

/// The smallest packs, and each larger one that is not much larger than their total. `None`: there is nothing to fold.
fn choose(packs: &[Foldable], limit: u64) -> Option<&[Foldable]> {
    let (mut count, mut sum) = (0, 0);
    for pack in packs {
        if sum + pack.bytes > limit || (count > 1 && pack.bytes > FACTOR * sum) {
            break;
        }
        (count, sum) = (count + 1, sum + pack.bytes);
    }
    packs.get(..count).filter(|chosen| chosen.len() > 1)
}
