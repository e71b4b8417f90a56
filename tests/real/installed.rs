//! What the other tests stand on: the CLI in the version that the lock file names, and a model that plays scripts.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use crate::copilot_cli;
use crate::model_server::{ModelServer, Script};

#[test]
fn the_cli_is_the_one_that_was_asked_for() {
    let package: Value = serde_json::from_str(include_str!("package.json")).expect("JSON");
    let version = package["dependencies"]["@github/copilot-linux-x64"].as_str().expect("a version");
    let home = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(copilot_cli::program())
        .arg("--version")
        .env("COPILOT_HOME", home.path())
        .env("XDG_CACHE_HOME", copilot_cli::cache())
        .output()
        .expect("the CLI is installed by .ci/install-real-parts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains(version), "{output:?}");
}

/// Posts messages and gives what the model answers.
fn post(server: &ModelServer, messages: &Value) -> Value {
    let address = server.url().replace("http://", "").replace("/v1", "");
    let body = json!({ "model": "fake-1", "messages": messages }).to_string();
    let mut stream = TcpStream::connect(&address).expect("the server listens");
    let head =
        format!("POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).expect("it takes the request");
    stream.shutdown(std::net::Shutdown::Write).expect("an open stream");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a header and a body");
    serde_json::from_str(body).expect("JSON")
}

#[test]
fn the_model_plays_the_prompts_script_or_its_agents() {
    let server = ModelServer::start([Script::new("You are Ada.", ["tool:view {\"path\":\"x\"}", "say:ada"])]);
    let said = |messages: Value| post(&server, &messages)["choices"][0]["message"]["content"].clone();
    let user = |text: &str| json!({ "role": "user", "content": text });
    assert_eq!(said(json!([user("STEP say:one\nSTEP say:two")])), "one");
    let assistant = json!({ "role": "assistant", "content": "one" });
    assert_eq!(said(json!([user("STEP say:one\nSTEP say:two"), assistant])), "two");
    assert_eq!(said(json!([user("hello")])), "echo: hello");
    let system = json!({ "role": "system", "content": [{ "type": "text", "text": "You are Ada." }] });
    let call = post(&server, &json!([system, user("STEP say:one")]));
    assert_eq!(call["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "view");
    assert_eq!(said(json!([system, user("STEP say:one"), assistant])), "ada");
    assert_eq!(post(&server, &json!([user("STEP error:400")]))["error"]["code"], "400");
    assert_eq!(server.requests().len(), 6);
}
