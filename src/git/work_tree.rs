//! The work tree as it is at one moment, kept as a commit that nobody checks out. What differs between two of them is
//! what somebody did meanwhile.
//!
//! Only what `git status` says differs from the index is read, by git itself, so that clean filters and line ends are
//! as they would be in a commit, and lines are counted as in one. What git makes of it lies in a quarantine until it
//! has been looked at: what holds a secret never reaches the object database.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    error::Error,
    objects::NewObjects,
    quarantine::Quarantine,
    repository::Repository,
    rescue::{BATCH, Index, LARGEST, MISSING, path_of},
};
use crate::model::{Change, LeftOut};

/// A folder for each run. Local: nothing that squad pushes has these names.
const FOLDER: &str = "refs/squad/runs/";
/// What the message of each begins with.
const SUBJECT: &str = "work tree of run";

#[derive(Clone, Debug)]
pub(crate) struct WorkTreeSnapshot {
    commit: ObjectId,
    tree: ObjectId,
    left_out: BTreeMap<String, Unkept>,
}

/// A file that is not kept: why, and a hash by which a change of it is noticed all the same.
#[derive(Clone, Debug, PartialEq)]
struct Unkept {
    why: String,
    looks: blake3::Hash,
}

/// What is at a path of the work tree.
enum Content {
    /// A file that git may take, or nothing.
    Kept,
    LeftOut(Unkept),
}

/// What `git status` says.
#[derive(Default)]
struct Status {
    /// Paths that differ from the index.
    changed: BTreeSet<Vec<u8>>,
    /// The index differs from the commit.
    is_staged: bool,
    has_conflicts: bool,
}

impl WorkTreeSnapshot {
    pub(crate) fn commit(&self) -> String {
        self.commit.to_string()
    }

    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        self.left_out.iter().map(|(path, unkept)| LeftOut { path: path.clone(), why: unkept.why.clone() }).collect()
    }
}

impl Repository {
    /// Keeps the work tree under `run`'s folder, as number `number`; durable when it returns. What is as it was in
    /// `previous` costs nothing. `objection` says why a content is not to be kept.
    pub(crate) fn take_snapshot(
        &self,
        (run, number): (&str, usize),
        previous: Option<&WorkTreeSnapshot>,
        objection: impl Fn(&[u8]) -> Option<String>,
        committer: &Identity,
        at: Timestamp,
    ) -> Result<WorkTreeSnapshot, Error> {
        let head = self.head()?.commit.map(|commit| self.parse_commit(&commit)).transpose()?;
        let committed = head.map(|head| self.objects().tree_of(&head)).transpose()?;
        let index = Index::copy_of(self)?;
        let status = Status::of(&index)?;
        if status.has_conflicts {
            index.settle_conflicts()?;
        }
        let quarantine = Quarantine::new(self)?;
        let (paths, mut left_out) = self.sort_out(&status.changed, &objection);
        let blobs = if paths.is_empty() { Vec::new() } else { add(&index, &quarantine, &paths)? };
        let blobs = self.without_secrets(&index, &quarantine, blobs, &mut left_out, &objection)?;
        let tree = match committed {
            Some(tree) if !status.is_staged && paths.is_empty() => tree,
            _ => index.write_tree(&quarantine, MISSING)?,
        };
        if let Some(previous) = previous.filter(|previous| previous.tree == tree) {
            return Ok(WorkTreeSnapshot { left_out, ..previous.clone() });
        }
        let reference = format!("{FOLDER}{run}/{number}");
        if let Some(commit) = head.filter(|_| committed == Some(tree)) {
            self.ledger().point(&reference, None, commit)?;
            return Ok(WorkTreeSnapshot { commit, tree, left_out });
        }
        let (parent, base) = match previous {
            Some(previous) => (Some(previous.commit), Some(previous.tree)),
            None => (head, committed),
        };
        let (mut objects, mut packs, mut bytes) = (NewObjects::new(self.hash()), Vec::new(), 0);
        for blob in blobs {
            bytes += quarantine.take(blob, objs::Kind::Blob, &mut objects)?;
            if bytes >= BATCH {
                packs.push(self.packs().add(&std::mem::replace(&mut objects, NewObjects::new(self.hash())))?);
                bytes = 0;
            }
        }
        quarantine.take_trees(tree, base, &mut objects)?;
        let message = format!("{SUBJECT} {run}\n");
        let encoded = commit::encode(tree, parent.as_slice(), committer, at, &message);
        let commit = objects.add(objs::Kind::Commit, encoded)?;
        packs.push(self.packs().add(&objects)?);
        self.ledger().point(&reference, None, commit)?;
        drop(packs);
        Ok(WorkTreeSnapshot { commit, tree, left_out })
    }

    /// The files that differ between two snapshots, in the order of their paths.
    pub(crate) fn changed_between(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot) -> Result<Vec<Change>, Error> {
        let mut changes = BTreeMap::new();
        if from.tree != to.tree {
            let options = ["-r", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"];
            let (from, to) = (from.tree.to_string(), to.tree.to_string());
            let call = self.call(&["diff-tree"]).arguments(&options);
            let listed = call.arguments(&["--ignore-submodules=all", &from, &to]).succeed()?.stdout;
            for record in listed.split(|byte| *byte == 0) {
                let record = String::from_utf8_lossy(record);
                // A binary file has no lines: `-`.
                let mut fields = record.splitn(3, '\t');
                let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
                    continue;
                };
                let (added, removed) = (added.parse().ok(), removed.parse().ok());
                changes.insert(path.to_owned(), Change { path: path.to_owned(), added, removed, by: Vec::new() });
            }
        }
        for path in from.left_out.keys().chain(to.left_out.keys()) {
            // What was kept of it, if anything, is not what it is.
            changes.remove(path);
            let looks = |snapshot: &WorkTreeSnapshot| snapshot.left_out.get(path).map(|unkept| unkept.looks);
            if looks(from) != looks(to) {
                let change = Change { path: path.clone(), added: None, removed: None, by: Vec::new() };
                changes.insert(path.clone(), change);
            }
        }
        Ok(changes.into_values().collect())
    }

    /// Forgets the snapshots of all runs but those that are named, and says how many there were. What nothing else
    /// holds goes when git tidies up, or when a scrub is pruned.
    pub(crate) fn forget_snapshots(&self, is_wanted: impl Fn(&str) -> bool) -> Result<usize, Error> {
        let references = self.references().list(FOLDER)?;
        let run_of = |reference: &str| Some(reference.strip_prefix(FOLDER)?.split_once('/')?.0.to_owned());
        let unwanted: Vec<String> =
            references.into_iter().filter(|name| run_of(name).is_some_and(|run| !is_wanted(&run))).collect();
        if !unwanted.is_empty() {
            self.remember_old(&self.own_commits(&unwanted)?)?;
            let input: String = unwanted.iter().map(|name| format!("delete {name}\0\0")).collect();
            self.call(&["update-ref", "-z", "--stdin"]).input(input).succeed()?;
        }
        Ok(unwanted.len())
    }

    /// The commits of these snapshots, but for those that were made by somebody else: of a clean work tree.
    fn own_commits(&self, references: &[String]) -> Result<Vec<ObjectId>, Error> {
        let (store, mut commits) = (self.objects(), Vec::new());
        for reference in references {
            let Some(commit) = self.references().read(reference)? else { continue };
            if store.commit(&commit).is_ok_and(|(_, _, message)| message.starts_with(SUBJECT)) {
                commits.push(commit);
            }
        }
        Ok(commits)
    }

    /// Tells the paths that git may take from those that are left out.
    fn sort_out(
        &self,
        changed: &BTreeSet<Vec<u8>>,
        objection: &impl Fn(&[u8]) -> Option<String>,
    ) -> (Vec<Vec<u8>>, BTreeMap<String, Unkept>) {
        let (mut paths, mut left_out) = (Vec::new(), BTreeMap::new());
        for path in changed {
            match self.work_dir().map_or(Content::Kept, |root| look(root, path, objection)) {
                Content::Kept => paths.push(path.clone()),
                Content::LeftOut(unkept) => {
                    left_out.insert(String::from_utf8_lossy(path).into_owned(), unkept);
                }
            }
        }
        (paths, left_out)
    }

    /// Looks at what git made of the files: somebody may have written a secret after we looked, or a filter put one in.
    /// Those entries are taken back to what the index had.
    fn without_secrets(
        &self,
        index: &Index<'_>,
        quarantine: &Quarantine<'_>,
        blobs: Vec<ObjectId>,
        left_out: &mut BTreeMap<String, Unkept>,
        objection: &impl Fn(&[u8]) -> Option<String>,
    ) -> Result<Vec<ObjectId>, Error> {
        let (mut clean, mut bad) = (Vec::new(), BTreeMap::new());
        for blob in blobs {
            let bytes = quarantine.blob(&blob)?;
            match objection(&bytes) {
                Some(why) => drop(bad.insert(blob.to_string(), Unkept { why, looks: blake3::hash(&bytes) })),
                None => clean.push(blob),
            }
        }
        if bad.is_empty() {
            return Ok(clean);
        }
        let before: BTreeMap<Vec<u8>, String> = Index::copy_of(self)?.entries()?.into_iter().collect();
        let mut records = Vec::new();
        for (path, facts) in index.entries()? {
            let Some(unkept) = facts.split(' ').nth(1).and_then(|id| bad.get(id)) else { continue };
            let null = format!("0 {} 0", self.hash().null());
            records.extend([before.get(&path).unwrap_or(&null).as_bytes(), b"\t", &path, b"\0"].concat());
            left_out.insert(String::from_utf8_lossy(&path).into_owned(), unkept.clone());
        }
        index.call(&["update-index", "-z", "--add", "--replace", "--index-info"]).input(records).succeed()?;
        Ok(clean)
    }
}

/// Takes files into the index as `git add` does, and returns the blobs that are new.
fn add(index: &Index<'_>, quarantine: &Quarantine<'_>, paths: &[Vec<u8>]) -> Result<Vec<ObjectId>, Error> {
    let input: Vec<u8> = paths.iter().flat_map(|path| [&path[..], b"\0"].concat()).collect();
    // Whether line ends survive a round trip is no matter here.
    let options = ["-c", "core.safecrlf=false", "update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
    quarantine.call(index.call(&options)).input(input).succeed()?;
    quarantine.loose()
}

fn look(root: &Path, path: &[u8], objection: &impl Fn(&[u8]) -> Option<String>) -> Content {
    let left_out = |why: String, looks: &[u8]| Content::LeftOut(Unkept { why, looks: blake3::hash(looks) });
    let Some(place) = path_of(path).map(|path| root.join(path)) else {
        return left_out("its name is none that a work tree may have".to_owned(), b"");
    };
    let Ok(metadata) = fs::symlink_metadata(&place) else { return Content::Kept };
    let bytes = if metadata.is_symlink() {
        fs::read_link(&place).map(|target| target.as_os_str().as_encoded_bytes().to_owned())
    } else if metadata.is_dir() {
        return Content::Kept;
    } else if !metadata.is_file() {
        return left_out("it is no file".to_owned(), b"");
    } else if metadata.len() > LARGEST {
        let looks = format!("{} {:?}", metadata.len(), metadata.modified().ok());
        return left_out(format!("it is larger than {} MiB", LARGEST >> 20), looks.as_bytes());
    } else {
        fs::read(&place)
    };
    match bytes {
        Err(cause) => left_out(format!("it cannot be read: {cause}"), b""),
        Ok(bytes) => objection(&bytes).map_or(Content::Kept, |why| left_out(why, &bytes)),
    }
}

impl Status {
    fn of(index: &Index<'_>) -> Result<Self, Error> {
        let options = ["--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames"];
        let listed = index.call(&["status"]).arguments(&options).succeed()?.stdout;
        let mut status = Self::default();
        for record in listed.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            // `1 XY sub mH mI mW hH hI path`, `u XY sub m1 m2 m3 mW h1 h2 h3 path`, `? path`
            let fields = match record[0] {
                b'1' => 8,
                b'u' => 10,
                b'?' => 1,
                _ => continue,
            };
            let Some(path) = record.splitn(fields + 1, |byte| *byte == b' ').last() else { continue };
            let state = |at: usize| record.get(at).copied().unwrap_or(b'.');
            status.has_conflicts |= record[0] == b'u';
            status.is_staged |= record[0] == b'u' || record[0] == b'1' && state(2) != b'.';
            let is_submodule = record[0] != b'?' && state(5) == b'S';
            // A repository inside this one is listed as a folder.
            if !is_submodule && !path.ends_with(b"/") && (record[0] != b'1' || state(3) != b'.') {
                status.changed.insert(path.to_owned());
            }
        }
        Ok(status)
    }
}
