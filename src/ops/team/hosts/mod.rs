//! A team as files of other hosts: their agents, a section of AGENTS.md, a plugin. Written only when asked, marked as
//! generated, and kept in step by `squad upgrade`.

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
use crate::git::Rewrite;
use crate::model::{Problem, Source, list};
use crate::ops::team::changeset::{ChangedFile, Changeset, FileChange};
use crate::ops::team::membership::Outlet;
use crate::ops::team::merge::{self, Conflict};
use crate::ops::{Project, Workspace};
use crate::store::TeamFolder;
use plan::{Drift, Planner};
pub(crate) use plan::{HostsPlan, LeftFile};
use record::Record;
pub(in crate::ops::team) use render::{MARK, PROMPT, PROMPT_TEXT};
use source::TeamSource;
pub(crate) use target::Target;

/// What an export does, or would.
#[derive(Serialize)]
pub(crate) struct Exported {
    pub(crate) targets: Vec<Target>,
    pub(crate) files: Vec<ChangedFile>,
    pub(crate) conflicts: Vec<Conflict>,
    /// Files that keep what people changed in them.
    pub(crate) kept: Vec<String>,
    pub(crate) left: Vec<LeftFile>,
    pub(crate) commit: Option<String>,
    #[serde(skip)]
    pub(crate) diff: String,
}

/// The command as one types it after `squad`, without what it may be run with besides.
pub(crate) fn command<'a>(targets: impl IntoIterator<Item = &'a Target>) -> String {
    format!("agents export --to {}", targets.into_iter().map(|target| target.name()).collect::<Vec<_>>().join(","))
}

/// Without `targets`: to where it was exported before.
pub(crate) fn export(env: &Env, directory: &Path, targets: &[Target], outlet: Outlet) -> Result<Exported, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let _lock = outlet.lock(env, &workspace, "export")?;
    let source = TeamSource::read(&workspace, outlet, &[])?;
    let record = source.record(&workspace)?;
    let before = record.clone().unwrap_or_else(Record::new);
    let asked: BTreeSet<Target> =
        if targets.is_empty() { before.targets.clone() } else { targets.iter().copied().collect() };
    if asked.is_empty() {
        return Err(Failure::usage("this team was not exported yet, so --to has to say for which hosts")
            .hint("for example `squad agents export --to claude`"));
    }
    let (plan, next) = planned(&workspace, &source, &before, Scope { targets: &asked, is_to_restore: true }, outlet)?;
    if source.team.startable().next().is_none() {
        return Err(Failure::team("the team has no agent to export").hint("`squad agents add NAME --role ROLE`"));
    }
    let mut plan = in_repository(&workspace, plan);
    if outlet.is_of_the_branch() {
        insist_on_tracked(&workspace, &plan.changes)?;
    }
    plan.changes.extend(record_change(&workspace, record.as_ref(), &next));
    let message = format!("squad: export the team to {}\n", list(asked.iter().map(|target| target.name())));
    let changeset = Changeset::new(command(&asked), message, plan.changes);
    let mut exported = Exported {
        targets: asked.into_iter().collect(),
        files: changeset.changed_files(),
        conflicts: plan.conflicts.iter().map(|(conflict, _)| conflict.clone()).collect(),
        kept: plan.kept,
        left: plan.left,
        commit: None,
        diff: changeset.diff(),
    };
    let repository = &workspace.repository;
    if outlet.is_of_the_branch() && !changeset.files.is_empty() {
        changeset.insist_on_room(repository)?;
    }
    lay_beside(&workspace, &changeset.command, &plan.conflicts, outlet)?;
    if !changeset.files.is_empty() {
        match outlet {
            Outlet::Commit => exported.commit = Some(changeset.commit(env, repository)?),
            Outlet::WorkTree => changeset.write(repository)?,
            Outlet::Shown { .. } => {}
        }
    }
    Ok(exported)
}

/// What becomes of exported files as the team's change so, with paths from the repository's root, the record among
/// them. `None`: the team was exported nowhere.
pub(crate) fn in_step(
    workspace: &Workspace,
    changes: &[FileChange],
    outlet: Outlet,
) -> Result<Option<HostsPlan>, Failure> {
    if !source::has_record(workspace, outlet)? {
        return Ok(None);
    }
    let source = TeamSource::read(workspace, outlet, changes)?;
    let Some(before) = source.record(workspace)? else { return Ok(None) };
    let scope = Scope { targets: &before.targets, is_to_restore: false };
    let (plan, next) = planned(workspace, &source, &before, scope, outlet)?;
    let mut plan = in_repository(workspace, plan);
    plan.changes.extend(record_change(workspace, Some(&before), &next));
    Ok(Some(plan))
}

/// The removal of exported files from the branch, with paths from the repository's root. `record` is the record's text.
pub(crate) fn removal(workspace: &Workspace, record: &[u8]) -> Result<HostsPlan, Failure> {
    let before = Record::read(record, &source::record_path(workspace))?;
    let wanted = BTreeMap::new();
    let places = source::places(workspace, &before, &wanted, Outlet::Commit)?;
    let older = BTreeMap::new;
    let repository = &workspace.repository;
    let planner =
        Planner { repository, before: &before, wanted: &wanted, places: &places, older: &older, is_to_restore: false };
    Ok(in_repository(workspace, planner.plan()?.0))
}

/// The record's path from the team's folder.
pub(crate) const RECORD: &str = record::FILE;

/// Lays squad's new texts beside the files that they conflict with.
pub(crate) fn lay_beside(
    workspace: &Workspace,
    command: &str,
    conflicts: &[(Conflict, Vec<u8>)],
    outlet: Outlet,
) -> Result<(), Failure> {
    let is_ours = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("Generated by ");
    let mut beside = Vec::new();
    for (conflict, new) in conflicts {
        beside.extend(merge::room_for(&workspace.work_dir, &conflict.new, new, is_ours)?);
    }
    if !matches!(outlet, Outlet::Shown { .. }) {
        let files: Vec<_> =
            beside.iter().map(|(path, old, new)| Rewrite::new(path, old.as_deref(), Some(new))).collect();
        workspace.repository.rewrite(command, &files)?;
    }
    Ok(())
}

/// Whether the team was exported anywhere, as the work tree has it.
pub(crate) fn is_exported(folder: &TeamFolder) -> bool {
    folder.path.join(record::FILE).is_file()
}

/// How many exported files the team's files have outgrown. What cannot be read is `doctor`'s to say.
pub(crate) fn stale(workspace: &Workspace) -> usize {
    let found = drifts(workspace).unwrap_or_default();
    found.iter().filter(|(_, drift)| matches!(drift, Drift::Stale)).count()
}

fn drifts(workspace: &Workspace) -> Result<Vec<(String, Drift)>, Failure> {
    let outlet = Outlet::WorkTree;
    if !source::has_record(workspace, outlet)? {
        return Ok(Vec::new());
    }
    let source = TeamSource::read(workspace, outlet, &[])?;
    let Some(before) = source.record(workspace)? else { return Ok(Vec::new()) };
    let wanted = source.texts(&before.targets, &workspace.folder);
    let places = source::places(workspace, &before, &wanted, outlet)?;
    let older = || BTreeMap::new();
    let planner = Planner {
        repository: &workspace.repository,
        before: &before,
        wanted: &wanted,
        places: &places,
        older: &older,
        is_to_restore: false,
    };
    planner.drift()
}

/// Exported files that are not as they should be, for `doctor`.
pub(crate) fn problems(project: &Project) -> Vec<Problem> {
    let at = |path: &str| Source::new(path, 0);
    let problem = |(path, drift): (String, Drift)| {
        let (message, hint) = match drift {
            Drift::Stale => ("the team has changed since it was exported here", "`squad upgrade` brings it in step"),
            Drift::Edited => (
                "it was made from the team's files, and somebody has changed it",
                "make the change in the team's files, delete this one, and run `squad agents export`",
            ),
            Drift::Damaged(why) => {
                return Problem::warning(at(&path), "export", why)
                    .hint("mend the marks, or delete the part; then `squad agents export`");
            }
            Drift::Missing => {
                let hint = "`squad agents export` makes it again";
                return Problem::new(crate::model::Severity::Note, at(&path), "export", "somebody has deleted it")
                    .hint(hint);
            }
        };
        Problem::warning(at(&path), "export", message).hint(hint)
    };
    match drifts(project) {
        Ok(found) => found.into_iter().map(problem).collect(),
        Err(failure) => {
            let place = failure.source.unwrap_or_else(|| record::FILE.to_owned());
            let problem = Problem::warning(at(&place), "export", failure.message);
            vec![match failure.hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            }]
        }
    }
}

/// Which targets are looked at.
struct Scope<'a> {
    targets: &'a BTreeSet<Target>,
    is_to_restore: bool,
}

/// The plan for some targets, with paths from the project's root, and the record that it leads to.
fn planned(
    workspace: &Workspace,
    source: &TeamSource,
    record: &Record,
    scope: Scope<'_>,
    outlet: Outlet,
) -> Result<(HostsPlan, Record), Failure> {
    let is_in_scope = |path: &str| scope.targets.iter().any(|target| target.holds(path));
    let (mine, others) = record.files.clone().into_iter().partition(|(path, _)| is_in_scope(path));
    let before = Record { files: mine, ..record.clone() };
    let wanted = source.texts(scope.targets, &workspace.folder);
    let places = source::places(workspace, &before, &wanted, outlet)?;
    let older = || source::older_texts(workspace, scope.targets).unwrap_or_default();
    let planner = Planner {
        repository: &workspace.repository,
        before: &before,
        wanted: &wanted,
        places: &places,
        older: &older,
        is_to_restore: scope.is_to_restore,
    };
    let (plan, files) = planner.plan()?;
    let others: BTreeMap<_, _> = others;
    let targets = record.targets.union(scope.targets).copied().collect();
    let next = Record { targets, files: files.into_iter().chain(others).collect(), ..record.clone() };
    Ok((plan, next))
}

/// With paths from the repository's root.
fn in_repository(workspace: &Workspace, mut plan: HostsPlan) -> HostsPlan {
    let root = workspace.path_in_repository();
    let full = |path: &mut String| path.insert_str(0, &root);
    plan.changes.iter_mut().for_each(|change| full(&mut change.path));
    plan.kept.iter_mut().for_each(full);
    plan.left.iter_mut().for_each(|left| full(&mut left.path));
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

/// Fails where git would leave a new file alone: a commit of it would surprise whoever ignored it.
fn insist_on_tracked(workspace: &Workspace, changes: &[FileChange]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for change in changes.iter().filter(|change| change.old.is_none()) {
        let folder = change.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if seen.insert(folder) && workspace.repository.would_ignore(&change.path)? {
            return Err(Failure::failed("cannot commit: git ignores this file")
                .at(&change.path)
                .hint("--no-commit writes the files all the same; or change .gitignore"));
        }
    }
    Ok(())
}
