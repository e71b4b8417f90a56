//! A session of a command engine: one process for each message. If the engine has chats, all messages share one.

use std::fs::File;
use std::io;
use std::process::Stdio;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::process;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::calls::{Calls, TurnContext};
use super::chats::{Chat, is_chat_id, is_session_id, printed_id};
use super::output::Stream;
use super::run::{Ended, MAX_OUTPUT, Output, OutputReader, run};
use super::served;
use super::spool::Spool;
use super::stream::StreamParser;
use super::values::Values;
use super::{Profile, SESSION_VARIABLE, Shared, shape};
use crate::engine::descendants::Descendants;
use crate::engine::{
    AdapterSession, EngineError, Fact, Opening, RESTART_WAIT, RESTARTS, Reply, Request, Reset, backoff, spawn,
};
use crate::env::files::open_regular;
use crate::model::{
    Attachment, Exited, ModelChoice, ModelLayer, SandboxLevel, ToolChoice, Usage, first_line, printable, seconds,
};
use crate::program::Program;
use crate::sandbox::{Traffic, level_of};
use crate::settings::{Chats as ChatSource, PromptWay, StreamKind};

/// Maximum bytes of one argument. Linux allows 128 KiB, Windows 32 KB for all arguments together.
const MAX_ARGUMENT: usize = if cfg!(windows) { 8 * 1024 } else { 100 * 1024 };
/// Maximum bytes of plain text that become the answer.
const MAX_ANSWER: u64 = 256 * 1024;
/// The answer of a program that succeeds without output.
const NO_OUTPUT: &str = "(It printed nothing on its standard output.)";
/// Chunks of a stream to read before other tasks get their turn.
const CHUNKS_PER_YIELD: usize = 16;
/// How long to wait for a closed session's process to end.
const CLOSE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(7);
pub(crate) struct Session {
    turn: Arc<Turn>,
    facts: mpsc::UnboundedReceiver<Fact>,
    stop: watch::Sender<bool>,
    running: Option<JoinHandle<()>>,
    descendants: Descendants,
}

/// What a session's turns need.
struct Turn {
    shared: Arc<Shared>,
    opening: Opening,
    model: String,
    sender: mpsc::UnboundedSender<Fact>,
}

impl Session {
    pub(super) fn open(shared: Arc<Shared>, opening: Opening) -> Result<Self, EngineError> {
        shared.check_folder(&opening.directory)?;
        let session = opening.session.clone();
        let not_resumable =
            |reason: &str| Err(EngineError::NotResumable { session: session.clone(), reason: reason.to_owned() });
        if !is_session_id(&session) {
            return not_resumable("its id is not one of squad's");
        }
        let (profile, chat) = (&shared.profile, shared.chats.find(&session));
        match chat {
            _ if !opening.resume || !has_chats(profile, &opening) => {}
            None => return not_resumable("it has no chat"),
            Some(chat) if chat.engine != profile.name => {
                return not_resumable(&format!("its chat belongs to {}", chat.engine));
            }
            Some(_) => {}
        }
        if !opening.resume {
            // An earlier session of this name may have left a chat.
            shared.chats.remove(&session);
        }
        let model = model_of(&opening.spec.model, opening.spec.engine.is_some(), profile);
        if !model.is_empty() && (model.starts_with('-') || model.contains(char::is_whitespace)) {
            let what = format!("opening session `{session}`");
            return Err(EngineError::Request { what, reason: format!("`{}` is not a model name", printable(&model)) });
        }
        let (sender, facts) = mpsc::unbounded_channel();
        let turn = Arc::new(Turn { shared, opening, model, sender });
        let descendants = turn.shared.descendants(&turn.opening.session);
        Ok(Self { turn, facts, stop: watch::Sender::new(false), running: None, descendants })
    }
}

/// Whether messages to a session share a chat of the engine.
fn has_chats(profile: &Profile, opening: &Opening) -> bool {
    profile.is_stateful && opening.caller.as_ref().is_none_or(|caller| caller.keeps_chat)
}

/// The chosen model, as the engine calls it, if it was chosen for this engine or is one of its own; otherwise the
/// profile's. Defaults are chosen for another engine.
pub(in crate::engine) fn model_of(choice: &ModelChoice, names_engine: bool, profile: &Profile) -> String {
    let own = profile.own_model(&choice.id);
    let applies = match choice.layer {
        ModelLayer::User => true,
        // A model that the user has set for the engine may be all that its endpoint has.
        ModelLayer::Charter | ModelLayer::Role => names_engine || (own.is_some() && profile.model.is_none()),
        ModelLayer::Default | ModelLayer::Engine => false,
    };
    profile.model_for(&choice.id, applies)
}

impl AdapterSession for Session {
    fn model(&self) -> &str {
        &self.turn.model
    }

    fn workspace(&self) -> Option<String> {
        let folder = self.turn.shared.local.join("output").join(&self.turn.opening.session);
        Some(folder.display().to_string())
    }

    fn reports_tools(&self) -> bool {
        self.turn.shared.profile.reports_tools()
    }

    fn sandbox(&self) -> SandboxLevel {
        level_of(self.turn.shared.sandbox.as_ref())
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.turn.shared.traffic(&self.turn.opening.session)
    }

    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError> {
        self.stop = watch::Sender::new(false);
        let (turn, stop) = (Arc::clone(&self.turn), self.stop.subscribe());
        let task = with_attachments(prompt, attachments);
        self.running = Some(spawn(async move {
            let last = turn.perform(task, stop).await.unwrap_or_else(Fact::of_failure);
            // This fails if the session was closed during the turn.
            let _ = turn.sender.send(last);
        }));
        Ok(())
    }

    async fn next(&mut self) -> Fact {
        // The turn holds a sender, so the channel is open.
        let fact = self.facts.recv().await.unwrap_or_else(|| Fact::Lost("the session is over".to_owned()));
        fact.with_login(self.turn.shared.profile.login_hint())
    }

    async fn abort(&mut self) {
        self.descendants.look();
        self.stop.send_replace(true);
    }

    async fn close(self) -> Vec<String> {
        self.stop.send_replace(true);
        if let Some(running) = self.running {
            // A process that does not end in time ends with the engine.
            let _ = timeout(CLOSE_TIMEOUT, running).await;
        }
        self.descendants.end_left_running().await
    }
}

pub(in crate::engine) fn with_attachments(prompt: &str, attachments: &[Attachment]) -> String {
    let list: String = attachments.iter().map(|attachment| format!("- {}\n", attachment.path)).collect();
    if list.is_empty() { prompt.to_owned() } else { format!("{}\n\nAttached files:\n\n{list}", prompt.trim_end()) }
}

impl Turn {
    /// Performs a turn. Returns its last fact, or why it failed.
    async fn perform(&self, task: String, mut stop: watch::Receiver<bool>) -> Result<Fact, String> {
        let (profile, session) = (&self.shared.profile, &self.opening.session);
        let is_unrestricted = self.may_act_unasked().await;
        profile.require_mode(is_unrestricted).map_err(|error| error.with_hint())?;
        let spool =
            Spool::next(&self.shared.local, session).map_err(|error| format!("cannot store its output: {error}"))?;
        let calls = self.calls(&spool).map_err(|error| format!("cannot offer squad's tools: {error}"))?;
        let turn = calls.is_some().then(|| format!("{session}/{}", spool.turn));
        let server = self.shared.server_arguments(self.opening.spec.agent.as_str(), turn.as_deref());
        self.tell(self.governed(is_unrestricted, server.is_some()));
        let has_chats = has_chats(profile, &self.opening);
        let known = if has_chats { self.shared.chats.find(session) } else { None };
        let (chat, is_new) = match &known {
            Some(chat) => (Some(chat.chat.clone()), false),
            None => (self.new_chat(&spool, is_unrestricted, &mut stop).await?, true),
        };
        let mut role = [self.opening.spec.prompt.as_str(), &self.opening.spec.full_context()].join("\n\n");
        let tools = &self.opening.tools;
        if server.is_none() {
            role.push_str(&served::missing_tools_note(tools).unwrap_or_default());
        }
        let prompt = match (has_chats, is_new) {
            (false, _) => shape::stateless(&role, &task),
            (true, true) => shape::new_chat(&role, &task),
            (true, false) => shape::existing_chat(&task),
        };
        let parser = StreamParser::new(profile.stream);
        let is_new_chat = is_new && has_chats && profile.chat == ChatSource::Answer;
        let tail = spool.create("stdout").and_then(|_| spool.tail("stdout"));
        let tail = tail.map_err(|error| format!("cannot store its output: {error}"))?;
        let mut stream = Stream::new(tail, parser, is_new_chat, calls);
        let values = Values { tools: server.unwrap_or_default(), ..self.values(chat.clone(), is_unrestricted) };
        let ended = self.run_again(&spool, (&prompt, &task), (values, is_unrestricted), &mut stop, &mut stream).await?;
        let has_chat = self.update_chat(&stream, &ended, chat, known.as_ref());
        self.tell(self.exited(&spool, &ended, has_chat));
        self.finish(&spool, &ended, stream.parser)
    }

    /// Whether the engine may act without asking; `false` without an answer.
    async fn may_act_unasked(&self) -> bool {
        let (reply, answer): (Reply<bool>, oneshot::Receiver<bool>) = Reply::channel();
        self.tell(Fact::Request(Request::Unasked(reply)));
        answer.await.unwrap_or(false)
    }

    fn governed(&self, is_unrestricted: bool, has_server: bool) -> Fact {
        let profile = &self.shared.profile;
        Fact::Governed {
            engine: profile.name.clone(),
            by: profile.governed(is_unrestricted, level_of(self.shared.sandbox.as_ref())),
            lacks_tools: !has_server,
            hides_refusals: !is_unrestricted && profile.hides_refusals(),
        }
    }

    /// The id of a new chat; `None`: there are no chats, or the engine's answer will contain the id.
    async fn new_chat(
        &self,
        spool: &Spool,
        is_unrestricted: bool,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Option<String>, String> {
        let profile = &self.shared.profile;
        match (profile.chat, &profile.create_chat) {
            _ if !has_chats(profile, &self.opening) => Ok(None),
            (ChatSource::Client, _) => Ok(Some(crate::env::unique_id().to_string())),
            (ChatSource::Command, Some(arguments)) => {
                let program = self.shared.chat_program().map_err(|error| error.to_string())?;
                let arguments = arguments.expand(&self.values(None, is_unrestricted));
                let command = self.command(&program, arguments, is_unrestricted, spool);
                let output = Output { spool, stdout: "create-chat", stderr: "stderr", most: MAX_OUTPUT };
                let ended =
                    run(command, Stdio::null(), &output, stop, ()).await.map_err(|error| self.cannot_start(&error))?;
                if ended.code != Some(0) {
                    return Err(format!("{} created no chat: {}", profile.name, describe_end(spool, &ended, None)));
                }
                let id = printed_id(&spool.last_text("create-chat", 16 * 1024));
                id.map(Some).ok_or_else(|| format!("{} printed no id of the chat it created", profile.name))
            }
            _ => Ok(None),
        }
    }

    fn values(&self, chat: Option<String>, is_unrestricted: bool) -> Values {
        let (profile, spec) = (&self.shared.profile, &self.opening.spec);
        Values {
            chat_id: chat,
            cwd: Some(self.opening.directory.display().to_string()),
            role_id: Some(
                self.opening.caller.as_ref().map_or_else(|| spec.agent.to_string(), |caller| caller.role.clone()),
            ),
            model: Some(self.model.clone()).filter(|model| !model.is_empty()),
            mode: profile.mode(is_unrestricted, level_of(self.shared.sandbox.as_ref())),
            generated_uuid: Some(crate::env::unique_id().to_string()),
            ..Values::default()
        }
    }

    /// Offers squad's tools, as far as the agent may use them; `shell` and `file_ops` to an engine without tools of its
    /// own.
    fn calls(&self, spool: &Spool) -> io::Result<Option<Calls>> {
        let Shared { profile, squad, mark, run, .. } = &*self.shared;
        let choice = &self.opening.spec.tools;
        let denied = &self.opening.spec.denied_tools;
        let allows_any = |tools: &[&str]| match choice {
            _ if tools.iter().all(|tool| denied.iter().any(|denied| denied == tool)) => false,
            ToolChoice::All => true,
            ToolChoice::ReadOnly => tools.contains(&"view"),
            ToolChoice::Nothing => false,
            ToolChoice::Only(names) => names.iter().any(|name| name == "*" || tools.contains(&name.as_str())),
        };
        let may_write = allows_any(&["create", "edit"]);
        let offered = [("shell", allows_any(&["bash"])), ("file_ops", may_write || allows_any(&["view"]))];
        let is_offered = |is_allowed: bool| is_allowed && !profile.has_own_tools();
        let own =
            offered.into_iter().filter(|(_, is_allowed)| is_offered(*is_allowed)).map(|(name, _)| name.to_owned());
        let relayed: Vec<String> = self.opening.tools.iter().map(|tool| tool.name.to_string()).collect();
        let tools: Vec<String> = own.chain(relayed.iter().cloned()).collect();
        if profile.tools.is_none() || squad.is_none() || tools.is_empty() {
            return Ok(None);
        }
        let session = &self.opening.session;
        let marks = [("SQUAD_RUN", run.as_str()), (SESSION_VARIABLE, session), mark.variable()];
        let marks = marks.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let directory = self.opening.directory.clone();
        Calls::open(spool, &TurnContext { directory, tools, relayed, may_write, marks }).map(Some)
    }

    fn command(
        &self,
        program: &Program,
        arguments: Vec<String>,
        is_unrestricted: bool,
        spool: &Spool,
    ) -> process::Command {
        // Where the engine cannot be asked, an agent that may change nothing is kept from it by the sandbox as well.
        let may_write = is_unrestricted || !self.shared.profile.has_own_tools();
        let place = (self.opening.session.as_str(), self.opening.directory.as_path());
        let mut command = self.shared.command(program, place, may_write, Some(spool.folder().to_owned()));
        command.args(arguments);
        command
    }

    /// Runs the process, and again if it is killed before it says anything. Engines with a stream say that they begin
    /// before they ask a model; of others nobody knows what they have done, nor of those that end by themselves why.
    async fn run_again(
        &self,
        spool: &Spool,
        texts: (&str, &str),
        values: (Values, bool),
        stop: &mut watch::Receiver<bool>,
        stream: &mut Stream,
    ) -> Result<Ended, String> {
        let mut attempts = 0;
        loop {
            let ended = self.run(spool, texts, values.clone(), stop, stream).await?;
            let is_unheard = self.shared.profile.stream != StreamKind::Text && spool.len("stdout") == 0;
            match ended.signal.filter(|_| is_unheard && ended.stop_reason.is_none()) {
                Some(signal) if attempts < RESTARTS && !*stop.borrow() => {
                    attempts += 1;
                    let name = &self.shared.profile.name;
                    let reason = format!("{name} was ended by signal {signal} before it said anything");
                    self.tell(Fact::ConnectionLost(format!("{reason}; it is started again")));
                    sleep(backoff(RESTART_WAIT, attempts)).await;
                }
                _ => {
                    if attempts > 0 && !is_unheard {
                        self.tell(Fact::ConnectionRestored { attempts });
                    }
                    return Ok(ended);
                }
            }
        }
    }

    /// Runs the process. Its arguments name a file if the prompt is too long for them.
    async fn run(
        &self,
        spool: &Spool,
        (prompt, task): (&str, &str),
        (values, is_unrestricted): (Values, bool),
        stop: &mut watch::Receiver<bool>,
        stream: &mut Stream,
    ) -> Result<Ended, String> {
        let profile = &self.shared.profile;
        let path = spool.write_prompt(prompt).map_err(|error| format!("cannot store its prompt: {error}"))?;
        let output = Output { spool, stdout: "stdout", stderr: "stderr", most: MAX_OUTPUT };
        let mut uses_file = !fits_argument(prompt) || !fits_argument(task);
        loop {
            let reference = format!("Read the file {}: it is your complete message. Do what it says.", path.display());
            let argument = |text: &str| Some(if uses_file { reference.clone() } else { text.to_owned() });
            let values = Values { prompt: argument(prompt), task: argument(task), ..values.clone() };
            let arguments = profile.expand(&profile.arguments, &values);
            let command = self.command(&self.shared.program, arguments, is_unrestricted, spool);
            let input = match profile.prompt {
                PromptWay::Stdin => {
                    let file = open_regular(File::options().read(true), &path);
                    file.map_err(|error| format!("cannot read its prompt: {error}"))?.into()
                }
                PromptWay::File => Stdio::null(),
            };
            match run(command, input, &output, stop, StreamOutputReader { turn: self, stream: &mut *stream, spool })
                .await
            {
                // The arguments and variables together exceed the system's limit.
                Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong && !uses_file => uses_file = true,
                ended => {
                    return ended
                        .inspect(|_| {
                            let last_line = stream.tail.take_line();
                            last_line.iter().for_each(|line| self.report_line(stream, line));
                        })
                        .map_err(|error| self.cannot_start(&error));
                }
            }
        }
    }

    fn cannot_start(&self, error: &io::Error) -> String {
        format!("{} cannot be run: {error}", self.shared.program.path().display())
    }

    /// Reports new output.
    async fn read(&self, stream: &mut Stream, spool: &Spool) {
        if let Some(calls) = &mut stream.calls {
            calls.read(&self.sender);
        }
        if self.shared.profile.stream == StreamKind::Text {
            let printed = spool.len("stdout") + spool.len("stderr");
            if std::mem::replace(&mut stream.printed, printed) != printed {
                self.tell(Fact::Alive);
            }
            return;
        }
        let mut chunks = 0;
        // An unreadable file shows later, when the answer is missing.
        while let Ok(Some(lines)) = stream.tail.lines() {
            let had_id = stream.parser.state.chat.is_some();
            if lines.is_empty() {
                // A long line is being written.
                self.tell(Fact::Alive);
            }
            lines.iter().for_each(|line| self.report_line(stream, line));
            if let (false, true, Some(chat)) = (had_id, stream.is_new_chat, &stream.parser.state.chat) {
                // Stored at once, so that the chat can be continued even if this run is killed.
                self.store_chat(chat.clone(), None);
            }
            chunks += 1;
            if chunks % CHUNKS_PER_YIELD == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn report_line(&self, stream: &mut Stream, line: &str) {
        let facts = stream.facts(line);
        // A line without facts is a sign of life as well.
        if facts.is_empty() {
            self.tell(Fact::Alive);
        }
        for fact in facts {
            self.tell(match fact {
                Fact::Warning(text) => Fact::Warning(format!("{}: {text}", self.shared.profile.name)),
                fact => fact,
            });
        }
    }

    /// Stores the chat for the session's next turn, or removes it if it failed. Returns whether there is a chat.
    fn update_chat(&self, stream: &Stream, ended: &Ended, id: Option<String>, previous: Option<&Chat>) -> bool {
        let (profile, state) = (&self.shared.profile, &stream.parser.state);
        let previous_usage = previous.and_then(|chat| chat.counted.as_ref());
        if let Some(total) = &state.total_usage {
            self.tell(Fact::Usage(usage_since(total, previous_usage)));
        }
        // The answer may give the chat a new id.
        let id = state.chat.clone().filter(|_| profile.chat == ChatSource::Answer).or(id);
        let has_chats = has_chats(profile, &self.opening);
        let Some(chat) = id.filter(|id| has_chats && is_chat_id(id)) else { return false };
        let is_usable = ended.code == Some(0) || ended.stop_reason.is_some() || !state.text.is_empty();
        if !is_usable && previous.is_none() {
            // A chat whose first turn failed is not continued. A chat with a history is never removed.
            self.shared.chats.remove(&self.opening.session);
            return false;
        }
        self.store_chat(chat, state.total_usage.as_ref().or(previous_usage).cloned())
    }

    fn store_chat(&self, chat: String, counted: Option<Usage>) -> bool {
        let chat = Chat { engine: self.shared.profile.name.clone(), chat, counted, instructed: None };
        let stored = self.shared.chats.store(&self.opening.session, &chat);
        if let Err(error) = &stored {
            self.tell(Fact::Warning(format!("the session cannot be continued later: {error}")));
        }
        stored.is_ok()
    }

    fn exited(&self, spool: &Spool, ended: &Ended, has_chat: bool) -> Fact {
        Fact::Exited(Exited {
            engine: self.shared.profile.name.clone(),
            session: self.opening.session.clone(),
            turn: spool.turn,
            exit_code: ended.code,
            signal: ended.signal,
            seconds: seconds(ended.duration),
            stdout: spool.relative_path("stdout"),
            stderr: spool.relative_path("stderr"),
            stdout_bytes: spool.len("stdout"),
            stderr_bytes: spool.len("stderr"),
            chat: has_chat,
        })
    }

    /// Reports the rest of the answer. Returns the turn's last fact, or why it failed.
    fn finish(&self, spool: &Spool, ended: &Ended, mut parser: StreamParser) -> Result<Fact, String> {
        parser.finish().into_iter().for_each(|fact| self.tell(fact));
        if self.shared.profile.stream == StreamKind::Text {
            let (text, bytes) = (spool.last_text("stdout", MAX_ANSWER), spool.len("stdout"));
            let cut = if bytes > MAX_ANSWER { format!("(the end of {bytes} bytes)\n\n") } else { String::new() };
            if !text.trim().is_empty() {
                self.tell(Fact::Message(cut + text.trim_end()));
            } else if ended.stop_reason.is_none() && ended.code == Some(0) {
                // Plain text has no form that could be incomplete, so the exit code alone counts.
                self.tell(Fact::Message(NO_OUTPUT.to_owned()));
            }
        }
        match (&ended.stop_reason, ended.code, &parser.state.error) {
            (None, Some(0), None) => Ok(Fact::Idle),
            (_, _, error) => {
                let reason = format!("{} {}", self.shared.profile.name, describe_end(spool, ended, error.as_deref()));
                let resets_at = parser.state.resets_at.and_then(|second| Timestamp::from_second(second).ok());
                match resets_at {
                    Some(at) if ended.stop_reason.is_none() => Ok(Fact::NoQuota { reason, reset: Some(Reset::At(at)) }),
                    _ => Err(reason),
                }
            }
        }
    }

    fn tell(&self, fact: Fact) {
        // This fails if the session was closed.
        let _ = self.sender.send(fact);
    }
}

/// How a process ended, with its error or the last line of its stderr.
fn describe_end(spool: &Spool, ended: &Ended, error: Option<&str>) -> String {
    let end = match (&ended.stop_reason, ended.code, ended.signal) {
        (Some(reason), ..) => format!("was ended: {reason}"),
        (None, Some(0), _) => "reported a failure".to_owned(),
        (None, Some(code), _) => format!("ended with exit code {code}"),
        (None, None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None, None) => "ended".to_owned(),
    };
    let error = error.map(str::to_owned).or_else(|| {
        let stderr = printable(&spool.last_text("stderr", 4 * 1024));
        stderr.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
    });
    let error = error.map(|error| format!(": {}", first_line(&printable(&error), 300))).unwrap_or_default();
    format!("{end}{error}")
}

struct StreamOutputReader<'a> {
    turn: &'a Turn,
    stream: &'a mut Stream,
    spool: &'a Spool,
}

impl OutputReader for StreamOutputReader<'_> {
    async fn read(&mut self) {
        self.turn.read(self.stream, self.spool).await;
    }
}

fn fits_argument(text: &str) -> bool {
    text.len() <= MAX_ARGUMENT && !text.contains('\0')
}

/// What one turn added to the total usage of its chat.
pub(in crate::engine) fn usage_since(total: &Usage, before: Option<&Usage>) -> Usage {
    let Some(before) = before else { return total.clone() };
    Usage {
        input_tokens: total.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: total.output_tokens.saturating_sub(before.output_tokens),
        cache_read_tokens: total.cache_read_tokens.saturating_sub(before.cache_read_tokens),
        cache_write_tokens: total.cache_write_tokens.saturating_sub(before.cache_write_tokens),
        reasoning_tokens: total.reasoning_tokens.saturating_sub(before.reasoning_tokens),
        ..Usage::default()
    }
}
