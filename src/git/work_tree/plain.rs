//! Files that git stores as they are. We read them ourselves: asking git takes a process, a fifth of the time of a
//! snapshot of 1,000 files.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use super::{state::RepositoryState, status::Status};

/// Attributes that make git store something other than the file's bytes. It also converts line ends, which changes only
/// files with a carriage return. From gitattributes(5).
const CONVERTING: [&str; 3] = ["filter", "ident", "working-tree-encoding"];
const FILE: &str = ".gitattributes";

/// Tells which files git may convert; if in doubt, it may.
pub(super) struct Conversions<'a> {
    root: &'a Path,
    is_anywhere: bool,
    folders: HashMap<PathBuf, bool>,
}

impl<'a> Conversions<'a> {
    pub(super) fn new(root: &'a Path, state: &RepositoryState, status: &Status) -> Self {
        let outside = state.attribute_files.as_ref();
        // Where the work tree lacks a file of attributes, git uses the index's.
        let mut only_staged = status.tracked.keys().chain(state.hidden.keys());
        let is_anywhere = outside.is_none_or(|files| files.iter().any(|file| converts(file)))
            || only_staged.any(|path| are_attributes(path));
        Self { root, is_anywhere, folders: HashMap::new() }
    }

    /// Whether git may store other bytes than these for a file; its path is relative to the root.
    pub(super) fn may_change(&mut self, path: &Path, bytes: &[u8]) -> bool {
        let mut folders = path.ancestors().skip(1);
        self.is_anywhere || bytes.contains(&b'\r') || folders.any(|folder| self.folder_converts(folder))
    }

    fn folder_converts(&mut self, folder: &Path) -> bool {
        if let Some(known) = self.folders.get(folder) {
            return *known;
        }
        let found = converts(&self.root.join(folder).join(FILE));
        self.folders.insert(folder.to_owned(), found);
        found
    }
}

/// Whether a path is that of a file of attributes.
pub(super) fn are_attributes(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next() == Some(FILE.as_bytes())
}

/// Whether a file of attributes names one that converts.
fn converts(file: &Path) -> bool {
    match fs::read(file) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            CONVERTING.iter().any(|attribute| text.contains(attribute))
        }
        Err(error) => !matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory),
    }
}
