//! What an interrupted run had spent of its budgets, from its entries.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::model::{Event, EventKind, Outcome, Slug};
use crate::pool::{Budget, Spent};
use crate::settings::BudgetSettings;

pub(super) fn budget(limits: &BudgetSettings, events: &[Event]) -> Budget {
    let (mut agents, mut spans) = (BTreeMap::<Slug, Spent>::new(), Vec::new());
    let mut working: BTreeMap<&Slug, (Timestamp, Timestamp)> = BTreeMap::new();
    let mut calling: BTreeSet<(&Slug, &str)> = BTreeSet::new();
    for event in events {
        let Some(agent) = &event.agent else { continue };
        let spent = agents.entry(agent.clone()).or_default();
        match &event.kind {
            EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. } => {
                working.entry(agent).or_insert((event.at, event.at));
            }
            EventKind::PermissionAnswered { .. } => drop(working.insert(agent, (event.at, event.at))),
            EventKind::Usage(usage) => spent.add(usage),
            EventKind::ToolStarted { call, .. } => drop(calling.insert((agent, call))),
            EventKind::ToolCompleted { call, .. } => drop(calling.remove(&(agent, call.as_str()))),
            _ => {}
        }
        let end = event.kind.end();
        if let Some((_, end)) = end {
            spent.turns += end.usage.turns;
            // A call that was going on when the run's process died has no end.
            let cut_short = calling.extract_if(.., |(caller, _)| *caller == agent).count();
            spent.tool_calls += end.usage.tool_calls + cut_short as u64;
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Usage;

    fn event(second: i64, agent: &str, kind: Value) -> Event {
        let at = Timestamp::from_second(1_767_603_600 + second).expect("a time");
        let mut event = json!({
            "seq": 1, "at": at, "run": "20260105-090000-abcdef", "agent": agent,
            "entry": "019ca8c2-8000-7000-8000-000000000000", "step": 1, "attempt": 1, "causes": [],
        });
        event.as_object_mut().expect("an object").append(&mut kind.as_object().expect("an object").clone());
        serde_json::from_value(event).expect("an event")
    }

    /// Two agents side by side, one of which waits for a person; then one that is killed in a call.
    #[test]
    fn what_was_spent_is_read_from_what_was_recorded() {
        let opens = json!({"type": "session.resumed", "session": "s"});
        let asks = json!({"type": "permission.asked", "tool": "bash", "access": "shell", "detail": "ls"});
        let answered = json!({"type": "permission.answered", "tool": "bash", "detail": "ls", "allowed": true});
        let used = json!({"type": "usage", "input_tokens": 90, "output_tokens": 10, "cost_usd": 0.5});
        let calls = json!({"type": "tool.started", "call": "c", "tool": "bash", "detail": "ls"});
        let ends = |kind: &str, tool_calls| {
            let usage = Usage { turns: 1, tool_calls, ..Usage::default() };
            json!({"type": kind, "text": "", "usage": usage})
        };
        let events = [
            event(0, "ada", opens.clone()),
            event(2, "bob", opens.clone()),
            event(5, "ada", asks),
            event(65, "ada", answered),
            event(6, "bob", used),
            event(10, "bob", ends("agent.completed", 3)),
            event(70, "ada", ends("agent.completed", 1)),
            event(80, "ada", opens),
            event(85, "ada", calls),
            event(900, "ada", ends("agent.lost", 0)),
        ];
        let limits = BudgetSettings::default();
        let budget = budget(&limits, &events);
        let (run, agents) = budget.spent();
        let told = |spent: &Spent| (spent.turns, spent.tool_calls, spent.time.as_secs(), spent.tokens);
        let of = |name: &str| told(&agents[&Slug::fold(name).expect("a slug")]);
        assert_eq!((told(&run), of("ada"), of("bob")), ((3, 5, 20, 100), (2, 2, 15, 0), (1, 3, 8, 100)));
    }
}
