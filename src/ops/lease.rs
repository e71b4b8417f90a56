//! A lease says that a run is alive: a file whose lock the kernel frees when its process dies, however it dies.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::RunId;

/// Held while a run lives.
pub(crate) struct Lease {
    path: PathBuf,
    _file: File,
}

/// What a lease says of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LiveRun {
    pub(crate) run: RunId,
    pub(crate) pid: u32,
    pub(crate) started: jiff::Timestamp,
    pub(crate) message: String,
}

impl Lease {
    pub(crate) fn take(local: &Path, run: &LiveRun) -> io::Result<Self> {
        let folder = local.join("runs");
        fs::create_dir_all(&folder)?;
        // Locked before it has its name, so that nobody sees it unlocked and takes it for a dead one's.
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(&folder)?;
        file.write_all(&serde_json::to_vec(run)?)?;
        file.as_file().lock()?;
        let path = folder.join(format!("{}.json", run.run));
        let file = file.persist(&path).map_err(|error| error.error)?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Left behind, it is recognised as a dead one's.
        let _ = fs::remove_file(&self.path);
    }
}

/// The runs that are alive now, oldest first. Leases of dead ones are removed.
pub(crate) fn live(local: &Path) -> Vec<LiveRun> {
    let Ok(entries) = fs::read_dir(local.join("runs")) else { return Vec::new() };
    let mut runs = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_lease = path.extension().is_some_and(|extension| extension == "json");
        let Ok(file) = File::open(&path) else { continue };
        if !is_lease {
            continue;
        }
        if file.try_lock_shared().is_ok() {
            drop(file);
            let _ = fs::remove_file(&path);
        } else if let Some(run) = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            runs.push(run);
        }
    }
    runs.sort_by(|a: &LiveRun, b| (a.started, &a.run).cmp(&(b.started, &b.run)));
    runs
}
