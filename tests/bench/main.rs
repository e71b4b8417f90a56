//! `cargo bench --features bench`: squad against git, as whole processes, in turn in one run. Prints medians and their ratio, and
//! asserts nothing: machines are shared and noisy.

mod clone;
#[path = "../support/copilot_cli.rs"]
mod copilot_cli;
mod engine;
mod knowledge;
mod ledger;
mod mcp;
#[path = "../support/model_server.rs"]
#[expect(dead_code, reason = "the real tests need more of it")]
mod model_server;
mod policy;
mod review;
mod route;
#[cfg(unix)]
mod screen;
mod secrets;
mod snapshot;
mod team;
#[cfg(unix)]
#[path = "../support/terminal.rs"]
mod terminal;
mod undo;
#[path = "../../src/engine/prove/wires.rs"]
mod wires;
mod work;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SQUAD: &str = env!("CARGO_BIN_EXE_squad");
const ROUNDS: usize = 31;

/// `cargo bench --features bench -- ledger` runs only those of the ledger; the other groups are `clone`, `commands`, `engine`,
/// `knowledge`, `mcp`, `policy`, `review`, `route`, `screen`, `secrets`, `snapshot`, `team` and `undo`.
fn main() {
    if engine::is_played() {
        return;
    }
    let benches: &[(&str, fn())] = &[
        ("clone", clone::bench),
        ("commands", commands),
        ("engine", engine::bench),
        ("knowledge", knowledge::bench),
        ("ledger", ledger::bench),
        ("mcp", mcp::bench),
        ("policy", policy::bench),
        ("review", review::bench),
        ("route", route::bench),
        #[cfg(unix)]
        ("screen", screen::bench),
        ("secrets", secrets::bench),
        ("snapshot", snapshot::bench),
        ("team", team::bench),
        ("undo", undo::bench),
    ];
    let is_named = |name: &str| std::env::args().any(|argument| argument == name);
    let all = !benches.iter().any(|(name, _)| is_named(name));
    for (_, bench) in benches.iter().filter(|(name, _)| all || is_named(name)) {
        bench();
    }
}

fn commands() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repo = folder.path();
    run(repo, "git", &["init", "--quiet", "--initial-branch=main"]);
    run(repo, "git", &["config", "user.name", "bench"]);
    run(repo, "git", &["config", "user.email", "bench@example.com"]);
    run(repo, SQUAD, &["--quiet", "init"]);

    println!("{:<48} {:>10} {:>10} {:>7}", "median of whole processes", "squad", "peer", "ratio");
    compare(repo, "--version, against an empty process", &["--version"], ("true", &[]));
    compare(repo, "--version, against `git --version`", &["--version"], ("git", &["--version"]));
    compare(repo, "status of an empty ledger, against `git status`", &["status"], ("git", &["status"]));
    fill(repo, 10_000);
    compare(repo, "status of 10,000 entries, against `git status`", &["status"], ("git", &["status"]));
    compare(repo, "log of 10,000 entries, against `git log -20`", &["log"], ("git", &["log", "-20"]));
    first_byte(repo);
    compile(&folder.path().join("large"));
}

fn run(repo: &Path, program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).current_dir(repo).stdout(Stdio::null()).status().expect("it runs");
    assert!(done.success(), "{program} {arguments:?}");
}

fn time(repo: &Path, program: &str, arguments: &[&str]) -> Duration {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(repo).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    command.status().expect("it runs");
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn compare(repo: &Path, what: &str, squad: &[&str], (peer, arguments): (&str, &[&str])) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(time(repo, SQUAD, squad));
        theirs.push(time(repo, peer, arguments));
    }
    print(what, median(ours), median(theirs));
}

fn print(what: &str, ours: Duration, theirs: Duration) {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{what:<48} {:>7.2} ms {:>7.2} ms {ratio:>6.2}×", ours.as_secs_f64() * 1e3, theirs.as_secs_f64() * 1e3);
}

/// Puts entries into the ledger by `git fast-import`, a hundred days of them.
fn fill(repo: &Path, count: usize) {
    import(repo, count, |number| format!("log/2026/{:02}/{:02}", 1 + number % 100 / 25, 1 + number % 25));
}

fn import(repo: &Path, count: usize, folder: impl Fn(usize) -> String) {
    let mut stream =
        String::from("commit refs/squad/log\ncommitter squad <squad@localhost> 1767600000 +0000\ndata 5\nbench\n");
    for number in 0..count {
        let id = format!("019b8d1f-6c00-7000-8000-{number:012}");
        let text = format!(
            "---\nsquad: 1\nid: \"{id}\"\nat: \"2026-01-01T09:00:00Z\"\nkind: \"agent.message\"\nrun: \"r\"\nseq: 1\n\
             agent: \"backend\"\nactor: \"agent\"\ncauses: []\nredactions: []\npayload: {{}}\n---\nmessage {number}\n"
        );
        let folder = folder(number);
        stream.push_str(&format!("M 100644 inline {folder}/{id}-agent.message.md\ndata {}\n{text}\n", text.len()));
    }
    self::stream(repo, &stream);
}

/// Feeds `git fast-import`.
fn stream(repo: &Path, stream: &str) {
    let file = repo.join(".git/bench-stream");
    fs::write(&file, stream).expect("a file");
    let input = fs::File::open(&file).expect("a file");
    let done =
        Command::new("git").args(["fast-import", "--quiet"]).current_dir(repo).stdin(input).status().expect("git runs");
    assert!(done.success(), "git fast-import");
}

/// A team of 2 MB, compiled when nothing is known of it, when its files were touched and when nothing changed, against
/// reading the same bytes.
fn compile(repo: &Path) {
    fs::create_dir(repo).expect("a folder");
    run(repo, "git", &["init", "--quiet", "--initial-branch=main"]);
    let files = large_team(repo);
    let bytes: u64 = files.iter().map(|file| fs::metadata(repo.join(file)).expect("a file").len()).sum();
    let peer: Vec<&str> = files.iter().map(String::as_str).collect();
    let of = format!("{:.1} MB team", bytes as f64 / 1e6);
    let cache = repo.join(".git/squad");
    let (mut cold, mut touched, mut unchanged, mut chosen, mut theirs) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        // None is there the first time.
        let _ = fs::remove_dir_all(&cache);
        cold.push(time(repo, SQUAD, &["agents"]));
        touched.push(time(repo, SQUAD, &["agents"]));
        theirs.push(time(repo, "cat", &peer));
    }
    // Files as new as this are not yet trusted to be unchanged by their looks alone.
    std::thread::sleep(Duration::from_millis(2_100));
    run(repo, SQUAD, &["agents", "--quiet"]);
    for _ in 0..ROUNDS {
        unchanged.push(time(repo, SQUAD, &["agents"]));
        chosen.push(time(repo, SQUAD, &["agents", "show", "agent-1", "--prompt", "--task", "Rotate the login keys"]));
    }
    let theirs = median(theirs);
    print(&format!("{of}, cold, against `cat` of its files"), median(cold), theirs);
    print(&format!("{of}, same content"), median(touched), theirs);
    print(&format!("{of}, unchanged"), median(unchanged), theirs);
    print(&format!("{of}, unchanged, a prompt for a task"), median(chosen), theirs);
}

/// Twenty agents with long histories, a long `decisions.md`, and decisions of their own files.
fn large_team(repo: &Path) -> Vec<String> {
    let mut files: Vec<(String, String)> = Vec::new();
    let text = "The login endpoint rotates its signing keys; `the tests` cover **both** orders of events.\n";
    let mut roster = "| Name | Role | Status |\n|---|---|---|\n".to_owned();
    for agent in 1..=20 {
        roster.push_str(&format!("| Agent {agent} | Role {agent} | Active |\n"));
        let folder = format!(".squad/agents/agent-{agent}");
        let charter = format!("# Agent {agent} — Role {agent}\n\n## What I Own\n\n{}", format!("- {text}").repeat(30));
        files.push((format!("{folder}/charter.md"), charter));
        let notes: String = (0..120)
            .map(|note| format!("### 2026-01-{:02}: Note {note}\n\n{}\n", 1 + note % 28, text.repeat(3)))
            .collect();
        files.push((format!("{folder}/history.md"), format!("# History\n\n## Learnings\n\n{notes}")));
    }
    files.push((".squad/team.md".to_owned(), roster));
    let rules: String = (1..=20).map(|agent| format!("| Work {agent} | Agent {agent} | thing {agent} |\n")).collect();
    files
        .push((".squad/routing.md".to_owned(), format!("| Work Type | Route To | Examples |\n|---|---|---|\n{rules}")));
    let entry = |number: usize| {
        format!(
            "### 2025-{:02}-{:02}: Decision {number}\n**By:** Agent 1\n\n{}\n",
            1 + number % 12,
            1 + number % 28,
            text.repeat(8)
        )
    };
    files.push((".squad/decisions.md".to_owned(), (0..1_500).map(entry).collect()));
    for number in 0..200 {
        let id = format!("{number:012x}");
        let body = format!("---\nid: \"{id}\"\ndate: \"2026-01-05\"\n---\n# Decision {number}\n\n{}", text.repeat(4));
        files.push((format!(".squad/decisions/2026/01/05-decision-{id}.md"), body));
    }
    for (path, text) in &files {
        let path = repo.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    files.into_iter().map(|(path, _)| path).collect()
}

/// From the start of the process to the moment the engine is handed the first session, and what an agent more costs.
/// The floor is a process that starts and appends nothing: `squad --version`.
fn first_byte(repo: &Path) {
    let agents = ["lead", "backend", "frontend", "tester", "docs", "reviewer"];
    let (mut one, mut six, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        one.push(until_sessions(repo, &agents[..1]));
        six.push(until_sessions(repo, &agents));
        floor.push(time(repo, SQUAD, &["--version"]));
    }
    let (one, six) = (median(one), median(six));
    print("orchestrate to the engine, against --version", one, median(floor));
    println!("{:<48} {:>7.2} ms", "each further agent", six.saturating_sub(one).as_secs_f64() * 1e3 / 5.0);
}

fn until_sessions(repo: &Path, agents: &[&str]) -> Duration {
    let mut command = Command::new(SQUAD);
    command.args(["orchestrate", "--json", "--engine", "rehearsal", "--no-commit", "x"]).current_dir(repo);
    for agent in agents {
        command.args(["--agent", agent]);
    }
    let start = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("squad runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut opened = 0;
    while opened < agents.len() {
        let line = lines.next().expect("the run goes on until its sessions are open");
        opened += usize::from(line.contains("\"session.created\""));
    }
    let elapsed = start.elapsed();
    lines.for_each(drop);
    child.wait().expect("it ends");
    elapsed
}
