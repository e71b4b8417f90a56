//! Claude Code in sessions that squad governs: its control protocol on its standard streams, a process for each session.
//!
//! ```text
//! Claude ── Session ─┬─ ServingChild, Connection   the program, started again when it is lost
//!                    ├─ Conversation               its messages as facts
//!                    └─ Requests                   what it asks, before and after it acts
//! ```
//!
//! How it is found, its environment and its sandbox are those of its profile (`command`). The repository's own hooks,
//! settings, servers, commands and instructions are off.

mod conversation;
#[cfg(all(test, target_os = "linux"))]
#[path = "../../../tests/real/engine/claude.rs"]
mod real_tests;
mod requests;
mod session;
mod tools;
mod transcript;
#[cfg(all(test, unix))]
mod unruly_tests;

use std::sync::Arc;

use super::command::{Command, Options};
use super::{Adapter, EngineError, Opening};
use crate::model::AvailableModels;

pub(crate) use session::Session;

pub(crate) struct Claude(Command);

impl Claude {
    /// Checks that the program exists. Each session starts it.
    pub(crate) fn start(options: Options) -> Result<Self, EngineError> {
        Command::start(options).map(Self)
    }

    pub(crate) fn name(&self) -> &str {
        self.0.name()
    }

    pub(crate) fn version(&self) -> String {
        self.0.version()
    }
}

impl Adapter for Claude {
    type Session = Session;

    async fn open(&self, opening: Opening) -> Result<Session, EngineError> {
        Session::open(Arc::clone(&self.0.0), opening).await
    }

    async fn offer(&self) -> AvailableModels {
        self.0.offer().await
    }

    async fn stop(self) {
        self.0.stop().await;
    }
}
