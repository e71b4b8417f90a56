//! The protocol between squad and `squad worker`: a JSON message a line on the worker's standard streams, both ways. A
//! message with `method` and `id` is a request and has an answer of the same `id`; without `id`, it has none.
//!
//! ```text
//! squad                       squad worker
//!                ←──────────── hello                      whatever is printed before it is skipped
//!   order ──────────────────→  → what it lacks, and what goes on there
//!   objects … ──────────────→                             a bundle of what it lacks
//!   begin ──────────────────→  → its folder, its engine
//!   open, send, steer, … ───→
//!                ←──────────── fact …                     numbered; replayed after a break
//!                ←──────────── ask         → the answer
//!                ←──────────── work …      → taken        a bundle of what changed, before a turn's last fact
//!   close, finish ──────────→
//! ```
//!
//! A broken stream ends nothing: the worker goes on, and the next `order` of the same id attaches to it. It is the same
//! client if it names itself as before, and is then told the facts after the last one that it had; another one finds the
//! clone as it is and no session open.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::{Approval, Fact, Opening, Reply, Request, ToolCall, ToolResult, Writing, spawn};
use crate::model::{Access, AvailableModels, NetworkAccess, SandboxLevel};
use crate::settings::Price;

/// Incremented when older versions cannot understand newer messages.
pub(crate) const PROTOCOL: u32 = 1;
/// Bytes of a bundle in one message.
pub(crate) const CHUNK: u64 = 1 << 20;

/// The methods' names.
pub(crate) mod method {
    pub(crate) const HELLO: &str = "hello";
    pub(crate) const ORDER: &str = "order";
    pub(crate) const OBJECTS: &str = "objects";
    pub(crate) const BEGIN: &str = "begin";
    pub(crate) const OPEN: &str = "open";
    pub(crate) const SEND: &str = "send";
    pub(crate) const RECALL: &str = "recall";
    pub(crate) const NOTIFY: &str = "notify";
    pub(crate) const STEER: &str = "steer";
    pub(crate) const ABORT: &str = "abort";
    pub(crate) const CLOSE: &str = "close";
    pub(crate) const FINISH: &str = "finish";
    pub(crate) const ALIVE: &str = "alive";
    pub(crate) const FACT: &str = "fact";
    pub(crate) const ASK: &str = "ask";
    pub(crate) const WORK: &str = "work";
}

/// What a worker says first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    /// The version of squad.
    pub(crate) version: String,
    /// As `linux-x86_64`.
    pub(crate) platform: String,
    /// The engines whose programs are there.
    pub(crate) engines: Vec<String>,
    /// The orders at work on the host, for the same user.
    pub(crate) busy: usize,
}

/// A work order: what a host needs to know to let one agent work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) protocol: u32,
    /// The version of squad.
    pub(crate) version: String,
    /// Letters, digits, `-` and `_`: the same for the same agent of the same run.
    pub(crate) id: String,
    /// Who gives it, to tell a client that attaches again from another one.
    pub(crate) client: String,
    /// The number of the last fact that this client had.
    pub(crate) after: u64,
    /// Identifies the repository among those of the client, in hex.
    pub(crate) repository: String,
    /// git's object format: `sha1` or `sha256`.
    pub(crate) format: String,
    /// The branch that is checked out, and its commit.
    pub(crate) branch: Option<String>,
    pub(crate) head: Option<String>,
    /// The commit to work on.
    pub(crate) base: String,
    /// The name of the clone's folder.
    pub(crate) name: String,
    /// The project in the repository, with a final `/`; empty if they are the same.
    pub(crate) inner: String,
    pub(crate) run: String,
    pub(crate) agent: String,
    pub(crate) engine: String,
    /// At least this must bound the programs of the engine, if the host can do it…
    pub(crate) sandbox: SandboxLevel,
    /// … and whether it has to.
    pub(crate) requires_sandbox: bool,
    /// What of the network they reach at level `full`; `None`: listed hosts where that is to be had. A worker that is older
    /// goes by its own configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<NetworkAccess>,
    /// The hosts that they may reach besides those that engines and package managers need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reachable: Vec<String>,
    /// What the rehearsal engine plays.
    pub(crate) script: Option<String>,
    /// Seconds that a worker goes on without its client.
    pub(crate) lease: u64,
    /// What the agent may use without its client; `None`: nothing limits it. A worker that is older does not look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<BudgetLease>,
    /// The names of variables that the agent gets from the worker's environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) secrets: Vec<String>,
    /// The program and its arguments that make the clone ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) setup: Vec<String>,
}

/// What of the run's budgets an agent may use while nobody is there to ask. What is missing has no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct BudgetLease {
    pub(crate) tool_calls: Option<u64>,
    /// Seconds.
    pub(crate) time: Option<f64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost_usd: Option<f64>,
    /// In the engines' own units.
    pub(crate) billed: BTreeMap<String, f64>,
    /// The user's prices by model, for engines that do not tell what their calls cost; only where the cost is limited. A
    /// worker that is older counts no cost for such engines.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) prices: BTreeMap<String, Price>,
}

/// Asks whether the worker is there, and renews its lease.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Alive {
    /// The number of the last fact that is counted already.
    pub(crate) after: u64,
    pub(crate) budget: Option<BudgetLease>,
}

/// An order with all that is said to the worker, for a host that nobody talks to while it works.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BatchOrder {
    pub(crate) order: Order,
    /// The project's root where the order comes from.
    pub(crate) root: String,
    pub(crate) opening: Opening,
    pub(crate) send: OfSession,
    /// The number of turns that the agent has completed: the rehearsal engine goes on after them.
    pub(crate) turns: usize,
    /// Whether the agent may do what nothing on the host forbids. Otherwise it changes nothing.
    pub(crate) may_act: bool,
}

/// The answer to an order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Taken {
    /// It lacks the base commit.
    pub(crate) lacks: bool,
    /// Commits that it has of this repository, the latest first.
    pub(crate) has: Vec<String>,
    /// The sessions that are open for this client, and whether each is at work on a turn.
    pub(crate) sessions: BTreeMap<u64, bool>,
}

/// A part of a bundle.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Objects {
    /// In base 64.
    pub(crate) data: String,
    pub(crate) is_last: bool,
}

/// A bundle in parts.
pub(crate) struct Parts {
    file: File,
    /// `None`: the last part was returned.
    left: Option<u64>,
}

impl Parts {
    pub(crate) fn of(path: &Path) -> Result<Self, String> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = opened.map_err(|error| error.to_string())?;
        Ok(Self { file, left: Some(length) })
    }
}

impl Iterator for Parts {
    type Item = Result<Objects, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut left = self.left?;
        let mut part = Vec::new();
        let read = (&mut self.file).take(CHUNK).read_to_end(&mut part);
        left = left.saturating_sub(part.len() as u64);
        self.left = (left > 0 && read.is_ok()).then_some(left);
        let objects = Objects { data: STANDARD.encode(&part), is_last: left == 0 };
        Some(read.map(|_| objects).map_err(|error| error.to_string()))
    }
}

/// The answer to `begin`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// The project's root on the host.
    pub(crate) root: String,
    /// The engine's version there.
    pub(crate) version: String,
    pub(crate) offer: AvailableModels,
}

/// The answer to `open`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) model: String,
    pub(crate) workspace: Option<String>,
    pub(crate) reports_tools: bool,
    pub(crate) sandbox: SandboxLevel,
    /// Its programs reach listed hosts only.
    #[serde(default)]
    pub(crate) is_listed: bool,
}

/// A request about an open session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OfSession {
    pub(crate) session: u64,
    /// The prompt, or the text to add.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<Attached>,
    /// Of `send`: counts the session's turns, so that none is begun twice.
    #[serde(default)]
    pub(crate) turn: u64,
}

/// An attached file with its content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Attached {
    pub(crate) path: String,
    /// In base 64.
    pub(crate) data: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NumberedFact {
    /// Counts from 1 for each order; 0 for what is not repeated after a break.
    pub(crate) number: u64,
    pub(crate) session: u64,
    pub(crate) fact: Fact,
    /// What a model call adds to the cost by the user's prices, in US dollars. Only the worker that wrote it reads it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) priced: Option<f64>,
}

/// A part of what an agent changed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    /// On top of the base.
    pub(crate) commit: String,
    pub(crate) objects: Objects,
    /// Counts the bundle's parts from 0. After a break, a part may come twice.
    pub(crate) part: u64,
}

/// A question of a session's engine, as [`Request`] without its reply.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    Tool(ToolCall),
    BeforeTool(ToolCall),
    Write(Vec<Writing>),
    Permission { call: Option<String>, access: Access, tool: String, detail: String },
    Host(String),
    Unasked {},
    AfterTool(ToolCall, ToolResult),
    Question { text: String, choices: Vec<String> },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// The same for the same question, which is asked again after a break.
    pub(crate) id: u64,
    pub(crate) session: u64,
    pub(crate) asked: Asked,
}

/// Where the answer to an [`Asked`] goes. Dropping it refuses.
pub(crate) type Answer = Box<dyn FnOnce(Value) + Send>;

impl Asked {
    /// A request in the form that travels, and where its answer goes.
    pub(crate) fn of(request: Request) -> (Self, Answer) {
        fn to<T: for<'de> Deserialize<'de> + Send + 'static>(reply: Reply<T>) -> Answer {
            Box::new(move |answer| {
                // What cannot be read is no answer, and that refuses.
                if let Ok(answer) = serde_json::from_value(answer) {
                    reply.send(answer);
                }
            })
        }
        match request {
            Request::Tool(call, reply) => (Self::Tool(call), to(reply)),
            Request::BeforeTool(call, reply) => (Self::BeforeTool(call), to(reply)),
            Request::Write(writings, reply) => (Self::Write(writings), to(reply)),
            Request::Permission { call, access, tool, detail, reply } => {
                (Self::Permission { call, access, tool, detail }, to(reply))
            }
            Request::Host(place, reply) => (Self::Host(place), to(reply)),
            Request::Unasked(reply) => (Self::Unasked {}, to(reply)),
            Request::AfterTool(call, result, reply) => (Self::AfterTool(call, result), to(reply)),
            Request::Question { text, choices, reply } => (Self::Question { text, choices }, to(reply)),
        }
    }

    /// The request again; `answer` gets what is answered, unless nothing is.
    pub(crate) fn request(self, answer: impl FnOnce(Value) + Send + 'static) -> Request {
        fn from<T: Serialize + Send + 'static>(answer: impl FnOnce(Value) + Send + 'static) -> Reply<T> {
            let (reply, given) = Reply::channel();
            spawn(async move {
                if let Ok(given) = given.await {
                    answer(serde_json::to_value(given).unwrap_or_default());
                }
            });
            reply
        }
        match self {
            Self::Tool(call) => Request::Tool(call, from(answer)),
            Self::BeforeTool(call) => Request::BeforeTool(call, from(answer)),
            Self::Write(writings) => Request::Write(writings, from(answer)),
            Self::Permission { call, access, tool, detail } => {
                Request::Permission { call, access, tool, detail, reply: from::<Approval>(answer) }
            }
            Self::Host(place) => Request::Host(place, from(answer)),
            Self::Unasked {} => Request::Unasked(from(answer)),
            Self::AfterTool(call, result) => Request::AfterTool(call, result, from(answer)),
            Self::Question { text, choices } => Request::Question { text, choices, reply: from(answer) },
        }
    }
}

/// Whether a path is long enough, and of this run, to be looked for in all texts.
pub(crate) fn is_root(path: &str, run: &str) -> bool {
    run.len() > 8 && path.contains(run) && path.contains(['/', '\\'])
}

/// The value with one path in place of another in all its texts, names included.
pub(crate) fn moved(value: Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) if text.contains(from) => Value::String(text.replace(from, to)),
        Value::Array(values) => values.into_iter().map(|value| moved(value, from, to)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name.replace(from, to), moved(value, from, to)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    /// A host may have another version of squad: what is sent changes only with [`PROTOCOL`].
    #[test]
    fn an_order_looks_like_this() {
        let order = Order {
            protocol: PROTOCOL,
            version: "1.2.3".to_owned(),
            id: "20260105-090000-0000b1-ada".to_owned(),
            client: "4f6c".to_owned(),
            after: 7,
            repository: "2d1172693ca18ab5".to_owned(),
            format: "sha1".to_owned(),
            branch: Some("main".to_owned()),
            head: Some("aa".to_owned()),
            base: "bb".to_owned(),
            name: "project".to_owned(),
            inner: "web/".to_owned(),
            run: "20260105-090000-0000b1".to_owned(),
            agent: "ada".to_owned(),
            engine: "copilot".to_owned(),
            sandbox: SandboxLevel::Full,
            requires_sandbox: false,
            network: None,
            reachable: Vec::new(),
            script: None,
            lease: 3600,
            budget: None,
            secrets: Vec::new(),
            setup: Vec::new(),
        };
        let text = serde_json::to_string_pretty(&order).expect("JSON");
        expect![[r#"
            {
              "protocol": 1,
              "version": "1.2.3",
              "id": "20260105-090000-0000b1-ada",
              "client": "4f6c",
              "after": 7,
              "repository": "2d1172693ca18ab5",
              "format": "sha1",
              "branch": "main",
              "head": "aa",
              "base": "bb",
              "name": "project",
              "inner": "web/",
              "run": "20260105-090000-0000b1",
              "agent": "ada",
              "engine": "copilot",
              "sandbox": "full",
              "requires_sandbox": false,
              "script": null,
              "lease": 3600
            }"#]]
        .assert_eq(&text);
        assert_eq!(serde_json::from_str::<Order>(&text).expect("an order"), order);
        let budget = BudgetLease {
            tool_calls: Some(3),
            time: Some(1.5),
            tokens: Some(1000),
            cost_usd: Some(0.25),
            billed: BTreeMap::from([("premium_requests".to_owned(), 2.0)]),
            prices: BTreeMap::new(),
        };
        let (secrets, setup) = (vec!["NPM_TOKEN".to_owned()], vec!["npm".to_owned(), "ci".to_owned()]);
        let limited = Order { budget: Some(budget), secrets, setup, ..order };
        let text = serde_json::to_string(&limited).expect("JSON");
        let told =
            r#""budget":{"tool_calls":3,"time":1.5,"tokens":1000,"cost_usd":0.25,"billed":{"premium_requests":2.0}}"#;
        let told = format!(r#""lease":3600,{told},"secrets":["NPM_TOKEN"],"setup":["npm","ci"]}}"#);
        assert!(text.ends_with(&told), "{text}");
        assert_eq!(serde_json::from_str::<Order>(&text).expect("an order"), limited);
    }

    /// Every question arrives as it was asked, and its answer where it belongs; a dropped one is refused.
    #[tokio::test]
    async fn questions_travel_and_their_answers_come_back() {
        let call = || ToolCall { call: "1".to_owned(), tool: "shell".to_owned(), arguments: json!({ "a": 1 }) };
        async fn sent(request: Request, reply: Value) -> Value {
            let (asked, answer) = Asked::of(request);
            let travelled: Asked = serde_json::from_value(serde_json::to_value(&asked).expect("JSON")).expect("asked");
            let (told, answered) = tokio::sync::oneshot::channel();
            let request = travelled.request(move |answer| drop(told.send(answer)));
            fn fits<T: for<'de> Deserialize<'de>>(reply: Reply<T>, answer: Value) {
                reply.send(serde_json::from_value(answer).expect("an answer"));
            }
            match request {
                Request::Tool(_, to) => fits(to, reply),
                Request::BeforeTool(_, to) => fits(to, reply),
                Request::Write(_, to) => fits(to, reply),
                Request::Permission { reply: to, .. } => fits(to, reply),
                Request::Host(_, to) => fits(to, reply),
                Request::Unasked(to) => fits(to, reply),
                Request::AfterTool(_, _, to) => fits(to, reply),
                Request::Question { reply: to, .. } => fits(to, reply),
            }
            let answered = answered.await.expect("it was answered");
            answer(answered.clone());
            answered
        }
        let result = || ToolResult { ok: true, text: "done".to_owned() };
        let (to, given) = Reply::channel();
        sent(Request::Tool(call(), to), json!(result())).await;
        assert_eq!(given.await, Ok(result()));
        for expected in [Ok(None), Ok(Some(json!({ "b": 2 }))), Err("no".to_owned())] {
            let (to, given) = Reply::channel();
            sent(Request::BeforeTool(call(), to), json!(expected)).await;
            assert_eq!(given.await, Ok(expected));
        }
        for expected in [Approval::Allow, Approval::Deny("because".to_owned())] {
            let (reply, given) = Reply::channel();
            let (tool, detail) = ("shell".to_owned(), "ls".to_owned());
            sent(Request::Permission { call: None, access: Access::Shell, tool, detail, reply }, json!(expected)).await;
            assert_eq!(given.await, Ok(expected.clone()));
            let (reply, given) = Reply::channel();
            sent(Request::Host("example.com:443".to_owned(), reply), json!(expected)).await;
            assert_eq!(given.await, Ok(expected));
        }
        let (to, given) = Reply::channel();
        let (_, answer) = Asked::of(Request::Unasked(to));
        answer(json!("what is no answer"));
        assert!(given.await.is_err(), "and that refuses");
    }

    #[test]
    fn paths_are_translated_in_texts_and_names() {
        let value = json!({ "/a/p": ["cd /a/p/src", 7, { "x": "/b" }], "y": null });
        let there = moved(value.clone(), "/a/p", "/host/q");
        assert_eq!(there, json!({ "/host/q": ["cd /host/q/src", 7, { "x": "/b" }], "y": null }));
        assert_eq!(moved(there, "/host/q", "/a/p"), value);
    }
}
