//! Files that a person names for squad to write.

use std::fs;
use std::path::Path;

use crate::error::Failure;

/// Writes a file whole or not at all. An existing one is replaced only with `force`; `None`: never.
pub(crate) fn write_file(
    path: &Path,
    force: Option<bool>,
    write: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    check(&path, force)?;
    let unwritable = |cause: std::io::Error| Failure::failed(format!("cannot be written: {cause}")).at(path.display());
    let folder = path.parent().unwrap_or(&path);
    if !folder.is_dir() {
        return Err(Failure::failed("there is no folder for it").at(path.display()));
    }
    // A link created there meanwhile is replaced, not followed.
    let mut builder = tempfile::Builder::new();
    // As any program makes a file: who may read it is the person's umask.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let draft = builder.prefix(".squad-").tempfile_in(folder).map_err(unwritable)?;
    write(draft.path())?;
    let written = if force == Some(true) { draft.persist(&path) } else { draft.persist_noclobber(&path) };
    written.map(drop).map_err(|error| unwritable(error.error))
}

/// See [`write_file`].
pub(crate) fn write_text(path: &Path, force: Option<bool>, text: &str) -> Result<(), Failure> {
    let unwritable = |cause| Failure::failed(format!("cannot be written: {cause}")).at(path.display());
    write_file(path, force, |draft| fs::write(draft, text).map_err(unwritable))
}

fn check(path: &Path, force: Option<bool>) -> Result<(), Failure> {
    const ANOTHER: &str = "name another file";
    let refused = |what: &str, hint: &str| Err(Failure::usage(what).at(path.display()).hint(hint));
    match path.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(facts) if facts.is_symlink() => refused("it is a link, and squad does not write through links", ANOTHER),
        Ok(facts) if !facts.is_file() => refused("it is not a regular file", ANOTHER),
        Ok(_) => match force {
            Some(true) => Ok(()),
            Some(false) => refused("the file already exists", "name another file, or use --force"),
            None => refused("the file already exists", "name another file, or delete that one first"),
        },
    }
}
