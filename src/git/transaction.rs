//! A change of work tree, index and branch that is either finished or rolled back, even after a kill.
//!
//! Going forward and rolling back use the same step: each file has an old and a new version, and is switched from one
//! to the other. A file that matches neither is the user's and stays. Carrying out switches every file to its new
//! version, then the branch moves; settling, after a kill or when the branch cannot move, switches every file to the
//! version in the checked-out commit.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    env, fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use gix::{ObjectId, objs};

use super::{
    checkout::{Entry, Staged},
    disk,
    error::Error,
    intent::{Contents, Intent, Planned, RawPath, Version, WorkTreeLock},
    mode::{LINK, PLAIN, PROGRAM, keep_access, make_executable, mode_of},
    objects::{Sharing, identify},
    path::obstacle,
    repository::Repository,
    staging,
};
use crate::env::files::is_folder;
use crate::model::{ChangeKind, IntoSet, Sort};

/// How long we wait for another git that started changing the index at the same time.
const INDEX_TIMEOUT: Duration = Duration::from_secs(2);

/// How long nothing must change before we assume that no other git is running.
const QUIET_PERIOD: Duration = Duration::from_millis(50);

/// How often we settle at most, if others never stop making changes.
const MAX_ROUNDS: usize = 20;

/// An intent that is on disk. Without [`Self::end`], it stays there for the next command.
pub(super) struct Transaction<'a> {
    repository: &'a Repository,
    pub(super) intent: Intent,
    contents: Contents,
    root: PathBuf,
    /// Where the intent's files are.
    places: BTreeSet<PathBuf>,
    /// The state of the index after our change.
    staged: Cell<Option<staging::IndexStamp>>,
    /// What we know of the folders that files are in.
    folders: RefCell<BTreeMap<PathBuf, FolderFacts>>,
}

/// Asking for them costs more than writing a file.
#[derive(Clone, Copy)]
struct FolderFacts {
    /// Files can be moved to and from our own folder.
    takes_moves: bool,
    keeps_order: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Old,
    New,
    /// The branch has something else at the path: leave the file alone.
    Neither,
}

impl Side {
    /// The version that a file is switched from, and to.
    fn versions(self, file: &Planned) -> Option<(&Option<Version>, &Option<Version>)> {
        match self {
            Self::New => Some((&file.old, &file.new)),
            Self::Old => Some((&file.new, &file.old)),
            Self::Neither => None,
        }
    }
}

/// What exists at a path.
#[derive(Debug, Eq, PartialEq)]
enum FileState {
    Absent,
    File {
        mode: &'static str,
        work: String,
    },
    /// A folder, or a path that leads through something we must not enter.
    Other,
}

impl<'a> Transaction<'a> {
    /// Writes the intent. The caller holds the work tree lock, and earlier intents are settled.
    pub(super) fn begin(
        repository: &'a Repository,
        _turn: &WorkTreeLock,
        root: &Path,
        mut intent: Intent,
        contents: Contents,
    ) -> Result<Self, Error> {
        remove_stale_drafts(repository)?;
        let mut folders: Vec<PathBuf> = Vec::new();
        for file in intent.files.iter().filter(|file| file.old.is_none()) {
            let path = file.path.path();
            let missing = path.ancestors().skip(1).take_while(|above| !root.join(above).exists());
            folders.extend(missing.map(Path::to_owned));
        }
        folders.sort();
        folders.dedup();
        intent.folders = folders.iter().map(|folder| RawPath::new(folder)).collect();
        intent.write(repository, &contents)?;
        intent.announce(repository, false);
        Ok(Self::new(repository, intent, contents, root.to_owned()))
    }

    fn new(repository: &'a Repository, intent: Intent, contents: Contents, root: PathBuf) -> Self {
        let places = intent.files.iter().map(|file| root.join(file.path.path())).into_set();
        Self { repository, intent, contents, root, places, staged: Cell::new(None), folders: RefCell::default() }
    }

    /// The unfinished transaction of an interrupted command.
    pub(super) fn unfinished(repository: &'a Repository) -> Result<Option<Self>, Error> {
        let Some((intent, contents)) = Intent::read(repository)? else { return Ok(None) };
        let root = match (&intent.root, repository.work_dir()) {
            (Some(root), _) => root.path(),
            (None, Some(root)) => root.to_owned(),
            (None, None) => return Ok(None),
        };
        Ok(Some(Self::new(repository, intent, contents, root)))
    }

    /// Switches work tree and index to the new version. User files in the way stay, and are returned.
    pub(super) fn carry_out(&self) -> Result<Vec<String>, Error> {
        let sides = vec![Side::New; self.intent.files.len()];
        let left = self.switch_files(&sides)?;
        self.stage(&sides)?;
        self.staged.set(staging::stamp(self.repository));
        Ok(left)
    }

    /// Whether branch, index and work tree are still as we left them, after waiting for other gits to release the
    /// index.
    pub(super) fn is_intact(&self, branch: &str) -> Result<bool, Error> {
        staging::wait_for_lock(self.repository, INDEX_TIMEOUT);
        // A concurrent `git stash` or `git reset` may have restored the old version.
        let is_switched = |file: &Planned| {
            let state = self.state_of(file)?;
            Ok(!self.matches(&state, &file.old) && (state != FileState::Absent || file.new.is_none()))
        };
        Ok(self.repository.head()?.branch.as_deref() == Some(branch)
            && staging::stamp(self.repository) == self.staged.get()
            && self.sides()?.iter().all(|side| *side == Side::New)
            && self
                .intent
                .files
                .iter()
                .map(is_switched)
                .collect::<Result<Vec<bool>, Error>>()?
                .into_iter()
                .all(|is| is))
    }

    /// The target folder, if it is not the work tree and no longer exists: we do not recreate it.
    pub(super) fn missing_folder(&self) -> Option<&Path> {
        Some(&*self.root).filter(|root| self.intent.root.is_some() && !root.is_dir())
    }

    /// Switches work tree and index to the version in the checked-out commit; if only the work tree is to change, to
    /// the new version. Returns the user's files that were left alone.
    pub(super) fn settle(&self) -> Result<Vec<String>, Error> {
        staging::remove_stale_lock(self.repository, &self.draft())?;
        self.remove_dead_branch_lock()?;
        let sides = self.sides()?;
        let left = self.switch_files(&sides)?;
        self.stage(&sides)?;
        self.remove_temporaries()?;
        if sides.contains(&Side::Old) {
            self.remove_new_folders();
        }
        Ok(left)
    }

    /// Switches the work tree back to the old version, after an error on the way to the new one.
    pub(super) fn take_back(&self) -> Result<(), Error> {
        self.switch_files(&vec![Side::Old; self.intent.files.len()])?;
        self.remove_temporaries()?;
        self.remove_new_folders();
        Ok(())
    }

    fn remove_new_folders(&self) {
        for folder in self.intent.folders.iter().rev() {
            disk::remove_empty_folder(&self.root.join(folder.path()));
        }
    }

    /// Which version of each file the branch has.
    pub(super) fn sides(&self) -> Result<Vec<Side>, Error> {
        if self.intent.commit.is_none() {
            return Ok(vec![Side::New; self.intent.files.len()]);
        }
        let store = self.repository.objects();
        let head = self.repository.head()?.commit.map(|commit| self.repository.parse_commit(&commit)).transpose()?;
        let mut tree = head.map(|head| store.tree_of(&head)).transpose()?.map(|tree| store.finder(tree));
        let side = |file: &Planned| {
            let held = tree.as_mut().map(|tree| tree.find(&file.path.display())).transpose()?.flatten();
            // A folder is no file, whatever is in it.
            let held = held.filter(|(mode, _)| !mode.is_tree()).map(|(mode, id)| (mode, id.to_string()));
            let changes_mode_only =
                file.old.as_ref().zip(file.new.as_ref()).is_some_and(|(old, new)| old.blob == new.blob);
            let is = |version: &Option<Version>| match (&held, version) {
                (None, None) => true,
                (Some((mode, id)), Some(version)) => {
                    let is_mode = !changes_mode_only || mode.is_executable() == (version.mode == PROGRAM);
                    !mode.is_commit() && mode.is_link() == (version.mode == LINK) && *id == version.blob && is_mode
                }
                _ => false,
            };
            Ok(match (is(&file.new), is(&file.old)) {
                (true, _) => Side::New,
                (_, true) => Side::Old,
                _ => Side::Neither,
            })
        };
        self.intent.files.iter().map(side).collect()
    }

    /// Settles until nothing else changes: a `git switch` or `git merge` that began before our commit changes the
    /// index, and then HEAD, as if our commit did not exist.
    pub(super) fn settle_until_stable(&self) -> Result<(), Error> {
        for _ in 0..MAX_ROUNDS {
            let head = self.repository.head()?;
            self.settle()?;
            let index = staging::stamp(self.repository);
            thread::sleep(QUIET_PERIOD);
            staging::wait_for_lock(self.repository, INDEX_TIMEOUT);
            if self.repository.head()? == head && staging::stamp(self.repository) == index {
                break;
            }
        }
        Ok(())
    }

    /// Ends the transaction: removes the temporary files, then the intent.
    pub(super) fn end(self) -> Result<(), Error> {
        self.remove_temporaries()?;
        for name in [self.draft(), self.draft().with_extension("lock")] {
            disk::remove(&name).map_err(Error::io("remove", &name))?;
        }
        self.intent.announce(self.repository, true);
        let path = self.repository.intent_path();
        disk::remove(&path).map_err(Error::io("remove", &path))
    }

    pub(super) fn content(&self, id: &str) -> Result<Vec<u8>, Error> {
        match self.contents.get(id) {
            Some(bytes) => Ok(bytes.clone()),
            None => self.repository.objects().blob(&self.repository.parse_commit(id)?),
        }
    }

    fn switch_files(&self, sides: &[Side]) -> Result<Vec<String>, Error> {
        let (mut left, mut folders) = (Vec::new(), BTreeSet::new());
        let mut files: Vec<_> = self.intent.files.iter().zip(sides).enumerate().collect();
        // A folder may take the place of a file, and the reverse.
        files.stable_sort_by_key(|(_, (file, side))| side.versions(file).is_none_or(|(_, to)| to.is_some()));
        for (number, (file, side)) in files {
            if !self.switch_file(number, file, *side, &mut folders)? {
                left.push(file.path.display());
            }
        }
        // Flush before the branch moves or the intent is removed; each folder once, since a flush costs about as much
        // as all the rest.
        folders.iter().try_for_each(|folder| disk::flush_folder(folder))?;
        Ok(left)
    }

    /// False: the user has something there, and it stays. Adds the folders to flush to `folders`.
    fn switch_file(
        &self,
        number: usize,
        file: &Planned,
        side: Side,
        folders: &mut BTreeSet<PathBuf>,
    ) -> Result<bool, Error> {
        let target = self.root.join(file.path.path());
        let fresh = self.temporary_path(&target, number, "tmp");
        disk::remove(&fresh).map_err(Error::io("remove", &fresh))?;
        let now = self.state_of(file)?;
        let mut is_moved = false;
        for (name, version) in [("old", &file.old), ("new", &file.new)] {
            let aside = self.temporary_path(&target, number, name);
            match self.state_at(&aside)? {
                FileState::Absent => continue,
                existing if self.matches(&existing, version) => is_moved = true,
                // Somebody wrote to the file while it was moved aside.
                _ if now == FileState::Absent => {
                    disk::rename_new(&aside, &target).map_err(Error::io("put back", &target))?;
                    return Ok(false);
                }
                _ => return Ok(false),
            }
        }
        let (from, to) = match side.versions(file) {
            Some(versions) => versions,
            None if is_moved && now == FileState::Absent => (&None, &file.old),
            None => return Ok(true),
        };
        if self.matches(&now, to) || to.is_none() && self.is_folder_of_files(&target) {
            self.remove_emptied(&target, to.as_ref(), folders);
            return Ok(true);
        }
        let from = if self.matches(&now, from) {
            from.as_ref()
        } else if now == FileState::Absent && is_moved {
            None
        } else {
            // A missing file cannot be lost: a sparse checkout omits it, or the user removed it.
            return Ok(now == FileState::Absent);
        };
        if to.is_some() && obstacle(&self.root, &file.path.path())?.is_some() {
            // What was to make room for it stays.
            return Ok(false);
        }
        folders.insert(target.parent().unwrap_or(&self.root).to_owned());
        let is_switched = self.swap(number, file, from, to.as_ref())?;
        if is_switched {
            self.remove_emptied(&target, to.as_ref(), folders);
        }
        Ok(is_switched)
    }

    /// Whether a folder is there that other files of the change are in: it stands where there is to be no file.
    fn is_folder_of_files(&self, place: &Path) -> bool {
        let inner = self.places.range(place.to_owned()..).find(|other| *other != place);
        inner.is_some_and(|inner| inner.starts_with(place)) && is_folder(place)
    }

    /// Removes the folders that the removal of a file has emptied, as git does. Those of a team stay where squad commits
    /// files of its own.
    fn remove_emptied(&self, target: &Path, to: Option<&Version>, folders: &mut BTreeSet<PathBuf>) {
        let stay = self.intent.commit.is_some() && !matches!(self.intent.kind, ChangeKind::Merge { .. });
        if to.is_some() || stay {
            return;
        }
        // Whoever stands in a folder goes on standing there.
        let is_ours = |folder: &&Path| **folder != *self.root && env::current_dir().is_ok_and(|here| here != **folder);
        for folder in target.ancestors().skip(1).take_while(is_ours) {
            disk::remove_empty_folder(folder);
            if folder.exists() {
                break;
            }
            folders.remove(folder);
            folders.extend(folder.parent().map(Path::to_owned));
        }
    }

    /// Replaces one version with another. False: something else is there, and stays.
    fn swap(&self, number: usize, file: &Planned, from: Option<&Version>, to: Option<&Version>) -> Result<bool, Error> {
        let target = self.root.join(file.path.path());
        let name = |version: Option<&Version>| if version == file.old.as_ref() { "old" } else { "new" };
        let aside = self.temporary_path(&target, number, name(from));
        if from.is_some() {
            disk::rename(&target, &aside).map_err(Error::io("move", &target))?;
            // Check it after the move, when nobody opens it by its name any more.
            let moved = self.state_at(&aside)?;
            if !from.is_some_and(|from| self.matches(&moved, &Some(from.clone()))) {
                disk::rename_new(&aside, &target).map_err(Error::io("put back", &target))?;
                return Ok(false);
            }
        }
        let Some(version) = to else { return Ok(true) };
        let folder = target.parent().unwrap_or(&self.root);
        let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            disk::make_folder(folder, Sharing::Umask).map_err(Error::io("create", folder))?;
        }
        let existing = self.temporary_path(&target, number, name(to));
        let ready = match self.matches(&self.state_at(&existing)?, &Some(version.clone())) {
            true => existing,
            false => self.write_temporary(number, (&target, &aside), version)?,
        };
        match disk::rename_new(&ready, &target) {
            // The user has just created it.
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            answer => answer.map_err(Error::io("write", &target))?,
        }
        Ok(true)
    }

    /// `aside`: where the version before it is, if there is one.
    fn write_temporary(
        &self,
        number: usize,
        (target, aside): (&Path, &Path),
        version: &Version,
    ) -> Result<PathBuf, Error> {
        let fresh = self.temporary_path(target, number, "tmp");
        let bytes = self.content(&version.work)?;
        let written = match version.mode.as_str() {
            LINK => disk::symlink(&bytes, &fresh),
            mode => disk::create_new(&fresh).and_then(|mut file| {
                disk::write(&mut file, &fresh, &bytes)?;
                if let Ok(old) = fs::symlink_metadata(aside)
                    && old.is_file()
                {
                    keep_access(&file, &old)?;
                }
                if mode == PROGRAM {
                    make_executable(&file)?;
                }
                // Where the order is kept, flushing the folder makes all its files durable.
                disk::reach_disk(&file, &fresh, self.facts_of(target).keeps_order)
            }),
        };
        written.map_err(Error::io("write", target))?;
        Ok(fresh)
    }

    /// Removes the files moved aside, if they are versions we know.
    fn remove_temporaries(&self) -> Result<(), Error> {
        for (number, file) in self.intent.files.iter().enumerate() {
            let target = self.root.join(file.path.path());
            let fresh = self.temporary_path(&target, number, "tmp");
            disk::remove(&fresh).map_err(Error::io("remove", &fresh))?;
            for (name, version) in [("old", &file.old), ("new", &file.new)] {
                let aside = self.temporary_path(&target, number, name);
                let existing = self.state_at(&aside)?;
                if existing != FileState::Absent && self.matches(&existing, version) {
                    disk::remove(&aside).map_err(Error::io("remove", &aside))?;
                }
            }
        }
        Ok(())
    }

    /// Switches the index entries that still match the other version.
    fn stage(&self, sides: &[Side]) -> Result<(), Error> {
        if self.intent.commit.is_none() {
            return Ok(());
        }
        let paths: Vec<String> = self.intent.display_paths();
        let staged = Staged::read(self.repository, &paths.iter().map(String::as_str).collect::<Vec<_>>())?;
        let (mut changes, mut refreshed, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
        let mut removed = BTreeSet::new();
        let files = self.intent.files.iter().zip(sides).zip(&paths);
        let files =
            files.filter_map(|((file, side), path)| side.versions(file).map(|(from, to)| (file, from, to, path)));
        let mut files: Vec<_> = files.collect();
        files.stable_sort_by_key(|(_, _, to, _)| to.is_some());
        for (file, from, to, path) in files {
            let is_from = match (staged.get(path), from) {
                (None, None) => staged.in_the_way(path).all(|other| removed.contains(other)),
                (Some(Entry::File { id, .. }), Some(from)) => from.mode != LINK && id == *from.blob.as_str(),
                (Some(Entry::Link { id }), Some(from)) => from.mode == LINK && id == *from.blob.as_str(),
                _ => false,
            };
            if is_from {
                if to.is_none() {
                    removed.insert(path.as_str());
                }
                changes.push((path.as_str(), to.as_ref().map(|to| self.entry(to)).transpose()?));
                let is_hidden = matches!(staged.get(path), Some(Entry::File { hidden: true, .. }));
                match to {
                    Some(_) if is_hidden => hidden.push(path.as_str()),
                    Some(_) if file.old.is_some() => refreshed.push(path.as_str()),
                    _ => {}
                }
            }
        }
        staging::update_index(self.repository, &self.draft(), &changes, &refreshed, &hidden)
    }

    /// As it is staged; what is no link or program is plain.
    fn entry<'v>(&self, version: &'v Version) -> Result<(&'v str, ObjectId), Error> {
        let mode = if [LINK, PROGRAM].contains(&version.mode.as_str()) { &version.mode } else { PLAIN };
        Ok((mode, self.repository.parse_commit(&version.blob)?))
    }

    fn draft(&self) -> PathBuf {
        self.repository.state_folder().join(format!("index-{}", self.intent.token))
    }

    /// The temporary path of a file being written or moved: out of reach of `git add`, if that is on the same file
    /// system.
    fn temporary_path(&self, target: &Path, number: usize, name: &str) -> PathBuf {
        let (folder, token) = (self.repository.state_folder(), &self.intent.token);
        match self.facts_of(target).takes_moves {
            true => folder.join(format!("file-{token}-{number}.{name}")),
            false => target.with_file_name(format!(".squad-{token}-{number}.{name}")),
        }
    }

    /// Of the folder of a file. A folder that does not exist yet will be like the one above it.
    fn facts_of(&self, target: &Path) -> FolderFacts {
        let parent = target.parent().unwrap_or(&self.root);
        if let Some(facts) = self.folders.borrow().get(parent) {
            return *facts;
        }
        let state = self.repository.state_folder();
        let existing = parent.ancestors().find(|above| above.is_dir());
        let facts = FolderFacts {
            takes_moves: existing.is_some_and(|folder| can_move_between(folder, &state)),
            keeps_order: existing.is_some_and(|folder| disk::keeps_order(folder, &state)),
        };
        self.folders.borrow_mut().insert(parent.to_owned(), facts);
        facts
    }

    fn matches(&self, state: &FileState, version: &Option<Version>) -> bool {
        match (state, version) {
            (FileState::Absent, None) => true,
            (FileState::File { mode, work }, Some(version)) => {
                let is_same_mode =
                    *mode == version.mode || !self.repository.tracks_modes() && *mode != LINK && version.mode != LINK;
                *work == version.work && is_same_mode
            }
            _ => false,
        }
    }

    fn state_of(&self, file: &Planned) -> Result<FileState, Error> {
        let path = file.path.path();
        match obstacle(&self.root, &path)? {
            // A file of the plan is in the place of its folder, so nothing is below it.
            Some((place, _)) if !is_folder(&place) && self.places.contains(&place) => Ok(FileState::Absent),
            Some(_) => Ok(FileState::Other),
            None => self.state_at(&self.root.join(path)),
        }
    }

    fn state_at(&self, target: &Path) -> Result<FileState, Error> {
        let metadata = match fs::symlink_metadata(target) {
            Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(FileState::Absent);
            }
            answer => answer.map_err(Error::io("look at", target))?,
        };
        let (mode, bytes) = if metadata.is_symlink() {
            (LINK, fs::read_link(target).map(|target| target.into_os_string().into_encoded_bytes()))
        } else if metadata.is_file() {
            (mode_of(&metadata), fs::read(target))
        } else {
            return Ok(FileState::Other);
        };
        let bytes = bytes.map_err(Error::io("read", target))?;
        Ok(FileState::File { mode, work: self.id(&bytes)? })
    }

    fn id(&self, bytes: &[u8]) -> Result<String, Error> {
        identify(self.repository.hash(), objs::Kind::Blob, bytes).map(|id| id.to_string())
    }

    /// Removes a lock left by our `git update-ref`: it holds the id of our commit, which nobody else would write before
    /// the commit is on the branch.
    fn remove_dead_branch_lock(&self) -> Result<(), Error> {
        let Some(commit) = &self.intent.commit else { return Ok(()) };
        let Some(id) = &commit.id else { return Ok(()) };
        let lock = self.repository.common_dir().join(format!("refs/heads/{}.lock", commit.branch));
        let is_ours = || fs::read_to_string(&lock).is_ok_and(|text| text.trim_end() == id);
        // git may outlive the squad that called it for a moment.
        for _ in 0..100 {
            if !is_ours() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        disk::remove(&lock).map_err(Error::io("remove", &lock))
    }
}

/// Removes the drafts of dead commands.
fn remove_stale_drafts(repository: &Repository) -> Result<(), Error> {
    for entry in fs::read_dir(repository.state_folder()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with("index-") || name.starts_with("intent-")) {
            disk::remove(&entry.path()).map_err(Error::io("remove", entry.path()))?;
        }
    }
    Ok(())
}

/// Whether a file can be renamed between the folders and gets the same group in either.
#[cfg(unix)]
fn can_move_between(folder: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const HANDS_ITS_GROUP_DOWN: u32 = 0o2000;
    let facts = |path| fs::metadata(path).map(|facts| (facts.dev(), facts.mode() & HANDS_ITS_GROUP_DOWN)).ok();
    facts(folder).is_some_and(|(device, hands_down)| hands_down == 0 && facts(other) == Some((device, 0)))
}

#[cfg(not(unix))]
fn can_move_between(_folder: &Path, _other: &Path) -> bool {
    false
}
