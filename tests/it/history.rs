//! Learnings become part of the agents' history files: once, and without another byte changed.

use expect_test::expect;

use crate::support::TestRepo;

const HISTORY: &str = "# Bob\r\n\r\n## Learnings\r\n\r\n* Ask first.\r\n\r\n## Project Context\r\n\r\nBoats.\r\n";

fn learn(repo: &TestRepo, agent: &str, texts: &[&str]) {
    let steps: Vec<String> =
        texts.iter().map(|text| format!("{{ tool = \"squad_remember\", args = {{ text = {text:?} }} }}, ")).collect();
    let script = format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{}{{ say = \"Done.\" }}]\n", steps.concat());
    let output = repo.rehearse(&script, &["--agent", agent, "learn"]);
    assert_eq!(output.code, 0, "{output}");
}

/// Bob keeps a history, Ada none.
fn repo() -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/agents/bob/history.md", HISTORY);
    repo.write("work.txt", "before\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "history"]);
    learn(&repo, "bob", &["The suite needs TZ=UTC.", "Two lines:\n## no heading"]);
    learn(&repo, "ada", &["Ports are even."]);
    repo
}

fn prompt(repo: &TestRepo, agent: &str) -> String {
    repo.squad(&["agents", "show", agent, "--prompt"]).out
}

fn land(repo: &TestRepo) -> String {
    let output = repo.squad(&["history", "land"]);
    assert_eq!(output.code, 0, "{output}");
    output.err
}

#[test]
fn learnings_land_in_one_commit_and_are_told_once() {
    let repo = repo();
    assert_eq!(prompt(&repo, "bob").matches("The suite needs TZ=UTC.").count(), 1);
    repo.write("work.txt", "edited\n");
    repo.git(&["stash", "-q"]);
    repo.write("work.txt", "staged\n");
    repo.git(&["add", "work.txt"]);
    repo.write("work.txt", "edited\n");
    let picture = || [repo.git(&["status", "--porcelain"]), repo.git(&["diff"]), repo.git(&["stash", "list"])];
    let before = picture();
    expect![[r#"
        --- .squad/agents/ada/history.md
        +++ .squad/agents/ada/history.md
        @@ -0,0 +1,5 @@
        +# Ada
        +
        +## Learnings
        +
        +- 2026-01-05: Ports are even.
        --- .squad/agents/bob/history.md
        +++ .squad/agents/bob/history.md
        @@ -3,6 +3,9 @@
         ## Learnings

         * Ask first.
        +* 2026-01-05: The suite needs TZ=UTC.
        +* 2026-01-05: Two lines:
        +  ## no heading

         ## Project Context
        --- stderr
        3 learnings would land on main.
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["history", "land", "--dry-run"]).to_string().replace('\r', ""));
    assert_eq!(picture(), before);
    let commits = || repo.git(&["rev-list", "--count", "HEAD"]);
    let count = commits();
    assert!(land(&repo).starts_with("3 learnings landed on main in "));
    assert_ne!(commits(), count);
    assert_eq!(picture(), before);
    let added =
        "\r\n* 2026-01-05: The suite needs TZ=UTC.\r\n* 2026-01-05: Two lines:\r\n  ## no heading\r\n\r\n## Project";
    assert_eq!(repo.read(".squad/agents/bob/history.md"), HISTORY.replace("\r\n\r\n## Project", added));
    expect![[r#"
        squad: add 3 learnings to history

        - ada: Ports are even.
        - bob: The suite needs TZ=UTC.
        - bob: Two lines:

        Squad-Run: 20260105-090023-000016
        Squad-Run: 20260105-090000-000001
        Squad-Agent: ada
        Squad-Agent: bob

    "#]]
    .assert_eq(&repo.git(&["log", "-1", "--format=%B"]).replace("\n\n\n", "\n"));
    for (agent, text) in [("bob", "The suite needs TZ=UTC."), ("ada", "Ports are even.")] {
        assert_eq!(prompt(&repo, agent).matches(text).count(), 1, "{agent}");
    }
    assert_eq!(land(&repo), "There is nothing to land: all 3 recorded learnings have landed.\n");
    assert!(repo.squad(&["rescue", "list"]).out.contains("before history land"));
    repo.assert_sound();
}

/// As with decisions: what has landed somewhere does not land again elsewhere.
#[test]
fn a_learning_lands_on_one_branch_only() {
    let repo = repo();
    repo.git(&["switch", "-qc", "feature"]);
    land(&repo);
    repo.git(&["switch", "-q", "main"]);
    assert_eq!(land(&repo), "There is nothing to land: all 3 recorded learnings have landed.\n");
    assert_eq!(prompt(&repo, "bob").matches("The suite needs TZ=UTC.").count(), 1, "the ledger tells it here");
    // What people made of it on its branch, or threw away, is not told again from the ledger.
    repo.git(&["switch", "-q", "feature"]);
    repo.write(".squad/agents/bob/history.md", "# Bob\n\nTests want UTC.\n");
    repo.git(&["commit", "-qam", "curate"]);
    assert!(!prompt(&repo, "bob").contains("The suite needs TZ=UTC."));
    repo.git(&["switch", "-q", "main"]);
    repo.git(&["merge", "-q", "--squash", "feature~1"]);
    repo.git(&["commit", "-qm", "squashed"]);
    assert_eq!(prompt(&repo, "bob").matches("The suite needs TZ=UTC.").count(), 1);
}

/// Merged under another name, what people made of it is told, and the ledger's words are not told beside it.
#[test]
fn an_edited_learning_is_told_once_wherever_it_was_merged() {
    for way in ["merge", "squash"] {
        let repo = repo();
        repo.git(&["switch", "-qc", "feature"]);
        land(&repo);
        let path = ".squad/agents/bob/history.md";
        let edited = repo.read(path).replace("The suite needs TZ=UTC.", "Set TZ=UTC before you run the suite.");
        repo.write(path, &edited);
        repo.git(&["commit", "-qam", "curate"]);
        repo.git(&["switch", "-q", "main"]);
        assert!(prompt(&repo, "bob").contains("The suite needs TZ=UTC."), "{way}");
        if way == "merge" {
            repo.git(&["merge", "-q", "--no-ff", "--no-edit", "feature"]);
        } else {
            repo.git(&["merge", "-q", "--squash", "feature"]);
            repo.git(&["commit", "-qm", "squashed"]);
        }
        let told = prompt(&repo, "bob");
        assert!(told.contains("Set TZ=UTC before") && !told.contains("The suite needs TZ=UTC."), "{way}: {told}");
        assert_eq!(told.matches("no heading").count(), 1, "{way}: {told}");
    }
}

/// Learned twice by one agent, and by two: each has it once.
#[test]
fn what_was_learned_twice_lands_once() {
    let repo = TestRepo::with_small_team();
    for (agent, texts) in [
        ("bob", &["Ports are even.", "Ports are even."][..]),
        ("bob", &["Ports are even."]),
        ("ada", &["Ports are even."]),
    ] {
        learn(&repo, agent, texts);
    }
    land(&repo);
    for agent in ["bob", "ada"] {
        let text = repo.read(&format!(".squad/agents/{agent}/history.md"));
        assert_eq!(text.matches("Ports are even.").count(), 1, "{text}");
    }
}

/// Under its name and under the one it had.
#[test]
fn learnings_of_a_renamed_agent_are_its_own() {
    let repo = repo();
    // It is the charter that knows the old name.
    repo.write(".squad/agents/bob/charter.md", "# Bob\n\nI test.\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "charter"]);
    let renamed = repo.squad(&["agents", "rename", "bob", "rob"]);
    assert_eq!(renamed.code, 0, "{renamed}");
    let said = land(&repo);
    assert!(said.contains("3 learnings"), "{said}");
    let histories = repo.git(&["grep", "-l", "The suite needs TZ=UTC.", "HEAD"]);
    assert_eq!(histories.lines().count(), 1, "{histories}");
}

#[test]
fn later_learnings_follow_and_one_agents_alone() {
    let repo = repo();
    let output = repo.squad(&["history", "land", "Ada"]);
    assert!(output.err.starts_with("1 learning landed"), "{output}");
    learn(&repo, "ada", &["Ports are even.", "Masts are odd."]);
    assert!(land(&repo).starts_with("3 learnings landed"), "the same words of the same day are there already");
    let history = repo.read(".squad/agents/ada/history.md");
    assert_eq!(history, "# Ada\n\n## Learnings\n\n- 2026-01-05: Ports are even.\n- 2026-01-05: Masts are odd.\n");
    let unknown = repo.squad(&["history", "land", "nobody"]);
    assert!(unknown.code == 2 && unknown.err.contains("there is no agent `nobody`"), "{unknown}");
}

#[test]
fn what_stands_in_the_way_is_said_and_nothing_is_lost() {
    let repo = repo();
    let refused = |why: &str| {
        let before = [repo.git(&["status", "--porcelain"]), repo.git(&["rev-parse", "HEAD"])];
        let output = repo.squad(&["history", "land"]);
        assert!(output.code != 0 && output.err.contains(why) && output.err.contains("hint:"), "{why}: {output}");
        assert_eq!([repo.git(&["status", "--porcelain"]), repo.git(&["rev-parse", "HEAD"])], before, "{why}");
    };
    repo.write(".squad/agents/bob/history.md", "mine\n");
    refused("has changes that are not committed");
    repo.git(&["checkout", "-q", "--", ".squad"]);
    repo.write(".squad/agents/ada/history.md", "mine\n");
    refused(".squad/agents/ada/history.md exists with other content");
    std::fs::remove_dir_all(repo.root().join(".squad/agents/ada")).expect("it is there");
    repo.write(".git/MERGE_HEAD", "0000000000000000000000000000000000000001\n");
    refused("a merge is in progress");
    std::fs::remove_file(repo.root().join(".git/MERGE_HEAD")).expect("it is there");
    repo.git(&["switch", "-q", "--detach"]);
    refused("cannot commit: HEAD is detached");
    repo.git(&["switch", "-q", "main"]);
    assert!(land(&repo).starts_with("3 learnings landed"));
}
