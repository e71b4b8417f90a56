//! How a decision stands, seen from a commit, whatever git did to the branches that hold it.

use crate::support::{Output, TestRepo};

/// A story: what git and squad do after a decision was landed on `feature`, and how it stands on which branch.
struct Story {
    name: &'static str,
    /// Commands, each in words; `FILE` is the decision's file, `ID` its id, `LANDING` the commit that landed it.
    steps: &'static [&'static str],
    stands: &'static [(&'static str, &'static str)],
}

/// `main` and `feature` differ by one file each, so that merges are merges.
const STORIES: [Story; 25] = [
    Story { name: "landed", steps: &[], stands: &[("feature", "in_force"), ("main", "elsewhere")] },
    Story {
        name: "merged",
        steps: &["git switch -q main", "git merge -q feature -m merged"],
        stands: &[("main", "in_force"), ("feature", "in_force")],
    },
    Story {
        name: "merged, branch deleted",
        steps: &["git switch -q main", "git merge -q feature -m merged", "git branch -qD feature"],
        stands: &[("main", "in_force")],
    },
    Story {
        name: "squashed",
        steps: &["git switch -q main", "git merge -q --squash feature", "git commit -qm squashed"],
        stands: &[("main", "in_force"), ("feature", "in_force")],
    },
    Story {
        name: "squashed, branch deleted",
        steps: &[
            "git switch -q main",
            "git merge -q --squash feature",
            "git commit -qm squashed",
            "git branch -qD feature",
        ],
        stands: &[("main", "in_force")],
    },
    Story {
        name: "rebased",
        steps: &["git rebase -q main", "git switch -q main", "git merge -q --ff-only feature"],
        stands: &[("main", "in_force"), ("feature", "in_force")],
    },
    Story {
        name: "dropped in a rebase",
        steps: &["git rebase -q --onto LANDING~1 LANDING feature"],
        stands: &[("feature", "withdrawn"), ("main", "elsewhere")],
    },
    Story {
        name: "cherry-picked",
        steps: &["git switch -q main", "git cherry-pick LANDING"],
        stands: &[("main", "in_force"), ("feature", "in_force")],
    },
    Story {
        name: "cherry-picked and merged later",
        steps: &["git switch -q main", "git cherry-pick LANDING", "git merge -q feature -m merged"],
        stands: &[("main", "in_force")],
    },
    Story {
        name: "reverted where it landed",
        steps: &["git revert --no-edit LANDING"],
        stands: &[("feature", "withdrawn"), ("main", "elsewhere")],
    },
    Story {
        name: "reverted, and the reversal reverted",
        steps: &["git revert --no-edit LANDING", "git revert --no-edit HEAD"],
        stands: &[("feature", "in_force")],
    },
    Story {
        name: "reverted where it was cherry-picked to",
        steps: &["git switch -q main", "git cherry-pick LANDING", "git revert --no-edit HEAD"],
        stands: &[("main", "withdrawn"), ("feature", "in_force")],
    },
    Story {
        name: "file deleted after a squash",
        steps: &[
            "git switch -q main",
            "git merge -q --squash feature",
            "git commit -qm squashed",
            "git rm -q FILE",
            "git commit -qm rejected",
        ],
        stands: &[("main", "withdrawn"), ("feature", "in_force")],
    },
    Story { name: "file deleted and not committed", steps: &["git rm -q FILE"], stands: &[("feature", "in_force")] },
    Story {
        name: "branch deleted before any merge",
        steps: &["git switch -q main", "git branch -qD feature"],
        stands: &[("main", "elsewhere")],
    },
    Story {
        name: "branch renamed",
        steps: &["git branch -qm feature renamed"],
        stands: &[("renamed", "in_force"), ("main", "elsewhere")],
    },
    Story {
        // Who died between the commit and its record.
        name: "branch reset, and nobody knows which commit it was",
        steps: &[
            "git update-ref refs/squad/log refs/squad/log~1",
            "squad decisions land",
            "git reset -q --hard LANDING~1",
        ],
        stands: &[("feature", "withdrawn"), ("main", "elsewhere")],
    },
    Story { name: "branch reset", steps: &["git reset -q --hard LANDING~1"], stands: &[("feature", "withdrawn")] },
    Story {
        name: "moved to another folder",
        steps: &["mv FILE .squad/decisions/2026/01/renamed.md", "git add -A", "git commit -qm moved"],
        stands: &[("feature", "in_force")],
    },
    Story {
        name: "superseded on its branch",
        steps: &["squad decisions supersede ID Second"],
        stands: &[("feature", "superseded"), ("main", "elsewhere")],
    },
    Story {
        name: "superseded after a merge",
        steps: &["git switch -q main", "git merge -q feature -m merged", "squad decisions supersede ID Second"],
        stands: &[("main", "superseded"), ("feature", "in_force")],
    },
    Story {
        name: "superseded, and that reverted",
        steps: &["squad decisions supersede ID Second", "git revert --no-edit HEAD"],
        stands: &[("feature", "in_force")],
    },
    Story {
        name: "superseded before a squash",
        steps: &[
            "squad decisions supersede ID Second",
            "git switch -q main",
            "git merge -q --squash feature",
            "git commit -qm squashed",
        ],
        stands: &[("main", "superseded")],
    },
    Story {
        name: "superseded from a branch that does not have it",
        steps: &["git switch -q main", "squad decisions supersede ID Second", "git merge -q feature -m merged"],
        stands: &[("main", "superseded"), ("feature", "in_force")],
    },
    Story {
        name: "detached at a commit before and after",
        steps: &["git tag after", "git tag before LANDING~1"],
        stands: &[("--detach after", "in_force"), ("--detach before", "elsewhere")],
    },
];

fn ok(output: &Output) {
    assert_eq!(output.code, 0, "{output}");
}

fn decisions(repo: &TestRepo) -> Vec<serde_json::Value> {
    let output = repo.squad(&["decisions", "list", "--json"]);
    ok(&output);
    let value: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    value["decisions"].as_array().expect("a list").clone()
}

fn state(repo: &TestRepo, id: &str) -> String {
    let all = decisions(repo);
    let found: Vec<_> = all.iter().filter(|decision| decision["id"] == id).collect();
    assert_eq!(found.len(), 1, "{all:?}");
    found[0]["state"].as_str().expect("a state").to_owned()
}

fn add(repo: &TestRepo, arguments: &[&str]) -> String {
    let output = repo.squad(&[&["decisions"], arguments].concat());
    ok(&output);
    output.out.trim().to_owned()
}

/// A branch `feature` beside `main`, both with commits of their own.
fn branches() -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.git(&["switch", "-qc", "feature"]);
    commit(&repo, "feature.txt");
    repo.git(&["switch", "-q", "main"]);
    commit(&repo, "main.txt");
    repo.git(&["switch", "-q", "feature"]);
    repo
}

fn commit(repo: &TestRepo, file: &str) {
    repo.write(file, "text\n");
    repo.git(&["add", file]);
    repo.git(&["commit", "-qm", file]);
}

fn play(repo: &TestRepo, step: &str) {
    let words: Vec<&str> = step.split(' ').collect();
    match words[0] {
        "git" => drop(repo.git(&words[1..])),
        "squad" => ok(&repo.squad(&words[1..])),
        program => assert!(repo.command(program, &repo.root()).args(&words[1..]).status().expect("runs").success()),
    }
}

#[test]
fn a_decision_stands_as_the_branch_says() {
    for story in STORIES {
        let repo = branches();
        let id = add(&repo, &["add", "First"]);
        let landing = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
        let file = repo.git(&["ls-files", ".squad/decisions"]).trim().to_owned();
        for step in story.steps {
            play(&repo, &step.replace("FILE", &file).replace("ID", &id).replace("LANDING", &landing));
        }
        repo.git(&["stash", "-q", "--include-untracked"]);
        for (branch, wanted) in story.stands {
            play(&repo, &format!("git switch -q {branch}"));
            assert_eq!(state(&repo, &id), *wanted, "{}: on {branch}", story.name);
            // Whatever happened, it landed: not again, and not here.
            let landed = repo.squad(&["decisions", "land", "--json"]);
            assert!(landed.out.contains("\"landed\":[]"), "{}: on {branch}: {landed}", story.name);
        }
        repo.assert_sound();
    }
}

/// The same for one that could not land when it was made.
#[test]
fn an_unlanded_decision_waits_for_its_branch() {
    let merging = |repo: &TestRepo| repo.write(".git/MERGE_HEAD", "0000000000000000000000000000000000000001\n");
    let done = |repo: &TestRepo| std::fs::remove_file(repo.root().join(".git/MERGE_HEAD")).expect("it is there");
    let repo = branches();
    merging(&repo);
    let id = add(&repo, &["add", "First"]);
    let second = add(&repo, &["supersede", &id, "Second"]);
    done(&repo);
    assert_eq!((state(&repo, &id), state(&repo, &second)), ("unlanded".to_owned(), "unlanded".to_owned()));
    play(&repo, "git switch -q main");
    add(&repo, &["add", "Another"]);
    play(&repo, "git switch -q --detach");
    ok(&repo.squad(&["decisions", "land"]));
    assert_eq!(state(&repo, &id), "unlanded");
    // The branch goes and comes back under its name.
    play(&repo, "git switch -q main");
    play(&repo, "git branch -qD feature");
    let output = repo.squad(&["decisions", "land"]);
    assert!(output.err.contains("check out `feature`, or recreate it if it is gone"), "{output}");
    assert_eq!(state(&repo, &id), "unlanded");
    play(&repo, "git switch -qc feature");
    ok(&repo.squad(&["decisions", "land"]));
    assert_eq!((state(&repo, &id), state(&repo, &second)), ("superseded".to_owned(), "in_force".to_owned()));
    play(&repo, "git switch -q main");
    assert_eq!((state(&repo, &id), state(&repo, &second)), ("elsewhere".to_owned(), "elsewhere".to_owned()));
}

/// The entry that says so was lost to a kill: the branch knows it, even when it has the file no more.
#[test]
fn what_landed_and_was_withdrawn_does_not_land_again() {
    let repo = branches();
    let id = add(&repo, &["add", "First"]);
    repo.git(&["update-ref", "refs/squad/log", "refs/squad/log~1"]);
    play(&repo, "git revert --no-edit HEAD");
    let head = repo.git(&["rev-parse", "HEAD"]);
    ok(&repo.squad(&["decisions", "land"]));
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(state(&repo, &id), "withdrawn");
}

/// The same beside a decision that was made days later and waits.
#[test]
fn what_was_withdrawn_does_not_land_again_with_a_later_one() {
    let mut repo = branches();
    let id = add(&repo, &["add", "First"]);
    repo.git(&["update-ref", "refs/squad/log", "refs/squad/log~1"]);
    repo.set_gits_clock();
    play(&repo, "git revert --no-edit HEAD");
    repo.pass(9 * 24 * 60 * 60);
    repo.set_gits_clock();
    commit(&repo, "later.txt");
    repo.write(".git/MERGE_HEAD", "0000000000000000000000000000000000000001\n");
    let second = add(&repo, &["add", "Second"]);
    std::fs::remove_file(repo.root().join(".git/MERGE_HEAD")).expect("it is there");
    ok(&repo.squad(&["decisions", "land"]));
    assert_eq!((state(&repo, &id), state(&repo, &second)), ("withdrawn".to_owned(), "in_force".to_owned()));
}

#[test]
fn a_file_that_cannot_be_read_is_on_the_branch_all_the_same() {
    let repo = branches();
    let id = add(&repo, &["add", "First"]);
    let file = repo.git(&["ls-files", ".squad/decisions"]).trim().to_owned();
    let broken = repo.read(&file).replace("id: ", "id: [");
    repo.write(&file, &broken);
    repo.git(&["commit", "-qam", "broken"]);
    assert_eq!(state(&repo, &id), "in_force");
    let output = repo.squad(&["decisions", "list"]);
    assert!(output.err.contains("the front matter cannot be read"), "{output}");
}

#[test]
fn what_replaces_keeps_scope_and_tags_and_says_so() {
    let repo = TestRepo::with_small_team();
    let first = add(&repo, &["add", "--scope", "billing/**", "--tag", "money", "Money is integer cents"]);
    let second = add(&repo, &["supersede", &first[..10], "Money is decimal strings\n\nCents do not divide."]);
    let file = repo.git(&["ls-files", "*decimal*"]);
    expect_test::expect![[r#"
        ---
        id: "000000000003"
        date: "2026-01-05T09:00:03.000Z"
        by: "Ann"
        supersedes: "000000000001"
        scope: ["billing/**"]
        tags: ["money"]
        ---
        # Money is decimal strings

        Cents do not divide.
    "#]]
    .assert_eq(&repo.read(file.trim()));
    let shown = repo.squad(&["decisions", "show", &first]).out;
    assert!(shown.contains(&format!("state    superseded by {second}\n")), "{shown}");
    let shown = repo.squad(&["decisions", "show", &second]).out;
    assert!(shown.contains(&format!("replaces {first}\n")), "{shown}");
    let narrower = add(&repo, &["supersede", &second, "--scope", "billing/eu/**", "Euros are cents"]);
    let all = decisions(&repo);
    let found = all.iter().find(|decision| decision["id"] == *narrower).expect("it is listed");
    assert_eq!((&found["scope"], &found["supersedes"]), (&["billing/eu/**"][..].into(), &second.as_str().into()));
}

#[test]
fn two_on_one_branch_do_not_replace_the_same() {
    let repo = TestRepo::with_small_team();
    let first = add(&repo, &["add", "First"]);
    repo.write(".git/MERGE_HEAD", "0000000000000000000000000000000000000001\n");
    let second = add(&repo, &["supersede", &first, "Second"]);
    let refused = |id: &str, why: &str| {
        let output = repo.squad(&["decisions", "supersede", id, "Third"]);
        assert!(output.code == 2 && output.err.contains(why), "{output}");
        output
    };
    // Seen although it has not landed yet.
    let output = refused(&first, "is already superseded by");
    assert!(output.err.contains(&format!("`{second}`, not landed yet")), "{output}");
    assert!(output.err.contains("hint: `squad decisions land` lands it"), "{output}");
    std::fs::remove_file(repo.root().join(".git/MERGE_HEAD")).expect("it is there");
    ok(&repo.squad(&["decisions", "land"]));
    refused(&first, "is already superseded by");
    repo.git(&["rm", "-qr", ".squad/decisions"]);
    repo.git(&["commit", "-qm", "rejected"]);
    refused(&second, "was withdrawn");
    refused("ffff", "there is no decision");
}

/// Made on × tried on × the same words and others: a decision that has not landed is not forgotten.
#[test]
fn one_that_has_not_landed_is_known_on_other_heads() {
    let heads = ["main", "feature", "--detach"];
    for (made, tried, same) in
        heads.iter().flat_map(|made| heads.iter().flat_map(move |tried| [(made, tried, true), (made, tried, false)]))
    {
        let repo = TestRepo::with_small_team();
        let first = add(&repo, &["add", "First"]);
        repo.git(&["branch", "feature"]);
        repo.git(&["switch", "-q", made]);
        repo.write(".git/MERGE_HEAD", "0000000000000000000000000000000000000001\n");
        let second = add(&repo, &["supersede", &first, "Second\n\nBecause."]);
        std::fs::remove_file(repo.root().join(".git/MERGE_HEAD")).expect("it is there");
        repo.git(&["switch", "-q", tried]);
        let words = if same { " # Second\n\nBecause.\n" } else { "Third" };
        let output = repo.squad(&["decisions", "supersede", &first, words]);
        let is_known = same || made == tried || *made == "--detach";
        let what = format!("{made} {tried} {same}: {output}");
        assert_eq!(output.code == 2, is_known, "{what}");
        let said = format!("`{first}` is already superseded by `{second}`, not landed yet\nhint: ");
        assert_eq!(output.err.contains(&said), is_known, "{what}");
        let elsewhere = made != tried && *made != "--detach";
        let hint = if elsewhere { format!("check out `{made}`; there `squad") } else { "hint: `squad".to_owned() };
        assert!(!is_known || output.err.contains(&format!("{hint} decisions land` lands it")), "{what}");
    }
}

#[test]
fn two_branches_that_replace_the_same_are_told_apart_when_they_meet() {
    let repo = TestRepo::with_small_team();
    let first = add(&repo, &["add", "First"]);
    repo.git(&["switch", "-qc", "feature"]);
    let theirs = add(&repo, &["supersede", &first, "Theirs"]);
    repo.git(&["switch", "-q", "main"]);
    let ours = add(&repo, &["supersede", &first, "Ours"]);
    repo.git(&["merge", "-q", "feature", "-m", "merged"]);
    assert_eq!(
        [&first, &theirs, &ours].map(|id| state(&repo, id)),
        ["superseded", "in_force", "in_force"].map(str::to_owned)
    );
    let output = repo.squad(&["decisions", "list"]);
    assert!(output.err.contains(&format!("both supersede `{first}`, and both are in force")), "{output}");
    let shown = repo.squad(&["decisions", "show", &first]).out;
    assert!(shown.contains(&theirs) && shown.contains(&ours), "{shown}");
    let settled = add(&repo, &["supersede", &theirs, "Settled"]);
    let listed = repo.squad(&["decisions", "list"]);
    assert_eq!(listed.err, "\n4 decisions: 2 in force, 2 superseded\n", "{listed}");
    assert_eq!(state(&repo, &theirs), "superseded");
    assert_eq!(state(&repo, &settled), "in_force");
}

#[cfg(unix)]
#[test]
fn decisions_behind_a_link_within_the_project_are_on_the_branch() {
    let repo = TestRepo::with_small_team();
    repo.write("docs/log.md", "### 2026-01-05: Tar the hull\n**By:** Uwe\n");
    let link = repo.root().join(".squad/decisions.md");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink("../docs/log.md", &link).expect("a link");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "linked"]);
    let listed = repo.squad(&["decisions", "list"]);
    assert!(listed.out.contains("in force") && listed.out.contains("Tar the hull"), "{listed}");
    std::fs::remove_file(&link).expect("it was there");
    std::os::unix::fs::symlink("../.git/config", &link).expect("a link");
    repo.git(&["commit", "-qam", "astray"]);
    let listed = repo.squad(&["decisions", "list"]);
    assert!(listed.err.contains(".squad/decisions.md") && listed.err.contains("No decision can be read."), "{listed}");
    assert!(!listed.to_string().contains("Nothing is decided"), "{listed}");
}

#[test]
fn what_is_listed_is_what_is_counted() {
    let repo = TestRepo::with_small_team();
    for (path, title) in [
        ("decisions-archive-2025-Q1.md", "Tar"),
        ("decisions_archive.md", "Wax"),
        ("decisions-2024.md", "Oars"),
        ("archive/decisions.md", "Sails"),
        ("decisions/inbox/LOUD.MD", "Flags"),
        ("decisions/0007-ropes.md", "Ropes"),
    ] {
        repo.write(&format!(".squad/{path}"), &format!("### 2025-01-05: {title}\n"));
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    let json =
        |arguments: &[&str]| serde_json::from_str::<serde_json::Value>(&repo.squad(arguments).out).expect("JSON");
    let counted = &json(&["agents", "--json"])["decisions"];
    let listed = &json(&["decisions", "list", "--json"])["decisions"];
    let states: Vec<&str> = listed.as_array().expect("a list").iter().filter_map(|one| one["state"].as_str()).collect();
    assert_eq!((counted["total"].as_u64(), counted["archived"].as_u64()), (Some(2), Some(4)), "{counted}");
    assert_eq!(states, ["in_force"; 6], "{listed}");
}
