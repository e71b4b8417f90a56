//! The team and what surrounds it: where it lives, its settings, its prompts, and the engines it works on.

pub(crate) mod adopt;
pub(crate) mod agents;
pub(crate) mod cache;
pub(crate) mod changeset;
pub(crate) mod commit;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod engines;
pub(crate) mod export;
pub(crate) mod fit;
pub(crate) mod hooks;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod layers;
pub(crate) mod manifest;
pub(crate) mod members;
pub(crate) mod membership;
pub(crate) mod project;
pub(crate) mod prompts;
pub(crate) mod remove;
pub(crate) mod secrets;
pub(crate) mod status;
mod survey;
pub(crate) mod templates;
pub(crate) mod turn;
pub(crate) mod upgrade;
pub(crate) mod workspace;
