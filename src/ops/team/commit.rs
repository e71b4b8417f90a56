//! Reads a team from a commit, without a checkout.

use std::collections::BTreeMap;

use crate::error::Failure;
use crate::model::IntoMap;
use crate::ops::Workspace;
use crate::ops::team::workspace::{below, project_path};
use crate::parse::{Files, conflicts, linked_files, text_of};
use crate::store;

/// The team's files in a commit; none if the commit has no such team. What is too large is passed over, and reported at
/// the command's end.
pub(in crate::ops) fn files_at(workspace: &Workspace, commit: &str) -> Result<Files, Failure> {
    let root = project_path(&workspace.folder, &workspace.work_dir);
    for name in store::FOLDERS {
        let folder = below(&root, name);
        let inner = |path: &str| path.strip_prefix(&folder)?.strip_prefix('/').map(str::to_owned);
        let is_wanted = |path: &String| store::is_team_file(path) || store::may_be_linked(path);
        let wanted = |path: &str| inner(path).filter(is_wanted).map(|path| store::largest(&path));
        let found = workspace.repository.readable_files_at(commit, &folder, wanted)?;
        let texts: BTreeMap<String, String> =
            found.into_iter().filter_map(|(path, bytes)| Some((inner(&path)?, text_of(bytes).0))).into_map();
        let mut files = Files { folder: name.to_owned(), texts };
        if !files.texts.is_empty() {
            let linked = linked_files(&files);
            files.texts.retain(|path, _| store::is_team_file(path) || linked.contains(path));
            return Ok(files);
        }
    }
    Ok(Files::default())
}

/// The same for two commits with the same files of the team.
pub(in crate::ops) fn state_at(workspace: &Workspace, commit: &str) -> Result<Vec<Option<String>>, Failure> {
    let root = project_path(&workspace.folder, &workspace.work_dir);
    store::FOLDERS.iter().map(|name| Ok(workspace.repository.id_at(commit, &below(&root, name))?)).collect()
}

/// Fails if the files of a revision contain conflict markers: decisions in such files would look withdrawn.
pub(in crate::ops) fn refuse_conflict_markers(files: &Files, revision: &str) -> Result<(), Failure> {
    match conflicts(files).into_iter().next() {
        None => Ok(()),
        Some(mut problem) => {
            problem.message = format!("{} in `{revision}`", problem.message);
            Err(Failure::of_problem(&problem.hint("resolve the conflict, delete the markers and commit the file")))
        }
    }
}
