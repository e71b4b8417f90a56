//! Finds the tables of a routing file, for edits.

use super::super::markdown::Document;
use super::super::roster::Roll;
use super::columns::{self, Columns};
use crate::model::Member;

/// A table that routes something to members.
pub(crate) struct RoutingTable {
    pub(crate) columns: Columns,
    /// The number of columns.
    pub(crate) width: usize,
    /// The lines of its rows.
    pub(crate) lines: Vec<usize>,
}

/// The routing tables in file order.
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
