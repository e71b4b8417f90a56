//! A lease shows that a run is alive: a locked file whose lock the kernel frees when the process dies, however it dies.
//!
//! `RUN.json` names the socket on which the run answers other processes. It is removed with the lease, also by the process
//! that records a dead run's end.
//! `RUN.actions`, for the other runs in the work tree, stays as long as any of them may read it, then as `RUN.written` for
//! the run's resumption; `RUN.repository`, for that too, until it has ended.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::env::lock;
use crate::model::{RunId, Sort, from_json, to_json};
use crate::ops::run::host::Endpoint;

/// Held while a run lives.
pub(crate) struct Lease {
    local: PathBuf,
    files: RunFiles,
    endpoint: Endpoint,
    content: Vec<u8>,
    file: Mutex<File>,
    /// The run has no recorded end, so the file stays.
    is_kept: AtomicBool,
}

/// The files of a live run in squad's local folder.
#[derive(Clone, Debug)]
pub(crate) struct RunFiles {
    lease: PathBuf,
    /// What its agents do; see `ops::run::actions`.
    pub(crate) actions: PathBuf,
    /// What the agents of its killed process did, where no other run looks.
    pub(crate) written: PathBuf,
    /// The repository's state at its last snapshot.
    pub(crate) repository: PathBuf,
}

impl RunFiles {
    pub(crate) fn new(local: &Path, run: &RunId) -> Self {
        let file = |kind: &str| local.join(FOLDER).join(format!("{run}.{kind}"));
        Self { lease: file(LEASE), actions: file(ACTIONS), written: file(WRITTEN), repository: file(REPOSITORY) }
    }

    /// Those of an agent's clone, in a folder where no other run looks: none works there.
    pub(crate) fn of_clone(&self, folder: &Path) -> Self {
        Self { actions: folder.join(ACTIONS), repository: folder.join(REPOSITORY), ..self.clone() }
    }
}

const FOLDER: &str = "runs";
const LEASE: &str = "json";
const ACTIONS: &str = "actions";
const WRITTEN: &str = "written";
/// What squad writes itself, in one file for all runs.
const WRITES: &str = "writes";
const REPOSITORY: &str = "repository";

/// How often a run looks for its lease, which may have been deleted with squad's local folder.
pub(in crate::ops) const LEASE_CHECK: Duration = Duration::from_millis(200);

/// How often, and at which interval, the lease of a dead process is looked at: the kernel frees it when the last process
/// that has the file open is gone.
pub(in crate::ops) const LEASE_CHECKS: usize = 50;
pub(in crate::ops) const LEASE_PAUSE: Duration = Duration::from_millis(20);

/// A live run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LiveRun {
    pub(crate) run: RunId,
    pub(crate) pid: u32,
    pub(crate) started: jiff::Timestamp,
    pub(crate) message: String,
    /// Where it answers other processes; `None`: an earlier squad carries it out.
    #[serde(skip)]
    pub(crate) endpoint: Option<Endpoint>,
}

impl LiveRun {
    /// The run has ended, and its work is being merged by a process.
    pub(crate) fn merged_by(run: &RunId, started: jiff::Timestamp) -> Self {
        let (pid, message) = (std::process::id(), format!("squad merge {run}"));
        Self { run: run.clone(), pid, started, message, endpoint: None }
    }

    pub(crate) fn is_merged(&self) -> bool {
        self.message == format!("squad merge {}", self.run)
    }
}

/// The content of a lease file. It names the team's folder in the ledger, where a dead run's end is recorded.
#[derive(Serialize, Deserialize)]
struct LeaseFile {
    #[serde(flatten)]
    run: LiveRun,
    /// `None`: an earlier squad wrote it.
    team: Option<String>,
    endpoint: Option<Endpoint>,
}

impl Lease {
    pub(crate) fn take(local: &Path, run: &LiveRun, prefix: &str) -> io::Result<Self> {
        let folder = local.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let files = RunFiles::new(local, &run.run);
        if files.lease.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let endpoint = Endpoint::new(&folder, run.run.as_str())?;
        let (team, known) = (Some(prefix.to_owned()), Some(endpoint.clone()));
        let content = to_json(&LeaseFile { run: run.clone(), team, endpoint: known })?.into_bytes();
        let file = Mutex::new(write_locked(&folder, &files.lease, &content)?);
        Ok(Self { local: local.to_owned(), files, endpoint, content, file, is_kept: AtomicBool::new(false) })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn files(&self) -> RunFiles {
        self.files.clone()
    }

    /// Takes the lease again if its file is gone: somebody has deleted squad's local folder. Returns whether it was gone.
    pub(crate) fn restore(&self) -> bool {
        let Some(folder) = self.files.lease.parent().filter(|_| !self.files.lease.exists()) else { return false };
        let written = fs::create_dir_all(folder).and_then(|()| write_locked(folder, &self.files.lease, &self.content));
        match written {
            Ok(file) => *self.file.lock() = file,
            Err(error) => tracing::debug!("the lease cannot be restored: {error}"),
        }
        true
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
        self.endpoint.clear();
        if !self.is_kept.load(Ordering::Relaxed) {
            let _ = fs::remove_file(&self.files.repository);
            let _ = fs::remove_file(&self.files.written);
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
    path: PathBuf,
    endpoint: Option<Endpoint>,
    _file: File,
}

impl DeadRun {
    /// Removes the lease, once the run's end is recorded.
    pub(crate) fn forget(self) {
        self.endpoint.iter().for_each(Endpoint::clear);
        // If this fails, the lease is found again.
        let _ = fs::remove_file(&self.path);
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
    pub(crate) fn live(&self, run: &RunId) -> Option<&LiveRun> {
        self.live.iter().find(|live| live.run == *run)
    }

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
            Some(LeaseFile { run, endpoint, .. }) if is_held => found.live.push(LiveRun { endpoint, ..run }),
            Some(LeaseFile { run, .. }) => drop(found.dead.insert(run.run)),
            None => {}
        }
        // Closing it is not enough: a child that another thread has just forked has the file open, too.
        let _ = file.unlock();
    }
    found.live.stable_sort_by(|a, b| (a.started, &a.run).cmp(&(b.started, &b.run)));
    found
}

/// The runs whose processes died, except those whose end another process is just recording.
pub(crate) fn dead(local: &Path) -> Vec<DeadRun> {
    clear_actions(local);
    let mut runs = Vec::new();
    for (path, file) in leases(local) {
        if file.try_lock().is_err() {
            continue;
        }
        match read(&file) {
            Some(LeaseFile { run, team, endpoint }) => {
                runs.push(DeadRun { run: run.run, team, path, endpoint, _file: file });
            }
            // It names no run, so there is no end to record.
            None => drop(fs::remove_file(&path)),
        }
    }
    runs
}

/// The files in which runs announce their actions.
pub(crate) fn action_files(local: &Path) -> impl Iterator<Item = PathBuf> {
    paths(local).filter(|path| is_kind(path, ACTIONS) || is_kind(path, WRITES))
}

/// Removes the actions of ended runs, unless another run may have to read them, or one that is resumed what it did itself
/// or what squad wrote.
fn clear_actions(local: &Path) {
    if look(local).live.is_empty() {
        let is_resumable = repository_files(local).next().is_some();
        for path in action_files(local) {
            // If this fails, the next command tries again.
            let _ = match is_kind(&path, ACTIONS) {
                true if path.with_extension(REPOSITORY).exists() => fs::rename(&path, path.with_extension(WRITTEN)),
                true => fs::remove_file(&path),
                false if is_resumable => Ok(()),
                false => fs::remove_file(&path),
            };
        }
        let written = paths(local).filter(|path| is_kind(path, WRITTEN));
        written.filter(|path| !path.with_extension(REPOSITORY).exists()).for_each(|path| drop(fs::remove_file(path)));
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
    from_json(bytes).ok()
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
            let (pid, started, message) = (std::process::id(), jiff::Timestamp::UNIX_EPOCH, String::new());
            let live = LiveRun { run, pid, started, message, endpoint: None };
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

    /// What runs did × what squad wrote, with and without a run that may be resumed.
    #[test]
    fn what_squad_wrote_stays_for_a_run_that_may_be_resumed() {
        for is_resumable in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let runs = folder.path().join(FOLDER);
            fs::create_dir(&runs).expect("a folder");
            for name in ["squad.writes", "a.actions", "20260301-090000-aaaaaa.actions"] {
                fs::write(runs.join(name), "x").expect("a file");
            }
            if is_resumable {
                fs::write(runs.join("20260301-090000-aaaaaa.repository"), "x").expect("a file");
            }
            clear_actions(folder.path());
            let own = "20260301-090000-aaaaaa.written";
            let is_there = ["squad.writes", "a.actions", own].map(|name| runs.join(name).exists());
            assert_eq!(is_there, [is_resumable, false, is_resumable]);
        }
    }
}
