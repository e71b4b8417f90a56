//! Claude Code as it is, in sessions that squad governs, on a model that plays scripts, in a repository that tries to have
//! its way with it. `.ci/install-real-parts` installs it.

use std::fs;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::engine::command::real_tests::World;
use crate::engine::copilot::testing::{opening, show};
use crate::engine::copilot::{McpOffer, McpServer};
use crate::engine::{AdapterSession, Approval, Fact, Request, ToolResult};
use crate::model::{Attachment, ToolChoice};

/// An image of one dot.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What squad answers in a turn: with this reason, nothing that the policy decides on may be done.
#[derive(Default)]
struct Answers {
    refuses: Option<&'static str>,
    /// Arguments that a hook changes each command to.
    command: Option<&'static str>,
    /// What is written is kept by squad.
    keeps_writes: bool,
    /// What the model reads instead of each result.
    result: Option<&'static str>,
    answer: Option<&'static str>,
}

impl Answers {
    fn give(&self, request: Request) {
        match request {
            Request::Tool(call, reply) => {
                reply.send(ToolResult { ok: true, text: format!("{} for {}", call.arguments, call.tool) });
            }
            Request::BeforeTool(call, reply) => {
                let command = self.command.filter(|_| call.tool == "Bash");
                reply.send(Ok(command.map(|command| json!({ "command": command }))));
            }
            Request::Write(_, reply) => {
                reply.send(self.keeps_writes.then(|| ToolResult { ok: true, text: "squad has kept it".to_owned() }));
            }
            Request::Permission { reply, .. } => {
                reply.send(self.refuses.map_or(Approval::Allow, |reason| Approval::Deny(reason.to_owned())));
            }
            Request::AfterTool(_, _, reply) => reply.send(self.result.map(str::to_owned)),
            Request::Question { reply, .. } => reply.send(self.answer.map(str::to_owned)),
            Request::Unasked(reply) => reply.send(false),
            Request::Host(_, reply) => reply.send(Approval::Deny("it is not listed".to_owned())),
        }
    }

    /// The facts of a turn, as lines.
    async fn turn(&self, session: &mut Session, prompt: &str) -> Vec<String> {
        session.send(prompt, &[]).await.expect("it is taken");
        self.rest(session, |_| false).await
    }

    /// The facts up to the turn's last, or to the first like this.
    async fn rest(&self, session: &mut Session, is_last: impl Fn(&Fact) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let fact = session.next().await;
            let has_ended = matches!(
                fact,
                Fact::Idle | Fact::Interrupted(_) | Fact::NoQuota { .. } | Fact::Failed(_) | Fact::Lost(_)
            );
            let is_last = has_ended || is_last(&fact);
            lines.extend(Some(show(&fact)).filter(|line| line != "alive"));
            if let Fact::Request(request) = fact {
                self.give(request);
            }
            if is_last {
                return lines;
            }
        }
    }
}

fn engine(world: &World) -> Claude {
    Claude::start(world.options("claude")).expect("it is installed by .ci/install-real-parts")
}

fn opened(world: &World, tools: ToolChoice) -> Opening {
    Opening { directory: world.project(), ..opening("squad-ada", tools) }
}

async fn session(world: &World, engine: &Claude, resume: bool) -> Session {
    engine.open(Opening { resume, ..opened(world, ToolChoice::All) }).await.expect("a session")
}

/// The texts that a request shows the model.
fn shown(request: &Value) -> String {
    json!([request["system"], request["messages"]]).to_string()
}

fn has(lines: &[String], part: &str) -> bool {
    lines.iter().any(|line| line.contains(part))
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn an_agent_works_with_its_tools_and_ours_and_heeds_no_repository() {
    let world = World::new();
    let engine = engine(&world);
    let mut session = session(&world, &engine, false).await;
    let file = world.project().join("new.txt");
    let task = format!(
        "STEP tool:Bash {{\"command\":\"echo ${{SET_BY_REPOSITORY:-unset}} > made.txt; echo seen; exit 3\"}}\n\
         STEP tool:Write {{\"file_path\":\"{}\",\"content\":\"x\"}}\nSTEP tool:mcp__squad__squad_status {{\"a\":1}}\n\
         STEP say:The first.",
        file.display()
    );
    let lines = Answers::default().turn(&mut session, &task).await;
    assert_eq!(lines.last().map(String::as_str), Some("idle"), "{lines:#?}");
    for part in [
        "before Bash {",
        "may Shell Bash: echo $",
        "failed (3): Exit code 3\nseen",
        "may Write Write: /",
        "write /",
        "call squad_status {\"a\":1}",
        " squad_status ok: {\"a\":1} for squad_status",
        "delta The",
        "message The first.",
    ] {
        assert!(has(&lines, part), "{part}: {lines:#?}");
    }
    assert!(!has(&lines, "may Own"), "our own tools need no permission: {lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("end ")).count(), 3, "{lines:#?}");
    assert_eq!(
        lines.iter().filter(|line| line.starts_with("usage ")).count(),
        5,
        "one a call, and the cost: {lines:#?}"
    );
    assert_eq!(fs::read_to_string(world.project().join("made.txt")).expect("it was made"), "unset\n");
    assert_eq!(fs::read_to_string(file).expect("it was made"), "x");
    // What goes out before the task is ours, and little.
    let first = world.model.requests().first().expect("a request").clone();
    let (size, task) = (first.to_string().len(), task.len());
    assert!(size - task <= 30 * 1024, "{size} bytes");
    let tools: Vec<&str> =
        first["tools"].as_array().expect("a list").iter().filter_map(|t| t["name"].as_str()).collect();
    for tool in ["Agent", "Task", "Workflow", "ScheduleWakeup", "Skill", "CronCreate"] {
        assert!(!tools.contains(&tool), "{tools:?}");
    }
    let text = shown(&first);
    assert!(text.contains("You are Ada.") && text.contains("# Team") && !text.contains("Co-Authored-By"), "{text}");
    // A second message goes on in the same process.
    let lines = Answers::default().turn(&mut session, "/STEP of a path\nSTEP say:The second.").await;
    assert!(lines.contains(&"message The second.".to_owned()), "{lines:#?}");
    session.close().await;
    // And another process goes on in the session.
    let mut session = self::session(&world, &engine, true).await;
    let lines = Answers::default().turn(&mut session, "STEP say:The third.").await;
    assert!(lines.contains(&"message The third.".to_owned()), "{lines:#?}");
    assert!(shown(world.model.requests().last().expect("a request")).contains("The first."));
    session.close().await;
    assert_eq!(world.ran(), Vec::<String>::new());
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn what_is_refused_is_not_done() {
    let world = World::new();
    let engine = engine(&world);
    // The user allows everything.
    let settings = r#"{"permissions":{"allow":["Bash","Write","Read"],"defaultMode":"bypassPermissions"}}"#;
    fs::create_dir_all(world.folder.path().join(".claude")).expect("a folder");
    fs::write(world.folder.path().join(".claude/settings.json"), settings).expect("a file");
    fs::write(world.folder.path().join("secret.txt"), "a secret text").expect("a file");
    let mut session = session(&world, &engine, false).await;
    let file = world.project().join("made.txt");
    let secret = world.folder.path().join("secret.txt");
    let task = format!(
        "Look at @{1} and @README.md\nSTEP tool:Bash {{\"command\":\"touch made.txt\"}}\n\
         STEP tool:Bash {{\"command\":\"echo harmless\"}}\nSTEP tool:Write {{\"file_path\":\"{0}\",\"content\":\"x\"}}\n\
         STEP tool:Read {{\"file_path\":\"{1}\"}}\nSTEP say:Done.",
        file.display(),
        secret.display()
    );
    let refuses = Answers { refuses: Some("the policy says no"), ..Answers::default() };
    let lines = refuses.turn(&mut session, &task).await;
    assert_eq!(lines.iter().filter(|line| line.starts_with("may ")).count(), 4, "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.ends_with("failed: the policy says no")).count(), 4, "{lines:#?}");
    assert!(!has(&lines, "denied "), "a refusal of squad's is told once: {lines:#?}");
    assert!(!file.exists());
    let told = world.model.requests().iter().map(shown).collect::<String>();
    assert!(!told.contains("a secret text") && !told.contains("# Read me"), "it reads what a message names");
    session.close().await;
    // What a hook changes and squad keeps, an agent that may only read, and one whose model asks for more.
    let mut session = self::session(&world, &engine, false).await;
    let changes = Answers {
        command: Some("echo changed > changed.txt"),
        keeps_writes: true,
        result: Some("read this"),
        ..Answers::default()
    };
    let lines = changes.turn(&mut session, &task).await;
    assert!(has(&lines, "may Shell Bash: echo changed > changed.txt"), "{lines:#?}");
    assert!(has(&lines, " Write ok: squad has kept it") && !file.exists(), "{lines:#?}");
    assert!(world.project().join("changed.txt").exists());
    assert!(shown(world.model.requests().last().expect("a request")).contains("read this"));
    session.close().await;
    let reads = Opening { session: "squad-rea".to_owned(), asks: false, ..opened(&world, ToolChoice::ReadOnly) };
    let mut session = engine.open(reads).await.expect("a session");
    let lines = Answers::default().turn(&mut session, &task).await;
    assert!(has(&lines, "No such tool available: Bash") && !file.exists(), "{lines:#?}");
    let tools = world.model.requests().last().expect("a request")["tools"].to_string();
    assert!(!tools.contains("\"Bash\"") && !tools.contains("AskUserQuestion") && tools.contains("\"Read\""), "{tools}");
    session.close().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_person_is_asked_and_may_add_to_a_turn() {
    let world = World::new();
    let engine = engine(&world);
    let mut session = session(&world, &engine, false).await;
    let asks = "STEP tool:AskUserQuestion {\"questions\":[{\"question\":\"Which color?\",\"header\":\"Color\",\"multiSelect\":false,\
                \"options\":[{\"label\":\"red\",\"description\":\"r\"},{\"label\":\"blue\",\"description\":\"b\"}]}]}\nSTEP say:Done.";
    let lines = Answers { answer: Some("blue"), ..Answers::default() }.turn(&mut session, asks).await;
    assert!(has(&lines, "question Which color? [\"red\", \"blue\"]") && has(&lines, "idle"), "{lines:#?}");
    assert!(shown(world.model.requests().last().expect("a request")).contains("=\\\"blue\\\""));
    let lines = Answers::default().turn(&mut session, asks).await;
    assert!(has(&lines, "nobody answers"), "{lines:#?}");
    // Two messages while a command runs are in the next call of the model, and one behind the last words is in the turn.
    assert!(!session.steer("too early").await.expect("it runs"));
    session
        .send("STEP tool:Bash {\"command\":\"sleep 1; echo over\"}\nSTEP sleep:1 say:Slept.", &[])
        .await
        .expect("it is taken");
    let is_allowed = |fact: &Fact| matches!(fact, Fact::Request(Request::Permission { .. }));
    Answers::default().rest(&mut session, is_allowed).await;
    assert!(session.steer("and mind the gap").await.expect("it runs"));
    assert!(session.notify("Decided: tabs.").await.expect("it runs"));
    let has_ended = |fact: &Fact| matches!(fact, Fact::Request(Request::AfterTool(..)));
    Answers::default().rest(&mut session, has_ended).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(session.steer("STEP say:Late words.").await.expect("it runs"));
    let lines = Answers::default().rest(&mut session, |_| false).await;
    assert!(has(&lines, "message Slept.") && has(&lines, "message Late words.") && has(&lines, "idle"), "{lines:#?}");
    let requests = world.model.requests();
    let next = requests.iter().map(shown).find(|text| text.contains("\"content\":\"over\"")).expect("its result");
    assert!(next.contains("mind the gap") && next.contains("Decided: tabs."), "{next}");
    // An image is seen.
    let dot = STANDARD.decode(DOT).expect("it is base64");
    fs::write(world.project().join("dot.png"), dot).expect("a file");
    let attached = |path: &str| Attachment { path: path.to_owned(), hash: String::new(), bytes: 4 };
    session.send("STEP say:Seen.", &[attached("dot.png"), attached("README.md")]).await.expect("it is taken");
    Answers::default().rest(&mut session, |_| false).await;
    let seen = shown(world.model.requests().last().expect("a request"));
    assert!(seen.contains("\"type\":\"image\"") && seen.contains("- README.md"), "{seen}");
    session.close().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_turn_is_aborted_and_the_session_goes_on() {
    let world = World::new();
    let engine = engine(&world);
    let mut session = session(&world, &engine, false).await;
    let command = "STEP tool:Bash {\"command\":\"sleep 30; touch late.txt\"}\nSTEP say:Over.";
    session.send(command, &[]).await.expect("it is taken");
    Answers::default().rest(&mut session, |fact| matches!(fact, Fact::Request(Request::Permission { .. }))).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    // One that nobody waits for any more begins no turn.
    assert!(session.steer("STEP say:Nobody asked.").await.expect("it runs"));
    let begun = Instant::now();
    session.abort().await;
    let lines = Answers::default().rest(&mut session, |_| false).await;
    assert_eq!(lines.last().map(String::as_str), Some("failed the turn was aborted"), "{lines:#?}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let lines = Answers::default().turn(&mut session, "STEP say:Again.").await;
    assert!(has(&lines, "message Again.") && !has(&lines, "Nobody asked"), "{lines:#?}");
    assert_eq!(session.close().await, Vec::<String>::new(), "nothing is left running");
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_killed_program_goes_on_where_it_was() {
    let world = World::new();
    let engine = engine(&world);
    let mut session = session(&world, &engine, false).await;
    let task = "STEP tool:Bash {\"command\":\"echo once >> made.txt\"}\nSTEP tool:Bash {\"command\":\"sleep 5\"}\nSTEP say:Over.";
    session.send(task, &[]).await.expect("it is taken");
    let is_second =
        |fact: &Fact| matches!(fact, Fact::Request(Request::Permission { detail, .. }) if detail == "sleep 5");
    Answers::default().rest(&mut session, is_second).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let id = session.running.as_ref().and_then(|running| running.child.id()).expect("it runs");
    kill(id);
    let lines = Answers::default().rest(&mut session, |_| false).await;
    assert!(has(&lines, "connection lost: claude was lost: its process ended (signal: 9"), "{lines:#?}");
    assert!(has(&lines, "interrupted "), "{lines:#?}");
    let recall = session.recall(task).await.expect("it is read");
    assert_eq!((recall.has_prompt, recall.unfinished_tools()), (true, vec!["Bash"]), "{:?}", recall.calls);
    let lines = Answers::default().turn(&mut session, "You were interrupted. Go on.\n").await;
    assert!(has(&lines, "connection restored") && has(&lines, "message Over."), "{lines:#?}");
    assert_eq!(fs::read_to_string(world.project().join("made.txt")).expect("it was made"), "once\n");
    // Squad is killed as well: what is there is all that it has stored.
    drop(session);
    let mut session = self::session(&world, &engine, true).await;
    assert!(session.recall(task).await.expect("it is read").has_prompt);
    assert!(!session.recall("another task").await.expect("it is read").has_prompt);
    session.close().await;
    let unknown = Opening { session: "squad-eve".to_owned(), resume: true, ..opened(&world, ToolChoice::All) };
    let Err(EngineError::NotResumable { .. }) = engine.open(unknown).await else { panic!("there is none") };
}

fn kill(id: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(id).expect("an id")).expect("an id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn errors_of_the_model_end_a_turn() {
    let world = World::new();
    let mut options = world.options("claude");
    options.profile.set.insert("CLAUDE_CODE_MAX_RETRIES".to_owned(), "1".to_owned());
    let engine = Claude::start(options).expect("it is installed");
    for (status, last) in [(400, "failed "), (429, "no quota: ")] {
        let mut session = session(&world, &engine, false).await;
        let lines = Answers::default().turn(&mut session, &format!("STEP error:{status}")).await;
        assert!(lines.last().is_some_and(|line| line.starts_with(last)), "{lines:#?}");
        assert_eq!(has(&lines, "warning "), status == 429, "{lines:#?}");
        let lines = Answers::default().turn(&mut session, "say something").await;
        assert!(has(&lines, last), "its first message is still the model's: {lines:#?}");
        session.close().await;
    }
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn the_users_servers_are_offered_and_asked_for() {
    let world = World::new();
    let mut options = world.options("claude");
    let script = "import sys,json\nfor line in sys.stdin:\n m=json.loads(line)\n if 'id' not in m: continue\n \
                  r={'initialize':{'protocolVersion':'2025-06-18','capabilities':{'tools':{}},'serverInfo':{'name':'s','version':'1'}},\
                  'tools/list':{'tools':[{'name':n,'description':'d','inputSchema':{'type':'object'}} for n in ('add','drop')]},\
                  'tools/call':{'content':[{'type':'text','text':'from the server'}]}}.get(m['method'],{})\n \
                  print(json.dumps({'jsonrpc':'2.0','id':m['id'],'result':r}),flush=True)";
    let local = |command: &str, tools: Option<&str>| McpServer::Local {
        command: command.to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: Default::default(),
        offer: McpOffer { tools: tools.map(|tool| vec![tool.to_owned()]), ..McpOffer::default() },
    };
    let servers = [("there", local("python3", Some("add"))), ("missing", local("/no/such/program", None))];
    options.mcp_servers = servers.map(|(name, server)| (name.to_owned(), server)).into();
    let engine = Claude::start(options).expect("it is installed");
    let mut session = session(&world, &engine, false).await;
    let task = "STEP tool:mcp__there__add {\"n\":1}\nSTEP tool:mcp__there__drop {}\nSTEP tool:mcp__squad__squad_status {}\nSTEP say:Done.";
    let lines = Answers::default().turn(&mut session, task).await;
    for part in [
        "warning the MCP server `missing` cannot be used",
        "may Mcp there-add: there/add {\"n\":1}",
        "there-add ok: from the server",
        "denied there-drop",
        "call squad_status",
    ] {
        assert!(has(&lines, part), "{part}: {lines:#?}");
    }
    session.close().await;
}
