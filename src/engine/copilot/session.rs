//! A session of the CLI, as the pool uses it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Server, refused};
use super::wire::{OpenParams, Opened, lenient};
use crate::engine::connection::{CallError, Connection, FactQueue, turn_ended};
use crate::engine::{AdapterSession, EngineError, Fact, Opening, RESTARTS, Recall, spawn};
use crate::model::{Attachment, SandboxLevel};
use crate::program::repository_file;
use crate::sandbox::{Traffic, level_of};

/// Programs that the CLI starts when an agent uses its tool `lsp`. No option of the CLI keeps it from reading this file.
const LANGUAGE_SERVERS: &str = ".github/lsp.json";

pub(crate) struct Session {
    id: String,
    model: String,
    directory: PathBuf,
    workspace: Option<String>,
    server: Arc<Server>,
    facts: FactQueue,
    closed: bool,
    /// The required format of answers, in the CLI's form.
    response_format: Option<Value>,
    /// The prompt of a turn with a response format, until its first message: if the model refuses the format, the
    /// prompt is sent again without it.
    format_prompt: Option<String>,
}

/// What is said of a server and why it is left out.
fn not_used((name, why): (&String, &String)) -> Fact {
    Fact::Warning(format!("the MCP server `{name}` cannot be used: {why}"))
}

impl Session {
    pub(crate) async fn open(server: Arc<Server>, opening: Opening) -> Result<Self, EngineError> {
        server.connection().await?;
        let (servers, unusable) = match OpenParams::has_servers(&opening) {
            true => server.mcp_servers(&opening.spec.agent).await,
            false => Default::default(),
        };
        let mut params = OpenParams::new(&opening, server.options.provider.as_ref()).with_servers(servers);
        let excluded_servers = repository_file(&server.options.directory, &opening.directory, &[LANGUAGE_SERVERS])
            .filter(|_| params.exclude_language_servers());
        let facts = server.registry.add(params.clone(), opening.tools.iter().map(|tool| tool.name.clone()))?;
        let facts = FactQueue::new(facts);
        let model = params.model.clone().unwrap_or_default();
        // From here on, dropping the session removes it from the registry.
        let response_format = opening.form.map(|form| {
            let schema = json!({ "name": form.name, "schema": form.schema, "strict": true });
            json!({ "type": "json_schema", "jsonSchema": schema })
        });
        let (workspace, closed, format_prompt) = (None, false, None);
        let (id, directory) = (opening.session, opening.directory);
        let mut session =
            Self { id, model, directory, workspace, server, facts, closed, response_format, format_prompt };
        let answer = session.create_or_resume(&mut params, opening.resume).await?;
        session.workspace = answer.workspace_path;
        if let Some(model) = answer.model_state.and_then(|state| state.model_id) {
            session.model = model;
        }
        session.server.registry.with(&session.id, |session| {
            session.opened();
            unusable.iter().for_each(|unusable| session.report(not_used(unusable)));
            if let Some(file) = excluded_servers {
                let reason = "it names programs to start, so this session has no tool `lsp`";
                let hint = "put language servers of your own into lsp-config.json in the Copilot CLI's home";
                session.report(Fact::Warning(format!("{} is not used: {reason}; {hint}", file.display())));
            }
        });
        Ok(session)
    }

    /// Creates or resumes the session, and again if the CLI dies meanwhile and is restarted, or one of the user's MCP
    /// servers answered when it was tried and does not now: no prompt was sent to the session yet.
    async fn create_or_resume(&self, params: &mut OpenParams, resume: bool) -> Result<Opened, EngineError> {
        let report = |fact| self.server.registry.with(&self.id, |session| session.report(fact));
        let mut attempts = 0;
        loop {
            let opened = if resume { self.resume_once(params).await } else { self.create_once(params).await };
            match opened {
                Ok(opened) => {
                    if attempts > 0 {
                        let _ = report(Fact::ConnectionRestored { attempts });
                    }
                    return Ok(opened);
                }
                Err(CallError::Closed(reason)) if attempts < RESTARTS => {
                    attempts += 1;
                    let _ = report(Fact::ConnectionLost(format!("{reason}; the session is opened again")));
                }
                Err(CallError::TimedOut(_)) if !params.mcp_servers.is_empty() => {
                    let silent = self.server.leave_out_silent(&mut params.mcp_servers).await;
                    let silent = silent.map_err(|error| self.refused("opening", &error))?;
                    self.server.registry.with(&self.id, |session| {
                        session.set_params(params.clone());
                        silent.iter().for_each(|silent| session.report(not_used(silent)));
                    });
                }
                Err(CallError::Refused { message, .. }) if resume => {
                    return Err(EngineError::NotResumable { session: self.id.clone(), reason: message });
                }
                Err(error) => return Err(self.refused(if resume { "resuming" } else { "creating" }, &error)),
            }
        }
    }

    async fn connection(&self) -> Result<Arc<Connection>, CallError> {
        self.server.connection().await.map_err(|error| CallError::Closed(error.to_string()))
    }

    async fn resume_once(&self, params: &OpenParams) -> Result<Opened, CallError> {
        let connection = self.connection().await?;
        connection.request("session.resume", params, self.server.options.timeouts.open).await.map(lenient)
    }

    async fn create_once(&self, params: &OpenParams) -> Result<Opened, CallError> {
        let connection = self.connection().await?;
        let timeouts = &self.server.options.timeouts;
        // If a stored session has this id, the new one would append to its events, and resuming would bring back both.
        // A missing session is not an error.
        let _ = connection.request("session.delete", &self.id_params(), timeouts.request).await;
        let answer = connection.request("session.create", params, timeouts.open).await;
        answer.map(lenient)
    }

    /// Restarts a turn without the response format if the model refuses it before saying anything.
    fn retry_without_format(&mut self, fact: Fact) -> Fact {
        match fact {
            Fact::Message(_) | Fact::MessageDelta(_) | Fact::Idle | Fact::Lost(_) => {
                self.format_prompt = None;
                fact
            }
            Fact::Failed(reason) if is_format_refusal(&reason) => match self.format_prompt.take() {
                Some(prompt) => {
                    self.send_without_format(prompt);
                    Fact::Warning(format!(
                        "the model does not support structured answers ({reason}); it is asked without"
                    ))
                }
                None => Fact::Failed(reason),
            },
            other => other,
        }
    }

    /// Runs in the background; the facts report the outcome.
    fn send_without_format(&self, prompt: String) {
        self.server.registry.with(&self.id, |session| session.begin_turn());
        let (server, id) = (Arc::clone(&self.server), self.id.clone());
        spawn(async move {
            let params = json!({ "sessionId": id, "prompt": prompt });
            let sent = match server.connection().await {
                Ok(connection) => {
                    let sent = connection.request("session.send", &params, server.options.timeouts.request).await;
                    sent.map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            if let Err(reason) = sent {
                server.registry.with(&id, |session| session.fail_turn(&reason));
            }
        });
    }

    fn id_params(&self) -> Value {
        json!({ "sessionId": self.id })
    }

    fn refused(&self, doing: &str, error: &CallError) -> EngineError {
        refused(&format!("{doing} session `{}`", self.id), error)
    }

    /// Waits until the turn has ended by itself. False: the deadline passed.
    async fn turn_ended(&self, deadline: Instant) -> bool {
        turn_ended(deadline, || self.server.registry.is_working(&self.id)).await
    }
}

impl AdapterSession for Session {
    fn model(&self) -> &str {
        &self.model
    }

    fn workspace(&self) -> Option<String> {
        self.workspace.clone()
    }

    fn reports_tools(&self) -> bool {
        true
    }

    fn sandbox(&self) -> SandboxLevel {
        level_of(self.server.options.sandbox.as_ref())
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.server.options.sandbox.as_ref()?.traffic().cloned()
    }

    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError> {
        let connection = self.server.connection().await?;
        let registry = &self.server.registry;
        // Before the request, since the turn's first facts may arrive before its answer.
        if registry.with(&self.id, |session| session.begin_turn()).is_none() {
            return Err(refused(&format!("session `{}`", self.id), &CallError::Closed("it was lost".to_owned())));
        }
        let mut params = json!({ "sessionId": self.id, "prompt": prompt });
        if !attachments.is_empty() {
            params["attachments"] = attachments.iter().map(|file| attachment_params(&self.directory, file)).collect();
        }
        let timeout = self.server.options.timeouts.request;
        if let Some(response_format) = &self.response_format {
            params["responseFormat"] = response_format.clone();
            self.format_prompt = Some(prompt.to_owned());
        }
        let mut answer = connection.request("session.send", &params, timeout).await;
        if let (Err(CallError::Refused { .. }), Some(prompt)) =
            (&answer, self.format_prompt.take_if(|_| answer.is_err()))
        {
            let params = json!({ "sessionId": self.id, "prompt": prompt });
            answer = connection.request("session.send", &params, timeout).await;
        }
        match answer {
            // Save at once, so that a resumed session contains the prompt.
            Ok(_) => {
                let _ = connection.request("sessions.save", &self.id_params(), timeout).await;
                Ok(())
            }
            Err(error @ CallError::Refused { .. }) => {
                registry.with(&self.id, |session| session.withdraw_turn());
                Err(self.refused("sending to", &error))
            }
            // The turn's last fact reports this, once the connection's end has been handled.
            Err(CallError::Closed(_)) => Ok(()),
            Err(error @ CallError::TimedOut(_)) => {
                connection.fail(&format!("it hangs: {error} to a prompt"));
                Ok(())
            }
        }
    }

    async fn recall(&mut self, prompt: &str) -> Option<Recall> {
        let connection = self.server.connection().await.ok()?;
        let timeout = self.server.options.timeouts.request;
        let events = super::recall::events(&connection, &self.id, timeout).await;
        events.ok().map(|events| super::recall::read(&events, prompt))
    }

    async fn notify(&mut self, text: &str) -> Result<bool, EngineError> {
        // Between turns, it would start a new turn.
        if !self.server.registry.is_working(&self.id) {
            return Ok(false);
        }
        let connection = self.server.connection().await?;
        let params = json!({ "sessionId": self.id, "message": text });
        let timeout = self.server.options.timeouts.request;
        match connection.request("session.sendSystemNotification", &params, timeout).await {
            Ok(_) => Ok(true),
            // An older CLI lacks this method.
            Err(CallError::Refused { .. }) => Ok(false),
            Err(error) => Err(self.refused("telling", &error)),
        }
    }

    async fn steer(&mut self, text: &str) -> Result<bool, EngineError> {
        if !self.server.registry.is_working(&self.id) {
            return Ok(false);
        }
        let connection = self.server.connection().await?;
        let params = json!({ "sessionId": self.id, "prompt": text, "mode": "immediate" });
        let sent = connection.request("session.send", &params, self.server.options.timeouts.request).await;
        sent.map(|_| true).map_err(|error| self.refused("steering", &error))
    }

    async fn next(&mut self) -> Fact {
        let fact = self.facts.next().await.with_login(Some(super::LOGIN));
        self.retry_without_format(fact)
    }

    async fn abort(&mut self) {
        if !self.server.registry.is_working(&self.id) {
            return;
        }
        // Without a connection, the turn is about to fail anyway.
        let Some(connection) = self.server.connected() else { return };
        let timeout = self.server.options.timeouts.abort;
        let deadline = Instant::now() + timeout;
        match connection.request("session.abort", &self.id_params(), timeout).await {
            Ok(_) if self.turn_ended(deadline).await => {}
            Ok(_) | Err(CallError::Refused { .. }) => {
                self.server.registry.with(&self.id, |session| session.fail_turn("the turn was aborted"));
            }
            Err(CallError::Closed(_)) => {}
            Err(error @ CallError::TimedOut(_)) => connection.fail(&format!("it hangs: {error} to an abort")),
        }
    }

    async fn close(mut self) -> Vec<String> {
        self.closed = true;
        // Without a connection, the process and everything it left have already been ended.
        let Some(connection) = self.server.connected() else { return Vec::new() };
        let timeout = self.server.options.timeouts.abort;
        for method in ["sessions.save", "session.destroy"] {
            if let Err(error) = connection.request(method, &self.id_params(), timeout).await {
                tracing::debug!("{method} of {}: {error}", self.id);
            }
        }
        self.server.end_left_running(&self.id).await
    }
}

/// The CLI shows images to the model; for other files it passes the path, and the model opens the file if needed.
fn attachment_params(directory: &Path, file: &Attachment) -> Value {
    json!({ "type": "file", "path": directory.join(&file.path), "displayName": file.path })
}

/// Whether a provider's error looks like a refused response format: nothing else in the request is unusual.
pub(in crate::engine) fn is_format_refusal(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["400", "422", "response_format", "json_schema", "output_config", "schema"].iter().any(|sign| reason.contains(sign))
}

impl Drop for Session {
    /// A session that was not closed would keep working in the CLI without anybody to answer it, so end it.
    fn drop(&mut self) {
        self.server.registry.remove(&self.id);
        if let (false, Some(connection)) = (self.closed, self.server.connected()) {
            connection.send_and_forget("session.destroy", &self.id_params());
        }
    }
}
