//! The lock around "read the tip, write, move the ref".

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek},
    path::{Path, PathBuf},
};

use gix::ObjectId;

use super::{disk, error::Error, objects::Sharing};
use crate::env::lock::{self, Holder};

/// The lock file, open but not locked by us.
pub(super) struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    pub(super) fn open(path: &Path, sharing: Sharing) -> Result<Self, Error> {
        let file = match open(path) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                if let Some(folder) = path.parent() {
                    // Only this folder: a repository that was deleted meanwhile must not come back as an empty one.
                    match fs::create_dir(folder) {
                        Err(cause) if cause.kind() != std::io::ErrorKind::AlreadyExists => {
                            return Err(Error::io("create", folder)(cause));
                        }
                        _ => {}
                    }
                    sharing.open_directory(folder).map_err(Error::io("share", folder))?;
                }
                open(path)
            }
            answer => answer,
        };
        let file = file.map_err(Error::io("open", path))?;
        // Fails if another user created the file; that user has already shared it.
        let _ = sharing.open_file(path);
        Ok(Self { file, path: path.to_owned() })
    }

    /// Takes the lock if it is free.
    pub(super) fn try_lock(self) -> Result<Attempt, Error> {
        match lock::try_take(&self.file).map_err(Error::io("lock", &self.path))? {
            true => Ok(Attempt::Locked(self.held())),
            false => Ok(Attempt::Busy(self)),
        }
    }

    /// Waits until no other process or thread holds the lock. `tell` says who does, when that takes long.
    pub(super) fn lock(self, tell: &(dyn Fn(&Holder) + Sync)) -> Result<LedgerLock, Error> {
        lock::wait(&self.file, tell).map_err(Error::io("lock", &self.path))?;
        Ok(self.held())
    }

    pub(super) fn holder(&self) -> Holder {
        Holder::of(&self.file)
    }

    fn held(self) -> LedgerLock {
        LedgerLock { file: self.file, path: self.path }
    }
}

/// The result of trying to take the lock.
pub(super) enum Attempt {
    Locked(LedgerLock),
    Busy(LockFile),
}

/// A kernel lock, so it is released the moment its holder dies. The file records what the holder was about to do
/// (`<ref> <new id>`), so that the next holder can clean up after it.
pub(super) struct LedgerLock {
    file: File,
    path: PathBuf,
}

/// The ref update that a dead writer had started.
pub(super) struct PendingUpdate {
    pub(super) reference: String,
    pub(super) new: String,
}

impl LedgerLock {
    /// The last holder's intent, if it did not finish.
    pub(super) fn unfinished_update(&mut self) -> Result<Option<PendingUpdate>, Error> {
        let mut content = String::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_string(&mut content));
        read.map_err(Error::io("read", &self.path))?;
        Ok(content
            .strip_suffix('\n')
            .and_then(|line| line.split_once(' '))
            .map(|(reference, new)| PendingUpdate { reference: reference.to_owned(), new: new.to_owned() }))
    }

    pub(super) fn declare(&mut self, reference: &str, new: ObjectId) -> Result<(), Error> {
        self.write(&format!("{reference} {new}\n"))
    }

    pub(super) fn clear(&mut self) -> Result<(), Error> {
        self.write("")
    }

    // Not flushed: an intent only matters after a process died; a power cut leaves stale locks in any case.
    fn write(&mut self, content: &str) -> Result<(), Error> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        let written = emptied.and_then(|()| disk::write(&mut self.file, &self.path, content.as_bytes()));
        written.map_err(Error::io("write", &self.path))
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_repository_that_is_gone_does_not_come_back() {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, is_made) in [("squad/a.lock", true), ("gone/squad/a.lock", false)] {
            let path = folder.path().join(path);
            assert_eq!((LockFile::open(&path, Sharing::Umask).is_ok(), path.exists()), (is_made, is_made));
        }
        assert!(!folder.path().join("gone").exists());
    }

    /// Free and awaited: the date of the file says since when it is held.
    #[test]
    fn a_lock_is_held_since_it_changed_hands() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.lock");
        let open = || LockFile::open(&path, Sharing::Umask).expect("a file");
        for is_awaited in [false, true] {
            let other = open().lock(&|_| {}).expect("it is free");
            let hour_ago = SystemTime::now() - Duration::from_secs(3600);
            other.file.set_modified(hour_ago).expect("it is ours");
            let lock = match is_awaited {
                false => {
                    drop(other);
                    open().lock(&|_| {})
                }
                true => std::thread::scope(|scope| {
                    scope.spawn(|| {
                        std::thread::sleep(Duration::from_millis(50));
                        drop(other);
                    });
                    open().lock(&|_| {})
                }),
            };
            let date = lock.expect("it is free").file.metadata().and_then(|metadata| metadata.modified());
            assert!(date.expect("a date") > hour_ago + Duration::from_secs(60), "{is_awaited}");
        }
    }
}
