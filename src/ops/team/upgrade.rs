//! Upgrading: what a newer squad installs, merged into what the team has made of what an older one installed.
//!
//! Each file is merged three ways: from the text it was made from, by what the team did and by what squad did since.
//! Where both changed the same lines, the team's file stays as it is and squad's new one is laid beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::manifest::{FILE, Manifest, Owned};
use super::templates::{Templates, hash};
use crate::env::Env;
use crate::error::Failure;
use crate::git::{Repository, Rewrite};
use crate::ops::Workspace;
use crate::ops::team::changeset::{ChangedFile, Changeset, FileChange, insist_on_branch};
use crate::ops::team::hosts::{self, LeftFile};
use crate::ops::team::membership::Outlet;
use crate::ops::team::merge::{Beside, Conflict, Merged, merged, room_for, same};

const COMMAND: &str = "upgrade";

/// What is appended to the name of a file for squad's new one.
const NEW: &str = ".new";

/// What an upgrade does, or would.
#[derive(Debug, Serialize)]
pub(crate) struct Upgraded {
    /// The releases of the team's files, before and after. `None`: the team has no manifest.
    pub(crate) from: Option<u32>,
    pub(crate) to: u32,
    pub(crate) files: Vec<ChangedFile>,
    /// Files that stay as they are, with squad's new one beside each.
    pub(crate) conflicts: Vec<Conflict>,
    /// Files that the team has deleted or replaced, and that squad leaves to it.
    pub(crate) left: Vec<String>,
    /// Exported files that keep what people changed in them.
    pub(crate) kept: Vec<String>,
    /// Files that are not exported, and why.
    pub(crate) unexported: Vec<LeftFile>,
    /// Team files with changes that are not committed, where there is nothing to upgrade without them.
    pub(crate) uncommitted: Vec<String>,
    pub(crate) commit: Option<String>,
    #[serde(skip)]
    pub(crate) diff: String,
}

/// What becomes of one file.
enum Step {
    /// It is as it should be.
    Stays,
    Becomes(Vec<u8>),
    Goes,
    /// Squad's new text is laid beside it.
    Conflicts(Vec<u8>),
    /// It is the team's now.
    Left,
}

pub(crate) fn upgrade(env: &Env, directory: &Path, outlet: Outlet) -> Result<Upgraded, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let _lock = outlet.lock(env, &workspace, "upgrade")?;
    let templates = Templates::of(env);
    let files = team_files(&workspace, outlet)?;
    let owned = match files.get(FILE) {
        Some(text) => {
            let at = format!("{}/{FILE}", workspace.folder_in_repository());
            let manifest = Manifest::read(&String::from_utf8_lossy(text), &at)?;
            manifest.insist_on_known(&templates, &at)?;
            let plan = Plan::new(&workspace.repository, &templates, &manifest, &files)?;
            Some((manifest.release, plan.sorted(&workspace, &manifest)?))
        }
        None => None,
    };
    let (from, mut sorted) = owned.map_or_else(Default::default, |(release, sorted)| (Some(release), sorted));
    let message = message(from, templates.release, !sorted.changes.is_empty());
    let hosts = hosts::in_step(&workspace, &sorted.changes, outlet)?.unwrap_or_default();
    sorted.changes.extend(hosts.changes);
    let changeset = Changeset::new(COMMAND, message, sorted.changes);
    let mut upgraded = Upgraded {
        from,
        to: templates.release,
        files: changeset.changed_files(),
        conflicts: sorted.conflicts.into_iter().chain(hosts.conflicts.iter().map(|(one, _)| one.clone())).collect(),
        left: sorted.left,
        kept: hosts.kept,
        unexported: hosts.left,
        uncommitted: Vec::new(),
        commit: None,
        diff: changeset.diff(),
    };
    if changeset.files.is_empty() {
        if outlet.is_of_the_branch() {
            upgraded.uncommitted = workspace.repository.changed_below(&workspace.folder_in_repository())?;
        }
        return Ok(upgraded);
    }
    let repository = &workspace.repository;
    if outlet.is_of_the_branch() {
        changeset.insist_on_room(repository)?;
    }
    // First: the manifest must not say that somebody has seen what nobody was shown.
    if !matches!(outlet, Outlet::Shown { .. }) {
        let beside = &sorted.beside;
        let files: Vec<_> =
            beside.iter().map(|(path, old, new)| Rewrite::new(path, old.as_deref(), Some(new))).collect();
        repository.rewrite(COMMAND, &files)?;
    }
    hosts::lay_beside(&workspace, COMMAND, &hosts.conflicts, outlet)?;
    match outlet {
        Outlet::Commit => upgraded.commit = Some(changeset.commit(env, repository)?),
        Outlet::WorkTree => changeset.write(repository)?,
        Outlet::Shown { .. } => {}
    }
    Ok(upgraded)
}

fn message(from: Option<u32>, to: u32, has_owned: bool) -> String {
    match from.filter(|_| has_owned) {
        Some(from) => format!(
            "squad: upgrade the team's files to release {to}\n\nMerged into what the team has made of release {from}.\n"
        ),
        None => "squad: bring exported files in step with the team\n".to_owned(),
    }
}

/// The team's files by path from its folder, as the branch has them, or the work tree.
fn team_files(workspace: &Workspace, outlet: Outlet) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    const LARGEST: u64 = 16 * 1024 * 1024;
    let folder = workspace.folder_in_repository();
    let inner = |path: &str| path.strip_prefix(&folder).map(|path| path.trim_start_matches('/').to_owned());
    if outlet.is_of_the_branch() {
        let commit = insist_on_branch(&workspace.repository)?;
        let wanted = |path: &str| {
            let inner = inner(path)?;
            let is_decision = inner.starts_with("decisions/") && inner != "decisions/README.md";
            (!is_decision && !inner.ends_with("history.md")).then_some(LARGEST)
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
    let read = |path: String| {
        let place = workspace.folder.path.join(&path);
        let is_file = place.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        is_file.then(|| fs::read(&place).ok()).flatten().map(|bytes| (path, bytes))
    };
    Ok(all.filter_map(read).collect())
}

/// What becomes of each file, by path from the team folder.
struct Plan<'a> {
    templates: &'a Templates,
    files: &'a BTreeMap<String, Vec<u8>>,
    steps: BTreeMap<String, Step>,
    manifest: Manifest,
}

impl<'a> Plan<'a> {
    fn new(
        repository: &Repository,
        templates: &'a Templates,
        manifest: &Manifest,
        files: &'a BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, Failure> {
        let mut steps = BTreeMap::new();
        let mut next = manifest.clone();
        (next.release, next.files) = (templates.release, BTreeMap::new());
        for (path, owned) in &manifest.files {
            let name = owned.template.as_ref().unwrap_or(path);
            let Some(new) = templates.files.get(name) else {
                steps.insert(path.clone(), gone(templates, owned, files.get(path)));
                continue;
            };
            let step = match (files.get(path), templates.text(&owned.base)) {
                _ if hash(new) == owned.base => Step::Stays,
                (None, _) => Step::Left,
                (Some(ours), Some(base)) => match merged(repository, base, ours, new)? {
                    Merged::Stays => Step::Stays,
                    Merged::Becomes(merged) => Step::Becomes(merged),
                    Merged::Conflicts(new) => Step::Conflicts(new),
                },
                // Nobody knows the text it was made from.
                (Some(ours), None) if same(ours, new) => Step::Stays,
                (Some(_), None) => Step::Conflicts(new.clone()),
            };
            steps.insert(path.clone(), step);
            next.files.insert(path.clone(), Owned { base: hash(new), ..owned.clone() });
        }
        let is_known =
            |path: &String| manifest.files.iter().any(|(file, owned)| owned.template.as_ref().unwrap_or(file) == path);
        for (path, new) in templates.owned().filter(|(path, _)| !is_known(path)) {
            // Whoever is not on the roster needs no charter, and what is there is the team's.
            if !path.starts_with("agents/") && !files.contains_key(path) {
                steps.insert(path.clone(), Step::Becomes(new.clone()));
                next.files.insert(path.clone(), Owned { base: hash(new), template: None });
            }
        }
        Ok(Self { templates, files, steps, manifest: next })
    }

    /// The steps by what they do, and the manifest's own change.
    fn sorted(&self, workspace: &Workspace, manifest: &Manifest) -> Result<Sorted, Failure> {
        let folder = workspace.folder_in_repository();
        let full = |path: &str| format!("{folder}/{path}");
        let Sorted { mut changes, mut conflicts, mut beside, mut left } = Sorted::default();
        for (path, step) in &self.steps {
            let change = |new: Option<Vec<u8>>| FileChange::new(full(path), self.files.get(path).cloned(), new);
            match step {
                Step::Stays => {}
                Step::Becomes(new) => changes.push(change(Some(new.clone()))),
                Step::Goes => changes.push(change(None)),
                Step::Left => left.push(full(path)),
                Step::Conflicts(new) => {
                    let place = format!("{}{NEW}", full(path));
                    beside.extend(room_for(&workspace.work_dir, &place, new, |old| self.templates.knows(old))?);
                    conflicts.push(Conflict { path: full(path), new: place });
                }
            }
        }
        if self.manifest != *manifest {
            let old = self.files.get(FILE).cloned();
            changes.push(FileChange::new(full(FILE), old, Some(self.manifest.text().into_bytes())));
        }
        Ok(Sorted { changes, conflicts, beside, left })
    }
}

/// What a plan does, by kind.
#[derive(Default)]
struct Sorted {
    changes: Vec<FileChange>,
    conflicts: Vec<Conflict>,
    beside: Vec<Beside>,
    left: Vec<String>,
}

/// Of a file that squad does not install any more.
fn gone(templates: &Templates, owned: &Owned, ours: Option<&Vec<u8>>) -> Step {
    match (ours, templates.text(&owned.base)) {
        (None, _) => Step::Stays,
        (Some(ours), Some(base)) if same(ours, base) => Step::Goes,
        _ => Step::Left,
    }
}
