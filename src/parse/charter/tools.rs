//! The tools a charter allows.

use super::super::markdown::{BlockKind, Document, Section, field};
use super::super::words::{comma_list, is_blank, listed, without_brackets};
use crate::model::tools_called;

/// The content of a Tools section.
#[derive(Default)]
pub(super) struct Tools {
    pub(super) allowed: Option<Vec<String>>,
    pub(super) denied: Vec<String>,
    /// It has text, but no list of allowed tools.
    pub(super) is_prose: bool,
}

/// Reads a Tools section: from its field `Allowed`, or else with each tool first in its item: `view — read files`. If any
/// part of what is read is prose or names an unknown tool, the section limits nothing: otherwise a list with another
/// purpose would take away the agent's tools.
pub(super) fn read(document: &Document<'_>, section: &Section<'_>) -> Tools {
    let mut lists = Lists::default();
    for block in document.blocks_in(&section.body) {
        match &block.kind {
            BlockKind::Item(text) => lists.item(text),
            BlockKind::Paragraph(text) => text.lines().for_each(|line| lists.item(line)),
            BlockKind::Table(table) => table.rows.iter().for_each(|row| lists.item(row.cell(Some(0)))),
            BlockKind::Heading { .. } => {}
        }
    }
    lists.tools()
}

#[derive(Default)]
struct Lists {
    allowed: Vec<String>,
    denied: Vec<String>,
    everything: bool,
    is_prose: bool,
    /// It has a field for what is allowed, so other lines are remarks.
    is_stated: bool,
}

impl Lists {
    fn item(&mut self, text: &str) {
        const DENIED: &str = "denied, deny, disallowed, forbidden, blocked, not allowed, excluded, never";
        const ALLOWED: &str = "allowed, allow, available, permitted, enabled, tools, may use";
        match field(text).as_ref().map(|(key, value)| (key.trim_end_matches(" tools"), *value)) {
            Some((key, value)) if listed(DENIED, key) => {
                let names = names(value);
                self.is_prose |= names.is_none();
                self.denied.extend(names.unwrap_or_default());
            }
            Some((key, value)) if listed(ALLOWED, key) => {
                if !std::mem::replace(&mut self.is_stated, true) {
                    (self.allowed, self.everything, self.is_prose) = Default::default();
                }
                self.names(value);
            }
            _ if self.is_stated => {}
            _ => self.names(before(text, &[" — ", " – ", " - ", ": ", " ("])),
        }
    }

    fn names(&mut self, text: &str) {
        let plain = text.trim().trim_matches(['`', '*', '.', '"']).to_lowercase();
        match (plain.as_str(), names(text)) {
            ("all" | "all tools" | "any" | "auto" | "default" | "everything", _) => self.everything = true,
            (_, Some(names)) => self.allowed.extend(names),
            (_, None) => self.is_prose |= !is_blank(text),
        }
    }

    fn tools(self) -> Tools {
        let is_known = |name: &String| tools_called(name).is_some();
        // Tools of MCP servers: `github/*`, `mcp__search`.
        let is_pattern = |name: &String| name.contains(['/', '*', '_']);
        let is_list = self.allowed.iter().any(is_known) && self.allowed.iter().all(|n| is_known(n) || is_pattern(n));
        let denied: Vec<String> = self.denied.into_iter().filter(is_known).collect();
        if self.everything || self.is_prose || !is_list {
            let is_prose = !self.everything && (self.is_prose || !self.allowed.is_empty());
            return Tools { allowed: None, denied, is_prose };
        }
        Tools { allowed: Some(self.allowed), denied, is_prose: false }
    }
}

fn before<'t>(text: &'t str, marks: &[&str]) -> &'t str {
    let end = marks.iter().filter_map(|mark| text.find(mark)).min();
    &text[..end.unwrap_or(text.len())]
}

/// The names in a text that consists only of names, and of remarks on them: `Read, Grep (no changes) — as a reviewer`.
fn names(text: &str) -> Option<Vec<String>> {
    let text = without_brackets(text);
    let listed = before(&text, &[" — ", " – ", " - "]);
    comma_list(listed.trim().trim_end_matches('.')).iter().map(|part| whole_name(part)).collect()
}

/// A text that is a single name.
fn whole_name(text: &str) -> Option<String> {
    let name = text.trim().trim_matches(['`', '"']);
    let fits = name.chars().all(|c| c.is_alphanumeric() || "_-.*/".contains(c)) && name.contains(char::is_alphanumeric);
    (fits || name == "*").then(|| name.to_owned())
}
