//! Committing files as a snapshot of the work tree has them.

use std::collections::{BTreeMap, BTreeSet};

use gix::{ObjectId, index::entry::Stage, objs::tree::EntryMode};
use jiff::Timestamp;

use super::{
    Landing, NewCommit, Stop, TRY_AGAIN, check_ready, known, move_branch, not_landed, recovered, refuse,
    wants_signature, write_commit,
};
use crate::git::{
    commit::Identity, error::Error, objects::NewObjects, repository::Repository, rescue::read_index,
    work_tree::WorkTreeSnapshot,
};
use crate::model::IntoMap;

/// Mode and blob of files; `None`: there is none.
type Entries = BTreeMap<String, Option<(EntryMode, ObjectId)>>;

impl Repository {
    /// Commits these files as a snapshot has them, and nothing else, to the checked-out branch: with the user's signature
    /// if that is configured, without hooks. One that it lacks is removed. What is staged of other files stays so, and the
    /// work tree is not looked at. Paths are relative to the root.
    pub(crate) fn commit_files(
        &self,
        snapshot: &WorkTreeSnapshot,
        paths: &[String],
        message: &str,
        committer: Option<&Identity>,
        at: Timestamp,
    ) -> Result<Landing, Error> {
        let store = self.objects();
        let mut finder = store.finder(snapshot.tree());
        let files = paths.iter().map(|path| Ok((path.clone(), finder.find(path)?)));
        let files: Entries = files.collect::<Result<_, Error>>()?;
        let lock = self.lock_work_tree()?;
        let committed =
            recovered(self, &lock, committer, at).and_then(|()| commit_files(self, &files, message, committer, at));
        committed.map_or_else(not_landed, |commit| Ok(Landing::Landed { commit }))
    }
}

fn commit_files(
    repository: &Repository,
    files: &Entries,
    message: &str,
    committer: Option<&Identity>,
    at: Timestamp,
) -> Result<String, Stop> {
    let Some(branch) = repository.head()?.branch else {
        return refuse("HEAD is detached: no branch is checked out", "git switch BRANCH");
    };
    let (_, base) = check_ready(repository, &branch, false)?;
    let new = NewCommit { branch: &branch, base, merged: None, message, committer: known(committer)?, at };
    let store = repository.objects();
    let base = base.map(|base| store.tree_of(&base)).transpose()?;
    let before = staged(repository, files, base)?;
    let edits = files.iter().map(|(path, entry)| (path.clone().into_bytes(), *entry)).into_map();
    let mut objects = NewObjects::new(repository.hash());
    let tree = repository.edited(&store, base, &edits, &mut objects)?;
    if base == Some(tree) {
        return refuse("the branch has these files as they are", "see `git status`");
    }
    // A signature may take as long as a person does.
    let (commit, kept) = write_commit(repository, &mut objects, tree, &new, wants_signature(repository)?)?;
    if staged(repository, files, base)? != before {
        return refuse("the index changed meanwhile", TRY_AGAIN);
    }
    // If this process is killed before the branch moves, the files are staged. The other way round the index would lack
    // them, and the user's next commit would take them out again.
    stage(repository, files)?;
    match move_branch(repository, &new, (commit, &kept)) {
        Ok(true) => Ok(commit.to_string()),
        moved => {
            stage(repository, &before)?;
            moved?;
            refuse(format!("the branch {branch} moved meanwhile"), TRY_AGAIN)
        }
    }
}

/// What the index has of these files. Fails if something is staged that would be lost.
fn staged(repository: &Repository, files: &Entries, base: Option<ObjectId>) -> Result<Entries, Stop> {
    let index = read_index(&repository.git_dir().join("index"), repository)?;
    let mut entries: Entries = files.keys().map(|path| (path.clone(), None)).into_map();
    for entry in index.entries() {
        let Ok(path) = str::from_utf8(entry.path(&index)) else { continue };
        let Some(known) = entries.get_mut(path) else { continue };
        if entry.stage() != Stage::Unconflicted {
            return refuse(format!("{path} is in conflict"), "resolve it: `git status` tells how");
        }
        *known = entry.mode.to_tree_entry_mode().map(|mode| (mode, entry.id));
    }
    let store = repository.objects();
    let mut committed = base.map(|tree| store.finder(tree));
    for (path, entry) in &entries {
        let committed = committed.as_mut().map(|tree| tree.find(path)).transpose()?.flatten();
        let is_wanted = files.get(path) == Some(entry);
        if *entry != committed && !is_wanted {
            return refuse(format!("{path} is staged with other content"), format!("git restore --staged {path}"));
        }
    }
    Ok(entries)
}

/// Puts these entries into the index.
fn stage(repository: &Repository, entries: &Entries) -> Result<(), Error> {
    let (gone, there): (BTreeSet<_>, BTreeSet<_>) = entries.keys().partition(|path| entries[*path].is_none());
    let line = |path: &String| match entries[path] {
        Some((mode, id)) => format!("{:o} {id}\t{path}\0", mode.value()),
        None => format!("0 {}\t{path}\0", repository.hash().null()),
    };
    // A file may take the place of a folder.
    let info: String = gone.into_iter().chain(there).map(line).collect();
    repository.call(&["update-index", "--add", "--replace", "-z", "--index-info"]).input(info).succeed().map(drop)
}
