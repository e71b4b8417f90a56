//! `squad mcp`: what clients of the newest revision say they can do, and get for it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::support::TestRepo;

fn tasks() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn client(repo: &TestRepo, script: &str) -> McpClient {
    let path = repo.root().with_file_name("script.toml");
    std::fs::write(&path, script).expect("a script");
    let variables = [("SQUAD_REHEARSAL", path.to_str().expect("UTF-8"))];
    McpClient::start_in(repo, &repo.root(), &["--engine", "rehearsal"], &variables)
}

fn members() -> Value {
    json!({"members": [{"roleId": "ada", "task": "Look."}]})
}

fn until(client: &mut McpClient, task: &Value, status: &str) -> Value {
    let begun = Instant::now();
    loop {
        let answer = client.request("tasks/get", json!({"taskId": task}));
        if answer["result"]["status"] == status {
            return answer["result"].clone();
        }
        assert_eq!(answer["result"]["status"], "working", "{answer}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{answer}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_call_becomes_a_task_where_the_client_knows_tasks_and_nowhere_else() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ wait = \"1s\" }, { say = \"Late.\" }]\n";
    let mut first = client(&repo, script).able(tasks());
    let found = first.request("server/discover", json!({}));
    assert!(found["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object(), "{found}");
    let begun = first.call("start_squad_members", members());
    assert_eq!((&begun["resultType"], &begun["status"]), (&json!("task"), &json!("working")), "{begun}");
    let task = begun["taskId"].clone();
    // It is there before the answer is: killed at once, another server knows it.
    first.child.kill().expect("it lives");
    first.child.wait().expect("it ends");
    let mut next = client(&repo, script).able(tasks());
    let done = until(&mut next, &task, "completed");
    assert_eq!(done["result"]["structuredContent"]["members"][0]["rawStdout"], "Late.", "{done}");
    assert_eq!((&done["resultType"], &done["taskId"]), (&json!("complete"), &task), "{done}");
    assert!(done["createdAt"].as_str() < done["lastUpdatedAt"].as_str(), "{done}");
    assert_eq!(next.request("tasks/get", json!({"taskId": "../x"}))["error"]["code"], -32602);
    assert_eq!(next.request("tasks/get", json!({}))["error"]["code"], -32602);
    // Who does not want to wait gets the run.
    let mut apart = members();
    apart["wait"] = false.into();
    assert!(next.structured("start_squad_members", apart)["squadId"].is_string());

    // The newest revision without tasks, and an older one with what looks like them.
    let mut without = client(&repo, script).able(json!({}));
    assert_eq!(without.structured("start_squad_members", members())["status"], "completed");
    assert_eq!(without.request("tasks/get", json!({"taskId": task}))["error"]["code"], -32021);
    let mut old = client(&repo, script);
    let greeting = json!({"protocolVersion": "2025-11-25", "capabilities": tasks()});
    let greeted = old.request("initialize", greeting);
    assert_eq!(greeted["result"]["capabilities"].get("extensions"), None, "{greeted}");
    assert_eq!(old.structured("start_squad_members", members())["status"], "completed");
}

#[test]
fn a_task_is_cancelled_from_another_process() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ hang = true }]\n";
    let mut first = client(&repo, script).able(tasks());
    let task = first.call("start_squad_members", members())["taskId"].clone();
    let mut other = client(&repo, script).able(tasks());
    let cancelled = other.request("tasks/cancel", json!({"taskId": task}));
    assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
    until(&mut first, &task, "cancelled");
    // Twice is once.
    assert!(other.request("tasks/cancel", json!({"taskId": task})).get("error").is_none());
    let unknown = other.request("tasks/cancel", json!({"taskId": "20200101-000000-abcdef"}));
    assert_eq!(unknown["error"]["code"], -32602);
    repo.assert_sound();
}

#[test]
fn a_stateless_client_asks_the_user_and_calls_again() {
    let repo = TestRepo::empty();
    let mut client = McpClient::start(&repo, &[]).able(json!({"elicitation": {}}));
    let asked = client.call("init_squad", json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["confirm"];
    assert_eq!(question["method"], "elicitation/create", "{asked}");
    assert_eq!(question["params"]["requestedSchema"]["properties"]["confirm"]["type"], "boolean", "{asked}");
    let mut again = |answer: Value| {
        let params = json!({"name": "init_squad", "arguments": {}, "inputResponses": {"confirm": answer}});
        let answer = client.request("tools/call", params);
        answer["result"]["isError"] == false
    };
    assert!(!again(json!({"action": "decline"})));
    assert!(!again(json!({"action": "accept", "content": {"confirm": false}})));
    assert!(!again(json!("yes")));
    assert!(!repo.exists(".squad"));
    assert!(again(json!({"action": "accept", "content": {"confirm": true}})));
    assert!(repo.exists(".squad/team.md"));
    // A client that cannot ask is told the command.
    let other = TestRepo::empty();
    let mut client = McpClient::start(&other, &[]).able(json!({"elicitation": {"url": {}}}));
    assert!(client.refused("init_squad", json!({})).contains("squad init"));
}
