use std::ops::ControlFlow;

use gix::ObjectId;

use super::{error::Error, tree::ObjectStore};

/// A folder of one day.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Day {
    pub(crate) path: String,
    id: ObjectId,
}

/// A file of a day.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct File {
    pub(crate) name: String,
    id: ObjectId,
}

impl Day {
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

    /// The folders `<prefix>/yyyy/mm/dd`, the newest first. Reads trees only.
    pub(crate) fn days(&self, prefix: &str) -> Result<Vec<Day>, Error> {
        let path = prefix.trim_matches('/').to_owned();
        let Some((mode, id)) = self.store.find(self.root, &path)? else { return Ok(Vec::new()) };
        if !mode.is_tree() {
            return Ok(Vec::new());
        }
        let mut folders = vec![Day { path, id }];
        for digits in [4, 2, 2] {
            let mut next = Vec::new();
            for folder in folders {
                next.extend(self.dated_folders(&folder, digits)?);
            }
            folders = next;
        }
        folders.sort_by(|one, other| other.path.cmp(&one.path));
        Ok(folders)
    }

    fn dated_folders(&self, folder: &Day, digits: usize) -> Result<Vec<Day>, Error> {
        let entries = self.store.tree(&folder.id)?.entries.into_iter().filter(|entry| entry.mode.is_tree());
        Ok(entries
            .filter_map(|entry| Some((String::from_utf8(entry.filename.into()).ok()?, entry.oid)))
            .filter(|(name, _)| name.len() == digits && name.bytes().all(|byte| byte.is_ascii_digit()))
            .map(|(name, id)| Day { path: below(&folder.path, &name), id })
            .collect())
    }

    /// The files of a day in the order of their names. Reads one tree; what lies deeper is not ours.
    pub(crate) fn listing(&self, day: &Day) -> Result<Vec<File>, Error> {
        let entries = self.store.tree(&day.id)?.entries.into_iter().filter(|entry| entry.mode.is_blob());
        let named = entries.filter_map(|entry| Some((String::from_utf8(entry.filename.into()).ok()?, entry.oid)));
        Ok(named.map(|(name, id)| File { name, id }).collect())
    }

    pub(crate) fn read(&self, file: &File) -> Result<Vec<u8>, Error> {
        self.store.blob(&file.id)
    }

    /// Every file below a folder, with its whole path, in the order of paths.
    pub(crate) fn files(&self, folder: &str) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let files = self.store.files_below(self.root, folder)?;
        files.into_iter().map(|(path, id)| Ok((path, self.store.blob(&id)?))).collect()
    }

    /// The files below a folder whose paths are wanted, the last path first, until `read` has enough of them. Only those
    /// whose bytes it asks for are opened.
    pub(crate) fn each_from_last(
        &self,
        folder: &str,
        wanted: impl Fn(&str) -> bool,
        mut read: impl FnMut(&str, &dyn Fn() -> Result<Vec<u8>, Error>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        let files = self.store.files_below(self.root, folder)?;
        for (path, id) in files.iter().rev().filter(|(path, _)| wanted(path)) {
            if read(path, &|| self.store.blob(id))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The paths of the files below a folder. Reads trees only.
    pub(crate) fn paths(&self, folder: &str) -> Result<Vec<String>, Error> {
        Ok(self.store.files_below(self.root, folder)?.into_iter().map(|(path, _)| path).collect())
    }

    /// How many files are below a folder. Reads trees only.
    pub(crate) fn count(&self, prefix: &str) -> Result<usize, Error> {
        let mut folders = match self.store.find(self.root, prefix)? {
            Some((mode, id)) if mode.is_tree() => vec![id],
            Some(_) => return Ok(1),
            None => return Ok(0),
        };
        let mut count = 0;
        while let Some(folder) = folders.pop() {
            let (below, files) = self.store.count(&folder)?;
            folders.extend(below);
            count += files;
        }
        Ok(count)
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

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
