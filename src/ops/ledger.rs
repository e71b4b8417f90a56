//! Reads the ledger: runs, one run, decisions, learnings.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::index::{Index, Row};
use super::journal::logged_decision;
use super::lease::LiveRun;
use crate::compile::{Learning, Learnings};
use crate::git::{Day, File, Repository, Snapshot};
use crate::model::{Decision, DecisionId, Outcome, RunId, Slug, Usage, What};
use crate::record::{Entry, Read};

/// A run in a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunSummary {
    pub(crate) run: RunId,
    pub(crate) started: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) message: String,
    /// An [`Outcome`], or `running`. A run whose process is gone without an end has failed.
    pub(crate) status: String,
    pub(crate) agents: BTreeMap<Slug, Outcome>,
    pub(crate) usage: Usage,
}

/// What a ledger file is called by its path.
pub(super) fn kind_of(path: &str) -> &str {
    const ID: usize = 36;
    let name = path.rsplit('/').next().unwrap_or(path);
    name.get(ID + 1..).and_then(|rest| rest.strip_suffix(".md")).unwrap_or("")
}

fn entry(snapshot: &Snapshot, file: &File) -> Result<Option<Entry>, crate::git::Error> {
    Ok(match Entry::parse(&snapshot.read(file)?) {
        Read::Entry(entry) => Some(*entry),
        // Shown by `squad log RUN`; a summary has no use for it.
        Read::Newer { .. } | Read::Damaged { .. } => None,
    })
}

/// The newest runs, the newest first. Opens only the entries that begin and end runs, a day at a time.
pub(crate) fn runs(
    repository: &Repository,
    prefix: &str,
    live: &[LiveRun],
    limit: usize,
) -> Result<Vec<RunSummary>, crate::git::Error> {
    let Some(index) = Index::open(repository)? else { return Ok(Vec::new()) };
    let snapshot = &index.snapshot;
    let mut ended: BTreeMap<RunId, Entry> = BTreeMap::new();
    let mut runs = Vec::new();
    for day in snapshot.days(&format!("{prefix}log"))? {
        for file in snapshot.listing(&day)?.iter().rev() {
            if !matches!(kind_of(&file.name), "run.started" | "run.completed") {
                continue;
            }
            let Some(entry) = entry(snapshot, file)? else { continue };
            let Some(run) = entry.run.clone() else { continue };
            if entry.kind == "run.completed" {
                ended.insert(run, entry);
            } else if let Some(What::RunStarted { text, .. }) = entry.what() {
                let end = ended.remove(&run);
                runs.push(summary(&index, prefix, live, run, entry.at, text, end)?);
            }
        }
        if runs.len() >= limit {
            break;
        }
    }
    runs.sort_by(|a, b| (b.started, &b.run).cmp(&(a.started, &a.run)));
    runs.truncate(limit);
    Ok(runs)
}

fn summary(
    index: &Index,
    prefix: &str,
    live: &[LiveRun],
    run: RunId,
    started: Timestamp,
    message: String,
    end: Option<Entry>,
) -> Result<RunSummary, crate::git::Error> {
    let ended = end.as_ref().map(|entry| entry.at);
    if let Some(What::RunCompleted { status, agents, usage, .. }) = end.and_then(|entry| entry.what()) {
        return Ok(RunSummary { run, started, ended, message, status: word(status), agents, usage });
    }
    let is_live = live.iter().any(|live| live.run == run);
    let mut agents = BTreeMap::new();
    let mut usage = Usage::default();
    for entry in entries_of(index, prefix, &run)?.iter().filter_map(known) {
        if let (Some(agent), Some((outcome, spent))) = (&entry.agent, entry.what().as_ref().and_then(outcome)) {
            agents.insert(agent.clone(), outcome);
            usage += spent;
        }
    }
    let status = if is_live { "running".to_owned() } else { word(Outcome::Failed) };
    Ok(RunSummary { run, started, ended: None, message, status, agents, usage })
}

/// As JSON has it.
fn word(outcome: Outcome) -> String {
    outcome.to_string().replace(' ', "_")
}

fn outcome(what: &What) -> Option<(Outcome, &Usage)> {
    match what {
        What::Completed { usage, .. } => Some((Outcome::Completed, usage)),
        What::Failed { usage, .. } => Some((Outcome::Failed, usage)),
        What::TimedOut { usage, .. } => Some((Outcome::TimedOut, usage)),
        What::Cancelled { usage, .. } => Some((Outcome::Cancelled, usage)),
        _ => None,
    }
}

fn known((_, read): &(String, Read)) -> Option<&Entry> {
    match read {
        Read::Entry(entry) => Some(entry),
        Read::Newer { .. } | Read::Damaged { .. } => None,
    }
}

/// The ids of runs that begin with `prefix_of_id`, the newest first.
pub(crate) fn find_runs(repository: &Repository, prefix: &str, id: &str) -> Result<Vec<RunId>, crate::git::Error> {
    let Some(snapshot) = repository.ledger().snapshot()? else { return Ok(Vec::new()) };
    let days = snapshot.days(&format!("{prefix}log"))?;
    let search = |is_likely: &dyn Fn(&Day) -> bool| -> Result<Vec<RunId>, crate::git::Error> {
        let mut found = Vec::new();
        for day in days.iter().filter(|day| is_likely(day)) {
            for file in snapshot.listing(day)?.iter().rev().filter(|file| kind_of(&file.name) == "run.started") {
                let run = entry(&snapshot, file)?.and_then(|entry| entry.run);
                found.extend(run.filter(|run| run.as_str().starts_with(id)));
            }
        }
        Ok(found)
    };
    // A run's id begins with its day; made before midnight, the run may begin after it.
    let date = id.get(..id.len().min(8)).unwrap_or(id);
    let found = search(&|day| dates(day).iter().any(|found| found.starts_with(date)))?;
    if found.is_empty() { search(&|_| true) } else { Ok(found) }
}

/// A day folder's date and the one before, as ids of runs have them.
fn dates(day: &Day) -> Vec<String> {
    let date: String = day.path.chars().filter(char::is_ascii_digit).collect();
    let date = date.get(date.len().saturating_sub(8)..).unwrap_or_default().to_owned();
    let before = date.parse::<jiff::civil::Date>().and_then(jiff::civil::Date::yesterday);
    [Some(date), before.ok().map(|before| before.strftime("%Y%m%d").to_string())].into_iter().flatten().collect()
}

/// Everything a run left, in its order, each with its path.
pub(crate) fn timeline(
    repository: &Repository,
    prefix: &str,
    run: &RunId,
) -> Result<Vec<(String, Read)>, crate::git::Error> {
    match Index::open(repository)? {
        Some(index) => entries_of(&index, prefix, run),
        None => Ok(Vec::new()),
    }
}

fn entries_of(index: &Index, prefix: &str, run: &RunId) -> Result<Vec<(String, Read)>, crate::git::Error> {
    // A run's id begins with its day, and nothing of it is older.
    let day = |run: &str| Some(format!("{}/{}/{}", run.get(..4)?, run.get(4..6)?, run.get(6..8)?));
    let first = day(run.as_str()).unwrap_or_default();
    let mut entries = Vec::new();
    for kept in KEPT {
        let folder = format!("{prefix}{kept}");
        for day in index.snapshot.days(&folder)? {
            if day.path.strip_prefix(&folder).is_some_and(|day| day.trim_start_matches('/') < first.as_str()) {
                break;
            }
            // What cannot be understood may belong to it.
            let may_belong = |row: &Row| row.entry.as_ref().is_none_or(|about| about.run.as_ref() == Some(run));
            for (path, bytes) in index.entries(&day, may_belong)? {
                let read = Entry::parse(&bytes);
                let belongs = match &read {
                    Read::Entry(entry) => entry.run.as_ref() == Some(run),
                    Read::Newer { .. } | Read::Damaged { .. } => String::from_utf8_lossy(&bytes).contains(run.as_str()),
                };
                if belongs {
                    entries.push((path, read));
                }
            }
        }
    }
    entries.sort_by_key(|(path, read)| match read {
        Read::Entry(entry) => (entry.seq.unwrap_or(u64::MAX), path.clone()),
        Read::Newer { .. } | Read::Damaged { .. } => (u64::MAX, path.clone()),
    });
    Ok(entries)
}

/// The decisions the ledger holds, the newest first, with the branch each was made for and where it has landed.
pub(crate) struct LoggedDecision {
    pub(crate) decision: Decision,
    pub(crate) branch: Option<String>,
    pub(crate) landed: Vec<String>,
}

pub(crate) fn decisions(repository: &Repository, prefix: &str) -> Result<Vec<LoggedDecision>, crate::git::Error> {
    let Some(snapshot) = repository.ledger().snapshot()? else { return Ok(Vec::new()) };
    let mut landed: BTreeMap<DecisionId, Vec<String>> = BTreeMap::new();
    let mut logged = Vec::new();
    for (_, bytes) in snapshot.files(&format!("{prefix}decisions"))? {
        let Read::Entry(entry) = Entry::parse(&bytes) else { continue };
        match entry.what() {
            Some(What::DecisionLanded { decisions, branch, .. }) => {
                for id in decisions {
                    landed.entry(id).or_default().push(branch.clone());
                }
            }
            Some(What::DecisionLogged { branch, .. }) => {
                logged.extend(logged_decision(&entry).map(|decision| (decision, branch)))
            }
            _ => {}
        }
    }
    let mut decisions: Vec<LoggedDecision> = logged
        .into_iter()
        .map(|(decision, branch)| LoggedDecision {
            landed: landed.get(&decision.id).cloned().unwrap_or_default(),
            decision,
            branch,
        })
        .collect();
    decisions.reverse();
    Ok(decisions)
}

/// Learnings of all agents that a prompt may hold; the newest days first until there are enough.
pub(crate) fn learnings(repository: &Repository, prefix: &str) -> Result<Learnings, crate::git::Error> {
    const ENOUGH: usize = 200;
    let mut learnings = Learnings::new();
    let Some(snapshot) = repository.ledger().snapshot()? else { return Ok(learnings) };
    let mut count = 0;
    for day in snapshot.days(&format!("{prefix}memory"))? {
        for file in snapshot.listing(&day)?.iter().rev() {
            let Some(entry) = entry(&snapshot, file)? else { continue };
            if let Some(agent) = entry.agent.filter(|_| entry.kind == "memory.logged") {
                let date = entry.at.strftime("%Y-%m-%d").to_string();
                let learning = Learning { entry: entry.id.to_string(), date, text: entry.text };
                learnings.entry(agent).or_default().push(learning);
                count += 1;
            }
        }
        if count >= ENOUGH {
            break;
        }
    }
    learnings.values_mut().for_each(|texts| texts.reverse());
    Ok(learnings)
}

/// Where a team's entries lie.
const KEPT: [&str; 3] = ["log", "decisions", "memory"];

/// How many entries the team's ledger holds.
pub(crate) fn count(repository: &Repository, prefix: &str) -> Result<usize, crate::git::Error> {
    let Some(snapshot) = repository.ledger().snapshot()? else { return Ok(0) };
    KEPT.iter().map(|kept| snapshot.count(&format!("{prefix}{kept}"))).sum()
}

/// How many of them no remote has, as far as this clone knows; `None` where it never asked one.
pub(crate) fn unsynced(repository: &Repository, prefix: &str) -> Result<Option<usize>, crate::git::Error> {
    repository.unsynced(&KEPT.map(|kept| format!("{prefix}{kept}")))
}

/// What one tool call put into a file.
pub(crate) struct Write {
    pub(crate) run: RunId,
    pub(crate) agent: Option<Slug>,
    pub(crate) at: Timestamp,
    /// See `record::marks`.
    pub(crate) lines: Vec<String>,
}

/// Everything that tool calls put into a file of the project, the newest first.
pub(crate) fn writes(repository: &Repository, prefix: &str, path: &str) -> Result<Vec<Write>, crate::git::Error> {
    let Some(snapshot) = repository.ledger().snapshot()? else { return Ok(Vec::new()) };
    let mut writes = Vec::new();
    for day in snapshot.days(&format!("{prefix}log"))? {
        for file in snapshot.listing(&day)?.iter().rev().filter(|file| kind_of(&file.name) == "tool.completed") {
            let Some(entry) = entry(&snapshot, file)? else { continue };
            if let (Some(What::ToolCompleted { wrote: Some(wrote), .. }), Some(run)) = (entry.what(), entry.run.clone())
                && wrote.path == path
            {
                writes.push(Write { run, agent: entry.agent, at: entry.at, lines: wrote.lines });
            }
        }
    }
    Ok(writes)
}
