//! The Copilot CLI in its server mode: JSON-RPC over its standard streams.
//!
//! ```text
//! Copilot ── Server ─┬─ Process     the CLI, restarted when it is lost
//!                    ├─ Connection  frames, requests and answers
//!                    └─ Registry ── Conversation (one per session): the CLI's messages as facts
//! ```
//!
//! We have our own client because the official crate drops events beyond a bounded queue, does not reconnect, and takes
//! a minute and a half to build. Only [`wire`] knows the protocol's messages.

mod conversation;
mod endpoint;
mod locate;
mod options;
mod process;
mod profile;
#[cfg(all(test, target_os = "linux"))]
#[path = "../../../tests/real/engine/copilot.rs"]
mod real_tests;
mod recall;
mod registry;
mod server;
mod servers;
mod session;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(all(test, unix))]
mod turn_tests;
#[cfg(all(test, unix))]
mod unruly_tests;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(in crate::engine) use locate::version_key;
pub(crate) use locate::{PACKAGE, installed, locate};
pub(crate) use options::{Home, McpOffer, McpServer, McpServers, Options, Provider, ProviderKind, Timeouts, WireApi};
pub(crate) use profile::{DEFAULT_IDENTITY, NOTIFICATIONS};
pub(crate) use server::{Identity, PROTOCOL};
pub(crate) use session::Session;
pub(in crate::engine) use session::is_format_refusal;
pub(crate) use wire::{Account, ModelInfo};

use self::server::Server;
use self::servers::Unusable;
use super::{Adapter, EngineError, Opening};
use crate::engine::spawn;
use crate::model::{AvailableModels, ConnectionState, SandboxLevel};

/// A running Copilot CLI that is ready for use.
pub(crate) struct Copilot {
    server: Arc<Server>,
    stop: oneshot::Sender<()>,
    watcher: JoinHandle<()>,
}

/// Information about an installed CLI, usable or not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Probe {
    pub(crate) program: PathBuf,
    pub(crate) identity: Identity,
    /// An error if nobody is logged in.
    pub(crate) models: Result<Vec<ModelInfo>, EngineError>,
}

impl Copilot {
    /// Finds the CLI, starts it and checks that squad can work with it.
    pub(crate) async fn start(options: Options) -> Result<Self, EngineError> {
        let running = start_and_check(&options).await?;
        let account = &running.identity.account;
        if options.provider.is_none() && !account.authenticated {
            let error = unauthenticated(account);
            running.process.end(&running.connection, options.timeouts.grace).await;
            return Err(match &options.sandbox {
                Some(sandbox) if is_logged_in_outside(&options).await => hidden_login(sandbox.level()),
                _ => error,
            });
        }
        let (server, stop, watcher) = Server::watch(options, running);
        Ok(Self { server, stop, watcher: spawn(watcher) })
    }

    /// Starts the CLI to inspect it and the MCP servers, and ends it again. Unlike [`Copilot::start`], needs no login.
    pub(crate) async fn probe(options: &Options) -> (Result<Probe, EngineError>, Unusable) {
        let running = match start_and_check(options).await {
            Ok(running) => running,
            Err(error) => return (Err(error), servers::unusable(options).await),
        };
        let models = server::models(&running.connection, options.timeouts.request).await;
        let unusable = servers::tried_with(&running.connection, options).await;
        running.process.end(&running.connection, options.timeouts.grace).await;
        let program = running.program.path().to_owned();
        (Ok(Probe { program, identity: running.identity, models }), unusable)
    }

    pub(crate) fn version(&self) -> String {
        self.server.identity.version.clone()
    }
}

impl Adapter for Copilot {
    type Session = Session;

    async fn open(&self, opening: Opening) -> Result<Session, EngineError> {
        Session::open(Arc::clone(&self.server), opening).await
    }

    async fn offer(&self) -> AvailableModels {
        self.server.offer().await
    }

    fn connection(&self) -> ConnectionState {
        self.server.connection_state()
    }

    async fn connection_changed(&self) {
        self.server.connection_changed().await;
    }

    async fn stop(self) {
        // If the watcher has ended, so has the CLI.
        let _ = self.stop.send(());
        let _ = self.watcher.await;
    }
}

/// Starts the CLI, and meanwhile checks that the model endpoint is reachable.
async fn start_and_check(options: &Options) -> Result<server::Running, EngineError> {
    let Some(provider) = &options.provider else { return server::start(options).await };
    let address = endpoint::address(provider)?;
    let ((), running) =
        tokio::try_join!(endpoint::check_reachable(options, provider, address), server::start(options))?;
    Ok(running)
}

/// Whether the CLI finds a login that the sandbox hides from it.
async fn is_logged_in_outside(options: &Options) -> bool {
    let outside = Options { sandbox: None, ..options.clone() };
    let Ok(running) = start_and_check(&outside).await else { return false };
    running.process.end(&running.connection, options.timeouts.grace).await;
    running.identity.account.authenticated
}

fn hidden_login(level: SandboxLevel) -> EngineError {
    EngineError::Unauthenticated {
        reason: format!("the Copilot CLI is logged in, but not in the sandbox `{level}`, which hides where its login lies"),
        hint: "set COPILOT_GITHUB_TOKEN; or let agents read the login, `squad config set --user sandbox.read '[\"~/.config/gh\"]'`; \
               or choose `squad config set --user sandbox.level rules`"
            .to_owned(),
    }
}

/// How a person logs in.
const LOGIN: &str = "run `copilot` and enter `/login`";

pub(crate) fn unauthenticated(account: &Account) -> EngineError {
    let status = account.status_message.as_deref().filter(|status| *status != "Not authenticated");
    let detail = status.map(|status| format!(" ({status})")).unwrap_or_default();
    EngineError::Unauthenticated {
        reason: format!("the Copilot CLI is not logged in{detail}"),
        hint: format!(
            "{LOGIN}; or set COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL for a model endpoint of your own; or try squad \
             without one: `--engine rehearsal`"
        ),
    }
}
