//! Clears sessions that engines stored under `.git/squad`. They are kept as long as a run can be resumed with them, and
//! those of completed runs for a few days, for inspection.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::engine::{StoredSession, stored_output, stored_sessions};
use crate::env::Env;
use crate::env::files::is_folder;
use crate::model::{IntoMap, RunId, Sort};
use crate::ops::Project;
use crate::ops::ledger::log::{self, Choice, RunSummary};
use crate::ops::run::{lease, watch};
use crate::pool::run_of_session;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long sessions are kept of runs that did not complete or are unknown.
pub(in crate::ops) const RESUMABLE: Duration = DAY.saturating_mul(14);
/// How long sessions of completed runs are kept.
const OVER: Duration = DAY.saturating_mul(3);
/// What was cleared.
#[derive(Debug, Default, PartialEq)]
pub(in crate::ops) struct Cleared {
    pub(in crate::ops) sessions: usize,
    pub(in crate::ops) bytes: u64,
}

/// Clears, at the end of a run, when all sessions together take more than [`clear`] leaves of those that are over.
pub(in crate::ops) fn keep_to_limit(env: &Env, project: &Project) {
    let (local, limit) = (project.local(), project.settings.sessions.workspace_limit);
    if stored(&local).iter().map(|session| session.bytes).sum::<u64>() <= limit {
        return;
    }
    let (leases, all) = (lease::look(&local), Choice::default());
    match log::runs(&project.repository, &project.ledger_prefix(), &leases, &all, usize::MAX) {
        Ok(runs) => drop(clear(&local, &runs, limit, env.clock.now().into(), false)),
        Err(error) => tracing::debug!("stored sessions cannot be cleared: {error}"),
    }
}

/// Clears sessions of completed runs by age and size, the oldest first, until they take no more than `limit` bytes, and
/// others by age. Sessions of live runs are never touched. A dry run removes none.
pub(in crate::ops) fn clear(local: &Path, runs: &[RunSummary], limit: u64, now: SystemTime, dry_run: bool) -> Cleared {
    let mut stored = stored(local);
    stored.stable_sort_by(|one, other| other.modified.cmp(&one.modified).then_with(|| one.id.cmp(&other.id)));
    let status: BTreeMap<&RunId, &str> = runs.iter().map(|run| (&run.run, run.status.as_str())).into_map();
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
        let stays = if is_over { age <= OVER && kept + session.bytes <= limit } else { age <= RESUMABLE };
        if stays {
            kept += if is_over { session.bytes } else { 0 };
        } else if let Err(error) = if dry_run { Ok(()) } else { session.remove() } {
            tracing::debug!("session {} cannot be cleared: {error}", session.id);
        } else {
            cleared.sessions += 1;
            cleared.bytes += session.bytes;
        }
    }
    cleared
}

/// The stored sessions of all homes, and of command engines.
fn stored(local: &Path) -> Vec<StoredSession> {
    let homes = &local.join("homes");
    let folders = std::fs::read_dir(homes).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = folders.filter(|folder| is_folder(homes) && is_folder(folder));
    folders.flat_map(|folder| stored_sessions(&folder.join("copilot"))).chain(stored_output(local)).collect()
}
