//! `squad mcp`: work for the team, decisions, and a team where there is none.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::support::TestRepo;

#[test]
fn the_team_is_given_a_message_and_answers() {
    let repo = TestRepo::with_small_team();
    let mut client = McpClient::greeted(&repo, "2025-11-25", &["--engine", "rehearsal"]);
    let result =
        client.structured("orchestrate", json!({"message": "Write a unit test for the endpoint", "agents": ["bob"]}));
    assert_eq!((&result["status"], &result["agents"]["bob"]), (&json!("completed"), &json!("completed")), "{result}");
    assert!(result["answer"].as_str().is_some_and(|text| text.contains("(rehearsal)")), "{result}");
    let uri = format!("squad://runs/{}", result["squadId"].as_str().expect("an id"));
    let listed = client.request("resources/list", json!({}));
    assert!(listed.to_string().contains(&uri), "{listed}");
    let read = client.request("resources/read", json!({"uri": uri}));
    assert!(read.to_string().contains("Write a unit test"), "{read}");
    assert!(client.refused("orchestrate", json!({"message": " "})).contains("`message` is empty"));
    assert!(client.refused("orchestrate", json!({"message": "x", "agents": ["nobody"]})).contains("nobody"));
}

#[test]
fn decisions_are_logged_superseded_and_listed() {
    let repo = TestRepo::with_small_team();
    let mut client = McpClient::greeted(&repo, "2025-06-18", &[]);
    let first = client
        .structured("log_decision", json!({"decision": "Money is cents", "context": "No rounding.\n# A heading"}));
    let id = first["id"].as_str().expect("an id").to_owned();
    let second = client.structured("log_decision", json!({"decision": "Dates are UTC"}));
    let all = client.structured("list_decisions", json!({}));
    let titles = |all: &Value| -> Vec<String> {
        let decisions = all["decisions"].as_array().expect("a list").iter();
        decisions.map(|decision| decision["title"].as_str().expect("a title").to_owned()).collect()
    };
    assert_eq!(titles(&all), ["Dates are UTC", "Money is cents"]);
    assert_eq!(all["decisions"][1]["text"], "**Why:** No rounding.\n# A heading");
    assert_eq!(titles(&client.structured("list_decisions", json!({"limit": 1}))), ["Dates are UTC"]);
    assert_eq!(titles(&client.structured("list_decisions", json!({"query": "ROUNDING"}))), ["Money is cents"]);
    assert!(
        client
            .refused("log_decision", json!({"decision": "x", "supersedes": "../../x"}))
            .contains("is not a decision's id")
    );
    assert!(client.refused("log_decision", json!({"decision": " "})).contains("is empty"));
    let third = client.structured("log_decision", json!({"decision": "Money is decimal", "supersedes": id}));
    assert!(third["id"] != second["id"]);
    // The commands see the same.
    let listed = repo.squad(&["decisions", "list", "--json"]);
    assert!(listed.out.contains("Money is decimal"), "{listed}");
    let read = client.request("resources/read", json!({"uri": "squad://decisions"}));
    assert!(read.to_string().contains("Money is decimal"), "{read}");
    // Nobody in the foreground asked for a commit.
    assert_eq!(repo.git(&["rev-list", "--count", "HEAD"]).trim(), "1");
}

#[test]
fn a_team_is_installed_only_where_the_user_agrees() {
    let repo = TestRepo::empty();
    let mut client = McpClient::greeted(&repo, "2025-06-18", &[]);
    let said = client.refused("init_squad", json!({"preset": "solo"}));
    assert!(said.contains("squad init --preset solo"), "{said}");
    assert!(!repo.exists(".squad"));

    for (answer, is_installed, said) in [
        (json!({"action": "decline"}), false, "the client's answer was no"),
        (json!({"action": "accept", "content": {"confirm": false}}), false, "the client's answer was no"),
        (json!({"action": "cancel"}), false, "the user could not be asked"),
        (json!({"action": "accept", "content": {"confirm": true}}), true, "\"installed\":true"),
    ] {
        let mut client = McpClient::start(&repo, &[]);
        let capabilities = json!({"elicitation": {}});
        client.request("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": capabilities}));
        let id = client.begin_call("init_squad", json!({}));
        let question = client.next();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        let result = client.answer(id);
        assert_eq!(result["result"]["isError"], !is_installed, "{result}");
        let text = result["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(
            text.contains(said) && (is_installed || text.contains("have th") && text.contains("squad init")),
            "{text}"
        );
        assert_eq!(repo.exists(".squad/team.md"), is_installed);
    }
    // Where no team can be installed, nobody is asked.
    let outside = repo.root().parent().expect("a folder").to_owned();
    let mut stranger = McpClient::start_in(&repo, &outside, &[], &[]);
    let capabilities = json!({"elicitation": {}});
    stranger.request("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": capabilities}));
    let said = stranger.refused("init_squad", json!({}));
    assert!(said.contains("no git repository at ") && said.contains("git init"), "{said}");
    assert_eq!(stranger.heard, [Value::Null; 0]);

    let there = client.structured("init_squad", json!({}));
    assert_eq!(there, json!({"installed": false, "folder": ".squad"}));
}

#[test]
fn what_would_run_is_shown() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/roles/tester.md", "You test.\n");
    let output = repo.squad(&["mcp", "--check", "--engine", "rehearsal", "--max-concurrent", "3"]);
    assert_eq!(
        output.to_string(),
        "project      REPO\nroles        4: ada, bob, rex and tester\nengine       rehearsal\nstate        stateless\n\
         members      3 at the same time, 300 s each\npermissions  deny\n\
         governed     rehearsal: squad decides on each write and command\n--- exit 0\n"
    );
    let asking = repo.squad(&["mcp", "--check", "--permissions", "ask"]);
    assert!(asking.code == 2 && asking.err.contains("[possible values: allow, deny]"), "{asking}");
    repo.write(".squad/roles/broken.md", "---js\n1\n---\nText\n");
    let output = repo.squad(&["mcp", "--check", "--json", "--engine", "nothing"]);
    let found: Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(output.code, 1);
    assert_eq!(found["problems"][0], "there is no engine `nothing`");
    let output = repo.squad(&["mcp", "--engine", "nothing"]);
    assert!(
        output.code == 2 && output.err.starts_with("error: --engine: there is no engine `nothing`\nhint: "),
        "{output}"
    );
    assert_eq!(found["problems"][1], ".squad/roles/broken.md:1: front matter must be YAML, but this is marked `js`");
}

#[test]
fn orchestrate_says_why_agents_failed() {
    let mut repo = TestRepo::with_small_team();
    repo.write("script.toml", "[[turn]]\nagent = \"bob\"\nsteps = [{ fail = \"no compiler\" }]\n");
    repo.variables.insert("SQUAD_REHEARSAL".to_owned(), repo.root().join("script.toml").display().to_string());
    let mut client = McpClient::greeted(&repo, "2025-06-18", &["--engine", "rehearsal"]);
    let result = client.structured("orchestrate", json!({"message": "Write a test", "agents": ["ada", "bob"]}));
    assert_eq!((&result["status"], &result["agents"]["ada"]), (&json!("failed"), &json!("completed")), "{result}");
    assert_eq!(result["reasons"], json!({"bob": "no compiler"}), "{result}");
}

#[test]
fn wrong_values_in_the_environment_and_engines_that_are_not_installed_are_shown() {
    let mut repo = TestRepo::with_small_team();
    repo.variables.insert("SQUAD_SESSIONS_TIMEOUT".to_owned(), "soon".to_owned());
    repo.write(".squad/config.toml", "[agents.bob]\nengine = \"gemini\"\n");
    for (variable, value) in [("SQUAD_ENGINE", "claude"), ("ENGINE_COMMAND", "claude")] {
        repo.variables.insert(variable.to_owned(), value.to_owned());
        let output = repo.squad(&["mcp", "--check", "--json"]);
        let found: Value = serde_json::from_str(&output.out).expect("JSON");
        let problems = found["problems"].as_array().expect("a list");
        let problem = |number: usize| problems[number].as_str().expect("a text");
        assert!(
            problem(0).starts_with("SQUAD_SESSIONS_TIMEOUT: `sessions.timeout` `soon` is not a duration"),
            "{output}"
        );
        let expected = "claude is not installed: no `claude` in PATH; install it: ";
        assert!(problem(1).starts_with(expected) && problem(1).contains("engines.claude.program PATH"), "{output}");
        assert!(problem(2).starts_with("gemini is not installed: "), "{output}");
        assert_eq!((problems.len(), output.code), (3, 1), "{output}");
        repo.variables.remove("SQUAD_ENGINE");
    }
    repo.variables.remove("ENGINE_COMMAND");
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "nothing".to_owned());
    let output = repo.squad(&["mcp"]);
    assert!(output.code == 2 && output.err.contains("error: SQUAD_ENGINE: there is no engine `nothing`"), "{output}");
    let config = "[engines.bare]\nprogram = \"echo\"\n";
    repo.write("../home/config/squad/config.toml", config);
    repo.variables.remove("SQUAD_ENGINE");
    repo.write(".squad/config.toml", "");
    repo.variables.remove("SQUAD_SESSIONS_TIMEOUT");
    let output = repo.squad(&["mcp", "--check", "--engine", "bare"]);
    assert!(output.code == 1 && output.err.contains("bare does not ask before it acts"), "{output}");
    assert_eq!(repo.squad(&["mcp", "--check", "--engine", "bare", "--permissions", "allow"]).code, 0);
    // It may be installed while the server runs.
    let mut client = McpClient::greeted(&repo, "2025-06-18", &["--engine", "claude"]);
    let mut members = json!([
        {"roleId": "ada", "task": "Look."},
        {"roleId": "ada", "task": "Look.", "engine": "rehearsal"},
        {"roleId": "bob", "task": "Look.", "engine": "gemini"},
    ]);
    let found = client.structured("start_squad_members", json!({"members": members}));
    let member = |index: usize, key: &str| found["members"][index][key].as_str().unwrap_or_default();
    let ends: Vec<&str> = (0..3).map(|index| member(index, "status")).collect();
    assert_eq!(ends, ["error", "completed", "error"], "{found}");
    assert!(member(0, "reason").starts_with("claude is not installed"), "{found}");
    assert!(member(0, "reason").contains("install it: "), "{found}");
    assert!(member(2, "reason").starts_with("gemini is not installed"), "{found}");
    // A wrong argument, or nobody who could work, starts nobody.
    members[1]["engine"] = json!("nothing");
    let said = client.refused("start_squad_members", json!({"members": members}));
    assert!(said.lines().count() == 2 && said.contains("\n- members[1]: there is no engine `nothing`"), "{said}");
    members[1]["engine"] = json!("claude");
    let said = client.refused("start_squad_members", json!({"members": members}));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4, "no member was started:"), "{said}");
    assert!(lines[1].starts_with("- members[0]: claude is not installed") && lines[1].contains("; install it: "));
    assert!(lines[3].starts_with("- members[2]: gemini is not installed"), "{said}");
}

#[test]
fn roles_of_the_library_are_copied_and_never_over_ones_own() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/roles/tester.md", "My own.\n");
    let output = repo.squad(&["mcp", "--add-roles", "tester,reviewer,researcher,writer,planner,debugger"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.err.contains("is there already: .squad/roles/tester.md"), "{output}");
    assert_eq!(repo.read(".squad/roles/tester.md"), "My own.\n");
    let shown = repo.squad(&["mcp", "--check", "--json", "--engine", "rehearsal"]);
    let found: Value = serde_json::from_str(&shown.out).expect("JSON");
    let expected = ["ada", "bob", "rex", "debugger", "planner", "researcher", "reviewer", "tester", "writer"];
    assert_eq!((found["roles"].clone(), found["problems"].clone()), (json!(expected), json!([])));
    let wrong = repo.squad(&["mcp", "--add-roles", "../evil"]);
    assert!(wrong.code == 2 && wrong.err.contains("the roles are reviewer, tester"), "{wrong}");
}

#[test]
fn a_member_of_a_live_run_has_squads_own_tools() {
    let repo = TestRepo::with_small_team();
    let script = repo.root().with_file_name("script.toml");
    std::fs::write(&script, "[[turn]]\nagent = \"ada\"\nsteps = [{ hang = true }]\n").expect("a script");
    let script = script.display().to_string();
    let variables = [("SQUAD_REHEARSAL", script.as_str())];
    let mut host = McpClient::start_in(&repo, &repo.root(), &["--engine", "rehearsal"], &variables).greet("2025-06-18");
    let members = json!([{"roleId": "ada", "task": "Wait."}]);
    let started = host.structured("start_squad_members", json!({"members": members, "wait": false}));
    let run = started["squadId"].as_str().expect("an id").to_owned();
    while host.structured("get_run", json!({"squadId": run}))["members"][0]["status"] != "running" {}

    let member = format!("{run}/ada");
    let mut client = McpClient::greeted(&repo, "2025-06-18", &["--member", &member]);
    let tools = client.request("tools/list", json!({}));
    let names: Vec<&str> =
        tools["result"]["tools"].as_array().expect("a list").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["squad_log_decision", "squad_remember", "squad_decisions", "squad_status"]);
    let said = |result: Value| result["content"][0]["text"].as_str().expect("a text").to_owned();
    let decided = said(client.call("squad_log_decision", json!({"title": "Errors are JSON", "what": "All of them."})));
    assert!(decided.ends_with("is recorded: Errors are JSON"), "{decided}");
    assert_eq!(said(client.call("squad_remember", json!({"text": "The port is 8080."}))), "Kept.");
    assert!(said(client.call("squad_decisions", json!({"query": "errors"}))).contains("Errors are JSON"));
    // The run writes its agents' states down now and then; its entries are there before.
    let begun = Instant::now();
    let is_whole =
        |status: &str| status.starts_with("- `ada` (you): working since ") && status.contains(" tokens, on: ");
    while !is_whole(&said(client.call("squad_status", json!({})))) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", said(client.call("squad_status", json!({}))));
    }
    assert!(client.refused("squad_log_decision", json!({"title": " ", "what": "x"})).contains("`title` is empty"));
    for (tool, given, unknown) in [
        ("squad_log_decision", json!({"title": "Use tar", "text": "It is black."}), "`text`"),
        ("squad_remember", json!({"text": "a", "why": "b"}), "`why`"),
        ("squad_decisions", json!({"query": "a", "limit": 1}), "`limit`"),
    ] {
        let said = client.refused(tool, given);
        assert!(said.contains("unknown field") && said.contains(unknown), "{said}");
    }
    assert!(client.request("tools/call", json!({"name": "start_squad_members"})).get("error").is_some());
    let events = repo.squad(&["log", "--json", &run]).out;
    let of = |kind: &str| -> Value {
        let lines = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.into_iter().find(|event| event["type"] == kind).unwrap_or_default()
    };
    assert_eq!((&of("decision.logged")["agent"], &of("memory.logged")["agent"]), (&json!("ada"), &json!("ada")));
    // Nobody else, and not when it is over.
    for wrong in ["nonsense", "20200101-000000-abcdef/ada", &format!("{run}/bob"), &format!("{run}/../x")] {
        let output = repo.squad(&["mcp", "--member", wrong]);
        assert_eq!(output.code, 2, "{output}");
    }
    let ended = host.structured("cancel_run", json!({"squadId": run}));
    assert_eq!(
        (&ended["decisions"][0]["title"], &ended["decisions"][0]["state"]),
        (&json!("Errors are JSON"), &json!("unlanded"))
    );
    assert!(ended["hint"].as_str().is_some_and(|hint| hint.contains("squad decisions land")), "{ended}");
    assert!(client.refused("squad_remember", json!({"text": "Late."})).contains("is not running here"));
    repo.assert_sound();
}
