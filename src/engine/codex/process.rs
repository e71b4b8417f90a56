//! Codex's process, ready for use.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Timeouts;
use super::arguments::{Purpose, arguments};
use crate::engine::EngineError;
use crate::engine::child::ServingChild;
use crate::engine::command::Shared;
use crate::engine::connection::{CallError, Connection, Incoming, Responder};
use crate::engine::copilot::version_key;
use crate::engine::dialect::Dialect;

/// The oldest version that squad was tried with.
const MIN_VERSION: &str = "0.169.0";
/// Messages that are only for its own interfaces.
const UNWANTED: [&str; 8] = [
    "thread/started",
    "thread/status/changed",
    "thread/readState/changed",
    "thread/name/updated",
    "turn/diff/updated",
    "remoteControl/status/changed",
    "skills/changed",
    "app/list/updated",
];

pub(super) struct Process {
    child: ServingChild,
    pub(super) connection: Arc<Connection>,
    pub(super) version: String,
}

impl Process {
    /// Starts Codex, and checks its version.
    pub(super) async fn start(
        shared: &Shared,
        purpose: &Purpose<'_>,
        incoming: Arc<dyn Incoming>,
        timeouts: Timeouts,
    ) -> Result<Self, EngineError> {
        let name = &shared.profile.name;
        let (place, may_write): ((&str, &Path), bool) = match purpose {
            Purpose::Inspect => (("inspect", shared.directory()), false),
            Purpose::Serve(opening) => {
                ((&opening.session, &opening.directory), super::items::may_change(&opening.spec))
            }
        };
        let mut command = shared.command(&shared.program, place, may_write, None);
        command.args(arguments(shared, purpose));
        // Its last line of standard error is shown when it has ended: in plain text, and no advice on its own sandbox.
        command.env("NO_COLOR", "1").env("RUST_LOG", "error,codex_app_server=off");
        let (mut child, connection) =
            ServingChild::start(&mut command, Dialect::Lines, incoming).map_err(|reason| EngineError::Unusable {
                reason: format!("{} {reason}", shared.program.path().display()),
                hint: None,
            })?;
        let client = json!({ "name": "squad", "title": "squad", "version": env!("CARGO_PKG_VERSION") });
        let capabilities = json!({ "experimentalApi": true, "optOutNotificationMethods": UNWANTED });
        let params = json!({ "clientInfo": client, "capabilities": capabilities });
        let greeting = match connection.request("initialize", &params, timeouts.start).await {
            Ok(greeting) => greeting,
            Err(error) => {
                let exit_report = match error {
                    CallError::TimedOut(_) => String::new(),
                    _ => format!("; {}", child.exit_report().await),
                };
                let is_dead = child.has_died();
                child.kill().await;
                connection.fail("the engine did not start");
                let reason = format!("{name} does not answer as a server: {error}{exit_report}");
                let hint = Some(format!("check that `{} app-server --help` works", shared.program.path().display()));
                return Err(match is_dead {
                    true => EngineError::Died { reason, hint },
                    false => EngineError::Unusable { reason, hint },
                });
            }
        };
        connection.send(&json!({ "method": "initialized" }));
        let mut process = Self { child, connection, version: version(&greeting).unwrap_or_default() };
        if version_key(&process.version) >= version_key(MIN_VERSION) {
            return Ok(process);
        }
        let found = if process.version.is_empty() { "of an unknown version" } else { &process.version };
        let reason = format!("{name} is {found}; this squad needs {MIN_VERSION} or newer");
        let install = shared.profile.install.as_deref().unwrap_or("npm install -g @openai/codex");
        let hint = Some(format!("install a newer one: `{install}`; or use the engine `codex-print`"));
        process.child.end(&process.connection, timeouts.grace).await;
        Err(EngineError::Unusable { reason, hint })
    }

    /// Waits until it is lost, and returns the reason: it has ended, or does not answer any more.
    pub(super) async fn lost(&mut self, ping: Duration) -> String {
        let connection = Arc::clone(&self.connection);
        let hang = async {
            loop {
                tokio::time::sleep(ping).await;
                if let Err(CallError::TimedOut(_)) = connection.request("thread/loaded/list", &json!({}), ping).await {
                    return;
                }
            }
        };
        tokio::select! {
            reason = self.connection.closed() => reason,
            _ = self.child.ended() => "it ended".to_owned(),
            () = hang => "it does not answer any more".to_owned(),
        }
    }

    /// Kills what is left of a lost process, and returns how it ended.
    pub(super) async fn bury(mut self, reason: &str) -> String {
        let report = self.child.exit_report().await;
        self.connection.fail(reason);
        self.child.kill().await;
        report
    }

    pub(super) async fn end(mut self, grace: Duration) {
        self.child.end(&self.connection, grace).await;
    }
}

/// The version in what it calls itself: `squad/0.169.0 (…)`.
fn version(greeting: &Value) -> Option<String> {
    let agent = greeting["userAgent"].as_str()?;
    let (_, rest) = agent.split_once('/')?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// Has no answers.
pub(super) struct Nobody;

impl Incoming for Nobody {
    fn notified(&self, _: &Arc<Connection>, _: &str, _: Value) {}

    fn requested(&self, responder: Responder, method: &str, _: Value) {
        responder.unknown_method(method);
    }
}
