//! Where tests make their folders. Most of them are about names and bytes, not about the disk: on a file system in
//! memory their many flushes cost nothing.
//!
//! `SQUAD_TEST_DIR` names a folder for all of them, those that want a disk included.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

/// A folder for one test, in memory where that can be.
pub(crate) fn folder() -> TempDir {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    make(PLACE.get_or_init(|| chosen().or_else(memory).unwrap_or_else(std::env::temp_dir)))
}

/// A folder for a test that is about flushing, or about the order in which a real file system keeps its changes.
pub(crate) fn folder_on_disk() -> TempDir {
    make(&chosen().unwrap_or_else(std::env::temp_dir))
}

fn make(place: &Path) -> TempDir {
    tempfile::Builder::new().prefix("squad-test-").tempdir_in(place).expect("a temporary folder")
}

fn chosen() -> Option<PathBuf> {
    std::env::var_os("SQUAD_TEST_DIR").map(PathBuf::from)
}

/// A file system in memory that we may write to and run scripts from, with room for all tests side by side.
/// Containers often have one of 64 MiB that runs nothing.
#[cfg(target_os = "linux")]
fn memory() -> Option<PathBuf> {
    use rustix::fs::StatVfsMountFlags;

    const TMPFS: u64 = 0x0102_1994;
    const ROOM: u64 = 1 << 30;
    let place = Path::new("/dev/shm");
    let is_memory = u64::try_from(rustix::fs::statfs(place).ok()?.f_type) == Ok(TMPFS);
    let facts = rustix::fs::statvfs(place).ok()?;
    let runs_scripts = !facts.f_flag.contains(StatVfsMountFlags::NOEXEC);
    let is_roomy = facts.f_bavail.saturating_mul(facts.f_frsize) >= ROOM;
    (is_memory && runs_scripts && is_roomy && tempfile::tempdir_in(place).is_ok()).then(|| place.to_owned())
}

#[cfg(not(target_os = "linux"))]
fn memory() -> Option<PathBuf> {
    None
}
