//! The index of the ledger: it answers alone while nothing changes, reads only what is new, and never changes an answer.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::TestRepo;

/// Puts entries of many runs into the ledger, ten a run, half of them in folders of days as they once were.
fn fill(repo: &TestRepo, runs: usize, days: usize) {
    let mut stream =
        String::from("commit refs/squad/log\ncommitter squad <squad@localhost> 1767600000 +0000\ndata 5\nmany\n\n");
    for number in 0..runs * 10 {
        let (run, seq) = (number / 10, number % 10);
        let (day, minute) = (1 + run * days / runs, run % 60);
        let id = format!("019b8d1f-6c00-7000-8000-{number:012}");
        let agent = ["ada", "bob"][run % 2];
        let (kind, payload, text) = match seq {
            0 => ("run.started", r#"{"engine":"rehearsal","version":"1","branch":null,"commit":null}"#, "work"),
            8 => ("memory.logged", "{}", "learned"),
            9 => (
                "run.completed",
                r#"{"status":"completed","agents":{"AGENT":"completed"},"commits":[],"usage":USAGE}"#,
                "",
            ),
            _ => ("agent.message", "{}", "said"),
        };
        let usage = r#"{"input_tokens":1,"output_tokens":1,"cost_usd":null,"turns":1,"tool_calls":0,"seconds":1.0}"#;
        let payload = payload.replace("AGENT", agent).replace("USAGE", usage);
        let at = format!("2025-12-{day:02}T08:{minute:02}:00Z");
        let entry = format!(
            "---\nsquad: 1\nid: \"{id}\"\nat: \"{at}\"\nkind: \"{kind}\"\nrun: \"202512{day:02}-08{minute:02}00-{run:06}\"\n\
             seq: {seq}\nagent: \"{agent}\"\nactor: \"agent\"\ncauses: []\nredactions: []\npayload: {payload}\n---\n{text} {run}\n"
        );
        let place = if kind == "memory.logged" { "memory" } else { "log" };
        let folder = if run % 4 < 2 { format!("{day:02}") } else { format!("{day:02}/08/{minute:02}") };
        let path = format!("{place}/2025/12/{folder}/{id}-{kind}.md");
        stream.push_str(&format!("M 100644 inline {path}\ndata {}\n{entry}\n", entry.len()));
    }
    repo.write(".git/stream", &stream);
    let input = fs::File::open(repo.root().join(".git/stream")).expect("a file");
    let mut command = repo.command("git", &repo.root());
    let done = command.args(["fast-import", "--quiet"]).stdin(input).stderr(Stdio::inherit()).status();
    assert!(done.expect("git runs").success());
}

/// Everything that lists or counts.
const LISTS: [&[&str]; 8] = [
    &["status"],
    &["log"],
    &["log", "--json", "--limit", "1000"],
    &["log", "--agent", "ada", "--since", "2025-12-05", "--limit", "7"],
    &["log", "20251203", "--json"],
    &["decisions", "list"],
    &["agents", "show", "ada", "--prompt"],
    &["route", "work 17 again", "--json"],
];

fn told(repo: &TestRepo) -> Vec<String> {
    LISTS.iter().map(|command| repo.squad(command).without_age()).collect()
}

fn forget(repo: &TestRepo) {
    fs::remove_dir_all(repo.root().join(".git/squad/index")).expect("an index");
}

#[test]
fn many_entries_are_told_the_same_with_an_index_and_without() {
    let repo = TestRepo::with_small_team();
    fill(&repo, 300, 9);
    let before = told(&repo);
    assert!(before[0].contains(" · 3000 ledger entries"), "{}", before[0]);
    assert_eq!(before[2].matches("\"run\"").count(), 300);
    assert!(before[3].contains(" 08:58 ") && before[3].matches(" work ").count() == 7, "{}", before[3]);
    assert!(before[4].contains("is ambiguous"), "{}", before[4]);
    assert_eq!(told(&repo), before);
    forget(&repo);
    assert_eq!(told(&repo), before);
    // Of one run, the entries that lie as they once did and as they do now.
    for run in ["20251201-080000-000000", "20251201-080200-000002"] {
        let shown = repo.squad(&["log", run, "--events"]);
        assert_eq!(shown.out.lines().count(), 11, "{shown}");
    }
    // More of everything, some of it read before, some not.
    for agent in ["bob", "ada"] {
        repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", agent, "more"]);
        repo.squad(&["decisions", "add", "Another"]);
        let after = told(&repo);
        assert_ne!(after, before);
        forget(&repo);
        assert_eq!(told(&repo), after);
    }
    let proof = repo.squad(&["doctor", "--prove"]);
    assert!(!proof.out.contains("index does not match"), "{proof}");
}

/// While the tip stays, not one object is opened: there is none to open.
#[test]
fn nothing_of_an_unchanged_ledger_is_opened() {
    let repo = TestRepo::with_small_team();
    fill(&repo, 300, 9);
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "more"]);
    let commands: [&[&str]; 4] = [&["status"], &["log"], &["log", "--json", "--limit", "1000"], &["route", "work 17"]];
    let before = commands.map(|command| repo.squad(command).without_age());
    let (objects, away) = (repo.root().join(".git/objects"), repo.root().join(".git/away"));
    fs::rename(&objects, &away).expect("a folder");
    fs::create_dir(&objects).expect("a folder");
    assert_eq!(commands.map(|command| repo.squad(command).without_age()), before);
    // Without what is known of it, a ledger that cannot be read is an error, and never an empty one.
    forget(&repo);
    for command in commands {
        let output = repo.squad(command);
        assert!(output.code == 3 && output.to_string().contains("is missing"), "{output}");
    }
    fs::remove_dir_all(&objects).expect("a folder");
    fs::rename(&away, &objects).expect("a folder");
    assert_eq!(commands.map(|command| repo.squad(command).without_age()), before);
}

#[test]
fn readers_and_writers_come_at_once() {
    let repo = TestRepo::with_small_team();
    fill(&repo, 150, 3);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        scope.spawn(|| {
            let added = (0..15).map(|number| repo.squad(&["decisions", "add", &format!("Decision {number}")]).code);
            let added: Vec<u8> = added.collect();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(added, [0; 15]);
        });
        for reader in 0..4 {
            let repo = &repo;
            scope.spawn(move || {
                let mut most = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let output = repo.squad(LISTS[[0, 2, 5, 6][reader]]);
                    assert_eq!(output.code, 0, "{output}");
                    let count = output.out.matches("Decision ").count();
                    assert!(count >= most, "what was seen once stays: {output}");
                    most = count;
                }
            });
        }
    });
    let after = told(&repo);
    assert_eq!(after[5].matches("Decision ").count(), 15, "{}", after[5]);
    forget(&repo);
    assert_eq!(told(&repo), after);
}
