use std::time::Instant;

use jiff::ToSpan;

use super::{Context, Ended};
use crate::model::{Actor, EventKind};
use crate::ops::{append, repository};
use crate::policy::Redactor;
use crate::record::Entry;

/// Append entries of about a kilobyte to the ledger, for `cargo bench`
///
/// Prints for each entry how many microseconds it took to become durable, and its path.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The writer's name, which goes into the entries
    name: String,
    /// How many to append
    count: u64,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let env = context.env;
        let (repository, _) = repository(env, &context.directory)?;
        let begin = env.clock.now();
        for number in 0..self.count {
            // Spread over 100 days, so that no day folder grows beyond what a busy team writes in a day.
            let days = i64::try_from(number % 100).unwrap_or_default();
            let at = begin.checked_sub((days * 24).hours()).unwrap_or(begin);
            let text = format!(
                "Learned by {}, number {number}.\n{}",
                self.name,
                "What was learned is about this long. ".repeat(20)
            );
            let kind = EventKind::MemoryLogged { text, share: None };
            let entry = Entry::new(env.ids.entry(at), at, Actor::Squad, &kind, &Redactor::default());
            let path = entry.path("");
            let start = Instant::now();
            append(&repository, "", &[entry], at)?;
            context.ui.data(&format!("{} {path}", start.elapsed().as_micros()));
        }
        Ok(0)
    }
}
