//! `squad cancel` and what `squad status` says of live runs: with real processes.
#![cfg(unix)]

use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};

use crate::process::{SLOW, rest, signal, start, wait_for};
use crate::support::{Output, TestRepo};

/// ada is done soon after bob, who never is, was cancelled.
const TWO: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Begun.\" }, { wait = \"1s\" }, { say = \"Done.\" }]\n\
    [[turn]]\nagent = \"bob\"\nsteps = [{ say = \"Me too.\" }, { hang = true }]\n\
    [[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"Only Ada.\" }]\n";

fn run_of(line: &str) -> String {
    let event: Value = serde_json::from_str(line.lines().next().expect("a line")).expect("JSON");
    event["run"].as_str().expect("an id").to_owned()
}

fn kinds(out: &str, kind: &str) -> Vec<Value> {
    let events = out.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    events.filter(|event| event["type"] == kind).collect()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.out).expect("JSON")
}

/// What squad's local folder has of runs.
fn left(repo: &TestRepo) -> Vec<String> {
    let folder = std::fs::read_dir(repo.root().join(".git/squad/runs")).into_iter().flatten().flatten();
    folder.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// How people are shown a run's id.
fn short(run: &str) -> &str {
    run.rsplit('-').next().unwrap_or(run)
}

#[test]
fn a_run_is_cancelled_from_another_work_tree_as_by_an_interrupt() {
    let repo = TestRepo::with_small_team();
    repo.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let mut child = start(&repo, SLOW, &["x"]);
    let begun = wait_for(&mut child, "Begun.");
    let run = run_of(&begun);
    let output = repo.squad_in(&repo.root().join("../side"), &["cancel", &run[..run.len() - 2]]);
    assert_eq!(output.to_string(), format!("--- stderr\nrun {} is being cancelled.\n--- exit 0\n", short(&run)));
    let (out, code) = rest(child);
    let all = begun + &out;
    assert_eq!(code, Some(130), "{all}");
    let requested = kinds(&all, "cancel.requested");
    assert_eq!((requested.len(), &requested[0]["agent"]), (1, &Value::Null), "{all}");
    assert!(requested[0]["seq"].as_u64() < kinds(&all, "agent.cancelled")[0]["seq"].as_u64(), "{all}");
    assert_eq!(kinds(&all, "agent.cancelled")[0]["reason"], "cancelled by the user");
    let last = all.lines().last().expect("a line");
    assert!(last.contains(r#""type":"run.completed","status":"cancelled","agents":{"ada":"cancelled"}"#), "{last}");
    assert!(repo.squad(&["log", &run, "--events"]).out.contains("cancel.requested"));
    assert!(repo.squad(&["decisions", "list"]).out.contains("in force"), "what was decided is on the branch");
    assert_eq!(left(&repo), [""; 0]);
    let again = repo.squad(&["cancel", &run, "--json"]);
    assert_eq!((again.code, json(&again)), (0, json!({"run": run, "agent": null, "was_cancelled": true})), "{again}");
    assert_eq!(repo.squad(&["cancel", &run, "ada"]).code, 0);
    let stranger = repo.squad(&["cancel", &run, "nobody"]);
    let expected = format!("error: `nobody` is not in run {run}\nhint: its agents: ada\n");
    assert_eq!((stranger.code, stranger.err.as_str()), (2, expected.as_str()));
}

/// A prefix with one, two and no live runs that it fits.
#[test]
fn of_two_live_runs_a_prefix_cancels_the_one_that_it_fits() {
    let repo = TestRepo::with_small_team();
    let [first, second] = [(); 2].map(|()| {
        let mut child = start(&repo, SLOW, &["x"]);
        let run = run_of(&wait_for(&mut child, "Begun."));
        (child, run)
    });
    let live = |repo: &TestRepo| {
        let status = json(&repo.squad(&["status", "--json"]));
        let runs = status["runs_live"].as_array().expect("a list").iter();
        let mut runs: Vec<String> = runs.map(|run| run["run"].as_str().expect("an id").to_owned()).collect();
        runs.sort();
        runs
    };
    let mut both = vec![first.1.clone(), second.1.clone()];
    both.sort();
    for arguments in [&["cancel", "20"][..], &["cancel", "20", "ada"]] {
        let unclear = repo.squad(arguments);
        assert!(unclear.code == 2 && unclear.err.contains("`20` is ambiguous: "), "{unclear}");
        assert!(both.iter().all(|run| unclear.err.contains(run)), "{unclear}");
    }
    assert_eq!(live(&repo), both, "neither was cancelled");
    let shared = first.1.chars().zip(second.1.chars()).take_while(|(one, other)| one == other).count();
    let prefix = &first.1[..=shared];
    let output = repo.squad(&["cancel", prefix]);
    assert_eq!(output.to_string(), format!("--- stderr\nrun {} is being cancelled.\n--- exit 0\n", short(&first.1)));
    assert_eq!(rest(first.0).1, Some(130));
    assert_eq!(live(&repo), [second.1.as_str()]);
    // One that is over does not make it ambiguous, and is not asked for in its place.
    assert!(repo.squad(&["cancel", prefix]).code == 0 && live(&repo) == [second.1.as_str()]);
    let output = repo.squad(&["cancel", "20"]);
    assert_eq!(output.to_string(), format!("--- stderr\nrun {} is being cancelled.\n--- exit 0\n", short(&second.1)));
    assert_eq!((rest(second.0).1, live(&repo).len()), (Some(130), 0));
    let none = repo.squad(&["cancel", "20"]);
    assert!(none.code == 2 && none.err.contains("`20` is ambiguous: "), "{none}");
}

#[test]
fn an_agent_is_cancelled_and_the_others_go_on() {
    let repo = TestRepo::with_small_team();
    let mut child = start(&repo, TWO, &["--agent", "bob", "x"]);
    let begun = wait_for(&mut child, "Me too.");
    let run = run_of(&begun);
    let output = repo.squad(&["cancel", &run, "Bob"]);
    assert_eq!(output.to_string(), format!("--- stderr\nbob in run {} is being cancelled.\n--- exit 0\n", short(&run)));
    let (out, code) = rest(child);
    let all = begun + &out;
    assert_eq!(code, Some(130), "{all}");
    let requested = kinds(&all, "cancel.requested");
    assert_eq!((requested.len(), &requested[0]["agent"]), (1, &"bob".into()), "{all}");
    let cancelled = kinds(&all, "agent.cancelled");
    let reason = &cancelled[0]["reason"];
    assert_eq!((cancelled.len(), reason), (1, &"cancelled by the user".into()), "{all}");
    assert_eq!(
        kinds(&all, "run.completed")[0]["agents"],
        json!({"ada": "completed", "bob": "cancelled", "coordinator": "completed"})
    );
    assert_eq!(kinds(&all, "run.answer")[0]["text"], "Only Ada.");
    // Who was cancelled is asked again, also after a second time; who completed is not.
    for (end, code) in [("{ hang = true }", 130), ("{ say = \"Finished.\" }", 0)] {
        repo.write("../script.toml", &TWO.replace("{ hang = true }", end));
        let mut child = start(&repo, TWO, &["--resume", &run]);
        let begun = wait_for(&mut child, "Me too.");
        if code == 130 {
            assert_eq!(repo.squad(&["cancel", &run, "bob"]).code, 0);
        }
        let (out, ended) = rest(child);
        let all = begun + &out;
        let completed = kinds(&all, "agent.completed");
        let completed: Vec<&Value> =
            completed.iter().map(|event| &event["agent"]).filter(|it| *it != "coordinator").collect();
        assert_eq!((ended, completed.len()), (Some(code), usize::from(code == 0)), "{all}");
        assert!(completed.iter().all(|agent| *agent == "bob"), "{all}");
    }
}

/// An agent that has ended × how, while its run goes on.
#[test]
fn an_agent_that_has_ended_is_not_called_cancelled() {
    for (step, ended) in [("say", "completed"), ("fail", "failed")] {
        let repo = TestRepo::with_small_team();
        let script = TWO.replace("{ say = \"Begun.\" }, { wait = \"1s\" }, { say", &format!("{{ {step}"));
        let mut child = start(&repo, &script, &["--agent", "bob", "x"]);
        let run = run_of(&wait_for(&mut child, &format!("\"agent.{ended}\"")));
        // The run's process learns of it a moment after the screen.
        let said = loop {
            let output = repo.squad(&["cancel", &run, "ada"]);
            if output.code != 0 {
                break output;
            }
            assert!(output.err.contains("is being cancelled"), "{output}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        };
        assert!(said.code == 1 && said.err.contains(&format!("ada has already ended in run {run}: {ended}")), "{said}");
        assert_eq!(repo.squad(&["cancel", &run, "bob"]).code, 0);
        let (out, _) = rest(child);
        assert_eq!(kinds(&out, "run.completed")[0]["agents"]["ada"], ended, "{out}");
    }
}

#[test]
fn status_shows_live_runs_and_their_sessions() {
    let repo = TestRepo::with_small_team();
    let mut child = start(&repo, SLOW, &["--agent", "rex", "--max-concurrent", "1", "Add a page"]);
    let run = run_of(&wait_for(&mut child, "Begun."));
    // A message counts once it is recorded.
    let status = loop {
        let status = json(&repo.squad(&["status", "--json"]));
        if status["sessions"][0]["messages"] == 2 {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    let live = &status["runs_live"][0];
    assert_eq!((&live["run"], &live["message"]), (&json!(run), &"Add a page".into()), "{status}");
    assert_eq!((&live["step"], &live["agents"]), (&1.into(), &json!({"ada": "working", "rex": "waiting"})));
    let mut session = status["sessions"][0].clone();
    let at = |name: &str| session[name].as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok()).expect(name);
    assert!(at("created") <= at("last_activity"), "{status}");
    for varying in ["created", "last_activity"] {
        session[varying] = "…".into();
    }
    let expected = json!({
        "id": format!("squad-ada-{run}"), "agent": "ada", "run": run, "state": "active", "created": "…",
        "last_activity": "…", "messages": 2, "tokens": 0, "model": "claude-sonnet-4.5",
        "directory": "REPO", "workspace": null, "branch": "main", "summary": null,
    });
    assert_eq!((session, status["sessions"].as_array().map(Vec::len)), (expected, Some(1)), "{status}");
    let lines = repo.squad(&["status"]).out;
    let lines: Vec<&str> = lines.lines().filter(|line| line.contains("ada ") || line.contains("rex ")).collect();
    assert!(lines[0].contains("● ada        works on claude-sonnet-4.5, 2 messages"), "{lines:?}");
    assert_eq!(lines[1], "○ rex        waits");
    let stranger = repo.squad(&["cancel", &run, "bob"]);
    assert!(stranger.code == 2 && stranger.err.contains("`bob` is not in run"), "{stranger}");
    assert!(stranger.err.contains("hint: its agents: ada and rex"), "{stranger}");
    signal(&child, "INT");
    rest(child);
    let status = json(&repo.squad(&["status", "--json"]));
    assert_eq!((&status["runs_live"], &status["sessions"]), (&json!([]), &json!([])));
}

#[test]
fn what_cannot_be_cancelled_says_why() {
    let repo = TestRepo::with_small_team();
    assert_eq!(repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "x"]).code, 0);
    let done = json(&repo.squad(&["log", "--json"]))["runs"][0]["run"].as_str().expect("an id").to_owned();
    let mut child = start(&repo, SLOW, &["x"]);
    let killed = run_of(&wait_for(&mut child, "Begun."));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    expect![[r#"
        --- stderr
        error: there is no run `2024`
        hint: `squad status` shows the runs that are live
        --- exit 2
    "#]]
    .assert_eq(&repo.squad(&["cancel", "2024"]).to_string());
    let over = repo.squad(&["cancel", &done]);
    assert!(over.code == 1 && over.err.contains(&format!("run {done} is over: completed")), "{over}");
    for run in [&done, &killed] {
        let stranger = repo.squad(&["cancel", run, "rex"]);
        assert!(stranger.code == 2 && stranger.err.contains(&format!("`rex` is not in run {run}")), "{stranger}");
    }
    let dead = repo.squad(&["cancel", &killed, "ada"]);
    assert!(dead.code == 1 && dead.err.contains("is not running: its process has died"), "{dead}");
    let short = killed.rsplit('-').next().expect("an id");
    let resumes = format!("`squad orchestrate --resume {short}` resumes it");
    assert!(dead.err.contains(&resumes) && !over.err.contains("--resume"), "{dead}");
    assert!(repo.squad(&["status"]).out.contains(&format!("squad orchestrate --resume {short}")), "it is named");
    let both = repo.squad(&["cancel", "20"]);
    assert!(both.code == 2 && both.err.contains("`20` is ambiguous: "), "{both}");
    let nobody = repo.squad(&["cancel", "20", "!"]);
    assert!(nobody.code == 2 && nobody.err.contains("`!` is not an agent's name"), "{nobody}");
    // The next command that writes clears what dead runs have left.
    assert!(Path::new(&repo.root()).join(".git/squad/runs").join(format!("{killed}.sock")).exists());
    repo.squad(&["gc"]);
    // It told other runs what it wrote itself, and the next one clears that.
    assert_eq!(left(&repo), ["squad.writes"]);
    repo.squad(&["gc"]);
    assert_eq!(left(&repo), [""; 0]);
    assert!(repo.squad(&["cancel", &killed]).err.contains("is over: lost"));
}
