//! Events into the ledger.

use jiff::Timestamp;

use crate::git::{Identity, Repository};
use crate::model::{Decision, EntryId, Event, What, plural};
use crate::policy::Redactor;
use crate::pool::Journal;
use crate::record::{Entry, entry_of};

pub(crate) struct LedgerJournal {
    pub(crate) repository: Repository,
    pub(crate) prefix: String,
    pub(crate) redactor: Redactor,
    /// The decisions that were written, as they were written.
    pub(crate) decisions: Vec<Decision>,
}

/// Who the ledger's commits are by. A fixed name: the entries say who did what, and asking git for the user's own
/// would cost an append more than the append itself (facts: a spawned git takes 1.1–1.3 ms).
pub(crate) fn writer() -> Identity {
    Identity { name: "squad".to_owned(), email: "squad@localhost".to_owned() }
}

/// Writes entries and returns when they are durable.
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

impl Journal for LedgerJournal {
    async fn write(&mut self, events: &[(EntryId, Event)]) -> Result<(), String> {
        let Some((_, last)) = events.last() else { return Ok(()) };
        let at = last.at;
        let entries: Vec<Entry> =
            events.iter().map(|(id, event)| entry_of(event, id.clone(), &self.redactor)).collect();
        let decisions: Vec<Decision> = entries.iter().filter_map(logged_decision).collect();
        let (repository, prefix) = (self.repository.clone(), self.prefix.clone());
        tokio::task::spawn_blocking(move || append(&repository, &prefix, &entries, at))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        self.decisions.extend(decisions);
        Ok(())
    }
}

/// The decision an entry records, with the run the entry belongs to.
pub(crate) fn logged_decision(entry: &Entry) -> Option<Decision> {
    match entry.what() {
        Some(What::DecisionLogged { decision, .. }) => Some(Decision { run: entry.run.clone(), ..decision }),
        _ => None,
    }
}
