//! Classifies the paths of decision files, for the work tree and for commits.

use super::super::Files;

/// A kind of decision file.
pub(super) enum FileKind {
    /// One decision, written by squad.
    Own,
    Main,
    /// A note with one or more decisions: in the inbox, or a decision record of another tool.
    Inbox,
    Archive,
    /// An inbox note that was kept after its merge into another file.
    Processed,
}

/// Whether a path in the team folder may contain decisions.
pub(crate) fn holds_decisions(path: &str) -> bool {
    is_record_of_decisions(path) || is_beside(path)
}

/// Whether a path in the team folder is that of a file for decisions, which may be large.
pub(crate) fn is_record_of_decisions(path: &str) -> bool {
    file_kind(path, MAIN).is_some()
}

/// Whether a file in `decisions/` has decisions if it has dated ones, whatever its name is.
pub(super) fn is_beside(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let mut folders = path.split('/').rev().skip(1);
    path.starts_with("decisions/")
        && !folders.any(is_shelf)
        && name.ends_with(".md")
        && !["readme.md", "template.md", "index.md"].contains(&name.as_str())
}

const MAIN: &str = "decisions.md";
/// The folder of notes.
pub(crate) const KNOWLEDGE: &str = "knowledge";
const IN_FOLDER: &str = "decisions/decisions.md";

/// The file that agents read: `decisions.md` in any case, or else `decisions/decisions.md`.
pub(crate) fn main_file(files: &Files) -> &str {
    let named = || files.texts.keys().find(|path| path.eq_ignore_ascii_case(MAIN));
    if files.texts.contains_key(MAIN) { MAIN } else { named().map_or(IN_FOLDER, String::as_str) }
}

/// Whether this is the file that agents read, and another would replace it.
pub(crate) fn stands_before_another(files: &Files, path: &str) -> bool {
    let would_be = |other: &String| other.eq_ignore_ascii_case(MAIN) || other == IN_FOLDER;
    main_file(files) == path && files.texts.keys().any(|other| other != path && would_be(other))
}

pub(super) fn file_kind(path: &str, main: &str) -> Option<FileKind> {
    if path == main {
        return Some(FileKind::Main);
    }
    let lower = path.to_lowercase();
    let name = lower.strip_suffix(".md")?;
    let parts: Vec<&str> = name.split('/').collect();
    let is_archive = |name: &str| name.contains("archive") && name.contains("decision");
    match parts[..] {
        ["decisions" | KNOWLEDGE, year, month, _] if is_day_folder(year, month) => Some(FileKind::Own),
        ["decisions" | KNOWLEDGE, "undated", _] => Some(FileKind::Own),
        ["decisions", "inbox", _] => Some(FileKind::Inbox),
        ["decisions", "inbox", shelf, _] if is_shelf(shelf) => Some(FileKind::Processed),
        [name] | ["decisions", "archive" | "archived", name] if is_archive(name) || is_of_time(name) => {
            Some(FileKind::Archive)
        }
        ["decisions", shelf, _] if is_shelf(shelf) => Some(FileKind::Processed),
        ["decisions", "adr" | "adrs" | "records", _] => Some(FileKind::Inbox),
        ["decisions", "decisions"] | ["decisions"] => Some(FileKind::Archive),
        ["decisions", name] if name.contains("archive") => Some(FileKind::Archive),
        ["decisions", name] if is_record(name) => Some(FileKind::Inbox),
        ["archive" | "archived", name] if name.contains("decision") => Some(FileKind::Archive),
        _ => None,
    }
}

/// `decisions/<yyyy>/<mm>/<dd>-<slug>-<id>.md`
fn is_day_folder(year: &str, month: &str) -> bool {
    year.len() == 4 && month.len() == 2 && year.bytes().chain(month.bytes()).all(|b| b.is_ascii_digit())
}

/// Whether a folder is for merged notes: `processed`, `inbox-archive`.
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
