//! Who watches a team: one process, whose lock the kernel frees when it dies, however it dies.
//!
//! ```text
//! .git/squad/watch/KEY.lock    held while it lives
//! .git/squad/watch/KEY.json    who it is and where it is reached
//! .git/squad/watch/KEY.state   what it is at
//! ```
//!
//! `KEY` stands for the team's place and the work tree, so each team of each work tree has a watch of its own.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use interprocess::local_socket::{GenericFilePath, Name, ToFsName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::git::Repository;
use crate::ops::Workspace;
use crate::ops::run::local_file::{place_key, read, replace};

/// Bytes that the name of a socket may have everywhere: macOS allows 104, with the zero at its end.
const LONGEST_SOCKET: usize = 100;

/// The files of a watch.
#[derive(Clone, Debug)]
pub(crate) struct WatchFiles {
    lock: PathBuf,
    about: PathBuf,
    pub(super) state: PathBuf,
    key: String,
}

/// Who watches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Watcher {
    pub(crate) pid: u32,
    pub(crate) started: Timestamp,
    /// Squad's.
    pub(crate) version: String,
    pub(crate) protocol: u32,
    /// Where it listens.
    pub(crate) socket: String,
}

/// Held while a watch lives.
pub(super) struct WatchLease {
    files: WatchFiles,
    socket: PathBuf,
    _lock: File,
}

impl WatchFiles {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        Self::new(&workspace.repository, &workspace.folder_in_repository())
    }

    /// `team`: its folder, from the repository's root.
    pub(crate) fn new(repository: &Repository, team: &str) -> Self {
        let key = place_key(repository, team);
        let folder = repository.common_dir().join("squad").join("watch");
        let file = |kind: &str| folder.join(format!("{key}.{kind}"));
        Self { lock: file("lock"), about: file("json"), state: file("state"), key }
    }

    /// The watch that is alive; `None`: there is none.
    pub(crate) fn watcher(&self) -> Option<Watcher> {
        if !is_held(&self.lock) {
            return None;
        }
        serde_json::from_slice(&fs::read(&self.about).ok()?).ok()
    }

    /// Where it listens: beside its lock, or where a name that long is none, in a folder that nobody else can enter.
    fn socket(&self) -> io::Result<PathBuf> {
        if cfg!(windows) {
            return Ok(PathBuf::from(format!(r"\\.\pipe\squad-{}", self.key)));
        }
        let beside = self.lock.with_extension("sock");
        if beside.as_os_str().len() <= LONGEST_SOCKET {
            return Ok(beside);
        }
        let mut folder = tempfile::Builder::new();
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        Ok(folder.prefix("squad-").tempdir()?.keep().join("socket"))
    }

    /// Becomes the watch of its team. `None`: another one is.
    pub(super) fn take(&self, started: Timestamp) -> io::Result<Option<WatchLease>> {
        fs::create_dir_all(self.lock.parent().unwrap_or(Path::new(".")))?;
        let lock = File::options().create(true).truncate(false).write(true).open(&self.lock)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // A dead one's.
        if let Some(dead) = read::<Watcher>(&self.about) {
            clear(Path::new(&dead.socket));
        }
        let socket = self.socket()?;
        let _ = fs::remove_file(&socket);
        let (pid, version) = (std::process::id(), env!("CARGO_PKG_VERSION").to_owned());
        let name = socket.display().to_string();
        let watcher = Watcher { pid, started, version, protocol: super::wire::PROTOCOL, socket: name };
        let folder = self.lock.parent().unwrap_or(Path::new("."));
        replace(folder, &self.about, &watcher)?;
        Ok(Some(WatchLease { files: self.clone(), socket, _lock: lock }))
    }
}

/// Whether any team of this repository is watched, in any work tree.
pub(in crate::ops) fn is_anywhere(local: &Path) -> bool {
    let files = fs::read_dir(local.join("watch")).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "lock")).any(|path| is_held(&path))
}

fn is_held(lock: &Path) -> bool {
    File::open(lock).is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl WatchLease {
    pub(super) fn socket(&self) -> io::Result<Name<'static>> {
        name(&self.socket)
    }
}

impl Drop for WatchLease {
    fn drop(&mut self) {
        // What stays is a dead one's, and known to be.
        clear(&self.socket);
        for path in [&self.files.about, &self.files.state] {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes a socket, and the folder that was made for it alone. One with anything else in it stays.
fn clear(socket: &Path) {
    let _ = fs::remove_file(socket);
    if let Some(folder) = socket.parent().filter(|_| socket.file_name().is_some_and(|name| name == "socket")) {
        let _ = fs::remove_dir(folder);
    }
}

pub(super) fn name(socket: &Path) -> io::Result<Name<'static>> {
    socket.to_path_buf().to_fs_name::<GenericFilePath>()
}
