//! The headings of a file of decisions, with what is known of each before any is taken for an entry.

use super::super::markdown::{Block, BlockKind, Document};
use super::super::words::{is_blank, without_struck};
use super::date::{self, Dated, Order, dated};
use super::matter::{self, Matter};
use super::metadata::{self, Metadata};
use super::status;
use super::titles::{is_field, is_section};
use crate::model::SaidStatus;

/// In a file whose decisions have got files of their own, only what says when is one.
pub(crate) const IMPORTED: &str = "<!-- squad: imported; each decision has a file of its own -->";

/// A heading and what stands between it and the next heading.
pub(super) struct Heading<'d> {
    pub(super) level: u8,
    pub(super) raw: &'d str,
    pub(super) dated: Dated,
    pub(super) metadata: Metadata,
    /// Where what belongs to it begins: above its front matter, where it has some.
    pub(super) start: usize,
    pub(super) offset: usize,
    pub(super) body: usize,
    /// Where the next heading begins.
    pub(super) end: usize,
    pub(super) has_text: bool,
    pub(super) part: Part,
    /// A year or a month, over the days of its entries.
    pub(super) is_calendar: bool,
}

/// What a heading is in its file.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    Entry,
    /// Belongs to the entry above.
    Section,
    /// Holds entries, or rules about them; ends the entry above.
    Frame,
}

/// Where a heading stands.
struct Place<'d> {
    level: u8,
    raw: &'d str,
    start: usize,
    offset: usize,
    body: usize,
    matter: Option<Matter>,
}

pub(super) fn all<'d>(document: &'d Document<'_>, text: &'d str, order: Order) -> Vec<Heading<'d>> {
    let places = places(document, text);
    let ends: Vec<usize> = places.iter().skip(1).map(|place| place.start).chain([text.len()]).collect();
    let heading = |(place, end): (Place<'d>, usize)| {
        let body = place.body.min(end);
        let below = document.text(&(body..end));
        let span = place.offset..end;
        let inner = document.blocks_in(&span).filter(|block| block.range.start >= body);
        // What follows a quoted heading is about that one.
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
    let mut headings: Vec<Heading<'d>> = places.into_iter().zip(ends).map(heading).collect();
    set_days(&mut headings);
    headings
}

/// The headings of the file's own, and the first lines of notes that have only front matter.
fn places<'d>(document: &'d Document<'_>, text: &'d str) -> Vec<Place<'d>> {
    let mut matters = matter::all(document, text).into_iter().peekable();
    let mut places: Vec<Place<'d>> = Vec::new();
    for block in &document.blocks {
        let at = block.range.start;
        while let Some(matter) = matters.next_if(|matter| matter.next < document.line_start(at)) {
            places.extend(headless(text, matter));
        }
        let BlockKind::Heading { level, text: raw } = &block.kind else { continue };
        if is_quoted(document, block) {
            continue;
        }
        let mut matter = matters.next_if(|matter| matter.next == document.line_start(at));
        // `Context` is no title: the front matter has one.
        if is_section(raw)
            && let Some(matter) = matter.take_if(|matter| matter::subject_in(text, matter).is_some())
        {
            places.extend(headless(text, matter));
        }
        let start = matter.as_ref().map_or(at, |matter| matter.lines.start);
        places.push(Place { level: *level, raw, start, offset: at, body: block.range.end, matter });
    }
    places.extend(matters.filter_map(|matter| headless(text, matter)));
    places
}

/// A note without a heading: what its front matter says it is about is its title, or else its first line, which stays in
/// its text. Front matter over nothing is none's.
fn headless(text: &str, matter: Matter) -> Option<Place<'_>> {
    let below = text.get(matter.next..)?;
    let first = below.lines().next().filter(|line| !is_blank(line))?;
    let raw = matter::subject_in(text, &matter).unwrap_or(first);
    let (start, offset) = (matter.lines.start, matter.next);
    Some(Place { level: 1, raw, start, offset, body: offset, matter: Some(matter) })
}

/// Whether a block stands in a quotation: it belongs to whoever quotes it.
fn is_quoted(document: &Document<'_>, block: &Block) -> bool {
    document.text(&(document.line_start(block.range.start)..block.range.start)).contains('>')
}

/// A title without the strike through it, and what that, or a remark, says of its standing.
fn unstruck(raw: &str) -> (&str, Option<SaidStatus>) {
    if !raw.contains('~') {
        return (raw, status::of_title(raw));
    }
    let kept = without_struck(raw);
    let inner = raw.trim().strip_prefix("~~").and_then(|rest| rest.split_once("~~"));
    match inner {
        // Nothing but a remark is left.
        Some((inner, _))
            if kept.len() < raw.trim().len() && (is_blank(&kept) || status::of_remark(&kept).is_some()) =>
        {
            (inner, Some(status::of_remark(&kept).unwrap_or(SaidStatus::Rejected)))
        }
        _ => (raw, status::of_title(raw)),
    }
}

/// Gives `5 — Title` the month and the year it stands under.
fn set_days(headings: &mut [Heading<'_>]) {
    let mut open: Vec<(u8, u32, Option<u32>)> = Vec::new();
    for heading in headings {
        while open.pop_if(|(level, ..)| *level >= heading.level).is_some() {}
        let above = open.last().copied();
        let words: Vec<&str> =
            heading.raw.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
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
            let end = heading.raw.find(|c: char| !c.is_ascii_digit()).unwrap_or(heading.raw.len());
            let (day, rest) = heading.raw.split_at(end);
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

/// Whether a heading, or the lines below it, say when or by whom.
pub(super) fn speaks(heading: &Heading<'_>) -> bool {
    heading.dated.date.is_some() || heading.metadata.has_author || heading.metadata.has_date && !is_field(heading.raw)
}
