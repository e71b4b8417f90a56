//! Clones of the work tree, in which agents work, and commits of what they did there.
//!
//! ```text
//! work_dir/.git   the agent's: it reads the user's objects, and has copies of the refs
//! git_dir         squad's: HEAD is the commit that the clone was last set to; refs, objects and settings are the user's
//! ```
//!
//! The agent can write the former, so squad never runs git on it: git would run the programs that its configuration
//! names. With the latter, a clone is for all other code a work tree like any other.

use std::{
    collections::BTreeSet,
    fs, io,
    num::NonZero,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    error::Error,
    objects::NewObjects,
    pack::KeptPack,
    quarantine::{Quarantine, alternate},
    references::Durability,
    repository::Repository,
    rescue::{path_of, read_index},
    undo::Merged,
    work_tree::WorkTreeSnapshot,
};
use crate::env::files::{Found, is_folder, open_below, replace};
use crate::model::{IntoSet, Sort};

/// A checkout of 100,000 files takes seconds, and on a slow disk minutes.
const CHECKOUT_TIMEOUT: Duration = Duration::from_secs(1800);
/// The last file of a new clone: without it, the clone is begun again.
const READY: &str = "squad-ready";
/// Holds the commit that a clone is being set to.
const TARGET: &str = "squad-target";
/// The clone's folder and those of squad's own above it; see [`clone_folders`].
const OWN_FOLDERS: usize = 3;

/// What an agent did in its clone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ClonedWork {
    /// The commit that the clone was set to before.
    pub(crate) base: String,
    /// On top of it.
    pub(crate) commit: String,
}

/// The result of a merge.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum MergedWork {
    Merged {
        commit: String,
    },
    /// The paths of the files in conflict.
    Conflict(Vec<String>),
}

/// What `git merge-tree` makes of three commits.
pub(super) struct MergedTree {
    pub(super) tree: ObjectId,
    pub(super) conflicts: BTreeSet<String>,
}

impl Repository {
    /// Whether the clone is there as a whole.
    pub(crate) fn is_made(&self) -> bool {
        self.git_dir().join(READY).exists() && self.require_folder().is_ok()
    }

    /// Fails if the folder of a clone is gone, or a link stands in the place of it or of one above it: without a sandbox,
    /// an agent can put one there.
    pub(super) fn require_folder(&self) -> Result<(), Error> {
        let Some(root) = self.work_dir().filter(|_| self.is_clone()) else { return Ok(()) };
        match root.ancestors().take(OWN_FOLDERS).find(|place| place.is_symlink()) {
            Some(link) => Err(Error::damaged(link, "a link stands in the place of a clone's folder")),
            None if is_folder(root) => Ok(()),
            None => Err(Error::damaged(root, "the clone's folder is gone")),
        }
    }

    /// Makes the clone of `source` at a commit, one of so many that are made at the same time.
    pub(crate) fn make_clone(&self, source: &Repository, commit: &str, at_once: usize) -> Result<(), Error> {
        let Some(root) = self.work_dir() else { return Ok(()) };
        for folder in [self.git_dir(), root] {
            match fs::remove_dir_all(folder) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", folder)(cause));
                }
                _ => fs::create_dir_all(folder).map_err(Error::io("create", folder))?,
            }
        }
        write(&self.git_dir().join("commondir"), self.common_line())?;
        self.set_clone_head(commit)?;
        // With all cores for each of eight, all are a third slower than with one for each.
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        self.check_out_with(commit, (cores / at_once.max(1)).max(1))?;
        self.make_agents_git(source, &root.join(".git"))?;
        write(&self.git_dir().join(READY), "")
    }

    /// Sets a clone from what its agent has made of it, whose snapshot this is, to another commit. Ignored files stay.
    pub(crate) fn set_clone(&self, now: &WorkTreeSnapshot, commit: &str) -> Result<(), Error> {
        let target = self.git_dir().join(TARGET);
        replace(&target, commit.as_bytes()).map_err(Error::io("write", &target))?;
        self.call(&["read-tree", "--reset", &now.commit()]).succeed()?;
        // Its answer says only that some files differ, as those do that a snapshot leaves out.
        self.call(&["update-index", "-q", "--refresh"]).timeout(CHECKOUT_TIMEOUT).run()?;
        self.finish_clone()
    }

    fn common_line(&self) -> String {
        format!("{}\n", self.common_dir().display())
    }

    /// Opens a clone that is there, also where its repository has been moved since: its agent's git would look for the
    /// objects where they were.
    pub(crate) fn reopen_clone(&self, source: &Repository) -> Result<(), Error> {
        let common = self.git_dir().join("commondir");
        let known = fs::read_to_string(&common).map_err(Error::io("read", &common))?;
        if let Some(root) = self.work_dir().filter(|_| known != self.common_line()) {
            self.require_folder()?;
            let git = root.join(".git");
            match fs::remove_dir_all(&git) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(Error::io("remove", git)(cause)),
                _ => self.make_agents_git(source, &git)?,
            }
            replace(&common, self.common_line().as_bytes()).map_err(Error::io("write", &common))?;
        }
        self.finish_clone()
    }

    /// Finishes what a killed process has begun: until then, the clone's files are not what its agent made of them.
    fn finish_clone(&self) -> Result<(), Error> {
        let target = self.git_dir().join(TARGET);
        let commit = match fs::read_to_string(&target) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
            commit => commit.map_err(Error::io("read", &target))?,
        };
        self.check_out(&commit)?;
        self.set_clone_head(&commit)?;
        fs::remove_file(&target).map_err(Error::io("remove", &target))?;
        self.work_dir().map_or(Ok(()), |root| self.give_index(&root.join(".git")))
    }

    /// Has the clone's files be those of a commit, as if its agent had made them so.
    pub(crate) fn show(&self, commit: &str) -> Result<(), Error> {
        self.check_out(commit)
    }

    /// Sets the clone's files to a commit, whatever else has become of them. Ignored files stay, and these paths.
    pub(crate) fn restore_clone(&self, commit: &str, kept: &[String]) -> Result<(), Error> {
        self.check_out(commit)?;
        let pattern = |path: &String| {
            let special = |c: char| if "\\*?[ ".contains(c) { vec!['\\', c] } else { vec![c] };
            format!("--exclude=/{}", path.chars().flat_map(special).collect::<String>())
        };
        let excludes: Vec<String> = kept.iter().map(pattern).collect();
        let write = self.call(&["checkout-index", "--all", "--force", "--quiet"]);
        let clean = self.call(&["clean", "-ffdq"]).arguments(&excludes);
        [write, clean].into_iter().try_for_each(|call| call.timeout(CHECKOUT_TIMEOUT).succeed().map(drop))?;
        self.set_clone_head(commit)
    }

    /// Whether git tracks files at or below a path.
    pub(crate) fn is_tracked(&self, path: &str) -> Result<bool, Error> {
        Ok(!self.call(&["ls-files", "-z", "--", path]).succeed()?.stdout.is_empty())
    }

    /// Checks the clone's tracked files at or below a path out again.
    pub(crate) fn restore_tracked(&self, path: &str) -> Result<(), Error> {
        self.require_folder()?;
        let tracked = self.call(&["ls-files", "-z", "--", path]).succeed()?.stdout;
        if !tracked.is_empty() {
            self.call(&["checkout-index", "--force", "--quiet", "-z", "--stdin"]).input(tracked).succeed()?;
        }
        Ok(())
    }

    /// Counts the clone's state as committed, to which it was just committed.
    pub(crate) fn settle_clone(&self, commit: &str) -> Result<(), Error> {
        self.call(&["read-tree", "--reset", commit]).succeed()?;
        self.set_clone_head(commit)
    }

    /// Commits what an agent did in this clone to its branch. `None`: nothing.
    pub(crate) fn commit_clone(
        &self,
        (reference, now): (&str, &WorkTreeSnapshot),
        (committer, at): (&Identity, Timestamp),
        message: &str,
        is_something: bool,
    ) -> Result<Option<ClonedWork>, Error> {
        let Some(base) = self.head()?.commit else { return Ok(None) };
        let parent = self.parse_commit(&base)?;
        if !is_something && self.objects().tree_of(&parent)? == now.tree() {
            return Ok(None);
        }
        let mut objects = NewObjects::new(self.hash());
        let encoded = commit::encode(now.tree(), &[parent], committer, at, message);
        let commit = objects.add(objs::Kind::Commit, encoded)?;
        self.keep_commit(reference, commit, &objects)?;
        Ok(Some(ClonedWork { base, commit: commit.to_string() }))
    }

    /// Merges what was done from `base` to `theirs` into `ours`, as `reference`.
    pub(crate) fn merge_work(
        &self,
        reference: &str,
        (ours, work): (&str, &ClonedWork),
        (committer, at): (&Identity, Timestamp),
        message: &str,
    ) -> Result<MergedWork, Error> {
        if ours == work.base {
            self.set_aside(reference, work)?;
            return Ok(MergedWork::Merged { commit: work.commit.clone() });
        }
        let (commit, objects, conflicts) = self.merged_commit((ours, work), (committer, at), message)?;
        if !conflicts.is_empty() {
            return Ok(MergedWork::Conflict(conflicting_files(&conflicts)));
        }
        self.keep_commit(reference, commit, &objects)?;
        Ok(MergedWork::Merged { commit: commit.to_string() })
    }

    /// The same, but where both sides conflict, the files have both. Returns the commit, and those files.
    pub(crate) fn merge_with_conflicts(
        &self,
        reference: &str,
        (ours, work): (&str, &ClonedWork),
        (committer, at): (&Identity, Timestamp),
    ) -> Result<(String, Vec<String>), Error> {
        let (commit, objects, conflicts) = self.merged_commit((ours, work), (committer, at), "both sides")?;
        self.keep_commit(reference, commit, &objects)?;
        Ok((commit.to_string(), conflicts.into_iter().collect()))
    }

    /// What was done from `base` to `theirs`, merged into `ours`.
    fn merged_commit(
        &self,
        (ours, work): (&str, &ClonedWork),
        (committer, at): (&Identity, Timestamp),
        message: &str,
    ) -> Result<(ObjectId, NewObjects, BTreeSet<String>), Error> {
        let theirs = self.parse_commit(&work.commit)?;
        let (ours, base) = (self.parse_commit(ours)?, self.parse_commit(&work.base)?);
        let store = self.objects();
        let trees = (store.tree_of(&base)?, store.tree_of(&ours)?, store.tree_of(&theirs)?);
        let quarantine = Quarantine::new(self)?;
        let MergedTree { tree, conflicts } = self.merge_trees(&quarantine, trees, (committer, at))?;
        let mut objects = self.merged_objects(&quarantine, tree, trees.1)?;
        let encoded = commit::encode(tree, &[ours, theirs], committer, at, message);
        let commit = objects.add(objs::Kind::Commit, encoded)?;
        Ok((commit, objects, conflicts))
    }

    /// Keeps work that is not merged.
    pub(crate) fn set_aside(&self, reference: &str, work: &ClonedWork) -> Result<(), Error> {
        self.keep_commit(reference, self.parse_commit(&work.commit)?, &NewObjects::new(self.hash()))
    }

    /// The commit that a ref holds.
    pub(crate) fn reference(&self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.references().read(name)?.map(|id| id.to_string()))
    }

    /// Merges trees: base, ours, theirs. What the merge makes stays in the quarantine.
    pub(super) fn merge_trees(
        &self,
        quarantine: &Quarantine<'_>,
        (base, ours, theirs): (ObjectId, ObjectId, ObjectId),
        (committer, at): (&Identity, Timestamp),
    ) -> Result<MergedTree, Error> {
        let mut objects = NewObjects::new(self.hash());
        // Older versions of git find the base themselves.
        let mut commit = |tree: ObjectId, base: &[ObjectId]| {
            objects.add(objs::Kind::Commit, commit::encode(tree, base, committer, at, "merge"))
        };
        let base = commit(base, &[])?;
        let (ours, theirs) = (commit(ours, &[base])?, commit(theirs, &[base])?);
        quarantine.put(&objects)?;
        let Merged { tree, conflicts } = self.merge_commits(quarantine, ours, theirs)?;
        let paths = conflicts.into_iter().flatten().map(|path| String::from_utf8_lossy(&path).into_owned());
        Ok(MergedTree { tree, conflicts: paths.collect() })
    }

    /// What a merge has made, as far as `ours` has it not.
    pub(super) fn merged_objects(
        &self,
        quarantine: &Quarantine<'_>,
        tree: ObjectId,
        ours: ObjectId,
    ) -> Result<NewObjects, Error> {
        let mut objects = NewObjects::new(self.hash());
        quarantine.take_trees(tree, Some(ours), &mut objects)?;
        let trees: BTreeSet<ObjectId> = objects.as_slice().iter().map(|object| object.id).into_set();
        for made in quarantine.loose()? {
            // Trees of a merge that came to nothing are no part of this one.
            if !trees.contains(&made) && quarantine.blob(&made).is_ok() {
                quarantine.take(made, objs::Kind::Blob, &mut objects)?;
            }
        }
        Ok(objects)
    }

    /// Stores objects, and a commit among them or already there, as a ref.
    pub(super) fn keep_commit(&self, reference: &str, commit: ObjectId, objects: &NewObjects) -> Result<(), Error> {
        let kept: Option<KeptPack> = if objects.is_empty() { None } else { Some(self.packs().add(objects)?) };
        let old = self.references().read(reference)?;
        let moved = old == Some(commit) || self.ledger().move_ref_as(reference, (old, commit), Durability::Now)?;
        // Another process may have moved it to the same commit.
        if !moved && self.references().read(reference)? != Some(commit) {
            return Err(Error::damaged(self.git_dir(), format!("another process moves {reference}")));
        }
        drop(kept);
        Ok(())
    }

    fn set_clone_head(&self, commit: &str) -> Result<(), Error> {
        let head = self.git_dir().join("HEAD");
        replace(&head, format!("{commit}\n").as_bytes()).map_err(Error::io("write", &head))
    }

    /// Sets index and files to a commit, with all cores.
    fn check_out(&self, commit: &str) -> Result<(), Error> {
        self.check_out_with(commit, 0)
    }

    /// `workers`: git's, 0 for one per core.
    fn check_out_with(&self, commit: &str, workers: usize) -> Result<(), Error> {
        self.require_folder()?;
        // A clone is whole, whatever the user has checked out.
        let workers = format!("checkout.workers={workers}");
        let whole = ["-c", "core.sparseCheckout=false", "-c", &workers, "-c", "index.sparse=false"];
        let call = self.call(&whole).arguments(&["read-tree", "--reset", "-u", commit]);
        call.timeout(CHECKOUT_TIMEOUT).succeed().map(drop)
    }

    /// Makes the repository that the agent sees: branch, history and ignored files are the user's, what is uncommitted is
    /// staged, and no hook runs.
    fn make_agents_git(&self, source: &Repository, git: &Path) -> Result<(), Error> {
        for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            let folder = git.join(folder);
            fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        }
        let objects = std::path::absolute(self.objects_directory()).map_err(Error::io("find", self.common_dir()))?;
        write(&git.join("objects/info/alternates"), alternate(&objects))?;
        for name in ["shallow", "info/exclude", "info/attributes"] {
            match fs::read(self.common_dir().join(name)) {
                Ok(bytes) => write(&git.join(name), bytes)?,
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => return Err(Error::io("read", self.common_dir().join(name))(cause)),
            }
        }
        let format = ["for-each-ref", "--format=%(objectname) %(refname)%00%(symref)"];
        let listed = source.call(&format).arguments(&["refs/heads", "refs/tags", "refs/remotes"]).succeed()?.text();
        let refs = listed.lines().filter_map(|line| line.split_once('\0').filter(|(_, link)| link.is_empty()));
        let mut packed: Vec<&str> = refs.map(|(line, _)| line).collect();
        packed.stable_sort_by_key(|line| line.split_once(' ').map(|(_, name)| name));
        let packed: String = packed.into_iter().flat_map(|line| [line, "\n"]).collect();
        write(&git.join("packed-refs"), format!("# pack-refs with: sorted \n{packed}"))?;
        let head = source.head()?;
        let head = match (head.branch, head.commit) {
            (Some(branch), _) => format!("ref: refs/heads/{branch}\n"),
            (None, commit) => format!("{}\n", commit.unwrap_or_default()),
        };
        write(&git.join("config"), source.config_for_agents(self.ignores_case())?)?;
        self.give_index(git)?;
        write(&git.join("HEAD"), head)
    }

    /// Gives the clone's files the times that they have in the work tree of `source`, as far as they are the same there:
    /// for `make` and its like, what was built of them is up to date only then.
    pub(crate) fn keep_times(&self, source: &Repository) -> Result<(), Error> {
        let (Some(from), Some(to)) = (source.work_dir(), self.work_dir()) else { return Ok(()) };
        let index = |repository: &Repository| read_index(&repository.git_dir().join("index"), repository);
        let (theirs, ours) = (index(source)?, index(self)?);
        for entry in ours.entries() {
            let path = entry.path(&ours);
            let known = theirs.entry_by_path(path).filter(|known| (known.id, known.mode) == (entry.id, entry.mode));
            let (Some(known), Some(inner)) = (known, path_of(path)) else { continue };
            let Ok(facts) = fs::symlink_metadata(from.join(&inner)) else { continue };
            let is_same = facts.is_file()
                && u64::from(known.stat.size) == facts.len() & u64::from(u32::MAX)
                && facts.modified().is_ok_and(|at| is_at(at, known.stat.mtime));
            // One that stays as it is is built again.
            if let (true, Ok(Found::File(file)), Ok(at)) = (is_same, open_below(to, &inner), facts.modified()) {
                let _ = file.set_modified(at);
            }
        }
        // Its answer says only that some files differ.
        self.call(&["update-index", "-q", "--refresh"]).timeout(CHECKOUT_TIMEOUT).run()?;
        self.give_index(&to.join(".git"))
    }

    /// Gives the agent's repository squad's index, so that it knows the files without reading them.
    fn give_index(&self, git: &Path) -> Result<(), Error> {
        self.require_folder()?;
        let draft = self.git_dir().join("index.agent");
        let index = self.git_dir().join("index");
        fs::copy(&index, &draft).map_err(Error::io("copy", &index))?;
        let modified = fs::metadata(&index).and_then(|facts| facts.modified());
        // git compares file times with the index's own time to find racy entries, so keep it.
        let kept = modified.and_then(|at| fs::File::options().write(true).open(&draft)?.set_modified(at));
        kept.map_err(Error::io("write", &draft))?;
        move_into(&draft, git, "index").map_err(Error::io("write", git.join("index")))
    }
}

/// Whether a time is one that an index has. Some versions of git keep no fractions of a second.
fn is_at(at: SystemTime, known: gix::index::entry::stat::Time) -> bool {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The index has 32 bits of them.
    let seconds = since.as_secs() & u64::from(u32::MAX) == u64::from(known.secs);
    seconds && (known.nsecs == 0 || known.nsecs == since.subsec_nanos())
}

/// The names of files in conflict, without those that git gives to one whose place a folder takes: `name~commit`.
pub(crate) fn conflicting_files<'p>(paths: impl IntoIterator<Item = &'p String>) -> Vec<String> {
    let is_commit = |id: &str| matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = |path: &String| match path.rsplit_once('~') {
        Some((name, id)) if is_commit(id) => name.to_owned(),
        _ => path.clone(),
    };
    let names: BTreeSet<String> = paths.into_iter().map(name).into_set();
    names.into_iter().collect()
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    fs::write(path, bytes).map_err(Error::io("write", path))
}

/// Moves a file into a folder, unless the folder is not what it was: an agent may have put a link in its place.
#[cfg(unix)]
fn move_into(file: &Path, folder: &Path, name: &str) -> io::Result<()> {
    use rustix::fs::{CWD, Mode, OFlags, open, renameat};
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match open(folder, flags, Mode::empty()) {
        Ok(folder) => Ok(renameat(CWD, file, &folder, name)?),
        // It has no repository any more.
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn move_into(file: &Path, folder: &Path, name: &str) -> io::Result<()> {
    if fs::symlink_metadata(folder).is_ok_and(|facts| facts.is_dir()) {
        fs::rename(file, folder.join(name))
    } else {
        Ok(())
    }
}

/// The folders of a clone, below one of its own.
pub(crate) fn clone_folders(place: &Path, name: &str) -> (PathBuf, PathBuf) {
    (place.join("git"), place.join("work").join(name))
}
