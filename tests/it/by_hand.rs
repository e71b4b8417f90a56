//! Work of clones that the user has brought to a branch by other means than `squad merge`, and work of older runs.

use serde_json::{Value, json};

use crate::clones::{played, with_state};
use crate::support::TestRepo;

/// ada changes a file and adds one.
const SCRIPT: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "notes.txt", text = "one\ntwo\nADA\n" }, { write = "api.txt", text = "api\n" }, { say = "Done." }]
"#;

fn status(repo: &TestRepo) -> Value {
    serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON")
}

fn with_notes() -> TestRepo {
    let repo = with_state();
    repo.write("notes.txt", "one\ntwo\nthree\n");
    repo.git(&["add", "notes.txt"]);
    repo.git(&["commit", "-qm", "notes"]);
    repo
}

fn commit(repo: &TestRepo, path: &str, text: &str) {
    repo.write(path, text);
    repo.git(&["add", path]);
    repo.git(&["commit", "-qm", "mine"]);
}

/// How the user brings the work × what is committed before and after. Neither `status`, `merge` nor `gc` names it then.
#[test]
fn work_that_was_brought_by_hand_is_merged() {
    type Step = fn(&TestRepo, &str);
    let merged: Step = |repo, work| drop(repo.git(&["merge", "-q", "--no-ff", "-m", "by hand", work]));
    let squashed: Step = |repo, work| {
        repo.git(&["merge", "-q", "--squash", work]);
        repo.git(&["commit", "-qm", "by hand"]);
    };
    let picked: Step = |repo, work| drop(repo.git(&["cherry-pick", work]));
    let resolved: Step = |repo, work| {
        let pick = repo.command("git", &repo.root()).args(["cherry-pick", work]).output().expect("it runs");
        assert!(!pick.status.success(), "it conflicts");
        repo.write("notes.txt", "one\ntwo\nBOTH\n");
        repo.git(&["add", "notes.txt"]);
        repo.git(&["-c", "core.editor=true", "cherry-pick", "--continue"]);
    };
    let rebased: Step = |repo, work| {
        let run = work.split('/').nth(3).expect("a run");
        commit(repo, "notes.txt", "ONE\ntwo\nthree\n");
        repo.write("notes.txt", "ONE\ntwo\nuncommitted\n");
        assert_eq!(repo.squad(&["merge", run, "--yes"]).code, 0);
        repo.git(&["checkout", "-q", "notes.txt"]);
        let aside = format!("squad/{run}");
        repo.git(&["rebase", "-q", "main", &aside]);
        repo.git(&["checkout", "-q", "main"]);
        repo.git(&["merge", "-q", "--ff-only", &aside]);
        repo.git(&["branch", "-q", "-D", &aside]);
    };
    let retyped: Step = |repo, _| {
        commit(repo, "api.txt", "api\n");
        commit(repo, "notes.txt", "one\ntwo\nADA\n");
    };
    let half: Step = |repo, _| commit(repo, "api.txt", "api\n");
    let other: Step = |repo, _| commit(repo, "notes.txt", "one\ntwo\nMINE\n");
    let nothing: Step = |_, _| {};
    let before: Step = |repo, _| commit(repo, "notes.txt", "one\ntwo\nMINE\n");
    let above: Step = |repo, _| {
        let text = repo.read("notes.txt");
        commit(repo, "notes.txt", &format!("zero\n{text}"));
    };
    let over: Step = |repo, _| commit(repo, "notes.txt", "something else\n");
    for (name, first, how, after, is_merged) in [
        ("merged", nothing, merged, nothing, true),
        ("merged, changed since", nothing, merged, over, true),
        ("squashed", nothing, squashed, nothing, true),
        ("squashed, changed elsewhere", nothing, squashed, above, true),
        ("picked", nothing, picked, nothing, true),
        ("picked, changed since", nothing, picked, over, true),
        ("picked and resolved", before, resolved, nothing, true),
        ("rebased", nothing, rebased, nothing, true),
        ("rebased, changed since", nothing, rebased, over, true),
        ("retyped", nothing, retyped, nothing, true),
        ("half of it", nothing, half, nothing, false),
        ("another change", nothing, other, nothing, false),
        ("nothing", nothing, nothing, nothing, false),
    ] {
        let repo = with_notes();
        let run = played(&repo, SCRIPT, "@ada changes it");
        let work = format!("refs/squad/runs/{run}/ada");
        for step in [first, how, after] {
            step(&repo, &work);
        }
        let clone = &status(&repo)["clones"][0];
        assert_eq!(clone["unmerged"] == true, !is_merged, "{name}: {clone}");
        let tidied = repo.squad(&["gc"]);
        assert_eq!(tidied.out.contains("is on no branch"), !is_merged, "{name}: {tidied}");
        assert_eq!(status(&repo)["not_merged"].is_null(), is_merged, "{name}");
        let tip = repo.git(&["rev-parse", "main"]);
        let merged = repo.squad(&["merge", &run, "--yes"]);
        if is_merged {
            let says = merged.err.contains("is merged already") || merged.err.contains("has all of it already");
            assert!(says, "{name}: {merged}");
            assert_eq!(repo.git(&["rev-parse", "main"]), tip, "{name}");
        } else {
            assert!(!merged.err.contains("already"), "{name}: {merged}");
        }
        repo.assert_sound();
    }
}

/// Runs whose clones are gone, each merged or not, and on which branch.
#[test]
fn every_run_with_work_on_no_branch_is_named() {
    let repo = with_notes();
    let writes = |name: &str| {
        format!(
            "[[turn]]\nagent = \"ada\"\nsteps = [{{ write = \"{name}\", text = \"x\\n\" }}, {{ say = \"Done.\" }}]\n"
        )
    };
    let runs: Vec<String> = (0..9)
        .map(|number| {
            repo.pass(60);
            let run = played(&repo, &writes(&format!("{number}.txt")), "@ada does it");
            match number {
                2 => assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 0),
                // On a branch that is not checked out.
                4 => drop(repo.git(&["branch", "later", &format!("refs/squad/runs/{run}/ada")])),
                _ => {}
            }
            run
        })
        .collect();
    let named = |numbers: &[usize]| -> Vec<Value> {
        numbers.iter().map(|number| json!({ "run": runs[*number], "agents": ["ada"] })).collect()
    };
    assert!(status(&repo)["not_merged"].is_null(), "their clones say it");
    let tidied = repo.squad(&["gc", "--force"]);
    assert_eq!(tidied.out.matches("is on no branch").count(), 7, "{tidied}");
    assert_eq!(status(&repo)["not_merged"], json!(named(&[8, 7, 6, 5, 3, 1, 0])));
    let page = repo.squad(&["status"]);
    assert_eq!(page.out.matches("gone; the work is not merged").count(), 5, "{page}");
    assert!(page.out.contains("2 runs more with work that is not merged"), "{page}");
    for number in [0, 1, 3, 5, 6, 7] {
        assert_eq!(repo.squad(&["merge", &runs[number], "--yes"]).code, 0);
    }
    assert_eq!(status(&repo)["not_merged"], json!(named(&[8])));
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(status(&repo)["not_merged"], json!(named(&[8, 7])));
}
