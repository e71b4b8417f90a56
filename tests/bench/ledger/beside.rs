//! What a day's packs of ours cost the user's own git.

use std::fs;
use std::path::Path;

use super::{fresh, write};
use crate::{median, print, run, stream, time};

const COMMITS: usize = 5_000;
const FILES: usize = 2_000;
const ROUNDS: usize = 41;

/// As many entries as a busy team makes in a day.
const ENTRIES: usize = 2_000;

pub(super) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "git beside a day's packs of ours", "with", "without", "ratio");
    let (remote, beside, alone) = (fresh(), fresh(), fresh());
    history(remote.path());
    for clone in [&beside, &alone] {
        let url = format!("file://{}", remote.path().display());
        run(clone.path(), "git", &["remote", "add", "origin", &url]);
        run(clone.path(), "git", &["fetch", "--quiet", "origin"]);
        run(clone.path(), "git", &["reset", "--quiet", "--hard", "origin/main"]);
    }
    write(beside.path(), "day", ENTRIES);
    let packs = fs::read_dir(beside.path().join(".git/objects/pack")).expect("packs");
    let packs = packs.flatten().filter(|file| file.path().extension().is_some_and(|kind| kind == "idx")).count();
    println!("{ENTRIES} entries, {packs} packs, one of them of what was fetched");
    let commands: [&[&str]; 4] =
        [&["status"], &["log", "--oneline", "-1000"], &["log", "--stat", "-100"], &["fetch", "--quiet", "origin"]];
    for command in commands {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            if command[0] == "fetch" {
                fs::write(remote.path().join("new.txt"), round.to_string()).expect("a file");
                run(remote.path(), "git", &["add", "new.txt"]);
                run(remote.path(), "git", &["commit", "--quiet", "--message=new"]);
            }
            // Each is the first in turn.
            for is_beside in [round % 2 == 0, round % 2 != 0] {
                let (clone, times) = if is_beside { (&beside, &mut with) } else { (&alone, &mut without) };
                times.push(time(clone.path(), "git", command));
            }
        }
        print(&format!("git {}", command.join(" ")), median(with), median(without));
    }
}

fn history(repo: &Path) {
    let mut text = String::new();
    for number in 0..COMMITS {
        text.push_str(&format!(
            "commit refs/heads/main\ncommitter bench <bench@example.com> {} +0000\ndata 5\nbench\n",
            1_700_000_000 + number
        ));
        let content = format!("{number:>200}");
        let file = number % FILES;
        text.push_str(&format!("M 100644 inline src/{}/{file}.txt\ndata 200\n{content}\n", file % 40));
    }
    stream(repo, &text);
    run(repo, "git", &["reset", "--quiet", "--hard", "main"]);
}
