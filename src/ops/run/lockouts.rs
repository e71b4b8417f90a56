//! Lockouts: an agent may not work on files if a reviewer rejected its work on them.
//!
//! A lockout ends when somebody's work on those files is approved, after two weeks, or by `squad review lift`. If the user
//! calls the agent by name, it does not apply to that run.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::env::Env;
use crate::error::Failure;
use crate::git::{Error, Repository};
use crate::model::{EventKind, Evidence, FileVerdicts, Plan, PlanKind, RunId, Slug, list};
use crate::ops::ledger::contents::reviews;
use crate::ops::ledger::index::{ReviewFact, Ruling};
use crate::ops::ledger::journal::append;
use crate::ops::team::secrets;
use crate::ops::{Project, Workspace};
use crate::record::Entry;
use crate::route::Router;

const LONGEST: SignedDuration = SignedDuration::from_hours(14 * 24);

/// A lockout of one agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lockout {
    pub(crate) run: RunId,
    pub(crate) agent: Slug,
    pub(crate) reviewer: Slug,
    /// Relative to the repository's root; never empty.
    pub(crate) files: BTreeSet<String>,
}

/// The lockouts in force, newest first.
pub(crate) fn in_force(
    repository: &Repository,
    prefix: &str,
    now: impl FnOnce() -> Timestamp,
) -> Result<Vec<Lockout>, Error> {
    let mut lockouts: Vec<Lockout> = Vec::new();
    let mut verdicts = FileVerdicts::default();
    for ReviewFact { run, agent, ruling, .. } in reviews(repository, prefix, || now() - LONGEST)? {
        match (ruling, run, agent) {
            (Ruling::Judged { verdict, judged }, _, reviewer) => {
                let approved = verdicts.add(verdict, reviewer.as_ref(), &judged);
                lockouts.iter_mut().for_each(|lockout| lockout.files.retain(|file| !approved.contains(file)));
            }
            (Ruling::Lifted, Some(run), _) => lockouts.retain(|lockout| lockout.run != run),
            (Ruling::LockedOut { reviewer, files }, Some(run), Some(agent)) => {
                lockouts.push(Lockout { run, agent, reviewer, files: files.into_iter().collect() });
            }
            _ => {}
        }
    }
    lockouts.retain(|lockout| !lockout.files.is_empty());
    lockouts.reverse();
    Ok(lockouts)
}

/// The lockouts that apply to a run or a plan: without those of agents that the user calls by name.
pub(crate) fn binding(
    project: &Project,
    message: &str,
    named: &[Slug],
    now: impl FnOnce() -> Timestamp,
) -> Result<Vec<Lockout>, Failure> {
    let mut lockouts = in_force(&project.repository, &project.ledger_prefix(), now)?;
    for lockout in &mut lockouts {
        // A renamed agent stays locked out.
        if let Some(member) = project.team.member_once(&lockout.agent) {
            lockout.agent = member.slug.clone();
        }
    }
    if !lockouts.is_empty() {
        let called = Router::new(&project.team, &[]).called(message);
        lockouts.retain(|lockout| !called.contains(&lockout.agent) && !named.contains(&lockout.agent));
    }
    Ok(lockouts)
}

/// Removes agents from a plan that are locked out of files that the message names. If none is left, the coordinator
/// chooses.
pub(crate) fn bind(plan: &mut Plan, lockouts: &[Lockout], message: &str) {
    for Lockout { run, agent, reviewer, files } in lockouts {
        let named: Vec<&String> = files.iter().filter(|file| names(message, file)).collect();
        if named.is_empty() || !plan.agents.contains(agent) {
            continue;
        }
        plan.agents.retain(|planned| planned != agent);
        plan.steps.iter_mut().for_each(|step| step.retain(|planned| planned != agent));
        plan.steps.retain(|step| !step.is_empty());
        let why = format!("{reviewer} rejected its work on {}", list(named));
        plan.evidence.push(Evidence { agent: agent.clone(), why, source: format!("run {run}"), weight: -1.0 });
    }
    if plan.agents.is_empty() && plan.kind == PlanKind::Agents {
        (plan.kind, plan.confidence) = (PlanKind::Abstain, 0.0);
    }
}

/// Whether a message names a file, by its path or the end of it.
fn names(message: &str, file: &str) -> bool {
    let mut words =
        message.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '`' | '"' | '\'' | ':'));
    words.any(|word| {
        let word = word.trim_end_matches(['.', '!', '?']);
        let is_file = word.contains(['.', '/']);
        is_file && file.strip_suffix(word).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

/// Why an agent may not write a file, by agent and by path relative to the project's root.
pub(super) fn guards(lockouts: &[Lockout], project: &Project) -> BTreeMap<(Slug, String), String> {
    let prefix = project.path_in_repository();
    let mut guards = BTreeMap::new();
    for Lockout { run, agent, reviewer, files } in lockouts {
        for path in files.iter().filter_map(|file| file.strip_prefix(prefix.as_str())) {
            let why = format!(
                "{reviewer} rejected your work on {path} in run {run}: somebody else revises it; leave this file alone, and \
                 report what it needs"
            );
            guards.insert((agent.clone(), path.to_owned()), why);
        }
    }
    guards
}

/// Lifts the lockouts of a run and returns them.
pub(crate) fn lift(env: &Env, workspace: &Workspace, run: &RunId) -> Result<Vec<Lockout>, Failure> {
    let (repository, prefix) = (&workspace.repository, workspace.ledger_prefix());
    let now = env.clock.now();
    let held: Vec<Lockout> =
        in_force(repository, &prefix, || now)?.into_iter().filter(|lockout| lockout.run == *run).collect();
    if held.is_empty() {
        return Ok(held);
    }
    let redactor = secrets::redactor(env, repository.work_dir().unwrap_or(repository.git_dir()));
    let agents = held.iter().map(|lockout| lockout.agent.clone()).collect();
    let entry =
        Entry::new(env.ids.entry(now), now, crate::model::Actor::User, &EventKind::LockoutLifted { agents }, &redactor);
    append(repository, &prefix, &[Entry { run: Some(run.clone()), ..entry }], now)?;
    Ok(held)
}
