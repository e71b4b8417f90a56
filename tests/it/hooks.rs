//! A team's own hooks: what they deny or change holds, they allow nothing, and one that is not up to it has denied.

#![cfg(unix)]

use serde_json::{Value, json};

use crate::process::{rest, start};
use crate::support::{Output, TestRepo};

const OWN: &str = "../home/config/squad/config.toml";

/// A run's clock may jump ahead while a hook works, and no hook here is slow.
const PATIENT: &str = "timeout = \"10m\"\n";

/// A repository whose user has this hook, a script for `sh`.
fn repo(on: &str, more: &str, script: &str) -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write("guard.sh", script);
    let patient = if more.starts_with("timeout") { "" } else { PATIENT };
    repo.write(OWN, &format!("[hooks.guard]\non = \"{on}\"\nrun = [\"sh\", \"guard.sh\"]\n{patient}{more}"));
    repo
}

fn turn(steps: &str) -> String {
    format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}]\n")
}

fn play(repo: &TestRepo, steps: &str, mode: &str) -> Output {
    repo.rehearse(&turn(steps), &["@ada do it", "--permissions", mode, "--json"])
}

fn of(output: &Output, kind: &str) -> Vec<Value> {
    TestRepo::events(output).into_iter().filter(|event| event["type"] == kind).collect()
}

const WRITES: &str = "{ write = \"a.txt\", text = \"a\" }, { say = \"Done.\" }";

/// What a hook does × whether the write happens, and what the model and the user are told.
#[test]
fn a_hook_that_gives_no_usable_answer_has_denied() {
    for (script, more, told) in [
        ("cat >/dev/null", "", None),
        ("echo '{}'", "", None),
        ("echo ' '", "tools = [\"write\"]\n", None),
        ("exit 2", "tools = [\"shell\", \"re*\"]\n", None),
        ("echo 'not on Fridays' >&2; exit 2", "", Some("not on Fridays")),
        ("exit 2", "tools = [\"WR*\"]\n", Some("it gives no reason")),
        ("echo '{\"deny\": \"too late\"}'", "", Some("too late")),
        ("echo '{\"deny\": \"\"}'", "", Some("")),
        ("echo '{\"allow\": true}'", "", Some("its answer cannot be read: unknown field `allow`")),
        ("echo '{\"result\": \"x\"}'", "", Some("its answer has `result`, which pre_tool_use does not take")),
        ("echo '{\"arguments\": [1]}'", "", Some("its answer cannot be read: invalid type")),
        ("echo '{}{}'", "", Some("its answer cannot be read")),
        ("echo oops", "", Some("its answer cannot be read")),
        ("echo broken >&2; exit 1", "", Some("exit code 1: broken")),
        ("kill -9 $$", "", Some("it was ended by signal 9")),
        ("sleep 60 & wait", "timeout = \"300ms\"\n", Some("it took too long")),
        ("yes '{}' | head -c 3000000", "", Some("it printed more than 1 MiB")),
        ("yes '{}' | head -c 3000000 >&2", "", Some("it printed more than 1 MiB")),
        ("trap '' TERM; yes", "", Some("it printed more than 1 MiB")),
    ] {
        let repo = repo("pre_tool_use", more, script);
        let output = play(&repo, WRITES, "allow");
        let denied = of(&output, "tool.denied");
        assert_eq!(repo.exists("a.txt"), told.is_none(), "{script}: {output}");
        match told {
            None => assert!(denied.is_empty() && output.code == 0, "{script}: {output}"),
            Some(told) => {
                let place = format!("the hook `guard` (HOME/config/squad/config.toml:3): {told}");
                let reason = denied[0]["reason"].as_str().expect("a reason");
                assert!(reason.starts_with(&place), "{reason} is not {place}");
                assert_eq!(output.code, 5, "its only change was refused: {output}");
            }
        }
    }
}

/// What it is asked, and what it changes is judged as if the agent had asked for it.
#[test]
fn changed_arguments_are_judged_like_others() {
    let script = "cat > ../asked.json; echo '{\"arguments\": {\"path\": \"infra/b.txt\", \"text\": \"b\"}}'";
    for (rule, mode, is_written) in [
        ("", "allow", true),
        ("[policy]\nwrites.deny = [\"infra/**\"]\n", "allow", false),
        ("[policy]\nwrites.allow = [\"a.txt\"]\n", "deny", false),
        ("", "deny", false),
    ] {
        let repo = repo("pre_tool_use", rule, script);
        let output = play(&repo, WRITES, mode);
        assert!(!repo.exists("a.txt") && repo.exists("infra/b.txt") == is_written, "{rule} {mode}: {output}");
        let asked: Value = serde_json::from_str(&repo.read("../asked.json")).expect("JSON");
        let run = &of(&output, "run.started")[0]["run"];
        let expected = json!({
            "event": "pre_tool_use", "hook": "guard", "run": run, "agent": "ada", "tool": "write",
            "arguments": { "path": "a.txt", "text": "a" },
        });
        assert_eq!(asked, expected);
        let answered = of(&output, "hook.answered");
        assert_eq!((&answered[0]["effect"], &answered[0]["tool"]), (&json!("changed"), &json!("write")));
        assert_eq!(of(&output, "tool.started")[0]["detail"], "infra/b.txt", "what is done is what is shown");
    }
}

/// Several hooks are asked in the order of their names; the second sees what the first changed, and the last denies.
#[test]
fn each_hook_sees_what_those_before_it_changed() {
    let repo = repo("pre_tool_use", "", "grep -q two && exit 2; exit 0");
    let more = "[hooks.b]\non = \"pre_tool_use\"\nrun = [\"sh\", \"-c\", \"grep -q one && echo '{\\\"arguments\\\": {\\\"command\\\": \\\"two\\\"}}'; exit 0\"]\ntimeout = \"10m\"\n\
        [hooks.a]\non = \"pre_tool_use\"\nrun = [\"sh\", \"-c\", \"echo '{\\\"arguments\\\": {\\\"command\\\": \\\"one\\\"}}'\"]\ntimeout = \"10m\"\n";
    repo.write(OWN, &(repo.read(OWN) + more));
    let output = play(&repo, "{ run = \"zero\" }, { say = \"Done.\" }", "allow");
    let changed: Vec<_> =
        of(&output, "hook.answered").iter().map(|it| (it["hook"].clone(), it["detail"].clone())).collect();
    let [one, two] = ["one", "two"].map(|command| json!(format!("{{\"command\":\"{command}\"}}")));
    assert_eq!(changed, [(json!("a"), one), (json!("b"), two)], "{output}");
    assert_eq!(of(&output, "tool.denied").len(), 1, "{output}");
}

/// squad's own tools, by name: a decision that a hook denies is not recorded.
#[test]
fn hooks_are_asked_about_squads_own_tools() {
    let repo = repo("pre_tool_use", "tools = [\"squad_*\"]\n", "echo no >&2; exit 2");
    let output = play(
        &repo,
        "{ tool = \"squad_log_decision\", args = { title = \"A\", what = \"b\" } }, { write = \"a.txt\" }, { say = \"Done.\" }",
        "allow",
    );
    assert!(of(&output, "decision.logged").is_empty() && repo.exists("a.txt"), "{output}");
    assert_eq!((of(&output, "tool.denied").len(), output.code), (1, 0), "{output}");
}

/// What a hook answers when an agent would stop × how often.
#[test]
fn an_agent_is_held_a_bounded_number_of_times() {
    for (script, turns, code, text) in [
        ("exit 0", 1, 0, "1"),
        ("grep -q '\"held\":0' && echo '{\"deny\": \"no tests\"}'; exit 0", 2, 0, "2"),
        ("grep -q '\"held\":[012]' && echo '{\"deny\": \"no tests\"}'; exit 0", 4, 0, "4"),
        (
            "echo '{\"deny\": \"no tests\"}'",
            4,
            1,
            "the hook `guard` sent it back 3 times, and is still not content: no tests",
        ),
        ("exit 7", 1, 1, "exit code 7"),
        ("echo '{\"context\": \"x\"}'", 1, 1, "which agent_stop does not take"),
    ] {
        let repo = repo("agent_stop", "", script);
        let script: String = (1..6).map(|turn_number| turn(&format!("{{ say = \"{turn_number}\" }}"))).collect();
        let output = repo.rehearse(&script, &["--agent", "ada", "Explain it", "--json"]);
        assert_eq!((of(&output, "agent.message").len(), output.code), (turns, code), "{script}: {output}");
        let kind = if code == 0 { "agent.completed" } else { "agent.failed" };
        let end = &of(&output, kind)[0];
        assert!(end["text"] == text || end["reason"].as_str().is_some_and(|reason| reason.contains(text)), "{end}");
    }
}

/// What it is told of the beginning and the end, and that it may keep an agent from beginning.
#[test]
fn a_session_begins_and_ends_with_hooks() {
    let script = "cat > ../start.json; echo '{\"context\": \"Today is quiet.\"}'";
    let begun = repo(
        "session_start",
        "[hooks.last]\non = \"session_end\"\nrun = [\"sh\", \"-c\", \"cat > ../end.json\"]\ntimeout = \"10m\"\n",
        script,
    );
    let output = play(&begun, "{ fail = \"no\" }", "allow");
    let read = |name: &str| -> Value { serde_json::from_str(&begun.read(name)).expect("JSON") };
    let (start, end) = (read("../start.json"), read("../end.json"));
    assert_eq!(
        (&start["source"], &start["agent"], &start["event"]),
        (&json!("startup"), &json!("ada"), &json!("session_start"))
    );
    assert_eq!((&end["reason"], &end["session"]), (&json!("failed"), &start["session"]), "{output}");
    assert_eq!(of(&output, "hook.answered")[0]["detail"], "Today is quiet.");
    for script in ["echo '{\"deny\": \"not now\"}'", "echo 'not now' >&2; exit 2", "echo 'not now' >&2; exit 1"] {
        let repo = repo("session_start", "", script);
        let output = play(&repo, WRITES, "allow");
        assert!(!repo.exists("a.txt") && output.code == 5, "{output}");
        assert!(of(&output, "agent.stopped")[0]["reason"].as_str().expect("a reason").contains("not now"), "{output}");
    }
}

/// A repository's hook is inert until it is approved, and holds everything up when its file changes after that; it denies
/// when an agent changes its file during a run.
#[test]
fn what_a_hook_runs_is_what_was_approved() {
    let repo = TestRepo::with_small_team();
    repo.write("guard.sh", "exit 2");
    let hook = "[hooks.guard]\non = \"pre_tool_use\"\nrun = [\"sh\", \"guard.sh\"]\n";
    repo.write(".squad/config.toml", &format!("{hook}{PATIENT}"));
    let is_written = |output: Output| -> (bool, Output) {
        let written = repo.exists("a.txt");
        let _ = std::fs::remove_file(repo.root().join("a.txt"));
        (written, output)
    };
    let (written, output) = is_written(play(&repo, WRITES, "allow"));
    assert!(written && output.err.contains("`hooks.guard` is ignored"), "{output}");
    assert_eq!(repo.squad(&["trust", "approve", "hooks.guard", "--yes"]).code, 0);
    assert!(!is_written(play(&repo, WRITES, "allow")).0);
    repo.write("guard.sh", "exit 0");
    let (written, output) = is_written(play(&repo, WRITES, "allow"));
    assert!(!written && output.code == 3, "what changed is not approved: {output}");
    for told in ["`hooks.guard` has changed since you approved it", "squad trust approve hooks.guard"] {
        assert!(output.out.contains(told), "{told}: {output}");
    }
    assert_eq!(repo.squad(&["trust", "approve", "hooks.guard", "--yes"]).code, 0);
    let tampers = format!(
        "{{ write = \"guard.sh\", text = \"exit 0 # mine\" }}, {{ run = \"echo 'exit 0 # mine' > guard.sh\" }}, {WRITES}"
    );
    let (written, output) = is_written(play(&repo, &tampers, "allow"));
    let reasons: Vec<String> = of(&output, "tool.denied").iter().map(|it| it["reason"].to_string()).collect();
    assert!(!written && reasons.len() == 2, "{reasons:?}");
    assert!(
        reasons[0].contains("squad trust") && reasons[1].contains("guard.sh has changed since the run began"),
        "{reasons:?}"
    );
}

/// Each way to another program than the one that the run began with.
#[test]
fn a_hook_is_the_one_that_the_run_began_with() {
    for (first, run) in [
        ("echo 'exit 0' > pass.sh; ln -sf pass.sh guard.sh", "guard.sh"),
        ("echo 'exit 0' > later.sh", "later.sh"),
        ("rm guard.sh", "guard.sh"),
        ("echo 'exit 0' > real.sh", "guard.sh"),
    ] {
        let repo = TestRepo::with_small_team();
        repo.write("real.sh", "grep -q 'write' && exit 2; exit 0");
        std::os::unix::fs::symlink("real.sh", repo.root().join("guard.sh")).expect("a link");
        let hook =
            format!("[hooks.guard]\non = \"pre_tool_use\"\nrun = [\"sh\", \"{run}\"]\ntools = [\"write\"]\n{PATIENT}");
        repo.write(OWN, &hook);
        let output = play(&repo, &format!("{{ run = \"{first}\" }}, {WRITES}"), "allow");
        let reason = of(&output, "tool.denied")[0]["reason"].to_string();
        assert!(!repo.exists("a.txt") && reason.contains("has changed since the run began"), "{first}: {output}");
    }
}

/// Cancelled while a hook is asked, work is cancelled, and the last hook is told so.
#[test]
fn work_that_is_cancelled_in_a_hook_is_cancelled() {
    let more = "[hooks.last]\non = \"session_end\"\nrun = [\"sh\", \"-c\", \"cat > ../end.json\"]\ntimeout = \"10m\"\n";
    for on in ["session_start", "agent_stop"] {
        let repo = repo(on, more, "touch ../asked; sleep 20 & wait");
        // In a process of its own: in this one, a hook's time would pass at once.
        let run = start(&repo, &turn("{ say = \"Done.\" }"), &["Explain it"]);
        while !repo.exists("../asked") {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let live: Value = serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON");
        let id = live["runs_live"][0]["run"].as_str().expect("a run").to_owned();
        assert_eq!(repo.squad(&["cancel", &id]).code, 0);
        let (out, _) = rest(run);
        assert_eq!(out.matches("\"agent.cancelled\"").count(), 1, "{on}: {out}");
        let end: Value = serde_json::from_str(&repo.read("../end.json")).expect("JSON");
        assert_eq!(end["reason"], "cancelled", "{on}");
    }
}

/// Each way to write it wrongly: nothing starts, and the place is named.
#[test]
fn a_hook_that_cannot_be_read_holds_everything_up() {
    for (written, line, told) in [
        ("on = \"pre_tool\"\nrun = [\"x\"]", 2, "`hooks.guard.on` is one of pre_tool_use, post_tool_use"),
        ("on = 3\nrun = [\"x\"]", 2, "`hooks.guard.on` needs a string"),
        ("on = \"agent_stop\"", 2, "`hooks.guard` does not say what to run"),
        ("run = [\"x\"]", 2, "`hooks.guard` does not say when"),
        ("on = \"agent_stop\"\nrun = []", 3, "`hooks.guard.run` names no program"),
        ("on = \"agent_stop\"\nrun = \"x\"", 3, "`hooks.guard.run` needs a list"),
        ("on = \"agent_stop\"\nrun = [\"x\"]\ntools = [\"a\"]", 2, "is not asked about tools, and has `tools`"),
        ("on = \"pre_tool_use\"\nrun = [\"x\"]\ntools = [\"[\"]", 4, "`hooks.guard.tools` has the pattern `[`"),
        ("on = \"pre_tool_use\"\nrun = [\"x\"]\ntimeout = \"1h\"", 4, "`hooks.guard.timeout` is at most 10m"),
        ("on = \"pre_tool_use\"\nrun = [\"x\"]\nshell = true", 4, "`hooks.guard.shell` must be one of"),
    ] {
        let repo = TestRepo::with_small_team();
        repo.write(OWN, &format!("[hooks.guard]\n{written}\n"));
        let output = play(&repo, WRITES, "allow");
        assert_eq!(output.code, 3, "{written}: {output}");
        let places = format!("config.toml:{line}");
        assert!(output.out.contains(told) && output.out.contains(&places), "{written}: {output}");
    }
}
