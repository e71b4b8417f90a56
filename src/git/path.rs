//! Which paths a file that we write may have.

use super::error::Error;
use crate::policy::is_portable;

/// Rejects paths that are not relative and plain, or that git or a file system would read differently.
pub(super) fn check_path(path: &str) -> Result<(), Error> {
    if is_portable(path) { Ok(()) } else { Err(Error::BadPath { path: path.to_owned() }) }
}
