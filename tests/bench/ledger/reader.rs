//! What the ledger costs to look at: nothing new, one entry new, nothing known; against a process that does nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::fresh;
use crate::{SQUAD, median, print, run, stream, time};

const ROUNDS: usize = 15;
/// Without an index a look takes long.
const COLD: usize = 3;
/// Entries of a run.
pub(super) const EACH: usize = 10;
const DAYS: usize = 100;

pub(super) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "reading, against `squad --version`", "squad", "floor", "ratio");
    for count in [10_000, 100_000] {
        let folder = fresh();
        let repo = folder.path();
        run(repo, SQUAD, &["--quiet", "init"]);
        stream(repo, &runs(count / EACH));
        run(repo, "git", &["pack-refs", "--all"]);
        let oldest = id(0, count / EACH);
        for arguments in [&["status"][..], &["log"], &["log", "--limit", "1000000"], &["log", &oldest]] {
            let what = arguments.join(" ").replace("--limit 1000000", "of all runs").replace(&oldest, "OLDEST-RUN");
            look(repo, &format!("{what}, {count} entries"), arguments);
        }
    }
}

fn look(repo: &Path, what: &str, arguments: &[&str]) {
    let (mut known, mut one_new, mut cold, mut floor, mut git) = (vec![], vec![], vec![], vec![], vec![]);
    run(repo, SQUAD, arguments);
    for _ in 0..ROUNDS {
        known.push(time(repo, SQUAD, arguments));
        floor.push(time(repo, SQUAD, &["--version"]));
        git.push(time(repo, "git", &["log", "-1", "refs/squad/log"]));
        run(repo, SQUAD, &["bench-append", "x", "1"]);
        one_new.push(time(repo, SQUAD, arguments));
    }
    for _ in 0..COLD {
        fs::remove_dir_all(repo.join(".git/squad/index")).expect("an index");
        cold.push(time(repo, SQUAD, arguments));
    }
    let floor = median(floor);
    let known = median(known);
    print(what, known, floor);
    print("  the same, against `git log -1` of the ledger", known, median(git));
    print("  after one more entry", median(one_new), floor);
    print("  without an index", median(cold), floor);
    println!("{:<48} {:>6.1} MiB", "  memory", memory(repo, arguments));
}

/// What GNU time says was resident at most.
fn memory(repo: &Path, arguments: &[&str]) -> f64 {
    run(repo, SQUAD, arguments);
    let mut command = Command::new("time");
    let done = command.args(["--format=%M", SQUAD]).args(arguments).current_dir(repo).output();
    let Ok(done) = done else { return f64::NAN };
    let said = String::from_utf8_lossy(&done.stderr);
    said.lines()
        .last()
        .and_then(|line| line.trim().parse::<f64>().ok())
        .map_or(f64::NAN, |kibibytes| kibibytes / 1024.0)
}

fn id(run: usize, runs: usize) -> String {
    let at = begin(run, runs);
    format!("{}-{run:06x}", at.strftime("%Y%m%d-%H%M%S"))
}

/// Runs begin one after the other in eight hours of each of a hundred days.
fn begin(run: usize, runs: usize) -> jiff::Timestamp {
    let first: jiff::Timestamp = "2025-09-01T08:00:00Z".parse().expect("a time stamp");
    let a_day = (runs / DAYS).max(1);
    let minutes = (run / a_day) * 24 * 60 + run % a_day * 480 / a_day;
    first + jiff::SignedDuration::from_mins(i64::try_from(minutes).expect("it is small"))
}

/// For `git fast-import`.
pub(super) fn runs(count: usize) -> String {
    let mut stream =
        String::from("commit refs/squad/log\ncommitter squad <squad@localhost> 1767600000 +0000\ndata 5\nbench\n");
    let usage = r#"{"input_tokens":1,"output_tokens":1,"cost_usd":null,"turns":1,"tool_calls":0,"seconds":1.0}"#;
    for number in 0..count * EACH {
        let (run, seq) = (number / EACH, number % EACH);
        let at = begin(run, count);
        let agent = ["lead", "backend", "tester"][run % 3];
        let (kind, payload, text) = match seq {
            0 => (
                "run.started",
                r#"{"engine":"rehearsal","version":"1","branch":null,"commit":null}"#.to_owned(),
                "Do the work",
            ),
            1 => (
                "route.planned",
                format!(
                    r#"{{"kind":"agents","agents":["{agent}"],"reviewer":null,"tier":"standard","confidence":0.8,"evidence":[]}}"#
                ),
                "",
            ),
            8 => ("agent.completed", format!(r#"{{"usage":{usage}}}"#), "Done."),
            9 => (
                "run.completed",
                format!(r#"{{"status":"completed","agents":{{"{agent}":"completed"}},"commits":[],"usage":{usage}}}"#),
                "",
            ),
            _ => ("agent.message", "{}".to_owned(), "Something was said."),
        };
        let id = format!("019b8d1f-6c00-7000-8000-{number:012}");
        let entry = format!(
            "---\nsquad: 1\nid: \"{id}\"\nat: \"{at}\"\nkind: \"{kind}\"\nrun: \"{}\"\nseq: {seq}\nagent: \"{agent}\"\n\
             actor: \"agent\"\ncauses: []\nredactions: []\npayload: {payload}\n---\n{text} {number}\n",
            self::id(run, count)
        );
        let folder = at.strftime("%Y/%m/%d/%H/%M");
        stream.push_str(&format!("M 100644 inline log/{folder}/{id}-{kind}.md\ndata {}\n{entry}\n", entry.len()));
    }
    stream
}
