//! Where the rosters of a file are, for those who change them.

use super::super::markdown::Document;
use super::columns::{Candidate, Columns, Reading};
use super::folders::Folders;
use super::standing::is_of_the_retired;

/// A table that lists members, by lines of its file.
pub(crate) struct RosterTable {
    pub(crate) columns: Columns,
    /// How many columns there are.
    pub(crate) width: usize,
    /// Of its rows.
    pub(crate) lines: Vec<usize>,
    /// Whether it stands under a heading over those who have left.
    pub(crate) is_of_the_retired: bool,
}

/// The tables that may list members, in the order of the file.
pub(crate) fn tables(text: &str, folders: &Folders) -> Vec<RosterTable> {
    let document = Document::new(text);
    let found = document.tables_in_sections().filter_map(|(table, headings)| {
        let is_of_the_retired = headings.last().is_some_and(|heading| is_of_the_retired(heading));
        let candidate = Candidate { table, headings, title: None };
        let readings = [Reading::Plain, Reading::Witnessed, Reading::Last];
        let columns = readings.into_iter().find_map(|reading| candidate.columns(reading, folders))?;
        let lines = table.rows.iter().map(|row| document.line(row.offset)).collect();
        Some(RosterTable { columns, width: table.header.len(), lines, is_of_the_retired })
    });
    found.collect()
}
