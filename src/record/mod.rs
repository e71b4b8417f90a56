//! The formats of recorded data: ledger entries and decision files.
//!
//! This module is pure: it produces paths and bytes, and `git` commits them.

mod decision_file;
mod entry;
mod import;
pub(crate) mod marks;
mod scrub;
mod text;

pub(crate) use decision_file::{decision_path, render_decision, title_in_path};
pub(crate) use entry::{Entry, Read};
pub(crate) use import::{SplitFile, part};
pub(crate) use scrub::{scrubbed, scrubbed_paths, settle};

use crate::model::{Actor, Event, EventKind, Slug, Written};
use crate::policy::Redactor;

/// The ledger entry of an event, with secrets redacted.
pub(crate) fn entry_of(event: &Event, redactor: &Redactor) -> Entry {
    let id = event.id.clone();
    let actor = match &event.agent {
        None => Actor::Squad,
        Some(agent) if agent.as_str() == Slug::COORDINATOR => Actor::Coordinator,
        Some(_) => Actor::Agent,
    };
    let mut entry = match &event.kind {
        EventKind::ToolCompleted { wrote: Some(wrote), .. } => {
            let mut kind = event.kind.clone();
            if let EventKind::ToolCompleted { wrote: kept, .. } = &mut kind {
                *kept = Some(Written { lines: marks::of(&wrote.text, redactor), ..wrote.clone() });
            }
            Entry::new(id, event.at, actor, &kind, redactor)
        }
        kind => match kind.end() {
            Some((outcome, end)) if end.changed.iter().flatten().any(|change| !change.text.is_empty()) => {
                let mut end = end.clone();
                for change in end.changed.iter_mut().flatten().filter(|change| !change.text.is_empty()) {
                    change.lines = marks::of(&change.text, redactor);
                }
                Entry::new(id, event.at, actor, &EventKind::of_end(outcome, end), redactor)
            }
            _ => Entry::new(id, event.at, actor, kind, redactor),
        },
    };
    entry.run = Some(event.run.clone());
    entry.seq = Some(event.seq);
    entry.agent = event.agent.clone();
    entry.position = event.position;
    entry.causes = event.causes.clone();
    entry
}

#[cfg(test)]
mod import_tests;
#[cfg(test)]
mod tests;
