//! What the CLI keeps of its sessions in its home, whether they are open or not.
//!
//! Tools of agents can write there too, so nothing is followed that is a link.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The store of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredSession {
    pub(crate) id: String,
    pub(crate) bytes: u64,
    /// When something was last written to it.
    pub(crate) modified: SystemTime,
    folder: PathBuf,
    lock: PathBuf,
}

impl StoredSession {
    pub(crate) fn remove(&self) -> io::Result<()> {
        // Links in it are removed and not followed.
        fs::remove_dir_all(&self.folder)?;
        // Without its session a lock is only an empty file.
        let _ = fs::remove_file(&self.lock);
        Ok(())
    }
}

/// The sessions that are stored in a home.
pub(crate) fn stored_sessions(home: &Path) -> Vec<StoredSession> {
    let sessions = home.join("session-state");
    if !is_folder(home) || !is_folder(&sessions) {
        return Vec::new();
    }
    let locks = sessions.join(".session-operation-locks");
    let read = |entry: fs::DirEntry| {
        let (folder, id) = (entry.path(), entry.file_name().into_string().ok()?);
        if id.starts_with('.') || !is_folder(&folder) {
            return None;
        }
        let mut modified = entry.metadata().ok()?.modified().ok()?;
        let bytes = measure(&folder, &mut modified);
        // Behind a link it would be another place's file.
        let lock = if is_folder(&locks) { locks.join(format!("{id}.lock")) } else { PathBuf::new() };
        Some(StoredSession { id, bytes, modified, folder, lock })
    };
    fs::read_dir(&sessions).into_iter().flatten().flatten().filter_map(read).collect()
}

/// The bytes of all files below a folder, and when the last of them was written.
fn measure(folder: &Path, modified: &mut SystemTime) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            bytes += measure(&entry.path(), modified);
        } else {
            bytes += about.len();
            *modified = about.modified().map_or(*modified, |at| at.max(*modified));
        }
    }
    bytes
}

/// Not by a link.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_dir())
}
