//! The headings of a decision file with their dates and metadata, before entries are chosen.

use super::super::markdown::{Block, BlockKind, Document};
use super::super::words::{is_blank, without_struck};
use super::date::{Dated, dated};
use super::metadata::{self, Metadata};
use super::status;
use super::titles::{is_field, is_section};
use crate::model::LegacyStatus;

/// Marks a file whose decisions were imported into their own files. From then on only dated headings are entries.
pub(crate) const IMPORTED: &str = "<!-- squad: imported; each decision has a file of its own -->";

/// The line above a heading of what is left after an import, which would read as a decision without what stood around it.
pub(crate) const NO_DECISION: &str = "<!-- squad: no decision -->";

/// A heading with the text up to the next heading.
pub(super) struct Heading<'d> {
    pub(super) level: u8,
    pub(super) raw: &'d str,
    pub(super) dated: Dated,
    pub(super) metadata: Metadata,
    pub(super) offset: usize,
    pub(super) body: usize,
    /// The start of the next heading.
    pub(super) end: usize,
    pub(super) has_text: bool,
    pub(super) part: Part,
}

/// The role of a heading in its file.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    Entry,
    /// Belongs to the entry above.
    Section,
    /// Contains entries, or rules about them. Ends the entry above.
    Frame,
}

/// A heading before the lines below it are read.
struct RawHeading<'d> {
    level: u8,
    raw: &'d str,
    /// Of the heading or of the front matter above it.
    start: usize,
    body: usize,
    metadata: Metadata,
}

/// All headings outside quotations.
pub(super) fn all<'d>(document: &'d Document<'_>) -> Vec<Heading<'d>> {
    let mut headings: Vec<RawHeading<'d>> = Vec::new();
    let mut matter = None;
    for block in &document.blocks {
        let BlockKind::Heading { level, text: raw } = &block.kind else {
            matter = front_matter(document, block);
            continue;
        };
        if is_quoted(document, block) {
            continue;
        }
        let (start, body) = (block.range.start, block.range.end);
        let own = RawHeading { level: *level, raw, start, body, metadata: Metadata::default() };
        headings.extend(match matter.take() {
            None => vec![own],
            // A section such as `Context` is no title if the front matter has one.
            Some(Matter { block: above, metadata, subject: Some(subject) }) if is_section(raw) => {
                let (start, body) = (above.range.start, above.range.end);
                vec![RawHeading { level: 1, raw: subject, start, body, metadata }, own]
            }
            Some(Matter { block: above, metadata, .. }) => {
                vec![RawHeading { start: above.range.start, metadata, ..own }]
            }
        });
    }
    let ends: Vec<usize> =
        headings.iter().skip(1).map(|heading| heading.start).chain([document.source.len()]).collect();
    let heading = |(RawHeading { level, raw, start: offset, body, metadata: matter }, end): (RawHeading<'d>, usize)| {
        let body = body.min(end);
        let span = offset..end;
        let inner = document.blocks_in(&span).filter(|block| block.range.start >= body);
        // Text after a quoted heading belongs to that.
        let inner = inner.take_while(|block| !matches!(block.kind, BlockKind::Heading { .. }));
        let mut metadata = matter.or(metadata::read(&inner.take(metadata::HEAD).collect::<Vec<_>>()));
        let (raw, struck) = unstruck(raw);
        let mut dated = dated(raw);
        let (title, inner) = unstruck(&dated.title);
        dated.title = title.to_owned();
        metadata.status = metadata.status.or(struck).or(inner);
        let below = document.text(&(body..end));
        let has_text = below.lines().any(|line| line.split(IMPORTED).any(|part| !is_blank(part)));
        Heading { level, raw, dated, metadata, offset, body, end, has_text, part: Part::Section }
    };
    headings.into_iter().zip(ends).map(heading).collect()
}

/// Front matter of notes that were appended to one another: what it says of the heading below it.
struct Matter<'d> {
    block: &'d Block,
    metadata: Metadata,
    subject: Option<&'d str>,
}

/// Reads a paragraph of `key: value` lines that ends with `---`.
fn front_matter<'d>(document: &Document<'d>, block: &'d Block) -> Option<Matter<'d>> {
    let (lines, "---") = document.text(&block.range).trim_end().rsplit_once('\n')? else { return None };
    let fields: Option<Vec<(&str, &str)>> = lines.lines().map(|line| line.split_once(": ")).collect();
    let fields = fields?.into_iter().map(|(key, value)| (key.trim(), value.trim().trim_matches(['"', '\''])));
    let subject = fields.clone().find(|(key, _)| ["subject", "title", "topic"].contains(key)).map(|(_, value)| value);
    let fields: Vec<_> = fields.map(|(key, value)| (key.to_lowercase(), value.to_owned())).collect();
    let metadata = metadata::of_note(&fields);
    (metadata.has_date || metadata.has_author).then_some(Matter { block, metadata, subject })
}

/// Whether a block is inside a quotation.
fn is_quoted(document: &Document<'_>, block: &Block) -> bool {
    document.text(&(document.line_start(block.range.start)..block.range.start)).contains('>')
}

/// The title without strikethrough, and the status by strikethrough or remark.
fn unstruck(raw: &str) -> (&str, Option<LegacyStatus>) {
    if !raw.contains('~') {
        return (raw, status::of_title(raw));
    }
    let kept = without_struck(raw);
    let inner = raw.trim().strip_prefix("~~").and_then(|rest| rest.split_once("~~"));
    match inner {
        // Only a remark is left.
        Some((inner, _))
            if kept.len() < raw.trim().len() && (is_blank(&kept) || status::of_remark(&kept).is_some()) =>
        {
            (inner, Some(status::of_remark(&kept).unwrap_or(LegacyStatus::Rejected)))
        }
        _ => (raw, status::of_title(raw)),
    }
}

/// Whether a heading or the lines below it have a date or an author.
pub(super) fn has_date_or_author(heading: &Heading<'_>) -> bool {
    heading.dated.date.is_some() || heading.metadata.has_author || heading.metadata.has_date && !is_field(heading.raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_describes_the_heading_below_it() {
        let text = "# Decisions\n\n### 2026-01-04: A\n\nText.\n\n---\nauthor: Kane\ndate: 2026-01-05\n---\n\n# B\n\nMore.\n\n---\n\
            date: 2026-01-06\nsubject: C\n---\n\n## Context\n\nEven more.\n";
        let document = Document::new(text);
        let headings = all(&document);
        let found =
            headings.iter().map(|heading| (heading.raw, heading.metadata.by.as_deref(), heading.metadata.has_date));
        let expected = [("Decisions", None, false), ("2026-01-04: A", None, false), ("B", Some("Kane"), true)];
        let expected = expected.into_iter().chain([("C", None, true), ("Context", None, false)]);
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}
