//! The lines that commands added to files: no tool call has recorded them.

use std::collections::BTreeMap;

use crate::model::Change;

/// The files whose added lines are to be found in a diff.
pub(super) fn unrecorded(changes: &[Change]) -> Vec<String> {
    changes.iter().filter(|change| is_unrecorded(change)).map(|change| change.path.clone()).collect()
}

fn is_unrecorded(change: &Change) -> bool {
    change.is_by_command() && change.added > Some(0)
}

/// Adds the lines that the diff of these files has.
pub(super) fn add_lines(changes: &mut [Change], diff: &str) {
    let mut added = added_lines(diff);
    for change in changes.iter_mut().filter(|change| is_unrecorded(change)) {
        change.text = added.remove(&change.path).unwrap_or_default();
    }
}

/// The added lines of each file in a unified diff.
fn added_lines(diff: &str) -> BTreeMap<String, String> {
    let mut added: BTreeMap<String, String> = BTreeMap::new();
    let mut path = None;
    let mut in_header = true;
    for line in diff.lines() {
        if line.starts_with("diff --git ") {
            (path, in_header) = (None, true);
        } else if line.starts_with("@@") {
            in_header = false;
        } else if let Some(name) = line.strip_prefix("+++ b/").filter(|_| in_header) {
            path = Some(name.trim_end_matches('\t').to_owned());
        } else if let (Some(path), Some(text), false) = (&path, line.strip_prefix('+'), in_header) {
            let lines = added.entry(path.clone()).or_default();
            lines.push_str(text);
            lines.push('\n');
        }
    }
    added
}
