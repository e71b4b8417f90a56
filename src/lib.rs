//! squad runs a team of AI coding agents that lives in a git repository.
#![allow(dead_code, unused_imports)] // until the commands use it

mod compile;
mod git;
mod model;
mod parse;
mod policy;
mod record;
mod route;
mod settings;
