//! Agents at work: workers report facts, one dispatcher makes them events.
//!
//! ```text
//! Crew::fan_out ─→ worker ─┐            ┌→ Show (screen, NDJSON)
//!                  worker ─┼→ reports ─→ Dispatcher
//!                  worker ─┘            └→ Journal (ledger)
//!                    ↑
//!                  Desk: answers what an engine asks for
//! ```

mod crew;
mod desk;
mod dispatcher;
mod lineage;
mod timer;
mod work_tree;

pub(crate) use crew::{Cancel, Crew, Job, Work, session_id};
#[cfg(test)]
use desk::Asker;
pub(crate) use desk::{Ask, Desk};
pub(crate) use dispatcher::{Dispatcher, Journal, Reports, Show};
pub(crate) use timer::Limits;
pub(crate) use work_tree::{Camera, WorkTree};

#[cfg(test)]
mod crew_tests;
#[cfg(test)]
mod tests;
