//! Snapshots of the work tree for a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::env::Clock;
use crate::env::files::read_regular;
use crate::git::{FetchedCommit, Landing, Repository, RepositoryState, WorkTreeSnapshot};
use crate::model::{Change, Content, GitChanges, OtherRuns, RunId, Slug, list};
use crate::ops::Project;
use crate::ops::ledger::journal::writer;
use crate::ops::run::actions::Actions;
use crate::ops::run::lease::RunFiles;
use crate::ops::run::local_file;
use crate::policy::Redactor;
use crate::pool::{Action, RunRepository};
use crate::sandbox::Sandbox;

/// Bytes of a file of which squad knows whether it has changed.
const LARGEST: u64 = 32 << 20;

pub(in crate::ops) struct RunSnapshots {
    repository: Repository,
    run: RunId,
    /// In whose folder of refs they are: the run's, or that of an agent's clone.
    name: String,
    is_clone: bool,
    owner: Option<Slug>,
    redactor: Redactor,
    clock: Clock,
    /// The number of snapshots so far.
    count: AtomicUsize,
    actions: Actions,
    /// The file of the repository's state.
    state_file: PathBuf,
}

impl RunSnapshots {
    /// `taken`: the number of its last snapshot.
    pub(in crate::ops) fn new(
        project: &Project,
        (run, files): (&RunId, &RunFiles),
        taken: usize,
        redactor: Redactor,
        clock: Clock,
    ) -> Self {
        let (repository, run) = (project.repository.clone(), run.clone());
        let actions = Actions::new(&repository, &project.local(), files);
        let state_file = files.repository.clone();
        let (name, is_clone, owner) = (run.to_string(), false, None);
        let count = AtomicUsize::new(taken);
        Self { repository, run, name, is_clone, owner, redactor, clock, count, actions, state_file }
    }

    /// Those of an agent's clone. `owner`: it mirrors one on another machine, where only that agent works.
    pub(super) fn of_clone(self, name: String, owner: Option<Slug>) -> Self {
        Self { name, is_clone: true, owner, ..self }
    }

    /// Keeps the state for the run's resumption, which without it does not know what happened to the repository.
    fn keep_state(&self, previous: Option<&WorkTreeSnapshot>, taken: &WorkTreeSnapshot) {
        if let Some(state) = taken.state().filter(|state| previous.and_then(WorkTreeSnapshot::state) != Some(state)) {
            let _ = local_file::replace(&self.state_file, &**state);
        }
    }
}

/// The repository's state at a run's last snapshot, if it is known.
pub(super) fn kept_state(files: &RunFiles) -> Option<RepositoryState> {
    local_file::read(&files.repository)
}

impl RunRepository for RunSnapshots {
    fn take(&self, previous: Option<&WorkTreeSnapshot>) -> Result<WorkTreeSnapshot, String> {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let name = (self.name.as_str(), number);
        let objection = |bytes: &[u8]| objection(&self.redactor, bytes);
        let taken = self.repository.take_snapshot(name, previous, objection, &writer(), self.clock.now());
        let taken = taken.map_err(|error| error.to_string())?;
        self.keep_state(previous, &taken);
        Ok(taken)
    }

    fn changed(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot) -> Result<Vec<Change>, String> {
        self.repository.changed_between(from, to).map_err(|error| error.to_string())
    }

    fn is_clone(&self) -> bool {
        self.is_clone
    }

    fn owner(&self) -> Option<&Slug> {
        self.owner.as_ref()
    }

    fn linked_name(&self) -> Option<String> {
        self.repository.linked_name()
    }

    fn git_changes(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot) -> Result<GitChanges, String> {
        if self.is_clone {
            // Its refs are the user's, which the agent cannot reach.
            return Ok(GitChanges::default());
        }
        match (from.state(), to.state()) {
            (Some(from), Some(to)) if from != to => {
                let changes = self.repository.git_changes(from, to, |moved| self.actions.is_squads(moved));
                let changes = changes.map_err(|error| error.to_string())?;
                Ok(self.actions.without_squads(changes))
            }
            _ => Ok(GitChanges::default()),
        }
    }

    fn announce(&self, action: Action<'_>) {
        self.actions.announce(action);
    }

    fn others(&self) -> (OtherRuns, OtherRuns) {
        self.actions.others()
    }

    fn uncommitted(&self, first: &WorkTreeSnapshot, paths: &BTreeSet<String>) -> Result<BTreeSet<String>, String> {
        self.repository.uncommitted_in(first, paths).map_err(|error| error.to_string())
    }

    fn commit(
        &self,
        agent: &Slug,
        snapshot: &WorkTreeSnapshot,
        paths: &[String],
        message: &str,
    ) -> Result<Landing, String> {
        let message = format!("{message}\n\nSquad-Run: {}\nSquad-Agent: {agent}\n", self.run);
        let identity = self.repository.identity();
        let landing = self.repository.commit_files(snapshot, paths, &message, identity.as_ref(), self.clock.now());
        landing.map_err(|error| error.to_string())
    }

    fn fetch_commits(&self, sandbox: &Sandbox) -> Result<Vec<FetchedCommit>, String> {
        let name = format!("{}_git", self.run);
        self.repository.fetch_from_agents(sandbox, &name).map_err(|error| error.to_string())
    }

    fn fingerprint(&self, path: &str) -> Option<blake3::Hash> {
        let bytes = read_regular(&self.repository.work_dir()?.join(path), LARGEST)?;
        Some(blake3::hash(&bytes))
    }

    fn diff(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot, paths: &[String]) -> Result<String, String> {
        self.repository.diff_between(from, to, paths).map_err(|error| error.to_string())
    }

    fn contents(&self, snapshot: &WorkTreeSnapshot, paths: &[String]) -> Result<BTreeMap<String, Content>, String> {
        self.repository.contents_of(snapshot, paths).map_err(|error| error.to_string())
    }
}

/// Why a file may not go into the object database. Binary files are checked too.
pub(super) fn objection(redactor: &Redactor, bytes: &[u8]) -> Option<String> {
    let kinds = redactor.kinds(&String::from_utf8_lossy(bytes));
    (!kinds.is_empty()).then(|| format!("it holds what looks like a secret: {}", list(kinds)))
}
