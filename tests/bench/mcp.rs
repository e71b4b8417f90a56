//! `squad mcp`: until its first reply, its memory, its calls, and members beside bare processes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{ROUNDS, SQUAD, median, print, run};

const CALLS: usize = 1000;
/// Runs with members take their time.
const RUNS: usize = 9;

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "squad mcp", "squad", "floor", "ratio");
    let world = World::new();
    world.first_reply();
    world.calls();
    world.calls_over_http();
    for members in [1, 8, 32] {
        world.members(members);
    }
}

struct World {
    folder: tempfile::TempDir,
}

struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts it and hears its first reply.
    fn greet(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut server = Self { child, input, output: BufReader::new(output) };
        let client = json!({"name": "bench", "version": "1"});
        server.ask("initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
        server
    }

    fn ask(&mut self, method: &str, params: &Value) -> String {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input, "{request}").and_then(|()| self.input.flush()).expect("it reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        line
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> String {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Its memory in kB: all that is mapped, and what is its own alone.
    fn memory(&self) -> Option<(u64, u64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let value = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        Some((value("VmRSS:")?, value("RssAnon:")?))
    }

    fn end(mut self) {
        drop(self.input);
        self.child.wait().expect("it ends");
    }
}

/// A server on loopback, and a connection to it that is kept.
struct HttpServer {
    child: Child,
    head: String,
    connection: BufReader<TcpStream>,
}

impl HttpServer {
    fn start(mut command: Command) -> Self {
        let mut child = command.args(["--http", "0"]).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut next = || said.next().expect("a line").expect("UTF-8");
        let address = next().strip_prefix("serving http://").expect("where it serves").replace("/mcp", "");
        let token = next().rsplit("Bearer ").next().expect("a token").trim_end_matches('`').to_owned();
        let stream = TcpStream::connect(&address).expect("it listens");
        stream.set_nodelay(true).expect("an option");
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n"
        );
        let mut server = Self { child, head, connection: BufReader::new(stream) };
        let client = json!({"name": "bench", "version": "1"});
        let greeting = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let session = server.ask("initialize", &greeting).0.expect("a session");
        server.head.push_str(&format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-06-18\r\n"));
        server
    }

    fn call(&mut self, tool: &str) {
        let (_, body) = self.ask("tools/call", &json!({"name": tool, "arguments": {}}));
        assert!(body.contains("\"roles\""), "{body}");
    }

    /// The session's id, if the answer names one, and the answer's body.
    fn ask(&mut self, method: &str, params: &Value) -> (Option<String>, String) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.connection.get_mut().write_all(request.as_bytes()).expect("it reads");
        let (mut session, mut length) = (None, None);
        loop {
            let line = self.line();
            let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
            match name.to_lowercase().as_str() {
                "" => break,
                "mcp-session-id" => session = Some(value.to_owned()),
                "content-length" => length = value.parse().ok(),
                _ => {}
            }
        }
        if let Some(length) = length {
            let mut body = vec![0; length];
            self.connection.read_exact(&mut body).expect("it answers");
            return (session, String::from_utf8(body).expect("UTF-8"));
        }
        // Otherwise it comes in chunks, of which the last is empty.
        let mut body = String::new();
        loop {
            let size = usize::from_str_radix(&self.line(), 16).expect("a size");
            let mut chunk = vec![0; size];
            self.connection.read_exact(&mut chunk).expect("it answers");
            body.push_str(&String::from_utf8_lossy(&chunk));
            self.line();
            if size == 0 {
                return (session, body);
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.connection.read_line(&mut line).expect("it answers");
        line.trim_end().to_owned()
    }

    fn end(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it ends");
    }
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let world = Self { folder };
        let repo = world.repo();
        fs::create_dir(&repo).expect("a folder");
        run(&repo, "git", &["init", "--quiet", "--initial-branch=main"]);
        run(&repo, "git", &["config", "user.name", "bench"]);
        run(&repo, "git", &["config", "user.email", "bench@example.com"]);
        run(&repo, SQUAD, &["--quiet", "init"]);
        let own = world.folder.path().join("config/squad");
        fs::create_dir_all(&own).expect("a folder");
        let engine = "[engines.nothing]\nprogram = \"echo\"\nargs = [\"done\"]\nstrict = []\n";
        fs::write(own.join("config.toml"), engine).expect("a file");
        world
    }

    fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn squad(&self) -> Command {
        let mut command = Command::new(SQUAD);
        command.args(["mcp", "--engine", "nothing", "--max-concurrent", "32"]).current_dir(self.repo());
        command.env("HOME", self.folder.path()).env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        command
    }

    fn first_reply(&self) {
        let (mut squad, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            for (times, command) in [(&mut squad, self.squad()), (&mut bare, Command::new("cat"))] {
                let start = Instant::now();
                let server = Server::greet(command);
                times.push(start.elapsed());
                server.end();
            }
        }
        print("from start to first reply, against `cat`", median(squad), median(bare));
    }

    fn calls(&self) {
        let mut server = Server::greet(self.squad());
        // A team that was changed a moment ago is read each time.
        std::thread::sleep(Duration::from_millis(2_500));
        let start = Instant::now();
        (0..CALLS).for_each(|_| drop(server.call("list_roles", &json!({}))));
        let squad = start.elapsed();
        let start = Instant::now();
        (0..CALLS).for_each(|_| read(&self.repo().join(".squad")));
        print("1,000 list_roles, against reading the team's files", squad, start.elapsed());
        if let Some((all, own)) = server.memory() {
            println!("{:<48} {:>7.1} MiB, {:.1} of it its own", "memory after that", mebibytes(all), mebibytes(own));
        }
        server.end();
    }

    /// The same calls on one kept-alive connection, against standard input and output.
    fn calls_over_http(&self) {
        let mut server = Server::greet(self.squad());
        let mut http = HttpServer::start(self.squad());
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..CALLS {
            let start = Instant::now();
            http.call("list_roles");
            ours.push(start.elapsed());
            let start = Instant::now();
            server.call("list_roles", &json!({}));
            plain.push(start.elapsed());
        }
        print("a call over HTTP, against standard input", median(ours), median(plain));
        server.end();
        http.end();
    }

    /// Each is a program that ends at once. Squad records the run, flushed, and keeps each one's output.
    fn members(&self, count: usize) {
        let mut server = Server::greet(self.squad());
        let members = vec![json!({"roleId": "lead", "task": "Nothing."}); count];
        let (mut squad, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let start = Instant::now();
            let answer = server.call("start_squad_members", &json!({"members": members}));
            squad.push(start.elapsed());
            assert!(answer.contains("\"status\":\"completed\"") && !answer.contains("\"error\""), "{answer}");
            bare.push(side_by_side(count));
        }
        print(&format!("{count} members, against fork and exec"), median(squad), median(bare));
        server.end();
    }
}

fn side_by_side(count: usize) -> Duration {
    let start = Instant::now();
    let bare = || Command::new("echo").arg("done").stdout(Stdio::null()).spawn().expect("it starts");
    let children: Vec<Child> = (0..count).map(|_| bare()).collect();
    for mut child in children {
        child.wait().expect("it ends");
    }
    start.elapsed()
}

fn read(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() { read(&entry.path()) } else { drop(fs::read(entry.path()).expect("a file")) }
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn mebibytes(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1024.0
}
