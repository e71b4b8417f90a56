//! Rescues: backups of uncommitted changes, made before squad removes or overwrites anything in the work tree.
//!
//! A rescue is a commit under `refs/squad/rescue/` in the form of a git stash: its tree is the work tree with untracked
//! files, its first parent is HEAD (missing if there is no commit yet), its last parent a commit of the index. Files
//! that differ from the index are stored byte for byte as in the work tree; the others come from the index.

mod index;
mod restore;

use std::{
    fs,
    path::{Path, PathBuf},
};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    error::Error,
    mode::mode_of,
    objects::NewObjects,
    pack,
    quarantine::Quarantine,
    repository::Repository,
};
use crate::env::files::read_within;
use crate::model::{SkippedFile, Sort};
use crate::policy::is_git;
pub(super) use index::{Index, read as read_index};
pub(super) use restore::{Content, bytes_of};
pub(crate) use restore::{FileStatus, RescuedFile, TargetState};

pub(super) const FOLDER: &str = "refs/squad/rescue/";

/// Larger files are omitted and reported: they do not belong in a repository.
pub(super) const LARGEST: u64 = 32 << 20;

/// How many bytes of new objects are held in memory.
pub(super) const BATCH: usize = 32 << 20;

/// `git write-tree` option for an index whose objects are not all in the repository yet.
pub(super) const MISSING: &[&str] = &["--missing-ok"];

/// A new rescue, and the files it omits.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewRescue {
    pub(crate) id: String,
    pub(crate) left_out: Vec<SkippedFile>,
}

/// A stored rescue.
#[derive(Clone, Debug)]
pub(crate) struct Rescue {
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    pub(crate) message: String,
    pub(super) commit: ObjectId,
    pub(super) tree: ObjectId,
    pub(super) head: Option<ObjectId>,
    pub(super) index: ObjectId,
}

impl Rescue {
    pub(crate) fn commit(&self) -> String {
        self.commit.to_string()
    }

    /// The commit that was checked out; `None`: there was no commit yet.
    pub(crate) fn head(&self) -> Option<String> {
        self.head.map(|head| head.to_string())
    }
}

impl Repository {
    /// Backs up work tree and index; durable when it returns. Skips ignored files and nested repositories.
    ///
    /// `objection` returns the reason to omit an uncommitted content; `message` gets the number of saved files and the
    /// omitted ones.
    pub(crate) fn rescue(
        &self,
        objection: impl Fn(&[u8]) -> Option<String>,
        message: impl FnOnce(usize, &[SkippedFile]) -> String,
        committer: &Identity,
        at: Timestamp,
    ) -> Result<NewRescue, Error> {
        let head = self.head()?.commit.map(|commit| self.parse_commit(&commit)).transpose()?;
        let quarantine = Quarantine::new(self)?;
        let index = Index::copy(self)?;
        index.settle_conflicts()?;
        let staged = index.write_tree(&quarantine, &[])?;
        let mut writer =
            RescueWriter { repository: self, objects: NewObjects::new(self.hash()), bytes: 0, kept: Vec::new() };
        let mut kept = index.differences_from(head)?;
        let (mut left_out, mut records) = (Vec::new(), Vec::new());
        for path in index.unsaved()? {
            let record = match writer.store(&path, &objection)? {
                PathState::Missing => [format!("0 {} 0\t", self.hash().null()).as_bytes(), &path, b"\0"].concat(),
                PathState::Stored(mode, id) => [format!("{mode} {id} 0\t").as_bytes(), &path, b"\0"].concat(),
                PathState::Omitted(why) => {
                    left_out.push(SkippedFile { path: String::from_utf8_lossy(&path).into_owned(), why });
                    continue;
                }
            };
            kept.insert(path);
            records.extend(record);
        }
        if !records.is_empty() {
            index.call(&["update-index", "-z", "--add", "--replace", "--index-info"]).input(records).succeed()?;
        }
        let tree = index.write_tree(&quarantine, MISSING)?;
        let RescueWriter { mut objects, kept: mut packs, .. } = writer;
        let committed = head.map(|head| self.objects().tree_of(&head)).transpose()?;
        quarantine.take_trees(staged, committed, &mut objects)?;
        quarantine.take_trees(tree, committed, &mut objects)?;
        let message = message(kept.len(), &left_out);
        let base = head.as_slice();
        let about = format!("index of: {}", commit::subject(&message));
        let staged = objects.add(objs::Kind::Commit, commit::encode(staged, base, committer, at, &about))?;
        let parents = [base, &[staged]].concat();
        let commit = objects.add(objs::Kind::Commit, commit::encode(tree, &parents, committer, at, &message))?;
        packs.push(self.packs().add(&objects)?);
        let hex = commit.to_string();
        let id = format!("{}-{}", at.strftime("%Y%m%d-%H%M%S"), hex.get(..6).unwrap_or(&hex));
        // The same rescue may exist, from the same second.
        self.ledger().move_ref(&format!("{FOLDER}{id}"), None, commit)?;
        drop(packs);
        Ok(NewRescue { id, left_out })
    }

    /// All rescues, newest first.
    pub(crate) fn rescues(&self) -> Result<Vec<Rescue>, Error> {
        let (references, store) = (self.references(), self.objects());
        let mut rescues = Vec::new();
        for reference in references.list(FOLDER)? {
            let (Some(commit), Some(id)) = (references.read(&reference)?, reference.strip_prefix(FOLDER)) else {
                continue;
            };
            let (tree, mut parents, message) = store.commit(&commit)?;
            let index =
                parents.pop().ok_or_else(|| Error::damaged(self.git_dir(), format!("{reference} has no index")))?;
            let at = Timestamp::from_second(store.time_of(&commit)?).unwrap_or(Timestamp::UNIX_EPOCH);
            let head = parents.first().copied();
            rescues.push(Rescue { id: id.to_owned(), at, message, commit, tree, head, index });
        }
        rescues.stable_sort_by(|a, b| (b.at, &b.id).cmp(&(a.at, &a.id)));
        Ok(rescues)
    }

    /// Deletes a rescue. git gc removes its unreferenced objects later.
    pub(crate) fn forget(&self, rescue: &Rescue) -> Result<(), Error> {
        let reference = format!("{FOLDER}{}", rescue.id);
        self.references().announce(&[(reference.clone(), None)]);
        self.call(&["update-ref", "-d", &reference, &rescue.commit.to_string()]).succeed().map(drop)
    }

    /// A tree with some entries replaced. `entries` are in the format of `git update-index --index-info`; their objects
    /// need not be in the repository yet.
    pub(super) fn tree_with(
        &self,
        quarantine: &Quarantine<'_>,
        tree: ObjectId,
        entries: Vec<u8>,
    ) -> Result<ObjectId, Error> {
        if entries.is_empty() {
            return Ok(tree);
        }
        let index = Index::empty(self)?;
        index.call(&["read-tree", &tree.to_string()]).succeed()?;
        index.call(&["update-index", "-z", "--add", "--index-info"]).input(entries).succeed()?;
        index.write_tree(quarantine, MISSING)
    }
}

/// What exists at a path.
enum PathState {
    Missing,
    Stored(&'static str, ObjectId),
    Omitted(String),
}

struct RescueWriter<'a> {
    repository: &'a Repository,
    objects: NewObjects,
    bytes: usize,
    /// Full batches, already written as packs.
    kept: Vec<pack::KeptPack>,
}

impl RescueWriter<'_> {
    fn store(&mut self, path: &[u8], objection: impl Fn(&[u8]) -> Option<String>) -> Result<PathState, Error> {
        let Some((root, path)) = self.repository.work_dir().zip(path_of(path)) else { return Ok(PathState::Missing) };
        if is_behind_link(root, &path) {
            return Ok(PathState::Missing);
        }
        let file = root.join(path);
        let Ok(metadata) = fs::symlink_metadata(&file) else { return Ok(PathState::Missing) };
        let (mode, bytes) = if metadata.is_symlink() {
            match fs::read_link(&file) {
                Ok(target) => ("120000", target.as_os_str().as_encoded_bytes().to_owned()),
                Err(cause) => return Ok(PathState::Omitted(format!("it cannot be read: {cause}"))),
            }
        } else if metadata.is_dir() {
            return Ok(PathState::Missing);
        } else if !metadata.is_file() {
            return Ok(PathState::Omitted("it is not a file".to_owned()));
        } else {
            match read_within(&file, LARGEST) {
                Ok(Ok(bytes)) => (mode_of(&metadata), bytes),
                Ok(Err(_)) => return Ok(PathState::Omitted(format!("it is larger than {} MiB", LARGEST >> 20))),
                Err(cause) => return Ok(PathState::Omitted(format!("it cannot be read: {cause}"))),
            }
        };
        if let Some(why) = objection(&bytes) {
            return Ok(PathState::Omitted(why));
        }
        self.bytes += bytes.len();
        let id = self.objects.add(objs::Kind::Blob, bytes)?;
        if self.bytes >= BATCH {
            self.flush()?;
        }
        Ok(PathState::Stored(mode, id))
    }

    fn flush(&mut self) -> Result<(), Error> {
        let objects = std::mem::replace(&mut self.objects, NewObjects::new(self.repository.hash()));
        self.bytes = 0;
        self.kept.push(self.repository.packs().add(&objects)?);
        Ok(())
    }
}

/// A path from git's output; `None` if it leaves the work tree or enters a git directory.
pub(super) fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    #[cfg(unix)]
    let path: &Path = Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    #[cfg(not(unix))]
    let path: &Path = Path::new(std::str::from_utf8(bytes).ok()?);
    let is_plain = |part: std::path::Component<'_>| match part {
        std::path::Component::Normal(name) => !is_git(&name.to_string_lossy()),
        _ => false,
    };
    (!bytes.is_empty() && path.components().all(is_plain)).then(|| path.to_owned())
}

/// Whether a link has taken the place of a folder of this path: git then has no such file.
pub(super) fn is_behind_link(root: &Path, path: &Path) -> bool {
    path.ancestors().skip(1).any(|folder| folder != Path::new("") && root.join(folder).is_symlink())
}
