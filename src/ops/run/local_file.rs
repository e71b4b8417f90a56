//! Small files in squad's local folder that one process writes and others read.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::env::files;
use crate::git::Repository;
use crate::model::{from_json, to_json};

/// A hash of the work tree and the team, for file names. `team`: its folder, relative to the repository's root.
pub(super) fn place_key(repository: &Repository, team: &str) -> String {
    let place = format!("{}\n{team}", repository.git_dir().display());
    blake3::hash(place.as_bytes()).to_hex()[..12].to_owned()
}

/// Replaces a file in one step.
pub(super) fn replace(path: &Path, value: &impl Serialize) -> io::Result<()> {
    files::replace(path, to_json(value)?.as_bytes())
}

pub(super) fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    from_json(fs::read(path).ok()?).ok()
}
