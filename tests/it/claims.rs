//! What an agent claims is not what it did: exit code, last line, log and JSON say what squad saw.

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::support::{Output, TestRepo};

const LIE: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"14 tests pass, committed as abc1234.\" }]\n";
const REASON: &str = "it was asked for work, but used no tool and changed nothing";

/// The run's status, work and messages of the newest run, as recorded and as shown.
fn recorded(repo: &TestRepo) -> (Value, Vec<Value>, String) {
    let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = runs["runs"][0]["run"].as_str().expect("a run").to_owned();
    let entries = repo.squad(&["log", &run, "--json"]).out;
    let flat = |line| {
        let mut entry: Value = serde_json::from_str(line).expect("JSON");
        let payload = entry["payload"].take();
        entry.as_object_mut().expect("an entry").extend(payload.as_object().cloned().unwrap_or_default());
        entry
    };
    let entries = entries.lines().map(flat).collect();
    (runs["runs"][0].clone(), entries, repo.squad(&["log", &run, "--events"]).out)
}

fn lie(arguments: &[&str]) -> (TestRepo, Output) {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(LIE, &[&["--agent", "ada"], arguments].concat());
    (repo, output)
}

#[test]
fn who_was_asked_for_work_and_did_nothing_only_claims_it() {
    let (repo, output) = lie(&["--permissions", "allow", "Add tests for the login"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.err.contains(&format!("claimed: {REASON}")), "{output}");
    assert!(output.err.contains("✗ claimed: ada says it is done, but used no tool"), "{output}");
    assert!(output.err.contains("squad orchestrate --resume"), "{output}");
    let (run, entries, log) = recorded(&repo);
    assert_eq!((&run["status"], &run["agents"]["ada"]), (&json!("claimed"), &json!("claimed")));
    let claimed = entries.iter().find(|entry| entry["type"] == "agent.claimed").expect("an end");
    assert_eq!((&claimed["reason"], &claimed["no_tool_used"]), (&json!(REASON), &json!(true)));
    let end = entries.iter().rfind(|entry| entry["type"] == "run.completed").expect("an end");
    let work = &end["work"][0];
    assert_eq!((&work["status"], &work["reason"]), (&json!("claimed"), &json!(REASON)));
    assert_eq!((&work["changed"], &work["verified"]), (&json!([]), &Value::Null));
    assert!(log.contains(&format!("agent.claimed        {REASON}")), "{log}");
    assert!(repo.squad(&["log"]).out.contains("claimed"));
}

#[test]
fn who_was_asked_for_words_or_could_not_work_has_completed_without_a_tool() {
    for arguments in [
        &["--permissions", "allow", "How would you test the login?"][..],
        &["--permissions", "allow", "Explain how to test the login"],
        &["--permissions", "deny", "Add tests for the login"],
        &["Add tests for the login"],
        &["--permissions", "allow", "--tier", "lightweight", "Add tests for the login"],
    ] {
        let (repo, output) = lie(arguments);
        assert_eq!(output.code, 0, "{arguments:?}: {output}");
        assert!(output.err.contains("✓ completed in "), "{output}");
        assert!(output.err.contains("  ada    completed   no change   no tool used\n"), "{output}");
        let (run, entries, log) = recorded(&repo);
        assert_eq!(run["status"], "completed");
        let end = entries.iter().find(|entry| entry["type"] == "agent.completed").expect("an end");
        assert_eq!(end["no_tool_used"], true, "{end}");
        assert_eq!(log.matches("no tool used").count(), 1, "{log}");
    }
}

#[test]
fn whoever_used_a_tool_or_asked_a_person_claims_nothing() {
    for step in [
        "{ write = \"a.txt\", text = \"x\" }",
        "{ tool = \"squad_remember\", args = { text = \"Tests are slow.\" } }",
        "{ tool = \"squad_status\" }",
        "{ ask = \"Which login?\" }",
    ] {
        let repo = TestRepo::with_small_team();
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{step}, {{ say = \"Done.\" }}]\n");
        let output = repo.rehearse(&script, &["--permissions", "allow", "--agent", "ada", "Add tests"]);
        assert_eq!(output.code, 0, "{step}: {output}");
        assert!(!output.err.contains("no tool used"), "{step}: {output}");
    }
}

#[test]
fn refused_and_empty_work_have_their_own_ends() {
    let repo = TestRepo::with_small_team();
    let refused = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"x\" }, { say = \"Done.\" }]\n";
    let output = repo.rehearse(refused, &["--permissions", "deny", "--agent", "ada", "Add tests"]);
    assert_eq!(output.code, 5, "{output}");
    assert!(output.err.contains("! stopped: ada: ") && !output.err.contains("no tool used"), "{output}");
    let empty = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \" \" }]\n";
    let output = repo.rehearse(empty, &["--permissions", "allow", "--agent", "ada", "Add tests"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.err.contains("✗ failed: ada: "), "{output}");
}

#[test]
fn later_steps_are_skipped_and_a_resumed_run_works_again() {
    let repo = TestRepo::with_small_team();
    let message = "@ada adds the endpoint, then @bob adds tests for it";
    let script = format!(
        "{LIE}[[turn]]\nagent = \"ada\"\nsteps = [{{ write = \"a.txt\", text = \"x\" }}, {{ say = \"Added.\" }}]\n\
         [[turn]]\nagent = \"bob\"\nsteps = [{{ write = \"b.txt\", text = \"x\" }}, {{ say = \"Tested.\" }}]\n"
    );
    let output = repo.rehearse(&script, &["--permissions", "allow", message]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.err.contains("step 1 did not complete (ada: claimed)"), "{output}");
    let (run, ..) = recorded(&repo);
    assert_eq!(run["agents"], json!({"ada": "claimed", "bob": "skipped"}));
    let run = run["run"].as_str().expect("a run").to_owned();
    let output = repo.rehearse(&script, &["--permissions", "allow", "--resume", &run]);
    assert_eq!(output.code, 0, "{output}");
    assert!(repo.exists("a.txt") && repo.exists("b.txt"), "{output}");
    let (run, ..) = recorded(&repo);
    assert_eq!(
        (&run["status"], &run["agents"]),
        (&json!("completed"), &json!({"ada": "completed", "bob": "completed", "coordinator": "completed"}))
    );
}

#[test]
fn a_claim_is_worse_than_completed_work_and_better_than_failed_or_stopped_work() {
    for (other, status, code) in [
        ("{ write = \"b.txt\", text = \"x\" }, { say = \"Done.\" }", "claimed", 1),
        ("{ fail = \"no\" }", "failed", 1),
        ("{ wait = \"1s\" }, { say = \"Nothing to do.\" }", "claimed", 1),
    ] {
        let repo = TestRepo::with_small_team();
        let script = format!("{LIE}[[turn]]\nagent = \"bob\"\nsteps = [{other}]\n");
        let arguments = ["--json", "--permissions", "allow", "--agent", "ada", "--agent", "bob", "Add tests"];
        let output = repo.rehearse(&script, &arguments);
        let events = TestRepo::events(&output);
        let end = events.last().expect("an end");
        assert_eq!((output.code, end["status"].as_str()), (code, Some(status)), "{other}: {output}");
        assert_eq!(end["agents"]["ada"], "claimed");
    }
}

#[test]
fn work_that_a_colleague_hands_on_is_judged_by_its_own_task() {
    for (task, status, code) in [("Add tests for the login", "claimed", 1), ("Explain the login", "completed", 0)] {
        let repo = TestRepo::with_small_team();
        let script = format!(
            "[[turn]]\nagent = \"ada\"\nsteps = [{{ tool = \"squad_route\", args = {{ agent = \"bob\", task = \"{task}\" }} }}, \
             {{ say = \"Done.\" }}]\n[[turn]]\nagent = \"bob\"\nsteps = [{{ say = \"All is tested.\" }}]\n"
        );
        let arguments =
            ["--json", "--permissions", "allow", "--tier", "standard", "--agent", "ada", "Look after the login"];
        let output = repo.rehearse(&script, &arguments);
        let events = TestRepo::events(&output);
        let end = events.last().expect("an end");
        assert_eq!((output.code, &end["agents"]), (code, &json!({"ada": "completed", "bob": status})), "{output}");
        let answer = events.iter().find(|event| event["tool"] == "squad_route" && event["type"] == "tool.completed");
        let answer = answer.expect("an answer")["result"].to_string();
        assert_eq!(answer.contains(&format!("did not complete it (claimed: {REASON})")), code == 1, "{answer}");
    }
}

#[test]
fn over_mcp_a_claim_is_an_error_with_its_reason() {
    let repo = TestRepo::with_small_team();
    let script = repo.root().with_file_name("mcp.toml");
    std::fs::write(&script, LIE.repeat(2)).expect("a script");
    let script = script.display().to_string();
    let arguments = ["--engine", "rehearsal", "--permissions", "allow"];
    let client = McpClient::start_in(&repo, &repo.root(), &arguments, &[("SQUAD_REHEARSAL", script.as_str())]);
    let mut client = client.greet("2025-11-25");
    let members = json!({"members": [{"roleId": "ada", "task": "Add tests for the login"}]});
    let result = client.structured("start_squad_members", members);
    let member = &result["members"][0];
    assert_eq!((&member["status"], &member["reason"]), (&json!("error"), &json!(REASON)), "{result}");
    assert_eq!(result["status"], "error", "{result}");
    let asked = json!({"message": "Add tests for the login", "agents": ["ada"]});
    let result = client.structured("orchestrate", asked);
    assert_eq!((&result["status"], &result["reason"]), (&json!("error"), &json!(format!("ada: {REASON}"))), "{result}");
    let asked = json!({"message": "How would you test the login?", "agents": ["ada"]});
    let result = client.structured("orchestrate", asked);
    assert_eq!(result["status"], "completed", "{result}");
}

/// Improvised turns read a file, so that a rehearsal of any message succeeds.
#[test]
fn an_improvised_rehearsal_completes_in_every_mode() {
    for mode in ["allow", "deny"] {
        for message in ["Add tests for the login", "Why is the login slow?"] {
            let repo = TestRepo::with_small_team();
            let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "--permissions", mode, message]);
            assert_eq!(output.code, 0, "{mode} {message}: {output}");
            assert_eq!(repo.git(&["status", "--porcelain"]), "", "{mode} {message}");
        }
    }
}

#[cfg(unix)]
mod commands {
    use serde_json::json;

    use super::recorded;
    use crate::engines::{prints, squad, world};
    use crate::support::TestRepo;

    /// A run in which an agent runs these commands with these exit codes, and then says that all is well.
    fn run(commands: &[(&str, i64)], arguments: &[&str]) -> (TestRepo, crate::support::Output) {
        let item = |kind: &str, number: usize, (command, code): &(&str, i64)| {
            let (status, code) =
                if kind == "started" { ("in_progress", json!(null)) } else { ("completed", json!(code)) };
            let item = json!({"id": format!("i{number}"), "type": "command_execution", "command": command,
                "aggregated_output": "", "exit_code": code, "status": status});
            json!({"type": format!("item.{kind}"), "item": item}).to_string()
        };
        let calls = commands.iter().enumerate();
        let calls = calls.flat_map(|(number, call)| [item("started", number, call), item("completed", number, call)]);
        let end =
            json!({"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": "All tests pass."}});
        let lines: Vec<String> = calls.chain([end.to_string()]).collect();
        let repo = world(&prints(&lines.iter().map(String::as_str).collect::<Vec<_>>()), "stream = \"codex\"\n");
        repo.write("Makefile", "acceptance:\ncheck:\n");
        repo.write(".github/workflows/ci.yml", "steps:\n  - run: ./ci/verify.sh --all\n");
        let all = ["orchestrate", "--engine", "mine", "--permissions", "allow", "-a", "ada", "Fix the login"];
        let output = squad(&repo, &[&all[..], arguments].concat());
        (repo, output)
    }

    #[test]
    fn the_card_has_failed_commands_and_the_last_check_that_failed() {
        let commands = [("ls", 0), ("grep -r login src", 1), ("cargo test", 101), ("cat a.txt", 0)];
        let (repo, output) = run(&commands, &[]);
        assert_eq!(output.code, 0, "{output}");
        let remark = "2 commands failed, last check failed: `cargo test` (exit 101)";
        assert!(output.err.contains("  2 commands passed, 2 failed\n"), "{output}");
        assert!(output.err.contains("checked   cargo test failed, exit 101\n"), "{output}");
        let (run, entries, log) = recorded(&repo);
        assert_eq!((&run["status"], &run["check_failed"]), (&json!("completed"), &json!(true)));
        for list in ["log", "status"].map(|command| squad(&repo, &[command])) {
            let mut lines = list.out.lines().filter(|line| line.contains("check failed"));
            assert!(lines.next().is_some_and(|line| line.contains('!')), "{list}");
        }
        let end = entries.iter().find(|entry| entry["type"] == "agent.completed").expect("an end");
        assert_eq!(end["commands"], json!({"passed": 2, "failed": 2}));
        assert_eq!(end["check"], json!({"command": "cargo test", "passed": false, "exit_code": 101}));
        let work = &entries.iter().rfind(|entry| entry["type"] == "run.completed").expect("an end")["work"][0];
        assert_eq!(
            (&work["commands"], &work["check"], work["verified"].is_null()),
            (&end["commands"], &end["check"], true)
        );
        assert_eq!(log.matches(remark).count(), 1, "{log}");
    }

    #[test]
    fn a_check_that_passed_later_is_not_mentioned() {
        let (repo, output) = run(&[("make check", 2), ("make check", 0)], &[]);
        assert!(output.err.contains("  1 command passed, 1 failed\n"), "{output}");
        assert!(output.err.contains("checked   make check passed"), "{output}");
        let (run, entries, _) = recorded(&repo);
        let end = entries.iter().find(|entry| entry["type"] == "agent.completed").expect("an end");
        assert_eq!((&end["check"]["passed"], &run["check_failed"]), (&json!(true), &json!(null)));
    }

    #[test]
    fn the_projects_own_checks_are_known() {
        let (_, output) = run(&[("./ci/verify.sh --all", 3)], &[]);
        assert!(output.err.contains("checked   ./ci/verify.sh --all failed, exit 3\n"), "{output}");
        let (_, output) = run(&[("./ci/deploy.sh", 3)], &[]);
        assert!(!output.err.contains("last check failed") && output.err.contains("  1 command failed\n"), "{output}");
    }

    #[test]
    fn who_reports_no_tools_claims_nothing() {
        let repo = world("#!/bin/sh\ncat > /dev/null\necho All tests pass.\n", "");
        let arguments = ["orchestrate", "--engine", "mine", "--permissions", "allow", "-a", "ada", "Fix the login"];
        let output = squad(&repo, &arguments);
        assert_eq!(output.code, 0, "{output}");
        assert!(!output.err.contains("no tool used"), "{output}");
    }
}

/// Each pair of ends of two agents side by side, in both orders: the run's word is the worse one.
#[test]
fn a_runs_word_is_the_worst_of_its_agents() {
    const ENDS: [(&str, &str, u8); 4] = [
        ("failed", "{ fail = \"no\" }", 1),
        ("stopped", "{ write = \".git/config\", text = \"x\" }, { say = \"Done.\" }", 5),
        ("claimed", "{ say = \"Done.\" }", 1),
        ("completed", "{ write = \"a.txt\", text = \"x\" }, { say = \"Done.\" }", 0),
    ];
    for (worst, (status, worse, code)) in ENDS.iter().enumerate() {
        for (other, better, _) in &ENDS[worst..] {
            for (ada, bob) in [(worse, better), (better, worse)] {
                let repo = TestRepo::with_small_team();
                let turn = |agent: &str, steps: &str| format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{steps}]\n");
                let script = [turn("ada", ada), turn("bob", bob), turn("coordinator", "{ say = \"That is all.\" }")];
                let agents = ["--permissions", "allow", "--json", "--agent", "ada", "--agent", "bob"];
                let arguments = [&agents[..], &["Add the import page and its tests"]].concat();
                let output = repo.rehearse(&script.concat(), &arguments);
                let end = TestRepo::events(&output).pop().expect("an end");
                assert_eq!((&end["status"], output.code), (&json!(status), *code), "{status} and {other}: {output}");
            }
        }
    }
}
