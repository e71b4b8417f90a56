//! A team's data in the ledger other than its runs: decisions, learnings, file writes and counts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use crate::compile::{Learning, Learnings};
use crate::git::{Error, Repository};
use crate::model::{
    ChangeClass, Decision, DecisionId, EntryId, EventKind, FileVerdicts, IntoSet, NoteKind, RunId, Slug, Undone,
    moment, together,
};
use crate::ops::ledger::duplicates::{DecisionEntry, resolve_duplicates};
use crate::ops::ledger::index::{
    self, EntryFacts, EntryHeader, Fact, FileWrites, Index, Place, ReviewFact, Row, Ruling, Unlanded,
};
use crate::ops::ledger::undone::undone;
use crate::policy::Redactor;

/// A branch, in any clone, on which a decision has landed, and the commit.
#[derive(Clone)]
pub(crate) struct BranchLanding {
    pub(crate) branch: String,
    /// Empty if the branch had the file before squad landed it.
    pub(crate) commit: String,
}

/// A decision in the ledger, with the branch it was made for and where it has landed.
pub(crate) struct LoggedDecision {
    pub(crate) decision: Decision,
    /// The entry that records it.
    pub(crate) entry: EntryId,
    pub(crate) branch: Option<String>,
    pub(crate) landed: Vec<BranchLanding>,
}

pub(crate) fn decisions(repository: &Repository, prefix: &str) -> Result<Vec<LoggedDecision>, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(Vec::new()) };
    let mut landed: BTreeMap<DecisionId, Vec<BranchLanding>> = BTreeMap::new();
    let (mut recorded, mut branches) = (Vec::new(), Vec::new());
    for span in index.spans(Place::Decisions) {
        for Row { path, key, value, .. } in index.rows::<EntryFacts>(&span)?.into_iter().rev() {
            let Some(EntryFacts { id: entry, fact, .. }) = value else { continue };
            match fact {
                Fact::Landed { decisions, branch, commit } => {
                    for id in decisions {
                        let landing = BranchLanding { branch: branch.clone(), commit: commit.clone() };
                        landed.entry(id).or_default().push(landing);
                    }
                }
                Fact::Decided { decision, branch } => {
                    recorded.push(DecisionEntry { path, key, entry, decision: *decision });
                    branches.push(branch);
                }
                _ => {}
            }
        }
    }
    let (counting, damage) = resolve_duplicates(recorded.iter());
    damage.into_iter().for_each(|damage| index.report(damage));
    let with_landings = |(DecisionEntry { decision, entry, .. }, branch): (DecisionEntry, _)| LoggedDecision {
        landed: landed.get(&decision.id).cloned().unwrap_or_default(),
        decision,
        entry,
        branch,
    };
    let mut all: Vec<Option<_>> = recorded.into_iter().zip(branches).map(Some).collect();
    Ok(counting.into_iter().filter_map(|at| all.get_mut(at)?.take()).map(with_landings).collect())
}

/// The decisions that have landed nowhere, newest first. Reads only new entries, however many have landed.
pub(in crate::ops) fn unlanded(repository: &Repository, prefix: &str) -> Result<Vec<Unlanded>, Error> {
    let unlanded = index::unlanded(repository, prefix)?;
    // An id that was not made from its entry may have duplicates.
    if unlanded.iter().all(|one| one.entry.decision() == one.decision.id) {
        return Ok(unlanded);
    }
    let all = decisions(repository, prefix)?.into_iter().filter(|logged| logged.landed.is_empty());
    Ok(all.map(|LoggedDecision { decision, entry, branch, .. }| Unlanded { entry, decision, branch }).collect())
}

/// The newest learnings of all agents, as many as prompts may choose from, without those that landed in histories on
/// this branch or a branch merged into it.
pub(crate) fn learnings(repository: &Repository, prefix: &str) -> Result<Learnings, Error> {
    const ENOUGH: usize = 200;
    let Some(index) = Index::open(repository, prefix)? else { return Ok(Learnings::new()) };
    let head = repository.head()?;
    let branch = as_recorded(head.work());
    // A landing is newer than what it lands, so reading backwards meets it first.
    let mut here: BTreeSet<EntryId> = BTreeSet::new();
    let mut elsewhere: BTreeMap<EntryId, String> = BTreeMap::new();
    let mut lessons: Vec<Lesson> = Vec::new();
    'enough: for span in index.spans(Place::Memory) {
        for EntryFacts { id, at, run, agent, fact } in index.values::<EntryFacts>(&span)?.rev() {
            match (fact, agent) {
                (Fact::Taught { learnings, branch: on, .. }, _) if Some(&on) == branch.as_ref() => {
                    here.extend(learnings)
                }
                (Fact::Taught { learnings, commit, .. }, _) => {
                    elsewhere.extend(learnings.into_iter().map(|id| (id, commit.clone())));
                }
                (Fact::Learned { text, share }, Some(agent)) if !here.contains(&id) => {
                    lessons.push(Lesson { id, at, run, agent, text, share });
                }
                _ => {}
            }
            if lessons.len() == ENOUGH {
                break 'enough;
            }
        }
    }
    let commits: BTreeSet<String> = lessons.iter().filter_map(|lesson| elsewhere.get(&lesson.id).cloned()).into_set();
    let merged = head.commit.map_or_else(|| Ok(BTreeSet::new()), |head| repository.merged(&commits, &head))?;
    let mut learnings = Learnings::new();
    for Lesson { id, at, agent, text, .. } in lessons.into_iter().rev() {
        let commit = elsewhere.get(&id);
        if commit.is_none_or(|commit| !merged.contains(commit)) {
            let date = at.strftime("%Y-%m-%d").to_string();
            let learning = Learning { entry: id.to_string(), date, text, is_elsewhere: commit.is_some() };
            learnings.entry(agent).or_default().push(learning);
        }
    }
    Ok(learnings)
}

/// A learning of an agent.
pub(crate) struct Lesson {
    pub(crate) id: EntryId,
    pub(crate) at: Timestamp,
    pub(crate) run: Option<RunId>,
    pub(crate) agent: Slug,
    pub(crate) text: String,
    /// It is proposed as a note of knowledge.
    pub(crate) share: Option<NoteKind>,
}

/// All learnings that have landed on no branch, oldest first.
pub(crate) fn lessons(repository: &Repository, prefix: &str) -> Result<Vec<Lesson>, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(Vec::new()) };
    let (mut lessons, mut landed) = (Vec::new(), BTreeSet::new());
    for span in index.spans(Place::Memory) {
        for EntryFacts { id, at, run, agent, fact } in index.values::<EntryFacts>(&span)?.rev() {
            match (fact, agent) {
                (Fact::Taught { learnings, .. }, _) => landed.extend(learnings),
                (Fact::Learned { text, share }, Some(agent)) => {
                    lessons.push(Lesson { id, at, run, agent, text, share })
                }
                _ => {}
            }
        }
    }
    lessons.retain(|lesson| !landed.contains(&lesson.id));
    lessons.reverse();
    Ok(lessons)
}

/// The learnings that agents propose as notes of knowledge and that were not declined, newest first.
pub(in crate::ops) fn proposals(repository: &Repository, prefix: &str) -> Result<Vec<Lesson>, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(Vec::new()) };
    // Clocks of several clones may differ, so a refusal may be older than what it refuses.
    let (mut proposals, mut declined) = (Vec::new(), BTreeSet::new());
    for span in index.spans(Place::Memory) {
        for EntryFacts { id, at, run, agent, fact } in index.values::<EntryFacts>(&span)?.rev() {
            match (fact, agent) {
                (Fact::Learned { text, share: share @ Some(_) }, Some(agent)) => {
                    proposals.push(Lesson { id, at, run, agent, text, share });
                }
                (Fact::Declined { learnings }, _) => declined.extend(learnings),
                _ => {}
            }
        }
    }
    proposals.retain(|proposal| !declined.contains(&proposal.id));
    Ok(proposals)
}

/// All recorded learnings with their agents, landed or not.
pub(crate) fn known_lessons(repository: &Repository, prefix: &str) -> Result<BTreeSet<(String, String)>, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(BTreeSet::new()) };
    let mut known = BTreeSet::new();
    for span in index.spans(Place::Memory) {
        let learned = index.values::<EntryFacts>(&span)?.filter_map(|facts| match (facts.fact, facts.agent) {
            (Fact::Learned { text, .. }, Some(agent)) => Some((agent.to_string(), text)),
            _ => None,
        });
        known.extend(learned);
    }
    Ok(known)
}

/// The times of a team's first and last entries. `None`: there are none.
pub(in crate::ops) fn period(repository: &Repository, prefix: &str) -> Result<Option<(Timestamp, Timestamp)>, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(None) };
    let mut times = Vec::new();
    for place in Place::ALL {
        let spans = index.spans(place);
        for span in spans.first().into_iter().chain(spans.last()) {
            times.extend(index.values::<EntryHeader>(span)?.map(|header| header.at));
        }
    }
    Ok(times.iter().min().copied().zip(times.iter().max().copied()))
}

/// The size of a team's ledger.
pub(crate) struct Amount {
    pub(crate) entries: usize,
    /// Entries that no remote had as of the last fetch.
    pub(crate) unsynced: usize,
}

pub(crate) fn amount(repository: &Repository, prefix: &str) -> Result<Amount, Error> {
    let Some(mut index) = Index::open(repository, prefix)? else {
        return Ok(Amount { entries: 0, unsynced: 0 });
    };
    let entries = index.count();
    Ok(Amount { entries, unsynced: index.unsynced(prefix)?.unwrap_or(entries) })
}

/// The lines that a tool call or an agent's commands wrote to a file.
pub(crate) struct Write {
    pub(crate) run: RunId,
    pub(crate) by: Authors,
    pub(crate) at: Timestamp,
    /// See `record::marks`. Empty if only the file is known.
    pub(crate) lines: Vec<String>,
}

/// Who wrote something in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Authors {
    pub(crate) agent: Option<Slug>,
    /// One of these did, by a command; a single one, or another run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) together: Vec<Slug>,
    /// No agent of the run did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<ChangeClass>,
}

impl fmt::Display for Authors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.agent, &self.together[..]) {
            (Some(agent), _) => agent.fmt(f),
            (None, []) => match self.class.and_then(ChangeClass::of_others) {
                Some(others) => write!(f, "nobody of the run: {others}"),
                None => f.write_str("squad"),
            },
            (None, by) => write!(f, "{}, together: one of them, by a command", together(by)),
        }
    }
}

/// All writes to a file of the project, newest first. `root`: the project's path in the repository, ending in `/`.
pub(crate) fn writes(repository: &Repository, prefix: &str, root: &str, path: &str) -> Result<Vec<Write>, Error> {
    let in_repository = format!("{root}{path}");
    let Some(index) = Index::open(repository, prefix)? else { return Ok(Vec::new()) };
    let mut writes: Vec<Write> = Vec::new();
    for span in index.spans(Place::Log) {
        for row in index.rows::<FileWrites>(&span)?.into_iter().rev() {
            let is_its = |FileWrites { named, changed }: &FileWrites| {
                named.iter().any(|named| named == path) || changed.contains(&in_repository)
            };
            if !row.value.as_ref().is_some_and(is_its) {
                continue;
            }
            let Some(entry) = index.entry(&row)? else { continue };
            let (Some(kind), Some(run)) = (entry.known_kind(), entry.run) else { continue };
            let mut by = Authors { agent: entry.agent, ..Authors::default() };
            let lines = match &kind {
                EventKind::ToolCompleted { wrote: Some(wrote), .. } => Some(&wrote.lines),
                kind => {
                    let changed = kind.end().and_then(|(_, end)| end.changed.as_ref()).into_iter().flatten();
                    let changed = || changed.clone().filter(|change| change.path == in_repository);
                    let mut others: Vec<ChangeClass> = changed().map(|change| change.class).collect();
                    others.retain(|class| !class.is_of_agents());
                    writes.extend(others.into_iter().map(|class| {
                        let by = Authors { class: Some(class), ..Authors::default() };
                        Write { run: run.clone(), by, at: entry.at, lines: Vec::new() }
                    }));
                    let change = changed().find(|change| change.is_by_command());
                    if let Some(change) = change.filter(|change| change.class == ChangeClass::Together) {
                        by = Authors { together: change.by.clone(), ..Authors::default() };
                    }
                    change.map(|change| &change.lines)
                }
            };
            writes.extend(lines.map(|lines| Write { run, by, at: entry.at, lines: lines.clone() }));
        }
    }
    if !writes.is_empty() {
        let undone = undone(repository, prefix)?;
        writes.retain(|write| !is_undone(write, &in_repository, undone.get(&write.run)));
    }
    Ok(writes)
}

/// Whether a write was taken back, and not brought back since.
fn is_undone(write: &Write, path: &str, undos: Option<&Vec<(Timestamp, Undone)>>) -> bool {
    let is_of_it = |undone: &Undone| {
        let is_its = undone.only.as_ref().is_none_or(|only| write.by.agent.as_ref() == Some(only));
        is_its && undone.files.iter().any(|file| file == path)
    };
    let mut undos = undos.into_iter().flatten().rev().filter(|(at, undone)| *at >= write.at && is_of_it(undone));
    undos.next().is_some_and(|(_, undone)| !undone.redo)
}

/// Verdicts and lockouts from a time on, oldest first.
pub(in crate::ops) fn reviews(
    repository: &Repository,
    prefix: &str,
    since: impl FnOnce() -> Timestamp,
) -> Result<Vec<ReviewFact>, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(Vec::new()) };
    let since = since();
    let first_day = since.strftime("%Y/%m/%d").to_string();
    let mut reviews: Vec<ReviewFact> = Vec::new();
    for span in index.spans(Place::Log).iter().take_while(|span| !span.is_before(&first_day)) {
        reviews.extend(index.values::<ReviewFact>(span)?.rev().filter(|review| review.at >= since));
    }
    reviews.reverse();
    Ok(reviews)
}

/// What all verdicts say of each file's contents, without those of one run.
pub(in crate::ops) fn file_verdicts(
    repository: &Repository,
    prefix: &str,
    except: Option<&RunId>,
) -> Result<FileVerdicts, Error> {
    let mut verdicts = FileVerdicts::default();
    for ReviewFact { run, agent, ruling, .. } in reviews(repository, prefix, || Timestamp::UNIX_EPOCH)? {
        if let Ruling::Judged { verdict, judged } = ruling
            && (except.is_none() || run.as_ref() != except)
        {
            verdicts.add(verdict, agent.as_ref(), &judged);
        }
    }
    Ok(verdicts)
}

/// A branch name as the ledger records it: redacted, since a name may look like an e-mail address.
pub(in crate::ops) fn as_recorded(branch: Option<&str>) -> Option<String> {
    branch.map(|branch| Redactor::default().text(branch, &mut Vec::new()))
}

/// Sorts decisions by date, newest first; equal dates by `order`, the ledger's order.
pub(in crate::ops) fn newest_first<T>(
    all: &mut [T],
    of: impl Fn(&T) -> (&DecisionId, Option<&str>),
    order: &HashMap<DecisionId, usize>,
) {
    let key = |decision: &T| {
        let (id, date) = of(decision);
        (Reverse(date.map(|date| moment(date).to_owned())), order.get(id).copied().unwrap_or(usize::MAX))
    };
    all.sort_by_cached_key(key);
}

/// Each decision's position in the ledger, newest first.
pub(in crate::ops) fn order_of(logged: &[LoggedDecision]) -> HashMap<DecisionId, usize> {
    logged.iter().enumerate().map(|(position, logged)| (logged.decision.id.clone(), position)).collect()
}
