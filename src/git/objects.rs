//! Objects that are not written yet, and the permissions they get.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use gix::{ObjectId, hash, objs};

use super::error::Error;

/// Objects that are computed but not written yet, each after the objects it refers to.
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

    pub(super) fn extend(&mut self, others: Self) {
        let known = &mut self.known;
        self.objects.extend(others.objects.into_iter().filter(|object| known.insert(object.id)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(super) fn as_slice(&self) -> &[NewObject] {
        &self.objects
    }
}

/// The id that git gives to an object.
pub(super) fn identify(hash: hash::Kind, kind: objs::Kind, bytes: &[u8]) -> Result<ObjectId, Error> {
    // Hashing fails only on crafted collisions, which our content cannot be.
    objs::compute_hash(hash, kind, bytes)
        .map_err(|cause| Error::Damaged { path: PathBuf::from("a new object"), what: cause.to_string() })
}

/// The id that git gives to a text in a SHA-1 repository, whatever hash this one uses.
pub(crate) fn sha1_of_blob(bytes: &[u8]) -> Option<String> {
    identify(hash::Kind::Sha1, objs::Kind::Blob, bytes).ok().map(|id| id.to_string())
}

/// Other users' access to the files we write: `core.sharedRepository`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Sharing {
    #[default]
    Umask,
    /// Permission bits added to everything, whatever the umask.
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

    /// Lets others write into a folder; new files inherit its group.
    pub(super) fn open_directory(self, path: &Path) -> io::Result<()> {
        self.open(path, |bits| bits | ((bits & 0o444) >> 2) | 0o2000)
    }

    pub(super) fn open_file(self, path: &Path) -> io::Result<()> {
        self.open(path, |bits| bits)
    }

    /// For a file that never changes.
    pub(super) fn open_object(self, path: &Path) -> io::Result<()> {
        self.open(path, |bits| bits & 0o444)
    }

    fn open(self, path: &Path, granted: fn(u32) -> u32) -> io::Result<()> {
        match self {
            Self::Umask => Ok(()),
            Self::Grant(bits) => grant(path, granted(bits)),
        }
    }
}

#[cfg(unix)]
fn grant(path: &Path, bits: u32) -> io::Result<()> {
    use std::{fs, os::unix::fs::PermissionsExt};

    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_mode(permissions.mode() | bits);
    fs::set_permissions(path, permissions)
}

#[cfg(not(unix))]
fn grant(_path: &Path, _bits: u32) -> io::Result<()> {
    Ok(())
}
