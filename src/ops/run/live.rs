//! What a live run does for others: it says what it is at, and hears what they ask of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::model::{RunActivity, RunId, Slug, What};
use crate::ops::run::lease::RunFiles;
use crate::ops::run::local_file;
use crate::pool::{Canceller, LiveSessions, Reports};

/// How often a run looks for requests.
const LOOK: Duration = Duration::from_millis(200);
/// The least time between two states: what happens meanwhile is in the next one.
pub(in crate::ops) const PAUSE: Duration = Duration::from_millis(250);
/// A request is a few words; whatever is longer is none.
const LONGEST_REQUEST: u64 = 4096;

/// The run's own side of its files.
pub(in crate::ops) struct Live {
    pub(in crate::ops) files: RunFiles,
    pub(in crate::ops) sessions: Arc<LiveSessions>,
    pub(in crate::ops) canceller: Canceller,
}

/// What is asked of a run: to end, or to end one agent's work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Request {
    agent: Option<Slug>,
}

impl Live {
    /// Until it is dropped.
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
                    // Whoever asks meanwhile sees the state before this one.
                    let _ = write(&self.files, &self.files.state, &self.sessions.activity());
                }
                _ = look.tick() => self.hear(&reports).await,
            }
        }
    }

    async fn hear(&self, reports: &Reports) {
        // There is no folder until somebody asks for something.
        for entry in fs::read_dir(&self.files.requests).into_iter().flatten().flatten() {
            let path = entry.path();
            if let Some(request) = read::<Request>(&path) {
                self.cancel(request.agent.as_ref(), reports).await;
            }
            // Gone, it has been heard.
            let _ = fs::remove_file(&path);
        }
    }

    async fn cancel(&self, agent: Option<&Slug>, reports: &Reports) {
        let is_new = match agent {
            Some(agent) => self.canceller.agent(agent),
            None => self.canceller.run(),
        };
        if is_new {
            let reason = "asked for in another terminal".to_owned();
            // It is cancelled all the same.
            let _ = reports.record(agent, What::CancelRequested { reason }).await;
        }
    }
}

/// What the run says it is at; `None`: nothing yet.
pub(in crate::ops) fn activity(local: &Path, run: &RunId) -> Option<RunActivity> {
    local_file::read(&RunFiles::new(local, run).state)
}

/// Asks a run to cancel itself or an agent. The same asked twice is one request. Returns the file that is gone when the
/// run has heard it.
pub(in crate::ops) fn ask_to_cancel(local: &Path, run: &RunId, agent: Option<&Slug>) -> io::Result<PathBuf> {
    let files = RunFiles::new(local, run);
    fs::create_dir_all(&files.requests)?;
    let whom = agent.map_or("", |agent| agent.as_str());
    let path = files.requests.join(&blake3::hash(whom.as_bytes()).to_hex()[..16]);
    write(&files, &path, &Request { agent: agent.cloned() })?;
    Ok(path)
}

fn write(files: &RunFiles, path: &Path, value: &impl Serialize) -> io::Result<()> {
    // Not made among the requests, where the run would find it.
    local_file::replace(files.state.parent().unwrap_or(Path::new(".")), path, value)
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    let is_short = fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= LONGEST_REQUEST);
    if is_short { local_file::read(path) } else { None }
}
