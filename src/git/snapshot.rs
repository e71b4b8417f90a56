use gix::ObjectId;

use super::{
    error::Error,
    ledger_tree::{PathAndId, TreeReader},
    object_store::ObjectStore,
    union,
    walk::Walk,
};
use crate::model::{Damage, DamageKind, DamageLog, Sort};

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
    /// A content hash: equal exactly for the same files with the same bytes.
    pub(crate) fn key(&self) -> String {
        self.id.to_string()
    }
}

impl File {
    /// A content hash: equal exactly for the same bytes.
    pub(crate) fn key(&self) -> String {
        self.id.to_string()
    }
}

/// The readable part of a result, and whether that is all of it. The damage log has the rest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Readable<T> {
    pub(crate) value: T,
    pub(crate) is_whole: bool,
}

/// The ledger at one commit. Folders are read on demand; unreadable objects are reported and skipped.
pub(crate) struct Snapshot {
    store: ObjectStore,
    /// `None`: the commit itself cannot be read.
    root: Option<ObjectId>,
    log: DamageLog,
}

impl Snapshot {
    pub(super) fn open(store: ObjectStore, tip: ObjectId, log: DamageLog) -> Result<Self, Error> {
        let root = TreeReader::new(&store, &log).skip_unreadable("", tip, store.tree_of(&tip))?;
        Ok(Self { store, root, log })
    }

    fn reader(&self) -> TreeReader<'_> {
        TreeReader::new(&self.store, &self.log)
    }

    /// Whether the ledger's commit can be read.
    pub(crate) fn is_there(&self) -> bool {
        self.root.is_some()
    }

    /// Fails if the ledger's commit cannot be read: an unreadable ledger must not be taken for an empty one.
    pub(crate) fn require_readable(self) -> Result<Self, Error> {
        match self.root {
            Some(_) => Ok(self),
            None => Err(self.store.no_ledger()),
        }
    }

    /// A folder by its path. `None`: there is none.
    pub(crate) fn folder(&self, path: &str) -> Result<Option<Folder>, Error> {
        Ok(self.find_folder(path)?.value)
    }

    /// Like [`Self::folder`], and whether all folders above it could be read.
    pub(crate) fn find_folder(&self, path: &str) -> Result<Readable<Option<Folder>>, Error> {
        let Some(root) = self.root else { return Ok(Readable { value: None, is_whole: false }) };
        let reader = self.reader();
        let found = reader.find(root, path)?.filter(|(mode, _)| mode.is_tree());
        let value = found.map(|(_, id)| Folder { path: path.to_owned(), id });
        Ok(Readable { value, is_whole: reader.is_whole() })
    }

    /// A folder's direct subfolders, ordered by name, and its number of files. Reads one tree. Omits folders that are
    /// repeated too often.
    pub(crate) fn children(
        &self,
        folder: &Folder,
        visited: &mut Walk,
    ) -> Result<Readable<(Vec<Folder>, usize)>, Error> {
        let reader = self.reader();
        let (below, files) = reader.children(&folder.path, folder.id)?;
        let news = below.into_iter().filter(|(path, id)| reader.should_read(path, *id, visited));
        let folders = news.map(|(path, id)| Folder { path, id }).collect();
        Ok(Readable { value: (folders, files.len()), is_whole: reader.is_whole() })
    }

    /// All files below a folder, ordered by path. Reads trees only.
    pub(crate) fn listing(&self, folder: &str) -> Result<Readable<Vec<File>>, Error> {
        let reader = self.reader();
        let found = match self.root {
            Some(root) => reader.find(root, folder)?,
            None => None,
        };
        let files = match found {
            Some((mode, id)) if mode.is_tree() => reader.files_below(folder, id)?,
            _ => Vec::new(),
        };
        Ok(Readable { value: files.into_iter().map(file).collect(), is_whole: reader.is_whole() && self.is_there() })
    }

    /// The files below a folder that an earlier state of the ledger did not have, ordered by path. Reads only folders
    /// that differ.
    pub(crate) fn added_since(&self, old: &Self, folder: &str) -> Result<Vec<File>, Error> {
        let Some(new) = self.folder(folder)? else { return Ok(Vec::new()) };
        let old: Vec<ObjectId> = old.folder(folder)?.into_iter().map(|folder| folder.id).collect();
        let mut added = Vec::new();
        union::missing(&self.reader(), (folder, new.id), &old, |file| {
            if !file.is_changed {
                added.push(File { path: file.path(), id: file.id() });
            }
        })?;
        added.stable_sort_by(|one, other| one.path.cmp(&other.path));
        Ok(added)
    }

    /// The files added to a folder since it had the key `old`. `None`: something else changed too, or the old folder no
    /// longer exists. Reads only folders that differ.
    pub(crate) fn additions(&self, folder: &Folder, old: &str) -> Option<Vec<File>> {
        let old = self.store.parse_id(old).ok()?;
        let added = union::additions(&self.store, (&folder.path, folder.id), old).ok()??;
        Some(added.into_iter().map(file).collect())
    }

    /// The bytes of the file with this key. `None`: it cannot be read, which is reported as damage at `path`.
    pub(crate) fn read(&self, path: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let id = self.store.parse_id(key)?;
        self.reader().skip_unreadable(path, id, self.store.blob(&id))
    }

    /// Those of the reports whose damage is still present. Reads each folder once.
    pub(crate) fn still_damaged<'r>(&self, reports: &'r [Damage]) -> impl Iterator<Item = &'r Damage> {
        let mut finder = self.root.map(|root| self.store.finder(root));
        reports.iter().filter(move |damage| {
            let Some(finder) = &mut finder else { return true };
            match finder.find(&damage.path) {
                Err(_) => true,
                Ok(None) => false,
                Ok(Some((_, id))) if Some(id.to_string()) != damage.object => false,
                Ok(Some((mode, id))) if damage.kind == DamageKind::Unreadable => match mode.is_tree() {
                    true => self.store.tree(&id).is_err(),
                    false => self.store.blob(&id).is_err(),
                },
                Ok(Some(_)) => true,
            }
        })
    }

    /// The paths of the files below a folder. Reads trees only.
    pub(crate) fn paths(&self, folder: &str) -> Result<Vec<String>, Error> {
        Ok(self.listing(folder)?.value.into_iter().map(|file| file.path).collect())
    }

    #[cfg(test)]
    pub(crate) fn count(&self, folder: &str) -> Result<usize, Error> {
        Ok(self.listing(folder)?.value.len())
    }

    /// Passes every readable file to `show`, a folder's own files before those of its subfolders. Holds one folder at a
    /// time: for a long ledger, the list of paths alone is 100 MB.
    pub(crate) fn each(&self, mut show: impl FnMut(&File, &[u8])) -> Result<(), Error> {
        let Some(root) = self.root else { return Ok(()) };
        let mut count = 0;
        self.reader().walk("", root, |found| {
            let file = file(found);
            count += 1;
            self.log.activity().at("reading the ledger", count, None, "entry");
            if let Some(bytes) = self.read(&file.path, &file.key())? {
                show(&file, &bytes);
            }
            Ok(())
        })
    }

    /// The content of a file; `None`: there is none.
    pub(crate) fn find(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(root) = self.root else { return Ok(None) };
        match self.store.find(root, path)? {
            Some((mode, id)) if mode.is_blob() => self.store.blob(&id).map(Some),
            _ => Ok(None),
        }
    }
}

fn file((path, id): PathAndId) -> File {
    File { path, id }
}
