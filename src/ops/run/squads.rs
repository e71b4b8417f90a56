//! The user's projects with a team, and how each of them is.

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{DecisionState, RunId, Slug};
use crate::ops::Project;
use crate::ops::decisions::list;
use crate::ops::ledger::contents;
use crate::ops::ledger::log::{self, Choice};
use crate::ops::run::host::activities;
use crate::ops::run::lease;
use crate::ops::run::lockouts;
use crate::ops::run::recall;
use crate::ops::run::watch::WatchFiles;
use crate::ops::team::projects::{self, Found, KnownProject};
use crate::pool::standing_session_id;

/// An older run that was killed is no longer taken up.
const RECENT_RUNS: usize = 20;

/// A project and its team.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Squad {
    /// Its folder's name.
    pub(crate) name: String,
    pub(crate) slug: Option<Slug>,
    /// The name that means no other project, for `-C @NAME`.
    #[serde(skip)]
    pub(crate) handle: String,
    pub(crate) path: String,
    /// As people write it, with `~`.
    #[serde(skip)]
    pub(crate) shown_path: String,
    pub(crate) state: SquadState,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    #[serde(flatten)]
    pub(crate) activity: SquadActivity,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SquadState {
    Idle,
    /// A run is live.
    Working,
    /// It is gone, or its team or ledger cannot be read.
    Error,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SquadActivity {
    /// The time of the oldest entry in its ledger.
    pub(crate) created: Option<Timestamp>,
    pub(crate) last_activity: Option<Timestamp>,
    /// The open sessions of live runs and of `squad watch`, and those that agents' next tasks resume.
    pub(crate) sessions: usize,
    /// Decisions in force.
    pub(crate) decisions: usize,
    pub(crate) unlanded: usize,
    pub(crate) lockouts: usize,
    pub(crate) unfinished_runs: usize,
    /// The newest run that was killed.
    #[serde(skip)]
    pub(crate) unfinished: Option<RunId>,
    #[serde(skip)]
    is_working: bool,
}

/// All projects of the index, by path.
pub(crate) fn all(env: &Env) -> Vec<Squad> {
    let known = projects::all(env);
    known.iter().map(|project| squad(env, project, &known)).collect()
}

/// The one project of this name.
pub(crate) fn one(env: &Env, name: &str) -> Result<Squad, Failure> {
    let known = projects::all(env);
    projects::find(env, name).map(|project| squad(env, &project, &known))
}

fn squad(env: &Env, project: &KnownProject, all: &[KnownProject]) -> Squad {
    let looked = match &project.state {
        Found::Here => look(env, &project.path).map_err(|failure| match failure.source {
            Some(source) => format!("{source}: {}", failure.message),
            None => failure.message,
        }),
        Found::Moved(to) => Err(format!("moved to {}", projects::shown(env, to))),
        Found::Gone => Err("there is no team any more".to_owned()),
    };
    let (activity, problem) = match looked {
        Ok(activity) => (activity, None),
        Err(problem) => (SquadActivity::default(), Some(problem)),
    };
    let state = match &problem {
        Some(_) => SquadState::Error,
        None if activity.is_working => SquadState::Working,
        None => SquadState::Idle,
    };
    let name = project.name();
    let slug = Slug::spelled(&name);
    let (handle, shown_path) = (project.handle(all), projects::shown(env, &project.path));
    let path = project.path.display().to_string();
    Squad { name, slug, handle, path, shown_path, state, problem, activity }
}

fn look(env: &Env, path: &Path) -> Result<SquadActivity, Failure> {
    let project = Project::look_at(env, path)?;
    project.require_sound()?;
    let (repository, prefix) = (&project.repository, project.ledger_prefix());
    let period = contents::period(repository, &prefix)?;
    let leases = lease::look(&project.local());
    let runs = log::runs(repository, &prefix, &leases, &Choice::default(), RECENT_RUNS)?;
    let live: Vec<_> = leases.live.into_iter().filter(|live| runs.iter().any(|run| run.run == live.run)).collect();
    let mut sessions: Vec<String> = activities(&live)
        .into_iter()
        .flatten()
        .flat_map(|activity| activity.sessions.into_iter().map(|session| session.id))
        .collect();
    let watcher = WatchFiles::of(&project).watcher();
    sessions.extend(
        watcher.and_then(|watcher| watcher.state()).into_iter().flat_map(|state| state.kept).map(|kept| kept.id),
    );
    let (standing, _) = recall::store(&project).used();
    sessions.extend(standing.iter().filter_map(|agent| Slug::fold(agent)).map(|agent| standing_session_id(&agent)));
    sessions.sort_unstable();
    sessions.dedup();
    let decisions = list::all(&project)?;
    let count = |state| decisions.iter().filter(|decision| decision.state == state).count();
    let lost: Vec<&RunId> = runs.iter().filter(|run| run.status == "lost").map(|run| &run.run).collect();
    Ok(SquadActivity {
        created: period.map(|(first, _)| first),
        last_activity: period.map(|(_, last)| last),
        sessions: sessions.len(),
        decisions: count(DecisionState::InForce),
        unlanded: count(DecisionState::Unlanded),
        lockouts: lockouts::in_force(repository, &prefix, || env.clock.now())?.len(),
        unfinished_runs: lost.len(),
        unfinished: lost.first().map(|run| (*run).clone()),
        is_working: !live.is_empty(),
    })
}
