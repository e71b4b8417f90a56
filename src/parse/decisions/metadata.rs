//! Reads dates, authors and statuses from the lines below a heading.

use super::super::abroad;
use super::super::markdown::{Block, fields_of};
use super::super::words::{is_blank, listed, without_brackets, without_pictographs};
use super::date::date_in;
use super::status;
use crate::model::LegacyStatus;

#[derive(Clone, Default)]
pub(super) struct Metadata {
    pub(super) date: Option<String>,
    pub(super) by: Option<String>,
    /// A line has a date, perhaps only a month.
    pub(super) has_date: bool,
    /// A line has the author, by a key that is only used for that.
    pub(super) has_author: bool,
    /// A line has the decision itself.
    pub(super) has_what: bool,
    pub(super) status: Option<LegacyStatus>,
}

impl Metadata {
    /// With what `other` has and this lacks.
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

/// Keys for the date. Only these make a heading an entry.
const DATE: &str = "date, dated, when, decided on, decision date, date decided, timestamp";

/// Keys that have the date if no other does. Sections use them for other things too.
const MADE: &str = "decided, created, recorded, logged, filed, added";

/// Keys for the decision itself.
const WHAT: &str = "what, decision";

/// Keys for the author; earlier ones win.
const AUTHOR: &str = "\
    by, author, authors, decided by, decision by, made by, agent, agents, recorded by, logged by, proposed by, \
    submitted by, written by, conducted by, decision maker, decision makers, decision owner, analyst, auditor, facilitator";

/// Keys that sections use too, so they do not make a heading an entry.
const ATTRIBUTION: [&str; 6] = ["owner", "owners", "reviewer", "decider", "deciders", "from"];

/// Metadata is read from so many blocks at the start of an entry.
pub(super) const HEAD: usize = 16;

/// Reads the first blocks between a heading and the next.
pub(super) fn read(blocks: &[&Block]) -> Metadata {
    of_note(&blocks.iter().take(HEAD).flat_map(|block| fields_of(&block.kind)).collect::<Vec<_>>())
}

/// Reads the fields of a note.
pub(super) fn of_note(fields: &[(String, String)]) -> Metadata {
    let find = |names: &str| {
        names.split(", ").find_map(|name| {
            fields.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
        })
    };
    let author = find(AUTHOR).or_else(|| find(abroad::AUTHOR));
    let by = author.map(|by| without_brackets(&without_pictographs(without_requester(by)))).filter(|by| !by.is_empty());
    let attributed = || {
        let of = |name: &&str| fields.iter().find(|(key, value)| key == name && !is_blank(value));
        ATTRIBUTION.iter().find_map(of).map(|(_, value)| without_brackets(&without_pictographs(value)))
    };
    let abroad = dates(fields, abroad::DATE);
    Metadata {
        has_date: find(DATE).is_some_and(|value| value.contains(|c: char| c.is_ascii_digit())) || abroad.is_some(),
        date: dates(fields, DATE).or(abroad).or_else(|| dates(fields, MADE)),
        has_author: author.is_some(),
        has_what: find(WHAT).is_some(),
        status: fields.iter().find_map(|(key, value)| status::of_field(key, value)),
        by: by.or_else(attributed),
    }
}

/// `Ada (backend), requested by Uwe`: who asked for a decision did not make it.
fn without_requester(by: &str) -> &str {
    const MARK: &str = "requested by ";
    let at = by
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| by.get(*at..at + MARK.len()).is_some_and(|word| word.eq_ignore_ascii_case(MARK)));
    at.filter(|at| *at > 0).map_or(by, |at| by[..at].trim_end_matches([' ', ',', ';', '(', '—', '–', '-', '·']))
}

fn dates(fields: &[(String, String)], names: &str) -> Option<String> {
    fields.iter().filter(|(key, _)| listed(names, key)).find_map(|(_, value)| date_in(value))
}
