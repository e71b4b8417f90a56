//! Requests to a live run of this clone: cancel it, cancel one agent's work, or tell an agent something.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{AgentState, EventKind, Outcome, RunEnd, RunId, Slug, list};
use crate::ops::ledger::log::{Choice, find_runs, timeline};
use crate::ops::run::host::{FromClient, FromHost, activity_with, ask};
use crate::ops::run::hosts;
use crate::ops::run::lease::{self, Leases, LiveRun};
use crate::ops::run::resume;
use crate::ops::{Workspace, repository};
use crate::record::Read;

/// A run that does not react within this time hangs or is suspended.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);
/// Most bytes of a message to an agent.
const LONGEST_MESSAGE: usize = 128 * 1024;

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct CancelRequest {
    pub(crate) run: RunId,
    /// `None`: the run as a whole.
    pub(crate) agent: Option<Slug>,
    /// It had been cancelled before.
    pub(crate) was_cancelled: bool,
}

/// Asks a run to cancel. Returns when the run has received the request.
pub(crate) fn cancel(env: &Env, directory: &Path, id: &str, agent: Option<&str>) -> Result<CancelRequest, Failure> {
    let agent = agent.map(agent_named).transpose()?;
    let (repository, _) = repository(env, directory)?;
    let local = repository.own_folder();
    let mut leases = lease::look(&local);
    let request = |run: &RunId, was_cancelled| CancelRequest { run: run.clone(), agent: agent.clone(), was_cancelled };
    if let Some(live) = live_run(&leases, id)?.cloned() {
        if let Some(agent) = &agent
            && is_cancelled(&live, agent)?
        {
            return Ok(request(&live.run, true));
        }
        let is_answered = reply(&local, &live, &FromClient::Cancel { agent: agent.clone() })?.is_some();
        leases = lease::look(&local);
        // What a killed process had just started may have held its lease for a moment.
        if is_answered || !leases.dead.contains(&live.run) {
            return Ok(request(&live.run, false));
        }
    }
    over(env, directory, &repository, &leases, (id, agent.as_ref())).map(|run| request(&run, true))
}

/// Finds a live run by a prefix of its id or its short form; runs that are over do not make the prefix ambiguous.
fn live_run<'a>(leases: &'a Leases, id: &str) -> Result<Option<&'a LiveRun>, Failure> {
    let found: Vec<&LiveRun> = leases.live.iter().filter(|live| live.run.is_meant_by(id)).collect();
    match found[..] {
        [] => Ok(None),
        [live] => Ok(Some(live)),
        _ => Err(Failure::usage(format!("`{id}` is ambiguous: {}", list(found.iter().map(|live| &live.run))))
            .hint("use a longer prefix")),
    }
}

/// Handles a run that is not live: returns it if it was cancelled, else fails with the reason.
fn over(
    env: &Env,
    directory: &Path,
    repository: &Repository,
    leases: &Leases,
    (id, agent): (&str, Option<&Slug>),
) -> Result<RunId, Failure> {
    let unknown =
        || Failure::usage(format!("there is no run `{id}`")).hint("`squad status` shows the runs that are live");
    let Ok(workspace) = Workspace::find_or_recorded(env, directory) else { return Err(unknown()) };
    let prefix = workspace.ledger_prefix();
    let run = match &find_runs(repository, &prefix, id)?[..] {
        [] => return Err(unknown()),
        [run] => run.clone(),
        several => {
            return Err(Failure::usage(format!("`{id}` is ambiguous: {}", list(several.iter().take(5))))
                .hint("use a longer prefix"));
        }
    };
    let status = end_of(repository, &prefix, &run, agent)?;
    let shows = format!("`squad log {run}` shows what happened");
    let (message, is_lost) = match status {
        Some(Outcome::Cancelled) => return Ok(run),
        Some(status) => (format!("run {run} is over: {status}"), status == Outcome::Lost),
        // A job may go on without it.
        None if leases.dead.contains(&run) && hosts::withdraw(repository, &run)? > 0 => return Ok(run),
        None if leases.dead.contains(&run) => (format!("run {run} is not running: its process has died"), true),
        None => (format!("run {run} is not running in this clone"), false),
    };
    let advice = if is_lost { resume::advice(repository, &prefix, &run)? } else { None };
    let hint = advice.map_or(shows.clone(), |advice| format!("{shows}; {advice}"));
    Err(Failure::failed(message).hint(hint))
}

/// How a run that is not live ended, if that is recorded. Fails if it has no such agent.
pub(crate) fn end_of(
    repository: &Repository,
    prefix: &str,
    run: &RunId,
    agent: Option<&Slug>,
) -> Result<Option<Outcome>, Failure> {
    let mut status = None;
    let mut known = BTreeSet::new();
    for entry in timeline(repository, prefix, Some(run), &Choice::default())?.entries() {
        let (_, Read::Entry(entry)) = entry? else { continue };
        match entry.known_kind() {
            Some(EventKind::RunCompleted(RunEnd { status: ended, agents, .. })) => {
                status = Some(ended);
                known.extend(agents.into_keys());
            }
            // It goes on.
            Some(EventKind::RunResumed { .. }) => status = None,
            Some(EventKind::RoutePlanned(plan)) => known.extend(plan.agents.iter().chain(plan.reviewers()).cloned()),
            _ => known.extend(entry.agent),
        }
    }
    match agent.filter(|agent| !known.contains(agent)) {
        Some(stranger) => Err(not_in_run(stranger, run, &known)),
        None => Ok(status),
    }
}

pub(in crate::ops) fn not_in_run<'a>(agent: &Slug, run: &RunId, known: impl IntoIterator<Item = &'a Slug>) -> Failure {
    let known = list(known);
    let known = if known.is_empty() { "none yet".to_owned() } else { known };
    Failure::usage(format!("`{agent}` is not in run {run}")).hint(format!("its agents: {known}"))
}

/// The agent that somebody means by a name.
pub(crate) fn agent_named(name: &str) -> Result<Slug, Failure> {
    Slug::fold(name).ok_or_else(|| Failure::usage(format!("`{name}` is not an agent's name")))
}

/// Whether the agent was cancelled already.
fn is_cancelled(live: &LiveRun, agent: &Slug) -> Result<bool, Failure> {
    let Some(activity) = activity_with(live, agent) else { return Ok(false) };
    match activity.agents.get(agent) {
        Some(AgentState::Ended(Outcome::Cancelled)) => Ok(true),
        Some(AgentState::Ended(outcome)) => {
            Err(Failure::failed(format!("{agent} has already ended in run {}: {outcome}", live.run))
                .hint(format!("`squad cancel {}` cancels the whole run", live.run)))
        }
        Some(_) => Ok(false),
        None => Err(not_in_run(agent, &live.run, activity.agents.keys())),
    }
}

/// Sends a message to an agent of a live run, which gets it in the middle of its work. `false`: it is not working.
pub(crate) fn say(env: &Env, directory: &Path, run: &RunId, agent: &Slug, text: &str) -> Result<bool, Failure> {
    if text.len() > LONGEST_MESSAGE {
        return Err(Failure::usage("this is too long to send to an agent at work").hint("write it to a file"));
    }
    let local = repository(env, directory)?.0.own_folder();
    let leases = lease::look(&local);
    let Some(live) = leases.live.iter().find(|live| live.run == *run) else { return Ok(false) };
    let reply = reply(&local, live, &FromClient::Say { agent: agent.clone(), text: text.to_owned() })?;
    Ok(matches!(reply, Some(FromHost::Done {})))
}

/// A live run's reply. `None`: it has just ended.
fn reply(local: &Path, live: &LiveRun, request: &FromClient) -> Result<Option<FromHost>, Failure> {
    let deadline = Instant::now() + PATIENCE;
    let Some(endpoint) = &live.endpoint else { return Err(silent(live)) };
    loop {
        let patience = deadline.saturating_duration_since(Instant::now());
        match ask(endpoint, request, patience) {
            Ok(reply) => return Ok(Some(reply)),
            Err(_) if lease::look(local).status(&live.run) != "running" => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                return Err(Failure::failed(format!("cannot reach run {}: {error}", live.run))
                    .hint(format!("its process id is {}", live.pid)));
            }
            Err(error) if error.kind() == ErrorKind::TimedOut || patience.is_zero() => return Err(silent(live)),
            // It takes its lease before it listens.
            Err(_) => thread::sleep(LOOK),
        }
    }
}

fn silent(live: &LiveRun) -> Failure {
    if live.is_merged() {
        return Failure::failed(format!("run {} has ended, and `squad merge` is at it", live.run))
            .hint(format!("Ctrl-C there stops it; its process id is {}", live.pid));
    }
    Failure::failed(format!("run {} does not answer", live.run))
        .hint(format!("it acts on this as soon as it can; its process id is {}", live.pid))
}
