//! What the screen costs: a frame, what is looked at most, and the rows of a run.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::engine::{self, World};
use crate::model_server::Script;
use crate::terminal::Person;
use crate::{ROUNDS, SQUAD, fill, median, print, run, stream, time};

/// Agents of a frame, and of a run.
const MANY: usize = 200;
const EIGHT: usize = 8;
const EVENTS: usize = 50_000;
const RUN: &str = "20260105-090000-0000b1";
const RUNS: usize = 5;
/// What each agent says and runs.
const WORDS: &str = "I settle what the endpoint answers first, so that both can work from the same words. ";
const COMMAND: &str = "git log --stat | git hash-object --stdin";
/// Pieces in which a model says its words, 0.1 s apart.
const PIECES: usize = 40;

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "the screen", "squad", "floor", "ratio");
    frames();
    let folder = repository();
    fill(folder.path(), 100_000);
    let (mut ours, mut theirs, mut agents, mut floor) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    run(folder.path(), SQUAD, &["status"]);
    run(folder.path(), SQUAD, &["agents", "--quiet"]);
    for _ in 0..ROUNDS {
        ours.push(time(folder.path(), SQUAD, &["status"]));
        theirs.push(time(folder.path(), "git", &["status"]));
        floor.push(time(folder.path(), SQUAD, &["--version"]));
        run(folder.path(), SQUAD, &["bench-append", "x", "1"]);
        agents.push(time(folder.path(), SQUAD, &["agents"]));
    }
    let status = median(ours);
    print("status of 100,000 entries, against 10 ms", status, Duration::from_millis(10));
    print("  the same, against `git status`", status, median(theirs));
    print("agents after one more entry, against --version", median(agents), median(floor));
    story();
    rows();
}

fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    run(folder.path(), "git", &["init", "--quiet", "--initial-branch=main"]);
    run(folder.path(), "git", &["config", "user.name", "bench"]);
    run(folder.path(), "git", &["config", "user.email", "bench@example.com"]);
    run(folder.path(), SQUAD, &["--quiet", "init"]);
    folder
}

fn frames() {
    // A terminal on which each has a row, and a usual one.
    for lines in [3 * (MANY + 2), 50] {
        let done = Command::new(SQUAD)
            .args(["bench-frames".to_owned(), MANY.to_string(), lines.to_string(), "400".to_owned()])
            .output()
            .expect("squad runs");
        assert!(done.status.success(), "bench-frames");
        let (mut times, mut floors, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for line in String::from_utf8(done.stdout).expect("UTF-8").lines() {
            let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
            times.push(Duration::from_nanos(numbers[0]));
            floors.push(Duration::from_nanos(numbers[1]));
            bytes.push(numbers[2]);
        }
        let frame = median(times);
        print(&format!("a frame of {MANY} agents on {lines} lines, against 5 ms"), frame, Duration::from_millis(5));
        print("  the same, against its lines as text", frame, median(floors));
        println!("{:<48} {:>7} B", "  all times go on, at most", bytes.into_iter().max().expect("a frame"));
    }
}

/// Until a run of many events begins to be shown.
fn story() {
    let folder = repository();
    stream(folder.path(), &events());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let first = first_byte(folder.path(), SQUAD, &["log", RUN]);
        // The first one writes the index.
        if round > 0 {
            ours.push(first);
            theirs.push(first_byte(folder.path(), "git", &["log", "refs/squad/log"]));
        }
    }
    let first = median(ours);
    print("log of 50,000 events until it prints, 50 ms", first, Duration::from_millis(50));
    print("  the same, against `git log`", first, median(theirs));
}

fn first_byte(repo: &Path, program: &str, arguments: &[&str]) -> Duration {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(repo).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().expect("it runs");
    let mut out = child.stdout.take().expect("a pipe");
    let count = out.read(&mut [0]).expect("it prints");
    let elapsed = start.elapsed();
    assert_eq!(count, 1, "{program} prints something");
    drop(out);
    child.wait().expect("it ends");
    elapsed
}

/// A run that has not ended, for `git fast-import`.
fn events() -> String {
    let mut stream =
        String::from("commit refs/squad/log\ncommitter squad <squad@localhost> 1767600000 +0000\ndata 5\nbench\n");
    for number in 0..EVENTS {
        let (kind, payload, text) = match (number, number % 2) {
            (0, _) => {
                ("run.started", r#"{"engine":"rehearsal","version":"1","branch":null,"commit":null}"#, "Do the work")
            }
            (_, 0) => ("agent.message", "{}", "Something was said that takes about a line."),
            _ => (
                "tool.completed",
                r#"{"call":"c","tool":"shell","ok":true,"exit_code":0,"seconds":0.1,"detail":"cargo test","result":""}"#,
                "",
            ),
        };
        let (hour, minute, second) = (9 + number / 3600, number / 60 % 60, number % 60);
        let id = format!("019b8d1f-6c00-7000-8000-{number:012}");
        let agent = if number == 0 { "null" } else { "\"lead\"" };
        let entry = format!(
            "---\nsquad: 1\nid: \"{id}\"\nat: \"2026-01-05T{hour:02}:{minute:02}:{second:02}Z\"\nkind: \"{kind}\"\nrun: \
             \"{RUN}\"\nseq: {}\nagent: {agent}\nactor: \"agent\"\ncauses: []\nredactions: []\npayload: \
             {payload}\n---\n{text}\n",
            number + 1
        );
        let folder = format!("log/2026/01/05/{hour:02}/{minute:02}");
        stream.push_str(&format!("M 100644 inline {folder}/{id}-{kind}.md\ndata {}\n{entry}\n", entry.len()));
    }
    stream
}

/// The processor's time that a run's rows and lines take, of that of all its processes. Two runs differ by more than
/// that, so it is counted where it is spent.
fn rows() {
    let folder = repository();
    let repo = folder.path();
    let mut roster = "| Name | Role |\n|---|---|\n".to_owned();
    let mut script = String::new();
    for agent in 1..=EIGHT {
        roster.push_str(&format!("| Agent {agent} | Developer |\n"));
        let step = format!("{{ say = \"{WORDS}\" }}, {{ run = \"{COMMAND}\" }}, {{ wait = \"150ms\" }}, ");
        script.push_str(&format!("[[turn]]\nagent = \"agent-{agent}\"\nsteps = [{}]\n", step.repeat(40)));
    }
    fs::write(repo.join(".squad/team.md"), roster).expect("a file");
    run(repo, "git", &["commit", "--quiet", "--all", "--message=team"]);
    fs::write(repo.join(".git/script.toml"), script).expect("a file");
    rows_of("a rehearsal", || {
        let mut command = Command::new(SQUAD);
        command.args(["orchestrate", "--script", ".git/script.toml", "--permissions", "allow"]).current_dir(repo);
        command
    });
    let Some(runtime) = engine::runtime() else {
        return println!("the rest needs the CLI: .ci/install-real-parts installs it");
    };
    let call = json!({ "command": COMMAND, "description": "A count" });
    let (call, words) = (format!("tool:bash {call}"), format!("stream:{PIECES} say:{}", WORDS.repeat(4)));
    let steps = std::iter::repeat_n(call.as_str(), 10).chain([words.as_str()]);
    let world = World::new([Script::new("squad runs", steps)]);
    rows_of("the Copilot CLI", || world.orchestrate(("copilot", &runtime), &[], "allow"));
}

/// Prints what they cost in such a run of eight agents at a terminal.
fn rows_of(engine: &str, squad: impl Fn() -> Command) {
    let (mut shown, mut own, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let times = processor_times(squad());
        shown.push(times[0]);
        own.push(times[1]);
        all.push(times[1] + times[2]);
    }
    let shown = median(shown);
    print(&format!("rows and lines of eight in {engine}, to all"), shown, median(all));
    print("  the same, to squad's own", shown, median(own));
}

/// What is shown, a run's process, and those that it started.
fn processor_times(mut command: Command) -> [Duration; 3] {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let costs = folder.path().join("costs");
    let mut person = Person::sits_down();
    command.args((1..=EIGHT).map(|agent| format!("--agent=agent-{agent}"))).args(["--no-commit", "Look around"]);
    command.env("TERM", "xterm").env("BENCH_COSTS", &costs);
    let mut child = person.starts(command);
    let mut threads = BTreeMap::new();
    let [own, others] = loop {
        person.reads();
        threads.extend(times_of_view(&child));
        if let Some(times) = times_of_ended(&child) {
            break times;
        }
    };
    assert!(child.wait().expect("it ends").success(), "{}", person.screen);
    let costs = fs::read_to_string(costs).expect("the run has ended").parse().expect("a number");
    [Duration::from_nanos(costs) + threads.into_values().sum(), own, others]
}

/// Of the threads that draw, so far.
fn times_of_view(child: &Child) -> impl Iterator<Item = (String, Duration)> {
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
    threads.filter_map(|thread| {
        let text = |file| fs::read_to_string(thread.path().join(file)).ok();
        let name = text("comm").filter(|name| ["rows", "terminal"].contains(&name.trim()))?;
        Some((name, Duration::from_nanos(text("schedstat")?.split(' ').next()?.parse().ok()?)))
    })
}

/// `None`: it goes on.
fn times_of_ended(child: &Child) -> Option<[Duration; 2]> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("Linux says");
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    // In hundredths of a second, in user mode and in the kernel.
    let time = |fields: &[&str]| {
        Duration::from_millis(10 * fields.iter().filter_map(|field| field.parse::<u64>().ok()).sum::<u64>())
    };
    (fields[0] == "Z").then(|| [time(&fields[11..13]), time(&fields[13..15])])
}
