//! Snapshots of the work tree for a run.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::env::Clock;
use crate::git::{Repository, WorkTreeSnapshot};
use crate::model::{Change, RunId, list};
use crate::ops::Project;
use crate::ops::ledger::journal::writer;
use crate::policy::Redactor;
use crate::pool::TakeSnapshots;

pub(in crate::ops) struct RunSnapshots {
    repository: Repository,
    run: RunId,
    redactor: Redactor,
    clock: Clock,
    /// The number of snapshots so far.
    count: AtomicUsize,
}

impl RunSnapshots {
    /// `taken`: the number of its last snapshot.
    pub(in crate::ops) fn new(project: &Project, run: &RunId, taken: usize, redactor: Redactor, clock: Clock) -> Self {
        let (repository, run) = (project.repository.clone(), run.clone());
        Self { repository, run, redactor, clock, count: AtomicUsize::new(taken) }
    }
}

impl TakeSnapshots for RunSnapshots {
    fn take(&self, previous: Option<&WorkTreeSnapshot>) -> Result<WorkTreeSnapshot, String> {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let name = (self.run.as_str(), number);
        let objection = |bytes: &[u8]| objection(&self.redactor, bytes);
        let taken = self.repository.take_snapshot(name, previous, objection, &writer(), self.clock.now());
        taken.map_err(|error| error.to_string())
    }

    fn changed(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot) -> Result<Vec<Change>, String> {
        self.repository.changed_between(from, to).map_err(|error| error.to_string())
    }

    fn diff(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot, paths: &[String]) -> Result<String, String> {
        self.repository.diff_between(from, to, paths).map_err(|error| error.to_string())
    }
}

/// Why a file may not go into the object database. Binary files are checked too.
fn objection(redactor: &Redactor, bytes: &[u8]) -> Option<String> {
    let kinds = redactor.kinds(&String::from_utf8_lossy(bytes));
    (!kinds.is_empty()).then(|| format!("it holds what looks like a secret: {}", list(kinds)))
}
