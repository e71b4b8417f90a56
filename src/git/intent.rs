//! The intent of a command that is about to change work tree, index and branch. It is on disk before the first change
//! and removed after the last, so that after a kill the next command can tell squad's changes from the user's.
//!
//! The file is one line of JSON, followed by the contents that no ref protects from `git gc`.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    hash::{BuildHasher, Hasher},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use gix::{ObjectId, objs};
use serde::{Deserialize, Serialize};

use super::{
    disk,
    error::Error,
    mode::{PLAIN, PROGRAM},
    objects::identify,
    own_writes::{OwnWrite, announce},
    repository::Repository,
};
use crate::env::lock::{self, Holder};
use crate::model::{ChangeKind, to_json};
use crate::program::PROCESS_MARK;

/// In a work tree's git directory.
const FOLDER: &str = "squad";

/// The format that this version writes, and the newest it reads. In format 1, a kind was the command's text.
const FORMAT: u32 = 2;

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Intent {
    format: u32,
    #[serde(rename = "command")]
    pub(super) kind: ChangeKind,
    /// `None`: only the work tree changes.
    pub(super) commit: Option<Commit>,
    /// The root of the files, if it is not the work tree.
    pub(super) root: Option<RawPath>,
    /// Part of the names of temporary files.
    pub(super) token: String,
    pub(super) files: Vec<Planned>,
    /// Folders that did not exist, outermost first.
    pub(super) folders: Vec<RawPath>,
    /// Ids and lengths of the contents below.
    contents: Vec<(String, usize)>,
}

/// The commit to make.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Commit {
    pub(super) branch: String,
    /// `None`: this is the branch's first commit.
    pub(super) base: Option<String>,
    /// `None`: the branch already has the files, and only index or work tree lack them.
    pub(super) id: Option<String>,
    pub(super) message: String,
}

/// A file to create, change or remove.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Planned {
    pub(super) path: RawPath,
    pub(super) old: Option<Version>,
    pub(super) new: Option<Version>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Version {
    /// As git writes it: `100644`, `100755` or `120000`.
    pub(super) mode: String,
    /// The blob in index and branch.
    pub(super) blob: String,
    /// The blob id of the bytes in the work tree, with line ends as they are there.
    pub(super) work: String,
}

/// A path from the root with `/`; not every name is Unicode.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(untagged)]
pub(super) enum RawPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl RawPath {
    pub(super) fn new(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_encoded_bytes().to_owned()),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Text(text) => text.into(),
            #[cfg(unix)]
            Self::Bytes(bytes) => <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes).into(),
            #[cfg(not(unix))]
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        }
    }

    /// The path for display.
    pub(super) fn display(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }
}

/// The contents that an intent carries, by their ids.
pub(super) type Contents = BTreeMap<String, Vec<u8>>;

impl Intent {
    pub(super) fn new(kind: &ChangeKind, commit: Option<Commit>, root: Option<&Path>, files: Vec<Planned>) -> Self {
        Self {
            format: FORMAT,
            kind: kind.clone(),
            commit,
            root: root.map(RawPath::new),
            token: token(),
            files,
            folders: Vec::new(),
            contents: Vec::new(),
        }
    }

    /// Durable when it returns.
    pub(super) fn write(&mut self, repository: &Repository, contents: &Contents) -> Result<(), Error> {
        self.contents = contents.iter().map(|(id, bytes)| (id.clone(), bytes.len())).collect();
        let (folder, path) = (repository.state_folder(), repository.intent_path());
        disk::make_folder(&folder, repository.sharing()).map_err(Error::io("create", &folder))?;
        let draft = folder.join(format!("intent-{}", self.token));
        let header = to_json(self).map_err(|cause| Error::io("write", &path)(cause.into()))?;
        let mut bytes = header.into_bytes();
        bytes.push(b'\n');
        bytes.extend(contents.values().flatten());
        let written = disk::create_new(&draft).and_then(|mut file| {
            disk::write(&mut file, &draft, &bytes)?;
            disk::flush(&file, &draft)?;
            disk::rename(&draft, &path)
        });
        written.map_err(Error::io("write", &path))?;
        disk::flush_folder(&folder)
    }

    /// The intent of an interrupted command, if there is one.
    pub(super) fn read(repository: &Repository) -> Result<Option<(Self, Contents)>, Error> {
        let path = repository.intent_path();
        let bytes = match fs::read(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            answer => answer.map_err(Error::io("read", &path))?,
        };
        let unknown = |what: &str| Error::UnknownIntent { path: path.clone(), what: what.to_owned() };
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| unknown("it has no end"))?;
        let header: serde_json::Value =
            serde_json::from_slice(&bytes[..end]).map_err(|cause| unknown(&cause.to_string()))?;
        if header["format"].as_u64().is_some_and(|format| format > FORMAT.into()) {
            return Err(unknown("a newer squad wrote it"));
        }
        let intent: Self = serde_json::from_value(header).map_err(|cause| unknown(&cause.to_string()))?;
        let (mut contents, mut rest) = (Contents::new(), &bytes[end + 1..]);
        for (id, length) in &intent.contents {
            let (content, after) = rest.split_at_checked(*length).ok_or_else(|| unknown("it is truncated"))?;
            if identify(repository.hash(), objs::Kind::Blob, content)? != *id.as_str() {
                return Err(unknown("its contents do not match its checksum"));
            }
            contents.insert(id.clone(), content.to_owned());
            rest = after;
        }
        Ok(Some((intent, contents)))
    }

    /// Tells the runs of this repository what squad writes, before and after it does: it is no agent's work.
    pub(super) fn announce(&self, repository: &Repository, is_done: bool) {
        // What an agent's command has squad write is that agent's.
        if self.root.is_some() || repository.environment().variable(PROCESS_MARK).is_some() {
            return;
        }
        let commit = self.commit.as_ref().and_then(|commit| Some((commit.id.clone()?, commit.base.clone())));
        let (git_dir, kind) = (repository.git_dir().display().to_string(), self.kind.clone());
        let (process, files) = (std::process::id(), self.display_paths());
        let write = OwnWrite { git_dir, process, kind, commit, files, is_done };
        announce(repository.common_dir(), "squad", &write);
    }

    pub(super) fn display_paths(&self) -> Vec<String> {
        self.files.iter().map(|file| file.path.display()).collect()
    }
}

impl Version {
    /// A regular file.
    pub(super) fn new(executable: bool, blob: ObjectId, work: ObjectId) -> Self {
        let mode = if executable { PROGRAM } else { PLAIN };
        Self { mode: mode.to_owned(), blob: blob.to_string(), work: work.to_string() }
    }
}

fn intent_path(git_dir: &Path) -> PathBuf {
    git_dir.join(FOLDER).join("intent")
}

/// Whether a command may have begun a change of the work tree with this git directory.
pub(crate) fn may_be_begun(git_dir: &Path) -> bool {
    fs::symlink_metadata(intent_path(git_dir)).is_ok()
}

/// A random token for unique file names.
fn token() -> String {
    format!("{:016x}", std::hash::RandomState::new().build_hasher().finish())
}

impl Repository {
    /// The folder that commands of this work tree share.
    pub(super) fn state_folder(&self) -> PathBuf {
        self.git_dir().join(FOLDER)
    }

    pub(super) fn intent_path(&self) -> PathBuf {
        intent_path(self.git_dir())
    }

    /// Waits until no other squad changes this work tree. If a process dies, the kernel releases its lock.
    pub(super) fn lock_work_tree(&self) -> Result<WorkTreeLock, Error> {
        let file = self.lock_file()?;
        let tell = |holder: &Holder| self.damage().say(&format!("waiting for the work tree's lock: {holder}"));
        lock::wait(&file, &tell).map_err(Error::io("lock", self.state_folder()))?;
        Ok(WorkTreeLock { _file: file })
    }

    fn lock_file(&self) -> Result<File, Error> {
        let folder = self.state_folder();
        let path = folder.join("intent.lock");
        let file = lock::open(&path).map_err(Error::io("open", &path))?;
        // Fails if another user created the file; that user has already shared it.
        let _ = self.sharing().open_directory(&folder).and_then(|()| self.sharing().open_file(&path));
        Ok(file)
    }

    fn is_locked(&self) -> Result<bool, Error> {
        let file = self.lock_file()?;
        // A dead process's lock is inherited by a child it has just forked, until that child calls exec.
        for _ in 0..20 {
            if !lock::is_held(&file) {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(true)
    }

    /// The interrupted command of this work tree; `None` also while a command is still running.
    pub(crate) fn begun(&self) -> Result<Option<InterruptedCommand>, Error> {
        if !self.intent_path().exists() || self.is_locked()? {
            return Ok(None);
        }
        Ok(Intent::read(self)?.map(|(intent, _)| InterruptedCommand {
            paths: intent.display_paths(),
            command: intent.kind.to_string(),
            kind: intent.kind,
            branch: intent.commit.map(|commit| commit.branch),
        }))
    }
}

/// Held while a command changes this work tree.
pub(super) struct WorkTreeLock {
    _file: File,
}

/// A command that was interrupted.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct InterruptedCommand {
    /// Without the leading `squad`.
    pub(crate) command: String,
    #[serde(skip)]
    pub(crate) kind: ChangeKind,
    /// `None`: it makes no commit.
    pub(crate) branch: Option<String>,
    pub(crate) paths: Vec<String>,
}
