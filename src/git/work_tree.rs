//! Snapshots of the work tree, stored as commits that are never checked out. The diff of two snapshots shows what was
//! changed in between.
//!
//! Only files that `git status` reports as changed are read. What git may convert is read by git itself, so that clean
//! filters, line ends and line counts are as in a commit. The resulting objects stay in a quarantine until they are
//! checked: content with a secret never reaches the object database.

mod files;
mod only_copies;
mod plain;
mod state;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::{self, File},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use gix::{
    ObjectId,
    objs::{self, WriteTo, bstr::BString, tree::EntryMode},
};
use jiff::Timestamp;
use tempfile::TempDir;

use super::{
    commit::{self, Identity},
    disk,
    error::Error,
    mode::{PROGRAM, make_executable, mode_of},
    object_store::ObjectStore,
    objects::{NewObjects, identify},
    pack::KeptPack,
    program::Call,
    quarantine::Quarantine,
    references::{Durability, Target, read_head, read_shared},
    repository::Repository,
    rescue::{BATCH, Index, LARGEST, path_of},
};
use crate::env::files::{Found, is_folder, open_below, read};
use crate::model::{Change, Content, IntoSet, SkippedFile};
use crate::program::git_dir_at;
pub(crate) use files::FileStep;
pub(super) use files::tree_entry;
pub(crate) use only_copies::RunOfSnapshots;
use plain::Conversions;
pub(crate) use state::RepositoryState;
use status::{Entry, Status};

/// One folder of refs for each run. They are local: squad never pushes them.
pub(super) const FOLDER: &str = "refs/squad/runs/";
/// The start of every snapshot's commit message.
const SUBJECT: &str = "work tree of run";

#[derive(Clone, Debug)]
pub(crate) struct WorkTreeSnapshot {
    commit: ObjectId,
    tree: ObjectId,
    left_out: BTreeMap<String, Omitted>,
    /// Read back from its commit, so that the omitted files are unknown.
    is_read_back: bool,
    /// `None`: unknown.
    state: Option<Arc<RepositoryState>>,
}

/// An omitted file: the reason, and a hash that still detects changes.
#[derive(Clone, Debug, PartialEq)]
struct Omitted {
    why: String,
    fingerprint: blake3::Hash,
}

/// What exists at a path of the work tree.
enum Candidate {
    Missing,
    /// A regular file.
    File(fs::Metadata, Vec<u8>),
    /// A link, with its target.
    Link(Vec<u8>),
    Folder,
    Omit(Omitted),
}

/// How the changed paths go into a snapshot.
#[derive(Default)]
struct Selection {
    /// Files that are stored as they are, and those that are gone.
    plain: BTreeMap<Vec<u8>, Option<(EntryMode, Vec<u8>)>>,
    /// Files and links that git converts, in copies.
    copies: Option<Copies>,
    /// Folders that git may take for repositories.
    folders: Vec<Vec<u8>>,
    left_out: BTreeMap<String, Omitted>,
}

impl WorkTreeSnapshot {
    #[cfg(test)]
    pub(crate) fn sample(number: u32) -> Self {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        let id = ObjectId::from(bytes);
        Self { commit: id, tree: id, left_out: BTreeMap::new(), is_read_back: false, state: None }
    }

    /// The repository's state when it was taken, if that is known.
    pub(crate) fn state(&self) -> Option<&Arc<RepositoryState>> {
        self.state.as_ref()
    }

    /// Adds the state to a snapshot that was read back.
    pub(crate) fn with_state(self, state: Option<RepositoryState>) -> Self {
        Self { state: state.map(Arc::new), ..self }
    }

    pub(crate) fn commit(&self) -> String {
        self.commit.to_string()
    }

    pub(crate) fn left_out(&self) -> Vec<SkippedFile> {
        skipped(&self.left_out)
    }

    /// Whether both have the same files.
    pub(crate) fn has_tree_of(&self, other: &Self) -> bool {
        self.tree == other.tree
    }

    pub(super) fn tree(&self) -> ObjectId {
        self.tree
    }
}

/// A snapshot that is not stored yet.
pub(super) struct Draft<'a> {
    head: Option<ObjectId>,
    /// The tree of the checked-out commit.
    pub(super) committed: Option<ObjectId>,
    pub(super) tree: ObjectId,
    /// New trees, and new contents that git would not convert.
    pub(super) objects: NewObjects,
    /// New contents that git has made.
    pub(super) added: Option<(Quarantine<'a>, Vec<ObjectId>)>,
    left_out: BTreeMap<String, Omitted>,
    state: Arc<RepositoryState>,
}

impl Draft<'_> {
    pub(super) fn left_out(&self) -> Vec<SkippedFile> {
        skipped(&self.left_out)
    }
}

fn skipped(left_out: &BTreeMap<String, Omitted>) -> Vec<SkippedFile> {
    left_out.iter().map(|(path, omitted)| SkippedFile { path: path.clone(), why: omitted.why.clone() }).collect()
}

impl Repository {
    /// Stores the work tree in `run`'s folder as number `number`; durable with the next append, and before
    /// whatever is written to the same file system from now on. Content unchanged since `previous` costs nothing.
    /// `objection` returns the reason to omit a content.
    pub(crate) fn take_snapshot(
        &self,
        (run, number): (&str, usize),
        previous: Option<&WorkTreeSnapshot>,
        objection: impl Fn(&[u8]) -> Option<String>,
        committer: &Identity,
        at: Timestamp,
    ) -> Result<WorkTreeSnapshot, Error> {
        let Draft { head, committed, tree, mut objects, added, left_out, state } =
            self.draft_snapshot(previous, &objection)?;
        let state = Some(state);
        if let Some(previous) = previous.filter(|previous| previous.tree == tree) {
            return Ok(WorkTreeSnapshot { left_out, is_read_back: false, state, ..previous.clone() });
        }
        let reference = format!("{FOLDER}{run}/{number}");
        if let Some(commit) = head.filter(|_| committed == Some(tree)) {
            self.ledger().move_ref_as(&reference, (None, commit), Durability::WithNext)?;
            return Ok(WorkTreeSnapshot { commit, tree, left_out, is_read_back: false, state });
        }
        let parent = previous.map(|previous| previous.commit).or(head);
        let packs = match added {
            Some((quarantine, blobs)) => self.pack_blobs(&quarantine, blobs, &mut objects)?,
            None => Vec::new(),
        };
        let message = format!("{SUBJECT} {run}\n");
        let encoded = commit::encode(tree, parent.as_slice(), committer, at, &message);
        let commit = objects.add(objs::Kind::Commit, encoded)?;
        let trees = self.packs().add(&objects)?;
        self.ledger().move_ref_as(&reference, (None, commit), Durability::WithNext)?;
        drop((packs, trees));
        Ok(WorkTreeSnapshot { commit, tree, left_out, is_read_back: false, state })
    }

    /// The work tree as it is now, without storing it.
    pub(super) fn draft_snapshot(
        &self,
        previous: Option<&WorkTreeSnapshot>,
        objection: &dyn Fn(&[u8]) -> Option<String>,
    ) -> Result<Draft<'_>, Error> {
        self.require_folder()?;
        let store = self.objects();
        let known = previous.and_then(WorkTreeSnapshot::state);
        let (mut status, state, checked_out) = RepositoryState::with_status(self, known.map(Arc::as_ref), || {
            let head = self.head()?.commit.map(|commit| self.parse_commit(&commit)).transpose()?;
            Ok((head, head.map(|head| store.tree_of(&head)).transpose()?))
        })?;
        let (head, committed) = checked_out;
        let state = known.filter(|known| ***known == state).cloned().unwrap_or_else(|| Arc::new(state));
        if let Some(root) = self.work_dir() {
            status.remove_behind_links(root);
            status.add_hidden(&state.hidden, root);
        }
        let Selection { plain, copies, folders, mut left_out } = self.select_paths(&status, &state, objection)?;
        let nested = status.nested.iter().map(|path| (path, self.head_within(path).unwrap_or_default()));
        // A submodule may not be checked out.
        let submodules = state.submodules.iter().filter_map(|path| Some((path, self.head_within(path)?)));
        for (path, head) in nested.chain(submodules) {
            let why = "it is a repository of its own".to_owned();
            let nested = Omitted { why, fingerprint: blake3::hash(head.as_bytes()) };
            left_out.insert(String::from_utf8_lossy(path).into_owned(), nested);
        }
        for path in state.submodules.iter() {
            if let Some(files) = self.files_of_submodule(path) {
                let why = "it is a submodule's folder, and not its repository".to_owned();
                let omitted = Omitted { why, fingerprint: blake3::hash(files.as_bytes()) };
                left_out.insert(String::from_utf8_lossy(path).into_owned(), omitted);
            }
        }
        let mut edits = std::mem::take(&mut status.staged);
        let mut objects = NewObjects::new(self.hash());
        let mut before = previous.map(|previous| store.finder(previous.tree));
        for (path, file) in plain {
            let Some((mode, bytes)) = file else {
                edits.insert(path, None);
                continue;
            };
            let id = identify(self.hash(), objs::Kind::Blob, &bytes)?;
            let known = match (&mut before, std::str::from_utf8(&path)) {
                (Some(before), Ok(path)) => before.find(path).unwrap_or_default(),
                _ => None,
            };
            if known.is_none_or(|(_, known)| known != id) {
                objects.add(objs::Kind::Blob, bytes)?;
            }
            edits.insert(path, Some((mode, id)));
        }
        let mut added = None;
        if copies.is_some() || !folders.is_empty() {
            let quarantine = Quarantine::new(self)?;
            let mut entries = add(self, &quarantine, (&status, &state.hidden), (copies.as_ref(), &folders))?;
            let (mut blobs, secrets) = check_blobs(&quarantine, objection)?;
            let wanted: BTreeSet<ObjectId> = entries.values().map(|(_, id)| *id).into_set();
            blobs.retain(|blob| wanted.contains(blob));
            added = Some((quarantine, blobs));
            for path in copies.into_iter().flat_map(|copies| copies.paths).chain(folders) {
                let entry = entries.remove(&path);
                match entry.and_then(|(_, id)| secrets.get(&id)) {
                    Some(omitted) => {
                        drop(left_out.insert(String::from_utf8_lossy(&path).into_owned(), omitted.clone()))
                    }
                    None => drop(edits.insert(path, entry)),
                }
            }
        }
        let tree = self.edited(&store, committed, &edits, &mut objects)?;
        Ok(Draft { head, committed, tree, objects, added, left_out, state })
    }

    /// What lies in the folder of a submodule that is not checked out: git looks at none of it.
    fn files_of_submodule(&self, path: &[u8]) -> Option<String> {
        let folder = self.work_dir()?.join(path_of(path)?);
        if git_dir_at(&folder).is_some() || !is_folder(&folder) {
            return None;
        }
        let mut found: Vec<String> = fs::read_dir(folder)
            .ok()?
            .flatten()
            .map(|entry| {
                format!("{:?} {:?}", entry.file_name(), entry.metadata().and_then(|facts| facts.modified()).ok())
            })
            .collect();
        found.sort();
        (!found.is_empty()).then(|| found.join("\n"))
    }

    /// Where the `HEAD` of a repository inside the work tree leads, as far as it can be read. `None`: there is none.
    fn head_within(&self, path: &[u8]) -> Option<String> {
        let git_dir = git_dir_at(&self.work_dir()?.join(path_of(path)?))?;
        Some(match read_head(&git_dir, self.hash()) {
            Ok(Target::Object(id)) => id.to_string(),
            Ok(Target::Symbolic(name)) => {
                let commit = read_shared(&git_dir, &name, self.hash()).ok().flatten();
                format!("{name} {}", commit.map(|commit| commit.to_string()).unwrap_or_default())
            }
            Err(_) => String::new(),
        })
    }

    /// Whether the work tree holds what the checked-out commit has not, ignored files excepted.
    pub(crate) fn has_changes(&self) -> Result<bool, Error> {
        let (status, ()) = Status::of(self, &[], || ())?;
        let (_, submodules) = Status::unlisted(self)?;
        let has_more = submodules.iter().any(|path| self.files_of_submodule(path).is_some());
        Ok(has_more || !status.staged.is_empty() || !status.changed.is_empty() || !status.nested.is_empty())
    }

    /// How many of these files differ from the checked-out commit, ignored ones excepted.
    pub(crate) fn count_uncommitted(&self, paths: &[String]) -> Result<usize, Error> {
        if paths.is_empty() {
            return Ok(0);
        }
        let (status, ()) = Status::of(self, paths, || ())?;
        Ok(status.staged.keys().chain(&status.changed).collect::<BTreeSet<_>>().len())
    }

    /// A snapshot taken by an earlier process.
    pub(crate) fn snapshot_at(&self, commit: &str) -> Result<WorkTreeSnapshot, Error> {
        let commit = ObjectId::from_hex(commit.as_bytes())
            .map_err(|error| Error::Damaged { path: self.common_dir().to_owned(), what: error.to_string() })?;
        let (tree, ..) = self.objects().commit(&commit)?;
        Ok(WorkTreeSnapshot { commit, tree, left_out: BTreeMap::new(), is_read_back: true, state: None })
    }

    /// The commit of a run's first snapshot, which its entries may lack: a killed run loses the last ones.
    pub(crate) fn first_snapshot(&self, run: &str) -> Result<Option<String>, Error> {
        Ok(self.references().read(&format!("{FOLDER}{run}/1"))?.map(|id| id.to_string()))
    }

    /// The number of a run's last snapshot; 0 if there is none.
    pub(crate) fn last_snapshot(&self, run: &str) -> Result<usize, Error> {
        let names = self.references().list(&format!("{FOLDER}{run}/"))?;
        Ok(names.iter().filter_map(|name| name.rsplit('/').next()?.parse().ok()).max().unwrap_or(0))
    }

    /// The diff of these files between two snapshots, as `git diff` shows it.
    pub(crate) fn diff_between(
        &self,
        from: &WorkTreeSnapshot,
        to: &WorkTreeSnapshot,
        paths: &[String],
    ) -> Result<String, Error> {
        if from.tree == to.tree || paths.is_empty() {
            return Ok(String::new());
        }
        let options = ["-p", "-r", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv"];
        let (from, to) = (from.tree.to_string(), to.tree.to_string());
        let call = self.call(&["--literal-pathspecs", "diff-tree"]).arguments(&options);
        let call = call.arguments(&["--ignore-submodules=all", &from, &to, "--"]).arguments(paths);
        Ok(String::from_utf8_lossy(&call.succeed()?.stdout).into_owned())
    }

    /// The files that differ between two snapshots, ordered by path.
    pub(crate) fn changed_between(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot) -> Result<Vec<Change>, Error> {
        let mut changes = BTreeMap::new();
        if from.tree != to.tree {
            let options = ["-r", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"];
            let (from, to) = (from.tree.to_string(), to.tree.to_string());
            let call = self.call(&["diff-tree"]).arguments(&options);
            let listed = call.arguments(&["--ignore-submodules=all", &from, &to]).succeed()?.stdout;
            for record in listed.split(|byte| *byte == 0) {
                let record = String::from_utf8_lossy(record);
                // For a binary file, the line counts are `-`.
                let mut fields = record.splitn(3, '\t');
                let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
                    continue;
                };
                let (added, removed) = (added.parse().ok(), removed.parse().ok());
                let change = Change { path: path.to_owned(), added, removed, ..Change::default() };
                changes.insert(path.to_owned(), change);
            }
        }
        for path in from.left_out.keys().chain(to.left_out.keys()) {
            // Any stored content of an omitted file is outdated.
            changes.remove(path);
            let fingerprint =
                |snapshot: &WorkTreeSnapshot| snapshot.left_out.get(path).map(|omitted| omitted.fingerprint);
            if !from.is_read_back && fingerprint(from) != fingerprint(to) {
                changes.insert(path.clone(), Change { path: path.clone(), ..Change::default() });
            }
        }
        Ok(changes.into_values().collect())
    }

    /// The blob ids of these files in a snapshot; `None`: it has no such file. Files that are left out of it are missing.
    pub(crate) fn contents_of(
        &self,
        snapshot: &WorkTreeSnapshot,
        paths: &[String],
    ) -> Result<BTreeMap<String, Content>, Error> {
        let store = self.objects();
        let mut finder = store.finder(snapshot.tree);
        let mut contents = BTreeMap::new();
        for path in paths.iter().filter(|path| !snapshot.left_out.contains_key(*path)) {
            let blob = finder.find(path)?.filter(|(mode, _)| !mode.is_tree());
            contents.insert(path.clone(), blob.map(|(_, id)| id.to_string()));
        }
        Ok(contents)
    }

    /// Those of these files that differed from the checked-out commit when a run's first snapshot was taken.
    pub(crate) fn uncommitted_in(
        &self,
        first: &WorkTreeSnapshot,
        paths: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, Error> {
        let store = self.objects();
        let (tree, parents, message) = store.commit(&first.commit)?;
        // The snapshot of a clean work tree is the commit itself.
        let base = if message.starts_with(SUBJECT) { parents.first().copied() } else { Some(first.commit) };
        let (mut then, mut base) =
            (store.finder(tree), base.map(|base| store.tree_of(&base)).transpose()?.map(|tree| store.finder(tree)));
        let mut uncommitted = BTreeSet::new();
        for path in paths {
            let committed = base.as_mut().map(|base| base.find(path)).transpose()?.flatten();
            if then.find(path)? != committed || first.left_out.contains_key(path) {
                uncommitted.insert(path.clone());
            }
        }
        Ok(uncommitted)
    }

    /// Deletes the snapshots of all runs that are not wanted, and returns their number. git gc, or pruning a scrub,
    /// removes the unreferenced objects.
    pub(crate) fn forget_snapshots(&self, is_wanted: impl Fn(&str) -> bool) -> Result<usize, Error> {
        let unwanted = self.snapshots_without(is_wanted)?;
        if !unwanted.is_empty() {
            self.record_replaced(&self.squad_commits(&unwanted)?)?;
            self.delete_references(&unwanted)?;
        }
        Ok(unwanted.len())
    }

    /// The refs of the snapshots of all runs that are not wanted.
    pub(crate) fn snapshots_without(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, Error> {
        let references = self.references().list(FOLDER)?;
        let run_of = |reference: &str| Some(reference.strip_prefix(FOLDER)?.split_once('/')?.0.to_owned());
        Ok(references.into_iter().filter(|name| run_of(name).is_some_and(|run| !is_wanted(&run))).collect())
    }

    /// The commits of these snapshots that squad made. A snapshot of a clean work tree is the user's own commit.
    fn squad_commits(&self, references: &[String]) -> Result<Vec<ObjectId>, Error> {
        let (store, mut commits) = (self.objects(), Vec::new());
        for reference in references {
            let Some(commit) = self.references().read(reference)? else { continue };
            if store.commit(&commit).is_ok_and(|(_, _, message)| message.starts_with(SUBJECT)) {
                commits.push(commit);
            }
        }
        Ok(commits)
    }

    fn select_paths(
        &self,
        status: &Status,
        state: &RepositoryState,
        objection: &dyn Fn(&[u8]) -> Option<String>,
    ) -> Result<Selection, Error> {
        let mut selection = Selection::default();
        let Some(root) = self.work_dir() else { return Ok(selection) };
        let (mut conversions, mut size) = (Conversions::new(root, state, status), 0);
        for path in &status.changed {
            let (bytes, metadata) = match inspect(root, path, objection) {
                Candidate::Omit(omitted) => {
                    selection.left_out.insert(String::from_utf8_lossy(path).into_owned(), omitted);
                    continue;
                }
                Candidate::Missing => {
                    selection.plain.insert(path.clone(), None);
                    continue;
                }
                Candidate::Folder => {
                    selection.folders.push(path.clone());
                    continue;
                }
                Candidate::Link(target) => (target, None),
                Candidate::File(metadata, bytes) => (bytes, Some(metadata)),
            };
            size += bytes.len();
            let tracked = status.tracked.get(path).copied().flatten().map(|(mode, _)| mode);
            let mode = metadata
                .as_ref()
                .and_then(|metadata| self.mode_of(metadata, tracked))
                .filter(|_| size <= BATCH && path_of(path).is_some_and(|path| !conversions.may_change(&path, &bytes)));
            match mode {
                Some(mode) => drop(selection.plain.insert(path.clone(), Some((mode, bytes)))),
                None => {
                    let copies = match &mut selection.copies {
                        Some(copies) => copies,
                        none => none.insert(Copies::new(root)?),
                    };
                    copies.add(path, &bytes, metadata.as_ref())?;
                }
            }
        }
        Ok(selection)
    }

    /// The mode that git gives a regular file. `None`: only git knows, as where links are stored as files.
    fn mode_of(&self, metadata: &fs::Metadata, tracked: Option<EntryMode>) -> Option<EntryMode> {
        match (tracked, self.tracks_modes()) {
            (Some(mode), _) if !mode.is_blob() => None,
            (Some(mode), false) => Some(mode),
            (None, false) => Some(objs::tree::EntryKind::Blob.into()),
            (_, true) => EntryMode::from_bytes(mode_of(metadata).as_bytes()),
        }
    }

    /// A tree with some entries changed. Adds new trees to `objects`.
    pub(super) fn edited(
        &self,
        store: &ObjectStore,
        root: Option<ObjectId>,
        edits: &BTreeMap<Vec<u8>, Entry>,
        objects: &mut NewObjects,
    ) -> Result<ObjectId, Error> {
        if let Some(root) = root.filter(|_| edits.is_empty()) {
            return Ok(root);
        }
        let failed = |cause: gix::error::Error| Error::damaged(self.git_dir(), cause.to_string());
        let tree = root.map_or(Ok(objs::Tree::empty()), |root| store.tree(&root))?;
        let mut editor = objs::tree::Editor::new(tree, store, self.hash());
        let parts = |path: &[u8]| path.split(|byte| *byte == b'/').map(BString::from).collect::<Vec<_>>();
        // Remove files first: a folder may have replaced one.
        for path in edits.iter().filter_map(|(path, entry)| entry.is_none().then_some(path)) {
            editor.remove_if_leaf(parts(path)).map_err(failed)?;
        }
        for (path, (mode, id)) in edits.iter().filter_map(|(path, entry)| Some((path, (*entry)?))) {
            editor.upsert(parts(path), mode.kind(), id).map_err(failed)?;
        }
        editor.write(|tree| {
            let mut bytes = Vec::new();
            tree.write_to(&mut bytes).map_err(|cause| Error::damaged(self.git_dir(), cause.to_string()))?;
            objects.add(objs::Kind::Tree, bytes)
        })
    }

    /// Adds the quarantined blobs to `objects`; full batches go into separate packs.
    fn pack_blobs(
        &self,
        quarantine: &Quarantine<'_>,
        blobs: Vec<ObjectId>,
        objects: &mut NewObjects,
    ) -> Result<Vec<KeptPack>, Error> {
        let (mut batch, mut packs, mut bytes) = (NewObjects::new(self.hash()), Vec::new(), 0);
        for blob in blobs {
            bytes += quarantine.take(blob, objs::Kind::Blob, &mut batch)?;
            if bytes >= BATCH {
                packs.push(self.packs().add(&std::mem::replace(&mut batch, NewObjects::new(self.hash())))?);
                bytes = 0;
            }
        }
        objects.extend(batch);
        Ok(packs)
    }
}

/// Checks the blobs git made, since they may differ from what we read: a secret was written since, or a filter added
/// one. Returns the blobs to keep, and the rejected ones.
fn check_blobs(
    quarantine: &Quarantine<'_>,
    objection: &dyn Fn(&[u8]) -> Option<String>,
) -> Result<(Vec<ObjectId>, HashMap<ObjectId, Omitted>), Error> {
    let (mut clean, mut secrets) = (Vec::new(), HashMap::new());
    for blob in quarantine.loose()? {
        let bytes = quarantine.blob(&blob)?;
        match objection(&bytes) {
            Some(why) => drop(secrets.insert(blob, Omitted { why, fingerprint: blake3::hash(&bytes) })),
            None => clean.push(blob),
        }
    }
    Ok((clean, secrets))
}

/// The entries `git add` makes of copies, and of folders. An index of only these files and of hidden attributes is
/// enough and stays cheap in a large repository: line end conversion depends only on the index entry of the same file.
fn add(
    repository: &Repository,
    quarantine: &Quarantine<'_>,
    (status, hidden): (&Status, &BTreeMap<Vec<u8>, Entry>),
    (copies, folders): (Option<&Copies>, &[Vec<u8>]),
) -> Result<BTreeMap<Vec<u8>, (EntryMode, ObjectId)>, Error> {
    let paths = copies.iter().flat_map(|copies| &copies.paths).chain(folders);
    let known = paths.filter_map(|path| {
        let (mode, id) = (*status.tracked.get(path)?)?;
        Some((path.as_slice(), mode, id))
    });
    // Where the work tree lacks them, git reads attributes from the index.
    let is_needed = |path: &[u8]| plain::are_attributes(path) && !status.tracked.contains_key(path);
    let attributes = hidden.iter().filter(|(path, _)| is_needed(path));
    let attributes = attributes.filter_map(|(path, entry)| entry.map(|(mode, id)| (path.as_slice(), mode, id)));
    let index = Index::of(repository, known.chain(attributes))?;
    // Whether line ends survive a round trip does not matter here.
    let options = ["-c", "core.safecrlf=false", "update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
    let call = |call: Call, paths: &[Vec<u8>]| {
        let input: Vec<u8> = paths.iter().flat_map(|path| [&path[..], b"\0"].concat()).collect();
        quarantine.call(call).input(input).succeed()
    };
    if let Some(copies) = copies {
        // A filter that is a file of the work tree is found nowhere else.
        let is_elsewhere = repository.is_clone() || repository.filters_in_tree().is_empty();
        let add = index.call(&options);
        let add = if is_elsewhere { add.in_work_tree(repository.git_dir(), copies.folder.path()) } else { add };
        call(add, &copies.paths)?;
    }
    if !folders.is_empty() {
        call(index.call(&options), folders)?;
    }
    let mut entries = index.entries()?;
    // What has become of a folder meanwhile is not looked at.
    entries.retain(|path, (mode, _)| mode.is_commit() || !folders.contains(path));
    Ok(entries)
}

/// Copies of files and links, with the attributes that hold for them: what git itself opens, an agent may have put a link
/// in the place of.
struct Copies {
    root: PathBuf,
    folder: TempDir,
    paths: Vec<Vec<u8>>,
    /// The folders whose attributes are there.
    known: BTreeSet<PathBuf>,
}

impl Copies {
    fn new(root: &Path) -> Result<Self, Error> {
        let folder = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        Ok(Self { root: root.to_owned(), folder, paths: Vec::new(), known: BTreeSet::new() })
    }

    /// `metadata`: a file's; `None`: it is a link.
    fn add(&mut self, path: &[u8], bytes: &[u8], metadata: Option<&fs::Metadata>) -> Result<(), Error> {
        let Some(inner) = path_of(path) else { return Ok(()) };
        let copy = self.folder.path().join(&inner);
        let made = copy.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| match metadata {
            None => disk::symlink(bytes, &copy),
            Some(metadata) => {
                fs::write(&copy, bytes)?;
                match mode_of(metadata) {
                    PROGRAM => make_executable(&File::open(&copy)?),
                    _ => Ok(()),
                }
            }
        });
        made.map_err(Error::io("write to", &copy))?;
        for folder in inner.ancestors().skip(1) {
            let file = folder.join(".gitattributes");
            if inner == file || !self.known.insert(folder.to_owned()) {
                continue;
            }
            if let Ok(Found::File(attributes)) = open_below(&self.root, &file)
                && let Ok(Ok(bytes)) = read(attributes, LARGEST)
            {
                let copy = self.folder.path().join(file);
                fs::write(&copy, bytes).map_err(Error::io("write to", &copy))?;
            }
        }
        self.paths.push(path.to_owned());
        Ok(())
    }
}

fn inspect(root: &Path, path: &[u8], objection: &dyn Fn(&[u8]) -> Option<String>) -> Candidate {
    let left_out =
        |why: String, fingerprint: &[u8]| Candidate::Omit(Omitted { why, fingerprint: blake3::hash(fingerprint) });
    let unreadable = |cause: std::io::Error| left_out(format!("it cannot be read: {cause}"), b"");
    let Some(inner) = path_of(path) else {
        return left_out("its name is not allowed in a work tree".to_owned(), b"");
    };
    let (file, metadata) = match open_below(root, &inner) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Candidate::Missing,
        Err(cause) => return unreadable(cause),
        Ok(Found::Folder) => return Candidate::Folder,
        Ok(Found::Other) => return left_out("it is not a file".to_owned(), b""),
        Ok(Found::Link(target)) => {
            return match objection(&target) {
                Some(why) => left_out(why, &target),
                None => Candidate::Link(target),
            };
        }
        Ok(Found::File(file)) => match file.metadata() {
            Ok(metadata) => (file, metadata),
            Err(cause) => return unreadable(cause),
        },
    };
    match read(file, LARGEST) {
        Err(cause) => unreadable(cause),
        Ok(Err(_)) => {
            let fingerprint = format!("{} {:?}", metadata.len(), metadata.modified().ok());
            left_out(format!("it is larger than {} MiB", LARGEST >> 20), fingerprint.as_bytes())
        }
        Ok(Ok(bytes)) => match objection(&bytes) {
            Some(why) => left_out(why, &bytes),
            None => Candidate::File(metadata, bytes),
        },
    }
}
