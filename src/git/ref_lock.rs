//! git's own ref locks, taken so that our locks can be told from those of others.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{disk, error::Error, objects::Sharing};

/// How long we wait while another process holds `<ref>.lock`.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Waits for `<ref>.lock` and takes it. The lock is a hard link to the draft, so nobody ever sees it empty.
pub(super) fn lock_with(draft: &Path, path: &Path, sharing: Sharing) -> Result<RefLock, Error> {
    let lock = lock_path(path);
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match link(draft, &lock) {
            Ok(()) => return Ok(RefLock { path: Some(lock) }),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                if start.elapsed() > TIMEOUT {
                    return Err(Error::Locked { path: lock });
                }
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            // `git pack-refs` removes the folders it empties.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound && start.elapsed() < TIMEOUT => {
                let folder = path.parent().unwrap_or(path);
                disk::make_folder(folder, sharing).map_err(Error::io("create", folder))?;
            }
            Err(cause) => return Err(Error::io("lock", &lock)(cause)),
        }
    }
}

pub(super) fn link(draft: &Path, lock: &Path) -> io::Result<()> {
    match disk::link(draft, lock) {
        // Some file systems have no hard links (FAT, some network shares).
        Err(cause) if matches!(cause.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => {
            let content = fs::read(draft)?;
            let mut file = disk::create_new(lock)?;
            disk::write(&mut file, lock, &content).and_then(|()| disk::flush(&file, lock)).inspect_err(|_| {
                let _ = disk::remove(lock);
            })
        }
        answer => answer,
    }
}

/// A lock that we hold; dropping it releases the lock.
pub(super) struct RefLock {
    path: Option<PathBuf>,
}

impl RefLock {
    pub(super) fn publish(mut self, path: &Path) -> Result<(), Error> {
        if let Some(lock) = &self.path {
            disk::rename(lock, path).map_err(Error::io("write", path))?;
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = disk::remove(path);
        }
    }
}
