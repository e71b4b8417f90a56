//! Upgrades the files that squad installed, and keeps the team's edits.
//!
//! Each file is a three-way merge of the text it was made from, the team's version and squad's new version. If both
//! changed the same lines, the team's file stays, and squad's version is written next to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::manifest::{FILE, Manifest, Owned};
use super::templates::{Templates, hash};
use crate::env::Env;
use crate::env::files::read_regular;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::SkippedFile;
use crate::ops::Workspace;
use crate::ops::team::changeset::{ChangedFile, Changeset, FileChange, branch_tip, write_files};
use crate::ops::team::fit::without_ownership;
use crate::ops::team::hosts;
use crate::ops::team::init::FOLDER;
use crate::ops::team::merge::{Conflict, Merged, conflict_copy, merged, same};
use crate::ops::team::preset::Preset;
use crate::ops::team::write_mode::WriteMode;

const COMMAND: &str = "upgrade";

/// Appended to a file's name for squad's new version of it.
const NEW: &str = ".new";

/// The changes made by an upgrade, or planned in a dry run.
#[derive(Debug, Serialize)]
pub(crate) struct Upgraded {
    /// The release of the team's files before the upgrade. `None`: the team has no manifest.
    pub(crate) from: Option<u32>,
    pub(crate) to: u32,
    /// The user's own preset that the files came from; `None`: squad itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preset: Option<String>,
    pub(crate) files: Vec<ChangedFile>,
    /// Files that stay as they are, with squad's new version next to each.
    pub(crate) conflicts: Vec<Conflict>,
    /// Files that squad no longer manages: the team deleted them, or squad does not install them any more.
    #[serde(rename = "left")]
    pub(crate) unmanaged: Vec<String>,
    /// Exported files that keep the user's edits.
    #[serde(rename = "kept")]
    pub(crate) edited: Vec<String>,
    /// Files that are not exported, and why.
    pub(crate) unexported: Vec<SkippedFile>,
    /// If there is nothing to upgrade: team files with uncommitted changes, which an upgrade ignores.
    pub(crate) uncommitted: Vec<String>,
    pub(crate) commit: Option<String>,
    /// The team's folder, if it is another tool's.
    #[serde(skip)]
    pub(crate) adoptable: Option<&'static str>,
    #[serde(skip)]
    pub(crate) diff: String,
}

/// What to do with one file.
enum Action {
    Keep,
    Write(Vec<u8>),
    Delete,
    /// Keep it, and write this text next to it.
    Conflict(Vec<u8>),
    /// Keep it, and stop managing it.
    Release,
}

pub(crate) fn upgrade(env: &Env, directory: &Path, mode: WriteMode) -> Result<Upgraded, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let _lock = mode.lock(env, &workspace, "upgrade")?;
    let mut templates = Templates::of(env);
    let files = team_files(&workspace, mode)?;
    let mut preset = None;
    let owned = match files.get(FILE) {
        Some(text) => {
            let at = format!("{}/{FILE}", workspace.folder_in_repository());
            let manifest = Manifest::read(&String::from_utf8_lossy(text), &at)?;
            manifest.require_known_release(&templates, &at)?;
            if let Some(from) = &manifest.preset {
                let preset = Preset::read(env, &workspace.folder.root, from).map_err(|failure| failure.at(&at))?;
                templates = Templates::of_preset(preset.files);
            }
            find_bases(&workspace, &manifest, &files, &mut templates)?;
            preset.clone_from(&manifest.preset);
            let plan = Plan::new(&workspace.repository, &templates, &manifest, &files)?;
            Some((manifest.release, plan.changes(&workspace, &manifest)?))
        }
        None => None,
    };
    let (from, mut planned) = owned.map_or_else(Default::default, |(release, planned)| (Some(release), planned));
    let message = message(from, templates.release, preset.is_some(), !planned.changes.is_empty());
    let hosts = hosts::plan_update(&workspace, &planned.changes, mode)?.unwrap_or_default();
    planned.changes.extend(hosts.changes);
    let changeset = Changeset::new(COMMAND, message, planned.changes);
    let mut upgraded = Upgraded {
        from,
        to: templates.release,
        preset,
        files: changeset.changed_files(),
        conflicts: planned.conflicts.into_iter().chain(hosts.conflicts.iter().map(|(one, _)| one.clone())).collect(),
        unmanaged: planned.unmanaged,
        edited: hosts.edited,
        unexported: hosts.skipped,
        uncommitted: Vec::new(),
        commit: None,
        adoptable: Some(workspace.folder.name).filter(|name| *name != FOLDER),
        diff: changeset.diff(),
    };
    if changeset.files.is_empty() {
        if mode.uses_branch() {
            upgraded.uncommitted = workspace.repository.changed_below(&workspace.folder_in_repository())?;
        }
        return Ok(upgraded);
    }
    let repository = &workspace.repository;
    if mode.uses_branch() {
        changeset.check_committable(repository)?;
    }
    // Written before the manifest: once the manifest has the new release, no later upgrade writes these versions.
    if !mode.is_dry_run() {
        write_files(repository, COMMAND, &planned.copies)?;
    }
    hosts::write_conflict_copies(&workspace, COMMAND, &hosts.conflicts, mode)?;
    upgraded.commit = changeset.apply(env, repository, mode)?;
    Ok(upgraded)
}

fn message(from: Option<u32>, to: u32, has_preset: bool, has_owned: bool) -> String {
    match from.filter(|_| has_owned) {
        Some(_) if has_preset => {
            "squad: upgrade the team's files from its preset\n\nMerges what the preset has changed into them.\n"
                .to_owned()
        }
        Some(from) => format!(
            "squad: upgrade the team's files to release {to}\n\nMerges the changes since release {from} into them.\n"
        ),
        None => "squad: update exported files\n".to_owned(),
    }
}

/// The team's files, from the branch or the work tree, by path relative to its folder.
fn team_files(workspace: &Workspace, mode: WriteMode) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    const MAX_SIZE: u64 = 16 * 1024 * 1024;
    let folder = workspace.folder_in_repository();
    let inner = |path: &str| path.strip_prefix(&folder).map(|path| path.trim_start_matches('/').to_owned());
    if mode.uses_branch() {
        let commit = branch_tip(&workspace.repository)?;
        let wanted = |path: &str| {
            let inner = inner(path)?;
            let is_decision = inner.starts_with("decisions/") && inner != "decisions/README.md";
            (!is_decision && !inner.ends_with("history.md")).then_some(MAX_SIZE)
        };
        let found = workspace.repository.files_at(&commit, &folder, wanted)?;
        let found: BTreeMap<_, _> =
            found.into_iter().filter_map(|(path, bytes)| Some((inner(&path)?, bytes))).collect();
        if !found.contains_key(FILE) && workspace.folder.path.join(FILE).exists() {
            return Err(Failure::failed(format!("cannot commit: {folder}/{FILE} is not committed"))
                .hint("commit the team first, or leave the commit to yourself with --no-commit"));
        }
        return Ok(found);
    }
    let manifest = fs::read(workspace.folder.path.join(FILE)).ok();
    let paths = manifest.as_ref().and_then(|text| {
        let manifest = Manifest::read(&String::from_utf8_lossy(text), FILE).ok()?;
        Some(manifest.files.into_keys().collect::<Vec<_>>())
    });
    let all = paths.unwrap_or_default().into_iter().chain([FILE.to_owned()]);
    let read = |path: String| read_regular(&workspace.folder.path.join(&path), u64::MAX - 1).map(|bytes| (path, bytes));
    Ok(all.filter_map(read).collect())
}

/// Looks in the branch's history for the texts that files were made from and that `templates` lacks.
fn find_bases(
    workspace: &Workspace,
    manifest: &Manifest,
    files: &BTreeMap<String, Vec<u8>>,
    templates: &mut Templates,
) -> Result<(), Failure> {
    let folder = workspace.folder_in_repository();
    for (path, owned) in &manifest.files {
        if templates.text(&owned.base).is_some() {
            continue;
        }
        let mut add = |text: &[u8]| {
            let routing = std::str::from_utf8(text).ok().and_then(without_ownership).map(str::as_bytes);
            let base = [Some(text), routing].into_iter().flatten().find(|text| hash(text) == owned.base);
            base.map(|text| templates.add(text.to_vec())).is_some()
        };
        if files.get(path).is_none_or(|text| add(text)) {
            continue;
        }
        let names = [Some(path), owned.template.as_ref()].into_iter().flatten();
        for name in names.map(|name| format!("{folder}/{name}")) {
            if workspace.repository.versions_of(&name)?.iter().any(|text| add(text)) {
                break;
            }
        }
    }
    Ok(())
}

/// Paths are from the team folder.
struct Plan<'a> {
    templates: &'a Templates,
    files: &'a BTreeMap<String, Vec<u8>>,
    actions: BTreeMap<String, Action>,
    /// The new manifest.
    manifest: Manifest,
}

impl<'a> Plan<'a> {
    fn new(
        repository: &Repository,
        templates: &'a Templates,
        manifest: &Manifest,
        files: &'a BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, Failure> {
        let mut actions = BTreeMap::new();
        let mut next = manifest.clone();
        (next.release, next.files) = (templates.release, BTreeMap::new());
        for (path, owned) in &manifest.files {
            let name = owned.template.as_ref().unwrap_or(path);
            let Some(new) = templates.files.get(name) else {
                actions.insert(path.clone(), retired(templates, owned, files.get(path)));
                continue;
            };
            let action = match (files.get(path), templates.text(&owned.base)) {
                _ if hash(new) == owned.base => Action::Keep,
                (None, _) => Action::Release,
                (Some(ours), Some(base)) => match merged(repository, base, ours, new)? {
                    Merged::Unchanged => Action::Keep,
                    Merged::Changed(merged) => Action::Write(merged),
                    Merged::Conflict(new) => Action::Conflict(new),
                },
                // The text it was made from is unknown.
                (Some(ours), None) if same(ours, new) => Action::Keep,
                (Some(_), None) => Action::Conflict(new.clone()),
            };
            actions.insert(path.clone(), action);
            next.files.insert(path.clone(), Owned { base: hash(new), ..owned.clone() });
        }
        let is_known =
            |path: &String| manifest.files.iter().any(|(file, owned)| owned.template.as_ref().unwrap_or(file) == path);
        for (path, new) in templates.owned().filter(|(path, _)| !is_known(path)) {
            // New charters are not installed, since their agents are not on the roster. Existing files are the team's own.
            if !path.starts_with("agents/") && !files.contains_key(path) {
                actions.insert(path.clone(), Action::Write(new.clone()));
                next.files.insert(path.clone(), Owned { base: hash(new), template: None });
            }
        }
        Ok(Self { templates, files, actions, manifest: next })
    }

    /// The changes of the files, including the manifest.
    fn changes(&self, workspace: &Workspace, manifest: &Manifest) -> Result<PlannedChanges, Failure> {
        let folder = workspace.folder_in_repository();
        let full = |path: &str| format!("{folder}/{path}");
        let PlannedChanges { mut changes, mut conflicts, mut copies, mut unmanaged } = PlannedChanges::default();
        for (path, action) in &self.actions {
            let change = |new: Option<Vec<u8>>| FileChange::new(full(path), self.files.get(path).cloned(), new);
            match action {
                Action::Keep => {}
                Action::Write(new) => changes.push(change(Some(new.clone()))),
                Action::Delete => changes.push(change(None)),
                Action::Release => unmanaged.push(full(path)),
                Action::Conflict(text) => {
                    let new = format!("{}{NEW}", full(path));
                    copies.extend(conflict_copy(&workspace.work_dir, &new, text, |old| self.templates.contains(old))?);
                    conflicts.push(Conflict { path: full(path), new });
                }
            }
        }
        if self.manifest != *manifest {
            let old = self.files.get(FILE).cloned();
            changes.push(FileChange::new(full(FILE), old, Some(self.manifest.text().into_bytes())));
        }
        Ok(PlannedChanges { changes, conflicts, copies, unmanaged })
    }
}

#[derive(Default)]
struct PlannedChanges {
    changes: Vec<FileChange>,
    conflicts: Vec<Conflict>,
    /// Squad's new versions of the files in conflict.
    copies: Vec<FileChange>,
    unmanaged: Vec<String>,
}

/// The action for a file that squad does not install any more.
fn retired(templates: &Templates, owned: &Owned, ours: Option<&Vec<u8>>) -> Action {
    match (ours, templates.text(&owned.base)) {
        (None, _) => Action::Keep,
        (Some(ours), Some(base)) if same(ours, base) => Action::Delete,
        _ => Action::Release,
    }
}
