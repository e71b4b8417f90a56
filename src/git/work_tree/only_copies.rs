//! What the snapshots of old runs hold that is nowhere else: what an agent, or somebody since, has destroyed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs,
    time::Duration,
};

use gix::ObjectId;
use jiff::Timestamp;

use super::{FOLDER, SUBJECT};
use crate::git::{error::Error, references::parse_id, repository::Repository, rescue::path_of};
use crate::model::IntoSet;

/// Large repositories take long.
const TIMEOUT: Duration = Duration::from_secs(600);

/// What snapshots hold.
#[derive(Default)]
struct Held {
    /// Blobs with their paths.
    files: HashMap<ObjectId, Vec<u8>>,
    /// Not squad's own.
    commits: BTreeSet<String>,
}

/// The snapshots of a run.
pub(crate) struct RunOfSnapshots {
    pub(crate) run: String,
    /// When squad made the newest; `None`: each of them is a commit of the user's.
    pub(crate) at: Option<Timestamp>,
    references: Vec<(String, ObjectId)>,
}

impl Repository {
    /// The runs that have snapshots, ordered by name.
    pub(crate) fn runs_of_snapshots(&self) -> Result<Vec<RunOfSnapshots>, Error> {
        let (references, store) = (self.references(), self.objects());
        let mut runs: BTreeMap<String, RunOfSnapshots> = BTreeMap::new();
        for name in references.list(FOLDER)? {
            let run = name.strip_prefix(FOLDER).and_then(|rest| rest.split_once('/'));
            let (Some((run, _)), Some(commit)) = (run, references.read(&name)?) else { continue };
            let new = || RunOfSnapshots { run: run.to_owned(), at: None, references: Vec::new() };
            let of_run = runs.entry(run.to_owned()).or_insert_with(new);
            let is_ours = store.commit(&commit).is_ok_and(|(_, _, message)| message.starts_with(SUBJECT));
            if is_ours && let Ok(at) = Timestamp::from_second(store.time_of(&commit)?) {
                of_run.at = of_run.at.max(Some(at));
            }
            of_run.references.push((name, commit));
        }
        Ok(runs.into_values().collect())
    }

    /// The files and the user's commits that only these snapshots hold, as `REF:PATH` and `commit ID`, for each run. What
    /// several hold counts for the last. What a branch, a stash, a rescue, the index, the work tree or a snapshot of
    /// `kept` has is elsewhere.
    pub(crate) fn only_copies(
        &self,
        old: &[&RunOfSnapshots],
        kept: &[&RunOfSnapshots],
    ) -> Result<Vec<Vec<String>>, Error> {
        let mut held = old.iter().map(|run| self.held(run, kept)).collect::<Result<Vec<_>, _>>()?;
        if held.iter().any(|held| !held.files.is_empty()) {
            let elsewhere = self.reachable(kept)?;
            let mut known = HashSet::new();
            for held in held.iter_mut().rev() {
                held.files.retain(|id, _| !elsewhere.contains(id) && known.insert(*id));
            }
        }
        let named = |(run, held): (&&RunOfSnapshots, Held)| {
            let name = |(id, path): (&ObjectId, &Vec<u8>)| self.name_of(run, &String::from_utf8_lossy(path), id);
            let files: BTreeSet<String> = held.files.iter().map(name).into_set();
            files.into_iter().chain(held.commits).collect()
        };
        Ok(old.iter().zip(held).map(named).collect())
    }

    /// What a run's snapshots hold, without most of what is elsewhere.
    fn held(&self, run: &RunOfSnapshots, kept: &[&RunOfSnapshots]) -> Result<Held, Error> {
        let ours = run.references.iter().map(|(_, commit)| commit.to_string());
        let kept = kept.iter().flat_map(|run| &run.references).map(|(_, commit)| format!("^{commit}"));
        let others = ["--not", &format!("--exclude={FOLDER}*"), "--all", "--indexed-objects"];
        let listed = self.list_objects(ours.chain(kept), &others)?;
        let mut held = Held::default();
        if listed.is_empty() {
            return Ok(held);
        }
        // `type id path`
        let check = ["cat-file", "--batch-check=%(objecttype) %(objectname) %(rest)"];
        let kinds = self.call(&check).variable("GIT_NO_LAZY_FETCH", "1").input(listed).succeed()?.stdout;
        for line in kinds.split(|byte| *byte == b'\n') {
            let mut fields = line.splitn(3, |byte| *byte == b' ');
            let (Some(kind), Some(id)) = (fields.next(), fields.next()) else { continue };
            let Some(id) = parse_id(id, self.hash()) else { continue };
            match (kind, fields.next().filter(|path| !path.is_empty())) {
                (b"blob", Some(path)) => drop(held.files.insert(id, path.to_owned())),
                (b"commit", _) if !self.is_snapshot(&id)? => drop(held.commits.insert(format!("commit {id}"))),
                _ => {}
            }
        }
        held.files = self.not_in_work_tree(held.files)?;
        Ok(held)
    }

    /// The objects of all refs but the snapshots', of the index and of the kept snapshots. Takes as long as git's own gc
    /// takes to find them; what git excludes from a list it excludes only roughly.
    fn reachable(&self, kept: &[&RunOfSnapshots]) -> Result<HashSet<ObjectId>, Error> {
        let kept = kept.iter().flat_map(|run| &run.references).map(|(_, commit)| commit.to_string());
        let others = ["--no-object-names", &format!("--exclude={FOLDER}*"), "--all", "--indexed-objects"];
        let listed = self.list_objects(kept, &others)?;
        Ok(listed.split(|byte| *byte == b'\n').filter_map(|id| parse_id(id, self.hash())).collect())
    }

    /// `revisions` are not on the command line, which has a limit.
    fn list_objects(&self, revisions: impl Iterator<Item = String>, options: &[&str]) -> Result<Vec<u8>, Error> {
        let input: String = revisions.map(|revision| revision + "\n").collect();
        let list = self.call(&["rev-list", "--objects", "--stdin"]).arguments(options).input(input);
        Ok(list.timeout(TIMEOUT).succeed()?.stdout)
    }

    fn is_snapshot(&self, commit: &ObjectId) -> Result<bool, Error> {
        Ok(self.objects().commit(commit)?.2.starts_with(SUBJECT))
    }

    /// A file as git takes it on the command line: by the last of the run's refs that has it.
    fn name_of(&self, run: &RunOfSnapshots, path: &str, id: &ObjectId) -> String {
        let store = self.objects();
        let has = |commit: &ObjectId| {
            let found = store.tree_of(commit).and_then(|tree| store.find(tree, path));
            found.is_ok_and(|found| found.is_some_and(|(_, found)| found == *id))
        };
        match run.references.iter().rev().find(|(_, commit)| has(commit)) {
            Some((name, _)) => format!("{name}:{path}"),
            // Only a commit before a snapshot has it.
            None => format!("{id} {path}"),
        }
    }

    /// The blobs that the work tree does not have at their path.
    fn not_in_work_tree(&self, mut blobs: HashMap<ObjectId, Vec<u8>>) -> Result<HashMap<ObjectId, Vec<u8>>, Error> {
        let Some(root) = self.work_dir() else { return Ok(blobs) };
        let is_there = |path: &[u8]| {
            let file = path_of(path).map(|path| root.join(path));
            file.is_some_and(|file| fs::symlink_metadata(file).is_ok_and(|facts| facts.is_file()))
        };
        let there: Vec<Vec<u8>> = blobs.values().filter(|path| is_there(path)).cloned().collect();
        if there.is_empty() {
            return Ok(blobs);
        }
        let input: Vec<u8> = there.iter().flat_map(|path| [path, &b"\n"[..]].concat()).collect();
        // A file may go in between: then all count as gone, and the next `gc` looks again.
        let answer = self.call(&["hash-object", "--stdin-paths"]).input(input).run()?;
        for (id, path) in answer.text().lines().zip(there).filter(|_| answer.is_success()) {
            if let Some(id) = parse_id(id.as_bytes(), self.hash())
                && blobs.get(&id) == Some(&path)
            {
                blobs.remove(&id);
            }
        }
        Ok(blobs)
    }
}
