//! A lock file that only one process can hold.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Failure;
use crate::pool::Cancel;

/// A landing takes about 20 ms, and up to 10 s if a signing program hangs.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a lock may be held without an owner: a child that another process or thread has just forked has the file
/// open until it executes its program.
const OWNERLESS: Duration = Duration::from_secs(1);

/// Takes a lock unless somebody keeps it. False: somebody does.
pub(crate) fn take(file: &File) -> io::Result<bool> {
    take_within(file, OWNERLESS, None)
}

/// False: somebody keeps it for longer, or until `cancel` is set.
fn take_within(file: &File, limit: Duration, cancel: Option<&Cancel>) -> io::Result<bool> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if start.elapsed() < limit && !cancel.is_some_and(Cancel::is_set) => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Waits for the lock, and holds it while the returned file is open. The kernel frees the lock of a process that dies.
/// `doing` says in error messages what the process that holds the lock is doing.
pub(crate) fn acquire(path: &Path, doing: &str, cancel: Option<&Cancel>) -> Result<File, Failure> {
    let failed = |reason: String| Failure::failed(format!("cannot lock {}: {reason}", path.display()));
    let open = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        File::options().create(true).truncate(false).write(true).open(path)
    };
    let file = open().map_err(|error: io::Error| failed(error.to_string()))?;
    match take_within(&file, TIMEOUT, cancel) {
        Ok(true) => Ok(file),
        Ok(false) if cancel.is_some_and(Cancel::is_set) => {
            Err(failed(format!("interrupted while another squad is {doing}")))
        }
        Ok(false) => Err(failed(format!("another squad is {doing}"))),
        Err(error) => Err(failed(error.to_string())),
    }
}
