//! Prepares a team's own hooks for a run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::env::{Env, real};
use crate::model::{IntoSet, RunId};
use crate::ops::Project;
use crate::ops::run::own_commands::program;
use crate::ops::team::trust;
use crate::pool::{FileState, Hook, HookPlace, Hooks};
use crate::program::Programs;
use crate::sandbox::Sandbox;

/// The hooks that the settings name, with their programs and the files that their commands name.
pub(super) fn of_run(env: &Env, project: &Project, run: &RunId, sandbox: Option<&Sandbox>) -> Hooks {
    let (root, top) = (real(&project.folder.root), real(&project.work_dir));
    let programs = Programs::new(&root, &env.os_variables());
    let mut hooks = Vec::new();
    for (name, settings) in &project.settings.hooks {
        // Without it, no run starts.
        let Some(point) = settings.on else { continue };
        // A word may be a path that leads elsewhere later, or nowhere yet; the first one may be a program of the `PATH`.
        let is_path = |(at, word): &(usize, &String)| *at > 0 || Path::new(word).components().count() > 1;
        let words = settings.run.iter().enumerate().filter(is_path).map(|(_, word)| root.join(word));
        let inner = settings.run.iter().flat_map(|word| trust::named_in(word, (&root, &top)));
        let named: BTreeSet<PathBuf> = words.chain(inner.map(|path| root.join(path))).into_set();
        let known: Result<Vec<_>, _> = named
            .into_iter()
            .map(|path| match FileState::of(&path) {
                Ok(state) => Ok((path, state)),
                Err(error) => Err(format!("{} cannot be recognized: {error}", path.display())),
            })
            .collect();
        let program = settings.run.first().map(|word| program(word, &root, &programs));
        let program = program.unwrap_or_else(|| Err("names no program".to_owned()));
        let (program, files) = match known {
            Ok(files) => (program, files),
            Err(reason) => (Err(reason), Vec::new()),
        };
        let source = project.settings.origin(&format!("hooks.{name}.run")).to_string();
        hooks.push(Hook { name: name.clone(), point, settings: settings.clone(), source, program, files });
    }
    let (directory, variables) = (root, env.os_variables());
    let (run, squad, sandbox) = (run.clone(), env.program.clone(), sandbox.cloned());
    Hooks::new(hooks, HookPlace { run, directory, variables, squad, sandbox })
}
