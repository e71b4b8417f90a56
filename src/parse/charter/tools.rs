//! The tools a charter allows.

use super::super::markdown::{BlockKind, Document, Section};
use super::super::words::comma_list;

/// The tools that a Tools section lists, each first in its item: `view — read files`. Items that begin with prose name
/// none, and a section without a tool allows all, as if it were not there.
pub(super) fn read(document: &Document<'_>, section: &Section<'_>) -> Option<Vec<String>> {
    let mut tools = Vec::new();
    for block in document.blocks_in(&section.body) {
        match &block.kind {
            BlockKind::Item(text) => tools.extend(tool_name(text)),
            BlockKind::Paragraph(text) if tools.is_empty() => {
                let names: Option<Vec<String>> = comma_list(text).iter().map(|part| whole_name(part)).collect();
                tools.extend(names.unwrap_or_default());
            }
            _ => {}
        }
    }
    (!tools.is_empty()).then_some(tools)
}

fn tool_name(item: &str) -> Option<String> {
    let head = [" — ", " – ", " - ", ": ", " ("].iter().filter_map(|mark| item.find(mark)).min();
    whole_name(&item[..head.unwrap_or(item.len())])
}

/// A text that is one name and nothing else.
fn whole_name(text: &str) -> Option<String> {
    let name = text.trim().trim_matches(['`', '"']);
    let fits = name.chars().all(|c| c.is_alphanumeric() || "_-.*/".contains(c)) && name.contains(char::is_alphanumeric);
    (fits || name == "*").then(|| name.to_owned())
}
