//! Splits a file of many decisions into entries.
//!
//! Such files grow by pasting: entries with headings of one level, whole notes with a first-level heading and their own
//! sections, dated sub-entries below a day or a session. So levels alone do not show where an entry begins. A heading
//! begins an entry if it, or the lines right below it, have a date or an author. Files without any are read by their
//! outline. An entry ends where the next one begins.

use std::borrow::Cow;

use super::super::Files;
use super::super::markdown::{Block, Document};
use super::super::words::remark;
use super::date::{Dated, begins_with_unread_day, dated};
use super::found::{LocatedDecision, id};
use super::groups;
use super::headings::{self, Heading, IMPORTED, NO_DECISION, Part, has_date_or_author};
use super::metadata::{self, Metadata};
use super::status;
use super::titles::{
    is_bare_section, is_field, is_frame, is_merge, is_note, is_rules, is_section, is_template, is_title,
};
use crate::model::{Decision, Problem, Slug, Source, first_line};

/// The decisions of a file, and its problems.
pub(super) struct Entries {
    pub(super) found: Vec<LocatedDecision>,
    pub(super) problems: Vec<Problem>,
    /// As a note, the file is one decision, and its headings are sections.
    pub(super) is_one: bool,
}

pub(super) fn read(files: &Files, path: &str, text: &str) -> Entries {
    let document = Document::new(text);
    let mut headings = headings::all(&document);
    let is_imported = text.contains(IMPORTED);
    mark_entries(&mut headings, is_imported);
    let mut is_one = false;
    if is_imported {
        keep_dated(&mut headings, &document);
    } else if !headings.iter().any(|heading| heading.part == Part::Entry) {
        mark_by_outline(&mut headings);
        is_one = is_one_note(&headings);
    }
    drop_doubled(&mut headings);
    let problems = headings.iter().filter_map(|heading| unread_day(heading, files, path, &document)).collect();
    Entries { found: marked_entries(files, path, &document, &headings), problems, is_one }
}

/// The decisions at headings that are marked as entries, each with its sections.
fn marked_entries(
    files: &Files,
    path: &str,
    document: &Document<'_>,
    headings: &[Heading<'_>],
) -> Vec<LocatedDecision> {
    let mut decisions = Vec::new();
    let mut rest = headings.iter().peekable();
    while let Some(heading) = rest.next() {
        if heading.part != Part::Entry {
            continue;
        }
        let (mut status, mut end) = (heading.metadata.status, heading.end);
        let mut metadata = Cow::Borrowed(&heading.metadata);
        let is_unsigned = heading.dated.date.is_none() && !has_date_or_author(heading);
        let first = rest.peek().map(|next| next.offset);
        while let Some(section) = rest.next_if(|next| next.part == Part::Section) {
            // The sections of a document may say by whom and when.
            if is_section(section.raw) && (is_unsigned || first == Some(section.offset)) {
                metadata = Cow::Owned(metadata.into_owned().or(section.metadata.clone()));
            }
            let below = document.text(&(section.body..section.end));
            status = status.or_else(|| status::of_heading(section.raw, below));
            end = section.end;
        }
        // A list's marker before the next heading is on that heading's line.
        let end = if end == document.source.len() { end } else { document.line_start(end) };
        let text = document.text(&(heading.body..end.max(heading.body))).trim();
        let source = files.at(path, document.line(heading.offset));
        let Dated { title, date, .. } = &heading.dated;
        let mut decision = Decision { status, ..decision(title, date.clone(), &metadata, text, source) };
        decision.by = decision.by.or_else(|| signer(files, title));
        decisions.push(LocatedDecision {
            decision,
            start: document.line_start(heading.offset),
            body: document.line_end(heading.body),
            end,
        });
    }
    decisions
}

/// Whether a file without dates and authors is one note: its title is not that of a decision list, or it has only the
/// usual sections.
fn is_one_note(headings: &[Heading<'_>]) -> bool {
    let titles = headings.iter().filter(|heading| heading.level == 1).count();
    let is_titled = headings.first().is_some_and(|first| first.level == 1 && titles == 1 && !is_title(first.raw));
    is_titled || headings.iter().all(|heading| is_section(heading.raw))
}

/// Reports an entry whose heading begins with something like a day.
fn unread_day(heading: &Heading<'_>, files: &Files, path: &str, document: &Document<'_>) -> Option<Problem> {
    let is_undated = heading.part == Part::Entry && heading.metadata.date.is_none();
    (is_undated && begins_with_unread_day(heading.raw)).then(|| {
        let title = first_line(heading.raw, 60);
        let message = format!("`{title}` starts with a date that squad cannot read, so the decision is undated");
        let source = files.at(path, document.line(heading.offset));
        Problem::warning(source, "decision-date", message).hint("write the date as `2026-01-31`")
    })
}

fn decision(title: &str, date: Option<String>, found: &Metadata, text: &str, source: Source) -> Decision {
    let date = date.or_else(|| found.date.clone());
    let id = id(&[date.as_deref().unwrap_or(""), title, text]);
    let (by, status) = (found.by.clone(), found.status);
    Decision { date, by, status, source: Some(source), ..Decision::new(id, title.to_owned(), text.to_owned()) }
}

/// The member whom a title names: `Use tar (Ada)`, `Ada: use tar`.
fn signer(files: &Files, title: &str) -> Option<String> {
    let is_member = |name: &&str| {
        Slug::fold(name).is_some_and(|slug| files.texts.contains_key(&format!("agents/{slug}/charter.md")))
    };
    let first = [" — ", " – ", ": "].iter().filter_map(|mark| title.split_once(mark)).map(|(name, _)| name);
    [remark(title).1].into_iter().chain(first).find(is_member).map(|name| name.trim().to_owned())
}

/// A file without headings, as one decision: its first line is the title.
pub(super) fn whole(text: &str, source: Source) -> Decision {
    let document = Document::new(text);
    let text = text.trim();
    let dated = dated(&first_line(text, 120));
    let blocks: Vec<&Block> = document.blocks.iter().take(metadata::HEAD).collect();
    decision(dated.title.trim_matches(['#', '*', ' ']), dated.date, &metadata::read(&blocks), text, source)
}

/// Finds entries by the dates and authors of headings.
fn mark_entries(headings: &mut [Heading<'_>], is_imported: bool) {
    // The headings that enclose the current one.
    let mut open: Vec<(u8, Part)> = Vec::new();
    let mut siblings = if is_imported { None } else { siblings_level(headings) };
    let pasted = groups::pasted_sections(headings, siblings);
    let mut ruled: Option<u8> = None;
    // The level of the last dated entry.
    let mut dated: Option<u8> = None;
    let mut day: Option<Day> = None;
    let mut has_entry = false;
    for index in 0..headings.len() {
        let level = headings[index].level;
        while open.pop_if(|(outer, _)| *outer >= level).is_some() {}
        ruled = ruled.filter(|outer| level > *outer);
        let inside = open.iter().any(|(_, part)| *part == Part::Entry);
        let mut part = part(headings, index, inside, siblings, ruled.is_some());
        day = day.filter(|day| level > day.level);
        if let Some(found) = day_of(headings, index).filter(|_| !is_imported) {
            part = if headings[index].has_text { Part::Entry } else { Part::Frame };
            day = Some(found);
        } else if let Some(day) = day.as_ref().filter(|day| day.entries == level) {
            headings[index].metadata.date.get_or_insert_with(|| day.date.clone());
            part = Part::Entry;
        }
        let heading = &headings[index];
        let mut is_held = false;
        if part == Part::Entry && has_entry && is_bare_section(heading.raw) {
            // Whoever signs the sections of a pasted note makes no decisions of them.
            (part, is_held) = (Part::Section, true);
        } else if part == Part::Entry && is_dated(heading) {
            dated = Some(level);
        } else if part == Part::Entry && dated.is_some() && !speaks_for_itself(heading) {
            (part, is_held) = (Part::Section, true);
        } else if part == Part::Frame {
            // `Decisions` may be a section of the entry above.
            if dated.is_some_and(|entry| level >= entry) && is_frame(heading.raw) && is_section(heading.raw) {
                (part, is_held) = (Part::Section, true);
            } else {
                dated = None;
            }
        }
        // Headings below such a section belong to the same entry.
        is_held |= part == Part::Section && pasted.get(index) == Some(&true);
        if part == Part::Entry {
            siblings = siblings.map(|_| level);
            has_entry = true;
        }
        if is_rules(headings[index].raw) {
            ruled = Some(level);
        }
        headings[index].part = part;
        open.push((level, if is_held { Part::Entry } else { part }));
    }
}

/// A heading with a date, above the entries of that day.
struct Day {
    level: u8,
    entries: u8,
    date: String,
}

fn day_of(headings: &[Heading<'_>], index: usize) -> Option<Day> {
    let (heading, next) = (&headings[index], headings.get(index + 1)?);
    let over = next.level > heading.level && !is_section(next.raw) && !next.dated.leads;
    let is_day = heading.dated.bare && !heading.has_text || are_signed(headings, index);
    let date = heading.dated.date.clone().filter(|_| over && is_day)?;
    Some(Day { level: heading.level, entries: next.level, date })
}

/// Whether a heading has no author, and each of the headings right below it has one. Below text, one may be a remark.
fn are_signed(headings: &[Heading<'_>], index: usize) -> bool {
    let outer = &headings[index];
    let below = || headings.iter().skip(index + 1).take_while(|heading| heading.level > outer.level);
    let Some(level) = below().map(|heading| heading.level).min() else { return false };
    let is_signed = |heading: &&Heading<'_>| {
        heading.metadata.has_author && heading.dated.date.is_none() && !is_section(heading.raw)
    };
    let inner: Vec<_> = below().filter(|heading| heading.level == level).collect();
    !outer.metadata.has_author && inner.iter().all(is_signed) && (inner.len() > 1 || !outer.has_text)
}

fn is_dated(heading: &Heading<'_>) -> bool {
    heading.dated.date.is_some() || heading.metadata.date.is_some() || heading.metadata.has_date
}

/// Whether an undated heading below a dated entry is a separate entry.
fn speaks_for_itself(heading: &Heading<'_>) -> bool {
    heading.metadata.has_author || heading.metadata.has_what || is_note(heading.raw)
}

/// The level at which undated headings are entries too: that of the first heading with a date or an author.
fn siblings_level(headings: &[Heading<'_>]) -> Option<u8> {
    headings.iter().find(|heading| has_date_or_author(heading) && !is_title(heading.raw)).map(|heading| heading.level)
}

fn part(headings: &[Heading<'_>], index: usize, inside: bool, siblings: Option<u8>, ruled: bool) -> Part {
    let heading = &headings[index];
    let next = headings.get(index + 1);
    let dated_by_title = heading.dated.date.is_some();
    // A file that was appended to another one begins with the same title.
    let is_first = (headings[0].level, headings[0].raw) == (heading.level, heading.raw);
    let is_title = !dated_by_title && is_title(heading.raw) && is_first;
    if is_rules(heading.raw)
        || is_title
        || (is_template(heading.raw) && !dated_by_title && heading.metadata.date.is_none())
    {
        return Part::Frame;
    }
    if (is_frame(heading.raw) && !inside) || (is_merge(&heading.dated.title) && !heading.has_text) {
        return Part::Frame;
    }
    if is_field(heading.raw) {
        return Part::Section;
    }
    // A document whose sections say by whom or when.
    let is_document = !inside && !is_section(heading.raw) && is_document(headings, index, has_date_or_author);
    let holds_only_entries = !heading.has_text
        && !is_document
        && next.is_some_and(|next| {
            next.level > heading.level && has_date_or_author(next) && (next.dated.leads || next.metadata.has_date)
        });
    if holds_only_entries && (!inside || heading.dated.leads) {
        return Part::Frame;
    }
    if heading.dated.leads && !heading.dated.bare {
        return Part::Entry;
    }
    let entry = heading.dated.leads
        || is_document
        || (heading.metadata.has_date && !(inside && is_section(heading.raw)))
        || (dated_by_title && (!inside || heading.metadata.has_author))
        || (heading.metadata.has_author && !inside && !ruled)
        || (heading.level == 1 && index > 0 && siblings.is_some() && !is_section(heading.raw))
        || (siblings == Some(heading.level) && !inside && !ruled && !is_section(heading.raw));
    if entry { Part::Entry } else { Part::Section }
}

/// Reads a file without dates and authors. An entry is a heading with its own text, or with only the usual sections
/// below. A heading that groups others is a frame.
fn mark_by_outline(headings: &mut [Heading<'_>]) {
    let mut entry_level: Option<u8> = None;
    let mut ruled: Option<u8> = None;
    let mut has_entry = false;
    let several_first_levels = headings.iter().filter(|heading| heading.level == 1).count() > 1;
    for index in 0..headings.len() {
        let heading = &headings[index];
        let next = headings.get(index + 1);
        entry_level = entry_level.filter(|level| heading.level > *level);
        ruled = ruled.filter(|level| heading.level > *level);
        if is_rules(heading.raw) {
            ruled = Some(heading.level);
        }
        let part = if entry_level.is_some() || has_entry && is_bare_section(heading.raw) {
            Part::Section
        } else if ruled.is_some() || is_frame(heading.raw) || is_template(heading.raw) {
            Part::Frame
        } else if heading.level == 1 && !(several_first_levels && index > 0) {
            if is_note(heading.raw) || is_document(headings, index, |_| true) { Part::Entry } else { Part::Frame }
        } else {
            let groups = !heading.has_text && next.is_some_and(|n| n.level > heading.level && !is_section(n.raw));
            if groups { Part::Frame } else { Part::Entry }
        };
        if part == Part::Entry {
            entry_level = Some(heading.level);
            has_entry = true;
        }
        headings[index].part = part;
    }
}

/// Whether most of the headings right below one are the usual sections, and one of those is as wanted: then it is the
/// title of one document.
fn is_document(headings: &[Heading<'_>], index: usize, is_wanted: impl Fn(&Heading<'_>) -> bool) -> bool {
    let outer = &headings[index];
    let below = || headings.iter().skip(index + 1).take_while(|heading| heading.level > outer.level);
    let Some(level) = below().map(|heading| heading.level).min() else { return false };
    let (sections, others): (Vec<_>, Vec<_>) =
        below().filter(|heading| heading.level == level).partition(|heading| is_section(heading.raw));
    !is_title(outer.raw) && sections.len() > others.len() && sections.into_iter().any(is_wanted)
}

/// After an import, the headings left over have lost their context, so only dated ones are entries.
fn keep_dated(headings: &mut [Heading<'_>], document: &Document<'_>) {
    let is_dated = |heading: &Heading<'_>| {
        let above = document.text(&(0..document.line_start(heading.offset)));
        let is_marked = above.lines().next_back().is_some_and(|line| line.trim() == NO_DECISION);
        let is_dated = heading.dated.leads || heading.metadata.has_date && !is_section(heading.raw);
        heading.has_text && is_dated && !is_marked
    };
    for heading in headings.iter_mut().filter(|heading| heading.part == Part::Entry && !is_dated(heading)) {
        heading.part = Part::Section;
    }
}

/// Drops the first of two equal headings, which a merge may leave without text.
fn drop_doubled(headings: &mut [Heading<'_>]) {
    for index in 1..headings.len() {
        let (before, after) = (&headings[index - 1], &headings[index]);
        let doubled = before.part == Part::Entry
            && after.part == Part::Entry
            && !before.has_text
            && before.dated.title == after.dated.title;
        if doubled {
            headings[index - 1].part = Part::Frame;
        }
    }
}
