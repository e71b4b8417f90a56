//! The headings of a decision file with their dates and metadata, before entries are chosen.

use std::ops::Range;

use super::super::markdown::{Block, BlockKind, Document};
use super::super::words::{is_blank, without_struck};
use super::date::{Dated, dated};
use super::metadata::{self, Metadata};
use super::status;
use super::titles::is_field;
use crate::model::SaidStatus;

/// Marks a file whose decisions were imported into their own files. From then on only dated headings are entries.
pub(crate) const IMPORTED: &str = "<!-- squad: imported; each decision has a file of its own -->";

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

/// All headings outside quotations.
pub(super) fn all<'d>(document: &'d Document<'_>, text: &'d str) -> Vec<Heading<'d>> {
    let headings: Vec<(u8, &str, &Block)> = document
        .blocks
        .iter()
        .filter_map(|block| match &block.kind {
            BlockKind::Heading { level, text } if !is_quoted(document, block) => Some((*level, text.as_str(), block)),
            _ => None,
        })
        .collect();
    let ends = headings.iter().skip(1).map(|(.., block)| block.range.start).chain([text.len()]);
    let heading = |((level, raw, block), end): (&(u8, &'d str, &Block), usize)| {
        let Range { start: offset, end: body } = block.range;
        let body = body.min(end);
        let span = offset..end;
        let inner = document.blocks_in(&span).filter(|block| block.range.start >= body);
        // Text after a quoted heading belongs to that.
        let inner = inner.take_while(|block| !matches!(block.kind, BlockKind::Heading { .. }));
        let mut metadata = metadata::read(&inner.take(metadata::HEAD).collect::<Vec<_>>());
        let (raw, struck) = unstruck(raw);
        let mut dated = dated(raw);
        let (title, inner) = unstruck(&dated.title);
        dated.title = title.to_owned();
        metadata.status = metadata.status.or(struck).or(inner);
        let below = document.text(&(body..end));
        let has_text = below.lines().any(|line| line.split(IMPORTED).any(|part| !is_blank(part)));
        Heading { level: *level, raw, dated, metadata, offset, body, end, has_text, part: Part::Section }
    };
    headings.iter().zip(ends).map(heading).collect()
}

/// Whether a block is inside a quotation.
fn is_quoted(document: &Document<'_>, block: &Block) -> bool {
    document.text(&(document.line_start(block.range.start)..block.range.start)).contains('>')
}

/// The title without strikethrough, and the status by strikethrough or remark.
fn unstruck(raw: &str) -> (&str, Option<SaidStatus>) {
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
            (inner, Some(status::of_remark(&kept).unwrap_or(SaidStatus::Rejected)))
        }
        _ => (raw, status::of_title(raw)),
    }
}

/// Whether a heading or the lines below it have a date or an author.
pub(super) fn has_date_or_author(heading: &Heading<'_>) -> bool {
    heading.dated.date.is_some() || heading.metadata.has_author || heading.metadata.has_date && !is_field(heading.raw)
}
