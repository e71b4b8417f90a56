//! A session of a command engine: one process for each message, which go on in one chat of the engine's where it has
//! chats.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::process::Stdio;
use std::sync::Arc;

use tokio::process;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::calls::{Calls, TurnContext};
use super::chats::{Chat, is_id, is_session, printed_id};
use super::run::{Ended, Output, OutputReader, run};
use super::served::{self, reports_itself};
use super::spool::{Spool, Tail};
use super::stream::Reader;
use super::values::Values;
use super::{Shared, codex_projects, environment, shape};
use crate::engine::process_group::Mark;
use crate::engine::{AdapterSession, EngineError, Fact, Opening, Recall, Reply, Request};
use crate::model::{Attachment, Exited, ModelChoice, ModelLayer, ToolChoice, Usage, first_line, printable, seconds};
use crate::program::Program;
use crate::settings::{Chats as ChatSource, PromptWay, StreamKind};

/// What one argument may hold. Linux takes 128 KiB, Windows 32 KB for all of them.
const LONGEST_ARGUMENT: usize = if cfg!(windows) { 8 * 1024 } else { 100 * 1024 };
/// So much of a text that is no stream is taken for the answer.
const ANSWER: u64 = 256 * 1024;
/// Lines of a stream are read so many at a time before others get their turn.
const PIECES: usize = 16;
/// How long a closed session's process may take to be gone.
const CLOSING: std::time::Duration = std::time::Duration::from_secs(7);
/// By this what a session has left running is found.
const SESSION: &str = "SQUAD_SESSION";

pub(crate) struct Session {
    turn: Arc<Turn>,
    facts: mpsc::UnboundedReceiver<Fact>,
    stop: watch::Sender<bool>,
    running: Option<JoinHandle<()>>,
}

/// What a turn is made of.
struct Turn {
    shared: Arc<Shared>,
    program: Program,
    opening: Opening,
    model: String,
    sender: mpsc::UnboundedSender<Fact>,
}

impl Session {
    pub(super) fn open(shared: Arc<Shared>, opening: Opening) -> Result<Self, EngineError> {
        let program = shared.program()?;
        shared.check_folder(&opening.directory)?;
        let session = opening.session.clone();
        let not_resumable =
            |reason: &str| Err(EngineError::NotResumable { session: session.clone(), reason: reason.to_owned() });
        if !is_session(&session) {
            return not_resumable("it is no id of squad's");
        }
        let (profile, chat) = (&shared.profile, shared.chats.find(&session));
        match chat {
            _ if !opening.resume || !profile.is_stateful => {}
            None => return not_resumable("no chat of it is known"),
            Some(chat) if chat.engine != profile.name => {
                return not_resumable(&format!("its chat is one of {}", chat.engine));
            }
            Some(_) => {}
        }
        if !opening.resume {
            // One of that name has ended, or never got so far that it can be gone on with.
            shared.chats.forget(&session);
        }
        let model = model_of(&opening.spec.model, opening.spec.engine.is_some(), profile.model.as_deref());
        if !model.is_empty() && (model.starts_with('-') || model.contains(char::is_whitespace)) {
            let what = format!("opening session `{session}`");
            return Err(EngineError::Request { what, reason: format!("`{}` is no model's name", printable(&model)) });
        }
        let (sender, facts) = mpsc::unbounded_channel();
        let turn = Arc::new(Turn { shared, program, opening, model, sender });
        Ok(Self { turn, facts, stop: watch::Sender::new(false), running: None })
    }
}

/// A model that was chosen for another engine, as the defaults are, means nothing to this one.
fn model_of(choice: &ModelChoice, is_for_this: bool, own: Option<&str>) -> String {
    let counts = match choice.layer {
        ModelLayer::User => true,
        ModelLayer::Charter | ModelLayer::Role => is_for_this,
        ModelLayer::Default | ModelLayer::Engine => false,
    };
    if counts { choice.id.clone() } else { own.unwrap_or_default().to_owned() }
}

impl AdapterSession for Session {
    fn model(&self) -> &str {
        &self.turn.model
    }

    fn workspace(&self) -> Option<String> {
        let folder = self.turn.shared.local.join("output").join(&self.turn.opening.session);
        Some(folder.display().to_string())
    }

    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError> {
        self.stop = watch::Sender::new(false);
        let (turn, stop) = (Arc::clone(&self.turn), self.stop.subscribe());
        let task = with_attachments(prompt, attachments);
        self.running = Some(tokio::spawn(async move {
            let last = turn.perform(task, stop).await.unwrap_or_else(Fact::Failed);
            // The session may have been closed in the middle of its turn.
            let _ = turn.sender.send(last);
        }));
        Ok(())
    }

    async fn recall(&mut self, _prompt: &str) -> Option<Recall> {
        None
    }

    async fn notify(&mut self, _text: &str) -> Result<bool, EngineError> {
        Ok(false)
    }

    async fn steer(&mut self, _text: &str) -> Result<bool, EngineError> {
        Ok(false)
    }

    async fn next(&mut self) -> Fact {
        // The turn holds a sender, so the channel is open.
        self.facts.recv().await.unwrap_or_else(|| Fact::Lost("the session is over".to_owned()))
    }

    async fn abort(&mut self) {
        self.stop.send_replace(true);
    }

    async fn close(self) -> Vec<String> {
        self.stop.send_replace(true);
        if let Some(running) = self.running {
            // What does not end in time is ended with the engine.
            let _ = timeout(CLOSING, running).await;
        }
        Mark::end_left_running(self.turn.shared.mark.value(), SESSION, &self.turn.opening.session).await
    }
}

fn with_attachments(prompt: &str, attachments: &[Attachment]) -> String {
    let list: String = attachments.iter().map(|attachment| format!("- {}\n", attachment.path)).collect();
    if list.is_empty() { prompt.to_owned() } else { format!("{}\n\nAttached files:\n\n{list}", prompt.trim_end()) }
}

impl Turn {
    /// The last fact, or why the turn failed.
    async fn perform(&self, task: String, mut stop: watch::Receiver<bool>) -> Result<Fact, String> {
        let (profile, session) = (&self.shared.profile, &self.opening.session);
        let is_free = self.is_free().await;
        if !is_free && profile.strict.is_none() && profile.has_own_tools() {
            return Err(format!(
                "{0} asks nobody before it acts and has no mode in which it changes nothing; `--permissions allow` lets \
                 it work, or `engines.{0}.strict` in your own configuration names the arguments of such a mode",
                profile.name
            ));
        }
        self.tell(Fact::Governed { engine: profile.name.clone(), by: profile.governed(is_free) });
        let spool =
            Spool::next(&self.shared.local, session).map_err(|error| format!("cannot keep its output: {error}"))?;
        let calls = self.calls(&spool).map_err(|error| format!("squad's tools cannot be offered: {error}"))?;
        let turn = calls.is_some().then(|| format!("{session}/{}", spool.turn));
        let server = self.shared.server(self.opening.spec.agent.as_str(), &self.opening.tools, turn.as_deref());
        let known = if profile.is_stateful { self.shared.chats.find(session) } else { None };
        let (chat, is_new) = match &known {
            Some(chat) => (Some(chat.chat.clone()), false),
            None => (self.new_chat(&spool, is_free, &mut stop).await?, true),
        };
        let mut role = [self.opening.spec.prompt.as_str(), &self.opening.spec.full_context()].join("\n\n");
        let tools = &self.opening.tools;
        role.push_str(&served::missing(tools, server.is_some()).unwrap_or_default());
        let prompt = match (profile.is_stateful, is_new) {
            (false, _) => shape::stateless(&role, &task),
            (true, true) => shape::new_chat(&role, &task),
            (true, false) => shape::existing_chat(&task),
        };
        let reader = Reader::new(profile.stream);
        let is_new_chat = is_new && profile.is_stateful && profile.chat == ChatSource::Answer;
        let tail = Tail::new(spool.path("stdout"));
        let mut stream = Stream { tail, reader, printed: 0, is_new_chat, calls, own: BTreeSet::new() };
        let values = Values { tools: server.unwrap_or_default(), ..self.values(chat.clone(), is_free) };
        let ended = self.run(&spool, (&prompt, &task), values, &mut stop, &mut stream).await?;
        let chat = self.keep_chat(&stream, &ended, chat, known.as_ref());
        self.tell(self.exited(&spool, &ended, chat));
        self.last(&spool, &ended, stream.reader)
    }

    /// Whether it may act unasked. Nobody who answers means no.
    async fn is_free(&self) -> bool {
        let (reply, answer): (Reply<bool>, oneshot::Receiver<bool>) = Reply::channel();
        self.tell(Fact::Request(Request::Unasked(reply)));
        answer.await.unwrap_or(false)
    }

    /// The id of a chat that begins, where it is known before.
    async fn new_chat(
        &self,
        spool: &Spool,
        is_free: bool,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Option<String>, String> {
        let profile = &self.shared.profile;
        match (profile.chat, &profile.create_chat) {
            _ if !profile.is_stateful => Ok(None),
            (ChatSource::Client, _) => Ok(Some(uuid::Uuid::now_v7().to_string())),
            (ChatSource::Command, Some(arguments)) => {
                let program = self.shared.chat_program().map_err(|error| error.to_string())?;
                let command = self.command(&program, arguments.filled(&self.values(None, is_free)));
                let output = Output { spool, stdout: "create-chat", stderr: "stderr" };
                let ended =
                    run(command, Stdio::null(), &output, stop, ()).await.map_err(|error| self.cannot_start(&error))?;
                if ended.code != Some(0) {
                    return Err(format!("{} made no chat: {}", profile.name, how(spool, &ended, None)));
                }
                let id = printed_id(&spool.end("create-chat", 16 * 1024));
                id.map(Some).ok_or_else(|| format!("{} made a chat and printed no id of it", profile.name))
            }
            _ => Ok(None),
        }
    }

    fn values(&self, chat: Option<String>, is_free: bool) -> Values {
        let (profile, spec) = (&self.shared.profile, &self.opening.spec);
        let strict = profile.strict.clone().unwrap_or_default();
        let directory = &self.opening.directory;
        Values {
            chat_id: chat,
            cwd: Some(directory.display().to_string()),
            role_id: Some(spec.agent.to_string()),
            model: Some(self.model.clone()).filter(|model| !model.is_empty()),
            mode: if is_free { profile.free.clone() } else { strict },
            codex_projects: codex_projects(directory),
            ..Values::default()
        }
    }

    /// For an engine that has no tools: what it may do through squad's.
    fn calls(&self, spool: &Spool) -> io::Result<Option<Calls>> {
        let Shared { profile, squad, mark, run, .. } = &*self.shared;
        let choice = &self.opening.spec.tools;
        let has = |meant: &[&str]| match choice {
            ToolChoice::All => true,
            ToolChoice::ReadOnly => meant.contains(&"view"),
            ToolChoice::Nothing => false,
            ToolChoice::Only(names) => names.iter().any(|name| name == "*" || meant.contains(&name.as_str())),
        };
        let may_write = has(&["create", "edit"]);
        let offered = [("shell", has(&["bash"])), ("file_ops", may_write || has(&["view"]))];
        let tools = offered.into_iter().filter(|(_, is_offered)| *is_offered).map(|(name, _)| name.to_owned());
        let tools: Vec<String> = tools.collect();
        if profile.has_own_tools() || squad.is_none() || tools.is_empty() {
            return Ok(None);
        }
        let session = &self.opening.session;
        let marks = [("SQUAD_RUN", run.as_str()), (SESSION, session), (mark.name(), mark.value())];
        let marks = marks.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let directory = self.opening.directory.clone();
        Calls::open(spool, &TurnContext { directory, tools, may_write, marks }).map(Some)
    }

    fn command(&self, program: &Program, arguments: Vec<String>) -> process::Command {
        let (shared, profile) = (&self.shared, &self.shared.profile);
        let mut variables = environment::allowed(&shared.variables, &profile.env);
        shared.programs.restrict(&mut variables);
        let mut command = process::Command::from(program.command());
        command.args(arguments).env_clear().envs(variables).envs(&profile.set);
        command.env("SQUAD_RUN", &shared.run).env(SESSION, &self.opening.session);
        command.env(shared.mark.name(), shared.mark.value()).current_dir(&self.opening.directory);
        command
    }

    /// Runs it with the prompt, by whichever way takes it.
    async fn run(
        &self,
        spool: &Spool,
        (prompt, task): (&str, &str),
        values: Values,
        stop: &mut watch::Receiver<bool>,
        stream: &mut Stream,
    ) -> Result<Ended, String> {
        let profile = &self.shared.profile;
        let path = spool.write_prompt(prompt).map_err(|error| format!("cannot keep its prompt: {error}"))?;
        let output = Output { spool, stdout: "stdout", stderr: "stderr" };
        let mut goes_by_file = !fits(prompt) || !fits(task);
        loop {
            let in_file = format!("Read the file {}: it is your message, whole. Do what it says.", path.display());
            let given = |text: &str| Some(if goes_by_file { in_file.clone() } else { text.to_owned() });
            let values = Values { prompt: given(prompt), task: given(task), ..values.clone() };
            let command = self.command(&self.program, profile.filled(&profile.arguments, &values));
            let input = match profile.prompt {
                PromptWay::Stdin => {
                    File::open(&path).map_err(|error| format!("cannot read its prompt: {error}"))?.into()
                }
                PromptWay::File => Stdio::null(),
            };
            match run(command, input, &output, stop, StreamOutputReader { turn: self, stream: &mut *stream, spool })
                .await
            {
                // All arguments and variables together are too many for this system.
                Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong && !goes_by_file => {
                    goes_by_file = true
                }
                ended => {
                    return ended
                        .inspect(|_| {
                            let rest = stream.tail.rest();
                            rest.iter().flat_map(|line| stream.facts(line)).for_each(|fact| self.tell(fact));
                        })
                        .map_err(|error| self.cannot_start(&error));
                }
            }
        }
    }

    fn cannot_start(&self, error: &io::Error) -> String {
        format!("{} cannot be run: {error}", self.program.path().display())
    }

    /// Reads what has come since.
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
        let mut pieces = 0;
        // A file that cannot be read is found out when the answer is missing.
        while let Ok(Some(lines)) = stream.tail.lines() {
            self.tell(Fact::Alive);
            let knew = stream.reader.state.chat.is_some();
            lines.iter().flat_map(|line| stream.facts(line)).for_each(|fact| self.tell(fact));
            if let (false, true, Some(chat)) = (knew, stream.is_new_chat, &stream.reader.state.chat) {
                // Known at once, so that a run that is killed can go on in it.
                self.keep(chat.clone(), None);
            }
            pieces += 1;
            if pieces % PIECES == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Keeps the chat that the session goes on in, or forgets one that is of no use. Whether there is one.
    fn keep_chat(&self, stream: &Stream, ended: &Ended, given: Option<String>, before: Option<&Chat>) -> bool {
        let (profile, state) = (&self.shared.profile, &stream.reader.state);
        if let Some(counted) = &state.counted {
            let before = before.and_then(|chat| chat.counted.as_ref());
            self.tell(Fact::Usage(since(counted, before)));
        }
        // An answer may say that the chat has another id now.
        let id = state.chat.clone().filter(|_| profile.chat == ChatSource::Answer).or(given);
        let Some(chat) = id.filter(|id| profile.is_stateful && is_id(id)) else { return false };
        let is_answered = ended.code == Some(0) || ended.because.is_some() || !state.text.is_empty();
        if !is_answered && before.is_none() {
            // A chat that began with a failure is none to go on in. One that has a history is never dropped.
            self.shared.chats.forget(&self.opening.session);
            return false;
        }
        self.keep(chat, state.counted.clone().or(before.and_then(|chat| chat.counted.clone())))
    }

    fn keep(&self, chat: String, counted: Option<Usage>) -> bool {
        let chat = Chat { engine: self.shared.profile.name.clone(), chat, counted };
        let kept = self.shared.chats.keep(&self.opening.session, &chat);
        if let Err(error) = &kept {
            self.tell(Fact::Warning(format!("the session cannot be gone on with later: {error}")));
        }
        kept.is_ok()
    }

    fn exited(&self, spool: &Spool, ended: &Ended, chat: bool) -> Fact {
        Fact::Exited(Exited {
            engine: self.shared.profile.name.clone(),
            session: self.opening.session.clone(),
            turn: spool.turn,
            exit_code: ended.code,
            signal: ended.signal,
            seconds: seconds(ended.took),
            stdout: spool.shown("stdout"),
            stderr: spool.shown("stderr"),
            stdout_bytes: spool.len("stdout"),
            stderr_bytes: spool.len("stderr"),
            chat,
        })
    }

    fn last(&self, spool: &Spool, ended: &Ended, mut reader: Reader) -> Result<Fact, String> {
        reader.end().into_iter().for_each(|fact| self.tell(fact));
        if self.shared.profile.stream == StreamKind::Text {
            let (text, bytes) = (spool.end("stdout", ANSWER), spool.len("stdout"));
            let cut = if bytes > ANSWER { format!("(the end of {bytes} bytes)\n\n") } else { String::new() };
            if !text.trim().is_empty() {
                self.tell(Fact::Message(cut + text.trim_end()));
            }
        }
        match (&ended.because, ended.code, &reader.state.error) {
            (None, Some(0), None) => Ok(Fact::Idle),
            (_, _, error) => Err(format!("{} {}", self.shared.profile.name, how(spool, ended, error.as_deref()))),
        }
    }

    fn tell(&self, fact: Fact) {
        // A closed session hears nothing.
        let _ = self.sender.send(fact);
    }
}

/// How a process ended, and its last words.
fn how(spool: &Spool, ended: &Ended, error: Option<&str>) -> String {
    let how = match (&ended.because, ended.code, ended.signal) {
        (Some(because), ..) => format!("was ended: {because}"),
        (None, Some(0), _) => "reports that it failed".to_owned(),
        (None, Some(code), _) => format!("ended with exit code {code}"),
        (None, None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None, None) => "ended".to_owned(),
    };
    let said = error.map(str::to_owned).or_else(|| {
        let errors = printable(&spool.end("stderr", 4 * 1024));
        errors.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
    });
    let said = said.map(|said| format!(": {}", first_line(&printable(&said), 300))).unwrap_or_default();
    format!("{how}{said}")
}

struct StreamOutputReader<'a> {
    turn: &'a Turn,
    stream: &'a mut Stream,
    spool: &'a Spool,
}

impl OutputReader for StreamOutputReader<'_> {
    async fn look(&mut self) {
        self.turn.read(self.stream, self.spool).await;
    }
}

/// Output that is read while it is written.
struct Stream {
    tail: Tail,
    reader: Reader,
    /// Bytes, as far as they were looked at.
    printed: u64,
    /// The chat has no id yet that could be kept.
    is_new_chat: bool,
    /// Squad's tools, for an engine that has none.
    calls: Option<Calls>,
    /// The engine's ids of calls that report themselves.
    own: BTreeSet<String>,
}

impl Stream {
    /// What a line says, without what is reported by squad's tools themselves.
    fn facts(&mut self, line: &str) -> Vec<Fact> {
        let mut facts = self.reader.line(line);
        if self.calls.is_some() {
            facts.retain(|fact| match fact {
                Fact::ToolStarted { call, tool, .. } if reports_itself(tool) => {
                    self.own.insert(call.clone());
                    false
                }
                Fact::ToolCompleted { call, .. } => !self.own.remove(call),
                _ => true,
            });
        }
        facts
    }
}

fn fits(text: &str) -> bool {
    text.len() <= LONGEST_ARGUMENT && !text.contains('\0')
}

/// Of a chat that counts on, what this turn added.
fn since(counted: &Usage, before: Option<&Usage>) -> Usage {
    let Some(before) = before else { return counted.clone() };
    Usage {
        input_tokens: counted.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: counted.output_tokens.saturating_sub(before.output_tokens),
        cache_read_tokens: counted.cache_read_tokens.saturating_sub(before.cache_read_tokens),
        cache_write_tokens: counted.cache_write_tokens.saturating_sub(before.cache_write_tokens),
        reasoning_tokens: counted.reasoning_tokens.saturating_sub(before.reasoning_tokens),
        ..Usage::default()
    }
}
