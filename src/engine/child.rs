//! The process of an engine that serves on its standard streams: runs in its own process group, its stderr is recorded.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::connection::{Connection, Incoming};
use super::dialect::Dialect;
use super::process_group::{Ending, ProcessGroup};
use crate::engine::spawn;
use crate::model::{first_line, printable};

/// Bytes of stderr that are kept for messages.
const MAX_STDERR: usize = 4 * 1024;
/// How long to wait for the exit status of an ended process, and for the rest of its stderr.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) struct ServingChild {
    child: Child,
    group: ProcessGroup,
    recorded: Arc<Mutex<VecDeque<u8>>>,
    /// Ends when stderr is closed.
    reader: JoinHandle<()>,
}

/// The last line of what a program said, for a message.
pub(super) fn last_line(output: &[u8]) -> String {
    let text = printable(&String::from_utf8_lossy(output));
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    first_line(last, 200)
}

impl ServingChild {
    /// The error says why the program does not serve: "the program … cannot be run: …".
    pub(super) fn start(
        command: &mut Command,
        dialect: Dialect,
        incoming: Arc<dyn Incoming>,
    ) -> Result<(Self, Arc<Connection>), String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, group) = ProcessGroup::spawn(command).map_err(|error| format!("cannot be run: {error}"))?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("has no standard streams".to_owned());
        };
        let recorded = Arc::default();
        let reader = spawn(record_stderr(errors, Arc::clone(&recorded)));
        Ok((Self { child, group, recorded, reader }, Connection::start(dialect, input, output, incoming)))
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.group.id()
    }

    pub(super) async fn ended(&mut self) -> Option<ExitStatus> {
        self.child.wait().await.ok()
    }

    /// Whether it was killed or has failed. One that found its input closed ends well.
    pub(super) fn has_died(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if !status.success())
    }

    /// Whether a signal has ended it.
    pub(super) fn was_killed(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if status.code().is_none())
    }

    /// How the process ended, if it has, and its last line of stderr.
    pub(super) async fn exit_report(&mut self) -> String {
        let ended = timeout(EXIT_TIMEOUT, self.child.wait()).await;
        if ended.is_ok() && !self.reader.is_finished() {
            // The last output may still be in the pipe, and a child process may hold the pipe open.
            let _ = timeout(EXIT_TIMEOUT, &mut self.reader).await;
        }
        let last = self.last_line();
        let last = if last.is_empty() { last } else { format!(": {last}") };
        match ended {
            Ok(Ok(status)) => format!("its process ended ({status}){last}"),
            _ => format!("its process is still running{last}"),
        }
    }

    fn last_line(&self) -> String {
        last_line(&self.recorded.lock().iter().copied().collect::<Vec<u8>>())
    }

    /// Ends the process within `grace`: closes its input, then signals it, then kills it.
    pub(super) async fn end(&mut self, connection: &Connection, grace: Duration) {
        connection.close_input();
        let half = grace / 2;
        if timeout(half, self.child.wait()).await.is_err() {
            self.group.signal(Ending::Asked);
            if timeout(half, self.child.wait()).await.is_err() {
                self.kill().await;
            }
        }
        connection.fail("the engine was stopped");
    }

    pub(super) async fn kill(&mut self) {
        let _ = self.group.kill(&mut self.child).await;
    }
}

/// Keeps the end of stderr.
async fn record_stderr(mut errors: impl AsyncRead + Unpin, recorded: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut buffer).await {
        let chunk = &buffer[..read];
        tracing::debug!("the engine says: {}", printable(&String::from_utf8_lossy(chunk)).trim_end());
        let mut recorded = recorded.lock();
        recorded.extend(chunk);
        let surplus = recorded.len().saturating_sub(MAX_STDERR);
        recorded.drain(..surplus);
    }
}
