//! Packs of ours: how everything that squad writes gets into the object database.
//!
//! `git gc --prune=now` removes what nothing led to when it began, however new: loose objects, and packs that it listed
//! before their ref moved. What it leaves alone is a pack with a `.keep` file. So a pack is written in this order:
//! `pack-X.keep`, `pack-X.pack`, `pack-X.idx`, all at the disk; then its writer moves the ref, waits until that is
//! durable, and removes the `.keep`. The writer holds a kernel lock on the `.keep`: one that nobody holds was left by
//! the dead.
//!
//! An index gets its name when it is whole, and before that git does not see the pack. No name is one that `git prune`
//! takes for a temporary file of its own and removes.

mod encode;
mod fold;
mod large;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use gix::hash;

use super::{
    disk,
    error::Error,
    objects::{NewObjects, Sharing},
};
use encode::{Encoded, Encoder};

/// How the names of our packs begin: `squad` in letters of 8 bits. git takes any name of the right length.
const OWN: &str = "pack-7371756164";

/// What a `.keep` of ours says.
const KEPT_BY: &str = "squad";

/// An index that is not whole, perhaps.
const UNFINISHED: &str = "idx.unfinished";

/// Where a repository has its packs.
#[derive(Clone, Debug)]
pub(super) struct PackFolder {
    folder: PathBuf,
    common_dir: PathBuf,
    hash: hash::Kind,
    sharing: Sharing,
}

/// What a pack of ours is made of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Content {
    /// Whole objects, of one writer.
    Written,
    /// Whole objects, of several packs.
    Folded,
    /// Made by git: an entry may be what it differs in from another.
    Deltas,
}

impl Content {
    /// With the digit that tells it in a name.
    const ALL: [(Self, char); 3] = [(Self::Written, '0'), (Self::Folded, '1'), (Self::Deltas, '2')];
}

impl PackFolder {
    pub(super) fn new(common_dir: &Path, hash: hash::Kind, sharing: Sharing) -> Self {
        Self { folder: common_dir.join("objects").join("pack"), common_dir: common_dir.to_owned(), hash, sharing }
    }

    /// Writes the objects as one pack, which git leaves alone until the answer is published and released.
    pub(super) fn stage(&self, objects: &NewObjects) -> Result<NewPack<'_>, Error> {
        let encoded = self.encode(objects).map_err(Error::io("write to", &self.folder))?;
        let keep = Keep::take(self)?;
        self.write(keep.name.clone(), Some(keep), &encoded)
    }

    /// Writes the objects, durably. git leaves them alone until the answer is dropped: to be done when the ref that
    /// leads to them has moved, durably.
    pub(super) fn add(&self, objects: &NewObjects) -> Result<Kept, Error> {
        self.stage(objects)?.publish()
    }

    fn encode(&self, objects: &NewObjects) -> io::Result<Encoded> {
        let mut encoder = Encoder::new(self.hash);
        objects.as_slice().iter().try_for_each(|object| encoder.add(object))?;
        encoder.finish()
    }

    fn write(&self, name: String, keep: Option<Keep>, encoded: &Encoded) -> Result<NewPack<'_>, Error> {
        let mut new = NewPack { packs: self, name, files: Vec::new(), keep, is_published: false };
        new.file("pack", &encoded.pack)?;
        new.file(UNFINISHED, &encoded.index)?;
        Ok(new)
    }

    fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{name}.{kind}"))
    }

    /// One that no pack ever had.
    fn name(&self, content: Content) -> String {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let digit = Content::ALL.iter().find(|(other, _)| *other == content).map_or('0', |(_, digit)| *digit);
        let length = "pack-".len() + self.hash.len_in_hex();
        // The first digits of the time are the same for decades.
        format!("{:0<length$}", format!("{OWN}{digit}{}", &id[3..]))
    }

    /// Whether a name is one that we gave to a pack.
    fn content_of(&self, name: &str) -> Option<Content> {
        let rest = name.strip_prefix(OWN).filter(|_| name.len() == "pack-".len() + self.hash.len_in_hex())?;
        Content::ALL.iter().find(|(_, digit)| rest.starts_with(*digit)).map(|(content, _)| *content)
    }

    /// The index first: without it, the rest is not there for git.
    fn remove(&self, name: &str) -> io::Result<()> {
        ["idx", UNFINISHED, "pack"].iter().try_for_each(|kind| disk::remove(&self.file(name, kind)))
    }

    fn keeps_order(&self) -> bool {
        disk::keeps_order(&self.folder, &self.common_dir)
    }
}

/// A `.keep` of ours, locked; dropped, it is gone.
struct Keep {
    name: String,
    path: PathBuf,
    /// Holds the lock, and is closed after the file is gone.
    file: File,
}

impl Keep {
    fn take(packs: &PackFolder) -> Result<Self, Error> {
        let failed = |cause| Error::io("write to", &packs.folder)(cause);
        for _ in 0..64 {
            let name = packs.name(Content::Written);
            let path = packs.file(&name, "keep");
            let mut file = match disk::create_read_only(&path) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                    disk::make_folder(&packs.folder, packs.sharing).map_err(failed)?;
                    packs.folder.parent().map_or(Ok(()), disk::flush_folder)?;
                    continue;
                }
                answer => answer.map_err(failed)?,
            };
            let written = disk::write(&mut file, &path, format!("{KEPT_BY} {}\n", std::process::id()).as_bytes());
            let is_locked = file.try_lock().is_ok();
            let keep = Self { name, path, file };
            written.and_then(|()| packs.sharing.open_object(&keep.path)).map_err(failed)?;
            // Before it was locked somebody may have taken it for one of the dead.
            if is_locked && keep.path.exists() {
                return Ok(keep);
            }
        }
        Err(failed(io::ErrorKind::WouldBlock.into()))
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        // One that stays is found to be of the dead.
        let _ = disk::remove(&self.path);
    }
}

/// A pack on its way; dropped, it is gone.
pub(super) struct NewPack<'a> {
    packs: &'a PackFolder,
    name: String,
    files: Vec<(File, PathBuf)>,
    keep: Option<Keep>,
    is_published: bool,
}

impl NewPack<'_> {
    fn file(&mut self, kind: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.packs.file(&self.name, kind);
        let mut file = disk::create_read_only(&path).map_err(Error::io("create", &path))?;
        let written = disk::write(&mut file, &path, bytes).and_then(|()| self.packs.sharing.open_object(&path));
        disk::start_writing(&file);
        self.files.push((file, path));
        written.map_err(|cause| Error::io("write", &self.packs.folder)(cause))
    }

    /// Gives the index its name. Where the file system keeps the order, no later change of names is durable before
    /// this one; elsewhere this is durable now.
    pub(super) fn publish(mut self) -> Result<Kept, Error> {
        let keeps_order = self.packs.keeps_order();
        for (file, path) in &self.files {
            disk::reach_disk(file, path, keeps_order).map_err(Error::io("flush", path))?;
        }
        let [unfinished, index] = [UNFINISHED, "idx"].map(|kind| self.packs.file(&self.name, kind));
        // Closed, or Windows would not rename it.
        self.files.clear();
        disk::rename(&unfinished, &index).map_err(Error::io("write", &index))?;
        self.is_published = true;
        let kept = Kept { packs: self.packs.clone(), name: self.name.clone(), keep: self.keep.take() };
        if !keeps_order {
            disk::flush_folder(&self.packs.folder)?;
        }
        #[cfg(test)]
        super::tests::beside_gc::linger();
        Ok(kept)
    }
}

impl Drop for NewPack<'_> {
    fn drop(&mut self) {
        self.files.clear();
        if !self.is_published {
            // Or the next one who tidies up does it. The `.keep` goes after this.
            let _ = self.packs.remove(&self.name);
        }
    }
}

/// A pack that git leaves alone until this is dropped.
#[must_use = "dropped before the ref has moved, the pack may go"]
pub(super) struct Kept {
    packs: PackFolder,
    name: String,
    keep: Option<Keep>,
}

impl Kept {
    /// Whoever has it open holds the lock.
    pub(super) fn handle(&self) -> Option<File> {
        self.keep.as_ref()?.file.try_clone().ok()
    }

    /// Nothing leads to it, and nothing will.
    pub(super) fn discard(self) {
        // The `.keep` goes last, with the rest of this.
        let _ = self.packs.remove(&self.name);
    }
}
