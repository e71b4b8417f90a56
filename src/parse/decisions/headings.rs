//! The headings of a decision file with their dates and metadata, before entries are chosen.

use super::super::markdown::{Block, BlockKind, Document};
use super::super::words::{is_blank, without_struck, words};
use super::date::{self, Dated, Order, dated};
use super::matter::{self, Matter};
use super::metadata::{self, Metadata};
use super::status;
use super::titles::{is_field, is_section};
use crate::model::SaidStatus;

/// Marks a file whose decisions were imported into their own files. From then on only dated headings are entries.
pub(crate) const IMPORTED: &str = "<!-- squad: imported; each decision has a file of its own -->";

/// A heading with the text up to the next heading.
pub(super) struct Heading<'d> {
    pub(super) level: u8,
    pub(super) raw: &'d str,
    pub(super) dated: Dated,
    pub(super) metadata: Metadata,
    /// The start, including front matter above it.
    pub(super) start: usize,
    pub(super) offset: usize,
    pub(super) body: usize,
    /// The start of the next heading.
    pub(super) end: usize,
    pub(super) has_text: bool,
    pub(super) part: Part,
    /// It is a year or a month above dated entries.
    pub(super) is_calendar: bool,
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

/// A heading before its metadata is read.
struct RawHeading<'d> {
    level: u8,
    raw: &'d str,
    start: usize,
    offset: usize,
    body: usize,
    matter: Option<Matter>,
}

pub(super) fn all<'d>(document: &'d Document<'_>, text: &'d str, order: Order) -> Vec<Heading<'d>> {
    let raws = raw_headings(document, text);
    let ends: Vec<usize> = raws.iter().skip(1).map(|place| place.start).chain([text.len()]).collect();
    let heading = |(place, end): (RawHeading<'d>, usize)| {
        let body = place.body.min(end);
        let below = document.text(&(body..end));
        let span = place.offset..end;
        let inner = document.blocks_in(&span).filter(|block| block.range.start >= body);
        // Text after a quoted heading belongs to that.
        let inner = inner.take_while(|block| !matches!(block.kind, BlockKind::Heading { .. }));
        let inner: Vec<&Block> = inner.take(metadata::HEAD).collect();
        let mut metadata = metadata::read(&inner, order);
        if let Some(matter) = &place.matter {
            metadata = metadata::of_matter(&matter.fields, order).or(metadata);
        }
        let (raw, struck) = unstruck(place.raw);
        let mut dated = dated(raw, order);
        let (title, inner) = unstruck(&dated.title);
        dated.title = title.to_owned();
        metadata.status = metadata.status.or(struck).or(inner);
        metadata.by = metadata.by.or_else(|| dated.by.clone());
        Heading {
            level: place.level,
            raw,
            dated,
            metadata,
            start: place.start,
            offset: place.offset,
            body,
            end,
            has_text: below.lines().any(|line| line.split(IMPORTED).any(|part| !is_blank(part))),
            part: Part::Section,
            is_calendar: false,
        }
    };
    let mut headings: Vec<Heading<'d>> = raws.into_iter().zip(ends).map(heading).collect();
    set_days(&mut headings);
    headings
}

/// All headings outside quotations, and the first lines of notes with only front matter.
fn raw_headings<'d>(document: &'d Document<'_>, text: &'d str) -> Vec<RawHeading<'d>> {
    let mut matters = matter::all(document, text).into_iter().peekable();
    let mut found: Vec<RawHeading<'d>> = Vec::new();
    for block in &document.blocks {
        let at = block.range.start;
        while let Some(matter) = matters.next_if(|matter| matter.next < document.line_start(at)) {
            found.extend(headless(text, matter));
        }
        let BlockKind::Heading { level, text: raw } = &block.kind else { continue };
        if is_quoted(document, block) {
            continue;
        }
        let mut matter = matters.next_if(|matter| matter.next == document.line_start(at));
        // A section such as `Context` is no title if the front matter has one.
        if is_section(raw)
            && let Some(matter) = matter.take_if(|matter| matter::subject_in(text, matter).is_some())
        {
            found.extend(headless(text, matter));
        }
        let start = matter.as_ref().map_or(at, |matter| matter.lines.start);
        found.push(RawHeading { level: *level, raw, start, offset: at, body: block.range.end, matter });
    }
    found.extend(matters.filter_map(|matter| headless(text, matter)));
    found
}

/// A note without a heading. Its title is the subject in the front matter, or else its first line, which stays in the
/// text. `None`: no text follows the front matter.
fn headless(text: &str, matter: Matter) -> Option<RawHeading<'_>> {
    let below = text.get(matter.next..)?;
    let first = below.lines().next().filter(|line| !is_blank(line))?;
    let raw = matter::subject_in(text, &matter).unwrap_or(first);
    let (start, offset) = (matter.lines.start, matter.next);
    Some(RawHeading { level: 1, raw, start, offset, body: offset, matter: Some(matter) })
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

/// Adds the month and the year above to `5 — Title`.
fn set_days(headings: &mut [Heading<'_>]) {
    let mut open: Vec<(u8, u32, Option<u32>)> = Vec::new();
    for heading in headings {
        while open.pop_if(|(level, ..)| *level >= heading.level).is_some() {}
        let above = open.last().copied();
        let words: Vec<&str> = words(heading.raw).collect();
        let year = |word: &str| word.parse::<u32>().ok().filter(|year| (1900..=2999).contains(year));
        let found = match words[..] {
            [word] => match (year(word), above) {
                (Some(year), _) => Some((year, None)),
                (None, Some((_, year, None))) => date::month(word).map(|month| (year, Some(month))),
                _ => None,
            },
            [first, second] => date::month(first).zip(year(second)).map(|(month, year)| (year, Some(month))),
            _ => None,
        };
        if let Some((year, month)) = found {
            heading.is_calendar = true;
            open.push((heading.level, year, month));
        } else if let (Some((_, year, Some(month))), None) = (above, &heading.dated.date) {
            let (day, rest) = date::split_run(heading.raw, |c| c.is_ascii_digit());
            let title = rest.trim_start_matches(date::MARKS);
            if let Some(date) = day.parse().ok().and_then(|day| date::iso(year, month, day))
                && title.len() < rest.len()
                && !is_blank(title)
            {
                heading.dated = Dated { date: Some(date), title: title.to_owned(), leads: true, bare: false, by: None };
            }
        }
    }
}

/// Whether a heading or the lines below it have a date or an author.
pub(super) fn has_date_or_author(heading: &Heading<'_>) -> bool {
    heading.dated.date.is_some() || heading.metadata.has_author || heading.metadata.has_date && !is_field(heading.raw)
}
