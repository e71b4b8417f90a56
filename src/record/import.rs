//! Splits a file with many decisions into one file for each.

use std::collections::BTreeMap;

use super::decision_file::{decision_path, equal_except_duplicates, render_imported, with_duplicate};
use crate::model::{Decision, DecisionId};
use crate::parse::{self, Files};

/// The result of splitting a file with many decisions.
#[derive(Debug, Default)]
pub(crate) struct SplitFile {
    /// Decisions that get a file, or already have an equal one.
    pub(crate) decisions: Vec<Decision>,
    /// New files, with paths from the repository's root.
    pub(crate) files: Vec<(String, String)>,
    /// Entries that stay, because the decision already has a file that differs.
    pub(crate) left: Vec<Decision>,
    /// The rest of the file; `None`: nothing is left.
    pub(crate) rest: Option<String>,
}

/// Splits a file of `files`. `folder` is the team's, from the repository's root; `known` has the texts of decisions
/// that already have a file, and new ones are added to it.
///
/// Nothing is lost: every byte of the file goes into a new file or the rest, except exact duplicate entries. A
/// duplicate with a different author or heading goes into the same new file: left behind, it might be read as a
/// separate decision without its context.
pub(crate) fn part(files: &Files, path: &str, folder: &str, known: &mut BTreeMap<DecisionId, String>) -> SplitFile {
    let mut parted = SplitFile::default();
    let Some(raw) = files.texts.get(path) else { return parted };
    let (mut rest, mut at, mut first) = (String::with_capacity(raw.len()), 0, None);
    for piece in parse::split(files, path) {
        let slice = |range: std::ops::Range<usize>| raw.get(range).unwrap_or_default();
        let (heading, body) = (slice(piece.range.start..piece.body), slice(piece.body..piece.range.end));
        let text = render_imported(&piece.decision, heading, body);
        match known.get(&piece.decision.id) {
            Some(other) if equal_except_duplicates(other, &text) => {}
            Some(_) => {
                let path = decision_path(folder, &piece.decision);
                let Some((_, file)) = parted.files.iter_mut().find(|(other, _)| *other == path) else {
                    parted.left.push(piece.decision);
                    continue;
                };
                *file = with_duplicate(file, slice(piece.range.clone()));
                known.insert(piece.decision.id.clone(), file.clone());
            }
            None => {
                known.insert(piece.decision.id.clone(), text.clone());
                parted.files.push((decision_path(folder, &piece.decision), text));
            }
        }
        rest.push_str(slice(at..piece.range.start));
        first.get_or_insert(rest.len());
        at = piece.range.end;
        parted.decisions.push(piece.decision);
    }
    rest.push_str(raw.get(at..).unwrap_or_default());
    parted.rest = match first {
        Some(_) if rest.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').is_empty() => None,
        Some(first) => Some(mark_if_misread(files, path, rest, first, &parted.left)),
        None => Some(rest),
    };
    parted
}

/// Without the entries that had a date and an author, the rest of a file might be parsed by its headings, and its
/// introduction taken for a decision, or a line above for part of a title. In that case, adds a line which says that
/// its decisions were imported; and above headings that are misread all the same, since lines have come together, one
/// which says that they are no decisions.
fn mark_if_misread(files: &Files, path: &str, mut rest: String, at: usize, left: &[Decision]) -> String {
    let read = |text: &str| {
        let texts = BTreeMap::from([(path.to_owned(), text.to_owned())]);
        parse::split(&Files { folder: files.folder.clone(), texts }, path)
    };
    if read(&rest).iter().map(|piece| &piece.decision.id).eq(left.iter().map(|decision| &decision.id)) {
        return rest;
    }
    let end = if rest.contains("\r\n") { "\r\n" } else { "\n" };
    rest.insert_str(at, &format!("{}{end}", parse::IMPORTED));
    let is_left = |piece: &parse::Piece| left.iter().any(|decision| decision.id == piece.decision.id);
    let mut marked = None;
    while let Some(piece) = read(&rest).into_iter().find(|piece| !is_left(piece)) {
        // One that the mark does not help.
        if marked.replace(piece.heading).is_some_and(|before| before >= piece.heading) {
            break;
        }
        rest.insert_str(piece.heading, &format!("{}{end}", parse::NO_DECISION));
    }
    rest
}
