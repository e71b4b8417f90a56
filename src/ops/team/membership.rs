//! Adds, retires and renames agents: changes roster, routing and charter together.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use crate::edit::{self, EditedTeam, NewMember};
use crate::env::Env;
use crate::error::Failure;
use crate::model::{ChangeKind, Problem, Slug, Sort, Source};
use crate::ops::Workspace;
use crate::ops::change::{Change, Changed, FileChange, Found, Tree, WriteMode};
use crate::ops::team::commit::{files_at, refuse_conflict_markers};
use crate::ops::team::manifest::{self, Manifest};
use crate::ops::team::members::named_member;
use crate::ops::team::project::require_readable;
use crate::parse::{self, Files};
use crate::store;

/// A change of who is on the team.
pub(crate) enum Membership {
    Add(NewMember),
    Retire(String),
    Rename { from: String, to: String },
}

/// What a change of the team says beside its files.
#[derive(Debug, Serialize)]
pub(crate) struct MembershipReport {
    pub(crate) agent: Slug,
    /// Lines that still contain the old name, which may mean something else there.
    pub(crate) mentions: Vec<Source>,
    /// Routing rules that no longer lead to an agent.
    pub(crate) idle: Vec<Problem>,
    /// What else became of routing rows.
    pub(crate) rows: Vec<String>,
    /// The old name, if there is no charter that could record it.
    pub(crate) forgotten: Option<Slug>,
}

pub(crate) fn change(
    env: &Env,
    directory: &Path,
    membership: &Membership,
    mode: WriteMode,
) -> Result<Changed<MembershipReport>, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let _lock = mode.lock(&workspace, "change")?;
    let base = Base::read(&workspace, mode)?;
    let edited = edited(&base.files, membership)?;
    let change = planned(&workspace, &base, membership, &edited)?.apply(env, &workspace.repository, mode)?;
    let forgotten = forgotten(&base.files, &edited.files, membership, &edited.slug);
    let EditedTeam { slug: agent, mentions, idle, rows, .. } = edited;
    Ok(Changed { kind: kind(membership), details: MembershipReport { agent, mentions, idle, rows, forgotten }, change })
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

pub(crate) fn kind(membership: &Membership) -> ChangeKind {
    match membership {
        Membership::Add(new) => ChangeKind::AddAgent { name: new.name.clone() },
        Membership::Retire(name) => ChangeKind::RetireAgent { name: name.clone() },
        Membership::Rename { from, to } => ChangeKind::RenameAgent { from: from.clone(), to: to.clone() },
    }
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

/// The team before a change, from the branch or the work tree.
pub(super) struct Base<'w> {
    pub(super) tree: Tree<'w>,
    pub(super) files: Files,
}

impl<'w> Base<'w> {
    pub(super) fn read(workspace: &'w Workspace, mode: WriteMode) -> Result<Self, Failure> {
        require_readable(workspace)?;
        let tree = Tree::of(workspace, mode)?;
        let Some(commit) = &tree.commit else { return Ok(Self { files: store::read(&workspace.folder).0, tree }) };
        let folder = workspace.folder_in_repository();
        if !workspace.repository.has_at(commit, &format!("{folder}/team.md"))? {
            return Err(Failure::failed(format!("cannot commit: {folder}/team.md is not committed"))
                .hint("commit the team first, or leave the commit to yourself with --no-commit"));
        }
        let files = files_at(workspace, commit)?;
        refuse_conflict_markers(&files, "HEAD")?;
        Ok(Self { files, tree })
    }
}

fn planned(
    workspace: &Workspace,
    base: &Base<'_>,
    membership: &Membership,
    edited: &EditedTeam,
) -> Result<Change, Failure> {
    let folder = workspace.folder_in_repository();
    let full = |path: &str| format!("{folder}/{path}");
    let mut files = Vec::new();
    let mut moved: BTreeSet<String> = BTreeSet::new();
    if let Some((old_place, new_place)) = &edited.moved {
        for (old, found) in base.tree.below(&full(old_place))? {
            let rest = old.strip_prefix(&full(old_place)).unwrap_or_default();
            let inner = format!("{new_place}{rest}");
            let Found::File { bytes, executable } = found else {
                return Err(Failure::team("it is a link or not a regular file, so squad cannot move it")
                    .at(&old)
                    .hint("move it by hand"));
            };
            let new = changed(base, &edited.files, (&format!("{old_place}{rest}"), &inner), &bytes)?;
            moved.insert(inner.clone());
            let change = FileChange::new(full(&inner), Some(bytes), Some(new));
            files.push(FileChange { from: Some(old), executable, ..change });
        }
    }
    files.extend(changed_files(workspace, base, &edited.files, &moved)?);
    files.extend(manifest(workspace, base, edited)?);
    files.stable_sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Change::new(kind(membership), message(membership, &edited.slug), files))
}

/// The changes of edited files, except for those that move.
pub(super) fn changed_files(
    workspace: &Workspace,
    base: &Base<'_>,
    edited: &Files,
    moved: &BTreeSet<String>,
) -> Result<Vec<FileChange>, Failure> {
    let full = |path: &str| format!("{}/{path}", workspace.folder_in_repository());
    let mut files = Vec::new();
    for (path, text) in &edited.texts {
        if moved.contains(path) || base.files.texts.get(path) == Some(text) {
            continue;
        }
        let old = base.tree.bytes(&full(path))?;
        if base.files.texts.get(path).is_some_and(|text| old.as_deref() != Some(text.as_bytes())) {
            return Err(not_editable(&base.files.folder, path));
        }
        files.push(FileChange::new(full(path), old, Some(text.as_bytes().to_vec())));
    }
    Ok(files)
}

/// Updates the manifest for moved files, so that `squad upgrade` still finds them.
fn manifest(workspace: &Workspace, base: &Base<'_>, edited: &EditedTeam) -> Result<Option<FileChange>, Failure> {
    let Some((from, to)) = &edited.moved else { return Ok(None) };
    let path = format!("{}/{}", workspace.folder_in_repository(), manifest::FILE);
    let Some(old) = base.tree.bytes(&path)? else { return Ok(None) };
    // `squad upgrade` reports a manifest that cannot be read.
    let moved = Manifest::read(&String::from_utf8_lossy(&old), &path).ok().and_then(|known| known.moved(from, to));
    Ok(moved.map(|moved| FileChange::new(path, Some(old), Some(moved.text().into_bytes()))))
}

/// The new content of a moved file. Fails if it must change and is a link or not UTF-8.
fn changed(base: &Base<'_>, edited: &Files, (old, new): (&str, &str), bytes: &[u8]) -> Result<Vec<u8>, Failure> {
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
