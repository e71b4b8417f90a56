//! The team's decisions: making them, bringing them to a branch, reviewing them.

pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod landing;
pub(crate) mod list;
pub(crate) mod radar;
pub(crate) mod review;
