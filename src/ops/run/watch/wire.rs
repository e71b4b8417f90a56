//! The protocol between `squad watch` and other squad processes of the same user: one JSON object per line.
//!
//! ```text
//! client                      watch
//!                ←──────────── ready                    a stopped process does not send it, and gets no order
//!   orchestrate ────────────→
//!                ←──────────── declined                 nothing has begun; the client runs it itself
//!                ←──────────── event …
//!                ←──────────── ask      → answer        a question for the client's user
//!                ←──────────── land     → landed        only foreground commands commit on the user's branch
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

/// Incremented when older versions cannot understand newer messages.
pub(in crate::ops) const PROTOCOL: u32 = 2;

/// Most bytes of a line, far more than any message needs.
const MAX_LINE: u64 = 64 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromClient {
    Orchestrate(Box<Request>),
    /// `None`: there is no answer.
    Answer {
        id: u64,
        text: Option<String>,
    },
    Landed(Box<Result<Landed, Failure>>),
    Cancel {},
    /// A conversation has ended and no longer needs its sessions.
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

/// An order as it is sent, checked by the client.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) message: String,
    pub(super) agents: Vec<Slug>,
    pub(super) tier: Option<Tier>,
    pub(super) flags: BTreeMap<String, String>,
    pub(super) attachments: Vec<Attachment>,
    pub(super) permissions: Permissions,
    /// Whether a user can answer questions.
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
    /// The line received so far.
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new() }
    }

    /// The next message; `None` at the end of the stream or on an invalid message. Cancel safe.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        let room = MAX_LINE.saturating_sub(self.line.len() as u64);
        (&mut self.reader).take(room).read_until(b'\n', &mut self.line).await.ok()?;
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\n")?;
        serde_json::from_slice(line).inspect_err(|error| tracing::debug!("not a message of squad's: {error}")).ok()
    }
}

/// A message as a line.
pub(super) fn to_line(message: &impl Serialize) -> Vec<u8> {
    // Every message can be serialized.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
