//! Finds the rosters of a file, for edits.

use super::super::markdown::Document;
use super::columns::{Candidate, Certainty, Columns};
use super::folders::Folders;
use super::standing::is_of_the_retired;

/// A table that lists members.
pub(crate) struct RosterTable {
    pub(crate) columns: Columns,
    /// The number of columns.
    pub(crate) width: usize,
    /// The lines of its rows.
    pub(crate) lines: Vec<usize>,
    /// Its heading is about former members.
    pub(crate) is_of_the_retired: bool,
}

/// The tables that may list members, in file order.
pub(crate) fn tables(text: &str, folders: &Folders) -> Vec<RosterTable> {
    let document = Document::new(text);
    let found = document.tables_in_sections().filter_map(|(table, headings)| {
        let is_of_the_retired = headings.last().is_some_and(|heading| is_of_the_retired(heading));
        let candidate = Candidate { table, headings, title: None };
        let certainties = [Certainty::Headers, Certainty::Context, Certainty::Looks];
        let columns = certainties.into_iter().find_map(|certainty| candidate.columns(certainty, folders))?;
        let lines = table.rows.iter().map(|row| document.line(row.offset)).collect();
        Some(RosterTable { columns, width: table.header.len(), lines, is_of_the_retired })
    });
    found.collect()
}
