//! Tries what squad relies on in an engine, with its real program and a model on loopback that does what it is told.
//!
//! ```text
//! Stage ─ start ─→ engine ── session ── turn: one deed of the model ─→ what is on disk, what the model was told
//! ```
//!
//! Each claim is answered by what was seen, never by what the engine says of itself.

mod model;
#[cfg(test)]
mod tests;
mod turn;
pub(super) mod wires;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

pub(crate) use model::{LoopbackModel, MODEL};
pub(crate) use turn::{Deed, Turn};

use super::processes::Processes;
use super::{Adapter, AdapterSession, Approval, EngineError, Fact, Opening, Request, ToolResult, ToolSpec};
use crate::model::{Claim, ModelChoice, ModelLayer, SessionSpec, Slug, Tier, ToolChoice, first_line};

/// How long a turn may take, beyond every start of a program that was seen.
const TURN: Duration = Duration::from_secs(60);
/// How long the model's command lasts while a message is sent, or the program killed.
const WORK: u32 = 3;
/// A program that has not ended by then is sent a signal.
const ENDS: Duration = Duration::from_secs(2);
/// How often it is looked whether something has happened.
const POLL: Duration = Duration::from_millis(20);

const SESSION: &str = "squad-proof";

/// Where an engine is tried.
pub(crate) trait Stage {
    type Engine: Adapter;

    /// Starts the engine in a folder. An engine without a model is given what its agent will do.
    async fn start(&self, directory: &Path, turns: &[Turn]) -> Result<Self::Engine, EngineError>;

    /// The model that it uses.
    fn model(&self) -> &LoopbackModel;

    /// As the engine calls it.
    fn model_name(&self) -> &str;

    /// A folder to work in that configures nothing, and one whose repository tries to: each of its files leaves a file
    /// named `RAN_` and so on when it is heeded.
    fn directories(&self) -> (&Path, &Path);

    /// The value of `SQUAD_RUN`, by which the engine's processes are found.
    fn run(&self) -> &str;

    /// One of squad's tools.
    fn tool(&self) -> ToolSpec;
}

/// Whether a claim is true, and what was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) claim: Claim,
    pub(crate) holds: bool,
    /// Whether it came to that: what was not tried neither holds nor is broken.
    pub(crate) tried: bool,
    /// In words.
    pub(crate) seen: String,
}

/// Tries all claims, and tells each as it is answered.
///
/// # Errors
///
/// The engine does not start, or opens no session.
pub(crate) async fn prove<S: Stage>(stage: &S, tell: impl FnMut(&Answer)) -> Result<Vec<Answer>, EngineError> {
    let mut proof = Proof { stage, answers: Vec::new(), tell, seen: Seen::default() };
    proof.claims().await?;
    Ok(proof.answers)
}

struct Proof<'a, S, T> {
    stage: &'a S,
    answers: Vec<Answer>,
    tell: T,
    seen: Seen,
}

/// What was seen over all turns.
#[derive(Default)]
struct Seen {
    tokens: u64,
    /// A turn's end told that the program that worked on it had ended.
    exited: bool,
}

/// How squad answers in a turn.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    Allow,
    Refuse,
    /// It lets go of the request.
    Nothing,
}

/// What else squad does in a turn.
#[derive(Clone, Copy, PartialEq)]
enum Meanwhile {
    Nothing,
    /// Sends a message while the model's command runs.
    Message,
    /// Kills the program then.
    Kill,
}

/// What a turn left.
struct Turned {
    /// What the engine reported, in words.
    told: String,
    /// Why it did not end by itself.
    failure: Option<String>,
    /// Whether what squad was to do meanwhile was done.
    meanwhile: bool,
    /// How often the model had been asked before.
    asked: usize,
    /// How often squad was asked whether the engine may make a call.
    requests: usize,
}

/// What stands in the answer of squad's tool, in the message, and in the first prompt.
const ANSWERED: &str = "proof-answer-7c1e";
const MESSAGE: &str = "proof-message-93ab";
/// Files of commands that last a while.
const WORKS_ON_MESSAGE: &str = "message.txt";
const WORKS_ON_KILL: &str = "killed.txt";
const CHANGED: &str = "changed.txt";
const ASKED: &str = "asked.txt";

/// The turns of a proof, in order. `claims` names them.
fn turns(directory: &Path, tool: &str) -> [Turn; 9] {
    let path = |name: &str| directory.join(name).display().to_string();
    let one = |deed: Deed| Turn(vec![deed, Deed::Say]);
    let marked = |name: &str| Deed::Run(format!("echo proof > {name}"));
    [
        one(Deed::Write(path("refused.txt"), "proof".to_owned())),
        one(marked("refused-command.txt")),
        one(Deed::Delegate(one(marked("delegated.txt")))),
        one(marked("unanswered.txt")),
        one(marked("allowed.txt")),
        one(marked(ASKED)),
        one(Deed::Tool(tool.to_owned(), json!({}))),
        Turn(vec![Deed::Run(format!("echo proof > {WORKS_ON_MESSAGE} && sleep {WORK}")), Deed::Hear]),
        one(Deed::Run(format!("echo proof > {WORKS_ON_KILL} && sleep 30 && echo proof > survived.txt"))),
    ]
}

impl<S: Stage, T: FnMut(&Answer)> Proof<'_, S, T> {
    async fn claims(&mut self) -> Result<(), EngineError> {
        let (plain, repository) = self.stage.directories();
        let all = turns(plain, &self.stage.tool().name);
        let [refused_write, refused_command, delegated, unanswered, allowed, changed, own_tool, message, killed] = &all;
        let (engine, mut session) = self.open(plain, false, &all).await?;
        let is_there = |name: &str| plain.join(name).exists();

        for (claim, turn, file) in [
            (Claim::RefusedWrite, refused_write, "refused.txt"),
            (Claim::RefusedCommand, refused_command, "refused-command.txt"),
            (Claim::RefusedToSubagent, delegated, "delegated.txt"),
        ] {
            let turned = self.turn(&mut session, turn, Answers::Refuse, Meanwhile::Nothing).await;
            self.refused(claim, is_there(file), file, &turned);
        }
        let turned = self.turn(&mut session, unanswered, Answers::Nothing, Meanwhile::Nothing).await;
        self.refused(Claim::UnansweredRequest, is_there("unanswered.txt"), "unanswered.txt", &turned);

        let turned = self.turn(&mut session, allowed, Answers::Allow, Meanwhile::Nothing).await;
        let seen = turned.seen(&format!("`allowed.txt` is {}", there(is_there("allowed.txt"))));
        self.answer(Claim::AllowedCommand, is_there("allowed.txt"), seen);

        let turned = self.turn(&mut session, changed, Answers::Allow, Meanwhile::Nothing).await;
        let (changed, asked) = (is_there(CHANGED), is_there(ASKED));
        let seen = format!("`{CHANGED}` is {}, `{ASKED}`, as the model asked, is {}", there(changed), there(asked));
        self.answer(Claim::ChangedArguments, changed && !asked, turned.seen(&seen));

        let turned = self.turn(&mut session, own_tool, Answers::Allow, Meanwhile::Nothing).await;
        let held = self.heard(ANSWERED, &turned);
        self.answer(Claim::OwnTool, held, turned.seen(&format!("the model was {} the answer", told(held))));

        let turned = self.turn(&mut session, message, Answers::Allow, Meanwhile::Message).await;
        let held = turned.meanwhile && self.heard(MESSAGE, &turned);
        let seen = match turned.meanwhile {
            true => format!("the model was {} the message in the same turn", told(held)),
            false => "it takes no message while it works".to_owned(),
        };
        self.answer(Claim::MessageWhileWorking, held, turned.seen(&seen));

        let turned = self.turn(&mut session, killed, Answers::Allow, Meanwhile::Kill).await;
        let ended = self.end(engine, session).await;
        if turned.meanwhile {
            self.resumed(plain).await;
        } else {
            for claim in [Claim::Resume, Claim::RefusedAfterResume] {
                let seen = turned.seen("there was no program to kill while it worked");
                self.answer_if(false, claim, false, seen);
            }
            self.ends(ended, is_there("allowed.txt"));
        }
        let tokens = self.seen.tokens;
        self.answer(Claim::Usage, tokens > 0, format!("{tokens} tokens in all"));
        self.hooks(repository).await;
        Ok(())
    }

    async fn open(
        &self,
        directory: &Path,
        resume: bool,
        turns: &[Turn],
    ) -> Result<(S::Engine, <S::Engine as Adapter>::Session), EngineError> {
        let engine = self.stage.start(directory, turns).await?;
        match engine.open(self.opening(directory, resume)).await {
            Ok(session) => Ok((engine, session)),
            Err(error) => {
                engine.stop().await;
                Err(error)
            }
        }
    }

    /// After its program was killed.
    async fn resumed(&mut self, plain: &Path) {
        let refused = Turn(vec![Deed::Run("echo proof > refused-again.txt".to_owned()), Deed::Say]);
        let orphan = Turn(vec![Deed::Run("sleep 1000 > /dev/null 2>&1 &".to_owned()), Deed::Say]);
        let opened = self.open(plain, true, &[refused.clone(), orphan.clone()]).await;
        let (engine, mut session) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.answer(Claim::Resume, false, error.to_string());
                for claim in [Claim::RefusedAfterResume, Claim::EndOfInput, Claim::NoOrphans] {
                    self.answer_if(false, claim, false, error.to_string());
                }
                return;
            }
        };
        let turned = self.turn(&mut session, &refused, Answers::Refuse, Meanwhile::Nothing).await;
        let knew = self.stage.model().was_told("refused-command.txt", turned.asked);
        let survived = plain.join("survived.txt").exists();
        let seen = match (knew, survived) {
            (_, true) => "the command that was killed has gone on",
            (true, _) => "the model was told of the earlier turns",
            (false, _) => "the model was told of no earlier turn",
        };
        self.answer(Claim::Resume, knew && !survived, turned.seen(seen));
        let file = "refused-again.txt";
        self.refused(Claim::RefusedAfterResume, plain.join(file).exists(), file, &turned);
        let turned = self.turn(&mut session, &orphan, Answers::Allow, Meanwhile::Nothing).await;
        let ended = self.end(engine, session).await;
        self.ends(ended, self.told(&turned));
    }

    /// Ends the session and the engine. Returns how long that took; `None`: there was no process.
    async fn end(&self, engine: S::Engine, session: <S::Engine as Adapter>::Session) -> Option<Duration> {
        let has_process = self.processes() > 0;
        let begun = Instant::now();
        session.close().await;
        engine.stop().await;
        has_process.then(|| begun.elapsed())
    }

    /// `tried`: it was left something to end.
    fn ends(&mut self, ended: Option<Duration>, tried: bool) {
        let is_used = self.stage.model().asked() > 0;
        let (is_tried, held, seen) = match ended {
            Some(took) => (true, took < ENDS, format!("after {} ms", took.as_millis())),
            None if self.seen.exited => (is_used, true, "its process ended with each turn".to_owned()),
            None => (false, false, "it has no process".to_owned()),
        };
        self.answer_if(is_tried, Claim::EndOfInput, held, seen);
        let left = self.processes();
        self.answer_if(tried, Claim::NoOrphans, left == 0, format!("{left} processes are left"));
    }

    /// In a repository that configures engines.
    async fn hooks(&mut self, repository: &Path) {
        let turn = Turn(vec![Deed::Run("echo proof > here.txt".to_owned()), Deed::Say]);
        // That it is not started there is an answer too; that it does not work is none.
        let refused = |error: EngineError| (true, format!("it is not started there: {error}"));
        let (is_tried, seen) = match self.open(repository, false, std::slice::from_ref(&turn)).await {
            Err(error) => refused(error),
            Ok((engine, mut session)) => {
                let turned = self.turn(&mut session, &turn, Answers::Allow, Meanwhile::Nothing).await;
                session.close().await;
                engine.stop().await;
                let worked = repository.join("here.txt").exists() || self.told(&turned);
                (worked, turned.seen(if worked { "it worked there" } else { "it did nothing there" }))
            }
        };
        let names = fs::read_dir(repository).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut ran: Vec<String> = names.filter(|name| name.starts_with("RAN_")).collect();
        ran.sort_unstable();
        let text = if ran.is_empty() { seen } else { format!("it ran {}", ran.join(", ")) };
        self.answer_if(is_tried || !ran.is_empty(), Claim::RepositoryHooks, ran.is_empty(), text);
    }

    fn answer(&mut self, claim: Claim, holds: bool, seen: String) {
        self.answer_if(true, claim, holds, seen);
    }

    fn answer_if(&mut self, tried: bool, claim: Claim, holds: bool, seen: String) {
        let answer = Answer { claim, holds: holds && tried, tried, seen: first_line(&seen, 300) };
        (self.tell)(&answer);
        self.answers.push(answer);
    }

    /// What was to be kept from happening has to have been tried: squad was asked, or the model was told how its call ended.
    fn refused(&mut self, claim: Claim, is_there: bool, file: &str, turned: &Turned) {
        let told = self.told(turned);
        let asked = match turned.requests {
            0 if told => "squad was not asked",
            0 => "it was not tried",
            _ => "squad was asked",
        };
        let tried = told || turned.requests > 0 || is_there;
        let seen = turned.seen(&format!("{asked}; `{file}` is {}", there(is_there)));
        self.answer_if(tried, claim, !is_there, seen);
    }

    /// Whether the model was told how its call ended: it is asked once for the call, and again with its result.
    fn told(&self, turned: &Turned) -> bool {
        self.stage.model().asked() >= turned.asked + 2
    }

    fn opening(&self, directory: &Path, resume: bool) -> Opening {
        Opening {
            session: SESSION.to_owned(),
            spec: SessionSpec {
                agent: Slug::coordinator(),
                name: "Proof".to_owned(),
                role: "Proof".to_owned(),
                tier: Tier::Standard,
                prompt: "You do what you are told.".to_owned(),
                team: String::new(),
                items: Vec::new(),
                context: String::new(),
                model: ModelChoice::new(self.stage.model_name(), ModelLayer::User),
                engine: None,
                tools: ToolChoice::All,
                denied_tools: Vec::new(),
                compaction_threshold: None,
                effort: None,
                compiled_hash: String::new(),
            },
            tools: vec![self.stage.tool()],
            directory: directory.to_owned(),
            resume,
            asks: false,
            form: None,
            caller: None,
        }
    }

    fn mark(&self) -> [String; 1] {
        [format!("SQUAD_RUN={}", self.stage.run())]
    }

    /// The engine's processes and those of its tools. Git's end by themselves.
    fn processes(&self) -> usize {
        Processes::read().carrying(&self.mark()).filter(|process| !process.is_git()).count()
    }

    /// Whether there was anything to kill.
    fn kill(&self) -> bool {
        Processes::read().carrying(&self.mark()).map(super::processes::Process::kill).filter(|killed| *killed).count()
            > 0
    }

    /// Whether the model was told this. An engine without one reports it.
    fn heard(&self, text: &str, turned: &Turned) -> bool {
        match self.stage.model().asked() {
            0 => turned.told.contains(text),
            _ => self.stage.model().was_told(text, turned.asked),
        }
    }

    async fn turn(
        &mut self,
        session: &mut <S::Engine as Adapter>::Session,
        turn: &Turn,
        answers: Answers,
        meanwhile: Meanwhile,
    ) -> Turned {
        let mut turned = Turned {
            told: String::new(),
            failure: None,
            meanwhile: meanwhile == Meanwhile::Nothing,
            asked: self.stage.model().asked(),
            requests: 0,
        };
        if let Err(error) = session.send(&turn.prompt(), &[]).await {
            turned.failure = Some(error.to_string());
            return turned;
        }
        let end = timeout(TURN, self.until_its_end(session, answers, meanwhile, &mut turned)).await;
        turned.failure = end.unwrap_or_else(|_| Some(format!("it has not ended within {} s", TURN.as_secs())));
        if turned.failure.is_some() && meanwhile != Meanwhile::Kill {
            session.abort().await;
        }
        turned
    }

    /// Why it failed.
    async fn until_its_end(
        &mut self,
        session: &mut <S::Engine as Adapter>::Session,
        answers: Answers,
        meanwhile: Meanwhile,
        turned: &mut Turned,
    ) -> Option<String> {
        let plain = self.stage.directories().0;
        let mut waits = match meanwhile {
            Meanwhile::Nothing => None,
            Meanwhile::Message => Some(plain.join(WORKS_ON_MESSAGE)),
            Meanwhile::Kill => Some(plain.join(WORKS_ON_KILL)),
        };
        let mut poll = tokio::time::interval(POLL);
        loop {
            let fact = tokio::select! {
                fact = session.next() => fact,
                _ = poll.tick(), if waits.is_some() => {
                    if waits.take_if(|file| file.exists()).is_some() {
                        turned.meanwhile = match meanwhile {
                            Meanwhile::Kill => self.kill(),
                            _ => self.message(session).await,
                        };
                    }
                    continue;
                }
            };
            match fact {
                Fact::Request(request) => {
                    turned.requests += usize::from(matches!(request, Request::Permission { .. }));
                    self.reply(request, answers);
                }
                Fact::Message(text) | Fact::ToolCompleted { detail: text, .. } => turned.told.push_str(&text),
                Fact::Usage(usage) => self.seen.tokens += usage.input_tokens + usage.output_tokens,
                Fact::Exited(_) => self.seen.exited = true,
                Fact::Idle => return None,
                Fact::Interrupted(reason) | Fact::Failed(reason) | Fact::Lost(reason) | Fact::Gone(reason) => {
                    return Some(reason);
                }
                Fact::NoQuota { reason, .. } | Fact::NoLogin { reason, .. } => return Some(reason),
                _ => {}
            }
        }
    }

    async fn message(&self, session: &mut <S::Engine as Adapter>::Session) -> bool {
        // An engine that says why it cannot is as good as one that cannot.
        session.steer(MESSAGE).await.unwrap_or(false) || session.notify(MESSAGE).await.unwrap_or(false)
    }

    fn reply(&self, request: Request, answers: Answers) {
        const REFUSED: &str = "this is a proof: it is refused";
        match request {
            Request::Tool(_, reply) => reply.send(ToolResult { ok: true, text: ANSWERED.to_owned() }),
            Request::BeforeTool(call, reply) => {
                let asked = call.arguments.to_string();
                let changed: Option<Value> = serde_json::from_str(&asked.replace(ASKED, CHANGED)).ok();
                reply.send(Ok(changed.filter(|changed| *changed != call.arguments)));
            }
            Request::Write(_, reply) => reply.send(None),
            Request::AfterTool(_, _, reply) => reply.send(None),
            Request::Question { reply, .. } => reply.send(None),
            Request::Permission { reply, .. } => match answers {
                Answers::Allow => reply.send(Approval::Allow),
                Answers::Refuse => reply.send(Approval::Deny(REFUSED.to_owned())),
                Answers::Nothing => drop(reply),
            },
            Request::Host(_, reply) => reply.send(Approval::Deny(REFUSED.to_owned())),
            Request::Unasked(reply) => match answers {
                Answers::Allow => reply.send(true),
                Answers::Refuse => reply.send(false),
                Answers::Nothing => drop(reply),
            },
        }
    }
}

impl Turned {
    /// With why the turn did not end as it should.
    fn seen(&self, what: &str) -> String {
        match &self.failure {
            Some(reason) => format!("{what}; the turn ended so: {reason}"),
            None => what.to_owned(),
        }
    }
}

fn there(is_there: bool) -> &'static str {
    if is_there { "there" } else { "not there" }
}

/// Whether the model was told something.
fn told(held: bool) -> &'static str {
    if held { "told" } else { "not told" }
}
