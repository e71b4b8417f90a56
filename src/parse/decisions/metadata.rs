//! Reads dates, authors and statuses from the lines below a heading.

use super::super::abroad;
use super::super::markdown::{Block, BlockKind, fields_of};
use super::super::words::{is_blank, listed, without_pictographs};
use super::date::{self, Order, date_in};
use super::matter;
use super::status;
use crate::model::SaidStatus;

#[derive(Default)]
pub(super) struct Metadata {
    pub(super) date: Option<String>,
    pub(super) by: Option<String>,
    /// A line has a date, perhaps only a month.
    pub(super) has_date: bool,
    /// A line has the author, by a key that is only used for that.
    pub(super) has_author: bool,
    /// A line has the decision itself.
    pub(super) has_what: bool,
    pub(super) status: Option<SaidStatus>,
}

/// Keys for the date. Only these make a heading an entry.
const DATE: &str = "date, dated, when, decided on, decision date, date decided, timestamp";

/// Keys that have the date if no other does. Sections use them for other things too.
const MADE: &str = "decided, created, recorded, logged, filed, added";

/// Keys for the decision itself.
const WHAT: &str = "what, decision";

/// Keys for the author; earlier ones win.
const AUTHOR: &str = "\
    by, author, authors, decided by, decision by, made by, agent, agents, recorded by, logged by, proposed by, \
    submitted by, written by, conducted by, decision maker, decision makers, analyst, auditor, facilitator";

/// Keys that sections use too, so they do not make a heading an entry.
const ATTRIBUTION: [&str; 7] = ["owner", "owners", "reviewer", "decider", "deciders", "from", "requested by"];

/// Metadata is read from so many blocks at the start of an entry.
pub(super) const HEAD: usize = 16;

impl Metadata {
    /// Fills gaps from another.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            date: self.date.or(other.date),
            by: self.by.or(other.by),
            has_date: self.has_date || other.has_date,
            has_author: self.has_author || other.has_author,
            has_what: self.has_what || other.has_what,
            status: self.status.or(other.status),
        }
    }
}

/// Reads the first blocks between a heading and the next.
pub(super) fn read(blocks: &[&Block], order: Order) -> Metadata {
    let fields: Vec<(String, String)> = blocks.iter().take(HEAD).flat_map(|block| fields(&block.kind)).collect();
    let line = date_line(blocks, order);
    let signed = signature(blocks, order);
    let found = of_fields(&fields, order);
    Metadata {
        has_date: found.has_date || line.is_some(),
        date: found.date.or(line).or_else(|| dates(&fields, MADE, order)),
        by: found.by.or(signed).or_else(|| attributed(&fields, order)),
        ..found
    }
}

/// Reads the fields of a note's front matter.
pub(super) fn of_matter(fields: &[(String, String)], order: Order) -> Metadata {
    let fields: Vec<_> = fields.iter().map(|(key, value)| (key.replace(['_', '-'], " "), value.clone())).collect();
    let found = of_fields(&fields, order);
    let date = found.date.or_else(|| dates(&fields, MADE, order));
    let by = found.by.or_else(|| attributed(&fields, order));
    let has_author = found.has_author || (by.is_some() && matter::subject(&fields).is_some());
    Metadata { has_date: date.is_some(), has_author, date, by, ..found }
}

fn of_fields(fields: &[(String, String)], order: Order) -> Metadata {
    let find = |names: &str| {
        names.split(", ").find_map(|name| {
            fields.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
        })
    };
    let author = find(AUTHOR).or_else(|| find(abroad::AUTHOR));
    let abroad = dates(fields, abroad::DATE, order);
    Metadata {
        has_date: find(DATE).is_some_and(|value| value.contains(|c: char| c.is_ascii_digit())) || abroad.is_some(),
        date: dates(fields, DATE, order).or(abroad),
        has_author: author.is_some(),
        has_what: find(WHAT).is_some(),
        status: fields.iter().find_map(|(key, value)| status::of_field(key, value)),
        by: author.map(without_pictographs).filter(|by| !by.is_empty()),
    }
}

fn dates(fields: &[(String, String)], names: &str, order: Order) -> Option<String> {
    fields.iter().filter(|(key, _)| listed(names, key)).find_map(|(_, value)| date_in(value, order))
}

/// The author by an ambiguous key, or next to a date: `Decided: 2026-01-05 by Kane`.
fn attributed(fields: &[(String, String)], order: Order) -> Option<String> {
    let of = |names: &[&str]| fields.iter().find(|(key, value)| names.contains(&key.as_str()) && !is_blank(value));
    let by_word = ATTRIBUTION.iter().find_map(|name| of(&[name])).map(|(_, value)| without_pictographs(value));
    let who = || of(&["who"]).map(|(_, value)| value.clone()).filter(|value| date::is_name(value));
    let beside = || {
        let (key, value) = fields.iter().find(|(key, _)| listed(DATE, key) || listed(MADE, key))?;
        let (_, _, after) = date::around(value, order)?;
        let after = after.trim();
        let in_brackets = || after.strip_prefix('(')?.strip_suffix(')').filter(|_| key == "decided");
        let name = after.strip_prefix("by ").or_else(in_brackets)?.trim();
        date::is_name(name).then(|| name.to_owned())
    };
    by_word.or_else(who).or_else(beside)
}

/// The fields of a block. Several may share a line: `**Date:** 2026-01-05 **By:** Kane`.
fn fields(kind: &BlockKind) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for (key, value) in fields_of(kind) {
        let is_known = |key: &str| listed(DATE, key) || listed(MADE, key) || listed(AUTHOR, key) || key == "status";
        let (mut key, mut value) = (key, value.as_str());
        while let Some((first, next, rest)) = is_known(&key).then(|| inner_field(value)).flatten() {
            fields.push((std::mem::replace(&mut key, next.to_owned()), first.to_owned()));
            value = rest;
        }
        fields.push((key, value.trim().to_owned()));
    }
    if let BlockKind::Paragraph(text) | BlockKind::Item(text) = kind {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for pair in lines.windows(2) {
            // `By:` with the name on the next line.
            if let [key, value] = pair
                && let Some(key) = key.strip_suffix(':').map(str::to_lowercase).filter(|key| listed(AUTHOR, key))
                && !value.contains(':')
            {
                fields.push((key, (*value).to_owned()));
            }
        }
        let rows = lines.iter().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|')?.split_once('|'));
        let rows = rows.filter(|(_, value)| !value.contains('|'));
        fields.extend(rows.map(|(key, value)| (key.trim().to_lowercase(), value.trim().to_owned())));
    }
    fields
}

/// Splits a value at the next field in it: the text before, the key, and the text after.
fn inner_field(value: &str) -> Option<(&str, &'static str, &str)> {
    const KEYS: [&str; 6] = ["by", "author", "authors", "agent", "date", "status"];
    // ASCII case only, so that offsets are the same.
    let lower = value.to_ascii_lowercase();
    let found = KEYS.into_iter().filter_map(|key| lower.find(&format!(" {key}: ")).map(|at| (at, key)));
    let (at, key) = found.min_by_key(|(at, _)| *at)?;
    Some((value.get(..at)?.trim(), key, value.get(at + key.len() + 3..)?.trim()))
}

/// The date of a first line with little else: `*2026-01-05, Kane*`, `Kane, 2026-01-05`.
fn date_line(blocks: &[&Block], order: Order) -> Option<String> {
    let (BlockKind::Paragraph(text) | BlockKind::Item(text)) = &blocks.first()?.kind else { return None };
    let line = text.lines().next()?;
    let short = line.chars().count() <= SHORT;
    let dated = date::dated(line, order);
    (short && (dated.leads || signed(line, order).is_some())).then_some(dated.date).flatten()
}

/// The most characters of such a line.
const SHORT: usize = 40;

/// The signature in the first lines of an entry.
fn signature(blocks: &[&Block], order: Order) -> Option<String> {
    let BlockKind::Paragraph(text) = &blocks.first()?.kind else { return None };
    text.lines().take(3).find_map(|line| signed(line.trim(), order))
}

/// `by Kane`, `By Kane. Because …`, `— Kane`, `2026-01-05 by Kane`, `2026-01-05, Kane` and `Kane, 2026-01-05`.
pub(super) fn signed(line: &str, order: Order) -> Option<String> {
    let name = |text: &str| Some(text.trim()).filter(|text| date::is_name(text)).map(str::to_owned);
    if let Some(rest) = ["by ", "By ", "— ", "– "].iter().find_map(|mark| line.strip_prefix(mark)) {
        let end = if line.starts_with(['b', 'B']) { rest.find(['.', ',', ';', '(']) } else { None };
        return name(&rest[..end.unwrap_or(rest.len())]);
    }
    let (before, _, after) = date::around(line, order).filter(|_| line.chars().count() <= SHORT)?;
    let after = after.trim();
    if is_blank(before) {
        return name(["by ", ", by ", ", "].iter().find_map(|mark| after.strip_prefix(mark))?);
    }
    let before = before.trim_end().strip_suffix(',').filter(|_| is_blank(after))?;
    name(before.strip_prefix("by ").unwrap_or(before))
}
