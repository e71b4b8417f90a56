//! What may happen: rules on parsed values, without files and without a clock.

mod inbox;
mod judges;
mod permission;
mod redact;
mod review;
mod secret_patterns;

pub(crate) use inbox::is_in_inbox;
pub(crate) use permission::{Permissions, Ruling, rule};
pub(crate) use redact::{Redaction, Redactor, SCRUBBED};
pub(crate) use review::only_shows_changes;
