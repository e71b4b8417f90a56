//! Where runs live. A host carries out runs and answers other squad processes of the same user: `squad orchestrate` is
//! the host of its own run, a runner that of one run of `squad mcp`, and `squad watch` that of all it is sent.
//!
//! ```text
//! squad cancel, status, a conversation's `@agent …` ── request ──→ socket of the run
//! squad orchestrate, status ────────────────────────── request ──→ socket of the watch
//! squad mcp ─────────────────────────────────────────── order ───→ stdin of a runner
//! ```
//!
//! [`frames`] has the protocol.

mod client;
mod engine_key;
mod frames;
mod requests;
mod socket;

pub(in crate::ops) use client::{activities, activity, activity_with, ask, send};
pub(in crate::ops) use engine_key::EngineKey;
pub(crate) use frames::WatchState;
pub(in crate::ops) use frames::{FromClient, FromHost, Incoming, Request, next, to_line};
pub(in crate::ops) use requests::Requests;
pub(in crate::ops) use socket::{Endpoint, PROTOCOL, listen, name};
