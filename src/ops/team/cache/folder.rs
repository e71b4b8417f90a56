//! Files of the cache: whole, of this build, or not there.

use std::fs::{self, Metadata};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

const HASH: usize = blake3::OUT_LEN;

/// A folder of values by name and kind.
#[derive(Clone)]
pub(in crate::ops) struct CacheFolder {
    folder: PathBuf,
    /// What each file begins with; `None` where this build cannot be told from others, so that nothing is kept.
    header: Option<[u8; HASH]>,
}

impl CacheFolder {
    pub(super) fn new(folder: PathBuf, program: Option<&Path>) -> Self {
        let metadata = program.and_then(|program| fs::metadata(program).ok());
        Self { folder, header: metadata.map(|metadata| header(&metadata)) }
    }

    /// For files that every build with this form reads alike.
    pub(in crate::ops) fn of_form(folder: PathBuf, form: &str) -> Self {
        Self { folder, header: Some(*blake3::hash(form.as_bytes()).as_bytes()) }
    }

    /// The folder, made if need be.
    pub(in crate::ops) fn prepare(&self) -> Option<&Path> {
        self.header?;
        fs::create_dir_all(&self.folder).ok()?;
        Some(&self.folder)
    }

    /// `None` for whatever is not exactly what was written.
    pub(in crate::ops) fn read<T: DeserializeOwned>(&self, name: &str, kind: &str) -> Option<T> {
        let bytes = fs::read(self.path(name, kind)).ok()?;
        let (hash, body) = bytes.strip_prefix(&self.header?)?.split_at_checked(HASH)?;
        if blake3::hash(body).as_bytes() != hash {
            return None;
        }
        serde_json::from_slice(body).ok()
    }

    /// Writes a value under its name in one step; says whether it did. A cache that cannot be written is no trouble:
    /// the next run is as slow as this one.
    pub(in crate::ops) fn write<T: Serialize>(&self, name: &str, kind: &str, value: &T) -> bool {
        let Some(header) = self.header else { return false };
        let Ok(body) = serde_json::to_vec(value) else { return false };
        let written = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.folder).and_then(|mut file| {
            file.write_all(&header)?;
            file.write_all(blake3::hash(&body).as_bytes())?;
            file.write_all(&body)?;
            file.persist(self.path(name, kind)).map_err(|error| error.error)
        });
        written.is_ok()
    }

    pub(in crate::ops) fn remove(&self, name: &str, kind: &str) {
        // What stays is not read either.
        let _ = fs::remove_file(self.path(name, kind));
    }

    fn path(&self, name: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{name}.{kind}"))
    }

    /// Removes all but the newest files of a kind, and what dead processes left.
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
        found.sort();
        // The newest file's time is now, as the file system has it.
        let Some(now) = found.last().map(|(modified, ..)| *modified) else { return };
        let mut left = found.iter().filter(|(_, is_temporary, _)| !is_temporary).count();
        for (modified, is_temporary, path) in found {
            let age = now.duration_since(modified).map_or(0, |age| age.as_secs());
            if is_temporary && age > FORGOTTEN {
                let _ = fs::remove_file(path);
            } else if !is_temporary && left > keep {
                left -= 1;
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Another build reads files in another way, so it cannot use what this one made of them; a program that was built
/// again has another size or another time.
fn header(program: &Metadata) -> [u8; HASH] {
    let version = env!("CARGO_PKG_VERSION");
    let identity = format!("squad cache {version} {} {:?}", program.len(), program.modified().ok());
    *blake3::hash(identity.as_bytes()).as_bytes()
}

const TEMPORARY: &str = "new-";
/// A temporary file this many seconds old was left by a process that died.
const FORGOTTEN: u64 = 3_600;
