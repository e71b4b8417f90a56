//! Reading a rescue back: what it holds, and writing it where nothing is lost by it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use gix::ObjectId;
use tempfile::TempDir;

use super::{Index, Rescue, mode_of, path_of};
use crate::git::{
    checkout::{Aside, new_file},
    disk,
    error::Error,
    references::parse_id,
    repository::Repository,
};

/// A file of a rescue.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// From the work tree's root, with `/`; for people.
    pub(crate) path: String,
    pub(crate) state: State,
    /// Whether the index held something that neither the commit nor the work tree did.
    pub(crate) staged: bool,
    pub(in crate::git) raw: Vec<u8>,
    pub(in crate::git) work: Option<Content>,
    pub(in crate::git) index: Option<Content>,
    head: Option<Content>,
}

/// How a file in the work tree stood to the commit that was checked out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    Unchanged,
    Changed,
    /// Added to the index and not committed.
    New,
    Untracked,
    Removed,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::git) struct Content {
    pub(in crate::git) mode: String,
    pub(in crate::git) id: ObjectId,
}

const LINK: &str = "120000";
const MODULE: &str = "160000";

impl Kept {
    /// Whether no commit holds it.
    pub(crate) fn is_uncommitted(&self) -> bool {
        self.state != State::Unchanged || self.staged
    }

    /// The objects of index and work tree that are not the commit's.
    pub(in crate::git) fn uncommitted(&self) -> Vec<ObjectId> {
        let own = [&self.work, &self.index].into_iter().flatten();
        let own = own.filter(|content| content.mode != MODULE && Some(*content) != self.head.as_ref());
        own.map(|content| content.id).collect()
    }
}

impl Repository {
    /// Every file that HEAD, the index or the work tree held.
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

    /// The bytes of these files as they lay in the work tree; `staged`: as the index would have put them there.
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
            names.push((file.path, path));
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

/// Files on their way back, in a folder of their own.
pub(crate) struct Wanted {
    folder: TempDir,
    /// For people, and as it is.
    files: Vec<(String, PathBuf)>,
}

/// What is where a file is to go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    Free,
    Same,
    /// A file with these bytes.
    Differs(Vec<u8>),
    Blocked(String),
}

impl Wanted {
    fn put(&self, path: &Path, mode: &str, bytes: &[u8]) -> Result<(), Error> {
        let place = self.folder.path().join(path);
        let folder = place.parent().unwrap_or(&place);
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        if mode == LINK {
            return link(bytes, &place);
        }
        fs::write(&place, bytes).map_err(Error::io("write", &place))?;
        if mode == "100755" { make_executable(&place) } else { Ok(()) }
    }

    /// Looks at every place below `root`. Changes nothing.
    pub(crate) fn places(&self, root: &Path) -> Result<Vec<(String, Place)>, Error> {
        self.files.iter().map(|(shown, path)| Ok((shown.clone(), self.place(root, path)?))).collect()
    }

    fn place(&self, root: &Path, path: &Path) -> Result<Place, Error> {
        let mut place = root.to_owned();
        for part in path.parent().into_iter().flat_map(Path::components) {
            place.push(part);
            match fs::symlink_metadata(&place) {
                Err(_) => return Ok(Place::Free),
                // It would lead out of the folder.
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

    /// Writes every file that is not there as it should be, each whole or not at all. Those that differ must still hold
    /// the bytes that were seen: the caller has kept these.
    pub(crate) fn write(&self, root: &Path, places: &[(String, Place)]) -> Result<(), Error> {
        for ((_, path), (_, place)) in self.files.iter().zip(places) {
            let (new, there) = (self.folder.path().join(path), root.join(path));
            let folder = there.parent().unwrap_or(root);
            let mut aside = Aside::default();
            match place {
                Place::Same | Place::Blocked(_) => continue,
                Place::Free => fs::create_dir_all(folder).map_err(Error::io("create", folder))?,
                Place::Differs(bytes) => {
                    if !aside.take(&there, bytes)? {
                        let source = std::io::Error::other("it is being changed");
                        return Err(Error::Io { action: "replace", path: there, source });
                    }
                }
            }
            let written = self.write_one(&new, &there, folder);
            if written.is_err() {
                aside.put_back()?;
            }
            written?;
        }
        Ok(())
    }

    fn write_one(&self, new: &Path, there: &Path, folder: &Path) -> Result<(), Error> {
        let metadata = fs::symlink_metadata(new).map_err(Error::io("read", new))?;
        if metadata.is_symlink() {
            let target = fs::read_link(new).map_err(Error::io("read", new))?;
            link(target.as_os_str().as_encoded_bytes(), there)?;
        } else {
            let bytes = fs::read(new).map_err(Error::io("read", new))?;
            let file = new_file(folder, &bytes).map_err(Error::io("write", there))?;
            if mode_of(&metadata) == "100755" {
                make_executable(file.path())?;
            }
            file.persist_noclobber(there).map_err(|failure| Error::io("write", there)(failure.error))?;
        }
        disk::flush_folder(folder)
    }
}

#[cfg(unix)]
fn link(target: &[u8], place: &Path) -> Result<(), Error> {
    let target: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(target);
    std::os::unix::fs::symlink(target, place).map_err(Error::io("link", place))
}

/// As git does where links need a privilege: a file that holds the target.
#[cfg(not(unix))]
fn link(target: &[u8], place: &Path) -> Result<(), Error> {
    fs::write(place, target).map_err(Error::io("write", place))
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = fs::metadata(path).map_err(Error::io("read", path))?;
    let mode = metadata.permissions().mode();
    // For whoever may read it.
    let permissions = fs::Permissions::from_mode(mode | ((mode & 0o444) >> 2));
    fs::set_permissions(path, permissions).map_err(Error::io("change", path))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> Result<(), Error> {
    Ok(())
}
