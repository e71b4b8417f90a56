//! squad as its users see it: a repository, a command, the whole output.

#![expect(clippy::panic, reason = "a failed step is a failed test")]

mod agents;
mod bad_input;
mod decisions;
mod demo;
mod house;
mod init;
mod log;
mod orchestrate;
mod process;
mod readme;
mod support;
