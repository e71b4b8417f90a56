//! Caches what is parsed and compiled from the team's files, in `.git/squad/cache`.
//!
//! ```text
//! TEAM.index       the fingerprint of a team's files, their key, and the settings among them; TEAM is the path's hash
//! KEY.team         the parsed team, without its notes of knowledge; KEY is the hash of its files
//! KEY.notes        an index of those notes, if there are any
//! LINK.link        an index of a linked repository's notes; LINK is the hash of the link's name
//! KEY.agents       the output of `squad agents`; KEY is the hash of everything it is made from
//! ```
//!
//! The cache is never authoritative: an entry that is missing, damaged or from another build is made again. The texts of
//! notes are looked at only when they are read, so a damaged one fails the command, and the next one makes the index again.
//! An unchanged team costs one `stat` per file. A touched team is read and hashed, and parsed only if its content is new.

mod fingerprint;
mod folder;

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(in crate::ops) use self::fingerprint::FileStamps;
use self::fingerprint::Fingerprint;
pub(in crate::ops) use self::fingerprint::look;
pub(in crate::ops) use self::folder::CacheFolder;
use crate::compile::NoteIndex;
use crate::env::Env;
use crate::model::{Decision, Problem, Severity, Source, Team};
use crate::parse::{self, Files};
use crate::store::{self, TeamFolder};

/// The number of cached values of each kind: enough for a few branches.
const MAX_VALUES: usize = 8;
/// The number of cached indexes, one for each team and work tree.
const MAX_INDEXES: usize = 64;

const INDEX: &str = "index";
const TEAM: &str = "team";
const NOTES: &str = "notes";
const LINK: &str = "link";

#[derive(Clone)]
pub(in crate::ops) struct Cache {
    cache_folder: CacheFolder,
}

/// The current state of a team's files: read, or known to be unchanged.
pub(in crate::ops) struct CachedTeam {
    folder: TeamFolder,
    index: Index,
    /// Whether everything could be read.
    is_complete: bool,
    /// `None` if nothing had to be read.
    files: Option<Files>,
}

#[derive(Serialize, Deserialize)]
struct Index {
    /// `None` if metadata cannot tell whether the files have changed.
    fingerprint: Option<Fingerprint>,
    /// The hash of the files.
    key: String,
    /// The settings files.
    config: Files,
    members: usize,
    /// Problems while reading, and unfinished merges; other problems are stored with the team.
    problems: Vec<Problem>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Parsed {
    team: Team,
    /// The sources of the decisions, in their order: a decision's JSON does not contain its source.
    sources: Vec<Option<Source>>,
    /// The same for archived decisions.
    archived_sources: Vec<Option<Source>>,
    /// How many notes of knowledge there are.
    notes: usize,
    problems: Vec<Problem>,
}

/// A note of knowledge in an index, with its source.
pub(in crate::ops) type OwnNote = (Decision, Option<Source>);

impl Cache {
    /// `local` is squad's folder in the repository.
    pub(in crate::ops) fn new(env: &Env, local: &Path) -> Self {
        Self { cache_folder: CacheFolder::new(local.join("cache"), env.program.as_deref()) }
    }

    /// See [`CacheFolder::read_only`].
    pub(in crate::ops) fn read_only(self) -> Self {
        Self { cache_folder: self.cache_folder.read_only() }
    }

    pub(in crate::ops) fn look_up(&self, folder: &TeamFolder) -> CachedTeam {
        let name = index_name(folder);
        let index = self.cache_folder.read(&name, INDEX);
        if let Some(index) =
            index.filter(|index: &Index| index.fingerprint.as_ref().is_some_and(|found| found.matches(folder)))
        {
            return CachedTeam { folder: folder.clone(), index, is_complete: true, files: None };
        }
        let fingerprint = self.cache_folder.prepare().and_then(|cache| Fingerprint::begin(cache, folder));
        let (files, mut problems) = store::read(folder);
        problems.extend(parse::conflicts(&files));
        // A file that could not be read may become readable without a change of its metadata.
        let is_complete = !problems.iter().any(|problem| problem.severity == Severity::Error);
        let fingerprint = fingerprint.filter(|_| is_complete).and_then(|found| found.with_files(folder, &files));
        let (key, config, members) = (key(&files), files.configuration(), parse::members(&files));
        let index = Index { fingerprint, key, config, members, problems };
        if index.fingerprint.is_some() && self.cache_folder.write(&name, INDEX, &index) {
            self.cache_folder.prune(INDEX, MAX_INDEXES);
        }
        CachedTeam { folder: folder.clone(), index, is_complete, files: Some(files) }
    }

    /// The team and its notes of knowledge, which only few commands read one by one.
    pub(in crate::ops) fn team(&self, cached: CachedTeam) -> (Team, Option<NoteIndex>, Vec<Problem>) {
        let known: Option<Parsed> = self.cache_folder.read(&cached.index.key, TEAM);
        let known = known.and_then(|parsed| {
            let notes = (parsed.notes > 0).then(|| self.notes(NOTES, &cached.index.key));
            let is_whole = notes.as_ref().is_none_or(|notes| notes.as_ref().is_some_and(|n| n.len() == parsed.notes));
            is_whole.then(|| (parsed, notes.flatten()))
        });
        let (parsed, notes) = known.unwrap_or_else(|| {
            let files = cached.files.unwrap_or_else(|| store::read(&cached.folder).0);
            // The files may have changed since the look-up.
            let key = key(&files);
            let (parsed, notes) = parse(&files);
            // Without a fingerprint, the cache folder cannot be written, or nothing would be found in it.
            if cached.index.fingerprint.is_some() {
                if let Some(notes) = &notes {
                    self.put_notes(NOTES, MAX_VALUES, &key, notes);
                }
                self.put(TEAM, &key, &parsed);
            }
            (parsed, notes)
        });
        let (team, problems) = parsed.into_team();
        (team, notes, problems)
    }

    /// The notes of a link, if they are cached.
    pub(in crate::ops) fn link(&self, name: &str) -> Option<NoteIndex> {
        self.notes(LINK, &link_name(name))
    }

    pub(in crate::ops) fn put_link(&self, name: &str, notes: &NoteIndex) {
        if self.cache_folder.prepare().is_some() {
            self.put_notes(LINK, MAX_INDEXES, &link_name(name), notes);
        }
    }

    pub(in crate::ops) fn remove_link(&self, name: &str) {
        self.cache_folder.remove(&link_name(name), LINK);
    }

    fn notes(&self, kind: &str, name: &str) -> Option<NoteIndex> {
        let (index, texts) = self.cache_folder.open(name, kind)?;
        NoteIndex::read(index, Box::new(texts))
    }

    fn put_notes(&self, kind: &str, most: usize, name: &str, notes: &NoteIndex) {
        let Some((index, texts)) = notes.written() else { return };
        if self.cache_folder.write_bytes(name, kind, (index, &texts)) {
            self.cache_folder.prune(kind, most);
        }
    }

    pub(in crate::ops) fn get<T: DeserializeOwned>(&self, kind: &str, key: &str) -> Option<T> {
        self.cache_folder.read(key, kind)
    }

    /// Stores a value, and removes all but the newest few of its kind.
    pub(in crate::ops) fn put<T: Serialize>(&self, kind: &str, key: &str, value: &T) {
        if self.cache_folder.write(key, kind, value) {
            self.cache_folder.prune(kind, MAX_VALUES);
        }
    }
}

impl CachedTeam {
    /// The hash of the team's files; `None` if some of them could not be read.
    pub(in crate::ops) fn key(&self) -> Option<&str> {
        self.is_complete.then_some(&*self.index.key)
    }

    pub(in crate::ops) fn config(&self) -> &Files {
        &self.index.config
    }

    /// How many members the roster has.
    pub(in crate::ops) fn members(&self) -> usize {
        self.index.members
    }

    pub(in crate::ops) fn problems(&self) -> &[Problem] {
        &self.index.problems
    }
}

fn parse(files: &Files) -> (Parsed, Option<NoteIndex>) {
    let (mut team, notes, problems) = parse::team_and_notes(files);
    let taken = |decisions: &mut [Decision]| decisions.iter_mut().map(|decision| decision.source.take()).collect();
    let (sources, archived_sources) = (taken(&mut team.decisions), taken(&mut team.archived));
    let with_source = |mut note: Decision| {
        let source = note.source.take();
        (note, source)
    };
    let notes: Vec<OwnNote> = notes.into_iter().map(with_source).collect();
    let index = (!notes.is_empty()).then(|| NoteIndex::new(String::new(), &notes, |(note, _)| note));
    (Parsed { team, sources, archived_sources, notes: notes.len(), problems }, index)
}

impl Parsed {
    fn into_team(self) -> (Team, Vec<Problem>) {
        let Self { mut team, sources, archived_sources, problems, .. } = self;
        let decisions = team.decisions.iter_mut().zip(sources);
        for (decision, source) in decisions.chain(team.archived.iter_mut().zip(archived_sources)) {
            decision.source = source;
        }
        (team, problems)
    }
}

/// A link belongs to its repository, and so does the cache.
fn link_name(name: &str) -> String {
    short(blake3::hash(name.as_bytes()))
}

/// The name of the index for a team folder in a work tree. Links in the folder's path are already resolved.
fn index_name(folder: &TeamFolder) -> String {
    short(blake3::hash(folder.path.as_os_str().as_encoded_bytes()))
}

/// The hash of all files that are parsed.
fn key(files: &Files) -> String {
    key_of(std::iter::once(&files.folder).chain(files.texts.iter().flat_map(|(path, text)| [path, text])))
}

/// The hash of several texts.
pub(in crate::ops) fn key_of<'a>(parts: impl IntoIterator<Item = &'a String>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    short(hasher.finalize())
}

/// The first 128 bits, in hexadecimal.
fn short(hash: blake3::Hash) -> String {
    hash.to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests;
