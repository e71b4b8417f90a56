//! What squad adds to an engine: until the engine's first byte, to a whole run, and in memory.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::model_server::{ModelServer, Script};
use crate::{ROUNDS, SQUAD, copilot_cli, median, print, run};

/// Set for the engine that this program plays itself: the file it writes when its first byte comes.
const FIRST_BYTE: &str = "BENCH_FIRST_BYTE";

/// Plays the engine that only takes its first byte, where it was started as one.
pub(crate) fn is_played() -> bool {
    let Some(file) = std::env::var_os(FIRST_BYTE) else { return false };
    let read = std::io::stdin().read(&mut [0]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
    fs::write(file, if read.is_ok() { now.as_nanos().to_string() } else { String::new() }).expect("a file");
    true
}

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "an engine", "squad", "floor", "ratio");
    let world = World::new([Script::new("squad runs", ["say:Done."])]);
    world.first_byte();
    let Some(runtime) = runtime() else {
        return println!("the rest needs the CLI: .ci/install-real-parts installs it");
    };
    world.whole_run(&runtime);
    world.sandboxed(&runtime);
    world.memory(&runtime);
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

    fn quiet_squad(&self, engine: &Path, agents: usize) -> Command {
        let mut command = self.squad(engine, &["--json", "--permissions", "deny", "Look around"]);
        command.args((1..=agents).map(|agent| format!("--agent=agent-{agent}")));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub(crate) fn squad(&self, engine: &Path, options: &[&str]) -> Command {
        let mut command = Command::new(SQUAD);
        command.arg("orchestrate").args(options).current_dir(self.repo());
        command.env("COPILOT_CLI_PATH", engine).env("HOME", self.folder.path()).env("COPILOT_OFFLINE", "true");
        command.env("COPILOT_PROVIDER_TYPE", "openai").env("COPILOT_PROVIDER_WIRE_API", "completions");
        command.env("COPILOT_PROVIDER_BASE_URL", self.model.url()).env("COPILOT_PROVIDER_API_KEY", "a-long-key");
        // What the sandbox costs is measured by itself.
        command.env("SQUAD_SANDBOX_LEVEL", "rules");
        command.env("COPILOT_MODEL", "fake-1");
        command
    }

    /// From squad's start to the engine's first byte, against an engine that is started and given one.
    fn first_byte(&self) {
        let engine = std::env::current_exe().expect("this program");
        let file = self.folder.path().join("first-byte");
        let (mut squad, mut floor) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            squad.push(until_first_byte(&file, || {
                self.quiet_squad(&engine, 1).env(FIRST_BYTE, &file).status().expect("squad runs");
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
        print("to the first byte, against a bare start", median(squad), median(floor));
        print("the same, the fastest of all", least, bare);
    }

    fn whole_run(&self, runtime: &Path) {
        let (mut squad, mut bare) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let start = Instant::now();
            assert!(self.quiet_squad(runtime, 1).status().expect("squad runs").success(), "the run is completed");
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
                    let mut squad = self.quiet_squad(runtime, 1);
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
        let mut command = Command::new(runtime);
        command.args(["--server", "--stdio", "--no-auto-update", "--no-auto-login"]).current_dir(self.repo());
        command.env("COPILOT_HOME", self.folder.path().join("home")).env("COPILOT_OFFLINE", "true");
        command.env("COPILOT_PROVIDER_BASE_URL", self.model.url()).env("COPILOT_MODEL", "fake-1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut engine = Bare::start(command);
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
        engine.ask("session.send", json!({ "sessionId": session, "prompt": "Look around" }));
        while engine.read().pointer("/params/event/type") != Some(&json!("session.idle")) {}
        engine.ask("session.destroy", json!({ "sessionId": session }));
        drop(engine.child.stdin.take());
        engine.child.wait().expect("it ends");
    }

    /// The most that squad itself has held, its engine's process not.
    fn memory(&self, runtime: &Path) {
        for agents in [1, 8] {
            let mut squad = self.quiet_squad(runtime, agents).spawn().expect("squad runs");
            let (mut most, mut own) = (0, 0);
            while squad.try_wait().expect("a child").is_none() {
                let (peak, anonymous) = memory_of(squad.id());
                (most, own) = (most.max(peak), own.max(anonymous));
                std::thread::sleep(Duration::from_millis(2));
            }
            let [most, own] = [most, own].map(|kib| kib as f64 / 1024.0);
            let what = format!("memory with {agents} at once (without files mapped)");
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

/// KiB: the peak of all, and what is not backed by a file at this moment.
fn memory_of(process: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    (field("VmHWM:"), field("RssAnon:"))
}

/// A client of the protocol that does nothing else.
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
