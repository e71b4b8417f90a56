//! Small files in squad's local folder that one process writes and others read.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::git::Repository;

/// Stands for a team's place and the work tree, in the names of files. `team`: its folder, from the repository's root.
pub(super) fn place_key(repository: &Repository, team: &str) -> String {
    let place = format!("{}\n{team}", repository.git_dir().display());
    blake3::hash(place.as_bytes()).to_hex()[..12].to_owned()
}

/// Replaces a file: whoever reads it sees the old one or the new one, whole. It is made in `folder`, of the same disk.
pub(super) fn replace(folder: &Path, path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(folder)?;
    serde_json::to_writer(&mut file, value)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

pub(super) fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
