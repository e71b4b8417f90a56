//! The files that squad installs and looks after: the newest release of each, and the texts that earlier ones had.
//!
//! A release is a number, and `templates/team` is what it installs. Whoever changes a file there after a release copies
//! what it was to `templates/older/<release>/` by the same path and counts [`RELEASE`] up: a text that stays the same
//! over many releases is carried once.

use std::collections::BTreeMap;

use include_dir::{Dir, include_dir};

use crate::env::{Env, Release};

static TEAM: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates/team");
static OLDER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates/older");

/// The release of `templates/team`.
const RELEASE: u32 = 1;

/// The files of one release, and what is known of earlier ones.
pub(crate) struct Templates {
    pub(crate) release: u32,
    /// By path from the team folder, with `/`.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Every text that any release had, by its hash.
    texts: BTreeMap<String, Vec<u8>>,
}

impl Templates {
    /// Those of this squad; a test may have brought its own.
    pub(crate) fn of(env: &Env) -> Self {
        match env.releases.split_last() {
            None => {
                Self::new(RELEASE, files_in(&TEAM, 0), OLDER.dirs().flat_map(|release| files_in(release, 1)).collect())
            }
            Some((Release { number, files }, older)) => {
                let older = older.iter().flat_map(|release| release.files.clone());
                Self::new(*number, files.clone(), older.collect())
            }
        }
    }

    /// The newest release, without its files.
    pub(crate) fn newest(env: &Env) -> u32 {
        env.releases.last().map_or(RELEASE, |release| release.number)
    }

    fn new(release: u32, files: Vec<(String, Vec<u8>)>, older: Vec<(String, Vec<u8>)>) -> Self {
        let texts = files.iter().chain(&older).map(|(_, bytes)| (hash(bytes), bytes.clone())).collect();
        Self { release, files: files.into_iter().collect(), texts }
    }

    /// Those that squad looks after once they are installed. Who is on the team is the team's own affair.
    pub(crate) fn owned(&self) -> impl Iterator<Item = (&String, &Vec<u8>)> {
        self.files.iter().filter(|(path, _)| *path != "team.md")
    }

    /// The text of this hash, if any release had it.
    pub(crate) fn text(&self, hash: &str) -> Option<&[u8]> {
        self.texts.get(hash).map(Vec::as_slice)
    }

    /// Whether a text is one of squad's own, of whichever release.
    pub(crate) fn knows(&self, bytes: &[u8]) -> bool {
        self.texts.contains_key(&hash(bytes))
    }
}

/// What a manifest records of a text.
pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().chars().take(32).collect()
}

/// The files below a folder by their paths, without so many of the first parts.
fn files_in(folder: &Dir<'_>, without: usize) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = folder
        .files()
        .map(|file| {
            let parts = file.path().components().skip(without).map(|part| part.as_os_str().to_string_lossy());
            (parts.collect::<Vec<_>>().join("/"), file.contents().to_vec())
        })
        .collect();
    found.extend(folder.dirs().flat_map(|inner| files_in(inner, without)));
    found.sort();
    found
}
