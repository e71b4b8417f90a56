//! Whether members can work in a project: they need no team, only what is read of one, and an engine for any of them.

use std::collections::BTreeMap;

use crate::engine::command::Profile;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{Problem, Severity};
use crate::ops::Project;
use crate::ops::run::order::NamedMember;
use crate::ops::team::engines;
use crate::policy::Permissions;

/// Checks that members can be started. Role files need no roster, and an unreadable one matters only to members in that
/// role.
pub(crate) fn require_sound(project: &Project) -> Result<(), Failure> {
    let errors = project.problems.iter().filter(|problem| problem.severity == Severity::Error);
    let mut others = errors.filter(|problem| problem.code != "roster-missing" && !is_of_role(project, problem));
    others.next().map_or(Ok(()), |problem| Err(Failure::of_problem(problem)))
}

/// Checks that an engine of these members can work here, as far as that is known without starting it. A member whose engine
/// cannot fails by itself, and stops no other. The error has the reason of each.
pub(crate) fn require_engine(
    env: &Env,
    project: &Project,
    members: &[NamedMember],
    described: Option<&Profile>,
    permissions: Permissions,
) -> Result<(), Vec<String>> {
    // Many members usually have the same one.
    let mut known: BTreeMap<Option<String>, Option<String>> = BTreeMap::new();
    let check = |name: &Option<String>| {
        let usable = engines::require_usable(env, project, name.as_deref(), described, permissions);
        usable.err().map(|error| error.with_hint())
    };
    let mut reasons = Vec::new();
    for member in members {
        let of_agent = || engines::of_agent(project, member.agent.as_ref()?);
        let engine = member.given.engine.clone().or_else(of_agent);
        match known.entry(engine).or_insert_with_key(check) {
            Some(reason) => reasons.push(reason.clone()),
            None => return Ok(()),
        }
    }
    Err(reasons)
}

fn is_of_role(project: &Project, problem: &Problem) -> bool {
    let Some(inner) = problem.file.strip_prefix(&format!("{}/", project.folder.name)) else { return false };
    let parts: Vec<&str> = inner.split('/').collect();
    matches!(parts[..], ["agents" | "roles", name] if name.ends_with(".md"))
}
