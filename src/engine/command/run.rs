//! Runs one process of an engine until everything that it started has ended.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::spool::Spool;
use crate::engine::process_group::{Ending, ProcessGroup};
use crate::engine::spawn;

/// How long a process has to end after it was asked to. Windows has no way to ask.
const GRACE: Duration = Duration::from_secs(if cfg!(windows) { 0 } else { 5 });
/// How often its output is read.
const READ_INTERVAL: Duration = Duration::from_millis(40);
/// Maximum bytes of each output stream.
pub(super) const MAX_OUTPUT: u64 = 256 * MIB;
const MIB: u64 = 1024 * 1024;

/// How a process ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) duration: Duration,
    /// Why squad ended it.
    pub(super) stop_reason: Option<String>,
}

/// Where a process's output goes. Streams are named as file kinds of the [`Spool`].
pub(super) struct Output<'a> {
    pub(super) spool: &'a Spool,
    pub(super) stdout: &'a str,
    pub(super) stderr: &'a str,
    /// Maximum bytes of each stream.
    pub(super) most: u64,
}

/// Reads a process's output, at intervals while it runs and once after it has ended.
pub(super) trait OutputReader: Send {
    fn read(&mut self) -> impl Future<Output = ()> + Send;
}

/// Reads nothing.
impl OutputReader for () {
    async fn read(&mut self) {}
}

/// Runs a process to its end, or ends it if `stop` is set or it prints too much.
pub(super) async fn run(
    mut command: Command,
    input: Stdio,
    output: &Output<'_>,
    stop: &mut watch::Receiver<bool>,
    mut reader: impl OutputReader,
) -> std::io::Result<Ended> {
    let (stdout, stderr) = (output.spool.create(output.stdout)?, output.spool.create(output.stderr)?);
    command.stdin(input).stdout(stdout).stderr(stderr);
    let started = Instant::now();
    let (mut child, mut group) = ProcessGroup::spawn(&mut command)?;
    // It holds the output files open.
    drop(command);
    let mut ticks = interval(READ_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let prints_too_much = || [output.stdout, output.stderr].iter().any(|kind| output.spool.len(kind) > output.most);
    let (status, stop_reason) = loop {
        tokio::select! {
            status = child.wait() => {
                let status = status?;
                // It may have ended between two looks.
                break (status, prints_too_much().then(|| too_much(output.most)));
            }
            () = stopped(stop) => {
                break (end(&mut child, &mut group).await?, Some("it was stopped".to_owned()));
            }
            _ = ticks.tick() => reader.read().await,
        }
        if prints_too_much() {
            // With time to end, it would go on printing.
            break (group.kill(&mut child).await?, Some(too_much(output.most)));
        }
    };
    let duration = started.elapsed();
    end_remaining(&mut group).await;
    reader.read().await;
    let (code, signal) = (status.code(), signal_of(status));
    Ok(Ended { code, signal, duration, stop_reason })
}

fn too_much(most: u64) -> String {
    format!("it printed more than {} MiB", most / MIB)
}

/// Like [`run`], and ends the process after `limit`. Also returns whether that ended it.
pub(super) async fn run_limited(
    command: Command,
    input: Stdio,
    output: &Output<'_>,
    limit: Duration,
    cancelled: &watch::Receiver<bool>,
) -> std::io::Result<(Ended, bool)> {
    let (mut cancelled, (stop, mut stopped)) = (cancelled.clone(), watch::channel(false));
    let timer = spawn(async move {
        let is_timeout = tokio::select! {
            () = sleep(limit) => true,
            _ = cancelled.wait_for(|stop| *stop) => false,
        };
        stop.send_replace(true);
        is_timeout
    });
    let ended = run(command, input, output, &mut stopped, ()).await;
    timer.abort();
    let is_timeout = timer.await.unwrap_or(false);
    Ok((ended?, is_timeout))
}

/// Returns when `stop` is set or its sender is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

/// Asks a process and its group to end, then kills them.
async fn end(child: &mut Child, group: &mut ProcessGroup) -> std::io::Result<ExitStatus> {
    group.signal(Ending::Asked);
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status;
    }
    group.kill(child).await
}

/// Ends the processes that remain in the group, so that the turn's output no longer changes.
async fn end_remaining(group: &mut ProcessGroup) {
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
