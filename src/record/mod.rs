//! What is written down, and in which form: ledger entries and decision files.
//!
//! The pure side of the record ends in paths and bytes; `git` makes commits of them.

mod decision_file;
mod entry;
mod import;
pub(crate) mod marks;
mod scrub;

pub(crate) use decision_file::{decision_path, render_decision};
pub(crate) use entry::{Entry, Read};
pub(crate) use import::{Parted, part};
pub(crate) use scrub::{scrubbed, scrubbed_paths, settle};

use crate::model::{Actor, EntryId, Event, Slug, What, Written};
use crate::policy::Redactor;

impl Event {
    /// Whether this is the running commentary of a run, which may be written in batches. Everything else is flushed
    /// before it is shown: decisions, learnings, verdicts, outcomes.
    pub(crate) fn is_commentary(&self) -> bool {
        matches!(
            self.what,
            What::ModelFallback { .. }
                | What::ConnectionLost { .. }
                | What::ConnectionRestored { .. }
                | What::SessionCreated { .. }
                | What::SessionResumed { .. }
                | What::SessionIdle { .. }
                | What::SessionDestroyed { .. }
                | What::SessionError { .. }
                | What::Message { .. }
                | What::MessageDelta { .. }
                | What::ToolStarted { .. }
                | What::ToolCompleted { .. }
                | What::ToolDenied { .. }
                | What::Usage(_)
        )
    }

    /// Pieces of messages are not kept: the whole message is.
    pub(crate) fn is_recorded(&self) -> bool {
        !matches!(self.what, What::MessageDelta { .. } | What::ToolStarted { .. })
    }
}

/// The ledger entry of an event, without secrets.
pub(crate) fn entry_of(event: &Event, id: EntryId, redactor: &Redactor) -> Entry {
    let actor = match &event.agent {
        None => Actor::Squad,
        Some(agent) if agent.as_str() == Slug::COORDINATOR => Actor::Coordinator,
        Some(_) => Actor::Agent,
    };
    let mut entry = match &event.what {
        What::ToolCompleted { wrote: Some(wrote), .. } => {
            let mut what = event.what.clone();
            if let What::ToolCompleted { wrote: kept, .. } = &mut what {
                *kept = Some(Written { lines: marks::of(&wrote.text, redactor), ..wrote.clone() });
            }
            Entry::new(id, event.at, actor, &what)
        }
        what => Entry::new(id, event.at, actor, what),
    };
    entry.run = Some(event.run.clone());
    entry.seq = Some(event.seq);
    entry.agent = event.agent.clone();
    entry.redact(redactor);
    entry
}

#[cfg(test)]
mod import_tests;
#[cfg(test)]
mod tests;
