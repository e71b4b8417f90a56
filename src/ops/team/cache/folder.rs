//! Reads and writes cache files. A file that is damaged or from another build counts as missing.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::compile::NoteTexts;
use crate::env::files::{read_at, replace};
use crate::model::Sort;

const HASH: usize = blake3::OUT_LEN;
const LENGTH: usize = size_of::<u64>();

/// A folder of values, each with a name and a kind.
#[derive(Clone)]
pub(in crate::ops) struct CacheFolder {
    folder: PathBuf,
    /// The first bytes of each file. `None`: this build cannot be identified, so nothing is cached.
    header: Option<[u8; HASH]>,
    is_read_only: bool,
}

impl CacheFolder {
    pub(super) fn new(folder: PathBuf, program: Option<&Path>) -> Self {
        let metadata = program.and_then(|program| fs::metadata(program).ok());
        Self { folder, header: metadata.map(|metadata| header(&metadata)), is_read_only: false }
    }

    /// For files that all builds with this format can share.
    pub(in crate::ops) fn with_format(folder: PathBuf, format: &str) -> Self {
        Self { folder, header: Some(*blake3::hash(format.as_bytes()).as_bytes()), is_read_only: false }
    }

    /// What is there is used, and nothing is written.
    pub(in crate::ops) fn read_only(self) -> Self {
        Self { is_read_only: true, ..self }
    }

    /// Creates the folder if it does not exist.
    pub(in crate::ops) fn prepare(&self) -> Option<&Path> {
        self.header.filter(|_| !self.is_read_only)?;
        fs::create_dir_all(&self.folder).ok()?;
        Some(&self.folder)
    }

    /// `None` unless the file is exactly as it was written.
    pub(in crate::ops) fn read<T: DeserializeOwned>(&self, name: &str, kind: &str) -> Option<T> {
        serde_json::from_slice(&self.open(name, kind)?.0).ok()
    }

    /// Like [`CacheFolder::read`], for values with a form of their own, and with what follows the value. A file is the
    /// header, the hash of the next two, the value's length, the value, and the rest, which no hash is checked of.
    pub(super) fn open(&self, name: &str, kind: &str) -> Option<(Vec<u8>, FileRest)> {
        let path = self.path(name, kind);
        let mut file = File::open(&path).ok()?;
        let mut start = [[0; HASH]; 2];
        file.read_exact(start.as_flattened_mut()).ok()?;
        (start[0] == self.header?).then_some(())?;
        let mut length = [0; LENGTH];
        file.read_exact(&mut length).ok()?;
        let begin = (start.as_flattened().len() + LENGTH) as u64;
        let end = u64::from_le_bytes(length).checked_add(begin)?;
        let size = file.metadata().ok()?.len();
        let mut value = vec![0; usize::try_from(end.min(size).checked_sub(begin)?).ok()?];
        file.read_exact(&mut value).ok()?;
        let path = (!self.is_read_only).then_some(path);
        (value_hash(&value).as_bytes() == &start[1]).then_some((value, FileRest { file, path, start: end }))
    }

    /// Writes a value atomically. Returns whether it succeeded; a failure only makes the next command slower.
    pub(in crate::ops) fn write<T: Serialize>(&self, name: &str, kind: &str, value: &T) -> bool {
        serde_json::to_vec(value).is_ok_and(|value| self.write_bytes(name, kind, (&value, &[])))
    }

    pub(super) fn write_bytes(&self, name: &str, kind: &str, (value, rest): (&[u8], &[u8])) -> bool {
        let Some(header) = self.header.filter(|_| !self.is_read_only) else { return false };
        let (hash, length) = (value_hash(value), (value.len() as u64).to_le_bytes());
        let content = [header.as_slice(), hash.as_bytes(), &length, value, rest].concat();
        replace(&self.path(name, kind), &content).is_ok()
    }

    pub(in crate::ops) fn remove(&self, name: &str, kind: &str) {
        if !self.is_read_only {
            // Deleting only saves space: readers check the key of what they read.
            let _ = fs::remove_file(self.path(name, kind));
        }
    }

    fn path(&self, name: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{name}.{kind}"))
    }

    /// Removes all but the newest files of a kind, and temporary files of dead processes.
    pub(super) fn prune(&self, kind: &str, keep: usize) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            let is_temporary = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
            if is_temporary || path.extension().is_some_and(|extension| extension == kind) {
                let modified = entry.metadata().and_then(|metadata| metadata.modified());
                found.push((modified.unwrap_or(SystemTime::UNIX_EPOCH), is_temporary, path));
            }
        }
        found.stable_sort_by(Ord::cmp);
        // The newest file was written just now, so its time is the current time of the file system's clock.
        let Some(now) = found.last().map(|(modified, ..)| *modified) else { return };
        let mut count = found.iter().filter(|(_, is_temporary, _)| !is_temporary).count();
        for (modified, is_temporary, path) in found {
            let age = now.duration_since(modified).map_or(0, |age| age.as_secs());
            if is_temporary && age > MAX_TEMPORARY_AGE {
                let _ = fs::remove_file(path);
            } else if !is_temporary && count > keep {
                count -= 1;
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn value_hash(value: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(&(value.len() as u64).to_le_bytes()).update(value).finalize()
}

/// What follows the value in a file. It stays what it was where another value replaces the file.
#[derive(Debug)]
pub(super) struct FileRest {
    file: File,
    /// `None`: nothing is written there.
    path: Option<PathBuf>,
    start: u64,
}

impl NoteTexts for FileRest {
    fn read(&self, range: Range<usize>) -> Option<Vec<u8>> {
        let size = self.file.metadata().ok()?.len().checked_sub(self.start)?;
        (u64::try_from(range.end).ok()? <= size).then_some(())?;
        let mut bytes = vec![0; range.len()];
        let mut read = 0;
        while read < bytes.len() {
            let position = self.start + (range.start + read) as u64;
            read += read_at(&self.file, &mut bytes[read..], position).ok().filter(|read| *read > 0)?;
        }
        Some(bytes)
    }

    fn discard(&self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// The header of files that only this build can use: another build may parse the same files differently. A rebuilt
/// program has another size or modification time.
fn header(program: &Metadata) -> [u8; HASH] {
    let version = env!("CARGO_PKG_VERSION");
    let identity = format!("squad cache {version} {} {:?}", program.len(), program.modified().ok());
    *blake3::hash(identity.as_bytes()).as_bytes()
}

const TEMPORARY: &str = "new-";
/// An older temporary file, in seconds, was left by a process that died.
const MAX_TEMPORARY_AGE: u64 = 3_600;
