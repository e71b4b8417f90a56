//! Refs of squad's that lead to no commit: git's own commands fail on them.

use crate::support::TestRepo;

const NOWHERE: &str = "1234567890123456789012345678901234567890";

fn leave(repo: &TestRepo, reference: &str) {
    repo.write(&format!(".git/{reference}"), &format!("{NOWHERE}\n"));
}

fn fails(repo: &TestRepo) -> bool {
    let done = repo.command("git", &repo.root()).args(["gc", "--quiet", "--prune=now"]).output().expect("git runs");
    !done.status.success()
}

fn left(repo: &TestRepo) -> bool {
    let listed = repo.command("git", &repo.root()).args(["for-each-ref", "--format=%(refname)"]).output();
    let listed = String::from_utf8(listed.expect("git runs").stdout).expect("UTF-8");
    listed.contains("refs/squad/imports/") || repo.exists(".git/refs/squad/imports/team")
}

#[test]
fn the_next_command_that_writes_deletes_what_a_killed_import_left() {
    for arguments in [
        &["decisions", "add", "Ropes are blue."][..],
        &["orchestrate", "--engine", "rehearsal", "-a", "ada", "x"],
        &["gc"],
        &["doctor", "--repair", "--yes"],
    ] {
        let repo = TestRepo::with_small_team();
        assert_eq!(repo.squad(&["decisions", "add", "Sails are red."]).code, 0);
        for name in ["team", "log"] {
            leave(&repo, &format!("refs/squad/imports/{name}"));
        }
        assert!(fails(&repo), "the story begins with a git that fails");
        let output = repo.squad(arguments);
        assert_eq!((output.code, left(&repo), fails(&repo)), (0, false, false), "{arguments:?} {output}");
        repo.assert_sound();
    }
}

#[test]
fn doctor_names_refs_that_lead_nowhere_and_its_repair_deletes_them() {
    for reference in ["runs/20260101-000000-000001/1", "remotes/origin/log", "rescue/20260101-000000-abcdef"] {
        let repo = TestRepo::with_small_team();
        assert_eq!(repo.squad(&["decisions", "add", "Sails are red."]).code, 0);
        assert_eq!(repo.squad(&["doctor", "--repair"]).out, "The ledger is whole.\n");
        let reference = format!("refs/squad/{reference}");
        leave(&repo, &reference);
        let found = repo.squad(&["doctor"]);
        assert!(found.out.contains(&format!("{reference} leads to no commit")), "{found}");
        let asked = repo.squad(&["doctor", "--repair"]);
        assert!(asked.code == 1 && asked.err.contains("1 ref without a commit would be deleted"), "{asked}");
        let repaired = repo.squad(&["doctor", "--repair", "--yes"]);
        assert!(repaired.out.contains("1 ref without a commit deleted"), "{repaired}");
        assert!(!fails(&repo) && !repo.squad(&["doctor"]).out.contains("leads to no commit"), "{reference}");
        assert_eq!(repo.squad(&["doctor", "--repair"]).out, "The ledger is whole.\n");
    }
}
