//! Taking changes out of the work tree again: a three-way merge of what stands now, with the state after the changes as
//! base and the state before as the other side. What others changed since stays.
//!
//! Nothing is written until the plan is carried out; the objects of a plan stay in a quarantine.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    commit,
    error::Error,
    intent::{Contents, Planned, RawPath, Version},
    mode::{LINK, PLAIN, PROGRAM, mode_of},
    objects::{NewObjects, identify},
    path::obstacle,
    quarantine::Quarantine,
    references::parse_id,
    repository::Repository,
    rescue::{Content, Index, bytes_of, path_of},
    rewrite,
    work_tree::{FileStep, WorkTreeSnapshot, tree_entry},
};
use crate::git::Identity;
use crate::model::{ChangeKind, IntoMap, IntoSet, SkippedFile, Sort};

/// What a work tree would become.
#[derive(Default)]
pub(crate) struct UndoPlan {
    files: Vec<Planned>,
    contents: Contents,
    /// Every changed file, with whether it is removed.
    pub(crate) changed: Vec<(String, bool)>,
    /// Changed files that no step names: somebody has moved a file since.
    pub(crate) followed: Vec<String>,
    /// Files of which the checked-out commit has the changes, too. They stay as they are.
    pub(crate) committed: Vec<CommittedFile>,
    /// Files that stay as they are, and why.
    pub(crate) left: Vec<SkippedFile>,
    /// New files beside those that stay.
    pub(crate) copies: Vec<String>,
}

/// A file of the checked-out commit, and what it would be without the changes.
pub(crate) struct CommittedFile {
    pub(crate) path: String,
    /// `None`: a merge cannot tell, or it is no ordinary file.
    pub(crate) versions: Option<CommittedVersions>,
}

/// The contents are as git has them; `None`: there is no file.
pub(crate) struct CommittedVersions {
    pub(crate) old: Option<Vec<u8>>,
    pub(crate) new: Option<Vec<u8>>,
    pub(crate) executable: bool,
}

/// What is merged.
pub(crate) struct UndoRequest<'a> {
    /// The snapshot after the last change.
    pub(crate) last: &'a WorkTreeSnapshot,
    /// From what is expected to what is wanted, in the order in which it is done; each file once a round.
    pub(crate) rounds: Vec<Vec<FileStep>>,
    /// What is added to the names of the two versions that are laid beside a file in conflict: of the expected one, and
    /// of the wanted one.
    pub(crate) endings: (&'static str, &'static str),
    pub(crate) rules: IgnoreRules,
    /// The commit that was checked out before the changes; `None`: there was none.
    pub(crate) head: Option<String>,
}

/// What the changes did to what git ignores: a file that seems new may have been there all along.
pub(crate) enum IgnoreRules {
    Same,
    /// Some `.gitignore` is among them.
    Changed,
    /// They were changed outside the work tree, and what they were is not known.
    Unknown,
}

/// What a merge of all rounds comes to.
struct Outcome<'a> {
    tree: ObjectId,
    /// The paths of each conflict, with the steps that belong to it.
    conflicts: Vec<(BTreeSet<Vec<u8>>, Vec<&'a FileStep>)>,
}

/// The answer of `git merge-tree`.
pub(super) struct Merged {
    pub(super) tree: ObjectId,
    /// Paths that belong to one conflict.
    pub(super) conflicts: Vec<BTreeSet<Vec<u8>>>,
}

/// A file's path, as it is in the work tree, and as it is to be.
pub(super) type FileChange = (Vec<u8>, Option<Version>, Option<Content>);

impl UndoPlan {
    /// The files with their contents.
    pub(super) fn into_parts(self) -> (Vec<Planned>, Contents) {
        (self.files, self.contents)
    }
}

impl FileStep {
    pub(crate) fn reversed(&self) -> Self {
        let Self { path, raw, old, new } = self.clone();
        Self { path, raw, old: new, new: old }
    }
}

impl Repository {
    /// Plans to take steps out of the work tree. Changes nothing.
    pub(crate) fn plan_undo(
        &self,
        request: &UndoRequest<'_>,
        objection: impl Fn(&[u8]) -> Option<String>,
        committer: &Identity,
        at: Timestamp,
    ) -> Result<UndoPlan, Error> {
        let Some(root) = self.work_dir() else { return Ok(UndoPlan::default()) };
        // Before the snapshot: a file that changes after it does not match, and stays.
        let steps = || request.rounds.iter().flatten();
        let existing = steps().map(|step| Ok((step.raw.clone(), self.version_on_disk(root, &step.raw)?)));
        let existing = existing.collect::<Result<BTreeMap<_, _>, Error>>()?;
        let draft = self.draft_snapshot(None, &objection)?;
        let (now, left_out) = (draft.tree, draft.left_out());
        let quarantine = match draft.added {
            Some((quarantine, _)) => quarantine,
            None => Quarantine::new(self)?,
        };
        quarantine.put(&draft.objects)?;
        let mut plan = UndoPlan::default();
        let mut stays: BTreeSet<Vec<u8>> = BTreeSet::new();
        for SkippedFile { path, why } in left_out {
            if steps().any(|step| step.path == path) {
                stays.insert(path.clone().into_bytes());
                plan.left.push(SkippedFile { path, why });
            }
        }
        let Outcome { tree: result, conflicts } =
            self.take_out_all(&quarantine, request, now, stays.clone(), (committer, at))?;
        let mut copies: Vec<(Vec<u8>, Content)> = Vec::new();
        for (paths, steps) in conflicts {
            let there = paths.iter().find(|raw| path_of(raw).is_some_and(|path| root.join(path).is_file()));
            for step in steps {
                let Some(beside) = there else {
                    plan.left.push(SkippedFile { path: step.path.clone(), why: GONE.to_owned() });
                    continue;
                };
                let path = String::from_utf8_lossy(beside).into_owned();
                let (expected, wanted) = request.endings;
                for (ending, content) in [(expected, &step.old), (wanted, &step.new)] {
                    let beside = [beside, ending.as_bytes()].concat();
                    let there = self.version_on_disk(root, &beside)?.map(|version| version.work);
                    // An earlier undo may have laid it there.
                    let content = content.clone().filter(|content| there != Some(content.id.to_string()));
                    copies.extend(content.map(|content| (beside, content)));
                }
                plan.left.push(SkippedFile { path, why: OVERLAP.to_owned() });
            }
            stays.extend(paths);
        }
        let mut committed = self.committed(&quarantine, request, draft.committed, (committer, at))?;
        let mut changes = self.tree_steps(&[now, result], Some(&quarantine))?.pop().unwrap_or_default();
        changes.retain(|change| !stays.contains(&change.raw));
        let additions = changes.iter().filter(|change| change.new.is_none());
        let maybe_older = match request.rules {
            IgnoreRules::Same => BTreeSet::new(),
            IgnoreRules::Changed => self.ignored_by(&quarantine, result, &additions.collect::<Vec<_>>())?,
            IgnoreRules::Unknown => additions.map(|change| change.raw.clone()).collect(),
        };
        let mut planned = Vec::new();
        for change in changes {
            if maybe_older.contains(&change.raw) {
                plan.left.push(SkippedFile { path: change.path, why: IGNORED.to_owned() });
                continue;
            }
            if let Some(file) = committed.remove(&change.raw) {
                plan.committed.push(file);
                continue;
            }
            // A file stays where this one's folder was: the next undo tries both again.
            let mut above = change.raw.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
            if change.new.is_some() && above.any(|end| stays.contains(&change.raw[..end])) {
                plan.left.push(SkippedFile { path: change.path, why: UNSEEN.to_owned() });
                continue;
            }
            let is_named = existing.contains_key(&change.raw);
            let old = match existing.get(&change.raw) {
                Some(version) => version.clone(),
                None => self.version_as_in(root, &change)?,
            };
            // Where git sees no file, one that it ignores may be.
            if old.is_some() != change.old.is_some() || path_of(&change.raw).is_none() {
                plan.left.push(SkippedFile { path: change.path, why: UNSEEN.to_owned() });
                continue;
            }
            plan.changed.push((change.path.clone(), change.new.is_none()));
            if !is_named {
                plan.followed.push(change.path.clone());
            }
            planned.push((change.raw, old, change.new));
        }
        for (raw, content) in copies {
            plan.copies.push(String::from_utf8_lossy(&raw).into_owned());
            planned.push((raw, None, Some(content)));
        }
        self.fill(&mut plan, &quarantine, planned)?;
        Ok(plan)
    }

    /// The files of which the checked-out commit has these changes, too.
    fn committed(
        &self,
        quarantine: &Quarantine<'_>,
        request: &UndoRequest<'_>,
        head: Option<ObjectId>,
        identity: (&Identity, Timestamp),
    ) -> Result<BTreeMap<Vec<u8>, CommittedFile>, Error> {
        let before = request.head.as_ref().map(|head| self.objects().tree_of(&self.parse_commit(head)?)).transpose()?;
        let Some(head) = head.filter(|head| before != Some(*head)) else { return Ok(BTreeMap::new()) };
        let Outcome { tree, conflicts } = self.take_out_all(quarantine, request, head, BTreeSet::new(), identity)?;
        let changes = self.tree_steps(&[head, tree], Some(quarantine))?.pop().unwrap_or_default();
        let mut committed = BTreeMap::new();
        for change in changes {
            let versions = self.committed_versions(quarantine, &change)?;
            committed.insert(change.raw, CommittedFile { path: change.path, versions });
        }
        for raw in conflicts.into_iter().flat_map(|(paths, _)| paths) {
            let path = String::from_utf8_lossy(&raw).into_owned();
            committed.insert(raw, CommittedFile { path, versions: None });
        }
        // Uncommitted edits of before the run may overlap with it.
        let before = before.unwrap_or_else(|| ObjectId::empty_tree(self.hash()));
        let since = self.tree_steps(&[before, head], Some(quarantine))?.pop().unwrap_or_default();
        let since: BTreeSet<Vec<u8>> = since.into_iter().map(|change| change.raw).into_set();
        committed.retain(|raw, _| since.contains(raw));
        Ok(committed)
    }

    fn committed_versions(
        &self,
        quarantine: &Quarantine<'_>,
        change: &FileStep,
    ) -> Result<Option<CommittedVersions>, Error> {
        let sides = || [&change.old, &change.new].into_iter().flatten();
        let is_plain = |content: &Content| content.mode == PLAIN || content.mode == PROGRAM;
        let executable = sides().any(|content| content.mode == PROGRAM);
        if !sides().all(is_plain) || executable && sides().any(|content| content.mode == PLAIN) {
            return Ok(None);
        }
        let bytes =
            |content: &Option<Content>| content.as_ref().map(|content| quarantine.blob(&content.id)).transpose();
        Ok(Some(CommittedVersions { old: bytes(&change.old)?, new: bytes(&change.new)?, executable }))
    }

    /// Merges all rounds into a tree, without the files of `stays`.
    fn take_out_all<'s>(
        &self,
        quarantine: &Quarantine<'_>,
        request: &'s UndoRequest<'_>,
        mut tree: ObjectId,
        mut stays: BTreeSet<Vec<u8>>,
        identity: (&Identity, Timestamp),
    ) -> Result<Outcome<'s>, Error> {
        let mut conflicts = Vec::new();
        for round in &request.rounds {
            let round: Vec<&FileStep> = round.iter().filter(|step| !stays.contains(&step.raw)).collect();
            let merged = self.take_out(quarantine, request.last, &round, tree, identity)?;
            tree = merged.tree;
            for paths in merged.conflicts {
                let steps = round.iter().filter(|step| paths.contains(&step.raw)).copied().collect();
                stays.extend(paths.iter().cloned());
                conflicts.push((paths, steps));
            }
        }
        Ok(Outcome { tree, conflicts })
    }

    /// Merges a round into `ours`.
    fn take_out(
        &self,
        quarantine: &Quarantine<'_>,
        last: &WorkTreeSnapshot,
        round: &[&FileStep],
        ours: ObjectId,
        (committer, at): (&Identity, Timestamp),
    ) -> Result<Merged, Error> {
        let mut objects = NewObjects::new(self.hash());
        let mut side = |content: fn(&FileStep) -> Option<&Content>| {
            let edits = round.iter().map(|step| (step.raw.clone(), tree_entry(content(step))));
            self.edited(&self.objects(), Some(last.tree()), &edits.into_map(), &mut objects)
        };
        let (expected, wanted) = (side(|step| step.old.as_ref())?, side(|step| step.new.as_ref())?);
        // Older versions of git find the base themselves.
        let mut commit = |tree: ObjectId, base: &[ObjectId]| {
            objects.add(objs::Kind::Commit, commit::encode(tree, base, committer, at, "undo"))
        };
        let base = commit(expected, &[])?;
        let (ours, theirs) = (commit(ours, &[base])?, commit(wanted, &[base])?);
        quarantine.put(&objects)?;
        self.merge_commits(quarantine, ours, theirs)
    }

    /// Merges two commits. New objects stay in the quarantine.
    pub(super) fn merge_commits(
        &self,
        quarantine: &Quarantine<'_>,
        ours: ObjectId,
        theirs: ObjectId,
    ) -> Result<Merged, Error> {
        // A folder that somebody renamed says nothing of new files in it.
        let call = self.call(&["-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", "-z", "--messages"]);
        let answer = quarantine.call(call.arguments(&[ours.to_string(), theirs.to_string()])).run()?;
        let merged = self.parse_merge(&answer.stdout);
        merged.ok_or_else(|| Error::damaged(self.git_dir(), format!("`git merge-tree`: {}", answer.error_line())))
    }

    /// The tree, NUL; then `mode id stage`, TAB, path, NUL for each side of a conflict; then NUL and messages: the number
    /// of paths, the paths, a kind and a text.
    fn parse_merge(&self, answer: &[u8]) -> Option<Merged> {
        let mut parts = answer.split(|byte| *byte == 0);
        let tree = parse_id(parts.next()?, self.hash())?;
        let mut conflicts = Vec::new();
        for part in parts.by_ref().take_while(|part| !part.is_empty()) {
            let path = part.splitn(2, |byte| *byte == b'\t').nth(1)?;
            conflicts.push(BTreeSet::from([path.to_owned()]));
        }
        while let Some(count) = parts.next().filter(|count| !count.is_empty()) {
            let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
            let paths: BTreeSet<Vec<u8>> = parts.by_ref().take(count).map(<[u8]>::to_owned).into_set();
            let kind = parts.next()?;
            parts.next()?;
            if kind.starts_with(b"CONFLICT") {
                conflicts.push(paths);
            }
        }
        Some(Merged { tree, conflicts: joined(conflicts) })
    }

    /// Adds the files with their contents as git would check them out.
    pub(super) fn fill(
        &self,
        plan: &mut UndoPlan,
        quarantine: &Quarantine<'_>,
        planned: Vec<FileChange>,
    ) -> Result<(), Error> {
        let folder = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        let wanted = planned.iter().filter_map(|(raw, _, new)| Some((raw, new.as_ref()?)));
        let records: Vec<u8> = wanted.flat_map(|(raw, new)| index_record(raw, new)).collect();
        if !records.is_empty() {
            let index = Index::empty(self)?;
            index.call(&["update-index", "-z", "--add", "--index-info"]).input(records).succeed()?;
            let prefix = format!("--prefix={}/", folder.path().display());
            quarantine.call(index.call(&["checkout-index", "--quiet", "--all", &prefix])).succeed()?;
        }
        for (raw, old, new) in planned {
            let Some(path) = path_of(&raw) else { continue };
            let new = match new {
                Some(Content { mode, id }) => {
                    let bytes = bytes_of(&folder.path().join(&path))?;
                    let keeps_ends = old.is_some() && mode != LINK;
                    let bytes = if keeps_ends { self.with_line_ends_of(&path, bytes)? } else { bytes };
                    let work = identify(self.hash(), objs::Kind::Blob, &bytes)?.to_string();
                    plan.contents.insert(work.clone(), bytes);
                    Some(Version { mode, blob: id.to_string(), work })
                }
                None => None,
            };
            plan.files.push(Planned { path: RawPath::new(&path), old, new });
        }
        // A folder may take the place of a file, and the reverse.
        plan.files.stable_sort_by_key(|file| file.new.is_some());
        Ok(())
    }

    /// The bytes of a file as git would check it out, with the line ends that it has now where git stores others.
    fn with_line_ends_of(&self, path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let (Some(root), Some(name)) = (self.work_dir(), path.to_str()) else { return Ok(bytes) };
        let ends = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
        let full_ends = |bytes: &[u8]| bytes.windows(2).filter(|pair| pair == b"\r\n").count();
        if ends(&bytes) == 0 || full_ends(&bytes) > 0 || root.join(path).is_symlink() {
            return Ok(bytes);
        }
        let now = bytes_of(&root.join(path))?;
        if ends(&now) == 0 || full_ends(&now) != ends(&now) {
            return Ok(bytes);
        }
        let as_it_is = identify(self.hash(), objs::Kind::Blob, &now)?.to_string();
        Ok(match self.id_in_work_tree(name)? == Some(as_it_is) {
            true => bytes,
            false => bytes.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]),
        })
    }

    /// The paths that the rules of a tree would have git ignore.
    fn ignored_by(
        &self,
        quarantine: &Quarantine<'_>,
        tree: ObjectId,
        files: &[&FileStep],
    ) -> Result<BTreeSet<Vec<u8>>, Error> {
        let folder = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        let index = Index::empty(self)?;
        quarantine.call(index.call(&["read-tree", &tree.to_string()])).succeed()?;
        let listed = index.call(&["ls-files", "-z"]).succeed()?.stdout;
        let is_rule = |path: &&[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(b".gitignore");
        let rules: Vec<u8> =
            listed.split(|byte| *byte == 0).filter(is_rule).flat_map(|path| [path, b"\0"].concat()).collect();
        let prefix = format!("--prefix={}/", folder.path().display());
        let call = index.call(&["checkout-index", "--quiet", "-z", "--stdin", &prefix]).input(rules);
        quarantine.call(call).succeed()?;
        // `git check-ignore` takes no literal paths, so files of these names are there to be listed.
        for path in files.iter().filter_map(|file| path_of(&file.raw)) {
            let place = folder.path().join(path);
            let made = place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::File::create_new(&place));
            made.map_err(Error::io("write", &place))?;
        }
        let call = Index::empty(self)?.call(&["ls-files", "-z", "--others", "--ignored", "--exclude-standard"]);
        let call = call.variable("GIT_DIR", &self.git_dir().to_string_lossy());
        let answer = call.variable("GIT_WORK_TREE", &folder.path().to_string_lossy()).succeed()?;
        let paths = answer.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(<[u8]>::to_owned).collect())
    }

    /// A file as it is, and as a step leaves it.
    pub(super) fn planned_step(&self, step: &FileStep) -> Result<FileChange, Error> {
        let root = self.work_dir().unwrap_or(self.git_dir());
        // A file that is not as it was before the step stays out: it is found when the file is switched.
        let version = if step.old.is_some() { self.version_as_in(root, step)? } else { None };
        let blob = step.old.as_ref().map(|old| old.id.to_string()).unwrap_or_default();
        let old = version.map(|version| Version { blob, ..version });
        Ok((step.raw.clone(), old, step.new.clone()))
    }

    /// The file at a path; `None`: there is no file.
    fn version_on_disk(&self, root: &Path, raw: &[u8]) -> Result<Option<Version>, Error> {
        let Some(path) = path_of(raw) else { return Ok(None) };
        let file = root.join(&path);
        let metadata = match fs::symlink_metadata(&file) {
            Ok(metadata) if metadata.is_file() || metadata.is_symlink() => metadata,
            _ => return Ok(None),
        };
        if obstacle(root, &path)?.is_some() {
            return Ok(None);
        }
        let mode = if metadata.is_symlink() { LINK } else { mode_of(&metadata) };
        let id = identify(self.hash(), objs::Kind::Blob, &bytes_of(&file)?)?;
        Ok(Some(Version { mode: mode.to_owned(), ..Version::new(false, id, id) }))
    }

    /// The file at a path, if it still has the content that it has in a snapshot.
    fn version_as_in(&self, root: &Path, change: &FileStep) -> Result<Option<Version>, Error> {
        let version = self.version_on_disk(root, &change.raw)?;
        let id = self.id_in_work_tree(&change.path)?;
        Ok(version.filter(|_| id == change.old.as_ref().map(|old| old.id.to_string())))
    }

    /// Carries a plan out. `record` is done before it counts as done: after a kill, whoever finishes it has to do it,
    /// too. Returns the files that somebody has just changed, which were left alone.
    pub(crate) fn carry_out(
        &self,
        plan: UndoPlan,
        kind: &ChangeKind,
        record: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Vec<String>, Error> {
        let Some(root) = self.work_dir().map(PathBuf::from) else { return Ok(Vec::new()) };
        rewrite::write_files_and(self, kind, &root, plan.files, plan.contents, record)
    }
}

const OVERLAP: &str = "it was changed since where the run changed it";
const GONE: &str = "it was removed or moved since";
const IGNORED: &str = "the run changed what git ignores, so it may have been there before";
const UNSEEN: &str = "git ignores it now, or something else is in its place";

/// For `git update-index --index-info`.
fn index_record(raw: &[u8], content: &Content) -> Vec<u8> {
    [format!("{} {} 0\t", content.mode, content.id).as_bytes(), raw, b"\0"].concat()
}

/// Joins the sets that have a path in common.
fn joined(sets: Vec<BTreeSet<Vec<u8>>>) -> Vec<BTreeSet<Vec<u8>>> {
    let mut all: Vec<BTreeSet<Vec<u8>>> = Vec::new();
    for mut set in sets {
        let meets: Vec<_> = all.extract_if(.., |other| !other.is_disjoint(&set)).collect();
        set.extend(meets.into_iter().flatten());
        all.push(set);
    }
    all
}
