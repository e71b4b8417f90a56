//! The clone in which a run's work is checked while it is merged: in the sandbox, and never in the user's work tree.

use std::fs;
use std::path::PathBuf;

use crate::env::Env;
use crate::git::{Repository, clone_folders};
use crate::model::{ProjectCheck, RunId, Slug};
use crate::ops::Project;
use crate::ops::run::clone_setup::{self, Own, READY};
use crate::ops::run::clones::{self, CHECK};
use crate::ops::run::own_commands;
use crate::pool::Cancel;
use crate::sandbox::Sandbox;

pub(super) struct CheckClone<'a> {
    /// With the variables of [`Self::own`].
    env: Env,
    project: &'a Project,
    run: &'a RunId,
    clone: Repository,
    /// The project's root in it.
    root: PathBuf,
    sandbox: Option<Sandbox>,
    /// Its ports are its own as long as its commands may run.
    own: Own,
}

impl<'a> CheckClone<'a> {
    /// Opens the one that the run's own checks have left, or makes it.
    pub(super) async fn open(
        (env, project, run): (&'a Env, &'a Project, &'a RunId),
        commit: &str,
        cancel: Cancel,
    ) -> Result<Self, String> {
        if let Some(reason) = project.repository.obstacle_to_clones() {
            return Err(format!("no clone can be made for it: {reason}"));
        }
        let folder = clones::folder_of_run(env, &project.repository, run).ok_or("squad has no folder for clones")?;
        let place = folder.join(CHECK);
        let name = project.work_dir.file_name().and_then(|name| name.to_str()).unwrap_or("project");
        let (git_dir, work_dir) = clone_folders(&place, name);
        let clone = project.repository.clone_at(&git_dir, &work_dir);
        let ready = place.join(READY);
        if !clone.is_made() || clone.restore_clone(commit, &[]).is_err() {
            let _ = fs::remove_file(&ready);
            clone
                .make_clone(&project.repository, commit, 1)
                .map_err(|error| format!("no clone can be made for it: {error}"))?;
        }
        let there = project.moved_to(clone.clone(), &work_dir);
        let sandbox = clones::bounds((env, project), &there, &[], |_| {})?;
        let root = there.folder.root.clone();
        let (sandbox, _) = clone_setup::lay(project, (&place, &root, &clone), sandbox)?;
        let agent = Slug::fold(CHECK).ok_or("it has no name")?;
        let own = Own::new(env, run, &agent);
        let mut with_own = env.clone();
        with_own.variables.extend(own.variables.iter().cloned());
        let opened = Self { env: with_own, project, run, clone, root, sandbox, own };
        if !ready.exists() {
            let place = (&*opened.root, opened.sandbox.as_ref());
            let whose = (&agent, place, &opened.clone);
            let prepared = clone_setup::prepare((env, project, run), whose, &opened.own, &|_| {}, cancel).await;
            let prepared = prepared.and_then(|()| fs::write(&ready, "").map_err(|error| error.to_string()));
            prepared.map_err(|why| format!("its clone is not ready: {why}"))?;
        }
        Ok(opened)
    }

    /// Checks a commit. `None`: it was cancelled.
    pub(super) async fn check(&self, commit: &str, cancel: Cancel) -> Result<Option<ProjectCheck>, String> {
        self.clone.restore_clone(commit, &[]).map_err(|error| format!("its clone cannot be set to it: {error}"))?;
        let whose = (&self.env, self.project, self.run);
        own_commands::check(whose, &self.root, self.sandbox.as_ref(), cancel).await
    }
}
