//! Adds, retires and renames agents.

use expect_test::expect;
use serde_json::Value;

use crate::support::{Output, TestRepo};

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.out).expect(&output.out)
}

fn names(repo: &TestRepo) -> Vec<String> {
    let report = json(&repo.squad(&["agents", "--json"]));
    let agents = report["agents"].as_array().expect("agents").iter();
    agents
        .map(|agent| format!("{} {}", agent["slug"].as_str().unwrap_or(""), agent["status"].as_str().unwrap_or("")))
        .collect()
}

/// Creates staged, unstaged, stashed and untracked work, and returns a function that shows its state.
fn with_work(repo: &TestRepo) -> impl Fn() -> String + '_ {
    repo.write("code.txt", "one\n");
    repo.git(&["add", "code.txt"]);
    repo.git(&["commit", "--quiet", "--message=code", "--", "code.txt"]);
    repo.write("code.txt", "stashed\n");
    repo.git(&["stash", "--quiet"]);
    repo.write("code.txt", "two\n");
    repo.git(&["add", "code.txt"]);
    repo.write("code.txt", "three\n");
    repo.write("new.txt", "new\n");
    || {
        [&["status", "--porcelain"][..], &["diff"], &["diff", "--cached"], &["stash", "list"]]
            .map(|arguments| repo.git(arguments))
            .concat()
    }
}

#[test]
fn an_agent_is_added_in_one_commit() {
    let repo = TestRepo::with_team();
    let state = with_work(&repo);
    let before = state();
    let output = repo.squad(&[
        "agents",
        "add",
        "Nora",
        "--role",
        "Data engineer",
        "--model",
        "gpt-5",
        "--routes",
        "ETL, warehouse",
    ]);
    let shown = output.to_string();
    let commit = repo.git(&["rev-parse", "--short=10", "HEAD"]);
    expect![[r#"
        added    .squad/agents/nora/charter.md
        changed  .squad/routing.md
        changed  .squad/team.md
        --- stderr
        3 files changed, committed in COMMIT.
        --- exit 0
    "#]]
    .assert_eq(&shown.replace(commit.trim(), "COMMIT"));
    assert_eq!(state(), before);
    assert_eq!(
        repo.git(&["show", "--format=%s", "--name-only", "HEAD"]),
        "squad: add Nora, Data engineer\n\n.squad/agents/nora/charter.md\n.squad/routing.md\n.squad/team.md\n"
    );
    assert!(names(&repo).contains(&"nora active".to_owned()));
    let plan = json(&repo.squad(&["route", "--json", "The ETL into the warehouse is broken"]));
    assert_eq!(plan["agents"][0], "nora", "{plan}");
    repo.git(&["stash", "--quiet", "--include-untracked"]);
    repo.git(&["revert", "--no-edit", "HEAD"]);
    assert_eq!(repo.git(&["diff", "HEAD~2", "--stat"]), "");
    repo.assert_sound();
}

#[test]
fn the_dry_run_shows_the_patch_of_the_real_run() {
    for call in [
        &["agents", "add", "Nora", "--role", "Data engineer"][..],
        &["agents", "retire", "frontend"],
        &["agents", "rename", "Backend", "Ada"],
    ] {
        let (shown, real) = (TestRepo::with_team(), TestRepo::with_team());
        let patch = shown.squad(&[call, &["--dry-run"]].concat());
        assert_eq!((patch.code, shown.git(&["status", "--porcelain"])), (0, String::new()), "{patch}");
        shown.write("../change.patch", &patch.out);
        shown.git(&["apply", "--index", "../change.patch"]);
        assert_eq!(real.squad(call).code, 0);
        assert_eq!(shown.git(&["write-tree"]), real.git(&["rev-parse", "HEAD^{tree}"]), "{call:?}");
        real.assert_sound();
    }
}

#[test]
fn a_renamed_agent_keeps_its_learnings() {
    let mut repo = TestRepo::with_team();
    let script = "[[turn]]\nagent = \"backend\"\nsteps = [{ tool = \"squad_remember\", args = { text = \"The suite needs TZ=UTC.\" } }, { say = \"Done.\" }]\n";
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    let output = repo.rehearse(script, &["--agent", "backend", "Fix the clock"]);
    assert_eq!(output.code, 0, "{output}");
    repo.write(".squad/agents/backend/check.sh", "#!/bin/sh\n");
    repo.git(&["add", ".squad/agents/backend/check.sh"]);
    repo.git(&["update-index", "--chmod=+x", ".squad/agents/backend/check.sh"]);
    repo.git(&["commit", "--quiet", "--message=program"]);
    repo.git(&["reset", "--quiet", "--hard"]);
    repo.write(".squad/agents/backend/scratch.txt", "untracked\n");
    let output = repo.squad(&["agents", "rename", "Backend", "Ada"]);
    assert!(repo.git(&["ls-files", "--stage", ".squad/agents/ada/check.sh"]).starts_with("100755 "), "{output}");
    assert!(output.code == 0 && output.out.contains("moved    .squad/agents/ada/charter.md"), "{output}");
    assert!(!repo.exists(".squad/agents/backend") && repo.read(".squad/agents/ada/scratch.txt") == "untracked\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? .squad/agents/ada/scratch.txt\n");
    let prompt = repo.squad(&["agents", "show", "ada", "--prompt"]);
    assert!(prompt.out.contains("The suite needs TZ=UTC."), "{prompt}");
    let landed = repo.squad(&["history", "land"]);
    assert!(landed.code == 0 && repo.read(".squad/agents/ada/history.md").contains("TZ=UTC"), "{landed}");
    let plan = json(&repo.squad(&["route", "--json", "Add a REST endpoint to the server"]));
    assert_eq!(plan["agents"][0], "ada", "{plan}");
    repo.assert_sound();
}

#[test]
fn rules_without_an_agent_are_listed() {
    let repo = TestRepo::with_team();
    let output = repo.squad(&["agents", "retire", "Docs"]);
    assert!(output.code == 0 && output.err.contains("routing: the row `Documentation` is removed"), "{output}");
    assert!(!repo.read(".squad/routing.md").contains("| Documentation |"));
    assert!(names(&repo).contains(&"docs retired".to_owned()));
    let output = repo.squad(&["agents", "retire", "docs"]);
    assert!(output.code == 3 && output.err.contains("retired already"), "{output}");
}

#[test]
fn uncommitted_changes_prevent_only_a_commit() {
    let repo = TestRepo::with_team();
    repo.write(".squad/team.md", &repo.read(".squad/team.md").replace("Who works", "All who work"));
    let add = ["agents", "add", "Nora", "--role", "Data engineer"];
    let output = repo.squad(&add);
    expect![[r#"
        --- stderr
        error: cannot commit: .squad/team.md has changes that are not committed
        hint: commit or stash them, then try again; or --no-commit writes the files and leaves the commit to you
        --- exit 1
    "#]]
    .assert_eq(&output.to_string());
    assert!(!repo.exists(".squad/agents/nora"));
    assert_eq!(repo.squad(&[&add[..], &["--dry-run"]].concat()).code, 1);

    let output = repo.squad(&[&add[..], &["--no-commit"]].concat());
    assert!(output.code == 0 && output.err.contains("git add .squad"), "{output}");
    let team = repo.read(".squad/team.md");
    assert!(team.contains("All who work") && team.contains("| Nora | Data engineer |"), "{team}");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M .squad/team.md\n?? .squad/agents/nora/\n");
    repo.git(&["checkout", "--quiet", "--detach"]);
    let output = repo.squad(&["agents", "retire", "Docs"]);
    assert!(output.code == 1 && output.err.contains("--no-commit"), "{output}");
    assert_eq!(repo.squad(&["agents", "retire", "Docs", "--no-commit"]).code, 0);
}

#[test]
fn bad_names_change_nothing() {
    let repo = TestRepo::with_team();
    let head = repo.git(&["rev-parse", "HEAD"]);
    for (call, code) in [
        (&["agents", "add", "../x", "--role", "Dev"][..], 3),
        (&["agents", "add", "Lead", "--role", "Dev"], 3),
        (&["agents", "add", "Nora", "--role", "a|b"], 3),
        (&["agents", "add", "Nora"], 2),
        (&["agents", "retire", "Nobody"], 2),
        (&["agents", "rename", "Nobody", "Ada"], 2),
        (&["agents", "rename", "Backend", "Frontend"], 3),
    ] {
        let output = repo.squad(call);
        // clap names a missing flag, and then how to call it.
        let shows_the_way = output.err.contains("hint:") || output.err.contains("Usage:");
        assert!(output.code == code && shows_the_way, "{call:?} {output}");
    }
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.git(&["status", "--porcelain"])), (head, String::new()));
}

#[test]
fn a_file_that_is_not_utf_8_is_not_changed() {
    let repo = TestRepo::with_team();
    std::fs::write(repo.root().join(".squad/routing.md"), b"| Work Type | Route To |\n|---|---|\n| R\xf4le | Lead |\n")
        .expect("a file");
    repo.git(&["commit", "--quiet", "--all", "--message=odd"]);
    let output = repo.squad(&["agents", "rename", "Lead", "Ada"]);
    assert!(output.code == 3 && output.err.contains(".squad/routing.md") && output.err.contains("UTF-8"), "{output}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(repo.squad(&["agents", "retire", "Lead"]).code, 0);
}

#[test]
fn a_name_that_no_charter_can_record_is_reported() {
    let repo = TestRepo::with_small_team();
    let output = repo.squad(&["agents", "rename", "Ada", "Eve"]);
    assert!(
        output.err.contains("the ledger's entries of `ada` are not shown for `eve`, which has no charter"),
        "{output}"
    );
    repo.write(".squad/agents/bob/charter.md", "# Bob — Tester\n\nTests.\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=charter"]);
    let output = repo.squad(&["agents", "rename", "Bob", "Max"]);
    assert!(output.code == 0 && !output.err.contains("the ledger has"), "{output}");
}

#[test]
fn rules_in_another_file_are_reported() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/routing.md", "# Routing\n\nRules: [table](rules.json)\n");
    repo.write(".squad/rules.json", "[{\"workType\": \"plans\", \"routeTo\": \"Ada\", \"examples\": [\"roadmap\"]}]\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=rules"]);
    let output = repo.squad(&["agents", "add", "Eve", "--role", "Writer", "--routes", "guides"]);
    assert!(output.code != 0 && output.err.contains(".squad/rules.json:1: the rules are in this file"), "{output}");
    // A role file becomes a member anyway, without a routing row.
    repo.write(".claude/agents/eve.md", "---\nname: Eve\ndescription: Writes guides\n---\n\nWrite.\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=role"]);
    let output = repo.squad(&["adopt", "--roles"]);
    assert!(output.code == 0 && output.err.contains("Eve joined the team"), "{output}");
}
