//! What `git status` says of the work tree, as entries that a tree may have.

use std::collections::{BTreeMap, BTreeSet};

use gix::{ObjectId, hash, objs::tree::EntryMode};

use crate::git::{error::Error, references::parse_id, repository::Repository};

/// What stands at a path: mode and object. `None`: nothing.
pub(super) type Entry = Option<(EntryMode, ObjectId)>;

#[derive(Default)]
pub(super) struct Status {
    /// What the index has otherwise than the commit. Of a file in conflict our side stands for it.
    pub(super) staged: BTreeMap<Vec<u8>, Entry>,
    /// What the index has of files that the work tree has otherwise, or not at all.
    pub(super) tracked: BTreeMap<Vec<u8>, Entry>,
    /// Paths that the work tree has otherwise than the index.
    pub(super) changed: BTreeSet<Vec<u8>>,
}

impl Status {
    /// The user's index is read and not refreshed: it is not ours to write.
    pub(super) fn of(repository: &Repository) -> Result<Self, Error> {
        let plain = ["-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "status"];
        let options = ["--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames"];
        let call = repository.call(&plain).arguments(&options).variable("GIT_OPTIONAL_LOCKS", "0");
        let listed = call.succeed()?.stdout;
        let mut status = Self::default();
        for record in listed.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            status.note(record, repository.hash());
        }
        Ok(status)
    }

    /// `1 XY sub mH mI mW hH hI path`, `u XY sub m1 m2 m3 mW h1 h2 h3 path` or `? path`.
    fn note(&mut self, record: &[u8], hash: hash::Kind) -> Option<()> {
        let count = match record.first()? {
            b'1' => 9,
            b'u' => 11,
            b'?' => 2,
            _ => return None,
        };
        let fields: Vec<&[u8]> = record.splitn(count, |byte| *byte == b' ').collect();
        let path = (*fields.get(count - 1)?).to_owned();
        if count == 2 {
            // A repository inside this one is listed as a folder.
            if !path.ends_with(b"/") {
                self.changed.insert(path);
            }
            return Some(());
        }
        let entry = |mode: usize, id: usize| entry(fields.get(mode)?, fields.get(id)?, hash);
        let state = |at: usize| fields.get(1).and_then(|state| state.get(at)).copied();
        let is_in_conflict = count == 11;
        let indexed = match is_in_conflict {
            true => entry(4, 8).or_else(|| entry(3, 7)).or_else(|| entry(5, 9)),
            false => entry(4, 7),
        };
        if is_in_conflict || state(0) != Some(b'.') {
            self.staged.insert(path.clone(), indexed);
        }
        let is_submodule = fields.get(2)?.starts_with(b"S");
        if !is_submodule && (is_in_conflict || state(1) != Some(b'.')) {
            self.tracked.insert(path.clone(), indexed);
            self.changed.insert(path);
        }
        Some(())
    }
}

/// An entry from its mode and id as git prints them.
pub(super) fn entry(mode: &[u8], id: &[u8], hash: hash::Kind) -> Entry {
    let id = parse_id(id, hash).filter(|id| !id.is_null())?;
    Some((EntryMode::from_bytes(mode)?, id))
}
