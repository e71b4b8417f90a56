//! Reports text of a routing file that names members but gave no rule, so that nobody expects it to route.

use std::collections::BTreeSet;

use super::super::Files;
use super::super::markdown::{BlockKind, Document};
use super::lists::{at_arrow, begins_with_name, beside};
use super::{MemberIndex, RoutingReader};
use crate::model::{IntoSet, Kind, Problem, Severity, plural};

/// Reports the lines of each section without a rule once.
pub(super) fn report(files: &Files, document: &Document<'_>, reader: &mut RoutingReader<'_>) {
    let routing = &reader.routing;
    let sources = (routing.rules.iter().map(|rule| &rule.source))
        .chain(routing.modules.iter().map(|module| &module.source))
        .chain(routing.labels.iter().map(|label| &label.source))
        .map(|source| (&source.file, source.line));
    let reported = reader.problems.iter().filter(|problem| problem.code.starts_with("routing-"));
    let sources = sources.chain(reported.map(|problem| (&problem.file, problem.line)));
    let shown = files.shown("routing.md");
    let read: BTreeSet<usize> = sources.filter(|(file, _)| **file == shown).map(|(_, line)| line).into_set();
    let mut notes: Vec<(usize, String)> = Vec::new();
    let mut section = Section::default();
    for block in &document.blocks {
        let line = document.line(block.range.start);
        match &block.kind {
            BlockKind::Heading { .. } => std::mem::take(&mut section).close(&mut notes),
            BlockKind::Table(table) => {
                section.is_read |= table.rows.iter().any(|row| read.contains(&document.line(row.offset)));
            }
            BlockKind::Item(text) | BlockKind::Paragraph(text) => {
                let inner = line..=line + text.lines().count();
                section.is_read |= read.range(inner).next().is_some();
                let is_item = matches!(block.kind, BlockKind::Item(_));
                section.take(text.lines().take(if is_item { 1 } else { usize::MAX }), line, is_item, reader.roll);
            }
        }
    }
    section.close(&mut notes);
    reader.problems.extend(notes.into_iter().map(|(line, message)| {
        Problem::new(Severity::Note, files.at("routing.md", line), "routing-unread", message)
            .hint("rules are rows such as `| Work Type | Route To |`, or items such as `- work → Name`")
    }));
}

#[derive(Default)]
struct Section {
    is_read: bool,
    first: Option<usize>,
    count: usize,
}

impl Section {
    fn take<'t>(&mut self, lines: impl Iterator<Item = &'t str>, at: usize, is_item: bool, roll: &MemberIndex<'_>) {
        let found = lines.enumerate().filter(|(_, line)| names_members(line, is_item, roll));
        for (offset, _) in found {
            self.first.get_or_insert(at + offset);
            self.count += 1;
        }
    }

    fn close(self, notes: &mut Vec<(usize, String)>) {
        if let Some(line) = self.first.filter(|_| !self.is_read) {
            let message = match self.count {
                1 => "this line names members, but squad reads no rule from it".to_owned(),
                more => {
                    format!(
                        "this line and {} name members, but squad reads no rule from them",
                        plural(more - 1, "other")
                    )
                }
            };
            notes.push((line, message));
        }
    }
}

/// Whether a line informally routes work to a member, or an item begins with a member's name.
fn names_members(line: &str, is_item: bool, roll: &MemberIndex<'_>) -> bool {
    let names_agent = |text: &str| begins_with_name(text.trim(), roll).is_some_and(|member| member.kind == Kind::Agent);
    at_arrow(line).is_some_and(|(work, who)| !work.contains(". ") && names_agent(who))
        || (is_item && (names_agent(line) || beside(line, roll).is_some()))
}
