//! What a pull request decides, over a thousand commits, against what git needs to list their files.

use std::path::Path;
use std::process::Command;

use crate::{SQUAD, compare, run, stream};

const COMMITS: usize = 1_000;

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", format!("{COMMITS} commits"), "squad", "peer", "ratio");
    for every in [5, 1] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let repo = folder.path();
        run(repo, "git", &["init", "--quiet", "--initial-branch=main"]);
        run(repo, "git", &["config", "user.name", "bench"]);
        run(repo, "git", &["config", "user.email", "bench@example.com"]);
        run(repo, SQUAD, &["--quiet", "init"]);
        let base = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(repo).output().expect("git runs");
        let base = String::from_utf8_lossy(&base.stdout).trim().to_owned();
        stream(repo, &commits(&base, every));
        let range = format!("{base}..main");
        let peer = ["log", "--oneline", "--name-status", &range];
        let what = |command: &str| format!("{command}, {} decisions, and `git log`", COMMITS / every);
        compare(repo, &what("decisions review"), &["decisions", "review", &range], ("git", &peer));
        compare(repo, &what("agents diff"), &["agents", "diff", &range], ("git", &peer));
        assert!(Path::new(repo).join(".squad").is_dir());
    }
}

/// For `git fast-import`: commits of a file each, of which some decide something.
fn commits(base: &str, every: usize) -> String {
    let mut stream = String::new();
    for number in 0..COMMITS {
        let (part, seconds) = (number % 40, 1_767_600_000 + number * 60);
        let mut files = vec![(format!("src/part{part}/file{number}.rs"), format!("fn f{number}() {{}}\n"))];
        let mut message = format!("Change {number}\n");
        if number % every == 0 {
            let (id, run) = (format!("{number:012x}"), format!("20260105-090000-{number:06x}"));
            files.push((
                format!(".squad/decisions/2026/01/05-use-library-{number}-{id}.md"),
                format!(
                    "---\nid: \"{id}\"\ndate: \"2026-01-05T09:00:00Z\"\nby: \"backend\"\nrun: \"{run}\"\n\
                     scope: [\"src/part{part}/module{number}/**\"]\n---\n# Use library {number} for part {part}\n\n\
                     **What:** All code of part {part} uses library {number}.\n\n**Why:** It is fast and well kept.\n"
                ),
            ));
            message.push_str(&format!("\nSquad-Run: {run}\nSquad-Agent: backend\nSquad-Decision: {id}\n"));
        }
        let length = message.len();
        stream
            .push_str(&format!("commit refs/heads/main\ncommitter a <a@example.com> {seconds} +0000\ndata {length}\n"));
        stream.push_str(&message);
        if number == 0 {
            stream.push_str(&format!("from {base}\n"));
        }
        for (path, text) in files {
            stream.push_str(&format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len()));
        }
        stream.push('\n');
    }
    stream
}
