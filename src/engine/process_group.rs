//! Engine processes in groups of their own, so that they end with all they started.

use std::path::Path;

use tokio::process::{Child, Command};

#[cfg(target_os = "linux")]
use super::orphans::{self, Guardian};
#[cfg(target_os = "linux")]
use crate::program::Program;

/// The group of a process that was started [`apart`].
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessGroup(Option<u32>);

#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Asked,
    Killed,
}

/// Puts the process that a command will start into a group of its own. A Ctrl-C in the terminal is squad's to handle.
pub(super) fn apart(command: &mut Command) {
    #[cfg(windows)]
    {
        const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
        command.creation_flags(CREATE_NEW_PROCESS_GROUP);
    }
    #[cfg(unix)]
    command.process_group(0);
}

impl ProcessGroup {
    /// To be taken while the process runs: its id is the group's.
    pub(super) fn of(child: &Child) -> Self {
        Self(child.id())
    }

    pub(super) fn id(self) -> Option<u32> {
        self.0
    }

    #[cfg(unix)]
    pub(super) fn signal(self, ending: Ending) {
        use rustix::process::{Signal, kill_process_group};

        let signal = match ending {
            Ending::Asked => Signal::TERM,
            Ending::Killed => Signal::KILL,
        };
        if let Some(group) = self.pid() {
            // Nobody may be left in the group.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Whether anything is left in it, be it dead and not yet taken note of.
    #[cfg(unix)]
    pub(super) fn is_there(self) -> bool {
        self.pid().is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
    }

    /// Whether anything in it still runs.
    #[cfg(target_os = "linux")]
    pub(super) fn is_alive(self) -> bool {
        self.0.is_some_and(orphans::is_group_alive)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_alive(self) -> bool {
        self.is_there()
    }

    #[cfg(unix)]
    fn pid(self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.0?).ok()?)
    }

    #[cfg(not(unix))]
    pub(super) fn signal(self, ending: Ending) {
        tracing::debug!("{ending:?} has no signal here; process {:?} is killed at last", self.0);
    }

    #[cfg(not(unix))]
    pub(super) fn is_there(self) -> bool {
        false
    }
}

/// A variable by which one engine's processes are known from all others. Tools run their shells in sessions of their
/// own, so a killed engine leaves them behind; they carry the mark in their environment.
pub(super) struct Mark {
    value: String,
    #[cfg(target_os = "linux")]
    guardian: Option<Guardian>,
}

impl Mark {
    const NAME: &str = "SQUAD_PROCESS";

    pub(super) fn new() -> Self {
        Self {
            value: uuid::Uuid::now_v7().to_string(),
            #[cfg(target_os = "linux")]
            guardian: None,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        Self::NAME
    }

    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Ends what carries the mark and these variables too, and gives the command lines of that.
    #[cfg(target_os = "linux")]
    pub(super) async fn end_left_running(value: &str, name: &str, also: &str) -> Vec<String> {
        orphans::end_left_running(&[(Self::NAME, value), (name, also)]).await
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) async fn end_left_running(_value: &str, _name: &str, also: &str) -> Vec<String> {
        tracing::debug!("what {also} left running cannot be looked for here");
        Vec::new()
    }

    /// Has what carries the mark ended when squad dies, however it dies. `squad` is the program that sees to it.
    #[cfg(target_os = "linux")]
    pub(super) fn guard(&mut self, squad: Option<&Path>) {
        self.guardian = squad.and_then(|squad| Guardian::start(&Program::of_user(squad), Self::NAME, &self.value));
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn guard(&mut self, _squad: Option<&Path>) {}

    /// Ends what carries the mark and is still there.
    #[cfg(target_os = "linux")]
    pub(super) async fn end(&mut self) {
        orphans::end(&[(Self::NAME, &self.value)]).await;
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss().await;
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) async fn end(&mut self) {
        tracing::debug!("what engine {} left behind cannot be looked for here", self.value);
    }
}
