//! Links to other squads' repositories, which the user's configuration names: their notes of knowledge.
//!
//! ```text
//! refs/squad/links/NAME    a commit of ours with one file, link.json: the notes, and the commit that they are from
//! ```
//!
//! Nothing else of a linked repository is taken: no object of it comes into ours, nothing of it runs, and its own links are
//! not followed. It is fetched when the user asks for it, and stays as it is until then.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::compile::{in_force, suspicion};
use crate::env::Env;
use crate::error::Failure;
use crate::git::ForeignRepository;
use crate::model::{Decision, DecisionId, IntoMap, IntoSet, NoteEvidence, NoteLink, Sort, Source, from_json};
use crate::ops::Project;
use crate::ops::ledger::contents as ledger;
use crate::ops::ledger::journal::writer;
use crate::ops::team::evidence::{LARGEST_SEARCH, NOT_SEARCHED, changed_file};
use crate::ops::team::preset::{check_url, without_password};
use crate::ops::team::projects;
use crate::ops::team::workspace::git_environment;
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
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) git: String,
    /// The commit that its notes are from. `None`: it was not fetched yet, or from another address.
    pub(crate) commit: Option<String>,
    pub(crate) notes: Vec<LinkedNote>,
}

impl Link {
    /// The source of one of its notes.
    pub(crate) fn source_of(&self, linked: &LinkedNote) -> NoteLink {
        let commit = self.commit.clone().unwrap_or_default();
        NoteLink { name: self.name.clone(), git: self.git.clone(), commit, path: linked.path.clone() }
    }
}

/// The configured links. Reads nothing if there are none.
pub(crate) fn all(project: &Project) -> Result<Vec<Link>, Failure> {
    let links = project.settings.links.iter().map(|(name, git)| {
        let git = without_password(git);
        let fetched = fetched(project, name)?.filter(|fetched| fetched.git == git);
        let (commit, notes) = fetched.map(|fetched| (fetched.commit, fetched.notes)).unzip();
        Ok(Link { name: name.clone(), git, commit, notes: notes.unwrap_or_default() })
    });
    links.collect()
}

/// The ids of this project's own notes, also of those that it has retired: no link brings them back. Looks into the ledger
/// only where a link has notes.
fn own_ids(project: &Project, links: &[Link]) -> Result<BTreeSet<DecisionId>, Failure> {
    let mut ids: BTreeSet<DecisionId> = project.team.knowledge.iter().map(|note| note.id.clone()).into_set();
    if links.iter().any(|link| !link.notes.is_empty()) {
        let logged = ledger::decisions(&project.repository, &project.ledger_prefix())?;
        ids.extend(logged.into_iter().map(|logged| logged.decision.id));
    }
    Ok(ids)
}

/// The notes of links that are not this project's own, each once where two links lead to one repository. One link's note
/// does not hide another's: ids are what their authors wrote.
pub(crate) fn notes<'l>(project: &Project, links: &'l [Link]) -> Result<Vec<(&'l Link, &'l LinkedNote)>, Failure> {
    let own = own_ids(project, links)?;
    let mut known: BTreeMap<&DecisionId, Vec<&Decision>> = BTreeMap::new();
    let mut notes = Vec::new();
    for link in links {
        for linked in link.notes.iter().filter(|linked| !own.contains(&linked.note.id)) {
            let same = known.entry(&linked.note.id).or_default();
            if !same.contains(&&linked.note) {
                same.push(&linked.note);
                notes.push((link, linked));
            }
        }
    }
    Ok(notes)
}

/// What cannot be read counts as not fetched: the next sync replaces it.
fn fetched(project: &Project, name: &str) -> Result<Option<Fetched>, Failure> {
    let file = project.repository.kept_file(&format!("{REFERENCES}{name}"), FILE, LARGEST)?;
    Ok(file.and_then(|bytes| from_json(bytes).ok()))
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
    let repository = &project.repository;
    let stray = |name: &String| {
        let name = name.strip_prefix(REFERENCES).unwrap_or_default();
        !project.settings.links.contains_key(name)
    };
    let old: Vec<String> = repository.references_below(REFERENCES)?.into_iter().filter(stray).collect();
    repository.delete_references(&old)?;
    let links = all(project)?.into_iter().map(|link| {
        repository.damage().activity().begin(format!("fetching the notes of {}", link.name));
        let git = &project.settings.links[&link.name];
        match update(env, project, &link, git) {
            Ok(synced) => synced,
            Err(failure) => LinkSync {
                problem: Some(Redactor::new([]).text(&failure.message, &mut Vec::new())),
                notes: link.notes.len(),
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
    let address = address(env, git)?;
    let foreign = ForeignRepository::fetch(&address, &git_environment(env, &project.folder.root))?;
    let mut synced = LinkSync { name: link.name.clone(), git: link.git.clone(), ..LinkSync::default() };
    let notes = read(&foreign, &mut synced.left_out)?;
    let own = own_ids(project, &[Link { notes: notes.clone(), ..link.clone() }])?;
    for LinkedNote { note, path, stale } in &notes {
        let reason = match (own.contains(&note.id), suspicion(note, path), stale) {
            (true, ..) => "this project's own".to_owned(),
            (false, Some(reason), _) => reason,
            (false, None, Some(_)) => "stale".to_owned(),
            (false, None, None) => continue,
        };
        *synced.left_out.entry(reason).or_default() += 1;
    }
    let ids = |notes: &[LinkedNote]| notes.iter().map(|known| known.note.id.clone()).into_set();
    let (before, after) = (ids(&link.notes), ids(&notes));
    (synced.added, synced.removed) = (after.difference(&before).count(), before.difference(&after).count());
    (synced.notes, synced.commit) = (notes.len(), Some(foreign.commit().to_owned()));
    let at = env.clock.now();
    let fetched = Fetched { git: link.git.clone(), commit: foreign.commit().to_owned(), at, notes };
    let text = serde_json::to_vec_pretty(&fetched).map_err(|error| Failure::failed(error.to_string()))?;
    let message = format!("squad: link {}\n\nLink-Address: {}\nLink-Commit: {}\n", link.name, link.git, fetched.commit);
    let reference = format!("{REFERENCES}{}", link.name);
    if !project.repository.keep_file(&reference, (FILE, text), &message, &writer(), at)? {
        return Err(Failure::failed("another sync fetched it at the same time"));
    }
    Ok(synced)
}

/// Where git fetches from: a URL, a folder, or the user's project `@NAME`.
fn address(env: &Env, git: &str) -> Result<String, Failure> {
    let folder = match git.strip_prefix('@') {
        Some(name) => Some(projects::find(env, name)?.path),
        None => match (git.strip_prefix("~/"), env.variable("HOME")) {
            (Some(inner), Some(home)) => Some(Path::new(home).join(inner)),
            _ => Some(PathBuf::from(git)).filter(|path| path.is_absolute()),
        },
    };
    match folder {
        Some(folder) => Ok(folder.display().to_string()),
        None => check_url(git).map(|()| git.to_owned()),
    }
}

/// The notes in force at the commit that was fetched.
fn read(foreign: &ForeignRepository, left_out: &mut BTreeMap<String, usize>) -> Result<Vec<LinkedNote>, Failure> {
    let mut found = None;
    for folder in store::FOLDERS {
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
    let files = texts(foreign, folder, KNOWLEDGE, &mut omit)?;
    let notes = parse::decisions(&files);
    let notes: Vec<Decision> = in_force(&notes).into_iter().cloned().collect();
    let decisions = OnceCell::new();
    let is_in_force = |id: &DecisionId| {
        let read = || {
            let files = texts(foreign, folder, "decisions", &mut |_, _| {}).unwrap_or_default();
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
            false => stale(foreign, &note, &is_in_force, &budget)?,
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
    foreign: &ForeignRepository,
    decision: &Decision,
    is_in_force: &impl Fn(&DecisionId) -> bool,
    budget: &Cell<u64>,
) -> Result<Option<String>, Failure> {
    for text in decision.note.iter().flat_map(|note| &note.evidence) {
        let changed = match NoteEvidence::parse(text) {
            None => Some("its evidence is none that squad knows".to_owned()),
            Some(NoteEvidence::File { path, lines, hash }) => {
                let text = || foreign.read(&path, LARGEST_SOURCE).ok().flatten();
                changed_file((&path, lines, &hash), foreign.id_at(&path)?, text, budget)
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
