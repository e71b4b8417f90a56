//! Upgrades the files that squad installed, and keeps the team's edits.
//!
//! Each file is a three-way merge of the text it was made from, the team's version and squad's new version. If both
//! changed the same lines, the team's file stays, and squad's version is written next to it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::manifest::{FILE, Manifest, Owned};
use super::templates::{Templates, hash};
use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{ChangeKind, SkippedFile};
use crate::ops::Workspace;
use crate::ops::change::{Change, Changed, Conflict, FileChange, Merged, Tree, WriteMode, conflict_copy, merged, same};
use crate::ops::team::fit::without_ownership;
use crate::ops::team::hosts;
use crate::ops::team::init::FOLDER;
use crate::ops::team::preset::Preset;

/// Appended to a file's name for squad's new version of it.
const NEW: &str = ".new";

/// What an upgrade says beside its files.
#[derive(Debug, Serialize)]
pub(crate) struct Upgraded {
    /// The release of the team's files before the upgrade. `None`: the team has no manifest.
    pub(crate) from: Option<u32>,
    pub(crate) to: u32,
    /// The user's own preset that the files came from; `None`: squad itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preset: Option<String>,
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
    /// The team's folder, if it is another tool's.
    #[serde(skip)]
    pub(crate) adoptable: Option<&'static str>,
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

pub(crate) fn upgrade(env: &Env, directory: &Path, mode: WriteMode) -> Result<Changed<Upgraded>, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let _lock = mode.lock(&workspace, "upgrade")?;
    let mut templates = Templates::of(env);
    let tree = Tree::of(&workspace, mode)?;
    let at = format!("{}/{FILE}", workspace.folder_in_repository());
    let mut preset = None;
    let owned = match tree.bytes(&at)? {
        Some(text) => {
            let manifest = Manifest::read(&String::from_utf8_lossy(&text), &at)?;
            manifest.require_known_release(&templates, &at)?;
            if let Some(from) = &manifest.preset {
                let preset = Preset::read(env, &workspace.folder.root, from).map_err(|failure| failure.at(&at))?;
                templates = Templates::of_preset(preset.files);
            }
            let mut files = BTreeMap::from([(FILE.to_owned(), text)]);
            for path in manifest.files.keys().chain(templates.files.keys()) {
                let found = tree.bytes(&format!("{}/{path}", workspace.folder_in_repository()))?;
                files.extend(found.map(|bytes| (path.clone(), bytes)));
            }
            find_bases(&workspace, &manifest, &files, &mut templates)?;
            preset.clone_from(&manifest.preset);
            let plan = Plan::new(&workspace.repository, &templates, &manifest, &files)?;
            Some((manifest.release, plan.changes(&workspace, &manifest)?))
        }
        None if tree.commit.is_some() && workspace.folder.path.join(FILE).exists() => {
            return Err(Failure::failed(format!("cannot commit: {at} is not committed"))
                .hint("commit the team first, or leave the commit to yourself with --no-commit"));
        }
        None => None,
    };
    let (from, mut planned) = owned.map_or_else(Default::default, |(release, planned)| (Some(release), planned));
    let message = message(from, templates.release, preset.is_some(), !planned.changes.is_empty());
    let hosts = hosts::plan_update(&workspace, &planned.changes, mode)?.unwrap_or_default();
    planned.changes.extend(hosts.changes);
    planned.copies.extend(hosts.copies);
    planned.conflicts.extend(hosts.conflicts);
    let mut upgraded = Upgraded {
        from,
        to: templates.release,
        preset,
        conflicts: planned.conflicts,
        unmanaged: planned.unmanaged,
        edited: hosts.edited,
        unexported: hosts.skipped,
        uncommitted: Vec::new(),
        adoptable: Some(workspace.folder.name).filter(|name| *name != FOLDER),
    };
    if planned.changes.is_empty() && mode.uses_branch() {
        upgraded.uncommitted = workspace.repository.changed_below(&workspace.folder_in_repository())?;
    }
    // Copies come before the manifest: once it has the new release, no later upgrade writes these versions.
    let change = Change { copies: planned.copies, ..Change::new(ChangeKind::Upgrade, message, planned.changes) };
    Ok(Changed { change: change.apply(env, &workspace.repository, mode)?, kind: change.kind, details: upgraded })
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
