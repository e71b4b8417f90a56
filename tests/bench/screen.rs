//! What the screen costs: a frame, what is looked at most, and the rows of a run.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::terminal::Person;
use crate::{ROUNDS, SQUAD, fill, median, print, run, stream, time};

/// Agents of a frame, and of a run.
const MANY: usize = 200;
const EIGHT: usize = 8;
const EVENTS: usize = 50_000;
const RUN: &str = "20260105-090000-0000b1";
const RUNS: usize = 5;

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

/// The processor's time of a run whose agents talk and call tools side by side, at a terminal and without output.
fn rows() {
    let folder = repository();
    let repo = folder.path();
    let mut roster = "| Name | Role |\n|---|---|\n".to_owned();
    let mut script = String::new();
    for agent in 1..=EIGHT {
        roster.push_str(&format!("| Agent {agent} | Developer |\n"));
        let step = "{ say = \"I settle what the endpoint answers first, so that both can work from the same words.\" }, \
            { run = \"git log --stat | git hash-object --stdin\" }, { wait = \"150ms\" }, ";
        script.push_str(&format!("[[turn]]\nagent = \"agent-{agent}\"\nsteps = [{}]\n", step.repeat(40)));
    }
    fs::write(repo.join(".squad/team.md"), roster).expect("a file");
    run(repo, "git", &["commit", "--quiet", "--all", "--message=team"]);
    fs::write(repo.join(".git/script.toml"), script).expect("a file");
    let (mut shown, mut quiet, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (own, others) = processor_time(repo, &[]);
        shown.push(own);
        all.push(own + others);
        quiet.push(processor_time(repo, &["--quiet"]).0);
    }
    let (shown, quiet, all) = (median(shown), median(quiet), median(all));
    print("squad's CPU for eight agents, to --quiet", shown, quiet);
    print("  what rows and lines cost, to all of the run's", shown.saturating_sub(quiet), all);
}

/// Of a run itself, and of what it started.
fn processor_time(repo: &Path, options: &[&str]) -> (Duration, Duration) {
    let mut person = Person::sits_down();
    let mut command = Command::new(SQUAD);
    command
        .args(["orchestrate", "--script", ".git/script.toml", "--permissions", "allow", "--no-commit"])
        .args(options);
    command.args((1..=EIGHT).map(|agent| format!("--agent=agent-{agent}"))).arg("Look around").current_dir(repo);
    command.env("TERM", "xterm");
    let mut child = person.starts(command);
    let times = loop {
        person.reads();
        if let Some(times) = times_of_ended(&child) {
            break times;
        }
    };
    assert!(child.wait().expect("it ends").success(), "{}", person.screen);
    times
}

/// `None`: it goes on.
fn times_of_ended(child: &Child) -> Option<(Duration, Duration)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("Linux says");
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    // In hundredths of a second, in user mode and in the kernel.
    let time = |fields: &[&str]| {
        Duration::from_millis(10 * fields.iter().filter_map(|field| field.parse::<u64>().ok()).sum::<u64>())
    };
    (fields[0] == "Z").then(|| (time(&fields[11..13]), time(&fields[13..15])))
}
