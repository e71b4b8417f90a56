//! Reads a team folder from disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::env::files::read_within;
use crate::env::real;
use crate::model::{Problem, Severity, Sort, Source};
use crate::parse::{Encoding, Files, KNOWLEDGE, holds_decisions, is_record_of_decisions, linked_files, text_of};
use crate::policy::PathScope;

/// The names of team folders; the first wins if both exist.
pub(crate) const FOLDERS: [&str; 2] = [".squad", ".ai-team"];

/// The files of a team, in addition to those its roster and routing link to: these files, team files in these folders,
/// and decision files, see [`holds_decisions`].
const FILES: [&str; 3] = ["team.md", "routing.md", "ceremonies.md"];
const FOLDERS_OF_FILES: [&str; 10] =
    ["agents", "archive", "archived", "charters", "roles", DECISIONS, KNOWLEDGE, "identity", "skills", "casting"];

const DECISIONS: &str = "decisions";

const ROSTER: &str = "team.md";
/// Names that people use for the roster.
const ROSTER_NAMES: [&str; 5] = ["team.md", "roster.md", "members.md", "squad.md", "agents.md"];

/// The settings files.
const CONFIGURATION: [&str; 2] = ["config.toml", "config.json"];

/// The problem code for a file or folder that exists but cannot be read.
pub(crate) const UNREADABLE: &str = "unreadable";

/// The maximum folder depth that is read: team folders are at most four deep.
const MAX_DEPTH: usize = 6;

const MIB: u64 = 1024 * 1024;

/// The size limit of a file in bytes, by its path from the team folder. Files that grow with records may be larger than
/// those that people write for agents: the largest decision file found in the wild has 1.2 MB.
pub(crate) fn largest(path: &str) -> u64 {
    let is_record = is_record_of_decisions(path) || path.ends_with("/history.md");
    if is_record { 16 * MIB } else { MIB }
}

const LINK_OUT: &str = "is a link out of the project's files";

/// The location of a team.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TeamFolder {
    /// The project's root, where the team works.
    pub(crate) root: PathBuf,
    pub(crate) name: &'static str,
    /// The folder itself. It is in the project's root, unless a linked work tree uses the main one's team.
    pub(crate) path: PathBuf,
}

impl TeamFolder {
    /// The one in a project's root, or where it would be.
    pub(crate) fn of(root: &Path) -> Self {
        Self::in_root(root).unwrap_or_else(|| Self::expected(root))
    }

    /// Where a team would be, whether or not it exists.
    pub(crate) fn expected(root: &Path) -> Self {
        Self { root: root.to_owned(), name: FOLDERS[0], path: root.join(FOLDERS[0]) }
    }

    fn in_root(root: &Path) -> Option<Self> {
        let mut folders = FOLDERS.iter().map(|name| Self { root: root.to_owned(), name, path: root.join(name) });
        // What a revert leaves of a folder must not hide the team in the other.
        let has_roster = |folder: &Self| folder.path.join(ROSTER).is_file();
        folders.clone().find(has_roster).or_else(|| folders.find(Self::is_there))
    }

    /// Whether there is a team, and not only a place for one.
    pub(crate) fn is_there(&self) -> bool {
        self.path.is_dir() && !has_only_roles(&self.path)
    }

    /// Whether the team folder is in another work tree.
    pub(crate) fn is_borrowed(&self) -> bool {
        self.path != self.root.join(self.name)
    }
}

/// Whether a folder holds role files and nothing else of a team: `squad mcp` offers them without one.
pub(crate) fn has_only_roles(folder: &Path) -> bool {
    let is_role = |entry: fs::DirEntry| match entry.file_name().to_str() {
        Some("roles") => true,
        Some("agents") => {
            let below = fs::read_dir(entry.path());
            below.is_ok_and(|mut below| below.all(|entry| entry.is_ok_and(|entry| !entry.path().is_dir())))
        }
        _ => false,
    };
    let mut entries = fs::read_dir(folder).into_iter().flatten().peekable();
    entries.peek().is_some() && entries.all(|entry| entry.is_ok_and(is_role))
}

/// The nearest team folder, searching from `start` upwards to the work tree's root. A linked work tree without one uses
/// the main work tree's.
pub(crate) fn locate(start: &Path, work_dir: &Path, main_work_dir: Option<&Path>) -> Option<TeamFolder> {
    let upwards = start.ancestors().take_while(|folder| folder.starts_with(work_dir));
    upwards.into_iter().find_map(TeamFolder::in_root).or_else(|| {
        let borrowed = TeamFolder::in_root(main_work_dir.filter(|main| *main != work_dir)?)?;
        Some(TeamFolder { root: work_dir.to_owned(), ..borrowed })
    })
}

/// Reads the files of a team. An existing file that cannot be read is an error, never an empty file.
pub(crate) fn read(team: &TeamFolder) -> (Files, Vec<Problem>) {
    let mut reader = TeamReader::new(team);
    FILES.into_iter().chain(CONFIGURATION).for_each(|name| reader.file(name));
    reader.decisions();
    linked_files(&reader.files).iter().for_each(|name| reader.file(name));
    FOLDERS_OF_FILES.into_iter().for_each(|name| reader.folder(name, 1));
    if !reader.files.texts.contains_key(ROSTER) {
        reader.warn_about_roster_names();
    }
    let own = team.path.parent().unwrap_or(&team.root);
    if FOLDERS.iter().filter(|name| own.join(name).is_dir()).count() > 1 {
        let other = FOLDERS.into_iter().find(|name| *name != team.name).unwrap_or(FOLDERS[1]);
        let message = match team.name == FOLDERS[0] {
            true => format!("`{}/` is used and `{other}/` is not", team.name),
            false => format!("`{}/` is used, since `{other}/` has no {ROSTER}", team.name),
        };
        let hint = match team.name == FOLDERS[0] {
            true => "move what you still need and delete the old folder",
            false => "`squad adopt` makes one of them; or delete what is left in the other",
        };
        reader.problems.push(Problem::warning(Source::new(other, 0), "two-team-folders", message).hint(hint));
    }
    (reader.files, reader.problems)
}

/// Reads the files of a team, without the files of single decisions, whose number only grows.
pub(crate) fn read_but_decisions(team: &TeamFolder) -> (Files, Vec<Problem>) {
    let mut reader = TeamReader::new(team);
    FILES.into_iter().chain(CONFIGURATION).for_each(|name| reader.file(name));
    reader.decisions();
    linked_files(&reader.files).iter().for_each(|name| reader.file(name));
    let is_of_records = |name: &&str| [DECISIONS, KNOWLEDGE].contains(name);
    FOLDERS_OF_FILES.into_iter().filter(|name| !is_of_records(name)).for_each(|name| reader.folder(name, 1));
    reader.folder(&format!("{DECISIONS}/inbox"), 2);
    (reader.files, reader.problems)
}

/// Reads only what settings come from: the settings files and the charters.
pub(crate) fn read_configuration(team: &TeamFolder) -> (Files, Vec<Problem>) {
    let mut reader = TeamReader::new(team);
    CONFIGURATION.into_iter().for_each(|name| reader.file(name));
    let problems = reader.problems.clone();
    reader.folder("agents", 1);
    (reader.files.configuration(), problems)
}

/// Whether a file is part of a team, by its path from the team folder. Files that roster and routing link to are not
/// covered.
pub(crate) fn is_team_file(path: &str) -> bool {
    match path.split_once('/') {
        None => FILES.contains(&path) || CONFIGURATION.contains(&path) || holds_decisions(path),
        Some(_) if path.matches('/').count() > MAX_DEPTH => false,
        Some(("agents", _)) => is_agent_file(path),
        Some(("archive" | "archived" | KNOWLEDGE, _)) => holds_decisions(path),
        Some(("charters" | "roles", file)) => !file.contains('/') && file.ends_with(".md"),
        Some(("decisions", _)) => path.to_ascii_lowercase().ends_with(".md"),
        Some(("identity", _)) => path.ends_with(".md"),
        Some(("skills", _)) => path.to_ascii_lowercase().ends_with("/skill.md"),
        Some(("casting", file)) => file == "registry.json",
        Some(_) => false,
    }
}

/// Whether roster or routing may link to a file.
pub(crate) fn may_be_linked(path: &str) -> bool {
    path.ends_with(".json") || path.to_ascii_lowercase().ends_with("/charter.md")
}

/// `agents/<folder>/charter.md` in any case, `agents/<folder>/history.md` and role files such as `agents/<name>.md`.
fn is_agent_file(path: &str) -> bool {
    let depth = path.matches('/').count();
    path.to_ascii_lowercase().ends_with("/charter.md")
        || path.ends_with("/history.md")
        || (depth == 1 && path.ends_with(".md") && !path.starts_with("agents/history"))
}

/// A file's content, or why it was not read.
pub(crate) type Bytes = Result<Vec<u8>, String>;

/// The files with this ending directly in a folder, sorted by name without it. Links are followed only within the folder and
/// the project. A file that cannot be read has the reason instead of content.
pub(crate) fn files_in(folder: &Path, project: &Path, ending: &str) -> io::Result<Vec<(String, Bytes)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let roots = [folder, project].map(real);
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap_or_default();
        let Some(name) = name.strip_suffix(ending).filter(|name| !name.is_empty() && !name.starts_with('.')) else {
            continue;
        };
        if path.is_dir() {
            continue;
        }
        let read = match dunce::canonicalize(&path) {
            Ok(target) if !roots.iter().any(|root| is_own(&target, root)) => Err(LINK_OUT.to_owned()),
            Ok(target) if !target.is_file() => Err("is not a file".to_owned()),
            _ => match read_within(&path, MIB) {
                Err(error) => Err(error.to_string()),
                Ok(Err(size)) => Err(format!("has {size} bytes; only {MIB} are read")),
                Ok(Ok(bytes)) => Ok(bytes),
            },
        };
        files.push((name.to_owned(), read));
    }
    files.stable_sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(files)
}

/// Fails if a path of the team exists and leads out of the project's own files.
pub(crate) fn require_own(team: &TeamFolder, path: &Path) -> Result<(), String> {
    match dunce::canonicalize(path) {
        Ok(target) if !is_own(&target, &project_of(team)) => Err(LINK_OUT.to_owned()),
        _ => Ok(()),
    }
}

/// Whether a resolved path is inside the project and outside of git directories.
fn is_own(target: &Path, project: &Path) -> bool {
    !matches!(PathScope::of(target, project), PathScope::Outside | PathScope::Git)
}

/// The folder that contains the team folder, with links resolved.
fn project_of(team: &TeamFolder) -> PathBuf {
    real(team.path.parent().unwrap_or(&team.root))
}

struct TeamReader {
    base: PathBuf,
    project: PathBuf,
    files: Files,
    problems: Vec<Problem>,
}

impl TeamReader {
    fn new(team: &TeamFolder) -> Self {
        Self {
            base: team.path.clone(),
            project: project_of(team),
            files: Files { folder: team.name.to_owned(), ..Files::default() },
            problems: Vec::new(),
        }
    }

    /// Reads the decision files in the team folder itself. If the folder cannot be listed, its files report that.
    fn decisions(&mut self) {
        let entries = fs::read_dir(&self.base).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| holds_decisions(name));
        names.sort();
        names.iter().for_each(|name| self.file(name));
    }

    fn folder(&mut self, name: &str, depth: usize) {
        if fs::symlink_metadata(self.base.join(name)).is_ok_and(|metadata| metadata.is_symlink())
            && let Ok(target) = dunce::canonicalize(self.base.join(name))
        {
            if !is_own(&target, &self.project) {
                let message = format!("{LINK_OUT} and is not read");
                return self.push(Severity::Warning, name, "link-outside", message);
            }
            let above = self.base.join(name).parent().and_then(|above| dunce::canonicalize(above).ok());
            if above.is_some_and(|above| above.starts_with(&target)) {
                let message = "is a link to a folder above it and is not followed".to_owned();
                return self.push(Severity::Warning, name, "link-loop", message);
            }
        }
        let entries = match fs::read_dir(self.base.join(name)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.unreadable(name, &error),
        };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        for inner in names {
            let path = format!("{name}/{inner}");
            if self.base.join(&path).is_dir() {
                if depth < MAX_DEPTH {
                    self.folder(&path, depth + 1);
                }
            } else if is_team_file(&path) {
                self.file(&path);
            }
        }
    }

    fn file(&mut self, path: &str) {
        let full = self.base.join(path);
        let target = match dunce::canonicalize(&full) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if full.is_symlink() {
                    self.push(Severity::Warning, path, "link-broken", "is a dangling link".to_owned());
                }
                return;
            }
            Err(error) => return self.unreadable(path, &error),
        };
        if !is_own(&target, &self.project) {
            let message = format!("{LINK_OUT} and is not read");
            return self.push(Severity::Warning, path, "link-outside", message);
        }
        // Reading a pipe could block for ever.
        if !target.is_file() {
            return self.push(Severity::Warning, path, "not-a-file", "is not a file and is not read".to_owned());
        }
        match read_within(&target, largest(path)) {
            Err(error) => self.unreadable(path, &error),
            Ok(Err(size)) => self.too_large(path, size),
            Ok(Ok(bytes)) => {
                let (text, encoding) = text_of(bytes);
                let taken = match encoding {
                    Encoding::Utf8 => None,
                    Encoding::Utf16 => Some("UTF-16"),
                    Encoding::Windows1252 => Some("Windows-1252 where it is none"),
                };
                if let Some(taken) = taken {
                    let message = format!("is not UTF-8, and is read as {taken}");
                    self.push(Severity::Note, path, "not-utf8", message);
                }
                self.files.texts.insert(path.to_owned(), text);
            }
        }
    }

    /// Warns about files that may be the roster under another name.
    fn warn_about_roster_names(&mut self) {
        let Ok(entries) = fs::read_dir(&self.base) else { return };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        let is_near = |name: &&String| *name != ROSTER && ROSTER_NAMES.contains(&name.to_lowercase().as_str());
        for name in names.iter().filter(is_near) {
            self.push(Severity::Warning, name, "roster-elsewhere", format!("is not read; the roster is {ROSTER}"));
            if let Some(problem) = self.problems.last_mut() {
                problem.hint = Some(format!("rename it to {ROSTER}"));
            }
        }
    }

    fn unreadable(&mut self, path: &str, error: &io::Error) {
        self.push(Severity::Error, path, UNREADABLE, format!("cannot be read: {error}"));
        if let Some(problem) = self.problems.last_mut() {
            problem.hint = Some("check who owns it and its permissions".to_owned());
        }
    }

    fn too_large(&mut self, path: &str, size: u64) {
        let largest = largest(path) / MIB;
        let message = format!("is not read: it has {size} bytes, and squad reads up to {largest} MiB of such a file");
        self.push(Severity::Error, path, UNREADABLE, message);
        if let Some(problem) = self.problems.last_mut() {
            let hint = if is_record_of_decisions(path) {
                "move old entries to an archive: those are read too"
            } else {
                "keep in it what agents must be told; move reference material to files of its own"
            };
            problem.hint = Some(hint.to_owned());
        }
    }

    fn push(&mut self, severity: Severity, path: &str, code: &'static str, message: String) {
        let source = Source::new(format!("{}/{path}", self.files.folder), 0);
        self.problems.push(Problem::new(severity, source, code, message));
    }
}
