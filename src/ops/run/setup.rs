//! Builds the settings and handlers of a run's workers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::compile;
use crate::git::Head;
use crate::model::Slug;
use crate::ops::Project;
use crate::ops::run::attachments;
use crate::ops::run::lockouts::{self, Lockout};
use crate::ops::run::order::Order;
use crate::ops::run::resume::Past;
use crate::ops::team::checks;
use crate::ops::team::project::core_agents;
use crate::pool::{AlwaysAllowed, Cancel, Limits, Notices, Recorded, RequestHandler};
use crate::settings::Sessions;

pub(super) fn limits(sessions: &Sessions) -> Limits {
    Limits { silence: sessions.timeout, tool: sessions.tool_limit, work: sessions.limit }
}

pub(super) fn requests(
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
        project: project.folder.root.display().to_string(),
        branch: head.work().map(str::to_owned),
        decisions: compile::in_force(project.decisions()).into_iter().cloned().collect(),
        locked: lockouts::guards(lockouts, project),
        recorded: Recorded { decisions: past.decisions(), learned: past.learned() },
        recorded_here: Mutex::default(),
        notices: Notices::new(owned(project)).with_past(&past.events),
        user_messages: Arc::default(),
        ask: order.ask.clone(),
        asked: Default::default(),
        cancel,
        checks: checks::of_project(&project.folder.root),
        allowed: AlwaysAllowed::default(),
        // Another process lands for a run that it only watches.
        may_commit: order.commit && order.land.is_none(),
    }
}

/// The paths that each member owns.
fn owned(project: &Project) -> BTreeMap<Slug, Vec<String>> {
    let mut owned: BTreeMap<Slug, Vec<String>> = BTreeMap::new();
    for module in &project.team.modules {
        for owner in std::iter::once(&module.primary).chain(&module.secondary) {
            owned.entry(owner.clone()).or_default().push(module.path.clone());
        }
    }
    owned
}

/// The agents that `sessions.core` names.
pub(in crate::ops) fn core(project: &Project) -> BTreeSet<Slug> {
    let (core, _) = core_agents(&project.team, &project.settings);
    core.into_iter().map(|member| member.slug.clone()).collect()
}
