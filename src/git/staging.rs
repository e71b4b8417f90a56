//! Changing the user's index.
//!
//! The `git` program changes a copy: it keeps the user's extensions, split and sparse indexes whole. The copy then takes
//! the index's place under git's own lock, which is a link to the copy: a lock that a dead squad left is known by that.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use gix::ObjectId;

use super::{disk, error::Error, ref_lock, repository::Repository};

/// How often we try while others change the index, and how long we wait in between.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// Gives files of the index other content, `None` takes them out; entries of other paths stay as they are. `refreshed`
/// are those whose file in the work tree is as it is to be, `hidden` those that a sparse checkout keeps out of it.
pub(super) fn change(
    repository: &Repository,
    draft: &Path,
    files: &[(&str, Option<ObjectId>)],
    refreshed: &[&str],
    hidden: &[&str],
) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let null = repository.hash().null();
    let records = files.iter().map(|(path, id)| match id {
        Some(id) => format!("100644 {id} 0\t{path}\0"),
        None => format!("0 {null} 0\t{path}\0"),
    });
    let records: String = records.collect();
    let place = draft.to_string_lossy();
    for _ in 0..TRIES {
        let (index, lock) = (repository.git_dir().join("index"), lock(repository));
        disk::remove(draft).map_err(Error::io("remove", draft))?;
        let before = identity(repository);
        if before.is_some() {
            disk::copy(&index, draft).map_err(Error::io("copy", &index))?;
        }
        let call = |arguments: &[&str]| repository.call(arguments).variable("GIT_INDEX_FILE", &place);
        call(&["update-index", "-z", "--add", "--index-info"]).input(records.clone()).succeed()?;
        let listed = |paths: &[&str]| paths.iter().map(|path| format!("{path}\0")).collect::<String>();
        if !hidden.is_empty() {
            // Entries that are given anew are no longer hidden.
            call(&["update-index", "-z", "--skip-worktree", "--stdin"]).input(listed(hidden)).succeed()?;
        }
        if !refreshed.is_empty() {
            let names = listed(refreshed);
            // Only so that git need not read them again.
            call(&["add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul"]).input(names).run()?;
        }
        match ref_lock::link(draft, &lock) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                thread::sleep(PAUSE);
                continue;
            }
            answer => answer.map_err(Error::io("lock", &index))?,
        }
        let replaced = match identity(repository) == before {
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
    Err(Error::Locked { path: lock(repository) })
}

/// Removes git's lock of the index, if it is ours: it holds what is in our draft.
pub(super) fn remove_dead_lock(repository: &Repository, draft: &Path) -> Result<(), Error> {
    let lock = lock(repository);
    let (Ok(ours), Ok(there)) = (fs::read(draft), fs::read(&lock)) else { return Ok(()) };
    if ours == there { disk::remove(&lock).map_err(Error::io("remove", &lock)) } else { Ok(()) }
}

/// Waits until no other git is changing the index, for so long: most need some milliseconds.
pub(super) fn await_others(repository: &Repository, patience: Duration) {
    let (lock, start) = (lock(repository), Instant::now());
    while lock.exists() && start.elapsed() < patience {
        thread::sleep(PAUSE / 5);
    }
}

pub(super) fn lock(repository: &Repository) -> PathBuf {
    repository.git_dir().join("index.lock")
}

/// Who changes the index puts another file in its place.
pub(super) type Identity = (u64, Option<SystemTime>, u64);

pub(super) fn identity(repository: &Repository) -> Option<Identity> {
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
