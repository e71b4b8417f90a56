//! What is recorded of a run is what happened.

use std::collections::BTreeMap;

use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{Output, TestRepo};

/// The entries of the newest run.
fn entries(repo: &TestRepo) -> Vec<Value> {
    let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = runs["runs"][0]["run"].as_str().expect("a run").to_owned();
    let entries = repo.squad(&["log", &run, "--json"]).out;
    entries.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn one<'e>(entries: &'e [Value], kind: &str) -> &'e Value {
    entries.iter().find(|entry| entry["type"] == kind).expect(kind)
}

/// `kind agent step.attempt ← kind agent, …` for each entry that has causes.
fn lineage(entries: &[Value]) -> String {
    let name = |entry: &Value| {
        let agent = entry["agent"].as_str().map(|agent| format!(" {agent}")).unwrap_or_default();
        format!("{}{agent}", entry["type"].as_str().expect("a kind"))
    };
    let names: BTreeMap<&str, String> =
        entries.iter().map(|entry| (entry["id"].as_str().expect("an id"), name(entry))).collect();
    let line = |entry: &Value| {
        let causes = entry["causes"].as_array().expect("causes");
        let causes: Vec<&str> = causes.iter().map(|id| names[id.as_str().expect("an id")].as_str()).collect();
        let place = entry.get("step").map(|step| format!(" ({step}.{})", entry["attempt"])).unwrap_or_default();
        let arrow = if causes.is_empty() { "" } else { " ← " };
        format!("{}{place}{arrow}{}\n", name(entry), causes.join(", "))
    };
    entries.iter().map(line).collect()
}

#[test]
fn every_entry_says_what_it_follows_from_and_where_it_belongs() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ tool = "squad_log_decision", args = { title = "Errors are JSON", what = "One shape." } }, { say = "Done." }]
[[turn]]
agent = "rex"
steps = [{ say = "No.\n\nVERDICT: rejected" }]
"#;
    repo.rehearse(script, &["--permissions", "allow", "Fix the login password check"]);
    expect![[r#"
        run.started
        engine.started ← run.started
        route.planned ← run.started
        step.started (1.1) ← route.planned
        snapshot.taken (1.1) ← route.planned
        session.created ada (1.1) ← route.planned
        tool.started ada (1.1) ← session.created ada
        decision.logged ada (1.1) ← session.created ada
        tool.completed ada (1.1) ← session.created ada
        agent.message ada (1.1) ← session.created ada
        session.idle ada (1.1) ← session.created ada
        session.destroyed ada (1.1) ← session.created ada
        agent.completed ada (1.1) ← session.created ada
        step.completed (1.1) ← agent.completed ada
        session.created rex (1.1) ← route.planned, agent.completed ada
        decision.delivered rex (1.1) ← decision.logged ada
        agent.message rex (1.1) ← session.created rex
        session.idle rex (1.1) ← session.created rex
        session.destroyed rex (1.1) ← session.created rex
        agent.completed rex (1.1) ← session.created rex
        review.verdict rex (1.1) ← agent.completed ada, agent.completed rex
        review.lockout ada (1.1) ← review.verdict rex
        session.created coordinator ← route.planned, review.verdict rex, review.lockout ada
        agent.message coordinator ← session.created coordinator
        session.idle coordinator ← session.created coordinator
        session.destroyed coordinator ← session.created coordinator
        agent.completed coordinator ← session.created coordinator
        session.created bob (1.2) ← route.planned, review.verdict rex, review.lockout ada, agent.completed coordinator
        decision.delivered bob (1.2) ← decision.logged ada
        tool.started bob (1.2) ← session.created bob
        tool.completed bob (1.2) ← session.created bob
        agent.message bob (1.2) ← session.created bob
        session.idle bob (1.2) ← session.created bob
        session.destroyed bob (1.2) ← session.created bob
        agent.completed bob (1.2) ← session.created bob
        session.resumed rex (1.2) ← route.planned, review.verdict rex, review.lockout ada, agent.completed coordinator, agent.completed bob
        tool.started rex (1.2) ← session.resumed rex
        tool.completed rex (1.2) ← session.resumed rex
        agent.message rex (1.2) ← session.resumed rex
        session.idle rex (1.2) ← session.resumed rex
        session.destroyed rex (1.2) ← session.resumed rex
        agent.completed rex (1.2) ← session.resumed rex
        review.verdict rex (1.2) ← agent.completed bob, agent.completed rex
        session.resumed coordinator ← route.planned, review.verdict rex
        agent.message coordinator ← session.resumed coordinator
        session.idle coordinator ← session.resumed coordinator
        session.destroyed coordinator ← session.resumed coordinator
        agent.completed coordinator ← session.resumed coordinator
        run.answer ← agent.completed coordinator
        decision.landed ← decision.logged ada
        run.completed ← agent.completed ada, agent.completed bob, agent.completed coordinator, agent.completed rex
    "#]]
    .assert_eq(&lineage(&entries(&repo)));
    let script = r#"
[[turn]]
agent = "coordinator"
steps = [{ say = '{"agents": ["ada", "bob"], "reason": "both"}' }]
"#;
    repo.rehearse(script, &["Make it better"]);
    expect![[r#"
        run.started
        engine.started ← run.started
        route.planned ← run.started
        session.created coordinator ← route.planned
        snapshot.taken (1.1) ← route.planned
        agent.message coordinator ← session.created coordinator
        session.idle coordinator ← session.created coordinator
        session.destroyed coordinator ← session.created coordinator
        agent.completed coordinator ← session.created coordinator
        route.planned ← agent.completed coordinator
        step.started (1.1) ← route.planned
        session.created bob (1.1) ← route.planned
        session.created ada (1.1) ← route.planned
        tool.started bob (1.1) ← session.created bob
        tool.started ada (1.1) ← session.created ada
        tool.completed bob (1.1) ← session.created bob
        agent.message bob (1.1) ← session.created bob
        session.idle bob (1.1) ← session.created bob
        session.destroyed bob (1.1) ← session.created bob
        agent.completed bob (1.1) ← session.created bob
        tool.completed ada (1.1) ← session.created ada
        agent.message ada (1.1) ← session.created ada
        session.idle ada (1.1) ← session.created ada
        session.destroyed ada (1.1) ← session.created ada
        agent.completed ada (1.1) ← session.created ada
        step.completed (1.1) ← agent.completed ada, agent.completed bob
        session.resumed coordinator ← route.planned, agent.completed coordinator, agent.completed bob, agent.completed ada
        agent.message coordinator ← session.resumed coordinator
        session.idle coordinator ← session.resumed coordinator
        session.destroyed coordinator ← session.resumed coordinator
        agent.completed coordinator ← session.resumed coordinator
        run.answer ← agent.completed coordinator
        run.completed ← agent.completed ada, agent.completed bob, agent.completed coordinator
    "#]]
    .assert_eq(&lineage(&entries(&repo)));
}

/// Nothing has begun, so there is no run.
#[test]
fn a_missing_engine_leaves_no_run() {
    let repo = TestRepo::with_small_team();
    for arguments in [&["--agent", "bob"][..], &["--agent", "ada", "--agent", "bob"], &[]] {
        let output = repo.squad(&[&["orchestrate", "--json", "Untangle the zeppelin hangar"], arguments].concat());
        assert_eq!(output.code, 4, "{output}");
        let last: Value = serde_json::from_str(&output.out).expect("one line of JSON");
        assert_eq!(last["error"]["kind"], "engine");
        assert!(last["error"]["hint"].as_str().is_some_and(|hint| hint.contains("npm install")), "{last}");
    }
    assert_eq!(serde_json::from_str::<Value>(&repo.squad(&["log", "--json"]).out).expect("JSON"), json!({"runs": []}));
    let output = repo.squad(&["orchestrate", "--agent", "bob", "x"]);
    assert!(output.code == 4 && output.err.contains("hint:"), "{output}");
    let left = std::fs::read_dir(repo.root().join(".git/squad/runs")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "no lease is left");
}

/// The run is on record before the engine starts, so that one which cannot start leaves a trace.
#[cfg(unix)]
#[test]
fn a_run_whose_engine_does_not_start_has_a_beginning_and_an_end() {
    let mut repo = TestRepo::with_small_team();
    repo.variables.insert("COPILOT_CLI_PATH".to_owned(), "/bin/false".to_owned());
    let output = repo.squad(&["orchestrate", "--json", "--agent", "bob", "x"]);
    assert_eq!(output.code, 4, "{output}");
    let types: Vec<String> =
        output.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["type"].to_string()).collect();
    let last_two = types.len() - 2..;
    assert_eq!(types[last_two], ["\"connection.failed\"", "\"run.completed\""], "the run's end is the last line");
    let last: Value = serde_json::from_str(output.out.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["error"]["kind"], "engine");
    let entries = entries(&repo);
    assert_eq!(one(&entries, "run.started")["payload"]["engine"], "copilot");
    assert_eq!(one(&entries, "run.completed")["payload"]["status"], "failed");
    assert_eq!(one(&entries, "run.completed")["payload"]["work"], json!([]));
    assert!(repo.squad(&["log"]).out.contains("failed  0:00    x"));
    let output = repo.squad(&["orchestrate", "--agent", "bob", "x"]);
    assert!(output.code == 4 && !output.err.contains("nobody") && output.err.contains("hint:"), "{output}");
}

#[test]
fn a_run_names_the_engine_that_was_asked_for_and_then_the_one_that_started() {
    let mut repo = TestRepo::with_small_team();
    repo.variables.insert("SQUAD_ENGINE_FALLBACK".to_owned(), "rehearsal".to_owned());
    repo.squad(&["orchestrate", "--agent", "bob", "x"]);
    let entries = entries(&repo);
    let kinds: Vec<&str> = entries.iter().take(3).filter_map(|entry| entry["type"].as_str()).collect();
    assert_eq!(kinds, ["run.started", "engine.fallback", "engine.started"]);
    assert_eq!(one(&entries, "run.started")["payload"]["engine"], "copilot");
    assert_eq!(one(&entries, "engine.started")["payload"]["engine"], "rehearsal");
}

#[test]
fn the_end_of_a_run_lists_its_work() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ wait = "1s" }, { say = "Done." }]
[[turn]]
agent = "bob"
steps = [{ fail = "no" }]
"#;
    repo.rehearse(script, &["--agent", "ada", "--agent", "bob", "x"]);
    let entries = entries(&repo);
    let work = one(&entries, "run.completed")["payload"]["work"].as_array().expect("work").clone();
    let told: Vec<Value> = work
        .iter()
        .map(|work| {
            json!([work["agent"], work["step"], work["attempt"], work["status"], work["verified"], work["refused"]])
        })
        .collect();
    let expected = [
        json!(["ada", 1, 1, "completed", null, 0]),
        json!(["bob", 1, 1, "failed", null, 0]),
        json!(["coordinator", null, null, "completed", null, 0]),
    ];
    assert_eq!(told, expected);
    assert_eq!(work[0]["usage"]["seconds"], 1.0);
}

/// The last event of a run.
fn last(output: &Output) -> Value {
    TestRepo::events(output).pop().expect("an event")
}

const LIAR: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"src/a.txt\", text = \"x\" }, { write = \"src/b.txt\", \
                    text = \"x\" }, { say = \"Did it: both files are written.\" }]\n";

#[test]
fn who_was_allowed_nothing_has_not_completed() {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(LIAR, &["--agent", "ada", "x"]);
    expect![[r#"
        --- stderr
          squad  the rehearsal engine: a script plays, no model is asked
        ! squad  nothing may be changed: writes and commands are refused; `--permissions allow` lets agents make them
        Plan  1 ada   tier standard, run 000001   command line
        ✗ ada    write src/a.txt    refused: changing files is not allowed in this run (permissions: deny)
        ✗ ada    write src/b.txt    refused: changing files is not allowed in this run (permissions: deny)
          ada    Did it: both files are written.
        ! ada    stopped: 2 writes or commands were refused, and none was allowed
        ! stopped: ada: 2 writes or commands were refused, and none was allowed; run 000001, 0:20
          ada    stopped   no change   2 refused
          next   squad orchestrate --resume 000001 --permissions allow   goes on with ada
                 squad log 000001                                        what happened
        --- exit 5
    "#]]
    .assert_eq(&output.to_string());
    let output = repo.rehearse(LIAR, &["--quiet", "--agent", "ada", "x"]);
    expect![[r#"
        --- stderr
        warning: stopped: 2 requests were refused
        --- exit 5
    "#]]
    .assert_eq(&output.to_string());
    let output = repo.rehearse(LIAR, &["--json", "--agent", "ada", "x"]);
    let (events, end) = (TestRepo::events(&output), last(&output));
    assert_eq!((output.code, &end["status"], &end["agents"]["ada"]), (5, &"stopped".into(), &"stopped".into()));
    assert_eq!((&end["work"][0]["refused"], &end["usage"]["refused"]), (&2.into(), &2.into()));
    assert_eq!(events[0]["permissions"], "deny");
    let stopped = events.iter().find(|event| event["type"] == "agent.stopped").expect("an outcome");
    assert_eq!(stopped["reason"], "2 writes or commands were refused, and none was allowed");
    assert!(repo.squad(&["log"]).out.contains(" stopped  ") && !repo.exists("src"));
}

/// Which refusals stop whom.
#[test]
fn refusals_stop_only_those_whose_work_they_prevent() {
    let writes = |agent: &str, path: &str| {
        format!(
            "[[turn]]\nagent = \"{agent}\"\nsteps = [{{ write = \"{path}\", text = \"x\" }}, {{ say = \"Did it.\\n\\nVERDICT: approved\" }}]\n"
        )
    };
    let says = "[[turn]]\nagent = \"ada\"\nsteps = [{ tool = \"squad_decisions\" }, { say = \"Nothing to do.\" }]\n"
        .to_owned();
    let fails = "[[turn]]\nagent = \"bob\"\nsteps = [{ fail = \"no\" }]\n".to_owned();
    let ada = writes("ada", "src/a.txt");
    for (name, script, arguments, code, status, refused) in [
        ("nothing was asked for", says.clone(), &["--agent", "ada", "x"][..], 0, "completed", 0),
        ("it was allowed", ada.clone(), &["--permissions", "allow", "--agent", "ada", "x"], 0, "completed", 0),
        ("everything was refused", ada.clone(), &["--agent", "ada", "x"], 5, "stopped", 1),
        ("one of two", ada.clone(), &["--agent", "ada", "--agent", "bob", "x"], 5, "stopped", 1),
        ("another failed", [&ada[..], &fails].concat(), &["--agent", "ada", "--agent", "bob", "x"], 1, "failed", 1),
        ("a tier that reads", ada.clone(), &["--tier", "lightweight", "--agent", "ada", "x"], 0, "completed", 1),
        (
            "a reviewer",
            [&says[..], &writes("rex", "src/r.txt")].concat(),
            &["--permissions", "allow", "Fix the login password check"],
            0,
            "completed",
            1,
        ),
        ("an author, and nobody reviews it", ada.clone(), &["Fix the login password check"], 5, "stopped", 1),
    ] {
        let repo = TestRepo::with_small_team();
        let output = repo.rehearse(&script, &[&["--json"], arguments].concat());
        let end = last(&output);
        assert_eq!(
            (output.code, &end["status"], &end["usage"]["refused"]),
            (code, &status.into(), &refused.into()),
            "{name}: {output}"
        );
        assert!(!repo.exists("src/r.txt"), "{name}");
        let is_reviewed = output.out.contains("review.verdict");
        assert_eq!(is_reviewed, name == "a reviewer", "{name}: {output}");
    }
}

#[test]
fn work_that_was_not_approved_is_no_answer() {
    let repo = TestRepo::with_small_team();
    let run = |verdict: &str| {
        let script = format!(
            "[[turn]]\nagent = \"ada\"\nsteps = [{{ say = \"Did it.\" }}]\n{}",
            format!("[[turn]]\nagent = \"rex\"\nsteps = [{{ say = \"\"\"{verdict}\"\"\" }}]\n").repeat(2)
        );
        repo.rehearse(&script, &["Fix the login password check"])
    };
    let output = run("VERDICT: rejected\n\nThere is no test.");
    assert!(output.out.contains("`rex` (completed, verdict: rejected)") && !output.out.contains("Did it."), "{output}");
    assert!(output.code == 1 && output.err.contains("ada    Did it."), "{output}");
    let output = run("Hm.");
    assert_eq!((output.out.as_str(), output.code), ("rex gave no clear verdict on the work of ada:\n\nHm.\n", 1));
    let output = run("VERDICT: approved\n\nGood.");
    assert_eq!((output.out.as_str(), output.code), ("Did it.\n", 0));
    assert_eq!(output.err.matches("Did it.").count(), 0, "the answer is said once: {output}");
    // A review that does not come about approves nothing.
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Did it.\" }]\n[[turn]]\nagent = \"rex\"\nsteps = [{ fail = \"no\" }]\n";
    let output = repo.rehearse(script, &["Fix the login password check"]);
    assert!(output.out.is_empty() && output.code == 1 && output.err.contains("ada    Did it."), "{output}");
}

/// What changed is what squad saw, not what an agent says.
#[test]
fn an_outcome_carries_the_files_that_changed() {
    let repo = TestRepo::with_small_team();
    repo.write("src/a.txt", "one\ntwo\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=before"]);
    repo.write("mine.txt", "the user's own\n");
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ write = "src/a.txt", text = "one\n2\nthree\n" }, { wait = "1s" }, { write = "src/b.txt", text = "x\n" }, { say = "Did it." }]
[[turn]]
agent = "bob"
steps = [{ wait = "2s" }, { say = "Wrote all the tests." }]
"#;
    let arguments = &["--permissions", "allow", "--agent", "ada", "--agent", "bob", "x"];
    let output = repo.rehearse(script, &[&["--json"], &arguments[..]].concat());
    let (events, end) = (TestRepo::events(&output), last(&output));
    let changed = json!([
        {"path": "src/a.txt", "added": 2, "removed": 1, "class": "own", "by": ["ada"], "how": "named"},
        {"path": "src/b.txt", "added": 1, "removed": 0, "class": "own", "by": ["ada"], "how": "named"},
    ]);
    assert_eq!((&end["work"][0]["changed"], &end["work"][1]["changed"]), (&changed, &json!([])));
    let of = |agent: &str| {
        let is_end = |event: &&Value| event["type"] == "agent.completed" && event["agent"] == agent;
        events.iter().find(is_end).expect("an outcome")["changed"].clone()
    };
    assert_eq!((of("ada"), of("bob")), (changed, json!([])));
    // The user's own file was there before.
    assert!(!output.out.contains("mine.txt"), "{output}");
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(script, arguments);
    expect![[r#"
        ✓ completed in 0:02; run 000001
          ada       completed   src/a.txt, src/b.txt +4 -0
          bob       completed   no change   no tool used
          checked   unverified: no check ran after the last change
          next      squad diff 000001   the files are yours to commit
                    squad undo 000001   take them back
    "#]]
    .assert_eq(&output.err[output.err.find("✓ completed").expect("a card")..]);
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? src/\n");
    repo.assert_sound();
}

#[test]
fn snapshots_stay_here_hold_no_secret_and_are_forgotten() {
    let repo = TestRepo::with_small_team();
    let remote = repo.root().join("../remote.git").display().to_string();
    repo.git(&["init", "--quiet", "--bare", &remote]);
    repo.git(&["remote", "add", "origin", &remote]);
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let script = format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [{{ write = \"key.txt\", text = \"{token}\" }}, {{ write = \"a.txt\", text = \"x\\n\" }}, {{ say = \"Did it.\" }}]\n"
    );
    let output = repo.rehearse(&script, &["--json", "--permissions", "allow", "--agent", "ada", "x"]);
    let changed = json!([
        {"path": "a.txt", "added": 1, "removed": 0, "class": "own", "by": ["ada"], "how": "named"},
        {"path": "key.txt", "added": null, "removed": null, "class": "own", "by": ["ada"], "how": "named"},
    ]);
    assert_eq!(last(&output)["work"][0]["changed"], changed);
    let entries = entries(&repo);
    let named: Vec<&Value> =
        entries.iter().map(|entry| &entry["payload"]["left_out"]).filter(|left| !left.is_null()).collect();
    assert_eq!(
        named,
        [&json!([]), &json!([{"path": "key.txt", "why": "it holds what looks like a secret: github-token"}])]
    );
    assert!(!repo.git(&["cat-file", "--batch-all-objects", "--batch"]).contains(&token));
    let output = repo.squad(&["sync", "--yes"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(!repo.git(&["ls-remote", &remote]).contains("runs"), "they are never pushed");
    let runs = |repo: &TestRepo| repo.git(&["for-each-ref", "refs/squad/runs"]).lines().count();
    let collected = repo.squad(&["gc"]);
    assert_eq!((collected.code, runs(&repo)), (0, 2), "those of the last days stay: {collected}");
    repo.pass(15 * 24 * 60 * 60);
    let collected = repo.squad(&["gc"]);
    assert!(collected.out.contains("2 snapshots of finished runs removed"), "{collected}");
    assert_eq!(runs(&repo), 0);
    repo.assert_sound();
}

/// Every entry holds the whole command; of long ones the count of what is left out.
#[test]
fn nothing_of_a_command_is_hidden_on_its_second_line() {
    let repo = TestRepo::with_small_team();
    let command = "make all\\n  touch SNEAKY\\n\\u001b[2Kthree\\nfour\\nfive\\nsix";
    let script = format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [{{ tool = \"bash\", args = {{ text = \"{command}\" }} }}, {{ say = \"Did it.\" }}]\n"
    );
    let all = ["make all", "    touch SNEAKY", "  [U+001B][2Kthree", "  four", "  five", "  six"];
    let is_shown = |shown: &str, lines: &[&str]| {
        let shown: Vec<&str> = shown.lines().collect();
        shown.windows(lines.len()).any(|window| window.iter().zip(lines).all(|(line, end)| line.ends_with(end)))
    };
    let failed = ["make all    failed: squad has no tool `bash`"];
    let beginning = [&failed, &all[1..3], &["  … 3 more lines; -v shows them"]].concat();
    let run = repo.rehearse(&script, &["--agent", "ada", "x"]);
    assert!(is_shown(&run.err, &beginning), "{run}");
    let run = repo.rehearse(&script, &["--agent", "ada", "x", "-v"]);
    assert!(is_shown(&run.err, &[&failed, &all[1..]].concat()), "{run}");
    let entries = entries(&repo);
    let log = repo.squad(&["log", entries[0]["run"].as_str().expect("an id"), "--events"]);
    assert!(is_shown(&log.out, &all), "{log}");
    let detail = one(&entries, "tool.completed")["payload"]["detail"].as_str().expect("a text");
    assert!(detail.starts_with("make all\n  touch SNEAKY\n") && detail.ends_with("\nsix"), "{detail}");
}
