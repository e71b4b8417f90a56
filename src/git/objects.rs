//! Writing objects so that they are still there after a power cut.
//!
//! gix never flushes what it writes, so the writer is our own: temporary files in the fan-out folders under the name
//! that `git gc` cleans up (`tmp_obj_*`), brought to the disk, renamed, and the folders flushed.

use std::{
    collections::{BTreeSet, HashSet},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use gix::{ObjectId, hash, objs};
use tempfile::{NamedTempFile, TempPath};

use super::{disk, error::Error};

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
    batch.publish(false)
}

/// Loose objects on their way: staged in temporary files, at the disk, published under their names.
///
/// The steps are apart so that the caller can put its own files between them: what is created before the bytes are
/// awaited shares the file system's journal commit with them, and those commits are what an append costs.
pub(super) struct Batch<'a> {
    directory: &'a Path,
    sharing: Sharing,
    staged: Vec<Staged>,
    /// Folders whose list of files changes.
    folders: BTreeSet<PathBuf>,
}

struct Staged {
    file: File,
    temporary: TempPath,
    path: PathBuf,
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
        let (mut file, temporary) = self.temporary_file(&folder)?.into_parts();
        let written = compress(object).and_then(|bytes| disk::write(&mut file, &temporary, &bytes));
        written.map_err(Error::io("write", &path))?;
        disk::start_writing(&file);
        self.staged.push(Staged { file, temporary, path });
        self.folders.insert(folder);
        Ok(())
    }

    /// gc removes fan-out folders that are empty, at any moment; so make it and try again.
    fn temporary_file(&mut self, folder: &Path) -> Result<NamedTempFile, Error> {
        for _ in 0..64 {
            match tempfile::Builder::new().prefix("tmp_obj_").make_in(folder, disk::create_read_only) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                    disk::make_folder(folder, self.sharing).map_err(Error::io("create", folder))?;
                }
                answer => return answer.map_err(Error::io("write to", folder)),
            }
        }
        Err(Error::io("write to", folder)(io::ErrorKind::NotFound.into()))
    }

    /// Gives the objects their names. `keeps_order`: the file system makes no later change durable before these, so
    /// they are durable as soon as a later change is. Otherwise they are durable when this returns.
    pub(super) fn publish(self, keeps_order: bool) -> Result<(), Error> {
        for Staged { file, temporary, path } in &self.staged {
            disk::reach_disk(file, temporary, keeps_order).map_err(Error::io("flush", path))?;
        }
        for Staged { file, temporary, path } in self.staged {
            drop(file);
            self.sharing.open_object(&temporary).map_err(Error::io("share", &path))?;
            match disk::rename(&temporary, &path) {
                // Windows does not replace a file that somebody reads; one of this name has these bytes.
                Err(_) if cfg!(windows) && path.exists() => {}
                Err(cause) => return Err(Error::io("write", &path)(cause)),
                // Nothing is left under the temporary name.
                Ok(()) => drop(temporary.keep()),
            }
        }
        if keeps_order {
            return Ok(());
        }
        self.folders.iter().try_for_each(|folder| disk::flush_folder(folder))?;
        // A folder that is new to it may have been made by a writer that died.
        disk::flush_folder(self.directory)
    }
}

/// What a disk hands out at once, nearly everywhere.
const BLOCK: usize = 4096;

/// As git reads a loose object. What takes one block of the disk in any case is not compressed: setting that up costs
/// more than the rest of an append that happens in this process, and git compresses anew what it packs. Anything else
/// is, at git's own level for loose objects: they live until the next gc, so speed counts.
fn compress(object: &NewObject) -> io::Result<Vec<u8>> {
    let header = objs::encode::loose_header(object.kind, object.bytes.len() as u64);
    if let Some(stored) = store(&[&header[..], &object.bytes].concat()) {
        return Ok(stored);
    }
    let mut writer = gix::zlib::stream::deflate::Write::new(Vec::new(), gix::zlib::Compression::BEST_SPEED);
    writer.write_all(&header)?;
    writer.write_all(&object.bytes)?;
    writer.flush()?;
    Ok(writer.into_inner())
}

/// A zlib stream (RFC 1950) of one stored block (RFC 1951, 3.2.4), if it fits into a block of the disk.
fn store(bytes: &[u8]) -> Option<Vec<u8>> {
    const AROUND: usize = 11;
    let length = u16::try_from(bytes.len()).ok().filter(|_| bytes.len() + AROUND <= BLOCK)?;
    // Deflate with a window of 32 KiB and no dictionary; the last block, and stored.
    let mut stream = vec![0x78, 0x01, 0x01];
    stream.extend(length.to_le_bytes());
    stream.extend((!length).to_le_bytes());
    stream.extend(bytes);
    // Adler-32: so few bytes cannot overflow the sums before they are reduced.
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = low + u32::from(*byte);
        (low, high + low)
    });
    stream.extend(((high % 65_521) << 16 | (low % 65_521)).to_be_bytes());
    Some(stream)
}
