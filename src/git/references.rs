//! Reading refs, and moving the ledger's ref so that the move survives a power cut.
//!
//! This follows git's own protocol for loose refs: create `<ref>.lock`, read the ref again under it, rename the lock
//! over the ref. Unlike gix's transaction it does not lock `packed-refs`, does not trust a cached snapshot of that
//! file, and flushes. Reftable repositories are left to the `git` program.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use gix::{ObjectId, hash};

use super::{
    disk,
    error::Error,
    objects::Sharing,
    own_writes::{RefWrite, announce},
    program::{Call, Environment},
    ref_lock::{lock_path, lock_with},
};
use crate::model::IntoMap;

pub(super) const REFS: &str = "refs/squad/";

/// The ref of the ledger.
pub(crate) const REFERENCE: &str = "refs/squad/log";

/// What squad keeps below `REFS`. Whatever else is there, somebody has put aside.
pub(super) const OWN_REFS: [&str; 13] = [
    "bases", "clones", "imports", "jobs", "links", "log", "orders", "remotes", "rescue", "results", "runs", "taken",
    "works",
];

/// Whether a ref is in one of squad's folders.
pub(super) fn is_own(name: &str) -> bool {
    let kind = name.strip_prefix(REFS).and_then(|rest| rest.split('/').next());
    kind.is_some_and(|kind| OWN_REFS.contains(&kind))
}

/// The value of a ref.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Target {
    Object(ObjectId),
    Symbolic(String),
}

/// The values of refs by name: ids, or `ref: NAME` of symbolic ones.
#[derive(Default)]
pub(super) struct Values {
    pub(super) loose: BTreeMap<String, String>,
    pub(super) packed: BTreeMap<String, String>,
}

/// The refs that all work trees of a repository share.
#[derive(Clone, Debug)]
pub(super) enum References {
    Files { common_dir: PathBuf, hash: hash::Kind, sharing: Sharing },
    Reftable { git_dir: PathBuf, common_dir: PathBuf, hash: hash::Kind, environment: Environment },
}

/// When the move of a ref must have reached the disk.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Durability {
    Now,
    /// With the next change that is flushed, where the file system keeps the order; elsewhere at once.
    WithNext,
}

impl References {
    /// The target of a ref that is not symbolic.
    pub(super) fn read(&self, name: &str) -> Result<Option<ObjectId>, Error> {
        match self {
            Self::Files { common_dir, hash, .. } => read_shared(common_dir, name, *hash),
            Self::Reftable { git_dir, hash, environment, .. } => {
                let answer = Call::new(environment, git_dir, &["rev-parse", "--verify", "--quiet", name]).run()?;
                if !answer.is_success() {
                    return Ok(None);
                }
                parse_id(&answer.stdout, *hash).map(Some).ok_or_else(|| unexpected(git_dir, name))
            }
        }
    }

    /// The names of all refs below a folder of refs.
    pub(super) fn list(&self, folder: &str) -> Result<Vec<String>, Error> {
        let common_dir = match self {
            Self::Files { common_dir, .. } => common_dir,
            Self::Reftable { git_dir, environment, .. } => {
                let arguments = ["for-each-ref", "--format=%(refname)", folder];
                let listed = Call::new(environment, git_dir, &arguments).succeed()?.text();
                return Ok(listed.lines().map(str::to_owned).collect());
            }
        };
        let mut names = Vec::new();
        let mut folders = vec![folder.trim_end_matches('/').to_owned()];
        while let Some(folder) = folders.pop() {
            let path = common_dir.join(&folder);
            let entries = match fs::read_dir(&path) {
                Err(cause) if is_absent(&cause) => continue,
                answer => answer.map_err(Error::io("read", &path))?,
            };
            for entry in entries {
                let entry = entry.map_err(Error::io("read", &path))?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                let name = format!("{folder}/{name}");
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(name),
                    _ if name.ends_with(".lock") => {}
                    _ => names.push(name),
                }
            }
        }
        for_each_packed(common_dir, |_, name| {
            if name.strip_prefix(folder.as_bytes()).is_some() {
                names.extend(std::str::from_utf8(name).map(str::to_owned));
            }
            Ok(false)
        })?;
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The values of all refs; packed ones only on request.
    pub(super) fn values(&self, with_packed: bool) -> Result<Values, Error> {
        let mut values = Values::default();
        let common_dir = match self {
            Self::Files { common_dir, .. } => common_dir,
            Self::Reftable { git_dir, environment, .. } => {
                let arguments = ["for-each-ref", "--format=%(refname) %(objectname)"];
                let listed = Call::new(environment, git_dir, &arguments).succeed()?.text();
                let refs = listed.lines().filter_map(|line| line.split_once(' '));
                values.loose = refs.map(|(name, id)| (name.to_owned(), id.to_owned())).into_map();
                return Ok(values);
            }
        };
        let mut folders = vec!["refs".to_owned()];
        while let Some(folder) = folders.pop() {
            let path = common_dir.join(&folder);
            // A folder that git has just removed is empty.
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                let name = format!("{folder}/{name}");
                if name.ends_with(".lock") {
                    continue;
                }
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(name),
                    _ => {
                        let content = fs::read_to_string(common_dir.join(&name)).unwrap_or_default();
                        values.loose.insert(name, content.trim().to_owned());
                    }
                }
            }
        }
        if with_packed {
            for_each_packed(common_dir, |id, name| {
                let (id, name) = (String::from_utf8_lossy(id), String::from_utf8_lossy(name));
                if name.starts_with("refs/") {
                    values.packed.insert(name.into_owned(), id.into_owned());
                }
                Ok(false)
            })?;
        }
        Ok(values)
    }

    /// Tells the live runs of this repository, before it does so, which refs squad writes: no agent moved them.
    pub(super) fn announce(&self, writes: &[RefWrite]) {
        let (Self::Files { common_dir, .. } | Self::Reftable { common_dir, .. }) = self;
        announce(common_dir, "refs", &writes);
    }

    /// Like [`Self::announce`], of the ledger's ref.
    pub(super) fn announce_append(&self, (old, new): (Option<ObjectId>, ObjectId)) {
        let (Self::Files { common_dir, .. } | Self::Reftable { common_dir, .. }) = self;
        announce(common_dir, "ledger", &(new.to_string(), old.map(|old| old.to_string())));
    }

    /// Writes the value that [`Self::advance`] will give to a ref into `draft`: a private file on the same file system,
    /// protected by the caller's lock.
    pub(super) fn prepare(&self, new: ObjectId, draft: &Path) -> Result<(), Error> {
        match self {
            Self::Files { sharing, .. } => write_draft(draft, new, *sharing),
            Self::Reftable { .. } => Ok(()),
        }
    }

    /// Moves a ref from `old` to `new`, without a reflog. True: the move is as durable as asked, and so is everything
    /// renamed before it on the same file system. False: the ref was no longer at `old`, and nothing changed.
    pub(super) fn advance(
        &self,
        name: &str,
        (old, new): (Option<ObjectId>, ObjectId),
        draft: &Path,
        durability: Durability,
    ) -> Result<bool, Error> {
        match self {
            Self::Files { common_dir, hash, sharing } => {
                let drafts = draft.parent().unwrap_or(common_dir);
                let keeps_order = disk::keeps_order(drafts, common_dir);
                let reached = File::open(draft).and_then(|file| disk::reach_disk(&file, draft, keeps_order));
                reached.map_err(Error::io("flush", draft))?;
                let path = common_dir.join(name);
                let folder = make_folder(common_dir, &path, *sharing, keeps_order)?;
                if !keeps_order {
                    // The draft's name identifies a lock left by a power cut as ours.
                    disk::flush_folder(drafts)?;
                    // The folder may have been created by a writer that died before flushing it.
                    folder.parent().map_or(Ok(()), disk::flush_folder)?;
                }
                let lock = lock_with(draft, &path, *sharing)?;
                if read_shared(common_dir, name, *hash)? != old {
                    return Ok(false);
                }
                lock.publish(&path)?;
                if durability == Durability::Now || !keeps_order {
                    disk::flush_folder(&folder)?;
                }
                disk::remove(draft).map_err(Error::io("remove", draft))?;
                Ok(true)
            }
            Self::Reftable { git_dir, common_dir, hash, environment } => {
                let old = old.unwrap_or(hash.null());
                let arguments = ["update-ref", name, &new.to_string(), &old.to_string()];
                let answer = Call::new(environment, git_dir, &["-c", "core.logAllRefUpdates=false"])
                    .arguments(&arguments)
                    .run()?;
                if answer.is_success() {
                    // git flushes the table but not its folder.
                    return disk::flush_folder(&common_dir.join("reftable")).map(|()| true);
                }
                if self.read(name)? != Some(old).filter(|old| !old.is_null()) {
                    return Ok(false);
                }
                Err(Error::Program { command: "git update-ref".into(), message: answer.error_line() })
            }
        }
    }

    /// Flushes a ref that another process moved, perhaps without flushing it.
    pub(super) fn flush(&self, name: &str) -> Result<(), Error> {
        let common_dir = match self {
            Self::Files { common_dir, .. } => common_dir,
            Self::Reftable { common_dir, .. } => return disk::flush_folder(&common_dir.join("reftable")),
        };
        let path = common_dir.join(name);
        match File::open(&path).and_then(|file| file.sync_all()) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {} // packed, which git flushes
            answer => answer.map_err(Error::io("flush", &path))?,
        }
        path.parent().map_or(Ok(()), disk::flush_folder)
    }

    /// Removes the ref lock of a dead squad writer: it is a hard link to `draft`, or holds the id the writer had
    /// declared. Any other lock belongs to somebody else.
    ///
    /// The caller holds the ledger lock, so no live squad writer is between draft and ref.
    pub(super) fn remove_stale_lock(&self, name: &str, declared: Option<&str>, draft: &Path) -> Result<(), Error> {
        let Self::Files { common_dir, .. } = self else { return Ok(()) };
        let lock = lock_path(&common_dir.join(name));
        let Ok(content) = fs::read(&lock) else { return Ok(()) };
        let is_declared = declared.is_some_and(|new| content.trim_ascii() == new.as_bytes());
        if is_declared || is_same_file(&lock, draft) {
            disk::remove(&lock).map_err(Error::io("remove", &lock))
        } else {
            Ok(())
        }
    }
}

#[cfg(unix)]
fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    identity(one).is_some_and(|found| identity(other) == Some(found))
}

#[cfg(not(unix))]
fn is_same_file(_one: &Path, _other: &Path) -> bool {
    false
}

/// The target of a branch; a branch may be a symbolic ref to another. The depth limit is git's own.
pub(super) fn follow(references: &References, name: &str) -> Result<Option<ObjectId>, Error> {
    let References::Files { common_dir, hash, .. } = references else { return references.read(name) };
    let mut name = name.to_owned();
    for _ in 0..5 {
        match fs::read(common_dir.join(&name)).ok().and_then(|content| parse(&content, *hash)) {
            Some(Target::Symbolic(next)) => name = next,
            _ => return references.read(&name),
        }
    }
    Err(Error::damaged(common_dir, format!("{name} is a symbolic ref without an end")))
}

/// `HEAD` of a work tree in a repository with file refs.
pub(super) fn read_head(git_dir: &Path, hash: hash::Kind) -> Result<Target, Error> {
    let unreadable = |cause: String| Error::Unreadable { path: git_dir.to_owned(), cause };
    let content = fs::read(git_dir.join("HEAD")).map_err(|cause| unreadable(format!("HEAD: {cause}")))?;
    parse(&content, hash).ok_or_else(|| unreadable("HEAD holds neither a branch nor a commit".into()))
}

/// A shared ref: its file first, then `packed-refs`. In this order, a ref that is being packed is always found.
pub(super) fn read_shared(common_dir: &Path, name: &str, hash: hash::Kind) -> Result<Option<ObjectId>, Error> {
    let path = common_dir.join(name);
    match fs::read(&path) {
        Ok(content) => match parse(&content, hash) {
            Some(Target::Object(id)) => Ok(Some(id)),
            Some(Target::Symbolic(_)) => Err(Error::damaged(common_dir, format!("{name} is a symbolic ref"))),
            None => Err(unexpected(common_dir, name)),
        },
        Err(cause) if is_absent(&cause) => read_packed(common_dir, name, hash),
        Err(cause) => Err(Error::io("read", &path)(cause)),
    }
}

fn is_absent(cause: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(cause.kind(), NotFound | NotADirectory | IsADirectory)
}

fn read_packed(common_dir: &Path, name: &str, hash: hash::Kind) -> Result<Option<ObjectId>, Error> {
    let mut found = None;
    for_each_packed(common_dir, |id, packed| {
        if packed == name.as_bytes() {
            found = Some(parse_id(id, hash).ok_or_else(|| unexpected(common_dir, name))?);
        }
        Ok(found.is_some())
    })?;
    Ok(found)
}

/// Calls `visit` with id and name of each packed ref until it returns true.
fn for_each_packed(common_dir: &Path, mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool, Error>) -> Result<(), Error> {
    let path = common_dir.join("packed-refs");
    let mut reader = match File::open(&path) {
        Ok(file) => BufReader::new(file),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(Error::io("read", &path)(cause)),
    };
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(Error::io("read", &path))? > 0 {
        let text = line.trim_ascii_end();
        if let Some(space) = text.iter().position(|byte| *byte == b' ')
            && visit(&text[..space], &text[space + 1..])?
        {
            break;
        }
        line.clear();
    }
    Ok(())
}

fn parse(content: &[u8], hash: hash::Kind) -> Option<Target> {
    let content = content.trim_ascii();
    match content.strip_prefix(b"ref:") {
        Some(name) => Some(Target::Symbolic(String::from_utf8(name.trim_ascii().to_vec()).ok()?)),
        None => parse_id(content, hash).map(Target::Object),
    }
}

pub(super) fn parse_id(hex: &[u8], hash: hash::Kind) -> Option<ObjectId> {
    ObjectId::from_hex(hex.trim_ascii()).ok().filter(|id| id.kind() == hash)
}

fn unexpected(path: &Path, name: &str) -> Error {
    Error::damaged(path, format!("{name} does not hold an object id"))
}

/// Writes the new value under a name that git ignores.
fn write_draft(draft: &Path, new: ObjectId, sharing: Sharing) -> Result<(), Error> {
    // Never overwritten: a dead writer's draft may still be linked as its lock, or as the ref itself.
    disk::remove(draft).map_err(Error::io("remove", draft))?;
    let mut file = disk::create_new(draft).map_err(Error::io("create", draft))?;
    disk::write(&mut file, draft, format!("{new}\n").as_bytes()).map_err(Error::io("write", draft))?;
    disk::start_writing(&file);
    sharing.open_file(draft).map_err(Error::io("share", draft))
}

/// Creates the ref's folder and removes an empty folder that has the ref's name. Where the file system keeps the order,
/// the folder becomes durable with the ref.
fn make_folder(common_dir: &Path, path: &Path, sharing: Sharing, keeps_order: bool) -> Result<PathBuf, Error> {
    let folder = path.parent().unwrap_or(common_dir).to_owned();
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.is_dir()).collect();
    for missing in missing.into_iter().rev() {
        disk::make_folder(missing, sharing).map_err(Error::io("create", missing))?;
        if !keeps_order {
            missing.parent().map_or(Ok(()), disk::flush_folder)?;
        }
    }
    if path.is_dir() {
        fs::remove_dir(path).map_err(Error::io("replace", path))?;
    }
    Ok(folder)
}
