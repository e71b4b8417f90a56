//! The ways out of `fixtures/sandbox/attempts.txt`, and what they were after, looked at on disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const ATTEMPTS: &str = include_str!("../../fixtures/sandbox/attempts.txt");
/// The sections whose attempts only level `full` stops.
const FULL_ONLY: [&str; 2] = ["# attributes", "# git's own folder"];

/// The attempts that a level has to stop.
pub(crate) fn attempts(level: &str) -> Vec<&'static str> {
    let mut is_meant = true;
    let mut attempts = Vec::new();
    for line in ATTEMPTS.lines().filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            is_meant = level == "full" || !FULL_ONLY.iter().any(|section| line.starts_with(section));
        } else if is_meant {
            attempts.push(line);
        }
    }
    attempts
}

/// Each file and folder below one: its content and, with `attributes`, its mode, owner and times.
pub(crate) fn state(folder: &Path, attributes: bool) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            // squad may be tidying its own files meanwhile.
            let Ok(about) = entry.metadata() else { continue };
            let path = entry.path();
            let text = if about.is_file() {
                format!("{:?}", fs::read(&path).ok())
            } else if about.is_symlink() {
                format!("{:?}", fs::read_link(&path))
            } else {
                format!("{:?}", about.file_type())
            };
            let more = (about.mode(), about.uid(), about.mtime(), about.mtime_nsec());
            found.insert(path.clone(), if attributes { format!("{more:?} {text}") } else { text });
            if about.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

/// What differs, without the contents.
pub(crate) fn differences(before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
    let is_same = |path: &&PathBuf| before.get(*path) == after.get(*path);
    before.keys().chain(after.keys()).filter(|path| !is_same(path)).cloned().collect()
}

/// git's own folder without what squad itself writes: objects and refs of the ledger, and its local state.
pub(crate) fn git_state(git: &Path) -> BTreeMap<PathBuf, String> {
    let is_ours = |path: &Path| {
        ["squad", "objects", "refs/squad", "logs/refs/squad"].iter().any(|one| path.starts_with(git.join(one)))
    };
    let mut state = state(git, false);
    state.retain(|path, _| !is_ours(path));
    state
}
