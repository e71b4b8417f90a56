//! Writing objects so that they are still there after a power cut.
//!
//! gix never flushes what it writes, so the writer is our own: temporary files in the fan-out folders under the name
//! that `git gc` cleans up (`tmp_obj_*`), flushed, renamed, and the folders flushed.

use std::{
    collections::{BTreeSet, HashSet},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use gix::{ObjectId, hash, objs};
use tempfile::NamedTempFile;

use super::error::Error;

/// Objects that are computed and not written yet, in the order in which they refer to each other.
pub(super) struct NewObjects {
    hash: hash::Kind,
    objects: Vec<NewObject>,
    known: HashSet<ObjectId>,
}

pub(super) struct NewObject {
    pub(super) id: ObjectId,
    pub(super) kind: objs::Kind,
    pub(super) bytes: Vec<u8>,
}

impl NewObjects {
    pub(super) fn new(hash: hash::Kind) -> Self {
        Self { hash, objects: Vec::new(), known: HashSet::new() }
    }

    pub(super) fn add(&mut self, kind: objs::Kind, bytes: Vec<u8>) -> Result<ObjectId, Error> {
        let id = identify(self.hash, kind, &bytes)?;
        if self.known.insert(id) {
            self.objects.push(NewObject { id, kind, bytes });
        }
        Ok(id)
    }

    pub(super) fn as_slice(&self) -> &[NewObject] {
        &self.objects
    }
}

/// The id that git gives to an object.
pub(super) fn identify(hash: hash::Kind, kind: objs::Kind, bytes: &[u8]) -> Result<ObjectId, Error> {
    // Hashing fails only on bytes made to collide, which nothing of ours can be.
    objs::compute_hash(hash, kind, bytes)
        .map_err(|cause| Error::Damaged { path: PathBuf::from("a new object"), what: cause.to_string() })
}

/// How other users may use what we write: `core.sharedRepository`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Sharing {
    #[default]
    Umask,
    /// Permission bits that everything gets in addition, whatever the umask says.
    Grant(u32),
}

impl Sharing {
    pub(super) fn from_setting(setting: Option<&str>) -> Self {
        match setting.map(str::to_ascii_lowercase).as_deref() {
            Some("group" | "true" | "1" | "yes" | "on") => Self::Grant(0o660),
            Some("all" | "world" | "everybody" | "2") => Self::Grant(0o664),
            Some(octal) if octal.starts_with('0') && octal.len() > 1 => {
                u32::from_str_radix(octal, 8).map_or(Self::Umask, |mode| Self::Grant(mode & 0o666))
            }
            _ => Self::Umask,
        }
    }

    /// A folder that others may write into, its group handed down.
    pub(super) fn open_directory(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Umask => Ok(()),
            Self::Grant(bits) => grant(path, bits | ((bits & 0o444) >> 2) | 0o2000),
        }
    }

    pub(super) fn open_file(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Umask => Ok(()),
            Self::Grant(bits) => grant(path, bits),
        }
    }

    fn open_object(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Umask => Ok(()),
            Self::Grant(bits) => grant(path, bits & 0o444),
        }
    }
}

#[cfg(unix)]
fn grant(path: &Path, bits: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_mode(permissions.mode() | bits);
    fs::set_permissions(path, permissions)
}

#[cfg(not(unix))]
fn grant(_path: &Path, _bits: u32) -> io::Result<()> {
    Ok(())
}

/// Writes every object as a loose one; all of them are durable when it returns Ok.
///
/// Stopped halfway it leaves objects that nothing refers to, or temporary files; gc removes both.
pub(super) fn write_loose(directory: &Path, sharing: Sharing, objects: &[NewObject]) -> Result<(), Error> {
    let batch = Batch::stage(directory, sharing, objects)?;
    batch.flush()?;
    let Some(last) = batch.folders.last().cloned() else { return Ok(()) };
    batch.publish(&last)?;
    sync_directory(&last)
}

/// Loose objects on their way: staged in temporary files, flushed, published under their names.
///
/// The steps are apart so that the caller can put its own files between them: what is created before the flush
/// shares the file system's journal commit with it, and those commits are what an append costs.
pub(super) struct Batch<'a> {
    directory: &'a Path,
    sharing: Sharing,
    staged: Vec<(NamedTempFile, PathBuf)>,
    /// Folders whose list of files changes.
    folders: BTreeSet<PathBuf>,
}

impl<'a> Batch<'a> {
    pub(super) fn stage(directory: &'a Path, sharing: Sharing, objects: &[NewObject]) -> Result<Self, Error> {
        let mut batch = Self { directory, sharing, staged: Vec::new(), folders: BTreeSet::new() };
        objects.iter().try_for_each(|object| batch.add(object))?;
        Ok(batch)
    }

    /// An object that exists is written again: the file that is there may be unflushed, due for pruning, or what a
    /// power cut left of somebody else's.
    fn add(&mut self, object: &NewObject) -> Result<(), Error> {
        let hex = object.id.to_hex().to_string();
        let (fan_out, name) = hex.split_at(2);
        let folder = self.directory.join(fan_out);
        let path = folder.join(name);
        let file = self.temporary_file(&folder)?;
        let file = compress(object, file).map_err(Error::io("write", &path))?;
        start_writing_back(file.as_file());
        self.staged.push((file, path));
        self.folders.insert(folder);
        Ok(())
    }

    /// gc removes fan-out folders that are empty, at any moment; so make it and try again.
    fn temporary_file(&mut self, folder: &Path) -> Result<NamedTempFile, Error> {
        for _ in 0..64 {
            match object_file(folder) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => self.make(folder)?,
                answer => return answer.map_err(Error::io("write to", folder)),
            }
        }
        Err(Error::io("write to", folder)(io::ErrorKind::NotFound.into()))
    }

    fn make(&mut self, folder: &Path) -> Result<(), Error> {
        match fs::create_dir(folder) {
            Ok(()) => self.sharing.open_directory(folder).map_err(Error::io("share", folder))?,
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(Error::io("create", folder)(cause)),
        }
        self.folders.insert(self.directory.to_owned());
        Ok(())
    }

    /// Afterwards the bytes of all objects are on disk, not yet under their names.
    pub(super) fn flush(&self) -> Result<(), Error> {
        for (file, path) in &self.staged {
            file.as_file().sync_data().map_err(Error::io("flush", path))?;
        }
        Ok(())
    }

    /// Gives the objects their names, so that no later rename in `next` can be durable before them: either they are
    /// durable when it returns, or the file system keeps the order and a flush in `next` makes them so.
    pub(super) fn publish(self, next: &Path) -> Result<(), Error> {
        for (file, path) in self.staged {
            self.sharing.open_object(file.path()).map_err(Error::io("share", &path))?;
            match file.persist(&path) {
                // Windows does not replace a file that somebody reads; one of this name has these bytes.
                Err(_) if cfg!(windows) && path.exists() => {}
                answer => drop(answer.map_err(|failure| Error::io("write", &path)(failure.error))?),
            }
        }
        if keeps_order(self.directory, next) {
            return Ok(());
        }
        self.folders.iter().try_for_each(|folder| sync_directory(folder))
    }
}

fn object_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o444));
    builder.prefix("tmp_obj_").tempfile_in(folder)
}

/// At git's own level for loose objects: they live until the next gc, so speed counts.
fn compress(object: &NewObject, file: NamedTempFile) -> io::Result<NamedTempFile> {
    let header = objs::encode::loose_header(object.kind, object.bytes.len() as u64);
    let mut writer = gix::zlib::stream::deflate::Write::new(file, gix::zlib::Compression::BEST_SPEED);
    writer.write_all(&header)?;
    writer.write_all(&object.bytes)?;
    writer.flush()?;
    Ok(writer.into_inner())
}

/// Lets the disk begin with all files of a batch before we wait for the first: the flushes after it then share one
/// commit of the file system's journal. Only a wish; it is the flush that counts.
#[cfg(target_os = "linux")]
pub(super) fn start_writing_back(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn start_writing_back(_file: &File) {}

/// Whether both folders share one journal, in which a rename is never durable before an earlier one: those of ext4
/// (and ext3) and XFS. Elsewhere each folder needs a flush of its own.
#[cfg(target_os = "linux")]
fn keeps_order(first: &Path, next: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    let is_journal =
        |path| rustix::fs::statfs(path).is_ok_and(|facts| matches!(u64::try_from(facts.f_type), Ok(EXT4 | XFS)));
    let device = |path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    is_journal(first) && device(first).is_some() && device(first) == device(next)
}

#[cfg(not(target_os = "linux"))]
fn keeps_order(_first: &Path, _next: &Path) -> bool {
    false
}

/// Makes renames inside a folder durable. A folder that gc removed meanwhile has nothing of ours in it.
pub(super) fn sync_directory(path: &Path) -> Result<(), Error> {
    if cfg!(windows) {
        return Ok(()); // folders cannot be opened there, and their changes need no flush of their own
    }
    match File::open(path).and_then(|folder| folder.sync_all()) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        answer => answer.map_err(Error::io("flush", path)),
    }
}
