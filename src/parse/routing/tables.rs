//! Where the tables of a routing file are, for those who change them.

use super::super::markdown::Document;
use super::super::roster::Roll;
use super::columns::{self, Columns};
use crate::model::Member;

/// A table that sends something to members, by lines of its file.
pub(crate) struct RoutingTable {
    pub(crate) columns: Columns,
    /// How many columns there are.
    pub(crate) width: usize,
    /// Of its rows.
    pub(crate) lines: Vec<usize>,
}

/// In the order of the file.
pub(crate) fn tables(text: &str, members: &[Member]) -> Vec<RoutingTable> {
    let document = Document::new(text);
    let roll = Roll::new(members);
    let found = document.tables().filter_map(|(table, _)| {
        let columns = columns::of(table, &roll)?;
        let lines = table.rows.iter().map(|row| document.line(row.offset)).collect();
        Some(RoutingTable { columns, width: table.header.len(), lines })
    });
    found.collect()
}
