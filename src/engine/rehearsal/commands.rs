//! Runs the commands of a script, as an engine's own shell tool would.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use tokio::process::Command;
use tokio::sync::Mutex;

use crate::engine::process_group::{Mark, apart};
use crate::engine::{Opening, spawn_blocking};
use crate::model::SandboxLevel;
use crate::program::{Programs, SHELL, Variables};
use crate::sandbox::{Sandbox, Traffic, command_in, level_of};

/// The environment that commands run in.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) directory: PathBuf,
    pub(crate) variables: Variables,
    /// The program that ends what is left if squad is killed.
    pub(crate) squad: Option<PathBuf>,
    /// `None`: a command may do what the user can do.
    pub(crate) sandbox: Option<Sandbox>,
}

/// Without surroundings, no command can be run.
#[derive(Default)]
pub(super) struct Commands {
    surroundings: Option<Surroundings>,
    /// Set by the first command.
    mark: Mutex<Option<Mark>>,
}

/// A variable that tells one session's processes from those of the others.
const SESSION: &str = "SQUAD_REHEARSAL_SESSION";

impl Commands {
    pub(super) fn new(surroundings: Surroundings) -> Self {
        let sandbox = surroundings.sandbox.map(Sandbox::of_session);
        let surroundings = Surroundings { sandbox, ..surroundings };
        Self { surroundings: Some(surroundings), mark: Mutex::default() }
    }

    pub(super) fn sandbox(&self) -> SandboxLevel {
        level_of(self.surroundings.as_ref().and_then(|surroundings| surroundings.sandbox.as_ref()))
    }

    pub(super) fn traffic(&self) -> Option<Arc<Traffic>> {
        self.surroundings.as_ref()?.sandbox.as_ref()?.traffic().cloned()
    }

    /// Runs a command line to its end. Returns its exit code and its output; fails if it cannot be started.
    pub(super) async fn run(&self, line: &str, opening: &Opening) -> Result<(Option<i32>, String), String> {
        let Some(Surroundings { directory, variables, squad, sandbox }) = &self.surroundings else {
            return Err("this rehearsal runs no commands".to_owned());
        };
        let programs = Programs::new(directory, variables);
        let shell = programs.find(Path::new(SHELL.0)).map_err(|refusal| refusal.to_string())?;
        let mut variables = variables.clone();
        programs.restrict(&mut variables);
        let mut command = Command::from(command_in(sandbox.as_ref(), &shell));
        command.args([SHELL.1, line]).current_dir(&opening.directory).env_clear().envs(&variables);
        {
            let mut mark = self.mark.lock().await;
            let mark = mark.get_or_insert_with(|| {
                let mut mark = Mark::new();
                mark.guard(squad.as_deref(), false);
                mark
            });
            command.envs([mark.variable(), (SESSION, &opening.session)]);
        }
        // What it leaves running may hold its output open.
        let output = tempfile::tempfile().map_err(|error| error.to_string())?;
        let streams = (output.try_clone(), output.try_clone());
        let (Ok(stdout), Ok(stderr)) = streams else { return Err("its output cannot be kept".to_owned()) };
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        apart(&mut command);
        // On a thread of its own, because a test's clock stands still meanwhile. What is abandoned ends with its session.
        let status = spawn_blocking(move || command.as_std_mut().status()).await;
        let status = status.map_err(|error| error.to_string())?.map_err(|error| format!("{line}: {error}"))?;
        Ok((status.code(), text(output)))
    }

    /// Ends what a session's commands have left running, and returns its command lines.
    pub(super) async fn end_left_running(&self, session: &str) -> Vec<String> {
        let descendants = self.mark.lock().await.as_ref().map(|mark| mark.with((SESSION, session)));
        match descendants {
            Some(descendants) => descendants.end_left_running().await,
            None => Vec::new(),
        }
    }

    pub(super) async fn stop(&self) {
        if let Some(mut mark) = self.mark.lock().await.take() {
            mark.end().await;
        }
    }
}

fn text(mut output: std::fs::File) -> String {
    use std::io::{Read, Seek};

    let mut bytes = Vec::new();
    // An output that cannot be read is empty.
    let _ = output.rewind().and_then(|()| output.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
