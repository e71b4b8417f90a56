//! Reads the files that the other tool may have written, from the branch or the work tree.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Failure;
use crate::ops::Workspace;
use crate::ops::change::{Found, Tree, WriteMode};
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
        let tree = Tree::of(workspace, mode)?;
        let mut all = Vec::new();
        if tree.commit.is_some() {
            for place in PLACES {
                all.extend(tree.below(&files.full(place))?);
            }
        } else {
            // Files that git ignores are nobody's installation.
            for path in workspace.repository.listed_files()? {
                if path.strip_prefix(&files.root).is_some_and(is_in_places) {
                    all.push((path.clone(), tree.find(&path)?));
                }
            }
        }
        for (path, found) in all {
            let inner = path.get(files.root.len()..).unwrap_or_default();
            match found {
                Found::Nothing => {}
                Found::Other => drop(files.other.insert(inner.to_owned())),
                Found::File { bytes, executable } => {
                    files.executables.extend(executable.then(|| inner.to_owned()));
                    files.texts.insert(inner.to_owned(), bytes);
                }
            }
        }
        let folder = workspace.folder.name;
        if tree.commit.is_some() && !files.has_any(folder) {
            return Err(Failure::failed(format!("cannot commit: {} is not committed", files.full(folder))).hint(
                "commit the team first (.gitignore must not hide it); or --no-commit writes the files and leaves the \
                 commit to you",
            ));
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
}

fn is_in_places(path: &str) -> bool {
    let is_in = |place: &&str| path.strip_prefix(*place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    PLACES.iter().any(is_in)
}
