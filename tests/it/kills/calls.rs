//! Commands that write, what has to be there before each, and what each has acknowledged by what it printed.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};

use crate::support::{Dice, TestRepo};

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

/// What is scrubbed.
const SECRET: &str = "Swordfish";

/// Events that are durable before they are shown; from the model, by name.
const DURABLE: [&str; 9] = [
    "run.started",
    "route.planned",
    "step.completed",
    "decision.logged",
    "decision.landed",
    "memory.logged",
    "agent.completed",
    "run.completed",
    "review.verdict",
];

/// A command line and its input.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) arguments: Vec<String>,
    input: &'static str,
}

impl Call {
    pub(super) fn new(name: &'static str, arguments: &[&str]) -> Self {
        Self { name, arguments: arguments.iter().map(|word| (*word).to_owned()).collect(), input: "" }
    }

    fn reading(self, input: &'static str) -> Self {
        Self { input, ..self }
    }

    /// Squad at work in a process of its own, what it prints in files: nobody has to read while it is killed.
    pub(super) fn start(&self, repo: &TestRepo, place: &str) -> Running {
        let base = repo.root().join("..");
        let [out, err] = ["out", "err"].map(|kind| base.join(format!("{place}.{kind}")));
        let file = |path: &PathBuf| fs::File::create(path).expect("a file");
        let mut command = repo.command(BINARY, &repo.root());
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(file(&out)).stderr(file(&err));
        let mut child = command.spawn().expect("squad runs");
        // One that does not read has ended.
        let _ = child.stdin.take().expect("a pipe").write_all(self.input.as_bytes());
        Running { child, out, err }
    }

    pub(super) fn run(&self, repo: &TestRepo) -> Output {
        self.start(repo, "whole").ended()
    }
}

pub(super) struct Running {
    pub(super) child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    pub(super) fn ended(mut self) -> Output {
        let status = self.child.wait().expect("it ends");
        let read = |path: &PathBuf| fs::read(path).expect("its output");
        Output { status, stdout: read(&self.out), stderr: read(&self.err) }
    }
}

/// What squad has said to be so.
#[derive(Default)]
pub(super) struct Acknowledged {
    /// Ids of decisions.
    pub(super) decisions: BTreeSet<String>,
    /// Ids of entries.
    pub(super) entries: BTreeSet<String>,
}

impl Acknowledged {
    /// Takes down what a command printed. A line that death cut short is no acknowledgement.
    pub(super) fn hear(&mut self, call: &Call, output: &Output) {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            match call.name {
                "add" | "supersede" | "import" => {
                    self.decisions.extend(line.split_whitespace().next().map(str::to_owned));
                }
                "orchestrate" => {
                    let event: serde_json::Value = serde_json::from_str(line).expect("an event");
                    if DURABLE.contains(&event["type"].as_str().expect("a type")) {
                        self.entries.insert(event["entry"].as_str().expect("an entry").to_owned());
                    }
                    if event["type"] == "decision.logged" {
                        self.decisions.insert(event["id"].as_str().expect("an id").to_owned());
                    }
                }
                _ => {}
            }
        }
    }
}

/// The kinds of call, of which the next is chosen.
pub(super) const KINDS: [&str; 15] = [
    "add",
    "add",
    "supersede",
    "land",
    "import",
    "history",
    "orchestrate",
    "restore",
    "scrub",
    "undo",
    "sync",
    "gc",
    "config",
    "init",
    "repair",
];

/// Prepares calls in one repository.
pub(super) struct Caller<'a> {
    pub(super) repo: &'a TestRepo,
    pub(super) dice: &'a mut Dice,
    pub(super) heard: &'a mut Acknowledged,
    pub(super) number: &'a mut usize,
}

impl Caller<'_> {
    /// Runs one that nobody kills, and insists on its end.
    fn must(&mut self, call: &Call) -> String {
        let output = call.run(self.repo);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{call:?}: {said}");
        self.heard.hear(call, &output);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn title(&mut self) -> String {
        *self.number += 1;
        let secret = if self.dice.below(3) == 0 { SECRET } else { "nothing" };
        format!("Decision {}\n\nThe code is {secret}.", self.number)
    }

    pub(super) fn add(&mut self) -> Call {
        Call::new("add", &["decisions", "add", &self.title()])
    }

    pub(super) fn prepare(&mut self, kind: &str) -> Call {
        match kind {
            "supersede" if !self.heard.decisions.is_empty() => {
                let at = self.dice.below(self.heard.decisions.len());
                let id = self.heard.decisions.iter().nth(at).expect("it is there").clone();
                Call::new("supersede", &["decisions", "supersede", &id, &self.title()])
            }
            "land" => self.land(),
            "import" => self.import(),
            "history" => {
                self.orchestrate();
                self.must(&self.run_of_script());
                Call::new("history", &["history", "land"])
            }
            "orchestrate" => self.orchestrate(),
            "restore" => self.restore(),
            "scrub" => self.scrub(),
            "undo" => {
                let scrub = self.scrub();
                self.must(&Call { arguments: scrub.arguments[..3].to_vec(), ..scrub });
                Call::new("undo", &["scrub", "--undo"])
            }
            "sync" => Call::new("sync", &["sync", "--yes"]),
            "gc" => Call::new("gc", &["gc"]),
            "config" => {
                let time = format!("{}s", 10 + self.dice.below(50));
                Call::new("config", &["config", "set", "sessions.timeout", &time])
            }
            _ => self.add(),
        }
    }

    /// A decision that nothing has landed.
    fn land(&mut self) -> Call {
        let lock = self.repo.root().join(".git/index.lock");
        fs::write(&lock, "").expect("a lock");
        let add = self.add();
        self.must(&add);
        fs::remove_file(&lock).expect("it is ours");
        Call::new("land", &["decisions", "land"])
    }

    /// A note that the user has committed.
    fn import(&mut self) -> Call {
        *self.number += 1;
        let path = format!(".squad/decisions/inbox/note-{}.md", self.number);
        let text = format!("### 2026-01-02: Noted {}\n\nBlack.\n\n### 2026-01-03: And {0}\n\nLater.\n", self.number);
        self.repo.write(&path, &text);
        self.repo.git(&["add", "--", &path]);
        self.repo.git(&["commit", "-q", "-m", "note", "--only", "--", &path]);
        Call::new("import", &["decisions", "import", &path])
    }

    fn run_of_script(&self) -> Call {
        let arguments = ["orchestrate", "--json", "--script", "../script.toml", "--agent", "ada"];
        Call::new("orchestrate", &[&arguments[..], &["--permissions", "allow", "learn"]].concat())
    }

    fn orchestrate(&mut self) -> Call {
        let mut steps = Vec::new();
        for _ in 0..1 + self.dice.below(3) {
            *self.number += 1;
            let number = self.number.to_string();
            steps.push(format!(
                "{{ tool = \"squad_log_decision\", args = {{ title = \"Run {number}\", what = \"{SECRET}\" }} }}"
            ));
            steps.push(format!("{{ tool = \"squad_remember\", args = {{ text = \"Learned {number}\" }} }}"));
            steps.push(format!("{{ write = \"agent/out.txt\", text = \"{number}\" }}, {{ wait = \"5ms\" }}"));
        }
        let steps = steps.join(",\n  ");
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [\n  {steps},\n  {{ say = \"Done.\" }},\n]\n");
        self.repo.write("../script.toml", &script);
        self.run_of_script()
    }

    /// A file of the user's that has changed since an import.
    fn restore(&mut self) -> Call {
        self.repo.write(super::user::KEPT, "kept\n");
        let import = self.import();
        self.must(&import);
        self.repo.write(super::user::KEPT, "another\n");
        let rescues = self.repo.git(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/squad/rescue"]);
        let newest = rescues.lines().max().expect("an import keeps a rescue").to_owned();
        Call::new("restore", &["rescue", "restore", &newest, super::user::KEPT])
    }

    fn scrub(&mut self) -> Call {
        *self.number += 1;
        let text = format!("Decision {}\n\nThe code is {SECRET}.", self.number);
        self.must(&Call::new("add", &["decisions", "add", &text]));
        let prune = if self.dice.below(2) == 0 { &["--prune"][..] } else { &[] };
        Call::new("scrub", &[&["scrub", "--value-stdin", "--yes"], prune].concat()).reading(SECRET)
    }
}

/// The push that `squad sync` names where a remote has the ledger as it was before a scrub.
pub(super) fn push_named(said: &str) -> Option<Vec<String>> {
    let named = said.lines().find_map(|line| line.split_once("git push ").map(|(_, rest)| rest))?;
    Some(std::iter::once("push").chain(named.split_whitespace()).map(str::to_owned).collect())
}
