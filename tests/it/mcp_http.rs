//! `squad mcp --http`: who gets in, and the protocol behind it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::TestRepo;

struct Server {
    child: Child,
    address: String,
    token: String,
}

struct Answer {
    status: u16,
    headers: String,
    body: String,
}

impl Server {
    fn start(repo: &TestRepo) -> Self {
        Self::start_at(repo, "0", &[])
    }

    fn start_at(repo: &TestRepo, address: &str, options: &[&str]) -> Self {
        Self::start_with(repo, address, &[&["--engine", "rehearsal"], options].concat())
    }

    fn start_with(repo: &TestRepo, address: &str, options: &[&str]) -> Self {
        let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        command.args(["mcp", "--http", address]).args(options).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("squad starts");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut next = || said.next().expect("a line").expect("UTF-8");
        let address = next().strip_prefix("serving http://").expect("where it serves").replace("/mcp", "");
        let token = next().rsplit("Bearer ").next().expect("a token").trim_end_matches('`').to_owned();
        Self { child, address, token }
    }

    /// One request on a connection of its own. Headers of the same name replace the usual ones.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let length = body.len().to_string();
        let usual = [
            ("Host", self.address.as_str()),
            ("Authorization", &bearer),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Length", &length),
            ("Connection", "close"),
        ];
        let is_named = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let all = usual.iter().filter(|(name, _)| !is_named(name)).chain(headers);
        let all: String =
            all.filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        // A server that refuses does not read all of it.
        let _ = stream.write_all(format!("{method} {path} HTTP/1.1\r\n{all}\r\n{body}").as_bytes());
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { status, headers: head.to_lowercase(), body: body.to_owned() }
    }

    fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.send("POST", "/mcp", headers, &message.to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    /// The messages of the stream.
    fn messages(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
    }

    fn result(&self) -> Value {
        let messages = self.messages();
        let last = messages.last().expect(&self.body);
        assert_eq!(last.get("error"), None, "{last}");
        last["result"].clone()
    }

    fn header(&self, name: &str) -> String {
        let line = self.headers.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.expect(&self.headers).to_owned()
    }
}

fn greeting() -> Value {
    let client =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
}

/// Without `--allow-host`. Address and token are what a user needs of it, also who wants to read little.
#[cfg(target_os = "linux")]
#[test]
fn the_address_it_listens_on_is_a_name_of_it() {
    let repo = TestRepo::with_small_team();
    let server = Server::start_at(&repo, "127.0.0.9:0", &["--quiet"]);
    assert!(server.address.starts_with("127.0.0.9:") && server.token.len() == 64, "{}", server.address);
    assert_eq!(server.post(&[], &greeting()).status, 200);
    assert_eq!(server.post(&[("Origin", &format!("http://{}", server.address))], &greeting()).status, 200);
    for host in ["127.0.0.8", "evil.example"] {
        assert_eq!(server.post(&[("Host", host)], &greeting()).status, 403, "{host}");
    }
}

#[test]
fn only_who_shows_the_token_and_calls_it_by_its_name_gets_in() {
    let repo = TestRepo::with_small_team();
    let server = Server::start(&repo);
    assert!(server.address.starts_with("127.0.0.1:") && server.token.len() == 64, "{}", server.address);
    let refused = |headers: &[(&str, &str)]| server.post(headers, &greeting());
    for (name, value, status) in [
        ("Authorization", "", 401),
        ("Authorization", "Bearer nonsense", 401),
        ("Authorization", "Basic nonsense", 401),
        ("Host", "evil.example", 403),
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
        ("Accept", "text/html", 406),
        ("Content-Type", "text/plain", 415),
        ("Origin", "http://localhost:6274", 200),
    ] {
        let answer = refused(&[(name, value)]);
        assert_eq!(answer.status, status, "{name}: {value}: {} {}", answer.headers, answer.body);
        assert!(status == 200 || !answer.body.contains("squad"), "{}", answer.body);
    }
    assert_eq!(refused(&[("Authorization", "")]).header("www-authenticate"), "bearer");
    assert_eq!(server.send("GET", "/", &[], "").status, 404);
    assert_eq!(server.send("GET", "/mcp", &[("Authorization", "")], "").status, 401);
    assert_eq!(server.send("PUT", "/mcp", &[], "").status, 405);
    assert!((400..500).contains(&server.send("POST", "/mcp", &[], "{\"jsonrpc\":").status));
    assert!((400..500).contains(&server.post(&[], &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).status));
    let unknown =
        server.post(&[("Mcp-Session-Id", "guessed")], &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    assert_eq!(unknown.status, 404);
    let huge = "x".repeat(17 * 1024 * 1024);
    assert!([413, 0].contains(&server.send("POST", "/mcp", &[], &huge).status));
    // And it still serves.
    assert_eq!(server.post(&[], &greeting()).status, 200);
}

#[test]
fn members_are_started_in_both_ways_of_speaking() {
    let repo = TestRepo::with_small_team();
    let server = Server::start(&repo);
    let greeted = server.post(&[], &greeting());
    assert_eq!(greeted.result()["serverInfo"]["name"], "squad");
    let session = greeted.header("mcp-session-id");
    let headers = [("Mcp-Session-Id", session.as_str()), ("Mcp-Protocol-Version", "2025-06-18")];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.post(&headers, &ready).status, 202);
    let members = json!({"members": [{"roleId": "ada", "task": "Look."}]});
    let call = |meta: Value| {
        let params = json!({"name": "start_squad_members", "arguments": members, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
    };
    let answer = server.post(&headers, &call(json!({"progressToken": "t"})));
    let messages = answer.messages();
    assert!(messages.iter().any(|message| message["method"] == "notifications/progress"), "{messages:?}");
    assert_eq!(answer.result()["structuredContent"]["members"][0]["status"], "completed", "{messages:?}");

    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                      "io.modelcontextprotocol/clientCapabilities": {}});
    let headers =
        [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "start_squad_members")];
    let answer = server.post(&headers, &call(meta));
    assert_eq!(answer.result()["structuredContent"]["members"][0]["status"], "completed", "{}", answer.body);
}

#[test]
fn an_address_that_others_can_reach_is_asked_for_by_name_and_a_weak_token_is_refused() {
    let mut repo = TestRepo::with_small_team();
    let output = repo.squad(&["mcp", "--http", "0.0.0.0:0"]);
    assert!(output.code == 2 && output.err.contains("--allow-host"), "{output}");
    repo.variables.insert("SQUAD_MCP_TOKEN".to_owned(), "short".to_owned());
    let output = repo.squad(&["mcp", "--http", "0"]);
    assert!(output.code == 2 && output.err.contains("SQUAD_MCP_TOKEN"), "{output}");
}

/// Several clients may call one server: each has its own engine, and one that says no name has none of another's.
#[cfg(unix)]
#[test]
fn each_client_has_its_own_engine() {
    let folder = crate::support::temporary::folder();
    let mut repo = TestRepo::empty();
    for name in ["claude", "codex"] {
        crate::support::script::write(&folder.path().join(name), "#!/bin/sh\ncat >/dev/null\n");
    }
    let path = format!("{}:{}", folder.path().display(), repo.variables["PATH"]);
    repo.variables.insert("PATH".to_owned(), path);
    let server = Server::start_with(&repo, "0", &[]);
    let headers = [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "list_engines")];
    for (client, expected) in
        [("codex-mcp-client", "codex"), ("", "claude"), ("codex", "codex"), ("claude-code", "claude")]
    {
        let mut meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                              "io.modelcontextprotocol/clientCapabilities": {}});
        if !client.is_empty() {
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": client, "version": "1"});
        }
        let params = json!({"name": "list_engines", "arguments": {}, "_meta": meta});
        let answer =
            server.post(&headers, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
        let engines = answer.result()["structuredContent"]["engines"].clone();
        let chosen = engines.as_array().into_iter().flatten().find(|engine| engine["chosen"] == true).cloned();
        assert_eq!(chosen.map(|engine| engine["name"].clone()), Some(json!(expected)), "{client}: {engines}");
    }
}
