//! A session of the program, as the pool uses it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::conversation::Conversation;
use super::requests::{self, Requests};
use super::tools;
use super::transcript::{self, Transcript};
use crate::engine::child::ServingChild;
use crate::engine::command::{Chat, Shared, is_session_id, model_of, with_attachments};
use crate::engine::connection::{CallError, Connection, Incoming, turn_ended};
use crate::engine::copilot::{DEFAULT_IDENTITY, McpServer, McpServers, NOTIFICATIONS};
use crate::engine::descendants::Descendants;
use crate::engine::dialect::Dialect;
use crate::engine::{AdapterSession, EngineError, Fact, Opening, RESTART_WAIT, RESTARTS, Recall, backoff, spawn};
use crate::env::files::read_within;
use crate::model::{Attachment, IntoMap, SandboxLevel, Tier, ToolChoice, printable};
use crate::sandbox::{Traffic, level_of};

/// From the start of the program to its first answer.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it may take to connect with the user's MCP servers.
const SERVERS_TIMEOUT: Duration = Duration::from_secs(60);
const ABORT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between asking the program to end and killing it.
const GRACE: Duration = Duration::from_secs(5);
/// Maximum bytes of an image that the model is shown; the provider takes no larger one.
const MAX_IMAGE: u64 = 5 << 20;
/// What the program prints when it does not have the session that it is to continue.
const NO_SESSION: &str = "No conversation found";

pub(crate) struct Session {
    shared: Arc<Shared>,
    model: String,
    /// The program's own id of the session, a UUID.
    chat: String,
    requests: Arc<Requests>,
    conversation: Arc<Mutex<Conversation>>,
    facts: mpsc::UnboundedReceiver<Fact>,
    /// `None`: it was lost, and the next message starts it again.
    pub(super) running: Option<Running>,
    descendants: Descendants,
}

pub(super) struct Running {
    pub(super) child: ServingChild,
    connection: Arc<Connection>,
}

impl Session {
    pub(super) async fn open(shared: Arc<Shared>, opening: Opening) -> Result<Self, EngineError> {
        shared.check_folder(&opening.directory)?;
        let session = &opening.session;
        let known = shared.chats.find(session).filter(|chat| chat.engine == shared.profile.name);
        let chat = match known.filter(|_| opening.resume) {
            Some(chat) => chat.chat,
            None if opening.resume || !is_session_id(session) => {
                let reason = "the program has no session of this id".to_owned();
                return Err(EngineError::NotResumable { session: session.clone(), reason });
            }
            // An earlier one of this name may have left its own.
            None => crate::env::unique_id().to_string(),
        };
        let model = model_of(&opening.spec.model, opening.spec.engine.is_some(), &shared.profile);
        for value in [Some(&model), opening.spec.effort.as_ref()].into_iter().flatten() {
            if value.starts_with('-') || value.contains(char::is_whitespace) {
                let (what, reason) = (format!("opening session `{session}`"), printable(value));
                return Err(EngineError::Request { what, reason: format!("`{reason}` is no model or effort") });
            }
        }
        let (conversation, facts) = Conversation::new(session);
        let conversation = Arc::new(Mutex::new(conversation));
        let servers = if matches!(opening.spec.tier, Tier::Standard | Tier::Full) {
            let servers = shared.mcp_servers.iter().filter(|(_, server)| server.is_for(&opening.spec.agent));
            servers.map(|(name, server)| (name.clone(), server.clone())).into_map()
        } else {
            McpServers::new()
        };
        let (resume, descendants) = (opening.resume, shared.descendants(session));
        let requests = Arc::new(Requests { conversation: Arc::clone(&conversation), opening, servers });
        let running = None;
        let mut session = Self { shared, model, chat, requests, conversation, facts, running, descendants };
        session.connect(resume).await?;
        Ok(session)
    }

    /// Starts the program, and again if it is killed before it answers.
    async fn connect(&mut self, resume: bool) -> Result<(), EngineError> {
        let mut attempts = 0;
        loop {
            match self.connect_once(resume).await {
                Ok(running) => {
                    self.running = Some(running);
                    self.store();
                    if attempts > 0 {
                        self.report(Fact::ConnectionRestored { attempts });
                    }
                    return Ok(());
                }
                Err(EngineError::Died { reason, hint: None }) if attempts < RESTARTS => {
                    attempts += 1;
                    self.report(Fact::ConnectionLost(format!("{reason}; it is started again")));
                    sleep(backoff(RESTART_WAIT, attempts)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// [`EngineError::Died`] without a hint: the program was killed.
    async fn connect_once(&self, resume: bool) -> Result<Running, EngineError> {
        let name = &self.shared.profile.name;
        let (session, directory) = (&self.requests.opening.session, &self.requests.opening.directory);
        let may_write = !matches!(self.requests.opening.spec.tools, ToolChoice::ReadOnly | ToolChoice::Nothing);
        let mut command = self.shared.command(&self.shared.program, (session, directory), may_write, None);
        let stored = if resume { self.transcript().unwrap_or_default() } else { Transcript::default() };
        command
            .args(self.arguments(resume, stored.resume_at()))
            .envs(compaction(self.requests.opening.spec.compaction_threshold));
        let requests = Arc::clone(&self.requests) as Arc<dyn Incoming>;
        self.conversation.lock().begin_process(stored.cost);
        let (mut child, connection) = ServingChild::start(&mut command, Dialect::Control, requests)
            .map_err(|why| EngineError::Unusable { reason: format!("{name} {why}"), hint: None })?;
        let begun = connection.request("initialize", &self.initialize(), START_TIMEOUT).await;
        let begun = match begun {
            Ok(_) if !self.requests.servers.is_empty() => self.set_servers(&connection).await,
            begun => begun.map(drop),
        };
        let Err(error) = begun else { return Ok(Running { child, connection }) };
        let report = match error {
            CallError::Closed(_) => child.exit_report().await,
            error => error.to_string(),
        };
        let was_killed = child.was_killed();
        child.kill().await;
        if resume && report.contains(NO_SESSION) {
            return Err(EngineError::NotResumable { session: session.clone(), reason: report });
        }
        let hint = (!was_killed).then(|| format!("`squad engines {name}` says whether it is ready"));
        Err(EngineError::Died { reason: format!("{name} does not serve a session: {report}"), hint })
    }

    fn arguments(&self, resume: bool, at: Option<&str>) -> Vec<String> {
        // Its prompt is that of the session as it is opened now, not as it was first.
        let fixed = "-p --verbose --input-format stream-json --output-format stream-json --include-partial-messages \
                     --permission-prompt-tool stdio --permission-mode default --setting-sources user \
                     --strict-mcp-config --disable-slash-commands --system-prompt-snapshot off";
        let offered = tools::offered(&self.requests.opening.spec, self.requests.opening.asks).join(",");
        let squad = json!({ "mcpServers": { tools::SERVER: own_server() } }).to_string();
        let settings = json!({ "attribution": { "commit": "", "pr": "" } }).to_string();
        let mut arguments: Vec<String> = fixed.split_whitespace().map(str::to_owned).collect();
        let mut add = |name: &str, value: &str| arguments.extend([name.to_owned(), value.to_owned()]);
        add("--tools", &offered);
        add("--settings", &settings);
        if !self.requests.opening.tools.is_empty() {
            add("--mcp-config", &squad);
        }
        if !self.model.is_empty() {
            add("--model", &self.model);
        }
        if let Some(effort) = &self.requests.opening.spec.effort {
            add("--effort", effort);
        }
        add(if resume { "--resume" } else { "--session-id" }, &self.chat);
        if let Some(at) = at {
            add("--resume-session-at", at);
        }
        arguments
    }

    fn initialize(&self) -> Value {
        let servers: &[&str] = if self.requests.opening.tools.is_empty() { &[] } else { &[tools::SERVER] };
        json!({ "hooks": requests::hooks(), "sdkMcpServers": servers, "systemPrompt": self.system_prompt() })
    }

    /// Text that changes least comes first, so that providers can cache it between calls and runs.
    fn system_prompt(&self) -> String {
        let spec = &self.requests.opening.spec;
        let team = if spec.team.trim().is_empty() { DEFAULT_IDENTITY } else { &spec.team };
        let parts = match spec.tools {
            ToolChoice::Nothing => [spec.prompt.as_str(), &spec.team, &spec.context, ""],
            _ => [team, NOTIFICATIONS, spec.prompt.as_str(), spec.context.as_str()],
        };
        let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("\n\n")
    }

    /// Passes the user's servers. Their variables and headers may hold keys, which no argument may show.
    async fn set_servers(&self, connection: &Connection) -> Result<(), CallError> {
        let mut servers: serde_json::Map<String, Value> =
            self.requests.servers.iter().map(|(name, server)| (name.clone(), server_params(server))).collect();
        if !self.requests.opening.tools.is_empty() {
            servers.insert(tools::SERVER.to_owned(), own_server());
        }
        match connection.request("mcp_set_servers", &json!({ "servers": servers }), SERVERS_TIMEOUT).await {
            Ok(answer) => {
                for (name, why) in answer["errors"].as_object().into_iter().flatten() {
                    let why = why.as_str().unwrap_or("it does not say why");
                    self.report(Fact::Warning(format!("the MCP server `{name}` cannot be used: {why}")));
                }
                Ok(())
            }
            Err(CallError::Refused { message, .. }) => {
                self.report(Fact::Warning(format!("MCP servers cannot be used: {message}")));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Stored at once, so that the session can be continued even if this run is killed.
    fn store(&self) {
        let engine = self.shared.profile.name.clone();
        let chat = Chat { engine, chat: self.chat.clone(), counted: None, instructed: None };
        if let Err(error) = self.shared.chats.store(&self.requests.opening.session, &chat) {
            self.report(Fact::Warning(format!("the session cannot be continued later: {error}")));
        }
    }

    /// The connection. Starts the program again if it was lost.
    async fn connection(&mut self) -> Result<Arc<Connection>, EngineError> {
        if let Some(running) = &self.running
            && running.connection.is_open()
        {
            return Ok(Arc::clone(&running.connection));
        }
        if let Some(running) = self.running.take() {
            self.bury(running).await;
        }
        match self.connect(true).await {
            // It was lost before it had stored anything.
            Err(EngineError::NotResumable { .. }) => {
                self.chat = crate::env::unique_id().to_string();
                self.connect(false).await?;
            }
            connected => connected?,
        }
        self.report(Fact::ConnectionRestored { attempts: 1 });
        let running = self.running.as_ref().map(|running| Arc::clone(&running.connection));
        running.ok_or_else(|| EngineError::Unusable { reason: "the engine is gone".to_owned(), hint: None })
    }

    async fn bury(&mut self, mut running: Running) {
        self.descendants.look();
        running.child.kill().await;
        self.descendants.end().await;
    }

    /// The program is gone in a turn. In the background: what asks for the next fact may be dropped.
    fn lose(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let (conversation, name) = (Arc::clone(&self.conversation), self.shared.profile.name.clone());
        let mut descendants = self.shared.descendants(&self.requests.opening.session);
        spawn(async move {
            descendants.look();
            let report = running.child.exit_report().await;
            running.child.kill().await;
            descendants.end().await;
            let mut conversation = conversation.lock();
            let reason = format!("{name} was lost: {report}");
            if conversation.is_working() {
                conversation.report(Fact::ConnectionLost(reason.clone()));
                conversation.end_turn(Fact::Interrupted(reason));
            }
        });
    }

    /// `None`: it cannot be read. What is not there was lost before anything was stored.
    fn transcript(&self) -> Option<Transcript> {
        match transcript::find(&self.shared.homes(), &self.chat) {
            Some(file) => Transcript::read(&file),
            None => Some(Transcript::default()),
        }
    }

    fn report(&self, fact: Fact) {
        self.conversation.lock().report(fact);
    }

    fn post(&self, connection: &Connection, content: Value) {
        let id = crate::env::unique_id().to_string();
        self.conversation.lock().sent(id.clone());
        let message = json!({ "role": "user", "content": content });
        connection.send(&json!({ "type": "user", "uuid": id, "message": message }));
    }

    /// Adds a message to the turn. `false`: there is none.
    fn add(&self, text: &str) -> bool {
        let running = self.running.as_ref().filter(|running| running.connection.is_open());
        let Some(running) = running.filter(|_| self.conversation.lock().is_working()) else { return false };
        self.post(&running.connection, plain(text).into());
        true
    }

    /// Waits until the turn has ended by itself. False: the deadline passed.
    async fn turn_ended(&self, deadline: Instant) -> bool {
        turn_ended(deadline, || self.conversation.lock().is_working()).await
    }
}

impl AdapterSession for Session {
    fn model(&self) -> &str {
        &self.model
    }

    fn reports_tools(&self) -> bool {
        true
    }

    fn sandbox(&self) -> SandboxLevel {
        level_of(self.shared.sandbox.as_ref())
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.shared.traffic(&self.requests.opening.session)
    }

    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError> {
        let connection = self.connection().await?;
        let directory = &self.requests.opening.directory;
        let (mut images, mut others) = (Vec::new(), Vec::new());
        for attachment in attachments {
            match image(directory, attachment) {
                Some(image) => images.push(image),
                None => others.push(attachment.clone()),
            }
        }
        let text = json!({ "type": "text", "text": plain(&with_attachments(prompt, &others)) });
        self.conversation.lock().begin_turn();
        self.post(&connection, images.into_iter().chain([text]).collect());
        Ok(())
    }

    async fn recall(&mut self, prompt: &str) -> Option<Recall> {
        self.transcript().map(|stored| stored.recall(prompt))
    }

    async fn notify(&mut self, text: &str) -> Result<bool, EngineError> {
        Ok(self.add(&format!("<system_notification>\n{}\n</system_notification>", text.trim())))
    }

    async fn steer(&mut self, text: &str) -> Result<bool, EngineError> {
        Ok(self.add(text))
    }

    async fn next(&mut self) -> Fact {
        loop {
            let connection = self.running.as_ref().map(|running| Arc::clone(&running.connection));
            let closed = async {
                match connection {
                    Some(connection) => drop(connection.closed().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // The conversation holds a sender, so the channel is open.
                fact = self.facts.recv() => {
                    let fact = fact.unwrap_or_else(|| Fact::Lost("the session is over".to_owned()));
                    return fact.with_login(self.shared.profile.login_hint());
                }
                () = closed => self.lose(),
            }
        }
    }

    async fn abort(&mut self) {
        if !self.conversation.lock().is_working() {
            return;
        }
        // Without a connection, the turn is about to fail anyway.
        let Some(running) = self.running.as_ref().filter(|running| running.connection.is_open()) else { return };
        self.conversation.lock().abort_turn();
        let deadline = Instant::now() + ABORT_TIMEOUT;
        let connection = Arc::clone(&running.connection);
        let interrupted = connection.request("interrupt", &json!({}), ABORT_TIMEOUT).await;
        let has_ended = interrupted.is_ok() && self.turn_ended(deadline).await;
        self.conversation.lock().end_turn(Fact::Failed("the turn was aborted".to_owned()));
        // What hangs, or has messages left, would begin turns that nobody has asked for.
        if (!has_ended || self.conversation.lock().has_queued())
            && let Some(running) = self.running.take()
        {
            self.bury(running).await;
        }
    }

    async fn close(mut self) -> Vec<String> {
        if let Some(mut running) = self.running.take() {
            self.descendants.look();
            running.child.end(&running.connection, GRACE).await;
        }
        self.descendants.end_left_running().await
    }
}

/// The variables by which the program compacts a session by itself, or does not.
fn compaction(threshold: Option<f64>) -> [(&'static str, String); 1] {
    match threshold {
        Some(share) => [("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", format!("{:.0}", share * 100.0))],
        None => [("DISABLE_AUTO_COMPACT", "1".to_owned())],
    }
}

fn own_server() -> Value {
    json!({ "type": "sdk", "name": tools::SERVER })
}

fn server_params(server: &McpServer) -> Value {
    match server {
        McpServer::Local { command, args, env, .. } => {
            json!({ "type": "stdio", "command": command, "args": args, "env": env })
        }
        McpServer::Http { url, headers, .. } => json!({ "type": "http", "url": url, "headers": headers }),
        McpServer::Sse { url, headers, .. } => json!({ "type": "sse", "url": url, "headers": headers }),
    }
}

/// The program takes a message that begins with `/` for one of its commands.
fn plain(text: &str) -> String {
    if text.starts_with('/') { format!("\n{text}") } else { text.to_owned() }
}

/// An attached image, as the model is shown it; `None`: it is none, or too large.
fn image(directory: &Path, attachment: &Attachment) -> Option<Value> {
    let extension = Path::new(&attachment.path).extension()?.to_str()?.to_ascii_lowercase();
    let kind = match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => return None,
    };
    let bytes = read_within(&directory.join(&attachment.path), MAX_IMAGE).ok()?.ok()?;
    let source = json!({ "type": "base64", "media_type": kind, "data": STANDARD.encode(bytes) });
    Some(json!({ "type": "image", "source": source }))
}
