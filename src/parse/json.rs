//! JSON files, with the line numbers of their entries, which a JSON parser does not keep.

use serde_json::Value;

use super::Files;
use crate::model::Problem;

/// Parses a JSON file, or reports the line with the error. `problem` has the code and the hint of the report.
pub(super) fn read(
    files: &Files,
    path: &str,
    text: &str,
    (code, hint): (&'static str, &'static str),
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let report = |error: serde_json::Error| {
        let line = error.line().clamp(1, text.lines().count().max(1));
        let message = format!("is not JSON squad can read: {error}");
        problems.push(Problem::warning(files.at(path, line), code, message).hint(hint));
    };
    serde_json::from_str(text).map_err(report).ok()
}

/// The search for an entry ends after so many bytes.
const FAR: usize = 16 * 1024;

/// Finds the line numbers of entries, in the order of the file.
pub(super) struct Lines<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The line of the next string with this text. If it is not found (other escapes), the last line found.
    pub(super) fn next(&mut self, text: &str) -> usize {
        let quoted = serde_json::to_string(text).unwrap_or_default();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let rest = &rest[..rest.floor_char_boundary(FAR)];
        if let Some(found) = rest.find(&quoted) {
            self.line += rest[..found].matches('\n').count();
            self.at += found;
        }
        self.line
    }
}
