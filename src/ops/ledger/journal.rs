//! Writes events to the ledger.

use jiff::Timestamp;

use crate::engine::spawn_blocking;
use crate::git::{Identity, Repository};
use crate::model::{Decision, Event, EventKind, plural};
use crate::policy::Redactor;
use crate::pool::Journal;
use crate::record::{Entry, entry_of};

pub(crate) struct LedgerJournal {
    pub(crate) repository: Repository,
    pub(crate) prefix: String,
    pub(crate) redactor: Redactor,
    /// See `Env::threads`.
    pub(crate) threads: bool,
}

/// The author of the ledger's commits. It is fixed, since the entries say who did what, and asking git for the user's
/// identity would add about half the cost of an append (measured: spawning git takes 1.1–1.3 ms).
pub(crate) fn writer() -> Identity {
    Identity { name: "squad".to_owned(), email: "squad@localhost".to_owned() }
}

/// Appends entries; durable when it returns.
pub(crate) fn append(
    repository: &Repository,
    prefix: &str,
    entries: &[Entry],
    at: Timestamp,
) -> Result<(), crate::git::Error> {
    let files: Vec<(String, Vec<u8>)> = entries.iter().map(|entry| (entry.path(prefix), entry.render())).collect();
    let message = match entries {
        [entry] => format!("{}\n", entry.kind),
        entries => format!("{}\n", plural(entries.len(), "entry")),
    };
    repository.ledger().append(&files, &message, &writer(), at)
}

/// Runs slow work on a separate thread, so that signals and engines are handled meanwhile.
pub(in crate::ops) async fn aside<T: Send + 'static>(
    threads: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    if !threads {
        return Ok(work());
    }
    spawn_blocking(work).await.map_err(|error| error.to_string())
}

impl Journal for LedgerJournal {
    async fn write(&mut self, events: &[Event]) -> Result<(), String> {
        let Some(last) = events.last() else { return Ok(()) };
        let at = last.at;
        let entries: Vec<Entry> = events.iter().map(|event| entry_of(event, &self.redactor)).collect();
        let (repository, prefix) = (self.repository.clone(), self.prefix.clone());
        aside(self.threads, move || append(&repository, &prefix, &entries, at))
            .await?
            .map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// The decision an entry records, with the entry's run.
pub(crate) fn logged_decision(entry: &Entry) -> Option<Decision> {
    match entry.known_kind() {
        Some(EventKind::DecisionLogged { decision, .. }) => Some(decision.recorded_in(entry.run.as_ref())),
        _ => None,
    }
}
