//! A temporary object directory for objects git makes for us: trees of an index, a signed commit.
//!
//! In the repository itself they would be unreferenced loose objects, which a concurrent `git gc --prune=now` removes.
//! So git writes them to a separate folder, and we copy them into a pack of ours. To store the files of an index, for
//! example:
//!
//! ```text
//! let quarantine = Quarantine::new(repository)?;
//! let tree = …;                                           // with quarantine.call(git write-tree)
//! quarantine.take_trees(tree, base, &mut objects)?;       // those that may be unreferenced
//! let commit = objects.add(Kind::Commit, …)?;
//! let kept = repository.packs().add(&objects)?;           // one pack, which git keeps
//! repository.ledger().move_ref(reference, None, commit)?; // durable
//! drop(kept);
//! ```

use std::fs;
use std::path::Path;

use gix::{ObjectId, objs};
use tempfile::TempDir;

use super::{
    error::Error, object_store::ObjectStore, objects::NewObjects, pack::PackFolder, program::Call,
    recent::RecentObjects, references::parse_id, repository::Repository,
};

/// Dropping it deletes the folder and every object that was not taken.
pub(super) struct Quarantine<'a> {
    repository: &'a Repository,
    folder: TempDir,
    store: ObjectStore,
}

impl<'a> Quarantine<'a> {
    pub(super) fn new(repository: &'a Repository) -> Result<Self, Error> {
        let folder = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        let directory = folder.path().join("objects");
        let info = directory.join("info");
        let alternates = alternate(&repository.objects_directory());
        let made = fs::create_dir_all(&info).and_then(|()| fs::write(info.join("alternates"), alternates));
        made.map_err(Error::io("write to", &info))?;
        let store = ObjectStore::new(&directory, repository.hash(), RecentObjects::default());
        Ok(Self { repository, folder, store })
    }

    fn objects_directory(&self) -> std::path::PathBuf {
        self.folder.path().join("objects")
    }

    /// Makes a call write its objects here; it can also read those of the repository.
    pub(super) fn call(&self, call: Call) -> Call {
        call.variable("GIT_OBJECT_DIRECTORY", &self.objects_directory().to_string_lossy())
    }

    /// Makes objects visible to git that are not in the repository yet.
    pub(super) fn put(&self, objects: &NewObjects) -> Result<(), Error> {
        let (hash, sharing) = (self.repository.hash(), self.repository.sharing());
        PackFolder::new(self.folder.path(), hash, sharing).add(objects).map(drop)
    }

    /// Adds an object that git made to `objects`. Returns its size.
    pub(super) fn take(&self, id: ObjectId, kind: objs::Kind, objects: &mut NewObjects) -> Result<usize, Error> {
        let bytes = self.store.bytes(&id, kind)?;
        let size = bytes.len();
        objects.add(kind, bytes).map(|_| size)
    }

    pub(super) fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, Error> {
        self.store.blob(id)
    }

    /// The objects that git has made here so far.
    pub(super) fn loose(&self) -> Result<Vec<ObjectId>, Error> {
        let directory = self.objects_directory();
        let mut ids = Vec::new();
        for folder in fs::read_dir(&directory).map_err(Error::io("read", &directory))?.flatten() {
            let start = folder.file_name().to_string_lossy().into_owned();
            if start.len() != 2 {
                continue;
            }
            for file in fs::read_dir(folder.path()).map_err(Error::io("read", folder.path()))?.flatten() {
                let name = format!("{start}{}", file.file_name().to_string_lossy());
                // Other names are files that git has not finished.
                ids.extend(parse_id(name.as_bytes(), self.repository.hash()));
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// Adds a tree and its subtrees to `objects`, except those at the same path below `base`, which must be referenced.
    /// git does not rewrite trees that already exist, but gc may be removing them, so they are added too.
    pub(super) fn take_trees(
        &self,
        tree: ObjectId,
        base: Option<ObjectId>,
        objects: &mut NewObjects,
    ) -> Result<(), Error> {
        let store = &self.store;
        let mut pairs = vec![(tree, base)];
        while let Some((tree, base)) = pairs.pop() {
            if base == Some(tree) {
                continue;
            }
            objects.add(objs::Kind::Tree, store.bytes(&tree, objs::Kind::Tree)?)?;
            let base = base.map(|base| store.tree(&base)).transpose()?.map_or(Vec::new(), |tree| tree.entries);
            for entry in store.tree(&tree)?.entries.into_iter().filter(|entry| entry.mode.is_tree()) {
                let before = base.iter().find(|old| old.filename == entry.filename && old.mode.is_tree());
                pairs.push((entry.oid, before.map(|old| old.oid)));
            }
        }
        Ok(())
    }
}

/// A folder of objects as a line of a file of alternates. One that begins with a quote is quoted as in C, one with `#` is a
/// comment.
pub(super) fn alternate(folder: &Path) -> Vec<u8> {
    let bytes = folder.as_os_str().as_encoded_bytes();
    if !bytes.contains(&b'\n') && !bytes.starts_with(b"\"") && !bytes.starts_with(b"#") {
        return [bytes, b"\n"].concat();
    }
    let quoted = bytes.iter().flat_map(|byte| match byte {
        b'"' | b'\\' => vec![b'\\', *byte],
        b'\n' => b"\\n".to_vec(),
        byte => vec![*byte],
    });
    [b"\"".to_vec(), quoted.collect(), b"\"\n".to_vec()].concat()
}
