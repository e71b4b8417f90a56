//! A member's kind and status.

use super::super::abroad;
use super::super::words::{has_word, listed, words};
use super::{BOT, Entry, HELPERS};
use crate::model::{Kind, Slug, Status};

const RETIRED: &str = "\
    left, gone, resigned, retired, archived, alumni, alumnus, alumna, former, departed, removed, decommissioned, \
    deprecated, offboarded, sunset";
const INACTIVE: &str = "\
    inactivated, bench, vacant, leave, inactive, dormant, paused, disabled, deactivated, suspended, benched, \
    sleeping, offline, off, hold, planned, pending, proposed, unfilled";
const SILENT: &str = "silent, background";
const MONITOR: &str = "monitor, monitoring, watching";

const ACTIVE: &str = "active, activated, reactivated, enabled, working, available, ready, current, yes";
/// Bot accounts on code forges.
const BOTS: [&str; 4] = ["dependabot", "renovate", "github-actions", "renovate-bot"];

pub(super) fn kind(slug: &Slug, entry: &Entry<'_>, role: &str, has_charter: bool) -> Kind {
    let role = role.to_lowercase();
    let marks = [entry.status.to_lowercase(), entry.badge.to_lowercase(), entry.name.to_lowercase()];
    let marked = |word: &str| marks.iter().any(|mark| has_word(mark, word));
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
        || marks.iter().any(|mark| has_word(mark, abroad::HUMAN))
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

/// Whether a role means a human, unlike `Human Resources Agent`.
fn is_a_human(role: &str) -> bool {
    const SUBJECTS: &str = "resources, factors, factor, centered, centred, computer, interface, experience, agent, ai";
    has_word(role, "human") && !has_word(role, SUBJECTS)
}

/// Whether a heading is only about people: `Human Members`, `People`.
pub(super) fn are_people(heading: &str) -> bool {
    let heading = heading.to_lowercase();
    has_word(&heading, "human, humans, people") && !has_word(&heading, "agents, ai, and")
}

/// By the status cell; else by a struck-out name or the heading.
pub(super) fn status(entry: &Entry<'_>) -> Status {
    if let Some(status) = status_of(&entry.status.to_lowercase()) {
        return status;
    }
    let heading = entry.headings.last().map(|heading| heading.to_lowercase()).unwrap_or_default();
    if entry.name.contains("~~") || is_of_the_retired(&heading) {
        Status::Retired
    } else if has_word(&heading, "inactive, dormant, planned, bench, benched, proposed") {
        Status::Inactive
    } else {
        Status::Active
    }
}

/// Whether a heading is about former members.
pub(crate) fn is_of_the_retired(heading: &str) -> bool {
    has_word(&heading.to_lowercase(), RETIRED)
}

/// Whether an entry has no status.
pub(super) fn is_silent(entry: &Entry<'_>) -> bool {
    let says_nothing = entry.status.chars().all(|c| c.is_whitespace() || matches!(c, '-' | '–' | '—'));
    says_nothing && status(entry) == Status::Active
}

/// The status of a lower-case cell: the first known word after the last arrow. `inactive → active` and
/// `active, was retired once` are active. `active until May` is unknown.
pub(in super::super) fn status_of(cell: &str) -> Option<Status> {
    let cell = cell.replace("in-active", "inactive").replace("re-activated", "reactivated");
    let cell = ["→", "->", "=>", "➜"].iter().fold(cell.as_str(), |cell, mark| cell.rsplit(mark).next().unwrap_or(cell));
    if !cell.contains(char::is_alphanumeric) {
        return mark_of(cell);
    }
    let words: Vec<&str> = words(cell).collect();
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
    let is = |lists: [&str; 2]| lists.iter().any(|list| listed(list, word));
    if is([RETIRED, abroad::RETIRED]) {
        Some(Status::Retired)
    } else if is([INACTIVE, abroad::INACTIVE]) {
        Some(Status::Inactive)
    } else if listed(SILENT, word) {
        Some(Status::Silent)
    } else if listed(MONITOR, word) {
        Some(Status::Monitor)
    } else {
        is([ACTIVE, abroad::ACTIVE]).then_some(Status::Active)
    }
}

/// The status of a cell with only symbols.
fn mark_of(cell: &str) -> Option<Status> {
    if cell.contains(['🪦', '⚰']) {
        Some(Status::Retired)
    } else if cell.contains(['🚫', '💤', '⏸', '⛔', '✗', '✘', '✖', '❌', '🔴']) {
        Some(Status::Inactive)
    } else {
        cell.contains(['✅', '✔', '✓', '🟢', '☑']).then_some(Status::Active)
    }
}
