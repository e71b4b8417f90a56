//! Decisions with their positions, and their ids.

use crate::model::{Decision, DecisionId};

/// A decision with its position in the file: byte offsets at line boundaries.
pub(super) struct LocatedDecision {
    pub(super) decision: Decision,
    pub(super) start: usize,
    /// The end of its heading, or `start` if it has none.
    pub(super) body: usize,
    pub(super) end: usize,
}

/// The id of an entry: a hash of its contents.
pub(super) fn id(parts: &[&str]) -> DecisionId {
    let hash = blake3::hash(parts.join("\n").as_bytes()).to_hex();
    DecisionId::parse(&hash[..12]).expect("hex digits are an id")
}
