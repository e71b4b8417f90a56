//! What installing, upgrading and adopting a team costs, beside what git takes for the same commit. Both flush what they
//! write: squad always does, git is told to.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{SQUAD, median, print, run, time};

const ROUNDS: usize = 15;

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "a team's life", "squad", "peer", "ratio");
    init_of_nothing();
    for files in [1_000, 10_000] {
        init_of_tree(files);
    }
    upgrade();
    adopt();
}

fn begin(repo: &Path) {
    run(repo, "git", &["init", "--quiet", "--initial-branch=main"]);
    run(repo, "git", &["config", "user.name", "bench"]);
    run(repo, "git", &["config", "user.email", "bench@example.com"]);
}

fn commit(repo: &Path) {
    run(repo, "git", &["add", "--all"]);
    run(repo, "git", &["commit", "--quiet", "--message=files"]);
}

/// Settings of a git that flushes all that it writes.
const FLUSHED: [&str; 4] = ["-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync"];

fn flushed_git(repo: &Path, arguments: &[&str]) -> Duration {
    time(repo, "git", &[&FLUSHED[..], arguments].concat())
}

/// How long git takes to commit what is there.
fn commit_time(repo: &Path) -> Duration {
    flushed_git(repo, &["add", "--all"]) + flushed_git(repo, &["commit", "--quiet", "--message=files"])
}

/// How long it takes to write files, each flushed.
fn write_flushed(repo: &Path, count: usize, text: &str) -> Duration {
    let folder = repo.join("team");
    fs::create_dir_all(&folder).expect("a folder");
    let start = Instant::now();
    for number in 0..count {
        let mut file = File::create(folder.join(format!("{number}.md"))).expect("a file");
        file.write_all(text.as_bytes()).expect("room");
        file.sync_data().expect("a disk");
    }
    start.elapsed()
}

/// As many files as the team has.
fn write_team(repo: &Path) -> Duration {
    write_flushed(repo, 11, &"A line of a charter.\n".repeat(100))
}

fn init_of_nothing() {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        begin(one.path());
        ours.push(time(one.path(), SQUAD, &["init"]));
        let begun = time(other.path(), "git", &["init", "--quiet", "--initial-branch=main"]);
        begin(other.path());
        let written = write_team(other.path());
        theirs.push(begun + written + commit_time(other.path()));
    }
    print("init, against `git init` and a commit", median(ours), median(theirs));
}

fn init_of_tree(files: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = folder.path();
    begin(repo);
    for number in 0..files {
        let path = repo.join(format!("src/{}/file-{number}.rs", number % 97));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "fn f() {}\n").expect("a file");
    }
    commit(repo);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(time(repo, SQUAD, &["init"]));
        run(repo, "git", &["reset", "--quiet", "--hard", "HEAD~1"]);
        let written = write_team(repo);
        let listed = time(repo, "git", &["ls-files", "--cached", "--others", "--exclude-standard"]);
        theirs.push(listed + written + commit_time(repo));
        run(repo, "git", &["reset", "--quiet", "--hard", "HEAD~1"]);
    }
    print(&format!("init of {files} files, against ls-files and a commit"), median(ours), median(theirs));
}

/// Of a team that is a release behind.
fn upgrade() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = folder.path();
    begin(repo);
    run(repo, SQUAD, &["--quiet", "init"]);
    let manifest = repo.join(".squad/manifest.toml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    fs::write(manifest, text.replacen("release = 1", "release = 0", 1)).expect("a file");
    commit(repo);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(time(repo, SQUAD, &["upgrade", "--dry-run"]));
        theirs.push(time(repo, "git", &["status"]));
    }
    print("upgrade --dry-run, against `git status`", median(ours), median(theirs));
}

/// Of 900 KB in 175 files, which all move.
fn adopt() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = folder.path();
    begin(repo);
    let write = |path: String, text: String| {
        let path = repo.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    let rows: String = (0..12).map(|number| format!("| Agent{number} | Dev | Active |\n")).collect();
    write(".ai-team/team.md".to_owned(), format!("# Team\n\n| Name | Role | Status |\n|---|---|---|\n{rows}"));
    for number in 0..12 {
        let charter = format!("# Agent{number} — Dev\n\n{}", "Works with care.\n".repeat(200));
        write(format!(".ai-team/agents/agent{number}/charter.md"), charter);
    }
    for number in 0..162 {
        write(format!(".ai-team/templates/t{number}.md"), format!("{number}\n{}", "A line of text.\n".repeat(330)));
    }
    commit(repo);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(time(repo, SQUAD, &["adopt"]));
        run(repo, "git", &["reset", "--quiet", "--hard", "HEAD~1"]);
        let written = write_flushed(repo, 175, &"A line of text.\n".repeat(330));
        let moved = time(repo, "git", &["mv", ".ai-team", ".squad"]);
        theirs.push(written + moved + flushed_git(repo, &["commit", "--quiet", "--message=moved"]));
        run(repo, "git", &["reset", "--quiet", "--hard", "HEAD~1"]);
        fs::remove_dir_all(repo.join("team")).expect("a folder");
    }
    print("adopt of 900 KB, against writing it and a commit", median(ours), median(theirs));
}
