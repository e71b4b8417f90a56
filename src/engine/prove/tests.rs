//! The suite, against an engine that lies in one point at a time.

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;
use crate::engine::{Reply, ToolCall};
use crate::model::{AvailableModels, Usage};

/// An engine inside the test that keeps all claims it can keep there, except one.
struct Liar {
    /// Every turn fails before anything is tried.
    is_useless: bool,
    lie: Option<Claim>,
    scripts: Arc<parking_lot::Mutex<std::collections::VecDeque<Turn>>>,
    directory: PathBuf,
}

struct LiarSession {
    engine: Arc<Liar>,
    facts: mpsc::UnboundedReceiver<Fact>,
    sender: mpsc::UnboundedSender<Fact>,
    messages: mpsc::UnboundedSender<String>,
    resumed: bool,
}

struct World {
    is_useless: bool,
    folder: TempDir,
    plain: PathBuf,
    repository: PathBuf,
    lie: Option<Claim>,
    model: LoopbackModel,
}

impl World {
    async fn new(lie: Option<Claim>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let (plain, repository) = (at("plain"), at("repository"));
        fs::create_dir(&plain).and_then(|()| fs::create_dir(&repository)).expect("folders");
        let model = LoopbackModel::start().await.expect("loopback");
        Self { plain, repository, folder, lie, model, is_useless: false }
    }
}

impl Stage for World {
    type Engine = Arc<Liar>;

    async fn start(&self, directory: &Path, turns: &[Turn]) -> Result<Arc<Liar>, EngineError> {
        let scripts = Arc::new(parking_lot::Mutex::new(turns.iter().cloned().collect()));
        Ok(Arc::new(Liar { is_useless: self.is_useless, lie: self.lie, scripts, directory: directory.to_owned() }))
    }

    fn model(&self) -> &LoopbackModel {
        &self.model
    }

    fn model_name(&self) -> &str {
        MODEL
    }

    fn directories(&self) -> (&Path, &Path) {
        (&self.plain, &self.repository)
    }

    fn run(&self) -> &str {
        self.folder.path().to_str().expect("UTF-8")
    }

    fn tool(&self) -> ToolSpec {
        ToolSpec { name: "squad_status".into(), description: "".into(), parameters: json!({ "type": "object" }) }
    }
}

impl Adapter for Arc<Liar> {
    type Session = LiarSession;

    async fn open(&self, opening: Opening) -> Result<LiarSession, EngineError> {
        if opening.directory.ends_with("repository") && self.lie == Some(Claim::RepositoryHooks) {
            fs::write(opening.directory.join("RAN_hook"), "").expect("a file");
        }
        let (sender, facts) = mpsc::unbounded_channel();
        let (messages, _) = mpsc::unbounded_channel();
        Ok(LiarSession { engine: Arc::clone(self), facts, sender, messages, resumed: opening.resume })
    }

    async fn offer(&self) -> AvailableModels {
        AvailableModels::default()
    }

    async fn stop(self) {}
}

impl AdapterSession for LiarSession {
    fn model(&self) -> &str {
        MODEL
    }

    fn reports_tools(&self) -> bool {
        true
    }

    fn sandbox(&self) -> crate::model::SandboxLevel {
        crate::model::SandboxLevel::Rules
    }

    async fn send(&mut self, _: &str, _: &[crate::model::Attachment]) -> Result<(), EngineError> {
        let turn = self.engine.scripts.lock().pop_front().expect("a turn for each prompt");
        let (messages, heard) = mpsc::unbounded_channel();
        self.messages = messages;
        tokio::spawn(
            Play { engine: Arc::clone(&self.engine), facts: self.sender.clone(), heard, resumed: self.resumed }
                .turn(turn),
        );
        Ok(())
    }

    async fn steer(&mut self, text: &str) -> Result<bool, EngineError> {
        let lies = self.engine.lie == Some(Claim::MessageWhileWorking);
        Ok(lies || self.messages.send(text.to_owned()).is_ok())
    }

    async fn next(&mut self) -> Fact {
        self.facts.recv().await.expect("the session holds a sender")
    }

    async fn abort(&mut self) {}

    async fn close(self) -> Vec<String> {
        Vec::new()
    }
}

struct Play {
    engine: Arc<Liar>,
    facts: mpsc::UnboundedSender<Fact>,
    heard: mpsc::UnboundedReceiver<String>,
    resumed: bool,
}

impl Play {
    fn tell(&self, fact: Fact) {
        let _ = self.facts.send(fact);
    }

    fn lies(&self, claim: Claim) -> bool {
        self.engine.lie == Some(claim)
    }

    async fn turn(mut self, turn: Turn) {
        if self.engine.is_useless {
            return self.tell(Fact::Failed("the model cannot be reached".to_owned()));
        }
        for deed in turn.0 {
            match deed {
                Deed::Write(path, text) => {
                    if self.may(&path, Claim::RefusedWrite).await {
                        fs::write(path, text).expect("a file");
                    }
                }
                Deed::Run(line) => self.run(&line).await,
                Deed::Delegate(inner) => {
                    if let (true, Some(Deed::Run(line))) = (self.lies(Claim::RefusedToSubagent), inner.0.first()) {
                        self.shell(line);
                    }
                }
                Deed::Tool(name, arguments) => {
                    let (reply, answer) = Reply::channel();
                    self.tell(Fact::Request(Request::Tool(
                        ToolCall { call: "1".into(), tool: name, arguments },
                        reply,
                    )));
                    let answer = answer.await.expect("squad answers").text;
                    let text = if self.lies(Claim::OwnTool) { String::new() } else { answer };
                    self.tell(Fact::Message(text));
                }
                Deed::Hear => {
                    if !self.lies(Claim::MessageWhileWorking) && !self.lies(Claim::AllowedCommand) {
                        let heard = self.heard.recv().await.expect("a message");
                        self.tell(Fact::Message(heard));
                    }
                }
                Deed::Say => {}
            }
        }
        let tokens = u64::from(!self.lies(Claim::Usage));
        self.tell(Fact::Usage(Usage { input_tokens: tokens, ..Usage::default() }));
        self.tell(Fact::Idle);
    }

    async fn may(&self, detail: &str, claim: Claim) -> bool {
        let (reply, answer) = Reply::channel();
        let access = crate::model::Access::Write;
        self.tell(Fact::Request(Request::Permission {
            call: None,
            access,
            tool: "write".into(),
            detail: detail.to_owned(),
            reply,
        }));
        match answer.await {
            Ok(Approval::Allow) => true,
            Ok(Approval::Deny(_)) => self.lies(claim),
            Err(_) => self.lies(Claim::UnansweredRequest),
        }
    }

    async fn run(&self, line: &str) {
        let (reply, answer) = Reply::channel();
        let call = ToolCall { call: "1".into(), tool: "bash".into(), arguments: json!({ "command": line }) };
        self.tell(Fact::Request(Request::BeforeTool(call, reply)));
        let changed = answer.await.expect("squad answers").expect("it allows");
        let line = match changed {
            Some(changed) if !self.lies(Claim::ChangedArguments) => {
                changed["command"].as_str().expect("text").to_owned()
            }
            _ => line.to_owned(),
        };
        let claim = if self.resumed { Claim::RefusedAfterResume } else { Claim::RefusedCommand };
        if self.may(&line, claim).await && !self.lies(Claim::AllowedCommand) {
            self.shell(&line);
        }
    }

    /// Makes the file that the line does.
    fn shell(&self, line: &str) {
        let file = line.split_once("> ").map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
        fs::write(self.engine.directory.join(file.expect("a file")), "proof").expect("a file");
    }
}

/// What cannot hold of an engine without a process and without a model.
const BEYOND: [Claim; 3] = [Claim::Resume, Claim::RefusedAfterResume, Claim::EndOfInput];

fn broken(answers: &[Answer]) -> Vec<Claim> {
    answers.iter().filter(|answer| answer.tried && !answer.holds).map(|answer| answer.claim).collect()
}

#[tokio::test]
async fn every_lie_is_caught_and_no_other_claim_suffers() {
    for lie in std::iter::once(None).chain(Claim::ALL.iter().copied().map(Some)) {
        if lie.is_some_and(|lie| BEYOND.contains(&lie) || lie == Claim::NoOrphans) {
            continue;
        }
        let world = World::new(lie).await;
        let mut told = Vec::new();
        let answers = prove(&world, |answer| told.push(answer.clone())).await.expect("it starts");
        assert_eq!(told, answers);
        let mut claims: Vec<Claim> = answers.iter().map(|answer| answer.claim).collect();
        claims.sort_unstable();
        assert_eq!(claims, Claim::ALL);
        let mut failed = broken(&answers);
        assert!(BEYOND.iter().all(|claim| answers.iter().any(|it| it.claim == *claim && !it.tried && !it.holds)));
        // Without commands there is nothing that a hook could change, and none during which a message could come.
        if lie == Some(Claim::AllowedCommand) {
            failed.retain(|claim| !matches!(claim, Claim::ChangedArguments | Claim::MessageWhileWorking));
        }
        assert_eq!(failed, Vec::from_iter(lie), "{answers:#?}");
    }
}

#[tokio::test]
async fn what_was_not_tried_is_not_proved() {
    let world = World { is_useless: true, ..World::new(None).await };
    let answers = prove(&world, |_| {}).await.expect("it starts");
    assert!(answers.iter().all(|answer| !answer.holds), "{answers:#?}");
    assert!(broken(&answers).iter().all(|claim| !claim.is_obedience()), "{answers:#?}");
}
