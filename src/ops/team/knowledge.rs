//! Notes of knowledge as they are offered to agents: which there are, whether what they rest on still holds, and whether
//! they apply to this project.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::compile::{NoteIndex, NoteRank, OfferedNote, Task, in_force, suspicion};
use crate::error::Failure;
use crate::model::{Decision, DecisionId, Note, NoteEvidence, list};
use crate::ops::Project;
use crate::ops::team::evidence::{LARGEST_SEARCH, changed_file};
use crate::ops::team::links::{self, Link, LinkedNote};
use crate::ops::team::survey::{self, Stack};
use crate::ops::team::workspace::{below, project_path};
use crate::review::{self, matcher};

/// The notes that are about a task, from here and from linked repositories, with why agents are not told some of them.
pub(crate) fn offered(project: &Project, task: &Task) -> Result<Vec<OfferedNote>, Failure> {
    chosen(project, |notes| Ok(task.rank_indexed(&notes.indexes, &notes.places)))
}

/// What the last fetch of another commit by a link has changed in what prompts may hold.
#[derive(Debug, Serialize)]
pub(crate) struct LinkChange {
    pub(crate) link: String,
    /// The commits; `None`: it was fetched once.
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    pub(crate) diff: String,
}

/// Of all notes that agents may be told, or only of those that are about a task.
pub(crate) fn changes_by_links(project: &Project, task: Option<&Task>) -> Result<Vec<LinkChange>, Failure> {
    let now = links::all(project)?;
    let (before, commits): (Vec<Link>, Vec<Option<String>>) = links::before(project, &now)?.into_iter().unzip();
    let told = |links: &[Link]| -> Result<Vec<OfferedNote>, Failure> {
        let offered = chosen_of(project, links, |notes| {
            Ok(match task {
                Some(task) => task.rank_indexed(&notes.indexes, &notes.places),
                None => (0..notes.places.len()).map(|index| NoteRank { index, ..NoteRank::default() }).collect(),
            })
        })?;
        Ok(offered.into_iter().filter(|note| note.objection.is_none()).collect())
    };
    let (old, new) = (told(&before)?, told(&now)?);
    let text = |notes: &[OfferedNote], name: &str| {
        let of_link = notes.iter().filter(|note| note.link.as_ref().is_some_and(|link| link.name == name));
        of_link.map(OfferedNote::render).collect::<String>()
    };
    let change = |(link, before): (&Link, Option<String>)| LinkChange {
        diff: review::diff(&text(&old, &link.name), &text(&new, &link.name)),
        link: link.name.clone(),
        before,
        after: link.commit.clone(),
    };
    Ok(now.iter().zip(commits).map(change).collect())
}

/// The notes with all words of a query, as an agent may read them.
pub(crate) fn found(project: &Project, query: &str) -> Result<Vec<String>, Failure> {
    const MOST: usize = 10;
    let words = query.to_lowercase().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let has = |text: &str, words: &[String]| words.iter().all(|word| text.contains(word.as_str()));
    let is_meant = |note: &Decision| {
        let text = format!("{}\n{}\n{}", note.title, note.text, note.tags.join(" "));
        has(&text.to_lowercase(), &words)
    };
    // A note's line in the index is JSON: what it says is in there, escaped. Most notes need not be parsed then.
    let escaped: Vec<String> = words.iter().map(|word| escaped(word)).collect();
    let may_be_meant = |line: &[u8]| has(&String::from_utf8_lossy(line).to_lowercase(), &escaped);
    let found = chosen(project, |notes| {
        let mut meant = Vec::new();
        for index in 0..notes.places.len() {
            if meant.len() == MOST {
                break;
            }
            if notes.line(index).is_none_or(|line| may_be_meant(&line)) && is_meant(&notes.read(index)?.0) {
                meant.push(NoteRank { index, ..NoteRank::default() });
            }
        }
        Ok(meant)
    })?;
    let told = found.iter().filter(|note| note.objection.is_none());
    Ok(told.map(|note| note.render().trim().to_owned()).collect())
}

/// A text as it stands in a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

/// Whether agents may be told a note.
pub(crate) fn holds(project: &Project, id: &DecisionId) -> Result<bool, Failure> {
    let found = chosen(project, |notes| {
        let ids = notes.indexes.iter().map(|notes| notes.ids().map(|(id, _)| id).collect());
        let ids: Vec<Vec<&str>> = ids.collect();
        let index = notes.places.iter().position(|(index, place)| ids[*index].get(*place) == Some(&id.as_str()));
        Ok(index.map(|index| NoteRank { index, ..NoteRank::default() }).into_iter().collect())
    })?;
    Ok(found.iter().any(|note| note.objection.is_none()))
}

/// All notes in force, unread.
struct Candidates<'a> {
    project: &'a Project,
    /// This project's own, if there are any, and those of the links that have some.
    indexes: Vec<&'a NoteIndex>,
    /// `None`: this project.
    sources: Vec<Option<&'a Link>>,
    /// An index, and a place in it.
    places: Vec<(usize, usize)>,
}

/// A note, and its link with what is known of it there.
type ReadNote<'a> = (Decision, Option<(&'a Link, LinkedNote)>);

impl<'a> Candidates<'a> {
    fn new(project: &'a Project, links: &'a [Link]) -> Result<Self, Failure> {
        let mut all = Self { project, indexes: Vec::new(), sources: Vec::new(), places: Vec::new() };
        if let Some(notes) = project.note_index() {
            let in_force = notes.ids().enumerate().filter(|(_, (_, is_in_force))| *is_in_force);
            all.places.extend(in_force.map(|(place, _)| (0, place)));
            all.indexes.push(notes);
            all.sources.push(None);
        }
        let mut index_of = BTreeMap::new();
        for (number, link) in links.iter().enumerate() {
            if let Some(notes) = link.note_index() {
                index_of.insert(number, all.indexes.len());
                all.indexes.push(notes);
                all.sources.push(Some(link));
            }
        }
        let places = links::places(project, links)?.into_iter();
        all.places.extend(places.map(|(link, place)| (index_of[&link], place)));
        Ok(all)
    }

    /// What is written of a note, unread. `None`: the index is damaged, which is said when it is read.
    fn line(&self, candidate: usize) -> Option<Vec<u8>> {
        let (index, place) = self.places[candidate];
        self.indexes[index].line(place)
    }

    fn read(&self, candidate: usize) -> Result<ReadNote<'a>, Failure> {
        let (index, place) = self.places[candidate];
        Ok(match self.sources[index] {
            None => (self.project.own_note(place)?, None),
            Some(link) => {
                let linked = link.note(place)?;
                (linked.note.clone(), Some((link, linked)))
            }
        })
    }
}

/// Some of all notes in force, which `choose` selects. Only those are read, and judged whether they still hold.
fn chosen(
    project: &Project,
    choose: impl FnOnce(&Candidates<'_>) -> Result<Vec<NoteRank>, Failure>,
) -> Result<Vec<OfferedNote>, Failure> {
    chosen_of(project, &links::all(project)?, choose)
}

fn chosen_of(
    project: &Project,
    links: &[Link],
    choose: impl FnOnce(&Candidates<'_>) -> Result<Vec<NoteRank>, Failure>,
) -> Result<Vec<OfferedNote>, Failure> {
    let notes = Candidates::new(project, links)?;
    if notes.places.is_empty() {
        return Ok(Vec::new());
    }
    let (evidence, stack) = (EvidenceCheck::new(project)?, OnceCell::new());
    let offer = |NoteRank { index, relevance, shared }: NoteRank| {
        let (note, link) = notes.read(index)?;
        let stale = match &link {
            Some((_, linked)) => linked.stale.clone(),
            None => evidence.stale(&note)?,
        };
        let path = link.as_ref().map_or("", |(_, linked)| &linked.path);
        let objection = match (suspicion(&note, path), stale) {
            (Some(suspicion), _) => Some(suspicion),
            (None, Some(why)) => Some(format!("stale: {why}")),
            (None, None) => mismatch(project, &note, &stack)?,
        };
        let link = link.map(|(link, linked)| link.source_of(&linked));
        Ok(OfferedNote { note, link, objection, relevance, shared })
    };
    choose(&notes)?.into_iter().map(offer).collect()
}

/// Why a note does not apply to this project: none of its languages, frameworks or paths is here.
pub(crate) fn mismatch(
    project: &Project,
    decision: &Decision,
    stack: &OnceCell<Stack>,
) -> Result<Option<String>, Failure> {
    let Note { languages, frameworks, .. } = decision.note.clone().unwrap_or_default();
    if languages.is_empty() && frameworks.is_empty() && decision.scope.is_empty() {
        return Ok(None);
    }
    let stack = match stack.get() {
        Some(stack) => stack,
        None => {
            let read = survey::stack(&project.repository, &project.work_dir)?;
            stack.get_or_init(|| read)
        }
    };
    let has = |wanted: &[String], here: &[&str]| {
        wanted.is_empty() || wanted.iter().any(|name| here.iter().any(|other| other.eq_ignore_ascii_case(name)))
    };
    let scope = matcher(&decision.scope);
    Ok(if !has(&languages, &stack.languages) {
        Some(format!("nothing here is in {}", list(&languages)))
    } else if !has(&frameworks, &stack.frameworks) {
        Some(format!("nothing here uses {}", list(&frameworks)))
    } else if !decision.scope.is_empty() && !stack.paths.iter().any(|path| scope(path)) {
        Some(format!("no file here is in its scope, {}", list(&decision.scope)))
    } else {
        None
    })
}

/// Compares what notes of this project rest on with the checked-out commit.
pub(crate) struct EvidenceCheck<'p> {
    project: &'p Project,
    head: Option<String>,
    in_force: OnceCell<BTreeSet<&'p DecisionId>>,
    /// Bytes that may still be searched for lines.
    budget: Cell<u64>,
}

impl<'p> EvidenceCheck<'p> {
    pub(crate) fn new(project: &'p Project) -> Result<Self, Failure> {
        Ok(Self {
            project,
            head: project.repository.head()?.commit,
            in_force: OnceCell::new(),
            budget: Cell::new(LARGEST_SEARCH),
        })
    }

    /// Why a note no longer holds. `None`: what it rests on is unchanged, or it rests on nothing.
    pub(crate) fn stale(&self, decision: &Decision) -> Result<Option<String>, Failure> {
        for text in decision.note.iter().flat_map(|note| &note.evidence) {
            let changed = match NoteEvidence::parse(text) {
                None => Some("its evidence is none that squad knows".to_owned()),
                Some(evidence) => self.changed(&evidence)?,
            };
            if changed.is_some() {
                return Ok(changed);
            }
        }
        Ok(None)
    }

    fn changed(&self, evidence: &NoteEvidence) -> Result<Option<String>, Failure> {
        let repository = &self.project.repository;
        Ok(match evidence {
            NoteEvidence::File { path, lines, hash } => {
                let full = below(&project_path(&self.project.folder, &self.project.work_dir), path);
                let id = self.head.as_ref().map(|head| repository.id_at(head, &full)).transpose()?.flatten();
                let text = || repository.text_of_id(id.as_deref()?);
                changed_file((path, *lines, hash), id.clone(), text, &self.budget)
            }
            NoteEvidence::Commit(commit) => {
                let merged = match (&self.head, repository.resolve(commit)?) {
                    (Some(head), Some(commit)) => !repository.merged(&BTreeSet::from([commit]), head)?.is_empty(),
                    // It may lie before the commits that were fetched.
                    _ => repository.is_shallow(),
                };
                (!merged).then(|| format!("commit {} is not on this branch", commit.get(..12).unwrap_or(commit)))
            }
            NoteEvidence::Decision(id) => {
                let in_force = self.in_force.get_or_init(|| {
                    in_force(self.project.decisions()).into_iter().map(|decision| &decision.id).collect()
                });
                (!in_force.contains(id)).then(|| format!("decision {id} is not in force any more"))
            }
            NoteEvidence::Run(_) => None,
        })
    }
}
