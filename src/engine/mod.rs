//! Engines: the programs that run agent sessions.
//!
//! An adapter is the only code that knows its engine's own types. It opens sessions and reports facts; what a fact
//! means for the run is decided elsewhere (`pool`). Three adapters: [`copilot`], a JSON-RPC client of the Copilot
//! CLI's server mode, [`command`], which starts a command-line agent for each message, and [`rehearsal`], which plays a
//! script in process.
//!
//! ```text
//! Engine::start ─→ Engine ── open(Opening) ─→ Session ── send(prompt) ─→
//!                                                     ←─ next() ── Fact, Fact, … Fact::Idle
//! ```
//!
//! Engines are a closed set, so [`Engine`] is an enum that dispatches to the adapters: `async fn` without boxing.

pub(crate) mod command;
pub(crate) mod copilot;
mod error;
mod fact;
#[cfg(all(test, target_os = "linux", feature = "real-parts"))]
#[path = "../../tests/support/model_server.rs"]
mod model_server;
#[cfg(target_os = "linux")]
mod orphans;
mod process_group;
pub(crate) mod rehearsal;
mod stores;

use std::path::PathBuf;

use serde_json::Value;

pub(crate) use error::EngineError;
pub(crate) use fact::added;
pub(crate) use fact::{Approval, Fact, Reply, Request, ToolCall, ToolResult, Writing};
#[cfg(target_os = "linux")]
pub(crate) use orphans::guard;
pub(crate) use stores::{StoredSession, stored_output, stored_sessions};

use crate::model::{Attachment, AvailableModels, ConnectionState, SessionSpec};

/// What an adapter provides. `Session::next` is cancel safe: a fact that was not returned is returned next time.
pub(crate) trait Adapter {
    type Session: AdapterSession;

    /// Opens a session. With [`Opening::resume`] an earlier session of that id is continued; when that is not
    /// possible the error is [`EngineError::NotResumable`] and nothing was opened.
    async fn open(&self, opening: Opening) -> Result<Self::Session, EngineError>;

    /// The models it offers. An engine that does not say, or not in time, offers what it is asked for.
    async fn offer(&self) -> AvailableModels;

    fn connection(&self) -> ConnectionState;

    /// Returns when the connection is another than when this was called.
    async fn connection_changed(&self);

    /// Ends the engine and everything it started. Called once; sessions are closed before.
    async fn stop(self);
}

pub(crate) trait AdapterSession {
    /// The model the session really has.
    fn model(&self) -> &str;

    /// The folder in which the engine keeps what belongs to the session; `None`: it does not say.
    fn workspace(&self) -> Option<String>;

    /// Starts a turn, with files for the model to see. Facts of the turn follow, the last of them [`Fact::Idle`],
    /// [`Fact::Interrupted`], [`Fact::Failed`] or [`Fact::Lost`].
    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError>;

    /// What a resumed session holds of a prompt; `None`: the engine does not say.
    async fn recall(&mut self, prompt: &str) -> Option<Recall>;

    /// Tells the turn that is running something before its next model call. `false`: this engine cannot.
    async fn notify(&mut self, text: &str) -> Result<bool, EngineError>;

    /// Gives the turn that is running another message of the user's, which the model sees before its next call.
    /// `false`: no turn is running.
    async fn steer(&mut self, text: &str) -> Result<bool, EngineError>;

    /// The next fact. Never ends: a session whose engine is gone reports [`Fact::Lost`] again and again.
    async fn next(&mut self) -> Fact;

    /// Stops the turn that is running; its last fact still comes.
    async fn abort(&mut self);

    /// Releases the session. It can be resumed by its id where the engine can resume. Ends what its tools have left
    /// running, and gives the command lines of that.
    async fn close(self) -> Vec<String>;
}

/// What a session that is resumed holds of the turn that was interrupted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recall {
    /// The prompt is in it: the model has been asked.
    pub(crate) has_prompt: bool,
    /// Tools whose calls have begun and not ended: nobody knows what became of them.
    pub(crate) unfinished: Vec<String>,
    /// The ids of all calls that it holds.
    pub(crate) calls: Vec<String>,
}

/// A tool of squad's own, offered to every session. The engine calls it by [`Fact::Request`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolSpec {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// JSON Schema of the arguments, of type `object`.
    pub(crate) parameters: Value,
    /// `squad mcp --member` offers it too, to agents of engines that take tools by MCP only.
    pub(crate) is_served: bool,
}

/// How a session is opened: what it is made of, and where it works.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// `[A-Za-z0-9_-]` only; stable: the same work of the same agent has the same id, so that it can be resumed.
    pub(crate) session: String,
    pub(crate) spec: SessionSpec,
    pub(crate) tools: Vec<ToolSpec>,
    /// Absolute; the project's root.
    pub(crate) directory: PathBuf,
    pub(crate) resume: bool,
    /// Whether somebody is there to answer its questions.
    pub(crate) asks: bool,
    /// What its answers have to look like, for models that can be held to it.
    pub(crate) form: Option<Form>,
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Form {
    pub(crate) name: &'static str,
    /// A JSON Schema of type `object`, in which every property is required and no other is allowed.
    pub(crate) schema: Value,
}

/// The engines that keep a session each for themselves, with an adapter of its own. Beside them there are the command
/// engines, whose names are profiles. Whoever deals with each of them matches on this, so that the compiler says what
/// another one needs: how it starts and what is reported of it (`ops::engines`), and an adapter here.
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
        match self {
            Self::Copilot => "copilot",
            Self::Rehearsal => "rehearsal",
        }
    }

    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Copilot => "the GitHub Copilot CLI in its server mode",
            Self::Rehearsal => "plays a script in process: no model, no login, no network",
        }
    }
}

/// An engine that has started.
pub(crate) enum Engine {
    Command(command::Command),
    Copilot(copilot::Copilot),
    Rehearsal(rehearsal::Rehearsal),
}

/// A session of whichever engine.
pub(crate) enum Session {
    Command(command::Session),
    Copilot(copilot::Session),
    Rehearsal(rehearsal::Session),
}

/// An engine as it is started: all that it needs, so that whoever needs it first can start it.
#[derive(Clone)]
pub(crate) enum Startable {
    Command(Box<command::Options>),
    Copilot(Box<copilot::Options>),
    Rehearsal(Option<rehearsal::Script>),
    /// It cannot be started, as its settings are.
    Not(EngineError),
}

impl Startable {
    pub(crate) async fn start(&self) -> Result<Engine, EngineError> {
        match self.clone() {
            Self::Command(options) => command::Command::start(*options).map(Engine::Command),
            Self::Copilot(options) => copilot::Copilot::start(*options).await.map(Engine::Copilot),
            Self::Rehearsal(script) => Ok(Engine::Rehearsal(rehearsal::Rehearsal::start(script))),
            Self::Not(error) => Err(error),
        }
    }
}

impl Engine {
    /// As the configuration spells it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Command(engine) => engine.name(),
            Self::Copilot(_) => EngineKind::Copilot.name(),
            Self::Rehearsal(_) => EngineKind::Rehearsal.name(),
        }
    }

    /// What to tell people of what is running, such as a version.
    pub(crate) fn version(&self) -> String {
        match self {
            Self::Command(engine) => engine.version(),
            Self::Copilot(engine) => engine.version(),
            Self::Rehearsal(_) => env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl Adapter for Engine {
    type Session = Session;

    async fn open(&self, opening: Opening) -> Result<Session, EngineError> {
        match self {
            Self::Command(engine) => engine.open(opening).await.map(Session::Command),
            Self::Copilot(engine) => engine.open(opening).await.map(Session::Copilot),
            Self::Rehearsal(engine) => engine.open(opening).await.map(Session::Rehearsal),
        }
    }

    async fn offer(&self) -> AvailableModels {
        match self {
            Self::Command(engine) => engine.offer().await,
            Self::Copilot(engine) => engine.offer().await,
            Self::Rehearsal(engine) => engine.offer().await,
        }
    }

    fn connection(&self) -> ConnectionState {
        match self {
            Self::Command(engine) => engine.connection(),
            Self::Copilot(engine) => engine.connection(),
            Self::Rehearsal(engine) => engine.connection(),
        }
    }

    async fn connection_changed(&self) {
        match self {
            Self::Command(engine) => engine.connection_changed().await,
            Self::Copilot(engine) => engine.connection_changed().await,
            Self::Rehearsal(engine) => engine.connection_changed().await,
        }
    }

    async fn stop(self) {
        match self {
            Self::Command(engine) => engine.stop().await,
            Self::Copilot(engine) => engine.stop().await,
            Self::Rehearsal(engine) => engine.stop().await,
        }
    }
}

impl AdapterSession for Session {
    fn model(&self) -> &str {
        match self {
            Self::Command(session) => session.model(),
            Self::Copilot(session) => session.model(),
            Self::Rehearsal(session) => session.model(),
        }
    }

    fn workspace(&self) -> Option<String> {
        match self {
            Self::Command(session) => session.workspace(),
            Self::Copilot(session) => session.workspace(),
            Self::Rehearsal(session) => session.workspace(),
        }
    }

    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError> {
        match self {
            Self::Command(session) => session.send(prompt, attachments).await,
            Self::Copilot(session) => session.send(prompt, attachments).await,
            Self::Rehearsal(session) => session.send(prompt, attachments).await,
        }
    }

    async fn recall(&mut self, prompt: &str) -> Option<Recall> {
        match self {
            Self::Command(session) => session.recall(prompt).await,
            Self::Copilot(session) => session.recall(prompt).await,
            Self::Rehearsal(session) => session.recall(prompt).await,
        }
    }

    async fn notify(&mut self, text: &str) -> Result<bool, EngineError> {
        match self {
            Self::Command(session) => session.notify(text).await,
            Self::Copilot(session) => session.notify(text).await,
            Self::Rehearsal(session) => session.notify(text).await,
        }
    }

    async fn steer(&mut self, text: &str) -> Result<bool, EngineError> {
        match self {
            Self::Command(session) => session.steer(text).await,
            Self::Copilot(session) => session.steer(text).await,
            Self::Rehearsal(session) => session.steer(text).await,
        }
    }

    async fn next(&mut self) -> Fact {
        match self {
            Self::Command(session) => session.next().await,
            Self::Copilot(session) => session.next().await,
            Self::Rehearsal(session) => session.next().await,
        }
    }

    async fn abort(&mut self) {
        match self {
            Self::Command(session) => session.abort().await,
            Self::Copilot(session) => session.abort().await,
            Self::Rehearsal(session) => session.abort().await,
        }
    }

    async fn close(self) -> Vec<String> {
        match self {
            Self::Command(session) => session.close().await,
            Self::Copilot(session) => session.close().await,
            Self::Rehearsal(session) => session.close().await,
        }
    }
}
