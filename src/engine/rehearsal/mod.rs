//! The rehearsal engine plays a script in process, so that all of squad can be tried and tested without network or
//! login. Every run that uses it says so, and it is never chosen silently.
//!
//! ```toml
//! models = ["m-1", "m-2"]    # the models offered, the default first; default: every model
//!
//! [[turn]]
//! agent = "backend"        # a slug, or "coordinator"; an agent's turns are played in order
//! steps = [
//!   { wait = "300ms" },
//!   { say = "A message." },
//!   { tool = "squad_log_decision", args = { title = "…", what = "…" } },
//!   { write = "src/a.txt", text = "…" },    # a file in the project
//!   { run = "cargo test" },                 # a command line, in the project
//!   { ask = "A question to the user?" },
//!   { error = "a reason" },                 # the engine has an error; the rest is played when the turn is tried again
//!   { quota = "10m" },                     # the account's quota is used up for so long; the rest is played when it is there again
//!   { usage = { input_tokens = 900, output_tokens = 100 } },    # of a model call; also cost_usd, and cache_read_tokens, which
//!                                           # are a part of the input
//!   { fail = "a reason" },                  # the turn fails, however often it is tried; also { hang = true }, { die = true } (the engine does)
//!                                           # and { panic = "a message" } (squad itself does)
//! ]
//! ```
//!
//! An agent without a turn left in the script improvises a short, plausible one.

mod commands;
mod improvise;
mod play;
mod script;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

pub(crate) use commands::Surroundings;
pub(crate) use improvise::IMPROVISED;
pub(crate) use script::Script;

use super::{Adapter, AdapterSession, EngineError, EngineKind, Fact, Opening};
use crate::engine::spawn;
use crate::model::{Attachment, AvailableModels, ConnectionState, SandboxLevel, Slug};
use crate::sandbox::Traffic;
use commands::Commands;
use play::ScriptedPanic;
use script::Step;

pub(crate) struct Rehearsal {
    /// The turns not played yet, by agent.
    turns: Arc<Mutex<BTreeMap<String, VecDeque<Vec<Step>>>>>,
    /// The models it offers, if the script names any.
    models: Option<Vec<String>>,
    commands: Arc<Commands>,
    /// Set when the script kills the engine; every session is then lost.
    dead: watch::Sender<bool>,
    /// How long it takes to open a session.
    opening: Duration,
}

pub(crate) struct Session {
    opening: Arc<Opening>,
    turns: Arc<Mutex<BTreeMap<String, VecDeque<Vec<Step>>>>>,
    facts: mpsc::UnboundedReceiver<Result<Fact, ScriptedPanic>>,
    sender: mpsc::UnboundedSender<Result<Fact, ScriptedPanic>>,
    commands: Arc<Commands>,
    dead: watch::Sender<bool>,
    abort: watch::Sender<bool>,
    /// What is played when the latest turn is tried again: the failure, or what comes after the error.
    retry: Option<Vec<Step>>,
    /// Sends user messages into the current turn.
    steering: mpsc::UnboundedSender<String>,
}

impl Rehearsal {
    pub(crate) fn start(script: Option<Script>) -> Self {
        let mut turns: BTreeMap<String, VecDeque<Vec<Step>>> = BTreeMap::new();
        let Script { turns: scripted, models, .. } = script.unwrap_or_default();
        for turn in scripted {
            turns.entry(turn.agent).or_default().push_back(turn.steps);
        }
        let (turns, commands) = (Arc::new(Mutex::new(turns)), Arc::new(Commands::default()));
        Self { turns, models, commands, dead: watch::Sender::new(false), opening: Duration::ZERO }
    }

    /// Lets agents run commands.
    pub(crate) fn with_commands(self, surroundings: Surroundings) -> Self {
        Self { commands: Arc::new(Commands::new(surroundings)), ..self }
    }

    #[cfg(test)]
    pub(crate) fn opening_in(self, opening: Duration) -> Self {
        Self { opening, ..self }
    }
}

impl Adapter for Rehearsal {
    type Session = Session;

    async fn open(&self, opening: Opening) -> Result<Session, EngineError> {
        if !self.opening.is_zero() {
            tokio::time::sleep(self.opening).await;
        }
        if *self.dead.borrow() {
            return Err(EngineError::Unusable {
                reason: "the rehearsal has died, as its script says".to_owned(),
                hint: None,
            });
        }
        let model = &opening.spec.model.id;
        if self.models.as_ref().is_some_and(|models| !models.contains(model)) {
            let what = format!("opening session `{}`", opening.session);
            return Err(EngineError::Request { what, reason: format!("the script offers no model `{model}`") });
        }
        let (sender, facts) = mpsc::unbounded_channel();
        Ok(Session {
            opening: Arc::new(opening),
            turns: Arc::clone(&self.turns),
            facts,
            sender,
            commands: Arc::clone(&self.commands),
            dead: self.dead.clone(),
            abort: watch::Sender::new(false),
            retry: None,
            steering: mpsc::unbounded_channel().0,
        })
    }

    async fn offer(&self) -> AvailableModels {
        let default = self.models.as_ref().and_then(|models| models.first().cloned());
        AvailableModels {
            engine: EngineKind::Rehearsal.name().to_owned(),
            models: self.models.clone(),
            default,
            ..AvailableModels::default()
        }
    }

    fn connection(&self) -> ConnectionState {
        if *self.dead.borrow() { ConnectionState::Error } else { ConnectionState::Connected }
    }

    async fn connection_changed(&self) {
        // The sender is a field of `self`, so the channel is open.
        let _ = self.dead.subscribe().changed().await;
    }

    async fn stop(self) {
        self.commands.stop().await;
    }
}

impl AdapterSession for Session {
    fn model(&self) -> &str {
        &self.opening.spec.model.id
    }

    fn reports_tools(&self) -> bool {
        true
    }

    fn sandbox(&self) -> SandboxLevel {
        self.commands.sandbox()
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.commands.traffic()
    }

    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError> {
        let agent: &Slug = &self.opening.spec.agent;
        let scripted = self.retry.take().or_else(|| {
            let mut turns = self.turns.lock();
            turns.get_mut(agent.as_str()).and_then(VecDeque::pop_front)
        });
        let steps = scripted.unwrap_or_else(|| improvise::turn(&self.opening, prompt, attachments));
        self.retry = steps.iter().enumerate().find_map(|(at, step)| match step {
            Step::Fail(_) => Some(steps[at..].to_vec()),
            Step::Error(_) | Step::Quota(_) => Some(steps[at + 1..].to_vec()),
            _ => None,
        });
        self.abort = watch::Sender::new(false);
        let (sender, steering) = mpsc::unbounded_channel();
        self.steering = sender;
        let (facts, dead) = (self.sender.clone(), self.dead.clone());
        let (opening, commands) = (Arc::clone(&self.opening), Arc::clone(&self.commands));
        let player = play::TurnPlayer { opening, facts, commands, dead, steering };
        let (mut abort, mut dead) = (self.abort.subscribe(), self.dead.subscribe());
        let facts = self.sender.clone();
        spawn(async move {
            let last = tokio::select! {
                biased;
                _ = dead.wait_for(|dead| *dead) => Ok(lost()),
                _ = abort.wait_for(|abort| *abort) => Ok(Fact::Failed("stopped".to_owned())),
                end = player.play(steps) => end,
            };
            // The session may have been closed during its turn.
            let _ = facts.send(last);
        });
        Ok(())
    }

    async fn steer(&mut self, text: &str) -> Result<bool, EngineError> {
        // It fails when the turn is over.
        Ok(self.steering.send(text.to_owned()).is_ok())
    }

    #[expect(clippy::panic, reason = "requested by the script")]
    async fn next(&mut self) -> Fact {
        // `self.sender` keeps the channel open.
        match self.facts.recv().await {
            None => lost(),
            Some(Ok(fact)) => fact,
            Some(Err(ScriptedPanic(message))) => panic!("{message}"),
        }
    }

    async fn abort(&mut self) {
        self.abort.send_replace(true);
    }

    async fn close(self) -> Vec<String> {
        self.abort.send_replace(true);
        self.commands.end_left_running(&self.opening.session).await
    }
}

fn lost() -> Fact {
    Fact::Lost("the engine died, as its script says".to_owned())
}
