//! squad as its users see it: a repository, a command, the whole output.

mod agents;
mod bad_input;
mod config;
mod decision_states;
mod decisions;
mod demo;
mod direct;
mod history;
mod house;
mod import;
mod index;
mod init;
mod landing;
mod ledger;
mod log;
mod orchestrate;
mod process;
mod pull_requests;
mod readme;
mod rescue;
mod review;
mod route;
mod scrub;
mod support;
mod sync;
mod why;
