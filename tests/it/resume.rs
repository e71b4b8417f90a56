//! A run that was interrupted goes on: what is done stays done, and nothing is done twice.
//!
//! `SQUAD_RESUMES=1000 cargo test --test it resume::killed` kills squad after every line that it shows.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Output, TestRepo, number_of};

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

const STEPS: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { say = "I begin." }, { write = "api.txt", text = "endpoint\n" },
  { tool = "squad_log_decision", args = { title = "Errors are JSON", what = "One shape." } },
  { say = "The endpoint is there." },
]
[[turn]]
agent = "bob"
steps = [
  { tool = "squad_remember", args = { text = "The suite needs TZ=UTC." } },
  { write = "tests.txt", text = "tests\n" }, { say = "The tests pass." },
]
[[turn]]
agent = "rex"
steps = [{ write = "guide.txt", text = "guide\n" }, { say = "It is documented." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is done." }]
"#;

const HANDED_ON: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "login.txt", text = "plain\n" }, { say = "Did it." }]
[[turn]]
agent = "rex"
steps = [{ tool = "squad_verdict", args = { approved = false, reasons = "Plain text." } }, { say = "VERDICT: rejected" }]
[[turn]]
agent = "coordinator"
steps = [{ say = '{"agents": ["bob"], "reason": "knows it"}' }]
[[turn]]
agent = "bob"
steps = [{ write = "login.txt", text = "hashed\n" }, { say = "Hashed." }]
[[turn]]
agent = "rex"
steps = [{ tool = "squad_verdict", args = { approved = true, reasons = "Good." } }, { say = "VERDICT: approved" }]
[[turn]]
agent = "coordinator"
steps = [{ say = "bob has mended it." }]
"#;

/// Rex and bob are handed work, of which ada awaits one.
const COLLEAGUES: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { tool = "squad_route", args = { agent = "rex", task = "Write the guide", wait = false } },
  { tool = "squad_route", args = { agent = "bob", task = "Write tests" } },
  { write = "api.txt", text = "endpoint\n" }, { say = "The endpoint is there." },
]
[[turn]]
agent = "bob"
steps = [
  { tool = "squad_remember", args = { text = "The suite needs TZ=UTC." } },
  { write = "tests.txt", text = "tests\n" }, { say = "The tests pass." },
]
[[turn]]
agent = "rex"
steps = [
  { tool = "squad_log_decision", args = { title = "Guides are short", what = "A page." } },
  { write = "guide.txt", text = "guide\n" }, { say = "It is documented." },
]
"#;

const ORDERED: &str = "First @ada adds the endpoint, then @bob tests it, after that @rex documents it";
const REVIEWED: &str = "Rework the login password";

fn repo(script: &str) -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write("../play.toml", script);
    repo
}

/// Its agents work in clones.
fn cloning(script: &str) -> TestRepo {
    let mut repo = repo(script);
    repo.variables.insert("SQUAD_ISOLATION_MODE".into(), "clone".into());
    repo
}

fn flags(repo: &TestRepo) -> Vec<String> {
    let script = repo.root().join("../play.toml").display().to_string();
    ["orchestrate", "--json", "--permissions", "allow", "--script", &script].map(str::to_owned).to_vec()
}

/// In a process of its own, as the killed ones are: their ids tell the real time.
fn squad(repo: &TestRepo, arguments: &[&str]) -> Output {
    let mut command = repo.command(BINARY, &repo.root());
    let output = command.args(flags(repo)).args(arguments).stdin(Stdio::null()).output().expect("squad runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().and_then(|code| code.try_into().ok()).expect("a code");
    Output { out: text(&output.stdout), err: text(&output.stderr), code }
}

/// Runs squad in a process of its own and kills it when it has shown so many lines. Returns whether it was still alive.
fn kill_after(repo: &TestRepo, lines: usize, arguments: &[&str]) -> bool {
    let mut command = repo.command(BINARY, &repo.root());
    command.args(flags(repo)).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("squad runs");
    let mut shown = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let cut_short = (0..lines).all(|_| shown.next().is_some_and(|line| line.is_ok()));
    let _ = child.kill();
    !child.wait().expect("it ends").success() && cut_short
}

fn newest(repo: &TestRepo) -> Value {
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    log["runs"][0].clone()
}

/// What must be the same in the end, interrupted or not.
fn outcome(repo: &TestRepo) -> Vec<String> {
    let run = newest(repo);
    let entries = repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
    let count = |kind: &str| format!("{} {kind}", entries.lines().filter(|path| path.ends_with(kind)).count());
    let mut found = vec![run["status"].to_string(), run["agents"].to_string()];
    if repo.variables.contains_key("SQUAD_ISOLATION_MODE") {
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "the work tree is the user's");
        let merged = repo.squad(&["merge", run["run"].as_str().expect("an id"), "--yes"]);
        assert_eq!(merged.code, 0, "{merged}");
    }
    found.extend(["decision.logged.md", "memory.logged.md", "run.answer.md", "review.lockout.md"].map(count));
    for file in ["api.txt", "tests.txt", "guide.txt", "login.txt"] {
        found.push(if repo.exists(file) { repo.read(file) } else { String::new() });
    }
    found.push(repo.git(&["log", "--topo-order", "--format=%s"]));
    found
}

/// Resumes a run that was killed, unless that was between its last entry and its end.
fn resume_to_the_end(repo: &TestRepo, run: &str, when: &str) -> Output {
    let resumed = squad(repo, &["--resume", run]);
    if !(resumed.code == 2 && resumed.out.contains("is completed")) {
        assert_eq!(resumed.code, 0, "{when}: {resumed}");
        assert_eq!(TestRepo::events(&resumed)[0]["type"], "run.resumed", "{when}: {resumed}");
    }
    resumed
}

fn killed_anywhere(script: &str, message: &str) {
    killed_anywhere_in(repo, script, message);
}

fn killed_anywhere_in(repo: fn(&str) -> TestRepo, script: &str, message: &str) {
    let undisturbed = repo(script);
    let whole = squad(&undisturbed, &[message]);
    assert_eq!(whole.code, 0, "{whole}");
    let wanted = outcome(&undisturbed);
    let lines = TestRepo::events(&whole).len();
    let kills = number_of("SQUAD_RESUMES", 6).min(lines - 1);
    let mut cut_short = 0;
    for number in 0..kills {
        let after = 1 + number * (lines - 1) / kills;
        let repo = repo(script);
        if !kill_after(&repo, after, &[message]) {
            continue;
        }
        cut_short += 1;
        let run = newest(&repo)["run"].as_str().expect("an id").to_owned();
        let resumed = resume_to_the_end(&repo, &run, &format!("after {after}"));
        assert_eq!(outcome(&repo), wanted, "after {after}: {}", resumed.err);
        repo.assert_sound();
    }
    assert!(cut_short > 0, "nothing was interrupted");
}

#[test]
fn killed_at_any_line_steps_end_as_if_nothing_had_happened() {
    killed_anywhere(STEPS, ORDERED);
}

/// The work of every agent is there, once, wherever the run was killed: its clone outlives squad.
#[test]
fn killed_at_any_line_work_in_clones_ends_as_if_nothing_had_happened() {
    killed_anywhere_in(cloning, STEPS, ORDERED);
    killed_anywhere_in(cloning, COLLEAGUES, "@ada adds the endpoint");
}

/// The second kill, and a third: a resumed run is as good as one that was never killed.
#[test]
fn killed_again_while_it_is_resumed_a_run_ends_as_if_nothing_had_happened() {
    for (script, message) in [(STEPS, ORDERED), (HANDED_ON, REVIEWED)] {
        let undisturbed = repo(script);
        assert_eq!(squad(&undisturbed, &[message]).code, 0);
        let wanted = outcome(&undisturbed);
        let mut kills = 0;
        for lines in [[9, 1, 1], [9, 2, 12], [14, 8, 3], [18, 12, 6]] {
            let repo = repo(script);
            kills += usize::from(kill_after(&repo, lines[0], &[message]));
            let run = newest(&repo)["run"].as_str().expect("an id").to_owned();
            for lines in &lines[1..] {
                kills += usize::from(kill_after(&repo, *lines, &["--resume", &run]));
            }
            let resumed = resume_to_the_end(&repo, &run, &format!("after {lines:?}"));
            assert_eq!(outcome(&repo), wanted, "after {lines:?}: {}", resumed.err);
            assert_eq!(newest(&repo)["run"], run.as_str(), "it is one run all the time");
            repo.assert_sound();
        }
        assert!(kills > 4, "nothing was interrupted twice");
    }
}

#[test]
fn killed_at_any_line_a_hand_off_ends_as_if_nothing_had_happened() {
    killed_anywhere(HANDED_ON, REVIEWED);
}

#[test]
fn killed_at_any_line_work_among_colleagues_ends_as_if_nothing_had_happened() {
    killed_anywhere(COLLEAGUES, "@ada adds the endpoint");
}

#[test]
fn what_failed_is_tried_again_and_what_is_done_is_not() {
    let repo = repo(
        r#"
[[turn]]
agent = "ada"
steps = [{ write = "api.txt", text = "endpoint\n" }, { say = "There." }]
[[turn]]
agent = "bob"
steps = [{ fail = "the model is gone" }]
[[turn]]
agent = "bob"
steps = [{ write = "tests.txt", text = "tests\n" }, { say = "They pass." }]
"#,
    );
    let output = squad(&repo, &["First @ada adds the endpoint, then @bob tests it, after that @rex looks at it"]);
    assert_eq!(output.code, 1, "{output}");
    let run = newest(&repo)["run"].as_str().expect("an id").to_owned();
    let output = squad(&repo, &["--resume", &run[..20]]);
    assert_eq!(output.code, 0, "{output}");
    let events = TestRepo::events(&output);
    let began: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "session.resumed" || event["type"] == "session.created")
        .collect();
    assert_eq!(began.iter().map(|event| &event["agent"]).collect::<Vec<_>>(), ["bob", "rex", "coordinator"]);
    assert_eq!(events[0]["done"].to_string(), r#"["ada"]"#);
    let end = events.last().expect("an end");
    assert_eq!(
        end["agents"].to_string(),
        r#"{"ada":"completed","bob":"completed","coordinator":"completed","rex":"completed"}"#
    );
    let work = end["work"].as_array().expect("work");
    for (agent, path) in [("ada", "api.txt"), ("bob", "tests.txt")] {
        let of_agent = work.iter().find(|work| work["agent"] == agent).expect("its work");
        assert_eq!(of_agent["changed"][0]["path"], path);
    }
    assert_eq!(newest(&repo)["status"], "completed");
    assert_eq!((&events[0]["steps_done"], &events[0]["steps"]), (&1.into(), &2.into()));
    // Numbers go on where they ended.
    let log = TestRepo::events(&repo.squad(&["log", "--json", &run]));
    let numbers: Vec<u64> = log.iter().filter_map(|entry| entry["seq"].as_u64()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[test]
fn the_step_that_a_run_goes_on_with_is_shown() {
    let script = STEPS.replace("{ write = \"tests.txt\", text = \"tests\\n\" }", "{ fail = \"no model\" }");
    assert!(script.contains("no model"));
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(&script, &["--permissions", "allow", ORDERED]);
    assert_eq!(output.code, 1, "{output}");
    let run = newest(&repo)["run"].as_str().expect("an id").to_owned();
    let output = repo.rehearse(STEPS, &["--permissions", "allow", "--resume", &run]);
    for line in ["the run goes on with step 2 of 3: ada completed before", "Step 3 of 3"] {
        assert!(output.err.contains(line), "{line}: {output}");
    }
}

#[test]
fn what_cannot_be_resumed_is_said() {
    let repo = repo(STEPS);
    let refused = |arguments: &[&str], code: u8, says: &str| {
        let output = squad(&repo, arguments);
        assert_eq!(output.code, code, "{output}");
        assert!(output.out.contains(says), "{says}: {output}");
    };
    refused(&["--resume", "20260105-090000-000001"], 2, "there is no run");
    assert_eq!(squad(&repo, &[ORDERED]).code, 0);
    let run = newest(&repo)["run"].as_str().expect("an id").to_owned();
    refused(&["--resume", &run], 2, "has completed: there is nothing to resume");
    refused(&["--resume", &run, "more"], 2, "cannot be used with");
    // What squad answered by itself is completed too.
    squad(&repo, &["Who is on the team?"]);
    let run = newest(&repo)["run"].as_str().expect("an id").to_owned();
    refused(&["--resume", &run], 2, "nothing to resume");

    repo.write("../play.toml", "[[turn]]\nagent = \"ada\"\nsteps = [{ fail = \"no\" }]\n");
    assert_eq!(squad(&repo, &["--agent", "ada", "work"]).code, 1);
    let run = newest(&repo)["run"].as_str().expect("an id").to_owned();
    refused(&["--resume", "2026"], 2, "is ambiguous");
    repo.git(&["switch", "--quiet", "--create", "other"]);
    refused(&["--resume", &run], 3, "started on main, but this is other");
    repo.git(&["switch", "--quiet", "main"]);
    // A clone knows the run, and cannot say that it has ended.
    assert_eq!(squad(&repo, &["--resume", &run]).code, 0);
}

/// What is changed between an interruption and its end belongs to nobody; what was asked for at the beginning holds.
#[test]
fn a_run_goes_on_as_it_was_begun_beside_what_the_user_does() {
    let repo = repo(
        r#"
[[turn]]
agent = "ada"
steps = [
  { tool = "squad_log_decision", args = { title = "Errors are JSON", what = "One shape." } },
  { write = "api.txt", text = "endpoint\n" }, { fail = "the model is gone" },
]
[[turn]]
agent = "ada"
steps = [{ write = "more.txt", text = "more\n" }, { say = "There." }]
"#,
    );
    assert_eq!(squad(&repo, &["--no-commit", "--agent", "ada", "work"]).code, 1);
    repo.write("users.txt", "mine\n");
    let run = newest(&repo)["run"].as_str().expect("an id").to_owned();
    let team = repo.read(".squad/team.md");
    repo.write(".squad/team.md", &team.replace("| Ada |", "| Eve |"));
    let output = squad(&repo, &["--resume", &run]);
    assert!(output.code == 3 && output.out.contains("needs ada, which can no longer be started"), "{output}");
    repo.write(".squad/team.md", &team);
    repo.write(".squad/agents/ada/charter.md", "# Ada — Backend Dev\n\n## How I Work\n\nOtherwise.\n");
    let output = squad(&repo, &["--resume", &run]);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.out.contains("have changed since the run started"), "{output}");
    let end = TestRepo::events(&output).pop().expect("an end");
    let changed = end["work"][0]["changed"].as_array().expect("changes").iter();
    let changed: Vec<String> =
        changed.map(|change| format!("{} {}", change["path"], change["class"]).replace('"', "")).collect();
    let expected = [".squad/agents/ada/charter.md unknown", "api.txt own", "more.txt own", "users.txt unknown"];
    assert_eq!(changed, expected, "{output}");
    assert_eq!(end["commits"], serde_json::json!([]), "nothing lands");
}
