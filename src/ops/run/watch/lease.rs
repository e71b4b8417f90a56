//! Ensures a single watch per team. The kernel releases its lock when the process dies for any reason.
//!
//! ```text
//! .git/squad/watch/KEY.lock    locked while it runs
//! .git/squad/watch/KEY.json    its process and socket
//! .git/squad/watch/KEY.state   its current state
//! ```
//!
//! `KEY` is derived from the team's folder and the work tree, so each team in each work tree has its own watch.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use interprocess::local_socket::{GenericFilePath, Name, ToFsName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::env::lock;
use crate::git::Repository;
use crate::ops::Workspace;
use crate::ops::run::local_file::{self, place_key};

/// Most bytes of a socket path on any system: macOS allows 104 including the terminating zero.
const MAX_SOCKET: usize = 100;

/// The files of a watch.
#[derive(Clone, Debug)]
pub(crate) struct WatchFiles {
    lock: PathBuf,
    info: PathBuf,
    pub(super) state: PathBuf,
    key: String,
}

/// The process that watches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Watcher {
    pub(crate) pid: u32,
    pub(crate) started: Timestamp,
    /// The version of squad.
    pub(crate) version: String,
    pub(crate) protocol: u32,
    /// Where it listens.
    pub(crate) socket: String,
}

/// Held by a running watch.
pub(super) struct WatchLease {
    files: WatchFiles,
    socket: PathBuf,
    _lock: File,
}

impl WatchFiles {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        Self::new(&workspace.repository, &workspace.folder_in_repository())
    }

    /// `team`: its folder, relative to the repository's root.
    pub(crate) fn new(repository: &Repository, team: &str) -> Self {
        let key = place_key(repository, team);
        let folder = repository.own_folder().join("watch");
        let file = |kind: &str| folder.join(format!("{key}.{kind}"));
        Self { lock: file("lock"), info: file("json"), state: file("state"), key }
    }

    /// The running watch, if any.
    pub(crate) fn watcher(&self) -> Option<Watcher> {
        if !is_held(&self.lock) {
            return None;
        }
        serde_json::from_slice(&fs::read(&self.info).ok()?).ok()
    }

    /// The socket's path: next to the lock, or if that is too long, in a private temporary folder.
    fn socket(&self) -> io::Result<PathBuf> {
        if cfg!(windows) {
            return Ok(PathBuf::from(format!(r"\\.\pipe\squad-{}", self.key)));
        }
        let beside = self.lock.with_extension("sock");
        if beside.as_os_str().len() <= MAX_SOCKET {
            return Ok(beside);
        }
        let mut folder = tempfile::Builder::new();
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        Ok(folder.prefix("squad-").tempdir()?.keep().join("socket"))
    }

    /// Acquires the lease. `None`: another watch holds it.
    pub(super) fn take(&self, started: Timestamp) -> io::Result<Option<WatchLease>> {
        let lock = lock::open(&self.lock)?;
        if !lock::try_take(&lock)? {
            return Ok(None);
        }
        // Left by a dead watch.
        if let Some(stale) = local_file::read::<Watcher>(&self.info) {
            clear(Path::new(&stale.socket));
        }
        let socket = self.socket()?;
        let _ = fs::remove_file(&socket);
        let (pid, version) = (std::process::id(), env!("CARGO_PKG_VERSION").to_owned());
        let name = socket.display().to_string();
        let watcher = Watcher { pid, started, version, protocol: super::wire::PROTOCOL, socket: name };
        local_file::replace(&self.info, &watcher)?;
        Ok(Some(WatchLease { files: self.clone(), socket, _lock: lock }))
    }
}

/// Whether any team of this repository is watched, in any work tree.
pub(in crate::ops) fn is_anywhere(local: &Path) -> bool {
    let files = fs::read_dir(local.join("watch")).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "lock")).any(|path| is_held(&path))
}

fn is_held(lock: &Path) -> bool {
    File::open(lock).is_ok_and(|lock| lock::is_held(&lock))
}

impl WatchLease {
    pub(super) fn socket(&self) -> io::Result<Name<'static>> {
        name(&self.socket)
    }
}

impl Drop for WatchLease {
    fn drop(&mut self) {
        // Remaining files are harmless: the lock is free, so they count as those of a dead watch.
        clear(&self.socket);
        for path in [&self.files.info, &self.files.state] {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes a socket and the folder made for it, if that is empty.
fn clear(socket: &Path) {
    let _ = fs::remove_file(socket);
    if let Some(folder) = socket.parent().filter(|_| socket.file_name().is_some_and(|name| name == "socket")) {
        let _ = fs::remove_dir(folder);
    }
}

pub(super) fn name(socket: &Path) -> io::Result<Name<'static>> {
    socket.to_path_buf().to_fs_name::<GenericFilePath>()
}
