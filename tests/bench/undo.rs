//! What undoing a run of many files costs, beside `git restore` of the same files.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{SQUAD, median, print, run, time};

const FILES: usize = 1_000;
const ROUNDS: usize = 7;

/// A run that changes every file.
const SCRIPT: &str =
    "[[turn]]\nagent = \"lead\"\nsteps = [{ run = \"sed -i s/two/TWO/ src/*/*.txt\" }, { say = \"Done.\" }]\n";

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "undo", "squad", "peer", "ratio");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repo = folder.path();
    run(repo, "git", &["init", "--quiet", "--initial-branch=main"]);
    run(repo, "git", &["config", "user.name", "bench"]);
    run(repo, "git", &["config", "user.email", "bench@example.com"]);
    for number in 0..FILES {
        let path = repo.join(format!("src/{}/file-{number}.txt", number % 97));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, format!("line one of {number}\nline two\n").repeat(20)).expect("a file");
    }
    run(repo, "git", &["add", "."]);
    run(repo, "git", &["commit", "--quiet", "--message=files"]);
    run(repo, SQUAD, &["--quiet", "init"]);
    fs::write(repo.join(".git/script.toml"), SCRIPT).expect("a file");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let id = changed(repo);
        ours.push(time(repo, SQUAD, &["undo", &id, "--yes"]));
        changed(repo);
        theirs.push(time(repo, "git", &["restore", "."]));
    }
    print(&format!("{FILES} files, against `git restore`"), median(ours), median(theirs));
}

/// The id of a run that has changed every file.
fn changed(repo: &Path) -> String {
    let mut command = Command::new(SQUAD);
    command.args(["orchestrate", "--json", "--script", ".git/script.toml", "--agent", "lead", "--no-commit"]);
    let done = command.args(["--permissions", "allow", "x"]).current_dir(repo).output().expect("squad runs");
    let lines = String::from_utf8_lossy(&done.stdout);
    let event: serde_json::Value = serde_json::from_str(lines.lines().next().expect("an event")).expect("JSON");
    event["run"].as_str().expect("a run").to_owned()
}
