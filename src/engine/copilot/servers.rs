//! Tries the user's MCP servers. The CLI creates no session while one of them is silent, and names none that is missing.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::endpoint::is_proxied;
use super::options::{McpServer, Options};
use super::wire::{McpServerState, McpServersLoaded, lenient, server_trial};
use crate::engine::connection::{CallError, Connection};
use crate::engine::process_group::ProcessGroup;
use crate::program::{Program, Programs};

/// Why servers cannot be used, by name.
pub(crate) type Unusable = BTreeMap<String, String>;

/// Tries all servers at once, each for `options.timeouts.server`.
pub(crate) async fn unusable(options: &Options) -> Unusable {
    let limit = options.timeouts.server;
    let is_proxied = is_proxied(options);
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
                (McpServer::Http { url, .. } | McpServer::Sse { url, .. }, _)
                    if is_proxied && !is_reached(&url).await =>
                {
                    Ok(())
                }
                (McpServer::Http { url, headers, .. }, _) => {
                    timeout(limit, ask_address(&url, &headers, false)).await.unwrap_or_else(|_| Err(silence(limit)))
                }
                (McpServer::Sse { url, headers, .. }, _) => {
                    timeout(limit, ask_address(&url, &headers, true)).await.unwrap_or_else(|_| Err(silence(limit)))
                }
                (McpServer::Local { .. }, None) => Ok(()),
            };
            answer.err().map(|why| (name, why))
        });
    }
    tries.join_all().await.into_iter().flatten().collect()
}

/// Between two looks at a server that the CLI starts.
const AGAIN: Duration = Duration::from_millis(100);

/// Tries all servers as squad can, and has the CLI start each of those at addresses that are left in a session of its own:
/// at `https`, and of what a server says with a status, only the CLI knows.
pub(super) async fn tried_with(connection: &Arc<Connection>, options: &Options) -> Unusable {
    let mut unusable = unusable(options).await;
    let mut tries = JoinSet::new();
    let at_addresses = options.mcp_servers.iter().filter(|(_, server)| !matches!(server, McpServer::Local { .. }));
    for (number, (name, server)) in at_addresses.filter(|(name, _)| !unusable.contains_key(*name)).enumerate() {
        // A session with an agent is opened once all its servers have answered; this one at once.
        let session = format!("squad-server-{number}-{}", options.run);
        let params = server_trial(&session, (name, server), &options.directory, options.provider.as_ref());
        let (name, connection, timeouts) = (name.clone(), Arc::clone(connection), options.timeouts);
        tries.spawn(async move {
            let id = json!({ "sessionId": session });
            let started = async {
                connection.request("session.create", &params, timeouts.open).await?;
                loop {
                    let listed = connection.request("session.mcp.list", &id, timeouts.server).await?;
                    let McpServersLoaded { servers } = lenient(listed);
                    // One that wants a login is tried twice.
                    if !servers.iter().any(McpServerState::is_starting) {
                        return Ok(servers.iter().find_map(McpServerState::problem));
                    }
                    sleep(AGAIN).await;
                }
            };
            let why = match timeout(timeouts.server, started).await {
                Ok(Ok(why)) => why,
                Err(_) | Ok(Err(CallError::TimedOut(_))) => Some(silence(timeouts.server)),
                // An older CLI, or one without a login: nothing is known.
                Ok(Err(CallError::Refused { .. } | CallError::Closed(_))) => None,
            };
            let _ = connection.request("session.delete", &id, timeouts.request).await;
            why.map(|why| (name, why))
        });
    }
    unusable.extend(tries.join_all().await.into_iter().flatten());
    unusable
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

/// What a client says first, and after the answer to it: it asks for the tools, which the CLI waits for as well.
fn hello() -> String {
    let client = json!({ "name": "squad", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": HELLO, "method": "initialize", "params": params }).to_string()
}

fn after_hello() -> [String; 2] {
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let list = json!({ "jsonrpc": "2.0", "id": LIST, "method": "tools/list", "params": {} });
    [initialized.to_string(), list.to_string()]
}

const HELLO: u64 = 1;
const LIST: u64 = 2;

/// Whether the answer to the first message offers tools. The error is why the server does not begin.
fn has_tools(answer: &Value) -> Result<bool, String> {
    match answer["error"]["message"].as_str() {
        Some(why) => Err(format!("it refused to begin: {why}")),
        None => Ok(!answer["result"]["capabilities"]["tools"].is_null()),
    }
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
        let mut lines = BufReader::new(output.take(MOST as u64)).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line: Value = serde_json::from_str(&line).unwrap_or_default();
            if line["id"] == LIST || line["id"] == HELLO && !has_tools(&line)? {
                return Ok(());
            }
            if line["id"] == HELLO {
                let _ = input.write_all(format!("{}\n", after_hello().join("\n")).as_bytes()).await;
            }
        }
        Err("its program ended without an answer".to_owned())
    };
    let answer = timeout(limit, answer).await.unwrap_or_else(|_| Err(silence(limit)));
    let _ = group.kill(&mut child).await;
    answer
}

/// Bytes of a server's output that are read for its answers.
const MOST: usize = 1 << 20;

/// Whether a server at an address answers as far as the list of its tools. Of `https`, whether there is anybody: the rest
/// is for the CLI to say.
async fn ask_address(url: &str, headers: &Headers, is_stream: bool) -> Result<(), String> {
    let address: Uri = url.parse().map_err(|error| format!("its url cannot be read: {error}"))?;
    match address.scheme_str() {
        Some("http") if is_stream => ask_stream(address, headers).await,
        Some("http") => ask_posts(&address, headers.clone()).await,
        _ => connect(&address).await.map(drop),
    }
}

/// Whatever is answered with another status than success is for the CLI: it may have a login there.
async fn ask_posts(address: &Uri, mut headers: Headers) -> Result<(), String> {
    let mut answer = Answer::to(address, &headers, Some(hello())).await?;
    if !answer.is_success {
        return Ok(());
    }
    let hello = answer.message(HELLO).await?;
    if !has_tools(&hello)? {
        return Ok(());
    }
    headers.extend(answer.session.take().map(|session| ("Mcp-Session-Id".to_owned(), session)));
    if let Some(version) = hello["result"]["protocolVersion"].as_str() {
        headers.insert("MCP-Protocol-Version".to_owned(), version.to_owned());
    }
    let [initialized, list] = after_hello();
    Answer::to(address, &headers, Some(initialized)).await?;
    let mut answer = Answer::to(address, &headers, Some(list)).await?;
    if answer.is_success { answer.message(LIST).await.map(drop) } else { Ok(()) }
}

/// A server of the older kind, which answers on a stream that it says at first where to write to.
async fn ask_stream(address: Uri, headers: &Headers) -> Result<(), String> {
    let mut stream = Answer::to(&address, headers, None).await?;
    if !stream.is_success {
        return Ok(());
    }
    let path = loop {
        let line = stream.line().await?.ok_or("it ended without an answer")?;
        if let Some(path) = line.strip_prefix("data:") {
            break path.trim().to_owned();
        }
    };
    // Elsewhere nobody is asked.
    let mut parts = address.into_parts();
    let Some(path) = path.parse().ok().filter(|_| path.starts_with('/')) else { return Ok(()) };
    parts.path_and_query = Some(path);
    let Ok(place) = Uri::from_parts(parts) else { return Ok(()) };
    Answer::to(&place, headers, Some(hello())).await?;
    if has_tools(&stream.message(HELLO).await?)? {
        for message in after_hello() {
            Answer::to(&place, headers, Some(message)).await?;
        }
        stream.message(LIST).await?;
    }
    Ok(())
}

/// How long a server beside a proxy has to take a connection.
const DIRECTLY: Duration = Duration::from_secs(2);

/// Whether there is a server without the proxy, whose use is for the CLI to know.
async fn is_reached(url: &str) -> bool {
    let Ok(address) = url.parse() else { return true };
    timeout(DIRECTLY, connect(&address)).await.is_ok_and(|connected| connected.is_ok())
}

async fn connect(address: &Uri) -> Result<TcpStream, String> {
    let host = address.host().ok_or("its url names no host")?;
    let port = address.port_u16().unwrap_or(if address.scheme_str() == Some("http") { 80 } else { 443 });
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await;
    stream.map_err(|error| format!("it cannot be reached: {error}"))
}

type Headers = BTreeMap<String, String>;

/// An answer that is being read.
struct Answer {
    is_success: bool,
    is_events: bool,
    session: Option<String>,
    body: Incoming,
    text: Vec<u8>,
    /// How much of the text was taken as lines.
    taken: usize,
    /// The connection ends with it.
    _connection: JoinSet<Result<(), hyper::Error>>,
}

impl Answer {
    /// Sends a request on a connection of its own: a message, or one for a stream.
    async fn to(address: &Uri, headers: &Headers, message: Option<String>) -> Result<Self, String> {
        let stream = connect(address).await?;
        let path = address.path_and_query().map_or("/", |path| path.as_str());
        let host = address.authority().map_or("", |authority| authority.as_str());
        let request = if message.is_some() { Request::post(path) } else { Request::get(path) };
        let accepted = if message.is_some() { "application/json, text/event-stream" } else { "text/event-stream" };
        let mut request = request.header("Host", host).header("Accept", accepted);
        if message.is_some() {
            request = request.header("Content-Type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(message.unwrap_or_default());
        let request = request.map_err(|error| format!("it cannot be asked: {error}"))?;
        let silent = |error: hyper::Error| format!("it does not answer: {error}");
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(silent)?;
        let mut connections = JoinSet::new();
        connections.spawn(connection);
        let (head, body) = sender.send_request(request).await.map_err(silent)?.into_parts();
        // The CLI follows some, with the headers of the first address.
        if head.status.is_redirection() {
            return Err(format!("it answers {}, and squad follows no address but the one that you gave", head.status));
        }
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Self {
            is_success: head.status.is_success(),
            is_events: header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")),
            session: header("mcp-session-id"),
            body,
            text: Vec::new(),
            taken: 0,
            _connection: connections,
        })
    }

    /// Reads on. False: there is no more.
    async fn more(&mut self) -> Result<bool, String> {
        let Some(frame) = self.body.frame().await else { return Ok(false) };
        let frame = frame.map_err(|error| format!("its answer breaks off: {error}"))?;
        if let Some(data) = frame.data_ref() {
            self.text.extend_from_slice(data);
        }
        if self.text.len() > MOST { Err("its answer has more than 1 MiB".to_owned()) } else { Ok(true) }
    }

    async fn line(&mut self) -> Result<Option<String>, String> {
        loop {
            let rest = self.text.get(self.taken..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&rest[..end]).trim_end().to_owned();
                self.taken += end + 1;
                return Ok(Some(line));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// The message that answers a request. What is no message is for the CLI to name.
    async fn message(&mut self, id: u64) -> Result<Value, String> {
        if !self.is_events {
            while self.more().await? {}
            return Ok(serde_json::from_slice(&self.text).unwrap_or_default());
        }
        while let Some(line) = self.line().await? {
            let message: Option<Value> =
                line.strip_prefix("data:").and_then(|data| serde_json::from_str(data.trim()).ok());
            if let Some(message) = message.filter(|message| message["id"] == id) {
                return Ok(message);
            }
        }
        Err("it ended without an answer".to_owned())
    }
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

    const BEGINS: &str = r#"read line; echo '{"id":1,"result":{"capabilities":{"tools":{}}}}';"#;

    /// Each way to answer a request × both kinds of address, which answer in their own way. What a server says with a
    /// status, and garbage, the CLI names by itself.
    #[tokio::test]
    async fn an_address_is_read_as_far_as_its_tools() {
        const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: ";
        const HELLO: &str = r#"{"id":1,"result":{"capabilities":{"tools":{}}}}"#;
        const REDIRECTS: &str =
            "it answers 307 Temporary Redirect, and squad follows no address but the one that you gave";
        const TOOLS: &str = r#"{"id":2,"result":{"tools":[]}}"#;
        // What follows the head, what is repeated for ever, and whether it stays open.
        let says = |kind: &str, text: &str| format!("{HEAD}{kind}\r\n\r\n{text}");
        let (json, events) = ("application/json", "text/event-stream");
        let event = |text: &str| format!("event: message\ndata: {text}\n\n");
        let endpoint = "event: endpoint\ndata: /messages?a=b\n\n";
        let (mut found, mut wanted) = (Vec::new(), Vec::new());
        for (is_stream, first, list, flood, stays, expected) in [
            (false, says(json, HELLO), says(json, TOOLS), "", false, ""),
            (false, says(events, &event(HELLO)), says(events, &event(TOOLS)), "", true, ""),
            (false, says(json, ""), String::new(), "", true, "it did not answer within 5 s"),
            (false, says(json, ""), String::new(), "a", true, "its answer has more than 1 MiB"),
            (false, says(events, ""), String::new(), "", true, "it did not answer within 5 s"),
            (
                false,
                says(events, &event(r#"{"id":7}"#)),
                String::new(),
                "data: {}\n\n",
                true,
                "its answer has more than 1 MiB",
            ),
            (false, says(events, ""), String::new(), "", false, "it ended without an answer"),
            (false, says(json, "{{{"), String::new(), "", false, ""),
            (false, says(json, HELLO), says(json, ""), "", true, "it did not answer within 5 s"),
            (false, says(json, HELLO), says(json, "{"), "a", true, "its answer has more than 1 MiB"),
            (
                false,
                says(json, r#"{"id":1,"error":{"message":"no key"}}"#),
                String::new(),
                "",
                false,
                "it refused to begin: no key",
            ),
            (
                false,
                "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\n\r\n".to_owned(),
                String::new(),
                "",
                false,
                REDIRECTS,
            ),
            (
                true,
                "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\n\r\n".to_owned(),
                String::new(),
                "",
                false,
                REDIRECTS,
            ),
            (true, says(events, &(endpoint.to_owned() + &event(HELLO) + &event(TOOLS))), String::new(), "", true, ""),
            (
                true,
                says(events, &(endpoint.to_owned() + &event(HELLO))),
                String::new(),
                "",
                true,
                "it did not answer within 5 s",
            ),
            (true, says(events, endpoint), String::new(), "", true, "it did not answer within 5 s"),
            (true, says(events, ""), String::new(), "", true, "it did not answer within 5 s"),
            (true, says(events, ""), String::new(), ": a\n\n", true, "its answer has more than 1 MiB"),
            (true, says(events, endpoint), String::new(), "data: {}\n\n", true, "its answer has more than 1 MiB"),
            (true, says(events, endpoint), String::new(), "", false, "it ended without an answer"),
            (true, says(events, "event: endpoint\ndata: http://127.0.0.1:1/\n\n"), String::new(), "", true, ""),
            (true, "HTTP/1.1 401 Unauthorized\r\n\r\n".to_owned(), String::new(), "", false, ""),
        ] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let url = format!("http://{}/mcp", listener.local_addr().expect("it has one"));
            let what = format!("{is_stream} {first:?} {list:?} {flood:?} {stays}");
            tokio::spawn(async move {
                let mut open = JoinSet::new();
                while let Ok((mut stream, _)) = listener.accept().await {
                    let (first, list) = (first.clone(), list.clone());
                    open.spawn(async move {
                        let mut request = [0; 4096];
                        let read = stream.read(&mut request).await.unwrap_or_default();
                        let request = String::from_utf8_lossy(&request[..read]).into_owned();
                        let is_list = request.contains("tools/list");
                        let is_plain = is_stream && request.starts_with("POST") || request.contains("notifications/");
                        let answer = match (is_plain, is_list) {
                            (true, _) => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
                            (false, true) => &list,
                            (false, false) => &first,
                        };
                        let _ = stream.write_all(answer.as_bytes()).await;
                        // A list that goes wrong does so after a beginning that does not.
                        let goes_on = !is_plain && (is_list || list.is_empty());
                        while goes_on
                            && !flood.is_empty()
                            && stream.write_all(flood.repeat(65_536).as_bytes()).await.is_ok()
                        {}
                        if goes_on && stays {
                            std::future::pending::<()>().await;
                        }
                    });
                }
            });
            let limit = Duration::from_secs(5);
            wanted.push((what.clone(), expected.to_owned()));
            found.push(async move {
                let asked = timeout(limit, ask_address(&url, &Headers::new(), is_stream)).await;
                (what, asked.unwrap_or_else(|_| Err(silence(limit))).err().unwrap_or_default())
            });
        }
        let found: JoinSet<(String, String)> = found.into_iter().collect();
        let found: BTreeMap<String, String> = found.join_all().await.into_iter().collect();
        assert_eq!(found, wanted.into_iter().collect());
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
            ("lists", local("sh", &format!("{BEGINS} read line; read line; echo '{{\"id\":2}}'; sleep 60"))),
            ("lists never", local("sh", &format!("{BEGINS} sleep 60"))),
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
            ("lists never", "it did not answer within 1.5 s"),
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
