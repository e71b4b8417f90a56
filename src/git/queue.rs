//! Appends that wait while another writer holds the ledger lock. The next holder writes them together with its own.
//!
//! Each waiting writer leaves its files here. The next lock holder adds all of them in one commit and, once the commit
//! is durable, renames each entry from `.wait` to `.done`. Only that name is an acknowledgement: a writer that does not
//! find it takes the lock and appends for itself, which is harmless if the append was already made. So nothing here is
//! ever flushed, torn or stale entries are harmless, and deleting an entry only costs time.

use std::{
    fs::{self, DirEntry},
    io::ErrorKind,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use gix::{hash, objs};

use super::{
    disk,
    error::Error,
    lock::{Attempt, LedgerLock, LockFile},
    objects::{Sharing, identify},
    path::check_path,
};
use crate::env::lock::{Holder, PATIENCE};

/// Paths and contents.
pub(super) type Files = Vec<(String, Vec<u8>)>;

const PENDING: &str = "wait";
const DONE: &str = "done";

/// A larger append is not queued; its writer waits for the lock.
const MAX_APPEND: usize = 256 << 10;

/// How many bytes of other writers one commit includes.
const MAX_BATCH: usize = 4 << 20;

/// Pause between two checks while waiting: an append takes about a millisecond.
const MIN_PAUSE: Duration = Duration::from_micros(200);
const MAX_PAUSE: Duration = Duration::from_millis(2);

/// Abandoned entries are removed after this time.
const STALE_AGE: Duration = Duration::from_secs(3600);

pub(super) struct Queue {
    folder: PathBuf,
    hash: hash::Kind,
    sharing: Sharing,
}

/// Our own queued append; dropping it removes it from the queue.
pub(super) struct QueueEntry {
    path: PathBuf,
}

/// A queued append of another writer.
pub(super) struct PendingAppend {
    path: PathBuf,
    pub(super) files: Files,
}

impl Queue {
    pub(super) fn new(folder: PathBuf, hash: hash::Kind, sharing: Sharing) -> Self {
        Self { folder, hash, sharing }
    }

    /// `None`: the append cannot be queued, for whatever reason; the caller waits for the lock instead.
    pub(super) fn enqueue(&self, files: &[(String, Vec<u8>)]) -> Option<QueueEntry> {
        if files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > MAX_APPEND {
            return None;
        }
        let texts: Option<Vec<_>> =
            files.iter().map(|(path, bytes)| Some((path, std::str::from_utf8(bytes).ok()?))).collect();
        let bytes = serde_json::to_vec(&texts?).ok()?;
        // The file name is its content hash, so a torn write is detected.
        let id = identify(self.hash, objs::Kind::Blob, &bytes).ok()?;
        let name = format!("{id}-{}.{PENDING}", crate::env::unique_id().simple());
        let path = self.folder.join(name);
        let mut file = match disk::create_new(&path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                disk::make_folder(&self.folder, self.sharing).ok()?;
                disk::create_new(&path).ok()?
            }
            answer => answer.ok()?,
        };
        let entry = QueueEntry { path };
        disk::write(&mut file, &entry.path, &bytes).ok()?;
        self.sharing.open_file(&entry.path).ok()?;
        Some(entry)
    }

    /// All queued appends except those whose files can never be added. For the lock holder.
    pub(super) fn pending(&self) -> Vec<PendingAppend> {
        let mut found = Vec::new();
        let mut total = 0;
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_pending = path.extension().is_some_and(|kind| kind == PENDING);
            match if is_pending { self.read(&path) } else { None } {
                Some((files, size)) if total + size <= MAX_BATCH => {
                    total += size;
                    found.push(PendingAppend { path, files });
                }
                Some(_) => {}
                None => remove_stale(&entry),
            }
        }
        found
    }

    /// `None`: the entry is incomplete, gone, or not ours.
    fn read(&self, path: &Path) -> Option<(Files, usize)> {
        let bytes = fs::read(path).ok()?;
        let id = identify(self.hash, objs::Kind::Blob, &bytes).ok()?.to_string();
        let (expected, _) = path.file_name()?.to_str()?.split_once('-')?;
        let texts: Vec<(String, String)> = serde_json::from_slice(&bytes).ok()?;
        let files: Files = texts.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
        let is_valid = id == expected && files.iter().all(|(path, _)| check_path(path).is_ok());
        is_valid.then_some((files, bytes.len()))
    }
}

impl QueueEntry {
    /// Waits until another writer has made the append durable (`None`), or until we get the lock and make it ourselves.
    /// `tell` says who holds the lock, when that takes long.
    ///
    /// It polls instead of blocking on the lock: newcomers can overtake blocked waiters, so a waiter could stay blocked
    /// long after its append was made.
    pub(super) fn wait(self, mut lock_file: LockFile, tell: &dyn Fn(&Holder)) -> Result<Option<LedgerLock>, Error> {
        let mut pause = MIN_PAUSE;
        let mut silent = Some(Instant::now());
        loop {
            thread::sleep(pause);
            if silent.take_if(|start| start.elapsed() >= PATIENCE).is_some() {
                tell(&lock_file.holder());
            }
            if self.is_done() {
                return Ok(None);
            }
            match lock_file.try_lock()? {
                // The append may have been made just now.
                Attempt::Locked(lock) => return Ok(if self.is_done() { None } else { Some(lock) }),
                Attempt::Busy(lock) => lock_file = lock,
            }
            pause = (pause * 5 / 4).min(MAX_PAUSE);
        }
    }

    fn is_done(&self) -> bool {
        let done = self.path.with_extension(DONE);
        done.exists() && disk::remove(&done).is_ok()
    }
}

impl Drop for QueueEntry {
    fn drop(&mut self) {
        // After an acknowledged append, neither file exists.
        let _ = disk::remove(&self.path);
        let _ = disk::remove(&self.path.with_extension(DONE));
    }
}

impl PendingAppend {
    /// Tells the waiting writer; call it only once the commit and the ref are durable.
    pub(super) fn acknowledge(self) {
        // On failure, or if the writer is gone, nothing is lost.
        let _ = disk::rename(&self.path, &self.path.with_extension(DONE));
    }
}

fn remove_stale(entry: &DirEntry) {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    if modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE_AGE)) {
        let _ = disk::remove(&entry.path());
    }
}
