//! Past work: reads from the ledger which agents did what. It teaches the router, and is used to measure it.

use std::collections::BTreeMap;

use crate::error::Failure;
use crate::git::Error;
use crate::model::{Outcome, PlanKind, RunId, Slug, Team};
use crate::ops::ledger::index::{Chooser, EntryFacts, Fact, Index, Place, beginning};
use crate::ops::ledger::log::{self, Choice, message_of};
use crate::ops::team::members::named_member;
use crate::ops::{Project, Workspace};
use crate::route::PastWork;
use crate::route::evaluate::{Case, CaseKind};

/// How many of the newest runs are read; more would slow down every start.
const LESSONS: usize = 200;

/// A completed run.
#[derive(Debug)]
struct PastRun {
    run: RunId,
    message: String,
    kind: PlanKind,
    /// The agents that completed their work, in the plan's order.
    agents: Vec<Slug>,
    chooser: Chooser,
}

/// Past work of the team's newest runs, for the router.
pub(crate) fn work(project: &Project) -> Result<Vec<PastWork>, Error> {
    Ok(lessons(&project.team, completed(project, LESSONS, Messages::Beginnings)?))
}

/// The team's completed runs as cases for `squad route --eval`, oldest first.
pub(crate) fn cases(workspace: &Workspace) -> Result<Vec<Case>, Error> {
    let runs = distinct(completed(workspace, usize::MAX, Messages::Whole)?);
    let mut cases: Vec<Case> = runs.into_iter().filter_map(case).collect();
    cases.reverse();
    Ok(cases)
}

/// Fails if neither the team nor a past run has an agent of this name: a mistyped name must not look like "no runs".
pub(crate) fn require_known(project: &Project, name: &str) -> Result<(), Failure> {
    let Err(unknown) = named_member(&project.team, name) else { return Ok(()) };
    let Some(agent) = Slug::fold(name).filter(|agent| *agent != Slug::coordinator()) else { return Ok(()) };
    let choice = Choice { agent: Some(agent), since: None };
    let past = log::runs(&project.repository, &project.ledger_prefix(), &project.leases(), &choice, 1)?;
    if past.is_empty() { Err(unknown) } else { Ok(()) }
}

/// How much of each message to read.
#[derive(Clone, Copy, PartialEq)]
enum Messages {
    Beginnings,
    Whole,
}

/// What later entries said about a run whose first entry has not been read yet.
#[derive(Default)]
struct Tail {
    plan: Option<(PlanKind, Vec<Slug>, Chooser)>,
    completed: bool,
    has_ended: bool,
    done: Vec<Slug>,
}

/// The completed ones of the newest `most` runs, newest first.
fn completed(workspace: &Workspace, most: usize, messages: Messages) -> Result<Vec<PastRun>, Error> {
    let mut runs = Vec::new();
    let Some(index) = Index::open(&workspace.repository, &workspace.ledger_prefix())? else { return Ok(runs) };
    let mut tails: BTreeMap<RunId, Tail> = BTreeMap::new();
    let mut seen = 0;
    for span in index.spans(Place::Log) {
        for mut row in index.rows::<EntryFacts>(&span)?.into_iter().rev() {
            let Some(EntryFacts { run: Some(run), fact, .. }) = row.value.take() else { continue };
            match fact {
                Fact::Ended { status, agents, .. } => {
                    let tail = tails.entry(run).or_default();
                    // A resumed run has several ends; the last one counts.
                    if std::mem::replace(&mut tail.has_ended, true) {
                        continue;
                    }
                    tail.completed = status == Outcome::Completed;
                    let done = agents.into_iter().filter(|(_, outcome)| *outcome == Outcome::Completed);
                    tail.done = done.map(|(agent, _)| agent).collect();
                }
                // The last plan of a run is the one that was followed.
                Fact::Planned { kind, agents, chooser } => {
                    tails.entry(run).or_default().plan.get_or_insert((kind, agents, chooser));
                }
                Fact::Started { message, is_whole, .. } => {
                    seen += 1;
                    if let Some(Tail { plan: Some((kind, planned, chooser)), completed: true, done, .. }) =
                        tails.remove(&run)
                        && chooser != Chooser::Nobody
                    {
                        let is_enough = is_whole || messages == Messages::Beginnings;
                        let message = if is_enough { message } else { message_of(&index, &row)? };
                        let agents = planned.into_iter().filter(|agent| done.contains(agent)).collect();
                        runs.push(PastRun { run, message, kind, agents, chooser });
                    }
                    if seen == most {
                        return Ok(runs);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(runs)
}

/// One run per message: the one with the most reliable chooser, and of equal ones the newest.
fn distinct(runs: Vec<PastRun>) -> Vec<PastRun> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut kept: Vec<PastRun> = Vec::new();
    for run in runs {
        match places.get(&key(&run.message)) {
            None => {
                places.insert(key(&run.message), kept.len());
                kept.push(run);
            }
            Some(&place) => {
                if let Some(other) = kept.get_mut(place)
                    && run.chooser > other.chooser
                {
                    *other = run;
                }
            }
        }
    }
    kept
}

/// The key by which two messages count as the same.
pub(in crate::ops) fn key(message: &str) -> String {
    beginning(message).split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn lessons(team: &Team, runs: Vec<PastRun>) -> Vec<PastWork> {
    let everyone = team.startable().count();
    let known = |agent: Slug| Some(team.member_once(&agent).filter(|member| member.is_startable())?.slug.clone());
    distinct(runs)
        .into_iter()
        .filter_map(|run| {
            let agents: Vec<Slug> = run.agents.into_iter().filter_map(known).collect();
            // Work of the whole team teaches nothing.
            let tells = !agents.is_empty() && (agents.len() < everyone || everyone == 1);
            tells.then(|| PastWork {
                message: beginning(&run.message).to_owned(),
                agents,
                source: format!("run {}", run.run),
            })
        })
        .collect()
}

fn case(run: PastRun) -> Option<Case> {
    let kind = match (run.kind, run.agents.len()) {
        (PlanKind::Direct, _) => CaseKind::Direct,
        (_, 0) => return None,
        (_, 1) => CaseKind::Single,
        _ => CaseKind::Multi,
    };
    let accept: Vec<String> = run.agents.iter().map(ToString::to_string).collect();
    Some(Case {
        line: 0,
        message: run.message,
        kind,
        agent: accept.first().cloned(),
        accept,
        all: kind == CaseKind::Multi,
        labels: Vec::new(),
        paths: Vec::new(),
    })
}
