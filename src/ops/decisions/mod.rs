//! The team's decisions: recording, landing and reviewing them.

pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod knowledge;
pub(crate) mod landing;
pub(crate) mod list;
pub(crate) mod radar;
pub(crate) mod review;
pub(crate) mod withdrawn;
