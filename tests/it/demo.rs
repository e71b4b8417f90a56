#[cfg(unix)]
use std::path::Path;
#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
use crate::support::Output;
use crate::support::TestRepo;

/// Temporary folders of demos that are there.
#[cfg(unix)]
fn left_behind(repo: &TestRepo) -> Vec<String> {
    let entries = std::fs::read_dir(repo.root().with_file_name("tmp")).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// What the real program shows; its temporary folders are the test's own.
#[cfg(unix)]
fn demo(repo: &TestRepo, options: &[&str]) -> Output {
    std::fs::create_dir_all(repo.root().with_file_name("tmp")).expect("a folder");
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.arg("demo").args(options).env("TMPDIR", repo.root().with_file_name("tmp"));
    let done = command.output().expect("squad runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output { out: text(&done.stdout), err: text(&done.stderr), code: done.status.code().unwrap_or_default() as u8 }
}

#[cfg(unix)]
#[test]
fn the_demo_shows_what_a_team_is_and_leaves_nothing_behind() {
    let repo = TestRepo::folder();
    let since = Instant::now();
    let output = demo(&repo, &[]);
    assert_eq!(output.code, 0, "{output}");
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    let lines = output.out.lines().chain(output.err.lines()).count();
    assert!(lines <= 40, "{lines}: {output}");
    for line in [
        "Plan  1 backend, tester, docs   2 reviewer   tier standard",
        "✗ reviewer  write app/health.py    refused: ",
        "✗ reviewer  rejected: A check that raises answers 500",
        "✓ lead      write app/health.py",
        "✓ reviewer  approved",
        " landed on main: ",
        "$ squad why app/health.py:17",
        "Removed the shop",
    ] {
        assert!(output.err.contains(line), "{line}: {output}");
    }
    assert!(output.out.starts_with("The service has a health endpoint"), "{output}");
    assert!(output.out.contains("agent     backend") && output.out.contains("decided"), "{output}");
    assert!(!output.err.contains("squad diff"), "it is not there any more: {output}");
    assert_eq!(left_behind(&repo), [""; 0]);
    assert!(!repo.root().with_file_name("home").join(".local").exists());
}

#[cfg(unix)]
#[test]
fn a_kept_demo_can_be_looked_at() {
    let repo = TestRepo::folder();
    let output = demo(&repo, &["--keep"]);
    let shop = output.err.lines().last().and_then(|line| line.strip_prefix("The shop stays: cd "));
    let shop = Path::new(shop.unwrap_or_else(|| panic!("{output}")));
    assert!(shop.join("app/health.py").is_file() && shop.join("docs/health.md").is_file());
    let listed = repo.squad_in(shop, &["decisions", "list"]);
    assert!(listed.out.contains("in force"), "{listed}");
    let next = output.err.lines().find_map(|line| line.trim().strip_prefix("next       squad diff "));
    let run = next.and_then(|line| line.split(' ').next()).unwrap_or_else(|| panic!("{output}"));
    assert!(repo.squad_in(shop, &["diff", run]).out.contains("+def passes(name, check):"));
}

/// As in an image for builds, where variables are set and empty.
#[test]
fn the_demo_needs_no_name() {
    let mut repo = TestRepo::folder();
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        repo.variables.insert(name.to_owned(), String::new());
    }
    let output = repo.squad(&["demo"]);
    assert!(output.code == 0 && output.err.contains(" landed on main: "), "{output}");
}

/// The demo works elsewhere, with the user's `PATH`.
#[cfg(unix)]
#[test]
fn the_demo_starts_no_program_of_the_repository_that_it_is_called_in() {
    let mut repo = TestRepo::with_small_team();
    let ran = repo.root().join("ran");
    repo.write_script("bin/git", &format!("#!/bin/sh\ntouch '{}'\nexit 1\n", ran.display()));
    let path = std::env::var("PATH").expect("a path");
    repo.variables.insert("PATH".to_owned(), format!("{}:{path}", repo.root().join("bin").display()));
    for from in [".", "bin"] {
        let output = repo.squad_in(&repo.root().join(from), &["demo"]);
        assert!(output.code == 0 && !ran.exists(), "{from}: {output}");
    }
}
