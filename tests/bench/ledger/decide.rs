//! A whole `squad decisions add`, which is two entries and a commit, against `git add` and `git commit` of a file like
//! the decision's in the same repository: how both grow with the decisions, and with the entries of the ledger.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::fresh;
use crate::{SQUAD, import, median, print, run, stream, time};

const ROUNDS: usize = 15;

pub(super) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "decisions add, against git add and commit", "squad", "git", "ratio");
    for count in [10, 1_000, 8_000] {
        let folder = fresh();
        run(folder.path(), SQUAD, &["--quiet", "init"]);
        stream(folder.path(), &decisions(count));
        run(folder.path(), "git", &["reset", "--quiet", "--hard"]);
        add(folder.path(), &format!("{count} decisions of a year"));
    }
    for count in [10, 10_000, 100_000, 500_000] {
        let folder = fresh();
        run(folder.path(), SQUAD, &["--quiet", "init"]);
        import(folder.path(), count, |number| {
            format!(
                "log/2025/{:02}/{:02}/{:02}/{:02}",
                1 + number % 12,
                1 + number / 12 % 28,
                number / 336 % 24,
                number % 60
            )
        });
        add(folder.path(), &format!("{count} entries of a year"));
    }
}

fn add(repo: &Path, what: &str) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    run(repo, SQUAD, &["--quiet", "decisions", "add", "The first look is another matter"]);
    for round in 0..ROUNDS {
        ours.push(time(repo, SQUAD, &["decisions", "add", &format!("Number {round}")]));
        theirs.push(commit(repo, round));
    }
    print(what, median(ours), median(theirs));
}

/// A file beside the decisions, so that git has the same folders to write.
fn commit(repo: &Path, round: usize) -> Duration {
    let path = format!(".squad/decisions/2026/01/05-by-hand-{round}.txt");
    let file = repo.join(&path);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, format!("---\nid: \"{round}\"\n---\n# Number {round}\n")).expect("a file");
    time(repo, "git", &["add", &path]) + time(repo, "git", &["commit", "--quiet", "--message=x"])
}

/// Decisions that were logged and landed, their entries and their files, for `git fast-import`.
fn decisions(count: usize) -> String {
    let commit = |reference: &str, from: &str| {
        format!("commit {reference}\ncommitter squad <squad@localhost> 1767600000 +0000\ndata 5\nbench\n{from}")
    };
    let (mut ledger, mut branch) =
        (commit("refs/squad/log", ""), commit("refs/heads/main", "from refs/heads/main^0\n"));
    for number in 0..count {
        let (month, day, minute) = (1 + number % 12, 1 + number / 12 % 28, number / 336 % 60);
        let (id, at) = (format!("{number:012x}"), format!("2025-{month:02}-{day:02}T09:{minute:02}:00Z"));
        for (kind, payload) in [
            ("decision.logged", format!(r#"{{"id":"{id}","title":"x","date":"{at}","by":"x","branch":"main"}}"#)),
            ("decision.landed", format!(r#"{{"decisions":["{id}"],"branch":"main","commit":"x"}}"#)),
        ] {
            let entry = format!("019b8d1f-6c00-7000-8{:03x}-{id}", kind.len() + usize::from(kind.ends_with("landed")));
            let text = format!(
                "---\nsquad: 1\nid: \"{entry}\"\nat: \"{at}\"\nkind: \"{kind}\"\nactor: \"user\"\npayload: {payload}\n---\n"
            );
            let folder = format!("decisions/2025/{month:02}/{day:02}/09/{minute:02}");
            ledger.push_str(&format!("M 100644 inline {folder}/{entry}-{kind}.md\ndata {}\n{text}\n", text.len()));
        }
        let text = format!("---\nid: \"{id}\"\ndate: \"{at}\"\nby: \"x\"\n---\n# x\n");
        let path = format!(".squad/decisions/2025/{month:02}/{day:02}-x-{id}.md");
        branch.push_str(&format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len()));
    }
    ledger + &branch
}
