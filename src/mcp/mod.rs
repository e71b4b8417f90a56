//! The Model Context Protocol, from the server's side. `rmcp` speaks it, in every revision on one connection; ours are
//! what is offered, and how lines get in and out.
//!
//! ```text
//! stdin ─ line → messages → transport ─→ rmcp ─→ handler ─→ service, in a thread of its own
//!                               ↑                   │
//! stdout ←──────────────────────┴── answers ←───────┘
//! ```
//!
//! The transport is ours because that of `rmcp` drops what is no JSON, and lines that are too long, without an answer;
//! and because clients of 2025-03-26 send batches.

mod batch;
mod call;
mod fault;
mod handler;
mod http;
mod line;
mod messages;
mod result;
mod service;
mod signal;
mod stdio;
mod task;
mod transport;

pub(crate) use call::{Call, Confirmed};
pub(crate) use fault::Fault;
pub(crate) use http::{Endpoint, TOKEN, serve_http};
pub(crate) use result::ToolResult;
pub(crate) use service::{Object, Service};
pub(crate) use signal::{Signal, Wake};
pub(crate) use stdio::serve;
pub(crate) use task::{Task, TaskState};
