//! A file of many decisions becomes a file for each.

use std::collections::BTreeMap;

use super::decision_file::{decision_path, render_imported, same_but_for_twins, with_twin};
use crate::model::{Decision, DecisionId};
use crate::parse::{self, Files};

/// What becomes of a file of many decisions.
#[derive(Debug, Default)]
pub(crate) struct Parted {
    /// Decisions that get a file, or have this very file already.
    pub(crate) decisions: Vec<Decision>,
    /// New files, by their paths from the repository's root.
    pub(crate) files: Vec<(String, String)>,
    /// Entries that stay, because a file of the same decision says something else.
    pub(crate) left: Vec<Decision>,
    /// What is left of the file; `None`: nothing.
    pub(crate) rest: Option<String>,
}

/// Takes a file of `files` apart. `folder` is the team's, from the repository's root; `held` are the texts of decisions
/// that have a file already, and gets those that are new.
///
/// Nothing is lost: every byte of the file is in one of the new files or in the rest, but for entries that stand in it
/// twice, letter for letter. A twin that says another author, or has another heading, goes into the same file: left
/// behind, it might read as another decision without what stood beside it.
pub(crate) fn part(files: &Files, path: &str, folder: &str, held: &mut BTreeMap<DecisionId, String>) -> Parted {
    let mut parted = Parted::default();
    let Some(raw) = files.texts.get(path) else { return parted };
    let (mut rest, mut at, mut first) = (String::with_capacity(raw.len()), 0, None);
    for piece in parse::split(files, path) {
        let slice = |range: std::ops::Range<usize>| raw.get(range).unwrap_or_default();
        let (heading, body) = (slice(piece.range.start..piece.body), slice(piece.body..piece.range.end));
        let text = render_imported(&piece.decision, heading, body);
        match held.get(&piece.decision.id) {
            Some(other) if same_but_for_twins(other, &text) => {}
            Some(_) => {
                let path = decision_path(folder, &piece.decision);
                let Some((_, file)) = parted.files.iter_mut().find(|(other, _)| *other == path) else {
                    parted.left.push(piece.decision);
                    continue;
                };
                *file = with_twin(file, slice(piece.range.clone()));
                held.insert(piece.decision.id.clone(), file.clone());
            }
            None => {
                held.insert(piece.decision.id.clone(), text.clone());
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
        Some(first) => Some(marked(files, path, rest, first, &parted.left)),
        None => Some(rest),
    };
    parted
}

/// Without the entries that said when and by whom, what is left of a file might be read by its outline, and its
/// introduction taken for a decision, or a line above for a part of a title. Where that is so, a line says that its
/// decisions have gone.
fn marked(files: &Files, path: &str, rest: String, at: usize, left: &[Decision]) -> String {
    let texts = BTreeMap::from([(path.to_owned(), rest)]);
    let files = Files { folder: files.folder.clone(), texts };
    let read = parse::split(&files, path);
    let is_misread = !read.iter().map(|piece| &piece.decision.id).eq(left.iter().map(|decision| &decision.id));
    let mut rest = files.texts.into_values().next().unwrap_or_default();
    if is_misread {
        let end = if rest.contains("\r\n") { "\r\n" } else { "\n" };
        rest.insert_str(at, &format!("{}{end}", parse::IMPORTED));
    }
    rest
}
