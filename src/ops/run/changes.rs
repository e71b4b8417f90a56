//! What a run changed in the work tree, from its snapshots: `squad diff`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{FileStep, WorkTreeSnapshot};
use crate::model::{
    Change, ChangeClass, ChangeEvidence, Event, EventKind, IntoMap, IntoSet, RunId, SkippedFile, Slug, Sort, list,
};
use crate::ops::Workspace;
use crate::ops::ledger::log::{self, Choice, one_run, timeline};
use crate::ops::ledger::lost;
use crate::ops::run::before::{Since, before};
use crate::ops::run::cancel::{agent_named, not_in_run};
use crate::ops::run::clones::{self, AgentWork};
use crate::pool::Interval;
use crate::record::Read;

/// What somebody did to a file between two snapshots of a run.
#[derive(Clone, Debug)]
pub(in crate::ops) struct Piece {
    pub(in crate::ops) step: FileStep,
    pub(in crate::ops) class: ChangeClass,
    pub(in crate::ops) by: BTreeSet<Slug>,
    how: Option<ChangeEvidence>,
    /// Another run may have changed it at the same time.
    pub(in crate::ops) is_beside: bool,
    /// It is in a clone, and not in the work tree.
    pub(in crate::ops) is_in_clone: bool,
}

/// A run's changes, in the order in which they were made.
pub(in crate::ops) struct RunChanges {
    pub(in crate::ops) run: RunId,
    pub(in crate::ops) events: Vec<Event>,
    pub(in crate::ops) is_live: bool,
    pub(in crate::ops) pieces: Vec<Piece>,
    /// The last snapshot.
    pub(in crate::ops) last: WorkTreeSnapshot,
    /// Changed files whose text no snapshot has.
    pub(in crate::ops) not_covered: Vec<SkippedFile>,
}

/// The changes of a run, for `squad diff`.
#[derive(Debug, Serialize)]
pub(crate) struct RunDiff {
    pub(crate) run: RunId,
    /// The run goes on: these are its changes so far.
    pub(crate) live: bool,
    pub(crate) undone: bool,
    /// Files that the undo left as they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<String>,
    pub(crate) files: Vec<FileDiff>,
    pub(crate) not_covered: Vec<SkippedFile>,
    /// Commits of the agents' own git, as refs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) commits: Vec<String>,
}

/// What somebody did to a file. A file has several if several did, one after the other.
#[derive(Debug, Serialize)]
pub(crate) struct FileDiff {
    /// Relative to the repository's root.
    pub(crate) path: String,
    pub(crate) class: ChangeClass,
    pub(crate) by: Vec<Slug>,
    pub(crate) how: Option<ChangeEvidence>,
    /// Lines; `None` for a file without lines.
    pub(crate) added: Option<u64>,
    pub(crate) removed: Option<u64>,
    pub(crate) patch: String,
    /// The same as `git apply` takes it: a file need not be UTF-8.
    #[serde(skip)]
    pub(crate) raw: Vec<u8>,
}

/// What a run, the newest if none is named, changed, or only one of its agents.
pub(crate) fn diff(env: &Env, directory: &Path, run: Option<&str>, agent: Option<&str>) -> Result<RunDiff, Failure> {
    let workspace = Workspace::find_or_recorded(env, directory)?;
    let run = match run {
        Some(id) => one_run(&workspace.repository, &workspace.ledger_prefix(), id)?,
        None => newest(&workspace)?,
    };
    let changes = RunChanges::read(env, &workspace, run)?;
    let agent = agent.map(|agent| changes.agent(agent)).transpose()?;
    let is_wanted = |piece: &&Piece| agent.as_ref().is_none_or(|agent| piece.by.contains(agent));
    let pieces: Vec<&Piece> = changes.pieces.iter().filter(is_wanted).collect();
    let patches = workspace.repository.patches(&pieces.iter().map(|piece| &piece.step).collect::<Vec<_>>())?;
    let files = pieces.into_iter().zip(patches).map(|(piece, patch)| FileDiff::new(piece, patch));
    let mut files: Vec<FileDiff> = files.collect();
    files.stable_sort_by(|a, b| a.path.cmp(&b.path));
    let state = changes.undo_state();
    let (undone, left) = (state.has(agent.as_ref()), state.left_of(agent.as_ref()).to_vec());
    let is_agents = |event: &&Event| agent.is_none() || event.agent == agent;
    let fetched = changes.events.iter().filter(is_agents).filter_map(|event| match &event.kind {
        EventKind::GitFetched { reference, .. } => Some(reference.clone()),
        _ => None,
    });
    let commits = fetched.collect();
    let RunChanges { run, is_live, not_covered, .. } = changes;
    Ok(RunDiff { run, live: is_live, undone, left, files, not_covered, commits })
}

/// The newest run with a snapshot, as an answered greeting has none; else the newest.
fn newest(workspace: &Workspace) -> Result<RunId, Failure> {
    /// How many runs are looked at.
    const MOST: usize = 50;
    let Workspace { repository, .. } = workspace;
    let runs = log::runs(repository, &workspace.ledger_prefix(), &workspace.leases(), &Choice::default(), MOST)?;
    let has_snapshot = |run: &RunId| repository.first_snapshot(run.as_str()).is_ok_and(|first| first.is_some());
    let mut runs: Vec<RunId> = runs.into_iter().map(|run| run.run).collect();
    let newest = runs.iter().position(has_snapshot).unwrap_or(0);
    match runs.len() {
        0 => Err(Failure::usage("there has been no run").hint("`squad orchestrate \"…\"` starts one")),
        _ => Ok(runs.swap_remove(newest)),
    }
}

/// The line before the contents of a file without lines.
const BINARY: &str = "GIT binary patch";

impl FileDiff {
    fn new(piece: &Piece, raw: Vec<u8>) -> Self {
        let patch = String::from_utf8_lossy(&raw).into_owned();
        let lines = || patch.lines().skip_while(|line| !line.starts_with("@@ "));
        let count = |mark: char| lines().filter(|line| line.starts_with(mark)).count() as u64;
        let has_lines = !patch.lines().any(|line| line == BINARY);
        let (added, removed) = (has_lines.then(|| count('+')), has_lines.then(|| count('-')));
        let Piece { step, class, by, how, .. } = piece;
        let (path, by) = (step.path.clone(), by.iter().cloned().collect());
        Self { path, class: *class, by, how: *how, added, removed, patch, raw }
    }

    /// The patch for people, without what only git can read.
    pub(crate) fn readable(&self) -> &str {
        let end = self.patch.find(&format!("\n{BINARY}\n")).map(|start| start + 2 + BINARY.len());
        self.patch.get(..end.unwrap_or(self.patch.len())).unwrap_or_default()
    }
}

impl RunChanges {
    /// Fails if the run's snapshots are not there.
    pub(in crate::ops) fn read(env: &Env, workspace: &Workspace, run: RunId) -> Result<Self, Failure> {
        let repository = &workspace.repository;
        lost::settle(env, repository);
        let mut events = Vec::new();
        for entry in timeline(repository, &workspace.ledger_prefix(), Some(&run), &Choice::default())?.entries() {
            if let (_, Read::Entry(entry)) = entry? {
                events.extend(entry.event());
            }
        }
        let is_live = workspace.leases().live(&run).is_some();
        let (root, prefix) = (workspace.folder.root.display().to_string(), workspace.path_in_repository());
        let first = repository.first_snapshot(run.as_str())?;
        let read = |commit: &str| repository.snapshot_at(commit).ok();
        let before = before(Since::Start, &events, (&root, &prefix), first.as_deref(), read);
        let taken = events.iter().rev().find_map(|event| match &event.kind {
            EventKind::SnapshotTaken(taken) => Some(taken),
            _ => None,
        });
        // A clone may have the objects, too, and `gc` may have left them: only the refs say that they are this clone's.
        let is_here = first.is_some() && taken.is_none_or(|taken| repository.snapshot_at(&taken.commit).is_ok());
        let Some(before) = before.filter(|_| is_here) else { return Err(no_snapshots(&run, &events, is_live)) };
        let (mut snapshots, intervals): (Vec<_>, Vec<Interval>) = before.snapshots.into_iter().unzip();
        let steps = repository.steps_between(&snapshots.iter().collect::<Vec<_>>())?;
        let left_out: BTreeMap<String, String> = events.iter().flat_map(left_out_by).into_map();
        let (mut pieces, mut not_covered) = (Pieces::default(), BTreeSet::new());
        for (interval, steps) in intervals.iter().skip(1).zip(steps) {
            for step in steps.into_iter().filter(|step| !interval.is_landed(&step.path)) {
                // Snapshots may have another content of such a file than the work tree.
                match left_out_at(&left_out, &step.path) {
                    Some(_) => drop(not_covered.insert(step.path)),
                    None => pieces.add(step, interval),
                }
            }
        }
        let mut pieces = pieces.all;
        for AgentWork { agent, work, .. } in clones::works(repository, &run)? {
            let piece = |step| {
                let (class, by, how) = (ChangeClass::Own, BTreeSet::from([agent.clone()]), None);
                Piece { step, class, by, how, is_beside: false, is_in_clone: true }
            };
            pieces.extend(repository.steps_of_work(&work)?.into_iter().map(piece));
        }
        pieces.retain(|piece| piece.step.changes_anything());
        let changed = events.iter().filter_map(|event| event.kind.end()?.1.changed.as_ref()).flatten();
        let is_shown = |path: &String| pieces.iter().any(|piece| piece.step.path == *path);
        let is_ours = |change: &&Change| {
            change.class.is_of_agents() && (left_out_at(&left_out, &change.path).is_some() || !is_shown(&change.path))
        };
        not_covered.extend(changed.filter(is_ours).map(|change| change.path.clone()));
        let why = |path: &String| left_out_at(&left_out, path).cloned().unwrap_or_else(|| UNSEEN.to_owned());
        let not_covered = not_covered.into_iter().map(|path| SkippedFile { why: why(&path), path }).collect();
        let last = snapshots.pop().unwrap_or(before.first);
        Ok(Self { run, events, is_live, pieces, last, not_covered })
    }

    /// The agent of this name that the run had.
    pub(in crate::ops) fn agent(&self, name: &str) -> Result<Slug, Failure> {
        let agent = agent_named(name)?;
        let known: BTreeSet<&Slug> = self.events.iter().filter_map(|event| event.agent.as_ref()).into_set();
        if known.contains(&agent) { Ok(agent) } else { Err(not_in_run(&agent, &self.run, known)) }
    }
}

const UNSEEN: &str = "no snapshot was taken after it was written";

#[derive(Default)]
struct Pieces {
    all: Vec<Piece>,
    /// The last of each file, by its path.
    last: HashMap<String, usize>,
}

impl Pieces {
    /// Adds a step to what the same did to the same file before, if nobody else did anything to it in between.
    fn add(&mut self, step: FileStep, interval: &Interval) {
        let (class, by, how) = interval.attribute(&step.path);
        let last = self.last.get(&step.path).and_then(|place| self.all.get_mut(*place));
        match last.filter(|last| (last.class, &last.by, last.how) == (class, &by, how) && last.step.precedes(&step)) {
            Some(last) => last.step = last.step.followed_by(&step),
            None => {
                self.last.insert(step.path.clone(), self.all.len());
                let is_beside = interval.is_beside(&step.path);
                self.all.push(Piece { step, class, by, how, is_beside, is_in_clone: false });
            }
        }
    }
}

/// Why snapshots left out a file, or the repository of its own that it is or was in.
fn left_out_at<'a>(left_out: &'a BTreeMap<String, String>, path: &str) -> Option<&'a String> {
    let folders = path.match_indices('/').filter_map(|(end, _)| path.get(..=end));
    folders.chain([path]).find_map(|path| left_out.get(path))
}

fn left_out_by(event: &Event) -> Vec<(String, String)> {
    match &event.kind {
        EventKind::SnapshotTaken(taken) => {
            taken.left_out.iter().map(|left| (left.path.clone(), left.why.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// Says what is known all the same.
fn no_snapshots(run: &RunId, events: &[Event], is_live: bool) -> Failure {
    let is_taken = events.iter().any(|event| matches!(event.kind, EventKind::SnapshotTaken(_)));
    let changed = events.iter().filter_map(|event| event.kind.end()?.1.changed.as_ref()).flatten();
    let changed: BTreeSet<&str> =
        changed.filter(|change| change.class.is_of_agents()).map(|change| change.path.as_str()).into_set();
    let hint = match changed.is_empty() {
        true => format!("`squad log {run}` shows what happened"),
        false => format!("it changed {}; `squad log {run}` shows what happened", list(&changed)),
    };
    let message = match (is_taken, is_live) {
        (false, true) => format!("run {run} has taken no snapshot of the work tree yet"),
        (false, false) => format!("run {run} took no snapshot of the work tree: it changed nothing, or is too old"),
        (true, _) => {
            format!("the snapshots of run {run} are not here: another clone has them, or `squad gc` has deleted them")
        }
    };
    Failure::usage(message).hint(hint)
}
