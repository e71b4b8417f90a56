//! Resuming a run: reads from its entries what it has done already, so that finished work is not repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use clap::ValueEnum;

use crate::compile::{PastCall, PastCalls};
use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{
    Attachment, Decision, End, EntryId, Event, EventKind, IntoMap, IntoSet, JudgedFiles, Outcome, Plan, PlanKind,
    Position, ProjectCheck, RunEnd, RunId, Slug, Verdict, list,
};
use crate::ops::Project;
use crate::ops::ledger::log::{self, Choice, timeline};
use crate::ops::ledger::lost;
use crate::ops::run::before::opens_session;
use crate::ops::run::lease::{self, LEASE_CHECK, LEASE_CHECKS, LEASE_PAUSE};
use crate::policy::Permissions;
use crate::program::may_be_alive;
use crate::record::Read;
use crate::route::RouteOptions;

/// A run that was interrupted.
pub(crate) struct Interrupted {
    pub(crate) run: RunId,
    pub(crate) message: String,
    /// As given in its first call.
    pub(crate) route_options: RouteOptions,
    pub(crate) no_commit: bool,
    pub(crate) permissions: Option<Permissions>,
    /// Settings given as flags in earlier calls, by flag name without dashes.
    pub(crate) flags: BTreeMap<String, String>,
    /// As they were when it last ran.
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) past: Past,
}

/// What a run has done so far; empty for a new run.
#[derive(Clone, Default)]
pub(crate) struct Past {
    /// In order.
    pub(crate) events: Vec<Event>,
    /// It has ended, and only this is done now.
    pub(super) returned: Option<Returned>,
}

/// Work that a merge gives back to its agents.
#[derive(Clone, Debug)]
pub(super) struct Returned {
    /// What it cannot be merged with.
    pub(super) onto: String,
    /// Each work's agent and commit.
    pub(super) works: Vec<(Slug, String)>,
}

/// A finished review.
pub(super) struct Judged<'p> {
    pub(super) verdict: Verdict,
    pub(super) authors: &'p [Slug],
    pub(super) judged: &'p JudgedFiles,
    pub(super) text: &'p str,
}

/// Work that an agent handed to a colleague.
pub(super) struct HandedOn<'p> {
    pub(super) request: &'p Event,
    pub(super) from: &'p Slug,
    pub(super) to: &'p Slug,
    pub(super) task: &'p str,
    /// Its tool calls so far, if the work has started.
    pub(super) begun: Option<Vec<PastCall>>,
    /// Its result, if the work was completed.
    pub(super) end: Option<&'p End>,
}

/// Finds the run with this id or prefix, and checks that it can be resumed here.
pub(crate) fn find(env: &Env, project: &Project, id: &str) -> Result<Interrupted, Failure> {
    let repository = &project.repository;
    // Records the end of runs whose processes have died.
    lost::settle(env, repository);
    let prefix = project.ledger_prefix();
    let run = log::one_run(repository, &prefix, id)?;
    let find_live = || lease::look(&project.local()).live.into_iter().find(|live| live.run == run);
    let mut live = find_live();
    // A child that a killed run had just forked holds its lease until it executes its program.
    for _ in 0..LEASE_CHECKS {
        if live.as_ref().is_none_or(|live| may_be_alive(live.pid)) {
            break;
        }
        thread::sleep(LEASE_PAUSE);
        lost::settle(env, repository);
        live = find_live();
    }
    if let Some(live) = live {
        return Err(still_running(&run, live.pid));
    }
    let mut past = read_past(project, &prefix, &run)?;
    if past.end().is_none() {
        end_without_lease(env, project, &prefix, &run)?;
        past = read_past(project, &prefix, &run)?;
    }
    if past.end().is_some_and(|end| end.status == Outcome::Completed) {
        return Err(Failure::usage(format!("run {run} has completed: there is nothing to resume"))
            .hint(format!("`squad log {run}` shows it")));
    }
    let branch = match past.opening() {
        Some(EventKind::RunStarted { branch, .. }) => branch.clone(),
        _ => return Err(without_start(&run)),
    };
    if !past.opening().is_some_and(is_resumable) {
        return Err(Failure::usage(format!("run {run} was started by an MCP client, for members that it named"))
            .hint("have the client start them again"));
    }
    let here = repository.head()?.branch;
    if branch != here {
        let name = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "no branch".to_owned());
        let failure = Failure::team(format!("run {run} started on {}, but this is {}", name(&branch), name(&here)));
        return Err(match branch {
            Some(branch) => failure.hint(format!("go to the work tree of {branch}, or `git switch {branch}`")),
            None => failure.hint("check out the commit that it started on, with `git switch --detach`"),
        });
    }
    let planned = past.plan().into_iter().flat_map(|plan| plan.agents.iter().chain(plan.reviewers()));
    let is_gone = |agent: &&Slug| !project.team.startable().any(|member| member.slug == **agent);
    let gone: Vec<&Slug> = planned.filter(is_gone).collect();
    if !gone.is_empty() {
        return Err(Failure::team(format!("run {run} needs {}, which can no longer be started", list(gone)))
            .hint("put them back on the team, or start the task again"));
    }
    interrupted(run, past)
}

/// An ended run in which some work is given back to its agents.
pub(super) fn returning(project: &Project, run: &RunId, returned: Returned) -> Result<Interrupted, Failure> {
    let past = read_past(project, &project.ledger_prefix(), run)?;
    interrupted(run.clone(), Past { returned: Some(returned), ..past })
}

fn interrupted(run: RunId, past: Past) -> Result<Interrupted, Failure> {
    let Some(EventKind::RunStarted { text: message, permissions, agents, tier, no_commit, .. }) =
        past.opening().cloned()
    else {
        return Err(without_start(&run));
    };
    let permissions = permissions.and_then(|name| Permissions::from_str(&name, true).ok());
    let route_options = RouteOptions { agents, tier, ..RouteOptions::default() };
    let (flags, attachments) = (past.flags(), past.attachments().to_vec());
    Ok(Interrupted { run, message, route_options, no_commit, permissions, flags, attachments, past })
}

fn without_start(run: &RunId) -> Failure {
    Failure::failed(format!("run {run} cannot be resumed: its start is not in the ledger"))
}

/// Records the end of a run that has neither an end nor a lease here, as after `.git/squad` was deleted. Fails if it may be
/// running elsewhere.
fn end_without_lease(env: &Env, project: &Project, prefix: &str, run: &RunId) -> Result<(), Failure> {
    let repository = &project.repository;
    if !is_from_here(repository, prefix, run)? {
        return Err(Failure::usage(format!(
            "run {run} came from another clone, has no end that is known here, and may still be running there"
        ))
        .hint("resume it there, or start the task again; once it has ended there, `squad sync` brings its end"));
    }
    // A live run takes its lease again when it finds it gone.
    thread::sleep(LEASE_CHECK * 2);
    if let Some(live) = lease::look(&project.local()).live.into_iter().find(|live| live.run == *run) {
        return Err(still_running(run, live.pid));
    }
    lost::record_end(env, repository, prefix, run)?;
    Ok(())
}

/// Whether a run started in this clone: only this clone has its snapshots, or only this clone has its entries.
fn is_from_here(repository: &Repository, prefix: &str, run: &RunId) -> Result<bool, Failure> {
    if repository.last_snapshot(run.as_str())? > 0 {
        return Ok(true);
    }
    let timeline = timeline(repository, prefix, Some(run), &Choice::default())?;
    let Some(first) = timeline.entries().next().transpose()?.map(|(path, _)| path) else { return Ok(true) };
    for tip in repository.remote_tips()? {
        // A copy that cannot be read shows nothing; the next fetch brings it again.
        if let Ok(copy) = repository.ledger().snapshot_at(&tip)
            && copy.find(&first)?.is_some()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn still_running(run: &RunId, pid: u32) -> Failure {
    Failure::usage(format!("run {run} is still running, in process {pid}"))
        .hint(format!("`squad log {run} --follow` shows it; `squad cancel {run}` ends it"))
}

/// An MCP client starts members that it named again itself.
fn is_resumable(opening: &EventKind) -> bool {
    matches!(opening, EventKind::RunStarted { members, .. } if members.is_empty())
}

/// What the user can do about a run that was killed. `None`: this team's ledger has nothing of it.
pub(crate) fn advice(repository: &Repository, prefix: &str, run: &RunId) -> Result<Option<String>, Failure> {
    if log::find_runs(repository, prefix, run.as_str())?.is_empty() {
        return Ok(None);
    }
    for entry in timeline(repository, prefix, Some(run), &Choice::default())?.entries() {
        if let (_, Read::Entry(entry)) = entry?
            && let Some(opening @ EventKind::RunStarted { .. }) = entry.known_kind()
        {
            if is_resumable(&opening) {
                break;
            }
            return Ok(Some("its MCP client can start the members again".to_owned()));
        }
    }
    Ok(Some(format!("`squad orchestrate --resume {}` resumes it", run.short())))
}

/// What is recorded of a run.
pub(super) fn read_past(project: &Project, prefix: &str, run: &RunId) -> Result<Past, Failure> {
    let mut past = Past::default();
    for entry in timeline(&project.repository, prefix, Some(run), &Choice::default())?.entries() {
        match entry? {
            (_, Read::Entry(entry)) => past.events.extend(entry.event()),
            // An unreadable entry could say that something is done.
            (path, _) => {
                return Err(Failure::failed(format!("run {run} cannot be resumed: its entry {path} cannot be read"))
                    .hint("`squad doctor` says what is wrong"));
            }
        }
    }
    Ok(past)
}

fn calls<'e>(events: impl Iterator<Item = &'e Event>) -> Vec<PastCall> {
    let mut calls = PastCalls::default();
    events.for_each(|event| calls.note(&event.kind));
    calls.0
}

impl Past {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn opening(&self) -> Option<&EventKind> {
        self.events.iter().map(|event| &event.kind).find(|kind| matches!(kind, EventKind::RunStarted { .. }))
    }

    /// The flags of all calls so far; later ones win.
    fn flags(&self) -> BTreeMap<String, String> {
        let named = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::RunStarted { flags, .. } | EventKind::RunResumed { flags, .. } => Some(flags.clone()),
            _ => None,
        });
        named.flatten().into_map()
    }

    fn attachments(&self) -> &[Attachment] {
        let passed = self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunStarted { attachments, .. } | EventKind::RunResumed { attachments, .. } => {
                Some(attachments.as_slice())
            }
            _ => None,
        });
        passed.unwrap_or_default()
    }

    /// The last that is recorded.
    fn end(&self) -> Option<&RunEnd> {
        self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunCompleted(end) => Some(end),
            _ => None,
        })
    }

    /// The last plan, unless the agents are not chosen yet.
    pub(super) fn plan(&self) -> Option<&Plan> {
        let planned = self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::RoutePlanned(plan) => Some(plan),
            _ => None,
        });
        planned.filter(|plan| plan.kind != PlanKind::Abstain && (plan.steps.is_empty() == plan.agents.is_empty()))
    }

    /// The result of an agent's completed work at a position.
    pub(super) fn completed(&self, agent: &Slug, position: Position) -> Option<&End> {
        let ends = self.at(agent, position).filter_map(|event| match &event.kind {
            EventKind::Completed(end) => Some(end),
            _ => None,
        });
        // A reviewer may have been asked again.
        ends.last()
    }

    /// Whether an agent has a session of this run, which can be resumed.
    pub(super) fn has_session(&self, agent: &Slug) -> bool {
        // A session of `squad watch` does not count: it has been recreated since.
        let is_own = |event: &Event| match &event.kind {
            EventKind::SessionCreated { session, .. } | EventKind::SessionResumed { session, .. } => {
                *session == crate::pool::session_id(agent, &event.run)
            }
            _ => false,
        };
        self.events.iter().any(|event| event.agent.as_ref() == Some(agent) && is_own(event))
    }

    /// Whether an agent's session in this run had another charter, model or tools than now.
    pub(super) fn is_remade(&self, agent: &Slug, compiled_hash: &str) -> bool {
        let of_agent = self.events.iter().rev().filter(|event| event.agent.as_ref() == Some(agent));
        let mut hashes = of_agent.filter_map(|event| match &event.kind {
            EventKind::SessionCreated { compiled_hash, .. } => Some(compiled_hash),
            _ => None,
        });
        hashes.next().is_some_and(|hash| hash != compiled_hash)
    }

    /// The tool calls of work that an agent has started at a position and not completed.
    pub(super) fn interrupted(&self, agent: &Slug, position: Position) -> Option<Vec<PastCall>> {
        let has_begun = self.at(agent, position).any(opens_session);
        let is_interrupted = has_begun && self.completed(agent, position).is_none();
        is_interrupted.then(|| calls(self.at(agent, position)))
    }

    /// An agent's events at a position, without those of work that colleagues handed to it.
    fn at(&self, agent: &Slug, position: Position) -> impl Iterator<Item = &Event> {
        let requests: BTreeSet<&EntryId> = self
            .events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::RouteRequested { .. }))
            .map(|event| &event.id)
            .into_set();
        let mut is_handed_on = false;
        self.events.iter().filter(move |event| event.agent.as_ref() == Some(agent)).filter(move |event| {
            if opens_session(event) {
                is_handed_on = event.causes.iter().any(|cause| requests.contains(cause));
            }
            event.position == position && !is_handed_on
        })
    }

    /// Work that agents handed to colleagues, in order.
    pub(super) fn handed_on(&self) -> Vec<HandedOn<'_>> {
        let requests = self.events.iter().filter_map(|request| match &request.kind {
            EventKind::RouteRequested { to, text, .. } => Some((request, to, text.as_str())),
            _ => None,
        });
        requests
            .filter_map(|(request, to, task)| {
                let from = request.agent.as_ref()?;
                let is_its = |event: &&Event| event.agent.as_ref() == Some(to);
                let begun = self.events.iter().rposition(|event| is_its(&event) && event.causes.contains(&request.id));
                let since = self.events.get(begun.unwrap_or(self.events.len())..).unwrap_or_default();
                let end = since.iter().filter(is_its).find_map(|event| event.kind.end());
                let end = end.filter(|(outcome, _)| *outcome == Outcome::Completed).map(|(_, end)| end);
                let begun = begun.map(|_| calls(since.iter().filter(is_its)));
                Some(HandedOn { request, from, to, task, begun, end })
            })
            .collect()
    }

    pub(super) fn has_step(&self, position: Position, has_ended: bool) -> bool {
        self.events.iter().filter(|event| event.position.step == position.step).any(|event| match event.kind {
            EventKind::StepStarted { .. } => !has_ended,
            EventKind::StepCompleted { status } => has_ended && status == Outcome::Completed,
            _ => false,
        })
    }

    /// How many steps of the plan are done, and how many it has.
    pub(super) fn steps(&self) -> (usize, usize) {
        let steps = self.plan().map_or(0, |plan| plan.steps.len());
        let done = (1..).take(steps).take_while(|number| self.has_step(Position::new(*number, 1), true)).count();
        (done, steps)
    }

    /// A reviewer's verdicts at a position, in order.
    pub(super) fn judged(&self, reviewer: &Slug, position: Position) -> Vec<Judged<'_>> {
        let is_its = |event: &&Event| event.position == position && event.agent.as_ref() == Some(reviewer);
        let judged = self.events.iter().filter(is_its).filter_map(|event| match &event.kind {
            EventKind::ReviewVerdict { verdict, authors, judged, text } => {
                Some(Judged { verdict: *verdict, authors, judged, text })
            }
            _ => None,
        });
        judged.collect()
    }

    /// Whether an agent has begun to revise what was judged at a position, or to work in a later step.
    pub(super) fn goes_on_after(&self, position: Position, has_steps: bool) -> bool {
        let Position { step, attempt } = position;
        self.events.iter().filter(|event| opens_session(event)).any(|event| {
            let is_revision = event.position.step == step && event.position.attempt > attempt;
            is_revision || (has_steps && event.position.step > step)
        })
    }

    /// The agents that the review at a position locked out.
    pub(super) fn locked_out(&self, position: Position) -> BTreeSet<&Slug> {
        let locked = |event: &&Event| matches!(event.kind, EventKind::Lockout { .. }) && event.position == position;
        self.events.iter().filter(locked).filter_map(|event| event.agent.as_ref()).into_set()
    }

    /// The agent that has started to revise at a position, and is none of those that may not.
    pub(super) fn reviser(&self, position: Position, locked: &BTreeSet<Slug>) -> Option<&Slug> {
        let may = |event: &&Event| event.agent.as_ref().is_none_or(|agent| !locked.contains(agent));
        let revises = |event: &&Event| event.position == position && may(event) && opens_session(event);
        self.events.iter().find(revises).and_then(|event| event.agent.as_ref())
    }

    /// The last check of the project that ran to its end.
    pub(super) fn check(&self) -> Option<&ProjectCheck> {
        self.events
            .iter()
            .rev()
            .find_map(|event| match &event.kind {
                EventKind::CheckCompleted(check) => Some(check),
                _ => None,
            })
            .filter(|check| check.exit_code.is_some())
    }

    /// The run's answer, if only the death of its process came after it.
    pub(super) fn answer(&self) -> Option<&str> {
        for event in self.events.iter().rev() {
            match &event.kind {
                EventKind::Answer { text } => return Some(text),
                EventKind::RunCompleted(RunEnd { status: Outcome::Lost, .. }) => {}
                EventKind::RunCompleted(_) => return None,
                _ => {}
            }
        }
        None
    }

    /// Decisions that are recorded already, so that a repeated call does not record them twice.
    pub(super) fn decisions(&self) -> Vec<Decision> {
        let logged = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::DecisionLogged { decision, .. } => Some(decision.clone()),
            _ => None,
        });
        logged.collect()
    }

    pub(super) fn learned(&self) -> Vec<(Slug, String)> {
        let logged = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::MemoryLogged { text, .. } => Some((event.agent.clone()?, text.clone())),
            _ => None,
        });
        logged.collect()
    }

    /// The agents whose work is done, each once.
    pub(super) fn done(&self) -> Vec<Slug> {
        let done = self.events.iter().filter(|event| matches!(event.kind, EventKind::Completed(_)));
        let agents = done.filter_map(|event| event.agent.clone()).filter(|agent| agent.as_str() != Slug::COORDINATOR);
        agents.into_set().into_iter().collect()
    }

    /// The agents that have clones in this run.
    pub(super) fn cloned(&self) -> impl Iterator<Item = &Slug> {
        let made = self.events.iter().filter(|event| matches!(event.kind, EventKind::CloneCreated { .. }));
        made.filter_map(|event| event.agent.as_ref())
    }

    /// The run's recorded end, with what was done since.
    pub(super) fn end_with(&self, more: RunEnd) -> RunEnd {
        let Some(mut end) = self.end().cloned() else { return more };
        end.work.extend(more.work);
        end.usage += &more.usage;
        end
    }

    /// What agents of the run, but this one, completed.
    pub(super) fn completed_by_others(&self, agent: &Slug) -> impl Iterator<Item = (&Slug, &End)> {
        self.events.iter().filter_map(move |event| match &event.kind {
            EventKind::Completed(end) => event.agent.as_ref().filter(|other| *other != agent).map(|other| (other, end)),
            _ => None,
        })
    }

    /// The coordinator's completed work, in order.
    pub(super) fn coordinators(&self) -> impl Iterator<Item = &End> {
        self.events
            .iter()
            .filter(|event| event.agent.as_ref().is_some_and(|agent| agent.as_str() == Slug::COORDINATOR))
            .filter_map(|event| match &event.kind {
                EventKind::Completed(end) => Some(end),
                _ => None,
            })
    }

    /// How many turns of the rehearsal script each agent has finished.
    pub(crate) fn played(&self) -> BTreeMap<Slug, usize> {
        let mut played = BTreeMap::new();
        for event in &self.events {
            let cut_short = matches!(event.kind, EventKind::Lost(_) | EventKind::Cancelled(_) | EventKind::Skipped(_));
            // Who was stopped before it got a message has played nothing.
            let has_played = event.kind.end().is_some_and(|(_, end)| end.usage.turns > 0);
            if let Some(agent) = event.agent.as_ref().filter(|_| has_played && !cut_short) {
                *played.entry(agent.clone()).or_default() += 1;
            }
        }
        played
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Usage;

    /// An event of the run as a whole.
    fn event(kind: Value) -> Event {
        let mut event = json!({
            "seq": 1, "at": "2026-03-01T09:00:00Z", "run": "20260301-090000-abcdef", "agent": null,
            "entry": "019ca8c2-8000-7000-8000-000000000000", "causes": [],
        });
        let Value::Object(mut kind) = kind else { unreachable!("an event is an object") };
        event.as_object_mut().expect("an object").append(&mut kind);
        serde_json::from_value(event).expect("an event")
    }

    /// The sessions of a run so far, each with the hash of its charter, tools and model.
    #[test]
    fn a_session_is_remade_if_its_last_start_was_another() {
        let started = |hash: &&str| {
            let event = json!({
                "seq": 1, "at": "2026-03-01T09:00:00Z", "run": "20260301-090000-abcdef", "agent": "ada",
                "entry": "019ca8c2-8000-7000-8000-000000000000", "step": 1, "attempt": 1, "causes": [],
                "type": "session.created", "session": "s", "model": "m", "compiled_hash": hash, "seconds": 0.1,
                "warm": false,
            });
            serde_json::from_value::<Event>(event).expect("an event")
        };
        let (ada, bob) = (Slug::fold("ada").expect("a slug"), Slug::fold("bob").expect("a slug"));
        for (hashes, now, is_remade) in [
            (&[][..], "a", false),
            (&["a"], "a", false),
            (&["a"], "b", true),
            (&["a", "b"], "a", true),
            (&["a", "b"], "b", false),
        ] {
            let past = Past { events: hashes.iter().map(started).collect(), returned: None };
            assert_eq!(past.is_remade(&ada, now), is_remade, "{hashes:?} {now}");
            assert!(!past.is_remade(&bob, now));
        }
    }

    /// Flags of a run's start and of its resumptions: each holds until a later call gives another value.
    #[test]
    fn flags_hold_through_later_resumptions() {
        let call = |(place, flags): (usize, &&[(&str, &str)])| {
            let flags: BTreeMap<_, _> = flags.iter().copied().collect();
            let kind = match place {
                0 => json!({ "type": "run.started", "text": "x", "engine": "rehearsal", "flags": flags }),
                _ => json!({ "type": "run.resumed", "permissions": "deny", "done": [], "flags": flags }),
            };
            event(kind)
        };
        let (one, two) = ([("tier", "full")], [("tier", "standard"), ("timeout", "1m")]);
        for (calls, flags) in [
            (vec![&one[..]], "tier=full"),
            (vec![&one, &[]], "tier=full"),
            (vec![&[], &one, &[]], "tier=full"),
            (vec![&one, &two, &[]], "tier=standard timeout=1m"),
            (vec![&two, &one], "tier=full timeout=1m"),
            (vec![&[], &two, &one], "tier=full timeout=1m"),
        ] {
            let past = Past { events: calls.iter().enumerate().map(call).collect(), returned: None };
            let shown: Vec<String> = past.flags().iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(shown.join(" "), flags, "{calls:?}");
        }
    }

    /// Answers and ends of a run in any order: an answer counts until a process has recorded an end of its own.
    #[test]
    fn an_answer_outlives_the_process_that_gave_it() {
        let told = |kind: &&str| {
            let kind = match *kind {
                "lost" | "failed" => json!({
                    "type": "run.completed", "status": kind, "agents": {}, "work": [], "rejections": 0, "commits": [],
                    "usage": Usage::default(), "error": null,
                }),
                text => json!({ "type": "run.answer", "text": text }),
            };
            event(kind)
        };
        for (events, answer) in [
            (&[][..], None),
            (&["One."], Some("One.")),
            (&["One.", "lost"], Some("One.")),
            (&["One.", "lost", "lost"], Some("One.")),
            (&["One.", "failed"], None),
            (&["One.", "failed", "lost"], None),
            (&["One.", "failed", "Two."], Some("Two.")),
            (&["One.", "failed", "Two.", "lost"], Some("Two.")),
            (&["lost"], None),
        ] {
            let past = Past { events: events.iter().map(told).collect(), returned: None };
            assert_eq!(past.answer(), answer, "{events:?}");
        }
    }
}
