//! A mount namespace: everything is read-only but what is allowed, and what is hidden is not there.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind_recursive, mount_change,
    move_mount, open_tree,
};
use rustix::process::{getgid, getuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::processes::{self, Ending};
use super::{Lack, NetworkRules, Rules};
use crate::model::Sort;

/// A file system of its own inside, because others' programs share what is here outside.
const SHARED_MEMORY: &str = "/dev/shm";

/// Binds this process, which must have one thread, or with processes of its own a child of it, where this returns; with how
/// that says that its program has ended. Landlock must follow: without it and the `no_new_privs` it sets, a
/// process of root's could undo this.
///
/// # Errors
///
/// The system allows no user namespaces, or the kernel is older than 5.12.
pub(super) fn enter(rules: &Rules) -> Result<Option<Ending>, String> {
    let folder = std::env::current_dir().map_err(|error| format!("the working folder: {error}"))?;
    // A process outside is not looked into from another user namespace.
    let hidden: Result<Vec<OwnedFd>, String> = rules.hidden_in_project.iter().map(|link| opened(link)).collect();
    let hidden = hidden?;
    // They are listed by network.
    let sockets = sockets_of_others(rules);
    let network = if rules.network.is_some() { UnshareFlags::NEWNET } else { UnshareFlags::empty() };
    let processes = if rules.own_processes { UnshareFlags::NEWPID } else { UnshareFlags::empty() };
    if let Some(links) = &rules.layers {
        join(links)?;
    }
    new_namespaces(network | processes)?;
    let ending = rules.own_processes.then(processes::begin).transpose();
    let ending = ending.map_err(|error| format!("processes of its own: {error}"))?;
    arrange(rules, &hidden, &sockets)?;
    // The old working folder is that of the old mounts.
    std::env::set_current_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(ending)
}

/// Gives this process mounts of its own, which must have one thread.
pub(super) fn begin() -> Result<(), String> {
    new_namespaces(UnshareFlags::empty())?;
    make_private()
}

/// Takes this process to the mounts with the layers.
fn join([users, mounts]: &[PathBuf; 2]) -> Result<(), String> {
    let open = |link: &Path| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open(link, flags, Mode::empty()).map_err(|error| failed(link, error))
    };
    for (namespace, kind) in [(open(users)?, LinkNameSpaceType::User), (open(mounts)?, LinkNameSpaceType::Mount)] {
        let joined = move_into_link_name_space(namespace.as_fd(), Some(kind));
        joined.map_err(|error| format!("the clone's layers are not reached: {error}"))?;
    }
    Ok(())
}

fn new_namespaces(more: UnshareFlags) -> Result<(), String> {
    unshare(more).map_err(|error| match error.kind() {
        // So the kernel says that there may be no more.
        io::ErrorKind::StorageFull => "no user namespace: user.max_user_namespaces allows none".to_owned(),
        _ => format!("no user namespace: {error}"),
    })
}

fn make_private() -> Result<(), String> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| format!("the mounts cannot be made private: {error}"))
}

#[expect(unsafe_code, reason = "a namespace is a matter of the thread")]
fn unshare(more: UnshareFlags) -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    // SAFETY: the table of descriptors stays shared, which is what the caller has to ensure.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS | more)? };
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(())
}

/// What becomes of a path.
enum Change {
    /// An empty file system takes its place.
    Empty(&'static CStr),
    /// This tree does.
    Put(OwnedFd),
    /// This tree is there again, although something around it is not.
    Keep(OwnedFd),
}

impl Change {
    fn apply(&self, path: &Path) -> Result<(), String> {
        match self {
            Self::Empty(options) => put_file_system(path, options),
            Self::Put(copied) | Self::Keep(copied) => put(copied.as_fd(), path),
        }
    }
}

/// How often something is mounted on a path that comes and goes.
const TRIES: usize = 100;

/// Options of the file systems that hide a folder, and of the one for shared memory.
const HIDING: &CStr = c"mode=0700,size=64k";
const SHARED: &CStr = c"mode=1777";

fn arrange(rules: &Rules, hidden: &[OwnedFd], sockets: &[PathBuf]) -> Result<(), String> {
    make_private()?;
    let shared_memory = PathBuf::from(SHARED_MEMORY);
    let covering: Vec<&PathBuf> =
        rules.hidden.iter().chain(rules.replaced.iter().map(|(path, _)| path)).chain([&shared_memory]).collect();
    let is_covered = |path: &Path| covering.iter().any(|folder| path.starts_with(folder));
    // All trees are copied while they can be reached by their names and nothing in them is hidden.
    let mut changes: Vec<(&PathBuf, Change)> = vec![(&shared_memory, Change::Empty(SHARED))];
    for path in rules.hidden.iter().chain(sockets).filter(|path| path.exists()) {
        changes.push((path, if path.is_dir() { Change::Empty(HIDING) } else { Change::Put(copy(&rules.empty)?) }));
    }
    for (path, by) in &rules.replaced {
        changes.push((path, Change::Put(copy(by)?)));
    }
    let kept = rules.writable.iter().chain(&rules.readable).chain([&rules.temporary]);
    for path in kept.filter(|path| is_covered(path) && path.exists()) {
        changes.push((path, Change::Keep(copy(path)?)));
    }
    // Of both names, the file may lie in a folder that is hidden.
    let resolving = rules.network.as_ref().map(NetworkRules::resolving);
    let resolving: Vec<(PathBuf, PathBuf)> = resolving.into_iter().flatten().collect();
    for (path, by) in &resolving {
        changes.push((path, Change::Keep(copy(by)?)));
    }
    // For each of them, and where one is renamed at that moment.
    let spare = if hidden.is_empty() { 0 } else { TRIES };
    let covers: Result<Vec<OwnedFd>, String> = (0..hidden.len() + spare).map(|_| copy(&rules.empty)).collect();
    let mut covers = covers?;
    // From the outside in. The order of the same path is that of the list: what is kept comes last.
    changes.stable_sort_by_key(|(path, _)| path.components().count());
    for (path, change) in changes {
        if let Change::Keep(copied) = &change {
            make_room(path, copied).map_err(|error| failed(path, error))?;
        }
        let mut tries = 0..TRIES;
        while let Err(reason) = change.apply(path) {
            // What is around it may be gone by now, and so may a socket, whose program may also have made it again.
            if !path.exists() {
                break;
            }
            tries.next().ok_or(reason)?;
        }
    }

    // Terminals of its own: those of others show what is typed there. A system that lets nobody make them keeps its own.
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    if mount("devpts", "/dev/pts", "devpts", flags, c"newinstance,ptmxmode=0666,mode=0620").is_ok() {
        put(copy(Path::new("/dev/pts/ptmx"))?.as_fd(), Path::new("/dev/ptmx"))?;
    }

    // Each tree that differs from what is around it becomes a mount of its own.
    let terminals = PathBuf::from("/dev/pts");
    let writable = rules.writable.iter().chain([&rules.temporary]).chain(rules.replaced.iter().map(|(path, _)| path));
    let writable = writable.chain([&shared_memory, &terminals]);
    // What is kept in the place of shared memory is not writable like the rest there.
    let is_writable = |path: &Path| rules.writable.iter().any(|writable| path.starts_with(writable));
    let readable = rules.readable.iter().filter(|path| is_covered(path) && !is_writable(path));
    let read_only = rules.read_only.iter().chain(readable).map(|path| (path, true));
    let around = folders_around(rules);
    let writable = writable.chain(&around);
    let mut trees: Vec<(&PathBuf, bool)> = writable.map(|path| (path, false)).chain(read_only).collect();
    trees.retain(|(path, _)| path.exists());
    trees.stable_sort_by_key(|(path, _)| path.components().count());
    for (path, _) in &trees {
        mount_bind_recursive(path.as_path(), path.as_path()).map_err(|error| failed(path, error))?;
    }
    if rules.own_processes {
        processes::show()?;
    }
    set_read_only(Path::new("/"), true, true).map_err(|error| failed(Path::new("/"), error))?;
    for (path, is_read_only) in trees {
        // A mount inside may be read-only for good.
        let is_set = set_read_only(path, is_read_only, true).or_else(|_| set_read_only(path, is_read_only, false));
        is_set.map_err(|error| failed(path, error))?;
    }
    hidden.iter().try_for_each(|file| cover(file, &mut covers))
}

/// As many of the project's files can be hidden. Each is held open, by the process that has the most open files.
const MOST_HIDDEN: usize = 500;

/// Opens files, to find them by whatever name they have later.
///
/// # Errors
///
/// There are too many.
pub(super) fn hold(files: &[PathBuf]) -> Result<Vec<fs::File>, Lack> {
    if files.len() > MOST_HIDDEN {
        return Err(Lack::Broken(format!("over {MOST_HIDDEN} ignored .env files are to be hidden")));
    }
    // One that is gone needs no hiding.
    let there = files.iter().filter(|file| file.exists());
    there.map(|file| opened(file).map(fs::File::from).map_err(Lack::Broken)).collect()
}

/// The name of an open file of this process, for another one.
pub(super) fn link_to(file: &fs::File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

fn opened(path: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(path, error))
}

/// Has an empty file stand in the place of this one. A mount stays on the file when its folder is renamed, which an agent
/// may do at any moment.
fn cover(file: &OwnedFd, covers: &mut Vec<OwnedFd>) -> Result<(), String> {
    let link = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let own = rustix::fs::fstat(file).map_err(|error| failed(&link, error))?;
    let place = || fs::read_link(&link).map_err(|error| failed(&link, error));
    for _ in 0..TRIES {
        let path = place()?;
        let is_seen = rustix::fs::stat(&path).is_ok_and(|seen| (seen.st_dev, seen.st_ino) == (own.st_dev, own.st_ino));
        if is_seen {
            let Some(cover) = covers.pop() else { break };
            set_read_only_tree(cover.as_fd()).map_err(|error| failed(&path, error))?;
            // It may be gone from there by now.
            if put(cover.as_fd(), &path).is_err() {
                covers.push(cover);
            }
        } else if path == place()? {
            // It is gone, or hidden.
            return Ok(());
        }
    }
    Err(failed(&place()?, "it is renamed all the time"))
}

/// The writable folders around what may not be written: one that is mounted cannot be renamed, to put another in its
/// place.
fn folders_around(rules: &Rules) -> BTreeSet<PathBuf> {
    let is_below = |folder: &Path, paths: &[PathBuf]| paths.iter().any(|path| folder.starts_with(path));
    let is_inner = |folder: &&Path| folder.parent().is_some_and(|parent| is_below(parent, &rules.writable));
    let held = rules.read_only.iter().flat_map(|path| path.ancestors().skip(1));
    held.filter(is_inner).filter(|folder| !is_below(folder, &rules.read_only)).map(Path::to_owned).collect()
}

/// The sockets that programs outside listen on: read-only mounts do not keep anybody from connecting. One that is made
/// later, outside of what is hidden, is reached.
fn sockets_of_others(rules: &Rules) -> Vec<PathBuf> {
    let listed = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let is_own = |path: &Path| rules.writable.iter().any(|own| path.starts_with(own));
    let named = listed.lines().filter_map(|line| Some(PathBuf::from(line.get(line.find('/')?..)?)));
    let mut sockets: Vec<PathBuf> = named.filter(|path| !is_own(path)).collect();
    sockets.sort_unstable();
    sockets.dedup();
    sockets
}

/// A copy of a tree of mounts, which is nowhere yet.
fn copy(path: &Path) -> Result<OwnedFd, String> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags).map_err(|error| failed(path, error))
}

fn put(copied: BorrowedFd<'_>, path: &Path) -> Result<(), String> {
    move_mount(copied, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).map_err(|error| failed(path, error))
}

fn put_file_system(path: &Path, options: &CStr) -> Result<(), String> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", path, "tmpfs", flags, options).map_err(|error| failed(path, error))
}

/// Makes the file or folder that something will be mounted on.
fn make_room(path: &Path, opened: &OwnedFd) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let kind = FileType::from_raw_mode(rustix::fs::fstat(opened)?.st_mode);
    if kind == FileType::Directory {
        return fs::create_dir_all(path);
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, "")
}

/// Of one mount, or of all in it.
fn set_read_only(path: &Path, is_read_only: bool, with_inner: bool) -> io::Result<()> {
    let flags = if with_inner { libc::AT_RECURSIVE } else { 0 };
    set_attributes((libc::AT_FDCWD, path), is_read_only, flags)
}

/// Of a tree that is nowhere yet.
fn set_read_only_tree(copied: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes((copied.as_raw_fd(), Path::new("")), true, libc::AT_EMPTY_PATH)
}

#[expect(unsafe_code, reason = "rustix has no mount_setattr")]
fn set_attributes((folder, path): (i32, &Path), is_read_only: bool, flags: i32) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let bits = |is_set: bool| if is_set { libc::MOUNT_ATTR_RDONLY } else { 0 };
    let attributes =
        libc::mount_attr { attr_set: bits(is_read_only), attr_clr: bits(!is_read_only), propagation: 0, userns_fd: 0 };
    // SAFETY: both pointers are valid for the call, and the size is that of the structure.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn failed(path: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
