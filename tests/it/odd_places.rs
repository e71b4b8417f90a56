//! Every command that writes, in every odd place: it does its work or says why it cannot, and whatever it does, the
//! user's branch, index, work tree and stash are as they were, but for what it was asked to land.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Output, TestRepo};

/// A place to run squad in.
struct Place {
    name: &'static str,
    make: fn() -> (TestRepo, PathBuf),
    /// Whether there is a work tree with a team, so that every command can do its work.
    works: bool,
    /// Whether a commit on a branch is possible.
    lands: bool,
}

fn at_root(repo: TestRepo) -> (TestRepo, PathBuf) {
    let root = repo.root();
    (repo, root)
}

/// Work of the user's under way: staged, unstaged, untracked and stashed.
fn busy() -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/decisions.md", "# Decisions\n\n### 2026-01-02: Tar the hull\n\nBlack.\n");
    repo.write("a.txt", "one\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "work"]);
    repo.write("a.txt", "stashed\n");
    repo.git(&["stash", "-q"]);
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("a.txt", "unstaged\n");
    repo.write("new.txt", "untracked\n");
    repo
}

const PLACES: &[Place] = &[
    Place { name: "an ordinary work tree", make: || at_root(busy()), works: true, lands: true },
    Place {
        name: "a folder below",
        make: || {
            let repo = busy();
            repo.write("deep/er/x.txt", "x\n");
            let place = repo.root().join("deep/er");
            (repo, place)
        },
        works: true,
        lands: true,
    },
    Place {
        name: "a detached HEAD",
        make: || {
            let repo = busy();
            repo.git(&["checkout", "-q", "--detach"]);
            at_root(repo)
        },
        works: true,
        lands: false,
    },
    Place {
        name: "a linked work tree",
        make: || {
            let repo = busy();
            repo.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
            let side = repo.root().join("../side");
            (repo, side)
        },
        works: true,
        lands: true,
    },
    Place {
        name: "a branch without a commit",
        make: || {
            let repo = busy();
            repo.git(&["symbolic-ref", "HEAD", "refs/heads/unborn"]);
            at_root(repo)
        },
        works: true,
        lands: false,
    },
    Place {
        name: "the middle of a merge",
        make: || {
            let repo = busy();
            let head = repo.git(&["rev-parse", "HEAD"]);
            repo.write(".git/MERGE_HEAD", &head);
            at_root(repo)
        },
        works: true,
        lands: false,
    },
    Place {
        name: "a bare repository",
        make: || {
            let repo = busy();
            repo.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
            let bare = repo.root().join("../bare.git");
            (repo, bare)
        },
        works: false,
        lands: false,
    },
    Place { name: "an empty repository", make: || at_root(TestRepo::empty()), works: false, lands: false },
    Place { name: "no repository", make: || at_root(TestRepo::folder()), works: false, lands: false },
    Place {
        name: "the git folder itself",
        make: || {
            let repo = busy();
            let inside = repo.root().join(".git");
            (repo, inside)
        },
        works: true,
        lands: true,
    },
];

/// A command that writes: to the ledger, to the branch, to git's own folder.
const COMMANDS: &[&[&str]] = &[
    &["orchestrate", "--engine", "rehearsal", "--agent", "ada", "work"],
    &["decisions", "add", "Tar the hull twice"],
    &["decisions", "land"],
    &["decisions", "import", "--dry-run"],
    &["history", "land"],
    &["config", "set", "--user", "models.default", "m"],
    &["gc", "--quiet"],
    &["scrub", "--rescan"],
    &["rescue", "list"],
    &["sync", "-n"],
    &["doctor", "--quiet"],
    &["status", "--quiet"],
];

fn try_git(repo: &TestRepo, place: &Path, arguments: &[&str]) -> String {
    let done = repo.command("git", place).args(arguments).output().expect("git runs");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// What is the user's and not to change.
fn picture(repo: &TestRepo, place: &Path) -> Vec<String> {
    let file = |name: &str| fs::read_to_string(repo.root().join(name)).unwrap_or_default();
    vec![
        try_git(repo, place, &["status", "--porcelain", "--branch"]),
        try_git(repo, place, &["ls-files", "--stage"]).lines().filter(|line| !line.contains(".squad/")).collect(),
        file("a.txt"),
        file("staged.txt"),
        file("new.txt"),
    ]
}

/// Branches, tags and the stash.
fn heads(repo: &TestRepo, place: &Path) -> String {
    try_git(repo, place, &["for-each-ref", "refs/heads", "refs/tags", "refs/stash"])
}

fn assert_says_why(name: &str, command: &[&str], output: &Output) {
    let said = output.err.contains("error: ") || output.err.contains("warning: ") || !output.out.is_empty();
    assert!(said, "{command:?} in {name}: {output}");
    assert!(!output.err.contains("panicked"), "{command:?} in {name}: {output}");
}

#[test]
fn every_command_that_writes_leaves_the_users_work_alone_wherever_it_runs() {
    for Place { name, make, works, lands } in PLACES {
        let (repo, place) = make();
        let (before, mut branches) = (picture(&repo, &place), heads(&repo, &place));
        for command in COMMANDS {
            let output = repo.squad_in(&place, command);
            assert_eq!(picture(&repo, &place), before, "{command:?} in {name}: {output}");
            let can_land = *lands && matches!(command[0], "orchestrate" | "decisions" | "history");
            let now = heads(&repo, &place);
            assert!(can_land || now == branches, "{command:?} in {name}: {output}");
            branches = now;
            assert!(output.code <= 4, "{command:?} in {name}: {output}");
            if output.code != 0 {
                assert_says_why(name, command, &output);
            }
            if matches!(command[..2], ["orchestrate", _] | ["decisions", "add"]) {
                // What squad is for works wherever there is a team, and nowhere else.
                assert_eq!(output.code == 0, *works, "{command:?} in {name}: {output}");
                assert!(output.code == 0 || output.code == 3, "{command:?} in {name}: {output}");
            }
        }
        if *name != "no repository" {
            repo.git_in(&place, &["fsck", "--strict"]);
        }
    }
}

#[test]
fn a_decision_lands_where_it_can_and_waits_where_it_cannot() {
    for Place { name, make, lands, .. } in PLACES.iter().filter(|place| place.works) {
        let (repo, place) = make();
        let before = heads(&repo, &place);
        let output = repo.squad_in(&place, &["decisions", "add", "Tar the hull twice"]);
        assert_eq!(output.code, 0, "{name}: {output}");
        assert_eq!(heads(&repo, &place) != before, *lands, "{name}: {output}");
        assert_eq!(output.err.contains("not on the branch yet"), !lands, "{name}: {output}");
        let id = output.out.trim();
        let listed = repo.squad_in(&place, &["decisions", "list", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed.out).expect("JSON");
        let state = listed["decisions"].as_array().expect("a list").iter().find(|one| one["id"] == id).expect("it");
        assert_eq!(state["state"], if *lands { "in_force" } else { "unlanded" }, "{name}");
    }
}
