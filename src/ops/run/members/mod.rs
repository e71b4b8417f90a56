//! Runs of members that an MCP client names, each with a role and a task. Nothing is routed or reviewed.
//!
//! ```text
//! a call of `squad mcp` → check → a runner process → a run like every other → ledger, output files
//!                                                                                  ↓
//!                                                 any squad process  ←── results
//! ```

mod chats;
mod output;
mod perform;
mod place;
mod results;
mod runner;
mod shape;

pub(crate) use chats::user_of;
pub(in crate::ops) use perform::plan;
pub(crate) use place::{require_engine, require_sound};
pub(crate) use results::{MemberResult, RunResult, is_live};
pub(crate) use runner::{Runner, StartedRun, carry, described};
