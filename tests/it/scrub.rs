//! A secret that slipped through is taken out of everything squad keeps, and stays out.

use std::path::Path;

use expect_test::expect;

use crate::support::{Output, TestRepo};
use crate::sync::Shared;

/// No rule knows it.
const SECRET: &str = "Swordfish of 1932";

fn scrub(repo: &TestRepo, place: &Path, value: &'static str, more: &[&str]) -> Output {
    let consent: &[&str] = if more.contains(&"--dry-run") { &[] } else { &["--yes"] };
    let output = repo.with_input(value).squad_in(place, &[&["scrub", "--value-stdin"], more, consent].concat());
    assert_eq!(output.code, 0, "{output}");
    output
}

fn learn(repo: &TestRepo, place: &Path, text: &str) {
    repo.write(
        "../learn.toml",
        &format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ tool = \"squad_remember\", args = {{ text = {text:?} }} }}, {{ say = \"Done.\" }}]\n"),
    );
    let script = repo.root().join("../learn.toml").display().to_string();
    let output = repo.squad_in(place, &["orchestrate", "--script", &script, "--agent", "ada", "learn"]);
    assert_eq!(output.code, 0, "{output}");
}

fn everything(repo: &TestRepo, place: &Path) -> String {
    repo.git_in(place, &["cat-file", "--batch-all-objects", "--batch"])
}

fn ledger(repo: &TestRepo, place: &Path) -> Vec<String> {
    let listed = repo.git_in(place, &["ls-tree", "-r", "--name-only", "refs/squad/log"]);
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn a_value_goes_from_ledger_rescues_and_object_database() {
    let repo = TestRepo::with_small_team();
    let root = repo.root();
    learn(&repo, &root, &format!("The gate opens with {SECRET}, always."));
    repo.write(".squad/decisions.md", "# Decisions\n\n### 2026-01-02: Tar\n\nBlack.\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "decisions"]);
    repo.write("notes.txt", &format!("a\r\n{SECRET}\r\nb\r\n"));
    assert_eq!(repo.squad(&["decisions", "import"]).code, 0);
    repo.write("notes.txt", "gone\n");
    // What squad keeps of its own, derived from the ledger.
    repo.squad(&["log", "2026"]);
    repo.write(".git/squad/queue/left-by-the-dead.done", SECRET);
    let before = ledger(&repo, &root);
    let rehearsal = scrub(&repo, &root, SECRET, &["--dry-run"]);
    assert!(rehearsal.err.contains("It would be removed from 3 entries of the ledger and 1 rescue."), "{rehearsal}");
    assert!(
        !rehearsal.to_string().contains(SECRET) && rehearsal.out.contains("memory.logged.md  the value"),
        "{rehearsal}"
    );
    assert_eq!(ledger(&repo, &root), before);

    let output = scrub(&repo, &root, SECRET, &["--prune"]);
    assert!(output.err.contains("Removed from 3 entries of the ledger and 1 rescue."), "{output}");
    assert!(!everything(&repo, &root).contains(SECRET));
    assert!(!root.join(".git/squad/queue").exists() && !output.out.contains("queue"), "{output}");
    repo.assert_sound();
    let after = ledger(&repo, &root);
    assert_eq!(after.len(), before.len() + 1);
    let record = repo.git(&["show", &format!("refs/squad/log:{}", after.last().expect("an entry"))]);
    assert!(record.contains("kind: \"scrub.completed\"") && record.contains("memory.logged.md"), "{record}");
    assert_eq!(repo.git(&["rev-list", "--count", "refs/squad/log"]), "1\n");
    // Everything else is there, and readable.
    assert!(
        repo.squad(&["agents", "show", "ada", "--prompt"])
            .out
            .contains("The gate opens with [redacted:scrubbed], always.")
    );
    assert!(repo.squad(&["log"]).out.contains("completed"));
    let proof = repo.squad(&["doctor", "--prove"]);
    assert!(!proof.out.contains("ledger-") && !proof.out.contains("entry-"), "{proof}");
    let rescues: serde_json::Value =
        serde_json::from_str(&repo.squad(&["rescue", "list", "--json"]).out).expect("JSON");
    assert_eq!(rescues["rescues"][0]["scrubbed"][0], "notes.txt");
    let id = rescues["rescues"][0]["id"].as_str().expect("an id");
    assert_eq!(repo.squad(&["rescue", "restore", id, "notes.txt", "--to", "../then"]).code, 0);
    assert_eq!(repo.read("../then/notes.txt"), "a\r\n[redacted:scrubbed]\r\nb\r\n");
    // Again there is nothing, and no second record.
    assert!(scrub(&repo, &root, SECRET, &["--prune"]).err.starts_with("It is neither in the ledger nor in a rescue."));
    assert_eq!(ledger(&repo, &root), after);
    learn(&repo, &root, "Life goes on.");
    repo.assert_sound();
}

/// git's `fsck` would call every commit lost that is only listed there.
#[test]
fn no_commit_graph_of_gits_leads_to_what_is_removed() {
    for how in [&["commit-graph", "write", "--reachable"][..], &["commit-graph", "write", "--reachable", "--split"]] {
        let repo = TestRepo::with_small_team();
        let root = repo.root();
        learn(&repo, &root, &format!("The gate opens with {SECRET}, always."));
        repo.git(how);
        let output = scrub(&repo, &root, SECRET, &["--prune"]);
        assert_eq!(output.code, 0, "{output}");
        assert!(!everything(&repo, &root).contains(SECRET));
        repo.assert_sound();
    }
}

#[test]
fn nothing_is_removed_without_consent() {
    let repo = TestRepo::with_small_team();
    let root = repo.root();
    learn(&repo, &root, &format!("The gate opens with {SECRET}, always."));
    let before = repo.git(&["for-each-ref"]);
    for arguments in [&["scrub", "--value-stdin"][..], &["scrub", "--value-stdin", "--prune"], &["scrub", "--prune"]] {
        let output = repo.with_input(SECRET).squad_in(&root, arguments);
        assert!(output.code == 2 && output.err.contains("needs --yes"), "{arguments:?}: {output}");
        assert!(!output.to_string().contains(SECRET), "{output}");
        assert_eq!(repo.git(&["for-each-ref"]), before, "{arguments:?}");
    }
    assert!(everything(&repo, &root).contains(SECRET));
}

#[test]
fn old_objects_stay_until_they_are_pruned() {
    let repo = TestRepo::with_small_team();
    let root = repo.root();
    learn(&repo, &root, &format!("The gate opens with {SECRET}, always."));
    let removed = scrub(&repo, &root, SECRET, &[]);
    assert!(removed.err.contains("`squad scrub --prune` removes the old objects"), "{removed}");
    assert!(repo.squad(&["agents", "show", "ada", "--prompt"]).out.contains("[redacted:scrubbed]"));
    assert!(everything(&repo, &root).contains(SECRET));
    let pruned = repo.squad(&["scrub", "--prune", "--yes"]);
    assert_eq!(pruned.code, 0, "{pruned}");
    assert!(!everything(&repo, &root).contains(SECRET));
    repo.assert_sound();
}

#[test]
fn what_is_the_users_own_stays_and_is_named() {
    let repo = TestRepo::with_small_team();
    let root = repo.root();
    let added = repo.squad(&["decisions", "add", &format!("The gate opens with {SECRET}")]);
    assert!(added.err.contains("landed"), "{added}");
    // Objects of the user's own that nothing leads to are none of ours.
    repo.write("draft.txt", "a draft that was never committed\n");
    let draft = repo.git(&["hash-object", "-w", "draft.txt"]);
    let output = scrub(&repo, &root, SECRET, &["--prune"]);
    assert!(output.err.contains("main:.squad/decisions/2026/01/05-the-gate-opens-with"), "{output}");
    assert!(output.err.contains("contains it; squad does not rewrite branches"), "{output}");
    assert_eq!(repo.git(&["cat-file", "-p", draft.trim()]), "a draft that was never committed\n");
    let grep = repo.command("git", &root).args(["grep", "-q", SECRET, "refs/squad/log"]).status().expect("git runs");
    assert_eq!(grep.code(), Some(1));
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? draft.txt\n");
    repo.assert_sound();
}

#[test]
fn kinds_and_todays_rules_find_what_was_kept() {
    let repo = TestRepo::with_small_team();
    let root = repo.root();
    // As an earlier squad may have kept it: written around squad.
    learn(&repo, &root, "Ask about TOKEN.");
    let token = format!("ghp_{}", "a1B2".repeat(9));
    replant(&repo, "TOKEN", &token);
    let unknown = repo.squad(&["scrub", "--kind", "nonsense"]);
    assert!(
        unknown.code == 2 && unknown.err.contains("the kinds are adafruit-key") || unknown.err.contains("github-token")
    );
    assert!(repo.squad(&["scrub", "--kind", "slack-token"]).err.starts_with("It is neither"));
    let rehearsal = repo.squad(&["scrub", "--rescan", "-n"]);
    assert!(rehearsal.out.contains("memory.logged.md  github-token"), "{rehearsal}");
    let output = repo.squad(&["scrub", "--kind", "github-token", "--prune", "--yes"]);
    assert!(output.err.contains("Removed from"), "{output}");
    assert!(!everything(&repo, &root).contains(&token));
    assert!(repo.squad(&["scrub", "--rescan"]).err.starts_with("It is neither"));
    expect![[r#"
        --- stderr
        error: the value is shorter than 4 characters and would match ordinary words
        hint: use a longer value, including the text around it
        --- exit 2
    "#]]
    .assert_eq(&repo.with_input("abc\n").squad_in(&root, &["scrub", "--value-stdin"]).to_string());
    assert_eq!(repo.squad(&["scrub"]).code, 2);
}

/// Puts another word in place of one, in every entry, as a commit on the ledger.
fn replant(repo: &TestRepo, old: &str, new: &str) {
    let index = repo.root().join(".git/other");
    let git = |arguments: &[&str]| {
        let done = repo.command("git", &repo.root()).env("GIT_INDEX_FILE", &index).args(arguments).output();
        String::from_utf8(done.expect("git runs").stdout).expect("UTF-8").trim().to_owned()
    };
    git(&["read-tree", "refs/squad/log"]);
    for path in ledger(repo, &repo.root()) {
        let text = repo.git(&["show", &format!("refs/squad/log:{path}")]);
        if text.contains(old) {
            repo.write("../planted", &text.replace(old, new));
            let planted = repo.root().join("../planted").display().to_string();
            let blob = git(&["hash-object", "-w", &planted]);
            git(&["update-index", "--cacheinfo", &format!("100644,{blob},{path}")]);
        }
    }
    let tree = git(&["write-tree"]);
    let commit = git(&["commit-tree", &tree, "-m", "another"]);
    git(&["update-ref", "refs/squad/log", &commit]);
}

#[test]
fn other_clones_do_not_bring_it_back() {
    let shared = Shared::new();
    let (repo, ours, theirs) = (&shared.repo, shared.repo.root(), shared.clone("theirs", &[]));
    learn(repo, &ours, &format!("The gate opens with {SECRET}."));
    shared.sync(&ours);
    shared.sync(&theirs);
    assert!(everything(repo, &theirs).contains(SECRET));
    let output = scrub(repo, &ours, SECRET, &["--prune"]);
    assert!(output.err.contains("`origin` still has the old ledger"), "{output}");
    assert!(!everything(repo, &ours).contains(SECRET));
    // The other clone knows nothing of it yet, and goes on.
    repo.squad_in(&theirs, &["decisions", "add", "Made meanwhile"]);
    shared.sync(&theirs);
    // What came meanwhile is taken; the remote is not overwritten, and how to is said.
    let refused = repo.squad(&["sync"]);
    assert!(refused.code == 1 && refused.err.contains("still has the ledger from before"), "{refused}");
    assert!(repo.squad(&["decisions", "list"]).out.contains("Made meanwhile"));
    let command = refused.err.lines().find_map(|line| line.split_once("replace it there: ")).expect("a command").1;
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    repo.git(&words);
    // The other clone takes it over, and keeps what it has of its own.
    repo.squad_in(&theirs, &["decisions", "add", "Not sent yet"]);
    shared.sync(&theirs);
    shared.sync(&ours);
    assert_eq!(shared.tip(&ours), shared.tip(&theirs));
    for place in [&ours, &theirs] {
        let list = repo.squad_in(place, &["decisions", "list"]).out;
        assert!(list.contains("Made meanwhile") && list.contains("Not sent yet"), "{list}");
        assert!(repo.squad_in(place, &["agents", "show", "ada", "--prompt"]).out.contains("[redacted:scrubbed]"));
        let pruned = repo.squad_in(place, &["scrub", "--prune", "--yes"]);
        assert_eq!(pruned.code, 0, "{pruned}");
        assert!(!everything(repo, place).contains(SECRET), "{pruned}");
        shared.assert_sound(place);
    }
    let history = repo.git_in(&shared.hub(), &["log", "-p", "refs/squad/log"]);
    assert!(!history.contains(SECRET));
}

/// The places where git keeps a copy of a remote's ledger × what was fetched before and after the scrub.
#[test]
fn no_old_copy_of_a_remotes_ledger_stays() {
    for copy in ["refs/squad/remotes/hub/log", "refs/squad/remotes/hub/clones/a", "refs/remotes/hub/squad/state"] {
        let repo = TestRepo::with_small_team();
        learn(&repo, &repo.root(), &format!("The gate opens with {SECRET}."));
        repo.git(&["update-ref", copy, "refs/squad/log"]);
        let output = scrub(&repo, &repo.root(), SECRET, &["--json", "--prune"]);
        let report: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
        assert_eq!(report["scrubbed"]["remotes"], serde_json::json!(["hub"]), "{copy}: {output}");
        assert_eq!(repo.git(&["for-each-ref", copy]), "", "{copy}: {output}");
        assert!(!everything(&repo, &repo.root()).contains(SECRET), "{copy}: {output}");
        repo.git(&["update-ref", copy, "refs/squad/log"]);
        let again = scrub(&repo, &repo.root(), SECRET, &["--json"]);
        let report: serde_json::Value = serde_json::from_str(&again.out).expect("JSON");
        assert_eq!(report["scrubbed"]["remotes"], serde_json::json!([]), "{copy} is up to date: {again}");
    }
}

#[test]
fn two_clones_that_scrub_different_secrets_lose_both() {
    const OTHER: &str = "Barnacle of 1944";
    let shared = Shared::new();
    let (repo, ours, theirs) = (&shared.repo, shared.repo.root(), shared.clone("theirs", &[]));
    learn(repo, &ours, &format!("Front: {SECRET}.\nBack: {OTHER}."));
    shared.sync(&ours);
    shared.sync(&theirs);
    scrub(repo, &ours, SECRET, &[]);
    scrub(repo, &theirs, OTHER, &[]);
    let refused = repo.squad(&["sync"]);
    let command = refused.err.lines().find_map(|line| line.split_once("replace it there: ")).expect("a command").1;
    repo.git(&command.split(' ').skip(1).collect::<Vec<_>>());
    let refused = repo.squad_in(&theirs, &["sync"]);
    let command = refused.err.lines().find_map(|line| line.split_once("replace it there: ")).expect("a command").1;
    repo.git_in(&theirs, &command.split(' ').skip(1).collect::<Vec<_>>());
    shared.sync(&ours);
    assert_eq!(shared.tip(&ours), shared.tip(&theirs));
    for place in [&ours, &theirs, &shared.hub()] {
        let history = repo.git_in(place, &["log", "-p", "refs/squad/log"]);
        assert!(!history.contains(SECRET) && !history.contains(OTHER));
    }
    let prompt = repo.squad(&["agents", "show", "ada", "--prompt"]).out;
    assert!(
        prompt.contains("Front: [redacted:scrubbed].") && prompt.contains("Back: [redacted:scrubbed]."),
        "{prompt}"
    );
}
