//! A live run's interface to other processes: it writes down its activity and reads their requests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::env::files::replace_by;
use crate::model::{AgentState, EventKind, RunActivity, RunId, Slug};
use crate::ops::run::lease::{Lease, RunFiles};
use crate::ops::run::local_file;
use crate::pool::{Canceller, LiveSessions, Reports, UserMessages};

/// How often a run looks for requests, and for its lease.
pub(in crate::ops) const LOOK: Duration = Duration::from_millis(200);
/// The least time between two writes of the state.
pub(in crate::ops) const PAUSE: Duration = Duration::from_millis(250);
/// The size limit of a request, in bytes; larger files are ignored.
pub(in crate::ops) const LONGEST_REQUEST: u64 = 256 * 1024;
/// The extension of a message that was delivered.
const DELIVERED: &str = "heard";

/// The run's own side of its files.
pub(in crate::ops) struct Live {
    /// Gone when the run has ended.
    pub(in crate::ops) lease: Weak<Lease>,
    pub(in crate::ops) files: RunFiles,
    pub(in crate::ops) sessions: Arc<LiveSessions>,
    pub(in crate::ops) canceller: Canceller,
    pub(in crate::ops) user_messages: Arc<UserMessages>,
}

/// A request to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// Cancel the run, or one agent's work.
    Cancel { agent: Option<Slug> },
    /// Deliver the user's message to an agent.
    Say { agent: Slug, text: String },
}

impl Live {
    /// Serves until it is dropped.
    pub(in crate::ops) async fn serve(self, reports: Reports) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut may_write = Instant::now();
        let mut is_written = false;
        loop {
            tokio::select! {
                () = self.sessions.changed(), if is_written => is_written = false,
                () = sleep_until(may_write), if !is_written => {
                    is_written = true;
                    may_write = Instant::now() + PAUSE;
                    // If this fails, readers see the previous state.
                    let _ = write(&self.files, &self.files.state, &self.sessions.activity());
                }
                _ = look.tick() => {
                    if let Some(lease) = self.lease.upgrade() {
                        lease.restore();
                    }
                    self.handle_requests(&reports).await;
                }
            }
        }
    }

    async fn handle_requests(&self, reports: &Reports) {
        // The folder does not exist before the first request.
        let entries = fs::read_dir(&self.files.requests).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| !is_answer(path)).collect();
        // Names sort by time, so messages are delivered in order.
        paths.sort();
        for path in paths {
            match read(&path) {
                Some(Request::Cancel { agent }) => self.cancel(agent.as_ref(), reports).await,
                Some(Request::Say { agent, text }) if self.say(&agent, &text, reports).await => {
                    let _ = fs::rename(&path, path.with_extension(DELIVERED));
                }
                Some(Request::Say { .. }) | None => {}
            }
            // Its removal tells the sender that the request was handled.
            let _ = fs::remove_file(&path);
        }
    }

    /// `false`: the agent is not working, and does not get the message.
    async fn say(&self, agent: &Slug, text: &str, reports: &Reports) -> bool {
        let waits = self.sessions.activity().agents.get(agent) == Some(&AgentState::Waiting);
        let is_delivered = self.user_messages.say(agent, text, waits);
        if is_delivered {
            // The message is delivered even if it cannot be recorded.
            let _ = reports.record(Some(agent), EventKind::UserMessage { text: text.to_owned() }).await;
        }
        is_delivered
    }

    async fn cancel(&self, agent: Option<&Slug>, reports: &Reports) {
        let is_new = match agent {
            Some(agent) => self.canceller.agent(agent),
            None => self.canceller.run_by_user(),
        };
        if is_new {
            let reason = "requested by the user".to_owned();
            // It is cancelled even if that cannot be recorded.
            let _ = reports.record(agent, EventKind::CancelRequested { reason }).await;
        }
    }
}

/// The run's current activity; `None`: not written yet.
pub(in crate::ops) fn activity(local: &Path, run: &RunId) -> Option<RunActivity> {
    local_file::read(&RunFiles::new(local, run).state)
}

/// Asks a run to cancel itself or an agent; a repeated request is the same file. Returns the file, which the run removes
/// when it has handled the request.
pub(in crate::ops) fn ask_to_cancel(local: &Path, run: &RunId, agent: Option<&Slug>) -> io::Result<PathBuf> {
    let files = RunFiles::new(local, run);
    fs::create_dir_all(&files.requests)?;
    let name = agent.map_or("", |agent| agent.as_str());
    let path = files.requests.join(&blake3::hash(name.as_bytes()).to_hex()[..16]);
    write(&files, &path, &Request::Cancel { agent: agent.cloned() })?;
    Ok(path)
}

/// Asks a run to deliver a message to an agent. Returns the file, which the run removes when it has handled the request.
pub(in crate::ops) fn ask_to_say(local: &Path, run: &RunId, agent: &Slug, said: (&str, &str)) -> io::Result<PathBuf> {
    let (id, text) = said;
    let files = RunFiles::new(local, run);
    fs::create_dir_all(&files.requests)?;
    let path = files.requests.join(id);
    write(&files, &path, &Request::Say { agent: agent.clone(), text: text.to_owned() })?;
    Ok(path)
}

/// Whether the message of a request was delivered.
pub(in crate::ops) fn was_delivered(request: &Path) -> bool {
    fs::remove_file(request.with_extension(DELIVERED)).is_ok()
}

fn is_answer(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == DELIVERED)
}

fn write(files: &RunFiles, path: &Path, value: &impl Serialize) -> io::Result<()> {
    // The temporary file is not created among the requests, where the run would find it.
    let folder = files.state.parent().unwrap_or(Path::new("."));
    replace_by(folder, path, &serde_json::to_vec(value)?)
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    let is_short = fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= LONGEST_REQUEST);
    if is_short { local_file::read(path) } else { None }
}
