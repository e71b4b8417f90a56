//! What a durable append cannot do without: a pack, its index and a ref, as large as ours, and nothing computed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Waiting {
    /// All files are on their way before the first is awaited, and one flush makes them durable: where the file system
    /// keeps the order of changes.
    AtOnce,
    OneByOne,
}

static NUMBER: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn write(repo: &Path, waiting: Waiting) -> Duration {
    let place = repo.join(".git/floor");
    let [packs, refs] = ["packs", "refs"].map(|name| place.join(name));
    [&packs, &refs].into_iter().for_each(|folder| fs::create_dir_all(folder).expect("a folder"));
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let start = Instant::now();
    let files = [
        (packs.join(format!("{number}.pack.new")), packs.join(format!("{number}.pack")), 5_000),
        (packs.join(format!("{number}.idx.new")), packs.join(format!("{number}.idx")), 1_400),
        (refs.join("ref.new"), refs.join("ref"), 41),
    ];
    let open: Vec<(File, PathBuf, PathBuf)> = files
        .into_iter()
        .map(|(new, name, size)| {
            let mut file = File::create(&new).expect("a file");
            file.write_all(&vec![b'x'; size]).expect("it is written");
            begin(&file);
            (file, new, name)
        })
        .collect();
    for (file, new, name) in open {
        match waiting {
            Waiting::AtOnce => reach(&file),
            Waiting::OneByOne => file.sync_data().expect("it is flushed"),
        }
        fs::rename(&new, &name).expect("it is renamed");
    }
    if waiting == Waiting::OneByOne {
        File::open(&packs).and_then(|folder| folder.sync_all()).expect("it is flushed");
    }
    File::open(&refs).and_then(|folder| folder.sync_all()).expect("it is flushed");
    start.elapsed()
}

#[cfg(target_os = "linux")]
fn begin(file: &File) {
    range(file, libc::SYNC_FILE_RANGE_WRITE);
}

#[cfg(target_os = "linux")]
fn reach(file: &File) {
    range(file, libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER);
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "std has no sync_file_range")]
fn range(file: &File, flags: libc::c_uint) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open for as long as `file` lives, and the call touches no memory of ours.
    let answer = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
    assert_eq!(answer, 0);
}

#[cfg(not(target_os = "linux"))]
fn begin(_file: &File) {}

#[cfg(not(target_os = "linux"))]
fn reach(file: &File) {
    file.sync_data().expect("it is flushed");
}
