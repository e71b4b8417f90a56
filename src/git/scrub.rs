//! Removing content from everything squad stores: ledger and rescues are rewritten, and the old objects deleted.
//!
//! Only scrubs change files of the ledger. A rewritten ledger starts with a commit without parents, so that nothing
//! references the old bytes. Each scrub adds a record below `scrubs/`; `sync` uses the records to detect a history that
//! still references the old bytes.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashSet},
    fs::{self, OpenOptions},
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    error::Error,
    ledger::Ledger,
    ledger_tree::TreeReader,
    object_store::ObjectStore,
    objects::NewObjects,
    quarantine::Quarantine,
    references::{REFERENCE, parse_id},
    repository::Repository,
    rescue::{FOLDER, Rescue},
    tree_edit::{Insertion, TreeEdit},
};
use crate::model::IntoSet;

/// The folder of the scrub records in a ledger's tree.
pub(super) const RECORDS: &str = "scrubs";

/// Repacking takes long.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// git's starting points for finding the objects to keep.
const EVERYTHING: [&str; 3] = ["--all", "--reflog", "--indexed-objects"];

/// The cleaned content of a file; `None`: it stays as it is.
pub(crate) type Clean<'a> = dyn Fn(&[u8]) -> Option<Vec<u8>> + 'a;

/// Builds the record of the changed paths: its path and content.
pub(crate) type Record<'a> = dyn Fn(&[String]) -> (String, Vec<u8>) + 'a;

impl Ledger<'_> {
    /// Replaces every file that `clean` changes, adds the record of the changed paths, and drops the history. Returns
    /// the changed paths once the change is durable; no paths: nothing had to change.
    pub(crate) fn rewrite(
        &self,
        clean: &Clean<'_>,
        record: &Record<'_>,
        committer: &Identity,
        at: Timestamp,
    ) -> Result<Vec<String>, Error> {
        let changed = RefCell::new(Vec::new());
        self.advance(|tip, objects| {
            let Some(tip) = tip else { return Ok(None) };
            let store = self.repository().objects();
            let root = store.tree_of(&tip)?;
            // Unreadable files stay as they are, and are reported.
            let reader = TreeReader::new(&store, self.repository().damage());
            let (mut paths, mut changes) = (Vec::new(), Vec::new());
            for (path, id) in reader.files_below("", root)? {
                let bytes = reader.skip_unreadable(&path, id, store.blob(&id))?;
                if let Some(bytes) = bytes.and_then(|bytes| clean(&bytes)) {
                    changes.push((path.clone(), id, objects.add(objs::Kind::Blob, bytes)?));
                    paths.push(path);
                }
            }
            if paths.is_empty() {
                return Ok(None);
            }
            let mut edit = TreeEdit::new(&store, Some(root))?;
            for (path, old, new) in changes {
                edit.replace(&path, old, Some(new))?;
            }
            let (path, bytes) = record(&paths);
            let blob = objects.add(objs::Kind::Blob, bytes)?;
            if edit.insert(&path, blob)? == Insertion::Conflict {
                return Err(Error::Taken { path });
            }
            let tree = edit.finish(objects)?;
            self.repository().record_replaced(&[tip])?;
            changed.replace(paths);
            objects.add(objs::Kind::Commit, commit::encode(tree, &[], committer, at, "scrub")).map(Some)
        })?;
        Ok(changed.into_inner())
    }
}

/// The paths below [`RECORDS`] in a ledger's tree.
pub(super) fn records(store: &ObjectStore, root: ObjectId) -> Result<BTreeSet<String>, Error> {
    Ok(store.files_below(root, RECORDS)?.into_iter().map(|(path, _)| path).collect())
}

impl Repository {
    /// The paths of uncommitted files in a rescue that `clean` would change.
    pub(crate) fn affected_files(&self, rescue: &Rescue, clean: &Clean<'_>) -> Result<Vec<String>, Error> {
        let store = self.objects();
        let mut affected = Vec::new();
        for file in self.rescued(rescue)? {
            for id in file.uncommitted() {
                if clean(&store.blob(&id)?).is_some() {
                    affected.push(file.path.clone());
                    break;
                }
            }
        }
        Ok(affected)
    }

    /// Replaces the files of a rescue that `clean` changes. Durable when it returns.
    pub(crate) fn rewrite_rescue(
        &self,
        rescue: &Rescue,
        clean: &Clean<'_>,
        message: &str,
        committer: &Identity,
    ) -> Result<(), Error> {
        self.record_replaced(&[rescue.commit])?;
        let store = self.objects();
        let mut objects = NewObjects::new(self.hash());
        let (mut work, mut index) = (Vec::new(), Vec::new());
        for file in self.rescued(rescue)? {
            let uncommitted = file.uncommitted();
            for (content, records) in [(&file.work, &mut work), (&file.index, &mut index)] {
                let Some(content) = content.as_ref().filter(|content| uncommitted.contains(&content.id)) else {
                    continue;
                };
                if let Some(bytes) = clean(&store.blob(&content.id)?) {
                    let id = objects.add(objs::Kind::Blob, bytes)?;
                    records.extend([format!("{} {id}\t", content.mode).as_bytes(), &file.raw, b"\0"].concat());
                }
            }
        }
        let quarantine = Quarantine::new(self)?;
        let staged = store.tree_of(&rescue.index)?;
        let work = self.tree_with(&quarantine, rescue.tree, work)?;
        let index = self.tree_with(&quarantine, staged, index)?;
        quarantine.take_trees(work, Some(rescue.tree), &mut objects)?;
        quarantine.take_trees(index, Some(staged), &mut objects)?;
        let base = rescue.head.as_slice();
        let about = format!("index of: {}", commit::subject(message));
        let index = objects.add(objs::Kind::Commit, commit::encode(index, base, committer, rescue.at, &about))?;
        let parents = [base, &[index]].concat();
        let commit = commit::encode(work, &parents, committer, rescue.at, message);
        let commit = objects.add(objs::Kind::Commit, commit)?;
        let kept = self.packs().add(&objects)?;
        let reference = format!("{FOLDER}{}", rescue.id);
        let moved = self.ledger().move_ref(&reference, Some(rescue.commit), commit)?;
        drop(kept);
        match moved {
            true => Ok(()),
            false => Err(Error::damaged(self.git_dir(), format!("{reference} moved meanwhile"))),
        }
    }

    /// The remotes whose local copy of the ledger lacks a scrub record of our ledger. With `remove`, deletes these
    /// copies; the next fetch gets the remote's current state.
    pub(crate) fn stale_copies(&self, remove: bool) -> Result<Vec<String>, Error> {
        const COPIES: &str = "refs/squad/remotes/";
        const STATE: &str = "/squad/state";
        let (references, store) = (self.references(), self.objects());
        let Some(tip) = references.read(REFERENCE)? else { return Ok(Vec::new()) };
        let own = match store.tree_of(&tip).and_then(|root| records(&store, root)) {
            Err(Error::Object { .. }) => BTreeSet::new(),
            own => own?,
        };
        let mut stale = Vec::new();
        // If a remote accepts only branches, git keeps its own copy of the ledger branch.
        let branches = references.list("refs/remotes/")?.into_iter().filter(|name| name.ends_with(STATE));
        for reference in references.list(COPIES)?.into_iter().chain(branches) {
            let Some(id) = references.read(&reference)? else { continue };
            match store.tree_of(&id).and_then(|root| records(&store, root)) {
                Ok(theirs) if own.is_subset(&theirs) => continue,
                // An unreadable copy is useless, and the next fetch replaces it.
                Ok(_) | Err(Error::Object { .. }) => {}
                Err(error) => return Err(error),
            }
            if remove {
                self.record_replaced(&[id])?;
                references.announce(&[(reference.clone(), None)]);
                self.call(&["update-ref", "-d", &reference, &id.to_string()]).succeed()?;
            }
            let own = reference.strip_prefix(COPIES).and_then(|rest| rest.split('/').next());
            let name = own.or(reference.strip_prefix("refs/remotes/").and_then(|rest| rest.strip_suffix(STATE)));
            stale.push(name.unwrap_or(&reference).to_owned());
        }
        stale.sort();
        stale.dedup();
        Ok(stale)
    }

    /// Records commits that are about to become unreferenced, so that [`Self::prune_replaced`] finds their objects.
    pub(super) fn record_replaced(&self, commits: &[ObjectId]) -> Result<(), Error> {
        let path = self.replaced_file();
        let known = fs::read_to_string(&path).unwrap_or_default();
        let lines = commits.iter().map(|commit| format!("{commit}\n"));
        let lines: String = lines.filter(|line| !known.contains(line.as_str())).collect();
        let folder = path.parent().unwrap_or(&path);
        let written = fs::create_dir_all(folder).and_then(|()| {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(lines.as_bytes())?;
            file.sync_all()
        });
        written.map_err(Error::io("write", &path))
    }

    /// The recorded commits.
    pub(super) fn replaced_commits(&self) -> Result<Vec<ObjectId>, Error> {
        let recorded = match fs::read_to_string(self.replaced_file()) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => String::new(),
            answer => answer.map_err(Error::io("read", self.replaced_file()))?,
        };
        Ok(recorded.lines().filter_map(|id| parse_id(id.as_bytes(), self.hash())).collect())
    }

    fn replaced_file(&self) -> PathBuf {
        self.own_folder().join("scrubbed")
    }

    /// Deletes the objects that only rewritten history references. Returns how many were deleted, and the ids of those
    /// that could not be.
    ///
    /// git packs everything referenced and unpacks the rest; of those, we delete the objects of the recorded commits
    /// one by one.
    pub(crate) fn prune_replaced(&self) -> Result<(usize, Vec<String>), Error> {
        let recorded = match fs::read_to_string(self.replaced_file()) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok((0, Vec::new())),
            answer => answer.map_err(Error::io("read", self.replaced_file()))?,
        };
        // Keeps squad writers from building on objects we delete.
        let lock = self.ledger().lock()?;
        // A running fold may contain the old objects, so end it first.
        self.end_fold(&lock)?;
        let recorded: BTreeSet<&str> =
            recorded.lines().filter(|id| parse_id(id.as_bytes(), self.hash()).is_some()).into_set();
        let there = self.present(&recorded)?;
        let mut removed = 0;
        let mut left = Vec::new();
        if !there.is_empty() {
            // Nearly exact: git may list some objects that are still referenced.
            let walk = ["rev-list", "--objects", "--no-object-names", "--missing=allow-any"];
            let walk = self.call(&walk).arguments(&there).arguments(&["--not"]).arguments(&EVERYTHING);
            let candidates = walk.timeout(TIMEOUT).succeed()?.text();
            let candidates: Vec<&str> = candidates.lines().collect();
            self.call(&["repack", "-A", "-d", "-q"]).timeout(TIMEOUT).succeed()?;
            self.rewrite_commit_graph()?;
            // Objects are listed before those they reference. Delete in reverse, so that after an interruption the rest
            // can still be found.
            for id in candidates.iter().rev() {
                let (folder, name) = id.split_at_checked(2).unwrap_or((id, ""));
                let path = self.objects_directory().join(folder).join(name);
                match fs::remove_file(&path) {
                    Ok(()) => removed += 1,
                    Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                    Err(cause) => return Err(Error::io("remove", &path)(cause)),
                }
            }
            left = self.remaining(candidates)?;
        }
        // Objects that are still referenced may become unreferenced later.
        if left.is_empty() && self.present(&recorded)?.is_empty() {
            fs::remove_file(self.replaced_file()).map_err(Error::io("remove", self.replaced_file()))?;
        }
        Ok((removed, left))
    }

    /// Drops unreferenced commits from git's commit-graph, if there is one: `git fsck` reports listed commits that are
    /// missing. The next `git gc` would do the same.
    fn rewrite_commit_graph(&self) -> Result<(), Error> {
        let folder = self.objects_directory().join("info");
        let is_there = ["commit-graph", "commit-graphs"].iter().any(|name| folder.join(name).exists());
        let call = || self.call(&["commit-graph", "write", "--reachable"]).timeout(TIMEOUT);
        if is_there { call().succeed().map(drop) } else { Ok(()) }
    }

    /// Unreferenced objects that still exist: in packs with a `.keep` file, or in another repository's objects.
    fn remaining(&self, ids: Vec<&str>) -> Result<Vec<String>, Error> {
        let directory = self.objects_directory();
        let packs = fs::read_dir(directory.join("pack")).into_iter().flatten().flatten();
        let is_kept = |name: &str| name.ends_with(".keep") || name.ends_with(".promisor");
        let mut kept = packs.map(|pack| pack.file_name()).filter(|name| is_kept(&name.to_string_lossy()));
        if kept.next().is_none() && !directory.join("info/alternates").exists() {
            return Ok(Vec::new());
        }
        let there = self.present(&ids.into_iter().collect())?;
        let walk = self.call(&["rev-list", "--objects", "--no-object-names", "--missing=allow-any"]);
        let referenced = walk.arguments(&EVERYTHING).timeout(TIMEOUT).succeed()?.text();
        let referenced: HashSet<&str> = referenced.lines().collect();
        Ok(there.into_iter().filter(|id| !referenced.contains(id.as_str())).collect())
    }

    fn present(&self, ids: &BTreeSet<&str>) -> Result<Vec<String>, Error> {
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        if input.is_empty() {
            return Ok(Vec::new());
        }
        // A partial clone would fetch missing objects.
        let call = self.call(&["cat-file", "--batch-check=%(objectname)"]).variable("GIT_NO_LAZY_FETCH", "1");
        let answer = call.input(input).timeout(TIMEOUT).succeed()?.text();
        Ok(answer.lines().filter(|line| !line.ends_with(" missing")).map(str::to_owned).collect())
    }
}
