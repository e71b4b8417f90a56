//! The `squad` binary with the real programs that `.ci/install-real-parts` installs.

#[path = "../support/model_server.rs"]
mod model_server;

mod installed;
