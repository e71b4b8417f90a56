//! Reviews the decisions in a range of commits: the changes between two states, and their conflicts.
//!
//! ```text
//! fork ──── head     the range: decisions added, changed, superseded and withdrawn
//!    └───── base     the merge target: decisions in force there now
//! ```

mod changes;
mod conflicts;
mod scope;
mod wording;

pub(crate) use changes::{Changes, Superseded, changes};
pub(crate) use conflicts::{Background, Certainty, Conflict, between, dangling, within};
pub(crate) use scope::{concerns, matcher};

use crate::model::LineDiff;

/// Lines of context in diffs, as in `git diff`.
const AROUND: usize = 3;

/// A readable diff of two texts; empty if they are equal.
pub(crate) fn diff(before: &str, after: &str) -> String {
    let text = LineDiff::new(before, after).unified(AROUND);
    // A missing newline at the end is nothing to read about. Remove the space that marks an unchanged empty line.
    let lines = text.lines().filter(|line| !line.starts_with('\\'));
    lines.map(|line| if line == " " { "\n".to_owned() } else { format!("{line}\n") }).collect()
}

#[cfg(test)]
mod tests;
