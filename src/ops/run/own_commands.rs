//! Commands that the configuration names and squad runs itself: checks, hooks, set-ups.

use std::path::Path;

use crate::env::Env;
use crate::ops::Project;
use crate::ops::team::trust;
use crate::program::{Program, Programs};
use crate::settings::Origin;

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
