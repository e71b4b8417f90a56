//! Where exports come from: the team as the branch or the work tree has it, the record, and what is in the files' places.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::plan::Place;
use super::plugin;
use super::record::{self, Record};
use super::render::{self, HostText, HostTexts};
use super::target::Target;
use crate::error::Failure;
use crate::model::Team;
use crate::ops::Workspace;
use crate::ops::team::changeset::FileChange;
use crate::ops::team::commit::files_at;
use crate::ops::team::membership::{Base, Outlet};
use crate::parse;
use crate::store::TeamFolder;

/// Larger files in the place of an exported one are somebody else's.
const LARGEST: u64 = 16 << 20;

/// A team that is to be exported.
pub(super) struct TeamSource {
    pub(super) team: Team,
    skills: HostTexts,
    record: Option<Vec<u8>>,
}

/// The record's path from the repository's root.
pub(super) fn record_path(workspace: &Workspace) -> String {
    format!("{}/{}", workspace.folder_in_repository(), record::FILE)
}

/// Whether the team was exported anywhere.
pub(super) fn has_record(workspace: &Workspace, outlet: Outlet) -> Result<bool, Failure> {
    if !outlet.is_of_the_branch() {
        return Ok(super::is_exported(&workspace.folder));
    }
    match workspace.repository.head()?.commit {
        Some(commit) => Ok(workspace.repository.has_at(&commit, &record_path(workspace))?),
        None => Ok(false),
    }
}

impl TeamSource {
    /// With `changes` of team files that are about to be made.
    pub(super) fn read(workspace: &Workspace, outlet: Outlet, changes: &[FileChange]) -> Result<Self, Failure> {
        let folder = workspace.folder_in_repository();
        let inner = |path: &str| path.strip_prefix(&folder)?.strip_prefix('/').map(str::to_owned);
        let base = Base::read(workspace, outlet)?;
        let mut files = base.files.clone();
        for change in changes {
            let Some(path) = inner(&change.path) else { continue };
            match change.new.as_ref().and_then(|bytes| String::from_utf8(bytes.clone()).ok()) {
                Some(text) if files.texts.contains_key(&path) => drop(files.texts.insert(path, text)),
                _ => drop(files.texts.remove(&path)),
            }
        }
        let mut skills = HostTexts::new();
        for path in base.below(workspace, &format!("{folder}/skills")) {
            if let (Some(inner), Some(bytes)) = (inner(&path), base.bytes(workspace, &path)?) {
                let executable = base.is_executable(workspace, &path);
                skills.insert(inner, HostText { executable, ..HostText::file(bytes) });
            }
        }
        let record = base.bytes(workspace, &record_path(workspace))?;
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
    each.flatten().collect()
}

/// The texts as they were when the record was last committed: what files with people's edits were made from.
pub(super) fn older_texts(workspace: &Workspace, targets: &BTreeSet<Target>) -> Result<HostTexts, Failure> {
    let Some(commit) = workspace.repository.last_change_of(&record_path(workspace))? else {
        return Ok(HostTexts::new());
    };
    let folder = workspace.folder_in_repository();
    let skills = workspace.repository.files_at(&commit, &format!("{folder}/skills"), |_| Some(LARGEST))?;
    let inner = |path: &str| path.strip_prefix(&folder)?.strip_prefix('/').map(str::to_owned);
    let skills = skills.into_iter().filter_map(|(path, bytes)| Some((inner(&path)?, HostText::file(bytes)))).collect();
    let team = parse::team(&files_at(workspace, &commit)?).0;
    Ok(texts(&team, &skills, targets, &workspace.folder))
}

/// What is in the places of recorded and wanted files, by path from the project's root.
pub(super) fn places(
    workspace: &Workspace,
    record: &Record,
    wanted: &HostTexts,
    outlet: Outlet,
) -> Result<BTreeMap<String, Place>, Failure> {
    let head = if outlet.is_of_the_branch() { workspace.repository.head()?.commit } else { None };
    let root = workspace.path_in_repository();
    let paths: BTreeSet<&String> = record.files.keys().chain(wanted.keys()).collect();
    let mut found = BTreeMap::new();
    for path in paths {
        let full = format!("{root}{path}");
        let place = match (link_above(&workspace.work_dir, &full), &head) {
            (Some(link), _) => Place::Blocked(format!("`{link}` is a link or a file, and squad writes through none")),
            (None, Some(commit)) => on_branch(workspace, commit, &full)?,
            (None, None) => in_work_tree(&workspace.work_dir.join(&full))?,
        };
        found.insert(path.clone(), place);
    }
    Ok(found)
}

const NO_FILE: &str = "it is a link, a folder or no plain file: move it away";

fn on_branch(workspace: &Workspace, commit: &str, path: &str) -> Result<Place, Failure> {
    let mut found = workspace.repository.plain_files_at(commit, path)?;
    Ok(match (found.plain.pop(), found.other.is_empty()) {
        (None, true) => Place::Nothing,
        (Some((there, bytes)), true) if there == path => Place::File(bytes),
        _ => Place::Blocked(NO_FILE.to_owned()),
    })
}

fn in_work_tree(place: &Path) -> Result<Place, Failure> {
    match fs::symlink_metadata(place) {
        Err(_) => Ok(Place::Nothing),
        Ok(metadata) if metadata.is_file() && metadata.len() <= LARGEST => fs::read(place)
            .map(Place::File)
            .map_err(|error| Failure::failed(format!("cannot be read: {error}")).at(place.display())),
        Ok(_) => Ok(Place::Blocked(NO_FILE.to_owned())),
    }
}

/// What above a path is no folder of the work tree's own.
fn link_above(work_dir: &Path, path: &str) -> Option<String> {
    let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
    let is_other = |part: &&str| work_dir.join(part).symlink_metadata().is_ok_and(|metadata| !metadata.is_dir());
    ends.into_iter().find(is_other).map(str::to_owned)
}
