//! The `squad` binary with the real programs that `.ci/install-real-parts` installs.

#[path = "../support/attempts.rs"]
mod attempts;
#[path = "../support/copilot_cli.rs"]
mod copilot_cli;
#[path = "../support/emulator.rs"]
mod emulator;
#[path = "../support/model_server.rs"]
mod model_server;
#[path = "../it/support.rs"]
#[expect(dead_code, reason = "the stories of tests/it need more of it")]
mod repository;
#[path = "../support/terminal.rs"]
mod terminal;
#[path = "../../src/engine/prove/wires.rs"]
mod wires;

mod attach;
mod bisect;
mod clones;
mod codex;
mod colleagues;
mod command_engines;
mod conversation;
mod damage;
mod engines;
mod exports;
mod frames;
mod hooks;
mod hosts;
mod html;
mod installed;
mod left_running;
mod logins;
mod mcp;
mod mcp_clients;
mod orchestrate;
mod outcome;
mod peers;
mod policy;
mod prompt;
mod resume;
mod sandbox;
mod screen;
mod session_engines;
mod steps;
mod support;
mod three_hosts;
mod watch;
mod watch_kills;
mod workflow;
