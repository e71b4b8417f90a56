//! Runs agents: workers report facts, and one dispatcher turns them into events.
//!
//! ```text
//! Workers::fan_out ─→ worker ─┐            ┌→ Show (screen, NDJSON)
//!                  worker ─┼→ reports ─→ Dispatcher
//!                  worker ─┘            └→ Journal (ledger)
//!                    ↑
//!                  RequestHandler: answers the engine's requests
//! ```

mod admission;
mod always_allowed;
mod budget;
mod cancel;
mod colleagues;
mod commands;
mod commit;
mod dispatcher;
mod engines;
mod handing;
mod hooks;
mod job_permit;
mod lineage;
mod notices;
mod permission;
mod permission_judge;
mod permits;
mod place;
mod proposal;
mod quotas;
mod requests;
mod session_id;
mod session_memory;
mod session_pool;
mod sessions;
mod slots;
mod spending;
mod timer;
mod turn;
mod user_messages;
mod work_tree;
mod workers;

pub(crate) use always_allowed::AlwaysAllowed;
pub(crate) use budget::Budget;
pub(crate) use cancel::{Cancel, Canceller};
pub(crate) use colleagues::{Colleagues, HandOnRequest, HandedBy, JobRequest};
pub(crate) use dispatcher::{Dispatcher, Journal, Message, Reports, Show};
pub(crate) use engines::Engines;
pub(crate) use hooks::{FileState, Hook, HookPlace, Hooks};
pub(crate) use notices::Notices;
pub(crate) use permission_judge::PermissionJudge;
pub(crate) use permits::{Permit, Permits, Priority};
pub(crate) use place::{FoundPlace, Place, Places};
pub(crate) use quotas::{QuotaPolicy, Quotas, UsedUp};
pub(crate) use requests::{Ask, Keep, Notes, Question, Recorded, RequestHandler, Requester, in_project};
pub(crate) use session_id::{run_of_session, session_id, standing_session_id};
pub(crate) use session_memory::SessionStore;
pub(crate) use session_pool::SessionPool;
pub(crate) use sessions::LiveSessions;
pub(crate) use slots::SessionOwner;
pub(crate) use spending::{OfRun, Priced, Spending, Spent, date};
pub(crate) use timer::Limits;
pub(crate) use user_messages::UserMessages;
pub(crate) use work_tree::{Action, AgentChanges, Before, Interval, RunRepository, WorkTree};
pub(crate) use workers::{EarlierRuns, EarlierTurns, Job, Work, WorkKind, Workers};

#[cfg(test)]
mod handing_tests;
#[cfg(test)]
mod life_tests;
#[cfg(test)]
mod permission_tests;
#[cfg(test)]
mod session_pool_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod user_messages_tests;
#[cfg(test)]
mod workers_tests;
