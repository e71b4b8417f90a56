//! Engines: the programs that run agent sessions.
//!
//! An adapter is the only code that knows its engine's own types. It opens sessions and reports facts; what a fact
//! means for the run is decided elsewhere (`pool`). [`copilot`], [`claude`] and [`codex`] talk with a program that stays;
//! [`command`] starts one for each message; [`rehearsal`] plays a script in process; [`remote`] has a worker on another
//! machine do one of these.
//!
//! ```text
//! Engine::start ─→ Engine ── open(Opening) ─→ Session ── send(prompt) ─→
//!                                                     ←─ next() ── Fact, Fact, … Fact::Idle
//! ```
//!
//! Engines are a closed set, so [`Engine`] is an enum that dispatches to the adapters: `async fn` without boxing.

mod capabilities;
mod child;
pub(crate) mod claude;
pub(crate) mod codex;
pub(crate) mod command;
pub(crate) mod connection;
pub(crate) mod copilot;
mod descendants;
pub(crate) mod dialect;
mod error;
mod fact;
mod frame;
#[cfg(unix)]
mod guardian;
mod hosts;
#[cfg(all(test, target_os = "linux"))]
#[path = "../../tests/support/model_server.rs"]
mod model_server;
mod process_group;
mod processes;
pub(crate) mod prove;
mod quota;
pub(crate) mod rehearsal;
pub(crate) mod releases;
pub(crate) mod remote;
mod stores;
mod task;
mod traffic;
mod writes;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use capabilities::{Capabilities, Capability};
use copilot::McpServer;
pub(crate) use error::{EngineError, with_hint};
pub(crate) use fact::{Approval, Fact, Reply, Request, ToolCall, ToolResult, Writing};
pub(crate) use fact::{NO_ANSWER, added, subject};
#[cfg(unix)]
pub(crate) use guardian::guard;
pub(crate) use hosts::EngineHosts;
#[cfg(all(test, target_os = "linux"))]
use prove::wires;
pub(crate) use quota::{Account, Reset, quota_error};
pub(crate) use stores::{StoredSession, stored_output, stored_sessions};
pub(crate) use task::{spawn, spawn_blocking};

use crate::model::{Attachment, AvailableModels, ConnectionState, HostPattern, SandboxLevel, SessionSpec};
use crate::program::{Program, Programs};
use crate::sandbox::{Sandbox, Traffic};
use crate::settings::{SESSION_ENGINES, SessionProtocol};

/// How often an engine that dies before it has been asked anything is started again.
pub(crate) const RESTARTS: u32 = 2;
/// The first wait before that.
pub(crate) const RESTART_WAIT: Duration = Duration::from_millis(250);

/// A running engine. `AdapterSession::next` is cancel safe: a fact that was not returned is returned by the next call.
pub(crate) trait Adapter {
    type Session: AdapterSession;

    /// Opens a session. With [`Opening::resume`], continues the earlier session of that id; if that is not possible, fails
    /// with [`EngineError::NotResumable`] and opens nothing.
    async fn open(&self, opening: Opening) -> Result<Self::Session, EngineError>;

    /// The models it offers. An engine that does not tell in time counts as offering every model.
    async fn offer(&self) -> AvailableModels;

    fn connection(&self) -> ConnectionState {
        ConnectionState::Connected
    }

    /// Returns when the connection's state has changed since the call.
    async fn connection_changed(&self) {
        std::future::pending().await
    }

    /// Ends the engine and everything it started. All sessions are closed before.
    async fn stop(self);
}

pub(crate) trait AdapterSession {
    /// The session's actual model.
    fn model(&self) -> &str;

    /// The folder in which the engine stores the session; `None` if unknown.
    fn workspace(&self) -> Option<String> {
        None
    }

    /// Whether its facts include its tool calls. If not, a turn without any may have used tools.
    fn reports_tools(&self) -> bool;

    /// What bounds the programs of its engine.
    fn sandbox(&self) -> SandboxLevel;

    /// The hosts that they reach, and ask about; `None`: whatever the user can reach.
    fn traffic(&self) -> Option<Arc<Traffic>> {
        None
    }

    /// Whether they reach listed hosts only.
    fn is_listed(&self) -> bool {
        self.traffic().is_some()
    }

    /// Starts a turn, with attached files. The turn's facts follow; the last one is [`Fact::Idle`],
    /// [`Fact::Interrupted`], [`Fact::Failed`], [`Fact::NoQuota`], [`Fact::Lost`] or [`Fact::Gone`].
    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError>;

    /// How much of the turn for a prompt a resumed session contains; `None` if unknown.
    async fn recall(&mut self, _prompt: &str) -> Option<Recall> {
        None
    }

    /// Adds text to the current turn, before its next model call. `false`: the engine does not support this.
    async fn notify(&mut self, _text: &str) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// Adds a message of the user to the current turn, before its next model call. `false`: there is no current turn.
    async fn steer(&mut self, _text: &str) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// The next fact. Once the engine is gone, every call returns [`Fact::Lost`], or
    /// [`Fact::Gone`].
    async fn next(&mut self) -> Fact;

    /// Stops the current turn; its last fact still follows.
    async fn abort(&mut self);

    /// Closes the session, which may be resumed by its id later. Ends the processes that its tools left running, and
    /// returns their command lines.
    async fn close(self) -> Vec<String>;
}

/// What a resumed session contains of the interrupted turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recall {
    /// Whether the model has received the prompt.
    pub(crate) has_prompt: bool,
    /// Calls without a result, each with its tool: the session cannot tell whether they took effect.
    pub(crate) unfinished: Vec<(String, String)>,
    /// The ids of all its tool calls.
    pub(crate) calls: Vec<String>,
}

#[cfg(test)]
impl Recall {
    /// The tools of its calls without a result.
    fn unfinished_tools(&self) -> Vec<&str> {
        self.unfinished.iter().map(|(_, tool)| &**tool).collect()
    }
}

/// One of squad's own tools. The engine calls it with [`Fact::Request`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolSpec {
    pub(crate) name: Cow<'static, str>,
    pub(crate) description: Cow<'static, str>,
    /// JSON Schema of the arguments, of type `object`.
    pub(crate) parameters: Value,
}

/// How to open a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Opening {
    /// Its id: `[A-Za-z0-9_-]` only, and the same for the same work of the same agent, so that it can be resumed.
    pub(crate) session: String,
    pub(crate) spec: SessionSpec,
    pub(crate) tools: Vec<ToolSpec>,
    /// The project's root, absolute.
    pub(crate) directory: PathBuf,
    pub(crate) resume: bool,
    /// Whether a user can answer questions.
    pub(crate) asks: bool,
    /// The form of its answers, for models that support structured output.
    pub(crate) form: Option<Form>,
    /// Who named its agent; `None`: it is the team's.
    pub(crate) caller: Option<Caller>,
}

/// What a caller outside squad said of an agent that it named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Caller {
    /// The role in the caller's words.
    pub(crate) role: String,
    /// It may continue the session's chat. If not, an engine with chats works without one.
    pub(crate) keeps_chat: bool,
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Form {
    pub(crate) name: Cow<'static, str>,
    /// A JSON Schema of type `object`, in which every property is required and no other is allowed.
    pub(crate) schema: Value,
}

/// The engines with an adapter of their own; all others are command engines, named by their profiles. Code that handles
/// each kind matches on this, so that the compiler lists what a new kind needs: an adapter here, and how it starts and
/// what is reported about it in `ops::engines`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineKind {
    Copilot,
    Rehearsal,
}

impl EngineKind {
    /// The default first.
    pub(crate) const ALL: [Self; 2] = [Self::Copilot, Self::Rehearsal];

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// As the configuration spells it.
    pub(crate) fn name(self) -> &'static str {
        SESSION_ENGINES[self as usize]
    }

    pub(crate) fn capabilities(self) -> Capabilities {
        match self {
            Self::Copilot => Capabilities::all(),
            Self::Rehearsal => {
                Capabilities::all().without(&[Capability::Usage, Capability::Images, Capability::Effort])
            }
        }
    }

    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Copilot => "the GitHub Copilot CLI in its server mode",
            Self::Rehearsal => "plays a script in process: no model, no login, no network",
        }
    }
}

/// A running engine.
pub(crate) enum Engine {
    Claude(claude::Claude),
    Codex(codex::Codex),
    Command(command::Command),
    Copilot(copilot::Copilot),
    Rehearsal(rehearsal::Rehearsal),
    Batch(remote::batch::Batch),
    Remote(remote::Remote),
}

/// A session of any engine.
pub(crate) enum Session {
    Claude(Box<claude::Session>),
    Codex(codex::Session),
    Command(command::Session),
    Copilot(copilot::Session),
    Rehearsal(rehearsal::Session),
    Batch(Box<remote::batch::Session>),
    Remote(Box<remote::Session>),
}

/// Everything needed to start an engine, so that it can be started on first use.
#[derive(Clone)]
pub(crate) enum Startable {
    Command(Box<command::Options>),
    Copilot(Box<copilot::Options>),
    Rehearsal(Option<rehearsal::Script>, Box<rehearsal::Surroundings>),
    /// On another machine.
    Remote(Box<remote::Options>),
    /// Its settings do not allow starting it.
    Not(EngineError),
}

impl Startable {
    /// The hosts that it needs, in its sandbox if it has one.
    pub(crate) fn hosts(&self) -> Option<(EngineHosts, &Sandbox)> {
        let (hosts, servers, sandbox) = match self {
            Self::Command(options) => {
                (options.profile.hosts(&options.variables), &options.mcp_servers, &options.sandbox)
            }
            Self::Copilot(options) => (options.hosts(), &options.mcp_servers, &options.sandbox),
            Self::Rehearsal(..) | Self::Remote(_) | Self::Not(_) => return None,
        };
        let EngineHosts { endpoint, mut others } = hosts;
        others.extend(servers.values().filter_map(McpServer::host).map(HostPattern::from));
        Some((EngineHosts { endpoint, others }, sandbox.as_ref()?))
    }

    /// The folders that its own sandbox, which bounds its programs where squad's does not, lets them write wherever they
    /// work.
    pub(crate) fn writable_folders(&self) -> Vec<PathBuf> {
        match self {
            Self::Command(options) if options.sandbox.is_none() => match options.profile.protocol {
                Some(SessionProtocol::Codex) => codex::writable_folders(&options.variables),
                Some(SessionProtocol::Claude) | None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// The same with a sandbox in which it reaches what it needs.
    async fn with_hosts(&self) -> Self {
        let Some((hosts, sandbox)) = self.hosts() else { return self.clone() };
        let (sandbox, open) = hosts.within(sandbox.clone()).await;
        if let Some(reason) = open {
            tracing::info!("the network of the sandbox is open: {reason}");
        }
        let (sandbox, mut startable) = (Some(sandbox), self.clone());
        match &mut startable {
            Self::Command(options) => options.sandbox = sandbox,
            Self::Copilot(options) => options.sandbox = sandbox.map(Sandbox::of_session),
            Self::Rehearsal(..) | Self::Remote(_) | Self::Not(_) => {}
        }
        startable
    }

    pub(crate) async fn start(&self) -> Result<Engine, EngineError> {
        match self.with_hosts().await {
            Self::Command(options) => match options.profile.protocol {
                Some(SessionProtocol::Claude) => claude::Claude::start(*options).map(Engine::Claude),
                Some(SessionProtocol::Codex) => codex::Codex::start(*options).await.map(Engine::Codex),
                None => command::Command::start(*options).map(Engine::Command),
            },
            Self::Copilot(options) => copilot::Copilot::start(*options).await.map(Engine::Copilot),
            Self::Rehearsal(script, surroundings) => {
                Ok(Engine::Rehearsal(rehearsal::Rehearsal::start(script).with_commands(*surroundings)))
            }
            Self::Remote(options) => match options.mailbox.clone() {
                Some(mailbox) => Ok(Engine::Batch(remote::batch::Batch::new(*options, mailbox))),
                None => remote::Remote::start(*options).await.map(Engine::Remote),
            },
            Self::Not(error) => Err(error),
        }
    }

    /// With these variables besides those that its profile names. Other engines get all that there are.
    pub(crate) fn with_variables(mut self, names: Vec<String>) -> Self {
        if let Self::Command(options) = &mut self {
            options.profile.env.extend(names);
        }
        self
    }

    /// Whose quota it uses.
    pub(crate) fn account(&self) -> Option<Account> {
        match self {
            Self::Command(options) => Some(command::account(options)),
            Self::Copilot(options) => Some(options.account()),
            Self::Rehearsal(..) => Some(Account::new(EngineKind::Rehearsal.name(), None, [])),
            Self::Remote(options) => Some(options.account()),
            Self::Not(_) => None,
        }
    }

    /// Whether it tells tokens, and what they cost. Of another machine's, that is found out.
    pub(crate) fn tells_usage(&self) -> [bool; 2] {
        match self {
            Self::Command(options) => options.profile.tells_usage(),
            Self::Copilot(_) => [true, false],
            // As its script says.
            Self::Rehearsal(..) | Self::Remote(_) | Self::Not(_) => [true; 2],
        }
    }

    /// Its program; `None`: it needs none. Starts nothing.
    pub(crate) fn locate(&self) -> Result<Option<Program>, EngineError> {
        match self {
            Self::Command(options) => {
                let programs = Programs::new(&options.directory, &options.variables);
                command::locate(&options.profile, &programs).map(Some)
            }
            Self::Copilot(options) => copilot::locate(options).map(Some),
            Self::Rehearsal(..) => Ok(None),
            Self::Remote(options) => Ok(options.launch.program.clone()),
            Self::Not(error) => Err(error.clone()),
        }
    }

    /// The path of its program, if it has one that is there.
    pub(crate) fn program(&self) -> Option<PathBuf> {
        Some(self.locate().ok()??.path().to_owned())
    }
}

impl Engine {
    /// As the configuration spells it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Claude(engine) => engine.name(),
            Self::Codex(engine) => engine.name(),
            Self::Command(engine) => engine.name(),
            Self::Copilot(_) => EngineKind::Copilot.name(),
            Self::Rehearsal(_) => EngineKind::Rehearsal.name(),
            Self::Batch(engine) => engine.engine(),
            Self::Remote(engine) => engine.engine(),
        }
    }

    /// Its version, or its program if the version is unknown.
    pub(crate) fn version(&self) -> String {
        match self {
            Self::Claude(engine) => engine.version(),
            Self::Codex(engine) => engine.version(),
            Self::Command(engine) => engine.version(),
            Self::Copilot(engine) => engine.version(),
            Self::Rehearsal(_) => env!("CARGO_PKG_VERSION").to_owned(),
            Self::Batch(engine) => engine.version(),
            Self::Remote(engine) => engine.version(),
        }
    }
}

/// Calls the adapter behind an [`Engine`] or a [`Session`].
macro_rules! each {
    ($self:expr, $adapter:ident => $call:expr) => {
        match $self {
            Self::Claude($adapter) => $call,
            Self::Codex($adapter) => $call,
            Self::Command($adapter) => $call,
            Self::Copilot($adapter) => $call,
            Self::Rehearsal($adapter) => $call,
            Self::Batch($adapter) => $call,
            Self::Remote($adapter) => $call,
        }
    };
}

impl Adapter for Engine {
    type Session = Session;

    async fn open(&self, opening: Opening) -> Result<Session, EngineError> {
        match self {
            Self::Claude(engine) => engine.open(opening).await.map(|session| Session::Claude(Box::new(session))),
            Self::Codex(engine) => engine.open(opening).await.map(Session::Codex),
            Self::Command(engine) => engine.open(opening).await.map(Session::Command),
            Self::Copilot(engine) => engine.open(opening).await.map(Session::Copilot),
            Self::Rehearsal(engine) => engine.open(opening).await.map(Session::Rehearsal),
            Self::Batch(engine) => engine.open(opening).await.map(|session| Session::Batch(Box::new(session))),
            Self::Remote(engine) => engine.open(opening).await.map(|session| Session::Remote(Box::new(session))),
        }
    }

    async fn offer(&self) -> AvailableModels {
        each!(self, engine => engine.offer().await)
    }

    fn connection(&self) -> ConnectionState {
        each!(self, engine => engine.connection())
    }

    async fn connection_changed(&self) {
        each!(self, engine => engine.connection_changed().await)
    }

    async fn stop(self) {
        each!(self, engine => engine.stop().await)
    }
}

impl AdapterSession for Session {
    fn model(&self) -> &str {
        each!(self, session => session.model())
    }

    fn workspace(&self) -> Option<String> {
        each!(self, session => session.workspace())
    }

    fn reports_tools(&self) -> bool {
        each!(self, session => session.reports_tools())
    }

    fn sandbox(&self) -> SandboxLevel {
        each!(self, session => session.sandbox())
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        each!(self, session => session.traffic())
    }

    fn is_listed(&self) -> bool {
        each!(self, session => session.is_listed())
    }

    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError> {
        each!(self, session => session.send(prompt, attachments).await)
    }

    async fn recall(&mut self, prompt: &str) -> Option<Recall> {
        each!(self, session => session.recall(prompt).await)
    }

    async fn notify(&mut self, text: &str) -> Result<bool, EngineError> {
        each!(self, session => session.notify(text).await)
    }

    async fn steer(&mut self, text: &str) -> Result<bool, EngineError> {
        each!(self, session => session.steer(text).await)
    }

    /// Also what its programs ask squad's proxy, whoever the engine is.
    async fn next(&mut self) -> Fact {
        let Some(traffic) = self.traffic() else { return each!(self, session => session.next().await) };
        tokio::select! {
            biased;
            fact = async { each!(self, session => session.next().await) } => fact,
            question = traffic.question() => Fact::of_host(question),
        }
    }

    async fn abort(&mut self) {
        each!(self, session => session.abort().await)
    }

    async fn close(self) -> Vec<String> {
        each!(self, session => session.close().await)
    }
}

/// 1, 2, 4 times the unit, plus up to a quarter of jitter, so that several squads do not reconnect at the same time.
pub(crate) fn backoff(unit: Duration, attempt: u32) -> Duration {
    let wait = unit * 2_u32.saturating_pow(attempt - 1);
    // The random bits of a fresh UUID are good enough for this.
    let share = f64::from(crate::env::unique_id().as_bytes()[15]) / 255.0;
    wait + wait.mul_f64(share / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_with_a_little_jitter() {
        for (attempt, seconds) in [(1, 1.0), (2, 2.0), (3, 4.0)] {
            let wait = backoff(Duration::from_secs(1), attempt).as_secs_f64();
            assert!((seconds..=seconds * 1.25).contains(&wait), "{attempt}: {wait}");
        }
    }
}
