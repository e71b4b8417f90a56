//! What a snapshot of the work tree costs, beside `git status` of the same tree.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{SQUAD, median, print, run, time};

const ROUNDS: usize = 11;

/// A run that changes a file and so takes one snapshot before and one after.
const SCRIPT: &str =
    "[[turn]]\nagent = \"lead\"\nsteps = [{ write = \"notes.md\", text = \"x\" }, { say = \"Done.\" }]\n";

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "a snapshot of the work tree", "squad", "peer", "ratio");
    for files in [1_000, 10_000, 100_000] {
        of_tree(files);
    }
}

fn of_tree(files: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repo = folder.path();
    run(repo, "git", &["init", "--quiet", "--initial-branch=main"]);
    run(repo, "git", &["config", "user.name", "bench"]);
    run(repo, "git", &["config", "user.email", "bench@example.com"]);
    fill(repo, files);
    run(repo, "git", &["add", "."]);
    run(repo, "git", &["commit", "--quiet", "--message=files"]);
    run(repo, SQUAD, &["--quiet", "init"]);
    fs::write(repo.join(".git/script.toml"), SCRIPT).expect("a file");
    // A file as new as the index is read again by everyone.
    std::thread::sleep(Duration::from_secs(2));
    run(repo, "git", &["status"]);
    // A few files differ from the index, as while somebody is at work.
    let change = |round: usize| {
        for file in 0..5 {
            fs::write(repo.join(path(file * 7)), format!("changed in round {round}\n")).expect("a file");
        }
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut squad = Command::new(SQUAD);
    let squad = squad.arg("bench-snapshot").current_dir(repo).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut squad = squad.spawn().expect("squad runs");
    let mut asked = squad.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(squad.stdout.take().expect("a pipe")).lines();
    for round in 0..ROUNDS {
        change(round);
        writeln!(asked).expect("it reads");
        let micros = answers.next().expect("an answer").expect("a line").parse().expect("a number");
        // The first one asks git for its settings, which a run does while its engine starts.
        if round > 0 {
            ours.push(Duration::from_micros(micros));
            theirs.push(time(repo, "git", &["status"]));
        }
    }
    drop(asked);
    assert!(squad.wait().expect("it ends").success());
    print(&format!("{files} files, against `git status`"), median(ours), median(theirs));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in ROUNDS..2 * ROUNDS {
        change(round);
        ours.extend(snapshots(repo));
        theirs.push(time(repo, "git", &["status"]));
    }
    print(&format!("{files} files, while a run starts"), median(ours), median(theirs));
}

fn path(number: usize) -> String {
    format!("src/{}/{}/file-{number}.txt", number % 97, number % 13)
}

fn fill(repo: &Path, files: usize) {
    for number in 0..files {
        let path = repo.join(path(number));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, format!("line one of {number}\nline two\n")).expect("a file");
    }
}

/// How long each snapshot of a run took, as its events say.
fn snapshots(repo: &Path) -> Vec<Duration> {
    let mut command = Command::new(SQUAD);
    command.args(["orchestrate", "--json", "--script", ".git/script.toml", "--agent", "lead", "--no-commit"]);
    let done = command.args(["--permissions", "allow", "x"]).current_dir(repo).output().expect("squad runs");
    let lines = String::from_utf8_lossy(&done.stdout);
    let taken: Vec<Duration> = lines.lines().filter(|line| line.contains("\"snapshot.taken\"")).map(seconds).collect();
    assert!(!taken.is_empty(), "{lines}{}", String::from_utf8_lossy(&done.stderr));
    taken
}

fn seconds(line: &str) -> Duration {
    let event: serde_json::Value = serde_json::from_str(line).expect("an event");
    Duration::from_secs_f64(event["seconds"].as_f64().expect("seconds"))
}
