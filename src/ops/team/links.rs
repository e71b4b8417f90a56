//! Links to other squads' repositories, which the user's configuration names: their notes of knowledge.
//!
//! ```text
//! refs/squad/links/NAME    a commit of ours with link.json: the notes, and the commit that they are from; and
//!                          previous-link.json: the same of the commit that was fetched before
//! ```
//!
//! Nothing else of a linked repository is taken: no object of it comes into ours, nothing of it runs, and its own links are
//! not followed. It is fetched when the user asks for it, and stays as it is until then.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::compile::{NoteIndex, in_force, suspicion};
use crate::env::Env;
use crate::error::Failure;
use crate::git::{ForeignRepository, previous};
use crate::model::{Decision, DecisionId, IntoMap, IntoSet, NoteEvidence, NoteLink, Sort, Source, from_json, to_json};
use crate::ops::ledger::contents as ledger;
use crate::ops::ledger::journal::writer;
use crate::ops::team::evidence::{LARGEST_SEARCH, NOT_SEARCHED, changed_file};
use crate::ops::team::preset::{check_url, without_password};
use crate::ops::team::project::damaged_index;
use crate::ops::team::projects;
use crate::ops::team::workspace::{below, git_environment, project_path};
use crate::ops::{Project, Workspace};
use crate::parse::{self, Files, KNOWLEDGE, text_of};
use crate::policy::Redactor;
use crate::store;

const REFERENCES: &str = "refs/squad/links/";
const FILE: &str = "link.json";
/// Bytes of that file.
const LARGEST: u64 = 64 << 20;
/// Notes of one link, bytes of one, and of all.
const MAX_NOTES: usize = 10_000;
const MAX_NOTE: u64 = 16 * 1024;
const MAX_BYTES: u64 = 16 << 20;
/// Pieces of evidence of one link that are looked at.
const MAX_EVIDENCE: usize = 20_000;
/// Bytes of a file that evidence names lines of.
const LARGEST_SOURCE: u64 = 16 << 20;

/// What was fetched by a link.
#[derive(Serialize, Deserialize)]
struct Fetched {
    /// The address as it is configured, without a password.
    git: String,
    commit: String,
    at: Timestamp,
    notes: Vec<LinkedNote>,
}

/// A note of a linked repository.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LinkedNote {
    pub(crate) note: Decision,
    /// Its file there.
    pub(crate) path: String,
    /// Why what it rests on no longer holds there.
    pub(crate) stale: Option<String>,
}

/// A link, as far as it is fetched.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) git: String,
    /// The commit that its notes are from. `None`: it was not fetched yet, or from another address.
    pub(crate) commit: Option<String>,
    notes: Option<NoteIndex>,
}

/// What an index of a link's notes was made from.
#[derive(Serialize, Deserialize)]
struct IndexedFrom {
    /// The commit of ours that holds them.
    tip: String,
    git: String,
    commit: String,
}

impl Link {
    /// The source of one of its notes.
    pub(crate) fn source_of(&self, linked: &LinkedNote) -> NoteLink {
        let commit = self.commit.clone().unwrap_or_default();
        NoteLink { name: self.name.clone(), git: self.git.clone(), commit, path: linked.path.clone() }
    }

    pub(in crate::ops) fn note_index(&self) -> Option<&NoteIndex> {
        self.notes.as_ref()
    }

    pub(crate) fn note(&self, place: usize) -> Result<LinkedNote, Failure> {
        self.notes.as_ref().and_then(|notes| notes.get(place)).ok_or_else(damaged_index)
    }

    /// Whether a note is the same as another link's, wherever they are kept.
    fn has_same(&self, place: usize, (other, at): (&Self, usize)) -> Result<bool, Failure> {
        let [own, others] = [(self, place), (other, at)].map(|(link, place)| link.notes.as_ref()?.line(place));
        Ok(own == others || self.note(place)?.note == other.note(at)?.note)
    }

    /// The ids of its notes in order, and whether they are in force.
    fn ids(&self) -> impl Iterator<Item = (&str, bool)> {
        self.notes.iter().flat_map(NoteIndex::ids)
    }

    fn count(&self) -> usize {
        self.notes.as_ref().map_or(0, NoteIndex::len)
    }
}

/// The configured links. Reads nothing if there are none, and no note.
pub(crate) fn all(project: &Project) -> Result<Vec<Link>, Failure> {
    let links = project.settings.links.iter().map(|(name, git)| {
        let git = without_password(git);
        let fetched = fetched(project, name)?.filter(|(from, _)| from.git == git);
        let (commit, notes) = fetched.map(|(from, notes)| (from.commit, notes)).unzip();
        Ok(Link { name: name.clone(), git, commit, notes })
    });
    links.collect()
}

/// The ids of this project's own notes, also of those that it has retired: no link brings them back.
fn own_ids(project: &Project) -> Result<BTreeSet<String>, Failure> {
    let known = project.note_index().into_iter().flat_map(NoteIndex::ids).map(|(id, _)| id.to_owned());
    let logged = ledger::decisions(&project.repository, &project.ledger_prefix())?;
    Ok(known.chain(logged.into_iter().map(|logged| logged.decision.id.to_string())).into_set())
}

/// The notes of links that are not this project's own, each once where two links lead to one repository: a link, and a place
/// in its index. One link's note does not hide another's: ids are what their authors wrote. Looks into the ledger only
/// where a link has notes.
pub(in crate::ops) fn places(project: &Project, links: &[Link]) -> Result<Vec<(usize, usize)>, Failure> {
    if links.iter().all(|link| link.count() == 0) {
        return Ok(Vec::new());
    }
    let own = own_ids(project)?;
    let mut known: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    let mut places = Vec::new();
    for (number, link) in links.iter().enumerate() {
        for (place, (id, is_in_force)) in link.ids().enumerate() {
            if !is_in_force || own.contains(id) {
                continue;
            }
            let same = known.entry(id).or_default();
            if !same.iter().try_fold(false, |is_known, (other, at)| {
                Ok::<_, Failure>(is_known || links[*other].has_same(*at, (link, place))?)
            })? {
                same.push((number, place));
                places.push((number, place));
            }
        }
    }
    Ok(places)
}

/// Those notes, all of them read.
pub(crate) fn notes<'l>(project: &Project, links: &'l [Link]) -> Result<Vec<(&'l Link, LinkedNote)>, Failure> {
    let places = places(project, links)?;
    places.into_iter().map(|(link, place)| Ok((&links[link], links[link].note(place)?))).collect()
}

/// What cannot be read counts as not fetched: the next sync replaces it.
fn fetched(project: &Project, name: &str) -> Result<Option<(IndexedFrom, NoteIndex)>, Failure> {
    let Some(tip) = project.repository.kept_commit(&format!("{REFERENCES}{name}"))? else { return Ok(None) };
    let cached = project.cache.link(name).and_then(|notes| {
        let from = from_json::<IndexedFrom>(notes.about()).ok()?;
        (from.tip == tip).then_some((from, notes))
    });
    if cached.is_some() {
        return Ok(cached);
    }
    let file = project.repository.file_at(&tip, FILE, LARGEST)?;
    let Some(Fetched { git, commit, notes, .. }) = file.and_then(|bytes| from_json(bytes).ok()) else {
        return Ok(None);
    };
    let from = IndexedFrom { tip, git, commit };
    let about = to_json(&from).map_err(|error| Failure::failed(error.to_string()))?;
    let notes = NoteIndex::new(about, &notes, |linked: &LinkedNote| &linked.note);
    project.cache.put_link(name, &notes);
    Ok(Some((from, notes)))
}

/// The configured links that are fetched, as they were before that brought another commit, and that commit; what they are
/// called does not tell them from how they are now.
pub(crate) fn before(project: &Project, links: &[Link]) -> Result<Vec<(Link, Option<String>)>, Failure> {
    let before = |link: &Link| {
        let tip = project.repository.kept_commit(&format!("{REFERENCES}{}", link.name))?;
        let read = |tip: String| project.repository.file_at(&tip, &previous(FILE), LARGEST);
        let file = tip.filter(|_| link.commit.is_some()).map(read).transpose()?.flatten();
        let fetched = file.and_then(|bytes| from_json::<Fetched>(bytes).ok()).filter(|fetched| fetched.git == link.git);
        let (commit, notes) = fetched.map(|fetched| (fetched.commit, fetched.notes)).unzip();
        let notes = notes.map(|notes| NoteIndex::new(String::new(), &notes, |linked: &LinkedNote| &linked.note));
        let (name, git, shown) = (link.name.clone(), link.git.clone(), link.commit.clone());
        Ok((Link { name, git, commit: shown, notes }, commit))
    };
    links.iter().map(before).collect()
}

/// What became of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct LinkSync {
    pub(crate) name: String,
    pub(crate) git: String,
    pub(crate) commit: Option<String>,
    pub(crate) notes: usize,
    /// Notes that came, and that are gone.
    pub(crate) added: usize,
    pub(crate) removed: usize,
    /// Notes that were not taken, or that no agent is told, by the reason.
    pub(crate) left_out: BTreeMap<String, usize>,
    /// Why it was not fetched; what was fetched before stays.
    pub(crate) problem: Option<String>,
}

/// Fetches all links anew, and deletes what is kept of those that are not configured any more.
pub(crate) fn sync(env: &Env, project: &Project) -> Result<Vec<LinkSync>, Failure> {
    project.require_configuration()?;
    let repository = &project.repository;
    let stray = |name: &String| {
        let name = name.strip_prefix(REFERENCES).unwrap_or_default();
        !project.settings.links.contains_key(name)
    };
    let old: Vec<String> = repository.references_below(REFERENCES)?.into_iter().filter(stray).collect();
    repository.delete_references(&old)?;
    old.iter().filter_map(|name| name.strip_prefix(REFERENCES)).for_each(|name| project.cache.remove_link(name));
    let links = all(project)?.into_iter().map(|link| {
        repository.damage().activity().begin(format!("fetching the notes of {}", link.name));
        let git = &project.settings.links[&link.name];
        match update(env, project, &link, git) {
            Ok(synced) => synced,
            Err(failure) => LinkSync {
                problem: Some(Redactor::new([]).text(&failure.message, &mut Vec::new())),
                notes: link.count(),
                name: link.name,
                git: link.git,
                commit: link.commit,
                ..LinkSync::default()
            },
        }
    });
    Ok(links.collect())
}

fn update(env: &Env, project: &Project, link: &Link, git: &str) -> Result<LinkSync, Failure> {
    let (address, place) = address(env, git)?;
    let foreign = ForeignRepository::fetch(&address, &git_environment(env, &project.folder.root))?;
    let mut synced = LinkSync { name: link.name.clone(), git: link.git.clone(), ..LinkSync::default() };
    let notes = read(&foreign, &place, &mut synced.left_out)?;
    let own = if notes.is_empty() { BTreeSet::new() } else { own_ids(project)? };
    for LinkedNote { note, path, stale } in &notes {
        let reason = match (own.contains(note.id.as_str()), suspicion(note, path), stale) {
            (true, ..) => "this project's own".to_owned(),
            (false, Some(reason), _) => reason,
            (false, None, Some(_)) => "stale".to_owned(),
            (false, None, None) => continue,
        };
        *synced.left_out.entry(reason).or_default() += 1;
    }
    let before: BTreeSet<&str> = link.ids().map(|(id, _)| id).into_set();
    let after: BTreeSet<&str> = notes.iter().map(|known| known.note.id.as_str()).into_set();
    (synced.added, synced.removed) = (after.difference(&before).count(), before.difference(&after).count());
    (synced.notes, synced.commit) = (notes.len(), Some(foreign.commit().to_owned()));
    let at = env.clock.now();
    let fetched = Fetched { git: link.git.clone(), commit: foreign.commit().to_owned(), at, notes };
    let text = serde_json::to_vec_pretty(&fetched).map_err(|error| Failure::failed(error.to_string()))?;
    let message = format!("squad: link {}\n\nLink-Address: {}\nLink-Commit: {}\n", link.name, link.git, fetched.commit);
    let reference = format!("{REFERENCES}{}", link.name);
    let is_other = link.commit.as_ref() != Some(&fetched.commit);
    if !project.repository.keep_file(&reference, (FILE, text, is_other), &message, &writer(), at)? {
        return Err(Failure::failed("another sync fetched it at the same time"));
    }
    Ok(synced)
}

/// Where git fetches from, and the project's place in that repository: a URL, a folder, or the user's project `@NAME`.
fn address(env: &Env, git: &str) -> Result<(String, String), Failure> {
    let mut place = String::new();
    let folder = match git.strip_prefix('@') {
        Some(name) => {
            let Workspace { work_dir, folder, .. } = Workspace::find(env, &projects::find(env, name)?.path)?;
            place = project_path(&folder, &work_dir);
            Some(work_dir)
        }
        None => match (git.strip_prefix("~/"), env.variable("HOME")) {
            (Some(inner), Some(home)) => Some(Path::new(home).join(inner)),
            _ => Some(PathBuf::from(git)).filter(|path| path.is_absolute()),
        },
    };
    match folder {
        Some(folder) => Ok((folder.display().to_string(), place)),
        None => check_url(git).map(|()| (git.to_owned(), place)),
    }
}

/// The notes in force at the commit that was fetched.
fn read(
    foreign: &ForeignRepository,
    place: &str,
    left_out: &mut BTreeMap<String, usize>,
) -> Result<Vec<LinkedNote>, Failure> {
    let mut found = None;
    for folder in store::FOLDERS.map(|name| below(place, name)) {
        if found.is_none() && foreign.has(&format!("{folder}/{KNOWLEDGE}"))? {
            found = Some(folder);
        }
    }
    let Some(folder) = found else { return Ok(Vec::new()) };
    let mut omit = |reason: &str, count: usize| {
        if count > 0 {
            *left_out.entry(reason.to_owned()).or_default() += count;
        }
    };
    let files = texts(foreign, &folder, KNOWLEDGE, &mut omit)?;
    let notes = parse::decisions(&files);
    let notes: Vec<Decision> = in_force(&notes).into_iter().cloned().collect();
    let decisions = OnceCell::new();
    let is_in_force = |id: &DecisionId| {
        let read = || {
            let files = texts(foreign, &folder, "decisions", &mut |_, _| {}).unwrap_or_default();
            let decisions = parse::decisions(&files);
            in_force(&decisions).into_iter().map(|decision| decision.id.clone()).into_set()
        };
        decisions.get_or_init(read).contains(id)
    };
    let budget = Cell::new(LARGEST_SEARCH);
    let (mut linked, mut pieces) = (Vec::new(), 0);
    for mut note in notes {
        let path = note.source.take().map(|source: Source| source.file).unwrap_or_default();
        pieces += note.note.iter().map(|note| note.evidence.len()).sum::<usize>();
        let stale = match pieces > MAX_EVIDENCE {
            true => Some(NOT_SEARCHED.to_owned()),
            false => stale((foreign, place), &note, &is_in_force, &budget)?,
        };
        linked.push(LinkedNote { note, path, stale });
    }
    Ok(linked)
}

/// Files of single decisions or notes, the newest first, as many as are taken.
fn texts(
    foreign: &ForeignRepository,
    folder: &str,
    kind: &str,
    omit: &mut impl FnMut(&str, usize),
) -> Result<Files, Failure> {
    let (mut all, passed_over) = foreign.files(&format!("{folder}/{kind}"))?;
    omit("in a folder that is too large", passed_over.len());
    let inner = |path: &str| path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/').to_owned();
    all.retain(|file| parse::holds_decisions(&inner(&file.path)));
    // Their paths begin with the date.
    all.stable_sort_by(|one, other| other.path.cmp(&one.path));
    let known = all.len();
    all.retain(|file| file.is_plain && file.size <= MAX_NOTE);
    omit("too large, or no plain file", known - all.len());
    let known = all.len();
    all.truncate(MAX_NOTES);
    let contents = foreign.contents(&all, MAX_BYTES)?;
    omit("older than as many as are read", known - contents.len());
    let texts = all.iter().zip(contents).map(|(file, content)| (inner(&file.path), text_of(content).0)).into_map();
    Ok(Files { folder: folder.to_owned(), texts })
}

/// Why what a note rests on no longer holds in its own repository. Its history was not fetched, so commits count.
fn stale(
    (foreign, place): (&ForeignRepository, &str),
    decision: &Decision,
    is_in_force: &impl Fn(&DecisionId) -> bool,
    budget: &Cell<u64>,
) -> Result<Option<String>, Failure> {
    for text in decision.note.iter().flat_map(|note| &note.evidence) {
        let changed = match NoteEvidence::parse(text) {
            None => Some("its evidence is none that squad knows".to_owned()),
            Some(NoteEvidence::File { path, lines, hash }) => {
                let full = below(place, &path);
                let text = || foreign.read(&full, LARGEST_SOURCE).ok().flatten();
                changed_file((&path, lines, &hash), foreign.id_at(&full)?, text, budget)
            }
            Some(NoteEvidence::Decision(id)) => {
                (!is_in_force(&id)).then(|| format!("decision {id} is not in force any more"))
            }
            Some(NoteEvidence::Commit(_) | NoteEvidence::Run(_)) => None,
        };
        if changed.is_some() {
            return Ok(changed);
        }
    }
    Ok(None)
}
