//! Which files of a team folder hold decisions, by their paths. Work tree and commits are read by this list alone.

use super::super::Files;

/// What a file is to the team's decisions.
pub(super) enum Place {
    /// A decision's own file.
    Own,
    Main,
    /// A note that is one decision, or some: in the inbox, or a decision record of another tool.
    Inbox,
    Archive,
    /// A note from the inbox that was merged into another file and kept.
    Processed,
}

/// Whether a file, by its path from the team folder, may hold decisions.
pub(crate) fn holds_decisions(path: &str) -> bool {
    place(path, MAIN).is_some()
}

const MAIN: &str = "decisions.md";
const IN_FOLDER: &str = "decisions/decisions.md";

/// The file that agents read: `decisions.md`, however its case, or one in the folder where there is no other.
pub(crate) fn main_file(files: &Files) -> &str {
    let named = || files.texts.keys().find(|path| path.eq_ignore_ascii_case(MAIN));
    if files.texts.contains_key(MAIN) { MAIN } else { named().map_or(IN_FOLDER, String::as_str) }
}

/// Whether another file would be the one that agents read if this one went.
pub(crate) fn stands_before_another(files: &Files, path: &str) -> bool {
    let would_be = |other: &String| other.eq_ignore_ascii_case(MAIN) || other == IN_FOLDER;
    main_file(files) == path && files.texts.keys().any(|other| other != path && would_be(other))
}

pub(super) fn place(path: &str, main: &str) -> Option<Place> {
    if path == main {
        return Some(Place::Main);
    }
    let lower = path.to_lowercase();
    let name = lower.strip_suffix(".md")?;
    let parts: Vec<&str> = name.split('/').collect();
    let is_archive = |name: &str| name.contains("archive") && name.contains("decision");
    match parts[..] {
        ["decisions", year, month, _] if is_day_folder(year, month) => Some(Place::Own),
        ["decisions", "undated", _] => Some(Place::Own),
        ["decisions", "inbox", _] => Some(Place::Inbox),
        ["decisions", "inbox", shelf, _] if is_shelf(shelf) => Some(Place::Processed),
        ["decisions", "archive" | "archived", _] => Some(Place::Archive),
        ["decisions", shelf, _] if is_shelf(shelf) => Some(Place::Processed),
        ["decisions", "adr" | "adrs" | "records", _] => Some(Place::Inbox),
        ["decisions", "decisions"] | ["decisions"] => Some(Place::Archive),
        ["decisions", name] if name.contains("archive") => Some(Place::Archive),
        ["decisions", name] if is_record(name) => Some(Place::Inbox),
        ["archive" | "archived", name] if name.contains("decision") => Some(Place::Archive),
        [name] if is_archive(name) || is_of_time(name) => Some(Place::Archive),
        _ => None,
    }
}

/// `decisions/<yyyy>/<mm>/<dd>-<slug>-<id>.md`
fn is_day_folder(year: &str, month: &str) -> bool {
    year.len() == 4 && month.len() == 2 && year.bytes().chain(month.bytes()).all(|b| b.is_ascii_digit())
}

/// Where notes are put once they have been merged: `processed`, `inbox-archive`.
fn is_shelf(folder: &str) -> bool {
    const WORDS: [&str; 6] = ["processed", "merged", "done", "archive", "archived", "consolidated"];
    folder.split(['-', '_', '.']).any(|word| WORDS.contains(&word))
}

/// `0007-use-tar`, `2026-01-05-use-tar`, `adr-7`, `decision-012`
fn is_record(name: &str) -> bool {
    let rest = ["adr", "decision", "dec", "dr"].iter().find_map(|word| name.strip_prefix(word));
    let number = rest.unwrap_or(name).trim_start_matches(['-', '_']);
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    let ends = matches!(number.as_bytes().get(digits), None | Some(b'-' | b'_'));
    ends && digits >= if rest.is_some() { 1 } else { 3 }
}

/// `decisions-2025`, `decisions_2025-q1`
fn is_of_time(name: &str) -> bool {
    let time = name.strip_prefix("decisions").and_then(|rest| rest.strip_prefix(['-', '_', '.']));
    time.is_some_and(|time| {
        time.starts_with(|c: char| c.is_ascii_digit())
            && time.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '_' | 'q' | 'h'))
    })
}
