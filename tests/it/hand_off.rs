//! What a reviewer rejects goes to somebody else.

use expect_test::expect;
use serde_json::Value;

use crate::support::{Output, TestRepo};

const WORK: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "login.txt", text = "plain\n" }, { say = "Did it." }]
"#;

fn verdict(approved: bool, reasons: &str) -> String {
    format!(
        r#"
[[turn]]
agent = "rex"
steps = [{{ tool = "squad_verdict", args = {{ approved = {approved}, reasons = "{reasons}" }} }}, {{ say = "I have looked." }}]
"#
    )
}

fn chooses(agent: &str) -> String {
    format!(
        r#"
[[turn]]
agent = "coordinator"
steps = [{{ say = '{{"agents": ["{agent}"], "reason": "knows it"}}' }}]
"#
    )
}

const REVISED: &str = r#"
[[turn]]
agent = "bob"
steps = [{ write = "login.txt", text = "hashed\n" }, { say = "It is hashed now." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "bob has mended what ada began." }]
"#;

fn of_type<'e>(events: &'e [Value], name: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == name).collect()
}

fn run(repo: &TestRepo, script: &[String]) -> (Output, Vec<Value>) {
    let output = repo.rehearse(&script.concat(), &["--permissions", "allow", "--json", "Rework the login password"]);
    let events = TestRepo::events(&output);
    (output, events)
}

#[test]
fn rejected_work_is_revised_by_somebody_else_and_reviewed_again() {
    let repo = TestRepo::with_small_team();
    let script = [
        WORK.to_owned(),
        verdict(false, "Passwords are stored in plain text."),
        chooses("bob"),
        REVISED.to_owned(),
        verdict(true, "Now they are hashed."),
    ];
    let output = repo.rehearse(&script.concat(), &["--permissions", "allow", "Rework the login password"]);
    expect![[r#"
        bob has mended what ada began.
        --- stderr
          squad  the rehearsal engine: a script plays, no model is asked
        Plan  1 ada   2 rex   tier standard, run 000001   .squad/routing.md:7
        ✓ ada    write login.txt
          rex    I have looked.
          ada    Did it.
        ✗ rex    rejected: Passwords are stored in plain text.
        ! ada    may not revise what rex rejected
        ✓ bob    write login.txt
          bob    It is hashed now.
          rex    I have looked.
        ✓ rex    approved: Now they are hashed.
        ✓ completed after 1 rejection in 1:03; run 000001
          ada       completed   login.txt +1 -0
          rex       approved    no change
          bob       completed   login.txt +1 -1
          checked   unverified: no check ran after the last change
          next      squad diff 000001   the files are yours to commit
                    squad undo 000001   take them back
        --- exit 0
    "#]]
    .assert_eq(&output.to_string());
    assert_eq!(repo.read("login.txt"), "hashed\n");
    let (output, events) = run(&repo, &script);
    assert_eq!(output.code, 0, "{output}");
    let lockouts: Vec<String> = of_type(&events, "review.lockout")
        .iter()
        .map(|event| format!("{} {} {} {}", event["agent"], event["reviewer"], event["files"], event["attempt"]))
        .collect();
    assert_eq!(lockouts, [r#""ada" "rex" ["login.txt"] 1"#]);
    let work: Vec<String> = events.last().expect("an end")["work"]
        .as_array()
        .expect("work")
        .iter()
        .map(|work| format!("{} {} {} {}", work["agent"], work["step"], work["attempt"], work["status"]))
        .collect();
    assert_eq!(
        work,
        [
            r#""ada" 1 1 "completed""#,
            r#""rex" 1 1 "completed""#,
            r#""coordinator" null null "completed""#,
            r#""bob" 1 2 "completed""#,
            r#""rex" 1 2 "completed""#,
            r#""coordinator" null null "completed""#,
        ]
    );
    repo.assert_sound();
}

#[test]
fn what_is_rejected_twice_more_ends_the_run_as_failed() {
    let repo = TestRepo::with_small_team();
    let team = repo.read(".squad/team.md");
    repo.write(".squad/team.md", &team.replace("| Rex |", "| Lead | Lead | Active |\n| Rex |"));
    let answer = "\n[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"Nobody got it right.\" }]\n";
    let second = "\n[[turn]]\nagent = \"bob\"\nsteps = [{ tool = \"squad_decisions\" }, { say = \"Like this?\" }]\n";
    let third = "\n[[turn]]\nagent = \"lead\"\nsteps = [{ tool = \"squad_decisions\" }, { say = \"Or like this?\" }]\n";
    let script = [
        WORK.to_owned(),
        verdict(false, "Plain text."),
        chooses("bob"),
        second.to_owned(),
        verdict(false, "Still plain text."),
        chooses("lead"),
        third.to_owned(),
        verdict(false, "No."),
        answer.to_owned(),
    ];
    let (output, events) = run(&repo, &script);
    assert_eq!(output.code, 1, "{output}");
    assert_eq!(of_type(&events, "review.verdict").len(), 3);
    assert_eq!(of_type(&events, "run.answer")[0]["text"], "Nobody got it right.");
    assert_eq!(repo.read("login.txt"), "plain\n");
}

#[test]
fn whoever_may_not_revise_is_not_started() {
    for chosen in ["ada", "rex", "nobody"] {
        let repo = TestRepo::with_small_team();
        let (output, events) = run(&repo, &[WORK.to_owned(), verdict(false, "No."), chooses(chosen)]);
        assert_eq!(output.code, 1, "{output}");
        assert_eq!(of_type(&events, "review.verdict").len(), 1, "{output}");
        let complaints = of_type(&events, "session.error");
        assert!(complaints[0]["reason"].as_str().is_some_and(|reason| reason.contains("named nobody")), "{output}");
    }
}

#[test]
fn a_resumed_run_still_knows_who_may_not_revise() {
    for (chosen, code) in [("ada", 1), ("rex", 1), ("bob", 0)] {
        let repo = TestRepo::with_small_team();
        repo.write("../home/config/squad/config.toml", "[sessions]\nretry = 0\n");
        let dies = "[[turn]]\nagent = \"coordinator\"\nsteps = [{ fail = \"no model\" }]\n".repeat(2);
        let (no, yes) = (verdict(false, "Plain text."), verdict(true, "Hashed."));
        let script = [WORK.to_owned(), no, dies, chooses(chosen), REVISED.to_owned(), yes];
        assert_eq!(run(&repo, &script).0.code, 1);
        assert_eq!(repo.read("login.txt"), "plain\n");
        let resumed = repo.rehearse(&script.concat(), &["--permissions", "allow", "--json", "--resume", "20260105"]);
        let revised = TestRepo::events(&resumed).iter().any(|event| event["attempt"] == 2);
        assert_eq!((resumed.code, revised), (code, code == 0), "{chosen}: {resumed}");
        assert_eq!(repo.read("login.txt") == "hashed\n", code == 0, "{chosen}: {resumed}");
    }
}

#[test]
fn a_verdict_is_the_reviewers_alone() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ tool = "squad_verdict", args = { approved = true, reasons = "It is mine." } }, { say = "Approved." }]
"#;
    let (output, events) = run(&repo, &[script.to_owned(), verdict(true, "Good.")]);
    let calls = of_type(&events, "tool.completed");
    assert_eq!(calls[0]["ok"], false, "{output}");
    assert!(calls[0]["result"].as_str().is_some_and(|result| result.contains("only the reviewer")), "{output}");
    assert_eq!(of_type(&events, "review.verdict").len(), 1);
}

/// Only those whose files are named have to give their work away.
#[test]
fn the_reviewer_names_whose_work_it_is() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ write = "a.txt", text = "a\n" }, { say = "A." }]
[[turn]]
agent = "bob"
steps = [{ write = "b.txt", text = "b\n" }, { say = "B." }]
[[turn]]
agent = "rex"
steps = [{ tool = "squad_verdict", args = { approved = false, reasons = "a is wrong", files = ["a.txt"] } }, { say = "No." }]
[[turn]]
agent = "bob"
steps = [{ write = "a.txt", text = "A\n" }, { say = "Mended." }]
"#;
    let output = repo.rehearse(
        &[script.to_owned(), verdict(true, "Good.")].concat(),
        &["--permissions", "allow", "--json", "Fix the login password and add unit tests for it"],
    );
    let events = TestRepo::events(&output);
    let locked: Vec<&Value> = of_type(&events, "review.lockout").into_iter().map(|event| &event["agent"]).collect();
    assert_eq!(locked, ["ada"], "{output}");
    let rejected = of_type(&events, "review.verdict")[0];
    assert_eq!((&rejected["verdict"], &rejected["authors"]), (&"rejected".into(), &serde_json::json!(["ada"])));
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(repo.read("a.txt"), "A\n");
}

/// What the reviewer said at first, what the person wrote then, what the reviewer says if it is asked again, and the end.
#[test]
fn a_resumed_run_asks_the_reviewer_again_where_there_is_something_else_to_judge() {
    let does = |step: &str| format!("[[turn]]\nagent = \"rex\"\nsteps = [{step}]\n");
    let (unclear, dies) = (does("{ say = \"Hm.\" }"), does("{ fail = \"no model\" }"));
    let (no, yes) = (verdict(false, "Plain text."), verdict(true, "Hashed."));
    for (first, file, second, code, says) in [
        (&unclear, None, Some(&yes), 0, "✓ completed in "),
        (&unclear, None, Some(&unclear), 1, "✗ failed: rex gave no clear verdict; "),
        (&dies, None, Some(&yes), 0, "✓ completed in "),
        (&no, None, None, 1, "✗ failed: rejected by rex: Plain text; "),
        (&no, Some("login.txt"), Some(&yes), 0, "✓ completed after 1 rejection in "),
        (&no, Some("login.txt"), Some(&no), 1, "✗ failed: rejected twice by rex: Plain text; "),
        (&no, Some("beside.txt"), Some(&yes), 1, "login.txt did not change since it was rejected"),
    ] {
        let repo = TestRepo::with_small_team();
        repo.write("../home/config/squad/config.toml", "[sessions]\nretry = 0\n");
        let nobody = "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"Nobody.\" }]\n".repeat(4);
        let script = [WORK, first, second.unwrap_or(&yes), &nobody].concat();
        let output = repo.rehearse(&script, &["--permissions", "allow", "Rework the login password"]);
        let when = format!("{first} {file:?} {second:?}");
        assert!(output.code == 1 && output.err.contains("squad orchestrate --resume"), "{when}: {output}");
        if let Some(file) = file {
            repo.write(file, "hashed\n");
        }
        let resumed = repo.rehearse(&script, &["--permissions", "allow", "--resume", "20260105"]);
        assert!(resumed.code == code && resumed.err.contains(says), "{when}: {resumed}");
        // The card of the log is the same.
        let log = repo.squad(&["log", "20260105"]);
        let head = resumed.err.lines().find(|line| line.contains("; run 000001"));
        let (head, _) = head.and_then(|head| head.split_once(" in ").or(head.split_once("; run"))).expect("a card");
        assert!(log.out.contains(head), "{when}: {head}\n{log}");
        let entries = repo.squad(&["log", "20260105", "--json"]).out;
        let verdicts = [first, second.unwrap_or(&dies)].iter().filter(|it| **it != &dies).count();
        assert_eq!(entries.matches("\"review.verdict\"").count(), verdicts, "{when}: {resumed}");
        // What was rejected first and then approved is said to be revised.
        let is_revised = code == 0 && first == &no;
        for list in [["log"], ["status"]].map(|arguments| repo.squad(&arguments)) {
            assert_eq!(list.out.contains("revised"), is_revised, "{when}: {list}");
        }
    }
}

/// Where only author and reviewer are there, the person lifts the lockout or corrects the work.
#[test]
fn what_nobody_may_revise_is_for_the_person_to_correct() {
    let repo = TestRepo::with_small_team();
    let team = repo.read(".squad/team.md");
    repo.write(
        ".squad/team.md",
        &team.lines().filter(|line| !line.starts_with("| Bob |")).collect::<Vec<_>>().join("\n"),
    );
    let script = [WORK.to_owned(), verdict(false, "Plain text.")].concat();
    let output = repo.rehearse(&script, &["--permissions", "allow", "Rework the login password"]);
    assert!(output.code == 1 && output.err.contains("nobody is left to revise the work"), "{output}");
    assert!(output.err.contains("squad review lift 0000"), "{output}");
    assert!(output.err.contains("rex judges it again, once you have corrected it"), "{output}");
}

/// ada's work on the login was rejected, and nobody else could mend it.
fn with_lockout() -> (TestRepo, String) {
    let repo = TestRepo::with_small_team();
    let (output, events) = run(&repo, &[WORK.to_owned(), verdict(false, "Plain text."), chooses("nobody")]);
    assert_eq!(output.code, 1, "{output}");
    let run = events[0]["run"].as_str().expect("an id").to_owned();
    (repo, run)
}

#[test]
fn whoever_is_renamed_stays_locked_out() {
    let (repo, _) = with_lockout();
    // It is the charter that knows the old name.
    repo.write(".squad/agents/ada/charter.md", "# Ada\n\nI write the backend.\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=all"]);
    let renamed = repo.squad(&["agents", "rename", "ada", "eve"]);
    assert_eq!(renamed.code, 0, "{renamed}");
    let route = repo.squad(&["route", "--explain", "Add an endpoint, as in login.txt"]);
    assert!(route.out.contains("the coordinator would choose"), "{route}");
    assert!(route.out.contains("rex rejected its work on login.txt"), "{route}");
}

/// Whether a run lets ada write the file again.
fn lets_ada_write(repo: &TestRepo, arguments: &[&str]) -> bool {
    let _ = std::fs::remove_file(repo.root().join("login.txt"));
    let output = repo.rehearse(WORK, &[&["--permissions", "allow", "--json"], arguments].concat());
    let denied = TestRepo::events(&output).iter().any(|event| {
        event["type"] == "tool.denied"
            && event["reason"].as_str().is_some_and(|reason| reason.contains("rejected your work"))
    });
    assert_eq!(denied, !repo.exists("login.txt"), "{output}");
    !denied
}

#[test]
fn who_was_locked_out_stays_so_in_later_runs() {
    let (repo, run) = with_lockout();
    // Routed there by the words of the message, it may not write the file.
    assert!(!lets_ada_write(&repo, &["Add an endpoint"]));
    // Nor by another name of it.
    #[cfg(unix)]
    {
        repo.write("login.txt", "plain\n");
        std::os::unix::fs::symlink("login.txt", repo.root().join("alias.txt")).expect("a link");
        let script = WORK.replace("login.txt", "alias.txt");
        let output = repo.rehearse(&script, &["--permissions", "allow", "Add an endpoint"]);
        assert!(output.err.contains("rejected your work on login.txt"), "{output}");
        std::fs::remove_file(repo.root().join("alias.txt")).expect("the link");
    }
    // A message that names the file is not even routed there.
    let plan = |arguments: &[&str]| -> Value {
        let output = repo.squad(&[&["orchestrate", "--json", "--dry-run"], arguments].concat());
        let plan = serde_json::from_str::<Value>(&output.out).expect("JSON")["plan"].clone();
        let steps = plan["steps"].as_array().expect("steps").iter().flat_map(|step| step.as_array().expect("agents"));
        assert_eq!(steps.collect::<Vec<_>>(), plan["agents"].as_array().expect("agents").iter().collect::<Vec<_>>());
        plan
    };
    let bound = plan(&["Add an endpoint and a query to `login.txt`."]);
    assert_eq!((&bound["kind"], &bound["agents"]), (&"abstain".into(), &serde_json::json!([])), "{bound}");
    let because = bound["evidence"].as_array().expect("evidence").iter().any(|evidence| {
        evidence["agent"] == "ada"
            && evidence["why"] == "rex rejected its work on login.txt"
            && evidence["source"] == format!("run {run}")
    });
    assert!(because, "{bound}");
    // `squad route` says the same, and of a file that is only named beside the message.
    let route = |arguments: &[&str]| -> Value {
        let output = repo.squad(&[&["route", "--json"], arguments].concat());
        serde_json::from_str(&output.out).expect("JSON")
    };
    let routed = route(&["Add an endpoint and a query to `login.txt`."]);
    assert_eq!((&routed["kind"], &routed["agents"]), (&"abstain".into(), &serde_json::json!([])), "{routed}");
    assert_eq!(route(&["--path", "login.txt", "Add an endpoint"])["agents"], serde_json::json!([]));
    assert_eq!(route(&["--path", "other.txt", "Add an endpoint"])["agents"], serde_json::json!(["ada"]));
    assert_eq!(route(&["@ada add an endpoint to login.txt"])["agents"], serde_json::json!(["ada"]));
    assert_eq!(plan(&["Add an endpoint and a query to other.txt"])["agents"], serde_json::json!(["ada"]));
    // Called by the user, it may.
    assert_eq!(plan(&["@ada add an endpoint to login.txt"])["agents"], serde_json::json!(["ada"]));
    assert_eq!(plan(&["--agent", "ada", "Add an endpoint to login.txt"])["agents"], serde_json::json!(["ada"]));
    let others = plan(&["Fix the login password and add unit tests for it in login.txt"]);
    assert_eq!(others["agents"], serde_json::json!(["bob"]));
    assert!(lets_ada_write(&repo, &["@ada add an endpoint"]));
    assert!(lets_ada_write(&repo, &["--agent", "ada", "Add an endpoint"]));
    assert!(!lets_ada_write(&repo, &["Add an endpoint"]), "for those runs alone");
}

#[test]
fn a_lockout_ends_with_an_approval_or_when_it_is_lifted() {
    let (repo, run) = with_lockout();
    let lifted = repo.squad(&["review", "lift", &run[..17]]);
    expect![[r#"
        --- stderr
        ada may work on login.txt again.
        --- exit 0
    "#]]
    .assert_eq(&lifted.to_string());
    assert!(lets_ada_write(&repo, &["Add an endpoint"]));
    let again = repo.squad(&["review", "lift", &run]);
    assert!(again.code == 2 && again.err.contains("locks nobody out"), "{again}");
    assert_eq!(repo.squad(&["review", "lift", "1999"]).code, 2);

    let (repo, _) = with_lockout();
    let mended =
        "[[turn]]\nagent = \"bob\"\nsteps = [{ write = \"login.txt\", text = \"hashed\\n\" }, { say = \"Hashed.\" }]\n";
    let script = [chooses("bob"), mended.to_owned(), verdict(true, "Good.")].concat();
    let output = repo.rehearse(&script, &["--permissions", "allow", "Rework the login password in login.txt"]);
    assert!(output.code == 0 && output.err.contains("✓ rex    approved"), "{output}");
    assert!(lets_ada_write(&repo, &["Add an endpoint"]), "somebody's work on it was approved");
    repo.assert_sound();
}

/// Two runs' lockouts of one agent, each lifted before the other.
#[test]
fn lifting_one_runs_lockout_leaves_another_runs() {
    for lifts_first in [true, false] {
        let (repo, first) = with_lockout();
        let script = [WORK.replace("login.txt", "other.txt"), verdict(false, "Plain text."), chooses("nobody")];
        let output =
            repo.rehearse(&script.concat(), &["--permissions", "allow", "--json", "Rework the login password"]);
        let second = TestRepo::events(&output)[0]["run"].as_str().expect("an id").to_owned();
        let locked = |file: &str| {
            let work = WORK.replace("login.txt", file);
            let output = repo.rehearse(&work, &["--permissions", "allow", "Add an endpoint"]);
            output.err.contains(&format!("rejected your work on {file}"))
        };
        assert_eq!((locked("login.txt"), locked("other.txt")), (true, true), "{output}");
        let lifted = repo.squad(&["review", "lift", if lifts_first { &first } else { &second }]);
        assert_eq!(lifted.code, 0, "{lifted}");
        assert_eq!((locked("login.txt"), locked("other.txt")), (!lifts_first, lifts_first), "{lifted}");
    }
}

/// What names no file, as entries of an earlier squad do, binds nothing; and two weeks are enough.
#[test]
fn a_lockout_does_not_last_for_ever() {
    let (repo, _) = with_lockout();
    repo.pass(15 * 24 * 3600);
    assert!(lets_ada_write(&repo, &["Add an endpoint"]));
}

/// The tool says it all.
#[test]
fn a_verdict_needs_no_words_beside_it() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "rex"
steps = [{ tool = "squad_verdict", args = { approved = true, reasons = "Good." } }]
"#;
    let (output, events) = run(&repo, &[WORK.to_owned(), script.to_owned()]);
    assert_eq!((output.code, &of_type(&events, "review.verdict")[0]["text"]), (0, &"Good.".into()), "{output}");
}
