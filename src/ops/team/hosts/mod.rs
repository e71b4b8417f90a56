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
use crate::model::{Problem, Severity, SkippedFile, Source, list};
use crate::ops::team::changeset::{ChangedFile, Changeset, FileChange, write_files};
use crate::ops::team::merge::{self, Conflict};
use crate::ops::team::write_mode::WriteMode;
use crate::ops::{Project, Workspace};
use crate::store::TeamFolder;
pub(crate) use plan::HostsPlan;
use plan::{Drift, Planner};
use record::Record;
use render::HostTexts;
pub(in crate::ops::team) use render::{MARK, PROMPT, PROMPT_TEXT};
use source::TeamSource;
pub(crate) use target::Target;

/// The changes made by an export, or planned in a dry run.
#[derive(Serialize)]
pub(crate) struct ExportReport {
    pub(crate) targets: Vec<Target>,
    pub(crate) files: Vec<ChangedFile>,
    pub(crate) conflicts: Vec<Conflict>,
    /// Files that keep the user's edits.
    #[serde(rename = "kept")]
    pub(crate) edited: Vec<String>,
    #[serde(rename = "left")]
    pub(crate) skipped: Vec<SkippedFile>,
    pub(crate) commit: Option<String>,
    #[serde(skip)]
    pub(crate) diff: String,
}

/// The command without the leading `squad` and without other options.
pub(crate) fn command<'a>(targets: impl IntoIterator<Item = &'a Target>) -> String {
    format!("agents export --to {}", targets.into_iter().map(|target| target.name()).collect::<Vec<_>>().join(","))
}

/// Exports to `targets`; if there are none, to those of earlier exports.
pub(crate) fn export(
    env: &Env,
    directory: &Path,
    targets: &[Target],
    mode: WriteMode,
) -> Result<ExportReport, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let _lock = mode.lock(env, &workspace, "export")?;
    let source = TeamSource::read(&workspace, mode, &[])?;
    let record = source.record(&workspace)?;
    let before = record.clone().unwrap_or_else(Record::new);
    let targets: BTreeSet<Target> =
        if targets.is_empty() { before.targets.clone() } else { targets.iter().copied().collect() };
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
    if mode.uses_branch() {
        refuse_ignored(&workspace, &plan.changes)?;
    }
    plan.changes.extend(record_change(&workspace, record.as_ref(), &next));
    let message = format!("squad: export the team to {}\n", list(targets.iter().map(|target| target.name())));
    let changeset = Changeset::new(command(&targets), message, plan.changes);
    let mut exported = ExportReport {
        targets: targets.into_iter().collect(),
        files: changeset.changed_files(),
        conflicts: plan.conflicts.iter().map(|(conflict, _)| conflict.clone()).collect(),
        edited: plan.edited,
        skipped: plan.skipped,
        commit: None,
        diff: changeset.diff(),
    };
    let repository = &workspace.repository;
    if mode.uses_branch() && !changeset.files.is_empty() {
        changeset.check_committable(repository)?;
    }
    write_conflict_copies(&workspace, &changeset.command, &plan.conflicts, mode)?;
    exported.commit = changeset.apply(env, repository, mode)?;
    Ok(exported)
}

/// Plans how exported files follow `changes` of the team's files. Includes the record; paths are from the repository's
/// root. `None`: the team was never exported.
pub(crate) fn plan_update(
    workspace: &Workspace,
    changes: &[FileChange],
    mode: WriteMode,
) -> Result<Option<HostsPlan>, Failure> {
    if !source::has_record(workspace, mode)? {
        return Ok(None);
    }
    let source = TeamSource::read(workspace, mode, changes)?;
    let Some(before) = source.record(workspace)? else { return Ok(None) };
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

/// Writes squad's new texts next to the files that they conflict with.
pub(crate) fn write_conflict_copies(
    workspace: &Workspace,
    command: &str,
    conflicts: &[(Conflict, Vec<u8>)],
    mode: WriteMode,
) -> Result<(), Failure> {
    let is_squads = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("Generated by ");
    let mut copies = Vec::new();
    for (conflict, new) in conflicts {
        copies.extend(merge::conflict_copy(&workspace.work_dir, &conflict.new, new, is_squads)?);
    }
    if mode.is_dry_run() { Ok(()) } else { write_files(&workspace.repository, command, &copies) }
}

/// Whether the work tree has a record of exports.
pub(crate) fn is_exported(folder: &TeamFolder) -> bool {
    folder.path.join(record::FILE).is_file()
}

/// The number of exported files that are out of date; 0 if the record cannot be read, which `doctor` reports.
pub(crate) fn stale_count(workspace: &Workspace) -> usize {
    let found = drifts(workspace).unwrap_or_default();
    found.iter().filter(|(_, drift)| matches!(drift, Drift::Stale)).count()
}

fn drifts(workspace: &Workspace) -> Result<Vec<(String, Drift)>, Failure> {
    let mode = WriteMode::WorkTree;
    if !source::has_record(workspace, mode)? {
        return Ok(Vec::new());
    }
    let source = TeamSource::read(workspace, mode, &[])?;
    let Some(before) = source.record(workspace)? else { return Ok(Vec::new()) };
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
            let problem = Problem::warning(at(&path), "export", failure.message);
            vec![match failure.hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            }]
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
    let next = Record { targets, files: files.into_iter().chain(others).collect(), ..record.clone() };
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
        repository: &workspace.repository,
        record,
        wanted,
        current: source::current_files(workspace, record, wanted, mode)?,
        previous_texts: &BTreeMap::new,
        restores_deleted: false,
    })
}

/// Makes the paths relative to the repository's root.
fn with_repository_paths(workspace: &Workspace, mut plan: HostsPlan) -> HostsPlan {
    let root = workspace.path_in_repository();
    let full = |path: &mut String| path.insert_str(0, &root);
    plan.changes.iter_mut().for_each(|change| full(&mut change.path));
    plan.edited.iter_mut().for_each(full);
    plan.skipped.iter_mut().for_each(|file| full(&mut file.path));
    for (conflict, _) in &mut plan.conflicts {
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

/// Fails if git ignores a new file: nobody expects an ignored file in a commit.
fn refuse_ignored(workspace: &Workspace, changes: &[FileChange]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for change in changes.iter().filter(|change| change.old.is_none()) {
        let folder = change.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if seen.insert(folder) && workspace.repository.would_ignore(&change.path)? {
            return Err(Failure::failed("cannot commit: git ignores this file")
                .at(&change.path)
                .hint("write the files with --no-commit, or change .gitignore"));
        }
    }
    Ok(())
}
