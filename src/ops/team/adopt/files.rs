//! Reads the files that the other tool may have written, from the branch or the work tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::error::Failure;
use crate::git::is_executable;
use crate::ops::Workspace;
use crate::ops::team::changeset::branch_tip;
use crate::ops::team::write_mode::WriteMode;
use crate::store;

/// Folders and files, relative to the project's root.
const PLACES: [&str; 14] = [
    store::FOLDERS[0],
    store::FOLDERS[1],
    ".squad-templates",
    ".ai-team-templates",
    ".github/agents",
    ".github/workflows",
    ".github/skills",
    ".copilot",
    ".mcp.json",
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".gitignore",
    ".gitattributes",
    "squad.config.ts",
];

/// Templates are smaller than this. Larger files are not read from the work tree.
const MAX_SIZE: u64 = 16 * 1024 * 1024;

/// Paths are from the project's root, with `/`.
pub(super) struct ToolFiles {
    /// The project's root relative to the repository's, with a final `/`; empty if they are the same.
    root: String,
    pub(super) texts: BTreeMap<String, Vec<u8>>,
    /// Which of `texts` are executable.
    pub(super) executables: BTreeSet<String>,
    /// Links and very large files, which are never changed.
    pub(super) other: BTreeSet<String>,
}

impl ToolFiles {
    pub(super) fn read(workspace: &Workspace, mode: WriteMode) -> Result<Self, Failure> {
        let root = workspace.path_in_repository();
        let (texts, executables, other) = Default::default();
        let mut files = Self { root, texts, executables, other };
        match mode.uses_branch() {
            true => files.read_branch(workspace)?,
            false => files.read_work_tree(workspace)?,
        }
        Ok(files)
    }

    /// Whether a folder contains any file.
    pub(super) fn has_any(&self, folder: &str) -> bool {
        let is_below = |path: &String| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.texts.keys().chain(&self.other).any(is_below)
    }

    /// A path from the repository's root.
    pub(super) fn full(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    fn read_branch(&mut self, workspace: &Workspace) -> Result<(), Failure> {
        const NO_COMMIT_HINT: &str = "--no-commit writes the files and leaves the commit to you";
        let repository = &workspace.repository;
        let commit = branch_tip(repository)?;
        for place in PLACES {
            let found = repository.plain_files_at(&commit, &self.full(place))?;
            let root = self.root.len();
            let inner = |path: String| path.get(root..).unwrap_or_default().to_owned();
            self.texts.extend(found.plain.into_iter().map(|(path, bytes)| (inner(path), bytes)));
            self.executables.extend(found.executables.into_iter().map(inner));
            self.other.extend(found.other.into_iter().map(inner));
        }
        let folder = workspace.folder.name;
        if !self.has_any(folder) {
            return Err(Failure::failed(format!("cannot commit: {} is not committed", self.full(folder)))
                .hint(format!("commit the team first (.gitignore must not hide it); or {NO_COMMIT_HINT}")));
        }
        Ok(())
    }

    fn read_work_tree(&mut self, workspace: &Workspace) -> Result<(), Failure> {
        for path in workspace.repository.listed_files()? {
            let Some(inner) = path.strip_prefix(&self.root) else { continue };
            let is_in =
                |place: &&str| inner.strip_prefix(*place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            if !PLACES.iter().any(is_in) {
                continue;
            }
            let place = workspace.work_dir.join(&path);
            match fs::symlink_metadata(&place) {
                Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_SIZE => {
                    let bytes = fs::read(&place)
                        .map_err(|error| Failure::failed(format!("cannot be read: {error}")).at(&path))?;
                    self.texts.insert(inner.to_owned(), bytes);
                    if is_executable(&place) {
                        self.executables.insert(inner.to_owned());
                    }
                }
                // Deleted, but still in the index.
                Err(_) => {}
                Ok(_) => drop(self.other.insert(inner.to_owned())),
            }
        }
        Ok(())
    }
}
