//! Appends that wait while another writer holds the ledger's lock, for the next holder to make with its own.
//!
//! Each leaves its files here and waits. Who has the lock next adds all of them in one commit, and once that is durable
//! gives each file its other name. That name alone is an acknowledgement: a writer that does not find it takes the
//! lock and appends for itself, which does no harm where it was done already. So nothing here is ever flushed, what is
//! torn or was left by the dead is harmless, and whatever is deleted here costs time only.

use std::{
    fs::{self, DirEntry},
    io::ErrorKind,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use gix::{hash, objs};

use super::{
    disk,
    error::Error,
    lock::{Attempt, Door, LedgerLock},
    objects::{Sharing, identify},
    tree::check_path,
};

/// Paths and contents.
pub(super) type Files = Vec<(String, Vec<u8>)>;

const WAITS: &str = "wait";
const DONE: &str = "done";

/// Larger appends are made by their own writers.
const HEAVY: usize = 256 << 10;

/// How many bytes of others one writer takes with it.
const LOAD: usize = 4 << 20;

/// How long one who waits sleeps between two looks: an append takes about a millisecond.
const SHORTEST: Duration = Duration::from_micros(200);
const LONGEST: Duration = Duration::from_millis(2);

/// What nobody came back for is removed after this time.
const STALE: Duration = Duration::from_secs(3600);

pub(super) struct Queue {
    folder: PathBuf,
    hash: hash::Kind,
    sharing: Sharing,
}

/// An append of ours that waits; dropped, it waits no more.
pub(super) struct Ticket {
    path: PathBuf,
}

/// An append of somebody who waits.
pub(super) struct Waiting {
    path: PathBuf,
    pub(super) files: Files,
}

impl Queue {
    pub(super) fn new(folder: PathBuf, hash: hash::Kind, sharing: Sharing) -> Self {
        Self { folder, hash, sharing }
    }

    /// None: it cannot wait here, for whatever reason, and is to wait for the lock itself.
    pub(super) fn join(&self, files: &[(String, Vec<u8>)]) -> Option<Ticket> {
        if files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > HEAVY {
            return None;
        }
        let texts: Option<Vec<_>> =
            files.iter().map(|(path, bytes)| Some((path, std::str::from_utf8(bytes).ok()?))).collect();
        let bytes = serde_json::to_vec(&texts?).ok()?;
        // By the name it is known whether all of the content is there.
        let id = identify(self.hash, objs::Kind::Blob, &bytes).ok()?;
        let name = format!("{id}-{}.{WAITS}", uuid::Uuid::now_v7().simple());
        let path = self.folder.join(name);
        let mut file = match disk::create_new(&path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                disk::make_folder(&self.folder, self.sharing).ok()?;
                disk::create_new(&path).ok()?
            }
            answer => answer.ok()?,
        };
        let ticket = Ticket { path };
        disk::write(&mut file, &ticket.path, &bytes).ok()?;
        self.sharing.open_file(&ticket.path).ok()?;
        Some(ticket)
    }

    /// Everybody who waits, but for those whose files cannot be added at all. For the holder of the lock.
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let mut found = Vec::new();
        let mut load = 0;
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_waiting = path.extension().is_some_and(|kind| kind == WAITS);
            match if is_waiting { self.read(&path) } else { None } {
                Some((files, size)) if load + size <= LOAD => {
                    load += size;
                    found.push(Waiting { path, files });
                }
                Some(_) => {}
                None => forget_stale(&entry),
            }
        }
        found
    }

    /// None: not everything of it is there, or no longer, or it is none of ours.
    fn read(&self, path: &Path) -> Option<(Files, usize)> {
        let bytes = fs::read(path).ok()?;
        let id = identify(self.hash, objs::Kind::Blob, &bytes).ok()?.to_string();
        let (named, _) = path.file_name()?.to_str()?.split_once('-')?;
        let texts: Vec<(String, String)> = serde_json::from_slice(&bytes).ok()?;
        let files: Files = texts.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
        let is_fit = id == named && files.iter().all(|(path, _)| check_path(path).is_ok());
        is_fit.then_some((files, bytes.len()))
    }
}

impl Ticket {
    /// Waits until somebody has made the append, durably (None), or until the lock is free and it is ours to make.
    ///
    /// It looks from time to time, and does not wait in line for the lock: a line that is overtaken by those who just
    /// come would have the one wait whose append was made long ago.
    pub(super) fn wait(self, mut door: Door) -> Result<Option<LedgerLock>, Error> {
        let mut pause = SHORTEST;
        loop {
            thread::sleep(pause);
            if self.is_done() {
                return Ok(None);
            }
            match door.try_lock()? {
                // Made just now, perhaps.
                Attempt::Held(lock) => return Ok(if self.is_done() { None } else { Some(lock) }),
                Attempt::Refused(still) => door = still,
            }
            pause = (pause * 5 / 4).min(LONGEST);
        }
    }

    fn is_done(&self) -> bool {
        let done = self.path.with_extension(DONE);
        done.exists() && disk::remove(&done).is_ok()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Where it was done, neither is there.
        let _ = disk::remove(&self.path);
        let _ = disk::remove(&self.path.with_extension(DONE));
    }
}

impl Waiting {
    /// Tells the one who waits; only after the commit and the ref are durable.
    pub(super) fn acknowledge(self) {
        // Who no longer waits, or is not told, loses nothing.
        let _ = disk::rename(&self.path, &self.path.with_extension(DONE));
    }
}

fn forget_stale(entry: &DirEntry) {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    if modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE)) {
        let _ = disk::remove(&entry.path());
    }
}
