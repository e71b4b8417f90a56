//! Which paths a file that we write may have, and what may be in its way.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::error::Error;
use crate::policy::is_portable_here;

/// Rejects paths that are not relative and plain, or that git or a file system would read differently.
pub(super) fn check_path(path: &str) -> Result<(), Error> {
    if is_portable_here(path) { Ok(()) } else { Err(Error::BadPath { path: path.to_owned() }) }
}

/// The first folder on the way to a path below `root` that cannot be one of it: a link could lead out, and a nested
/// repository has its own history. With what it is.
pub(super) fn obstacle(root: &Path, path: &Path) -> Result<Option<(PathBuf, &'static str)>, Error> {
    let mut folder = root.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        let what = match fs::symlink_metadata(&folder) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(Error::io("look at", &folder)(cause)),
            Ok(metadata) if metadata.is_symlink() => "is a symbolic link",
            Ok(metadata) if !metadata.is_dir() => "is not a folder",
            Ok(_) if folder.join(".git").exists() => "is a repository of its own",
            Ok(_) => continue,
        };
        return Ok(Some((folder, what)));
    }
    Ok(None)
}
