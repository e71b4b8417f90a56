//! Runs: a list of the newest, the entries of one, and following new entries.

mod follow;
mod timeline;
mod usage;
mod when;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

pub(crate) use self::follow::{Follower, follow};
pub(crate) use self::timeline::{Timeline, added_since, timeline};
pub(crate) use self::usage::{AgentRuns, Sum, UsageSums, agent_runs, forecasts, usage};
pub(crate) use self::when::since;
use crate::error::Failure;
use crate::git::{Error, Repository};
use crate::model::{Outcome, PlanKind, RunId, Slug, Sort, UndoState, Undone, Usage};
use crate::ops::ledger::index::{EntryFacts, Fact, Index, Place, Row};
use crate::ops::only;
use crate::ops::run::lease::Leases;

/// A run for a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunSummary {
    pub(crate) run: RunId,
    pub(crate) started: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) message: String,
    /// An [`Outcome`], `running`, or `unknown` if another clone may know more.
    pub(crate) status: String,
    pub(crate) agents: BTreeMap<Slug, Outcome>,
    pub(crate) usage: Usage,
    /// Whether the project's check passed at its end; `None`: it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<bool>,
    /// The last check failed: the project's, or else the last that an agent ran.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) check_failed: bool,
    /// How often work was rejected.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) rejections: u64,
    /// All that it changed was undone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) undone: bool,
    /// Lines that its agents added and removed.
    #[serde(skip)]
    pub(crate) lines: (u64, u64),
    /// It only answered.
    #[serde(skip)]
    pub(crate) is_answer: bool,
}

impl RunSummary {
    /// Its status, for people.
    pub(crate) fn word(&self) -> String {
        match self.status.as_str() {
            "completed" if self.check_failed => "check failed".to_owned(),
            "completed" if self.rejections > 0 => "revised".to_owned(),
            status => status.replace('_', " "),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A filter for runs or entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    /// Runs for which the agent was chosen or worked; entries of the agent.
    pub(crate) agent: Option<Slug>,
    /// Runs started, or entries recorded, at or after this time.
    pub(crate) since: Option<Timestamp>,
}

impl Choice {
    /// The first day that may have matches, in the form of folder names.
    fn first_day(&self) -> Option<String> {
        self.since.map(|since| since.strftime("%Y/%m/%d").to_string())
    }

    fn is_late_enough(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| at >= since)
    }

    /// Whether an entry matches.
    fn matches(&self, at: Timestamp, agent: Option<&Slug>) -> bool {
        self.is_late_enough(at) && (self.agent.is_none() || self.agent.as_ref() == agent)
    }
}

/// The data of a run whose start has not been read yet.
#[derive(Default)]
struct PartialRun {
    ended: Option<(Timestamp, Outcome)>,
    agents: BTreeMap<Slug, Outcome>,
    usage: Usage,
    planned: Vec<Slug>,
    is_answer: bool,
    lines: (u64, u64),
    verified: Option<bool>,
    check_failed: bool,
    rejections: u64,
    /// The run was resumed: ends before that do not count.
    resumed: bool,
    /// The newest first.
    undos: Vec<Undone>,
}

impl PartialRun {
    fn add(&mut self, at: Timestamp, agent: Option<Slug>, fact: Fact) {
        match fact {
            Fact::Ended { .. } | Fact::Undone(_) if self.resumed => {}
            Fact::Undone(undone) => self.undos.push(undone),
            Fact::Ended { status, agents, usage, lines, verified, check_failed, rejections } => {
                let ended = Some((at, status));
                *self =
                    Self { ended, agents, usage, lines, verified, check_failed, rejections, ..std::mem::take(self) };
            }
            Fact::Resumed => self.resumed = true,
            Fact::AgentEnded { outcome, usage, .. } if self.ended.is_none() => {
                if let Some(agent) = agent {
                    // Entries are read backwards, so the first outcome of an agent is the final one.
                    self.agents.entry(agent).or_insert(outcome);
                    self.usage += &usage;
                }
            }
            Fact::Planned { kind, agents, .. } => {
                self.is_answer = kind == PlanKind::Direct;
                self.planned.extend(agents);
            }
            _ => {}
        }
    }

    fn has(&self, agent: &Slug) -> bool {
        self.agents.contains_key(agent) || self.planned.contains(agent)
    }
}

/// The newest matching runs, newest first. Reads days backwards until there are enough.
pub(crate) fn runs(
    repository: &Repository,
    prefix: &str,
    leases: &Leases,
    choice: &Choice,
    limit: usize,
) -> Result<Vec<RunSummary>, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(Vec::new()) };
    let first_day = choice.first_day();
    let mut partials: BTreeMap<RunId, PartialRun> = BTreeMap::new();
    let mut runs = Vec::new();
    for span in index.spans(Place::Log) {
        if runs.len() >= limit || first_day.as_ref().is_some_and(|day| span.is_before(day)) {
            break;
        }
        for mut row in index.rows::<EntryFacts>(&span)?.into_iter().rev() {
            let Some(EntryFacts { at, run: Some(run), agent, fact, .. }) = row.value.take() else { continue };
            let Fact::Started { message, is_whole, .. } = fact else {
                partials.entry(run).or_default().add(at, agent, fact);
                continue;
            };
            let partial = partials.remove(&run).unwrap_or_default();
            if !choice.is_late_enough(at) || choice.agent.as_ref().is_some_and(|agent| !partial.has(agent)) {
                continue;
            }
            let message = if is_whole { message } else { message_of(&index, &row)? };
            runs.push(summary(run, at, message, partial, leases));
        }
    }
    runs.stable_sort_by(|a, b| (b.started, &b.run).cmp(&(a.started, &a.run)));
    runs.truncate(limit);
    Ok(runs)
}

/// The message of a run, from the entry that started it.
pub(in crate::ops) fn message_of(index: &Index<'_>, row: &Row<EntryFacts>) -> Result<String, Error> {
    Ok(index.entry(row)?.map(|entry| entry.text).unwrap_or_default())
}

fn summary(run: RunId, started: Timestamp, message: String, partial: PartialRun, leases: &Leases) -> RunSummary {
    let (ended, status) = match partial.ended {
        Some((at, status)) => (Some(at), status_name(status)),
        None => (None, leases.status(&run).to_owned()),
    };
    let mut state = UndoState::default();
    partial.undos.iter().rev().for_each(|undone| state.add(undone));
    let PartialRun { agents, usage, lines, verified, check_failed, rejections, is_answer, .. } = partial;
    let undone = state.has(None);
    RunSummary {
        run,
        started,
        ended,
        message,
        status,
        agents,
        usage,
        verified,
        check_failed,
        rejections,
        undone,
        lines,
        is_answer,
    }
}

/// The form used in JSON.
fn status_name(outcome: Outcome) -> String {
    outcome.to_string().replace(' ', "_")
}

/// The ids of runs that start with `id` or have it as their short form, newest first.
pub(crate) fn find_runs(repository: &Repository, prefix: &str, id: &str) -> Result<Vec<RunId>, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(Vec::new()) };
    let search = |first_day: &str| -> Result<Vec<RunId>, Error> {
        let mut spans = index.spans(Place::Log);
        spans.retain(|span| !span.is_before(first_day));
        spans.reverse();
        let facts = index.rows_of::<EntryFacts>(&spans)?.into_iter().rev().filter_map(|row| row.value);
        let starts = facts.filter(|facts| matches!(facts.fact, Fact::Started { .. }));
        Ok(starts.filter_map(|facts| facts.run).filter(|run| run.is_meant_by(id)).collect())
    };
    // A run's id starts with its day, so normally the run is not older.
    let found = search(&day_of(id))?;
    if found.is_empty() { search("") } else { Ok(found) }
}

/// The only run that `id` may mean.
pub(crate) fn one_run(repository: &Repository, prefix: &str, id: &str) -> Result<RunId, Failure> {
    only(find_runs(repository, prefix, id)?, id, RunId::as_str)?
        .ok_or_else(|| Failure::usage(format!("there is no run `{id}`")).hint("`squad log` shows the newest runs"))
}

/// The day at the start of a run's id, possibly partial, in the form of folder names.
fn day_of(id: &str) -> String {
    let digits: String = id.chars().take(8).take_while(char::is_ascii_digit).collect();
    let parts = [digits.get(..4), digits.get(4..6), digits.get(6..8)];
    parts.into_iter().map_while(|part| part).collect::<Vec<_>>().join("/")
}
