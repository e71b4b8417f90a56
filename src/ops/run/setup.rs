//! Builds the settings and handlers of a run's workers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::compile;
use crate::env::Env;
use crate::error::Failure;
use crate::git::Head;
use crate::model::{DecisionId, IntoSet, Slug};
use crate::ops::Project;
use crate::ops::run::attachments;
use crate::ops::run::lockouts::{self, Lockout};
use crate::ops::run::order::Order;
use crate::ops::run::resume::Past;
use crate::ops::team::checks;
use crate::ops::team::config::{ConfigFile, Place};
use crate::ops::team::knowledge;
use crate::ops::team::project::core_agents;
use crate::ops::team::trust;
use crate::pool::{AlwaysAllowed, Cancel, Hooks, Keep, Limits, Notes, Notices, Recorded, RequestHandler};
use crate::settings::{Layer, Sessions};

pub(super) fn limits(sessions: &Sessions) -> Limits {
    Limits { silence: sessions.timeout, tool: sessions.tool_limit, work: sessions.limit }
}

pub(super) fn requests(
    env: &Env,
    project: &Project,
    order: &Order,
    head: &Head,
    past: &Past,
    lockouts: &[Lockout],
    cancel: Cancel,
) -> RequestHandler {
    RequestHandler {
        attached: attachments::absolute(project, &order.attachments),
        permissions: order.permissions,
        policy: project.policy(),
        approved_files: trust::approved_files(env, project),
        hooks: Hooks::default(),
        most_questions: project.settings.policy.questions,
        project: project.folder.root.display().to_string(),
        branch: head.work().map(str::to_owned),
        decisions: compile::in_force(project.decisions()).into_iter().cloned().collect(),
        notes: Arc::new(ProjectNotes::new(env, project)),
        locked: lockouts::guards(lockouts, project),
        recorded: Recorded { decisions: past.decisions(), learned: past.learned() },
        recorded_here: Mutex::default(),
        notices: Notices::new(project.team.owned()).with_past(&past.events),
        user_messages: Arc::default(),
        ask: order.ask.clone(),
        asked: Default::default(),
        cancel,
        checks: checks::of_project(&project.folder.root),
        allowed: AlwaysAllowed::new(project.kept_rules().into_iter().collect()),
        keep: Some(keep(env, project)),
        // Another process lands for a run that it only watches.
        may_commit: order.commit && order.land.is_none(),
    }
}

/// Reads the notes anew for each search: some may have come since.
struct ProjectNotes {
    env: Env,
    root: PathBuf,
    /// Without any, nothing is read.
    are_there: bool,
    /// What was asked before.
    held: Mutex<BTreeMap<DecisionId, bool>>,
}

impl ProjectNotes {
    fn new(env: &Env, project: &Project) -> Self {
        let are_there = project.has_notes() || !project.settings.links.is_empty();
        Self { env: env.clone(), root: project.folder.root.clone(), are_there, held: Mutex::default() }
    }

    fn read<T>(&self, read: impl FnOnce(&Project) -> Result<T, Failure>) -> Option<T> {
        Project::open(&self.env, &self.root, Layer::default()).and_then(|project| read(&project)).ok()
    }
}

impl Notes for ProjectNotes {
    fn search(&self, query: &str) -> Vec<String> {
        let found = self.are_there.then(|| self.read(|project| knowledge::found(project, query)));
        found.flatten().unwrap_or_default()
    }

    fn holds(&self, id: &DecisionId) -> bool {
        // What cannot be read is not known to have ended.
        let read = || self.are_there && self.read(|project| knowledge::holds(project, id)).unwrap_or(true);
        *self.held.lock().entry(id.clone()).or_insert_with(read)
    }
}

/// Writes what a person allows in later runs too into the user's own configuration.
fn keep(env: &Env, project: &Project) -> Keep {
    let file = ConfigFile::find(env, None, Place::User);
    let (name, log) = (project.kept_name(), env.damage.clone());
    Arc::new(move |rules| {
        let kept = file.as_ref().map_err(|failure| failure.message.clone());
        let kept = kept.and_then(|file| file.add(&name, &rules).map_err(|failure| failure.message));
        if let Err(reason) = kept {
            log.say(&format!("warning: it holds in this run, and could not be kept: {reason}"));
        }
    })
}

/// The agents that `sessions.core` names.
pub(in crate::ops) fn core(project: &Project) -> BTreeSet<Slug> {
    let (core, _) = core_agents(&project.team, &project.settings);
    core.into_iter().map(|member| member.slug.clone()).into_set()
}
