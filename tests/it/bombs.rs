//! Trees and files of others that are larger than anybody reads: named and passed over, and soon.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::support::{Output, TestRepo};

/// What git answers to input.
fn git_with(repo: &TestRepo, arguments: &[&str], input: &str) -> String {
    let mut command = repo.command("git", &repo.root());
    let mut git = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git runs");
    git.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let done = git.wait_with_output().expect("it ends");
    assert!(done.status.success());
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// Ten levels of ten folders that are the same, with ten files at the end.
fn bomb(repo: &TestRepo) -> String {
    let text = git_with(repo, &["hash-object", "-w", "--stdin"], "# A text\n");
    let folder = |entry: &str| {
        let entries: String = (0..10).map(|at| format!("{entry}\t{at}\n")).collect();
        git_with(repo, &["mktree"], &entries)
    };
    (0..9).fold(folder(&format!("100644 blob {text}")), |below, _| folder(&format!("040000 tree {below}")))
}

/// A commit on top of `main`, whose tree has one more entry in a folder; a branch with its name.
fn branch(repo: &TestRepo, name: &str, folder: &str, entry: &str) {
    let with = |tree: &str, entry: &str| {
        let entries = repo.git(&["ls-tree", tree]);
        let name = entry.rsplit('\t').next().expect("a name");
        let others = entries.lines().filter(|line| !line.ends_with(&format!("\t{name}")));
        let entries: String = others.chain([entry]).map(|line| format!("{line}\n")).collect();
        git_with(repo, &["mktree"], &entries)
    };
    let tree = match folder {
        "" => with("main", entry),
        folder => with("main", &format!("040000 tree {}\t{folder}", with(&format!("main:{folder}"), entry))),
    };
    let commit = repo.git(&["commit-tree", "-p", "main", "-m", name, &tree]);
    repo.git(&["branch", name, commit.trim()]);
}

fn ok(output: Output, named: &str) {
    assert!(output.code == 0 && format!("{}{}", output.out, output.err).contains(named), "{named}: {output}");
}

/// Where it lies × who reads it.
#[test]
fn folders_that_repeat_for_ever_are_named_and_passed_over() {
    for (folder, name) in [(".squad", "decisions"), (".squad", "agents"), ("", "vendor")] {
        let repo = TestRepo::with_small_team();
        let bomb = bomb(&repo);
        branch(&repo, "bomb", folder, &format!("040000 tree {bomb}\t{name}"));
        repo.git(&["switch", "-q", "-c", "other"]);
        let added = repo.squad(&["decisions", "add", "Money is stored as integer cents"]);
        assert_eq!(added.code, 0, "{added}");
        repo.git(&["switch", "-q", "main"]);
        let place = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let warning = format!(":{place}: the folder is one of too many that are the same; it is skipped");
        let named = if folder.is_empty() { "" } else { &warning };
        ok(repo.squad(&["decisions", "review", "main..bomb"]), named);
        ok(repo.squad(&["decisions", "radar", "bomb", "other"]), named);
        ok(repo.squad(&["decisions", "radar"]), "1 other branch with 1 decision");
        if folder.is_empty() {
            continue;
        }
        ok(repo.squad(&["decisions", "review", "main..bomb", "--json"]), "too-large");
        ok(repo.squad(&["decisions", "review", "--every-team", "main..bomb"]), "one of too many that are the same");
        repo.assert_sound();
    }
}

/// A branch had it, and has it no more: what was there is asked for wherever a decision is missing.
#[test]
fn one_that_was_reverted_stops_nobody() {
    let repo = TestRepo::with_small_team();
    repo.git(&["switch", "-q", "-c", "other"]);
    assert_eq!(repo.squad(&["decisions", "add", "Money is stored as integer cents"]).code, 0);
    repo.git(&["switch", "-q", "main"]);
    let bomb = bomb(&repo);
    branch(&repo, "bomb", ".squad", &format!("040000 tree {bomb}\tdecisions"));
    let undone = repo.git(&["commit-tree", "-p", "bomb", "-m", "undone", "main^{tree}"]);
    repo.git(&["update-ref", "refs/heads/main", undone.trim()]);
    ok(repo.squad(&["decisions", "list"]), "elsewhere");
    ok(repo.squad(&["decisions", "land"]), "");
}

#[test]
fn a_team_that_repeats_for_ever_is_not_imported() {
    let repo = TestRepo::with_small_team();
    let bomb = bomb(&repo);
    branch(&repo, "team", ".squad", &format!("040000 tree {bomb}\tskills"));
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/team"]);
    let bundle = repo.root().join("../bomb.bundle");
    repo.git(&["bundle", "create", "-q", &bundle.display().to_string(), "HEAD", "refs/heads/team"]);
    let target = TestRepo::empty();
    let output = target.squad(&["import", &bundle.display().to_string()]);
    assert!(output.code != 0 && output.err.contains(".squad/skills is not read: "), "{output}");
    assert!(output.err.contains("one of too many that are the same"), "{output}");
    assert!(!target.exists(".squad"));
}

/// The same for a preset.
#[test]
fn a_preset_that_repeats_for_ever_is_installed_without_it() {
    let repo = TestRepo::with_small_team();
    let bomb = bomb(&repo);
    branch(&repo, "team", ".squad", &format!("040000 tree {bomb}\tsecrets"));
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/team"]);
    fs::create_dir(repo.root().join("../bare")).expect("a folder");
    repo.git(&["clone", "-q", "--bare", ".", "../bare/preset.git"]);
    let target = TestRepo::empty();
    let from = format!("file://{}", repo.root().join("../bare/preset.git").display());
    let output = target.squad(&["init", "--from", &from]);
    assert!(format!("{}{}", output.out, output.err).contains("too large"), "{output}");
}

/// One file over the limit of its kind × one branch or the other.
#[test]
fn a_decision_that_is_too_large_is_named_and_passed_over() {
    let repo = TestRepo::with_small_team();
    let large = format!("---\nid: \"00000000000a\"\n---\n# Large\n\n{}", "a line of it\n".repeat(100_000));
    let blob = git_with(&repo, &["hash-object", "-w", "--stdin"], &large);
    let folder = git_with(&repo, &["mktree"], &format!("100644 blob {blob}\t05-large-00000000000a.md\n"));
    branch(&repo, "large", ".squad", &format!("040000 tree {folder}\tdecisions"));
    repo.git(&["switch", "-q", "-c", "other"]);
    assert_eq!(repo.squad(&["decisions", "add", "Money is stored as integer cents"]).code, 0);
    repo.git(&["switch", "-q", "main"]);
    ok(repo.squad(&["decisions", "radar"]), "05-large-00000000000a.md: it has");
    ok(repo.squad(&["decisions", "radar", "--json"]), "too-large");
    ok(repo.squad(&["decisions", "review", "main..large"]), "05-large-00000000000a.md: it has");
    let other = repo.squad(&["decisions", "review", "main..other"]);
    assert!(other.out.contains("Money is") && !other.err.contains("large"), "{other}");
}
