//! Commands that the configuration names and squad runs itself: checks, hooks, set-ups.

use std::collections::BTreeSet;
use std::path::Path;

use crate::engine::command::OwnCommand;
use crate::env::{Env, real};
use crate::model::{IntoSet, ProjectCheck, RunId, Slug, command_line, seconds};
use crate::ops::Project;
use crate::ops::team::trust;
use crate::pool::{Cancel, session_id};
use crate::program::{Program, Programs};
use crate::sandbox::Sandbox;
use crate::settings::Origin;

/// The setting of the project's check.
pub(crate) const CHECK: &str = "check.run";
/// Bytes of the end of its output that are kept in the record.
const SHOWN: u64 = 4 * 1024;
/// Stands for an agent where processes and their output are told apart by agents.
pub(super) const CHECKER: &str = "check";

/// Fails if a repository's setting, or a file that it names, has changed since a person approved it.
pub(super) fn require_approved(env: &Env, project: &Project, setting: &str) -> Result<(), String> {
    let is_brought = matches!(project.settings.origin(setting), Origin::Project(..));
    if is_brought && !trust::is_approved(env, project, setting) {
        return Err(format!("what `{setting}` runs is not as it was approved: `squad trust` shows it"));
    }
    Ok(())
}

/// The user's own file or an approval names it, so it may be one of the project's.
pub(super) fn program(name: &str, root: &Path, programs: &Programs) -> Result<Program, String> {
    let path = Path::new(name);
    if path.is_absolute() || path.components().count() == 1 {
        return programs.named(path).map_err(|refusal| refusal.to_string());
    }
    let path = root.join(path);
    if path.is_file() { Ok(Program::of_user(&path)) } else { Err(format!("the project has no file `{name}`")) }
}

/// Runs the project's check in a folder. The error is the reason why it could not be run. `None`: it was cancelled.
pub(super) async fn check(
    (env, project, run): (&Env, &Project, &RunId),
    root: &Path,
    sandbox: Option<&Sandbox>,
    mut cancel: Cancel,
) -> Result<Option<ProjectCheck>, String> {
    require_approved(env, project, CHECK)?;
    let (variables, arguments) = (env.os_variables(), &project.settings.check);
    let programs = Programs::new(root, &variables);
    let program = program(arguments.first().map(String::as_str).unwrap_or_default(), root, &programs)?;
    let name = Slug::fold(CHECKER).unwrap_or_else(Slug::coordinator);
    let (local, session) = (project.local(), session_id(&name, run));
    let command = OwnCommand {
        program,
        arguments: arguments.get(1..).unwrap_or_default(),
        directory: root,
        variables,
        more: &[],
        sandbox,
        squad: env.program.as_deref(),
        local: &local,
        session: &session,
        input: None,
        kept: SHOWN,
    };
    let ended = command.run(project.settings.sessions.tool_limit, cancel.wait()).await;
    if cancel.is_set() {
        return Ok(None);
    }
    let ended = ended.map_err(|error| format!("it cannot be started: {error}"))?;
    Ok(Some(ProjectCheck {
        command: command_line(arguments),
        passed: ended.exit_code == Some(0),
        exit_code: ended.exit_code,
        reason: ended.reason,
        seconds: seconds(ended.duration),
        output: ended.output,
        output_bytes: ended.output_bytes,
        output_file: Some(ended.output_file),
        ..ProjectCheck::default()
    }))
}

/// The files of the project that the check's arguments name, relative to the repository's root.
pub(super) fn named_by_check(project: &Project) -> BTreeSet<String> {
    let (root, top) = (real(&project.folder.root), real(&project.work_dir));
    let named = project.settings.check.iter().flat_map(|text| trust::named_in(text, (&root, &top)));
    let inner = |path: String| Some(real(&root.join(path)).strip_prefix(&top).ok()?.to_str()?.to_owned());
    named.filter_map(inner).into_set()
}
