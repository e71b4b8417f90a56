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
use crate::model::{ChangeKind, SkippedFile, Sort};
use crate::ops::Workspace;
use crate::ops::change::{Change, Changed, Conflict, FileChange, Merged, Tree, WriteMode, conflict_copy, merged, same};
use crate::ops::team::fit::{Selection, without_ownership};
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
            Some((manifest.release, Plan::new(&workspace, &templates, &manifest, &files)?))
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

/// The agents of the templates that the team has.
fn installed(templates: &Templates, manifest: &Manifest, files: &BTreeMap<String, Vec<u8>>) -> Selection {
    let slug = |path: &String| Some(path.strip_prefix("agents/")?.strip_suffix("/charter.md")?.to_owned());
    let there = manifest.files.iter().filter(|(path, _)| files.contains_key(*path));
    let there: Vec<String> = there.filter_map(|(path, owned)| slug(owned.template.as_ref().unwrap_or(path))).collect();
    Selection::new(&templates.files.keys().filter_map(slug).collect::<Vec<_>>(), &there)
}

/// What an upgrade does to the files that squad owns. Paths are from the repository's root.
#[derive(Default)]
struct Plan {
    changes: Vec<FileChange>,
    conflicts: Vec<Conflict>,
    /// Squad's new versions of the files in conflict.
    copies: Vec<FileChange>,
    unmanaged: Vec<String>,
}

impl Plan {
    /// `files`: the team's, by path from its folder.
    fn new(
        workspace: &Workspace,
        templates: &Templates,
        manifest: &Manifest,
        files: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, Failure> {
        let mut plan = Self::default();
        let folder = workspace.folder_in_repository();
        let full = |path: &str| format!("{folder}/{path}");
        let change = |path: &String, new| FileChange::new(full(path), files.get(path).cloned(), new);
        let selection = installed(templates, manifest, files);
        let mut next = manifest.clone();
        (next.release, next.files) = (templates.release, BTreeMap::new());
        for (path, owned) in &manifest.files {
            let name = owned.template.as_ref().unwrap_or(path);
            let tailored = |text: &[u8]| selection.tailored(name, text);
            let base = templates.text(&owned.base).map(tailored);
            let (ours, base) = (files.get(path), base.as_deref());
            let Some(new) = templates.files.get(name) else {
                // Squad does not install it any more.
                match (ours, base) {
                    (None, _) => {}
                    (Some(ours), Some(base)) if same(ours, base) => plan.changes.push(change(path, None)),
                    _ => plan.unmanaged.push(full(path)),
                }
                continue;
            };
            let hash = hash(new);
            let is_newest = hash == owned.base;
            next.files.insert(path.clone(), Owned { base: hash, ..owned.clone() });
            let new = &tailored(new);
            let merged = match (ours, base) {
                _ if is_newest => Merged::Unchanged,
                (None, _) => {
                    plan.unmanaged.push(full(path));
                    Merged::Unchanged
                }
                (Some(ours), Some(base)) => merged(&workspace.repository, base, ours, new)?,
                // The text it was made from is unknown.
                (Some(ours), None) if same(ours, new) => Merged::Unchanged,
                (Some(_), None) => Merged::Conflict(new.clone()),
            };
            match merged {
                Merged::Unchanged => {}
                Merged::Changed(new) => plan.changes.push(change(path, Some(new))),
                Merged::Conflict(text) => {
                    let new = format!("{}{NEW}", full(path));
                    let is_squads = |old: &[u8]| templates.texts().any(|text| text == old || tailored(text) == old);
                    plan.copies.extend(conflict_copy(&workspace.work_dir, &new, &text, is_squads)?);
                    plan.conflicts.push(Conflict { path: full(path), new });
                }
            }
        }
        let is_known =
            |path: &String| manifest.files.iter().any(|(file, owned)| owned.template.as_ref().unwrap_or(file) == path);
        for (path, new) in templates.owned().filter(|(path, _)| !is_known(path)) {
            // New charters are not installed, since their agents are not on the roster. Existing files are the team's own.
            if !path.starts_with("agents/") && !files.contains_key(path) {
                plan.changes.push(change(path, Some(new.clone())));
                next.files.insert(path.clone(), Owned { base: hash(new), template: None });
            }
        }
        plan.changes.stable_sort_by(|one, other| one.path.cmp(&other.path));
        if next != *manifest {
            plan.changes.push(change(&FILE.to_owned(), Some(next.text().into_bytes())));
        }
        Ok(plan)
    }
}
