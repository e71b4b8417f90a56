use expect_test::expect;

use crate::support::{Output, TestRepo};

const TWO: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { wait = "1s" }, { say = "I begin." }, { write = "src/api.txt", text = "endpoint\n" },
  { tool = "squad_log_decision", args = { title = "Errors are JSON", what = "One shape.", why = "Clients parse it." } },
  { say = "The endpoint is there." },
]
[[turn]]
agent = "bob"
steps = [
  { wait = "2s" }, { tool = "squad_remember", args = { text = "The suite needs TZ=UTC." } }, { say = "The tests are there." },
]
[[turn]]
agent = "coordinator"
steps = [{ say = "Both are done." }]
"#;

/// Ids and times are fixed, so commits and file names are the same in every fresh repository.
#[test]
fn agents_work_side_by_side_and_leave_commits() {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(TWO, &["--permissions", "allow", "Add an endpoint with unit tests"]);
    expect![[r#"
        Both are done.
        --- stderr
          squad  the rehearsal engine: a script plays, no model is asked
        Plan  1 ada, bob   tier standard, run 000001   .squad/routing.md:5, .squad/team.md:5, .squad/routing.md:6
          ada    I begin.
        ✓ ada    write src/api.txt
        ◆ ada    decision 000000: Errors are JSON
          ada    The endpoint is there.
          bob    learned: The suite needs TZ=UTC.
          bob    The tests are there.
        ✓ completed in 0:02; run 000001
          ada        completed   src/api.txt +1 -0
          bob        completed   no change
          checked    unverified: no check ran after the last change
          decision   000000 landed on main: Errors are JSON
          next       squad diff 000001   the files are yours to commit
                     squad undo 000001   take them back
        --- exit 0
    "#]]
    .assert_eq(&output.to_string());
    assert_eq!(repo.read("src/api.txt"), "endpoint\n");
    expect![[r#"
        Ann
        squad: decide: Errors are JSON

        Squad-Run: 20260105-090000-000001
        Squad-Agent: ada
        Squad-Decision: 00000000000e


        diff --git a/.squad/decisions/2026/01/05-errors-are-json-00000000000e.md b/.squad/decisions/2026/01/05-errors-are-json-00000000000e.md
        new file mode 100644
        index 0000000..f53cdd3
        --- /dev/null
        +++ b/.squad/decisions/2026/01/05-errors-are-json-00000000000e.md
        @@ -0,0 +1,11 @@
        +---
        +id: "00000000000e"
        +date: "2026-01-05T09:00:14.000Z"
        +by: "ada"
        +run: "20260105-090000-000001"
        +---
        +# Errors are JSON
        +
        +**What:** One shape.
        +
        +**Why:** Clients parse it.
    "#]].assert_eq(&repo.git(&["show", "--format=%an%n%B", "HEAD"]));
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? src/\n");
    expect![[r#"
        decisions/2026/01/05/09/00/019b8d62-b130-7000-8000-00000000000e-decision.logged.md
        decisions/2026/01/05/09/00/019b8d63-1aa8-7000-8000-000000000026-decision.landed.md
        log/2026/01/05/09/00/019b8d62-7e68-7000-8000-000000000002-run.started.md
        log/2026/01/05/09/00/019b8d62-8638-7000-8000-000000000003-engine.started.md
        log/2026/01/05/09/00/019b8d62-8a20-7000-8000-000000000004-route.planned.md
        log/2026/01/05/09/00/019b8d62-8e08-7000-8000-000000000005-step.started.md
        log/2026/01/05/09/00/019b8d62-91f0-7000-8000-000000000006-snapshot.taken.md
        log/2026/01/05/09/00/019b8d62-95d8-7000-8000-000000000007-session.created.md
        log/2026/01/05/09/00/019b8d62-99c0-7000-8000-000000000008-session.created.md
        log/2026/01/05/09/00/019b8d62-a190-7000-8000-00000000000a-agent.message.md
        log/2026/01/05/09/00/019b8d62-a578-7000-8000-00000000000b-tool.started.md
        log/2026/01/05/09/00/019b8d62-a960-7000-8000-00000000000c-tool.completed.md
        log/2026/01/05/09/00/019b8d62-ad48-7000-8000-00000000000d-tool.started.md
        log/2026/01/05/09/00/019b8d62-b518-7000-8000-00000000000f-tool.completed.md
        log/2026/01/05/09/00/019b8d62-c0d0-7000-8000-000000000011-agent.message.md
        log/2026/01/05/09/00/019b8d62-c4b8-7000-8000-000000000012-session.idle.md
        log/2026/01/05/09/00/019b8d62-c8a0-7000-8000-000000000013-session.destroyed.md
        log/2026/01/05/09/00/019b8d62-cc88-7000-8000-000000000014-snapshot.taken.md
        log/2026/01/05/09/00/019b8d62-d070-7000-8000-000000000015-agent.completed.md
        log/2026/01/05/09/00/019b8d62-d458-7000-8000-000000000016-tool.started.md
        log/2026/01/05/09/00/019b8d62-dc28-7000-8000-000000000018-tool.completed.md
        log/2026/01/05/09/00/019b8d62-e7e0-7000-8000-00000000001a-agent.message.md
        log/2026/01/05/09/00/019b8d62-ebc8-7000-8000-00000000001b-session.idle.md
        log/2026/01/05/09/00/019b8d62-efb0-7000-8000-00000000001c-session.destroyed.md
        log/2026/01/05/09/00/019b8d62-f398-7000-8000-00000000001d-agent.completed.md
        log/2026/01/05/09/00/019b8d62-f780-7000-8000-00000000001e-step.completed.md
        log/2026/01/05/09/00/019b8d62-fb68-7000-8000-00000000001f-session.created.md
        log/2026/01/05/09/00/019b8d63-0720-7000-8000-000000000021-agent.message.md
        log/2026/01/05/09/00/019b8d63-0b08-7000-8000-000000000022-session.idle.md
        log/2026/01/05/09/00/019b8d63-0ef0-7000-8000-000000000023-session.destroyed.md
        log/2026/01/05/09/00/019b8d63-12d8-7000-8000-000000000024-agent.completed.md
        log/2026/01/05/09/00/019b8d63-16c0-7000-8000-000000000025-run.answer.md
        log/2026/01/05/09/00/019b8d63-1e90-7000-8000-000000000027-run.completed.md
        memory/2026/01/05/09/00/019b8d62-d840-7000-8000-000000000017-memory.logged.md
    "#]]
    .assert_eq(&repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]));
    repo.assert_sound();
}

#[test]
fn the_same_rehearsal_gives_the_same_log_every_time() {
    let run = |limit: &str| {
        let repo = TestRepo::with_small_team();
        repo.rehearse(
            TWO,
            &["--json", "--permissions", "allow", "--max-concurrent", limit, "Add an endpoint with unit tests"],
        )
        .out
    };
    for limit in ["1", "2", "8"] {
        let first = run(limit);
        assert!((0..3).all(|_| run(limit) == first), "limit {limit}");
    }
}

fn types(output: &Output) -> Vec<String> {
    let line = |event: serde_json::Value| {
        let agent = event["agent"].as_str().map(|agent| format!(" {agent}")).unwrap_or_default();
        format!("{}{agent}", event["type"].as_str().expect("a type"))
    };
    TestRepo::events(output).into_iter().map(line).filter(|line| !line.starts_with("agent.message_delta")).collect()
}

#[test]
fn json_is_one_event_a_line_and_the_last_says_how_it_ended() {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(TWO, &["--json", "--permissions", "allow", "Add an endpoint with unit tests"]);
    assert_eq!((output.err.as_str(), output.code), ("", 0));
    expect![[r#"
        run.started
        engine.started
        route.planned
        step.started
        snapshot.taken
        session.created bob
        session.created ada
        agent.message ada
        tool.started ada
        tool.completed ada
        tool.started ada
        decision.logged ada
        tool.completed ada
        agent.message ada
        session.idle ada
        session.destroyed ada
        snapshot.taken
        agent.completed ada
        tool.started bob
        memory.logged bob
        tool.completed bob
        agent.message bob
        session.idle bob
        session.destroyed bob
        agent.completed bob
        step.completed
        session.created coordinator
        agent.message coordinator
        session.idle coordinator
        session.destroyed coordinator
        agent.completed coordinator
        run.answer
        decision.landed
        run.completed"#]]
    .assert_eq(&types(&output).join("\n"));
    let events = TestRepo::events(&output);
    assert!(events.iter().enumerate().all(|(index, event)| event["seq"] == index as u64 + 1));
    let last = events.last().expect("an event");
    expect![[r#"{"seq":38,"at":"2026-01-05T09:00:42Z","run":"20260105-090000-000001","agent":null,"type":"run.completed","status":"completed","agents":{"ada":"completed","bob":"completed","coordinator":"completed"},"work":[{"agent":"ada","step":1,"attempt":1,"status":"completed","changed":[{"path":"src/api.txt","added":1,"removed":0,"class":"own","by":["ada"],"how":"named"}],"refused":0,"verified":null,"commands":{"passed":0,"failed":0},"model":{"engine":"rehearsal","asked":"claude-sonnet-4.5","used":"claude-sonnet-4.5"},"usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0,"billed":[],"cost_usd":null,"turns":1,"tool_calls":2,"refused":0,"seconds":1.0}},{"agent":"bob","step":1,"attempt":1,"status":"completed","changed":[],"refused":0,"verified":null,"commands":{"passed":0,"failed":0},"model":{"engine":"rehearsal","asked":"claude-sonnet-4.5","used":"claude-sonnet-4.5"},"usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0,"billed":[],"cost_usd":null,"turns":1,"tool_calls":1,"refused":0,"seconds":2.0}},{"agent":"coordinator","step":null,"attempt":null,"status":"completed","changed":[],"refused":0,"verified":null,"commands":{"passed":0,"failed":0},"model":{"engine":"rehearsal","asked":"claude-sonnet-4.5","used":"claude-sonnet-4.5"},"usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0,"billed":[],"cost_usd":null,"turns":1,"tool_calls":0,"refused":0,"seconds":0.0}}],"commits":["69e224999a00c7a085d0a604f6dff3b25aa4301c"],"usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0,"billed":[],"cost_usd":null,"turns":3,"tool_calls":3,"refused":0,"seconds":2.0},"entry":"019b8d63-1e90-7000-8000-000000000027","causes":["019b8d62-d070-7000-8000-000000000015","019b8d62-f398-7000-8000-00000000001d","019b8d63-12d8-7000-8000-000000000024"]}"#]].assert_eq(&last.to_string());
}

#[test]
fn every_agent_has_an_outcome_whatever_happens() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ fail = "the model refused" }]
[[turn]]
agent = "bob"
steps = [{ say = "Done." }]
[[turn]]
agent = "rex"
steps = [{ hang = true }]
"#;
    let output = repo.rehearse(script, &["--json", "--timeout", "90s", "@ada adds a, @bob adds b and @rex adds c"]);
    let events = TestRepo::events(&output);
    let last = events.last().expect("an event");
    assert_eq!(
        last["agents"].to_string(),
        r#"{"ada":"failed","bob":"completed","coordinator":"completed","rex":"timed_out"}"#
    );
    assert_eq!((last["status"].as_str(), output.code), (Some("failed"), 1));
    let shown = repo.rehearse(script, &["--timeout", "90s", "@ada adds a, @bob adds b and @rex adds c"]).err;
    for line in ["✗ ada    failed: the model refused", "  bob    completed ", "✗ rex    timed out: "] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

/// Who works twice in a run, such as the coordinator that chooses and later answers, is known by its last work.
#[test]
fn an_agents_last_work_is_its_outcome() {
    let repo = TestRepo::with_small_team();
    let script = r#"
[[turn]]
agent = "coordinator"
steps = [{ say = '{"agents": ["ada", "bob"], "reason": "both"}' }]
[[turn]]
agent = "ada"
steps = [{ say = "Done." }]
[[turn]]
agent = "bob"
steps = [{ say = "Done." }]
[[turn]]
agent = "coordinator"
steps = [{ fail = "the model refused" }]
"#;
    let output = repo.rehearse(script, &["--json", "Make it better"]);
    let events = TestRepo::events(&output);
    let last = events.last().expect("an event");
    assert_eq!(last["agents"].to_string(), r#"{"ada":"completed","bob":"completed","coordinator":"failed"}"#);
    let work: Vec<String> =
        last["work"].as_array().expect("work").iter().map(|work| work["status"].to_string()).collect();
    assert_eq!((work.len(), work[0].as_str(), work[3].as_str()), (4, "\"completed\"", "\"failed\""));
    assert_eq!(output.code, 1);
}

#[test]
fn saying_nothing_is_no_success() {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse("[[turn]]\nagent = \"ada\"\nsteps = [{ wait = \"1s\" }]\n", &["--agent", "ada", "x"]);
    assert!(output.code == 1 && output.err.contains("✗ ada    failed: it ended without an answer"), "{output}");
}

#[test]
fn the_answer_is_on_stdout_and_nothing_else() {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(
        "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"First.\" }, { say = \"Last.\" }]\n",
        &["-a", "ada", "x"],
    );
    assert_eq!(output.out, "Last.\n");
    let output = repo.squad(&["--quiet", "orchestrate", "--engine", "rehearsal", "--agent", "bob", "x"]);
    assert_eq!((output.out.as_str(), output.err.as_str()), ("(rehearsal) As Tester I would now work on: x\n", ""));
}

#[test]
fn the_coordinator_chooses_where_routing_abstains() {
    let repo = TestRepo::with_small_team();
    let script =
        "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = '{\"agents\": [\"bob\"], \"reason\": \"quality\"}' }]\n";
    let output = repo.rehearse(script, &["Make it better"]);
    assert!(output.code == 0 && output.err.contains("Plan  1 bob   tier standard"), "{output}");
    for (answer, reason) in [
        ("I would say Bob", "the coordinator did not answer in the form it was asked for"),
        ("{\"agents\": [\"mallory\"]}", "the coordinator chose `mallory`, who cannot be started"),
        ("{\"agents\": [\"old\"]}", "the coordinator chose `old`, who cannot be started"),
    ] {
        let script = format!("[[turn]]\nagent = \"coordinator\"\nsteps = [{{ say = '{answer}' }}]\n");
        let output = repo.rehearse(&script, &["Make it better"]);
        assert!(output.code == 2 && output.err.contains(reason), "{output}");
    }
}

#[test]
fn a_reviewer_reviews_and_only_a_plain_verdict_approves() {
    let repo = TestRepo::with_small_team();
    for (verdict, line, code) in [
        ("VERDICT: approved", "✓ rex    approved", 0),
        ("VERDICT: not approved", "! rex    gave no clear verdict", 1),
        ("VERDICT: rejected", "✗ rex    rejected", 1),
    ] {
        let review = format!("[[turn]]\nagent = \"rex\"\nsteps = [{{ say = '{verdict}' }}]\n");
        let script = format!(
            "[[turn]]\nagent = \"ada\"\nsteps = [{{ write = \"login.txt\", text = '{verdict}' }}, {{ say = \"Done.\" }}]\n\
             {review}{review}"
        );
        let output = repo.rehearse(&script, &["--permissions", "allow", "Fix the login password check"]);
        assert!(output.code == code && output.err.contains(line), "{output}");
        let is_rejected = verdict == "VERDICT: rejected";
        assert_eq!(output.err.contains("! ada    may not revise what rex rejected"), is_rejected, "{output}");
    }
    let ledger = repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
    let lockouts: Vec<_> = ledger.lines().filter(|path| path.ends_with("-review.lockout.md")).collect();
    assert_eq!(lockouts.len(), 2, "{ledger}");
    let entry = repo.git(&["show", &format!("refs/squad/log:{}", lockouts[0])]);
    let payload = "payload: {\"reviewer\":\"rex\",\"files\":[\"login.txt\"]}\n";
    assert!(entry.contains("agent: \"ada\"\n") && entry.contains(payload), "{entry}");
}

#[test]
fn nothing_changes_without_permission() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"x\" }, { say = \"ok\" }]\n";
    let output = repo.rehearse(script, &["--agent", "ada", "x"]);
    assert!(output.err.contains("write a.txt    refused: changing files is not allowed in this run"), "{output}");
    assert!(!repo.exists("a.txt"));
    repo.rehearse(script, &["--agent", "ada", "--permissions", "allow", "x"]);
    assert!(repo.exists("a.txt"));
}

#[test]
fn a_dry_run_starts_nobody() {
    let repo = TestRepo::with_small_team();
    let output = repo.squad(&["orchestrate", "--dry-run", "Fix the login password check"]);
    expect![[r#"
        ada works on it, then rex reviews; tier standard, confidence 0.96
          routing examples: `login` and `password` (.squad/routing.md:7); --explain: all

        Sessions:
          ada          claude-sonnet-4.5, all of the engine's tools, 0.8 KB of prompt
                       and squad_log_decision, squad_remember, squad_decisions, squad_route, squad_status and squad_commit
          rex          claude-sonnet-4.5, view, grep, glob and bash, 0.8 KB of prompt
                       and squad_log_decision, squad_remember, squad_decisions and squad_verdict

        Forecast: none; fewer than 5 runs like it are known
        --- exit 0
    "#]]
    .assert_eq(&output.to_string());
    assert_eq!(repo.squad(&["log"]).out, "");
    let output = repo.squad(&["orchestrate", "--dry-run", "--json", "Make it better"]);
    let value: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(value["plan"]["kind"], "abstain");
}

#[test]
fn no_commit_keeps_decisions_for_later() {
    let repo = TestRepo::with_small_team();
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.rehearse(TWO, &["--no-commit", "Add an endpoint with unit tests"]);
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert!(repo.squad(&["decisions", "list"]).out.contains("unlanded"));
    // The next run lands what is waiting.
    let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "x"]);
    assert!(output.err.contains(" of an earlier run landed on main"), "{output}");
    assert!(repo.squad(&["decisions", "list"]).out.contains("in force"));
}

#[test]
fn a_task_may_come_from_standard_input() {
    let mut repo = TestRepo::with_small_team();
    repo.input = "cover the parser\nwith tests\n";
    let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "-"]);
    assert_eq!(output.out, "(rehearsal) As Tester I would now work on: cover the parser\n");
}

#[test]
fn the_engine_is_never_replaced_in_silence() {
    let mut repo = TestRepo::with_small_team();
    let output = repo.squad(&["orchestrate", "--agent", "bob", "x"]);
    assert_eq!(output.code, 4, "{output}");
    repo.variables.insert("SQUAD_ENGINE_FALLBACK".to_owned(), "rehearsal".to_owned());
    let output = repo.squad(&["orchestrate", "--agent", "bob", "x"]);
    assert!(output.code == 0 && output.err.contains("copilot cannot start"), "{output}");
    assert!(repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]).contains("engine.fallback"));
}

#[test]
fn learnings_reach_the_next_prompt() {
    let repo = TestRepo::with_small_team();
    let size = || {
        let output = repo.squad(&["orchestrate", "--dry-run", "--json", "--agent", "bob", "x"]);
        let value: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
        value["sessions"][0]["bytes"].as_u64().expect("a size")
    };
    let before = size();
    repo.rehearse(TWO, &["--agent", "bob", "x"]);
    assert!(size() > before);
}

#[test]
fn no_secret_of_a_run_reaches_the_object_database() {
    let repo = TestRepo::with_small_team();
    repo.write(".env", "DB_PASSWORD=correct-horse-battery\n");
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let script = format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [\n  {{ tool = \"squad_log_decision\", args = {{ title = \"Key {token}\", what = \"correct-horse-battery\" }} }},\n  \
         {{ tool = \"squad_remember\", args = {{ text = \"{token}\" }} }}, {{ say = \"{token} and correct-horse-battery\" }},\n]\n"
    );
    let output = repo.rehearse(&script, &["--agent", "ada", &format!("use {token}")]);
    assert_eq!(output.code, 0, "{output}");
    let objects = repo.git(&["cat-file", "--batch-all-objects", "--batch"]);
    assert!(objects.contains("[redacted:github-token]") && objects.contains("[redacted:known-secret]"));
    assert!(!objects.contains(&token) && !objects.contains("correct-horse-battery"));
}

/// Which model a session got is in the plan's evidence, and when it is another, everybody hears of it.
#[test]
fn a_model_that_is_not_on_offer_is_replaced_and_that_is_said() {
    let repo = TestRepo::with_small_team();
    repo.write(
        ".squad/agents/ada/charter.md",
        "# Ada — Backend Dev\n\n## Model\n\n- **Preferred:** claude-opus-4.5\n- **Fallback:** gpt-5.2 → m-2\n",
    );
    let script = "models = [\"m-1\", \"m-2\"]\n[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Done.\" }]\n";
    let output = repo.rehearse(script, &["--agent", "ada", "Add an endpoint"]);
    assert!(
        output.err.contains("! ada    works on model m-2 and not on claude-opus-4.5: rehearsal does not offer it"),
        "{output}"
    );
    let output = repo.rehearse(script, &["--json", "--agent", "ada", "--model", "m-9", "Add an endpoint"]);
    let events = TestRepo::events(&output);
    let of = |kind: &str| events.iter().find(|event| event["type"] == kind).expect(kind).clone();
    let evidence = of("route.planned")["evidence"].to_string();
    assert!(
        evidence.contains("model m-9 is not offered by rehearsal; m-2 instead, chosen by the charter"),
        "{evidence}"
    );
    assert_eq!((&of("model.fallback")["from"], &of("session.created")["model"]), (&"m-9".into(), &"m-2".into()));
    // An engine that does not say what it offers gets what was chosen.
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Done.\" }]\n";
    let output = repo.rehearse(script, &["--json", "--agent", "ada", "Add an endpoint"]);
    assert!(output.out.contains(r#""model":"claude-opus-4.5""#) && !output.out.contains("fallback"), "{output}");
}

/// What squad prints may be kept by others, so it holds what the ledger holds.
#[test]
fn neither_screen_nor_ndjson_shows_a_secret() {
    let repo = TestRepo::with_small_team();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let script = format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [{{ tool = \"squad_remember\", args = {{ text = \"use {token}\" }} }}, {{ say = \"The token is {token}, of ann@acme.io.\" }}]\n"
    );
    for arguments in [&["--agent", "ada", "tell"][..], &["--json", "--agent", "ada", "tell"]] {
        let output = repo.rehearse(&script, arguments);
        let said = output.to_string();
        assert!(output.code == 0 && !said.contains(&token[..20]) && !said.contains("ann@"), "{said}");
        assert!(said.contains("The token is [redacted:github-token], of [redacted:email]."), "{said}");
    }
    let events = TestRepo::events(&repo.rehearse(&script, &["--json", "--agent", "ada", "tell"]));
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "no number is missing");
}

#[test]
fn a_message_without_quotes_is_told_to_need_them() {
    let output = TestRepo::with_small_team().squad(&["orchestrate", "add", "a", "health", "endpoint"]);
    assert_eq!((output.code, output.out.as_str()), (2, ""), "{output}");
    assert!(output.err.contains("hint: a message of several words needs quotes"), "{output}");
}

/// How often an engine fails × how often that may be: the agent goes on in its session, and what is refused is not retried.
#[test]
fn an_agent_goes_on_after_an_error_of_its_engine_as_often_as_it_may() {
    let error = "{ error = \"overloaded\" }, ";
    for (retry, steps, code, errors, messages) in [
        ("0", error.to_owned() + "{ say = \"Done.\" }", 1, 0, 0),
        ("1", error.to_owned() + "{ say = \"Done.\" }", 0, 1, 1),
        ("1", format!("{{ say = \"Half.\" }}, {error}{error}{{ say = \"Done.\" }}"), 1, 1, 1),
        ("2", format!("{{ say = \"Half.\" }}, {error}{error}{{ say = \"Done.\" }}"), 0, 2, 2),
        ("10", "{ fail = \"gone\" }".to_owned(), 1, 10, 0),
        ("1", "{ die = true }".to_owned(), 1, 0, 0),
        ("1", "{ write = \"a.txt\" }, { say = \"Done.\" }".to_owned(), 5, 0, 1),
    ] {
        let repo = TestRepo::with_small_team();
        repo.write("../home/config/squad/config.toml", &format!("[sessions]\nretry = {retry}\n"));
        let script = format!(
            "[[turn]]\nagent = \"ada\"\nsteps = [{steps}]\n[[turn]]\nagent = \"ada\"\nsteps = [{{ say = \"No.\" }}]\n"
        );
        let output = repo.rehearse(&script, &["--json", "--permissions", "deny", "--agent", "ada", "Do it"]);
        assert_eq!(output.code, code, "{retry} {steps}: {output}");
        let events = TestRepo::events(&output);
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        assert_eq!((count("session.error"), count("agent.message")), (errors, messages), "{retry} {steps}: {output}");
        assert_eq!(count("session.created"), 1, "{output}");
    }
}

/// All ask at once, and two may work at a time.
#[test]
fn core_agents_begin_first() {
    let repo = TestRepo::empty();
    let rows = [("Ann", "Backend Dev"), ("Bea", "Docs"), ("Tess", "Tester"), ("Leo", "Lead")];
    let rows: String = rows.iter().map(|(name, role)| format!("| {name} | {role} | Active |\n")).collect();
    repo.write(".squad/team.md", &format!("# Four\n\n| Name | Role | Status |\n|---|---|---|\n{rows}"));
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=team"]);
    let turn =
        |agent: &str| format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{{ wait = \"1s\" }}, {{ say = \"Done.\" }}]\n");
    let script: String = ["ann", "bea", "tess", "leo"].map(turn).concat();
    let message = "@ann @bea @tess @leo look at it";
    let output = repo.rehearse(&script, &["--max-concurrent", "2", "--json", message]);
    let events = TestRepo::events(&output);
    let begun: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "session.created")
        .filter_map(|event| event["agent"].as_str())
        .take(2)
        .collect();
    assert_eq!(begun, ["tess", "leo"], "{output}");
}
