//! A lock file that only one process can hold.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::env::lock::{Holder, open, take_within};
use crate::error::Failure;
use crate::model::DamageLog;
use crate::pool::Cancel;

/// A landing takes about 20 ms, and up to 10 s if a signing program hangs.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for the lock, and holds it while the returned file is open. The kernel frees the lock of a process that dies.
/// A long wait is said to `log`. `doing` says in error messages what the process that holds the lock is doing.
pub(crate) fn acquire(path: &Path, doing: &str, log: &DamageLog, cancel: Option<&Cancel>) -> Result<File, Failure> {
    let failed = |reason: String| Failure::failed(format!("cannot lock {}: {reason}", path.display()));
    let failed_to = |error: io::Error| failed(error.to_string());
    let file = open(path).map_err(failed_to)?;
    let name = path.file_stem().unwrap_or_default().display().to_string();
    let tell = |holder: &Holder| log.say(&format!("waiting for the {name} lock: {holder}"));
    match take_within(&file, TIMEOUT, || cancel.is_some_and(Cancel::is_set), &tell) {
        Ok(true) => Ok(file),
        Ok(false) if cancel.is_some_and(Cancel::is_set) => {
            Err(failed(format!("interrupted while another squad is {doing}")))
        }
        Ok(false) => Err(failed(format!("another squad is {doing}; {}", Holder::of(&file)))),
        Err(error) => Err(failed_to(error)),
    }
}
