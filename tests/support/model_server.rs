//! A model that plays scripts, on loopback and the wires of [`wires`].
//!
//! A script is lines of the last user message that holds any:
//!
//! ```text
//! STEP say:TEXT             a final text
//! STEP tool:NAME {json}     a tool call; several joined by ` && ` are made at once
//! STEP plain:TEXT           a final text, and an error where its form is asked for
//! STEP sleep:S say:TEXT     after S seconds
//! STEP stream:N say:TEXT    in N pieces, 0.1 s apart
//! STEP error:400            an HTTP error
//! STEP busy:3 say:TEXT      after three answers of 529, counted for the whole server
//! ```
//!
//! The assistant's turns since that message pick the step. A [`Script`] given to the server plays in its place where
//! its marker stands anywhere in the request's messages, such as in an agent's charter: agents that are given the same
//! task then do different things. It plays from its beginning for every prompt. Without a script the model echoes what
//! it was last told.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::wires::{self, Wire, text};
use serde_json::{Value, json};

/// What an agent does, whatever it is told.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// Text of which the agent is known.
    marker: String,
    /// As after `STEP `.
    steps: Vec<String>,
}

impl Script {
    pub(crate) fn new<'a>(marker: &str, steps: impl IntoIterator<Item = &'a str>) -> Self {
        Self { marker: marker.to_owned(), steps: steps.into_iter().map(str::to_owned).collect() }
    }
}

/// Serves until it is dropped.
pub(crate) struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    scripts: Vec<Script>,
    requests: Mutex<Vec<Value>>,
    ids: AtomicU64,
    /// How many requests found it busy.
    refused: AtomicU64,
    over: Mutex<bool>,
}

impl ModelServer {
    pub(crate) fn start(scripts: impl IntoIterator<Item = Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            scripts: scripts.into_iter().collect(),
            requests: Mutex::default(),
            ids: AtomicU64::new(1),
            refused: AtomicU64::new(0),
            over: Mutex::new(false),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if *serving.over.lock().expect("no one panics with it") {
                    return;
                }
                let serving = Arc::clone(&serving);
                // A client that goes away is how an aborted turn looks.
                thread::spawn(move || drop(serving.serve(stream)));
            }
        });
        Self { address, shared }
    }

    /// The base URL for an `openai` provider.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of the requests for a completion so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().expect("no one panics with it").clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        *self.shared.over.lock().expect("no one panics with it") = true;
        // Wakes the listener, which then sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

/// What the model does next.
struct Step {
    wait: Duration,
    pieces: usize,
    /// How many requests fail before.
    busy: u64,
    act: Act,
}

enum Act {
    Answer(wires::Act),
    /// By a model that knows no forms of answers.
    Plain(String),
    Fail(u16),
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut stream = stream;
        while let Some((line, body)) = read_request(&mut reader)? {
            if line.starts_with("GET ") && line.contains("/models") {
                let models = json!({ "object": "list", "data": [{ "id": "fake-1", "object": "model" }] });
                respond(&mut stream, 200, &models)?;
            } else if let Some(wire) = Wire::of(path_of(&line)) {
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                self.requests.lock().expect("no one panics with it").push(body.clone());
                self.answer(&mut stream, &body, wire)?;
            } else if line.contains("/count_tokens") {
                respond(&mut stream, 200, &json!({ "input_tokens": 100 }))?;
            } else if line.starts_with("HEAD ") {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
            } else {
                respond(&mut stream, 404, &json!({ "error": { "message": format!("no such page: {line}") } }))?;
            }
        }
        Ok(())
    }

    fn answer(&self, stream: &mut TcpStream, body: &Value, wire: Wire) -> std::io::Result<()> {
        let step = self.next(&wire.messages(body));
        thread::sleep(step.wait);
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let act = match step.act {
            Act::Plain(_) if body.get("response_format").or(body.pointer("/text/format")).is_some() => {
                let error = json!({ "message": "response_format is not supported", "type": "invalid_request_error" });
                return respond(stream, 400, &json!({ "error": error }));
            }
            Act::Fail(status) => {
                let kind = if wire == Wire::Chat { "server_error" } else { "api_error" };
                let error = json!({ "type": kind, "message": "scripted error", "code": status.to_string() });
                return respond(stream, status, &json!({ "type": "error", "error": error }));
            }
            Act::Plain(text) => wires::Act::Say(text),
            Act::Answer(act) => act,
        };
        if let Some(whole) = wire.whole(body, &act, id) {
            return respond(stream, 200, &whole);
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        for event in wire.events(body, &act, step.pieces, id) {
            stream.write_all(event.as_bytes())?;
            stream.flush()?;
            if step.pieces > 1 {
                thread::sleep(Duration::from_millis(100));
            }
        }
        // The end of the answer is the end of the connection.
        stream.shutdown(std::net::Shutdown::Both)
    }

    fn next(&self, messages: &[Value]) -> Step {
        let step = self.step(messages);
        match self.refused.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < step.busy).then_some(n + 1)) {
            Ok(_) => Step { act: Act::Fail(529), ..step },
            Err(_) => step,
        }
    }

    fn step(&self, messages: &[Value]) -> Step {
        let all: String = messages.iter().map(|message| text(message) + "\n").collect();
        let scripted = self.scripts.iter().find(|script| all.contains(&script.marker));
        // Whoever is told to go on is not at the beginning again, and what the engine tells a running turn is no prompt.
        let signs = ["You were interrupted", "<system_notification>", "<turn_aborted>"];
        let goes_on = |text: String| signs.iter().any(|sign| text.contains(sign));
        let of_user = |message: &Value| message["role"] == "user" && !goes_on(text(message));
        let (steps, since) = match scripted {
            Some(script) => (script.steps.clone(), messages.iter().rposition(of_user).unwrap_or(0)),
            None => match messages.iter().rposition(|message| of_user(message) && !steps_in(&text(message)).is_empty())
            {
                Some(at) => (steps_in(&text(&messages[at])), at),
                None => {
                    let last = messages.iter().rfind(|message| of_user(message)).map(text).unwrap_or_default();
                    return Step::say(format!("echo: {}", last.lines().last().unwrap_or_default()));
                }
            },
        };
        // Claude Code puts these words behind a turn that was cut short.
        let is_turn = |message: &&Value| message["role"] == "assistant" && text(message) != "No response requested.";
        let done = messages[since..].iter().filter(is_turn).count();
        // Whoever is told that the outcome of a call is unknown makes it again.
        let doubtful = messages[since..]
            .iter()
            .filter(|message| text(message).contains("It is unknown what your last calls"))
            .count();
        let done = done.saturating_sub(doubtful);
        // A decision of a colleague's may come behind the last words, and asks for them again.
        let again = steps.last().filter(|_| all.contains("end with your whole report again"));
        steps.get(done).or(again).map_or_else(|| Step::say("(script over)".into()), |step| Step::parse(step))
    }
}

impl Step {
    fn say(text: String) -> Self {
        Self { wait: Duration::ZERO, pieces: 1, busy: 0, act: Act::Answer(wires::Act::Say(text)) }
    }

    fn parse(mut text: &str) -> Self {
        let mut step = Self::say(String::new());
        loop {
            let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
            if let Some(seconds) = word.strip_prefix("sleep:") {
                step.wait = Duration::from_secs_f64(seconds.parse().expect("seconds after sleep:"));
            } else if let Some(pieces) = word.strip_prefix("stream:") {
                step.pieces = pieces.parse().expect("a number after stream:");
            } else if let Some(count) = word.strip_prefix("busy:") {
                step.busy = count.parse().expect("a number after busy:");
            } else {
                break;
            }
            text = rest;
        }
        step.act = if let Some(said) = text.strip_prefix("say:") {
            Act::Answer(wires::Act::Say(said.replace("\\n", "\n")))
        } else if let Some(said) = text.strip_prefix("plain:") {
            Act::Plain(said.to_owned())
        } else if let Some(status) = text.strip_prefix("error:") {
            Act::Fail(status.parse().expect("a status after error:"))
        } else {
            let calls = text.split(" && ").map(|call| {
                let call = call.trim().strip_prefix("tool:").expect("say:, error: or tool:");
                let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
                (name.to_owned(), arguments.to_owned())
            });
            Act::Answer(wires::Act::Call(calls.collect()))
        };
        step
    }
}

fn steps_in(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.trim().strip_prefix("STEP ")).map(|step| step.trim().to_owned()).collect()
}

fn path_of(line: &str) -> &str {
    line.split(' ').nth(1).and_then(|address| address.split('?').next()).unwrap_or_default()
}

fn respond(stream: &mut TcpStream, status: u16, body: &Value) -> std::io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nretry-after: 0\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The request line and the body; `None` when the client is done.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(|_| std::io::Error::from(ErrorKind::InvalidData))?;
        }
        chunked |= line.starts_with("transfer-encoding:") && line.ends_with("chunked");
    }
    let body = if chunked { read_chunks(reader)? } else { read_exactly(reader, length)? };
    Ok(Some((first, body)))
}

fn read_exactly(reader: &mut impl BufRead, length: usize) -> std::io::Result<Vec<u8>> {
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = line.trim().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).map_err(|_| std::io::Error::from(ErrorKind::InvalidData))?;
        body.extend(read_exactly(reader, size)?);
        reader.read_line(&mut line)?;
        if size == 0 {
            return Ok(body);
        }
    }
}
