//! Reading objects, in spite of gc and folds that move them meanwhile.

use std::{
    cell::{Cell, RefCell},
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use gix::{
    ObjectId, hash, objs,
    objs::{Find, FindHeader, Tree},
    odb::pack::cache::lru::MemoryCappedHashmap,
};

use super::{error::Error, recent::RecentObjects, references::parse_id, second_copy::Copies};

/// Bytes of pack objects to cache: the next object may be a delta against one of them.
const PACK_CACHE_SIZE: usize = 2 << 20;

/// Size limit for ledger objects, in bytes.
const MAX_OBJECT_SIZE: u64 = 64 << 20;

/// Milliseconds to wait before reopening the object database and retrying a lookup that failed. The object may exist
/// all the same: in a pack that a fold added after the database was opened, when gix has no slot left after 32 others;
/// or gix sees a loose object, gc packs it and removes the file, and gix does not look elsewhere (gix-odb 0.87,
/// `try_find`).
const RETRY_DELAYS: [u64; 8] = [0, 0, 1, 2, 4, 8, 16, 32];

/// A folder that changed so recently may change again without a different time. File systems keep times to the second
/// at the coarsest.
const RACY: Duration = Duration::from_secs(2);

/// The current object database. Reopened when an object is not found.
pub(super) struct ObjectStore {
    directory: PathBuf,
    hash: hash::Kind,
    recent: RecentObjects,
    /// Opened on the first lookup that is not cached in `recent`.
    handle: RefCell<Option<gix::odb::Handle>>,
    buffer: RefCell<Vec<u8>>,
    /// A lookup failed after all retries: later ones retry once, without waiting, if there may be other packs since.
    has_failed_lookup: Cell<bool>,
    /// When the folder of packs had last changed before the database was opened.
    packs_as_of: Cell<Option<SystemTime>>,
    /// Opened when an object is broken.
    copies: RefCell<Option<Copies>>,
    /// Size limit in bytes for objects that are read; `None`: no limit.
    size_limit: Option<u64>,
}

/// For what gix builds from trees.
impl Find for ObjectStore {
    fn try_find<'b>(
        &self,
        id: &gix::oid,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<objs::Data<'b>>, gix::error::Error> {
        *buffer = self.bytes(id, objs::Kind::Tree).map_err(gix::error::Error::from_error)?;
        Ok(Some(objs::Data { kind: objs::Kind::Tree, object_hash: self.hash, data: buffer }))
    }
}

impl ObjectStore {
    pub(super) fn new(directory: &Path, hash: hash::Kind, recent: RecentObjects) -> Self {
        Self {
            directory: directory.to_owned(),
            hash,
            recent,
            handle: RefCell::default(),
            buffer: RefCell::default(),
            has_failed_lookup: Cell::default(),
            packs_as_of: Cell::default(),
            copies: RefCell::default(),
            size_limit: None,
        }
    }

    /// Adds a size limit, for reading untrusted objects: a few compressed bytes can inflate to any size.
    pub(super) fn with_size_limit(self) -> Self {
        Self { size_limit: Some(MAX_OBJECT_SIZE), ..self }
    }

    /// When the folder of packs last changed.
    fn packs_changed_at(&self) -> Option<SystemTime> {
        fs::metadata(self.directory.join("pack")).and_then(|facts| facts.modified()).ok()
    }

    /// Whether there may be other packs than when the database was opened.
    fn may_have_other_packs(&self) -> bool {
        let changed_at = self.packs_changed_at();
        let is_recent = |at: SystemTime| at.elapsed().map_or(true, |age| age < RACY);
        changed_at != self.packs_as_of.get() || changed_at.is_none_or(is_recent)
    }

    fn open_for_lookups(&self) -> Result<gix::odb::Handle, Error> {
        self.packs_as_of.set(self.packs_changed_at());
        self.open()
    }

    pub(super) fn open(&self) -> Result<gix::odb::Handle, Error> {
        let mut handle = gix::odb::at(&self.directory, self.hash).map_err(Error::io("open", &self.directory))?;
        // Pack entries are deltas in chains of up to 50.
        handle.set_pack_cache(|| Box::new(MemoryCappedHashmap::new(PACK_CACHE_SIZE)));
        Ok(handle)
    }

    pub(super) fn hash(&self) -> hash::Kind {
        self.hash
    }

    /// Passes the bytes of an object of this kind to `read`.
    fn with<T>(
        &self,
        id: &gix::oid,
        kind: objs::Kind,
        read: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, Error> {
        let damaged = |what: String| Error::Object { path: self.directory.clone(), what };
        let read = |found: objs::Kind, bytes: &[u8]| match found == kind {
            true => read(bytes).map_err(|cause| damaged(format!("{kind} {id}: {cause}"))),
            false => Err(damaged(format!("{id} is a {found}, not a {kind}"))),
        };
        if let Some((found, bytes)) = self.recent.find(id) {
            return read(found, &bytes);
        }
        let (mut buffer, mut handle) = (self.buffer.borrow_mut(), self.handle.borrow_mut());
        // All packs from the time of opening may have been folded.
        let has_failed = self.has_failed_lookup.get();
        let attempts = if has_failed { 1 } else { RETRY_DELAYS.len() };
        let mut pauses = RETRY_DELAYS[..attempts].iter();
        loop {
            let opened = match handle.take() {
                Some(opened) => opened,
                None => self.open_for_lookups()?,
            };
            let opened = handle.insert(opened);
            if let Some(size_limit) = self.size_limit
                && let Ok(Some(header)) = opened.try_header(id)
                && header.size > size_limit
            {
                return Err(damaged(format!(
                    "{kind} {id} has {} bytes, and squad reads up to {size_limit}",
                    header.size
                )));
            }
            let (what, is_broken) = match opened.try_find(id, &mut buffer) {
                Ok(Some(object)) => return read(object.kind, object.data),
                Ok(None) => (format!("{kind} {id} is missing"), false),
                Err(cause) => (format!("{kind} {id}: {cause}"), true),
            };
            let may_have_other_packs = !has_failed || self.may_have_other_packs();
            if let Some(pause) = pauses.next().filter(|_| may_have_other_packs) {
                thread::sleep(Duration::from_millis(*pause));
                *handle = None;
                continue;
            }
            let mut copies = self.copies.borrow_mut();
            if may_have_other_packs {
                *copies = None;
            }
            if is_broken {
                let copies = copies.get_or_insert_with(|| Copies::open(&self.directory, self.hash));
                if let Some((found, bytes)) = copies.find(self.hash, id) {
                    return read(found, &bytes);
                }
            }
            self.check_access(id, may_have_other_packs)?;
            self.has_failed_lookup.set(true);
            return Err(damaged(what));
        }
    }

    /// Fails on missing read permission, so that such an object is not taken for lost. `with_packs`: no earlier lookup
    /// has checked that these packs can be opened.
    fn check_access(&self, id: &gix::oid, with_packs: bool) -> Result<(), Error> {
        let mut packs: Vec<PathBuf> = Vec::new();
        if with_packs {
            let folder = self.directory.join("pack");
            let files = fs::read_dir(&folder).map(|packs| packs.flatten().map(|file| file.path()).collect());
            packs = files.or_else(only_permission_denied).map_err(Error::io("read", folder))?;
        }
        let hex = id.to_string();
        let loose = [self.directory.join(&hex[..2]), self.directory.join(&hex[..2]).join(&hex[2..])];
        for path in loose.into_iter().chain(packs) {
            fs::File::open(&path).map(drop).or_else(only_permission_denied).map_err(Error::io("read", path))?;
        }
        Ok(())
    }

    /// The error for a ledger whose tip cannot be read.
    pub(super) fn no_ledger(&self) -> Error {
        let what = "the ledger's newest commit is missing, or cannot be read".to_owned();
        Error::Object { path: self.directory.clone(), what }
    }

    /// The size of an object, without reading it; `None` if unknown.
    pub(super) fn size(&self, id: &gix::oid) -> Option<u64> {
        let mut handle = self.handle.borrow_mut();
        let opened = match handle.take() {
            Some(opened) => opened,
            None => self.open_for_lookups().ok()?,
        };
        Some(handle.insert(opened).try_header(id).ok()??.size)
    }

    pub(super) fn bytes(&self, id: &gix::oid, kind: objs::Kind) -> Result<Vec<u8>, Error> {
        if kind == objs::Kind::Tree && id == self.hash.empty_tree() {
            return Ok(Vec::new());
        }
        self.with(id, kind, |bytes| Ok(bytes.to_vec()))
    }

    pub(super) fn blob(&self, id: &gix::oid) -> Result<Vec<u8>, Error> {
        self.bytes(id, objs::Kind::Blob)
    }

    pub(super) fn tree(&self, id: &gix::oid) -> Result<Tree, Error> {
        if id == self.hash.empty_tree() {
            return Ok(Tree { entries: Vec::new() });
        }
        self.with(id, objs::Kind::Tree, |bytes| {
            let tree = objs::TreeRef::from_bytes(bytes, self.hash).map_err(|cause| cause.to_string())?;
            Ok(tree.into_owned())
        })
    }

    pub(super) fn parse_id(&self, hex: &str) -> Result<ObjectId, Error> {
        parse_id(hex.as_bytes(), self.hash)
            .ok_or_else(|| Error::damaged(&self.directory, format!("{hex:?} is not an object id")))
    }

    pub(super) fn tree_of(&self, commit: &gix::oid) -> Result<ObjectId, Error> {
        self.with(commit, objs::Kind::Commit, |bytes| {
            objs::CommitRefIter::from_bytes(bytes, self.hash).tree_id().map_err(|cause| cause.to_string())
        })
    }

    /// A commit's tree, its parents and its message.
    pub(super) fn commit(&self, commit: &gix::oid) -> Result<(ObjectId, Vec<ObjectId>, String), Error> {
        self.with(commit, objs::Kind::Commit, |bytes| {
            let found = objs::CommitRef::from_bytes(bytes, self.hash).map_err(|cause| cause.to_string())?;
            Ok((found.tree(), found.parents().collect(), found.message.to_string()))
        })
    }

    /// A commit's committer time, in seconds since 1970.
    pub(super) fn time_of(&self, commit: &gix::oid) -> Result<i64, Error> {
        self.with(commit, objs::Kind::Commit, |bytes| {
            let header = bytes.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"committer "));
            // `Name <email> seconds zone`
            let seconds = header.and_then(|line| line.rsplit(|byte| *byte == b' ').nth(1));
            let seconds = seconds.and_then(|seconds| std::str::from_utf8(seconds).ok()?.parse().ok());
            seconds.ok_or_else(|| "no time".to_owned())
        })
    }
}

/// Ignores every error but missing permission.
fn only_permission_denied<T: Default>(cause: io::Error) -> io::Result<T> {
    if cause.kind() == io::ErrorKind::PermissionDenied { Err(cause) } else { Ok(T::default()) }
}
