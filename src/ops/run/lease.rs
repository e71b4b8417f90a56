//! A lease says that a run is alive: a file whose lock the kernel frees when its process dies, however it dies.
//!
//! Beside `RUN.json` there may be `RUN.state`, what the run is at, and `RUN.requests`, a folder with what others ask of
//! it. They go with the lease; what a dead run left is cleared by whoever writes down its end.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::RunId;

/// Held while a run lives.
pub(crate) struct Lease {
    files: RunFiles,
    _file: File,
}

/// The files of a live run in squad's local folder.
#[derive(Clone, Debug)]
pub(crate) struct RunFiles {
    lease: PathBuf,
    pub(crate) state: PathBuf,
    /// A folder with a file for each request.
    pub(crate) requests: PathBuf,
}

impl RunFiles {
    pub(crate) fn new(local: &Path, run: &RunId) -> Self {
        let file = |kind: &str| local.join(FOLDER).join(format!("{run}.{kind}"));
        Self { lease: file(LEASE), state: file(STATE), requests: file(REQUESTS) }
    }

    /// What remains is recognised as a dead run's, and cleared with the next one's.
    fn remove(&self) {
        let _ = fs::remove_file(&self.state);
        let _ = fs::remove_dir_all(&self.requests);
    }
}

const FOLDER: &str = "runs";
const LEASE: &str = "json";
const STATE: &str = "state";
const REQUESTS: &str = "requests";

/// What a lease says of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LiveRun {
    pub(crate) run: RunId,
    pub(crate) pid: u32,
    pub(crate) started: jiff::Timestamp,
    pub(crate) message: String,
}

/// A lease as it is written: with the folder of the run's team in the ledger, so that whoever finds it dead can say so.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    run: LiveRun,
    /// `None`: an earlier squad wrote it.
    team: Option<String>,
}

impl Lease {
    pub(crate) fn take(local: &Path, run: &LiveRun, prefix: &str) -> io::Result<Self> {
        let folder = local.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let files = RunFiles::new(local, &run.run);
        // An earlier process of this run may have left some.
        files.remove();
        // Locked before it has its name, so that nobody sees it unlocked and takes it for a dead one's.
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(&folder)?;
        let written = Written { run: run.clone(), team: Some(prefix.to_owned()) };
        file.write_all(&serde_json::to_vec(&written)?)?;
        file.as_file().lock()?;
        // Another process may have resumed the same run meanwhile.
        let file = file.persist_noclobber(&files.lease).map_err(|error| error.error)?;
        Ok(Self { files, _file: file })
    }

    pub(crate) fn files(&self) -> RunFiles {
        self.files.clone()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.files.remove();
        // Left behind, it is recognised as a dead one's.
        let _ = fs::remove_file(&self.files.lease);
    }
}

/// The lease of a run whose process died, locked: whoever has it says what became of the run.
pub(crate) struct DeadRun {
    pub(crate) run: RunId,
    /// The folder of the run's team in the ledger; `None`: an earlier squad did not say.
    pub(crate) team: Option<String>,
    files: RunFiles,
    _file: File,
}

impl DeadRun {
    /// Gives the lease up, once there is nothing left to say.
    pub(crate) fn forget(self) {
        self.files.remove();
        // What stays is found again.
        let _ = fs::remove_file(&self.files.lease);
    }
}

/// What the leases of this clone say.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// Oldest first.
    pub(crate) live: Vec<LiveRun>,
    /// Runs whose processes died and whose end nobody has written down yet.
    pub(crate) dead: BTreeSet<RunId>,
}

impl Leases {
    /// What is known here of a run whose end is not recorded: another clone's may go on, or not.
    pub(crate) fn status(&self, run: &RunId) -> &'static str {
        if self.live.iter().any(|live| live.run == *run) {
            "running"
        } else if self.dead.contains(run) {
            "lost"
        } else {
            "unknown"
        }
    }
}

/// Looks, and changes nothing.
pub(crate) fn look(local: &Path) -> Leases {
    let mut found = Leases::default();
    for (_, file) in leases(local) {
        let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        match read(&file) {
            Some(Written { run, .. }) if is_held => found.live.push(run),
            Some(Written { run, .. }) => drop(found.dead.insert(run.run)),
            None => {}
        }
    }
    found.live.sort_by(|a, b| (a.started, &a.run).cmp(&(b.started, &b.run)));
    found
}

/// The runs whose processes died, as far as nobody else is about to write their end down.
pub(crate) fn dead(local: &Path) -> Vec<DeadRun> {
    clear_orphans(local);
    let mut runs = Vec::new();
    for (path, file) in leases(local) {
        if file.try_lock().is_err() {
            continue;
        }
        match read(&file) {
            Some(Written { run, team }) => {
                let files = RunFiles { lease: path, ..RunFiles::new(local, &run.run) };
                runs.push(DeadRun { run: run.run, team, files, _file: file });
            }
            // It names no run, so there is nothing to write down. Gone already, it need not be removed.
            None => drop(fs::remove_file(&path)),
        }
    }
    runs
}

/// Removes what belongs to no lease: somebody asked something of a run that ended just then.
fn clear_orphans(local: &Path) {
    let runs = paths(local).filter(|path| !is_kind(path, LEASE)).filter_map(|path| {
        let is_known = is_kind(&path, STATE) || is_kind(&path, REQUESTS);
        RunId::parse(path.file_stem().filter(|_| is_known)?.to_str()?)
    });
    for files in runs.map(|run| RunFiles::new(local, &run)) {
        // A lease is there before what belongs to it.
        if !files.lease.exists() {
            files.remove();
        }
    }
}

fn paths(local: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(local.join(FOLDER)).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_kind(path: &Path, kind: &str) -> bool {
    path.extension().is_some_and(|extension| extension == kind)
}

fn leases(local: &Path) -> impl Iterator<Item = (PathBuf, File)> {
    let leases = paths(local).filter(|path| is_kind(path, LEASE));
    leases.filter_map(|path| File::open(&path).ok().map(|file| (path, file)))
}

/// By the handle that may hold the lock: Windows lets no other read.
fn read(mut file: &File) -> Option<Written> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}
