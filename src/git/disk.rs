//! Every change the ledger makes on disk goes through this module as a separate step, so that tests can record the
//! steps, make any of them fail, and simulate a power cut between any two.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{error::Error, objects::Sharing};

/// One change, or one wait for changes to reach the disk.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Step {
    Create(PathBuf),
    /// Sets the whole content of a file.
    Write(PathBuf, Vec<u8>),
    MakeFolder(PathBuf),
    /// Both paths are in one folder.
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
    /// The bytes were sent to the disk; see [`reach_disk`].
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has the call"))]
    Reach(PathBuf),
    Flush(PathBuf),
    FlushFolder(PathBuf),
    RemoveFolder(PathBuf),
    /// A call of the `git` program, which may change the disk.
    Git(String),
}

/// Runs a step, unless a test makes it fail.
fn step<T>(_step: impl FnOnce() -> Step, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    #[cfg(test)]
    return super::tests::disk::watched(_step(), act);
    #[cfg(not(test))]
    act()
}

pub(super) fn create_new(path: &Path) -> io::Result<File> {
    step(|| Step::Create(path.to_owned()), || File::create_new(path))
}

/// Creates a file that will never change.
pub(super) fn create_read_only(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o444);
    step(|| Step::Create(path.to_owned()), || options.open(path))
}

/// Writes to a new or emptied file.
pub(super) fn write(file: &mut File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    step(|| Step::Write(path.to_owned(), bytes.to_owned()), || file.write_all(bytes))
}

pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    step(|| Step::Rename(from.to_owned(), to.to_owned()), || fs::rename(from, to))
}

/// Renames a file and fails if the new name exists, even in a race. Both names are in one folder.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let act = || {
        let path = tempfile::TempPath::try_from_path(from)?;
        path.persist_noclobber(to).map_err(|failure| match failure.path.keep() {
            Ok(_) => failure.error,
            Err(kept) => kept.error,
        })
    };
    step(|| Step::Rename(from.to_owned(), to.to_owned()), act)
}

/// Copies a file with its modification time.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let act = || {
        fs::copy(from, to)?;
        File::options().write(true).open(to)?.set_modified(fs::metadata(from)?.modified()?)
    };
    step(|| Step::Create(to.to_owned()), act)
}

#[cfg(unix)]
pub(super) fn symlink(target: &[u8], path: &Path) -> io::Result<()> {
    let target: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(target);
    step(|| Step::Create(path.to_owned()), || std::os::unix::fs::symlink(target, path))
}

/// Like git where links need a privilege, writes a file that contains the target.
#[cfg(not(unix))]
pub(super) fn symlink(target: &[u8], path: &Path) -> io::Result<()> {
    write(&mut create_new(path)?, path, target)
}

pub(super) fn link(from: &Path, to: &Path) -> io::Result<()> {
    step(|| Step::Link(from.to_owned(), to.to_owned()), || fs::hard_link(from, to))
}

/// A missing file is not an error.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_err_and(|cause| cause.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    match step(|| Step::Remove(path.to_owned()), || fs::remove_file(path)) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        answer => answer,
    }
}

pub(super) fn make_folder(path: &Path, sharing: Sharing) -> io::Result<()> {
    match step(|| Step::MakeFolder(path.to_owned()), || fs::create_dir(path)) {
        Ok(()) => sharing.open_directory(path),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(cause) => Err(cause),
    }
}

/// Does nothing if the folder is not empty.
pub(super) fn remove_empty_folder(path: &Path) {
    let _ = step(|| Step::RemoveFolder(path.to_owned()), || fs::remove_dir(path));
}

/// A call of the `git` program.
pub(super) fn git<T>(shown: &str, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    step(|| Step::Git(shown.to_owned()), act)
}

pub(super) fn flush(file: &File, path: &Path) -> io::Result<()> {
    step(|| Step::Flush(path.to_owned()), || file.sync_data())
}

/// Makes files created and renamed in a folder durable. A folder that gc removed meanwhile held nothing of ours.
pub(super) fn flush_folder(path: &Path) -> Result<(), Error> {
    if cfg!(windows) {
        return Ok(()); // folders cannot be opened there, and their changes need no flush of their own
    }
    let flushed = step(|| Step::FlushFolder(path.to_owned()), || File::open(path).and_then(|folder| folder.sync_all()));
    match flushed {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        answer => answer.map_err(Error::io("flush", path)),
    }
}

/// Starts writing all files of a batch to disk before we wait for the first. Best effort.
pub(super) fn start_writing(file: &File) {
    #[cfg(target_os = "linux")]
    sync_range(file, libc::SYNC_FILE_RANGE_WRITE);
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

/// Waits until the bytes of a file have been sent to the disk. If the file system keeps the order (see
/// [`keeps_order`]), flushing any later change makes them durable, and one such flush covers all files. Otherwise
/// flushes the file itself.
pub(super) fn reach_disk(file: &File, path: &Path, keeps_order: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if keeps_order {
        let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        return step(
            || Step::Reach(path.to_owned()),
            || if sync_range(file, all) { Ok(()) } else { Err(io::Error::last_os_error()) },
        );
    }
    let _ = keeps_order;
    flush(file, path)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "rustix has no sync_file_range")]
fn sync_range(file: &File, flags: libc::c_uint) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open for as long as `file` lives, and the call touches no memory of ours.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) == 0 }
}

/// Whether both folders share one journal that never makes a change durable before an earlier one: true of ext4 (and
/// ext3) and XFS. Elsewhere each file and folder needs its own flush.
pub(super) fn keeps_order(first: &Path, next: &Path) -> bool {
    #[cfg(test)]
    if let Some(pretended) = super::tests::disk::pretended_order() {
        return pretended;
    }
    share_a_journal(first, next)
}

#[cfg(target_os = "linux")]
fn share_a_journal(first: &Path, next: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    let is_journal =
        |path| rustix::fs::statfs(path).is_ok_and(|facts| matches!(u64::try_from(facts.f_type), Ok(EXT4 | XFS)));
    let device = |path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    is_journal(first) && device(first).is_some() && device(first) == device(next)
}

#[cfg(not(target_os = "linux"))]
fn share_a_journal(_first: &Path, _next: &Path) -> bool {
    false
}
