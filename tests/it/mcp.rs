//! `squad mcp`: the protocol and the roles.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::support::TestRepo;

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn ids(list: &Value) -> Vec<String> {
    list.as_array().expect("a list").iter().map(|role| role["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn every_revision_of_the_protocol_is_spoken_on_one_process() {
    let repo = TestRepo::with_small_team();
    for version in LEGACY {
        let mut client = McpClient::greeted(&repo, version, &[]);
        assert_eq!(client.request("ping", json!({}))["result"], json!({}));
        let tools = client.request("tools/list", json!({}));
        assert_eq!(tools["result"]["tools"][0]["name"], "list_roles", "{tools}");
        assert_eq!(tools["result"].get("resultType"), None, "{tools}");
        let result = client.call("list_roles", json!({}));
        assert_eq!(result.get("structuredContent").is_some(), version >= "2025-06-18", "{version}");
        let missing = client.request("resources/read", json!({"uri": "squad://roles/nobody"}));
        assert_eq!(missing["error"]["code"], -32002, "{missing}");
        let (said, code) = client.close();
        assert_eq!((said, code), (Vec::new(), 0));
    }
    let mut client = McpClient::greeted(&repo, "2026-07-28", &[]);
    let found = client.request("server/discover", json!({}));
    let result = &found["result"];
    assert_eq!(result["supportedVersions"][0], "2026-07-28", "{found}");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "squad", "{found}");
    for (method, list) in [("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts")] {
        let answer = client.request(method, json!({}));
        let result = &answer["result"];
        assert!(result[list].as_array().is_some_and(|list| !list.is_empty()), "{answer}");
        assert_eq!((&result["resultType"], &result["ttlMs"]), (&json!("complete"), &json!(0)), "{answer}");
        assert_eq!(result["cacheScope"], "private", "{answer}");
    }
    assert_eq!(client.call("list_roles", json!({}))["resultType"], "complete");
    assert_eq!(client.request("prompts/get", json!({"name": "ada"}))["result"]["resultType"], "complete");
    for method in ["ping", "initialize"] {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        assert_eq!(client.request(method, hello)["error"]["code"], -32601, "{method}");
    }
    let missing = client.request("resources/read", json!({"uri": "squad://roles/nobody"}));
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
    // The same process serves a client of before.
    let client = client.greet("2025-06-18");
    drop(client);
}

#[test]
fn a_revision_that_is_not_known_is_answered_with_those_that_are() {
    let repo = TestRepo::with_small_team();
    let mut client = McpClient::start(&repo, &[]);
    let answer = client.request("initialize", json!({"protocolVersion": "1999-01-01", "capabilities": {}}));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let answer = client.request("initialize", json!({"protocolVersion": "2026-07-28", "capabilities": {}}));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2099-01-01",
                      "io.modelcontextprotocol/clientCapabilities": {}});
    let answer = client.request("tools/list", json!({"_meta": meta}));
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    assert_eq!(answer["error"]["data"]["requested"], "2099-01-01");
    assert_eq!(answer["error"]["data"]["supported"][0], "2026-07-28");
}

#[test]
fn early_late_and_malformed_messages_are_answered_and_harm_nothing() {
    let repo = TestRepo::with_small_team();
    let mut client = McpClient::start(&repo, &[]);
    // Before anything was agreed on.
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    assert_eq!(client.request("tools/list", json!({}))["error"]["code"], -32602);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}));
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "result": {"late": true}}));
    let mut client = client.greet("2025-03-26");
    for (line, code) in [
        ("{\"jsonrpc\":", -32700),
        ("\u{0}\u{1}", -32700),
        ("[]", -32600),
        ("\"text\"", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"nothing/there\"}", -32601),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{}}", -32602),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"nothing\"}}", -32602),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"prompts/get\",\"params\":{\"name\":\"nobody\"}}", -32602),
    ] {
        client.write(format!("{line}\n").as_bytes());
        let answer = client.next();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    client.write(b"\xff\xfe\n");
    assert_eq!(client.next()["error"]["code"], -32700);
    // As long as a line may be, and one byte more.
    let start = "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\",\"params\":{\"text\":\"";
    let most = 16 * 1024 * 1024;
    for (length, expected) in [(most, json!(8)), (most + 1, Value::Null)] {
        let mut line = start.to_owned();
        line.push_str(&"x".repeat(length - start.len() - 3));
        line.push_str("\"}}");
        assert_eq!(line.len(), length);
        client.write(format!("{line}\n").as_bytes());
        let answer = client.next();
        assert_eq!(answer["id"], expected, "{answer}");
    }
    client.send(&json!([{"jsonrpc": "2.0", "id": "a", "method": "ping"}]));
    assert_eq!(client.next()["error"]["code"], -32600);
    // A last line without an end is a line too.
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}");
    let (said, code) = client.close();
    assert_eq!((said.len(), &said[0]["id"], code), (1, &json!("last"), 0));
}

#[test]
fn roles_are_the_startable_agents_and_the_role_files_and_broken_ones_harm_no_other() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/agents/writer.md", "---\nname: Writer\ndescription: Writes\n---\nYou write.\n");
    repo.write(".squad/roles/tester.md", "You test.\n");
    repo.write(".squad/roles/script.md", "---js\nrequire('fs').writeFileSync('executed', '')\n---\nText\n");
    repo.write(".squad/roles/broken.md", "---\nname: [a\n---\nText\n");
    repo.write(".squad/roles/ada.md", "Another Ada.\n");
    repo.write("own/README.md", "# Not a role\n");
    repo.write("own/critic.md", "---\nname: Critic\n---\nYou doubt.\n");
    let folder = [("AGENTS_DIRECTORY_PATH", "own")];
    let mut client = McpClient::start_in(&repo, &repo.root(), &[], &folder).greet("2025-11-25");
    let answer = client.structured("list_roles", json!({}));
    assert_eq!(ids(&answer["roles"]), ["ada", "bob", "rex", "writer", "broken", "script", "tester", "critic"]);
    for role in answer["roles"].as_array().expect("a list") {
        let fields: Vec<&String> = role.as_object().expect("an object").keys().collect();
        let is_broken = ["broken", "script"].contains(&role["id"].as_str().expect("an id"));
        let expected = ["id", "name", "description", "source", "digest", "error"];
        assert_eq!(fields, expected[..if is_broken { 6 } else { 5 }], "{role}");
    }
    let error = |id: &str| {
        let roles = answer["roles"].as_array().expect("a list");
        roles
            .iter()
            .find(|role| role["id"] == id)
            .and_then(|role| role["error"].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(error("script"), ".squad/roles/script.md:1: front matter must be YAML, but this is marked `js`");
    assert!(error("broken").starts_with(".squad/roles/broken.md:"), "{}", error("broken"));
    assert!(!repo.exists("executed"));
    assert_eq!(ids(&client.structured("list_roles", json!({"query": "WRITES"}))["roles"]), ["writer"]);
    assert!(client.refused("list_roles", json!({"query": 7})).contains("`query` must be a string"));
    assert!(client.refused("list_roles", json!({"engine": "x"})).contains("there is no argument `engine`"));

    // Read anew: mended, changed and gone.
    repo.write(".squad/roles/script.md", "You script.\n");
    std::fs::remove_file(repo.root().join(".squad/roles/broken.md")).expect("a file");
    let again = client.structured("list_roles", json!({}));
    assert_eq!(ids(&again["roles"]), ["ada", "bob", "rex", "writer", "script", "tester", "critic"]);
    assert!(again["roles"].as_array().expect("a list").iter().all(|role| role.get("error").is_none()), "{again}");

    let text = client.request("resources/read", json!({"uri": "squad://roles/writer"}));
    assert_eq!(text["result"]["contents"][0]["text"], "You write.", "{text}");
    let prompt = client.request("prompts/get", json!({"name": "writer", "arguments": {"task": "A line."}}));
    let text = &prompt["result"]["messages"][0]["content"]["text"];
    let footer = "\n\n---\n\n# Setup & Reporting Rules\n\nIf you notice";
    let starts =
        |text: &Value, start: &str| text.as_str().is_some_and(|text| text.starts_with(&format!("{start}{footer}")));
    assert!(starts(text, "# Role\n\nYou write.\n\n---\n\n# Task\n\nA line."), "{prompt}");
    let prompt = client.request("prompts/get", json!({"name": "writer"}));
    assert!(starts(&prompt["result"]["messages"][0]["content"]["text"], "# Role\n\nYou write."), "{prompt}");
}

#[cfg(unix)]
#[test]
fn a_role_file_that_leads_out_of_the_project_is_not_read() {
    let repo = TestRepo::with_small_team();
    let secret = repo.root().parent().expect("a folder").join("secret.md");
    std::fs::write(&secret, "secret text").expect("a file");
    std::fs::create_dir_all(repo.root().join(".squad/roles")).expect("a folder");
    std::os::unix::fs::symlink(&secret, repo.root().join(".squad/roles/spy.md")).expect("a link");
    let mut client = McpClient::greeted(&repo, "2025-06-18", &[]);
    let answer = client.structured("list_roles", json!({"query": "spy"}));
    assert_eq!(answer["roles"][0]["error"], ".squad/roles/spy.md: is a link out of the project's files");
    for uri in ["squad://roles/spy", "squad://roles/..%2F..%2F..%2Fsecret", "squad://roles/../../secret"] {
        let answer = client.request("resources/read", json!({"uri": uri}));
        assert!(answer.get("error").is_some() && !answer.to_string().contains("secret text"), "{answer}");
    }
}

#[test]
fn a_folder_of_roles_that_is_not_there_is_refused_at_the_start() {
    let repo = TestRepo::with_small_team();
    let output = repo
        .command(env!("CARGO_BIN_EXE_squad"), &repo.root())
        .arg("mcp")
        .env("AGENTS_DIRECTORY_PATH", "nowhere")
        .stdin(Stdio::null())
        .output()
        .expect("squad starts");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("AGENTS_DIRECTORY_PATH is `nowhere`, which is not a folder") && said.contains("hint:"),
        "{said}"
    );
}

#[test]
fn without_a_repository_the_server_starts_and_says_what_is_missing() {
    let repo = TestRepo::folder();
    let mut client = McpClient::greeted(&repo, "2025-06-18", &[]);
    assert!(client.refused("list_roles", json!({})).contains("no git repository"));
    assert_eq!(client.request("prompts/list", json!({}))["result"]["prompts"], json!([]));
}
