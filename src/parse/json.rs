//! Places in JSON files, which a JSON parser does not keep.

use super::Files;
use crate::model::Problem;

/// That a file is not JSON, at the line where it stops being so.
pub(super) fn problem(files: &Files, path: &str, error: &serde_json::Error, code: &'static str) -> Problem {
    let lines = files.text(path).map_or(1, |text| text.lines().count());
    let message = format!("is not JSON squad can read: {error}");
    Problem::warning(files.at(path, error.line().clamp(1, lines.max(1))), code, message)
}

/// How far an entry is looked for behind the one before it.
const FAR: usize = 16 * 1024;

/// Finds the lines of entries, which come in the order of the file.
pub(super) struct Lines<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The line of the next string that is this text; where it is written with escapes, that of the last one found.
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
