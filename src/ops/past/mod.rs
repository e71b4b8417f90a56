//! Past work: what the ledger's runs say of who does what. It teaches the router, and measures it.

mod notes;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::notes::Note;
use super::{Project, Workspace};
use crate::env::Env;
use crate::model::{Evidence, Plan, PlanKind, RunId, Slug, Team};
use crate::route::PastWork;
use crate::route::evaluate::{Case, CaseKind};

/// The newest runs are enough to learn from, and looking at more would be felt at every start.
const LESSONS: usize = 200;
/// Bytes of a message that say what the work was; what follows is a log or a listing.
const TELLING: usize = 4096;

/// A run that did what was asked.
#[derive(Debug)]
struct PastRun {
    run: RunId,
    message: String,
    kind: PlanKind,
    /// Those of the plan, in its order, that completed their work.
    agents: Vec<Slug>,
    chooser: Chooser,
}

/// Whose word it was that the agents of a plan are the right ones; the later, the weightier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Chooser {
    Router,
    Coordinator,
    Person,
}

/// What the team's newest runs teach the router.
pub(crate) fn work(env: &Env, project: &Project) -> Result<Vec<PastWork>, crate::git::Error> {
    Ok(lessons(&project.team, completed(notes::newest(env, project, LESSONS)?)))
}

/// The team's completed runs as cases for `squad route --eval`, the oldest first.
pub(crate) fn cases(workspace: &Workspace) -> Result<Vec<Case>, crate::git::Error> {
    let runs = distinct(completed(notes::all(workspace)?));
    let mut cases: Vec<Case> = runs.into_iter().filter_map(case).collect();
    cases.reverse();
    Ok(cases)
}

/// What is known of a run whose beginning is still to be read.
#[derive(Default)]
struct Tail {
    plan: Option<(PlanKind, Vec<Slug>, Chooser)>,
    completed: bool,
    done: Vec<Slug>,
}

/// The runs that did what was asked, from notes that begin with the newest.
fn completed(notes: Vec<Note>) -> Vec<PastRun> {
    let mut tails: BTreeMap<RunId, Tail> = BTreeMap::new();
    let mut runs = Vec::new();
    for note in notes {
        match note {
            Note::Ended { run, completed, agents } => {
                let tail = tails.entry(run).or_default();
                (tail.completed, tail.done) = (completed, agents);
            }
            // The last plan of a run is the one that was followed.
            Note::Planned { run, kind, agents, chooser } => {
                tails.entry(run).or_default().plan.get_or_insert((kind, agents, chooser));
            }
            Note::Started { run, message } => {
                let Some(Tail { plan: Some((kind, planned, chooser)), completed: true, done }) = tails.remove(&run)
                else {
                    continue;
                };
                let agents = planned.into_iter().filter(|agent| done.contains(agent)).collect();
                runs.push(PastRun { run, message, kind, agents, chooser });
            }
            Note::Nothing => {}
        }
    }
    runs
}

/// One run for each message: the weightiest word on it, and of equal ones the newest.
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

/// What makes two messages the same one.
pub(super) fn key(message: &str) -> String {
    beginning(message).split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn chooser(plan: &Plan) -> Chooser {
    let of = |evidence: &Evidence| match evidence.source.as_str() {
        "command line" | "message" => Chooser::Person,
        Slug::COORDINATOR => Chooser::Coordinator,
        _ => Chooser::Router,
    };
    let chosen = plan.evidence.iter().filter(|evidence| plan.agents.contains(&evidence.agent));
    chosen.map(of).max().unwrap_or(Chooser::Router)
}

fn lessons(team: &Team, runs: Vec<PastRun>) -> Vec<PastWork> {
    let everyone = team.startable().count();
    let is_there = |agent: &Slug| team.startable().any(|member| member.slug == *agent);
    distinct(runs)
        .into_iter()
        .filter_map(|run| {
            let agents: Vec<Slug> = run.agents.into_iter().filter(is_there).collect();
            // What everybody did says nothing about anybody.
            let tells = !agents.is_empty() && (agents.len() < everyone || everyone == 1);
            tells.then(|| PastWork {
                message: beginning(&run.message).to_owned(),
                agents,
                source: format!("run {}", run.run),
            })
        })
        .collect()
}

fn beginning(message: &str) -> &str {
    let end = message.floor_char_boundary(TELLING);
    message.get(..end).unwrap_or(message)
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
