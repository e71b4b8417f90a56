//! What the team's files and the ledger answer needs no engine: none is installed here.

use expect_test::expect;

use crate::support::{Output, TestRepo};

fn ask(repo: &TestRepo, message: &str) -> Output {
    repo.squad(&["orchestrate", message])
}

fn answer(repo: &TestRepo, message: &str) -> String {
    let output = ask(repo, message);
    assert_eq!(output.code, 0, "{message}: {output}");
    output.out
}

#[test]
fn a_greeting_starts_nobody_and_is_in_the_ledger() {
    let repo = TestRepo::with_small_team();
    expect![[r#"
        Hello. This team has 3 agents: Ada (Backend Dev), Bob (Tester) and Rex (Reviewer) (.squad/team.md:5).

        Say what to do, or ask who handles something, what was decided, or what is going on.
        --- stderr
        Plan  answered from the team's files and its ledger   tier direct, run 000001
        ✓ completed in 0:03; run 000001
        --- exit 0
    "#]]
    .assert_eq(&ask(&repo, "Good morning, team!").to_string());
    let output = repo.squad(&["log", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    let run = &value["runs"][0];
    assert_eq!((&run["status"], &run["agents"]), (&"completed".into(), &serde_json::json!({})));
    let types: Vec<String> = TestRepo::events(&repo.squad(&["orchestrate", "--json", "Thanks!"]))
        .iter()
        .map(|event| event["type"].as_str().expect("a type").to_owned())
        .collect();
    assert_eq!(types, ["run.started", "route.planned", "run.answer", "run.completed"]);
    repo.assert_sound();
}

#[test]
fn what_goes_on_is_read_from_the_ledger() {
    let repo = TestRepo::with_small_team();
    expect![[r#"
        Nothing is running.

        No run is recorded yet.
    "#]]
    .assert_eq(&answer(&repo, "What's going on?"));
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "Cover the parser"]);
    repo.rehearse("[[turn]]\nagent = \"ada\"\nsteps = [{ fail = \"no\" }]\n", &["--agent", "ada", "Add\nan endpoint"]);
    expect![[r#"
        Nothing is running.

        The last runs:

        - 20260105-090025-000018 failed, ada: Add
        - 20260105-090005-000006 completed, bob: Cover the parser
    "#]]
    .assert_eq(&answer(&repo, "Hi! What happened last?"));
    expect![[r#"
        The last runs:

        - 20260105-090039-000024 completed, nobody: Hi! What happened last?
        - 20260105-090025-000018 failed, ada: Add
        - 20260105-090005-000006 completed, bob: Cover the parser
        - 20260105-090000-000001 completed, nobody: What's going on?
    "#]]
    .assert_eq(&answer(&repo, "Which runs were there?"));
}

#[test]
fn who_does_what_is_read_from_the_team() {
    let repo = TestRepo::with_small_team();
    expect![[r#"
        The team has 3 agents:

        - Ada, Backend Dev (.squad/team.md:5)
        - Bob, Tester (.squad/team.md:6)
        - Rex, Reviewer (.squad/team.md:7)

        On the roster, but never started:

        - Scribe, Logger: a built-in helper (.squad/team.md:8)
        - Old, Backend Dev: retired (.squad/team.md:9)
    "#]]
    .assert_eq(&answer(&repo, "Who is on the team?"));
    repo.write(
        ".squad/agents/ada/charter.md",
        "# Ada — Backend Dev\n\n## What I Own\n\n- Everything below src/api\n\n## Voice\n\nDry.\n",
    );
    expect![[r#"
        Ada is the team's Backend Dev (.squad/team.md:5).

        Owns (.squad/agents/ada/charter.md):

        - Everything below src/api

        Gets this work:

        - Server, API (.squad/routing.md:5)
        - Security (.squad/routing.md:7)
    "#]]
    .assert_eq(&answer(&repo, "What does Ada do?"));
    let handles = answer(&repo, "Who handles unit tests?");
    assert!(handles.starts_with("Bob (Tester) handles “unit tests”:\n\n- Bob (Tester): "), "{handles}");
    assert!(handles.contains(".squad/routing.md:6"), "{handles}");
    assert_eq!(
        answer(&repo, "Who is responsible for the zeppelins?"),
        "Nothing in the team's files says who handles “zeppelins”.\n"
    );
}

#[test]
fn what_was_decided_is_read_from_the_decisions() {
    let repo = TestRepo::with_small_team();
    assert_eq!(answer(&repo, "What did we decide about money?"), "No decision is recorded yet.\n");
    repo.squad(&["decisions", "add", "Money is stored as integer cents\n\nFloats lose them."]);
    repo.squad(&["decisions", "add", "Errors are JSON"]);
    repo.write(
        ".squad/decisions.md",
        "# Decisions\n\n### 2025-12-01: Money is shown in euros\n**By:** Bob\n\nFor now.\n",
    );
    let head = repo.git(&["rev-parse", "HEAD"]);
    expect![[r#"
        2 decisions mention “money”:

        - Money is stored as integer cents (2026-01-05, by Ann, in force; 000000000006; .squad/decisions/2026/01/05-money-is-stored-as-integer-cents-000000000006.md:1)
          Floats lose them.
        - Money is shown in euros (2025-12-01, by Bob, not on the branch yet; 1335bcd784ee; .squad/decisions.md:3)
          For now.
    "#]].assert_eq(&answer(&repo, "What did we decide about money?"));
    expect![[r#"
        None of the team's 3 decisions mentions “zeppelins”.
    "#]]
    .assert_eq(&answer(&repo, "Is there a decision on zeppelins?"));
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head, "who only asks gets no commit");
}

#[test]
fn what_files_do_not_answer_is_the_coordinators() {
    let repo = TestRepo::with_small_team();
    let message = "Where does the design document live?";
    assert_eq!(ask(&repo, message).code, 4, "without an engine");
    let script =
        "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = '{\"agents\": [], \"answer\": \"In docs/.\"}' }]\n";
    let output = repo.rehearse(script, &[message]);
    assert!(output.code == 0 && output.out == "In docs/.\n", "{output}");
    assert!(output.err.contains("the coordinator answers") && !output.err.contains("Plan  1"), "{output}");
}

/// Every answer that chooses nobody × as text and as JSON, and a coordinator that fails.
#[test]
fn who_works_on_it_is_the_users_where_the_coordinator_chooses_nobody() {
    for (step, error) in [
        (r#"say = '{"agents": []}'"#, "cannot tell whose work it is"),
        (
            r#"say = '{"agents": [], "reason": "Front or back.", "answer": ""}'"#,
            "cannot tell whose work it is: Front or back",
        ),
        ("say = 'I cannot tell.'", "did not answer in the form it was asked for: I cannot tell"),
        (r#"say = '{"agents": ["mallory"]}'"#, "chose `mallory`, who cannot be started"),
        ("fail = 'Out of cheese.'", ""),
    ] {
        let repo = TestRepo::with_small_team();
        let script = format!("[[turn]]\nagent = \"coordinator\"\nsteps = [{{ {step} }}]\n");
        let message = "Untangle the zeppelin hangar";
        let output = repo.rehearse(&script, &[message]);
        let json = repo.rehearse(&script, &[message, "--json"]);
        let last: serde_json::Value =
            serde_json::from_str(json.out.lines().last().expect("a line")).expect("it is JSON");
        let is_unchosen = !error.is_empty();
        let (code, status) = if is_unchosen { (2, "skipped") } else { (1, "failed") };
        assert!(output.code == code && json.code == code && last["status"] == status, "{output}{last}");
        assert!(repo.squad(&["log"]).out.contains(status), "{step}");
        let said = format!("error: the coordinator {error}\nhint: name one with `--agent NAME`: ada, bob and rex\n");
        assert_eq!(output.err.ends_with(&said), is_unchosen, "{output}");
        assert_eq!(last["error"]["kind"] == "usage", is_unchosen, "{last}");
        assert!(!is_unchosen || !output.err.contains("failed"), "{output}");
        let shown = repo.squad(&["log", last["run"].as_str().expect("an id"), "--events"]).out;
        assert!(!is_unchosen || shown.contains(&format!("the coordinator {error}")), "{shown}");
    }
}

#[test]
fn a_dry_run_shows_the_answer() {
    let repo = TestRepo::with_small_team();
    let output = repo.squad(&["orchestrate", "--dry-run", "Thanks!"]);
    expect![[r#"
        nobody is started: this is answered directly

        The answer, without any engine:

        You are welcome.
        --- exit 0
    "#]]
    .assert_eq(&output.to_string());
    assert_eq!(repo.squad(&["log"]).out, "");
}

#[test]
fn no_answer_writes_escapes_to_the_terminal() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/team.md", "| Name | Role |\n|---|---|\n| Ada | Back\u{1b}[31mend \u{202e}Dev |\n");
    repo.write(".squad/decisions.md", "# Decisions\n\n### 2025-12-01: Red \u{1b}[31m alert \u{202e}\n\nYes.\n");
    for message in ["Hello", "Who is on the team?", "Who is Ada?", "What was decided about the red alert?"] {
        let text = answer(&repo, message);
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
}
