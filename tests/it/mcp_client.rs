//! A client of `squad mcp`: the real program, over pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::TestRepo;

/// Long enough for a machine that is busy with other things: whoever waits for it fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct McpClient {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
    /// Notifications and questions that came before an answer.
    pub(crate) heard: Vec<Value>,
    /// Sent with each request, by clients of the stateless revision.
    meta: Option<Value>,
}

impl McpClient {
    /// Starts a server and says nothing yet.
    pub(crate) fn start(repo: &TestRepo, arguments: &[&str]) -> Self {
        Self::start_in(repo, &repo.root(), arguments, &[])
    }

    pub(crate) fn start_in(repo: &TestRepo, folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = repo
            .command(env!("CARGO_BIN_EXE_squad"), folder)
            .arg("mcp")
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("squad starts");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("a pipe");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines, last: 0, heard: Vec::new(), meta: None }
    }

    /// One that has greeted as clients of that revision do.
    pub(crate) fn greeted(repo: &TestRepo, version: &str, arguments: &[&str]) -> Self {
        Self::start(repo, arguments).greet(version)
    }

    pub(crate) fn greet(mut self, version: &str) -> Self {
        if version == "2026-07-28" {
            self.meta = Some(json!({
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }));
            return self;
        }
        self.meta = None;
        let client =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.request("initialize", client);
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self
    }

    /// One of the stateless revision that can do this.
    pub(crate) fn able(mut self, capabilities: Value) -> Self {
        self = self.greet("2026-07-28");
        self.meta.as_mut().expect("it has some")["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        self
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).expect("the server reads");
    }

    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(bytes).and_then(|()| input.flush())
    }

    /// Closes its end of the server's output, once the next line has come.
    pub(crate) fn deafen(&mut self) {
        self.lines = channel().1;
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends a request and gives its id.
    pub(crate) fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        if let Some(meta) = &self.meta {
            let mut meta = meta.clone();
            let own = params.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default();
            meta.as_object_mut().expect("an object").extend(own);
            params["_meta"] = meta;
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        self.last
    }

    pub(crate) fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the server says something");
        serde_json::from_str(&line).expect(&line)
    }

    /// The answer to a request; what comes before it is kept.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.heard.push(message);
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    pub(crate) fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.begin("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// What a tool gives back.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin_call(tool, arguments);
        let answer = self.answer(id);
        assert_eq!(answer.get("error"), None, "{answer}");
        answer["result"].clone()
    }

    /// What is wrong with a call, as a model is told.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    pub(crate) fn structured(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        let text = result["content"][0]["text"].as_str().expect("a text");
        let value: Value = serde_json::from_str(text).expect("JSON");
        if result.get("structuredContent").is_some() {
            assert_eq!(result["structuredContent"], value);
        }
        value
    }

    /// Closes the input and hears the server out.
    pub(crate) fn close(mut self) -> (Vec<Value>, i32) {
        self.input = None;
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            said.push(serde_json::from_str(&line).expect(&line));
        }
        let status = self.child.wait().expect("it ends");
        (said, status.code().unwrap_or(-1))
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
