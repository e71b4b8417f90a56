//! The files of a commit.

use std::collections::BTreeSet;

use gix::{ObjectId, objs, objs::tree::EntryKind};

use super::{
    error::Error, object_store::ObjectStore, objects::identify, references::parse_id, repository::Repository,
    walk::PassedOver,
};

/// See [`Repository::plain_files_at`].
#[derive(Debug, Default)]
pub(crate) struct PlainFiles {
    pub(crate) plain: Vec<(String, Vec<u8>)>,
    /// The paths of those among them that are executable.
    pub(crate) executables: BTreeSet<String>,
    pub(crate) other: Vec<String>,
}

impl Repository {
    pub(super) fn tree_at(&self, commit: &str) -> Result<(ObjectStore, ObjectId), Error> {
        let store = self.limited_objects();
        let root = store.tree_of(&self.parse_commit(commit)?)?;
        Ok((store, root))
    }

    /// The paths of all files below a folder in a commit. Reads trees only.
    pub(crate) fn paths_at(&self, commit: &str, folder: &str) -> Result<Vec<String>, Error> {
        let (store, root) = self.tree_at(commit)?;
        Ok(store.files_below(root, folder)?.into_iter().map(|(path, _)| path).collect())
    }

    /// The id of what a commit has at a path.
    pub(crate) fn id_at(&self, commit: &str, path: &str) -> Result<Option<String>, Error> {
        let (store, root) = self.tree_at(commit)?;
        Ok(store.find(root, path)?.map(|(_, id)| id.to_string()))
    }

    /// Whether a commit has an entry at a path.
    pub(crate) fn has_at(&self, commit: &str, path: &str) -> Result<bool, Error> {
        let (store, root) = self.tree_at(commit)?;
        Ok(store.find(root, path)?.is_some())
    }

    /// The file at a path in a commit; `None`: there is none.
    pub(crate) fn file_at(&self, commit: &str, path: &str, largest: u64) -> Result<Option<Vec<u8>>, Error> {
        let (store, root) = self.tree_at(commit)?;
        let file = store.find(root, path)?.filter(|(mode, _)| mode.is_blob()).map(|(_, id)| (path.to_owned(), id));
        let found = contents(&store, file.into_iter().collect(), |_| Some(largest))?;
        Ok(found.into_iter().next().map(|(_, bytes)| bytes))
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
        contents(&store, store.links_among(root, &store.entries_below(root, folder)?)?, wanted)
    }

    /// Like [`Self::files_at`] and [`Self::links_at`] together. What is too large is passed over, and reported at the
    /// command's end.
    pub(crate) fn readable_files_at(
        &self,
        commit: &str,
        folder: &str,
        wanted: impl Fn(&str) -> Option<u64>,
    ) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let (store, root) = self.tree_at(commit)?;
        let mut passed_over = Vec::new();
        let entries = store.readable_below(root, folder, &mut passed_over)?;
        let links = store.links_among(root, &entries)?;
        let files = entries.into_iter().filter(|(_, mode, _)| mode.is_blob()).map(|(path, _, id)| (path, id));
        let found = readable_contents(&store, files.chain(links), wanted, &mut passed_over)?;
        self.report(commit, &passed_over);
        Ok(found)
    }

    /// Has the command say at its end what was not read of a commit.
    pub(super) fn report(&self, commit: &str, passed_over: &[PassedOver]) {
        let commit = commit.get(..12).unwrap_or(commit);
        for PassedOver { path, why } in passed_over {
            self.damage().add_passed_over(&format!("{commit}:{path}"), why);
        }
    }
}

/// The contents of selected files. Fails if one is too large, or all of them are.
pub(super) fn contents(
    store: &ObjectStore,
    files: Vec<(String, ObjectId)>,
    wanted: impl Fn(&str) -> Option<u64>,
) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut passed_over = Vec::new();
    let found = readable_contents(store, files.into_iter(), wanted, &mut passed_over)?;
    passed_over.pop().map_or(Ok(found), |passed_over| Err(Error::TooLarge(passed_over)))
}

/// The contents of selected files. Those that are too large are added to `passed_over`.
fn readable_contents(
    store: &ObjectStore,
    files: impl Iterator<Item = (String, ObjectId)>,
    wanted: impl Fn(&str) -> Option<u64>,
    passed_over: &mut Vec<PassedOver>,
) -> Result<Vec<(String, Vec<u8>)>, Error> {
    /// Bytes of all files together: many names may share one content.
    const ALL: u64 = 256 << 20;
    let mut found = Vec::new();
    let mut all = 0;
    for (path, id) in files {
        let Some(largest) = wanted(&path) else { continue };
        let size = store.size(&id).unwrap_or(0);
        let why = if size > largest {
            format!("it has {size} bytes in the commit, and at most {largest} are read")
        } else if size > ALL - all {
            format!("it and the files before it have more than {ALL} bytes")
        } else {
            all += size;
            found.push((path, store.blob(&id)?));
            continue;
        };
        passed_over.push(PassedOver { path, why });
    }
    Ok(found)
}
