//! The user's index and work tree: looking at them, adding new files to them, and taking those back.
//!
//! The index is changed by the `git` program only: it keeps the user's extensions, split and sparse indexes whole.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use gix::ObjectId;

use super::{error::Error, references::parse_id, repository::Repository, tree::check_path};

/// What the index holds below the folders that we are going to write to.
pub(super) struct Staged {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Entry {
    /// As staged; `hidden` if a sparse checkout keeps it out of the work tree.
    File { id: ObjectId, hidden: bool },
    /// A conflict, a submodule or a symbolic link.
    Other,
}

/// For more paths than these, git is asked for everything in their folders: an index has to be compared with each
/// pattern, and a command line has its limits.
const FEW: usize = 32;

impl Staged {
    pub(super) fn read(repository: &Repository, paths: &[&str]) -> Result<Self, Error> {
        let list = ["ls-files", "-t", "--stage", "-z", "--"];
        let call = if paths.len() <= FEW {
            let patterns: BTreeSet<String> = paths.iter().flat_map(|path| patterns(path)).collect();
            let call = repository.call(&["--no-literal-pathspecs", "--glob-pathspecs"]).arguments(&list);
            call.arguments(&patterns.into_iter().collect::<Vec<_>>())
        } else {
            let tops: BTreeSet<&str> = paths.iter().map(|path| path.split('/').next().unwrap_or(path)).collect();
            repository.call(&list).arguments(&tops.into_iter().collect::<Vec<_>>())
        };
        let answer = call.succeed()?;
        let mut entries = BTreeMap::new();
        for record in answer.stdout.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let (path, entry) = parse_entry(record, repository)
                .ok_or_else(|| Error::damaged(repository.git_dir(), "`git ls-files` answered in an unknown form"))?;
            entries.insert(path, entry);
        }
        Ok(Self { entries })
    }

    pub(super) fn get(&self, path: &str) -> Option<Entry> {
        self.entries.get(path).copied()
    }

    /// A file, link or submodule that stands where a folder above `path` is needed, or something below `path`.
    pub(super) fn in_the_way(&self, path: &str) -> Option<&str> {
        let above = path.match_indices('/').map(|(index, _)| &path[..index]);
        let above = above.filter_map(|folder| self.entries.get_key_value(folder)).map(|(name, _)| name.as_str()).next();
        above.or_else(|| {
            let below = format!("{path}/");
            let next = self.entries.range(below.clone()..).next()?.0;
            next.starts_with(&below).then_some(next)
        })
    }
}

/// What the index may hold at a path, below it, and in place of the folders above it; not what else is in those folders.
fn patterns(path: &str) -> Vec<String> {
    // A pattern, unlike a plain path, does not match what is below it, and an escaped character makes it one.
    let exactly = |path: &str| {
        let escaped = path.chars().flat_map(|character| {
            let escape = matches!(character, '*' | '?' | '[' | '\\').then_some('\\');
            escape.into_iter().chain([character])
        });
        let escaped: String = escaped.collect();
        if escaped.starts_with('\\') { escaped } else { format!("\\{escaped}") }
    };
    let above = path.match_indices('/').map(|(index, _)| exactly(&path[..index]));
    above.chain([exactly(path), format!("{}/**", exactly(path))]).collect()
}

/// `<tag> <mode> <id> <stage>\t<path>`
fn parse_entry(record: &[u8], repository: &Repository) -> Option<(String, Entry)> {
    let record = String::from_utf8_lossy(record);
    let (facts, path) = record.split_once('\t')?;
    let mut facts = facts.split(' ');
    let (tag, mode, id, stage) = (facts.next()?, facts.next()?, facts.next()?, facts.next()?);
    let id = parse_id(id.as_bytes(), repository.hash())?;
    let entry = match mode.starts_with("100") && stage == "0" {
        true => Entry::File { id, hidden: tag.eq_ignore_ascii_case("S") },
        false => Entry::Other,
    };
    Some((path.to_owned(), entry))
}

/// Adds files to the index; entries of other paths stay as they are.
pub(super) fn stage(repository: &Repository, files: &[(&str, ObjectId)]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let records = files.iter().map(|(path, id)| format!("100644 {id} 0\t{path}\0"));
    let call = repository.call(&["update-index", "-z", "--add", "--index-info"]);
    call.input(records.collect::<String>()).succeed().map(drop)
}

/// Gives files of the index other content; `None` takes them out.
pub(super) fn restage(repository: &Repository, files: &[(&str, Option<ObjectId>)]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let null = repository.hash().null();
    let records = files.iter().map(|(path, id)| match id {
        Some(id) => format!("100644 {id} 0\t{path}\0"),
        None => format!("0 {null} 0\t{path}\0"),
    });
    let call = repository.call(&["update-index", "-z", "--index-info"]);
    call.input(records.collect::<String>()).succeed().map(drop)
}

/// Whether index and work tree hold a file as the branch does, as far as git is concerned: line ends may differ.
pub(super) fn is_unchanged(repository: &Repository, path: &str) -> Result<bool, Error> {
    let call = repository.call(&["status", "--porcelain", "--untracked-files=no", "--", path]);
    Ok(call.variable("GIT_OPTIONAL_LOCKS", "0").succeed()?.stdout.is_empty())
}

/// The id that a file of the work tree would have in git, filters and line ends applied.
pub(super) fn stored(repository: &Repository, path: &str) -> Result<ObjectId, Error> {
    let answer = repository.call(&["hash-object", "--path", path, "--", path]).succeed()?;
    parse_id(&answer.stdout, repository.hash())
        .ok_or_else(|| Error::damaged(repository.git_dir(), "`git hash-object` answered in an unknown form"))
}

/// Takes files out of the index again that [`stage`] put there.
pub(super) fn unstage(repository: &Repository, files: &[(&str, ObjectId)]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let paths = files.iter().map(|(path, _)| format!("{path}\0"));
    let call = repository.call(&["update-index", "--force-remove", "-z", "--stdin"]);
    call.input(paths.collect::<String>()).succeed().map(drop)
}

/// What is at a path of the work tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Present {
    Nothing,
    Same,
    /// Something else; the text says what and where.
    Other(String),
}

/// Looks at every step of the way: a symbolic link would lead our file out of the work tree, a repository inside
/// this one has its own history.
pub(super) fn look(root: &Path, path: &str, bytes: &[u8]) -> Result<Present, Error> {
    let mut place = root.to_owned();
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        place.push(name);
        let metadata = match fs::symlink_metadata(&place) {
            Ok(metadata) => metadata,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Present::Nothing),
            Err(cause) => return Err(Error::io("look at", &place)(cause)),
        };
        let is_last = names.peek().is_none();
        let other = |what: &str| Ok(Present::Other(format!("{} {what}", shown(root, &place))));
        if metadata.is_symlink() {
            return other("is a symbolic link");
        }
        if is_last && !metadata.is_file() {
            return other("exists and is not a file");
        }
        if !is_last && !metadata.is_dir() {
            return other("is not a folder");
        }
        if !is_last && place.join(".git").exists() {
            return other("is a repository of its own");
        }
        if is_last {
            let content = fs::read(&place).map_err(Error::io("read", &place))?;
            return if content == bytes { Ok(Present::Same) } else { other("exists with other content") };
        }
    }
    Err(Error::BadPath { path: path.to_owned() })
}

fn shown(root: &Path, place: &Path) -> String {
    place.strip_prefix(root).unwrap_or(place).display().to_string()
}

/// Files and folders that we made in the work tree, so that they can be taken away again.
#[derive(Default)]
pub(super) struct Made {
    files: Vec<(PathBuf, Vec<u8>)>,
    folders: Vec<PathBuf>,
}

impl Made {
    /// Writes a new file, whole or not at all, and never over another.
    pub(super) fn write(&mut self, root: &Path, path: &str, bytes: &[u8]) -> Result<(), Error> {
        check_path(path)?;
        let target = root.join(path);
        let folder = target.parent().unwrap_or(root);
        self.make_folders(folder)?;
        let file = new_file(folder, bytes).map_err(Error::io("write", &target))?;
        file.persist_noclobber(&target).map_err(|failure| Error::io("write", &target)(failure.error))?;
        self.files.push((target, bytes.to_vec()));
        Ok(())
    }

    fn make_folders(&mut self, folder: &Path) -> Result<(), Error> {
        let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => self.folders.push(folder.to_owned()),
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(Error::io("create", folder)(cause)),
            }
        }
        Ok(())
    }

    /// Removes what we made, unless somebody has changed it or put something beside it.
    pub(super) fn take_back(self) {
        for (path, bytes) in &self.files {
            if fs::read(path).is_ok_and(|content| content == *bytes) {
                let _ = fs::remove_file(path);
            }
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Files of the work tree that gave way to what the index holds now. Dropped, they are gone.
#[derive(Default)]
pub(super) struct Aside {
    files: Vec<(PathBuf, tempfile::TempPath)>,
}

impl Aside {
    /// Moves a file out of the way, if it still holds these bytes. False: it does not, and it is where it was.
    pub(super) fn take(&mut self, place: &Path, bytes: &[u8]) -> Result<bool, Error> {
        let place = place.to_owned();
        let aside =
            temporary(place.parent().unwrap_or(&place)).map_err(Error::io("write beside", &place))?.into_temp_path();
        fs::rename(&place, &aside).map_err(Error::io("move", &place))?;
        // Or it looks as if a landing that was killed had left it behind.
        let _ = fs::File::open(&aside).and_then(|file| file.set_modified(std::time::SystemTime::now()));
        // Looked at where nobody opens it any more by its name.
        let is_same = fs::read(&aside).is_ok_and(|content| content == bytes);
        self.files.push((place, aside));
        if !is_same && let Some((place, aside)) = self.files.pop() {
            // Nothing that somebody wrote there meanwhile is overwritten: then both are kept.
            aside.persist_noclobber(&place).map_err(|failure| {
                let _ = failure.path.keep();
                Error::io("put back", &place)(failure.error)
            })?;
        }
        Ok(is_same)
    }

    pub(super) fn put_back(self) -> Result<(), Error> {
        self.files.into_iter().try_for_each(|(place, aside)| put_back(place, aside))
    }
}

/// Over what took its place.
fn put_back(place: PathBuf, aside: tempfile::TempPath) -> Result<(), Error> {
    aside.persist(&place).map_err(|failure| Error::io("put back", &place)(failure.error))
}

/// Writes files to the work tree as the index has them; nothing may be in their places, unless an option says so.
pub(super) fn check_out(repository: &Repository, options: &[&str], paths: &[&str]) -> Result<(), Error> {
    if paths.is_empty() {
        return Ok(());
    }
    let names = paths.iter().map(|path| format!("{path}\0"));
    let call = repository.call(&["checkout-index", "-u", "-z", "--stdin"]).arguments(options);
    call.input(names.collect::<String>()).succeed().map(drop)
}

pub(super) fn new_file(folder: &Path, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    let mut file = temporary(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    remove_left_behind(folder);
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder)
}

/// What our unfinished files are called.
const PREFIX: &str = ".squad-";
const SUFFIX: &str = ".tmp";

/// Unfinished files of a landing that was killed. One that is being written now is younger.
fn remove_left_behind(folder: &Path) {
    const OLD: std::time::Duration = std::time::Duration::from_secs(60);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        if is_ours && modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > OLD)) {
            // Left for the next time, at worst.
            let _ = fs::remove_file(entry.path());
        }
    }
}
