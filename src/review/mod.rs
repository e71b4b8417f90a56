//! What a range of commits decides: two states of a team's decisions to what changed between them, and what that
//! contradicts.
//!
//! ```text
//! fork ──── head     the range: what it adds, changes, supersedes and withdraws
//!    └───── base     where it would be merged: what is in force there by now
//! ```

mod changes;
mod conflicts;
mod scope;
mod wording;

pub(crate) use changes::{Changes, changes};
pub(crate) use conflicts::{Certainty, Conflict, between, dangling, within};
pub(crate) use scope::concerns;

use similar::TextDiff;

/// Lines around a change that are shown with it, as `git diff` has them.
const AROUND: usize = 3;

/// A readable diff of two texts; empty when they are alike.
pub(crate) fn diff(before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let text = diff.unified_diff().context_radius(AROUND).missing_newline_hint(false).to_string();
    // An empty line stays empty.
    text.lines().map(|line| if line == " " { "\n".to_owned() } else { format!("{line}\n") }).collect()
}

#[cfg(test)]
mod tests;
