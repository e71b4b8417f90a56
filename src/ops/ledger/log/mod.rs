//! Runs: the newest of them, one of them entry by entry, and what is recorded from now on.

mod follow;
mod timeline;
mod when;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

pub(crate) use self::follow::{Follower, follow};
pub(crate) use self::timeline::timeline;
pub(crate) use self::when::since;
use crate::error::Failure;
use crate::git::{Error, Repository};
use crate::model::{Outcome, RunId, Slug, Usage, list};
use crate::ops::ledger::index::{EntryFacts, Fact, Index, Place, Row};
use crate::ops::run::lease::Leases;

/// A run in a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunSummary {
    pub(crate) run: RunId,
    pub(crate) started: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) message: String,
    /// An [`Outcome`], `running`, or `unknown` where another clone may know more.
    pub(crate) status: String,
    pub(crate) agents: BTreeMap<Slug, Outcome>,
    pub(crate) usage: Usage,
}

/// Which runs or entries are meant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    /// Runs that the agent was chosen for or worked in; entries of it.
    pub(crate) agent: Option<Slug>,
    /// Runs that began, or entries that were made, then or later.
    pub(crate) since: Option<Timestamp>,
}

impl Choice {
    /// The first day that may hold what is meant, as folders are named.
    fn first_day(&self) -> Option<String> {
        self.since.map(|since| since.strftime("%Y/%m/%d").to_string())
    }

    fn is_late_enough(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| at >= since)
    }

    /// Whether an entry is meant.
    fn holds(&self, at: Timestamp, agent: Option<&Slug>) -> bool {
        self.is_late_enough(at) && (self.agent.is_none() || self.agent.as_ref() == agent)
    }
}

/// What is known of a run whose beginning is still to be read.
#[derive(Default)]
struct Tail {
    ended: Option<(Timestamp, Outcome)>,
    agents: BTreeMap<Slug, Outcome>,
    usage: Usage,
    planned: Vec<Slug>,
    /// It was resumed: what was said of its end before does not hold.
    resumed: bool,
}

impl Tail {
    fn add(&mut self, at: Timestamp, agent: Option<Slug>, fact: Fact) {
        match fact {
            Fact::Ended { .. } if self.resumed => {}
            Fact::Ended { status, agents, usage } => {
                *self = Self { ended: Some((at, status)), agents, usage, ..std::mem::take(self) };
            }
            Fact::Resumed => self.resumed = true,
            Fact::Came { outcome, usage } if self.ended.is_none() => {
                if let Some(agent) = agent {
                    // Read from the end: the last word on an agent is the one that holds.
                    self.agents.entry(agent).or_insert(outcome);
                    self.usage += &usage;
                }
            }
            Fact::Planned { agents, .. } => self.planned.extend(agents),
            _ => {}
        }
    }

    fn has(&self, agent: &Slug) -> bool {
        self.agents.contains_key(agent) || self.planned.contains(agent)
    }
}

/// The newest runs that are meant, the newest first. Looks at the newest days until there are enough.
pub(crate) fn runs(
    repository: &Repository,
    prefix: &str,
    leases: &Leases,
    choice: &Choice,
    limit: usize,
) -> Result<Vec<RunSummary>, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(Vec::new()) };
    let first_day = choice.first_day();
    let mut tails: BTreeMap<RunId, Tail> = BTreeMap::new();
    let mut runs = Vec::new();
    for span in index.spans(Place::Log) {
        if runs.len() >= limit || first_day.as_ref().is_some_and(|day| span.is_before(day)) {
            break;
        }
        for mut row in index.rows::<EntryFacts>(&span)?.into_iter().rev() {
            let Some(EntryFacts { at, run: Some(run), agent, fact, .. }) = row.value.take() else { continue };
            let Fact::Started { message, is_whole } = fact else {
                tails.entry(run).or_default().add(at, agent, fact);
                continue;
            };
            let tail = tails.remove(&run).unwrap_or_default();
            if !choice.is_late_enough(at) || choice.agent.as_ref().is_some_and(|agent| !tail.has(agent)) {
                continue;
            }
            let message = if is_whole { message } else { message_of(&index, &row)? };
            runs.push(summary(run, at, message, tail, leases));
        }
    }
    runs.sort_by(|a, b| (b.started, &b.run).cmp(&(a.started, &a.run)));
    runs.truncate(limit);
    Ok(runs)
}

/// The message of a run, from the entry that began it.
pub(in crate::ops) fn message_of(index: &Index<'_>, row: &Row<EntryFacts>) -> Result<String, Error> {
    Ok(index.entry(row)?.map(|entry| entry.text).unwrap_or_default())
}

fn summary(run: RunId, started: Timestamp, message: String, tail: Tail, leases: &Leases) -> RunSummary {
    let (ended, status) = match tail.ended {
        Some((at, status)) => (Some(at), word(status)),
        None => (None, leases.status(&run).to_owned()),
    };
    RunSummary { run, started, ended, message, status, agents: tail.agents, usage: tail.usage }
}

/// As JSON has it.
fn word(outcome: Outcome) -> String {
    outcome.to_string().replace(' ', "_")
}

/// The ids of runs that begin with `id`, the newest first.
pub(crate) fn find_runs(repository: &Repository, prefix: &str, id: &str) -> Result<Vec<RunId>, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(Vec::new()) };
    let search = |first_day: &str| -> Result<Vec<RunId>, Error> {
        let mut found = Vec::new();
        for span in index.spans(Place::Log).iter().take_while(|span| !span.is_before(first_day)) {
            let starts =
                index.values::<EntryFacts>(span)?.rev().filter(|told| matches!(told.fact, Fact::Started { .. }));
            found.extend(starts.filter_map(|told| told.run).filter(|run| run.as_str().starts_with(id)));
        }
        Ok(found)
    };
    // A run's id begins with its day, and none begins before that.
    let found = search(&day_of(id))?;
    if found.is_empty() { search("") } else { Ok(found) }
}

/// The run whose id begins with `id`.
pub(crate) fn one_run(repository: &Repository, prefix: &str, id: &str) -> Result<RunId, Failure> {
    let mut found = find_runs(repository, prefix, id)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::usage(format!("there is no run `{id}`")).hint("`squad log` shows the newest runs")),
        _ => {
            Err(Failure::usage(format!("`{id}` is ambiguous: {}", list(found.iter().take(5))))
                .hint("use a longer prefix"))
        }
    }
}

/// The day that a run's id begins with, as folders are named, as far as the id goes.
fn day_of(id: &str) -> String {
    let digits: String = id.chars().take(8).take_while(char::is_ascii_digit).collect();
    let parts = [digits.get(..4), digits.get(4..6), digits.get(6..8)];
    parts.into_iter().map_while(|part| part).collect::<Vec<_>>().join("/")
}
