//! A private copy of git's index.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use gix::{
    ObjectId,
    index::{State, decode, entry, write},
    objs::tree::EntryMode,
};
use tempfile::TempDir;

use crate::git::{error::Error, program::Call, quarantine::Quarantine, references::parse_id, repository::Repository};
use crate::model::{IntoMap, Sort};

/// A temporary index, so that the user's own stays untouched. Dropping it deletes it.
pub(in crate::git) struct Index<'a> {
    repository: &'a Repository,
    folder: TempDir,
}

impl<'a> Index<'a> {
    pub(in crate::git) fn empty(repository: &'a Repository) -> Result<Self, Error> {
        let folder = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        Ok(Self { repository, folder })
    }

    pub(super) fn copy(repository: &'a Repository) -> Result<Self, Error> {
        let copy = Self::empty(repository)?;
        let own = repository.git_dir().join("index");
        let copied = fs::copy(&own, copy.path()).and_then(|_| {
            // git compares file times with the index's own time to find racy entries, so keep it.
            let modified = fs::metadata(&own)?.modified()?;
            fs::File::options().write(true).open(copy.path())?.set_modified(modified)
        });
        match copied {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("copy", &own)(cause)),
            _ => {}
        }
        // Clears entries that only look changed. If this fails, the next call reports why.
        copy.call(&["update-index", "-q", "--refresh"]).run()?;
        Ok(copy)
    }

    /// An index of these entries, which counts as not compared with the work tree.
    pub(in crate::git) fn of(
        repository: &'a Repository,
        entries: impl Iterator<Item = (&'a [u8], EntryMode, ObjectId)>,
    ) -> Result<Self, Error> {
        let index = Self::empty(repository)?;
        let mut state = State::new(repository.hash());
        for (path, mode, id) in entries {
            let mode = entry::Mode::from_bits_truncate(u32::from(mode.value()));
            state.dangerously_push_entry(entry::Stat::default(), id, entry::Flags::empty(), mode, path.into());
        }
        state.sort_entries();
        let mut bytes = Vec::new();
        let written = gix::index::File::from_state(state, index.path()).write_to(&mut bytes, write::Options::default());
        written.map_err(|cause| Error::damaged(repository.git_dir(), cause.to_string()))?;
        fs::write(index.path(), bytes).map_err(Error::io("write to", index.path()))?;
        Ok(index)
    }

    /// Mode and object of each path.
    pub(in crate::git) fn entries(&self) -> Result<BTreeMap<Vec<u8>, (EntryMode, ObjectId)>, Error> {
        let state = read(&self.path(), self.repository)?;
        let read = |entry: &gix::index::Entry| {
            Some((entry.path(&state).to_vec(), (entry.mode.to_tree_entry_mode()?, entry.id)))
        };
        Ok(state.entries().iter().filter_map(read).into_map())
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    pub(in crate::git) fn call(&self, arguments: &[&str]) -> Call {
        // This index is temporary, and we flush whatever we take from it ourselves.
        let plain = [
            "core.fsmonitor=false",
            "core.untrackedCache=false",
            "core.splitIndex=false",
            "index.sparse=false",
            "core.fsync=none",
        ];
        let settings: Vec<&str> = plain.iter().flat_map(|setting| ["-c", setting]).collect();
        self.repository.call(&settings).arguments(arguments).variable("GIT_INDEX_FILE", &self.path().to_string_lossy())
    }

    /// Resolves conflicts to our side, since git writes no tree of an index with conflicts.
    pub(super) fn settle_conflicts(&self) -> Result<(), Error> {
        let listed = self.call(&["ls-files", "--unmerged", "-z"]).succeed()?.stdout;
        let mut records: Vec<(Vec<u8>, u8, Vec<u8>)> = Vec::new();
        for record in listed.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            // `mode id stage\tpath`
            let Some(tab) = record.iter().position(|byte| *byte == b'\t') else { continue };
            let (facts, path) = (&record[..tab], &record[tab + 1..]);
            let stage = facts.last().copied().unwrap_or_default();
            records.push((path.to_owned(), if stage == b'2' { 0 } else { stage }, facts[..facts.len() - 1].to_owned()));
        }
        records.stable_sort_by(Ord::cmp);
        records.dedup_by(|later, earlier| later.0 == earlier.0);
        if records.is_empty() {
            return Ok(());
        }
        let null = format!("0 {} 0\t", self.repository.hash().null());
        let lines = records
            .iter()
            .flat_map(|(path, _, facts)| [null.as_bytes(), path, b"\0", facts, b"0\t", path, b"\0"].concat());
        self.call(&["update-index", "-z", "--index-info"]).input(lines.collect::<Vec<u8>>()).succeed().map(drop)
    }

    pub(super) fn write_tree(&self, quarantine: &Quarantine<'_>, options: &[&str]) -> Result<ObjectId, Error> {
        let answer = quarantine.call(self.call(&["write-tree"]).arguments(options)).succeed()?;
        parse_id(&answer.stdout, self.repository.hash())
            .ok_or_else(|| Error::damaged(self.repository.git_dir(), "`git write-tree` answered in an unknown form"))
    }

    /// The paths where the index differs from a commit; without a commit, all of its paths.
    pub(super) fn differences_from(&self, head: Option<ObjectId>) -> Result<BTreeSet<Vec<u8>>, Error> {
        let head = head.map(|head| head.to_string());
        let listed = match &head {
            Some(head) => self.call(&["diff-index", "--cached", "-z", "--name-only", "--no-renames", head]),
            None => self.call(&["ls-files", "-z"]),
        };
        let listed = listed.succeed()?.stdout;
        Ok(listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_owned).collect())
    }

    /// The paths of files that differ from the index, are missing, or are untracked.
    pub(super) fn unsaved(&self) -> Result<Vec<Vec<u8>>, Error> {
        if self.repository.work_dir().is_none() {
            return Ok(Vec::new());
        }
        let lists: [&[&str]; 2] = [
            &["diff-files", "-z", "--name-only", "--ignore-submodules=all"],
            &["ls-files", "-z", "--others", "--exclude-standard"],
        ];
        let mut paths = Vec::new();
        for list in lists {
            let listed = self.call(list).succeed()?.stdout;
            // A nested repository is listed as a folder.
            let files = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty() && !path.ends_with(b"/"));
            paths.extend(files.map(<[u8]>::to_owned));
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}

/// Reads an index; a missing file is an empty one.
pub(in crate::git) fn read(path: &Path, repository: &Repository) -> Result<State, Error> {
    // git has checked its hash.
    let read = gix::index::File::at_or_default(path, repository.hash(), true, decode::Options::default());
    read.map(State::from).map_err(|cause| Error::damaged(path, cause.to_string()))
}
