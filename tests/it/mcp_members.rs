//! `squad mcp`: members that clients start, and the runs they are in.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::support::TestRepo;

/// A team, a role file, and members that play this script.
fn world(script: &str) -> (TestRepo, PathBuf) {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/roles/tester.md", "---\nname: Tester\n---\nYou test.\n");
    repo.write("src/lib.rs", "// Nothing yet.\n");
    let path = repo.root().parent().expect("a folder").join("script.toml");
    fs::write(&path, script).expect("a script");
    (repo, path)
}

fn client(repo: &TestRepo, script: &std::path::Path, arguments: &[&str], variables: &[(&str, &str)]) -> McpClient {
    let script = script.display().to_string();
    let variables = [variables, &[("SQUAD_REHEARSAL", script.as_str())]].concat();
    let arguments = [arguments, &["--engine", "rehearsal"]].concat();
    McpClient::start_in(repo, &repo.root(), &arguments, &variables).greet("2025-11-25")
}

fn say(agent: &str, text: &str) -> String {
    format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{{ say = {} }}]\n", json!(text))
}

/// Asks until that holds.
fn until(client: &mut McpClient, run: &Value, holds: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let result = client.structured("get_run", json!({"squadId": run, "waitSec": 1}));
        if holds(&result) {
            return result;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{result}");
    }
}

fn is_over(result: &Value) -> bool {
    result["status"] != "running"
}

#[test]
fn each_member_has_a_result_of_its_own() {
    let script = say("ada", "Done.\nünter \u{1f600}")
        + "[[turn]]\nagent = \"tester\"\nsteps = [{ say = \"half\" }, { fail = \"no compiler\" }]\n"
        + "[[turn]]\nagent = \"tester-2\"\nsteps = [{ hang = true }]\n";
    let (repo, script) = world(&script);
    let mut client = client(&repo, &script, &[], &[]);
    let members = json!([
        {"roleId": "ada", "task": "Build it.", "cwd": "src"},
        {"roleId": "tester", "task": "Test it."},
        {"roleId": "tester", "task": "Test it again.", "timeoutSec": 1},
    ]);
    let result = client.structured("start_squad_members", json!({"members": members, "metadata": {"any": [1]}}));
    let run = result["squadId"].as_str().expect("an id").to_owned();
    assert_eq!(result["status"], "failed", "{result}");
    let members = result["members"].as_array().expect("a list");
    let of = |member: &Value, field: &str| member[field].clone();
    assert_eq!(members[0]["memberId"], "ada");
    assert_eq!((of(&members[0], "status"), of(&members[0], "cwd")), (json!("completed"), json!("src")), "{result}");
    assert_eq!(members[0]["rawStdout"], "Done.\nünter \u{1f600}");
    assert_eq!((of(&members[0], "truncated"), members[0].get("reason")), (json!(false), None));
    assert_eq!(members[0].get("chatId"), None);
    assert_eq!((of(&members[1], "status"), of(&members[1], "reason")), (json!("error"), json!("no compiler")));
    assert_eq!(members[1]["rawStdout"], "half");
    assert_eq!((of(&members[2], "memberId"), of(&members[2], "roleId")), (json!("tester-2"), json!("tester")));
    assert_eq!(members[2]["status"], "timeout", "{result}");

    // The whole of it, by its links.
    let text = |client: &mut McpClient, uri: &str| {
        let answer = client.request("resources/read", json!({"uri": uri}));
        answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    assert_eq!(text(&mut client, members[0]["logUri"].as_str().expect("a link")), "Done.\nünter \u{1f600}");
    let prompt = text(&mut client, &format!("squad://runs/{run}/tester/prompt"));
    assert!(
        prompt.starts_with("# Role\n\nYou test.\n\n---\n\n# Task\n\nTest it.\n\n---\n\n# Setup & Reporting Rules\n"),
        "{prompt}"
    );
    assert!(text(&mut client, &format!("squad://runs/{run}")).contains("no compiler"));
    for uri in [
        format!("squad://runs/{run}/nobody/stdout"),
        format!("squad://runs/{run}/ada/secret"),
        "squad://runs/x".to_owned(),
    ] {
        assert_eq!(client.request("resources/read", json!({"uri": uri}))["error"]["code"], -32002, "{uri}");
    }

    let said = client.refused("cancel_run", json!({"squadId": run, "memberId": "nobody"}));
    assert_eq!(said, format!("`nobody` is not in run {run}\nhint: its agents: ada, tester and tester-2"));
    assert_eq!(client.structured("cancel_run", json!({"squadId": run, "memberId": "ada"}))["status"], "failed");

    // A run like every other.
    let log = repo.squad(&["log", "--json"]);
    assert!(log.out.contains(&run) && log.out.contains("tester-2"), "{log}");
    let resumed = repo.squad(&["orchestrate", "--resume", &run]);
    assert!(resumed.code == 2 && resumed.err.contains("was started by an MCP client"), "{resumed}");
    repo.assert_sound();
}

#[test]
fn nobody_starts_when_anything_is_wrong_and_everything_wrong_is_named() {
    let (repo, script) = world("");
    repo.write(".squad/roles/broken.md", "---js\n1\n---\nText\n");
    let mut client = client(&repo, &script, &[], &[]);
    let outside = repo.root().parent().expect("a folder").display().to_string();
    let members = json!([
        {"roleId": "ada", "task": "Good."},
        {"roleId": "nobody", "task": " "},
        {"roleId": "broken", "task": "x"},
        {"roleId": "scribe", "task": "x", "cwd": "/etc"},
        {"roleId": "old", "task": "x", "cwd": "../.."},
        {"roleId": "ada", "task": "x", "cwd": outside},
        {"roleId": "ada", "task": "x", "cwd": ".git"},
        {"roleId": "ada", "task": "x", "cwd": "nowhere"},
        {"roleId": "ada", "task": "x", "cwd": "src/lib.rs"},
        {"roleId": "ada", "task": "x", "chatId": "squad-ada-20260105-090000-000001"},
        {"roleId": "ada", "task": "x", "engine": "$(touch executed)"},
        {"roleId": "", "task": "x", "engine": ""},
        {"roleId": "ada\u{0}", "task": "a\u{0}b", "cwd": "a\u{0}b"},
    ]);
    let said = client.refused("start_squad_members", json!({"members": members}));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "no member was started:");
    for (index, expected) in [
        (1, "there is no role `nobody`"),
        (1, "`task` is empty"),
        (2, "front matter must be YAML"),
        (3, "there is no role `scribe`"),
        (3, "`cwd` \"/etc\" is outside of the project"),
        (4, "there is no role `old`"),
        (4, "`cwd` \"../..\" is outside of the project"),
        (5, "is outside of the project"),
        (6, "`cwd` \".git\" is git's"),
        (7, "`cwd` \"nowhere\" cannot be used"),
        (8, "is not a folder"),
        (9, "STATE_MODE=stateful"),
        (10, "there is no engine"),
        (11, "`roleId` is empty"),
        (12, "`task` has a NUL character"),
        (12, "cannot be used"),
    ] {
        let begins = format!("- members[{index}]: ");
        assert!(lines.iter().any(|line| line.starts_with(&begins) && line.contains(expected)), "{expected}: {said}");
    }
    assert!(!said.contains("members[0]"), "{said}");
    for (wrong, expected) in [
        (json!({"members": []}), "`members` must have 1 to 64 items, not 0"),
        (json!({}), "`members` is missing"),
        (json!({"members": [{"roleId": "ada"}]}), "`members[0].task` is missing"),
        (
            json!({"members": [{"roleId": "ada", "task": "x", "shell": "sh"}]}),
            "there is no argument `members[0].shell`",
        ),
        (
            json!({"members": vec![json!({"roleId": "ada", "task": "x"}); 65]}),
            "`members` must have 1 to 64 items, not 65",
        ),
        (
            json!({"members": [{"roleId": "ada", "task": "x", "timeoutSec": 0}]}),
            "`members[0].timeoutSec` must be between 1 and 86400 seconds",
        ),
    ] {
        let said = client.refused("start_squad_members", wrong);
        assert!(said.contains(expected), "{said}");
    }
    // Nothing ran, and nothing was executed.
    assert_eq!(repo.squad(&["log", "--json"]).out, "{\"runs\":[]}\n");
    assert!(!repo.exists("executed"));
}

#[cfg(unix)]
/// Callers of other servers of its kind send more; what changes nothing is named.
#[test]
fn what_other_servers_take_is_named_and_stops_nobody() {
    let (repo, script) = world(&say("ada", "Done."));
    let mut client = client(&repo, &script, &[], &[]);
    let members = json!([{"roleId": "ada", "task": "Look."}]);
    let asked = json!({"members": members, "orchestratorChatId": "chat-42", "workspaceId": "/elsewhere"});
    let result = client.structured("start_squad_members", asked);
    assert_eq!(result["members"][0]["text"], "Done.", "{result}");
    let notes = result["notes"].as_array().expect("notes");
    for (note, name) in notes.iter().zip(["orchestratorChatId", "workspaceId"]) {
        assert!(note.as_str().expect("a text").starts_with(&format!("`{name}` ")), "{result}");
    }
    assert_eq!(notes.len(), 2, "{result}");
    assert_eq!(client.structured("start_squad_members", json!({"members": members})).get("notes"), None);
    let said = client.refused("start_squad_members", json!({"members": members, "orchestratorChat": "x"}));
    assert!(said.contains("there is no argument `orchestratorChat`") && !said.contains("workspaceId"), "{said}");
    let tools = client.request("tools/list", json!({}));
    assert!(!tools.to_string().contains("orchestratorChatId"), "{tools}");
}

#[test]
fn a_folder_that_leads_out_of_the_project_is_refused() {
    let (repo, script) = world("");
    std::os::unix::fs::symlink("/etc", repo.root().join("inner")).expect("a link");
    let mut client = client(&repo, &script, &[], &[]);
    let members = json!([{"roleId": "ada", "task": "x", "cwd": "inner"}]);
    let said = client.refused("start_squad_members", json!({"members": members}));
    assert!(said.contains("is outside of the project"), "{said}");
}

#[test]
fn many_members_work_under_a_cap() {
    let (repo, script) = world(&say("nobody", ""));
    let mut client = client(&repo, &script, &["--max-concurrent", "4"], &[]);
    let members: Vec<Value> =
        (1..=32).map(|number| json!({"roleId": "tester", "task": format!("Part {number}.")})).collect();
    let started = client.structured("start_squad_members", json!({"members": members, "wait": false}));
    let run = started["squadId"].clone();
    let mut at_once = 0;
    let result = until(&mut client, &run, |result| {
        let members = result["members"].as_array().expect("a list");
        assert!(members.iter().filter(|member| member["status"] == "running").count() <= 4, "{result}");
        is_over(result)
    });
    for member in result["members"].as_array().expect("a list") {
        assert_eq!(member["status"], "completed", "{member}");
        at_once += 1;
    }
    assert_eq!((at_once, &result["status"]), (32, &json!("completed")));
    // As the run's own events say it, whatever we happened to see.
    let events = repo.squad(&["log", "--json", run.as_str().expect("an id")]).out;
    let (mut open, mut most) = (0, 0);
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        match event["type"].as_str() {
            Some("session.created") => open += 1,
            Some("agent.completed") => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    assert_eq!((most, open), (4, 0));
}

#[test]
fn a_run_outlives_its_server_and_is_read_by_the_next() {
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ wait = \"2s\" }, { say = \"Late.\" }]\n";
    let (repo, script) = world(script);
    let members = json!([{"roleId": "ada", "task": "Take your time."}]);
    let mut first = client(&repo, &script, &[], &[]);
    let started = first.structured("start_squad_members", json!({"members": members, "wait": false}));
    assert_eq!(started["status"], "running", "{started}");
    let run = started["squadId"].clone();
    // Killed, with its group and without a word.
    first.child.kill().expect("it lives");
    first.child.wait().expect("it ends");
    let mut next = client(&repo, &script, &[], &[]);
    let result = until(&mut next, &run, is_over);
    assert_eq!(result["members"][0]["status"], "completed", "{result}");
    assert_eq!(result["members"][0]["rawStdout"], "Late.");
}

/// The process that a server has ready for its next run: those at work lead sessions of their own.
#[cfg(target_os = "linux")]
fn spare_of(server: u32) -> i32 {
    let is_spare = |id: i32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let fields: Vec<i32> =
            stat.rsplit_once(')')?.1.split_whitespace().skip(1).take(3).flat_map(str::parse).collect();
        let command = fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
        (fields.first() == i32::try_from(server).ok().as_ref() && fields.get(2) != Some(&id))
            .then(|| command.ends_with("\0carry\0"))
    };
    let begun = Instant::now();
    loop {
        let processes = fs::read_dir("/proc").expect("a folder").flatten();
        let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        if let Some(spare) = ids.find(|id| is_spare(*id) == Some(true)) {
            return spare;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no process waits for the next run");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// It may be a zombie: those have closed their files.
#[cfg(target_os = "linux")]
fn until_dead(process: i32) {
    let begun = Instant::now();
    let is_alive = |stat: String| stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']));
    while fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(is_alive) {
        assert!(begun.elapsed() < Duration::from_secs(60), "process {process} goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_waits_for_a_run_may_be_killed_or_suspended_and_ends_with_its_server() {
    let (repo, script) = world(&say("ada", "Done."));
    let mut client = client(&repo, &script, &[], &[]);
    let server = client.child.id();
    let mut start = || {
        let members = json!([{"roleId": "ada", "task": "Build it."}]);
        let result = client.structured("start_squad_members", json!({"members": members}));
        assert_eq!(result["status"], "completed", "{result}");
        spare_of(server)
    };
    let killed = start();
    let id = rustix::process::Pid::from_raw(killed).expect("an id");
    rustix::process::kill_process(id, rustix::process::Signal::KILL).expect("it lives");
    until_dead(killed);
    // One that somebody has suspended is replaced.
    let suspended = start();
    let id = rustix::process::Pid::from_raw(suspended).expect("an id");
    rustix::process::kill_process(id, rustix::process::Signal::STOP).expect("it lives");
    let used = start();
    until_dead(suspended);
    let waiting = start();
    assert!(![killed, suspended, used].contains(&waiting));
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    assert_eq!(log["runs"].as_array().map(Vec::len), Some(4), "{log}");
    client.child.kill().expect("it lives");
    client.child.wait().expect("it ends");
    until_dead(waiting);
}

#[cfg(unix)]
#[test]
fn resuming_is_not_recommended_for_a_killed_run_that_cannot_be_resumed() {
    let (repo, script) = world("[[turn]]\nagent = \"ada\"\nsteps = [{ hang = true }]\n");
    let mut client = client(&repo, &script, &[], &[]);
    let members = json!([{"roleId": "ada", "task": "Never end."}]);
    let started = client.structured("start_squad_members", json!({"members": members, "wait": false}));
    let run = started["squadId"].as_str().expect("an id");
    let status: Value = serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON");
    let process = status["runs_live"][0]["pid"].as_i64().and_then(|id| i32::try_from(id).ok()).expect("an id");
    let id = rustix::process::Pid::from_raw(process).expect("an id");
    rustix::process::kill_process(id, rustix::process::Signal::KILL).expect("it lives");
    assert_eq!(until(&mut client, &json!(run), is_over)["status"], "lost");
    let expected = "its MCP client can start the members again";
    let said = repo.squad(&["status"]).out;
    let row = said.lines().find(|line| line.contains(" was killed ")).expect("a row");
    assert!(row.ends_with(expected) && !said.contains("--resume"), "{said}");
    let status: Value = serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON");
    assert_eq!(status["runs_lost"], json!([run]));
    // Before and after its end is recorded.
    for _ in 0..2 {
        let said = repo.squad(&["cancel", run]);
        assert!(said.code == 1 && said.err.contains(expected) && !said.err.contains("--resume"), "{said}");
        repo.squad(&["gc"]);
    }
}

#[cfg(unix)]
#[test]
fn a_server_whose_directory_is_deleted_says_so_and_works_again_once_it_is_back() {
    let (repo, script) = world(&say("ada", "Done."));
    let script = script.display().to_string();
    let folder = repo.root().join("src/deep");
    fs::create_dir(&folder).expect("a folder");
    let variables = [("SQUAD_REHEARSAL", script.as_str())];
    let mut client = McpClient::start_in(&repo, &folder, &["--engine", "rehearsal"], &variables).greet("2025-11-25");
    let members = json!({"members": [{"roleId": "ada", "task": "Build it."}]});
    let start = |client: &mut McpClient| {
        let result = client.structured("start_squad_members", members.clone());
        assert_eq!(result["members"][0]["status"], "completed", "{result}");
    };
    // With a process that waits for the next run, and without one.
    for runs in 0..=1 {
        (0..runs).for_each(|_| start(&mut client));
        fs::remove_dir(&folder).expect("it is empty");
        for (tool, arguments) in [("list_roles", json!({})), ("start_squad_members", members.clone())] {
            let said = client.refused(tool, arguments);
            assert!(said.contains("there is no folder ") && said.contains("/src/deep\nhint: "), "{said}");
        }
        fs::create_dir(&folder).expect("a folder");
        assert_eq!(client.structured("list_roles", json!({}))["roles"][0]["id"], "ada");
        start(&mut client);
    }
}

#[test]
fn the_end_of_input_ends_the_server_and_loses_nothing() {
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ wait = \"2s\" }, { say = \"Late.\" }]\n";
    let (repo, script) = world(script);
    let mut first = client(&repo, &script, &[], &[]);
    let members = json!([{"roleId": "ada", "task": "Take your time."}]);
    let id = first.begin_call("start_squad_members", json!({"members": members}));
    let (said, code) = first.close();
    assert_eq!(code, 0);
    let answer = said.iter().find(|message| message["id"] == id).unwrap_or_else(|| panic!("{said:?}"));
    let run = answer["result"]["structuredContent"]["squadId"].clone();
    let mut next = client(&repo, &script, &[], &[]);
    let result = until(&mut next, &run, is_over);
    assert_eq!(result["members"][0]["rawStdout"], "Late.", "{result}");
}

#[test]
fn a_client_that_reads_no_more_ends_the_server_and_not_the_run() {
    let (repo, script) = world("[[turn]]\nagent = \"ada\"\nsteps = [{ hang = true }]\n");
    let mut first = client(&repo, &script, &[], &[]);
    let members = json!([{"roleId": "ada", "task": "Never end."}]);
    let run = first.structured("start_squad_members", json!({"members": members, "wait": false}))["squadId"].clone();
    first.begin_call("get_run", json!({"squadId": run, "waitSec": 50}));
    first.deafen();
    let begun = Instant::now();
    while first.child.try_wait().expect("a child").is_none() {
        // It notices when it has something to say.
        let _ = first.try_write(b"no JSON\n");
        assert!(begun.elapsed() < Duration::from_secs(40), "it waits for the run's end");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut next = client(&repo, &script, &[], &[]);
    assert_eq!(next.structured("cancel_run", json!({"squadId": run}))["status"], "cancelled");
}

#[test]
fn a_cancelled_call_ends_its_run_and_is_not_answered_and_impatience_does_not() {
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Begun.\" }, { hang = true }]\n".repeat(3);
    let (repo, script) = world(&script);
    let mut client = client(&repo, &script, &[], &[]);
    let members = json!([{"roleId": "ada", "task": "Never end."}]);
    let runs = |repo: &TestRepo| -> Vec<(String, String)> {
        let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
        let runs = log["runs"].as_array().expect("a list").iter();
        runs.map(|run| {
            (run["run"].as_str().expect("an id").to_owned(), run["status"].as_str().expect("a word").to_owned())
        })
        .collect()
    };
    let wait_for = |count: usize, status: &str| {
        let begun = Instant::now();
        loop {
            let found = runs(&repo);
            if found.len() == count && found[0].1 == status {
                return found[0].0.clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{found:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let id = client.begin_call("start_squad_members", json!({"members": members}));
    wait_for(1, "running");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": id, "reason": "the user stopped it"}}));
    wait_for(1, "cancelled");

    let late = client.begin_call("start_squad_members", json!({"members": members}));
    let run = wait_for(2, "running");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": late, "reason": "McpError: MCP error -32001: Request timed out"}}));
    let result = client.structured("get_run", json!({"squadId": run, "waitSec": 1}));
    assert_eq!(
        (&result["status"], &result["members"][0]["status"]),
        (&json!("running"), &json!("running")),
        "{result}"
    );
    // By hand, and twice.
    let result = client.structured("cancel_run", json!({"squadId": run}));
    assert_eq!(
        (&result["status"], &result["members"][0]["status"]),
        (&json!("cancelled"), &json!("error")),
        "{result}"
    );
    assert_eq!(client.structured("cancel_run", json!({"squadId": run}))["status"], "cancelled");
    let (said, _) = client.close();
    assert_eq!(said.iter().find(|message| message["id"] == id || message["id"] == late), None);
}

#[test]
fn progress_is_told_from_the_beginning_where_it_is_asked_for() {
    let (repo, script) = world(&say("ada", "Done."));
    let mut client = client(&repo, &script, &[], &[]);
    let members = json!([{"roleId": "ada", "task": "Be quick."}]);
    let call =
        json!({"name": "start_squad_members", "arguments": {"members": members}, "_meta": {"progressToken": "t"}});
    client.request("tools/call", call);
    let told = client.heard.iter().filter(|message| message["method"] == "notifications/progress");
    let told: Vec<f64> = told
        .map(|message| {
            assert_eq!(message["params"]["progressToken"], "t");
            message["params"]["progress"].as_f64().expect("a number")
        })
        .collect();
    assert!(!told.is_empty() && told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
}

#[test]
fn chats_are_ours_and_go_on_with_the_task_alone() {
    let script = say("ada", "First.") + &say("ada", "Second.");
    let (repo, script) = world(&script);
    let stateful = [("STATE_MODE", "stateful")];
    let mut client = client(&repo, &script, &[], &stateful);
    let first = client.structured("start_squad_members", json!({"members": [{"roleId": "ada", "task": "Begin."}]}));
    let chat = first["members"][0]["chatId"].as_str().expect("a handle").to_owned();
    let run = first["squadId"].as_str().expect("an id");
    let prompt = client.request("resources/read", json!({"uri": format!("squad://runs/{run}/ada/prompt")}));
    assert!(prompt.to_string().contains("# Initial Task\\n\\nBegin."), "{prompt}");
    for (role, chat, expected) in [
        ("tester", chat.as_str(), "belongs to a member in the role `ada`"),
        ("ada", "squad-ada-20200101-000000-abcdef", "is not one that squad has given out here"),
        ("ada", "7f3e; rm -rf /", "is not one that squad has given out here"),
        ("ada", "../../etc/passwd", "is not one that squad has given out here"),
    ] {
        let members = json!([{"roleId": role, "task": "x", "chatId": chat}]);
        let said = client.refused("start_squad_members", json!({"members": members}));
        assert!(said.contains(expected), "{said}");
    }
    let again = json!([{"roleId": "ada", "task": "Go on.", "chatId": chat}]);
    let twice = json!([again[0], again[0]]);
    assert!(client.refused("start_squad_members", json!({"members": twice})).contains("is used twice"));
    let second = client.structured("start_squad_members", json!({"members": again}));
    assert_eq!(second["members"][0]["chatId"], chat.as_str(), "{second}");
    let run = second["squadId"].as_str().expect("an id");
    let prompt = client.request("resources/read", json!({"uri": format!("squad://runs/{run}/ada/prompt")}));
    let text = prompt["result"]["contents"][0]["text"].as_str().expect("a text");
    assert!(text.starts_with("# Task\n\nGo on.\n\n---"), "{text}");
    // From a later chat too.
    let members = json!([{"roleId": "ada", "task": "x", "chatId": chat}]);
    let third = client.structured("start_squad_members", json!({"members": members}));
    assert_eq!(third["members"][0]["chatId"], chat.as_str());
}

#[test]
fn wrong_values_in_the_environment_are_refused_at_the_start() {
    let repo = TestRepo::with_small_team();
    for (name, value) in [("STATE_MODE", "sometimes"), ("PROCESS_TIMEOUT_MS", "soon"), ("PROCESS_TIMEOUT_MS", "-1")] {
        let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        let output = command.arg("mcp").env(name, value).output().expect("squad starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
        assert!(said.contains(name) && said.contains(value) && said.contains("hint:"), "{said}");
    }
}

#[test]
fn a_wrong_value_of_an_option_is_refused_at_the_start() {
    let repo = TestRepo::with_small_team();
    for more in [&["--check"][..], &[]] {
        let output = repo.squad(&[&["mcp", "--max-concurrent", "0"], more].concat());
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{output}");
        assert!(output.err.contains("--max-concurrent") && output.err.contains("from 1 to 256, not 0"), "{output}");
    }
}

#[test]
fn long_output_is_cut_in_replies_and_whole_behind_its_link() {
    let long = "0123456789ü".repeat(40_000);
    let (repo, script) = world(&say("ada", &long));
    let mut client = client(&repo, &script, &[], &[]);
    let task = "x".repeat(140 * 1024);
    let result = client.structured("start_squad_members", json!({"members": [{"roleId": "ada", "task": task}]}));
    let member = &result["members"][0];
    assert_eq!((&member["status"], &member["truncated"]), (&json!("completed"), &json!(true)));
    let shown = member["rawStdout"].as_str().expect("a text");
    assert!(shown.len() < 200_000 && long.ends_with(shown), "{}", shown.len());
    let whole = client.request("resources/read", json!({"uri": member["logUri"]}));
    assert!(whole["result"]["contents"][0]["text"] == long.as_str(), "it is not whole");

    // Above the size of a reply, it is the end, and where all of it is.
    let folder = repo.root().join(".git/squad/output");
    let session = fs::read_dir(&folder).expect("a folder").next().expect("an entry").expect("it is there");
    let file = session.path().join("result.prompt");
    assert!(file.is_file());
    let size = 17 * 1024 * 1024;
    let line = format!("{}\n", "x".repeat(1023));
    fs::write(&file, line.repeat(size / 1024)).expect("it is written");
    let end = client.request(
        "resources/read",
        json!({"uri": format!("squad://runs/{}/ada/prompt", result["squadId"].as_str().expect("an id"))}),
    );
    let text = end["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{end}"));
    let (first, rest) = text.split_once('\n').expect("lines");
    let path = file.strip_prefix(repo.root()).expect("it is inside").to_string_lossy().replace('\\', "/");
    let kept = 16 * 1024 * 1024 - 1024;
    assert_eq!(first, format!("[the first {} of {size} bytes are left out; all are in {path}]", size - kept));
    assert!(rest.len() == kept && rest.starts_with("xxx") && rest.ends_with("x\n"), "{}", rest.len());
}

/// One member, and then the run: in the words of the tool, with and without `memberId`.
#[test]
fn a_member_is_cancelled_and_the_others_go_on_until_the_run_is() {
    let hangs =
        |agent: &str| format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{{ say = \"Begun.\" }}, {{ hang = true }}]\n");
    let (repo, script) = world(&(hangs("ada") + &hangs("tester") + &hangs("tester-2")));
    let mut client = client(&repo, &script, &[], &[]);
    let members =
        json!([{"roleId": "ada", "task": "x"}, {"roleId": "tester", "task": "x"}, {"roleId": "tester", "task": "x"}]);
    let started = client.structured("start_squad_members", json!({"members": members, "wait": false}));
    let run = &started["squadId"];
    let states = |result: &Value| -> Vec<String> {
        let members = result["members"].as_array().expect("a list").iter();
        members.map(|member| member["status"].as_str().expect("a word").to_owned()).collect()
    };
    until(&mut client, run, |result| states(result) == ["running"; 3]);
    for (member, status, expected) in [
        (Some("tester"), "running", ["running", "error", "running"]),
        // Again, which changes nothing.
        (Some("tester"), "running", ["running", "error", "running"]),
        (Some("ada"), "running", ["error", "error", "running"]),
        (None, "cancelled", ["error"; 3]),
        (Some("ada"), "cancelled", ["error"; 3]),
    ] {
        let mut asked = json!({"squadId": run});
        if let Some(member) = member {
            asked["memberId"] = member.into();
        }
        client.structured("cancel_run", asked);
        let result = until(&mut client, run, |result| states(result) == expected);
        assert_eq!(result["status"], status, "{member:?} {result}");
    }
}

/// A chat that a live run is in, asked for by its own server and by another process.
#[test]
fn a_chat_in_use_is_refused_to_every_process_until_its_run_is_over() {
    let (repo, script) = world(&say("ada", "First."));
    let stateful = [("STATE_MODE", "stateful")];
    let mut ours = client(&repo, &script, &[], &stateful);
    let first = ours.structured("start_squad_members", json!({"members": [{"roleId": "ada", "task": "Begin."}]}));
    let chat = first["members"][0]["chatId"].as_str().expect("a handle").to_owned();
    let member = |chat: &str| json!({"members": [{"roleId": "ada", "task": "Go on.", "chatId": chat}], "wait": false});
    // Each run plays the script from its beginning.
    let hangs = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Begun.\" }, { hang = true }]\n";
    fs::write(&script, hangs).expect("a script");
    let second = ours.structured("start_squad_members", member(&chat));
    let run = &second["squadId"];
    until(&mut ours, run, |result| result["members"][0]["status"] == "running");
    let mut other = client(&repo, &script, &[], &stateful);
    for client in [&mut ours, &mut other] {
        let said = client.refused("start_squad_members", member(&chat));
        assert!(said.contains(&format!("chatId `{chat}` is in use by run {}", run.as_str().expect("an id"))), "{said}");
    }
    ours.structured("cancel_run", json!({"squadId": run}));
    until(&mut ours, run, is_over);
    fs::write(&script, say("ada", "Third.")).expect("a script");
    let third = other.structured("start_squad_members", member(&chat));
    assert_eq!(third["members"][0]["chatId"], chat.as_str(), "{third}");
}
