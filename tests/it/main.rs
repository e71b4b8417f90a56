//! squad as its users see it: a repository, a command, the whole output.

mod adopt;
mod agents;
mod answers;
mod attach;
#[cfg(unix)]
#[path = "../support/attempts.rs"]
mod attempts;
mod bad_input;
#[cfg(unix)]
mod batch;
mod bombs;
mod budget;
mod by_hand;
mod cancel;
mod card;
mod ceremonies;
mod check;
mod circles;
mod claims;
mod clones;
mod colleagues;
mod commits;
mod config;
mod conflicts;
mod convergence;
#[cfg(unix)]
mod conversation;
mod damage;
mod damage_bytes;
mod decision_histories;
mod decision_states;
mod decisions;
mod demo;
mod diff;
mod direct;
mod dry_run;
mod durable;
#[cfg(unix)]
#[path = "../support/emulator.rs"]
mod emulator;
#[cfg(unix)]
mod engines;
#[cfg(unix)]
mod engines_prove;
mod evidence;
mod exit_codes;
mod export;
mod gc;
mod gc_snapshots;
#[cfg(unix)]
mod goldens;
mod hand_off;
mod help;
mod hidden;
mod histories;
mod history;
mod hooks;
mod host_exports;
mod hosts;
mod house;
mod import;
mod inbox;
mod index;
mod init;
mod init_from;
mod init_kinds;
mod kills;
mod knowledge;
mod landing;
#[cfg(target_os = "linux")]
mod layers;
mod ledger;
mod leftover_refs;
#[cfg(unix)]
mod live_view;
mod log;
mod mcp;
mod mcp_client;
#[cfg(unix)]
mod mcp_engines;
mod mcp_http;
mod mcp_members;
#[cfg(unix)]
mod mcp_plain;
#[cfg(target_os = "linux")]
mod mcp_project_tools;
#[cfg(target_os = "linux")]
mod mcp_registration;
mod mcp_roles;
mod mcp_tasks;
mod mcp_tools;
mod membership;
mod mixed;
#[cfg(unix)]
mod moments;
#[cfg(unix)]
mod moments_live;
mod odd_places;
mod orchestrate;
mod outcome;
mod outcome_chance;
mod panics;
mod policy;
mod precedence;
mod process;
mod programs;
mod pull_requests;
#[cfg(unix)]
mod questions;
mod quota;
mod readme;
mod refusals;
mod remove;
mod rescue;
mod resume;
mod review;
#[cfg(unix)]
#[cfg(unix)]
mod review_cross;
mod review_diff;
mod review_odd;
mod route;
#[cfg(unix)]
mod rows;
mod runner;
mod sandbox;
#[cfg(unix)]
mod sandbox_attempts;
#[cfg(target_os = "linux")]
mod sandbox_network;
#[cfg(unix)]
mod screens;
mod scrub;
mod scrub_places;
mod secret_places;
#[cfg(unix)]
mod squads;
#[cfg(unix)]
mod standing;
mod status;
mod steps;
mod support;
mod sync;
#[cfg(unix)]
#[path = "../support/terminal.rs"]
mod terminal;
#[cfg(unix)]
mod terminals;
#[cfg(unix)]
#[cfg(unix)]
mod train;
mod trust;
mod undo;
mod unmerged;
mod upgrade;
mod upgrade_properties;
mod upgrade_table;
mod usage;
mod verdicts;
#[cfg(unix)]
mod waits;
mod warnings;
mod watch;
#[cfg(unix)]
mod watch_saves;
mod why;
#[cfg(unix)]
mod workers;
