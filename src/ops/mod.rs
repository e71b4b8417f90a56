//! What commands do, apart from how they are spelled and how they speak.

pub(crate) mod agents;
pub(crate) mod config;
pub(crate) mod decisions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod engines;
pub(crate) mod init;
mod journal;
pub(crate) mod landing;
mod lease;
pub(crate) mod ledger;
pub(crate) mod members;
pub(crate) mod orchestrate;
mod project;
mod secrets;
mod signals;
mod stage;
pub(crate) mod status;

pub(crate) use project::{Project, own_settings, repository};
