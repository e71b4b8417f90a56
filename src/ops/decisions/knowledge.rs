//! Notes of knowledge, which hold beyond their project: listed, searched, added, replaced and retired.
//!
//! A note is a decision with a kind: it has the same file, ledger entry, id and states, and lands the same way.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use crate::compile::{OfferedNote, Task, suspicion};
use crate::env::{Env, ProjectPath};
use crate::error::Failure;
use crate::model::{
    ChangeKind, Decision, DecisionId, DecisionState, EntryId, EventKind, IntoSet, MAX_EVIDENCE_LINES, Note,
    NoteEvidence, NoteKind, NoteLink, RunId, Slug, first_line, hash_of_lines, list as listing, place_of,
};
use crate::ops::change::{Change, FileChange, WriteMode, branch_tip, lock};
use crate::ops::decisions::landing::record_event;
use crate::ops::decisions::list::{self, Addition, ListedDecision};
use crate::ops::ledger::contents::{self as ledger, Lesson};
use crate::ops::ledger::log::one_run;
use crate::ops::team::knowledge::{self, EvidenceCheck, mismatch};
use crate::ops::team::links;
use crate::ops::team::workspace::{below, project_path};
use crate::ops::{Project, only};
use crate::store;

/// A note, and what is known of it here.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KnownNote {
    #[serde(flatten)]
    pub(crate) listed: ListedDecision,
    #[serde(flatten)]
    pub(crate) note: Note,
    pub(crate) tags: Vec<String>,
    pub(crate) run: Option<RunId>,
    /// Where it comes from, if it is no note of this project.
    pub(crate) link: Option<NoteLink>,
    /// Why what it rests on no longer holds.
    pub(crate) stale: Option<String>,
    /// It rests on nothing.
    pub(crate) opinion: bool,
    /// Why no agent is told it all the same.
    pub(crate) objection: Option<String>,
}

/// The notes of this project in all states, the newest first, then those of each link.
pub(crate) fn all(project: &Project) -> Result<Vec<KnownNote>, Failure> {
    let (evidence, stack) = (EvidenceCheck::new(project)?, OnceCell::new());
    let objection = |note: &Decision, path: &str| match suspicion(note, path) {
        None => mismatch(project, note, &stack),
        suspicion => Ok(suspicion),
    };
    let mut all = Vec::new();
    for listed in list::records(project)? {
        let Some(note) = listed.note.clone() else { continue };
        let decision = Decision {
            note: Some(note.clone()),
            tags: listed.tags.clone(),
            scope: listed.scope.clone(),
            ..Decision::new(listed.id.clone(), listed.title.clone(), listed.text.clone())
        };
        let is_in_force = listed.state == DecisionState::InForce;
        let stale = if is_in_force { evidence.stale(&decision)? } else { None };
        let objection = objection(&decision, "")?;
        all.push(known(listed, note, stale, objection, None));
    }
    let links = links::all(project)?;
    for (link, linked) in links::notes(project, &links)? {
        let Some(note) = linked.note.note.clone() else { continue };
        let objection = objection(&linked.note, &linked.path)?;
        let listed = list::with_state(&linked.note, DecisionState::InForce);
        all.push(known(listed, note, linked.stale.clone(), objection, Some(link.source_of(&linked))));
    }
    Ok(all)
}

fn known(
    listed: ListedDecision,
    note: Note,
    stale: Option<String>,
    objection: Option<String>,
    link: Option<NoteLink>,
) -> KnownNote {
    let (tags, run, opinion) = (listed.tags.clone(), listed.run.clone(), note.evidence.is_empty());
    KnownNote { listed, note, tags, run, link, stale, opinion, objection }
}

/// Whether a note is meant: by its id or a prefix of it, after `LINK/` if it is a link's.
pub(crate) fn is_named(known: &KnownNote, id: &str) -> bool {
    let (link, prefix) = id.rsplit_once('/').map_or((None, id), |(link, prefix)| (Some(link), prefix));
    let is_from = |name| known.link.as_ref().is_some_and(|link| link.name == name);
    !prefix.is_empty() && known.listed.id.as_str().starts_with(prefix) && link.is_none_or(is_from)
}

/// Finds a note, here or by a link.
pub(crate) fn find(all: Vec<KnownNote>, id: &str) -> Result<KnownNote, Failure> {
    let found: Vec<KnownNote> = all.into_iter().filter(|known| is_named(known, id)).collect();
    let of_link = |known: &KnownNote| Some(format!("`{}/{}`", known.link.as_ref()?.name, known.listed.id));
    if let [first, others @ ..] = &found[..]
        && !others.is_empty()
        && others.iter().all(|other| other.listed.id == first.listed.id)
    {
        let place = |known: &KnownNote| known.link.as_ref().map(|link| link.name.clone());
        if others.iter().all(|other| place(other) == place(first)) {
            let file = |known: &KnownNote| match (&known.link, &known.listed.source) {
                (Some(link), _) => Some(link.path.clone()),
                (None, source) => source.as_ref().map(|source| source.file.clone()),
            };
            let files = listing(found.iter().filter_map(file));
            return Err(Failure::usage(format!("several files have the id `{}`: {files}", first.listed.id))
                .hint("delete one of them, or change its `id:`"));
        }
        let all = listing(found.iter().filter_map(of_link));
        return Err(Failure::usage(format!("several links have a note `{}`: {all}", first.listed.id))
            .hint("write the link before the id"));
    }
    only(found, id, |known| known.listed.id.as_str())?
        .ok_or_else(|| Failure::usage(format!("there is no note `{id}`")).hint("`squad knowledge list` shows them all"))
}

/// The notes that an agent with this task would be offered, the most relevant first; also those that it is not told.
pub(crate) fn search(project: &Project, text: &str) -> Result<Vec<KnownNote>, Failure> {
    let offered = knowledge::offered(project, &Task::new(text))?.into_iter();
    Ok(offered
        .map(|OfferedNote { note: decision, link, objection, .. }| {
            let listed = list::with_state(&decision, DecisionState::InForce);
            let (stale, objection) = match objection.as_deref().map(|why| why.strip_prefix("stale: ")) {
                Some(Some(stale)) => (Some(stale.to_owned()), None),
                _ => (None, objection),
            };
            known(listed, decision.note.unwrap_or_default(), stale, objection, link)
        })
        .collect())
}

/// A note that an agent proposes.
#[derive(Debug, Serialize)]
pub(crate) struct NoteProposal {
    pub(crate) id: DecisionId,
    #[serde(skip)]
    entry: EntryId,
    pub(crate) kind: NoteKind,
    pub(crate) agent: Slug,
    pub(crate) run: Option<RunId>,
    pub(crate) date: String,
    pub(crate) text: String,
}

/// What agents propose, the newest first: neither declined, nor has a note been made of it.
pub(crate) fn proposals(project: &Project) -> Result<Vec<NoteProposal>, Failure> {
    let made: BTreeSet<DecisionId> =
        list::records(project)?.into_iter().filter_map(|listed| listed.note?.from).into_set();
    let all = ledger::proposals(&project.repository, &project.ledger_prefix())?;
    let proposal = |Lesson { id, at, run, agent, text, share }: Lesson| NoteProposal {
        id: id.decision(),
        entry: id,
        kind: share.unwrap_or_default(),
        agent,
        run,
        date: at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        text,
    };
    Ok(all.into_iter().map(proposal).filter(|proposal| !made.contains(&proposal.id)).collect())
}

/// The one proposal with this id or prefix of it.
fn proposal(project: &Project, id: &str) -> Result<NoteProposal, Failure> {
    let mut found = proposals(project)?;
    found.retain(|proposal| !id.is_empty() && proposal.id.as_str().starts_with(id));
    only(found, id, |proposal| proposal.id.as_str())?.ok_or_else(|| {
        Failure::usage(format!("there is no proposal `{id}`")).hint("`squad knowledge list --proposed` shows them")
    })
}

/// Records that a proposal will not become a note. It stays a learning of its agent.
pub(crate) fn decline(env: &Env, project: &Project, id: &str) -> Result<NoteProposal, Failure> {
    let proposal = proposal(project, id)?;
    let kind = EventKind::MemoryDeclined { learnings: vec![proposal.entry.clone()] };
    record_event(env, project, &kind, std::slice::from_ref(&proposal.entry))?;
    Ok(proposal)
}

/// A note to write, as it is given.
#[derive(Debug, Default)]
pub(crate) struct NewNote {
    /// `None`: that of what it is made from.
    pub(crate) text: Option<String>,
    pub(crate) kind: Option<NoteKind>,
    pub(crate) scope: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) languages: Vec<String>,
    pub(crate) frameworks: Vec<String>,
    /// `PATH`, `PATH:FIRST-LAST`, `commit:REVISION`, `decision:ID` or `run:ID`.
    pub(crate) evidence: Vec<String>,
    pub(crate) from_decision: Option<String>,
    pub(crate) from_proposal: Option<String>,
    pub(crate) supersedes: Option<String>,
}

/// Records a note; it is durable when this returns, and has not landed yet.
pub(crate) fn add(env: &Env, project: &Project, directory: &Path, new: NewNote) -> Result<Decision, Failure> {
    let mut addition = Addition { scope: new.scope, tags: new.tags, ..Addition::default() };
    let mut note = Note {
        kind: new.kind.unwrap_or_default(),
        languages: new.languages,
        frameworks: new.frameworks,
        project: project.folder.root.file_name().map(|name| name.to_string_lossy().into_owned()),
        from: None,
        evidence: Vec::new(),
    };
    let mut given = None;
    if let Some(id) = &new.from_decision {
        let decision = list::find(list::all(project)?, id)?;
        if decision.state != DecisionState::InForce {
            return Err(Failure::usage(format!("decision `{}` is not in force on this branch", decision.id)));
        }
        note.from = Some(decision.id.clone());
        note.evidence.push(NoteEvidence::Decision(decision.id).to_string());
        given = Some(format!("{}\n\n{}", decision.title, decision.text));
        addition.scope = if addition.scope.is_empty() { decision.scope } else { addition.scope };
        addition.tags = if addition.tags.is_empty() { decision.tags } else { addition.tags };
        addition.author = decision.by.map(|by| (by, decision.run));
    }
    if let Some(id) = &new.from_proposal {
        let proposal = proposal(project, id)?;
        note.kind = new.kind.unwrap_or(proposal.kind);
        note.from = Some(proposal.id);
        note.evidence.extend(proposal.run.clone().map(|run| NoteEvidence::Run(run).to_string()));
        given = Some(proposal.text);
        addition.author = Some((proposal.agent.to_string(), proposal.run));
    }
    for text in &new.evidence {
        note.evidence.push(evidence(project, directory, text)?.to_string());
    }
    addition.text = new.text.or(given).unwrap_or_default();
    if addition.text.trim().is_empty() {
        return Err(Failure::usage("the note is empty").hint("squad knowledge add \"Hash tokens before storing them\""));
    }
    if let Some(id) = &new.supersedes {
        let old = find(all(project)?, id)?;
        if let Some(link) = &old.link {
            return Err(Failure::usage(format!("`{}` is a note of the linked project {}", old.listed.id, link.name))
                .hint("change it there"));
        }
        note.kind = new.kind.unwrap_or(old.note.kind);
        addition.note = Some(note);
        return list::supersede(env, project, old.listed.id.as_str(), addition);
    }
    addition.note = Some(note);
    list::add(env, project, addition)
}

/// Why a new note reaches no agent here, if it is so.
pub(crate) fn doubt(project: &Project, note: &Decision) -> Result<Option<String>, Failure> {
    Ok(match suspicion(note, "") {
        None => mismatch(project, note, &OnceCell::new())?,
        suspicion => suspicion,
    })
}

/// Evidence as it is given, fixed to what it is now.
fn evidence(project: &Project, directory: &Path, text: &str) -> Result<NoteEvidence, Failure> {
    let repository = &project.repository;
    let none = |what: String| Failure::usage(format!("evidence `{text}`: {what}"));
    if let Some(revision) = text.strip_prefix("commit:") {
        let commit = repository.resolve(revision)?.ok_or_else(|| none("there is no such commit".to_owned()))?;
        return Ok(NoteEvidence::Commit(commit));
    }
    if let Some(id) = text.strip_prefix("decision:") {
        return Ok(NoteEvidence::Decision(list::find(list::all(project)?, id)?.id));
    }
    if let Some(run) = text.strip_prefix("run:") {
        return Ok(NoteEvidence::Run(one_run(repository, &project.ledger_prefix(), run)?));
    }
    let (path, lines) = place_of(text);
    if lines.is_some_and(|(first, last)| last - first >= MAX_EVIDENCE_LINES) {
        return Err(none(format!("these are more than {MAX_EVIDENCE_LINES} lines")).hint("name the file without lines"));
    }
    let path = ProjectPath::named(&project.folder.root, directory, &path).map_err(none)?.shown;
    let full = below(&project_path(&project.folder, &project.work_dir), &path);
    let head = repository.head()?.commit;
    let uncommitted = || none("it is no file of the checked-out commit".to_owned()).hint("commit it first");
    let Some(head) = head else { return Err(uncommitted()) };
    let content = repository.file_at(&head, &full, store::largest("decisions.md"))?.ok_or_else(uncommitted)?;
    let blob = repository.id_at(&head, &full)?.ok_or_else(uncommitted)?;
    let content = String::from_utf8_lossy(&content);
    let all: Vec<&str> = content.lines().collect();
    let hash = match lines {
        None => blob,
        Some((first, last)) => match all.get(first - 1..last) {
            Some(lines) => hash_of_lines(lines),
            None => return Err(none(format!("the file has {} lines", all.len()))),
        },
    };
    Ok(NoteEvidence::File { path, lines, hash })
}

/// Deletes a note's file, and those of the notes that it replaced, which would be in force again.
pub(crate) fn retire(env: &Env, project: &Project, id: &str) -> Result<(KnownNote, String), Failure> {
    let _lock = lock(&project.repository, None)?;
    let all = all(project)?;
    let note = find(all.clone(), id)?;
    if let Some(link) = &note.link {
        return Err(Failure::usage(format!("`{}` is a note of the linked project {}", note.listed.id, link.name))
            .hint("retire it there; after the next `squad sync` it is gone here"));
    }
    if note.listed.state != DecisionState::InForce {
        return Err(Failure::usage(format!("note `{}` is not in force on this branch", note.listed.id))
            .hint("`squad knowledge list` shows its state"));
    }
    let (_, base) = branch_tip(&project.repository, false)?;
    let root = project_path(&project.folder, &project.work_dir);
    let (mut files, mut next) = (Vec::new(), Some(note.listed.id.clone()));
    while let Some(id) = next.take() {
        let Some(KnownNote { listed, .. }) = all.iter().find(|known| known.listed.id == id) else { break };
        let Some(source) = &listed.source else { break };
        let path = below(&root, &source.file);
        let old = project.repository.file_at(&base, &path, store::largest("decisions.md"))?;
        if old.is_none() || files.iter().any(|file: &FileChange| file.path == path) {
            break;
        }
        files.push(FileChange::new(path, old, None));
        next = listed.supersedes.clone();
    }
    if files.is_empty() {
        return Err(Failure::failed("its file is not in the checked-out commit").hint("delete it and commit that"));
    }
    let message =
        format!("squad: retire: {}\n\nSquad-Decision: {}\n", first_line(&note.listed.title, 58), note.listed.id);
    let kind = ChangeKind::RetireNote { id: note.listed.id.to_string() };
    let commit = Change::new(kind, message, files).apply(env, &project.repository, WriteMode::Commit)?.commit;
    Ok((note, commit.unwrap_or_default()))
}
