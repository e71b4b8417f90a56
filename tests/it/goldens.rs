//! What squad prints, writes and commits, whole: a change to how it works shows whatever else it changes.
//!
//! `UPDATE_EXPECT=1 cargo test --test it goldens` writes the files in `fixtures/goldens` anew.

use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use expect_test::expect_file;
use serde_json::Value;

use crate::support::{Output, TestRepo};
use crate::{adopt, upgrade};

/// Commands and what they print.
struct Transcript {
    text: String,
}

impl Transcript {
    fn new() -> Self {
        Self { text: String::new() }
    }

    fn squad(&mut self, repo: &TestRepo, arguments: &[&str]) -> Output {
        let output = repo.squad(arguments);
        let line = arguments.iter().fold(String::new(), |line, argument| match argument.contains([' ', '"']) {
            true => format!("{line} {argument:?}"),
            false => format!("{line} {argument}"),
        });
        writeln!(self.text, "$ squad{line}\n{output}").expect("a text");
        output
    }

    /// The same, and what it did to the repository.
    fn change(&mut self, repo: &TestRepo, arguments: &[&str]) {
        let before = repo.git(&["rev-parse", "HEAD"]);
        self.squad(repo, arguments);
        let range = format!("{}..HEAD", before.trim());
        let commits =
            repo.git(&["log", "--reverse", "--format=commit %an <%ae>%n%B", "--summary", "--numstat", &range]);
        let status = repo.git(&["status", "--porcelain"]);
        writeln!(self.text, "--- commits\n{commits}--- status\n{status}").expect("a text");
    }

    fn check(&self, name: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/goldens").join(name);
        expect_file![path].assert_eq(&self.text);
    }
}

/// The subcommands that a help lists.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with("  "));
    // A name stands two columns in; what is deeper goes on with a line.
    let named = listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    named.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn help_of_every_command() {
    let repo = TestRepo::folder();
    let mut transcript = Transcript::new();
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(command) = commands.pop() {
        let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let help = transcript.squad(&repo, &arguments).out;
        let deeper = subcommands(&help).into_iter().rev();
        commands.extend(deeper.map(|name| [&command[..], &[name]].concat()));
    }
    transcript.check("help.txt");
}

const DECIDES: &str = "\
    [[turn]]\nagent = \"ada\"\nsteps = [\n\
    { tool = \"squad_log_decision\", args = { title = \"Ports are shared\", what = \"One port.\", why = \"Less to open.\" } },\n\
    { tool = \"squad_remember\", args = { text = \"Ports are in ports.toml.\" } },\n\
    { write = \"ports.toml\", text = \"port = 1\\n\" },\n\
    { say = \"The endpoint is there.\" },\n]\n";

const ALLOWED: [&str; 3] = ["--json", "--permissions", "allow"];

/// A repository whose team has worked once: run and decision.
fn worked() -> (TestRepo, String, String) {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(DECIDES, &[&ALLOWED[..], &["--agent", "ada", "Add the endpoint"]].concat());
    assert_eq!(output.code, 0, "{output}");
    let run = TestRepo::events(&output)[0]["run"].as_str().expect("an id").to_owned();
    let listed = repo.squad(&["decisions", "list", "--json"]);
    let value: Value = serde_json::from_str(&listed.out).expect("JSON");
    let decision = value["decisions"][0]["id"].as_str().expect(&listed.out).to_owned();
    (repo, run, decision)
}

#[test]
fn json_of_every_command() {
    let (mut repo, run, decision) = worked();
    // Which engines are installed on the machine does not matter.
    repo.write("../bin/keep", "");
    for program in ["git", "sh"] {
        let found = std::env::split_paths(&repo.variables["PATH"]).map(|folder| folder.join(program));
        let found = found.into_iter().find(|file| file.is_file()).expect(program);
        symlink(found, repo.root().join("../bin").join(program)).expect("a link");
    }
    let bin = repo.root().with_file_name("bin").display().to_string();
    repo.variables.insert("PATH".to_owned(), bin);
    let mut transcript = Transcript::new();
    repo.git(&["branch", "before", "HEAD~1"]);
    for arguments in [
        &["status"][..],
        &["agents"],
        &["agents", "show", "ada"],
        &["agents", "diff", "before"],
        &["route", "Add an endpoint"],
        &["route", "--explain", "Add a login and a unit test"],
        &["config", "list"],
        &["config", "get", "sessions.limit"],
        &["config", "set", "sessions.limit", "2h"],
        &["config", "unset", "sessions.limit"],
        &["decisions"],
        &["decisions", "list"],
        &["decisions", "show", &decision],
        &["decisions", "review", "before"],
        &["decisions", "radar"],
        &["log"],
        &["log", &run],
        &["diff", &run],
        &["why", "ports.toml"],
        &["why", ".squad/team.md"],
        &["why", &decision],
        &["rescue", "list"],
        &["review", "lift", &run],
        &["mcp", "--check"],
        &["engines"],
        &["doctor"],
        &["history", "land", "--dry-run"],
        &["remove", "--dry-run"],
        &["cancel", &run],
        &["log", "nobody"],
        &["agents", "show", "nobody"],
        &["orchestrate"],
        &["orchestrate", "--dry-run", "Add an endpoint"],
        &["orchestrate", "--engine", "rehearsal", "Add an endpoint"],
        &["knowledge", "add", "--from-decision", &decision],
        &["knowledge"],
        &["knowledge", "list", "--proposed"],
        &["knowledge", "search", "Share the ports"],
        &["sync", "--links"],
    ] {
        transcript.squad(&repo, &[arguments, &["--json"]].concat());
    }
    transcript.check("json.txt");
}

#[test]
fn prompts_of_every_agent() {
    let mut transcript = Transcript::new();
    let presets = [TestRepo::with_small_team(), TestRepo::with_team(), with_preset("library"), worked().0];
    for repo in presets {
        let listed: Value = serde_json::from_str(&repo.squad(&["agents", "--json"]).out).expect("JSON");
        for agent in listed["agents"].as_array().expect("a list") {
            let hash = &agent["compiled_hash"];
            writeln!(transcript.text, "compiled as {hash}").expect("a text");
            transcript.squad(&repo, &["agents", "show", agent["slug"].as_str().expect("a name")]);
        }
    }
    transcript.check("prompts.txt");
}

fn with_preset(preset: &str) -> TestRepo {
    let repo = TestRepo::empty();
    let output = repo.squad(&["init", "--preset", preset]);
    assert_eq!(output.code, 0, "{output}");
    repo
}

/// Scripts and messages. No agent runs a command, which takes as long as it likes.
const STORIES: [(&str, &str, &[&str]); 10] = [
    ("decides", DECIDES, &["--agent", "ada", "Add the endpoint"]),
    (
        "two side by side",
        "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"a\\n\" }, { say = \"A.\" }]\n\
         [[turn]]\nagent = \"bob\"\nsteps = [{ wait = \"1s\" }, { write = \"b.txt\", text = \"b\\n\" }, { say = \"B.\" }]\n",
        &["--agent", "ada", "--agent", "bob", "Write both"],
    ),
    (
        "one fails",
        "[[turn]]\nagent = \"ada\"\nsteps = [{ fail = \"the model is gone\" }]\n\
         [[turn]]\nagent = \"bob\"\nsteps = [{ say = \"B.\" }]\n",
        &["--agent", "ada", "--agent", "bob", "What is left to say?"],
    ),
    ("nothing done", "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Done.\" }]\n", &["--agent", "ada", "Add a test"]),
    (
        "no answer",
        "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Begun.\" }, { hang = true }]\n",
        &["--agent", "ada", "--timeout", "60s", "Add a test"],
    ),
    (
        "approved",
        "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"a\\n\" }, { say = \"A.\" }]\n\
         [[turn]]\nagent = \"rex\"\nsteps = [{ tool = \"squad_verdict\", args = { approved = true, reasons = \"It is short.\" } }, { say = \"Fine.\" }]\n",
        &["First @ada writes a.txt, then @rex reviews it"],
    ),
    (
        "rejected",
        "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"a\\n\" }, { say = \"A.\" }]\n\
         [[turn]]\nagent = \"rex\"\nsteps = [{ tool = \"squad_verdict\", args = { approved = false, reasons = \"It is short.\" } }, { say = \"No.\" }]\n\
         [[turn]]\nagent = \"bob\"\nsteps = [{ write = \"a.txt\", text = \"aa\\n\" }, { say = \"Longer.\" }]\n\
         [[turn]]\nagent = \"rex\"\nsteps = [{ tool = \"squad_verdict\", args = { approved = true, reasons = \"It is long.\" } }, { say = \"Fine.\" }]\n",
        &["First @ada writes a.txt, then @rex reviews it"],
    ),
    (
        "asks",
        "[[turn]]\nagent = \"ada\"\nsteps = [{ ask = \"Which port?\" }, { say = \"Then one.\" }]\n",
        &["--agent", "ada", "What do you need to know?"],
    ),
    (
        "the coordinator chooses",
        "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = '{\"agents\": [\"bob\"], \"reason\": \"he tests\"}' }]\n\
         [[turn]]\nagent = \"bob\"\nsteps = [{ say = \"B.\" }]\n",
        &["What is the plan for the hull?"],
    ),
    (
        "remembers",
        "[[turn]]\nagent = \"ada\"\nsteps = [{ tool = \"squad_remember\", args = { text = \"Ports are in ports.toml.\" } }, { say = \"C.\" }]\n",
        &["--agent", "ada", "Remember where the ports are"],
    ),
];

#[test]
fn logs_of_ten_runs() {
    let mut transcript = Transcript::new();
    for (name, script, arguments) in STORIES {
        let repo = TestRepo::with_small_team();
        let output = repo.rehearse(script, &[&ALLOWED[1..], arguments].concat());
        let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
        let run = log["runs"][0]["run"].as_str().expect("an id").to_owned();
        writeln!(transcript.text, "# {name}\n\n{output}").expect("a text");
        for arguments in [&["log", &run, "--json"][..], &["log", &run], &["status"]] {
            transcript.squad(&repo, arguments);
        }
    }
    transcript.check("runs.txt");
}

#[test]
fn changes_of_every_command() {
    let mut transcript = Transcript::new();
    let both = |transcript: &mut Transcript, repo: &TestRepo, arguments: &[&str]| {
        transcript.change(repo, &[arguments, &["--dry-run"]].concat());
        transcript.change(repo, arguments);
    };

    let repo = TestRepo::empty();
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=first"]);
    transcript.change(&repo, &["init"]);
    for arguments in [
        &["agents", "add", "kim", "--role", "Docs"][..],
        &["agents", "rename", "kim", "kay"],
        &["agents", "retire", "kay"],
        &["agents", "export", "--to", "claude,agents-md"],
    ] {
        both(&mut transcript, &repo, arguments);
    }
    repo.write(".gitignore", "team.squad\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=ignore"]);
    transcript.change(&repo, &["export", "team.squad"]);
    both(&mut transcript, &repo, &["remove", "--team"]);
    both(&mut transcript, &repo, &["import", "team.squad"]);
    transcript.change(&repo, &["rescue", "list"]);

    let mut repo = upgrade::first();
    repo.releases = upgrade::releases().to_vec();
    both(&mut transcript, &repo, &["upgrade"]);
    both(&mut transcript, &adopt::theirs(), &["adopt"]);

    let (repo, ..) = worked();
    repo.write(
        ".squad/decisions.md",
        "# Decisions\n\n### 2026-01-02: Tar the hull\n**By:** Uwe\n**What:** Black tar.\n",
    );
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=decisions"]);
    both(&mut transcript, &repo, &["decisions", "import"]);
    both(&mut transcript, &repo, &["history", "land"]);
    transcript.change(&repo, &["decisions", "add", "Money is integer cents: floats round."]);
    transcript.change(&repo, &["decisions", "land"]);
    transcript.check("changes.txt");
}
