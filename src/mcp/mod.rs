//! The server side of the Model Context Protocol (MCP). `rmcp` implements every revision of the protocol. This module
//! adds the interface of a service, and the transports.
//!
//! ```text
//! stdin ─ line → messages → transport ─→ rmcp ─→ handler ─→ service, in a thread of its own
//!                               ↑                   │
//! stdout ←──────────────────────┴── responses ←─────┘
//! ```
//!
//! The transport for lines is our own because that of `rmcp` drops invalid JSON and overlong lines without a response.

mod call;
mod connections;
mod fault;
mod handler;
mod http;
mod line;
mod messages;
mod open_requests;
mod result;
mod server;
mod service;
mod sessions;
mod signal;
mod stdio;
#[cfg(test)]
mod stub;
mod task;
mod transport;

pub(crate) use call::{Call, Confirmed};
pub(crate) use fault::Fault;
pub(crate) use http::{Endpoint, TOKEN_VARIABLE, serve_http};
pub(crate) use result::ToolResult;
pub(crate) use service::{Object, Service};
pub(crate) use signal::{Signal, Wake};
pub(crate) use stdio::serve;
pub(crate) use task::{Task, TaskState};
