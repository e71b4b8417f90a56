//! Reads what an export is made from: the team on the branch or in the work tree, the record, and the current files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::plan::CurrentFile;
use super::plugin;
use super::record::{self, Record};
use super::render::{self, HostText, HostTexts};
use super::target::Target;
use crate::error::Failure;
use crate::model::{IntoMap, IntoSet, Team};
use crate::ops::Workspace;
use crate::ops::change::{FileChange, Found, Tree, WriteMode};
use crate::ops::team::commit::files_at;
use crate::ops::team::membership::Base;
use crate::parse;
use crate::store::TeamFolder;

/// A larger file was not written by squad.
const MAX_SIZE: u64 = 16 << 20;

/// The team to export.
pub(super) struct TeamSource {
    pub(super) team: Team,
    skills: HostTexts,
    record: Option<Vec<u8>>,
}

/// The record's path from the repository's root.
pub(super) fn record_path(workspace: &Workspace) -> String {
    format!("{}/{}", workspace.folder_in_repository(), record::FILE)
}

/// Whether the team was exported before.
pub(super) fn has_record(workspace: &Workspace, mode: WriteMode) -> Result<bool, Failure> {
    if !mode.uses_branch() {
        return Ok(super::is_exported(&workspace.folder));
    }
    match workspace.repository.head()?.commit {
        Some(commit) => Ok(workspace.repository.has_at(&commit, &record_path(workspace))?),
        None => Ok(false),
    }
}

impl TeamSource {
    /// Reads the team as it will be after `changes`.
    pub(super) fn read(workspace: &Workspace, mode: WriteMode, changes: &[FileChange]) -> Result<Self, Failure> {
        let folder = workspace.folder_in_repository();
        let inner = |path: &str| path.strip_prefix(&folder)?.strip_prefix('/').map(str::to_owned);
        let base = Base::read(workspace, mode)?;
        let mut files = base.files.clone();
        for change in changes {
            let Some(path) = inner(&change.path) else { continue };
            match change.new.as_ref().and_then(|bytes| String::from_utf8(bytes.clone()).ok()) {
                Some(text) if files.texts.contains_key(&path) => drop(files.texts.insert(path, text)),
                _ => drop(files.texts.remove(&path)),
            }
        }
        let mut skills = HostTexts::new();
        for (path, found) in base.tree.below(&format!("{folder}/skills"))? {
            if let (Some(inner), Found::File { bytes, executable }) = (inner(&path), found) {
                skills.insert(inner, HostText { executable, ..HostText::file(bytes) });
            }
        }
        let record = base.tree.bytes(&record_path(workspace))?;
        Ok(Self { team: parse::team(&files).0, skills, record })
    }

    pub(super) fn record(&self, workspace: &Workspace) -> Result<Option<Record>, Failure> {
        let at = record_path(workspace);
        self.record.as_ref().map(|bytes| Record::read(bytes, &at)).transpose()
    }

    pub(super) fn texts(&self, targets: &BTreeSet<Target>, folder: &TeamFolder) -> HostTexts {
        texts(&self.team, &self.skills, targets, folder)
    }
}

fn texts(team: &Team, skills: &HostTexts, targets: &BTreeSet<Target>, folder: &TeamFolder) -> HostTexts {
    let each = targets.iter().map(|target| match target {
        Target::Plugin => plugin::texts(team, skills, folder.name),
        target => render::texts(*target, team),
    });
    each.flatten().into_map()
}

/// The texts at the commit that last changed the record: the base for merging the user's edits.
pub(super) fn previous_texts(workspace: &Workspace, targets: &BTreeSet<Target>) -> Result<HostTexts, Failure> {
    let Some(commit) = workspace.repository.last_change_of(&record_path(workspace))? else {
        return Ok(HostTexts::new());
    };
    let folder = workspace.folder_in_repository();
    let skills = workspace.repository.files_at(&commit, &format!("{folder}/skills"), |_| Some(MAX_SIZE))?;
    let inner = |path: &str| path.strip_prefix(&folder)?.strip_prefix('/').map(str::to_owned);
    let skills = skills.into_iter().filter_map(|(path, bytes)| Some((inner(&path)?, HostText::file(bytes)))).into_map();
    let team = parse::team(&files_at(workspace, &commit)?).0;
    Ok(texts(&team, &skills, targets, &workspace.folder))
}

/// What is at the paths of recorded and wanted files now, by path from the project's root.
pub(super) fn current_files(
    workspace: &Workspace,
    record: &Record,
    wanted: &HostTexts,
    mode: WriteMode,
) -> Result<BTreeMap<String, CurrentFile>, Failure> {
    let tree = Tree::of(workspace, mode)?;
    let root = workspace.path_in_repository();
    let paths: BTreeSet<&String> = record.files.keys().chain(wanted.keys()).into_set();
    let mut found = BTreeMap::new();
    for path in paths {
        let full = format!("{root}{path}");
        let current = match blocking_ancestor(&workspace.work_dir, &full) {
            Some(ancestor) => CurrentFile::Blocked(format!("`{ancestor}` is a link or not a folder")),
            None => match tree.find(&full)? {
                Found::Nothing => CurrentFile::Missing,
                Found::File { bytes, .. } => CurrentFile::File(bytes),
                Found::Other => CurrentFile::Blocked("it is not a regular file: move it away".to_owned()),
            },
        };
        found.insert(path.clone(), current);
    }
    Ok(found)
}

/// The first ancestor of a path that exists and is not a real folder, such as a link.
fn blocking_ancestor(work_dir: &Path, path: &str) -> Option<String> {
    let mut ancestors = path.match_indices('/').map(|(at, _)| &path[..at]);
    let blocks = |part: &&str| work_dir.join(part).symlink_metadata().is_ok_and(|metadata| !metadata.is_dir());
    ancestors.find(blocks).map(str::to_owned)
}
