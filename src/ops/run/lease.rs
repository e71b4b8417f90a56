//! A lease shows that a run is alive: a locked file whose lock the kernel frees when the process dies, however it dies.
//!
//! Next to `RUN.json` there may be `RUN.state`, the run's current activity, and `RUN.requests`, a folder with requests from
//! other processes. They are removed with the lease; the process that records a dead run's end removes them too.
//! `RUN.actions`, for the other runs in the work tree, stays as long as any of them may read it, and `RUN.repository`, for
//! the run's resumption, until it has ended.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::env::lock;
use crate::model::RunId;

/// Held while a run lives.
pub(crate) struct Lease {
    local: PathBuf,
    files: RunFiles,
    content: Vec<u8>,
    file: Mutex<File>,
    /// The run has no recorded end, so the file stays.
    is_kept: AtomicBool,
}

/// The files of a live run in squad's local folder.
#[derive(Clone, Debug)]
pub(crate) struct RunFiles {
    lease: PathBuf,
    pub(crate) state: PathBuf,
    /// A folder with one file per request.
    pub(crate) requests: PathBuf,
    /// What its agents do; see `ops::run::actions`.
    pub(crate) actions: PathBuf,
    /// The repository's state at its last snapshot.
    pub(crate) repository: PathBuf,
}

impl RunFiles {
    pub(crate) fn new(local: &Path, run: &RunId) -> Self {
        let file = |kind: &str| local.join(FOLDER).join(format!("{run}.{kind}"));
        let (lease, state, requests) = (file(LEASE), file(STATE), file(REQUESTS));
        Self { lease, state, requests, actions: file(ACTIONS), repository: file(REPOSITORY) }
    }

    /// Files that cannot be removed are recognised as a dead run's and removed later.
    fn remove(&self) {
        let _ = fs::remove_file(&self.state);
        let _ = fs::remove_dir_all(&self.requests);
    }
}

const FOLDER: &str = "runs";
const LEASE: &str = "json";
const STATE: &str = "state";
const REQUESTS: &str = "requests";
const ACTIONS: &str = "actions";
/// What squad writes itself, in one file for all runs.
const WRITES: &str = "writes";
const REPOSITORY: &str = "repository";

/// A live run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LiveRun {
    pub(crate) run: RunId,
    pub(crate) pid: u32,
    pub(crate) started: jiff::Timestamp,
    pub(crate) message: String,
}

/// The content of a lease file. It names the team's folder in the ledger, where a dead run's end is recorded.
#[derive(Serialize, Deserialize)]
struct LeaseFile {
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
        let content = serde_json::to_vec(&LeaseFile { run: run.clone(), team: Some(prefix.to_owned()) })?;
        let file = Mutex::new(write_locked(&folder, &files.lease, &content)?);
        Ok(Self { local: local.to_owned(), files, content, file, is_kept: AtomicBool::new(false) })
    }

    pub(crate) fn files(&self) -> RunFiles {
        self.files.clone()
    }

    /// Takes the lease again if its file is gone: somebody has deleted squad's local folder.
    pub(crate) fn restore(&self) {
        let Some(folder) = self.files.lease.parent().filter(|_| !self.files.lease.exists()) else { return };
        let written = fs::create_dir_all(folder).and_then(|()| write_locked(folder, &self.files.lease, &self.content));
        match written {
            Ok(file) => *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file,
            Err(error) => tracing::debug!("the lease cannot be restored: {error}"),
        }
    }

    /// Leaves the lease behind as that of a dead run, so that a later command records the run's end.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }
}

/// Writes a lease. It is locked before it gets its name, so that nobody can see it unlocked and take the run for dead.
fn write_locked(folder: &Path, lease: &Path, content: &[u8]) -> io::Result<File> {
    let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().lock()?;
    // Another process may have resumed the same run meanwhile.
    file.persist_noclobber(lease).map_err(|error| error.error)
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.files.remove();
        if !self.is_kept.load(Ordering::Relaxed) {
            let _ = fs::remove_file(&self.files.repository);
            // If this fails, the file is recognised as a dead run's.
            let _ = fs::remove_file(&self.files.lease);
        }
        clear_actions(&self.local);
    }
}

/// The locked lease of a run whose process died; its holder records the run's end.
pub(crate) struct DeadRun {
    pub(crate) run: RunId,
    /// The team's folder in the ledger; `None`: an earlier squad did not write it.
    pub(crate) team: Option<String>,
    files: RunFiles,
    _file: File,
}

impl DeadRun {
    /// Removes the lease, once the run's end is recorded.
    pub(crate) fn forget(self) {
        self.files.remove();
        // If this fails, the lease is found again.
        let _ = fs::remove_file(&self.files.lease);
    }
}

/// The runs of this clone that have a lease.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// Oldest first.
    pub(crate) live: Vec<LiveRun>,
    /// Runs whose processes died and whose end is not recorded yet.
    pub(crate) dead: BTreeSet<RunId>,
}

impl Leases {
    /// Whether a run has a lease, be its process alive or dead.
    pub(crate) fn has(&self, run: &RunId) -> bool {
        self.live.iter().any(|live| live.run == *run) || self.dead.contains(run)
    }

    /// The status of a run whose end is not recorded. Another clone's run is `unknown`.
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

/// Reads the leases. Changes nothing.
pub(crate) fn look(local: &Path) -> Leases {
    let mut found = Leases::default();
    for (_, file) in leases(local) {
        let is_held = lock::is_held(&file);
        match read(&file) {
            Some(LeaseFile { run, .. }) if is_held => found.live.push(run),
            Some(LeaseFile { run, .. }) => drop(found.dead.insert(run.run)),
            None => {}
        }
    }
    found.live.sort_by(|a, b| (a.started, &a.run).cmp(&(b.started, &b.run)));
    found
}

/// The runs whose processes died, except those whose end another process is just recording.
pub(crate) fn dead(local: &Path) -> Vec<DeadRun> {
    clear_orphans(local);
    let mut runs = Vec::new();
    for (path, file) in leases(local) {
        if file.try_lock().is_err() {
            continue;
        }
        match read(&file) {
            Some(LeaseFile { run, team }) => {
                let files = RunFiles { lease: path, ..RunFiles::new(local, &run.run) };
                runs.push(DeadRun { run: run.run, team, files, _file: file });
            }
            // It names no run, so there is no end to record.
            None => drop(fs::remove_file(&path)),
        }
    }
    runs
}

/// Removes files without a lease, such as a request that arrived just as the run ended.
fn clear_orphans(local: &Path) {
    let runs = paths(local).filter(|path| !is_kind(path, LEASE)).filter_map(|path| {
        let is_known = is_kind(&path, STATE) || is_kind(&path, REQUESTS);
        RunId::parse(path.file_stem().filter(|_| is_known)?.to_str()?)
    });
    for files in runs.map(|run| RunFiles::new(local, &run)) {
        // The lease is always created first.
        if !files.lease.exists() {
            files.remove();
        }
    }
    clear_actions(local);
}

/// The files in which runs announce their actions.
pub(crate) fn action_files(local: &Path) -> impl Iterator<Item = PathBuf> {
    paths(local).filter(|path| is_kind(path, ACTIONS) || is_kind(path, WRITES))
}

/// Removes the actions of ended runs, unless another run may have to read them, or what squad wrote, one that is resumed.
fn clear_actions(local: &Path) {
    if look(local).live.is_empty() {
        let is_resumable = repository_files(local).next().is_some();
        let is_over = |path: &PathBuf| is_kind(path, ACTIONS) || !is_resumable;
        action_files(local).filter(is_over).for_each(|path| drop(fs::remove_file(path)));
    }
}

/// The runs with a state of the repository, for their resumption.
pub(crate) fn repository_files(local: &Path) -> impl Iterator<Item = (RunId, PathBuf)> {
    let files = paths(local).filter(|path| is_kind(path, REPOSITORY));
    files.filter_map(|path| Some((RunId::parse(path.file_stem()?.to_str()?)?, path)))
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

/// Reads through the handle that may hold the lock: Windows lets no other handle read.
fn read(mut file: &File) -> Option<LeaseFile> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of one run × another that lives, or none.
    #[test]
    fn actions_stay_as_long_as_a_run_lives_that_may_read_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let take = |run: &str| {
            let run = RunId::new(run);
            let live =
                LiveRun { run, pid: std::process::id(), started: jiff::Timestamp::UNIX_EPOCH, message: String::new() };
            let lease = Lease::take(folder.path(), &live, "").expect("a lease");
            fs::write(lease.files().actions, "x").expect("it is written");
            lease
        };
        let (one, two) = (take("20260301-090000-aaaaaa"), take("20260301-090000-bbbbbb"));
        for (ends, left) in [(one, 2), (two, 0)] {
            drop(ends);
            assert_eq!(action_files(folder.path()).count(), left);
        }
    }

    /// With a live lease and with none, as after a request that came too late.
    #[test]
    fn a_request_is_removed_only_if_its_run_is_gone() {
        for lives in [true, false] {
            let folder = tempfile::tempdir().expect("a folder");
            let run = RunId::new("20260301-090000-aaaaaa");
            let (pid, started) = (std::process::id(), jiff::Timestamp::UNIX_EPOCH);
            let live = LiveRun { run, pid, started, message: String::new() };
            let lease = Lease::take(folder.path(), &live, "").expect("a lease");
            let files = lease.files();
            let lease = Some(lease).filter(|_| lives);
            fs::create_dir_all(&files.requests).expect("a folder");
            fs::write(&files.state, "x").expect("it is written");
            assert!(dead(folder.path()).is_empty());
            assert_eq!((files.requests.exists(), files.state.exists()), (lives, lives));
            drop(lease);
        }
    }
}
