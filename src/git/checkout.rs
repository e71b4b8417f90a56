//! Looking at the user's index and work tree.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use gix::ObjectId;

use super::{error::Error, references::parse_id, repository::Repository};

/// What the index holds below the folders that we are going to write to.
pub(super) struct Staged {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Entry {
    /// As staged; `hidden` if a sparse checkout keeps it out of the work tree.
    File { id: ObjectId, executable: bool, hidden: bool },
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
            repository.call(&list).arguments(&tops(paths).into_iter().collect::<Vec<_>>())
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
        true => Entry::File { id, executable: mode == "100755", hidden: tag.eq_ignore_ascii_case("S") },
        false => Entry::Other,
    };
    Some((path.to_owned(), entry))
}

/// Those files that index or work tree do not hold as the branch does, as far as git is concerned: line ends may differ.
/// Of the paths that are asked for, and maybe of others.
pub(super) fn changed(repository: &Repository, paths: &[&str]) -> Result<BTreeSet<String>, Error> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let asked: BTreeSet<&str> = if paths.len() <= FEW { paths.iter().copied().collect() } else { tops(paths) };
    let asked: Vec<&str> = asked.into_iter().collect();
    let call = repository.call(&["status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--"]);
    let answer = call.arguments(&asked).variable("GIT_OPTIONAL_LOCKS", "0").succeed()?;
    // `XY path`
    let records = answer.stdout.split(|byte| *byte == 0).filter_map(|record| record.get(3..));
    Ok(records.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}

/// The first folders of paths.
fn tops<'p>(paths: &[&'p str]) -> BTreeSet<&'p str> {
    paths.iter().map(|path| path.split('/').next().unwrap_or(path)).collect()
}

/// The bytes that git would write to the work tree, line ends and filters applied.
pub(super) fn checked_out(repository: &Repository, path: &str, blob: ObjectId) -> Result<Vec<u8>, Error> {
    let call = repository.call(&["cat-file", "--filters", &format!("--path={path}"), &blob.to_string()]);
    Ok(call.succeed()?.stdout)
}

/// What is at a path of the work tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Present {
    Nothing,
    Same,
    /// A file with other content; the text says where.
    Differs(String),
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
            let differs = || Present::Differs(format!("{} exists with other content", shown(root, &place)));
            return Ok(if content == bytes { Present::Same } else { differs() });
        }
    }
    Err(Error::BadPath { path: path.to_owned() })
}

fn shown(root: &Path, place: &Path) -> String {
    place.strip_prefix(root).unwrap_or(place).display().to_string()
}
