//! What an interrupted run had spent of its budgets, from its entries.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::model::{Event, EventKind, Outcome, Slug};
use crate::pool::{Budget, Spent};
use crate::settings::BudgetSettings;

pub(super) fn budget(limits: &BudgetSettings, events: &[Event]) -> Budget {
    let (mut agents, mut spans) = (BTreeMap::<Slug, Spent>::new(), Vec::new());
    let mut working: BTreeMap<&Slug, (Timestamp, Timestamp)> = BTreeMap::new();
    for event in events {
        let Some(agent) = &event.agent else { continue };
        let spent = agents.entry(agent.clone()).or_default();
        match &event.kind {
            EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. } => {
                working.entry(agent).or_insert((event.at, event.at));
            }
            EventKind::PermissionAnswered { .. } => drop(working.insert(agent, (event.at, event.at))),
            EventKind::Usage(usage) => {
                spent.add(usage);
            }
            _ => {}
        }
        let end = event.kind.end();
        if let Some((_, end)) = end {
            spent.turns += end.usage.turns;
            spent.tool_calls += end.usage.tool_calls;
        }
        // Nobody worked between the death of a run's process and when that was recorded.
        let is_lost = end.is_some_and(|(outcome, _)| outcome == Outcome::Lost);
        if let Some((_, last)) = working.get_mut(agent).filter(|_| !is_lost) {
            *last = event.at;
        }
        if end.is_some() || matches!(event.kind, EventKind::PermissionAsked { .. }) {
            spans.extend(working.remove(agent).map(|span| (agent, span)));
        }
    }
    for (agent, span) in &spans {
        agents.entry((*agent).clone()).or_default().time += length(*span);
    }
    let mut together: Vec<(Timestamp, Timestamp)> = spans.into_iter().map(|(_, span)| span).collect();
    together.sort_unstable();
    let (mut time, mut until) = (Duration::ZERO, Timestamp::MIN);
    for (begun, ended) in together {
        time += length((begun.max(until), ended));
        until = until.max(ended);
    }
    Budget::new(limits.clone(), agents, time)
}

fn length((begun, ended): (Timestamp, Timestamp)) -> Duration {
    Duration::try_from(ended.duration_since(begun)).unwrap_or_default()
}
