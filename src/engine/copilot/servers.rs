//! Tries the user's MCP servers. The CLI creates no session while one of them is silent, and names none that is missing.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use http::{Request, Uri};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::options::{McpServer, Options};
use crate::engine::process_group::ProcessGroup;
use crate::program::{Program, Programs};

/// Why servers cannot be used, by name.
pub(crate) type Unusable = BTreeMap<String, String>;

/// Tries all servers at once, each for `options.timeouts.server`.
pub(crate) async fn unusable(options: &Options) -> Unusable {
    let limit = options.timeouts.server;
    let mut tries = JoinSet::new();
    for (name, server) in &options.mcp_servers {
        let (name, server) = (name.clone(), server.clone());
        let program = program(&server, options);
        let variables = options.variables.clone();
        let directory = options.directory.clone();
        tries.spawn(async move {
            let answer = match (server, program) {
                (McpServer::Local { args, env, .. }, Some(Ok(program))) => {
                    let mut command = Command::from(program.command());
                    command.args(args).env_clear().envs(&variables).envs(env).current_dir(directory);
                    ask_program(command, limit).await
                }
                (_, Some(Err(why))) => Err(why),
                (McpServer::Http { url, headers, .. }, _) => {
                    let silent = Err(silence(limit));
                    timeout(limit, ask_address(&url, Some(&headers))).await.unwrap_or(silent)
                }
                (McpServer::Sse { url, .. }, _) => {
                    let silent = Err(silence(limit));
                    timeout(limit, ask_address(&url, None)).await.unwrap_or(silent)
                }
                (McpServer::Local { .. }, None) => Ok(()),
            };
            answer.err().map(|why| (name, why))
        });
    }
    tries.join_all().await.into_iter().flatten().collect()
}

/// The program of a local server, or why there is none. A whole path is the user's own choice.
fn program(server: &McpServer, options: &Options) -> Option<Result<Program, String>> {
    let McpServer::Local { command, .. } = server else { return None };
    let path = std::path::Path::new(command);
    Some(match path.is_absolute() {
        true => Ok(Program::of_user(path)),
        false => Programs::new(&options.directory, &options.variables).named(path).map_err(|why| why.to_string()),
    })
}

fn silence(limit: Duration) -> String {
    format!("it did not answer within {} s", limit.as_secs_f64())
}

fn hello() -> String {
    let client = json!({ "name": "squad", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

async fn ask_program(mut command: Command, limit: Duration) -> Result<(), String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let started = ProcessGroup::spawn(&mut command);
    let (mut child, mut group) = started.map_err(|error| format!("its program cannot be run: {error}"))?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let answer = async {
        let (Some(mut input), Some(output)) = (input, output) else { return Ok(()) };
        // One that has ended is met below.
        let _ = input.write_all(format!("{}\n", hello()).as_bytes()).await;
        let mut lines = BufReader::new(output.take(MOST)).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line: Value = serde_json::from_str(&line).unwrap_or_default();
            if line["id"] == 1 {
                let refused = line["error"]["message"].as_str().map(|why| format!("it refused to begin: {why}"));
                return refused.map_or(Ok(()), Err);
            }
        }
        Err("its program ended without an answer".to_owned())
    };
    let answer = timeout(limit, answer).await.unwrap_or_else(|_| Err(silence(limit)));
    let _ = group.kill(&mut child).await;
    answer
}

/// Bytes of a server's output that are read for its first answer.
const MOST: u64 = 1 << 20;

/// Whether there is anybody at an address; of `http` with headers, also whether it answers.
async fn ask_address(url: &str, headers: Option<&BTreeMap<String, String>>) -> Result<(), String> {
    let address: Uri = url.parse().map_err(|error| format!("its url cannot be read: {error}"))?;
    let host = address.host().ok_or("its url names no host")?;
    let is_plain = address.scheme_str() == Some("http");
    let port = address.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
    let unreachable = |error: std::io::Error| format!("it cannot be reached: {error}");
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await.map_err(unreachable)?;
    let Some(headers) = headers.filter(|_| is_plain) else { return Ok(()) };
    let path = address.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::post(path).header("Host", format!("{host}:{port}"));
    let own = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    for (name, value) in own.into_iter().chain(headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))) {
        request = request.header(name, value);
    }
    let request = request.body(hello()).map_err(|error| format!("it cannot be asked: {error}"))?;
    let silent = |error: hyper::Error| format!("it does not answer: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(silent)?;
    // It ends with this function.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    sender.send_request(request).await.map(drop).map_err(silent)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::super::options::McpOffer;
    use super::super::testing::options;
    use super::*;

    fn local(command: &str, script: &str) -> McpServer {
        McpServer::Local {
            command: command.to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: BTreeMap::new(),
            offer: McpOffer::default(),
        }
    }

    /// Every way to be missing × program and address.
    #[tokio::test]
    async fn each_server_has_a_time_of_its_own_and_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = |listener: &tokio::net::TcpListener| {
            let url = format!("http://{}/mcp", listener.local_addr().expect("it has one"));
            McpServer::Http {
                url,
                headers: BTreeMap::from([("X-Key".to_owned(), "k".to_owned())]),
                offer: McpOffer::default(),
            }
        };
        let free = address(&closed);
        drop(closed);
        // Reads a request, and answers this.
        let says = |answer: &'static [u8]| async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let server = address(&listener);
            tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.expect("a caller");
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await.expect("a request");
                // Whoever lacks the key is hung up on.
                if String::from_utf8_lossy(&request).to_lowercase().contains("x-key: k") {
                    stream.write_all(answer).await.expect("a caller that listens");
                }
            });
            server
        };
        let speaks = says(b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").await;
        let (hangs_up, garbles) = (says(b"").await, says(b"220 mail.example.com\r\n").await);
        let mut options = options(&folder, "exit");
        options.timeouts.server = Duration::from_millis(1500);
        options.mcp_servers = [
            ("answers", local("sh", r#"read line; echo starting; echo '{"id":1,"result":{}}'; sleep 60"#)),
            ("silent", local("/bin/sh", "sleep 60")),
            ("ends", local("sh", "exit 3")),
            ("refuses", local("sh", r#"echo '{"id":1,"error":{"message":"no key"}}'"#)),
            ("chats", local("sh", r#"echo '{"method":"log"}'; echo '{"id":1,"result":{}}'; sleep 60"#)),
            ("chats and ends", local("sh", r#"echo '{"method":"log"}'"#)),
            ("chats and refuses", local("sh", r#"echo '{"id":7}'; echo '{"id":1,"error":{"message":"no key"}}'"#)),
            ("missing", local("no-such-server", "")),
            ("gone", local("/no/such/server", "")),
            ("mute", address(&silent)),
            ("away", free),
            ("speaks", speaks),
            ("hangs up", hangs_up),
            ("garbles", garbles),
        ]
        .map(|(name, server)| (name.to_owned(), server))
        .into();
        let start = std::time::Instant::now();
        let found = unusable(&options).await;
        assert!(start.elapsed() < Duration::from_secs(6), "one after the other: {:?}", start.elapsed());
        let wanted = [
            ("away", "it cannot be reached"),
            ("chats and ends", "its program ended without an answer"),
            ("chats and refuses", "it refused to begin: no key"),
            ("ends", "its program ended without an answer"),
            ("garbles", "it does not answer: "),
            ("gone", "its program cannot be run"),
            ("hangs up", "it does not answer: "),
            ("missing", "no-such-server"),
            ("mute", "it did not answer within 1.5 s"),
            ("refuses", "it refused to begin: no key"),
            ("silent", "it did not answer within 1.5 s"),
        ];
        assert_eq!(found.keys().collect::<Vec<_>>(), wanted.map(|(name, _)| name));
        for (name, why) in wanted {
            assert!(found[name].contains(why), "{name}: {}", found[name]);
        }
    }
}
