//! Whether members can work in a project: they need no team, only what is read of one.

use crate::error::Failure;
use crate::model::{Problem, Severity};
use crate::ops::Project;

/// Checks that members can be started. Role files need no roster, and an unreadable one matters only to members in that
/// role.
pub(crate) fn require_sound(project: &Project) -> Result<(), Failure> {
    let errors = project.problems.iter().filter(|problem| problem.severity == Severity::Error);
    let mut others = errors.filter(|problem| problem.code != "roster-missing" && !is_of_role(project, problem));
    others.next().map_or(Ok(()), |problem| Err(Failure::of_problem(problem)))
}

fn is_of_role(project: &Project, problem: &Problem) -> bool {
    let Some(inner) = problem.file.strip_prefix(&format!("{}/", project.folder.name)) else { return false };
    let parts: Vec<&str> = inner.split('/').collect();
    matches!(parts[..], ["agents" | "roles", name] if name.ends_with(".md"))
}
