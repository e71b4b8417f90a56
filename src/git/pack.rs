//! Our packs: everything squad writes enters the object database as a pack.
//!
//! `git gc --prune=now` removes everything that was unreferenced when it started, however new: loose objects, and packs
//! that it listed before their ref moved. It only spares packs with a `.keep` file. So a pack is written in this order:
//! `pack-X.keep`, `pack-X.pack`, `pack-X.idx`, all flushed; then its writer moves the ref, waits until that is durable,
//! and removes the `.keep`. The writer holds a kernel lock on the `.keep`: an unlocked one was left by a dead writer.
//!
//! An index gets its final name only when it is complete; until then git does not see the pack. Our names never look
//! like git's own temporary files, which `git prune` removes.

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

/// The prefix of our packs' names: `squad` as hexadecimal ASCII. git accepts any name of the right length.
const PREFIX: &str = "pack-7371756164";

/// The start of our `.keep` files.
const KEEP_TEXT: &str = "squad";

/// The extension of an index that may be incomplete.
const UNFINISHED: &str = "idx.unfinished";

/// A repository's pack folder.
#[derive(Clone, Debug)]
pub(super) struct PackFolder {
    folder: PathBuf,
    common_dir: PathBuf,
    hash: hash::Kind,
    sharing: Sharing,
}

/// The kind of one of our packs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Content {
    /// Whole objects from one writer.
    Written,
    /// Whole objects from several packs.
    Folded,
    /// Made by git; may contain deltas.
    Deltas,
}

impl Content {
    /// Each kind with its digit in a pack's name.
    const ALL: [(Self, char); 3] = [(Self::Written, '0'), (Self::Folded, '1'), (Self::Deltas, '2')];
}

impl PackFolder {
    pub(super) fn new(common_dir: &Path, hash: hash::Kind, sharing: Sharing) -> Self {
        Self { folder: common_dir.join("objects").join("pack"), common_dir: common_dir.to_owned(), hash, sharing }
    }

    /// Writes the objects as one pack, which git keeps until the result is published and dropped.
    pub(super) fn stage(&self, objects: &NewObjects) -> Result<NewPack<'_>, Error> {
        let encoded = self.encode(objects).map_err(Error::io("write to", &self.folder))?;
        let keep = KeepFile::create(self, Content::Written)?;
        self.write(keep.name.clone(), Some(keep), &encoded)
    }

    /// A copy of a pack that git made elsewhere, durably; kept like those of [`Self::add`].
    pub(super) fn copy_of(&self, index: &Path) -> Result<KeptPack, Error> {
        let read = |path: PathBuf| std::fs::read(&path).map_err(Error::io("read", &path));
        let encoded = Encoded { pack: read(index.with_extension("pack"))?, index: read(index.to_owned())? };
        let keep = KeepFile::create(self, Content::Deltas)?;
        self.write(keep.name.clone(), Some(keep), &encoded)?.publish()
    }

    /// Writes the objects, durably. git keeps them until the result is dropped: do that once the ref that references
    /// them has durably moved.
    pub(super) fn add(&self, objects: &NewObjects) -> Result<KeptPack, Error> {
        self.stage(objects)?.publish()
    }

    fn encode(&self, objects: &NewObjects) -> io::Result<Encoded> {
        let mut encoder = Encoder::new(self.hash);
        objects.as_slice().iter().try_for_each(|object| encoder.add(object))?;
        encoder.finish()
    }

    fn write(&self, name: String, keep: Option<KeepFile>, encoded: &Encoded) -> Result<NewPack<'_>, Error> {
        let mut new = NewPack { packs: self, name, files: Vec::new(), keep, is_published: false };
        new.file("pack", &encoded.pack)?;
        new.file(UNFINISHED, &encoded.index)?;
        Ok(new)
    }

    fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{name}.{kind}"))
    }

    /// A unique name for a new pack.
    fn name(&self, content: Content) -> String {
        let id = crate::env::unique_id().simple().to_string();
        let digit = Content::ALL.iter().find(|(other, _)| *other == content).map_or('0', |(_, digit)| *digit);
        let length = "pack-".len() + self.hash.len_in_hex();
        // Skip the first digits of the time, which stay the same for decades.
        format!("{:0<length$}", format!("{PREFIX}{digit}{}", &id[3..]))
    }

    /// The kind of a pack, from its name; `None`: the pack is not ours.
    fn content_of(&self, name: &str) -> Option<Content> {
        let rest = name.strip_prefix(PREFIX).filter(|_| name.len() == "pack-".len() + self.hash.len_in_hex())?;
        Content::ALL.iter().find(|(_, digit)| rest.starts_with(*digit)).map(|(content, _)| *content)
    }

    /// The index first: without it, git does not see the rest.
    fn remove(&self, name: &str) -> io::Result<()> {
        ["idx", UNFINISHED, "pack"].iter().try_for_each(|kind| disk::remove(&self.file(name, kind)))
    }

    fn keeps_order(&self) -> bool {
        disk::keeps_order(&self.folder, &self.common_dir)
    }
}

/// Our locked `.keep` file; dropping it deletes the file.
struct KeepFile {
    name: String,
    path: PathBuf,
    /// Holds the lock, and is closed after the file is deleted.
    file: File,
}

impl KeepFile {
    fn create(packs: &PackFolder, content: Content) -> Result<Self, Error> {
        let failed = |cause| Error::io("write to", &packs.folder)(cause);
        for _ in 0..64 {
            let name = packs.name(content);
            let path = packs.file(&name, "keep");
            let mut file = match disk::create_read_only(&path) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                    disk::make_folder(&packs.folder, packs.sharing).map_err(failed)?;
                    packs.folder.parent().map_or(Ok(()), disk::flush_folder)?;
                    continue;
                }
                answer => answer.map_err(failed)?,
            };
            let written = disk::write(&mut file, &path, format!("{KEEP_TEXT} {}\n", std::process::id()).as_bytes());
            let is_locked = file.try_lock().is_ok();
            let keep = Self { name, path, file };
            written.and_then(|()| packs.sharing.open_object(&keep.path)).map_err(failed)?;
            // Before we locked it, another process may have removed it as stale.
            if is_locked && keep.path.exists() {
                return Ok(keep);
            }
        }
        Err(failed(io::ErrorKind::WouldBlock.into()))
    }
}

impl Drop for KeepFile {
    fn drop(&mut self) {
        // If this fails, the file is later removed as stale.
        let _ = disk::remove(&self.path);
    }
}

/// A pack being written; dropping it before it is published deletes it.
pub(super) struct NewPack<'a> {
    packs: &'a PackFolder,
    name: String,
    files: Vec<(File, PathBuf)>,
    keep: Option<KeepFile>,
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

    /// Gives the index its final name. If the file system keeps the order, no later rename is durable before this one;
    /// otherwise this one is durable on return.
    pub(super) fn publish(mut self) -> Result<KeptPack, Error> {
        let keeps_order = self.packs.keeps_order();
        for (file, path) in &self.files {
            disk::reach_disk(file, path, keeps_order).map_err(Error::io("flush", path))?;
        }
        let [unfinished, index] = [UNFINISHED, "idx"].map(|kind| self.packs.file(&self.name, kind));
        // Close it, since Windows does not rename open files.
        self.files.clear();
        disk::rename(&unfinished, &index).map_err(Error::io("write", &index))?;
        self.is_published = true;
        let kept = KeptPack { packs: self.packs.clone(), name: self.name.clone(), keep: self.keep.take() };
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
            // If this fails, the next tidy-up does it. The `.keep` is removed after this.
            let _ = self.packs.remove(&self.name);
        }
    }
}

/// A pack that git keeps until this is dropped.
#[must_use = "dropped before the ref has moved, the pack may go"]
pub(super) struct KeptPack {
    packs: PackFolder,
    name: String,
    keep: Option<KeepFile>,
}

impl KeptPack {
    /// A handle to the `.keep` file; whoever has it open holds the lock.
    pub(super) fn handle(&self) -> Option<File> {
        self.keep.as_ref()?.file.try_clone().ok()
    }

    /// Deletes a pack that nothing references.
    pub(super) fn discard(self) {
        // The `.keep` is deleted last, when `self` is dropped.
        let _ = self.packs.remove(&self.name);
    }
}
