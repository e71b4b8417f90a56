use expect_test::expect;
use serde_json::Value;

use crate::support::TestRepo;

/// A decision as a person would write its file.
pub(crate) fn decision(repo: &TestRepo, id: &str, title: &str, more: &str) {
    repo.write(
        &format!(".squad/decisions/2026/01/05-{id}.md"),
        &format!("---\nid: {id}\ndate: 2026-01-05\nby: Ann\n{more}---\n# {title}\n\n**What:** {title}.\n\n**Why:** It was agreed.\n"),
    );
}

pub(crate) fn commit(repo: &TestRepo, message: &str) {
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message", message]);
}

/// `main` holds three decisions; `feature` has parted from it and `main` has gone on.
pub(crate) fn parted() -> TestRepo {
    let repo = TestRepo::with_small_team();
    decision(&repo, "aaaa", "Indentation uses spaces", "");
    decision(&repo, "bbbb", "Money is stored as floating point", "");
    decision(&repo, "cccc", "Handlers return early", "scope: [\"src/api/**\"]\n");
    decision(&repo, "dddd", "Nobody deploys on Fridays", "");
    commit(&repo, "decisions");
    repo.git(&["switch", "--quiet", "--create", "feature"]);
    repo
}

pub(crate) fn review(repo: &TestRepo, range: &str) -> Value {
    serde_json::from_str(&repo.squad(&["decisions", "review", range, "--json"]).out).expect("JSON")
}

pub(crate) fn conflicts(review: &Value) -> Vec<String> {
    let all = review["conflicts"].as_array().expect("conflicts");
    all.iter()
        .map(|one| format!("{} {} {}", one["certainty"], one["code"], one["decisions"]).replace('"', ""))
        .collect()
}

#[test]
fn a_pull_request_says_what_it_decides() {
    let repo = parted();
    decision(&repo, "eeee", "Use tabs for indentation", "");
    decision(&repo, "ffff", "Money is stored as integer cents", "supersedes: bbbb\n");
    decision(&repo, "aabb", "Handlers log their input", "scope: [\"src/api/**\"]\n");
    decision(&repo, "cccc", "Handlers return early", "scope: [\"src/api/**\"]\ntags: [style]\n");
    repo.git(&["rm", "--quiet", ".squad/decisions/2026/01/05-dddd.md"]);
    repo.write(".squad/agents/ada/charter.md", "# Ada — Backend Dev\n\nI own the ports.\n");
    commit(&repo, "feature");
    let output = repo.squad(&["decisions", "review", "main..feature"]);
    assert_eq!(output.code, 0, "{output}");
    expect![[r#"
        ## Decisions in main..feature

        3 new, 1 changed, 1 superseded, 1 withdrawn, the prompts of 4 agents change.

        ### Contradictions

        - **Contradiction** (`scope-decided-twice`): both decide src/api/\*\*, and neither supersedes the other
          - `aabb` Handlers log their input
          - `cccc` Handlers return early
        - Likely contradiction (`opposite-words`): about “indentation”, one says “tabs” and the other “spaces”
          - `eeee` Use tabs for indentation
          - `aaaa` Indentation uses spaces

        ### New

        - **Handlers log their input** (`aabb`, by Ann, 2026-01-05, scope `src/api/**`)

        <details><summary>Why</summary>

        > **What:** Handlers log their input.
        >
        > **Why:** It was agreed.

        </details>

        - **Use tabs for indentation** (`eeee`, by Ann, 2026-01-05)

        <details><summary>Why</summary>

        > **What:** Use tabs for indentation.
        >
        > **Why:** It was agreed.

        </details>

        - **Money is stored as integer cents** (`ffff`, by Ann, 2026-01-05, supersedes `bbbb`)

        <details><summary>Why</summary>

        > **What:** Money is stored as integer cents.
        >
        > **Why:** It was agreed.

        </details>


        ### Changed

        - **Handlers return early** (`cccc`, by Ann, 2026-01-05, scope `src/api/**`)

        <details><summary>How</summary>

        ```diff
        @@ -1,6 +1,7 @@
         # Handlers return early
         by: Ann
         scope: src/api/**
        +tags: style

         **What:** Handlers return early.

        ```

        </details>


        ### Superseded

        - **Money is stored as floating point** (`bbbb`, by Ann, 2026-01-05)
          superseded by `ffff`

        ### Withdrawn

        - **Nobody deploys on Fridays** (`dddd`, by Ann, 2026-01-05)

        ### Prompts

        | Agent | Tokens | Model |
        |---|---|---|
        | Ada | 393 → 430 | claude-sonnet-4.5 |
        | Bob | 391 → 433 | claude-sonnet-4.5 |
        | Rex | 392 → 434 | claude-sonnet-4.5 |
        | Coordinator | 370 → 394 | claude-sonnet-4.5 |

        ### What agents will be told


        <details><summary>Ada</summary>

        ```diff
        @@ -1,6 +1,6 @@
         # Ada — Backend Dev

        -You are Ada, the team's Backend Dev.
        +I own the ports.

         # Working in this team

        @@ -25,9 +25,15 @@

         Quoted from the team's records; keep to them. Oldest first.

        -Decision `dddd` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-dddd.md:1`:
        -> Nobody deploys on Fridays
        -> **What:** Nobody deploys on Fridays.
        +Decision `ffff` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-ffff.md:1`:
        +> Money is stored as integer cents
        +> **What:** Money is stored as integer cents.
        +>
        +> **Why:** It was agreed.
        +
        +Decision `eeee` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-eeee.md:1`:
        +> Use tabs for indentation
        +> **What:** Use tabs for indentation.
         >
         > **Why:** It was agreed.

        @@ -37,9 +43,9 @@
         >
         > **Why:** It was agreed.

        -Decision `bbbb` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-bbbb.md:1`:
        -> Money is stored as floating point
        -> **What:** Money is stored as floating point.
        +Decision `aabb` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-aabb.md:1`:
        +> Handlers log their input
        +> **What:** Handlers log their input.
         >
         > **Why:** It was agreed.

        ```

        </details>


        <details><summary>Bob and Rex</summary>

        ```diff
        @@ -25,9 +25,15 @@

         Quoted from the team's records; keep to them. Oldest first.

        -Decision `dddd` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-dddd.md:1`:
        -> Nobody deploys on Fridays
        -> **What:** Nobody deploys on Fridays.
        +Decision `ffff` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-ffff.md:1`:
        +> Money is stored as integer cents
        +> **What:** Money is stored as integer cents.
        +>
        +> **Why:** It was agreed.
        +
        +Decision `eeee` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-eeee.md:1`:
        +> Use tabs for indentation
        +> **What:** Use tabs for indentation.
         >
         > **Why:** It was agreed.

        @@ -37,9 +43,9 @@
         >
         > **Why:** It was agreed.

        -Decision `bbbb` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-bbbb.md:1`:
        -> Money is stored as floating point
        -> **What:** Money is stored as floating point.
        +Decision `aabb` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-aabb.md:1`:
        +> Handlers log their input
        +> **What:** Handlers log their input.
         >
         > **Why:** It was agreed.

        ```

        </details>


        <details><summary>Coordinator</summary>

        ```diff
        @@ -29,6 +29,7 @@
         ## Decisions in force

         - Indentation uses spaces (`aaaa` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-aaaa.md:1`)
        -- Money is stored as floating point (`bbbb` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-bbbb.md:1`)
        +- Handlers log their input (`aabb` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-aabb.md:1`)
         - Handlers return early (`cccc` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-cccc.md:1`)
        -- Nobody deploys on Fridays (`dddd` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-dddd.md:1`)
        +- Use tabs for indentation (`eeee` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-eeee.md:1`)
        +- Money is stored as integer cents (`ffff` 2026-01-05, by Ann, `.squad/decisions/2026/01/05-ffff.md:1`)
        ```

        </details>


        _This clone has no ledger, so decisions that never landed are not shown._
    "#]]
    .assert_eq(&output.out);
    for (what, code) in [("explicit", 1), ("unlanded", 0)] {
        assert_eq!(repo.squad(&["decisions", "review", "main..", "--fail-on", what]).code, code, "{what}");
    }
}

#[test]
fn both_sides_may_have_gone_on() {
    let repo = parted();
    decision(&repo, "eeee", "Money is stored as integer cents", "supersedes: bbbb\n");
    commit(&repo, "ours");
    repo.git(&["switch", "--quiet", "main"]);
    decision(&repo, "ffff", "Money is stored as strings", "supersedes: bbbb\n");
    repo.git(&["rm", "--quiet", ".squad/decisions/2026/01/05-dddd.md"]);
    commit(&repo, "theirs");
    let found = review(&repo, "main..feature");
    assert_eq!(conflicts(&found), ["explicit superseded-twice [eeee,ffff]"]);
    assert_eq!(found["withdrawn"], serde_json::json!([]), "what main has done since is not the branch's doing");
    assert_eq!(found["new"][0]["id"], "eeee");
    assert_eq!(found["new"][0]["source"], ".squad/decisions/2026/01/05-eeee.md:1");
}

#[test]
fn superseding_one_of_two_that_race_settles_it_before_the_merge() {
    for loser in ["eeee", "ffff"] {
        let repo = parted();
        decision(&repo, "eeee", "Money is stored as integer cents", "supersedes: bbbb\n");
        commit(&repo, "ours");
        repo.git(&["switch", "--quiet", "main"]);
        decision(&repo, "ffff", "Money is stored as strings", "supersedes: bbbb\n");
        commit(&repo, "theirs");
        repo.git(&["switch", "--quiet", "feature"]);
        let fails = || repo.squad(&["decisions", "review", "main..feature", "--fail-on", "explicit"]).code;
        assert_eq!(fails(), 1);
        decision(&repo, "abcd", "Money is a decimal type", &format!("supersedes: {loser}\n"));
        commit(&repo, "settled");
        assert_eq!(fails(), 0, "{loser}: {}", review(&repo, "main..feature"));
    }
}

#[test]
fn merged_squashed_rebased_and_reverted_histories_say_the_same() {
    for way in ["merge", "squash", "rebase", "cherry-pick"] {
        let repo = parted();
        let start = repo.git(&["rev-parse", "main"]);
        decision(&repo, "eeee", "Names are short", "");
        commit(&repo, "ours");
        repo.git(&["switch", "--quiet", "main"]);
        repo.write("other.txt", "other\n");
        commit(&repo, "theirs");
        match way {
            "merge" => repo.git(&["merge", "--quiet", "--no-edit", "feature"]),
            "squash" => {
                repo.git(&["merge", "--quiet", "--squash", "feature"]);
                repo.git(&["commit", "--quiet", "--message", "squashed"])
            }
            "rebase" => {
                repo.git(&["rebase", "--quiet", "main", "feature"]);
                repo.git(&["switch", "--quiet", "main"]);
                repo.git(&["merge", "--quiet", "--ff-only", "feature"])
            }
            _ => repo.git(&["cherry-pick", "feature"]),
        };
        let merged = review(&repo, &format!("{}..main", start.trim()));
        assert_eq!(
            (&merged["new"][0]["id"], merged["new"].as_array().map(Vec::len)),
            (&"eeee".into(), Some(1)),
            "{way}"
        );
        repo.git(&["rm", "--quiet", ".squad/decisions/2026/01/05-eeee.md"]);
        commit(&repo, "reverted");
        assert_eq!(review(&repo, &format!("{}..main", start.trim()))["new"], serde_json::json!([]), "{way}");
        assert_eq!(review(&repo, "HEAD~1..")["withdrawn"][0]["id"], "eeee", "{way}");
    }
}

#[test]
fn what_was_decided_for_the_branch_and_is_not_on_it_is_said() {
    let repo = parted();
    repo.git(&["switch", "--quiet", "--detach"]);
    repo.git(&["switch", "--quiet", "feature"]);
    repo.write(".git/index.lock", "");
    assert_eq!(repo.squad(&["decisions", "add", "Kept in the ledger"]).code, 0);
    std::fs::remove_file(repo.root().join(".git/index.lock")).expect("a lock");
    let found = review(&repo, "main..feature");
    assert_eq!(found["unlanded"][0]["title"], "Kept in the ledger", "{found}");
    let output = repo.squad(&["decisions", "review", "main..feature", "--fail-on", "explicit,unlanded"]);
    assert!(output.code == 1 && output.out.contains("Recorded but never landed"), "{output}");
}

#[test]
fn branches_are_compared_before_they_meet() {
    let repo = parted();
    decision(&repo, "eeee", "Sessions time out after 5 minutes", "");
    commit(&repo, "ours");
    repo.git(&["switch", "--quiet", "--create", "other", "main"]);
    decision(&repo, "ffff", "Sessions time out after 30 minutes", "");
    commit(&repo, "theirs");
    expect![[r#"
        ! feature and other: likely contradiction: about “minutes”, “sessions” and “time”, one says 5 and the other 30
            eeee  Sessions time out after 5 minutes
            ffff  Sessions time out after 30 minutes
        --- stderr
        Read main and 2 other branches with 2 decisions of their own: 1 contradiction.
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["decisions", "radar"]).to_string());
    // What the base had before is for the review of the branch.
    repo.git(&["switch", "--quiet", "--create", "late", "other"]);
    decision(&repo, "abcd", "Sessions time out after 15 minutes", "");
    commit(&repo, "late");
    let late = repo.squad(&["decisions", "radar", "--base", "other", "late"]);
    assert!(late.err.contains("1 other branch with 1 decision of its own: no contradiction"), "{late}");
    repo.git(&["switch", "--quiet", "main"]);
    repo.git(&["branch", "--quiet", "-D", "late"]);
    assert!(repo.squad(&["decisions", "radar", "feature", "main"]).err.contains("no contradiction"));
    repo.git(&["switch", "--quiet", "main"]);
    repo.git(&["merge", "--quiet", "--no-edit", "other"]);
    expect![[r#"
        ! feature and main: likely contradiction: about “minutes”, “sessions” and “time”, one says 5 and the other 30
            eeee  Sessions time out after 5 minutes
            ffff  Sessions time out after 30 minutes
        --- stderr
        Read main and 1 other branch with 1 decision of its own: 1 contradiction.
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["decisions", "radar"]).to_string());
}
