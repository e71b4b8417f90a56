//! Reading the user's index and work tree.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use gix::ObjectId;

use super::{
    error::Error,
    mode::{LINK, PROGRAM},
    path::obstacle,
    references::parse_id,
    repository::Repository,
};
use crate::model::IntoSet;

/// The index entries at, above and below the paths that we are going to write.
pub(super) struct Staged {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Entry {
    /// A staged file; `hidden` if a sparse checkout omits it from the work tree.
    File { id: ObjectId, executable: bool, hidden: bool },
    /// A symbolic link.
    Link { id: ObjectId },
    /// A conflict or a submodule.
    Other,
}

/// With more paths than this, we ask git for everything in their top folders: git compares the index with each pattern,
/// and a command line has a size limit.
const MAX_PATTERNS: usize = 32;

impl Staged {
    pub(super) fn read(repository: &Repository, paths: &[&str]) -> Result<Self, Error> {
        let list = ["ls-files", "-t", "--stage", "-z", "--"];
        let call = if paths.len() <= MAX_PATTERNS {
            let patterns: BTreeSet<String> = paths.iter().flat_map(|path| patterns(path)).into_set();
            let call = repository.call(&["--no-literal-pathspecs", "--glob-pathspecs"]).arguments(&list);
            call.arguments(&patterns.into_iter().collect::<Vec<_>>())
        } else {
            repository.call(&list).arguments(&top_folders(paths).into_iter().collect::<Vec<_>>())
        };
        let answer = call.succeed()?;
        let mut entries = BTreeMap::new();
        for record in answer.records() {
            let (path, entry) = parse_entry(record, repository)
                .ok_or_else(|| Error::damaged(repository.git_dir(), "`git ls-files` answered in an unknown form"))?;
            entries.insert(path, entry);
        }
        Ok(Self { entries })
    }

    pub(super) fn get(&self, path: &str) -> Option<Entry> {
        self.entries.get(path).copied()
    }

    /// Files, links and submodules in place of a folder above `path`, and entries below `path`.
    pub(super) fn in_the_way<'s>(&'s self, path: &str) -> impl Iterator<Item = &'s str> {
        let above = path.match_indices('/').filter_map(|(index, _)| self.entries.get_key_value(&path[..index]));
        let above: Vec<&str> = above.map(|(name, _)| name.as_str()).collect();
        let below = format!("{path}/");
        let entries = self.entries.range(below.clone()..).map(|(name, _)| name.as_str());
        above.into_iter().chain(entries.take_while(move |name| name.starts_with(&below)))
    }
}

/// Patterns for a path, everything below it and the names of the folders above it, but not the other contents of those
/// folders.
fn patterns(path: &str) -> Vec<String> {
    // Unlike a plain path, a pattern does not match the entries below it; an escaped character makes it a pattern.
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
    let entry = match mode {
        _ if stage != "0" => Entry::Other,
        LINK => Entry::Link { id },
        mode if mode.starts_with("100") => {
            Entry::File { id, executable: mode == PROGRAM, hidden: tag.eq_ignore_ascii_case("S") }
        }
        _ => Entry::Other,
    };
    Some((path.to_owned(), entry))
}

/// Files that `git status` reports as changed in index or work tree; line ends may differ. May include other paths than
/// the requested ones.
pub(super) fn changed(repository: &Repository, paths: &[&str]) -> Result<BTreeSet<String>, Error> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let requested: BTreeSet<&str> =
        if paths.len() <= MAX_PATTERNS { paths.iter().copied().collect() } else { top_folders(paths) };
    let requested: Vec<&str> = requested.into_iter().collect();
    let call = repository.call(&["status", "--porcelain", "-z", "--no-renames", "--untracked-files=no"]);
    // Of a submodule only its commit counts: git runs in it otherwise, with a configuration that an agent may have written.
    let call = call.arguments(&["--ignore-submodules=dirty", "--"]);
    let answer = call.arguments(&requested).variable("GIT_OPTIONAL_LOCKS", "0").succeed()?;
    // `XY path`
    let records = answer.stdout.split(|byte| *byte == 0).filter_map(|record| record.get(3..));
    Ok(records.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}

/// The first components of paths.
fn top_folders<'p>(paths: &[&'p str]) -> BTreeSet<&'p str> {
    paths.iter().map(|path| path.split('/').next().unwrap_or(path)).into_set()
}

/// The bytes git would write to the work tree, with line ends and filters applied.
pub(super) fn checked_out(repository: &Repository, path: &str, blob: ObjectId) -> Result<Vec<u8>, Error> {
    let call = repository.call(&["cat-file", "--filters", &format!("--path={path}"), &blob.to_string()]);
    Ok(call.succeed()?.stdout)
}

/// What exists at a path of the work tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Existing {
    Nothing,
    Same,
    /// A file with other content; the text says where.
    Differs(String),
    /// Something else; the text says what and where.
    Other(String),
}

pub(super) fn inspect(root: &Path, path: &str, bytes: &[u8]) -> Result<Existing, Error> {
    let other = |place: &Path, what: &str| Ok(Existing::Other(format!("{} {what}", relative(root, place))));
    if let Some((folder, what)) = obstacle(root, Path::new(path))? {
        return other(&folder, what);
    }
    let file = root.join(path);
    match fs::symlink_metadata(&file) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Existing::Nothing),
        Err(cause) => return Err(Error::io("look at", &file)(cause)),
        Ok(metadata) if metadata.is_symlink() => return other(&file, "is a symbolic link"),
        Ok(metadata) if !metadata.is_file() => return other(&file, "exists and is not a file"),
        Ok(_) => {}
    }
    let content = fs::read(&file).map_err(Error::io("read", &file))?;
    let differs = || Existing::Differs(format!("{} exists with other content", relative(root, &file)));
    Ok(if content == bytes { Existing::Same } else { differs() })
}

pub(super) fn relative(root: &Path, current: &Path) -> String {
    current.strip_prefix(root).unwrap_or(current).display().to_string()
}
