//! What looks at all of the repository: its status, what is wrong, where something comes from, and taking squad out of it.

pub(crate) mod doctor;
pub(crate) mod remove;
pub(crate) mod status;
pub(crate) mod why;
