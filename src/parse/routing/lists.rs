//! Rules as list items: `` - `type` → agents ``.

use super::super::Files;
use super::super::markdown::{BlockKind, Document};
use super::super::words::{is_blank, is_placeholder};
use super::columns::TableKind;
use super::names::Named;
use super::{Cells, Reader};

const ARROWS: [&str; 5] = ["→", "⇒", "->", "=>", "⟶"];

/// An item is a rule when all that stands behind its arrow are members: the rest is advice for people. A colon will do
/// for an arrow where nothing else in the file routes.
pub(super) fn read(files: &Files, document: &Document<'_>, reader: &mut Reader<'_>) {
    let has_rules = !reader.routing.rules.is_empty();
    for block in &document.blocks {
        let BlockKind::Item(text) = &block.kind else { continue };
        let Some(line) = text.lines().next() else { continue };
        let arrow = ARROWS.iter().find_map(|arrow| line.split_once(arrow));
        let Some((subject, who)) = arrow.or_else(|| line.split_once(": ").filter(|_| !has_rules)) else { continue };
        let subject = subject.trim().trim_end_matches(':');
        if is_blank(subject) || is_placeholder(line) || !Named::all(who, reader.roll) {
            continue;
        }
        // `Role: Name` says who somebody is.
        if arrow.is_none() && Named::all(subject, reader.roll) {
            continue;
        }
        let cells = Cells { subject, first: who, second: "", review: "", action: "", examples: Vec::new() };
        reader.cells(TableKind::Work, &cells, files.at("routing.md", document.line(block.range.start)));
    }
}
