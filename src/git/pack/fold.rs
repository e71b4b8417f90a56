//! Few packs instead of many, for every look-up asks each: ours are folded as they come, the small ones first.
//!
//! What is folded stays until the next fold, since another process may have it open, and goes when another pack of ours
//! holds every object of it. Nothing is noted about that: who is killed leaves nothing to be mended.

use std::{
    collections::{BTreeMap, HashSet},
    fs, io,
    time::Duration,
};

use gix::odb::pack::{index, multi_index};

use super::{Content, KEPT_BY, PackFolder, UNFINISHED, encode};
use crate::git::{disk, error::Error, lock::LedgerLock, program};

/// With so many packs of ours it is time, since there are to be twelve at most, that of the fold included.
const MANY: usize = 11;

/// Or with so many that came after the last fold.
const NEW: usize = 5;

/// Packs larger than this together are folded by git, which finds out what objects differ in. A fold of ours is held in
/// memory.
const LARGE: u64 = 1 << 20;

/// So many that were folded wait for the end of a `git gc`, and no more.
const WAITING: usize = 200;

/// A pack goes into a fold with smaller ones unless it has more than so many times their bytes.
const FACTOR: u64 = 3;

/// The files of a pack of ours, with their sizes.
#[derive(Clone, Copy, Debug, Default)]
struct Files {
    pack: Option<u64>,
    index: Option<u64>,
    has_keep: bool,
    has_unfinished: bool,
}

/// A pack that is whole and that nobody keeps.
#[derive(Clone, Debug)]
pub(super) struct Foldable {
    pub(super) name: String,
    pub(super) content: Content,
    pub(super) bytes: u64,
    pub(super) objects: u64,
}

impl PackFolder {
    /// Frees the packs of writers that died, and folds what are too many. `busy` are not to be folded.
    pub(super) fn tidy(&self, _lock: &LedgerLock, busy: &[String]) -> Result<Vec<Foldable>, Error> {
        let files = self.files().map_err(Error::io("read", &self.folder))?;
        let foldable = self.clear_dead(files);
        if self.is_due(&foldable) {
            self.fold(&foldable, busy)?;
        }
        Ok(foldable)
    }

    /// What is whole, what nobody keeps, what no multi-pack-index leads to, and what no other one makes needless.
    pub(super) fn needed(&self) -> Result<Vec<Foldable>, Error> {
        let files = self.files().map_err(Error::io("read", &self.folder))?;
        let Some(named) = self.named() else { return Ok(Vec::new()) };
        let files = files.into_iter().filter(|(name, files)| !files.has_keep && !named.contains(name));
        let mut packs: Vec<Foldable> = files.filter_map(|(name, files)| self.whole(name, files)).collect();
        let folded = self.folded(&packs);
        packs.retain(|pack| !folded.contains(&pack.name));
        Ok(packs)
    }

    /// How many packs of ours are needed, and their size.
    pub(in crate::git) fn extent(&self) -> Result<(usize, u64), Error> {
        let packs = self.needed()?;
        Ok((packs.len(), packs.iter().map(|pack| pack.bytes).sum()))
    }

    fn whole(&self, name: String, files: Files) -> Option<Foldable> {
        let Files { pack: Some(bytes), index: Some(index), has_unfinished: false, .. } = files else { return None };
        let id = self.hash.len_in_bytes() as u64;
        // Head and fan-out, two checksums, and an id, a checksum and a place for each.
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
            // It may be going at this moment.
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

    /// Removes every `.keep` of a writer of ours that is no more, and what has no index. The writer has moved its ref
    /// or never will: whoever lives holds the lock of the file.
    fn clear_dead(&self, files: BTreeMap<String, Files>) -> Vec<Foldable> {
        let mut foldable = Vec::new();
        for (name, files) in files {
            if files.has_keep && !self.release_dead(&name) {
                continue;
            }
            let Some(pack) = self.whole(name.clone(), files) else {
                // In this order: a writer removes its `.keep` after the index has its name.
                if !self.file(&name, "keep").exists() && !self.file(&name, "idx").exists() {
                    // Or the next one does it.
                    let _ = self.remove(&name);
                }
                continue;
            };
            foldable.push(pack);
        }
        foldable
    }

    /// Removes a `.keep` if it is ours and nobody holds its lock.
    fn release_dead(&self, name: &str) -> bool {
        let path = self.file(name, "keep");
        let Ok(file) = fs::File::open(&path) else { return false };
        if file.try_lock_shared().is_err() {
            return false;
        }
        let Ok((content, metadata)) = fs::read(&path).and_then(|content| Ok((content, file.metadata()?))) else {
            return false;
        };
        // A power cut may leave less of what we wrote, in a file that nobody was to write to.
        let is_cut_short = KEPT_BY.as_bytes().starts_with(&content) && metadata.permissions().readonly();
        (content.starts_with(KEPT_BY.as_bytes()) || is_cut_short) && disk::remove(&path).is_ok()
    }

    fn is_due(&self, packs: &[Foldable]) -> bool {
        // An id begins with its time.
        let time = |pack: &Foldable| pack.name.get(super::OWN.len() + 1..).map(str::to_owned);
        let last = packs.iter().filter(|pack| pack.content != Content::Written).map(time).max().flatten();
        let new = packs.iter().filter(|pack| pack.content == Content::Written && time(pack) > last);
        packs.len() >= MANY || new.count() >= NEW
    }

    fn fold(&self, packs: &[Foldable], busy: &[String]) -> Result<(), Error> {
        // Where that cannot be read, nobody knows which packs may go.
        let Some(named) = self.named() else { return Ok(()) };
        let mut packs: Vec<Foldable> = packs.iter().filter(|pack| !named.contains(&pack.name)).cloned().collect();
        if !self.is_due(&packs) {
            return Ok(());
        }
        let is_waiting = self.remove_folded(&mut packs);
        if is_waiting && !self.is_due(&packs) {
            return Ok(());
        }
        let is_crowded = packs.len() >= MANY;
        packs.retain(|pack| pack.content != Content::Deltas && !busy.contains(&pack.name));
        packs.sort_by_key(|pack| pack.bytes);
        match choose(&packs, LARGE) {
            Some(chosen) => self.copy(chosen),
            // git has not come to it.
            None if is_crowded => choose(&packs, u64::MAX).map_or(Ok(()), |chosen| self.copy(chosen)),
            None => Ok(()),
        }
    }

    /// The packs that a multi-pack-index of git's leads to.
    fn named(&self) -> Option<HashSet<String>> {
        let mut files = vec![self.folder.join("multi-pack-index")];
        let chain = fs::read_dir(self.folder.join("multi-pack-index.d")).into_iter().flatten().flatten();
        files
            .extend(chain.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "midx")));
        let mut named = HashSet::new();
        for file in files.into_iter().filter(|file| file.exists()) {
            let index = multi_index::File::at(&file, None).ok()?;
            let names = index.index_names().iter().filter_map(|name| name.file_stem()?.to_str().map(str::to_owned));
            named.extend(names);
        }
        Some(named)
    }

    /// Those of which another one holds every object.
    fn folded(&self, packs: &[Foldable]) -> HashSet<String> {
        let open = |pack: &Foldable| index::File::at(self.file(&pack.name, "idx"), self.hash).ok();
        let indexes: Vec<_> = packs.iter().filter_map(|pack| Some((&pack.name, open(pack)?))).collect();
        let is_folded = |name: &str, own: &index::File| {
            // Of two that hold the same, one stays.
            let larger = |other: &str, index: &index::File| (index.num_objects(), other) > (own.num_objects(), name);
            indexes
                .iter()
                .any(|(other, index)| larger(other, index) && own.iter().all(|entry| index.lookup(entry.oid).is_some()))
        };
        let folded = indexes.iter().filter(|(name, own)| is_folded(name, own));
        folded.map(|(name, _)| (*name).clone()).collect()
    }

    /// Removes those of which another one holds every object, which was there before this fold began. Whether they have to
    /// stay for now.
    fn remove_folded(&self, packs: &mut Vec<Foldable>) -> bool {
        let folded = self.folded(packs);
        // `git gc` writes the names of all packs down and dies where it does not find one of them at its end.
        let is_to_wait = folded.len() <= WAITING && self.is_gc_at_work();
        // What cannot go now, since somebody reads it, goes later.
        packs.retain(|pack| !folded.contains(&pack.name) || (!is_to_wait && self.remove(&pack.name).is_err()));
        is_to_wait
    }

    /// Whether git says that its gc is at work: the process whose id is in its lock lives. git itself believes that of a
    /// lock for twelve hours.
    fn is_gc_at_work(&self) -> bool {
        const PATIENCE: Duration = Duration::from_secs(12 * 3600);
        let path = self.common_dir.join("gc.pid");
        let Ok(text) = fs::read_to_string(&path) else { return false };
        let age = fs::metadata(&path).and_then(|facts| facts.modified()).ok().and_then(|at| at.elapsed().ok());
        let id = text.split_whitespace().next().and_then(|id| id.parse().ok());
        age.is_none_or(|age| age < PATIENCE) && id.is_none_or(program::is_alive)
    }

    /// Makes one pack of the objects of several, durably.
    fn copy(&self, packs: &[Foldable]) -> Result<(), Error> {
        let bytes = packs.iter().map(|pack| pack.bytes).sum::<u64>();
        let mut encoder = encode::Encoder::with_capacity(self.hash, usize::try_from(bytes).unwrap_or_default());
        let mut known = HashSet::new();
        for pack in packs {
            let path = self.file(&pack.name, "pack");
            let bytes = match fs::read(&path) {
                // git has folded it, and removed it.
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

/// The smallest packs, and each larger one that is not much larger than those together. None: there is nothing to fold.
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
