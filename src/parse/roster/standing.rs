//! What a member is, and whether it works.

use super::super::abroad;
use super::{BOT, Entry, HELPERS};
use crate::model::{Kind, Slug, Status};

const RETIRED: [&str; 12] = [
    "retired",
    "archived",
    "alumni",
    "alumnus",
    "alumna",
    "former",
    "departed",
    "removed",
    "decommissioned",
    "deprecated",
    "offboarded",
    "sunset",
];
const INACTIVE: [&str; 17] = [
    "vacant",
    "leave",
    "inactive",
    "dormant",
    "paused",
    "disabled",
    "deactivated",
    "suspended",
    "benched",
    "sleeping",
    "offline",
    "off",
    "hold",
    "planned",
    "pending",
    "proposed",
    "unfilled",
];
const SILENT: [&str; 2] = ["silent", "background"];
const MONITOR: [&str; 3] = ["monitor", "monitoring", "watching"];

pub(super) fn kind(slug: &Slug, entry: &Entry<'_>, role: &str, has_charter: bool) -> Kind {
    let role = role.to_lowercase();
    let marks = [entry.status.to_lowercase(), entry.badge.to_lowercase(), entry.name.to_lowercase()];
    let marked = |word: &str| marks.iter().any(|mark| says(mark, &[word]));
    let coding_agent = role.contains("coding agent") || marks.iter().any(|mark| mark.contains("coding agent"));
    if slug.as_str() == BOT || entry.name.to_lowercase().contains("@copilot") || (coding_agent && !has_charter) {
        Kind::Bot
    } else if marked("human")
        || entry.headings.last().is_some_and(|heading| are_people(heading))
        || marks.iter().any(|m| m.contains('👤'))
        || (!has_charter && says(&role, &["human"]))
    {
        Kind::Human
    } else if HELPERS.contains(&slug.as_str()) {
        Kind::Helper
    } else {
        Kind::Agent
    }
}

/// `Human Members`, `People`: a heading over people and nobody else.
fn are_people(heading: &str) -> bool {
    let heading = heading.to_lowercase();
    says(&heading, &["human", "humans", "people"]) && !says(&heading, &["agents", "ai", "and"])
}

/// The status cell decides; where it says nothing, a struck-out name and the heading above do.
pub(super) fn status(entry: &Entry<'_>) -> Status {
    let cell = entry.status.to_lowercase();
    if let Some(status) = status_of(&cell) {
        return status;
    }
    let marked = cell.contains(char::is_alphanumeric);
    let heading = entry.headings.last().map(|heading| heading.to_lowercase()).unwrap_or_default();
    if entry.name.contains("~~") || (!marked && says(&heading, &RETIRED)) {
        Status::Retired
    } else if !marked && says(&heading, &["inactive", "dormant", "planned"]) {
        Status::Inactive
    } else {
        Status::Active
    }
}

/// Whether nothing about the entry says if it works.
pub(super) fn is_silent(entry: &Entry<'_>) -> bool {
    let says_nothing = entry.status.chars().all(|c| c.is_whitespace() || matches!(c, '-' | '–' | '—'));
    says_nothing && status(entry) == Status::Active
}

pub(in super::super) fn status_of(cell: &str) -> Option<Status> {
    if says(cell, &RETIRED) || says(cell, &abroad::RETIRED) || is_only(cell, &['🪦', '⚰']) {
        Some(Status::Retired)
    } else if says(cell, &INACTIVE)
        || says(cell, &abroad::INACTIVE)
        || cell.contains("not active")
        || cell.contains("not started")
        || is_only(cell, &['🚫', '💤', '⏸', '⛔'])
    {
        Some(Status::Inactive)
    } else if says(cell, &SILENT) {
        Some(Status::Silent)
    } else if says(cell, &MONITOR) {
        Some(Status::Monitor)
    } else {
        None
    }
}

/// Whether a cell is one of these marks and no word.
fn is_only(cell: &str, marks: &[char]) -> bool {
    !cell.contains(char::is_alphanumeric) && cell.contains(marks)
}

fn says(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|part| words.contains(&part))
}
