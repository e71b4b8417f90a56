//! A repository with a team of three, a model that plays scripts, and squad as a process between them.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::copilot_cli;
use crate::model_server::{ModelServer, Script};
use crate::repository::TestRepo;

/// Whatever takes as long as this hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// A key of this world's provider; nobody's secret.
pub(crate) const KEY: &str = "a-long-key-of-a-test";

pub(crate) const COORDINATOR: &str = "You coordinate a team of AI coding agents";

/// Slug, name, role, and a sentence that stands in the charter and nowhere else.
const MEMBERS: [(&str, &str, &str, &str); 3] = [
    ("ada", "Ada", "Backend Dev", "An endpoint answers, or says why it cannot."),
    ("bob", "Bob", "Tester", "A defect without a test comes back."),
    ("cy", "Cy", "Tech Writer", "A page that nobody reads is a page too many."),
];

/// What is only in this agent's charter.
pub(crate) fn creed(agent: &str) -> &'static str {
    MEMBERS.iter().find(|(slug, ..)| *slug == agent).expect("a member").3
}

/// What an agent's model does, whatever it is told.
pub(crate) fn plays(agent: &str, steps: &[&str]) -> Script {
    Script::new(creed(agent), steps.iter().copied())
}

/// Steps of a script.
pub(crate) fn call(tool: &str, arguments: &Value) -> String {
    format!("tool:{tool} {arguments}")
}

pub(crate) fn shell(command: &str) -> String {
    call("bash", &json!({ "command": command, "description": "A test's command" }))
}

pub(crate) fn create(path: &Path, text: &str) -> String {
    call("create", &json!({ "path": path, "file_text": text }))
}

pub(crate) fn decide(title: &str) -> String {
    call("squad_log_decision", &json!({ "title": title, "what": "One shape.", "why": "Clients parse it." }))
}

pub(crate) struct World {
    pub(crate) repo: TestRepo,
    pub(crate) model: ModelServer,
}

impl World {
    /// `scripts` is given the repository's root: the CLI's own tools take absolute paths.
    pub(crate) fn new<const N: usize>(scripts: impl FnOnce(&Path) -> [Script; N]) -> Self {
        Self::of(TestRepo::empty(), scripts)
    }

    /// Not in shared memory, which agents may write at level `files`.
    pub(crate) fn on_disk<const N: usize>(scripts: impl FnOnce(&Path) -> [Script; N]) -> Self {
        Self::of(TestRepo::empty_on_disk(), scripts)
    }

    fn of<const N: usize>(mut repo: TestRepo, scripts: impl FnOnce(&Path) -> [Script; N]) -> Self {
        install_team(&repo);
        let model = ModelServer::start(scripts(&repo.root()));
        repo.variables.remove("COPILOT_CLI_PATH");
        // Real engines work in the sandbox, at the strongest level of the system.
        repo.variables.remove("SQUAD_SANDBOX_LEVEL");
        let cache = copilot_cli::cache();
        for (name, value) in [
            ("XDG_CACHE_HOME", cache.to_str().expect("UTF-8")),
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_PROVIDER_TYPE", "openai"),
            ("COPILOT_PROVIDER_WIRE_API", "completions"),
            ("COPILOT_PROVIDER_BASE_URL", &model.url()),
            ("COPILOT_PROVIDER_API_KEY", KEY),
            ("COPILOT_MODEL", "fake-1"),
        ] {
            repo.variables.insert(name.to_owned(), value.to_owned());
        }
        Self { repo, model }
    }

    fn home(&self) -> &str {
        &self.repo.variables["HOME"]
    }

    /// Starts squad. Its standard error goes to a file: nobody has to read it for squad to go on.
    pub(crate) fn start(&self, arguments: &[&str]) -> Run {
        let errors = Path::new(self.home()).with_file_name("stderr.txt");
        let mut command = self.repo.command(env!("CARGO_BIN_EXE_squad"), &self.repo.root());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(File::create(&errors).expect("a file")).spawn().expect("squad runs");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Run { child, lines, seen: Vec::new(), errors }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// Ids and command lines of this world's processes: those that were given its home, by whomever. Not git, which
    /// packs the repository in the background when a run has ended and is never ended by squad.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let mut found = processes_with(&format!("HOME={}", self.home()));
        found.retain(|(_, line)| !program(line).starts_with("git"));
        found
    }

    /// One of its processes that runs the program of that name, once there is one.
    pub(crate) fn process(&self, name: &str) -> u32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let all = self.processes();
            if let Some((id, _)) = all.iter().find(|(_, line)| program(line) == name) {
                return *id;
            }
            assert!(Instant::now() < deadline, "no {name} among {all:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until nothing of this world is running any more.
    pub(crate) fn settle(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.processes().is_empty() {
            assert!(Instant::now() < deadline, "still there: {:?}", self.processes());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The ledger's entries of a kind, in their order.
    pub(crate) fn ledger(&self, kind: &str) -> Vec<String> {
        let paths = self.repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
        let paths = paths.lines().filter(|path| path.ends_with(&format!("-{kind}.md")));
        paths.map(|path| self.repo.git(&["show", &format!("refs/squad/log:{path}")])).collect()
    }

    /// The requests that reached the model and hold this text.
    pub(crate) fn requests_with(&self, text: &str) -> Vec<String> {
        let quoted = json!(text).to_string();
        let inner = quoted.trim_matches('"');
        let requests = self.model.requests().into_iter().map(|request| request.to_string());
        requests.filter(|request| request.contains(inner)).collect()
    }

    /// What has to be so after every run, however it ended.
    pub(crate) fn assert_left_in_order(&self, ended: &Ended) {
        assert_eq!(self.processes(), [], "{ended}");
        self.repo.assert_sound();
        let objects = self.repo.git(&["cat-file", "--batch-all-objects", "--batch"]);
        assert!(!objects.contains(KEY), "the key is in the repository\n{ended}");
        let mut lasting: Vec<_> = fs::read_dir(self.home()).expect("a home").flatten().map(|e| e.file_name()).collect();
        // squad's own state, without which there is no sandbox.
        lasting.retain(|name| name != ".local");
        assert_eq!(lasting, ["cache"], "the user's home is not the engine's\n{ended}");
    }
}

impl Drop for World {
    /// After a test that failed, something may still be running.
    fn drop(&mut self) {
        for (id, _) in self.processes() {
            let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
        }
    }
}

/// The name of the program in a command line.
fn program(line: &str) -> &str {
    line.split(' ').next().and_then(|path| path.rsplit('/').next()).unwrap_or_default()
}

/// Ids and command lines of the processes with this variable.
pub(crate) fn processes_with(mark: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("Linux").flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes()) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            // A process that ends just now has no command line any more.
            if !line.is_empty() {
                found.push((id, line));
            }
        }
    }
    found
}

fn install_team(repo: &TestRepo) {
    let mut roster = "# Harbour\n\n| Name | Role | Charter |\n|---|---|---|\n".to_owned();
    for (slug, name, role, creed) in MEMBERS {
        let path = format!("agents/{slug}/charter.md");
        roster.push_str(&format!("| {name} | {role} | `{path}` |\n"));
        repo.write(&format!(".squad/{path}"), &format!("# {name} — {role}\n\n## How I Work\n\n{creed}\n"));
    }
    repo.write(".squad/team.md", &roster);
    let decision = |id: &str, supersedes: &str, title: &str| {
        let text = format!("---\nid: {id}\ndate: 2026-01-02T09:00:00Z\n{supersedes}---\n# {title}\n");
        repo.write(&format!(".squad/decisions/2026/01/02-x-{id}.md"), &text);
    };
    decision("0000000000a1", "", "Times are local");
    decision("0000000000a2", "supersedes: 0000000000a1\n", "Times are UTC");
    repo.write("staged.txt", "one\n");
    repo.write("edited.txt", "one\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=team"]);
}

pub(crate) fn signal(process: u32, name: &str) {
    let done = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(done.expect("kill runs").success());
}

/// A squad that is running.
pub(crate) struct Run {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    errors: PathBuf,
}

impl Run {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads until a line holds all of these.
    pub(crate) fn wait_for(&mut self, texts: &[&str]) {
        loop {
            let line = self.line();
            assert!(line.is_some(), "{texts:?} never came:\n{}", self.so_far(None));
            if line.is_some_and(|line| texts.iter().all(|text| line.contains(text))) {
                return;
            }
        }
    }

    /// Reads the rest.
    pub(crate) fn end(mut self) -> Ended {
        while self.line().is_some() {}
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return self.so_far(status.code());
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.so_far(None));
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn line(&mut self) -> Option<String> {
        let line = self.lines.recv_timeout(PATIENCE);
        assert!(line != Err(RecvTimeoutError::Timeout), "it hangs:\n{}", self.so_far(None));
        self.seen.extend(line.clone());
        line.ok()
    }

    pub(crate) fn so_far(&self, code: Option<i32>) -> Ended {
        Ended { out: self.seen.join("\n"), err: fs::read_to_string(&self.errors).unwrap_or_default(), code }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // It has ended, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What squad printed, with its exit code.
pub(crate) struct Ended {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n--- stderr\n{}--- exit {:?}", self.out, self.err, self.code)
    }
}

impl Ended {
    /// The events of a run that was asked for as JSON, held to what is promised of all of them.
    pub(crate) fn events(&self) -> Vec<Value> {
        let events: Vec<Value> = self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
        // The numbers of a run that is resumed go on.
        let first = events.first().and_then(|event| event["seq"].as_u64()).unwrap_or(1);
        for (number, event) in (first..).zip(&events) {
            assert_eq!(event["seq"], number, "{self}");
            assert_eq!(event["run"], events[0]["run"], "{self}");
            assert!(event["at"].is_string() && event["type"].is_string() && event.get("agent").is_some(), "{self}");
        }
        let ends = events.iter().filter(|event| event["type"] == "run.completed").count();
        assert!(ends == 1 && events.last().is_some_and(|last| last["type"] == "run.completed"), "{self}");
        events
    }

    /// The event of that kind, of which there has to be one.
    pub(crate) fn only(&self, kind: &str) -> Value {
        let mut found = self.of(kind);
        assert_eq!(found.len(), 1, "{kind}: {self}");
        found.remove(0)
    }

    pub(crate) fn of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// The first event of that kind that an agent caused.
    pub(crate) fn first_of(&self, kind: &str, agent: &str) -> Value {
        let first = self.of(kind).into_iter().find(|event| event["agent"] == agent);
        assert!(first.is_some(), "no {kind} of {agent}: {self}");
        first.unwrap_or_default()
    }

    /// The exit code, the status of the run, and those of the agents.
    pub(crate) fn assert_status(&self, code: i32, status: &str, agents: &Value) {
        let last = self.only("run.completed");
        assert_eq!((self.code, &last["status"], &last["agents"]), (Some(code), &json!(status), agents), "{self}");
    }
}
