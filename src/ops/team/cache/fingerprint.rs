//! Detects from metadata whether a team's files have changed, without opening them.
//!
//! The rule is git's: a file with the same size, times and inode is unchanged, unless it was modified so shortly before
//! the fingerprint was taken that a later change could have the same time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::model::IntoMap;
use crate::parse::Files;
use crate::store::TeamFolder;

/// Teams with more folders are read every time, and so are more files and folders that are looked at.
const MAX_FOLDERS: usize = 5_000;
/// The coarsest resolution of a file system's clock (FAT's), and how much the clocks of two file systems may differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);

/// At most so many threads look at the files of a large team.
const LOOKERS: usize = 4;
/// So many files are looked at in one go.
const PART: usize = 1_000;
/// The team folder itself, among the paths in it.
const ROOT: &str = ".";

/// The metadata of everything that the parsed team depends on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    /// The file system's time before anything was read.
    at: Duration,
    /// The latest time of a stamp.
    newest: Duration,
    /// Relative to the team folder, one a line: the files that were read, and all folders. A folder changes when a file in
    /// it is added, removed or renamed.
    paths: String,
    /// The hash of their stamps: a team may have ten thousand, which take longer to read than to compare.
    stamps: String,
    /// Whether folders with the other possible names of a team folder exist.
    others: BTreeMap<String, bool>,
}

/// A fingerprint to which the files that are read are still to be added.
pub(super) struct Folders {
    at: Duration,
    seen: BTreeMap<String, Stamp>,
    others: BTreeMap<String, bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    is_folder: bool,
    /// Zero for folders, whose size means different things on different file systems.
    size: u64,
    modified: Duration,
    changed: Duration,
    inode: u64,
}

impl Fingerprint {
    /// Call this before the files are read, so that changes in between are noticed next time. `None` if metadata is not
    /// sufficient: a folder's times do not show changes of a link's target.
    pub(super) fn begin(cache: &Path, folder: &TeamFolder) -> Option<Folders> {
        let mut folders = Folders { at: now(cache)?, seen: BTreeMap::new(), others: BTreeMap::new() };
        folders.add(&folder.path, ROOT)?;
        folders.others = others(folder);
        Some(folders)
    }

    /// Pretends that the fingerprint was taken later.
    #[cfg(test)]
    pub(super) fn postpone(&mut self, time: Duration) {
        self.at += time;
    }

    /// Whether the folder is unchanged.
    pub(super) fn matches(&self, folder: &TeamFolder) -> bool {
        let stamps = || {
            let paths: Vec<&str> = self.paths.split_terminator('\n').collect();
            let hashes = look(&paths.chunks(PART).collect::<Vec<_>>(), |paths| {
                let mut places = Places::new(&folder.path);
                hash(paths.iter().map(|path| places.stamp(path)))
            });
            Some(combined(&hashes?))
        };
        self.newest < self.at.saturating_sub(CLOCK_TOLERANCE)
            && others(folder) == self.others
            && stamps().is_some_and(|stamps| stamps == self.stamps)
    }
}

impl Folders {
    /// Adds a folder and its subfolders.
    fn add(&mut self, root: &Path, path: &str) -> Option<()> {
        let full = root.join(path);
        let stamp = Stamp::at(&full).ok()?.filter(|stamp| stamp.is_folder)?;
        self.seen.insert(path.to_owned(), stamp);
        if self.seen.len() > MAX_FOLDERS {
            return None;
        }
        for entry in fs::read_dir(&full).ok()? {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            if kind.is_symlink() {
                return None;
            }
            if kind.is_dir() {
                let name = entry.file_name().into_string().ok()?;
                let inner = if path == ROOT { name } else { format!("{path}/{name}") };
                self.add(root, &inner)?;
            }
        }
        Some(())
    }

    /// Adds the files that were read. A file that changed since [`Fingerprint::begin`] has a later time, so it is not
    /// trusted.
    pub(super) fn with_files(mut self, folder: &TeamFolder, files: &Files) -> Option<Fingerprint> {
        for path in files.texts.keys() {
            let stamp = Stamp::at(&folder.path.join(path)).ok()?;
            self.seen.insert(path.clone(), stamp.filter(|stamp| !stamp.is_folder)?);
        }
        let newest = self.seen.values().map(Stamp::newest).max()?;
        if self.seen.keys().any(|path| path.contains('\n')) {
            return None;
        }
        let paths = self.seen.keys().map(|path| format!("{path}\n")).collect();
        let stamps: Vec<Stamp> = self.seen.into_values().collect();
        let hashes = stamps.chunks(PART).map(|stamps| hash(stamps.iter().copied().map(Some)));
        let stamps = combined(&hashes.collect::<Option<Vec<_>>>()?);
        Some(Fingerprint { at: self.at, newest, paths, stamps, others: self.others })
    }
}

/// What is seen of each item, in their order; `None` if it is of one of them. The system looks up many paths as fast as
/// there are processors.
pub(in crate::ops) fn look<T: Sync, S: Send>(items: &[T], see: impl Fn(&T) -> Option<S> + Sync) -> Option<Vec<S>> {
    let see_all = |part: &[T]| part.iter().map(&see).collect::<Option<Vec<S>>>();
    let see_all = &see_all;
    let lookers = thread::available_parallelism().map_or(1, NonZero::get).min(LOOKERS);
    let mut parts = items.chunks(items.len().div_ceil(lookers).max(1));
    let first = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let others: Vec<_> =
            parts.map(|part| (part, thread::Builder::new().spawn_scoped(scope, move || see_all(part)))).collect();
        let mut seen = see_all(first)?;
        for (part, other) in others {
            // Without a handle, there is no thread left.
            seen.extend(other.map_or_else(|_| see_all(part), |other| other.join().ok().flatten())?);
        }
        Some(seen)
    })
}

/// `None`: one of them is.
fn hash(stamps: impl Iterator<Item = Option<Stamp>>) -> Option<blake3::Hash> {
    let mut bytes = Vec::with_capacity(PART * 7 * size_of::<u64>());
    for stamp in stamps {
        let Stamp { is_folder, size, modified, changed, inode } = stamp?;
        let of = |time: Duration| [time.as_secs(), time.subsec_nanos().into()];
        let ([modified, part], [changed, other]) = (of(modified), of(changed));
        let numbers = [u64::from(is_folder), size, modified, part, changed, other, inode];
        bytes.extend_from_slice(numbers.map(u64::to_le_bytes).as_flattened());
    }
    Some(blake3::hash(&bytes))
}

fn combined(hashes: &[blake3::Hash]) -> String {
    let bytes: Vec<u8> = hashes.iter().flat_map(|hash| *hash.as_bytes()).collect();
    blake3::hash(&bytes).to_hex().to_string()
}

/// The file system's clock.
fn now(cache: &Path) -> Option<Duration> {
    let file = tempfile::Builder::new().prefix("new-").tempfile_in(cache).ok()?;
    Some(since_epoch(file.as_file().metadata().ok()?.modified().ok()?))
}

/// How files and folders looked that something in memory was made from.
pub(in crate::ops) struct FileStamps {
    /// `None`: there was nothing.
    seen: BTreeMap<PathBuf, Option<Stamp>>,
    /// What changed later is not trusted while the look is taken.
    trusted_before: Duration,
}

impl FileStamps {
    /// Of everything in `trees` and of `others`, which were read since `begun`. `None` where looks do not tell whether
    /// something has changed: it did a moment ago, or is a link.
    pub(in crate::ops) fn take(cache: &Path, begun: Instant, trees: &[&Path], others: &[PathBuf]) -> Option<Self> {
        // This system's clock first: it tells without a file that something is too new.
        let trusted_before = since_epoch(SystemTime::now()).checked_sub(begun.elapsed() + CLOCK_TOLERANCE)?;
        let mut look = Self { seen: BTreeMap::new(), trusted_before };
        trees.iter().try_for_each(|tree| look.tree(tree))?;
        others.iter().try_for_each(|path| look.add(path).map(drop))?;
        let trusted_before = now(cache)?.checked_sub(begun.elapsed() + CLOCK_TOLERANCE)?;
        look.seen.values().flatten().all(|stamp| stamp.is_older_than(trusted_before)).then_some(look)
    }

    fn tree(&mut self, path: &Path) -> Option<()> {
        if self.add(path)?.is_some_and(|stamp| stamp.is_folder) {
            for entry in fs::read_dir(path).ok()? {
                self.tree(&entry.ok()?.path())?;
            }
        }
        Some(())
    }

    fn add(&mut self, path: &Path) -> Option<Option<Stamp>> {
        let stamp = match Stamp::at(path) {
            Ok(stamp) => Some(stamp.filter(|stamp| stamp.is_older_than(self.trusted_before))?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(_) => return None,
        };
        self.seen.insert(path.to_owned(), stamp);
        (self.seen.len() <= MAX_FOLDERS).then_some(stamp)
    }

    /// Whether all of it looks the same.
    pub(in crate::ops) fn holds(&self) -> bool {
        self.seen.iter().all(|(path, stamp)| match Stamp::at(path) {
            Ok(found) => found == *stamp && stamp.is_some(),
            Err(error) => error.kind() == ErrorKind::NotFound && stamp.is_none(),
        })
    }
}

fn others(folder: &TeamFolder) -> BTreeMap<String, bool> {
    let own = folder.path.parent().unwrap_or(&folder.root);
    let others = crate::store::FOLDERS.iter().filter(|name| **name != folder.name);
    others.map(|name| ((*name).to_owned(), own.join(name).is_dir())).into_map()
}

/// Paths below a folder, in their order. The system finds a name faster in an open folder than by its whole path.
struct Places<'r> {
    root: &'r Path,
    /// The folder of the last path that was in one.
    #[cfg(unix)]
    open: Option<(&'r str, fs::File)>,
}

#[cfg(unix)]
impl<'r> Places<'r> {
    fn new(root: &'r Path) -> Self {
        Self { root, open: None }
    }

    fn stamp(&mut self, path: &'r str) -> Option<Stamp> {
        let (folder, name) = path.rsplit_once('/').unwrap_or((ROOT, path));
        if self.open.as_ref().is_none_or(|(open, _)| *open != folder) {
            self.open = Some((folder, fs::File::open(self.root.join(folder)).ok()?));
        }
        let (_, open) = self.open.as_ref()?;
        Stamp::of(&rustix::fs::statat(open, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?)
    }
}

#[cfg(not(unix))]
impl<'r> Places<'r> {
    fn new(root: &'r Path) -> Self {
        Self { root }
    }

    fn stamp(&mut self, path: &'r str) -> Option<Stamp> {
        Stamp::at(&self.root.join(path)).ok()?
    }
}

impl Stamp {
    /// Of what is there; links are not followed. `None` if it is neither a file nor a folder.
    #[cfg(unix)]
    fn at(path: &Path) -> io::Result<Option<Self>> {
        Ok(Self::of(&rustix::fs::lstat(path)?))
    }

    #[cfg(unix)]
    fn of(stat: &rustix::fs::Stat) -> Option<Self> {
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        // The types of these numbers differ between systems. The change time cannot be set by users.
        let time = |seconds: i128, nanoseconds: i128| {
            let seconds = u64::try_from(seconds).ok();
            seconds.map_or(Duration::ZERO, |seconds| Duration::new(seconds, nanoseconds.try_into().unwrap_or(0)))
        };
        Self {
            is_folder: kind.is_dir(),
            size: if kind.is_dir() { 0 } else { stat.st_size.try_into().unwrap_or(0) },
            modified: time(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
            changed: time(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
            inode: stat.st_ino,
        }
        .of_kind(kind.is_file())
    }

    #[cfg(not(unix))]
    fn at(path: &Path) -> io::Result<Option<Self>> {
        let metadata = fs::symlink_metadata(path)?;
        let is_folder = metadata.is_dir();
        let modified = since_epoch(metadata.modified()?);
        let changed = metadata.created().map(since_epoch).unwrap_or_default();
        let size = if is_folder { 0 } else { metadata.len() };
        Ok(Self { is_folder, size, modified, changed, inode: 0 }.of_kind(metadata.is_file()))
    }

    fn of_kind(self, is_file: bool) -> Option<Self> {
        (self.is_folder || is_file).then_some(self)
    }

    fn newest(&self) -> Duration {
        self.modified.max(self.changed)
    }

    fn is_older_than(&self, time: Duration) -> bool {
        self.newest() < time
    }
}

/// Treats all times before 1970 alike.
fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers around those of the threads that look × what is missing.
    #[test]
    fn all_are_seen_in_order_or_none() {
        for count in (0..3 * LOOKERS).chain([1_000]) {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(look(&items, |item| Some(*item)).as_ref(), Some(&items), "{count}");
            for other in items.iter().step_by(1 + count / 20).chain(items.last()) {
                assert_eq!(look(&items, |item| (item != other).then_some(())), None, "{other} of {count}");
            }
        }
    }
}
