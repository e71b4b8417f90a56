//! An agent's clone of 30,000 files, alone and eight side by side, against `git clone --shared` with its checkout.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{SQUAD, median, print, run, stream};

const FILES: usize = 30_000;
const ROUNDS: usize = 5;

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", format!("{FILES} files"), "squad", "peer", "ratio");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repo = folder.path().join("repo");
    fs::create_dir(&repo).expect("a folder");
    run(&repo, "git", &["init", "--quiet", "--initial-branch=main"]);
    run(&repo, "git", &["config", "user.name", "bench"]);
    run(&repo, "git", &["config", "user.email", "bench@example.com"]);
    stream(&repo, &files());
    run(&repo, "git", &["reset", "--quiet", "--hard"]);
    // SAFETY: this program has one thread.
    #[expect(unsafe_code, reason = "the commands of this benchmark inherit it")]
    unsafe {
        std::env::set_var("XDG_STATE_HOME", folder.path().join("state"));
    }
    for agents in [1, 8] {
        let what = format!("a clone of {agents} side by side, and `git clone`");
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.extend(clones(&repo, agents));
            theirs.extend(peers(&repo, folder.path(), agents));
            run(&repo, SQUAD, &["gc", "--quiet"]);
        }
        print(&what, median(ours), median(theirs));
    }
}

/// How long the clones of a run's agents took, as its events tell.
fn clones(repo: &Path, agents: usize) -> Vec<Duration> {
    let named: String = (0..agents).map(|number| format!("@a{number} ")).collect();
    let message = format!("{named}look at it");
    let arguments = ["orchestrate", "--engine", "rehearsal", "--isolation", "clone", "--permissions", "deny", "--json"];
    let mut command = Command::new(SQUAD);
    command.args(arguments).args(["--max-concurrent", "8", &message]).current_dir(repo).stdin(Stdio::null());
    let output = command.output().expect("it runs");
    let events = String::from_utf8_lossy(&output.stdout).into_owned();
    let events = events.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let took: Vec<Duration> = events
        .filter(|event| event["type"] == "clone.created")
        .filter_map(|event| event["seconds"].as_f64().map(Duration::from_secs_f64))
        .collect();
    assert_eq!(took.len(), agents, "{}", String::from_utf8_lossy(&output.stderr));
    took
}

/// As many clones by git at the same time.
fn peers(repo: &Path, folder: &Path, count: usize) -> Vec<Duration> {
    let places: Vec<_> = (0..count).map(|number| folder.join(format!("peer{number}"))).collect();
    let begun = Instant::now();
    let started = places.iter().map(|place| {
        let mut command = Command::new("git");
        command.args(["clone", "--quiet", "--shared", "."]).arg(place).current_dir(repo).spawn().expect("git runs")
    });
    let started: Vec<_> = started.collect();
    let took = started.into_iter().map(|mut child| {
        assert!(child.wait().expect("it ends").success());
        begun.elapsed()
    });
    let took = took.collect();
    places.iter().for_each(|place| fs::remove_dir_all(place).expect("it is there"));
    took
}

/// For `git fast-import`: a team of eight, and small files in folders.
fn files() -> String {
    let mut stream =
        String::from("commit refs/heads/main\ncommitter a <a@example.com> 1767600000 +0000\ndata 5\nfiles\n");
    let mut add = |path: String, text: String| {
        stream.push_str(&format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len()));
    };
    let members: String = (0..8).map(|number| format!("| A{number} | Dev | Active |\n")).collect();
    add(".squad/team.md".to_owned(), format!("| Name | Role | Status |\n|---|---|---|\n{members}"));
    for number in 0..FILES {
        let text = format!("line {number}\n").repeat(20);
        add(format!("d{}/e{}/f{number}.txt", number % 100, number / 100 % 20), text);
    }
    stream
}
