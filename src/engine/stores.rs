//! What is kept of sessions, whether they are open or not: by the Copilot CLI in its home, and of command engines in
//! squad's local folder.
//!
//! Tools of agents can write there too, so nothing is followed that is a link.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::env::files::{Measured, is_folder, measure};

/// The store of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredSession {
    pub(crate) id: String,
    pub(crate) bytes: u64,
    /// When something was last written to it.
    pub(crate) modified: SystemTime,
    folder: PathBuf,
    /// A file elsewhere that is nothing without it.
    beside: PathBuf,
}

impl StoredSession {
    pub(crate) fn remove(&self) -> io::Result<()> {
        // Links in it are removed and not followed.
        fs::remove_dir_all(&self.folder)?;
        // There may be none.
        let _ = fs::remove_file(&self.beside);
        Ok(())
    }
}

/// The sessions that the Copilot CLI has stored in a home.
pub(crate) fn stored_sessions(home: &Path) -> Vec<StoredSession> {
    let sessions = home.join("session-state");
    let locks = sessions.join(".session-operation-locks");
    if is_folder(home) { stored_in(&sessions, &locks, "lock") } else { Vec::new() }
}

/// The output of command engines, each with the chat that its session goes on in.
pub(crate) fn stored_output(local: &Path) -> Vec<StoredSession> {
    stored_in(&local.join("output"), &local.join("chats"), "json")
}

fn stored_in(sessions: &Path, beside: &Path, extension: &str) -> Vec<StoredSession> {
    if !is_folder(sessions) {
        return Vec::new();
    }
    let read = |entry: fs::DirEntry| {
        let (folder, id) = (entry.path(), entry.file_name().into_string().ok()?);
        if id.starts_with('.') || !is_folder(&folder) {
            return None;
        }
        let made = entry.metadata().ok()?.modified().ok()?;
        let Measured { bytes, modified, .. } = measure([folder.clone()], usize::MAX);
        let modified = modified.map_or(made, |modified| modified.max(made));
        // Behind a link it would be another place's file.
        let beside = if is_folder(beside) { beside.join(format!("{id}.{extension}")) } else { PathBuf::new() };
        Some(StoredSession { id, bytes, modified, folder, beside })
    };
    fs::read_dir(sessions).into_iter().flatten().flatten().filter_map(read).collect()
}
