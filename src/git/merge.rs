//! Merging work that was done in clones into the user's branch, in no work tree. A plan writes nothing; carrying it out
//! is finished or rolled back after a kill, as a landing is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    checkout::relative,
    clone::{ClonedWork, MergedTree, conflicting_files},
    commit::{self, Identity},
    error::Error,
    intent::{self, Contents, Intent, Planned},
    landing::{Landing, MergeCommit, land_merge},
    mode::{LINK, PROGRAM, is_executable},
    objects::NewObjects,
    path::obstacle,
    quarantine::Quarantine,
    repository::Repository,
    undo::UndoPlan,
    work_tree::{FileStep, tree_entry},
};
use crate::env::files::is_folder;
use crate::model::{ChangeKind, IntoSet};

/// Work to merge.
pub(crate) struct WorkToMerge<'a> {
    pub(crate) work: &'a ClonedWork,
    /// Of its commit.
    pub(crate) message: String,
}

/// What a merge would do.
pub(crate) struct MergePlan<'a> {
    quarantine: Quarantine<'a>,
    objects: NewObjects,
    onto: ObjectId,
    /// The last commit of the work, on top of `onto`.
    last: ObjectId,
    tree: ObjectId,
    steps: Vec<FileStep>,
    /// The works that are in it, by index.
    pub(crate) merged: Vec<usize>,
    /// The works that are not, with the files in conflict.
    pub(crate) conflicts: Vec<(usize, Vec<String>)>,
}

/// A file that a merge changes.
pub(crate) struct MergedFile {
    pub(crate) path: String,
    pub(crate) is_removed: bool,
    /// Where it leads, if it becomes a link.
    pub(crate) link: Option<String>,
}

/// A commit that names a run in its message.
#[derive(Debug)]
pub(crate) struct RunCommit {
    pub(crate) commit: String,
    /// When its change was made, in seconds since 1970. Picking or rebasing it keeps that.
    pub(crate) at: i64,
    pub(crate) message: String,
}

/// Where and as what a merge is committed.
pub(crate) struct MergeTarget<'a> {
    pub(crate) kind: &'a ChangeKind,
    /// `None`: none is checked out.
    pub(crate) branch: Option<&'a str>,
    /// The branch that is made where the work tree cannot follow.
    pub(crate) aside: &'a str,
    pub(crate) message: &'a str,
    /// One plain commit, without those of the works.
    pub(crate) squash: bool,
}

/// Where a merge has gone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct MergedTo {
    pub(crate) branch: String,
    pub(crate) commit: String,
    /// Why it is not on the checked-out branch.
    pub(crate) aside: Option<String>,
}

impl Repository {
    /// The work that a commit of merged work, or of work set aside, stands for, and the commit that it was made as.
    pub(crate) fn cloned_work(&self, commit: &str) -> Result<Option<(ClonedWork, RunCommit)>, Error> {
        let store = self.objects();
        let id = self.parse_commit(commit)?;
        let (_, parents, message) = store.commit(&id)?;
        let (id, parents, message) = match parents.get(1) {
            Some(theirs) => {
                let (_, parents, message) = store.commit(theirs)?;
                (*theirs, parents, message)
            }
            None => (id, parents, message),
        };
        let at = store.time_of(&id)?;
        let work = |base: &ObjectId| ClonedWork { base: base.to_string(), commit: id.to_string() };
        Ok(parents.first().map(|base| (work(base), RunCommit { commit: id.to_string(), at, message })))
    }

    /// What a work changed.
    pub(crate) fn steps_of_work(&self, work: &ClonedWork) -> Result<Vec<FileStep>, Error> {
        let tree = |commit: &str| self.objects().tree_of(&self.parse_commit(commit)?);
        let trees = [tree(&work.base)?, tree(&work.commit)?];
        Ok(self.tree_steps(&trees, None)?.pop().unwrap_or_default())
    }

    /// Merges those of the works with these indices into a commit, in order. Writes nothing.
    pub(crate) fn plan_merge(
        &self,
        onto: &str,
        (works, indices): (&[WorkToMerge<'_>], &[usize]),
        (committer, at): (&Identity, Timestamp),
    ) -> Result<MergePlan<'_>, Error> {
        let store = self.objects();
        let onto = self.parse_commit(onto)?;
        let before = store.tree_of(&onto)?;
        let quarantine = Quarantine::new(self)?;
        let mut objects = NewObjects::new(self.hash());
        let (mut last, mut tree) = (onto, before);
        let (mut merged, mut conflicts) = (Vec::new(), Vec::new());
        for index in indices.iter().copied() {
            let Some(WorkToMerge { work, message }) = works.get(index) else { continue };
            let side = |commit: &str| store.tree_of(&self.parse_commit(commit)?);
            let trees = (side(&work.base)?, tree, side(&work.commit)?);
            let MergedTree { tree: result, conflicts: paths } =
                self.merge_trees(&quarantine, trees, (committer, at))?;
            if !paths.is_empty() {
                conflicts.push((index, conflicting_files(&paths)));
                continue;
            }
            merged.push(index);
            if result != tree {
                objects.extend(self.merged_objects(&quarantine, result, tree)?);
                let encoded = commit::encode(result, &[last], committer, at, message);
                (last, tree) = (objects.add(objs::Kind::Commit, encoded)?, result);
            }
        }
        let steps = self.tree_steps(&[before, tree], Some(&quarantine))?.pop().unwrap_or_default();
        Ok(MergePlan { quarantine, objects, onto, last, tree, steps, merged, conflicts })
    }

    /// Commits a plan to the checked-out branch, if the work tree can follow, or else to a branch of its own.
    pub(crate) fn carry_out_merge(
        &self,
        mut plan: MergePlan<'_>,
        target: &MergeTarget<'_>,
        committer: &Identity,
        at: Timestamp,
    ) -> Result<Result<MergedTo, (String, String)>, Error> {
        let merge = MergeCommit {
            onto: plan.onto,
            merged: (!target.squash).then_some(plan.last),
            tree: plan.tree,
            message: target.message,
            committer,
            at,
        };
        let reason = match (self.obstacle_to_merge(&plan, target.branch)?, target.branch) {
            (Some(reason), _) => reason,
            (None, branch) => {
                let branch = branch.unwrap_or_default();
                let (files, contents) = self.merged_files(&plan)?;
                let intent = |commit: ObjectId| {
                    let commit = intent::Commit {
                        branch: branch.to_owned(),
                        base: Some(plan.onto.to_string()),
                        id: Some(commit.to_string()),
                        message: target.message.to_owned(),
                    };
                    Intent::new(target.kind, Some(commit), None, files)
                };
                match land_merge(self, branch, &merge, &mut plan.objects, intent, contents)? {
                    Landing::Landed { commit } => {
                        return Ok(Ok(MergedTo { branch: branch.to_owned(), commit, aside: None }));
                    }
                    Landing::NotLanded { reason, .. } => reason,
                }
            }
        };
        if let Some((why, hint)) = self.obstacle_to_branch(target.aside)? {
            return Ok(Err((format!("{reason}, and {why}"), hint)));
        }
        let commit = merge.write_unsigned(self, &mut plan.objects)?;
        self.keep_commit(&format!("refs/heads/{}", target.aside), commit, &plan.objects)?;
        let (branch, commit) = (target.aside.to_owned(), commit.to_string());
        Ok(Ok(MergedTo { branch, commit, aside: Some(reason) }))
    }

    /// Why a branch cannot be made, and a hint.
    pub(crate) fn obstacle_to_branch(&self, name: &str) -> Result<Option<(String, String)>, Error> {
        let is_there = |name: &str| Ok::<_, Error>(self.references().read(&format!("refs/heads/{name}"))?.is_some());
        for above in name.match_indices('/').map(|(end, _)| &name[..end]) {
            if is_there(above)? {
                let reason = format!("beside the branch {above} there can be no {name}");
                return Ok(Some((reason, format!("rename that branch: `git branch -m {above} NAME`"))));
            }
        }
        let is_there = is_there(name)?.then(|| {
            let hint = format!("merge or delete that branch: `git branch -D {name}`");
            (format!("the branch {name} is there already"), hint)
        });
        Ok(is_there)
    }

    /// Stores what a plan has made, as a ref of squad's own, without merging it. Returns its last commit
    /// and the tree of that.
    pub(crate) fn keep_plan(&self, plan: &MergePlan<'_>, reference: &str) -> Result<(String, String), Error> {
        self.keep_commit(reference, plan.last, &plan.objects)?;
        Ok((plan.last.to_string(), plan.tree.to_string()))
    }

    /// The commits of these tips that name a run in their message, the newest first, without what all of `since` come
    /// after.
    pub(crate) fn commits_of_runs(&self, since: &[&str], tips: &[&str]) -> Result<Vec<RunCommit>, Error> {
        let base = self.call(&["merge-base", "--octopus"]).arguments(since).run()?;
        let base = Some(base.text()).filter(|text| base.is_success() && !text.is_empty());
        let base = base.into_iter().flat_map(|base| ["--not".to_owned(), base]);
        let call = self.call(&["log", "-z", "--grep=Squad-Run: ", "--format=%H %at%n%B"]).arguments(tips);
        let found = call.arguments(&base.collect::<Vec<_>>()).run()?;
        let commit = |record: &[u8]| {
            let text = String::from_utf8_lossy(record);
            let (facts, message) = text.split_once('\n')?;
            let (commit, at) = facts.split_once(' ')?;
            Some(RunCommit { commit: commit.to_owned(), at: at.parse().ok()?, message: message.to_owned() })
        };
        Ok(if found.is_success() { found.records().filter_map(commit).collect() } else { Vec::new() })
    }

    /// Whether a commit has all that a work changed, so that merging it would change nothing.
    pub(crate) fn has_work(
        &self,
        commit: &str,
        work: &ClonedWork,
        (committer, at): (&Identity, Timestamp),
    ) -> Result<bool, Error> {
        let store = self.objects();
        let tree_of = |commit: &str| store.tree_of(&self.parse_commit(commit)?);
        let tree = tree_of(commit)?;
        let mut is_clear = true;
        for step in self.steps_of_work(work)? {
            let there = match std::str::from_utf8(&step.raw) {
                Ok(path) => store.find(tree, path)?,
                Err(_) => None,
            };
            match there {
                there if there == tree_entry(step.new.as_ref()) => {}
                // Nobody has touched it since.
                there if there == tree_entry(step.old.as_ref()) => return Ok(false),
                _ => is_clear = false,
            }
        }
        if is_clear {
            return Ok(true);
        }
        let trees = (tree_of(&work.base)?, tree, tree_of(&work.commit)?);
        let merged = self.merge_trees(&Quarantine::new(self)?, trees, (committer, at))?;
        Ok(merged.conflicts.is_empty() && merged.tree == tree)
    }

    /// Why a merge would not go to the checked-out branch. `branch`: `None` if HEAD is detached.
    pub(crate) fn obstacle_to_merge(
        &self,
        plan: &MergePlan<'_>,
        branch: Option<&str>,
    ) -> Result<Option<String>, Error> {
        if branch.is_none() {
            return Ok(Some("HEAD is detached".to_owned()));
        }
        if let Some(odd) = plan.steps.iter().find(|step| step.path.contains(char::REPLACEMENT_CHARACTER)) {
            return Ok(Some(format!("the name of {} is no UTF-8", odd.path)));
        }
        self.obstacle_in_work_tree(plan)
    }

    /// Why the commit of a merge cannot be signed, where the user has commits signed. Keeps nothing.
    pub(crate) fn obstacle_to_signature(
        &self,
        plan: &MergePlan<'_>,
        message: &str,
        (committer, at): (&Identity, Timestamp),
    ) -> Result<Option<String>, Error> {
        // Other objects than the user's are not needed for it.
        let tree = self.objects().tree_of(&plan.onto)?;
        MergeCommit { onto: plan.onto, merged: None, tree, message, committer, at }.obstacle_to_signature(self)
    }

    /// Why the work tree cannot follow.
    fn obstacle_in_work_tree(&self, plan: &MergePlan<'_>) -> Result<Option<String>, Error> {
        if let Some(operation) = self.operation() {
            return Ok(Some(format!("a {operation} is in progress")));
        }
        for step in &plan.steps {
            let modes = || [&step.old, &step.new].into_iter().flatten().map(|content| &*content.mode);
            if modes().any(|mode| mode != LINK && !mode.starts_with("100")) {
                return Ok(Some(format!("{} is a submodule", step.path)));
            }
            if modes().any(|mode| mode == LINK) && !self.has_links() {
                return Ok(Some(format!("{} is a link, and git makes none here", step.path)));
            }
        }
        let touched: BTreeSet<&str> = plan.steps.iter().map(|step| step.path.as_str()).into_set();
        let added: BTreeSet<&str> =
            plan.steps.iter().filter(|step| step.old.is_none()).map(|step| step.path.as_str()).into_set();
        let listed = |arguments: &[&str]| {
            let answer = self.call(arguments).succeed()?;
            let text = |record: &[u8]| String::from_utf8_lossy(record).into_owned();
            Ok::<Vec<String>, Error>(answer.records().map(text).collect())
        };
        for path in listed(&["diff-index", "--cached", "--name-only", "-z", &plan.onto.to_string(), "--"])? {
            let below = format!("{path}/");
            let is_in_the_way = path.match_indices('/').any(|(end, _)| added.contains(&path[..end]))
                || added.range(&*below..).next().is_some_and(|other| other.starts_with(&below));
            if touched.contains(&*path) || is_in_the_way {
                return Ok(Some(format!("{path} has uncommitted changes")));
            }
        }
        for path in listed(&["diff-files", "--name-only", "-z"])? {
            // git lists what was only touched, too.
            if touched.contains(&*path) && !self.is_as_in(plan, &path)? {
                return Ok(Some(format!("{path} has uncommitted changes")));
            }
        }
        for entry in listed(&["ls-files", "-v", "-z"])? {
            let Some((tag, path)) = entry.split_once(' ') else { continue };
            if tag != "H" && touched.contains(path) {
                return Ok(Some(format!("git is not to look at {path}, as in a sparse checkout")));
            }
        }
        let root = self.work_dir().unwrap_or(Path::new(""));
        let is_removed = |step: &&FileStep| step.new.is_none();
        let removed: BTreeSet<PathBuf> =
            plan.steps.iter().filter(is_removed).map(|step| root.join(&step.path)).into_set();
        let here = env::current_dir().unwrap_or_default();
        for step in &plan.steps {
            // A link that the merge takes away is no obstacle.
            if let Some((place, what)) =
                obstacle(root, Path::new(&step.path))?.filter(|(place, _)| !removed.contains(place))
            {
                return Ok(Some(format!("{} {what}", relative(root, &place))));
            }
            let place = root.join(&step.path);
            if step.new.is_some() && here.starts_with(&place) {
                return Ok(Some(format!("this command runs in {}, which it would have to remove", step.path)));
            }
        }
        for step in plan.steps.iter().filter(|step| step.old.is_none()) {
            let place = root.join(&step.path);
            let above = place.ancestors().skip(1).take_while(|above| *above != root);
            let files: Vec<&Path> = above.filter(|above| above.exists() && !is_folder(above)).collect();
            let kept = match files.is_empty() {
                true => kept_at(&place, &removed),
                // What a link leads to is not there.
                false => files.into_iter().find_map(|file| kept_at(file, &removed)),
            };
            if let Some(kept) = kept {
                return Ok(Some(format!("{} is there and not committed", relative(root, &kept))));
            }
        }
        Ok(None)
    }

    /// Whether the work tree has a file as it was before the merge.
    fn is_as_in(&self, plan: &MergePlan<'_>, path: &str) -> Result<bool, Error> {
        let Some(step) = plan.steps.iter().find(|step| step.path == path) else { return Ok(true) };
        let place = self.work_dir().unwrap_or(Path::new("")).join(path);
        let (id, old) = (self.id_in_work_tree(path)?, step.old.as_ref());
        let is_same_mode = |mode: &str| {
            let is_program = || is_executable(&place) == (mode == PROGRAM);
            place.is_symlink() == (mode == LINK) && (!self.tracks_modes() || is_program())
        };
        Ok(id == old.map(|old| old.id.to_string()) && old.is_none_or(|old| is_same_mode(&old.mode)))
    }

    fn merged_files(&self, plan: &MergePlan<'_>) -> Result<(Vec<Planned>, Contents), Error> {
        let mut filled = UndoPlan::default();
        let planned = plan.steps.iter().map(|step| self.planned_step(step)).collect::<Result<Vec<_>, _>>()?;
        self.fill(&mut filled, &plan.quarantine, planned)?;
        Ok(filled.into_parts())
    }
}

impl MergePlan<'_> {
    pub(crate) fn changes_anything(&self) -> bool {
        !self.steps.is_empty()
    }

    pub(crate) fn files(&self) -> Vec<MergedFile> {
        let file = |step: &FileStep| {
            let link = step.new.as_ref().filter(|new| new.mode == LINK);
            let link = link.and_then(|new| self.quarantine.blob(&new.id).ok());
            MergedFile {
                path: step.path.clone(),
                is_removed: step.new.is_none(),
                link: link.map(|target| String::from_utf8_lossy(&target).into_owned()),
            }
        };
        self.steps.iter().map(file).collect()
    }
}

/// What is at a place and not removed by a merge. An empty folder is not.
fn kept_at(place: &Path, removed: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    if removed.contains(place) {
        return None;
    }
    let entries = match place.symlink_metadata() {
        Err(_) => return None,
        Ok(facts) if facts.is_dir() => fs::read_dir(place).and_then(Iterator::collect::<io::Result<Vec<_>>>),
        Ok(_) => Ok(Vec::new()),
    };
    match entries.unwrap_or_default() {
        entries if entries.is_empty() => Some(place.to_owned()),
        entries => entries.iter().find_map(|entry| kept_at(&entry.path(), removed)),
    }
}
