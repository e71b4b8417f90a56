//! Files that git stores as they are. We read them ourselves: asking git takes a process, a fifth of the time of a
//! snapshot of 1,000 files.

use std::{
    collections::HashMap,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{state::RepositoryState, status::Status};
use crate::env::{files::read_regular, real};

/// Attributes that make git store something other than the file's bytes. It also converts line ends, which changes only
/// files with a carriage return. From gitattributes(5).
const CONVERTING: [&str; 3] = ["filter", "ident", "working-tree-encoding"];
const FILE: &str = ".gitattributes";
/// Bytes of a file of attributes that are read; what is in a larger one, git is asked.
const LARGEST: u64 = 1 << 20;

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

/// Whether a file of attributes names one that converts, or may: it belongs to whoever wrote the repository, so that it
/// may lead to a device or have any size.
fn converts(file: &Path) -> bool {
    match fs::symlink_metadata(file) {
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        Ok(_) => read_regular(&real(file), LARGEST).is_none_or(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            CONVERTING.iter().any(|attribute| text.contains(attribute))
        }),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What a file of attributes holds × what it is.
    #[test]
    fn a_file_of_attributes_that_cannot_be_read_whole_may_convert() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        for (name, text, expected) in [("plain", "* text=auto\n", false), ("filter", "*.bin filter=lfs\n", true)] {
            fs::write(place(name), text).expect("a file");
            symlink(place(name), place(&format!("link to {name}"))).expect("a link");
            assert_eq!((converts(&place(name)), converts(&place(&format!("link to {name}")))), (expected, expected));
        }
        fs::write(place("large"), "#".repeat(LARGEST as usize + 1)).expect("a file");
        symlink("/dev/zero", place("endless")).expect("a link");
        symlink("nothing", place("dangling")).expect("a link");
        for name in ["large", "endless", "dangling", "."] {
            assert!(converts(&place(name)), "{name}");
        }
        for name in ["missing", "plain/missing", "no/folder"] {
            assert!(!converts(&place(name)), "{name}");
        }
    }
}
