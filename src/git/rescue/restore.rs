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
    mode::{LINK, PROGRAM, make_executable, mode_of},
    objects::identify,
    path::obstacle,
    references::parse_id,
    repository::Repository,
    rewrite,
};
use crate::model::{ChangeKind, IntoSet};

/// A file of a rescue.
#[derive(Clone, Debug)]
pub(crate) struct RescuedFile {
    /// The `/` path from the work tree's root, for display.
    pub(crate) path: String,
    pub(crate) state: FileStatus,
    /// Whether the index had a version that neither the commit nor the work tree had.
    pub(crate) staged: bool,
    pub(in crate::git) raw: Vec<u8>,
    pub(in crate::git) work: Option<Content>,
    pub(in crate::git) index: Option<Content>,
    head: Option<Content>,
}

/// The state of a file in the work tree, compared with the checked-out commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FileStatus {
    Unchanged,
    Changed,
    /// Added to the index but not committed.
    New,
    Untracked,
    Removed,
}

/// A file's content in a tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Content {
    pub(in crate::git) mode: String,
    pub(in crate::git) id: ObjectId,
}

const MODULE: &str = "160000";

impl RescuedFile {
    /// Whether it has uncommitted content.
    pub(crate) fn is_uncommitted(&self) -> bool {
        self.state != FileStatus::Unchanged || self.staged
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
    pub(crate) fn rescued(&self, rescue: &Rescue) -> Result<Vec<RescuedFile>, Error> {
        let head = rescue.head.map(|head| self.objects().tree_of(&head)).transpose()?;
        let mut head = head.map(|tree| self.content(tree)).transpose()?.unwrap_or_default();
        let mut index = self.content(self.objects().tree_of(&rescue.index)?)?;
        let mut work = self.content(rescue.tree)?;
        let paths: BTreeSet<Vec<u8>> = head.keys().chain(index.keys()).chain(work.keys()).cloned().into_set();
        let files = paths.into_iter().map(|raw| {
            let (head, index, work) = (head.remove(&raw), index.remove(&raw), work.remove(&raw));
            let state = match (&head, &index, &work) {
                (_, None, Some(_)) => FileStatus::Untracked,
                (None, Some(_), Some(_)) => FileStatus::New,
                (_, _, None) => FileStatus::Removed,
                (head, _, work) if head == work => FileStatus::Unchanged,
                _ => FileStatus::Changed,
            };
            let staged = index.is_some() && index != head && index != work;
            RescuedFile { path: String::from_utf8_lossy(&raw).into_owned(), state, staged, raw, work, index, head }
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
    pub(crate) fn extract(&self, files: Vec<RescuedFile>, staged: bool) -> Result<Extracted, Error> {
        let folder = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        let extracted = Extracted { folder, files: Vec::new() };
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
                extracted.put(&path, &content.mode, &self.objects().blob(&content.id)?)?;
            }
            names.push(ExtractedFile { display: file.path, path, mode: content.mode.clone(), id: content.id });
        }
        if !by_git.is_empty() {
            let index = Index::empty(self)?;
            index.call(&["update-index", "-z", "--add", "--index-info"]).input(by_git).succeed()?;
            let prefix = format!("--prefix={}/", extracted.folder.path().display());
            index.call(&["checkout-index", "--quiet", "--all", &prefix]).succeed()?;
        }
        Ok(Extracted { files: names, ..extracted })
    }
}

/// Files to restore, extracted to a temporary folder.
pub(crate) struct Extracted {
    folder: TempDir,
    files: Vec<ExtractedFile>,
}

struct ExtractedFile {
    /// The path for display.
    display: String,
    path: PathBuf,
    mode: String,
    id: ObjectId,
}

/// What exists at the path of a file to restore.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum TargetState {
    Free,
    Same,
    /// A different file, with these bytes.
    Differs(Vec<u8>),
    Blocked(String),
}

impl Extracted {
    fn put(&self, path: &Path, mode: &str, bytes: &[u8]) -> Result<(), Error> {
        let target = self.folder.path().join(path);
        let folder = target.parent().unwrap_or(&target);
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let written = match mode {
            LINK => disk::symlink(bytes, &target),
            PROGRAM => fs::write(&target, bytes).and_then(|()| make_executable(&fs::File::open(&target)?)),
            _ => fs::write(&target, bytes),
        };
        written.map_err(Error::io("write", &target))
    }

    /// What exists below `root` at each file's path. Changes nothing.
    pub(crate) fn target_states(&self, root: &Path) -> Result<Vec<(String, TargetState)>, Error> {
        self.files.iter().map(|file| Ok((file.display.clone(), self.target_state(root, &file.path)?))).collect()
    }

    fn target_state(&self, root: &Path, path: &Path) -> Result<TargetState, Error> {
        if let Some((folder, what)) = obstacle(root, path)? {
            return Ok(TargetState::Blocked(format!("{} {what}", folder.display())));
        }
        let (existing, new) = (root.join(path), self.folder.path().join(path));
        let Ok(metadata) = fs::symlink_metadata(&existing) else { return Ok(TargetState::Free) };
        let extracted = fs::symlink_metadata(&new).map_err(Error::io("read", &new))?;
        if metadata.is_symlink() || extracted.is_symlink() {
            let same = fs::read_link(&existing).ok().is_some_and(|target| fs::read_link(&new).ok() == Some(target));
            let other = || TargetState::Blocked(format!("{} is something else", existing.display()));
            return Ok(if same { TargetState::Same } else { other() });
        }
        if !metadata.is_file() {
            return Ok(TargetState::Blocked(format!("{} is not a file", existing.display())));
        }
        let bytes = fs::read(&existing).map_err(Error::io("read", &existing))?;
        let same =
            bytes == fs::read(&new).map_err(Error::io("read", &new))? && mode_of(&metadata) == mode_of(&extracted);
        Ok(if same { TargetState::Same } else { TargetState::Differs(bytes) })
    }

    /// Writes every file that is missing or differs. Differing files must still have the bytes in `targets`, which the
    /// caller has backed up. If interrupted, the next command finishes it.
    pub(crate) fn write(
        &self,
        repository: &Repository,
        kind: &ChangeKind,
        root: &Path,
        targets: &[(String, TargetState)],
    ) -> Result<(), Error> {
        let mut contents = Contents::new();
        let mut files = Vec::new();
        for (file, (_, target)) in self.files.iter().zip(targets) {
            let existing = root.join(&file.path);
            let old = match target {
                TargetState::Same | TargetState::Blocked(_) => continue,
                TargetState::Free => None,
                TargetState::Differs(bytes) => {
                    let metadata = fs::symlink_metadata(&existing).map_err(Error::io("read", &existing))?;
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
        match rewrite::write_files(repository, kind, root, files, contents)?.first() {
            None => Ok(()),
            Some(path) => {
                let source = std::io::Error::other("it is being changed");
                Err(Error::Io { action: "replace", path: root.join(path), source })
            }
        }
    }
}

/// The bytes of a file, or the target of a link.
pub(in crate::git) fn bytes_of(target: &Path) -> Result<Vec<u8>, Error> {
    let metadata = fs::symlink_metadata(target).map_err(Error::io("read", target))?;
    let bytes = match metadata.is_symlink() {
        true => fs::read_link(target).map(|target| target.into_os_string().into_encoded_bytes()),
        false => fs::read(target),
    };
    bytes.map_err(Error::io("read", target))
}

fn version(repository: &Repository, mode: &str, bytes: &[u8]) -> Result<Version, Error> {
    let id = identify(repository.hash(), objs::Kind::Blob, bytes)?;
    Ok(Version { mode: mode.to_owned(), ..Version::new(false, id, id) })
}
