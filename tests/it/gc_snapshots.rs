//! What `squad gc` does to the snapshots of runs: they may hold the only copy of what an agent destroyed.

use serde_json::Value;

use crate::support::{Output, TestRepo};

const DAY: u64 = 24 * 60 * 60;
const MINE: &str = "what only I had\n";

/// An agent overwrites a file that was never committed.
const OVERWRITES: &str =
    "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"notes.txt\", text = \"mine now\" }, { say = \"Done.\" }]\n";

/// A run that destroyed a file, so many days ago.
fn after_a_loss(days: u64) -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write("notes.txt", MINE);
    let output = repo.rehearse(OVERWRITES, &["--permissions", "allow", "--agent", "ada", "--no-commit", "x"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(repo.read("notes.txt").starts_with("mine now"));
    repo.pass(days * DAY);
    repo
}

/// What somebody does after the loss.
type Act<'a> = &'a dyn Fn(&TestRepo);

fn snapshots(repo: &TestRepo) -> Vec<String> {
    let listed = repo.git(&["for-each-ref", "--format=%(refname)", "refs/squad/runs/"]);
    listed.lines().map(str::to_owned).collect()
}

/// Whether some snapshot still has the file as it was.
fn is_kept(repo: &TestRepo) -> bool {
    snapshots(repo).iter().any(|name| {
        let shown = repo.command("git", &repo.root()).args(["show", &format!("{name}:notes.txt")]).output();
        shown.expect("git runs").stdout == MINE.as_bytes()
    })
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.out).expect("JSON")
}

#[test]
fn the_only_copy_of_a_file_is_deleted_only_when_that_is_asked_for() {
    for (days, arguments, is_left, lists) in [
        (13, &["gc", "--json"][..], true, false),
        (13, &["gc", "--json", "--force"], true, false),
        (15, &["gc", "--json"], true, true),
        (15, &["gc", "--json", "--force"], false, true),
    ] {
        let repo = after_a_loss(days);
        let report = json(&repo.squad(arguments));
        let only_copies = report["only_copies"].as_array().expect("a list");
        assert_eq!((is_kept(&repo), only_copies.len() == 1), (is_left, lists), "{days} {arguments:?} {report}");
        for one in only_copies {
            let copies = one["copies"].as_array().expect("a list");
            assert!(copies[0].as_str().is_some_and(|copy| copy.ends_with(":notes.txt")), "{one}");
        }
        // Again and again.
        assert_eq!(repo.squad(&["gc"]).code, 0);
        assert_eq!(is_kept(&repo), is_left, "{days} {arguments:?}");
        repo.assert_sound();
    }
}

/// The age of a run is that of its last snapshot, not of its beginning.
#[test]
fn a_run_that_was_resumed_is_as_old_as_its_resumption() {
    for (days, is_left) in [(5, true), (15, false)] {
        let repo = TestRepo::with_small_team();
        repo.write("notes.txt", MINE);
        let arguments = ["--permissions", "allow", "--agent", "ada", "--no-commit", "--json", "x"];
        let failed = repo.rehearse("[[turn]]\nagent = \"ada\"\nsteps = [{ fail = \"no\" }]\n", &arguments);
        let run = TestRepo::events(&failed).pop().expect("an event")["run"].as_str().expect("a run").to_owned();
        repo.pass(10 * DAY);
        let first = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"No.\" }]\n";
        let resumed = repo.rehearse(&format!("{first}{OVERWRITES}"), &["--resume", &run]);
        assert_eq!(resumed.code, 0, "{resumed}");
        assert!(repo.read("notes.txt").starts_with("mine now"));
        repo.pass(days * DAY);
        assert_eq!(repo.squad(&["gc", "--force"]).code, 0);
        assert_eq!(is_kept(&repo), is_left, "{days}");
    }
}

/// Clocks may have gone wrong meanwhile: what was made later than now is not old.
#[test]
fn a_run_from_the_future_is_kept() {
    for days in [0, 100] {
        let repo = TestRepo::with_small_team();
        repo.pass(days * DAY);
        repo.write("notes.txt", MINE);
        let output = repo.rehearse(OVERWRITES, &["--permissions", "allow", "--agent", "ada", "--no-commit", "x"]);
        assert_eq!(output.code, 0, "{output}");
        repo.pass((50 * DAY).wrapping_sub(days * DAY));
        assert_eq!(repo.squad(&["gc", "--force"]).code, 0);
        assert_eq!(is_kept(&repo), days > 50, "{days}");
    }
}

/// A run may be older than its snapshots are kept for.
#[test]
fn a_run_that_lives_keeps_its_snapshots() {
    // Its own, and those that lie beside them: of an agent's clone, and of the merge of all.
    for (lives, beside) in [(true, ""), (true, ".ada"), (true, "_merged"), (false, ""), (false, "_merged")] {
        let repo = after_a_loss(15);
        let run = snapshots(&repo)[0].split('/').nth(3).expect("a run").to_owned();
        for name in snapshots(&repo).iter().filter(|_| !beside.is_empty()) {
            repo.git(&["update-ref", &name.replace(&run, &format!("{run}{beside}")), name]);
            repo.git(&["update-ref", "-d", name]);
        }
        let lease = repo.root().join(format!(".git/squad/runs/{run}.json"));
        let content = format!(r#"{{"run":"{run}","pid":1,"started":"2026-01-05T09:00:00Z","message":"x","team":""}}"#);
        std::fs::create_dir_all(lease.parent().expect("a folder")).expect("it is ours");
        std::fs::write(&lease, content).expect("it is ours");
        let file = std::fs::File::open(&lease).expect("a file");
        if lives {
            file.lock().expect("it is free");
        }
        assert_eq!(repo.squad(&["gc", "--force"]).code, 0);
        assert_eq!(is_kept(&repo), lives, "{lives} {beside}");
    }
}

/// What two runs have is the last one's.
#[test]
fn the_only_copies_of_two_runs_are_kept_once() {
    let repo = TestRepo::with_small_team();
    repo.write("notes.txt", MINE);
    for script in ["[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Done.\" }]\n", OVERWRITES] {
        let output = repo.rehearse(script, &["--permissions", "allow", "--agent", "ada", "--no-commit", "Explain it"]);
        assert_eq!(output.code, 0, "{output}");
    }
    repo.pass(15 * DAY);
    let report = json(&repo.squad(&["gc", "--json"]));
    assert_eq!(report["only_copies"].as_array().map(Vec::len), Some(1), "{report}");
    assert!(
        is_kept(&repo)
            && snapshots(&repo)
                .iter()
                .all(|name| name.contains(report["only_copies"][0]["run"].as_str().expect("a run")))
    );
}

#[test]
fn what_is_somewhere_else_too_is_not_kept() {
    let work_tree = |repo: &TestRepo| repo.write("notes.txt", MINE);
    let commit_on = |repo: &TestRepo, branch: &str| {
        repo.git(&["switch", "-qc", branch]);
        repo.write("notes.txt", MINE);
        repo.git(&["add", "notes.txt"]);
        repo.git(&["commit", "-qm", "notes"]);
    };
    let branch = |repo: &TestRepo| commit_on(repo, "other");
    let other_branch = |repo: &TestRepo| {
        commit_on(repo, "other");
        repo.git(&["switch", "-q", "main"]);
    };
    let stash = |repo: &TestRepo| {
        repo.write("notes.txt", MINE);
        repo.git(&["stash", "--include-untracked", "--quiet"]);
    };
    let index = |repo: &TestRepo| {
        repo.write("notes.txt", MINE);
        repo.git(&["add", "notes.txt"]);
        repo.write("notes.txt", "other\n");
    };
    let other_file = |repo: &TestRepo| {
        repo.write("copy.txt", "what somebody else had\n");
        std::fs::remove_file(repo.root().join("notes.txt")).expect("it is ours");
    };
    let nothing = |_: &TestRepo| {};
    // What the agent wrote is in the work tree, until it goes.
    let cases: [(&str, Act<'_>, usize); 7] = [
        ("work tree", &work_tree, 1),
        ("branch", &branch, 1),
        ("other branch", &other_branch, 1),
        ("stash", &stash, 1),
        ("index", &index, 1),
        ("another file", &other_file, 2),
        ("nowhere", &nothing, 1),
    ];
    for (place, act, copies) in cases {
        let repo = after_a_loss(15);
        act(&repo);
        let report = json(&repo.squad(&["gc", "--json"]));
        let found: Vec<String> =
            report["only_copies"][0]["copies"].as_array().into_iter().flatten().map(Value::to_string).collect();
        assert_eq!(found.len(), copies, "{place}: {report}");
        let mine = found.iter().any(|copy| repo.git(&["show", copy.trim_matches('"')]) == MINE);
        assert_eq!(mine, matches!(place, "nowhere" | "another file"), "{place}: {report}");
    }
}

#[test]
fn a_commit_that_only_a_snapshot_leads_to_is_an_only_copy() {
    let repo = TestRepo::with_small_team();
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=precious"]);
    let commit = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(repo.squad(&["orchestrate", "--engine", "rehearsal", "-a", "ada", "x"]).code, 0);
    repo.git(&["reset", "--quiet", "--hard", "HEAD~"]);
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.pass(15 * DAY);
    let report = json(&repo.squad(&["gc", "--json"]));
    assert_eq!(report["only_copies"][0]["copies"][0], format!("commit {commit}"), "{report}");
    repo.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(repo.git(&["cat-file", "-t", &commit]), "commit\n");
}

#[test]
fn people_are_told_what_stays_and_what_goes() {
    let repo = after_a_loss(15);
    let kept = repo.squad(&["gc"]);
    assert!(kept.out.contains("kept: 1 only copy\n    refs/squad/runs/"), "{kept}");
    assert!(kept.err.contains("`squad gc --force` removes these snapshots"), "{kept}");
    let (before, would) = (snapshots(&repo), repo.squad(&["gc", "--force", "--dry-run"]));
    assert!(would.out.contains("would be removed with 1 only copy\n    refs/squad/runs/"), "{would}");
    assert!(!before.is_empty() && snapshots(&repo) == before, "{would}");
    let forced = repo.squad(&["gc", "--force"]);
    assert!(forced.out.contains("removed with 1 only copy\n    refs/squad/runs/"), "{forced}");
    assert!(forced.err.is_empty() && snapshots(&repo).is_empty(), "{forced}");
    // Two runs that destroyed nothing.
    for _ in 0..2 {
        assert_eq!(repo.squad(&["orchestrate", "--engine", "rehearsal", "-a", "ada", "x"]).code, 0);
    }
    repo.pass(15 * DAY);
    let (before, would) = (snapshots(&repo), repo.squad(&["gc", "-n"]));
    assert!(would.out.contains("of finished runs would be removed") && snapshots(&repo) == before, "{would}");
    let clean = repo.squad(&["gc"]);
    assert!(clean.out.contains("of finished runs removed") && !clean.out.contains("kept"), "{clean}");
    assert!(snapshots(&repo).is_empty());
}
