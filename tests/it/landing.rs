//! Where a branch cannot take a decision now: it waits, squad says so, and it lands with the next command that can.

use std::fs;

use crate::support::TestRepo;

struct Obstacle {
    name: &'static str,
    begin: fn(&TestRepo),
    end: fn(&TestRepo),
    /// What squad says of it.
    why: &'static str,
}

/// Runs git and does not mind that it fails: a conflict is what we want.
fn conflict(repo: &TestRepo, arguments: &[&str]) {
    repo.command("git", &repo.root()).args(arguments).output().expect("git runs");
}

const OBSTACLES: [Obstacle; 12] = [
    Obstacle {
        name: "merge",
        begin: |repo| conflict(repo, &["merge", "main"]),
        end: |repo| drop(repo.git(&["merge", "--abort"])),
        why: "a merge is in progress",
    },
    Obstacle {
        name: "rebase",
        begin: |repo| conflict(repo, &["rebase", "main"]),
        end: |repo| drop(repo.git(&["rebase", "--abort"])),
        why: "a rebase is in progress",
    },
    Obstacle {
        name: "rebase with the older backend",
        begin: |repo| conflict(repo, &["rebase", "--apply", "main"]),
        end: |repo| drop(repo.git(&["rebase", "--abort"])),
        why: "a rebase is in progress",
    },
    Obstacle {
        name: "cherry-pick",
        begin: |repo| conflict(repo, &["cherry-pick", "main"]),
        end: |repo| drop(repo.git(&["cherry-pick", "--abort"])),
        why: "a cherry-pick is in progress",
    },
    Obstacle {
        name: "revert",
        begin: |repo| conflict(repo, &["revert", "HEAD~1"]),
        end: |repo| drop(repo.git(&["revert", "--abort"])),
        why: "a revert is in progress",
    },
    Obstacle {
        name: "am",
        begin: |repo| {
            fs::write(repo.root().join(".git/patch"), repo.git(&["format-patch", "-1", "--stdout", "main"]))
                .expect("a patch");
            conflict(repo, &["am", ".git/patch"]);
        },
        end: |repo| drop(repo.git(&["am", "--abort"])),
        why: "a git am is in progress",
    },
    Obstacle {
        name: "bisect",
        begin: |repo| drop(repo.git(&["bisect", "start", "HEAD", "HEAD~2"])),
        end: |repo| drop(repo.git(&["bisect", "reset"])),
        why: "a bisect is in progress",
    },
    Obstacle {
        name: "index locked",
        begin: |repo| repo.write(".git/index.lock", ""),
        end: |repo| fs::remove_file(repo.root().join(".git/index.lock")).expect("it is there"),
        why: "another git process is changing the index",
    },
    Obstacle {
        name: "branch locked",
        begin: |repo| repo.write(".git/refs/heads/feature.lock", ""),
        end: |repo| fs::remove_file(repo.root().join(".git/refs/heads/feature.lock")).expect("it is there"),
        why: "feature.lock",
    },
    Obstacle {
        name: "no key to sign with",
        begin: |repo| {
            repo.git(&["config", "commit.gpgSign", "true"]);
            repo.git(&["config", "gpg.program", "false"]);
        },
        end: |repo| drop(repo.git(&["config", "commit.gpgSign", "false"])),
        why: "the commit could not be signed",
    },
    Obstacle {
        name: "nobody",
        begin: |repo| drop(repo.git(&["config", "--unset", "user.email"])),
        end: |repo| drop(repo.git(&["config", "user.email", "ann@example.com"])),
        why: "git does not know who you are",
    },
    Obstacle {
        name: "something in the place",
        begin: |repo| repo.write(".squad/decisions/2026", "a file\n"),
        end: |repo| fs::remove_file(repo.root().join(".squad/decisions/2026")).expect("it is there"),
        why: ".squad/decisions/2026 is not a folder",
    },
];

/// `feature` and `main` change the same line, so that whatever brings them together stops.
fn repo() -> TestRepo {
    let repo = TestRepo::with_small_team();
    let commit = |text: &str| {
        repo.write("line.txt", text);
        repo.git(&["add", "line.txt"]);
        repo.git(&["commit", "-qm", text.trim()]);
    };
    commit("before\n");
    repo.git(&["switch", "-qc", "feature"]);
    commit("feature\n");
    commit("feature again\n");
    repo.git(&["switch", "-q", "main"]);
    commit("main\n");
    repo.git(&["switch", "-q", "feature"]);
    repo
}

#[test]
fn a_decision_waits_until_the_branch_can_take_it() {
    for Obstacle { name, begin, end, why } in OBSTACLES {
        let repo = repo();
        begin(&repo);
        let before = [repo.git(&["status", "--porcelain"]), repo.git(&["rev-parse", "HEAD", "feature", "main"])];
        let added = repo.squad(&["decisions", "add", "First"]);
        assert!(
            added.code == 0 && added.err.contains("1 decision recorded but not on the branch yet"),
            "{name}: {added}"
        );
        assert!(added.err.contains(why) && added.err.contains("hint: "), "{name}: {added}");
        let run = repo.rehearse(
            "[[turn]]\nagent = \"ada\"\nsteps = [{ tool = \"squad_log_decision\", args = { title = \"Second\", what = \"x\" } }, { say = \"Done.\" }]\n",
            &["--agent", "ada", "decide"],
        );
        assert!(run.code == 0 && run.err.contains("2 decisions recorded") && run.err.contains(why), "{name}: {run}");
        let landing = repo.squad(&["decisions", "land"]);
        assert!(landing.code == 1 && landing.err.contains(why), "{name}: {landing}");
        let after = [repo.git(&["status", "--porcelain"]), repo.git(&["rev-parse", "HEAD", "feature", "main"])];
        assert_eq!(after, before, "{name}");
        assert_eq!(repo.squad(&["decisions", "list"]).out.matches("unlanded").count(), 2, "{name}");
        end(&repo);
        let next = repo.squad(&["decisions", "add", "Third"]);
        assert!(next.err.contains("3 decisions landed on feature"), "{name}: {next}");
        assert_eq!(
            repo.git(&["ls-tree", "-r", "--name-only", "HEAD", ".squad/decisions"]).lines().count(),
            3,
            "{name}"
        );
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{name}");
        assert_eq!(repo.squad(&["decisions", "land"]).err, "There is nothing to land.\n", "{name}");
        repo.assert_sound();
    }
}

/// Whoever runs the tests as root may write everywhere; then there is nothing to see here.
#[cfg(unix)]
/// Through a link, what lands on the branch would not be what is in the work tree.
#[cfg(unix)]
#[test]
fn nothing_lands_in_a_team_behind_a_link() {
    let repo = TestRepo::with_small_team();
    fs::rename(repo.root().join(".squad"), repo.root().join("team")).expect("it is ours");
    std::os::unix::fs::symlink("team", repo.root().join(".squad")).expect("a link");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "linked"]);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let output = repo.squad(&["decisions", "add", "First"]);
    assert!(output.code == 0 && output.err.contains(".squad is a symbolic link"), "{output}");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
}

#[cfg(unix)]
#[test]
fn a_read_only_work_tree_takes_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let repo = repo();
    let mode = |mode| {
        fs::set_permissions(repo.root().join(".squad"), fs::Permissions::from_mode(mode)).expect("ours");
    };
    mode(0o555);
    if fs::write(repo.root().join(".squad/probe"), "").is_ok() {
        fs::remove_file(repo.root().join(".squad/probe")).expect("it is there");
        return mode(0o755);
    }
    let added = repo.squad(&["decisions", "add", "First"]);
    mode(0o755);
    assert!(added.code == 0 && added.err.contains("check who owns the folder"), "{added}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert!(repo.squad(&["decisions", "land"]).err.contains("1 decision landed"));
}

/// During a rebase no branch is checked out. What is decided then is for the branch that is being rebased.
#[test]
fn a_decision_of_a_rebase_is_for_its_branch() {
    let repo = repo();
    conflict(&repo, &["rebase", "main"]);
    repo.squad(&["decisions", "add", "First"]);
    repo.git(&["checkout", "-q", "--theirs", "line.txt"]);
    repo.git(&["add", "line.txt"]);
    conflict(&repo, &["-c", "core.editor=true", "rebase", "--continue"]);
    repo.git(&["switch", "-q", "main"]);
    let elsewhere = repo.squad(&["decisions", "land"]);
    assert!(elsewhere.code == 1 && elsewhere.err.contains("check out `feature`"), "{elsewhere}");
    repo.git(&["switch", "-q", "feature"]);
    assert!(repo.squad(&["decisions", "land"]).err.contains("1 decision landed on feature"));
}

/// It is the user's own repository: a hook that guards the branch is for the user's own commits.
#[cfg(unix)]
#[test]
fn hooks_do_not_run_and_do_not_stand_in_the_way() {
    let repo = repo();
    for name in ["pre-commit", "commit-msg", "reference-transaction", "post-commit"] {
        let hook = repo.root().join(".git/hooks").join(name);
        crate::support::script::write(&hook, "#!/bin/sh\ntouch hooked\nexit 1\n");
    }
    let added = repo.squad(&["decisions", "add", "First"]);
    assert!(added.err.contains("1 decision landed on feature"), "{added}");
    assert!(!repo.exists("hooked"));
}

/// However many there are: a file that is half a merge would be seen, and so would an index of the ledger.
#[test]
fn adding_and_landing_read_no_other() {
    let repo = TestRepo::with_small_team();
    repo.squad(&["decisions", "add", "First"]);
    let first = repo.git(&["ls-files", ".squad/decisions/2026"]);
    repo.write(first.trim(), "<<<<<<< ours\n=======\n>>>>>>> theirs\n");
    let added = repo.squad(&["decisions", "add", "Second"]);
    assert!(added.code == 0 && added.err.contains("1 decision landed"), "{added}");
    let kept = fs::read_dir(repo.root().join(".git/squad/index")).expect("an index").flatten();
    let kept: Vec<String> = kept.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    assert!(kept.len() == 1 && kept[0].ends_with(".unlanded"), "{kept:?}");
    // It is derived, and made again.
    fs::remove_dir_all(repo.root().join(".git/squad/index")).expect("an index");
    assert_eq!(repo.squad(&["decisions", "land"]).err, "There is nothing to land.\n");
    assert_eq!(repo.squad(&["decisions", "list"]).code, 3, "the rest of the team is read by others");
}

#[test]
fn a_decision_that_is_deleted_in_the_index_is_named_until_it_is_back() {
    for (removes, options) in [(&["rm", "--cached"][..], "--staged"), (&["rm"], "--staged --worktree")] {
        let repo = TestRepo::with_small_team();
        assert_eq!(repo.squad(&["decisions", "add", "Sails are red."]).code, 0);
        let path = repo.git(&["ls-files", ".squad/decisions"]).trim().to_owned();
        let said = |arguments: &[&str]| {
            let output = repo.squad(arguments);
            output.out + &output.err
        };
        let message = "1 decision of this branch is deleted in the index: the next commit withdraws it";
        let everybody = |repo: &TestRepo| {
            assert_eq!(repo.squad(&["decisions", "add", "--json", "Another."]).code, 0);
            [said(&["status"]), said(&["doctor"]), said(&["decisions", "land"]), said(&["decisions", "add", "More."])]
        };
        assert!(everybody(&repo).iter().all(|said| !said.contains("deleted in the index")));
        repo.git(&[removes, &["--quiet", "--", &path]].concat());
        let command = format!("git restore {options} -- ':/{path}'");
        for said in everybody(&repo) {
            assert!(said.contains(message) && said.contains(&format!("`{command}`")), "{removes:?} {said}");
        }
        let json: serde_json::Value = serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON");
        assert_eq!(json["withdrawn"]["paths"][0], path, "{json}");
        let restored = repo.command("sh", &repo.root()).args(["-c", &command]).status().expect("it runs");
        assert!(restored.success() && repo.git(&["status", "--porcelain"]).is_empty(), "{command}");
        assert!(everybody(&repo).iter().all(|said| !said.contains("deleted in the index")));
    }
}

#[test]
fn a_renamed_decision_and_the_index_of_a_rebase_are_the_users_business() {
    let repo = TestRepo::with_small_team();
    assert_eq!(repo.squad(&["decisions", "add", "Sails are red."]).code, 0);
    let path = repo.git(&["ls-files", ".squad/decisions"]).trim().to_owned();
    let renamed = path.replace("sails-are-red", "red-sails");
    assert_ne!(path, renamed);
    repo.git(&["mv", &path, &renamed]);
    assert!(!repo.squad(&["status"]).out.contains("deleted in the index"));
    repo.git(&["commit", "--quiet", "--message=renamed"]);
    repo.git(&["rm", "--quiet", &renamed]);
    assert!(repo.squad(&["status"]).out.contains("deleted in the index"));
    // As a rebase that has stopped does.
    fs::create_dir(repo.root().join(".git/rebase-merge")).expect("a folder");
    assert!(!repo.squad(&["status"]).out.contains("deleted in the index"));
}
