//! What has been spent of a run's budgets: by an interrupted run, from its entries, and by all runs of its team.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use crate::env::Env;
use crate::model::{Event, EventKind, Outcome, RunId, Slug};
use crate::ops::Project;
use crate::ops::ledger::log::{self, Choice, RunSummary};
use crate::ops::run::lease;
use crate::pool::{Budget, OfRun, Spending, Spent, date};
use crate::settings::BudgetSettings;

/// The budgets of a run, with what it and the team's other runs have spent.
pub(super) fn budget(env: &Env, project: &Project, run: &RunId, events: &[Event]) -> Budget {
    let limits = &project.settings.budget;
    let (mut agents, mut time) = spent_by(events);
    let file = file(project);
    if *limits == BudgetSettings::default() && !file.exists() {
        return Budget::new(limits.clone(), agents, time);
    }
    let spending = Spending::new(file, env.clock.clone(), run.clone());
    // Not all that was spent is in the entries of a run that was killed.
    if let Some(known) = spending.of_run().filter(|_| !events.is_empty()) {
        for (agent, spent) in &known.agents {
            let recorded = agents.remove(agent).unwrap_or_default();
            agents.insert(agent.clone(), recorded.or_more(spent));
        }
        time = time.max(known.time);
    }
    let earlier = |runs: &BTreeMap<RunId, OfRun>| earlier(env, project, runs);
    let is_known = if limits.spans_runs() { spending.complete(earlier) } else { Ok(()) };
    Budget::new(limits.clone(), agents, time).with_spending(is_known.map(|()| spending))
}

/// One for each team of the repository.
fn file(project: &Project) -> PathBuf {
    let team = blake3::hash(project.ledger_prefix().as_bytes()).to_hex();
    project.local().join(format!("spent-{}.json", &team[..12]))
}

/// What the team's runs have spent, by the date of their start, as the ledger has it.
fn earlier(env: &Env, project: &Project, runs: &BTreeMap<RunId, OfRun>) -> Result<Vec<(String, Spent)>, String> {
    let leases = lease::look(&project.local());
    let all = log::runs(&project.repository, &project.ledger_prefix(), &leases, &Choice::default(), usize::MAX);
    let all = all.map_err(|error| format!("the ledger cannot be read: {error}"))?;
    let spent = |summary: RunSummary| {
        let mut spent = Spent {
            turns: summary.usage.turns,
            tool_calls: summary.usage.tool_calls,
            time: Duration::try_from_secs_f64(summary.usage.seconds).unwrap_or_default(),
            ..Spent::default()
        };
        spent.add(&summary.usage);
        if let Some(OfRun { agents, time }) = runs.get(&summary.run) {
            let mut known = Spent::default();
            agents.values().for_each(|agent| known.add_all(agent));
            spent = spent.or_more(&Spent { time: *time, ..known });
        }
        (date(&env.clock, summary.started), spent)
    };
    Ok(all.into_iter().map(spent).collect())
}

/// What each agent of an interrupted run had spent, and the time of them all.
fn spent_by(events: &[Event]) -> (BTreeMap<Slug, Spent>, Duration) {
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
    (agents, time)
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
        let (agents, time) = spent_by(&events);
        let (run, agents) = Budget::new(BudgetSettings::default(), agents, time).spent();
        let told = |spent: &Spent| (spent.turns, spent.tool_calls, spent.time.as_secs(), spent.tokens);
        let of = |name: &str| told(&agents[&Slug::fold(name).expect("a slug")]);
        assert_eq!((told(&run), of("ada"), of("bob")), ((3, 5, 20, 100), (2, 2, 15, 0), (1, 3, 8, 100)));
    }
}
