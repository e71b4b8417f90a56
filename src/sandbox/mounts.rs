//! A mount namespace: everything is read-only but what is allowed, and what is hidden is not there.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities};

use super::Rules;

/// A file system of its own inside, because others' programs share what is here outside.
const SHARED_MEMORY: &str = "/dev/shm";

/// Binds this process, which must have one thread. Landlock must follow: without it and the `no_new_privs` it sets, a
/// process of root's could undo this.
///
/// # Errors
///
/// The system allows no user namespaces, or the kernel is older than 5.12.
pub(super) fn enter(rules: &Rules) -> Result<(), String> {
    let folder = std::env::current_dir().map_err(|error| format!("the working folder: {error}"))?;
    new_namespaces().map_err(|error| format!("no user namespace: {error}"))?;
    arrange(rules)?;
    // The old working folder is that of the old mounts.
    std::env::set_current_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(|error| format!("capabilities cannot be dropped: {error}"))
}

#[expect(unsafe_code, reason = "a namespace is a matter of the thread")]
fn new_namespaces() -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    // SAFETY: the table of descriptors stays shared, which is what the caller has to ensure.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)? };
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(())
}

fn arrange(rules: &Rules) -> Result<(), String> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| format!("the mounts cannot be made private: {error}"))?;
    let (folders, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
        outermost(&rules.hidden).into_iter().partition(|path| path.is_dir());
    let shared_memory = [PathBuf::from(SHARED_MEMORY)];
    let covering: Vec<&PathBuf> = folders.iter().copied().chain(&rules.replaced).chain(&shared_memory).collect();
    let is_covered = |path: &Path| covering.iter().any(|folder| path.starts_with(folder));
    // Opened while they can be reached by their names, and mounted in the order of their depth.
    let kept = rules.writable.iter().chain(&rules.readable).chain([&rules.temporary]);
    let mut kept: Vec<(&PathBuf, OwnedFd)> =
        kept.filter(|path| is_covered(path)).filter_map(|path| Some((path, open(path).ok()?))).collect();
    kept.sort_by_key(|(path, _)| path.components().count());
    let (temporary, empty) = (open(&rules.temporary)?, open(&rules.empty)?);

    for folder in &folders {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", folder.as_path(), "tmpfs", flags, c"mode=0700,size=64k")
            .map_err(|error| failed(folder, error))?;
    }
    for folder in &rules.replaced {
        bind(&temporary, folder)?;
    }
    mount("tmpfs", SHARED_MEMORY, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777")
        .map_err(|error| failed(Path::new(SHARED_MEMORY), error))?;
    for (path, opened) in &kept {
        make_room(path, opened).map_err(|error| failed(path, error))?;
        bind(opened, path)?;
    }
    for file in files.into_iter().chain(&rules.hidden_in_project) {
        bind(&empty, file)?;
    }

    // Each tree that differs from what is around it becomes a mount of its own.
    let terminals = PathBuf::from("/dev/pts");
    let writable = rules.writable.iter().chain([&rules.temporary]).chain(&rules.replaced).chain(&shared_memory);
    let writable = writable.chain([&terminals]);
    let read_only = rules.read_only.iter().chain(&rules.hidden_in_project).map(|path| (path, true));
    let mut trees: Vec<(&PathBuf, bool)> = writable.map(|path| (path, false)).chain(read_only).collect();
    trees.retain(|(path, _)| path.exists());
    trees.sort_by_key(|(path, _)| path.components().count());
    for (path, _) in &trees {
        mount_bind_recursive(path.as_path(), path.as_path()).map_err(|error| failed(path, error))?;
    }
    set_read_only(Path::new("/"), true, true).map_err(|error| failed(Path::new("/"), error))?;
    for (path, is_read_only) in trees {
        // A mount inside may be read-only for good.
        let is_set = set_read_only(path, is_read_only, true).or_else(|_| set_read_only(path, is_read_only, false));
        is_set.map_err(|error| failed(path, error))?;
    }
    Ok(())
}

/// Those that exist, without what others contain.
fn outermost(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let is_inside = |path: &Path| paths.iter().any(|other| other != path && path.starts_with(other) && other.exists());
    paths.iter().filter(|path| path.exists() && !is_inside(path)).collect()
}

fn open(path: &Path) -> Result<OwnedFd, String> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|error| failed(path, error))
}

fn bind(opened: &OwnedFd, target: &Path) -> Result<(), String> {
    let source = format!("/proc/self/fd/{}", opened.as_raw_fd());
    mount_bind_recursive(source, target).map_err(|error| failed(target, error))
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
#[expect(unsafe_code, reason = "rustix has no mount_setattr")]
fn set_read_only(path: &Path, is_read_only: bool, with_inner: bool) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let bits = |is_set: bool| if is_set { libc::MOUNT_ATTR_RDONLY } else { 0 };
    let attributes =
        libc::mount_attr { attr_set: bits(is_read_only), attr_clr: bits(!is_read_only), propagation: 0, userns_fd: 0 };
    let flags = if with_inner { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers are valid for the call, and the size is that of the structure.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
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
