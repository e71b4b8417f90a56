use gix::ObjectId;

use super::{error::Error, tree::ObjectStore, union};

/// A folder of the ledger.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Folder {
    /// From the ledger's root.
    pub(crate) path: String,
    id: ObjectId,
}

/// A file of the ledger.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct File {
    /// From the ledger's root.
    pub(crate) path: String,
    id: ObjectId,
}

impl Folder {
    /// The same for the same files with the same bytes, and for no others.
    pub(crate) fn key(&self) -> String {
        self.id.to_string()
    }
}

impl File {
    /// The same for the same bytes, and for no others.
    pub(crate) fn key(&self) -> String {
        self.id.to_string()
    }
}

/// The ledger at one commit. Folders are read when they are asked for.
pub(crate) struct Snapshot {
    store: ObjectStore,
    root: ObjectId,
}

impl Snapshot {
    pub(super) fn open(store: ObjectStore, tip: ObjectId) -> Result<Self, Error> {
        let root = store.tree_of(&tip)?;
        Ok(Self { store, root })
    }

    /// A folder by its path. None: there is none.
    pub(crate) fn folder(&self, path: &str) -> Result<Option<Folder>, Error> {
        let found = self.store.find(self.root, path)?.filter(|(mode, _)| mode.is_tree());
        Ok(found.map(|(_, id)| Folder { path: path.to_owned(), id }))
    }

    /// The folders right below a folder, in the order of their names, and how many files are. Reads one tree.
    pub(crate) fn inside(&self, folder: &Folder) -> Result<(Vec<Folder>, usize), Error> {
        let (below, files) = self.store.inside(&folder.id)?;
        let folders = below.into_iter().map(|(name, id)| Folder { path: format!("{}/{name}", folder.path), id });
        Ok((folders.collect(), files))
    }

    /// The files below a folder, however deep, in the order of their paths. Reads trees only.
    pub(crate) fn listing(&self, folder: &str) -> Result<Vec<File>, Error> {
        let files = self.store.files_below(self.root, folder)?.into_iter();
        Ok(files.map(|(path, id)| File { path, id }).collect())
    }

    /// The files below a folder that an earlier state of the ledger did not have, in the order of their paths. Reads
    /// the folders that differ.
    pub(crate) fn added_since(&self, old: &Self, folder: &str) -> Result<Vec<File>, Error> {
        let Some(new) = self.folder(folder)? else { return Ok(Vec::new()) };
        let old: Vec<ObjectId> = old.folder(folder)?.into_iter().map(|folder| folder.id).collect();
        let mut added = Vec::new();
        union::missing(&self.store, (folder, new.id), &old, |file| {
            if !file.is_there {
                added.push(File { path: file.path(), id: file.id() });
            }
        })?;
        added.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(added)
    }

    /// The files that a folder has and had not when it had this key, if nothing else differs. None: it does, or what it
    /// was is not there any more. Reads the folders that differ.
    pub(crate) fn additions(&self, folder: &Folder, old: &str) -> Option<Vec<File>> {
        let old = self.store.parse_id(old).ok()?;
        let added = union::additions(&self.store, (&folder.path, folder.id), old).ok()??;
        Some(added.into_iter().map(|(path, id)| File { path, id }).collect())
    }

    /// The bytes of the file with this key.
    pub(crate) fn read(&self, key: &str) -> Result<Vec<u8>, Error> {
        self.store.blob(&self.store.parse_id(key)?)
    }

    /// The paths of the files below a folder. Reads trees only.
    pub(crate) fn paths(&self, folder: &str) -> Result<Vec<String>, Error> {
        Ok(self.store.files_below(self.root, folder)?.into_iter().map(|(path, _)| path).collect())
    }

    #[cfg(test)]
    pub(crate) fn count(&self, folder: &str) -> Result<usize, Error> {
        Ok(self.listing(folder)?.len())
    }

    /// Shows every file with its whole path, in the order of paths.
    pub(crate) fn each(&self, mut show: impl FnMut(&str, &[u8])) -> Result<(), Error> {
        for (path, id) in self.store.files_below(self.root, "")? {
            show(&path, &self.store.blob(&id)?);
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn find(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        match self.store.find(self.root, path)? {
            Some((mode, id)) if mode.is_blob() => self.store.blob(&id).map(Some),
            _ => Ok(None),
        }
    }
}
