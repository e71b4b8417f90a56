//! What was made of the team's files, kept in `.git/squad/cache` for the next time.
//!
//! ```text
//! PLACE.index      what the files of one team looked like, the key of what they hold, and the settings among them
//! KEY.team         what files of this content are parsed to; KEY is the content's hash
//! KEY.agents       what `squad agents` says; KEY is the hash of all it was made from
//! ```
//!
//! Nothing here is authoritative: whatever is missing, damaged, of another build or in doubt is read and made again,
//! and nothing but time is lost. An unchanged team costs a look at each of its files. A touched one is read and hashed,
//! and parsed only when its content is new.

mod fingerprint;
mod kept;

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use self::fingerprint::Fingerprint;
pub(in crate::ops) use self::kept::CacheFolder;
use crate::env::Env;
use crate::model::{Problem, Severity, Source, Team};
use crate::parse::{self, Files};
use crate::store::{self, TeamFolder};

/// Parsed teams that are kept, and what else is made of one: a few branches' worth.
const TEAMS: usize = 8;
/// Places that are remembered: teams and work trees.
const PLACES: usize = 64;

const INDEX: &str = "index";
const TEAM: &str = "team";

#[derive(Clone)]
pub(in crate::ops) struct Cache {
    cache_folder: CacheFolder,
}

/// A team's files as they are now: read, or known to be what they were.
pub(in crate::ops) struct CachedTeam {
    folder: TeamFolder,
    index: Index,
    /// Whether everything could be read.
    is_whole: bool,
    /// `None` where nothing had to be read.
    files: Option<Files>,
}

#[derive(Serialize, Deserialize)]
struct Index {
    /// `None` when the team cannot be judged by its looks.
    fingerprint: Option<Fingerprint>,
    /// Of what is made of the files.
    key: String,
    /// The files that are settings.
    config: Files,
    /// What the store said; the parser's are with the team.
    problems: Vec<Problem>,
}

/// What files of some content are parsed to.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Parsed {
    team: Team,
    /// Of the decisions, in their order: where they stand is no part of them in JSON.
    sources: Vec<Option<Source>>,
    /// Of those in archives.
    archived_sources: Vec<Option<Source>>,
    problems: Vec<Problem>,
}

impl Cache {
    /// `local` is squad's folder in the repository.
    pub(in crate::ops) fn new(env: &Env, local: &Path) -> Self {
        Self { cache_folder: CacheFolder::new(local.join("cache"), env.program.as_deref()) }
    }

    pub(in crate::ops) fn look_up(&self, folder: &TeamFolder) -> CachedTeam {
        let name = place(folder);
        let index = self.cache_folder.read(&name, INDEX);
        if let Some(index) =
            index.filter(|index: &Index| index.fingerprint.as_ref().is_some_and(|found| found.holds(folder)))
        {
            return CachedTeam { folder: folder.clone(), index, is_whole: true, files: None };
        }
        let fingerprint = self.cache_folder.prepare().and_then(|cache| Fingerprint::begin(cache, folder));
        let (files, problems) = store::read(folder);
        // What could not be read may be readable the next time, and looks the same.
        let is_whole = !problems.iter().any(|problem| problem.severity == Severity::Error);
        let fingerprint = fingerprint.filter(|_| is_whole).and_then(|found| found.at_files(folder, &files));
        let index = Index { fingerprint, key: key(&files), config: files.configuration(), problems };
        if index.fingerprint.is_some() && self.cache_folder.write(&name, INDEX, &index) {
            self.cache_folder.prune(INDEX, PLACES);
        }
        CachedTeam { folder: folder.clone(), index, is_whole, files: Some(files) }
    }

    pub(in crate::ops) fn team(&self, cached: CachedTeam) -> (Team, Vec<Problem>) {
        let known: Option<Parsed> = self.cache_folder.read(&cached.index.key, TEAM);
        let parsed = known.unwrap_or_else(|| {
            let files = cached.files.unwrap_or_else(|| store::read(&cached.folder).0);
            // Looked at again, the files may be others.
            let key = key(&files);
            let parsed = parse(&files);
            // Where the looks do not count, there is no place for a cache or no telling who reads what.
            if cached.index.fingerprint.is_some() {
                self.keep(TEAM, &key, &parsed);
            }
            parsed
        });
        parsed.whole()
    }

    /// What was kept under a key.
    pub(in crate::ops) fn kept<T: DeserializeOwned>(&self, kind: &str, key: &str) -> Option<T> {
        self.cache_folder.read(key, kind)
    }

    /// The newest few of a kind are kept.
    pub(in crate::ops) fn keep<T: Serialize>(&self, kind: &str, key: &str, value: &T) {
        if self.cache_folder.write(key, kind, value) {
            self.cache_folder.prune(kind, TEAMS);
        }
    }
}

impl CachedTeam {
    /// Identifies the content of the team's files; `None` where some of them could not be read.
    pub(in crate::ops) fn key(&self) -> Option<&str> {
        self.is_whole.then_some(&*self.index.key)
    }

    pub(in crate::ops) fn config(&self) -> &Files {
        &self.index.config
    }

    pub(in crate::ops) fn problems(&self) -> &[Problem] {
        &self.index.problems
    }
}

fn parse(files: &Files) -> Parsed {
    let (mut team, problems) = parse::team(files);
    let sources = team.decisions.iter_mut().map(|decision| decision.source.take()).collect();
    let archived_sources = team.archived.iter_mut().map(|decision| decision.source.take()).collect();
    Parsed { team, sources, archived_sources, problems }
}

impl Parsed {
    fn whole(self) -> (Team, Vec<Problem>) {
        let Self { mut team, sources, archived_sources, problems } = self;
        let decisions = team.decisions.iter_mut().zip(sources);
        for (decision, source) in decisions.chain(team.archived.iter_mut().zip(archived_sources)) {
            decision.source = source;
        }
        (team, problems)
    }
}

/// One team folder in one work tree; links in its path are resolved already.
fn place(folder: &TeamFolder) -> String {
    short(blake3::hash(folder.path.as_os_str().as_encoded_bytes()))
}

/// The content of everything that is parsed.
fn key(files: &Files) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in std::iter::once(&files.folder).chain(files.texts.iter().flat_map(|(path, text)| [path, text])) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    short(hasher.finalize())
}

/// The key of what is made from several things.
pub(in crate::ops) fn key_of(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    short(hasher.finalize())
}

/// 128 bits.
fn short(hash: blake3::Hash) -> String {
    hash.to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests;
