//! The lines below a heading that say when and by whom.

use super::super::abroad;
use super::super::markdown::{Block, BlockKind, fields_of};
use super::super::words::without_pictographs;
use super::date::date_in;
use super::status;
use crate::model::SaidStatus;

#[derive(Default)]
pub(super) struct Metadata {
    pub(super) date: Option<String>,
    pub(super) by: Option<String>,
    /// A line says when, perhaps only the month.
    pub(super) has_date: bool,
    /// A line says who wrote the entry, in a word that people only use for that.
    pub(super) has_author: bool,
    pub(super) status: Option<SaidStatus>,
}

/// Words for the day of a decision. Only these make a heading an entry.
const DATE: [&str; 7] = ["date", "dated", "when", "decided on", "decision date", "date decided", "timestamp"];

/// Words that tell an entry's day where nothing else does, and that sections use for much else.
const MADE: [&str; 6] = ["decided", "created", "recorded", "logged", "filed", "added"];

/// Who wrote an entry; an earlier word wins over a later one.
const AUTHOR: [&str; 17] = [
    "by",
    "author",
    "authors",
    "decided by",
    "decision by",
    "made by",
    "agent",
    "agents",
    "recorded by",
    "logged by",
    "proposed by",
    "submitted by",
    "written by",
    "conducted by",
    "analyst",
    "auditor",
    "facilitator",
];

/// Words that sections within an entry use too, so they do not make a heading an entry.
const ATTRIBUTION: [&str; 7] = ["owner", "owners", "reviewer", "decider", "deciders", "from", "requested by"];

/// Metadata stands at the head of an entry: what comes after so many blocks is its text.
const HEAD: usize = 16;

/// Reads the blocks between a heading and the next.
pub(super) fn read(blocks: &[Block]) -> Metadata {
    let fields: Vec<(String, String)> = blocks.iter().take(HEAD).flat_map(|block| fields_of(&block.kind)).collect();
    let find = |names: &[&str]| {
        names.iter().find_map(|name| {
            fields.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
        })
    };
    let author = find(&AUTHOR).or_else(|| find(&abroad::AUTHOR));
    let dates = |names: &[&str]| {
        fields.iter().filter(|(key, _)| names.contains(&key.as_str())).find_map(|(_, value)| date_in(value))
    };
    let line = date_line(blocks);
    Metadata {
        has_date: line.is_some()
            || find(&DATE).is_some_and(|value| value.contains(|c: char| c.is_ascii_digit()))
            || dates(&abroad::DATE).is_some(),
        date: dates(&DATE).or_else(|| dates(&abroad::DATE)).or(line).or_else(|| dates(&MADE)),
        has_author: author.is_some(),
        status: fields.iter().find_map(|(key, value)| status::of_field(key, value)),
        by: author.or_else(|| find(&ATTRIBUTION)).map(without_pictographs).filter(|by| !by.is_empty()),
    }
}

/// A first line that is little more than a date: `*2026-01-05, Kane*`.
fn date_line(blocks: &[Block]) -> Option<String> {
    let (BlockKind::Paragraph(text) | BlockKind::Item(text)) = &blocks.first()?.kind else { return None };
    let line = text.lines().next()?;
    let short = line.chars().count() <= 40;
    let dated = super::date::dated(line);
    (short && dated.leads).then_some(dated.date).flatten()
}
