//! Exports a team to other hosts: as agent files, a section of AGENTS.md, or a plugin. The files are written only on
//! request and marked as generated; `squad upgrade` keeps them up to date.

mod plan;
mod plugin;
mod record;
mod render;
mod section;
mod source;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{ChangeKind, IntoMap, IntoSet, Problem, Severity, SkippedFile, Source, list};
use crate::ops::change::{Change, Changed, Conflict, FileChange, WriteMode};
use crate::ops::{Project, Workspace};
use crate::store::TeamFolder;
pub(crate) use plan::HostsPlan;
use plan::{Drift, Planner};
use record::Record;
use render::HostTexts;
pub(in crate::ops::team) use render::{MARK, PROMPT, PROMPT_TEXT};
use source::TeamSource;
pub(crate) use target::Target;

/// What an export says beside its files.
#[derive(Serialize)]
pub(crate) struct ExportReport {
    pub(crate) targets: Vec<Target>,
    pub(crate) conflicts: Vec<Conflict>,
    /// Files that keep the user's edits.
    #[serde(rename = "kept")]
    pub(crate) edited: Vec<String>,
    #[serde(rename = "left")]
    pub(crate) skipped: Vec<SkippedFile>,
}

/// Exports to `targets`; if there are none, to those of earlier exports.
pub(crate) fn export(
    env: &Env,
    directory: &Path,
    targets: &[Target],
    mode: WriteMode,
) -> Result<Changed<ExportReport>, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let _lock = mode.lock(&workspace, "export")?;
    let source = TeamSource::read(&workspace, mode, &[])?;
    let record = source.record(&workspace)?;
    let before = record.clone().unwrap_or_else(Record::new);
    let targets: BTreeSet<Target> =
        if targets.is_empty() { before.targets.clone() } else { targets.iter().copied().into_set() };
    if targets.is_empty() {
        return Err(Failure::usage("this team was not exported yet: name the hosts with --to")
            .hint("for example `squad agents export --to claude`"));
    }
    let scope = Scope { targets: &targets, restores_deleted: true };
    let (plan, next) = plan_targets(&workspace, &source, &before, scope, mode)?;
    if source.team.startable().next().is_none() {
        return Err(Failure::team("the team has no agent to export").hint("`squad agents add NAME --role ROLE`"));
    }
    let mut plan = with_repository_paths(&workspace, plan);
    plan.changes.extend(record_change(&workspace, record.as_ref(), &next));
    let names: Vec<String> = targets.iter().map(|target| target.name().to_owned()).collect();
    let message = format!("squad: export the team to {}\n", list(&names));
    let change = Change { copies: plan.copies, ..Change::new(ChangeKind::Export { to: names }, message, plan.changes) };
    if mode.uses_branch()
        && let Some(path) = change.ignored_file(&workspace.repository)?
    {
        return Err(Failure::failed("cannot commit: git ignores this file")
            .at(path)
            .hint("write the files with --no-commit, or change .gitignore"));
    }
    let details = ExportReport {
        targets: targets.into_iter().collect(),
        conflicts: plan.conflicts,
        edited: plan.edited,
        skipped: plan.skipped,
    };
    Ok(Changed { change: change.apply(env, &workspace.repository, mode)?, kind: change.kind, details })
}

/// Plans how exported files follow `changes` of the team's files. Includes the record; paths are from the repository's
/// root. `None`: the team was never exported.
pub(crate) fn plan_update(
    workspace: &Workspace,
    changes: &[FileChange],
    mode: WriteMode,
) -> Result<Option<HostsPlan>, Failure> {
    let Some((source, before)) = exported(workspace, mode, changes)? else { return Ok(None) };
    let scope = Scope { targets: &before.targets, restores_deleted: false };
    let (plan, next) = plan_targets(workspace, &source, &before, scope, mode)?;
    let mut plan = with_repository_paths(workspace, plan);
    plan.changes.extend(record_change(workspace, Some(&before), &next));
    Ok(Some(plan))
}

/// Plans the removal of exported files from the branch. `record` is the record's text; paths are from the repository's
/// root.
pub(crate) fn plan_removal(workspace: &Workspace, record: &[u8]) -> Result<HostsPlan, Failure> {
    let before = Record::read(record, &source::record_path(workspace))?;
    let wanted = BTreeMap::new();
    let planner = planner(workspace, &before, &wanted, WriteMode::Commit)?;
    Ok(with_repository_paths(workspace, planner.plan()?.0))
}

/// The record's path in the team's folder.
pub(crate) const RECORD: &str = record::FILE;

/// Whether the work tree has a record of exports.
pub(crate) fn is_exported(folder: &TeamFolder) -> bool {
    folder.path.join(record::FILE).is_file()
}

/// The number of exported files that are out of date; 0 if the record cannot be read, which `doctor` reports.
pub(crate) fn stale_count(workspace: &Workspace) -> usize {
    let found = drifts(workspace).unwrap_or_default();
    found.iter().filter(|(_, drift)| matches!(drift, Drift::Stale)).count()
}

/// The team after `changes`, and the record of its exports, if there is one.
fn exported(
    workspace: &Workspace,
    mode: WriteMode,
    changes: &[FileChange],
) -> Result<Option<(TeamSource, Record)>, Failure> {
    if !source::has_record(workspace, mode)? {
        return Ok(None);
    }
    let source = TeamSource::read(workspace, mode, changes)?;
    Ok(source.record(workspace)?.map(|record| (source, record)))
}

fn drifts(workspace: &Workspace) -> Result<Vec<(String, Drift)>, Failure> {
    let mode = WriteMode::WorkTree;
    let Some((source, before)) = exported(workspace, mode, &[])? else { return Ok(Vec::new()) };
    let wanted = source.texts(&before.targets, &workspace.folder);
    planner(workspace, &before, &wanted, mode)?.drift()
}

/// Exported files that are out of date, edited, damaged or missing, for `doctor`.
pub(crate) fn problems(project: &Project) -> Vec<Problem> {
    let at = |path: &str| Source::new(path, 0);
    let problem = |(path, drift): (String, Drift)| {
        let (message, hint) = match drift {
            Drift::Stale => ("the team has changed since this file was exported", "`squad upgrade` updates it"),
            Drift::Edited => (
                "this file is generated from the team's files, and was edited by hand",
                "make the change in the team's files, delete this file, and run `squad agents export`",
            ),
            Drift::Damaged(why) => {
                return Problem::warning(at(&path), "export", why)
                    .hint("fix the markers or delete the section, then run `squad agents export`");
            }
            Drift::Missing => {
                return Problem::new(Severity::Note, at(&path), "export", "this exported file was deleted")
                    .hint("`squad agents export` restores it");
            }
        };
        Problem::warning(at(&path), "export", message).hint(hint)
    };
    match drifts(project) {
        Ok(found) => found.into_iter().map(problem).collect(),
        Err(failure) => {
            let path = failure.source.unwrap_or_else(|| record::FILE.to_owned());
            vec![Problem { hint: failure.hint, ..Problem::warning(at(&path), "export", failure.message) }]
        }
    }
}

/// The targets to plan for.
struct Scope<'a> {
    targets: &'a BTreeSet<Target>,
    restores_deleted: bool,
}

/// The plan for some targets, with paths from the project's root, and the record to write afterwards.
fn plan_targets(
    workspace: &Workspace,
    source: &TeamSource,
    record: &Record,
    scope: Scope<'_>,
    mode: WriteMode,
) -> Result<(HostsPlan, Record), Failure> {
    let is_in_scope = |path: &str| scope.targets.iter().any(|target| target.contains(path));
    let (in_scope, others) = record.files.clone().into_iter().partition(|(path, _)| is_in_scope(path));
    let before = Record { files: in_scope, ..record.clone() };
    let wanted = source.texts(scope.targets, &workspace.folder);
    let planner = Planner {
        previous_texts: &|| source::previous_texts(workspace, scope.targets).unwrap_or_default(),
        restores_deleted: scope.restores_deleted,
        ..planner(workspace, &before, &wanted, mode)?
    };
    let (plan, files) = planner.plan()?;
    let others: BTreeMap<_, _> = others;
    let targets = record.targets.union(scope.targets).copied().collect();
    let next = Record { targets, files: files.into_iter().chain(others).into_map(), ..record.clone() };
    Ok((plan, next))
}

/// A planner that knows no texts of the last export, and restores nothing that was deleted.
fn planner<'a>(
    workspace: &'a Workspace,
    record: &'a Record,
    wanted: &'a HostTexts,
    mode: WriteMode,
) -> Result<Planner<'a>, Failure> {
    Ok(Planner {
        workspace,
        record,
        wanted,
        current: source::current_files(workspace, record, wanted, mode)?,
        previous_texts: &BTreeMap::new,
        restores_deleted: false,
    })
}

/// Makes the paths relative to the repository's root; those of copies are already.
fn with_repository_paths(workspace: &Workspace, mut plan: HostsPlan) -> HostsPlan {
    let root = workspace.path_in_repository();
    let full = |path: &mut String| path.insert_str(0, &root);
    plan.changes.iter_mut().for_each(|change| full(&mut change.path));
    plan.edited.iter_mut().for_each(full);
    plan.skipped.iter_mut().for_each(|file| full(&mut file.path));
    for conflict in &mut plan.conflicts {
        full(&mut conflict.path);
        full(&mut conflict.new);
    }
    plan
}

fn record_change(workspace: &Workspace, before: Option<&Record>, next: &Record) -> Option<FileChange> {
    let path = source::record_path(workspace);
    let old = before.map(|record| record.bytes.clone());
    (before != Some(next)).then(|| FileChange::new(path, old, Some(next.text().into_bytes())))
}
