//! A three-way merge of one file: what squad wrote, what people made of it, and what squad would write now.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::error::Failure;
use crate::git::Repository;
use crate::parse::line_end;

/// A file that stays as it is, and where squad's new one is laid beside it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Conflict {
    pub(crate) path: String,
    pub(crate) new: String,
}

/// A path, what is there, and what is to be there.
pub(super) type Beside = (String, Option<Vec<u8>>, Vec<u8>);

/// What is written beside a file. What is there may be an older text of squad's, and nothing else.
pub(super) fn room_for(
    work_dir: &Path,
    place: &str,
    new: &[u8],
    is_ours: impl Fn(&[u8]) -> bool,
) -> Result<Option<Beside>, Failure> {
    let there = work_dir.join(place);
    if there.symlink_metadata().is_err() {
        return Ok(Some((place.to_owned(), None, new.to_owned())));
    }
    match fs::read(&there) {
        Ok(old) if old == new => Ok(None),
        Ok(old) if is_ours(&old) => Ok(Some((place.to_owned(), Some(old), new.to_owned()))),
        _ => Err(Failure::failed("something of yours is where squad's new file would be")
            .at(place)
            .hint("move it away, then try again")),
    }
}

pub(super) enum Merged {
    Stays,
    Becomes(Vec<u8>),
    /// Both changed the same lines; squad's new text.
    Conflicts(Vec<u8>),
}

/// Whether two texts differ in their line ends at most.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    let plain = |bytes: &[u8]| bytes.iter().copied().filter(|byte| *byte != b'\r').collect::<Vec<u8>>();
    one == other || plain(one) == plain(other)
}

pub(super) fn merged(repository: &Repository, base: &[u8], ours: &[u8], new: &[u8]) -> Result<Merged, Failure> {
    let Ok(text) = std::str::from_utf8(ours) else { return Ok(Merged::Conflicts(new.to_owned())) };
    let end = line_end(text);
    let like = |bytes: &[u8]| match end {
        "\n" => bytes.to_owned(),
        end => String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\n', end).into_bytes(),
    };
    let (base, new) = (like(base), like(new));
    if same(ours, &new) {
        return Ok(Merged::Stays);
    }
    if same(ours, &base) {
        return Ok(Merged::Becomes(new));
    }
    Ok(match repository.merged_text(&base, ours, &new)? {
        Some(merged) if merged == ours => Merged::Stays,
        Some(merged) => Merged::Becomes(merged),
        None => Merged::Conflicts(new),
    })
}
