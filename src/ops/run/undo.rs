//! `squad undo`: takes what a run changed out of the work tree, or brings it back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{CommittedFile, CommittedVersions, FileStep, IgnoreRules, Repository, UndoPlan, UndoRequest};
use crate::model::{
    ChangeClass, ChangeKind, Decision, DecisionId, EventKind, IntoSet, RunId, SkippedFile, Slug, Sort, UndoRecord,
    UndoState, Undone, first_line, list, plural,
};
use crate::ops::Workspace;
use crate::ops::change::{Change, FileChange, lock};
use crate::ops::decisions::landing::is_file_of;
use crate::ops::ledger::journal::writer;
use crate::ops::ledger::log::one_run;
use crate::ops::ledger::rescue::{self, Reason};
use crate::ops::ledger::undone;
use crate::ops::run::changes::{Piece, RunChanges};
use crate::ops::run::snapshots::objection;
use crate::ops::team::secrets;

/// What is to be undone.
pub(crate) struct Options<'a> {
    pub(crate) run: &'a str,
    pub(crate) agent: Option<&'a str>,
    /// Brings back what an undo took out.
    pub(crate) redo: bool,
    /// Takes what was committed out of the checked-out commit, too, by a new commit.
    pub(crate) commit: bool,
    /// Withdraws the decisions of the run that are on the branch.
    pub(crate) decisions: bool,
}

/// What an undo did, or would do. Paths are relative to the repository's root.
#[derive(Debug, Serialize)]
pub(crate) struct UndoReport {
    pub(crate) run: RunId,
    pub(crate) agent: Option<Slug>,
    pub(crate) redo: bool,
    pub(crate) dry_run: bool,
    pub(crate) changed: Vec<String>,
    pub(crate) removed: Vec<String>,
    /// Changed files that somebody has moved since the run.
    pub(crate) followed: Vec<String>,
    pub(crate) left: Vec<SkippedFile>,
    /// Versions of the files in conflict, laid beside them.
    pub(crate) copies: Vec<String>,
    /// Files that the commit changes.
    pub(crate) reverted: Vec<String>,
    /// Decisions of the run that are on the branch.
    pub(crate) decisions: Vec<RunDecision>,
    /// Whether the commit withdraws them.
    pub(crate) withdrawn: bool,
    /// The commit.
    pub(crate) commit: Option<String>,
    /// Files that the run changed and no snapshot has.
    pub(crate) not_covered: Vec<SkippedFile>,
    pub(crate) rescue: Option<String>,
    /// Nothing of the run is left, but its undo is not recorded.
    #[serde(skip)]
    pub(crate) is_gone: bool,
}

/// A decision made in the run.
#[derive(Debug, Serialize)]
pub(crate) struct RunDecision {
    pub(crate) id: DecisionId,
    pub(crate) title: String,
    /// Its file, and what that holds.
    #[serde(skip)]
    file: (String, Vec<u8>),
}

/// An undo that is planned and not done.
pub(crate) struct PlannedUndo {
    workspace: Workspace,
    plan: UndoPlan,
    /// What is committed; `None`: nothing.
    revert: Option<Change>,
    record: UndoRecord,
    pub(crate) report: UndoReport,
    /// Whose changes they are.
    pub(crate) agents: BTreeSet<Slug>,
}

const COMMITTED: &str = "it was committed since; --commit takes it back in a commit";
const NO_REVERT: &str = "it was committed since, and no commit can be made of it here; `git revert` may";

/// Plans an undo. Changes nothing.
pub(crate) fn plan(env: &Env, directory: &Path, options: &Options<'_>) -> Result<PlannedUndo, Failure> {
    let workspace = Workspace::find_or_recorded(env, directory)?;
    let (repository, team) = (&workspace.repository, workspace.ledger_prefix());
    let run = one_run(repository, &team, options.run)?;
    let mut changes = RunChanges::read(env, &workspace, run)?;
    let agent = options.agent.map(|agent| changes.agent(agent)).transpose()?;
    let is_wanted =
        |piece: &Piece| piece.class.is_of_agents() && agent.as_ref().is_none_or(|agent| piece.by.contains(agent));
    if changes.pieces.iter().any(|piece| piece.is_in_clone && is_wanted(piece)) {
        if !changes.pieces.iter().any(|piece| !piece.is_in_clone && is_wanted(piece)) {
            let message =
                format!("the agents of run {} worked in clones: there is nothing in your work tree", changes.run);
            return Err(Failure::usage(message).hint("what `squad merge` brought to a branch, `git revert` takes back"));
        }
        changes.pieces.retain(|piece| !piece.is_in_clone);
    }
    let is_for_commit = options.commit || options.decisions;
    changes.require_work_tree(repository)?;
    changes.require_possible(options.redo, is_for_commit, agent.as_ref())?;
    let state = changes.undo_state();
    let (wanted, beside) = changes.of_agents(agent.as_ref())?;
    let agents = wanted.iter().flat_map(|piece| piece.by.iter().cloned()).collect();
    // What an undo left is tried again by the next one, and not brought back.
    let left = state.left_of(agent.as_ref());
    let is_again = !options.redo && state.has(agent.as_ref()) && !left.is_empty();
    let is_meant = |piece: &&Piece| match left.contains(&piece.step.path) {
        true => !options.redo,
        false => !is_again,
    };
    let wanted: Vec<&Piece> = wanted.into_iter().filter(is_meant).collect();
    let at = env.clock.now();
    let redactor = secrets::redactor(env, repository.work_dir().unwrap_or(repository.git_dir()));
    let rounds = rounds(&wanted, options.redo);
    let is_any = !rounds.is_empty();
    let request = UndoRequest {
        last: &changes.last,
        rules: changes.ignore_rules(&wanted),
        rounds,
        endings: if options.redo { (".before", ".run") } else { (".run", ".before") },
        head: changes.events.iter().find_map(|event| match &event.kind {
            EventKind::RunStarted { commit, .. } => commit.clone(),
            _ => None,
        }),
    };
    let mut plan = repository.plan_undo(&request, |bytes| objection(&redactor, bytes), &writer(), at)?;
    let mut reverts = Vec::new();
    for CommittedFile { path, versions } in plan.committed.drain(..) {
        match versions.filter(|_| options.commit) {
            Some(CommittedVersions { old, new, executable }) => {
                reverts.push(FileChange { executable, ..FileChange::new(path, old, new) });
            }
            None => {
                let why = if options.commit { NO_REVERT } else { COMMITTED };
                plan.left.push(SkippedFile { path, why: why.to_owned() });
            }
        }
    }
    let reverted: Vec<String> = reverts.iter().map(|file| file.path.clone()).collect();
    let decisions = changes.decisions(&workspace, agent.as_ref())?;
    if options.decisions {
        let gone = decisions.iter().map(|RunDecision { file: (path, bytes), .. }| (path.clone(), bytes.clone()));
        reverts.extend(gone.map(|(path, bytes)| FileChange::new(path, Some(bytes), None)));
    }
    let message = format!("Undo run {}\n\n{}\n", changes.run, first_line(&changes.task(), 72));
    let kind = ChangeKind::RevertRun { run: changes.run.clone() };
    let revert = (!reverts.is_empty()).then(|| Change::new(kind, message, reverts));
    if let Some(revert) = &revert {
        revert.require_committable(repository)?;
    }
    plan.left.extend(beside);
    plan.left.stable_sort_by(|a, b| a.path.cmp(&b.path));
    let paths = |removed: bool| {
        plan.changed.iter().filter(|(_, is_removed)| *is_removed == removed).map(|(path, _)| path.clone()).collect()
    };
    let undone = Undone {
        only: agent.clone(),
        redo: options.redo,
        files: plan.changed.iter().map(|(path, _)| path.clone()).chain(reverted.iter().cloned()).collect(),
        left: plan.left.clone(),
        ..Undone::default()
    };
    let RunChanges { run, events, not_covered, .. } = &changes;
    let record = UndoRecord {
        run: run.clone(),
        team,
        entry: env.ids.entry(at),
        seq: events.iter().map(|event| event.seq).max().unwrap_or_default() + 1,
        at: events.iter().map(|event| event.at).max().map_or(at, |last| at.max(last)),
        causes: events.last().map(|event| event.id.clone()).into_iter().collect(),
        undone,
    };
    let is_gone = is_any && plan.left.is_empty() && (is_again || !state.has(agent.as_ref()));
    let report = UndoReport {
        run: run.clone(),
        agent,
        redo: options.redo,
        dry_run: true,
        changed: paths(false),
        removed: paths(true),
        followed: plan.followed.clone(),
        left: plan.left.clone(),
        reverted,
        decisions,
        withdrawn: options.decisions,
        commit: None,
        copies: plan.copies.iter().cloned().into_set().into_iter().collect(),
        not_covered: not_covered.clone(),
        rescue: None,
        is_gone,
    };
    Ok(PlannedUndo { workspace, plan, revert, record, report, agents })
}

impl PlannedUndo {
    pub(crate) fn changes_anything(&self) -> bool {
        !self.plan.changed.is_empty() || !self.plan.copies.is_empty() || self.revert.is_some()
    }

    /// Backs up the work tree, changes it, and records that.
    pub(crate) fn apply(self, env: &Env) -> Result<UndoReport, Failure> {
        let Self { workspace, plan, revert, mut record, mut report, .. } = self;
        let repository = &workspace.repository;
        report.dry_run = false;
        if let Some(revert) = revert {
            let _lock = lock(repository, None)?;
            report.commit = Some(revert.commit(env, repository)?);
            record.undone.commit.clone_from(&report.commit);
        }
        let is_any = !plan.changed.is_empty() || !plan.copies.is_empty();
        if !is_any && !report.is_gone && report.reverted.is_empty() {
            return Ok(report);
        }
        if is_any {
            report.rescue = Some(save(env, repository, &plan, &record)?);
            record.undone.rescue.clone_from(&report.rescue);
        }
        let kind = ChangeKind::Undo(Box::new(record.clone()));
        let just_changed = repository.carry_out(plan, &kind, || undone::record(env, repository, &record))?;
        for path in just_changed {
            report.changed.retain(|changed| *changed != path);
            report.removed.retain(|removed| *removed != path);
            report.copies.retain(|copy| *copy != path);
            report.left.push(SkippedFile { path, why: "something else is there".to_owned() });
        }
        Ok(report)
    }
}

/// Backs up the work tree. Returns the rescue's id.
fn save(env: &Env, repository: &Repository, plan: &UndoPlan, record: &UndoRecord) -> Result<String, Failure> {
    let touches: Vec<String> = plan.changed.iter().map(|(path, _)| path.clone()).collect();
    let verb = if record.undone.redo { "brought back" } else { "undone" };
    let why = format!("changes of run {} are {verb}", record.run);
    let saved = rescue::save(env, repository, Reason { command: "undo", why, touches: touches.clone() })?;
    match saved.left_out.iter().find(|left| touches.contains(&left.path)) {
        Some(SkippedFile { path, why }) => {
            Err(Failure::failed(format!("{path} would be lost, since {why}")).hint("move it out of the way"))
        }
        None => Ok(saved.id),
    }
}

impl RunChanges {
    fn task(&self) -> String {
        let text = self.events.iter().find_map(|event| match &event.kind {
            EventKind::RunStarted { text, .. } => Some(text.clone()),
            _ => None,
        });
        text.unwrap_or_default()
    }

    /// The decisions of the run, or of one agent in it, that the checked-out commit has.
    fn decisions(&self, workspace: &Workspace, agent: Option<&Slug>) -> Result<Vec<RunDecision>, Failure> {
        let logged = self.events.iter().filter(|event| agent.is_none() || event.agent.as_ref() == agent);
        let logged: Vec<&Decision> = logged
            .filter_map(|event| match &event.kind {
                EventKind::DecisionLogged { decision, .. } => Some(decision),
                _ => None,
            })
            .collect();
        let repository = &workspace.repository;
        let Some(head) = repository.head()?.commit.filter(|_| !logged.is_empty()) else { return Ok(Vec::new()) };
        let folder = format!("{}/decisions", workspace.folder_in_repository());
        let files = repository.plain_files_at(&head, &folder)?.plain;
        let found = logged.into_iter().filter_map(|Decision { id, title, .. }| {
            let file = files.iter().find(|(path, _)| is_file_of(path, id))?.clone();
            Some(RunDecision { id: id.clone(), title: title.clone(), file })
        });
        Ok(found.collect())
    }

    /// Which of its changes are undone.
    pub(in crate::ops) fn undo_state(&self) -> UndoState {
        let mut state = UndoState::default();
        for event in &self.events {
            match &event.kind {
                EventKind::RunUndone(undone) => state.add(undone),
                EventKind::RunResumed { .. } => state = UndoState::default(),
                _ => {}
            }
        }
        state
    }

    fn require_possible(&self, redo: bool, is_for_commit: bool, agent: Option<&Slug>) -> Result<(), Failure> {
        let run = &self.run;
        let (of, name) = match agent {
            Some(agent) => (format!("{agent}'s part of run {run}"), format!("{run} {agent}")),
            None => (format!("run {run}"), run.to_string()),
        };
        if self.is_live {
            return Err(Failure::usage(format!("run {run} is live"))
                .hint(format!("`squad diff {run}` shows its changes so far; `squad cancel {run}` ends it")));
        }
        let state = self.undo_state();
        match (redo, state.has(agent) && state.left_of(agent).is_empty(), state.can_redo(agent)) {
            (false, true, _) if !is_for_commit => Err(Failure::usage(format!("{of} is undone already"))
                .hint(format!("`squad undo {name} --redo` brings it back; `squad diff {name}` shows it"))),
            (true, _, false) => Err(Failure::usage(format!("{of} is not undone, so there is nothing to bring back"))
                .hint(format!("`squad log {run}` shows what was undone"))),
            _ => Ok(()),
        }
    }

    /// Fails unless the run worked in this work tree: another one has files of its own.
    fn require_work_tree(&self, repository: &Repository) -> Result<(), Failure> {
        let worked_in = self.events.iter().find_map(|event| match &event.kind {
            EventKind::SnapshotTaken(taken) => Some(taken.work_tree.as_deref()),
            _ => None,
        });
        let Some(name) = worked_in.filter(|name| *name != repository.linked_name().as_deref()) else { return Ok(()) };
        let run = &self.run;
        Err(match repository.work_tree_named(name) {
            Some(place) => Failure::usage(format!("run {run} worked in another work tree, {}", place.display()))
                .hint(format!("`squad -C {} undo {run}` takes it back there", place.display())),
            None => Failure::usage(format!("run {run} worked in another work tree, which is gone"))
                .hint(format!("`squad diff {run}` shows what it changed")),
        })
    }

    /// The pieces that agents made, or only this one; and the files that another run may have changed at once.
    fn of_agents(&self, agent: Option<&Slug>) -> Result<(Vec<&Piece>, Vec<SkippedFile>), Failure> {
        let of_agents = self.pieces.iter().filter(|piece| piece.class.is_of_agents());
        let pieces: Vec<&Piece> =
            of_agents.filter(|piece| agent.is_none_or(|agent| piece.by.contains(agent))).collect();
        let together = pieces.iter().filter(|piece| piece.class == ChangeClass::Together);
        if let Some(agent) = agent
            && together.clone().next().is_some()
        {
            let by: BTreeSet<&Slug> = together.clone().flat_map(|piece| &piece.by).into_set();
            let files: BTreeSet<&str> = together.map(|piece| piece.step.path.as_str()).into_set();
            let message = format!("{agent}'s changes cannot be told apart: {} changed while", list(&files));
            let message = match by.len() {
                1 => format!("{message} another run worked, too"),
                _ => format!("{message} {} worked at once", list(by)),
            };
            let run = &self.run;
            return Err(Failure::usage(message)
                .hint(format!("`squad undo {run}` takes all of it back; `squad diff {run} {agent}` shows it")));
        }
        let (beside, pieces): (Vec<&Piece>, Vec<&Piece>) = pieces.into_iter().partition(|piece| piece.is_beside);
        let why = "another run worked here at once";
        let beside: BTreeSet<&str> = beside.iter().map(|piece| piece.step.path.as_str()).into_set();
        let pieces = pieces.into_iter().filter(|piece| !beside.contains(piece.step.path.as_str())).collect();
        let beside = beside.into_iter().map(|path| SkippedFile { path: path.to_owned(), why: why.to_owned() });
        Ok((pieces, beside.collect()))
    }

    fn ignore_rules(&self, pieces: &[&Piece]) -> IgnoreRules {
        let is_elsewhere = |key: &String| key == "info/exclude" || key.eq_ignore_ascii_case("core.excludesFile");
        let is_any_elsewhere = self.events.iter().any(|event| match &event.kind {
            EventKind::SnapshotTaken(taken) => taken.git.config.iter().any(is_elsewhere),
            _ => false,
        });
        let is_rule = |piece: &&Piece| piece.step.path.rsplit('/').next() == Some(".gitignore");
        match pieces.iter().any(is_rule) {
            _ if is_any_elsewhere => IgnoreRules::Unknown,
            true => IgnoreRules::Changed,
            false => IgnoreRules::Same,
        }
    }
}

/// The steps of each round: of a file's pieces the last first, or for a redo the first.
fn rounds(pieces: &[&Piece], redo: bool) -> Vec<Vec<FileStep>> {
    let mut files: BTreeMap<&str, Vec<FileStep>> = BTreeMap::new();
    for piece in pieces {
        let steps = files.entry(&piece.step.path).or_default();
        match steps.last_mut().filter(|last| last.precedes(&piece.step)) {
            Some(last) => *last = last.followed_by(&piece.step),
            None => steps.push(piece.step.clone()),
        }
    }
    let mut rounds: Vec<Vec<FileStep>> = Vec::new();
    for mut steps in files.into_values() {
        steps.retain(FileStep::changes_anything);
        if !redo {
            steps = steps.iter().rev().map(FileStep::reversed).collect();
        }
        for (round, step) in steps.into_iter().enumerate() {
            match rounds.get_mut(round) {
                Some(steps) => steps.push(step),
                None => rounds.push(vec![step]),
            }
        }
    }
    rounds
}

/// `2 files of ada and bob`.
pub(crate) fn summary(undo: &PlannedUndo) -> String {
    let UndoReport { changed, removed, reverted, .. } = &undo.report;
    let files = plural(changed.len() + removed.len() + reverted.len(), "file");
    format!("{files} of {} in run {}", list(&undo.agents), undo.report.run.short())
}
