//! A three-way merge of one file: the text squad wrote, the user's version of it, and the text squad would write now.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::FileChange;
use crate::error::Failure;
use crate::git::Repository;
use crate::parse::line_end;

/// A file that stays as it is, and the path next to it to which squad writes its new version.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Conflict {
    pub(crate) path: String,
    pub(crate) new: String,
}

/// Plans to write squad's new version of a file in conflict. May replace an older version that squad wrote there, and
/// fails for any other file.
pub(in crate::ops) fn conflict_copy(
    work_dir: &Path,
    path: &str,
    new: &[u8],
    is_squads: impl Fn(&[u8]) -> bool,
) -> Result<Option<FileChange>, Failure> {
    let change = |old| Some(FileChange::new(path.to_owned(), old, Some(new.to_owned())));
    let full = work_dir.join(path);
    if full.symlink_metadata().is_err() {
        return Ok(change(None));
    }
    match fs::read(&full) {
        Ok(old) if old == new => Ok(None),
        Ok(old) if is_squads(&old) => Ok(change(Some(old))),
        _ => Err(Failure::failed("squad cannot write its new version here: a file of yours is in the way")
            .at(path)
            .hint("move it away, then try again")),
    }
}

pub(in crate::ops) enum Merged {
    Unchanged,
    Changed(Vec<u8>),
    /// Both changed the same lines. Holds squad's new text.
    Conflict(Vec<u8>),
}

/// Whether two texts are equal except for line endings.
pub(in crate::ops) fn same(one: &[u8], other: &[u8]) -> bool {
    let plain = |bytes: &[u8]| bytes.iter().copied().filter(|byte| *byte != b'\r').collect::<Vec<u8>>();
    one == other || plain(one) == plain(other)
}

pub(in crate::ops) fn merged(repository: &Repository, base: &[u8], ours: &[u8], new: &[u8]) -> Result<Merged, Failure> {
    let Ok(text) = std::str::from_utf8(ours) else { return Ok(Merged::Conflict(new.to_owned())) };
    let end = line_end(text);
    let with_line_end = |bytes: &[u8]| match end {
        "\n" => bytes.to_owned(),
        end => String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\n', end).into_bytes(),
    };
    let (base, new) = (with_line_end(base), with_line_end(new));
    if same(ours, &new) {
        return Ok(Merged::Unchanged);
    }
    if same(ours, &base) {
        return Ok(Merged::Changed(new));
    }
    Ok(match repository.merged_text(&base, ours, &new)? {
        Some(merged) if merged == ours => Merged::Unchanged,
        Some(merged) => Merged::Changed(merged),
        None => Merged::Conflict(new),
    })
}
