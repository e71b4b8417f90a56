//! Requests to a live run of this clone: cancel it, cancel one agent's work, or tell an agent something.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{AgentState, EventKind, Outcome, RunActivity, RunId, Slug, list};
use crate::ops::ledger::log::{Choice, find_runs, timeline};
use crate::ops::run::lease::{self, Leases, LiveRun};
use crate::ops::run::{live, resume};
use crate::ops::{Workspace, repository};
use crate::record::Read;

/// A run that does not react within this time hangs or is suspended.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

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
    let leases = lease::look(&local);
    let request = |run: &RunId, was_cancelled| CancelRequest { run: run.clone(), agent: agent.clone(), was_cancelled };
    let Some(live) = live_run(&leases, id)? else {
        return over(env, directory, &repository, &leases, (id, agent.as_ref())).map(|run| request(&run, true));
    };
    if let Some(agent) = &agent
        && is_cancelled(&local, live, agent)?
    {
        return Ok(request(&live.run, true));
    }
    tell(&local, live, agent.as_ref())?;
    Ok(request(&live.run, false))
}

/// Finds a live run by a prefix of its id; runs that are over do not make the prefix ambiguous.
fn live_run<'a>(leases: &'a Leases, id: &str) -> Result<Option<&'a LiveRun>, Failure> {
    let found: Vec<&LiveRun> = leases.live.iter().filter(|live| live.run.as_str().starts_with(id)).collect();
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
    let Ok(workspace) = Workspace::find(env, directory) else { return Err(unknown()) };
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
            Some(EventKind::RunCompleted { status: ended, agents, .. }) => {
                status = Some(ended);
                known.extend(agents.into_keys());
            }
            Some(EventKind::RoutePlanned(plan)) => known.extend(plan.agents.iter().chain(plan.reviewers()).cloned()),
            _ => known.extend(entry.agent),
        }
    }
    match agent.filter(|agent| !known.contains(agent)) {
        Some(stranger) => Err(not_in_run(stranger, run, &known)),
        None => Ok(status),
    }
}

fn not_in_run<'a>(agent: &Slug, run: &RunId, known: impl IntoIterator<Item = &'a Slug>) -> Failure {
    let known = list(known);
    let known = if known.is_empty() { "none yet".to_owned() } else { known };
    Failure::usage(format!("`{agent}` is not in run {run}")).hint(format!("its agents: {known}"))
}

/// The agent that somebody means by a name.
pub(crate) fn agent_named(name: &str) -> Result<Slug, Failure> {
    Slug::fold(name).ok_or_else(|| Failure::usage(format!("`{name}` is not an agent's name")))
}

/// Whether the agent was cancelled already.
fn is_cancelled(local: &Path, live: &LiveRun, agent: &Slug) -> Result<bool, Failure> {
    let activity = activity(local, live, agent)?;
    match activity.agents.get(agent) {
        Some(AgentState::Waiting | AgentState::Working) => Ok(false),
        Some(AgentState::Ended(Outcome::Cancelled)) => Ok(true),
        Some(AgentState::Ended(outcome)) => {
            Err(Failure::failed(format!("{agent} has already ended in run {}: {outcome}", live.run))
                .hint(format!("`squad cancel {}` cancels the whole run", live.run)))
        }
        None => Err(not_in_run(agent, &live.run, activity.agents.keys())),
    }
}

/// The run's activity. The state may be a moment old, so waits a little for the agent to appear in it.
fn activity(local: &Path, live: &LiveRun, agent: &Slug) -> Result<RunActivity, Failure> {
    let asked = Instant::now();
    loop {
        match live::activity(local, &live.run) {
            Some(activity) if activity.agents.contains_key(agent) || asked.elapsed() > 4 * live::PAUSE => {
                return Ok(activity);
            }
            None if asked.elapsed() > PATIENCE => return Err(silent(live)),
            _ => thread::sleep(LOOK),
        }
    }
}

fn tell(local: &Path, live: &LiveRun, agent: Option<&Slug>) -> Result<(), Failure> {
    let is_live = || lease::look(local).status(&live.run) == "running";
    match live::ask_to_cancel(local, &live.run, agent) {
        Ok(request) => wait(local, live, &request),
        // The run has just ended and removed its folder.
        Err(_) if !is_live() => Ok(()),
        Err(error) => Err(Failure::failed(format!("cannot ask the run to end: {error}"))
            .hint(format!("its process id is {}", live.pid))),
    }
}

/// Returns when the run has dealt with a request, or is over.
fn wait(local: &Path, live: &LiveRun, request: &Path) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    while request.exists() && lease::look(local).status(&live.run) == "running" {
        if Instant::now() > deadline {
            return Err(silent(live));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Sends a message to an agent of a live run, which gets it in the middle of its work. `false`: it is not working.
pub(crate) fn say(env: &Env, directory: &Path, run: &RunId, agent: &Slug, text: &str) -> Result<bool, Failure> {
    if text.len() as u64 > live::LONGEST_REQUEST / 2 {
        return Err(Failure::usage("this is too long to send to an agent at work").hint("write it to a file"));
    }
    let local = repository(env, directory)?.0.own_folder();
    let leases = lease::look(&local);
    let Some(live) = leases.live.iter().find(|live| live.run == *run) else { return Ok(false) };
    // Ids sort by time, so that messages arrive in order.
    let id = env.ids.entry(env.clock.now());
    let Ok(request) = live::ask_to_say(&local, run, agent, (&id.to_string(), text)) else { return Ok(false) };
    wait(&local, live, &request)?;
    Ok(live::was_delivered(&request))
}

fn silent(live: &LiveRun) -> Failure {
    Failure::failed(format!("run {} does not answer", live.run))
        .hint(format!("it acts on this as soon as it can; its process id is {}", live.pid))
}
