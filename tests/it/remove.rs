//! Removes squad from a repository.

use std::path::Path;

use crate::support::TestRepo;

fn own(repo: &TestRepo) -> (String, String, bool) {
    let refs = repo.git(&["for-each-ref", "--format=%(refname)", "refs/squad"]);
    let config = repo.git(&["config", "--local", "--list"]);
    let own: Vec<&str> = config.lines().filter(|line| line.contains("squad")).collect();
    (refs, own.join("\n"), repo.exists(".git/squad"))
}

/// A team with a decision that was pushed to a remote.
fn shared() -> TestRepo {
    let repo = TestRepo::with_team();
    repo.git(&["init", "--quiet", "--bare", "../origin"]);
    repo.git(&["remote", "add", "origin", "../origin"]);
    repo.git(&["push", "--quiet", "origin", "main"]);
    assert_eq!(repo.squad(&["decisions", "add", "Money is integer cents"]).code, 0);
    let synced = repo.squad(&["sync", "--yes"]);
    assert_eq!(synced.code, 0, "{synced}");
    repo
}

#[test]
fn only_files_on_branches_stay() {
    let repo = shared();
    repo.write("code.txt", "staged\n");
    repo.git(&["add", "code.txt"]);
    let (head, status) = (repo.git(&["rev-parse", "HEAD"]), repo.git(&["status", "--porcelain"]));
    let shown = repo.squad(&["remove", "--dry-run"]);
    assert!(shown.code == 0 && shown.out.contains("ref      refs/squad/log") && own(&repo).2, "{shown}");
    let before = own(&repo);
    assert!(before.1.contains("squadledger") && before.1.contains("refs/squad/remotes"), "{before:?}");
    let removed = repo.squad(&["remove"]);
    assert_eq!(removed.code, 0, "{removed}");
    assert_eq!(own(&repo), (String::new(), String::new(), false));
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.git(&["status", "--porcelain"])), (head, status));
    assert_eq!(repo.git(&["config", "--get-all", "remote.origin.fetch"]), "+refs/heads/*:refs/remotes/origin/*\n");
    assert!(repo.exists(".squad/team.md"));
    let again = repo.squad(&["remove"]);
    assert!(again.code == 0 && again.err.contains("Nothing of squad is in this repository"), "{again}");
    repo.git(&["fetch", "--quiet"]);
    repo.assert_sound();
    // The remote still has everything.
    assert_eq!(repo.squad(&["sync", "--yes"]).code, 0);
    assert!(repo.squad(&["decisions", "list"]).out.contains("Money is integer cents"));
}

#[test]
fn unshared_data_is_removed_only_with_force() {
    let repo = TestRepo::with_team();
    assert_eq!(repo.squad(&["decisions", "add", "Money is integer cents"]).code, 0);
    let before = own(&repo);
    let refused = repo.squad(&["remove", "--team"]);
    assert!(refused.code == 1 && refused.err.contains("no remote has the ledger: 2 entries"), "{refused}");
    assert!(own(&repo) == before && repo.exists(".squad/team.md"));
    let shared = shared();
    assert_eq!(shared.squad(&["decisions", "add", "Time is UTC"]).code, 0);
    let refused = shared.squad(&["remove"]);
    assert!(refused.code == 1 && refused.err.contains("no remote has 2 ledger entries"), "{refused}");
    assert_eq!(shared.squad(&["remove", "--force"]).code, 0);
    assert_eq!(own(&shared).0, "");
}

#[test]
fn the_team_is_removed_in_one_commit() {
    let repo = shared();
    repo.write(".squad/mine.txt", "untracked\n");
    let before = repo.git(&["rev-parse", "HEAD^{tree}"]);
    let removed = repo.squad(&["remove", "--team"]);
    assert!(removed.code == 0 && removed.err.contains("committed in"), "{removed}");
    assert_eq!(repo.git(&["ls-files"]), "");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? .squad/\n");
    assert_eq!((repo.read(".squad/mine.txt"), own(&repo).2), ("untracked\n".to_owned(), false));
    repo.git(&["revert", "--no-edit", "HEAD"]);
    assert_eq!(repo.git(&["rev-parse", "HEAD^{tree}"]), before);
    repo.assert_sound();
}

#[test]
fn uncommitted_edits_prevent_removal_of_the_team() {
    let repo = shared();
    repo.write(".squad/team.md", "mine\n");
    let refused = repo.squad(&["remove", "--team"]);
    assert!(refused.code == 1 && refused.err.contains("not committed"), "{refused}");
    assert!(own(&repo).2 && !own(&repo).0.is_empty());
    repo.git(&["checkout", "--quiet", ".squad"]);
    repo.git(&["worktree", "add", "--quiet", "../other"]);
    assert_eq!(repo.squad(&["remove"]).code, 0);
    let folders = std::fs::read_dir(repo.root().join(".git/worktrees")).expect("work trees");
    assert!(folders.flatten().all(|folder| !folder.path().join(Path::new("squad")).exists()));
    let outside = TestRepo::folder();
    assert_eq!(outside.squad(&["remove"]).code, 3);
}

#[test]
fn rescues_without_files_do_not_prevent_removal() {
    let repo = shared();
    assert_eq!(repo.squad(&["agents", "rename", "Docs", "Pages"]).code, 0);
    assert!(repo.git(&["for-each-ref", "refs/squad/rescue"]).lines().count() > 0);
    repo.write(".squad/team.md", &format!("{}\n", repo.read(".squad/team.md")));
    let shown = repo.squad(&["remove", "--team", "--dry-run"]);
    assert!(shown.code == 1 && shown.err.contains("changes that are not committed"), "{shown}");
    assert!(!shown.err.contains("--no-commit"), "{shown}");
    repo.git(&["checkout", "--quiet", "--", ".squad"]);
    let removed = repo.squad(&["remove", "--team"]);
    assert_eq!(removed.code, 0, "{removed}");
}
