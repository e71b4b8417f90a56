//! Ensures a single watch per team. The kernel releases its lock when the process dies for any reason.
//!
//! ```text
//! .git/squad/watch/KEY.lock    locked while it runs
//! .git/squad/watch/KEY.json    its process and socket
//! ```
//!
//! `KEY` is derived from the team's folder and the work tree, so each team in each work tree has its own watch.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use interprocess::local_socket::tokio::Listener;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::env::lock;
use crate::git::Repository;
use crate::model::from_json;
use crate::ops::Workspace;
use crate::ops::run::host::{Endpoint, FromClient, FromHost, WatchState, ask, listen};
use crate::ops::run::local_file::{self, place_key};

/// How long a watch may take to say how it is. One that is starting its engine says nothing yet.
const STATE_TIMEOUT: Duration = Duration::from_millis(500);

/// The files of a watch.
#[derive(Clone, Debug)]
pub(crate) struct WatchFiles {
    lock: PathBuf,
    info: PathBuf,
    key: String,
}

/// The process that watches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Watcher {
    pub(crate) pid: u32,
    pub(crate) started: Timestamp,
    #[serde(flatten)]
    pub(crate) endpoint: Endpoint,
}

impl Watcher {
    /// `None`: it does not answer.
    pub(crate) fn state(&self) -> Option<WatchState> {
        match ask(&self.endpoint, &FromClient::Status {}, STATE_TIMEOUT) {
            Ok(FromHost::Watching(state)) => Some(*state),
            _ => None,
        }
    }
}

/// Held by a running watch.
pub(super) struct WatchLease {
    files: WatchFiles,
    endpoint: Endpoint,
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
        Self { lock: file("lock"), info: file("json"), key }
    }

    /// The running watch, if any.
    pub(crate) fn watcher(&self) -> Option<Watcher> {
        if !is_held(&self.lock) {
            return None;
        }
        from_json(fs::read(&self.info).ok()?).ok()
    }

    /// Acquires the lease. `None`: another watch holds it.
    pub(super) fn take(&self, started: Timestamp) -> io::Result<Option<WatchLease>> {
        let lock = lock::open(&self.lock)?;
        if !lock::try_take(&lock)? {
            return Ok(None);
        }
        // Left by a dead watch.
        if let Some(stale) = local_file::read::<Watcher>(&self.info) {
            stale.endpoint.clear();
        }
        let folder = self.lock.parent().unwrap_or(Path::new("."));
        let endpoint = Endpoint::new(folder, &self.key)?;
        let watcher = Watcher { pid: std::process::id(), started, endpoint: endpoint.clone() };
        local_file::replace(&self.info, &watcher)?;
        Ok(Some(WatchLease { files: self.clone(), endpoint, _lock: lock }))
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
    pub(super) fn listen(&self) -> io::Result<Listener> {
        listen(&self.endpoint)
    }
}

impl Drop for WatchLease {
    fn drop(&mut self) {
        // Remaining files are harmless: the lock is free, so they count as those of a dead watch.
        self.endpoint.clear();
        let _ = fs::remove_file(&self.files.info);
    }
}
