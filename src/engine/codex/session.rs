//! A session: one process with one thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::answers::{self, Facts, Pending, Verdict};
use super::arguments::{Purpose, servers};
use super::conversation::{Conversation, Task};
use super::items::{Call, may_change};
use super::process::Process;
use super::{Timeouts, prompt, refused};
use crate::engine::command::{Chat, Shared, is_session_id, model_of, with_attachments};
use crate::engine::connection::{CallError, Connection, FactQueue, Incoming, LinkState, Responder, turn_ended};
use crate::engine::copilot::is_format_refusal;
use crate::engine::{
    AdapterSession, EngineError, Fact, Opening, RESTART_WAIT, RESTARTS, Recall, ToolResult, backoff, spawn,
    spawn_blocking,
};
use crate::model::{Attachment, IntoSet, SandboxLevel, printable};
use crate::sandbox::{Traffic, level_of};

/// How often to try to restore a lost process.
const MAX_RETRIES: u32 = 3;
/// A process that was killed with its squad holds its thread for a moment.
const WRITER_RETRIES: u32 = 10;
const WRITER_WAIT: Duration = Duration::from_millis(200);
/// What Codex says of a thread that another process works in.
const OTHER_WRITER: &str = "already has an active writer";
const IMAGES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

pub(crate) struct Session {
    /// As Codex says it.
    model: String,
    core: Arc<Core>,
    facts: FactQueue,
    supervisor: Option<JoinHandle<()>>,
    stop: Option<oneshot::Sender<()>>,
    /// The prompt of a turn with a form, until its first message: if the model refuses the form, the prompt is sent again
    /// without it.
    prompt_with_form: Option<Vec<Value>>,
}

/// What the session's tasks share.
struct Core {
    shared: Arc<Shared>,
    opening: Opening,
    /// The model that is asked for; empty: Codex's own choice.
    model: String,
    timeouts: Timeouts,
    conversation: Mutex<Conversation>,
    state: watch::Sender<LinkState>,
    /// Where Codex keeps the thread.
    record: Mutex<Option<PathBuf>>,
}

/// A thread that was opened.
struct Opened {
    thread: String,
    model: Option<String>,
    record: Option<PathBuf>,
}

/// Receives Codex's messages.
struct Reader(Arc<Core>);

impl Session {
    pub(super) async fn open(
        shared: Arc<Shared>,
        mut opening: Opening,
        timeouts: Timeouts,
    ) -> Result<Self, EngineError> {
        shared.check_folder(&opening.directory)?;
        opening.directory = shared.directory().join(&opening.directory);
        let (session, name) = (opening.session.clone(), shared.profile.name.clone());
        let not_resumable = |reason: String| EngineError::NotResumable { session: session.clone(), reason };
        if !is_session_id(&session) {
            return Err(not_resumable("its id is not one of squad's".to_owned()));
        }
        let keeps_chat = opening.caller.as_ref().is_none_or(|caller| caller.keeps_chat);
        let thread = match shared.chats.find(&session) {
            _ if !opening.resume || !keeps_chat => None,
            None => return Err(not_resumable("it has no thread".to_owned())),
            Some(chat) if chat.engine != name => {
                return Err(not_resumable(format!("its thread belongs to {}", chat.engine)));
            }
            Some(chat) => Some(chat.chat),
        };
        if thread.is_none() {
            // An earlier session of this name may have left one.
            shared.chats.remove(&session);
        }
        let model = model_of(&opening.spec.model, opening.spec.engine.is_some(), &shared.profile);
        if model.starts_with('-') || model.contains(char::is_whitespace) {
            let what = format!("opening session `{session}`");
            return Err(EngineError::Request { what, reason: format!("`{}` is not a model name", printable(&model)) });
        }
        let own_tools = opening.tools.iter().map(|tool| tool.name.clone()).into_set();
        let (conversation, facts) = Conversation::new((&session, &opening.spec), opening.directory.clone(), own_tools);
        let (conversation, state) = (Mutex::new(conversation), watch::Sender::new(LinkState::Reconnecting));
        let core = Core { shared, opening, model, timeouts, conversation, state, record: Mutex::default() };
        let core = Arc::new(core);
        let (process, opened) = core.start(thread.as_deref()).await?;
        let (stop, stopped) = oneshot::channel();
        let supervisor = Some(spawn(supervise(Arc::clone(&core), process, stopped)));
        let model = opened.model.unwrap_or_else(|| core.model.clone());
        let facts = FactQueue::new(facts);
        Ok(Self { model, core, facts, supervisor, stop: Some(stop), prompt_with_form: None })
    }

    fn turn_params(&self, input: &[Value], with_form: bool) -> Value {
        let Opening { spec, form, .. } = &self.core.opening;
        let mut params = json!({ "input": input });
        if let Some(effort) = &spec.effort {
            params["effort"] = effort.as_str().into();
        }
        if let Some(form) = form.as_ref().filter(|_| with_form) {
            params["outputSchema"] = form.schema.clone();
        }
        params
    }

    /// Adds a message to the current turn, before its next model call.
    async fn add(&self, text: &str) -> Result<bool, EngineError> {
        let turn = self.core.conversation.lock().turn().map(str::to_owned);
        let Some(turn) = turn else { return Ok(false) };
        let connection = self.core.connection().await?;
        let input = [json!({ "type": "text", "text": text })];
        let params = json!({ "threadId": self.core.thread(), "expectedTurnId": turn, "input": input });
        match connection.request("turn/steer", &params, self.core.timeouts.request).await {
            Ok(_) => Ok(true),
            // The turn is over.
            Err(CallError::Refused { .. }) => Ok(false),
            Err(error) => Err(self.core.refused("steering", &error.to_string())),
        }
    }

    /// Restarts a turn without its form if the model refuses that before it says anything.
    fn retry_without_form(&mut self, fact: Fact) -> Fact {
        match fact {
            Fact::Message(_) | Fact::MessageDelta(_) | Fact::Idle | Fact::Lost(_) => {
                self.prompt_with_form = None;
                fact
            }
            Fact::Failed(reason) if is_format_refusal(&reason) => match self.prompt_with_form.take() {
                Some(input) => {
                    self.core.conversation.lock().begin_turn();
                    let (core, params) = (Arc::clone(&self.core), self.turn_params(&input, false));
                    spawn(async move {
                        if let Err(error) = core.start_turn(params).await {
                            core.conversation.lock().end_turn(Fact::Failed(error.to_string()));
                        }
                    });
                    Fact::Warning(format!(
                        "the model does not support structured answers ({reason}); it is asked without"
                    ))
                }
                None => Fact::Failed(reason),
            },
            other => other,
        }
    }
}

impl Core {
    fn thread(&self) -> String {
        self.conversation.lock().thread().to_owned()
    }

    fn refused(&self, doing: &str, reason: &str) -> EngineError {
        refused(&self.shared, &format!("{doing} session `{}`", self.opening.session), reason)
    }

    /// The connection. Waits while a lost one is being restored.
    async fn connection(&self) -> Result<Arc<Connection>, EngineError> {
        LinkState::settled(&self.state).await
    }

    /// The connection, if there is one now.
    fn connected(&self) -> Option<Arc<Connection>> {
        self.state.borrow().connected()
    }

    /// Starts a process with the thread, or with a new one; again if it dies before it was asked anything.
    async fn start(self: &Arc<Self>, thread: Option<&str>) -> Result<(Process, Opened), EngineError> {
        let mut attempts = 0;
        loop {
            match self.start_once(thread).await {
                Err(error @ EngineError::Died { .. }) if attempts < RESTARTS => {
                    attempts += 1;
                    self.report(Fact::ConnectionLost(format!("{error}; it is started again")));
                    sleep(backoff(RESTART_WAIT, attempts)).await;
                }
                started => {
                    if attempts > 0 && started.is_ok() {
                        self.report(Fact::ConnectionRestored { attempts });
                    }
                    return started.inspect(|(process, _)| self.connect(process));
                }
            }
        }
    }

    async fn start_once(self: &Arc<Self>, thread: Option<&str>) -> Result<(Process, Opened), EngineError> {
        let reader = Arc::new(Reader(Arc::clone(self)));
        let process = Process::start(&self.shared, &Purpose::Serve(&self.opening), reader, self.timeouts).await?;
        let opened = match self.open_thread(&process.connection, thread).await {
            Ok(opened) => opened,
            Err(error) => {
                process.end(self.timeouts.grace).await;
                return Err(error);
            }
        };
        self.conversation.lock().opened(&opened.thread, thread.is_none());
        self.record.lock().clone_from(&opened.record);
        let (_, instructions) = prompt::texts(self.shared.directory(), &self.opening);
        let instructed = Some(blake3::hash(instructions.as_bytes()).to_hex()[..16].to_owned());
        let before = self.shared.chats.find(&self.opening.session).and_then(|chat| chat.instructed);
        if thread.is_some() && before.is_some() && before != instructed {
            // A thread that was put down in order goes on with those that it began with.
            let text =
                format!("Your instructions have changed. These take the place of all earlier ones:\n\n{instructions}");
            self.inject(&process.connection, text).await;
        }
        let (engine, chat) = (self.shared.profile.name.clone(), opened.thread.clone());
        let chat = Chat { engine, chat, counted: None, instructed };
        if let Err(error) = self.shared.chats.store(&self.opening.session, &chat) {
            self.report(Fact::Warning(format!("the session cannot be continued later: {error}")));
        }
        Ok((process, opened))
    }

    /// Turns may begin.
    fn connect(&self, process: &Process) {
        self.state.send_replace(LinkState::Connected(Arc::clone(&process.connection)));
    }

    async fn open_thread(&self, connection: &Connection, thread: Option<&str>) -> Result<Opened, EngineError> {
        let mut params = self.thread_params();
        let method = match thread {
            Some(thread) => {
                params["threadId"] = thread.into();
                params["excludeTurns"] = true.into();
                "thread/resume"
            }
            None => {
                let tools = self.opening.tools.iter().map(|tool| {
                    let (name, description) = (&tool.name, &tool.description);
                    json!({ "type": "function", "name": name, "description": description, "inputSchema": tool.parameters })
                });
                params["dynamicTools"] = tools.collect();
                "thread/start"
            }
        };
        let mut attempts = 0;
        let answer = loop {
            match connection.request(method, &params, self.timeouts.open).await {
                Err(CallError::Refused { message, .. })
                    if message.contains(OTHER_WRITER) && attempts < WRITER_RETRIES =>
                {
                    attempts += 1;
                    sleep(WRITER_WAIT).await;
                }
                answer => break answer,
            }
        };
        let doing = if thread.is_some() { "resuming" } else { "creating" };
        let answer = match answer {
            Ok(answer) => answer,
            Err(CallError::Refused { message, .. }) if message.contains(OTHER_WRITER) => {
                let reason = format!("another process works in its thread: {message}");
                return Err(self.refused(doing, &format!("{reason}; wait until it is done, or end it")));
            }
            Err(CallError::Refused { message, .. }) if thread.is_some() => {
                return Err(EngineError::NotResumable { session: self.opening.session.clone(), reason: message });
            }
            Err(CallError::Closed(reason)) => return Err(EngineError::Died { reason, hint: None }),
            Err(error) => return Err(self.refused(doing, &error.to_string())),
        };
        let field = |pointer| answer.pointer(pointer).and_then(Value::as_str);
        let named = field("/thread/id").map(str::to_owned);
        let thread = named.ok_or_else(|| self.refused(doing, "it names no thread"))?;
        Ok(Opened {
            thread,
            model: field("/model").map(str::to_owned),
            record: field("/thread/path").map(PathBuf::from),
        })
    }

    fn thread_params(&self) -> Value {
        let Opening { spec, directory, .. } = &self.opening;
        let (base, more) = prompt::texts(self.shared.directory(), &self.opening);
        let sandbox = match &self.shared.sandbox {
            // squad's bounds it, and another cannot begin inside.
            Some(_) => "danger-full-access",
            None if may_change(spec) => "workspace-write",
            None => "read-only",
        };
        let mut params = json!({
            "cwd": directory,
            "approvalPolicy": "untrusted",
            "approvalsReviewer": "user",
            "sandbox": sandbox,
            "baseInstructions": base,
            "developerInstructions": more,
            "config": { "mcp_servers": servers(&self.shared.mcp_servers, &self.opening) },
        });
        if !self.model.is_empty() {
            params["model"] = self.model.as_str().into();
        }
        params
    }

    async fn start_turn(&self, mut params: Value) -> Result<(), EngineError> {
        let connection = self.connection().await?;
        {
            let conversation = self.conversation.lock();
            // A process was restored meanwhile, maybe with another thread; the turn's last fact reports it.
            if !conversation.is_working() {
                return Ok(());
            }
            params["threadId"] = conversation.thread().into();
        }
        match connection.request("turn/start", &params, self.timeouts.request).await {
            Ok(answer) => {
                let id = answer.pointer("/turn/id").and_then(Value::as_str);
                self.conversation.lock().name_turn(id);
                Ok(())
            }
            Err(error @ CallError::Refused { .. }) => Err(self.refused("sending to", &error.to_string())),
            // The turn's last fact reports this, once the process's end has been handled.
            Err(CallError::Closed(_)) => Ok(()),
            Err(error @ CallError::TimedOut(_)) => {
                connection.fail(&format!("it hangs: {error} to a prompt"));
                Ok(())
            }
        }
    }

    fn report(&self, fact: Fact) {
        self.conversation.lock().report(fact);
    }

    /// Tells the model something besides the results of its calls, before its next call.
    async fn inject(&self, connection: &Connection, text: String) {
        let content = [json!({ "type": "input_text", "text": text })];
        let item = json!({ "type": "message", "role": "developer", "content": content });
        let params = json!({ "threadId": self.thread(), "items": [item] });
        if let Err(error) = connection.request("thread/inject_items", &params, self.timeouts.request).await {
            tracing::warn!("the model is not told why: {error}");
        }
    }

    /// Answers for a call. Codex says only that it was refused, so the model is told the reason before.
    async fn decide(
        &self,
        connection: &Connection,
        call: &Call,
        verdict: Verdict,
        facts: &Facts,
    ) -> Result<(), ToolResult> {
        let decided = match verdict {
            Verdict::Ask => answers::allowed(call, facts).await,
            Verdict::No(result) => Err(result),
        };
        let Err(result) = decided else { return Ok(()) };
        self.conversation.lock().answered_instead(&call.call.call, result.clone());
        let what = if result.ok { "did this in the place of" } else { "refused" };
        let text = format!("squad {what} the call of `{}` ({}): {}", call.call.tool, call.detail, result.text);
        self.inject(connection, text).await;
        Err(result)
    }

    async fn answer(&self, connection: &Connection, responder: Responder, pending: Pending) {
        let facts = self.conversation.lock().facts();
        match pending {
            Pending::Now(answer) => responder.answer(answer),
            Pending::Questions(questions) => responder.answer(answers::questions(questions).await),
            Pending::Own { call, is_known: false } => {
                let text = format!("there is no tool `{}`", call.tool);
                responder.answer(answers::own_result(ToolResult { ok: false, text }));
            }
            Pending::Own { call, is_known: true } => {
                let ended = |call: &_, result: &_| self.conversation.lock().own_completed(call, result);
                responder.answer(answers::own_result(answers::perform(call, &facts, ended).await));
            }
            Pending::Call { call, verdict, answer } => {
                let is_allowed = self.decide(connection, &call, verdict, &facts).await.is_ok();
                responder.answer(answer(is_allowed));
            }
        }
    }

    async fn perform(&self, connection: &Connection, task: Task) {
        let facts = self.conversation.lock().facts();
        match task {
            Task::Ended(call, result) => {
                let tool = call.tool.clone();
                if let Some(text) = answers::after(call, result, &facts).await {
                    self.inject(
                        connection,
                        format!("What the team's hooks say of the last result of `{tool}`: {text}"),
                    )
                    .await;
                }
            }
            Task::Unasked(call) => {
                let verdict = call.beyond(&self.opening.spec).map(|reason| reason.to_owned());
                let decided = match verdict {
                    Some(text) => Err(ToolResult { ok: false, text }),
                    None => answers::allowed(&call, &facts).await,
                };
                let Err(ToolResult { text, .. }) = decided else { return };
                let reason = format!(
                    "it ran `{}` without asking, as rules in Codex's own folder allow it, and this run does not: {text}",
                    call.detail
                );
                self.conversation.lock().stop_turn(reason);
                self.interrupt(connection).await;
            }
        }
    }

    /// Stops the current turn, and the commands that it has started. False: there is none.
    async fn interrupt(&self, connection: &Connection) -> bool {
        let turn = self.conversation.lock().turn().map(str::to_owned);
        let thread = self.thread();
        let timeout = self.timeouts.abort;
        let is_stopped = match turn {
            None => false,
            Some(turn) => {
                let params = json!({ "threadId": thread, "turnId": turn });
                match connection.request("turn/interrupt", &params, timeout).await {
                    Ok(_) => true,
                    Err(CallError::Refused { .. } | CallError::Closed(_)) => false,
                    Err(error @ CallError::TimedOut(_)) => {
                        connection.fail(&format!("it hangs: {error} to an abort"));
                        return true;
                    }
                }
            }
        };
        // They go on otherwise.
        let _ = connection.request("thread/backgroundTerminals/clean", &json!({ "threadId": thread }), timeout).await;
        is_stopped
    }

    /// Waits until the turn has ended. False: the deadline passed.
    async fn turn_ended(&self, deadline: Instant) -> bool {
        turn_ended(deadline, || self.conversation.lock().is_working()).await
    }

    /// Restores a lost process. `None`: it cannot be had any more.
    async fn restore(self: &Arc<Self>, reason: &str) -> Option<Process> {
        for attempt in 1..=MAX_RETRIES {
            sleep(backoff(self.timeouts.backoff, attempt)).await;
            let (thread, has_begun, may_begin_again) = {
                let conversation = self.conversation.lock();
                (conversation.thread().to_owned(), conversation.has_begun(), conversation.is_in_first_turn())
            };
            // A new thread is nowhere until its first turn has been written.
            let started = match self.start_once(Some(&thread).filter(|_| has_begun).map(String::as_str)).await {
                Err(EngineError::NotResumable { .. }) if may_begin_again => self.start_once(None).await,
                started => started,
            };
            match started {
                Ok((process, _)) => {
                    self.report(Fact::ConnectionRestored { attempts: attempt });
                    self.conversation.lock().end_turn(Fact::Interrupted(reason.to_owned()));
                    self.connect(&process);
                    return Some(process);
                }
                Err(error) if attempt == MAX_RETRIES || matches!(error, EngineError::NotResumable { .. }) => {
                    self.give_up(format!("{reason}; it cannot be restored: {error}"));
                    return None;
                }
                Err(error) => tracing::debug!("attempt {attempt} to restore the engine: {error}"),
            }
        }
        None
    }

    fn give_up(&self, reason: String) {
        self.state.send_replace(LinkState::Ended(reason.clone()));
        self.report(Fact::Lost(reason));
    }
}

/// Keeps the session's process until it is stopped: ends it then, and restores it when it is lost.
async fn supervise(core: Arc<Core>, process: Process, mut stopped: oneshot::Receiver<()>) {
    let mut live = Some(process);
    while let Some(mut process) = live.take() {
        tokio::select! {
            biased;
            _ = &mut stopped => {
                core.state.send_replace(LinkState::Ended("the session is closed".to_owned()));
                return process.end(core.timeouts.grace).await;
            }
            reason = process.lost(core.timeouts.ping) => {
                core.state.send_replace(LinkState::Reconnecting);
                let descendants = core.shared.descendants(&core.opening.session);
                let report = process.bury(&reason).await;
                descendants.end().await;
                let reason = format!("{}: {reason}; {report}", core.shared.profile.name);
                core.report(Fact::ConnectionLost(reason.clone()));
                live = tokio::select! {
                    biased;
                    _ = &mut stopped => {
                        return drop(core.state.send_replace(LinkState::Ended("the session is closed".to_owned())));
                    }
                    live = core.restore(&reason) => live,
                };
            }
        }
    }
}

impl Incoming for Reader {
    fn notified(&self, connection: &Arc<Connection>, method: &str, params: Value) {
        let task = self.0.conversation.lock().notified(method, &params);
        if let Some(task) = task {
            let (core, connection) = (Arc::clone(&self.0), Arc::clone(connection));
            spawn(async move { core.perform(&connection, task).await });
        }
    }

    fn requested(&self, responder: Responder, method: &str, params: Value) {
        let pending = self.0.conversation.lock().requested(method, &params);
        match pending {
            None => responder.unknown_method(method),
            Some(pending) => {
                let (core, connection) = (Arc::clone(&self.0), responder.connection());
                spawn(async move { core.answer(&connection, responder, pending).await });
            }
        }
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
        level_of(self.core.shared.sandbox.as_ref())
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.core.shared.traffic(&self.core.opening.session)
    }

    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError> {
        let (images, others): (Vec<Attachment>, Vec<Attachment>) =
            attachments.iter().cloned().partition(|file| is_image(&file.path));
        let mut input = vec![json!({ "type": "text", "text": with_attachments(prompt, &others) })];
        let directory = &self.core.opening.directory;
        input.extend(images.iter().map(|file| json!({ "type": "localImage", "path": directory.join(&file.path) })));
        let params = self.turn_params(&input, true);
        self.prompt_with_form = self.core.opening.form.is_some().then_some(input);
        // Before the request, since the turn's first facts may arrive before its answer.
        self.core.conversation.lock().begin_turn();
        self.core.start_turn(params).await.inspect_err(|_| self.core.conversation.lock().withdraw_turn())
    }

    async fn recall(&mut self, prompt: &str) -> Option<Recall> {
        let record = self.core.record.lock().clone()?;
        let prompt = prompt.to_owned();
        spawn_blocking(move || super::recall::read(&record, &prompt)).await.ok()?
    }

    async fn notify(&mut self, text: &str) -> Result<bool, EngineError> {
        self.add(&format!("<system_notification>\n{}\n</system_notification>", text.trim())).await
    }

    async fn steer(&mut self, text: &str) -> Result<bool, EngineError> {
        self.add(text).await
    }

    async fn next(&mut self) -> Fact {
        let fact = self.facts.next().await.with_login(self.core.shared.profile.login_hint());
        self.retry_without_form(fact)
    }

    async fn abort(&mut self) {
        if !self.core.conversation.lock().is_working() {
            return;
        }
        // Without a connection, the turn is about to end anyway.
        let Some(connection) = self.core.connected() else { return };
        let deadline = Instant::now() + self.core.timeouts.abort;
        let is_stopped = self.core.interrupt(&connection).await;
        if !is_stopped || !self.core.turn_ended(deadline).await {
            self.core.conversation.lock().end_turn(Fact::Failed("the turn was aborted".to_owned()));
        }
    }

    async fn close(mut self) -> Vec<String> {
        let mut left = Vec::new();
        if let Some(connection) = self.core.connected() {
            let params = json!({ "threadId": self.core.thread() });
            let method = "thread/backgroundTerminals/list";
            let listed = connection.request(method, &params, self.core.timeouts.abort).await.unwrap_or_default();
            let commands = listed["data"].as_array().into_iter().flatten();
            left.extend(commands.filter_map(|command| command["command"].as_str().map(str::to_owned)));
        }
        let mut descendants = self.core.shared.descendants(&self.core.opening.session);
        descendants.look();
        self.stop.take();
        if let Some(supervisor) = self.supervisor.take() {
            // It panics only by a defect, and then the guard ends the process.
            let _ = supervisor.await;
        }
        left.extend(descendants.end_left_running().await);
        left
    }
}

fn is_image(path: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    IMAGES.iter().any(|image| extension.eq_ignore_ascii_case(image))
}
