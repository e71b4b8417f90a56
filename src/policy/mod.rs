//! What may happen: rules on parsed values, without files and without a clock.

mod judges;
mod permission;
mod redact;
mod rules;

pub(crate) use permission::{Permissions, Ruling, rule};
pub(crate) use redact::{Redaction, Redactor, SCRUBBED};
