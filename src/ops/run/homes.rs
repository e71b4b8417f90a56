//! Clears sessions that engines stored under `.git/squad`. They are kept as long as a run can be resumed with them, and
//! those of completed runs for a few days, for inspection.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::engine::{StoredSession, stored_output, stored_sessions};
use crate::env::files::is_folder;
use crate::model::RunId;
use crate::ops::ledger::log::RunSummary;
use crate::ops::run::{lease, watch};
use crate::pool::run_of_session;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long sessions are kept of runs that did not complete or are unknown.
pub(in crate::ops) const RESUMABLE: Duration = DAY.saturating_mul(14);
/// How long sessions of completed runs are kept.
const OVER: Duration = DAY.saturating_mul(3);
/// The total size of completed runs' sessions, in bytes; the oldest are removed first.
const MOST: u64 = 256 * 1024 * 1024;

/// What was cleared.
#[derive(Debug, Default, PartialEq)]
pub(in crate::ops) struct Cleared {
    pub(in crate::ops) sessions: usize,
    pub(in crate::ops) bytes: u64,
}

/// Clears sessions of completed runs by age and size, and others by age. Sessions of live runs are never touched.
pub(in crate::ops) fn clear(local: &Path, runs: &[RunSummary], now: SystemTime) -> Cleared {
    let mut stored = stored(&local.join("homes"));
    stored.extend(stored_output(local));
    stored.sort_by(|one, other| other.modified.cmp(&one.modified).then_with(|| one.id.cmp(&other.id)));
    let status: BTreeMap<&RunId, &str> = runs.iter().map(|run| (&run.run, run.status.as_str())).collect();
    // Read after the list of sessions: a session that is opened from here on is not in it.
    let leases = lease::look(local);
    let is_watched = watch::is_anywhere(local);
    let mut cleared = Cleared::default();
    let mut kept = 0;
    for session in stored {
        let run = run_of_session(&session.id);
        let is_live = match &run {
            Some(run) => leases.status(run) == "running",
            // An agent's own session, which a watch may have suspended long ago.
            None => is_watched,
        };
        if is_live {
            continue;
        }
        let is_over = run.as_ref().and_then(|run| status.get(run)) == Some(&"completed");
        let age = now.duration_since(session.modified).unwrap_or_default();
        let stays = if is_over { age <= OVER && kept + session.bytes <= MOST } else { age <= RESUMABLE };
        if stays {
            kept += if is_over { session.bytes } else { 0 };
        } else if let Err(error) = session.remove() {
            tracing::debug!("session {} cannot be cleared: {error}", session.id);
        } else {
            cleared.sessions += 1;
            cleared.bytes += session.bytes;
        }
    }
    cleared
}

/// The stored sessions of all homes.
fn stored(homes: &Path) -> Vec<StoredSession> {
    let folders = std::fs::read_dir(homes).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = folders.filter(|folder| is_folder(homes) && is_folder(folder));
    folders.flat_map(|folder| stored_sessions(&folder.join("copilot"))).collect()
}
