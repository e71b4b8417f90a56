//! What was used, summed up from the ends of agents' work.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Choice, timeline};
use crate::env::Clock;
use crate::git::{Error, Repository};
use crate::model::{EventKind, Forecast, Outcome, RunEnd, RunId, Slug, Usage};
use crate::ops::ledger::index::{EntryFacts, Fact, Index, Place, WorkEnd};
use crate::record::Read;

/// Sums of usage. `seconds` are working time of agents, also of those side by side.
#[derive(Debug, Default, Serialize)]
pub(crate) struct UsageSums {
    pub(crate) total: Usage,
    pub(crate) days: Vec<Sum>,
    pub(crate) agents: Vec<Sum>,
    pub(crate) models: Vec<Sum>,
    pub(crate) runs: Vec<Sum>,
}

/// The usage of a day by the user's calendar, such as `2026-01-05`, an agent, a model or a run.
#[derive(Debug, Serialize)]
pub(crate) struct Sum {
    pub(crate) of: String,
    pub(crate) usage: Usage,
}

/// The usage of all matching work. Its models are those that engines said they used; of others, the engines' defaults.
pub(crate) fn usage(repository: &Repository, prefix: &str, choice: &Choice, clock: &Clock) -> Result<UsageSums, Error> {
    let Some(index) = Index::open(repository, prefix)? else { return Ok(UsageSums::default()) };
    let (mut days, mut models) = <(BTreeMap<String, Usage>, BTreeMap<String, Usage>)>::default();
    let (mut agents, mut runs) = <(BTreeMap<Slug, Usage>, BTreeMap<RunId, Usage>)>::default();
    let mut total = Usage::default();
    let first_day = choice.first_day();
    for span in index.spans(Place::Log) {
        if first_day.as_ref().is_some_and(|day| span.is_before(day)) {
            break;
        }
        for facts in index.values::<EntryFacts>(&span)? {
            let EntryFacts { at, run: Some(run), agent: Some(agent), fact, .. } = facts else { continue };
            let Fact::AgentEnded { usage, model, .. } = fact else { continue };
            if !choice.matches(at, Some(&agent)) || usage.turns == 0 {
                continue;
            }
            total += &usage;
            *days.entry(crate::pool::date(clock, at)).or_default() += &usage;
            *models.entry(model.map(|model| model.shown()).unwrap_or_default()).or_default() += &usage;
            *agents.entry(agent).or_default() += &usage;
            *runs.entry(run).or_default() += &usage;
        }
    }
    Ok(UsageSums { total, days: sums(days), agents: sums(agents), models: sums(models), runs: sums(runs) })
}

/// The runs in which an agent has worked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AgentRuns {
    pub(crate) count: usize,
    /// Those in which its last work failed.
    pub(crate) failed: usize,
    /// When its newest work ended.
    pub(crate) last: Option<Timestamp>,
}

pub(crate) fn agent_runs(repository: &Repository, prefix: &str) -> Result<BTreeMap<Slug, AgentRuns>, Error> {
    let mut ends = BTreeMap::<Slug, BTreeMap<RunId, (Timestamp, Outcome)>>::new();
    let Some(index) = Index::open(repository, prefix)? else { return Ok(BTreeMap::new()) };
    for span in index.spans(Place::Log) {
        for end in index.values::<WorkEnd>(&span)? {
            let WorkEnd { at, run: Some(run), agent: Some(agent), outcome } = end else { continue };
            if outcome != Outcome::Skipped {
                let end = ends.entry(agent).or_default().entry(run).or_insert((at, outcome));
                if at >= end.0 {
                    *end = (at, outcome);
                }
            }
        }
    }
    let runs = |ends: BTreeMap<RunId, (Timestamp, Outcome)>| AgentRuns {
        count: ends.len(),
        failed: ends.values().filter(|(_, outcome)| *outcome == Outcome::Failed).count(),
        last: ends.values().map(|(at, _)| *at).max(),
    };
    Ok(ends.into_iter().map(|(agent, ends)| (agent, runs(ends))).collect())
}

/// Most runs whose forecasts are read.
const FORECASTS: usize = 50;

/// What the newest of these runs were expected to use, for those with a forecast, and what they used.
pub(crate) fn forecasts(
    repository: &Repository,
    prefix: &str,
    runs: &[Sum],
) -> Result<Vec<(RunId, Forecast, Usage)>, Error> {
    let mut found = Vec::new();
    for run in runs.iter().rev().take(FORECASTS).filter_map(|sum| RunId::parse(&sum.of)) {
        for entry in timeline(repository, prefix, Some(&run), &Choice::default())?.entries() {
            let (_, Read::Entry(entry)) = entry? else { continue };
            if let Some(EventKind::RunCompleted(RunEnd { forecast: Some(forecast), usage, .. })) = entry.known_kind() {
                found.push((run.clone(), *forecast, usage));
            }
        }
    }
    found.reverse();
    Ok(found)
}

fn sums<K: ToString>(sums: BTreeMap<K, Usage>) -> Vec<Sum> {
    sums.into_iter().map(|(of, usage)| Sum { of: of.to_string(), usage }).collect()
}
