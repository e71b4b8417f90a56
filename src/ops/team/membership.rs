//! Adds, retires and renames agents: changes roster, routing and charter together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::edit::{self, EditedTeam, NewMember};
use crate::env::Env;
use crate::error::Failure;
use crate::git::is_executable;
use crate::model::{Problem, Slug, Source, printable};
use crate::ops::Workspace;
use crate::ops::team::changeset::{ChangedFile, Changeset, FileChange, branch_tip};
use crate::ops::team::commit::{files_at, refuse_conflict_markers};
use crate::ops::team::manifest::{self, Manifest};
use crate::ops::team::members::named_member;
use crate::ops::team::project::require_readable;
use crate::ops::team::write_mode::WriteMode;
use crate::parse::{self, Files};
use crate::store;

/// A change of who is on the team.
pub(crate) enum Membership {
    Add(NewMember),
    Retire(String),
    Rename { from: String, to: String },
}

/// The changes made, or planned in a dry run.
#[derive(Debug, Serialize)]
pub(crate) struct MembershipReport {
    pub(crate) agent: Slug,
    pub(crate) files: Vec<ChangedFile>,
    pub(crate) commit: Option<String>,
    /// Lines that still contain the old name, which may mean something else there.
    pub(crate) mentions: Vec<Source>,
    /// Routing rules that no longer lead to an agent.
    pub(crate) idle: Vec<Problem>,
    /// The old name, if there is no charter that could record it.
    pub(crate) forgotten: Option<Slug>,
    #[serde(skip)]
    pub(crate) diff: String,
}

pub(crate) fn change(
    env: &Env,
    directory: &Path,
    membership: &Membership,
    mode: WriteMode,
) -> Result<MembershipReport, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let _lock = mode.lock(env, &workspace, "change")?;
    let base = Base::read(&workspace, mode)?;
    let edited = edited(&base.files, membership)?;
    let changeset = changeset(&workspace, &base, membership, &edited)?;
    Ok(MembershipReport {
        files: changeset.changed_files(),
        commit: changeset.apply(env, &workspace.repository, mode)?,
        mentions: edited.mentions,
        idle: edited.idle,
        forgotten: forgotten(&base.files, &edited.files, membership, &edited.slug),
        agent: edited.slug,
        diff: changeset.diff(),
    })
}

/// The old slug of a renamed agent, if the team's files do not record it.
fn forgotten(before: &Files, after: &Files, membership: &Membership, slug: &Slug) -> Option<Slug> {
    let Membership::Rename { from, .. } = membership else { return None };
    let old = named_member(&parse::team(before).0, from).ok()?.slug.clone();
    let team = parse::team(after).0;
    let member = team.members.iter().find(|member| member.slug == *slug)?;
    let is_recorded = old == *slug || team.formerly(member).any(|former| former == old);
    (!is_recorded).then_some(old)
}

fn edited(files: &Files, membership: &Membership) -> Result<EditedTeam, Failure> {
    let slug_of = |name: &str| Ok::<_, Failure>(named_member(&parse::team(files).0, name)?.slug.clone());
    let edited = match membership {
        Membership::Add(new) => edit::add(files, new),
        Membership::Retire(name) => edit::retire(files, &slug_of(name)?),
        Membership::Rename { from, to } => edit::rename(files, &slug_of(from)?, to),
    };
    edited.map_err(|problem| Failure::of_problem(&problem))
}

/// The command without the leading `squad` and without options.
pub(crate) fn command(membership: &Membership) -> String {
    match membership {
        Membership::Add(new) => format!("agents add {}", quoted(&new.name)),
        Membership::Retire(name) => format!("agents retire {}", quoted(name)),
        Membership::Rename { from, to } => format!("agents rename {} {}", quoted(from), quoted(to)),
    }
}

fn quoted(name: &str) -> String {
    let name = printable(name);
    if name.contains(char::is_whitespace) { format!("\"{name}\"") } else { name }
}

fn message(membership: &Membership, slug: &Slug) -> String {
    let subject = match membership {
        Membership::Add(new) => format!("add {}, {}", new.name, new.role),
        Membership::Retire(name) => format!("retire {name}"),
        Membership::Rename { from, to } => format!("rename {from} to {to}"),
    };
    let subject: String = format!("squad: {subject}").chars().take(72).collect();
    format!("{subject}\n\nSquad-Agent: {slug}\n")
}

/// The team's files before a change, from the branch or the work tree.
pub(super) struct Base {
    pub(super) files: Files,
    /// Every committed file of the team, by path from the repository's root. Empty if the work tree is read.
    bytes: BTreeMap<String, Vec<u8>>,
    executables: BTreeSet<String>,
}

impl Base {
    pub(super) fn read(workspace: &Workspace, mode: WriteMode) -> Result<Self, Failure> {
        require_readable(workspace)?;
        let folder = workspace.folder_in_repository();
        if !mode.uses_branch() {
            let (files, _) = store::read(&workspace.folder);
            return Ok(Self { files, bytes: BTreeMap::new(), executables: BTreeSet::new() });
        }
        let commit = branch_tip(&workspace.repository)?;
        if !workspace.repository.has_at(&commit, &format!("{folder}/team.md"))? {
            return Err(Failure::failed(format!("cannot commit: {folder}/team.md is not committed"))
                .hint("commit the team first, or leave the commit to yourself with --no-commit"));
        }
        let files = files_at(workspace, &commit)?;
        refuse_conflict_markers(&files, "HEAD")?;
        let wanted = |path: &str| Some(store::largest(path).max(MAX_SIZE));
        let bytes = workspace.repository.files_at(&commit, &folder, wanted)?.into_iter().collect();
        let executables = workspace.repository.executables_at(&commit, &folder)?;
        Ok(Self { files, bytes, executables })
    }

    pub(super) fn bytes(&self, workspace: &Workspace, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        if !self.bytes.is_empty() {
            return Ok(self.bytes.get(path).cloned());
        }
        let place = workspace.work_dir.join(path);
        match fs::symlink_metadata(&place) {
            Ok(metadata) if metadata.is_file() => {
                let read = fs::read(&place);
                read.map(Some).map_err(|error| Failure::team(format!("cannot be read: {error}")).at(path))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn is_executable(&self, workspace: &Workspace, path: &str) -> bool {
        match self.bytes.is_empty() {
            true => is_executable(&workspace.work_dir.join(path)),
            false => self.executables.contains(path),
        }
    }

    /// All files in a folder, or the path itself if it is a file. Paths are from the repository's root.
    pub(super) fn below(&self, workspace: &Workspace, place: &str) -> Vec<String> {
        let inner = format!("{place}/");
        if !self.bytes.is_empty() {
            let paths = self.bytes.keys();
            return paths.filter(|path| *path == place || path.starts_with(&inner)).cloned().collect();
        }
        let mut found = Vec::new();
        let mut open = vec![place.to_owned()];
        while let Some(path) = open.pop() {
            let place = workspace.work_dir.join(&path);
            // A link may lead out, or in a circle.
            let is_link = place.is_symlink();
            match fs::read_dir(place).ok().filter(|_| !is_link) {
                Some(entries) => {
                    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
                    open.extend(names.map(|name| format!("{path}/{name}")));
                }
                None => found.push(path),
            }
        }
        found.sort();
        found
    }
}

/// The maximum size of a file in a folder that moves.
const MAX_SIZE: u64 = 64 * 1024 * 1024;

fn changeset(
    workspace: &Workspace,
    base: &Base,
    membership: &Membership,
    edited: &EditedTeam,
) -> Result<Changeset, Failure> {
    let folder = workspace.folder_in_repository();
    let full = |path: &str| format!("{folder}/{path}");
    let mut files = Vec::new();
    let mut moved: BTreeSet<String> = BTreeSet::new();
    if let Some((old_place, new_place)) = &edited.moved {
        for old in base.below(workspace, &full(old_place)) {
            let rest = old.strip_prefix(&full(old_place)).unwrap_or_default();
            let inner = format!("{new_place}{rest}");
            let Some(bytes) = base.bytes(workspace, &old)? else {
                return Err(Failure::team("it is a link or not a regular file, so squad cannot move it")
                    .at(&old)
                    .hint("move it by hand"));
            };
            let new = changed(base, &edited.files, (&format!("{old_place}{rest}"), &inner), &bytes)?;
            moved.insert(inner.clone());
            let executable = base.is_executable(workspace, &old);
            let change = FileChange::new(full(&inner), Some(bytes), Some(new));
            files.push(FileChange { from: Some(old), executable, ..change });
        }
    }
    files.extend(changed_files(workspace, base, &edited.files, &moved)?);
    files.extend(manifest(workspace, base, edited)?);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Changeset::new(command(membership), message(membership, &edited.slug), files))
}

/// The changes of edited files, except for those that move.
pub(super) fn changed_files(
    workspace: &Workspace,
    base: &Base,
    edited: &Files,
    moved: &BTreeSet<String>,
) -> Result<Vec<FileChange>, Failure> {
    let full = |path: &str| format!("{}/{path}", workspace.folder_in_repository());
    let mut files = Vec::new();
    for (path, text) in &edited.texts {
        if moved.contains(path) || base.files.texts.get(path) == Some(text) {
            continue;
        }
        let old = base.bytes(workspace, &full(path))?;
        if base.files.texts.get(path).is_some_and(|text| old.as_deref() != Some(text.as_bytes())) {
            return Err(not_editable(&base.files.folder, path));
        }
        files.push(FileChange::new(full(path), old, Some(text.as_bytes().to_vec())));
    }
    Ok(files)
}

/// Updates the manifest for moved files, so that `squad upgrade` still finds them.
fn manifest(workspace: &Workspace, base: &Base, edited: &EditedTeam) -> Result<Option<FileChange>, Failure> {
    let Some((from, to)) = &edited.moved else { return Ok(None) };
    let path = format!("{}/{}", workspace.folder_in_repository(), manifest::FILE);
    let Some(old) = base.bytes(workspace, &path)? else { return Ok(None) };
    // `squad upgrade` reports a manifest that cannot be read.
    let moved = Manifest::read(&String::from_utf8_lossy(&old), &path).ok().and_then(|known| known.moved(from, to));
    Ok(moved.map(|moved| FileChange::new(path, Some(old), Some(moved.text().into_bytes()))))
}

/// The new content of a moved file. Fails if it must change and is a link or not UTF-8.
fn changed(base: &Base, edited: &Files, (old, new): (&str, &str), bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let (before, after) = (base.files.texts.get(old), edited.texts.get(new));
    match (before, after) {
        (Some(before), Some(after)) if before != after => match before.as_bytes() == bytes {
            true => Ok(after.as_bytes().to_vec()),
            false => Err(not_editable(&base.files.folder, old)),
        },
        _ => Ok(bytes.to_vec()),
    }
}

fn not_editable(folder: &str, path: &str) -> Failure {
    Failure::team("it is a link or not UTF-8, so squad cannot change a part of it")
        .at(format!("{folder}/{path}"))
        .hint("save it as a plain UTF-8 file and commit it")
}
