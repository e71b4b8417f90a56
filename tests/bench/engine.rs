//! What squad adds to an engine: until the engine's first byte, to a whole run, and in memory.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::model_server::{ModelServer, Script};
#[cfg(unix)]
use crate::terminal::Person;
use crate::{ROUNDS, SQUAD, copilot_cli, median, print, run};

/// Set for the engine that this program plays itself: the file it writes when its first byte comes.
const FIRST_BYTE: &str = "BENCH_FIRST_BYTE";
/// Set for the engine that this program stands in front of: its program, and the file for how long its turns took.
const BEHIND: &str = "BENCH_BEHIND";
const TURNS: &str = "BENCH_TURNS";
/// How a turn begins on an engine's input, and how it ends on its output.
const BEGINS: [&str; 3] = ["session.send", r#""type":"user""#, "turn/start"];
const ENDS: [&str; 3] = ["session.idle", r#""type":"result""#, "turn/completed"];
/// Messages in a warm session, after its first.
const MESSAGES: usize = 15;

/// Plays the engine that only takes its first byte, or stands in front of one, where it was started as such.
pub(crate) fn is_played() -> bool {
    if let (Some(program), Some(file)) = (std::env::var_os(BEHIND), std::env::var_os(TURNS)) {
        stand_before(Path::new(&program), Path::new(&file));
        return true;
    }
    let Some(file) = std::env::var_os(FIRST_BYTE) else { return false };
    let read = std::io::stdin().read(&mut [0]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
    fs::write(file, if read.is_ok() { now.as_nanos().to_string() } else { String::new() }).expect("a file");
    true
}

/// Passes everything on, and notes how long each turn took.
fn stand_before(program: &Path, file: &Path) {
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).env_remove(BEHIND).env_remove(TURNS);
    let mut engine = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the engine runs");
    let (mut input, output) = (engine.stdin.take().expect("a pipe"), engine.stdout.take().expect("a pipe"));
    let (began, begins) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        pass_on(std::io::stdin(), &mut input, &BEGINS, |at| began.send(at).expect("it is read"));
    });
    let mut turns = fs::OpenOptions::new().create(true).append(true).open(file).expect("a file");
    pass_on(output, &mut std::io::stdout(), &ENDS, |end| {
        if let Some(start) = begins.try_iter().next() {
            writeln!(turns, "{}", (end - start).as_nanos()).expect("a line");
        }
    });
    engine.wait().expect("it ends");
}

/// `seen` gets the moment at which one of the words came.
fn pass_on(mut from: impl Read, to: &mut impl Write, words: &[&str], mut seen: impl FnMut(Instant)) {
    let (mut bytes, mut last) = (vec![0; 1 << 16], Vec::new());
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        // A word may be split between two reads, and is not counted twice.
        last.extend(&bytes[..count]);
        let text = String::from_utf8_lossy(&last);
        let after = words.iter().filter_map(|word| Some(text.find(word)? + word.len())).max();
        if after.is_some() {
            seen(Instant::now());
        }
        let rest = text[after.unwrap_or(0)..].as_bytes();
        last = rest[rest.len().saturating_sub(16)..].to_vec();
        if to.write_all(&bytes[..count]).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "an engine", "squad", "floor", "ratio");
    let world = World::new([Script::new("squad runs", ["say:Done."])]);
    for name in ENGINES {
        world.first_byte(name);
    }
    for name in ENGINES {
        let Some(program) = program(name) else {
            println!("the rest needs {name}: .ci/install-real-parts installs it");
            continue;
        };
        // Nobody is asked whether an earlier conversation goes on.
        let (world, engine) = (World::new([Script::new("squad runs", ["say:Done."])]), (name, program.as_path()));
        if name == "copilot" {
            world.whole_run(&program);
            world.sandboxed(&program);
        }
        #[cfg(unix)]
        world.second_message(engine);
        world.memory(engine);
    }
}

const ENGINES: [&str; 3] = ["copilot", "claude", "codex"];

/// An engine's name, and a program.
type Engine<'a> = (&'a str, &'a Path);

/// As `.ci/install-real-parts` installs it.
fn program(name: &str) -> Option<PathBuf> {
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node_modules");
    let program = match name {
        "claude" => parts.join("@anthropic-ai/claude-code-linux-x64/claude"),
        "codex" => parts.join("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"),
        _ => return runtime(),
    };
    program.is_file().then_some(program)
}

/// As `.ci/install-real-parts` and a first run unpack it.
pub(crate) fn runtime() -> Option<PathBuf> {
    if !copilot_cli::program().is_file() {
        return None;
    }
    let versions = fs::read_dir(copilot_cli::cache().join("copilot/pkg/linux-x64")).ok()?;
    let runtime = |version: PathBuf| version.join("prebuilds/linux-x64/copilot-runtime");
    versions.flatten().map(|version| runtime(version.path())).find(|runtime| runtime.is_file())
}

pub(crate) struct World {
    folder: tempfile::TempDir,
    model: ModelServer,
}

impl World {
    pub(crate) fn new(scripts: [Script; 1]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let repo = folder.path().join("repo");
        fs::create_dir(&repo).expect("a folder");
        run(&repo, "git", &["init", "--quiet", "--initial-branch=main"]);
        run(&repo, "git", &["config", "user.name", "bench"]);
        run(&repo, "git", &["config", "user.email", "bench@example.com"]);
        run(&repo, SQUAD, &["--quiet", "init"]);
        let mut roster = "| Name | Role |\n|---|---|\n".to_owned();
        (1..=8).for_each(|agent| roster.push_str(&format!("| Agent {agent} | Developer |\n")));
        fs::write(repo.join(".squad/team.md"), roster).expect("a file");
        run(&repo, "git", &["commit", "--quiet", "--all", "--message=team"]);
        Self { folder, model: ModelServer::start(scripts) }
    }

    fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn squad(&self, engine: Engine<'_>, agents: usize) -> Command {
        let file = self.first_byte_file();
        let mut command = self.orchestrate(engine, &[(FIRST_BYTE, &file)], "deny");
        command.args(["--json", "Look around"]);
        command.args((1..=agents).map(|agent| format!("--agent=agent-{agent}")));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// A conversation, without a message. `set`: variables for the engine.
    pub(crate) fn orchestrate(&self, (name, program): Engine<'_>, set: &[(&str, &Path)], permissions: &str) -> Command {
        let folder = self.folder.path();
        if name != "copilot" {
            let set: String = set.iter().map(|(variable, value)| format!("{variable} = {value:?}\n")).collect();
            let text = format!("[engines.{name}]\nprogram = {program:?}\n[engines.{name}.set]\n{set}");
            fs::create_dir_all(folder.join("config/squad")).expect("a folder");
            fs::write(folder.join("config/squad/config.toml"), text).expect("a file");
        }
        let mut command = Command::new(SQUAD);
        command.args(["orchestrate", "--permissions", permissions, "--engine", name]).current_dir(self.repo());
        command.envs(set.iter().copied());
        command.env("HOME", folder).env("XDG_CONFIG_HOME", folder.join("config")).env("COPILOT_CLI_PATH", program);
        // What the sandbox costs is measured by itself.
        command.env("SQUAD_SANDBOX_LEVEL", "rules").env("COPILOT_PROVIDER_TYPE", "openai");
        command.env("COPILOT_PROVIDER_WIRE_API", "completions").env("COPILOT_PROVIDER_API_KEY", "a-long-key");
        self.on_loopback(&mut command);
        command
    }

    /// Lets an engine reach the model.
    fn on_loopback(&self, command: &mut Command) {
        let (folder, url) = (self.folder.path(), self.model.url());
        let codex = format!(
            "model_provider = \"loop\"\nmodel = \"fake-1\"\n[model_providers.loop]\nname = \"l\"\nbase_url = \"{url}\"\n\
             wire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n"
        );
        fs::create_dir_all(folder.join("codex")).expect("a folder");
        fs::write(folder.join("codex/config.toml"), codex).expect("a file");
        command.env("COPILOT_OFFLINE", "true").env("COPILOT_PROVIDER_BASE_URL", &url).env("COPILOT_MODEL", "fake-1");
        command.env("CLAUDE_CONFIG_DIR", folder.join("claude")).env("ANTHROPIC_API_KEY", "a-long-key");
        command.env("ANTHROPIC_BASE_URL", url.trim_end_matches("/v1"));
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        command.env("CODEX_HOME", folder.join("codex")).env("OPENAI_API_KEY", "a-long-key");
    }

    fn first_byte_file(&self) -> PathBuf {
        self.folder.path().join("first-byte")
    }

    /// From squad's start to the engine's first byte, against an engine that is started and given one.
    fn first_byte(&self, name: &str) {
        let engine = std::env::current_exe().expect("this program");
        let file = self.first_byte_file();
        let (mut squad, mut floor) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            squad.push(until_first_byte(&file, || {
                self.squad((name, &engine), 1).status().expect("squad runs");
            }));
            floor.push(until_first_byte(&file, || {
                let mut child =
                    Command::new(&engine).env(FIRST_BYTE, &file).stdin(Stdio::piped()).spawn().expect("it runs");
                child.stdin.take().expect("a pipe").write_all(b"{").expect("a byte");
                child.wait().expect("it ends");
            }));
        }
        let fastest = |times: &[Duration]| times.iter().min().copied().unwrap_or_default();
        let [least, bare] = [fastest(&squad), fastest(&floor)];
        print(&format!("to the first byte of {name}, against a bare start"), median(squad), median(floor));
        print("the same, the fastest of all", least, bare);
    }

    fn whole_run(&self, runtime: &Path) {
        let (mut squad, mut bare) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let start = Instant::now();
            assert!(
                self.squad(("copilot", runtime), 1).status().expect("squad runs").success(),
                "the run is completed"
            );
            squad.push(start.elapsed());
            let start = Instant::now();
            self.bare(runtime, round);
            bare.push(start.elapsed());
        }
        print("a run of one agent, against the bare protocol", median(squad), median(bare));
    }

    /// The same run in the sandbox and without, in turn.
    fn sandboxed(&self, runtime: &Path) {
        for level in ["files", "full"] {
            let (mut inside, mut outside) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                for (level, times) in [(level, &mut inside), ("rules", &mut outside)] {
                    let mut squad = self.squad(("copilot", runtime), 1);
                    squad.env("SQUAD_SANDBOX_LEVEL", level).env("SQUAD_SANDBOX_REQUIRE", "true");
                    let start = Instant::now();
                    if !squad.status().expect("squad runs").success() {
                        return println!("this system has no sandbox `{level}`");
                    }
                    times.push(start.elapsed());
                }
            }
            print(&format!("a run in the sandbox `{level}`, against one without"), median(inside), median(outside));
        }
    }

    /// One session, one turn, its end, and the process's.
    fn bare(&self, runtime: &Path, round: usize) {
        let (mut engine, session) = self.bare_session(runtime, round);
        engine.copilot_turn(&session);
        engine.ask("session.destroy", json!({ "sessionId": session }));
        drop(engine.child.stdin.take());
        engine.child.wait().expect("it ends");
    }

    fn bare_command(&self, program: &Path, arguments: &str) -> Bare {
        let mut command = Command::new(program);
        command.args(arguments.split_whitespace()).current_dir(self.repo()).env("HOME", self.folder.path());
        self.on_loopback(&mut command);
        command.env("COPILOT_HOME", self.folder.path().join("home"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Bare::start(command)
    }

    fn bare_session(&self, runtime: &Path, round: usize) -> (Bare, String) {
        let mut engine = self.bare_command(runtime, "--server --stdio --no-auto-update --no-auto-login");
        let session = format!("bare-{round}");
        engine.ask("connect", json!({}));
        let provider = json!({
            "type": "openai", "wireApi": "completions", "baseUrl": self.model.url(), "apiKey": "a-long-key"
        });
        let agent = json!({ "name": "a", "displayName": "A", "description": "", "prompt": "squad runs this" });
        engine.ask(
            "session.create",
            json!({
                "sessionId": session, "model": "fake-1", "provider": provider, "workingDirectory": self.repo(),
                "customAgents": [agent], "agent": "a", "requestPermission": true, "streaming": true,
                "envValueMode": "direct", "toolFilterPrecedence": "excluded", "hooks": true
            }),
        );
        (engine, session)
    }

    /// A message in a session that has had one, against the bare protocol: from its prompt to the turn's end, as the engine's
    /// streams show it, and in a conversation, from the key that sends it to the line that ends its run.
    #[cfg(unix)]
    fn second_message(&self, engine: Engine<'_>) {
        let mut person = Person::sits_down();
        let (this, file) = (std::env::current_exe().expect("this program"), self.folder.path().join("turns"));
        let set = [(BEHIND, engine.1), (TURNS, &*file)];
        let mut command = self.orchestrate((engine.0, &this), &set, "deny");
        command.env("TERM", "xterm");
        let mut child = person.starts(command);
        person.waits_for("squad> ");
        let squad = timed(|number| {
            person.types("@agent-1 look around\r");
            person.waits_for_times("; run ", number + 1);
        });
        person.types("/quit\r");
        child.wait().expect("it ends");
        let bare = self.bare_messages(engine);
        let turns = fs::read_to_string(file).expect("turns");
        let turns = turns.lines().skip(1).map(|line| Duration::from_nanos(line.parse().expect("nanoseconds")));
        print(
            &format!("a warm turn of {}, against the bare protocol", engine.0),
            median(turns.collect()),
            median(bare.clone()),
        );
        print(&format!("a second message of {}, against the bare protocol", engine.0), median(squad), median(bare));
    }

    fn bare_messages(&self, (name, program): Engine<'_>) -> Vec<Duration> {
        match name {
            "claude" => {
                let mut engine = self.bare_command(
                    program,
                    "-p --verbose --input-format stream-json --output-format stream-json --include-partial-messages \
                     --permission-prompt-tool stdio --permission-mode default --setting-sources user \
                     --strict-mcp-config --disable-slash-commands --tools Bash,Read,Edit,Write",
                );
                let request = json!({ "subtype": "initialize", "systemPrompt": "squad runs this" });
                engine.write_line(&json!({ "type": "control_request", "request_id": "1", "request": request }));
                engine.read_until("/type", "control_response");
                timed(|_| {
                    let message = json!({ "role": "user", "content": [{ "type": "text", "text": "look around" }] });
                    engine.write_line(&json!({ "type": "user", "message": message }));
                    engine.read_until("/type", "result");
                })
            }
            "codex" => {
                let mut engine = self.bare_command(program, "app-server");
                let client = json!({ "name": "bench", "title": "bench", "version": "1" });
                let capabilities = json!({ "experimentalApi": true });
                let params = json!({ "clientInfo": client, "capabilities": capabilities });
                engine.write_line(&json!({ "id": "begin", "method": "initialize", "params": params }));
                engine.read_until("/id", "begin");
                engine.write_line(&json!({ "method": "initialized" }));
                let params = json!({
                    "cwd": self.repo(), "approvalPolicy": "never", "sandbox": "danger-full-access",
                    "developerInstructions": "squad runs this"
                });
                engine.write_line(&json!({ "id": "thread", "method": "thread/start", "params": params }));
                let thread = engine.read_until("/id", "thread")["result"]["thread"]["id"].clone();
                timed(|_| {
                    let input = json!([{ "type": "text", "text": "look around" }]);
                    let params = json!({ "threadId": thread, "input": input });
                    engine.write_line(&json!({ "id": "turn", "method": "turn/start", "params": params }));
                    engine.read_until("/method", "turn/completed");
                })
            }
            _ => {
                let (mut engine, session) = self.bare_session(program, ROUNDS);
                timed(|_| engine.copilot_turn(&session))
            }
        }
    }

    /// The most that squad itself has held, its engine's process not.
    fn memory(&self, engine: Engine<'_>) {
        for agents in [1, 8] {
            let mut squad = self.squad(engine, agents).spawn().expect("squad runs");
            let (mut most, mut own) = (0, 0);
            while squad.try_wait().expect("a child").is_none() {
                let (peak, anonymous) = memory_of(squad.id());
                (most, own) = (most.max(peak), own.max(anonymous));
                std::thread::sleep(Duration::from_millis(2));
            }
            let [most, own] = [most, own].map(|kib| kib as f64 / 1024.0);
            let what = format!("memory with {agents} of {} (without files mapped)", engine.0);
            println!("{what:<48} {most:>6.1} MiB {own:>6.1} MiB");
        }
    }
}

/// `act` lets an engine write the moment of its first byte to the file.
fn until_first_byte(file: &Path, act: impl FnOnce()) -> Duration {
    let start = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
    act();
    let at: u64 = fs::read_to_string(file).expect("a byte came").parse().expect("nanoseconds");
    Duration::from_nanos(at).saturating_sub(start)
}

/// How long each of some messages took, but for the first.
fn timed(mut send: impl FnMut(usize)) -> Vec<Duration> {
    let times = (0..=MESSAGES).map(|number| {
        let start = Instant::now();
        send(number);
        start.elapsed()
    });
    times.skip(1).collect()
}

/// KiB: the peak of all, and what is not backed by a file at this moment.
fn memory_of(process: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    (field("VmHWM:"), field("RssAnon:"))
}

/// A client of an engine's protocol that does nothing else. It ends with the end of its input.
struct Bare {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    last: u64,
}

impl Bare {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the engine runs");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, output, last: 0 }
    }

    fn copilot_turn(&mut self, session: &str) {
        self.ask("session.send", json!({ "sessionId": session, "prompt": "look around" }));
        while self.read().pointer("/params/event/type") != Some(&json!("session.idle")) {}
    }

    /// Of a protocol whose messages are lines.
    fn write_line(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().expect("a pipe"), "{message}").expect("it listens");
    }

    /// The next such message that has this value there.
    fn read_until(&mut self, path: &str, value: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("it answers") > 0, "it has ended");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            assert!(message.get("error").is_none(), "{message}");
            if message.pointer(path).and_then(Value::as_str) == Some(value) {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) {
        self.last += 1;
        let text = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }).to_string();
        self.write(&text);
        while self.read()["id"] != json!(self.last) {}
    }

    fn write(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("it listens");
    }

    /// The next message; a hook is answered.
    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("it answers") > 0, "it has ended");
            match line.trim().strip_prefix("Content-Length:") {
                Some(value) => length = value.trim().parse().expect("a length"),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut content = vec![0; length];
        self.output.read_exact(&mut content).expect("a message");
        let message: Value = serde_json::from_slice(&content).expect("JSON");
        if message["method"] == "hooks.invoke" {
            self.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} }).to_string());
            return Value::Null;
        }
        assert!(message.get("error").is_none(), "{message}");
        message
    }
}
