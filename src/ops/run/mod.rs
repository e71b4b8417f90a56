//! One run: its order, its course, and what it learns from earlier ones.

pub(crate) mod attachments;
pub(crate) mod cancel;
pub(crate) mod conversation;
pub(crate) mod demo;
pub(crate) mod direct;
pub(crate) mod executor;
pub(crate) mod hand_off;
pub(crate) mod homes;
pub(crate) mod kept_conversation;
mod kept_sessions;
pub(crate) mod lease;
pub(crate) mod live;
mod local_file;
pub(crate) mod lockouts;
pub(crate) mod orchestrate;
pub(crate) mod order;
pub(crate) mod past;
pub(crate) mod preview;
pub(crate) mod resume;
pub(crate) mod routing;
mod setup;
pub(crate) mod signals;
pub(crate) mod snapshots;
pub(crate) mod steps;
pub(crate) mod triage;
pub(crate) mod watch;
