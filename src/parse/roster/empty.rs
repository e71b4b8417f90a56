//! Explains why no member was found.

use super::super::Files;
use super::super::markdown::{Document, Table};
use super::columns::NAME;
use crate::model::{Problem, Severity, list};

pub(super) fn problem(files: &Files, document: &Document<'_>, text: &str) -> Problem {
    let error = |line, message: &str| Problem::new(Severity::Error, files.at("team.md", line), "roster-empty", message);
    let html = text.lines().position(|line| line.to_ascii_lowercase().contains("<table"));
    let is_unfilled = |table: &Table| table.rows.is_empty() && table.column(NAME).is_some();
    if let Some((_, offset)) = document.tables().find(|(table, _)| is_unfilled(table)) {
        return error(document.line(offset), "this table lists no member yet")
            .hint("`squad agents add NAME --role ROLE` adds one");
    }
    match document.tables().next() {
        Some((table, offset)) if !table.rows.is_empty() => {
            let columns = list(table.header.iter().take(6).map(|header| format!("`{}`", header.trim())));
            error(document.line(offset), "no table in it lists a member; this is the first")
                .hint(format!("a roster has a Name and a Role column; this table has {columns}"))
        }
        _ => match html {
            Some(line) => error(line + 1, "the roster is an HTML table, which squad does not read")
                .hint("write it as a Markdown table with a Name and a Role column"),
            None => error(1, "no table in it lists a member").hint("a roster is a table with a Name and a Role column"),
        },
    }
}
