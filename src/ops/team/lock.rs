//! A lock file that only one process can hold.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::error::Failure;
use crate::git::{Holder, PATIENCE};
use crate::model::DamageLog;
use crate::pool::Cancel;

/// A landing takes about 20 ms, and up to 10 s if a signing program hangs.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a lock may be held without an owner: a child that another process or thread has just forked has the file
/// open until it executes its program.
const OWNERLESS: Duration = Duration::from_secs(1);

/// Takes a lock unless somebody keeps it. False: somebody does.
pub(crate) fn take(file: &File) -> io::Result<bool> {
    take_within(file, OWNERLESS, None, || {})
}

/// False: somebody keeps it for longer, or until `cancel` is set. `tell` says who, when that takes long.
fn take_within(file: &File, limit: Duration, cancel: Option<&Cancel>, tell: impl FnOnce()) -> io::Result<bool> {
    let start = Instant::now();
    let mut tell = Some(tell);
    loop {
        if start.elapsed() >= PATIENCE
            && let Some(tell) = tell.take()
        {
            tell();
        }
        match file.try_lock() {
            Ok(()) => {
                // For those who wait. The owner of the file may be another user.
                let _ = file.set_modified(SystemTime::now());
                return Ok(true);
            }
            Err(TryLockError::WouldBlock) if start.elapsed() < limit && !cancel.is_some_and(Cancel::is_set) => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Waits for the lock, and holds it while the returned file is open. The kernel frees the lock of a process that dies.
/// A long wait is said to `log`. `doing` says in error messages what the process that holds the lock is doing.
pub(crate) fn acquire(path: &Path, doing: &str, log: &DamageLog, cancel: Option<&Cancel>) -> Result<File, Failure> {
    let failed = |reason: String| Failure::failed(format!("cannot lock {}: {reason}", path.display()));
    let open = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        File::options().create(true).truncate(false).write(true).open(path)
    };
    let file = open().map_err(|error: io::Error| failed(error.to_string()))?;
    let name = path.file_stem().unwrap_or_default().display();
    let tell = || log.say(&format!("waiting for the {name} lock: {}", Holder::of(&file)));
    match take_within(&file, TIMEOUT, cancel, tell) {
        Ok(true) => Ok(file),
        Ok(false) if cancel.is_some_and(Cancel::is_set) => {
            Err(failed(format!("interrupted while another squad is {doing}")))
        }
        Ok(false) => Err(failed(format!("another squad is {doing}; {}", Holder::of(&file)))),
        Err(error) => Err(failed(error.to_string())),
    }
}
