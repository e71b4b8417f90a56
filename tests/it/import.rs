use expect_test::expect;

use crate::support::TestRepo;

const DECISIONS: &str = "# Decisions\n\n> Shared by all.\n\n## Active Decisions\n\n### 2026-01-02: Tar the hull\n**By:** Uwe\n**What:** Black tar.\n\n\
    #### Why\nIt leaks. Ask uwe@example.com.\n\n---\n\n### 📌 Flags (2026-01-03)\n\n```md\n### 2026-09-09: not one\n```\n\n\
    ### Ropes later\n\n**Author:** Otto\n\nNot now.\n\n## Governance\n\n- ask first\n";

fn with(files: &[(&str, &str)]) -> TestRepo {
    let repo = TestRepo::with_small_team();
    files.iter().for_each(|(path, text)| repo.write(path, text));
    commit(&repo);
    repo
}

fn commit(repo: &TestRepo) {
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
}

/// Ids, titles and states.
fn list(repo: &TestRepo) -> Vec<(String, String, String)> {
    let output = repo.squad(&["decisions", "list", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let all = value["decisions"].as_array().expect("a list").iter();
    let mut rows: Vec<_> = all.map(|one| (text(&one["id"]), text(&one["title"]), text(&one["state"]))).collect();
    rows.sort();
    rows
}

fn refused(repo: &TestRepo, arguments: &[&str], why: &str) {
    let before = [repo.git(&["status", "--porcelain"]), repo.git(&["for-each-ref"])];
    let output = repo.squad(&[&["decisions", "import"], arguments].concat());
    assert!(output.code != 0 && output.err.contains(why), "{why}: {output}");
    assert_eq!([repo.git(&["status", "--porcelain"]), repo.git(&["for-each-ref"])], before);
}

#[test]
fn a_file_of_decisions_becomes_a_file_for_each() {
    let repo = with(&[(".squad/decisions.md", DECISIONS)]);
    let before = list(&repo);
    assert_eq!(before.len(), 3);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let planned = repo.squad(&["decisions", "import", "--dry-run"]);
    assert!(planned.err.contains("3 decisions would be imported"), "{planned}");
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.git(&["status", "--porcelain"])), (head, String::new()));
    assert_eq!(list(&repo), before);

    expect![[r#"
        71462ea14f8c  .squad/decisions.md:7  Tar the hull
        5f5c669d0374  .squad/decisions.md:16  Flags
        278837410955  .squad/decisions.md:22  Ropes later
        --- stderr
        3 decisions imported in 665a892657.
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["decisions", "import"]).to_string());
    expect![[r#"
        squad: import 3 decisions

        From .squad/decisions.md, each to a file of its own, word for word.


        M	.squad/decisions.md
        A	.squad/decisions/2026/01/02-tar-the-hull-71462ea14f8c.md
        A	.squad/decisions/2026/01/03-flags-5f5c669d0374.md
        A	.squad/decisions/undated/ropes-later-278837410955.md
    "#]]
    .assert_eq(&repo.git(&["show", "--format=%B", "--name-status"]));
    expect![[r####"
        ---
        id: "71462ea14f8c"
        date: "2026-01-02"
        by: "Uwe"
        heading: "### 2026-01-02: Tar the hull"
        ---
        # Tar the hull
        **By:** Uwe
        **What:** Black tar.

        #### Why
        It leaks. Ask uwe@example.com.

        ---

    "####]]
    .assert_eq(&repo.read(".squad/decisions/2026/01/02-tar-the-hull-71462ea14f8c.md"));
    assert_eq!(
        repo.read(".squad/decisions.md"),
        "# Decisions\n\n> Shared by all.\n\n## Active Decisions\n\n## Governance\n\n- ask first\n"
    );
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    // The same decisions, in the same state, here and in the ledger.
    assert_eq!(list(&repo), before);
    assert_eq!(repo.squad(&["decisions", "import"]).err, "There is nothing to import.\n");
    assert_eq!(repo.squad(&["decisions", "land"]).err, "There is nothing to land.\n");
    let ledger = repo.git(&["grep", "-h", "-e", "^kind:", "refs/squad/log", "--"]);
    assert_eq!(ledger.matches("decision.logged").count(), 3);
    repo.git(&["rm", "-q", ".squad/decisions/undated/ropes-later-278837410955.md"]);
    repo.git(&["commit", "-qm", "rejected"]);
    assert!(list(&repo).iter().any(|(_, title, state)| title == "Ropes later" && state == "withdrawn"));
    repo.assert_sound();
}

#[test]
fn two_clones_that_import_agree() {
    let repo = with(&[(".squad/decisions.md", DECISIONS)]);
    repo.git(&["switch", "-qc", "other"]);
    repo.squad(&["decisions", "import"]);
    repo.git(&["switch", "-q", "main"]);
    repo.write("a.txt", "beside\n");
    commit(&repo);
    repo.squad(&["decisions", "import"]);
    assert_eq!(repo.git(&["rev-parse", "main:.squad"]), repo.git(&["rev-parse", "other:.squad"]));
    repo.git(&["merge", "-q", "other", "-m", "merged"]);
    assert_eq!(list(&repo).len(), 3);
}

/// Imported on another branch alone and on both: where a branch that was reset had them.
#[test]
fn an_import_is_recorded_for_each_branch() {
    for (is_on_both, wanted) in [(false, "elsewhere"), (true, "withdrawn")] {
        let repo = with(&[(".squad/decisions.md", DECISIONS)]);
        repo.git(&["switch", "-qc", "other"]);
        repo.squad(&["decisions", "import"]);
        repo.git(&["switch", "-q", "main"]);
        if is_on_both {
            repo.squad(&["decisions", "import"]);
            repo.git(&["reset", "-q", "--hard", "HEAD~"]);
        }
        repo.git(&["reset", "-q", "--hard", "HEAD~"]);
        let states: Vec<String> = list(&repo).into_iter().map(|(.., state)| state).collect();
        assert_eq!(states, [wanted; 3], "{is_on_both}");
    }
}

/// The same decision twice in one file, and in two.
#[test]
fn a_decision_is_imported_once_wherever_it_stands() {
    let one = "### 2026-01-02: Tar the hull\n**By:** Uwe\n\nBlack.\n\n";
    let twice = format!("# Decisions\n\n{one}{one}");
    let once = format!("# Decisions\n\n{one}");
    for files in [
        &[(".squad/decisions.md", &*twice)][..],
        &[(".squad/decisions.md", &once), (".squad/decisions-archive.md", &once)],
    ] {
        let repo = with(files);
        let output = repo.squad(&["decisions", "import", "--all"]);
        assert!(output.code == 0 && output.err.contains("1 decision imported"), "{output}");
        assert_eq!(list(&repo).len(), 1);
    }
}

#[test]
fn the_inbox_and_archives_are_imported_when_asked() {
    let repo = with(&[
        (".squad/decisions.md", "# Decisions\n\nNothing yet.\n"),
        (".squad/decisions/inbox/2026-02-01-oars.md", "---\nby: Otto\n---\n# Buy oars\n\nTwo.\n"),
        (".squad/decisions/inbox/plain.md", "We hoist no flags on 2026-02-02.\n"),
        (".squad/decisions-archive.md", "### 2025-01-01: Old\n\nx\n"),
    ]);
    let before = list(&repo);
    assert_eq!(before.len(), 3, "{before:?}");
    assert_eq!(repo.squad(&["decisions", "import"]).err, "There is nothing to import.\n");
    let note = ".squad/decisions/inbox/2026-02-01-oars.md";
    let output = repo.squad(&["decisions", "import", note]);
    assert!(output.err.contains(&format!("{note} would be empty and is deleted.")), "{output}");
    assert!(!repo.exists(note));
    let file = repo.git(&["ls-files", "*oars*"]);
    expect![[r#"
        ---
        id: "f033708bd9f0"
        date: "2026-02-01"
        by: "Otto"
        heading: "---\nby: Otto\n---"
        ---
        # Buy oars
        # Buy oars

        Two.
    "#]]
    .assert_eq(&repo.read(file.trim()));
    assert_eq!(repo.squad_in(&repo.root().join(".squad"), &["decisions", "import", "--all"]).code, 0);
    assert_eq!(repo.git(&["ls-files", ".squad/decisions*"]).lines().count(), 4);
    assert_eq!(list(&repo), before);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let output = repo.squad(&["decisions", "import", "README.md"]);
    assert!(output.code == 2 && output.err.contains("decisions are read from .squad/decisions.md"), "{output}");
}

/// Without its entries the file would be read by its outline, and its introduction taken for a decision.
#[test]
fn what_is_left_is_no_decision() {
    let text = "# Decisions\n\n## About\n\nWhat we hold to.\n\n### 2026-01-02: Tar the hull\n\nBlack.\n";
    let repo = with(&[(".squad/decisions.md", text)]);
    repo.squad(&["decisions", "import"]);
    expect![[r#"
        # Decisions

        ## About

        What we hold to.

        <!-- squad: imported; each decision has a file of its own -->
    "#]]
    .assert_eq(&repo.read(".squad/decisions.md"));
    assert_eq!(list(&repo).len(), 1);
    repo.write(".squad/decisions.md", &(repo.read(".squad/decisions.md") + "\n### 2026-01-03: Paint\n\nRed.\n"));
    commit(&repo);
    assert_eq!(list(&repo).len(), 2);
    assert!(repo.squad(&["decisions", "import"]).err.contains("1 decision imported"));
}

#[test]
fn what_is_not_as_it_is_committed_is_not_touched() {
    let repo = with(&[(".squad/decisions.md", DECISIONS)]);
    let edited = DECISIONS.replace("Not now.", "Never.");
    repo.write(".squad/decisions.md", &edited);
    refused(&repo, &[], ".squad/decisions.md has changes that are not committed");
    repo.git(&["add", "-A"]);
    refused(&repo, &[], ".squad/decisions.md is staged with other content");
    repo.git(&["reset", "-q", "--hard"]);
    repo.write(".squad/decisions/inbox/new.md", "# Not committed\n\nx\n");
    refused(
        &repo,
        &[".squad/decisions/inbox/new.md"],
        "the committed version of .squad/decisions/inbox/new.md contains no decisions",
    );
    repo.write(".git/MERGE_HEAD", "0000000000000000000000000000000000000001\n");
    refused(&repo, &[], "a merge is in progress");
    std::fs::remove_file(repo.root().join(".git/MERGE_HEAD")).expect("it is there");
    repo.git(&["switch", "-q", "--detach"]);
    refused(&repo, &[], "cannot commit: HEAD is detached");
    repo.git(&["switch", "-q", "main"]);
    repo.write(".squad/decisions/2026/01/01-x-1.md", "no front matter\n");
    commit(&repo);
    refused(&repo, &[], "a decision file starts with front matter");
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    std::fs::write(repo.root().join(".squad/decisions.md"), b"### 2026-01-02: Caf\xe9\n\nx\n").expect("written");
    commit(&repo);
    refused(&repo, &[], "it is not UTF-8");
}

#[test]
fn work_in_progress_and_line_ends_stay() {
    let repo = with(&[(".squad/decisions.md", DECISIONS), ("a.txt", "a\n"), ("b.txt", "b\n")]);
    repo.git(&["config", "core.autocrlf", "true"]);
    std::fs::remove_file(repo.root().join(".squad/decisions.md")).expect("it is there");
    repo.git(&["checkout", "-q", "--", ".squad/decisions.md"]);
    assert!(repo.read(".squad/decisions.md").contains("\r\n"));
    repo.write("a.txt", "staged\n");
    repo.git(&["add", "a.txt"]);
    repo.write("a.txt", "edited\n");
    repo.git(&["rm", "-q", "--cached", "b.txt"]);
    let before = [repo.git(&["status", "--porcelain"]), repo.git(&["diff"]), repo.git(&["diff", "--cached"])];
    let output = repo.squad(&["decisions", "import"]);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!([repo.git(&["status", "--porcelain"]), repo.git(&["diff"]), repo.git(&["diff", "--cached"])], before);
    assert_eq!(
        repo.read(".squad/decisions.md"),
        "# Decisions\r\n\r\n> Shared by all.\r\n\r\n## Active Decisions\r\n\r\n## Governance\r\n\r\n- ask first\r\n"
    );
    assert!(!repo.git(&["show", "HEAD:.squad/decisions.md"]).contains('\r'));
}

/// The commit cannot be made: the entries stay where they were, and in force.
#[cfg(unix)]
#[test]
fn an_import_that_cannot_be_committed_changes_nothing() {
    let repo = with(&[(".squad/decisions.md", DECISIONS)]);
    let before = list(&repo);
    repo.git(&["config", "commit.gpgSign", "true"]);
    repo.git(&["config", "gpg.program", "false"]);
    let output = repo.squad(&["decisions", "import"]);
    assert!(output.code == 1 && output.err.contains("could not be signed"), "{output}");
    assert_eq!(
        (repo.git(&["status", "--porcelain"]), repo.read(".squad/decisions.md")),
        (String::new(), DECISIONS.to_owned())
    );
    assert_eq!(repo.squad(&["decisions", "land"]).err, "There is nothing to land.\n");
    assert_eq!(list(&repo), before);
    repo.git(&["config", "commit.gpgSign", "false"]);
    assert_eq!(repo.squad(&["decisions", "import"]).code, 0);
    assert_eq!(list(&repo), before);
    let ledger = repo.git(&["grep", "-h", "-e", "^kind:", "refs/squad/log", "--"]);
    assert_eq!((ledger.matches("logged").count(), ledger.matches("landed").count()), (3, 1));
}

#[test]
fn an_entry_whose_file_was_edited_stays() {
    let repo = with(&[(".squad/decisions.md", DECISIONS)]);
    repo.squad(&["decisions", "import"]);
    let file = repo.git(&["ls-files", "*tar-the-hull*"]).trim().to_owned();
    repo.write(&file, &repo.read(&file).replace("Black tar.", "Red tar."));
    // A merge brought the entries back.
    repo.write(".squad/decisions.md", DECISIONS);
    commit(&repo);
    assert_eq!(list(&repo).len(), 3);
    let output = repo.squad(&["decisions", "import"]);
    assert!(output.err.contains(".squad/decisions.md:7: not imported"), "{output}");
    let left = repo.read(".squad/decisions.md");
    assert!(left.contains("Black tar.") && !left.contains("Ropes later"), "{left}");
    assert!(repo.read(&file).contains("Red tar."));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

/// They are in the repository already; the ledger gets none of them all the same, and files keep their bytes.
#[test]
fn secrets_of_entries_are_said() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let text = format!("### 2026-01-02: Log in\n\nWith {secret}.\n");
    let repo = with(&[(".squad/decisions.md", &text)]);
    let output = repo.squad(&["decisions", "import"]);
    assert!(output.err.contains("what looks like secrets: github-token"), "{output}");
    assert!(repo.git(&["grep", &secret, "HEAD", "--", ".squad/decisions/2026"]).contains(&secret));
    let found = repo.command("git", &repo.root()).args(["grep", "-q", &secret, "refs/squad/log"]).status();
    assert_eq!(found.expect("git runs").code(), Some(1));
    assert!(!repo.exists(".squad/decisions.md"));
}

#[test]
fn an_archive_stays_one_when_the_file_beside_it_is_imported() {
    let old = "# Decisions\n\n### 2025-01-02: Hemp ropes\nOld.\n";
    let repo = with(&[
        (".squad/decisions.md", "### 2026-01-02: Tar the hull\nBlack tar.\n"),
        (".squad/decisions/decisions.md", old),
    ]);
    let counted = || {
        let value: serde_json::Value = serde_json::from_str(&repo.squad(&["agents", "--json"]).out).expect("JSON");
        value["decisions"]["archived"].clone()
    };
    let before = counted();
    assert_eq!(before, 1);
    let output = repo.squad(&["decisions", "import"]);
    assert!(output.err.contains("1 decision imported"), "{output}");
    assert_eq!(counted(), before);
    assert_eq!(repo.read(".squad/decisions/decisions.md"), old);
    let stub = repo.read(".squad/decisions.md");
    assert!(stub.starts_with("# Decisions\n\n<!-- squad: imported"), "{stub}");
    let again = repo.squad(&["decisions", "import"]);
    assert!(again.code == 0 && !again.err.contains("imported in"), "{again}");
}
