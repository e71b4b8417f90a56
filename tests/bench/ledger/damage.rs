//! What whole reads of the ledger cost for each entry, few and many, with and without damage: the last column is how
//! much an entry of many costs against one of few. Flat is 1.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{fresh, reader};
use crate::{SQUAD, run, stream, time};

const FEW: usize = 10_000;
const MANY: usize = 100_000;
/// One entry of so many cannot be read.
const LOST: usize = 12;
/// Those that read the ledger, in an order in which none spares another its work.
const COMMANDS: [(&str, &[&str]); 4] =
    [("gc", &["gc"]), ("gc, again", &["gc"]), ("sync", &["sync", "--yes"]), ("doctor --prove", &["doctor", "--prove"])];

pub(super) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "µs for each entry", "100,000", "10,000", "ratio");
    for is_damaged in [false, true] {
        let [few, many] = [FEW, MANY].map(|count| measure(count, is_damaged));
        let damage = if is_damaged { ", one of twelve lost" } else { "" };
        for ((name, _), (few, many)) in COMMANDS.iter().zip(few.into_iter().zip(many)) {
            let [few, many] = [(few, FEW), (many, MANY)].map(|(time, count)| time.as_secs_f64() * 1e6 / count as f64);
            println!("{:<48} {many:>10.1} {few:>10.1} {:>6.2}×", format!("{name}{damage}"), many / few);
        }
    }
}

fn measure(count: usize, is_damaged: bool) -> Vec<Duration> {
    let folder = fresh();
    let repo = folder.path();
    run(repo, SQUAD, &["--quiet", "init"]);
    stream(repo, &reader::runs(count / reader::EACH));
    run(repo, "git", &["init", "--quiet", "--bare", "hub.git"]);
    run(repo, "git", &["remote", "add", "origin", "hub.git"]);
    if is_damaged {
        lose(repo);
    }
    COMMANDS.iter().map(|(_, arguments)| time(repo, SQUAD, arguments)).collect()
}

fn lines(repo: &Path, arguments: &[&str]) -> Vec<String> {
    let done = Command::new("git").args(arguments).current_dir(repo).output().expect("git runs");
    assert!(done.status.success(), "git {arguments:?}");
    String::from_utf8(done.stdout).expect("ids").lines().map(str::to_owned).collect()
}

/// Packs everything but some entries, and deletes the rest.
fn lose(repo: &Path) {
    let entries = lines(repo, &["ls-tree", "-r", "--object-only", "refs/squad/log"]);
    let lost: HashSet<&String> = entries.iter().step_by(LOST).collect();
    let mut all = lines(repo, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    all.retain(|id| !lost.contains(id));
    let (kept, list) = (repo.join(".git/kept"), repo.join(".git/bench-list"));
    fs::create_dir(&kept).expect("a folder");
    fs::write(&list, all.join("\n") + "\n").expect("a file");
    let packed = Command::new("git")
        .args(["pack-objects", "--quiet", ".git/kept/pack"])
        .current_dir(repo)
        .stdin(fs::File::open(&list).expect("a file"))
        .stdout(Stdio::null())
        .status();
    assert!(packed.expect("git runs").success(), "git pack-objects");
    let objects = repo.join(".git/objects");
    fs::remove_dir_all(&objects).expect("it is ours");
    fs::create_dir_all(objects.join("info")).expect("a folder");
    fs::rename(kept, objects.join("pack")).expect("it is ours");
}
