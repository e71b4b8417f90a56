//! The process that a launcher is, or what stands for it in tests.

use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;

use super::Launch;
use crate::engine::child::ServingChild;
use crate::engine::connection::{Connection, Incoming};
use crate::engine::dialect::Dialect;

pub(super) enum Launcher {
    Process(Box<ServingChild>),
    #[cfg(test)]
    Wire,
}

impl Launcher {
    pub(super) fn start(launch: &Launch, incoming: Arc<dyn Incoming>) -> Result<(Self, Arc<Connection>), String> {
        #[cfg(test)]
        if let Some(wire) = &launch.wire {
            let (output, input) = tokio::io::split(wire.connect());
            return Ok((Self::Wire, Connection::start(Dialect::Lines, input, output, incoming)));
        }
        let program = launch.program.as_ref().ok_or_else(|| "it has no `launch`".to_owned())?;
        let mut command = Command::from(program.command());
        command.args(&launch.arguments).current_dir(&launch.directory).env_clear().envs(&launch.variables);
        let (child, connection) = ServingChild::start(&mut command, Dialect::Lines, incoming)
            .map_err(|why| format!("{} {why}", program.path().display()))?;
        Ok((Self::Process(Box::new(child)), connection))
    }

    /// How it ended, if it has.
    pub(super) async fn exit_report(&mut self) -> String {
        match self {
            Self::Process(child) => child.exit_report().await,
            #[cfg(test)]
            Self::Wire => "the wire is cut".to_owned(),
        }
    }

    /// Ends it within `grace`.
    pub(super) async fn end(&mut self, connection: &Connection, grace: Duration) {
        match self {
            Self::Process(child) => child.end(connection, grace).await,
            #[cfg(test)]
            Self::Wire => connection.fail("it was ended"),
        }
    }

    pub(super) async fn kill(&mut self) {
        match self {
            Self::Process(child) => child.kill().await,
            #[cfg(test)]
            Self::Wire => {}
        }
    }
}
