//! File modes, as git has them: whether a file is executable.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

pub(super) const PLAIN: &str = "100644";
pub(super) const LINK: &str = "120000";
pub(super) const PROGRAM: &str = "100755";

/// Whether git would add this file as executable.
pub(crate) fn is_executable(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && mode_of(&metadata) == PROGRAM)
}

#[cfg(unix)]
pub(super) fn mode_of(metadata: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::PermissionsExt;
    if metadata.permissions().mode() & 0o100 != 0 { PROGRAM } else { PLAIN }
}

#[cfg(not(unix))]
pub(super) fn mode_of(_metadata: &fs::Metadata) -> &'static str {
    PLAIN
}

/// Who may read and write the new version of a file stays as it was: it may hold keys.
#[cfg(unix)]
pub(super) fn keep_access(file: &File, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(old.permissions().mode() & 0o666))
}

#[cfg(not(unix))]
pub(super) fn keep_access(_file: &File, _old: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
pub(super) fn make_executable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata()?.permissions().mode();
    // Executable for everyone who may read it.
    file.set_permissions(fs::Permissions::from_mode(mode | ((mode & 0o444) >> 2)))
}

#[cfg(not(unix))]
pub(super) fn make_executable(_file: &File) -> io::Result<()> {
    Ok(())
}
