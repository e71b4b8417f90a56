//! Explains why no member was found.

use super::super::Files;
use super::super::markdown::{Document, Table};
use super::lists::speaks_of_members;
use crate::model::{Problem, Severity, list};

pub(super) fn problem(files: &Files, document: &Document<'_>, text: &str) -> Problem {
    let error = |line, message: &str| Problem::new(Severity::Error, files.at("team.md", line), "roster-empty", message);
    let html = text.lines().position(|line| line.to_ascii_lowercase().contains("<table"));
    match nearest_table(document) {
        Some((table, offset)) if !table.rows.is_empty() => {
            let columns = list(table.header.iter().take(6).map(|header| format!("`{}`", header.trim())));
            error(document.line(offset), "no table in it lists a member; this one comes nearest")
                .hint(format!("a roster has a Name and a Role column; this table has {columns}"))
        }
        _ => match html {
            Some(line) => error(line + 1, "the roster is an HTML table, which squad does not read")
                .hint("write it as a Markdown table with a Name and a Role column"),
            None => error(1, "no table in it lists a member").hint("a roster is a table with a Name and a Role column"),
        },
    }
}

/// The first table below a heading about members, else the first table.
fn nearest_table<'d>(document: &'d Document<'_>) -> Option<(&'d Table, usize)> {
    let offset = |table: &Table| document.tables().find(|(other, _)| std::ptr::eq(*other, table)).map(|(_, at)| at);
    let below = document
        .tables_in_sections()
        .find(|(_, headings)| headings.last().is_some_and(|heading| speaks_of_members(heading)))
        .and_then(|(table, _)| Some((table, offset(table)?)));
    below.or_else(|| document.tables().next())
}
