//! What a routed message costs, beside ranking the same text by BM25 alone, and what it costs to start.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{ROUNDS, SQUAD, median, print, run, time, work};

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "routing, 50 rules and 20 charters", "squad", "peer", "ratio");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repo = folder.path();
    run(repo, "git", &["init", "--quiet", "--initial-branch=main"]);
    let files = work::team();
    for (path, text) in &files {
        let path = repo.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let messages = work::messages();
    let lines: String =
        messages.iter().map(|message| format!("{}\n", serde_json::json!({ "body": message }))).collect();
    fs::write(repo.join("messages"), lines).expect("a file");
    fs::write(repo.join("nothing"), "").expect("a file");

    let strings: String = messages.iter().map(|message| format!("{}\n", serde_json::json!(message))).collect();
    fs::write(repo.join("strings"), strings).expect("a file");

    let (mut first, mut others) = (Vec::new(), Vec::new());
    let (mut all, mut none, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    let (mut agents, mut one) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let alone = router_alone(repo);
        first.push(alone[0]);
        others.push(alone[1..].iter().sum());
        all.push(route(repo, "messages"));
        none.push(route(repo, "nothing"));
        peer.push(bm25(&files, &messages));
        one.push(time(repo, SQUAD, &["route", "Fix the login form"]));
        agents.push(time(repo, SQUAD, &["agents"]));
    }
    let (all, none) = (median(all), median(none));
    print("the first message and the index, against 3 ms", median(first), Duration::from_millis(3));
    print("the router for 1,000 messages, against 10 ms", median(others), Duration::from_millis(10));
    print("1,000 messages, against BM25", all.saturating_sub(none), median(peer));
    let agents = median(agents);
    print("the process for no message, against `agents`", none, agents);
    print("the process for one, against `agents`", median(one), agents);
}

/// How long the router itself took for each message.
fn router_alone(repo: &Path) -> Vec<Duration> {
    let mut command = Command::new(SQUAD);
    command.arg("bench-route").current_dir(repo).stdin(File::open(repo.join("strings")).expect("a file"));
    let done = command.output().expect("squad runs");
    assert!(done.status.success(), "bench-route");
    let lines = String::from_utf8(done.stdout).expect("UTF-8");
    let micros = lines.lines().filter_map(|line| line.split(' ').next()?.parse().ok());
    micros.map(Duration::from_micros).collect()
}

fn route(repo: &Path, input: &str) -> Duration {
    let mut command = Command::new(SQUAD);
    command.args(["route", "--stdin"]).current_dir(repo).stdout(Stdio::null()).stderr(Stdio::null());
    command.stdin(File::open(repo.join(input)).expect("a file"));
    let start = Instant::now();
    let done = command.status().expect("squad runs");
    let elapsed = start.elapsed();
    assert!(done.success(), "route --stdin");
    elapsed
}

/// Finds the charter that each message is closest to, by its words as they are.
fn bm25(files: &[(String, String)], messages: &[String]) -> Duration {
    let mut postings: HashMap<String, HashMap<usize, f64>> = HashMap::new();
    for (place, (_, text)) in files.iter().enumerate() {
        each_word(text, |word| {
            *postings.entry(word.to_owned()).or_default().entry(place).or_default() += 1.0;
        });
    }
    let start = Instant::now();
    let mut answered = 0;
    for message in messages {
        let mut scores = vec![0.0; files.len()];
        each_word(message, |word| {
            let Some(found) = postings.get(word) else { return };
            let rarity = (1.0 + (files.len() as f64 - found.len() as f64 + 0.5) / (found.len() as f64 + 0.5)).ln();
            for (place, count) in found {
                scores[*place] += rarity * count * 2.2 / (count + 1.2);
            }
        });
        answered += usize::from(scores.iter().any(|score| *score > 0.0));
    }
    assert!(answered > messages.len() / 2, "BM25 finds something");
    start.elapsed()
}

fn each_word(text: &str, mut each: impl FnMut(&str)) {
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        each(&word.to_lowercase());
    }
}
