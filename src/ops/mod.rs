//! What commands do, apart from how they are spelled and how they speak.

pub(crate) mod agents;
pub(crate) mod begun;
mod cache;
mod commit;
pub(crate) mod config;
pub(crate) mod decisions;
pub(crate) mod demo;
mod direct;
pub(crate) mod doctor;
pub(crate) mod engines;
mod examine;
mod executor;
pub(crate) mod gc;
pub(crate) mod history;
pub(crate) mod hooks;
pub(crate) mod import;
mod index;
pub(crate) mod init;
mod journal;
pub(crate) mod landing;
mod layers;
mod lease;
pub(crate) mod ledger;
pub(crate) mod log;
mod lost;
pub(crate) mod members;
pub(crate) mod orchestrate;
pub(crate) mod order;
pub(crate) mod past;
mod project;
pub(crate) mod prompts;
mod prove;
pub(crate) mod radar;
pub(crate) mod repair;
pub(crate) mod rescue;
pub(crate) mod review;
pub(crate) mod routing;
pub(crate) mod scrub;
pub(crate) mod secrets;
mod signals;
mod snapshots;
pub(crate) mod status;
pub(crate) mod sync;
pub(crate) mod triage;
mod turn;
mod twins;
pub(crate) mod why;
mod workspace;

use tokio::runtime::Runtime;

use crate::env::Env;
use crate::error::Failure;
#[cfg(feature = "bench")]
pub(crate) use journal::append;
pub(crate) use layers::own_settings;
pub(crate) use project::{Project, insist_on_readable, team_settings};
pub(crate) use workspace::{Workspace, repository};

/// The asynchronous runtime, for the commands that need one.
fn runtime(env: &Env) -> Result<Runtime, Failure> {
    (env.runtime)().map_err(|error| Failure::failed(format!("the asynchronous runtime cannot start: {error}")))
}
