//! The protocol between hosts and their clients: one JSON object per line.
//!
//! ```text
//! client                      host
//!   orchestrate ────────────→
//!                ←──────────── ready                    a stopped process does not send it, and gets no word to go
//!   go ─────────────────────→                           without it, nothing begins
//!                ←──────────── declined                 nothing has begun; the client runs it itself
//!                ←──────────── event …
//!                ←──────────── ask      → answer        a question for the client's user
//!                ←──────────── land     → landed        only foreground commands commit on the user's branch
//!   cancel ─────────────────→
//!                ←──────────── ended | failed           the last line
//!
//!   status, cancel, say, each on a connection of its own
//!                ←──────────── activity | watching | done | declined
//! ```

use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use super::engine_key::EngineKey;
use crate::error::Failure;
use crate::model::{
    Attachment, ConnectionState, Event, Proposal, RunActivity, RunId, SessionState, SessionStatus, Slug, Tier,
    from_json, to_json,
};
use crate::ops::decisions::landing::Landed;
use crate::ops::run::order::{Conversation, Ended, NamedMember, Order};
use crate::policy::Permissions;
use crate::pool::Ask;
use crate::route::RouteOptions;

/// Most bytes of a line, far more than any message needs.
const MAX_LINE: u64 = 64 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::ops) enum FromClient {
    Orchestrate(Box<Request>),
    Go {},
    /// `None`: there is no answer.
    Answer {
        id: u64,
        text: Option<String>,
    },
    Landed(Box<Result<Landed, Failure>>),
    /// Cancel the run, or one agent's work.
    Cancel {
        agent: Option<Slug>,
    },
    /// Deliver the user's message to an agent.
    Say {
        agent: Slug,
        text: String,
    },
    Status {},
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::ops) enum FromHost {
    /// The order has been read.
    Ready {},
    Declined {
        reason: String,
    },
    Event(Box<Event>),
    Ask {
        id: u64,
        question: String,
        /// What the same asks for, if it asks for a permission.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proposal: Option<Box<Proposal>>,
    },
    Land {},
    Ended(Box<Ended>),
    Failed(Box<Failure>),
    /// What the agents of a run do.
    Activity(Box<RunActivity>),
    Watching(Box<WatchState>),
    Done {},
}

/// The state of a watch as `squad status` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WatchState {
    pub(crate) engine: String,
    pub(crate) engine_version: String,
    pub(crate) connection: ConnectionState,
    /// The state of each agent's session.
    pub(crate) sessions: BTreeMap<Slug, SessionState>,
    /// Details of the same sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<SessionStatus>,
}

/// An order as it is sent, checked by the client.
#[derive(Serialize, Deserialize)]
pub(in crate::ops) struct Request {
    pub(in crate::ops) message: String,
    pub(in crate::ops) agents: Vec<Slug>,
    pub(in crate::ops) tier: Option<Tier>,
    pub(in crate::ops) flags: BTreeMap<String, String>,
    pub(in crate::ops) attachments: Vec<Attachment>,
    pub(in crate::ops) permissions: Permissions,
    /// Whether a user can answer questions.
    pub(in crate::ops) asks: bool,
    pub(in crate::ops) commit: bool,
    pub(in crate::ops) resume: Option<RunId>,
    pub(in crate::ops) conversation: Option<Conversation>,
    /// Members that an MCP client named.
    #[serde(default)]
    pub(in crate::ops) members: Vec<NamedMember>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::ops) fresh: bool,
    /// The engine that the client would start; `None`: any.
    pub(in crate::ops) engine: Option<EngineKey>,
}

impl Request {
    /// The order, for which the host opens what else it needs. Questions have no answer yet.
    pub(in crate::ops) fn order(self, default_tier: Option<Tier>) -> Order {
        let Self {
            message, agents, tier, flags, attachments, permissions, commit, conversation, members, fresh, ..
        } = self;
        let nobody: Ask = Arc::new(|_, _| ());
        Order {
            message,
            route_options: RouteOptions { agents, tier, default_tier },
            flags,
            attachments,
            permissions,
            script: None,
            commit,
            ask: self.asks.then_some(nobody),
            land: None,
            conversation,
            fresh,
            resumed: None,
            members,
            described: None,
        }
    }
}

/// The messages of the other side.
pub(in crate::ops) struct Incoming<R> {
    reader: BufReader<R>,
    /// The line received so far.
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(in crate::ops) fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new() }
    }

    /// The next message; `None` at the end of the stream or on an invalid message. Cancel safe.
    pub(in crate::ops) async fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        let room = MAX_LINE.saturating_sub(self.line.len() as u64);
        (&mut self.reader).take(room).read_until(b'\n', &mut self.line).await.ok()?;
        read(&std::mem::take(&mut self.line))
    }
}

/// The message of a whole line.
fn read<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let line = line.strip_suffix(b"\n")?;
    from_json(line).inspect_err(|error| tracing::debug!("not a message of squad's: {error}")).ok()
}

/// The next message, for a thread that may block.
pub(in crate::ops) fn next<T: DeserializeOwned>(input: &mut dyn BufRead) -> Option<T> {
    let mut line = Vec::new();
    input.take(MAX_LINE).read_until(b'\n', &mut line).ok()?;
    read(&line)
}

/// A message as a line.
pub(in crate::ops) fn to_line(message: &impl Serialize) -> Vec<u8> {
    // Every message can be serialized.
    (to_json(message).unwrap_or_default() + "\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn line(frame: &impl Serialize) -> String {
        String::from_utf8(to_line(frame)).expect("UTF-8")
    }

    /// What other versions of squad read and write.
    #[test]
    fn frames_stay_as_they_are() {
        let agent = Slug::fold("ada").expect("a name");
        let request = Request {
            message: "Add it.".to_owned(),
            agents: vec![agent.clone()],
            tier: Some(Tier::Full),
            flags: [("model".to_owned(), "small".to_owned())].into(),
            attachments: Vec::new(),
            permissions: Permissions::Ask,
            asks: true,
            commit: true,
            resume: None,
            conversation: None,
            members: Vec::new(),
            fresh: false,
            engine: None,
        };
        let run = RunId::parse("20260101-000000-abcdef").expect("an id");
        let client = [
            FromClient::Orchestrate(Box::new(request)),
            FromClient::Go {},
            FromClient::Answer { id: 1, text: Some("yes".to_owned()) },
            FromClient::Landed(Box::new(Err(Failure::failed("no branch")))),
            FromClient::Cancel { agent: None },
            FromClient::Cancel { agent: Some(agent.clone()) },
            FromClient::Say { agent: agent.clone(), text: "without the cache".to_owned() },
            FromClient::Status {},
        ];
        let host = [
            FromHost::Ready {},
            FromHost::Declined { reason: "it has its own --max-concurrent".to_owned() },
            FromHost::Ask { id: 1, question: "Which?".to_owned(), proposal: None },
            FromHost::Land {},
            FromHost::Ended(Box::new(Ended::without_work(run, crate::model::Outcome::Completed, None))),
            FromHost::Failed(Box::new(Failure::failed("no engine"))),
            FromHost::Activity(Box::default()),
            FromHost::Done {},
        ];
        let same = |lines: String, expected: Expect| expected.assert_eq(&lines);
        same(
            client.iter().map(line).collect(),
            expect![[r#"
            {"orchestrate":{"message":"Add it.","agents":["ada"],"tier":"full","flags":{"model":"small"},"attachments":[],"permissions":"ask","asks":true,"commit":true,"resume":null,"conversation":null,"members":[],"engine":null}}
            {"go":{}}
            {"answer":{"id":1,"text":"yes"}}
            {"landed":{"Err":{"kind":"failed","message":"no branch","hint":null,"source":null}}}
            {"cancel":{"agent":null}}
            {"cancel":{"agent":"ada"}}
            {"say":{"agent":"ada","text":"without the cache"}}
            {"status":{}}
        "#]],
        );
        same(
            host.iter().map(line).collect(),
            expect![[r#"
                {"ready":{}}
                {"declined":{"reason":"it has its own --max-concurrent"}}
                {"ask":{"id":1,"question":"Which?"}}
                {"land":{}}
                {"ended":{"run":"20260101-000000-abcdef","status":"completed","answer":null,"refused":0,"has_committed":false,"unlanded":null,"unrecorded":null,"error":null}}
                {"failed":{"kind":"failed","message":"no engine","hint":null,"source":null}}
                {"activity":{"step":null,"agents":{},"sessions":[],"questions":[],"person":{"counted":0,"since":null}}}
                {"done":{}}
            "#]],
        );
        let again = |line: &[u8]| read::<FromClient>(line).is_some();
        assert!(client.iter().all(|frame| again(&to_line(frame))));
        for (wrong, why) in
            [("{\"go\":{}}", "half a line"), ("{\"fly\":{}}\n", "unknown"), ("\n", "empty"), ("[]\n", "")]
        {
            assert!(!again(wrong.as_bytes()), "{why}");
        }
        let endless = std::io::repeat(b'x');
        assert!(next::<FromClient>(&mut std::io::BufReader::new(endless)).is_none(), "longer than any frame");
    }
}
