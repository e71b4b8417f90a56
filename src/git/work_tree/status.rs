//! The output of `git status`, as tree entries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gix::{
    ObjectId, hash,
    index::{
        self,
        entry::{Flags, Mode},
    },
    objs::tree::EntryMode,
};

use crate::git::{
    error::Error,
    references::parse_id,
    repository::Repository,
    rescue::{is_behind_link, path_of, read_index},
    staging,
};
use crate::model::IntoMap;

/// Mode and object at a path. `None`: there is nothing.
pub(super) type Entry = Option<(EntryMode, ObjectId)>;
/// What `git status` does not list: index entries that it is told not to look at, and the paths of submodules.
pub(super) type Unlisted = (BTreeMap<Vec<u8>, Entry>, Vec<Vec<u8>>);

#[derive(Default)]
pub(super) struct Status {
    /// Index entries that differ from the commit. For a file in conflict, our side.
    pub(super) staged: BTreeMap<Vec<u8>, Entry>,
    /// Index entries of files that are changed or missing in the work tree.
    pub(super) tracked: BTreeMap<Vec<u8>, Entry>,
    /// Paths where the work tree differs from the index.
    pub(super) changed: BTreeSet<Vec<u8>>,
    /// Folders with a repository of their own, which git does not look into.
    pub(super) nested: BTreeSet<Vec<u8>>,
}

impl Status {
    /// Takes files behind a link for removed: git would refuse to add them.
    pub(super) fn remove_behind_links(&mut self, root: &Path) {
        let is_behind = |path: &Vec<u8>| path_of(path).is_some_and(|path| is_behind_link(root, &path));
        self.staged.extend(self.changed.extract_if(.., is_behind).map(|path| (path, None)));
    }

    /// Adds the files that git is told not to look at, as far as they exist: their content may differ from the index.
    pub(super) fn add_hidden(&mut self, hidden: &BTreeMap<Vec<u8>, Entry>, root: &Path) {
        let is_there = |path: &Path| root.join(path).is_file() && !is_behind_link(root, path);
        for (path, entry) in hidden.iter().filter(|(path, _)| path_of(path).is_some_and(|path| is_there(&path))) {
            self.changed.insert(path.clone());
            self.tracked.insert(path.clone(), *entry);
        }
    }

    /// Index entries that git is told not to look at, `assume-unchanged` or `skip-worktree`, and the submodules.
    pub(super) fn unlisted(repository: &Repository) -> Result<Unlisted, Error> {
        let index = read_index(&repository.git_dir().join("index"), repository)?;
        let is_hidden = |entry: &&index::Entry| entry.flags.intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE);
        let entry = |entry: &index::Entry| {
            (entry.path(&index).to_vec(), entry.mode.to_tree_entry_mode().map(|mode| (mode, entry.id)))
        };
        let submodules = index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
        let submodules = submodules.map(|entry| entry.path(&index).to_vec()).collect();
        Ok((index.entries().iter().filter(is_hidden).map(entry).into_map(), submodules))
    }

    /// Reads the user's index without refreshing it: we must not write it. Does something else while git looks for
    /// changed files, everywhere or only at some paths.
    pub(super) fn of<T>(
        repository: &Repository,
        paths: &[String],
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(Self, T), Error> {
        let call = |arguments: &[&str]| {
            let call = repository.call(&["-c", "core.untrackedCache=false"]).arguments(arguments);
            call.arguments(&["-z", "--"]).arguments(paths).variable("GIT_OPTIONAL_LOCKS", "0")
        };
        let status =
            |untracked: &str| call(&["status", "--porcelain=v2", untracked, "--ignore-submodules=all", "--no-renames"]);
        let before = staging::stamp(repository);
        // Side by side they take three quarters of the time of one that does both. Looking for untracked files, which takes
        // longer, begins first.
        let tracked = || status("--untracked-files=no").succeed_while(meanwhile);
        let others = call(&["ls-files", "--others", "--exclude-standard"]);
        let (mut others, tracked) = others.succeed_while(tracked)?;
        let (mut tracked, done) = tracked?;
        // What was added to the index or taken from it in between, neither may have seen.
        if staging::stamp(repository) != before {
            tracked = status("--untracked-files=all").succeed()?;
            others.stdout.clear();
        }
        let mut found = Self::default();
        for record in tracked.records() {
            found.note(record, repository.hash());
        }
        for path in others.records() {
            found.note_untracked(path);
        }
        Ok((found, done))
    }

    fn note_untracked(&mut self, path: &[u8]) {
        // A nested repository is listed as a folder.
        let paths = if path.ends_with(b"/") { &mut self.nested } else { &mut self.changed };
        paths.insert(path.to_owned());
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
            self.note_untracked(&path);
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
        // A repository in place of a file is a change like any other.
        let is_submodule = fields.get(4)? == b"160000";
        if !is_submodule && (is_in_conflict || state(1) != Some(b'.')) {
            self.tracked.insert(path.clone(), indexed);
            self.changed.insert(path);
        }
        Some(())
    }
}

/// An entry from its mode and id as git prints them.
fn entry(mode: &[u8], id: &[u8], hash: hash::Kind) -> Entry {
    let id = parse_id(id, hash).filter(|id| !id.is_null())?;
    Some((EntryMode::from_bytes(mode)?, id))
}
