//! What the files of a team look like from outside, so that an unchanged one need not be opened.
//!
//! The rule is git's: a file whose size, times and inode are as they were is unchanged, unless it was changed so
//! shortly before the look that a change after it could have left the same time.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::parse::Files;
use crate::store::TeamFolder;

/// Folders of a team at most; larger ones are read every time.
const FOLDERS: usize = 5_000;
/// The coarsest clock of a file system (FAT's), and what clocks of two file systems may be apart.
const COARSE: Duration = Duration::from_secs(2);

/// How everything looked that a reading of the team depends on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    /// Before anything was read, by the file system's clock.
    at: Duration,
    /// By path from the team folder: the files that were read, and every folder, since a file that comes, goes or
    /// is renamed changes its folder.
    seen: BTreeMap<String, Stamp>,
    /// Whether the other names a team folder may have are taken.
    others: BTreeMap<String, bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    is_folder: bool,
    /// Of files: what a folder's size says differs between file systems.
    size: u64,
    modified: Duration,
    changed: Duration,
    inode: u64,
}

impl Fingerprint {
    /// To be taken before the files are read: what changes in between then looks changed the next time. `None` when
    /// the team cannot be judged by its looks: a link's target is not in its folder's times.
    pub(super) fn begin(cache: &Path, folder: &TeamFolder) -> Option<Self> {
        let now = tempfile::Builder::new().prefix("new-").tempfile_in(cache).ok()?;
        let at = since_epoch(now.as_file().metadata().ok()?.modified().ok()?);
        let mut look = Self { at, seen: BTreeMap::new(), others: BTreeMap::new() };
        look.folders(&folder.path, "")?;
        look.others = others(folder);
        Some(look)
    }

    fn folders(&mut self, root: &Path, path: &str) -> Option<()> {
        let full = root.join(path);
        let stamp = Stamp::of(&fs::symlink_metadata(&full).ok()?).filter(|stamp| stamp.is_folder)?;
        self.seen.insert(path.to_owned(), stamp);
        if self.seen.len() > FOLDERS {
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
                let inner = if path.is_empty() { name } else { format!("{path}/{name}") };
                self.folders(root, &inner)?;
            }
        }
        Some(())
    }

    /// Completed with the files that were read. A file that changed since is seen with a time after the look's, and so
    /// is not trusted.
    pub(super) fn at_files(mut self, folder: &TeamFolder, files: &Files) -> Option<Self> {
        for path in files.texts.keys() {
            let metadata = fs::symlink_metadata(folder.path.join(path)).ok()?;
            self.seen.insert(path.clone(), Stamp::of(&metadata).filter(|stamp| !stamp.is_folder)?);
        }
        Some(self)
    }

    /// As if it had been taken later.
    #[cfg(test)]
    pub(super) fn wait(&mut self, time: Duration) {
        self.at += time;
    }

    pub(super) fn holds(&self, folder: &TeamFolder) -> bool {
        let trusted_before = self.at.saturating_sub(COARSE);
        others(folder) == self.others
            && self.seen.iter().all(|(path, stamp)| {
                stamp.modified.max(stamp.changed) < trusted_before
                    && fs::symlink_metadata(folder.path.join(path))
                        .ok()
                        .and_then(|metadata| Stamp::of(&metadata))
                        .is_some_and(|now| now == *stamp)
            })
    }
}

fn others(folder: &TeamFolder) -> BTreeMap<String, bool> {
    let own = folder.path.parent().unwrap_or(&folder.root);
    let others = crate::store::FOLDERS.iter().filter(|name| **name != folder.name);
    others.map(|name| ((*name).to_owned(), own.join(name).is_dir())).collect()
}

impl Stamp {
    /// `None` for what is neither a file nor a folder.
    fn of(metadata: &Metadata) -> Option<Self> {
        let is_folder = metadata.is_dir();
        if !is_folder && !metadata.is_file() {
            return None;
        }
        let (changed, inode) = beyond(metadata);
        Some(Self {
            is_folder,
            size: if is_folder { 0 } else { metadata.len() },
            modified: since_epoch(metadata.modified().ok()?),
            changed,
            inode,
        })
    }
}

/// When the file's own data was last changed, whatever its modification time was set to, and which file it is.
#[cfg(unix)]
fn beyond(metadata: &Metadata) -> (Duration, u64) {
    use std::os::unix::fs::MetadataExt;
    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).unwrap_or(0);
    (Duration::new(seconds, nanoseconds), metadata.ino())
}

#[cfg(not(unix))]
fn beyond(metadata: &Metadata) -> (Duration, u64) {
    (metadata.created().map(since_epoch).unwrap_or_default(), 0)
}

/// Times before 1970 are all alike, and such files are told apart by the rest.
fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}
