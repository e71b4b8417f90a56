//! Restoring from a rescue: listing its files, and writing them without losing anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use gix::{ObjectId, objs};
use tempfile::TempDir;

use super::{Index, Rescue, path_of};
use crate::git::{
    disk,
    error::Error,
    intent::{Contents, Planned, RawPath, Version},
    objects::identify,
    references::parse_id,
    repository::Repository,
    transaction::{self, LINK, PROGRAM, make_executable, mode_of},
};

/// A file of a rescue.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The `/` path from the work tree's root, for display.
    pub(crate) path: String,
    pub(crate) state: State,
    /// Whether the index had a version that neither the commit nor the work tree had.
    pub(crate) staged: bool,
    pub(in crate::git) raw: Vec<u8>,
    pub(in crate::git) work: Option<Content>,
    pub(in crate::git) index: Option<Content>,
    head: Option<Content>,
}

/// The state of a file in the work tree, compared with the checked-out commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    Unchanged,
    Changed,
    /// Added to the index but not committed.
    New,
    Untracked,
    Removed,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::git) struct Content {
    pub(in crate::git) mode: String,
    pub(in crate::git) id: ObjectId,
}

const MODULE: &str = "160000";

impl Kept {
    /// Whether it has uncommitted content.
    pub(crate) fn is_uncommitted(&self) -> bool {
        self.state != State::Unchanged || self.staged
    }

    /// The objects of index and work tree that differ from the commit.
    pub(in crate::git) fn uncommitted(&self) -> Vec<ObjectId> {
        let own = [&self.work, &self.index].into_iter().flatten();
        let own = own.filter(|content| content.mode != MODULE && Some(*content) != self.head.as_ref());
        own.map(|content| content.id).collect()
    }
}

impl Repository {
    /// Every file of HEAD, the index and the work tree.
    pub(crate) fn rescued(&self, rescue: &Rescue) -> Result<Vec<Kept>, Error> {
        let head = rescue.head.map(|head| self.objects().tree_of(&head)).transpose()?;
        let mut head = head.map(|tree| self.content(tree)).transpose()?.unwrap_or_default();
        let mut index = self.content(self.objects().tree_of(&rescue.index)?)?;
        let mut work = self.content(rescue.tree)?;
        let paths: BTreeSet<Vec<u8>> = head.keys().chain(index.keys()).chain(work.keys()).cloned().collect();
        let files = paths.into_iter().map(|raw| {
            let (head, index, work) = (head.remove(&raw), index.remove(&raw), work.remove(&raw));
            let state = match (&head, &index, &work) {
                (_, None, Some(_)) => State::Untracked,
                (None, Some(_), Some(_)) => State::New,
                (_, _, None) => State::Removed,
                (head, _, work) if head == work => State::Unchanged,
                _ => State::Changed,
            };
            let staged = index.is_some() && index != head && index != work;
            Kept { path: String::from_utf8_lossy(&raw).into_owned(), state, staged, raw, work, index, head }
        });
        Ok(files.collect())
    }

    fn content(&self, tree: ObjectId) -> Result<BTreeMap<Vec<u8>, Content>, Error> {
        let listed = self.call(&["ls-tree", "-r", "-z", "--full-tree", &tree.to_string()]).succeed()?.stdout;
        let records = listed.split(|byte| *byte == 0).filter(|record| !record.is_empty());
        // `mode type id\tpath`
        let read = |record: &[u8]| {
            let tab = record.iter().position(|byte| *byte == b'\t')?;
            let facts = std::str::from_utf8(&record[..tab]).ok()?;
            let mut facts = facts.split(' ');
            let (mode, _, id) = (facts.next()?, facts.next()?, facts.next()?);
            let id = parse_id(id.as_bytes(), self.hash())?;
            Some((record[tab + 1..].to_owned(), Content { mode: mode.to_owned(), id }))
        };
        let damaged = || Error::damaged(self.git_dir(), "`git ls-tree` answered in an unknown form");
        records.map(|record| read(record).ok_or_else(damaged)).collect()
    }

    /// Extracts these files as they were in the work tree, or with `staged`, as git would check them out of the index.
    pub(crate) fn wanted(&self, files: Vec<Kept>, staged: bool) -> Result<Wanted, Error> {
        let folder = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        let wanted = Wanted { folder, files: Vec::new() };
        let (mut by_git, mut names) = (Vec::new(), Vec::new());
        for file in files {
            let content = if staged { &file.index } else { &file.work };
            let (Some(content), Some(path)) = (content, path_of(&file.raw)) else { continue };
            if content.mode == MODULE {
                continue;
            }
            if staged || file.work == file.index {
                by_git.extend([format!("{} {}\t", content.mode, content.id).as_bytes(), &file.raw, b"\0"].concat());
            } else {
                wanted.put(&path, &content.mode, &self.objects().blob(&content.id)?)?;
            }
            names.push(Named { shown: file.path, path, mode: content.mode.clone(), id: content.id });
        }
        if !by_git.is_empty() {
            let index = Index::empty(self)?;
            index.call(&["update-index", "-z", "--add", "--index-info"]).input(by_git).succeed()?;
            let prefix = format!("--prefix={}/", wanted.folder.path().display());
            index.call(&["checkout-index", "--quiet", "--all", &prefix]).succeed()?;
        }
        Ok(Wanted { files: names, ..wanted })
    }
}

/// Files to restore, extracted to a temporary folder.
pub(crate) struct Wanted {
    folder: TempDir,
    files: Vec<Named>,
}

struct Named {
    /// The path for display.
    shown: String,
    path: PathBuf,
    mode: String,
    id: ObjectId,
}

/// What exists at the path of a file to restore.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    Free,
    Same,
    /// A different file, with these bytes.
    Differs(Vec<u8>),
    Blocked(String),
}

impl Wanted {
    fn put(&self, path: &Path, mode: &str, bytes: &[u8]) -> Result<(), Error> {
        let place = self.folder.path().join(path);
        let folder = place.parent().unwrap_or(&place);
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let written = match mode {
            LINK => disk::symlink(bytes, &place),
            PROGRAM => fs::write(&place, bytes).and_then(|()| make_executable(&fs::File::open(&place)?)),
            _ => fs::write(&place, bytes),
        };
        written.map_err(Error::io("write", &place))
    }

    /// What exists below `root` at each file's path. Changes nothing.
    pub(crate) fn places(&self, root: &Path) -> Result<Vec<(String, Place)>, Error> {
        self.files.iter().map(|file| Ok((file.shown.clone(), self.place(root, &file.path)?))).collect()
    }

    fn place(&self, root: &Path, path: &Path) -> Result<Place, Error> {
        let mut place = root.to_owned();
        for part in path.parent().into_iter().flat_map(Path::components) {
            place.push(part);
            match fs::symlink_metadata(&place) {
                Err(_) => return Ok(Place::Free),
                // A link could lead out of the folder.
                Ok(metadata) if metadata.is_symlink() => {
                    return Ok(Place::Blocked(format!("{} is a symbolic link", place.display())));
                }
                Ok(metadata) if !metadata.is_dir() => {
                    return Ok(Place::Blocked(format!("{} is not a folder", place.display())));
                }
                Ok(_) if place.join(".git").exists() => {
                    return Ok(Place::Blocked(format!("{} is a repository of its own", place.display())));
                }
                Ok(_) => {}
            }
        }
        let (there, new) = (root.join(path), self.folder.path().join(path));
        let Ok(metadata) = fs::symlink_metadata(&there) else { return Ok(Place::Free) };
        let wanted = fs::symlink_metadata(&new).map_err(Error::io("read", &new))?;
        if metadata.is_symlink() || wanted.is_symlink() {
            let same = fs::read_link(&there).ok().is_some_and(|target| fs::read_link(&new).ok() == Some(target));
            let other = || Place::Blocked(format!("{} is something else", there.display()));
            return Ok(if same { Place::Same } else { other() });
        }
        if !metadata.is_file() {
            return Ok(Place::Blocked(format!("{} is not a file", there.display())));
        }
        let bytes = fs::read(&there).map_err(Error::io("read", &there))?;
        let same = bytes == fs::read(&new).map_err(Error::io("read", &new))? && mode_of(&metadata) == mode_of(&wanted);
        Ok(if same { Place::Same } else { Place::Differs(bytes) })
    }

    /// Writes every file that is missing or differs. Differing files must still have the bytes in `places`, which the
    /// caller has backed up. If interrupted, the next command finishes it.
    pub(crate) fn write(
        &self,
        repository: &Repository,
        command: &str,
        root: &Path,
        places: &[(String, Place)],
    ) -> Result<(), Error> {
        let mut contents = Contents::new();
        let mut files = Vec::new();
        for (file, (_, place)) in self.files.iter().zip(places) {
            let there = root.join(&file.path);
            let old = match place {
                Place::Same | Place::Blocked(_) => continue,
                Place::Free => None,
                Place::Differs(bytes) => {
                    let metadata = fs::symlink_metadata(&there).map_err(Error::io("read", &there))?;
                    Some(version(repository, mode_of(&metadata), bytes)?)
                }
            };
            let bytes = bytes_of(&self.folder.path().join(&file.path))?;
            let new = version(repository, &file.mode, &bytes)?;
            // Objects of the rescue are protected by its ref.
            if file.id != *new.work.as_str() {
                contents.insert(new.work.clone(), bytes);
            }
            files.push(Planned { path: RawPath::new(&file.path), old, new: Some(new) });
        }
        match transaction::place(repository, command, root, files, contents)?.first() {
            None => Ok(()),
            Some(path) => {
                let source = std::io::Error::other("it is being changed");
                Err(Error::Io { action: "replace", path: root.join(path), source })
            }
        }
    }
}

fn bytes_of(place: &Path) -> Result<Vec<u8>, Error> {
    let metadata = fs::symlink_metadata(place).map_err(Error::io("read", place))?;
    let bytes = match metadata.is_symlink() {
        true => fs::read_link(place).map(|target| target.into_os_string().into_encoded_bytes()),
        false => fs::read(place),
    };
    bytes.map_err(Error::io("read", place))
}

fn version(repository: &Repository, mode: &str, bytes: &[u8]) -> Result<Version, Error> {
    let id = identify(repository.hash(), objs::Kind::Blob, bytes)?;
    Ok(Version { mode: mode.to_owned(), ..Version::plain(id, id) })
}
