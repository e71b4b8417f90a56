//! The Model Context Protocol, from the server's side: JSON-RPC messages, one a line, on standard input and output.
//!
//! ```text
//! stdin ─ line → message ─┬─ initialize, ping, lists ────────────→ reply ─→ stdout
//!                         ├─ tools/call ─→ a thread of its own ──→ reply
//!                         └─ notifications/cancelled ─→ signal of that call
//! ```
//!
//! Two ways of speaking are served on one connection. Clients up to 2025-11-25 begin with `initialize`; from 2026-07-28
//! on every request says its version and what the client can do, and nothing is remembered between requests.
//!
//! Written here and not taken from the `rmcp` crate: that adds 1.5 MB to the program, drops lines that are no JSON
//! without an answer, and has no limit on calls at the same time.

mod call;
mod line;
mod message;
mod output;
mod questions;
mod result;
mod server;
mod signal;
#[cfg(test)]
mod tests;
mod version;

pub(crate) use call::Call;
pub(crate) use message::Fault;
pub(crate) use result::ToolResult;
pub(crate) use server::{Service, serve};
pub(crate) use signal::Wake;
