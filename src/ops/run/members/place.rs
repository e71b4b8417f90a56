//! The project that members work in: one with a team, or a repository with only the user's role files.

use std::path::Path;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{Problem, Severity};
use crate::ops::team::project::Opening;
use crate::ops::team::workspace::not_left_out;
use crate::ops::{Project, Workspace};
use crate::settings::Layer;

/// Opens a project, with or without a team: role files need none.
pub(crate) fn open_without_team(env: &Env, directory: &Path, flags: Layer) -> Result<Project, Failure> {
    let failure = match Workspace::find(env, directory) {
        Ok(workspace) => return Ok(Opening::new(env, workspace, flags).read()),
        Err(failure) => failure,
    };
    let workspace = Workspace::find_or_root(env, directory)?;
    not_left_out(&workspace.repository)?;
    if workspace.folder.path.exists() {
        return Err(failure);
    }
    let mut project = Opening::new(env, workspace, flags).read();
    // A missing team is not a problem here.
    project.problems.retain(|problem| !problem.code.ends_with("-missing"));
    Ok(project)
}

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
