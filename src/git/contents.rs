//! The files of a commit.

use std::collections::BTreeSet;

use gix::{ObjectId, objs, objs::tree::EntryKind};

use super::{error::Error, object_store::ObjectStore, objects::identify, references::parse_id, repository::Repository};

/// See [`Repository::plain_files_at`].
#[derive(Debug, Default)]
pub(crate) struct PlainFiles {
    pub(crate) plain: Vec<(String, Vec<u8>)>,
    /// The paths of those among them that are executable.
    pub(crate) executables: Vec<String>,
    pub(crate) other: Vec<String>,
}

impl Repository {
    fn tree_at(&self, commit: &str) -> Result<(ObjectStore, ObjectId), Error> {
        let store = self.objects();
        let root = store.tree_of(&self.parse_commit(commit)?)?;
        Ok((store, root))
    }

    /// The paths of all files below a folder in a commit. Reads trees only.
    pub(crate) fn paths_at(&self, commit: &str, folder: &str) -> Result<Vec<String>, Error> {
        let (store, root) = self.tree_at(commit)?;
        Ok(store.files_below(root, folder)?.into_iter().map(|(path, _)| path).collect())
    }

    /// Whether a commit has an entry at a path.
    pub(crate) fn has_at(&self, commit: &str, path: &str) -> Result<bool, Error> {
        let (store, root) = self.tree_at(commit)?;
        Ok(store.find(root, path)?.is_some())
    }

    /// Selected files below a folder in a commit, with their full paths. `wanted` returns a file's size limit, or
    /// `None` to skip it; a larger file is an error and is not read.
    pub(crate) fn files_at(
        &self,
        commit: &str,
        folder: &str,
        wanted: impl Fn(&str) -> Option<u64>,
    ) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let (store, root) = self.tree_at(commit)?;
        contents(&store, store.files_below(root, folder)?, wanted)
    }

    /// The file at a path in a commit, or all files below it, with their full paths; and the paths of links and very
    /// large files there, which a landing leaves alone.
    pub(crate) fn plain_files_at(&self, commit: &str, path: &str) -> Result<PlainFiles, Error> {
        const LARGEST: u64 = 64 << 20;
        let (store, root) = self.tree_at(commit)?;
        let found = match store.find(root, path)? {
            Some((mode, id)) if !mode.is_tree() => vec![(path.to_owned(), mode, id)],
            _ => store.entries_below(root, path)?,
        };
        let mut files = PlainFiles::default();
        for (path, mode, id) in found {
            match mode.kind() {
                EntryKind::Commit | EntryKind::Tree => {}
                EntryKind::Link => files.other.push(path),
                _ if store.size(&id).is_some_and(|size| size > LARGEST) => files.other.push(path),
                kind => {
                    files.executables.extend((kind == EntryKind::BlobExecutable).then(|| path.clone()));
                    files.plain.push((path, store.blob(&id)?));
                }
            }
        }
        Ok(files)
    }

    /// The executable files below a folder in a commit, with their full paths.
    pub(crate) fn executables_at(&self, commit: &str, folder: &str) -> Result<BTreeSet<String>, Error> {
        let (store, root) = self.tree_at(commit)?;
        let entries = store.entries_below(root, folder)?;
        Ok(entries.into_iter().filter(|(_, mode, _)| mode.is_executable()).map(|(path, ..)| path).collect())
    }

    /// The blob id of a text.
    pub(crate) fn id_of_text(&self, bytes: &[u8]) -> Result<String, Error> {
        identify(self.hash(), objs::Kind::Blob, bytes).map(|id| id.to_string())
    }

    /// The text of an id, if this clone has it.
    pub(crate) fn text_of_id(&self, id: &str) -> Option<Vec<u8>> {
        const LARGEST: u64 = 16 << 20;
        let id = parse_id(id.as_bytes(), self.hash())?;
        let store = self.objects();
        store.size(&id).filter(|size| *size <= LARGEST)?;
        store.blob(&id).ok()
    }

    /// The targets of selected symbolic links below a folder, listed under the links' full paths.
    pub(crate) fn links_at(
        &self,
        commit: &str,
        folder: &str,
        wanted: impl Fn(&str) -> Option<u64>,
    ) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let (store, root) = self.tree_at(commit)?;
        contents(&store, store.links_below(root, folder)?, wanted)
    }
}

/// The contents of selected files.
pub(super) fn contents(
    store: &ObjectStore,
    files: Vec<(String, ObjectId)>,
    wanted: impl Fn(&str) -> Option<u64>,
) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let wanted = files.into_iter().filter_map(|(path, id)| Some((wanted(&path)?, path, id)));
    let content = |(largest, path, id): (u64, String, ObjectId)| match store.size(&id) {
        Some(size) if size > largest => Err(Error::TooLarge { path, size, largest }),
        _ => Ok((path, store.blob(&id)?)),
    };
    wanted.map(content).collect()
}
