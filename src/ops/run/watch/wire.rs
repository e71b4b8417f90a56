//! What `squad watch` and the other squads of its user say to each other: one JSON object a line.
//!
//! ```text
//! client                      watch
//!                ←──────────── ready                    a process that is stopped says nothing, and is not asked
//!   orchestrate ────────────→
//!                ←──────────── declined                 nothing has begun; the client does it alone
//!                ←──────────── event …
//!                ←──────────── ask      → answer        a question for the person there
//!                ←──────────── land     → landed        only a command in the foreground commits on the branch
//!   cancel, leave ──────────→
//!                ←──────────── ended | failed           the last line
//! ```

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use super::engine_key::EngineKey;
use crate::error::Failure;
use crate::model::{Attachment, Event, RunId, Slug, Tier};
use crate::ops::decisions::landing::Landed;
use crate::ops::run::order::{Conversation, Ended};
use crate::policy::Permissions;

/// Goes up when an older squad could not make sense of what a newer one says.
pub(in crate::ops) const PROTOCOL: u32 = 2;

/// Bytes of a line: more than any message or answer has.
const LONGEST: u64 = 64 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromClient {
    Orchestrate(Box<Request>),
    /// `None`: nobody answers.
    Answer {
        id: u64,
        text: Option<String>,
    },
    Landed(Box<Result<Landed, Failure>>),
    Cancel {},
    /// A conversation is over, and needs its sessions no more.
    Leave {
        conversation: RunId,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromWatch {
    /// The first line.
    Ready {},
    Declined {
        reason: String,
    },
    Event(Box<Event>),
    Ask {
        id: u64,
        question: String,
    },
    Land {},
    Ended(Box<Ended>),
    Failed(Box<Failure>),
}

/// An order as it is sent: what a client has checked already.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) message: String,
    pub(super) agents: Vec<Slug>,
    pub(super) tier: Option<Tier>,
    pub(super) flags: BTreeMap<String, String>,
    pub(super) attachments: Vec<Attachment>,
    pub(super) permissions: Permissions,
    /// Somebody is there to answer questions.
    pub(super) asks: bool,
    pub(super) commit: bool,
    pub(super) resume: Option<RunId>,
    pub(super) conversation: Option<Conversation>,
    /// The engine that the client would start.
    pub(super) engine: EngineKey,
}

/// The messages of the other side.
pub(super) struct Incoming<R> {
    reader: BufReader<R>,
    /// The part of a line that has come.
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new() }
    }

    /// The next message; `None` at the end, which is also where something else than a message comes. Cancel safe.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        let room = LONGEST.saturating_sub(self.line.len() as u64);
        (&mut self.reader).take(room).read_until(b'\n', &mut self.line).await.ok()?;
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\n")?;
        serde_json::from_slice(line).inspect_err(|error| tracing::debug!("no message of ours: {error}")).ok()
    }
}

/// A message as a line.
pub(super) fn written(message: &impl Serialize) -> Vec<u8> {
    // Every message of ours can be written.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
