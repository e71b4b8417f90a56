//! Whether files still have what notes of knowledge rest on.

use std::cell::Cell;

use crate::model::has_lines;

/// Bytes that are searched for evidence in lines, of one project or link: less than a second.
pub(super) const LARGEST_SEARCH: u64 = 1 << 28;
pub(super) const NOT_SEARCHED: &str = "there was too much to look for";

/// Why evidence in a file no longer holds, by the file's present id and text.
pub(super) fn changed_file(
    (path, lines, hash): (&str, Option<(usize, usize)>, &str),
    id: Option<String>,
    text: impl FnOnce() -> Option<Vec<u8>>,
    budget: &Cell<u64>,
) -> Option<String> {
    let Some(id) = id else { return Some(format!("{path} is gone")) };
    let holds = match lines {
        None => Some(id == hash),
        Some(lines) => {
            text().map_or(Some(false), |text| has_lines(&String::from_utf8_lossy(&text), lines, hash, budget))
        }
    };
    match holds {
        Some(true) => None,
        Some(false) => Some(format!("{path} has changed")),
        None => Some(NOT_SEARCHED.to_owned()),
    }
}
