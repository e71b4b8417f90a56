//! What an acknowledged entry costs, beside what it cannot cost less than, and beside `git commit`.

mod beside;
mod damage;
mod decide;
mod floor;
mod reader;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{SQUAD, import, median, print, run, time};

const EACH: usize = 20;
const ROUNDS: usize = 11;

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "an entry, acknowledged and flushed", "squad", "peer", "ratio");
    append();
    beside::bench();
    contend();
    grow();
    decide::bench();
    reader::bench();
    damage::bench();
}

/// A repository of its own for each figure: after mass deletions file systems are slow for seconds.
fn fresh() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    run(folder.path(), "git", &["init", "--quiet", "--initial-branch=main"]);
    run(folder.path(), "git", &["config", "user.name", "bench"]);
    run(folder.path(), "git", &["config", "user.email", "bench@example.com"]);
    folder
}

fn append() {
    let folder = fresh();
    let repo = folder.path();
    let (mut ours, mut floor, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    let (mut process, mut commit, mut safe) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        ours.extend(write(repo, &round.to_string(), EACH));
        floor.extend((0..EACH).map(|_| floor::write(repo, floor::Waiting::AtOnce)));
        plain.extend((0..EACH).map(|_| floor::write(repo, floor::Waiting::OneByOne)));
        for number in 0..3 {
            process.push(time(repo, SQUAD, &["bench-append", "one", "1"]));
            commit.push(commit_by_git(repo, &format!("{round}-{number}"), &[]));
            safe.push(commit_by_git(repo, &format!("{round}-{number}-safe"), &["-c", "core.fsync=all"]));
        }
    }
    let ours = median(ours);
    print("in process, against pack, index and ref", ours, median(floor));
    print("in process, against them flushed one by one", ours, median(plain));
    let process = median(process);
    print("as a process, against git add and commit", process, median(commit));
    print("as a process, against them with core.fsync=all", process, median(safe));
}

/// How long each of some entries took within the process that wrote it.
fn write(repo: &Path, name: &str, count: usize) -> Vec<Duration> {
    times(&writer(repo, name, count).wait_with_output().expect("it ends").stdout)
}

fn writer(repo: &Path, name: &str, count: usize) -> std::process::Child {
    let mut command = Command::new(SQUAD);
    command.args(["bench-append", name, &count.to_string()]).current_dir(repo);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("squad runs")
}

fn times(said: &[u8]) -> Vec<Duration> {
    let lines = String::from_utf8_lossy(said);
    let micros = lines.lines().map(|line| line.split(' ').next().expect("a number").parse().expect("a number"));
    micros.map(Duration::from_micros).collect()
}

fn commit_by_git(repo: &Path, name: &str, settings: &[&str]) -> Duration {
    fs::write(repo.join(name), "x".repeat(1000)).expect("a file");
    let add = time(repo, "git", &[settings, &["add", name]].concat());
    add + time(repo, "git", &[settings, &["commit", "--quiet", "--message=x"]].concat())
}

fn contend() {
    println!("\n{:<48} {:>10} {:>10} {:>10}", "processes at once", "entries/s", "median", "worst");
    for writers in [1, 8, 32] {
        let folder = fresh();
        let each = 320 / writers;
        let start = Instant::now();
        let running: Vec<_> = (0..writers).map(|number| writer(folder.path(), &number.to_string(), each)).collect();
        let said = running.into_iter().map(|writer| writer.wait_with_output().expect("it ends").stdout);
        let took: Vec<Duration> = said.flat_map(|said| times(&said)).collect();
        assert_eq!(took.len(), each * writers, "nobody gives up");
        let rate = took.len() as f64 / start.elapsed().as_secs_f64();
        let worst = took.iter().max().expect("entries").as_secs_f64() * 1e3;
        let median = median(took).as_secs_f64() * 1e3;
        println!("{:<48} {rate:>10.0} {median:>7.2} ms {worst:>7.2} ms", format!("{writers}"));
    }
}

fn grow() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "one more entry, against a bare one, after", "squad", "bare", "ratio");
    for count in [10, 1_000, 10_000, 100_000, 500_000] {
        grow_to(&format!("{count} entries of a hundred days"), count, |number| (number % 100, number / 100));
    }
    // As many as eight agents that never rest leave in a day.
    for count in [1_000, 10_000, 30_000] {
        grow_to(&format!("{count} entries of one day"), count, |number| (0, number * 480 / count));
    }
}

/// `place` says how many days and minutes ago an entry was made.
fn grow_to(what: &str, count: usize, place: impl Fn(usize) -> (usize, usize)) {
    let folder = fresh();
    let now = jiff::Timestamp::now();
    import(folder.path(), count, |number| {
        let (days, minutes) = place(number);
        let minutes = i64::try_from(days * 24 * 60 + minutes).expect("it is small");
        let at = now.checked_sub(jiff::SignedDuration::from_mins(minutes)).expect("a time");
        format!("memory/{}", at.strftime("%Y/%m/%d/%H/%M"))
    });
    let (mut took, mut floor) = (Vec::new(), Vec::new());
    // One in a process: its next ones are of the days before.
    for round in 0..100 {
        took.extend(write(folder.path(), &round.to_string(), 1));
        floor.push(floor::write(folder.path(), floor::Waiting::AtOnce));
    }
    print(what, median(took), median(floor));
}
