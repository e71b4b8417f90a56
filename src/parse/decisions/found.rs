//! What is found in a file of decisions.

use crate::model::{Decision, DecisionId};

/// A decision with where it stands in its file, in bytes: whole lines.
pub(super) struct Found {
    pub(super) decision: Decision,
    pub(super) start: usize,
    /// Where its heading ends; `start` for one that has none.
    pub(super) body: usize,
    pub(super) end: usize,
}

/// Entries have no id of their own: theirs is a hash of what they say.
pub(super) fn id(parts: &[&str]) -> DecisionId {
    let hash = blake3::hash(parts.join("\n").as_bytes()).to_hex();
    DecisionId::parse(&hash[..12]).expect("hex digits are an id")
}
