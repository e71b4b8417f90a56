//! `squad mcp` in a repository without a team, and what a reply has room for.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::support::{TestRepo, temporary};

/// A repository with a commit, and members that play this script.
fn plain(script: &str) -> (TestRepo, PathBuf) {
    let repo = TestRepo::empty();
    repo.write("src/lib.rs", "// Nothing yet.\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    let path = repo.root().parent().expect("a folder").join("script.toml");
    fs::write(&path, script).expect("a script");
    (repo, path)
}

fn client(repo: &TestRepo, script: &Path, arguments: &[&str]) -> McpClient {
    started(repo, script, arguments).greet("2025-11-25")
}

fn started(repo: &TestRepo, script: &Path, arguments: &[&str]) -> McpClient {
    let script = script.display().to_string();
    let arguments = [arguments, &["--engine", "rehearsal"]].concat();
    McpClient::start_in(repo, &repo.root(), &arguments, &[("SQUAD_REHEARSAL", &script)])
}

fn say(agent: &str, text: &str) -> String {
    format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{{ say = {} }}]\n", json!(text))
}

#[test]
fn members_work_without_a_team_and_are_recorded() {
    let (repo, script) = plain(&(say("reviewer", "One finding.") + &say("security", "None.")));
    for (path, text) in [
        (".claude/agents/security.md", "---\nname: security\ndescription: Looks for holes\n---\nYou look for holes.\n"),
        (".github/agents/triage.agent.md", "---\ndescription: Sorts issues\n---\nYou sort issues.\n"),
        (".github/agents/squad.agent.md", "---\nname: squad\n---\nCall squad.\n"),
        ("agents/reviewer.md", "---\nname: Own\n---\nYou review as we do.\n"),
        (".codex/agents/release.toml", "name = \"release\"\ndeveloper_instructions = \"You release.\"\n"),
        (".codex/agents/odd.toml", "name = 1\n"),
        (".codex/agents/broken.md", "---js\nmodule.exports = {}\n---\nx\n"),
    ] {
        repo.write(path, text);
    }
    let mut client = client(&repo, &script, &[]);
    let listed = client.structured("list_roles", json!({}));
    let roles: Vec<String> = listed["roles"]
        .as_array()
        .expect("roles")
        .iter()
        .map(|role| format!("{} {} {}", role["id"].as_str().expect("an id"), role["source"], role["error"].is_null()))
        .collect();
    assert_eq!(
        roles,
        [
            "security \".claude/agents/security.md\" true",
            "triage \".github/agents/triage.agent.md\" true",
            "odd \".codex/agents/odd.toml\" false",
            "release \".codex/agents/release.toml\" true",
            "broken \".codex/agents/broken.md\" false",
            "reviewer \"agents/reviewer.md\" true",
            "tester \"built in\" true",
            "researcher \"built in\" true",
            "writer \"built in\" true",
            "planner \"built in\" true",
            "debugger \"built in\" true",
        ]
    );
    let members = json!([{"roleId": "reviewer", "task": "Review it."}, {"roleId": "security", "task": "Look."}]);
    let result = client.structured("start_squad_members", json!({ "members": members }));
    assert_eq!(result["status"], "completed", "{result}");
    let texts = [&result["members"][0]["text"], &result["members"][1]["text"]];
    assert_eq!(texts, ["One finding.", "None."], "{result}");
    let run = result["squadId"].as_str().expect("an id").to_owned();
    assert_eq!(client.structured("get_run", json!({ "squadId": run }))["members"][0]["text"], "One finding.");

    let said = client.refused("orchestrate", json!({"message": "Add a test"}));
    assert!(said.contains("there is no team here") && said.contains("`start_squad_members`"), "{said}");

    let logged = client.structured("log_decision", json!({"decision": "Prices are integer cents"}));
    let decisions = client.structured("list_decisions", json!({}));
    assert_eq!(decisions["decisions"][0]["id"], logged["id"], "{decisions}");
    assert_eq!(decisions["decisions"][0]["state"], "unlanded", "{decisions}");

    // The command line knows of it too, and nothing was put into the work tree.
    let log = repo.squad(&["log", "--json"]);
    assert!(log.code == 0 && log.out.contains(&run), "{log}");
    let list = repo.squad(&["decisions", "list", "--json"]);
    assert!(list.code == 0 && list.out.contains("Prices are integer cents"), "{list}");
    assert_eq!(repo.squad(&["status"]).code, 0);
    let doctor = repo.squad(&["doctor"]);
    assert!(!doctor.to_string().contains("there is no team in"), "{doctor}");
    assert!(!repo.exists(".squad"));
    let again = repo.squad(&["orchestrate", "Add a test"]);
    assert!(again.code == 3 && again.err.contains("there is no team in"), "{again}");
    repo.assert_sound();
}

/// What members changed is shown and taken back where there is no team, too.
#[test]
fn changes_without_a_team_are_shown_and_taken_back() {
    let script =
        "[[turn]]\nagent = \"planner\"\nsteps = [{ write = \"new.txt\", text = \"made\\n\" }, { say = \"Done.\" }]\n";
    let (repo, script) = plain(script);
    let mut client = client(&repo, &script, &["--permissions", "allow"]);
    let members = json!([{"roleId": "planner", "task": "Make it."}]);
    let result = client.structured("start_squad_members", json!({ "members": members }));
    assert_eq!(result["members"][0]["status"], "completed", "{result}");
    drop(client);
    let run = result["squadId"].as_str().expect("an id");
    let shown = repo.squad(&["diff", run]);
    assert!(shown.code == 0 && shown.out.contains("new.txt"), "{shown}");
    let undone = repo.squad(&["undo", run, "--yes"]);
    assert!(undone.code == 0 && !repo.exists("new.txt"), "{undone}");
    let (unknown, _) = plain("");
    for command in [&["diff"][..], &["undo", "x", "--yes"]] {
        let said = unknown.squad(command);
        assert!(said.code == 3 && said.err.contains("there is no team in"), "{said}");
    }
}

/// The client's own engine, where it is ready; else the first that is.
#[test]
fn members_run_on_the_engine_of_the_host() {
    let folder = temporary::folder();
    let (repo, _) = plain("");
    for (name, said) in [("claude", "claude was here"), ("codex", "codex was here")] {
        // Each serves sessions in its protocol.
        let message = json!({"type": "assistant", "message": {"content": [{"type": "text", "text": said}]}});
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": said});
        let begun = json!({"type": "control_response", "response": {"subtype": "success", "request_id": "1"}});
        let kept = folder.path().join(format!("{name}.login"));
        let login = format!("case \"$*\" in *status) [ -e '{}' ]; exit;; esac\n", kept.display());
        let text = match name {
            "claude" => format!(
                "#!/bin/sh\n{login}while read -r line; do case \"$line\" in *initialize*) echo '{begun}';; \
                 *'\"type\":\"user\"'*) echo '{message}'; echo '{result}';; esac; done\n"
            ),
            _ => {
                let item = json!({"type": "agentMessage", "id": "m", "text": said});
                let said = json!({"method": "item/completed", "params": {"item": item}});
                let ended = json!({"method": "turn/completed", "params": {"turn": {"status": "completed"}}});
                format!(
                    "#!/bin/sh\n{login}while read -r line; do id=$(printf '%s' \"$line\" | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p'); \
                     case \"$line\" in *'\"initialize\"'*) r='{{\"userAgent\":\"squad/0.169.0\"}}';; \
                     *thread/start*) r='{{\"thread\":{{\"id\":\"t\"}}}}';; \
                     *turn/start*) echo '{said}'; echo '{ended}'; r='{{}}';; *'\"id\"'*) r='{{}}';; *) continue;; esac; \
                     echo \"{{\\\"id\\\":$id,\\\"result\\\":$r}}\"; done\n"
                )
            }
        };
        crate::support::script::write(&folder.path().join(name), &text);
    }
    let path = format!("{}:{}", folder.path().display(), repo.variables["PATH"]);
    for (name, logins, engine) in [
        ("codex-mcp-client", &["claude", "codex"][..], "codex"),
        ("codex-mcp-client", &["claude"], "claude"),
        ("claude-code", &["claude", "codex"], "claude"),
        ("claude-code", &["codex"], "codex"),
        ("claude-code", &[], "claude"),
        ("some-editor", &["claude", "codex"], "claude"),
        ("some-editor", &["codex"], "codex"),
    ] {
        for engine in ["claude", "codex"] {
            let kept = folder.path().join(format!("{engine}.login"));
            let _ = fs::remove_file(&kept);
            if logins.contains(&engine) {
                fs::write(kept, "").expect("a file");
            }
        }
        let mut client = McpClient::start_in(&repo, &repo.root(), &[], &[("PATH", &path)]);
        let info = json!({"name": name, "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        client.request("initialize", hello);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let members = json!([{"roleId": "reviewer", "task": "Review it."}]);
        let result = client.structured("start_squad_members", json!({ "members": members }));
        let raw = result["members"][0]["rawStdout"].as_str().expect("an output");
        assert_eq!(raw, format!("{engine} was here"), "{name}: {result}");
    }
}

#[test]
fn engines_can_be_found_out() {
    let (repo, script) = plain("");
    let mut client = client(&repo, &script, &[]);
    let found = client.structured("list_engines", json!({}));
    let engines = found["engines"].as_array().expect("engines");
    let of = |name: &str| engines.iter().find(|engine| engine["name"] == name).expect("it is listed");
    let rehearsal = of("rehearsal");
    assert_eq!((&rehearsal["ready"], &rehearsal["chosen"]), (&json!(true), &json!(true)), "{found}");
    let claude = of("claude");
    assert_eq!(
        (&claude["installed"], &claude["ready"], &claude["chosen"]),
        (&json!(false), &json!(false), &json!(false))
    );
    assert!(claude["problem"].as_str().is_some_and(|problem| problem.contains("npm install")), "{claude}");
}

/// All members' answers fit into what hosts keep: short ones whole, the longest cut, with a link to the whole.
#[test]
fn a_reply_keeps_to_its_budget() {
    let long = "a \"line\"\n".repeat(5_000);
    let mut script = say("reviewer", &long) + &say("tester", &long) + &say("writer", "Short.");
    script +=
        "[[turn]]\nagent = \"planner\"\nsteps = [{ write = \"made.txt\", text = \"x\\n\" }, { say = \"Made.\" }]\n";
    let (repo, script) = plain(&script);
    let mut client = client(&repo, &script, &["--permissions", "allow"]);
    let members = ["reviewer", "tester", "writer", "planner"].map(|role| json!({"roleId": role, "task": "Do it."}));
    let result = client.structured("start_squad_members", json!({ "members": members }));
    assert!(result.to_string().len() <= 20 * 1024, "{}", result.to_string().len());
    let of = |index: usize, field: &str| result["members"][index][field].clone();
    assert_eq!((of(2, "text"), of(2, "textUri")), (json!("Short."), Value::Null));
    assert_eq!(of(3, "changed"), json!([{"path": "made.txt", "added": 1, "removed": 0}]), "{result}");
    assert!(of(3, "inputTokens").is_u64(), "{result}");
    for index in [0, 1] {
        let text = of(index, "text");
        let text = text.as_str().expect("a text");
        assert!(long.starts_with(text) && text.len() > 4_000, "{}", text.len());
        let uri = of(index, "textUri");
        let whole = client.request("resources/read", json!({ "uri": uri }));
        assert!(whole["result"]["contents"][0]["text"] == long.trim_end(), "{uri}");
    }
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    assert!(tools.to_string().len() <= 8 * 1024, "{}", tools.to_string().len());
    let described = tools
        .as_array()
        .expect("tools")
        .iter()
        .filter(|tool| tool["outputSchema"].is_object())
        .map(|tool| tool["name"].clone());
    assert_eq!(described.collect::<Vec<_>>(), ["start_squad_members"]);
}

/// Codex keeps less than other hosts. What was left out is behind the reply's link.
#[test]
fn a_reply_keeps_to_what_its_host_keeps() {
    let answer = "An answer of a few words. ".repeat(8);
    let others = (2..=63).map(|number| say(&format!("planner-{number}"), &answer));
    let fails = "[[turn]]\nagent = \"planner-64\"\nsteps = [{ fail = \"no compiler\" }]\n";
    let script = say("planner", &answer) + &others.collect::<String>() + fails;
    for (name, room) in [("codex-mcp-client", 8 * 1024), ("claude-code", 20 * 1024)] {
        let (repo, script) = plain(&script);
        let mut client = started(&repo, &script, &[]);
        let info = json!({"name": name, "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        client.request("initialize", hello);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let members: Vec<Value> = (0..64).map(|_| json!({"roleId": "planner", "task": "Do it."})).collect();
        let mut result = client.structured("start_squad_members", json!({"members": members, "wait": false}));
        while result["status"] == "running" {
            result = client.structured("get_run", json!({"squadId": result["squadId"], "waitSec": 30}));
        }
        let size = result.to_string().len();
        assert!((room / 2..=room).contains(&size), "{name}: {size}");
        let shown = result["members"].as_array().expect("a list");
        assert_eq!(shown.len(), 64, "{result}");
        assert!(shown[..63].iter().all(|member| member["status"] == "completed"), "{result}");
        assert_eq!((&shown[63]["status"], &shown[63]["reason"]), (&json!("error"), &json!("no compiler")), "{result}");
        let whole = client.request("resources/read", json!({"uri": result["uri"]}));
        let whole = whole["result"]["contents"][0]["text"].as_str().expect("a text").to_owned();
        let whole: Value = serde_json::from_str(&whole).expect("JSON");
        let texts = whole["members"].as_array().expect("a list").iter().filter(|one| one["text"] == answer.trim_end());
        assert_eq!(texts.count(), 63, "{whole}");
    }
}

/// One long decision is cut, many short ones are counted, and the resource has them all.
#[test]
fn listed_decisions_keep_to_what_the_host_keeps() {
    let long = "Money is cents. ".repeat(2_000);
    for (name, room) in [("codex-mcp-client", 8 * 1024), ("claude-code", 20 * 1024)] {
        let (repo, script) = plain(&say("planner", "Done."));
        let mut client = started(&repo, &script, &[]);
        let info = json!({"name": name, "version": "1"});
        client.request("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client.structured("log_decision", json!({"decision": "Money is cents", "context": long}));
        let one = client.structured("list_decisions", json!({}));
        assert_eq!((&one["decisions"][0]["truncated"], &one["decisionsMore"]), (&json!(true), &Value::Null), "{one}");
        for number in 0..30 {
            let context = "Because clients round. ".repeat(30);
            client.structured("log_decision", json!({"decision": format!("Rule {number}"), "context": context}));
        }
        let many = client.structured("list_decisions", json!({"limit": 25}));
        let size = many.to_string().len();
        assert!((room / 2..=room).contains(&size), "{name}: {size}");
        let shown = many["decisions"].as_array().map_or(0, Vec::len);
        assert_eq!(many["decisionsMore"], 25 - shown, "{many}");
        assert_eq!(
            (&many["decisions"][0]["title"], &many["decisions"][0]["truncated"]),
            (&json!("Rule 29"), &Value::Null)
        );
        let whole = client.request("resources/read", json!({"uri": "squad://decisions"}));
        let whole = whole["result"]["contents"][0]["text"].as_str().expect("a text").to_owned();
        assert!(whole.contains(long.trim_end()) && whole.contains("Rule 0"), "{whole}");
    }
}

/// Role files alone are no team: they are offered as in a repository without one.
#[test]
fn a_folder_of_roles_is_no_team() {
    for place in ["roles", "agents"] {
        let (repo, script) = plain(&say("guard", "Safe."));
        repo.write(&format!(".squad/{place}/guard.md"), "# Guard\n\nYou guard.\n");
        let mut client = client(&repo, &script, &[]);
        let roles = client.structured("list_roles", json!({}));
        let source = |id: &str| {
            let found = roles["roles"].as_array().into_iter().flatten().find(|role| role["id"] == id);
            found.map(|role| role["source"].clone())
        };
        assert_eq!(source("guard"), Some(json!(format!(".squad/{place}/guard.md"))), "{roles}");
        assert_eq!(source("planner"), Some(json!("built in")), "{roles}");
        let members = json!([{"roleId": "guard", "task": "Look."}]);
        let result = client.structured("start_squad_members", json!({ "members": members }));
        assert_eq!(result["members"][0]["text"], "Safe.", "{result}");
        let said = client.refused("init_squad", json!({}));
        assert!(said.contains("the user could not be asked"), "{said}");
        let logged = client.structured("log_decision", json!({"decision": "We guard."}));
        assert!(logged["id"].is_string(), "{logged}");
        drop(client);
        assert_eq!(repo.squad(&["log"]).code, 0);
        let made = repo.squad(&["init", "--yes"]);
        assert_eq!(made.code, 0, "{made}");
        assert!(repo.exists(".squad/team.md") && repo.exists(&format!(".squad/{place}/guard.md")));
        repo.assert_sound();
    }
}

#[test]
fn what_is_offered_is_what_can_be_had() {
    for (state, has_chats) in [("stateless", false), ("stateful", true)] {
        let mut repo = TestRepo::with_small_team();
        repo.variables.insert("STATE_MODE".to_owned(), state.to_owned());
        repo.write(".squad/roles/heading.md", "# Release Captain\n\nYou release.\n");
        repo.write(".squad/roles/told.md", "---\ndescription: Told.\n---\n# Other\n\nYou are told.\n");
        let mut client = McpClient::greeted(&repo, "2025-11-25", &[]);
        let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let input = |name: &str| {
            let found = tools.as_array().into_iter().flatten().find(|tool| tool["name"] == name);
            found.expect(name)["inputSchema"]["properties"].clone()
        };
        let member = input("start_squad_members")["members"]["items"]["properties"].clone();
        assert_eq!(member["chatId"].is_object(), has_chats, "{member}");
        for engines in [&member["engine"]["enum"], &input("review_changes")["engines"]["items"]["enum"]] {
            let engines = engines.as_array().expect("names");
            assert!(["copilot", "rehearsal", "claude", "codex"].iter().all(|name| engines.contains(&json!(name))));
        }
        let roles = client.structured("list_roles", json!({"query": "release"}));
        assert_eq!(roles["roles"][0]["description"], "Release Captain", "{roles}");
        let roles = client.structured("list_roles", json!({"query": "told"}));
        assert_eq!(roles["roles"][0]["description"], "Told.", "{roles}");
    }
}

/// A call does not wait for longer than the client does; the rest is told later, by the run's id.
#[test]
fn a_call_returns_with_the_answers_so_far() {
    let script =
        say("writer", "Early.") + "[[turn]]\nagent = \"tester\"\nsteps = [{ wait = \"6s\" }, { say = \"Late.\" }]\n";
    let (repo, script) = plain(&script);
    let mut client = client(&repo, &script, &["--wait", "2"]);
    let members = ["writer", "tester"].map(|role| json!({"roleId": role, "task": "Do it."}));
    let begun = Instant::now();
    let result = client.structured("start_squad_members", json!({ "members": members }));
    assert!(begun.elapsed() < Duration::from_secs(6), "{result}");
    assert_eq!((&result["status"], &result["members"][0]["text"]), (&json!("running"), &json!("Early.")), "{result}");
    assert_eq!(result["members"][1]["status"], "running", "{result}");
    let rest = client.structured("get_run", json!({"squadId": result["squadId"], "waitSec": 30}));
    assert_eq!(rest["members"][1]["text"], "Late.", "{rest}");
}
