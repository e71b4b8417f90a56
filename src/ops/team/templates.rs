//! The files that squad installs and upgrades: the newest release of each, and the texts of earlier releases.
//!
//! `templates/team` is what release [`RELEASE`] installs. To change a file there after a release, copy the old text to
//! the same path under `templates/older/<release>/` and increase [`RELEASE`]. Files that did not change are not copied.

use std::collections::BTreeMap;

use include_dir::{Dir, include_dir};

use super::fit::TeamFiles;
use crate::env::{Env, Release};
use crate::model::{IntoMap, Sort};

static TEAM: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates/team");
static OLDER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates/older");

/// The release of `templates/team`.
const RELEASE: u32 = 1;

/// The files of one release, and the texts of earlier ones.
pub(crate) struct Templates {
    pub(crate) release: u32,
    /// Files by path relative to the team folder, with `/`.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Every text of any release, by its hash.
    texts: BTreeMap<String, Vec<u8>>,
}

impl Templates {
    /// The built-in templates, or those of a test.
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

    /// The number of the newest release.
    pub(crate) fn newest(env: &Env) -> u32 {
        env.releases.last().map_or(RELEASE, |release| release.number)
    }

    /// The files of the user's own preset, which has no releases.
    pub(crate) fn of_preset(files: TeamFiles) -> Self {
        Self::new(RELEASE, files.into_iter().collect(), Vec::new())
    }

    fn new(release: u32, files: Vec<(String, Vec<u8>)>, older: Vec<(String, Vec<u8>)>) -> Self {
        let texts = files.iter().chain(&older).map(|(_, bytes)| (hash(bytes), bytes.clone())).into_map();
        Self { release, files: files.into_iter().into_map(), texts }
    }

    /// The files that squad upgrades. The roster is not one of them: who is on the team is up to the team.
    pub(crate) fn owned(&self) -> impl Iterator<Item = (&String, &Vec<u8>)> {
        self.files.iter().filter(|(path, _)| *path != "team.md")
    }

    /// The text with this hash, if any release had it.
    pub(crate) fn text(&self, hash: &str) -> Option<&[u8]> {
        self.texts.get(hash).map(Vec::as_slice)
    }

    /// Adds a text of an earlier state.
    pub(crate) fn add(&mut self, text: Vec<u8>) {
        self.texts.insert(hash(&text), text);
    }

    /// The texts of all releases.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.texts.values()
    }
}

/// The hash of a text in the manifest.
pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().chars().take(32).collect()
}

/// All files in a folder. Their paths omit the first `skip` parts.
fn files_in(folder: &Dir<'_>, skip: usize) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = folder
        .files()
        .map(|file| {
            let parts = file.path().components().skip(skip).map(|part| part.as_os_str().to_string_lossy());
            (parts.collect::<Vec<_>>().join("/"), file.contents().to_vec())
        })
        .collect();
    found.extend(folder.dirs().flat_map(|inner| files_in(inner, skip)));
    found.stable_sort_by(Ord::cmp);
    found
}
