//! One process of an engine, from its start to the end of all that it started.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::spool::Spool;
use crate::engine::process_group::{Ending, ProcessGroup, apart};

/// How long a process has to end when it is asked to. On Windows nothing asks it.
const GRACE: Duration = Duration::from_secs(if cfg!(windows) { 0 } else { 5 });
/// So often its output is looked at.
const LOOK: Duration = Duration::from_millis(40);
/// It may print so many bytes, on each of its streams.
const LARGEST: u64 = 256 * 1024 * 1024;

/// How a process ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) took: Duration,
    /// Why squad ended it.
    pub(super) because: Option<String>,
}

/// Where a process's output goes, by the kinds of a [`Spool`].
pub(super) struct Output<'a> {
    pub(super) spool: &'a Spool,
    pub(super) stdout: &'a str,
    pub(super) stderr: &'a str,
}

/// Looks at what a process has printed, now and then while it works and at last.
pub(super) trait OutputReader: Send {
    fn look(&mut self) -> impl Future<Output = ()> + Send;
}

/// Nobody looks.
impl OutputReader for () {
    async fn look(&mut self) {}
}

/// Runs a process to its end.
pub(super) async fn run(
    mut command: Command,
    input: Stdio,
    output: &Output<'_>,
    stop: &mut watch::Receiver<bool>,
    mut look: impl OutputReader,
) -> std::io::Result<Ended> {
    let (stdout, stderr) = (output.spool.create(output.stdout)?, output.spool.create(output.stderr)?);
    command.stdin(input).stdout(stdout).stderr(stderr).kill_on_drop(true);
    apart(&mut command);
    let started = Instant::now();
    let mut child = command.spawn()?;
    let mut group = ProcessGroup::of(&child);
    // The command holds the files too.
    drop(command);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ended = loop {
        tokio::select! {
            status = child.wait() => break Ok(status?),
            () = stopped(stop) => break Err("it was stopped".to_owned()),
            _ = looks.tick() => look.look().await,
        }
        if [output.stdout, output.stderr].iter().any(|kind| output.spool.len(kind) > LARGEST) {
            break Err(format!("it printed more than {} MiB", LARGEST / 1024 / 1024));
        }
    };
    let (status, because) = match ended {
        Ok(status) => (status, None),
        Err(because) => (end(&mut child, &mut group).await?, Some(because)),
    };
    let took = started.elapsed();
    clear(&mut group).await;
    look.look().await;
    let (code, signal) = (status.code(), signal_of(status));
    Ok(Ended { code, signal, took, because })
}

/// Also when whoever wanted the answer is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

/// Asks a process and its group to end, and insists.
async fn end(child: &mut Child, group: &mut ProcessGroup) -> std::io::Result<ExitStatus> {
    group.signal(Ending::Asked);
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status;
    }
    group.signal(Ending::Killed);
    // It fails only for a process that has ended.
    let _ = child.start_kill();
    child.wait().await
}

/// Ends what a process has left in its group: the turn is over, and its output is not to change any more.
async fn clear(group: &mut ProcessGroup) {
    if !group.is_there() {
        return;
    }
    group.signal(Ending::Asked);
    let deadline = Instant::now() + GRACE;
    while group.is_alive() && Instant::now() < deadline {
        sleep(Duration::from_millis(10)).await;
    }
    group.signal(Ending::Killed);
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}
