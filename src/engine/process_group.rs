//! Engine processes in groups of their own, so that they end with all they started.

use std::io;
use std::path::Path;
use std::process::ExitStatus;

use tokio::process::{Child, Command};

use super::descendants::Descendants;
#[cfg(unix)]
use super::guardian::Guardian;
use crate::program::PROCESS_MARK;
#[cfg(unix)]
use crate::program::Program;

/// The group of one process. On Windows, a job that ends with squad.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    id: Option<u32>,
    /// `None`: it has ended, or cannot be had.
    #[cfg(windows)]
    job: Option<win32job::Job>,
}

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
    /// Starts a process in a group of its own, whose id is the process's.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        apart(command);
        let child = command.kill_on_drop(true).spawn()?;
        let group = Self {
            id: child.id(),
            #[cfg(windows)]
            job: job_of(&child)
                .inspect_err(|error| tracing::warn!("what the engine starts may outlive it: {error}"))
                .ok(),
        };
        Ok((child, group))
    }

    /// Kills the process, and all of its group.
    pub(super) async fn kill(&mut self, child: &mut Child) -> io::Result<ExitStatus> {
        self.signal(Ending::Killed);
        // This fails only if the process has ended.
        let _ = child.start_kill();
        child.wait().await
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.id
    }

    #[cfg(unix)]
    pub(super) fn signal(&mut self, ending: Ending) {
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
    pub(super) fn is_there(&self) -> bool {
        self.pid().is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
    }

    /// Whether anything in it still runs.
    #[cfg(target_os = "linux")]
    pub(super) fn is_alive(&self) -> bool {
        self.id.is_some_and(super::processes::is_group_alive)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_alive(&self) -> bool {
        self.is_there()
    }

    #[cfg(unix)]
    fn pid(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.id?).ok()?)
    }

    #[cfg(windows)]
    pub(super) fn signal(&mut self, ending: Ending) {
        match ending {
            Ending::Asked => tracing::debug!("nothing asks process {:?} to end here; it is killed at last", self.id),
            // Its processes end when it is closed.
            Ending::Killed => self.job = None,
        }
    }

    #[cfg(windows)]
    pub(super) fn is_there(&self) -> bool {
        let processes = self.job.as_ref().and_then(|job| job.query_process_id_list().ok());
        processes.is_some_and(|ids| !ids.is_empty())
    }
}

/// A job with the process and all that it starts from now on: they end when the job is closed, also by squad's end.
#[cfg(windows)]
fn job_of(child: &Child) -> Result<win32job::Job, String> {
    let process = child.raw_handle().ok_or("it has ended")?;
    let mut limits = win32job::ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    let job = win32job::Job::create_with_limit_info(&limits).map_err(|error| error.to_string())?;
    job.assign_process(process as isize).map_err(|error| error.to_string())?;
    Ok(job)
}

/// A variable by which one engine's processes are known from all others.
pub(super) struct Mark {
    value: String,
    descendants: Descendants,
    #[cfg(unix)]
    guardian: Option<Guardian>,
}

impl Mark {
    pub(super) fn new() -> Self {
        let value = crate::env::unique_id().to_string();
        let descendants = Descendants::of(&[(PROCESS_MARK, &value)]);
        Self {
            value,
            descendants,
            #[cfg(unix)]
            guardian: None,
        }
    }

    /// The variable's name and value.
    pub(super) fn variable(&self) -> (&'static str, &str) {
        (PROCESS_MARK, &self.value)
    }

    /// Those of its processes that carry another variable too.
    pub(super) fn with(&self, variable: (&str, &str)) -> Descendants {
        Descendants::of(&[self.variable(), variable])
    }

    /// Has what carries the mark ended when squad dies, however it dies: after a moment, or at once. `squad` is the program
    /// that sees to it.
    pub(super) fn guard(&mut self, squad: Option<&Path>, at_once: bool) {
        #[cfg(unix)]
        {
            self.guardian =
                squad.and_then(|squad| Guardian::start(&Program::of_user(squad), (PROCESS_MARK, &self.value), at_once));
        }
        #[cfg(windows)]
        tracing::debug!("no process besides the job watches {}: {squad:?} {at_once}", self.value);
    }

    /// To be called before the process that carries the mark is ended.
    pub(super) fn look(&mut self) {
        self.descendants.look();
    }

    /// Ends what carries the mark and is still there.
    pub(super) async fn end(&mut self) {
        self.descendants.end().await;
        #[cfg(unix)]
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss().await;
        }
    }
}

#[cfg(windows)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Stdio;
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test]
    async fn what_a_process_started_and_left_ends_with_its_job() {
        let folder = tempfile::tempdir().expect("a folder");
        // It begins when it gets a line, so that it is in the job by then, and leaves the loop behind.
        fs::write(folder.path().join("begin.bat"), "@set /p go=\r\n@start /b cmd /c loop.bat\r\n").expect("a file");
        fs::write(folder.path().join("loop.bat"), "@for /l %%i in (1,0,2) do @echo x>>beat\r\n").expect("a file");
        let mut command = Command::new("cmd");
        command.args(["/c", "begin.bat"]).current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::null());
        let (mut child, mut group) = ProcessGroup::spawn(&mut command).expect("it starts");
        child.stdin.take().expect("a pipe").write_all(b"go\r\n").await.expect("it reads");
        child.wait().await.expect("it ends");
        let size = || fs::metadata(folder.path().join("beat")).map_or(0, |beat| beat.len());
        while size() == 0 {
            sleep(Duration::from_millis(20)).await;
        }
        assert!(group.is_there());
        group.signal(Ending::Killed);
        assert!(!group.is_there());
        // The last write may take its time; a writer that still runs never stops.
        let mut is_still = false;
        for _ in 0..20 {
            let before = size();
            sleep(Duration::from_millis(500)).await;
            is_still = size() == before;
            if is_still {
                break;
            }
        }
        assert!(is_still, "it goes on writing");
    }
}
