//! An agent on a host that nobody talks to while it works: a job of Slurm's `sbatch`, of a CI.
//!
//! ```text
//! squad ── order ──→ a ref of a remote ──→ job: squad worker --order REF
//!       ←─ result ── another ref ←───────── facts so far, at last the work
//! ```
//!
//! Each turn is an order of its own, which holds all that a worker needs. Nobody can be asked anything: the agent may do
//! what an engine may that does not ask. Calls that record something are recorded when the result comes.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::frames::{Ask, Asked, BatchOrder, Hello, NumberedFact, OfSession, PROTOCOL, is_root, method, moved};
use super::link::{aside, is_set};
use super::{Launch, Options, attached};
use crate::engine::child::last_line;
use crate::engine::{Adapter, AdapterSession, EngineError, Fact, Opening, Reply, Request, ToolCall, backoff, spawn};
use crate::env::unique_id;
use crate::model::{Attachment, AvailableModels, SandboxLevel, from_json, to_json};

/// What stands for the order's ref in a launcher's arguments.
const PLACEHOLDER: &str = "{order}";
/// How long a launcher may take to accept a job.
const SUBMITTING: Duration = Duration::from_secs(120);
/// The waits between two looks for the result: a remote should not be asked more often.
const FIRST_LOOK: Duration = Duration::from_millis(500);
const DOUBLINGS: u32 = 5;
/// How long a job that has begun may say nothing. It says that it is there each minute.
const SILENCE: Duration = Duration::from_secs(900);
/// When it is said that no job has begun.
const NOT_BEGUN: Duration = Duration::from_secs(60);
/// How long a job's order may take to be withdrawn when its session ends.
const CLOSING: Duration = Duration::from_secs(10);

/// Where orders and results lie.
pub(crate) trait Mailbox: Send + Sync {
    /// The id of an order of this agent whose result was not taken yet, and whether a job has begun with it.
    fn pending(&self) -> Result<Option<(String, bool)>, String>;

    /// The ref of an order.
    fn reference(&self, id: &str) -> String;

    fn send(&self, id: &str, order: &[u8], base: &str) -> Result<(), String>;

    /// The result so far, unless it is the one with this identity.
    fn receive(&self, id: &str, known: Option<&str>) -> Result<Option<Received>, String>;

    /// Takes an order and its result away.
    fn clear(&self, id: &str) -> Result<(), String>;

    /// The number of turns that the agent has completed.
    fn turns(&self) -> usize;

    fn count_turn(&self);

    /// Whether a call only records something, which can be done when the result comes.
    fn records(&self, call: &ToolCall) -> bool;
}

/// A result so far.
pub(crate) struct Received {
    pub(crate) identity: String,
    /// As a worker says them: a JSON message a line.
    pub(crate) facts: Vec<u8>,
    /// A bundle.
    pub(crate) work: Option<NamedTempFile>,
}

pub(crate) struct Batch {
    options: Arc<Options>,
    mailbox: Arc<dyn Mailbox>,
    /// By session.
    earlier: Mutex<BTreeMap<String, Earlier>>,
}

/// Prompts and answers of a session: the next job knows nothing of the last one's.
type Earlier = Arc<Mutex<Vec<(String, String)>>>;

pub(crate) struct Session {
    options: Arc<Options>,
    mailbox: Arc<dyn Mailbox>,
    opening: Opening,
    facts: mpsc::UnboundedReceiver<Fact>,
    told: mpsc::UnboundedSender<Fact>,
    stop: watch::Sender<bool>,
    earlier: Earlier,
    running: Option<JoinHandle<()>>,
}

/// The work on one turn.
struct Turn {
    options: Arc<Options>,
    mailbox: Arc<dyn Mailbox>,
    opening: Opening,
    told: mpsc::UnboundedSender<Fact>,
    stop: watch::Receiver<bool>,
    earlier: Earlier,
}

/// A line of a result.
#[derive(Deserialize)]
struct Line {
    method: String,
    #[serde(default)]
    params: Value,
}

/// What has been read of a result.
#[derive(Default)]
struct Reading {
    /// What was read: a job that is started again begins from the start.
    seen: Vec<u8>,
    /// The project's root there.
    root: Option<String>,
    /// The last message.
    answer: String,
    /// The commit that its bundle brings.
    work: Option<String>,
}

impl Batch {
    pub(crate) fn new(options: Options, mailbox: Arc<dyn Mailbox>) -> Self {
        Self { options: Arc::new(options), mailbox, earlier: Mutex::default() }
    }

    pub(crate) fn engine(&self) -> &str {
        &self.options.order.engine
    }

    pub(crate) fn version(&self) -> String {
        format!("in a job on {}", self.options.launch.host)
    }
}

impl Adapter for Batch {
    type Session = Session;

    async fn open(&self, opening: Opening) -> Result<Session, EngineError> {
        let earlier = match opening.resume {
            true => Arc::clone(self.earlier.lock().entry(opening.session.clone()).or_default()),
            false => Earlier::default(),
        };
        self.earlier.lock().insert(opening.session.clone(), Arc::clone(&earlier));
        if opening.resume && earlier.lock().is_empty() {
            let mailbox = Arc::clone(&self.mailbox);
            let pending = aside(move || mailbox.pending()).await;
            if !pending.is_ok_and(|pending| pending.is_some()) {
                let reason = format!("no job on {} is at work on it", self.options.launch.host);
                return Err(EngineError::NotResumable { session: opening.session, reason });
            }
        }
        let (told, facts) = mpsc::unbounded_channel();
        Ok(Session {
            options: Arc::clone(&self.options),
            mailbox: Arc::clone(&self.mailbox),
            opening,
            facts,
            told,
            stop: watch::Sender::new(false),
            earlier,
            running: None,
        })
    }

    async fn offer(&self) -> AvailableModels {
        AvailableModels { engine: self.options.order.engine.clone(), ..AvailableModels::default() }
    }

    async fn stop(self) {}
}

impl AdapterSession for Session {
    fn model(&self) -> &str {
        &self.opening.spec.model.id
    }

    fn reports_tools(&self) -> bool {
        true
    }

    fn sandbox(&self) -> SandboxLevel {
        match self.options.order.requires_sandbox {
            true => self.options.order.sandbox,
            // What the job has is not known before it begins.
            false => SandboxLevel::Rules,
        }
    }

    async fn send(&mut self, prompt: &str, attachments: &[Attachment]) -> Result<(), EngineError> {
        let attachments = attached(&self.options.launch.directory, attachments)?;
        // An earlier turn may have been stopped.
        self.stop = watch::Sender::new(false);
        let turn = Turn {
            options: Arc::clone(&self.options),
            mailbox: Arc::clone(&self.mailbox),
            opening: self.opening.clone(),
            told: self.told.clone(),
            stop: self.stop.subscribe(),
            earlier: Arc::clone(&self.earlier),
        };
        let send = OfSession { session: 1, text: prompt.to_owned(), attachments, turn: 1 };
        self.running = Some(spawn(turn.run(send)));
        Ok(())
    }

    async fn next(&mut self) -> Fact {
        let gone = || Fact::Gone(format!("{} is gone", self.options.launch.host));
        self.facts.recv().await.unwrap_or_else(gone)
    }

    async fn abort(&mut self) {
        self.stop.send_replace(true);
    }

    async fn close(self) -> Vec<String> {
        self.stop.send_replace(true);
        if let Some(running) = self.running {
            let _ = timeout(CLOSING, running).await;
        }
        Vec::new()
    }
}

impl Turn {
    async fn run(self, send: OfSession) {
        let mut stop = self.stop.clone();
        let (prompt, mut reading) = (send.text.clone(), Reading::default());
        // Until it is known what is on the remote, nothing stops it: it would stay there.
        let last = match self.order(send).await {
            Err(why) => Fact::Failed(why),
            Ok((id, is_new)) => {
                let worked = tokio::select! {
                    biased;
                    () = is_set(&mut stop) => None,
                    worked = self.work(&id, is_new, &mut reading) => Some(worked),
                };
                match worked {
                    Some(last) => last.unwrap_or_else(Fact::Failed),
                    None => {
                        // A job that has not begun finds no order, and one at work sees that it was withdrawn.
                        self.clear(&id).await;
                        Fact::Failed("it was stopped".to_owned())
                    }
                }
            }
        };
        if matches!(last, Fact::Idle) {
            self.earlier.lock().push((prompt, reading.answer));
            self.mailbox.count_turn();
        }
        self.tell(last);
    }

    fn tell(&self, fact: Fact) {
        // The session may be closed.
        let _ = self.told.send(fact);
    }

    async fn clear(&self, id: &str) {
        let (mailbox, id) = (Arc::clone(&self.mailbox), id.to_owned());
        if let Err(why) = aside(move || mailbox.clear(&id)).await {
            self.tell(Fact::Warning(format!("the order stays on the remote: {why}")));
        }
    }

    /// The id of the order of this turn, and whether a job has to be started.
    async fn order(&self, send: OfSession) -> Result<(String, bool), String> {
        let (mailbox, host) = (Arc::clone(&self.mailbox), &self.options.launch.host);
        match aside(move || mailbox.pending()).await? {
            Some((pending, has_begun)) => {
                self.tell(Fact::Warning(format!("the job that {host} was given before is asked for its result")));
                // Perhaps it was never handed in. Of two jobs, only one carries the order out.
                Ok((pending, !has_begun))
            }
            None => Ok((self.publish(send).await?, true)),
        }
    }

    /// Returns the turn's last fact.
    async fn work(&self, sent: &str, is_new: bool, reading: &mut Reading) -> Result<Fact, String> {
        let Launch { host, .. } = &self.options.launch;
        if is_new && let Err(why) = launch_job(&self.options.launch, &self.mailbox.reference(sent)).await {
            self.clear(sent).await;
            return Err(format!("host {host}: {why}"));
        }
        let mut is_late = false;
        let lease = Duration::from_secs(self.options.order.lease);
        let (mut known, mut looks, mut failing, mut heard) = (None, 0, None, Instant::now());
        loop {
            looks += 1;
            sleep(backoff(FIRST_LOOK, looks.min(DOUBLINGS))).await;
            let (mailbox, of, before) = (Arc::clone(&self.mailbox), sent.to_owned(), known.clone());
            let received = match aside(move || mailbox.receive(&of, before.as_deref())).await {
                Ok(received) => received,
                Err(why) => {
                    if failing.is_none() {
                        self.tell(Fact::Warning(format!("the result cannot be looked for: {why}")));
                    }
                    if failing.get_or_insert_with(Instant::now).elapsed() > lease {
                        return Err(format!("the result cannot be looked for: {why}"));
                    }
                    continue;
                }
            };
            failing = None;
            // Before it begins, a job may wait for as long as the run does.
            self.tell(Fact::Alive);
            let Some(Received { identity, facts, work }) = received else {
                if known.is_some() && heard.elapsed() > SILENCE {
                    let minutes = SILENCE.as_secs() / 60;
                    let lost = Fact::Gone(format!("its job on {host} has said nothing for {minutes} min"));
                    self.clear(sent).await;
                    return Ok(lost);
                }
                if known.is_none() && heard.elapsed() > NOT_BEGUN && !is_late {
                    is_late = true;
                    let reference = self.mailbox.reference(sent);
                    self.tell(Fact::Warning(format!("no job of {host} has begun yet with its order {reference}")));
                }
                continue;
            };
            if known.is_none() {
                looks = 0;
            }
            (known, heard) = (Some(identity), Instant::now());
            let read = self.read(facts, reading);
            if let Some(last) = read.transpose() {
                if let (Some(commit), Some(file)) = (reading.work.take(), work) {
                    let mirror = Arc::clone(&self.options.mirror);
                    let is_id = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
                    let take = move || match is_id {
                        true => mirror.take(file.path(), &commit),
                        false => Err("it names no commit".to_owned()),
                    };
                    // What could not be taken stays there, for `--resume` to try again.
                    let not_taken = |why| {
                        let host = &self.options.launch.host;
                        format!("what it changed could not be taken from {host}: {why}; `squad cancel` drops it")
                    };
                    aside(take).await.map_err(not_taken)?;
                }
                self.clear(sent).await;
                return last;
            }
        }
    }

    /// Leaves an order on the remote. Returns its id.
    async fn publish(&self, mut send: OfSession) -> Result<String, String> {
        let Options { order, root, mirror, .. } = &*self.options;
        let (reply, may_act) = Reply::channel();
        self.tell(Fact::Request(Request::Unasked(reply)));
        let may_act = may_act.await.unwrap_or(false);
        let told =
            |(asked, said): &(String, String)| format!("## You were asked\n\n{asked}\n\n## You answered\n\n{said}\n\n");
        let earlier: String = self.earlier.lock().iter().map(told).collect();
        if !earlier.is_empty() {
            send.text = format!("# Earlier in this session\n\n{earlier}# Now\n\n{}", send.text);
        }
        // Its end is random.
        let unique = unique_id().simple().to_string();
        let (mirror, mut order) = (Arc::clone(mirror), order.clone());
        order.base = aside(move || mirror.base()).await?;
        order.id = format!("{}-{}", order.id, &unique[20..]);
        order.budget = self.options.allowance.lease();
        let opening = Opening { resume: false, asks: false, ..self.opening.clone() };
        let (id, base) = (order.id.clone(), order.base.clone());
        let turns = self.mailbox.turns();
        let order = BatchOrder { order, root: root.clone(), opening, send, turns, may_act };
        let order = to_json(&order).map_err(|error| error.to_string())?.into_bytes();
        let (mailbox, of) = (Arc::clone(&self.mailbox), id.clone());
        aside(move || mailbox.send(&of, &order, &base)).await?;
        self.options.allowance.has_arrived();
        Ok(id)
    }

    /// Passes on what is new. Returns the turn's last fact, if it is there.
    fn read(&self, facts: Vec<u8>, reading: &mut Reading) -> Result<Option<Fact>, String> {
        let unread = |error: serde_json::Error| format!("its result cannot be read: {error}");
        if !facts.starts_with(&reading.seen) {
            *reading = Reading::default();
        }
        let read = reading.seen.len();
        reading.seen = facts;
        let new = reading.seen.get(read..).unwrap_or_default();
        for line in new.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Line { method, params } = from_json(line).map_err(unread)?;
            let params = match &reading.root {
                Some(there) => moved(params, there, &self.options.root),
                None => params,
            };
            match &*method {
                method::HELLO => {
                    let Hello { protocol, version, .. } = serde_json::from_value(params).map_err(unread)?;
                    if protocol != PROTOCOL {
                        let own = env!("CARGO_PKG_VERSION");
                        return Err(format!("its squad {version} does not understand this one, {own}"));
                    }
                }
                method::BEGIN => {
                    let root = params["root"].as_str().filter(|root| is_root(root, &self.options.order.run));
                    reading.root = Some(root.ok_or("it names no folder of this run's")?.to_owned());
                }
                method::ASK => {
                    let Ask { asked, .. } = serde_json::from_value(params).map_err(unread)?;
                    // All else was answered there.
                    if matches!(&asked, Asked::Tool(call) if self.mailbox.records(call)) {
                        self.tell(Fact::Request(asked.request(|_| ())));
                    }
                }
                method::WORK => reading.work = params["commit"].as_str().map(str::to_owned),
                method::FACT => {
                    let NumberedFact { fact, .. } = serde_json::from_value(params).map_err(unread)?;
                    if fact.is_last() {
                        return Ok(Some(fact));
                    }
                    if let Fact::Message(text) = &fact {
                        reading.answer.clone_from(text);
                    }
                    self.tell(fact);
                }
                // Of a newer squad.
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Runs the launcher to its end. Without one, something else looks for orders.
async fn launch_job(launch: &Launch, reference: &str) -> Result<(), String> {
    let Some(program) = &launch.program else { return Ok(()) };
    let mut command = Command::from(program.command());
    command.args(launch.arguments.iter().map(|argument| argument.replace(PLACEHOLDER, reference)));
    command.current_dir(&launch.directory).env_clear().envs(&launch.variables).kill_on_drop(true);
    let shown = program.path().display();
    let ended = timeout(SUBMITTING, command.stdin(Stdio::null()).output()).await;
    let ended = ended.map_err(|_| format!("{shown} did not end within {} s", SUBMITTING.as_secs()))?;
    let ended = ended.map_err(|error| format!("{shown}: {error}"))?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!("{shown} ended with {}: {}", ended.status, last_line(&ended.stderr))),
    }
}
