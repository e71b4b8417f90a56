//! Decisions kept as rows of a table or items of a list.

use super::super::Files;
use super::super::markdown::{BlockKind, Document, Row};
use super::super::words::{is_blank, is_placeholder, without_pictographs};
use super::date::{date_in, dated};
use super::entries::{Found, id};
use super::status;
use crate::model::{Decision, DecisionId, Source};

const TITLE: [&str; 5] = ["decision", "title", "what", "summary", "description"];
const BY: [&str; 6] = ["by", "author", "who", "decided by", "owner", "agent"];

pub(super) fn read(files: &Files, path: &str, document: &Document<'_>) -> Vec<Found> {
    let mut decisions = Vec::new();
    let found = |decision: Option<Decision>, start: usize, end: usize| {
        let start = document.line_start(start);
        decision.map(|decision| Found { decision, start, body: start, end: document.line_end(end) })
    };
    for block in &document.blocks {
        match &block.kind {
            BlockKind::Table(table) => {
                let (Some(when), Some(title)) = (table.column(&["date", "when"]), table.column(&TITLE)) else {
                    continue;
                };
                let (by, status) = (table.column(&BY), table.column(&["status", "state"]));
                for row in &table.rows {
                    let source = files.at(path, document.line(row.offset));
                    let status = status::said(row.cell(status));
                    let decision =
                        of_row(row, (when, title, by), source).map(|decision| Decision { status, ..decision });
                    decisions.extend(found(decision, row.offset, row.offset + 1));
                }
            }
            BlockKind::Item(text) => {
                let decision = of_item(text, files.at(path, document.line(block.range.start)));
                decisions.extend(found(decision, block.range.start, block.range.end));
            }
            _ => {}
        }
    }
    // An item may hold items that are decisions of their own.
    for index in 1..decisions.len() {
        let next = decisions[index].start;
        decisions[index - 1].end = decisions[index - 1].end.min(next);
    }
    decisions
}

fn of_row(row: &Row, (when, title, by): (usize, usize, Option<usize>), source: Source) -> Option<Decision> {
    let title = row.cell(Some(title));
    if is_blank(title) || is_placeholder(title) {
        return None;
    }
    let by = Some(without_pictographs(row.cell(by))).filter(|by| !is_blank(by));
    let text = row.cells.join(" | ");
    let date = date_in(row.cell(Some(when)));
    let id = id(&[date.as_deref().unwrap_or(""), title, &text]);
    Some(Decision { by, ..plain(id, title.to_owned(), date, text, source) })
}

/// `- 2026-01-05: Title`. An item without a date at its head is no decision.
fn of_item(text: &str, source: Source) -> Option<Decision> {
    let line = text.lines().next()?;
    // A box that somebody ticks.
    let line = ["[ ] ", "[x] ", "[X] "].iter().find_map(|ticked| line.strip_prefix(ticked)).unwrap_or(line);
    let found = dated(line);
    let id = id(&[found.date.as_deref().unwrap_or(""), &found.title, text]);
    (found.leads && !found.bare).then(|| plain(id, found.title, found.date, text.to_owned(), source))
}

/// A decision of which no more is known.
pub(super) fn plain(id: DecisionId, title: String, date: Option<String>, text: String, source: Source) -> Decision {
    Decision {
        id,
        title,
        date,
        by: None,
        run: None,
        supersedes: None,
        scope: Vec::new(),
        tags: Vec::new(),
        text,
        status: None,
        source: Some(source),
    }
}
