//! What a member is, and whether it works.

use super::super::abroad;
use super::{BOT, Entry, HELPERS};
use crate::model::{Kind, Slug, Status};

const RETIRED: [&str; 15] = [
    "left",
    "gone",
    "resigned",
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
const INACTIVE: [&str; 19] = [
    "inactivated",
    "bench",
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

const ACTIVE: [&str; 9] =
    ["active", "activated", "reactivated", "enabled", "working", "available", "ready", "current", "yes"];
/// Accounts of programs that work on a forge.
const BOTS: [&str; 4] = ["dependabot", "renovate", "github-actions", "renovate-bot"];

pub(super) fn kind(slug: &Slug, entry: &Entry<'_>, role: &str, has_charter: bool) -> Kind {
    let role = role.to_lowercase();
    let marks = [entry.status.to_lowercase(), entry.badge.to_lowercase(), entry.name.to_lowercase()];
    let marked = |word: &str| marks.iter().any(|mark| says(mark, &[word]));
    let coding_agent = role.contains("coding agent") || marks.iter().any(|mark| mark.contains("coding agent"));
    let heading = entry.headings.last().map(|heading| heading.to_lowercase()).unwrap_or_default();
    let is_bot = BOTS.contains(&slug.as_str())
        || entry.name.contains("[bot]")
        || heading.ends_with("bots")
        || heading.ends_with(" bot");
    if slug.as_str() == BOT
        || entry.name.to_lowercase().contains("@copilot")
        || ((coding_agent || is_bot) && !has_charter)
    {
        Kind::Bot
    } else if marked("human")
        || marks.iter().any(|mark| says(mark, &abroad::HUMAN))
        || entry.headings.last().is_some_and(|heading| are_people(heading))
        || marks.iter().any(|m| m.contains('👤'))
        || (!has_charter && is_a_human(&role))
    {
        Kind::Human
    } else if HELPERS.contains(&slug.as_str()) {
        Kind::Helper
    } else {
        Kind::Agent
    }
}

/// A human, and not one who works on something human: `Human Resources Agent`.
fn is_a_human(role: &str) -> bool {
    const SUBJECTS: [&str; 10] =
        ["resources", "factors", "factor", "centered", "centred", "computer", "interface", "experience", "agent", "ai"];
    says(role, &["human"]) && !says(role, &SUBJECTS)
}

/// `Human Members`, `People`: a heading over people and nobody else.
fn are_people(heading: &str) -> bool {
    let heading = heading.to_lowercase();
    says(&heading, &["human", "humans", "people"]) && !says(&heading, &["agents", "ai", "and"])
}

/// The status cell decides; where it says nothing, a struck-out name and the heading above do.
pub(super) fn status(entry: &Entry<'_>) -> Status {
    if let Some(status) = status_of(&entry.status.to_lowercase()) {
        return status;
    }
    let heading = entry.headings.last().map(|heading| heading.to_lowercase()).unwrap_or_default();
    if entry.name.contains("~~") || is_of_the_retired(&heading) {
        Status::Retired
    } else if says(&heading, &["inactive", "dormant", "planned", "bench", "benched", "proposed"]) {
        Status::Inactive
    } else {
        Status::Active
    }
}

/// Whether a heading stands over those who have left.
pub(super) fn is_of_the_retired(heading: &str) -> bool {
    says(&heading.to_lowercase(), &RETIRED)
}

/// Whether nothing about the entry says if it works.
pub(super) fn is_silent(entry: &Entry<'_>) -> bool {
    let says_nothing = entry.status.chars().all(|c| c.is_whitespace() || matches!(c, '-' | '–' | '—'));
    says_nothing && status(entry) == Status::Active
}

/// What a cell in lower case says: behind the last arrow, the first word that means something.
/// `inactive → active` works, `active, was retired once` works too, and `active until May` says nothing for sure.
pub(in super::super) fn status_of(cell: &str) -> Option<Status> {
    let cell = cell.replace("in-active", "inactive").replace("re-activated", "reactivated");
    let cell = ["→", "->", "=>", "➜"].iter().fold(cell.as_str(), |cell, mark| cell.rsplit(mark).next().unwrap_or(cell));
    if !cell.contains(char::is_alphanumeric) {
        return mark_of(cell);
    }
    let words: Vec<&str> = cell.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let found = words.iter().enumerate().find_map(|(at, word)| {
        let status = word_of(word)?;
        let before = at.checked_sub(1).and_then(|before| words.get(before)).copied().unwrap_or_default();
        let after = words.get(at + 1).copied().unwrap_or_default();
        match status {
            Status::Active if matches!(before, "no" | "longer" | "formerly" | "previously") => {
                Some(Some(Status::Retired))
            }
            Status::Active if matches!(before, "not" | "non" | "never") => Some(Some(Status::Inactive)),
            Status::Active if after == "until" => Some(None),
            status => Some(Some(status)),
        }
    });
    match found {
        Some(status) => status,
        None if cell.contains("not started") || words == ["no"] => Some(Status::Inactive),
        None => None,
    }
}

fn word_of(word: &str) -> Option<Status> {
    let is = |lists: [&[&str]; 2]| lists.iter().any(|list| list.contains(&word));
    if is([&RETIRED, &abroad::RETIRED]) {
        Some(Status::Retired)
    } else if is([&INACTIVE, &abroad::INACTIVE]) {
        Some(Status::Inactive)
    } else if SILENT.contains(&word) {
        Some(Status::Silent)
    } else if MONITOR.contains(&word) {
        Some(Status::Monitor)
    } else {
        is([&ACTIVE, &abroad::ACTIVE]).then_some(Status::Active)
    }
}

/// What a cell says that has marks and no word.
fn mark_of(cell: &str) -> Option<Status> {
    if cell.contains(['🪦', '⚰']) {
        Some(Status::Retired)
    } else if cell.contains(['🚫', '💤', '⏸', '⛔', '✗', '✘', '✖', '❌', '🔴']) {
        Some(Status::Inactive)
    } else {
        cell.contains(['✅', '✔', '✓', '🟢', '☑']).then_some(Status::Active)
    }
}

fn says(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|part| words.contains(&part))
}
