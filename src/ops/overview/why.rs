//! `squad why`: finds the origin of a line or a decision: task, agent, run and review.
//!
//! git knows which commit a line is from, and the ledger knows which runs wrote that line to the file before. Commits
//! are squashed and rebased, so only the text is evidence, not commit ids or messages. An answer is either correct or
//! "unknown": if several runs wrote the same line, if the file has it more often than a run wrote it, or if anybody
//! could have written it, the answer says so.

mod author;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::env::{Env, ProjectPath};
use crate::error::Failure;
use crate::git::Blame;
use crate::model::{
    ChangeClass, Decision, DecisionId, DecisionState, EventKind, IntoSet, Note, NoteLink, Outcome, RunEnd, RunId, Slug,
    Verdict, list,
};
use crate::ops::Project;
use crate::ops::decisions::knowledge::{self, KnownNote};
use crate::ops::decisions::list::{self as decisions, ListedDecision};
use crate::ops::ledger::contents::{self as ledger, Authors, Write};
use crate::ops::ledger::log;
use crate::ops::ledger::lost;
use crate::ops::team::workspace::{below, project_path};
use crate::parse::KNOWLEDGE;
use crate::record::{Read, marks, render_decision};
use crate::review::matcher;

/// The subject of a question.
#[derive(Debug)]
pub(crate) enum Subject {
    /// A file of the project, optionally with a line number, counted from 1.
    File {
        path: String,
        line: Option<usize>,
    },
    /// A file that the work tree does not have.
    Absent {
        path: String,
        /// `None`: it is not committed.
        by: Option<Blame>,
    },
    Decision(Box<ListedDecision>),
    /// A note of a linked repository.
    Linked(Box<KnownNote>),
}

/// The origin of a subject.
#[derive(Default, Serialize)]
pub(crate) struct Answer {
    /// Relative to the project's root.
    pub(crate) path: Option<String>,
    pub(crate) line: Option<usize>,
    pub(crate) text: Option<String>,
    /// The work tree does not have the file; the commit is the one that deleted it.
    pub(crate) absent: bool,
    pub(crate) commit: Option<Commit>,
    pub(crate) decision: Option<ListedDecision>,
    /// What the decision says as a note of knowledge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<Note>,
    /// The linked repository that a note comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<NoteLink>,
    /// Who wrote it; several for a whole file.
    pub(crate) origins: Vec<Origin>,
    /// Why the origin is unknown.
    pub(crate) unknown: Option<String>,
    /// The verdict on the file's very content, if its origin is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) review: Option<Review>,
    /// The decisions in force whose scope includes the file.
    pub(crate) in_scope: Vec<ListedDecision>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Commit {
    pub(crate) id: String,
    pub(crate) subject: String,
    pub(crate) author: String,
    pub(crate) at: Timestamp,
    /// Trailers that name a checkpoint of another tool, such as `Entire-Checkpoint: 4f1c09`.
    pub(crate) checkpoints: Vec<String>,
}

/// A run, and who wrote it there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Origin {
    pub(crate) run: RunId,
    #[serde(flatten)]
    pub(crate) by: Authors,
    pub(crate) at: Timestamp,
    /// The run's task.
    pub(crate) task: Option<String>,
    pub(crate) outcome: Option<Outcome>,
    /// The verdict on the file's very content; of a decision, the run's.
    pub(crate) review: Option<Review>,
    /// The result of the project's check at the run's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<String>,
    /// The file was reviewed in the run, and has changed since.
    pub(crate) is_review_outdated: bool,
    /// The decisions made in the run, by the agent if it is known.
    pub(crate) decisions: Vec<Decided>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Review {
    pub(crate) reviewer: Option<Slug>,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Decided {
    pub(crate) id: DecisionId,
    pub(crate) title: String,
}

/// Parses `PATH`, `PATH:LINE` or a decision's id.
pub(crate) fn subject(project: &Project, directory: &Path, text: &str) -> Result<Subject, Failure> {
    let (path, line) = match text.rsplit_once(':') {
        Some((path, line)) if !path.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) => {
            (path, Some(line.parse::<usize>().ok().filter(|line| *line > 0)))
        }
        _ => (text, None),
    };
    if line == Some(None) {
        return Err(Failure::usage(format!("`{text}` names no line; lines are counted from 1")));
    }
    let line = line.flatten();
    // Its folders may be gone.
    let inner = ProjectPath::named(&project.folder.root, directory, path).ok().map(|path| path.shown);
    let is_file = |inner: &String| {
        let found = project.folder.root.join(inner).symlink_metadata();
        found.is_ok_and(|found| found.is_file() || found.is_symlink())
    };
    if let Some(inner) = inner.clone().filter(is_file) {
        return Ok(Subject::File { path: inner, line });
    }
    let all = decisions::records(project)?;
    if line.is_none() && all.iter().any(|decision| decision.id.as_str().starts_with(text)) {
        return decisions::find(all, text).map(|decision| Subject::Decision(Box::new(decision)));
    }
    let linked = if line.is_none() { knowledge::all(project)? } else { Vec::new() };
    if linked.iter().any(|known| knowledge::is_named(known, text)) {
        return knowledge::find(linked, text).map(|known| Subject::Linked(Box::new(known)));
    }
    if let Some(absent) = inner.clone().map(|inner| absent(project, inner)).transpose()?.flatten() {
        return Ok(absent);
    }
    if inner.is_some_and(|inner| project.folder.root.join(inner).is_dir()) {
        return Err(Failure::usage(format!("`{path}` is a folder")).hint("`squad why` takes one file of it"));
    }
    Err(Failure::usage(format!("`{path}` is neither a file of the project nor a decision"))
        .hint("give a path, a path with a line such as src/main.rs:42, or a decision's id"))
}

/// `None`: neither git nor the ledger knows the file.
fn absent(project: &Project, path: String) -> Result<Option<Subject>, Failure> {
    if project.folder.root.join(&path).symlink_metadata().is_ok() {
        return Ok(None);
    }
    let (repository, full) = (&project.repository, below(&project_path(&project.folder, &project.work_dir), &path));
    let is_in_head = match repository.head()?.commit {
        Some(head) => repository.has_at(&head, &full)?,
        None => false,
    };
    let by = if is_in_head { None } else { repository.last_change(&full)? };
    let is_known = by.is_some() || is_in_head || !writes(project, &path)?.is_empty();
    Ok(is_known.then_some(Subject::Absent { path, by }))
}

pub(crate) fn why(env: &Env, project: &Project, subject: Subject) -> Result<Answer, Failure> {
    // The end of a run whose process died tells what its commands had written.
    lost::settle(env, &project.repository);
    let mut answer = match subject {
        Subject::Decision(decision) => of_decision(project, *decision),
        Subject::Linked(known) => Ok(of_linked(*known)),
        Subject::Absent { path, by } => of_absent(project, path, by),
        Subject::File { path, line: None } => of_file(project, path),
        Subject::File { path, line: Some(line) } => of_line(project, path, line),
    }?;
    if answer.unknown.is_some() && project.repository.ledger().tip()?.is_none() {
        answer.unknown = Some("this clone has no ledger, so no run is known; `squad sync` fetches it".to_owned());
    }
    Ok(answer)
}

impl Answer {
    fn about(path: Option<String>) -> Self {
        Self { path, ..Self::default() }
    }
}

fn of_decision(project: &Project, decision: ListedDecision) -> Result<Answer, Failure> {
    let mut answer = Answer::about(decision.source.as_ref().map(|source| source.file.clone()));
    let logged = ledger::decisions(&project.repository, &project.ledger_prefix())?;
    let logged = logged.into_iter().find(|logged| logged.decision.id == decision.id).map(|logged| logged.decision);
    // Trust the ledger, not the file: a file can be copied and edited by hand.
    match &logged {
        Some(Decision { run: Some(run), by, .. }) => {
            let by = Authors { agent: by.as_deref().and_then(Slug::fold), ..Authors::default() };
            answer.origins.extend(origin(project, run, by)?);
            if answer.origins.is_empty() {
                answer.unknown = Some(format!("this clone's ledger does not have run {run}"));
            }
        }
        Some(Decision { by, .. }) => {
            let who = by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
            answer.unknown = Some(format!("it was not decided in a run{who}"));
        }
        None => {
            let mut files = project.decisions().iter().chain(project.knowledge()?);
            let file = files.find(|other| other.id == decision.id);
            answer.unknown = Some(match file.and_then(|file| file.run.as_ref()) {
                Some(run) => format!("its file names run {run}, but this clone's ledger has no such decision"),
                None => "this clone's ledger does not have it".to_owned(),
            });
        }
    }
    answer.note = decision.note.clone();
    answer.decision = Some(decision);
    Ok(answer)
}

/// Its run is in the other repository's ledger.
fn of_linked(known: KnownNote) -> Answer {
    Answer { decision: Some(known.listed), note: Some(known.note), link: known.link, ..Answer::default() }
}

fn of_absent(project: &Project, path: String, by: Option<Blame>) -> Result<Answer, Failure> {
    let mut answer = Answer { absent: true, ..Answer::about(Some(path.clone())) };
    answer.commit = by.and_then(|by| commit(project, by));
    let all = writes(project, &path)?;
    add_origins(project, &mut answer, all)?;
    Ok(answer)
}

/// The runs that made these writes, each once.
fn add_origins(project: &Project, answer: &mut Answer, writes: Vec<Write>) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for write in writes {
        if seen.insert((write.run.clone(), write.by.clone())) {
            answer.origins.extend(origin(project, &write.run, write.by)?);
        }
    }
    if answer.origins.is_empty() {
        answer.unknown = Some("no run is known to have written it".to_owned());
    }
    Ok(())
}

fn of_file(project: &Project, path: String) -> Result<Answer, Failure> {
    let mut answer = Answer::about(Some(path.clone()));
    let text = text_of(project, &path)?;
    if let Some(decision) = decision_in(project, &path)? {
        let title = text.lines().find(|line| line.starts_with("# ")).unwrap_or_default();
        return as_logged(project, decision, title);
    }
    let here: BTreeSet<String> = text.lines().filter_map(marks::mark).into_set();
    let mut all = writes(project, &path)?;
    // Skip writes whose lines are all gone from the file.
    all.retain(|write| write.lines.is_empty() || write.lines.iter().any(|line| here.contains(line)));
    add_origins(project, &mut answer, all)?;
    judge_content(project, &path, &mut answer)?;
    answer.in_scope = in_scope(project, &path)?;
    Ok(answer)
}

fn of_line(project: &Project, path: String, line: usize) -> Result<Answer, Failure> {
    let mut answer = Answer::about(Some(path.clone()));
    answer.line = Some(line);
    answer.in_scope = in_scope(project, &path)?;
    let text = text_of(project, &path)?;
    let lines: Vec<&str> = text.lines().collect();
    let Some(found) = lines.get(line - 1) else {
        return Err(Failure::usage(format!("{path} has {} lines", lines.len())));
    };
    answer.text = Some((*found).to_owned());
    if let Some(decision) = decision_in(project, &path)? {
        let of_decision = as_logged(project, decision, found)?;
        return Ok(Answer { path: answer.path, line: answer.line, text: answer.text, ..of_decision });
    }
    let root = project_path(&project.folder, &project.work_dir);
    let blame = project.repository.blame(None, &below(&root, &path), line)?;
    let (old_path, before) = match &blame {
        // If git does not know the file, its lines may be of any age.
        None => (path.clone(), None),
        Some(blame) => {
            let inner = blame.path.strip_prefix(&root).map_or(&*blame.path, |inner| inner.trim_start_matches('/'));
            (inner.to_owned(), blame.commit.as_ref().map(|_| blame.at))
        }
    };
    answer.commit = blame.and_then(|blame| commit(project, blame));
    let mut all = writes(project, &old_path)?;
    if old_path != path {
        all.extend(writes(project, &path)?);
    }
    // Commit times are in whole seconds.
    all.retain(|write| before.is_none_or(|before| write.at.as_second() <= before.as_second()));
    let is_elsewhere = || project.repository.is_elsewhere(found.trim(), &below(&root, &path));
    match author::author(&all, &lines, line - 1, is_elsewhere)? {
        Ok(write) => {
            answer.origins.extend(origin(project, &write.run, write.by.clone())?);
            if answer.origins.is_empty() {
                answer.unknown = Some(format!("this clone's ledger does not have run {}", write.run));
            }
        }
        Err(reason) => answer.unknown = Some(format!("{reason}{}", writers(&path, &all))),
    }
    judge_content(project, &path, &mut answer)?;
    Ok(answer)
}

/// Who changed a file, for a line whose author is unknown.
fn writers(path: &str, writes: &[Write]) -> String {
    let (mut agents, mut others) = (Vec::new(), Vec::new());
    for Write { by, run, .. } in writes {
        let (named, name) = match by.class.and_then(ChangeClass::of_others) {
            Some(others_changed) => (&mut others, format!("{others_changed} in run {}", run.short())),
            None => (&mut agents, format!("{by} in run {}", run.short())),
        };
        if !named.contains(&name) {
            named.push(name);
        }
    }
    let agents = (!agents.is_empty()).then(|| format!("; {path} was written by {}", list(agents)));
    let others = (!others.is_empty()).then(|| format!("; {path} was {}", list(others)));
    [agents, others].into_iter().flatten().collect()
}

/// Replaces the runs' verdicts by the one on the file's very content.
fn judge_content(project: &Project, path: &str, answer: &mut Answer) -> Result<(), Failure> {
    let path = below(&project_path(&project.folder, &project.work_dir), path);
    let verdicts = ledger::file_verdicts(&project.repository, &project.ledger_prefix(), None)?;
    let found = verdicts.on(&path, &project.repository.id_in_work_tree(&path)?);
    let review = found.map(|(verdict, reviewer)| Review { reviewer: reviewer.cloned(), verdict });
    if answer.origins.is_empty() {
        answer.review.clone_from(&review);
    }
    for origin in &mut answer.origins {
        let was_judged = origin.review.as_ref().is_some_and(|review| review.verdict != Verdict::Unclear);
        origin.is_review_outdated = was_judged && review.is_none();
        if was_judged || review.is_some() {
            origin.review.clone_from(&review);
        }
    }
    Ok(())
}

fn commit(project: &Project, blame: Blame) -> Option<Commit> {
    let id = blame.commit?;
    // Without trailers the answer is still right.
    let checkpoints = project.repository.trailers_ending_in("-Checkpoint", &id).unwrap_or_default();
    Some(Commit { id, subject: blame.subject, author: blame.author, at: blame.at, checkpoints })
}

/// All writes to a file, newest first.
fn writes(project: &Project, path: &str) -> Result<Vec<Write>, Failure> {
    let root = project.path_in_repository();
    Ok(ledger::writes(&project.repository, &project.ledger_prefix(), &root, path)?)
}

/// Collects a run's data from its entries; `None` if the ledger has none.
fn origin(project: &Project, run: &RunId, by: Authors) -> Result<Option<Origin>, Failure> {
    let timeline = log::timeline(&project.repository, &project.ledger_prefix(), Some(run), &log::Choice::default())?;
    let mut origin: Option<Origin> = None;
    for read in timeline.entries() {
        let (_, Read::Entry(entry)) = read? else { continue };
        let origin = origin.get_or_insert_with(|| Origin {
            run: run.clone(),
            by: by.clone(),
            at: entry.at,
            task: None,
            outcome: None,
            review: None,
            check: None,
            is_review_outdated: false,
            decisions: Vec::new(),
        });
        let Authors { agent, together, .. } = &by;
        let is_one = |of: &Slug| agent.as_ref() == Some(of) || together.contains(of);
        let is_theirs = by == Authors::default() || entry.agent.as_ref().is_some_and(is_one);
        match entry.known_kind() {
            Some(EventKind::RunStarted { text, .. }) => (origin.task, origin.at) = (Some(text), entry.at),
            Some(EventKind::RunCompleted(RunEnd { status, agents, check, .. })) => {
                origin.check = check.map(|check| format!("{} {}", check.command, check.result()));
                origin.outcome = Some(agent.as_ref().and_then(|agent| agents.get(agent)).copied().unwrap_or(status));
            }
            Some(EventKind::ReviewVerdict { verdict, .. }) => {
                origin.review = Some(Review { reviewer: entry.agent.clone(), verdict });
            }
            Some(EventKind::DecisionLogged { decision, .. }) if is_theirs => {
                origin.decisions.push(Decided { id: decision.id, title: decision.title });
            }
            _ => {}
        }
    }
    Ok(origin)
}

/// The content of a file. That of a link is its target, as git has it.
fn text_of(project: &Project, path: &str) -> Result<String, Failure> {
    let file = project.folder.root.join(path);
    let bytes = match file.is_symlink() {
        true => fs::read_link(&file).map(|target| target.into_os_string().into_encoded_bytes()),
        false => fs::read(&file),
    };
    let bytes =
        bytes.map_err(|error| Failure::failed(format!("cannot be read: {error}")).at(file.display().to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The origin of a decision; unknown if the line was not in the decision when it was made.
fn as_logged(project: &Project, decision: ListedDecision, line: &str) -> Result<Answer, Failure> {
    let mut answer = of_decision(project, decision)?;
    if !answer.origins.is_empty() && !is_logged(project, &answer, line)? {
        answer.origins.clear();
        answer.unknown = Some("this text was added after the decision was made".to_owned());
    }
    Ok(answer)
}

/// The decision that a file belongs to.
fn decision_in(project: &Project, path: &str) -> Result<Option<ListedDecision>, Failure> {
    let folder = PathBuf::from(project.folder.name);
    if !["decisions", KNOWLEDGE].iter().any(|name| Path::new(path).starts_with(folder.join(name))) {
        return Ok(None);
    }
    let all = decisions::records(project)?;
    Ok(all.into_iter().find(|decision| decision.source.as_ref().is_some_and(|source| source.file == path)))
}

/// Whether the decision's file had this line when it was first written.
fn is_logged(project: &Project, answer: &Answer, line: &str) -> Result<bool, Failure> {
    let id = answer.decision.as_ref().map(|decision| &decision.id);
    let logged = ledger::decisions(&project.repository, &project.ledger_prefix())?;
    let logged = logged.iter().find(|logged| Some(&logged.decision.id) == id);
    Ok(logged.is_some_and(|logged| {
        let file = render_decision(&logged.decision);
        file.lines().any(|other| other.split_whitespace().eq(line.split_whitespace()))
    }))
}

fn in_scope(project: &Project, path: &str) -> Result<Vec<ListedDecision>, Failure> {
    let all = decisions::all(project)?.into_iter();
    let is_in = |decision: &ListedDecision| {
        decision.state == DecisionState::InForce && !decision.scope.is_empty() && matcher(&decision.scope)(path)
    };
    Ok(all.filter(is_in).collect())
}
