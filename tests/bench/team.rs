//! What installing, upgrading and adopting a team costs, beside what git alone takes for the same commit.

use std::fs;
use std::path::Path;
use std::time::Duration;

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

/// How long git takes to commit what is there.
fn commit_time(repo: &Path) -> Duration {
    time(repo, "git", &["add", "--all"]) + time(repo, "git", &["commit", "--quiet", "--message=files"])
}

/// As many small files as the team has.
fn write_team(repo: &Path) {
    for number in 0..11 {
        let path = repo.join(format!("team/{number}.md"));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "A line of a charter.\n".repeat(100)).expect("a file");
    }
}

fn init_of_nothing() {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        begin(one.path());
        ours.push(time(one.path(), SQUAD, &["init"]));
        let begun = time(other.path(), "git", &["init", "--quiet", "--initial-branch=main"]);
        begin(other.path());
        write_team(other.path());
        theirs.push(begun + commit_time(other.path()));
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
        write_team(repo);
        let listed = time(repo, "git", &["ls-files", "--cached", "--others", "--exclude-standard"]);
        theirs.push(listed + commit_time(repo));
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
        let moved = time(repo, "git", &["mv", ".ai-team", ".squad"]);
        theirs.push(moved + time(repo, "git", &["commit", "--quiet", "--message=moved"]));
        run(repo, "git", &["reset", "--quiet", "--hard", "HEAD~1"]);
    }
    print("adopt of 900 KB, against `git mv` and a commit", median(ours), median(theirs));
}
