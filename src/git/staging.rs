//! Changing the user's index.
//!
//! The `git` program changes a copy, so that index extensions and split and sparse indexes stay intact. The copy then
//! replaces the index under git's own lock, which is a hard link to the copy: that identifies a lock left by a dead
//! squad.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use gix::ObjectId;

use super::{disk, error::Error, ref_lock, repository::Repository};

/// How often we retry while others change the index, and the pause in between.
const MAX_TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// Changes index entries: mode and blob; `None` removes one. Other paths are untouched.
/// `refreshed` are the paths whose work tree file is up to date, `hidden` those that a sparse checkout omits.
pub(super) fn update_index(
    repository: &Repository,
    draft: &Path,
    files: &[(&str, Option<(&str, ObjectId)>)],
    refreshed: &[&str],
    hidden: &[&str],
) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let null = repository.hash().null();
    let records = files.iter().map(|(path, file)| match file {
        Some((mode, id)) => format!("{mode} {id} 0\t{path}\0"),
        None => format!("0 {null} 0\t{path}\0"),
    });
    let records: String = records.collect();
    let place = draft.to_string_lossy();
    for _ in 0..MAX_TRIES {
        let (index, lock) = (repository.git_dir().join("index"), lock_path(repository));
        disk::remove(draft).map_err(Error::io("remove", draft))?;
        let before = stamp(repository);
        if before.is_some() {
            disk::copy(&index, draft).map_err(Error::io("copy", &index))?;
        }
        let call = |arguments: &[&str]| repository.call(arguments).variable("GIT_INDEX_FILE", &place);
        call(&["update-index", "-z", "--add", "--index-info"]).input(records.clone()).succeed()?;
        let listed = |paths: &[&str]| paths.iter().map(|path| format!("{path}\0")).collect::<String>();
        if !hidden.is_empty() {
            // Replacing an entry clears its skip-worktree bit.
            call(&["update-index", "-z", "--skip-worktree", "--stdin"]).input(listed(hidden)).succeed()?;
        }
        if !refreshed.is_empty() {
            let names = listed(refreshed);
            // Only saves git from reading them again.
            call(&["add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul"]).input(names).run()?;
        }
        match ref_lock::link(draft, &lock) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                thread::sleep(PAUSE);
                continue;
            }
            answer => answer.map_err(Error::io("lock", &index))?,
        }
        let replaced = match stamp(repository) == before {
            true => disk::rename(&lock, &index).map(|()| true),
            false => disk::remove(&lock).map(|()| false),
        };
        let replaced = replaced.inspect_err(|_| {
            let _ = disk::remove(&lock);
        });
        if replaced.map_err(Error::io("write", &index))? {
            disk::flush_folder(repository.git_dir())?;
            return disk::remove(draft).map_err(Error::io("remove", draft));
        }
    }
    disk::remove(draft).map_err(Error::io("remove", draft))?;
    Err(Error::Locked { path: lock_path(repository) })
}

/// Removes git's index lock if it is ours, that is, has the content of our draft.
pub(super) fn remove_stale_lock(repository: &Repository, draft: &Path) -> Result<(), Error> {
    let lock = lock_path(repository);
    let (Ok(ours), Ok(there)) = (fs::read(draft), fs::read(&lock)) else { return Ok(()) };
    if ours == there { disk::remove(&lock).map_err(Error::io("remove", &lock)) } else { Ok(()) }
}

/// Waits at most `timeout` for other gits to release the index: most need a few milliseconds.
pub(super) fn wait_for_lock(repository: &Repository, timeout: Duration) {
    let (lock, start) = (lock_path(repository), Instant::now());
    while lock.exists() && start.elapsed() < timeout {
        thread::sleep(PAUSE / 5);
    }
}

pub(super) fn lock_path(repository: &Repository) -> PathBuf {
    repository.git_dir().join("index.lock")
}

/// Identifies the index file; every change of the index replaces the file.
pub(super) type IndexStamp = (u64, Option<SystemTime>, u64);

pub(super) fn stamp(repository: &Repository) -> Option<IndexStamp> {
    let metadata = fs::metadata(repository.git_dir().join("index")).ok()?;
    Some((metadata.len(), metadata.modified().ok(), inode(&metadata)))
}

#[cfg(unix)]
fn inode(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_metadata: &fs::Metadata) -> u64 {
    0
}
