//! Standing sessions without a watch, and what is said of them.

use serde_json::{Value, json};

use crate::process::{SLOW, signal, start, wait_for};
use crate::support::{Output, TestRepo};

fn rehearse(repo: &TestRepo, more: &[&str]) -> Output {
    let mut arguments = vec!["orchestrate", "--engine", "rehearsal", "--permissions", "allow", "@ada add the endpoint"];
    arguments.extend(more);
    let output = repo.squad(&arguments);
    assert_eq!(output.code, 0, "{output}");
    output
}

#[test]
fn a_line_says_what_is_recalled() {
    let repo = TestRepo::with_small_team();
    // Without the setting, a run leaves nothing to recall.
    rehearse(&repo, &[]);
    repo.write(".squad/config.toml", "[sessions]\nstanding = true\n");
    let first = rehearse(&repo, &[]);
    assert!(!first.err.contains("recalled"), "{first}");
    let second = rehearse(&repo, &[]);
    assert!(second.err.contains("recalled: the session of ada, 0 s ago\n"), "{second}");
    assert!(!rehearse(&repo, &["--fresh"]).err.contains("recalled"));

    // A run that was killed waits to be taken up, and its session is free again.
    let mut child = start(&repo, SLOW, &["x"]);
    wait_for(&mut child, "Begun.");
    let busy = rehearse(&repo, &["--json"]);
    let own = "\"session\":\"squad-ada-2";
    assert!(busy.out.contains(own), "somebody has the standing one: {busy}");
    signal(&child, "KILL");
    child.wait().expect("it ends");
    let third = rehearse(&repo, &["--json"]);
    assert!(third.err.contains("was killed: `squad orchestrate --resume "), "{third}");
    assert!(third.out.contains("\"session.resumed\",\"session\":\"squad-ada\"") && !third.out.contains(own), "{third}");
    repo.assert_sound();
}

/// What was kept of a session is torn, or not a file: it begins anew, which is said once, and others go on.
#[test]
fn a_session_of_which_nothing_can_be_read_begins_anew_and_says_so() {
    const ANEW: &str = "its session begins anew: what it was told cannot be read";
    let repo = TestRepo::with_small_team();
    repo.write(".squad/config.toml", "[sessions]\nstanding = true\n");
    assert!(!rehearse(&repo, &[]).err.contains(ANEW), "there was none");
    let kept = || {
        let files = std::fs::read_dir(repo.root().join(".git/squad/sessions")).expect("sessions").flatten();
        files.map(|file| file.path()).find(|path| path.to_string_lossy().ends_with("squad-ada.json")).expect("a memory")
    };
    let whole = std::fs::read(kept()).expect("a file");
    for torn in [&whole[..whole.len() / 2], b"", b"{\0", b"{\"served\":[\"../../x\"]}"] {
        std::fs::write(kept(), torn).expect("a file");
        assert_eq!(rehearse(&repo, &["--fresh"]).to_string().matches(ANEW).count(), 0, "a session of its own");
        let anew = rehearse(&repo, &["--json"]);
        assert_eq!(anew.out.matches(ANEW).count(), 1, "{anew}");
        assert!(anew.out.contains("\"session.created\",\"session\":\"squad-ada\""), "{anew}");
        let next = rehearse(&repo, &["--json"]);
        assert_eq!(next.out.matches(ANEW).count(), 0, "{next}");
        assert!(next.out.contains("\"session.resumed\",\"session\":\"squad-ada\""), "{next}");
    }
    std::fs::write(kept(), "{").expect("a file");
    let bobs = repo.squad(&["orchestrate", "--engine", "rehearsal", "@bob test the endpoint"]);
    assert!(bobs.code == 0 && !bobs.to_string().contains(ANEW), "{bobs}");
    let shown = rehearse(&repo, &[]);
    assert_eq!(shown.to_string().matches(ANEW).count(), 1, "{shown}");
}

/// A charter that is saved between two messages: the session goes on with its history and the new charter, and that is
/// said once. An unchanged one, or another agent's, says nothing.
#[test]
fn a_session_whose_charter_changed_goes_on_and_says_so() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/config.toml", "[sessions]\nstanding = true\n");
    let charter = |name: &str, text: &str| {
        repo.write(&format!(".squad/agents/{name}/charter.md"), &format!("# {name}\n\n{text}\n"));
    };
    charter("ada", "I write it plainly.");
    const CHANGED: &str = "its session is made anew";
    let said = |output: &Output| output.err.matches(CHANGED).count() + output.out.matches(CHANGED).count();
    assert_eq!(said(&rehearse(&repo, &[])), 0, "a new session");
    assert_eq!(said(&rehearse(&repo, &[])), 0, "unchanged");
    charter("bob", "I test it.");
    assert_eq!(said(&rehearse(&repo, &[])), 0, "another agent's");
    charter("ada", "I write it twice.");
    let changed = rehearse(&repo, &[]);
    assert_eq!(said(&changed), 1, "{changed}");
    assert_eq!(said(&rehearse(&repo, &[])), 0, "once");
    charter("ada", "I write it three times.");
    let events = rehearse(&repo, &["--json"]).out;
    let resumed = events.lines().find(|line| line.contains("session.resumed")).expect("its history goes on");
    assert!(resumed.contains("\"session\":\"squad-ada\"") && resumed.contains("\"changed\":true"), "{resumed}");
    charter("ada", "I write it four times.");
    assert_eq!(said(&rehearse(&repo, &["--fresh"])), 0, "a session of its own");
    repo.assert_sound();
}

/// Two work trees × two teams of one repository: none has another's session.
#[test]
fn a_work_tree_and_a_team_have_sessions_of_their_own() {
    let repo = TestRepo::with_small_team();
    for folder in ["", "packages/a/"] {
        repo.write(&format!("{folder}.squad/config.toml"), "[sessions]\nstanding = true\n");
    }
    repo.write("packages/a/.squad/team.md", &repo.read(".squad/team.md"));
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=teams"]);
    repo.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let side = repo.root().join("../side");
    let how = |folder: &std::path::Path| {
        let message = "@ada add the endpoint";
        let arguments = ["orchestrate", "--engine", "rehearsal", "--permissions", "allow", "--json", message];
        let output = repo.squad_in(folder, &arguments);
        let is = |kind: &str| output.out.contains(&format!("\"session.{kind}\",\"session\":\"squad-ada\""));
        (is("created"), is("resumed"))
    };
    let places = [repo.root(), repo.root().join("packages/a"), side.clone(), side.join("packages/a")];
    for place in &places {
        assert_eq!(how(place), (true, false), "{}", place.display());
    }
    for place in &places {
        assert_eq!(how(place), (false, true), "{}", place.display());
    }
}

/// The branch of a session at work, and squad's record of what the agent did before: in this work tree, not in another.
#[test]
fn a_session_at_work_is_shown_with_its_branch_and_what_was_done_before() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/config.toml", "[sessions]\nstanding = true\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=standing"]);
    repo.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let side = repo.root().join("../side");
    let mut done = Vec::new();
    for (place, task) in
        [(None, None), (None, Some("paint the pier")), (Some(&side), Some("dig the well")), (None, None)]
    {
        match task {
            Some(task) => {
                let message = format!("@ada {task}");
                // With the clock of the sessions at work.
                let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), place.unwrap_or(&repo.root()));
                command.args(["orchestrate", "--engine", "rehearsal", "--permissions", "allow", &message]);
                assert!(command.status().expect("squad runs").success());
                done.extend(place.is_none().then_some(task));
            }
            None => {
                let mut child = start(&repo, SLOW, &["x"]);
                wait_for(&mut child, "Begun.");
                let status = repo.squad(&["status", "--json"]);
                signal(&child, "INT");
                child.wait().expect("it ends");
                let status: Value = serde_json::from_str(&status.out).expect("JSON");
                let session = &status["sessions"][0];
                assert_eq!((&session["id"], &session["branch"]), (&json!("squad-ada"), &json!("main")), "{status}");
                let summary = session["summary"].as_str();
                match done.last() {
                    None => assert_eq!(summary, None, "{status}"),
                    Some(task) => {
                        let summary = summary.expect("what was done");
                        let of = |what: &str| summary.contains(what);
                        assert!(of(task) && of("Outcome: completed") && !of("well"), "{summary}");
                        assert!(summary.split_whitespace().count() <= 200, "{summary}");
                    }
                }
            }
        }
    }
    // A session that nobody has open waits for the next task.
    let squads = repo.squad(&["squads", "--json"]);
    let squads: Value = serde_json::from_str(&squads.out).expect("JSON");
    assert_eq!((&squads["squads"][0]["sessions"], &squads["squads"][0]["state"]), (&json!(1), &json!("idle")));
}
