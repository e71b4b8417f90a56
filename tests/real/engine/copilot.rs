//! The adapter with the real Copilot CLI, on a model that plays scripts. `.ci/install-real-parts` installs the CLI.

#[path = "../../support/copilot_cli.rs"]
mod copilot_cli;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::*;
use crate::engine::model_server::{ModelServer, Script};
use crate::engine::{AdapterSession, Approval, Fact, Request, ToolResult};
use crate::model::ToolChoice;

/// Beyond every deadline of the adapter's that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    folder: tempfile::TempDir,
    model: ModelServer,
}

impl World {
    fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        let world =
            Self { folder: tempfile::tempdir().expect("a temporary folder"), model: ModelServer::start(scripts) };
        std::fs::create_dir_all(world.project()).expect("a folder");
        world
    }

    /// With a model that does what its prompt says.
    fn plain() -> Self {
        Self::new([])
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn run(&self) -> String {
        format!("real-{}", self.folder.path().display())
    }

    fn options(&self) -> Options {
        let user = self.folder.path().join("user");
        let variables: [(&str, std::ffi::OsString); 4] = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME", user.into()),
            ("XDG_CACHE_HOME", copilot_cli::cache().into()),
            ("COPILOT_OFFLINE", "true".into()),
        ];
        Options {
            program: None,
            squad: None,
            variables: variables.map(|(name, value)| (name.into(), value)).into(),
            directory: self.project(),
            home: Home::Auto { local: self.folder.path().join("home") },
            provider: Some(Provider {
                kind: ProviderKind::Openai,
                wire_api: Some(WireApi::Completions),
                base_url: self.model.url(),
                api_key: Some("a-long-key-of-a-test".into()),
                models: vec!["fake-1".into()],
                max_prompt_tokens: None,
            }),
            sandbox: None,
            run: self.run(),
            mcp_servers: Default::default(),
            timeouts: Timeouts::default(),
        }
    }

    async fn start(&self) -> Copilot {
        Copilot::start(self.options()).await.expect("the CLI starts")
    }

    fn opening(&self, session: &str, tools: ToolChoice) -> Opening {
        let mut opening = testing::opening(session, tools);
        opening.directory = self.project();
        opening
    }

    /// Ids of the processes that carry the run, with their command lines.
    fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("SQUAD_RUN={}", self.run());
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").expect("Linux").flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes()) {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((id, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        found
    }

    /// Waits until a tool's `sleep` is running, or is no more.
    async fn sleeping(&self, wanted: bool) {
        let deadline = Instant::now() + PATIENCE;
        while self.processes().iter().any(|(_, line)| line.starts_with("sleep")) != wanted {
            assert!(Instant::now() < deadline, "{:?}", self.processes());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn signal(&self, signal: &str) {
        let server = self.processes().into_iter().find(|(_, line)| line.contains("copilot")).expect("it runs").0;
        let status = Command::new("kill").args([signal, &server.to_string()]).status();
        assert!(status.expect("kill is there").success());
    }
}

async fn next(session: &mut Session) -> Fact {
    timeout(PATIENCE, session.next()).await.expect("a fact in time")
}

/// Answers: permissions whose detail contains `forbidden` are denied, a question gets `blue`.
fn answer(request: Request) {
    match request {
        Request::Tool(call, reply) => {
            reply.send(ToolResult { ok: true, text: format!("{} says: all fine", call.tool) })
        }
        Request::Write(files, reply) => {
            let taken = files.iter().any(|file| file.path.contains("inbox"));
            reply.send(taken.then(|| ToolResult { ok: true, text: "Decision 0a1b is recorded.".to_owned() }));
        }
        Request::Permission { detail, reply, .. } if detail.contains("forbidden") => {
            reply.send(Approval::Deny("that is forbidden".into()));
        }
        Request::Permission { reply, .. } => reply.send(Approval::Allow),
        Request::BeforeTool(_, reply) => reply.send(Ok(None)),
        Request::AfterTool(_, _, reply) => reply.send(None),
        Request::Unasked(reply) => reply.send(true),
        Request::Question { reply, .. } => reply.send(Some("blue".into())),
        Request::Host(_, reply) => reply.send(Approval::Deny("it is not listed".into())),
    }
}

/// Whether it asks about a call before and after it, whoever decides about it then.
fn is_hooks(request: &Request) -> bool {
    matches!(request, Request::BeforeTool(..) | Request::AfterTool(..))
}

fn is_last(fact: &Fact) -> bool {
    matches!(fact, Fact::Idle | Fact::Interrupted(_) | Fact::Failed(_) | Fact::Lost(_))
}

/// Facts of a turn to its end, in lines without call ids and usage.
async fn turn(session: &mut Session, prompt: &str) -> Vec<String> {
    session.send(prompt, &[]).await.expect("the prompt is taken");
    rest(session).await
}

async fn rest(session: &mut Session) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let fact = next(session).await;
        let (line, last) = (show(&fact), is_last(&fact));
        lines.extend(line);
        if let Fact::Request(request) = fact {
            answer(request);
        }
        if last {
            return lines;
        }
    }
}

fn show(fact: &Fact) -> Option<String> {
    match fact {
        Fact::Usage(_) | Fact::Alive | Fact::Request(Request::BeforeTool(..) | Request::AfterTool(..)) => None,
        Fact::ToolStarted { tool, detail, .. } => Some(format!("start {tool}: {detail}")),
        Fact::ToolCompleted { tool, ok, detail, .. } => {
            Some(format!("end {tool} {}: {detail}", if *ok { "ok" } else { "failed" }))
        }
        fact => Some(testing::show(fact)),
    }
}

/// Reads facts until one whose line begins so.
async fn until(session: &mut Session, start: &str) -> String {
    loop {
        let fact = next(session).await;
        let line = testing::show(&fact);
        if let Fact::Request(request) = fact {
            answer(request);
        }
        if line.starts_with(start) {
            return line;
        }
        assert!(!line.starts_with("idle") && !line.starts_with("lost"), "{line} before {start}");
    }
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn it_starts_through_the_gate_and_ends_without_a_trace() {
    let world = World::plain();
    let copilot = world.start().await;
    let server = &copilot.server;
    assert_eq!((copilot.version().as_str(), server.identity.protocol), ("1.0.102", 3));
    assert!(server.program.path().ends_with("copilot-runtime"), "{:?}", server.program);
    assert!(!server.identity.account.authenticated);
    assert_eq!(server.home, world.options().home);
    assert_eq!(world.processes().len(), 1);
    copilot.stop().await;
    assert_eq!(world.processes(), []);
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_probe_tells_what_is_installed() {
    let world = World::plain();
    let mut options = world.options();
    options.provider = None;
    let probe = Copilot::probe(&options).await.0.expect("it is installed");
    assert_eq!((probe.identity.version.as_str(), probe.identity.protocol), ("1.0.102", 3));
    assert!(probe.models.is_err());
    assert_eq!(world.processes(), []);
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn without_login_and_provider_it_says_what_to_do() {
    let world = World::plain();
    let mut options = world.options();
    options.provider = None;
    let error = Copilot::start(options).await.err().expect("nobody is logged in");
    assert!(matches!(error, EngineError::Unauthenticated { .. }), "{error}");
    assert_eq!(world.processes(), []);
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_turn_with_tools_and_permissions() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("squad-ada", ToolChoice::All)).await.expect("it opens");
    assert_eq!(session.model(), "fake-1");
    let file = world.project().join("made.txt");
    let prompt = format!(
        "STEP tool:bash {{\"command\":\"echo one > one.txt\",\"description\":\"d\"}}\n\
         STEP tool:bash {{\"command\":\"echo forbidden > two.txt\",\"description\":\"d\"}}\n\
         STEP tool:create {{\"path\":\"{0}\",\"file_text\":\"x\"}}\n\
         STEP tool:squad_status {{\"q\":\"all\"}}\n\
         STEP say:done",
        file.display()
    );
    let facts = turn(&mut session, &prompt).await;
    assert_eq!(
        facts,
        [
            "start bash: echo one > one.txt",
            "may Shell bash: echo one > one.txt",
            "end bash ok: \n<shellId: 0 completed with exit code 0>",
            "start bash: echo forbidden > two.txt",
            "may Shell bash: echo forbidden > two.txt",
            "end bash failed: The user rejected this tool call. User feedback: that is forbidden",
            &format!("start create: {}", file.display()),
            &format!("write {} \"x\"", file.display()),
            &format!("may Write create: {}", file.display()),
            &format!("end create ok: Created file {} with 1 characters", file.display()),
            "start squad_status: all",
            "call squad_status {\"q\":\"all\"}",
            "end squad_status ok: squad_status says: all fine",
            "delta done",
            "message done",
            "idle",
        ]
    );
    assert!(world.project().join("one.txt").exists() && file.exists());
    assert!(!world.project().join("two.txt").exists());
    session.close().await;
    copilot.stop().await;
    assert_eq!(world.processes(), []);
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn the_charter_and_the_context_reach_the_model() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("squad-ada", ToolChoice::ReadOnly)).await.expect("it opens");
    assert_eq!(turn(&mut session, "STEP say:yes").await, ["delta yes", "message yes", "idle"]);
    let request = world.model.requests().remove(0);
    let system = request["messages"][0]["content"].to_string();
    assert!(system.contains("You are Ada.") && system.contains("# Team"), "{system}");
    let tools = request["tools"].as_array().expect("a list").iter();
    let tools: Vec<_> = tools.filter_map(|tool| tool["function"]["name"].as_str()).collect();
    assert_eq!(tools, ["view", "grep", "glob", "squad_status"]);
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_repositorys_own_hooks_do_not_run() {
    let world = World::plain();
    let hooks = world.project().join(".github/hooks");
    let ran = world.folder.path().join("ran");
    std::fs::create_dir_all(&hooks).expect("folders");
    let hook = serde_json::json!([{ "type": "command", "bash": format!("touch '{}'", ran.display()) }]);
    let hooks_file = serde_json::json!({ "version": 1, "hooks": { "sessionStart": hook, "preToolUse": hook } });
    std::fs::write(hooks.join("hooks.json"), hooks_file.to_string()).expect("a file");
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(world.project()).status();
    assert!(git.expect("git is there").success());
    let copilot = world.start().await;
    let mut opening = world.opening("s", ToolChoice::All);
    for resume in [false, true] {
        opening.resume = resume;
        let mut session = copilot.open(opening.clone()).await.expect("it opens");
        let facts = turn(&mut session, "STEP tool:squad_status\nSTEP say:done").await;
        assert_eq!(facts.last().map(String::as_str), Some("idle"), "{facts:?}");
        session.close().await;
    }
    copilot.stop().await;
    assert!(!ran.exists());
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_repositorys_own_language_servers_do_not_run() {
    let world = World::plain();
    let (project, ran) = (world.project(), world.folder.path().join("ran"));
    for folder in [".github", ".git/objects", "sub"] {
        std::fs::create_dir_all(project.join(folder)).expect("folders");
    }
    std::fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
    std::fs::write(project.join("sub/README.md"), "# Read me\n").expect("a file");
    let server = serde_json::json!({
        "command": "/bin/sh", "args": ["-c", format!("touch '{}'; cat", ran.display())],
        "fileExtensions": { ".md": "markdown" }
    });
    let servers = serde_json::json!({ "lspServers": { "x": server } }).to_string();
    std::fs::write(project.join(".github/lsp.json"), &servers).expect("a file");
    let copilot = world.start().await;
    let call = serde_json::json!({
        "operation": "documentSymbol", "file": project.join("sub/README.md"), "line": 1, "character": 1
    });
    let prompt = format!("STEP tool:lsp {call}\nSTEP say:done");
    for directory in [project.clone(), project.join("sub")] {
        for resume in [false, true] {
            let opening = Opening { directory: directory.clone(), resume, ..world.opening("s", ToolChoice::All) };
            let mut session = copilot.open(opening).await.expect("it opens");
            let facts = turn(&mut session, &prompt).await;
            let is_located = |fact: &String| fact.starts_with("warning ") && fact.contains(".github/lsp.json");
            assert!(facts.iter().any(is_located), "{facts:?}");
            assert!(facts.contains(&"end lsp failed: Tool 'lsp' does not exist.".to_owned()), "{facts:?}");
            assert_eq!(facts.last().map(String::as_str), Some("idle"), "{facts:?}");
            session.close().await;
        }
    }
    copilot.stop().await;
    assert!(!ran.exists());
    // The user's own are used where the repository brings none.
    std::fs::remove_file(project.join(".github/lsp.json")).expect("it is removed");
    std::fs::create_dir_all(world.folder.path().join("home")).expect("a folder");
    std::fs::write(world.folder.path().join("home/lsp-config.json"), &servers).expect("a file");
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("t", ToolChoice::All)).await.expect("it opens");
    let facts = turn(&mut session, &prompt).await;
    assert!(facts.iter().any(|fact| fact.contains(" lsp")) && ran.exists(), "{facts:?}");
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn one_session_goes_through_ten_pieces_of_work_and_compaction() {
    // By its charter, not by its prompts: a compaction quotes those, and is asked of the model too.
    let world = World::new([Script::new("You are Ada.", ["say:done"])]);
    let copilot = world.start().await;
    let mut opening = world.opening("s", ToolChoice::All);
    opening.spec.compaction_threshold = Some(0.1);
    let mut session = copilot.open(opening).await.expect("it opens");
    let background = "a long story ".repeat(1_000);
    let told = || world.model.requests().pop().expect("a request")["messages"].to_string().len();
    let (mut lengths, mut compacted) = (Vec::new(), 0);
    // Compaction goes on beside the work, so on a busy machine it may show later than after ten pieces.
    while lengths.len() < 10 || (lengths.len() < 60 && lengths.is_sorted()) {
        let mut facts = turn(&mut session, &format!("{background}{}", lengths.len())).await;
        let all = facts.len();
        facts.retain(|fact| !fact.starts_with("s compacted "));
        compacted += all - facts.len();
        assert_eq!(facts, ["delta done", "message done", "idle"], "piece {}", lengths.len());
        lengths.push(told());
    }
    assert!(!lengths.is_sorted() && compacted > 0, "nothing was compacted: {lengths:?}, {compacted}");
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn text_comes_in_pieces() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    let facts = turn(&mut session, "STEP stream:4 say:abcdefgh").await;
    assert_eq!(facts, ["delta ab", "delta cd", "delta ef", "delta gh", "message abcdefgh", "idle"]);
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn questions_are_answered_or_declined() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    let ask = "STEP tool:ask_user {\"question\":\"which?\",\"choices\":[\"red\",\"blue\"]}\nSTEP say:ok";
    let facts = turn(&mut session, ask).await;
    assert_eq!(facts[1..3], ["question which? [\"red\", \"blue\"]", "end ask_user ok: User selected: blue"]);
    session.send(ask, &[]).await.expect("the prompt is taken");
    // A request that nobody answers is refused, whatever it asks.
    let ended = loop {
        match next(&mut session).await {
            Fact::ToolCompleted { detail, .. } => break detail,
            Fact::Request(request) if is_hooks(&request) => answer(request),
            fact => assert!(!is_last(&fact), "{fact:?}"),
        }
    };
    assert!(ended.contains("Nobody is available to answer"), "{ended}");
    assert_eq!(rest(&mut session).await, ["delta ok", "message ok", "idle"]);
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn an_unanswered_permission_is_refused() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    session
        .send(
            "STEP tool:bash {\"command\":\"touch x\",\"description\":\"d\"}\nSTEP tool:squad_status\nSTEP say:ok",
            &[],
        )
        .await
        .expect("sent");
    let mut ends = Vec::new();
    loop {
        let fact = next(&mut session).await;
        if let Fact::ToolCompleted { ok, detail, .. } = &fact {
            ends.push((*ok, detail.clone()));
        }
        if is_last(&fact) {
            break;
        }
        if let Fact::Request(request) = fact
            && is_hooks(&request)
        {
            answer(request);
        }
    }
    let refusals =
        ["The user rejected this tool call. User feedback: squad did not allow this.", "squad did not run this tool."];
    assert_eq!(ends, refusals.map(|refusal| (false, refusal.to_owned())));
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn an_abort_ends_the_turn_and_its_shell() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    session.send("STEP tool:bash {\"command\":\"sleep 120\",\"description\":\"d\"}", &[]).await.expect("sent");
    until(&mut session, "may Shell").await;
    world.sleeping(true).await;
    session.abort().await;
    assert_eq!(rest(&mut session).await.last().map(String::as_str), Some("failed the turn was aborted"));
    assert_eq!(turn(&mut session, "STEP say:again").await, ["delta again", "message again", "idle"]);
    session.abort().await;
    assert_eq!(turn(&mut session, "STEP say:more").await, ["delta more", "message more", "idle"]);
    copilot.stop().await;
    assert_eq!(world.processes(), []);
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_models_error_fails_the_turn_alone() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    assert_eq!(turn(&mut session, "STEP error:400").await, ["failed 400 scripted error"]);
    assert_eq!(turn(&mut session, "STEP say:better").await, ["delta better", "message better", "idle"]);
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_killed_cli_is_started_again_and_remembers() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    let mut fresh = copilot.open(world.opening("fresh", ToolChoice::All)).await.expect("it opens");
    turn(&mut session, "remember THE-FIRST-PROMPT\nSTEP say:first").await;
    session.send("STEP tool:bash {\"command\":\"sleep 120\",\"description\":\"d\"}", &[]).await.expect("sent");
    until(&mut session, "may Shell").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.signal("-9");
    let lost = until(&mut session, "connection lost").await;
    assert!(lost.contains("signal: 9"), "{lost}");
    assert_eq!(until(&mut session, "connection restored").await, "connection restored: 1");
    let interrupted = until(&mut session, "interrupted").await;
    assert!(interrupted.contains("in the middle of the turn"), "{interrupted}");
    // The shell of its tool was not left behind. What the new one starts for itself is soon over.
    world.sleeping(false).await;
    let facts = turn(&mut session, "STEP say:back").await;
    assert_eq!(facts.last().map(String::as_str), Some("idle"), "{facts:?}");
    let last = world.model.requests().pop().expect("a request").to_string();
    assert!(last.contains("THE-FIRST-PROMPT"), "{last}");
    // One that had not worked yet is there too.
    until(&mut fresh, "connection restored").await;
    assert_eq!(turn(&mut fresh, "STEP say:here").await.last().map(String::as_str), Some("idle"));
    copilot.stop().await;
    assert_eq!(world.processes(), []);
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn killed_at_any_moment_every_turn_has_an_end() {
    let world = World::plain();
    let mut options = world.options();
    options.timeouts.backoff = Duration::from_millis(20);
    let copilot = Copilot::start(options).await.expect("it starts");
    let mut one = copilot.open(world.opening("one", ToolChoice::All)).await.expect("it opens");
    let mut two = copilot.open(world.opening("two", ToolChoice::All)).await.expect("it opens");
    let work = "STEP tool:bash {\"command\":\"echo a\",\"description\":\"d\"}\nSTEP tool:squad_status\nSTEP stream:9 say:working";
    for round in 0..12 {
        let kill = async {
            tokio::time::sleep(Duration::from_millis(round * 35)).await;
            world.signal("-9");
        };
        let (one, two, ()) = tokio::join!(turn(&mut one, work), turn(&mut two, work), kill);
        for facts in [one, two] {
            let last = facts.last().map(String::as_str).unwrap_or_default();
            assert!(last == "idle" || last.starts_with("interrupted the engine was lost"), "round {round}: {facts:#?}");
        }
    }
    // The last kill may have come after both turns.
    let facts = turn(&mut one, "STEP say:still here").await;
    assert!(
        facts.last().is_some_and(|last| last == "idle" || last.starts_with("interrupted the engine")),
        "{facts:#?}"
    );
    copilot.stop().await;
    assert_eq!(world.processes(), []);
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_cli_that_hangs_is_found_out_and_replaced() {
    let world = World::plain();
    let mut options = world.options();
    options.timeouts.ping_interval = Duration::from_millis(200);
    options.timeouts.ping = Duration::from_millis(500);
    options.timeouts.hang = Duration::from_secs(2);
    options.timeouts.backoff = Duration::from_millis(100);
    let copilot = Copilot::start(options).await.expect("it starts");
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    turn(&mut session, "STEP say:first").await;
    session.send("STEP sleep:60 say:never", &[]).await.expect("sent");
    world.signal("-STOP");
    until(&mut session, "warning the engine has not answered for 0.5 s").await;
    let lost = until(&mut session, "connection lost").await;
    assert!(lost.contains("it hangs: no answer to a ping, and nothing done for 2 s"), "{lost}");
    until(&mut session, "interrupted").await;
    assert_eq!(turn(&mut session, "STEP say:back").await.last().map(String::as_str), Some("idle"));
    copilot.stop().await;
    assert_eq!(world.processes(), []);
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_cli_that_goes_on_after_a_while_is_not_given_up() {
    let world = World::plain();
    let mut options = world.options();
    options.timeouts.ping = Duration::from_millis(500);
    options.timeouts.ping_interval = Duration::from_millis(100);
    let copilot = Copilot::start(options).await.expect("it starts");
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    session.send("STEP sleep:2 say:late", &[]).await.expect("sent");
    world.signal("-STOP");
    until(&mut session, "warning the engine has not answered for 0.5 s").await;
    world.signal("-CONT");
    let facts = rest(&mut session).await;
    assert!(facts.last().is_some_and(|last| last == "idle"), "{facts:?}");
    assert!(facts.iter().all(|fact| !fact.starts_with("connection")), "{facts:?}");
    copilot.stop().await;
    assert_eq!(world.processes(), []);
}

/// A file system of its own that is soon full. Only root may make one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&folder).expect("a folder");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "squad-test"]).arg(&folder).output();
        mount.is_ok_and(|done| done.status.success()).then(|| Self(folder))
    }

    fn fill(&self) {
        use std::io::Write;

        let mut file = std::fs::File::create(self.0.join("filler")).expect("a file");
        while file.write_all(&[0; 4096]).is_ok() {}
        while file.write_all(&[0]).is_ok() {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_turn_that_a_full_disk_has_ended_is_over_and_says_why() {
    let world = World::plain();
    let Some(disk) = SmallDisk::mount(world.folder.path().join("home")) else {
        eprintln!("SKIPPED: only root may mount the small disk that this test fills");
        return;
    };
    let mut options = world.options();
    options.home = Home::At(disk.0.clone());
    let copilot = Copilot::start(options).await.expect("it starts");
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    assert_eq!(turn(&mut session, "STEP say:first").await.last().map(String::as_str), Some("idle"));
    disk.fill();
    let facts = turn(&mut session, "STEP say:second").await;
    let last = facts.last().expect("an end");
    assert!(last.starts_with("failed ") && last.contains("No space left"), "{facts:?}");
    assert_eq!(last.matches("No space left").count(), 1, "each error is told once: {last}");
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_cli_that_does_not_come_back_is_lost() {
    let world = World::plain();
    let folder = world.folder.path().join("cli");
    std::fs::create_dir(&folder).expect("a folder");
    let program = folder.join("copilot-runtime");
    let mut options = world.options();
    std::os::unix::fs::symlink(locate(&options).expect("it is installed").path(), &program).expect("a link");
    options.program = Some(program.clone());
    options.timeouts.backoff = Duration::from_millis(50);
    let copilot = Copilot::start(options).await.expect("it starts");
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    session.send("STEP sleep:60 say:never", &[]).await.expect("sent");
    std::fs::remove_file(program).expect("the link");
    world.signal("-9");
    until(&mut session, "connection lost").await;
    for _ in 0..2 {
        let fact = next(&mut session).await;
        assert!(matches!(&fact, Fact::Lost(reason) if reason.contains("after 3 attempts")), "{fact:?}");
    }
    assert!(session.send("more", &[]).await.is_err());
    assert!(copilot.open(world.opening("t", ToolChoice::All)).await.is_err());
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_session_goes_on_in_another_process() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    turn(&mut session, "remember THE-FIRST-PROMPT\nSTEP say:first").await;
    session.close().await;
    copilot.stop().await;

    let copilot = world.start().await;
    let mut opening = world.opening("s", ToolChoice::All);
    opening.resume = true;
    let mut session = copilot.open(opening.clone()).await.expect("it is on the disk");
    assert_eq!(turn(&mut session, "STEP say:second").await, ["delta second", "message second", "idle"]);
    assert!(world.model.requests().pop().expect("a request").to_string().contains("THE-FIRST-PROMPT"));
    let twice = copilot.open(opening.clone()).await.err().expect("it is open already");
    assert!(twice.to_string().contains("already open"), "{twice}");
    session.close().await;

    // Opened without resuming, it begins anew, and what was before is gone for good.
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    turn(&mut session, "STEP say:third").await;
    session.close().await;
    let mut session = copilot.open(opening.clone()).await.expect("it is on the disk");
    turn(&mut session, "STEP say:fourth").await;
    let last = world.model.requests().pop().expect("a request").to_string();
    assert!(last.contains("third") && !last.contains("THE-FIRST-PROMPT"), "{last}");

    opening.session = "never-was".into();
    let error = copilot.open(opening).await.err().expect("there is no such session");
    assert!(matches!(error, EngineError::NotResumable { .. }), "{error}");
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn three_agents_with_one_task_go_their_own_ways() {
    let world = World::new([
        Script::new("You are Ada.", ["tool:squad_status {\"q\":\"ada\"}", "say:ada is done"]),
        Script::new("You are Bob.", ["error:400"]),
        Script::new("You are Cy.", ["stream:3 say:cy writes"]),
    ]);
    let copilot = world.start().await;
    let open = |name: &str| {
        let mut opening = world.opening(&format!("squad-{name}"), ToolChoice::All);
        opening.spec.prompt = format!("You are {name}.");
        copilot.open(opening)
    };
    let opened = tokio::try_join!(open("Ada"), open("Bob"), open("Cy"));
    let (mut one, mut two, mut three) = opened.expect("they open");
    let (ada, bob, cy) =
        tokio::join!(turn(&mut one, "build it"), turn(&mut two, "build it"), turn(&mut three, "build it"));
    assert_eq!(ada[ada.len() - 2..], ["message ada is done", "idle"]);
    assert_eq!(bob, ["failed 400 scripted error"]);
    assert_eq!(cy[cy.len() - 2..], ["message cy writes", "idle"]);
    tokio::join!(one.close(), two.close(), three.close());
    copilot.stop().await;
    assert_eq!(world.processes(), []);
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_tool_outside_the_list_is_denied_and_nobody_starts_agents() {
    let world = World::plain();
    let copilot = world.start().await;
    let tools = ToolChoice::Only(vec!["task".into()]);
    let mut session = copilot.open(world.opening("s", tools)).await.expect("it opens");
    let facts = turn(
        &mut session,
        "STEP tool:bash {\"command\":\"touch outside\",\"description\":\"d\"}\n\
         STEP tool:task {\"agent_type\":\"general-purpose\",\"name\":\"below\",\"description\":\"d\",\"mode\":\"sync\",\
         \"prompt\":\"STEP tool:squad_status\"}\n\
         STEP say:done",
    )
    .await;
    let is_denied = |fact: &String| fact.contains("the tool `bash` is not among this agent's tools: task");
    assert!(facts.iter().any(is_denied), "{facts:#?}");
    assert!(facts.contains(&"end task failed: Tool 'task' does not exist.".to_owned()), "{facts:#?}");
    assert!(!facts.iter().any(|fact| fact.contains("squad_status says")), "{facts:#?}");
    assert_eq!(facts.last().map(String::as_str), Some("idle"));
    assert!(!world.project().join("outside").exists());
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_session_that_is_dropped_stops_working() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    session.send("STEP tool:bash {\"command\":\"sleep 120\",\"description\":\"d\"}", &[]).await.expect("sent");
    until(&mut session, "may Shell").await;
    world.sleeping(true).await;
    drop(session);
    world.sleeping(false).await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens again");
    assert_eq!(turn(&mut session, "STEP say:anew").await, ["delta anew", "message anew", "idle"]);
    copilot.stop().await;
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn a_stop_in_the_middle_of_a_turn_leaves_no_process() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    session
        .send("STEP tool:bash {\"command\":\"setsid sleep 120 & sleep 120\",\"description\":\"d\"}", &[])
        .await
        .expect("sent");
    until(&mut session, "may Shell").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    copilot.stop().await;
    assert_eq!(world.processes(), []);
    assert_eq!(until(&mut session, "lost").await, "lost the engine was stopped");
    assert!(session.send("more", &[]).await.is_err());
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn the_cli_itself_serves_where_there_is_no_runtime() {
    let world = World::plain();
    let mut options = world.options();
    options.program = Some(copilot_cli::program());
    let copilot = Copilot::start(options).await.expect("the CLI starts");
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    assert_eq!(turn(&mut session, "STEP say:hello").await, ["delta hello", "message hello", "idle"]);
    copilot.stop().await;
    assert_eq!(world.processes(), []);
}

#[tokio::test]
#[ignore = "needs .ci/install-real-parts"]
async fn what_squad_takes_is_not_written() {
    let world = World::plain();
    let copilot = world.start().await;
    let mut session = copilot.open(world.opening("s", ToolChoice::All)).await.expect("it opens");
    let note = world.project().join(".squad/decisions/inbox/ada-tar.md");
    let create = format!("STEP tool:create {{\"path\":\"{}\",\"file_text\":\"Use tar\"}}\nSTEP say:ok", note.display());
    let facts = turn(&mut session, &create).await;
    // Asked before any permission, and its answer is what the tool says.
    let asked = format!("write {} \"Use tar\"", note.display());
    assert!(facts.contains(&asked) && !facts.iter().any(|fact| fact.starts_with("may ")), "{facts:?}");
    assert!(facts.contains(&"end create ok: Decision 0a1b is recorded.".to_owned()), "{facts:?}");
    assert!(!note.exists() && facts.ends_with(&["delta ok".into(), "message ok".into(), "idle".into()]), "{facts:?}");
    let told = world.model.requests().pop().expect("a request")["messages"].to_string();
    assert!(told.contains("Decision 0a1b is recorded."), "{told}");
    copilot.stop().await;
}
