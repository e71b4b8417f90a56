//! The user's projects with a team: an index of where they are, in the user's data folder.
//!
//! ```text
//! squad/projects/HASH.json   one project: its path and its id; HASH is that of the path
//! .git/squad/project         the project's id, which goes where the repository goes
//! ```
//!
//! The index only says where to look: deleting it costs nothing that `squad squads --scan DIR` does not find again. Each
//! project has a file of its own, so that writers need no lock. A path below the user's home is stored as `~/…`: it holds
//! when the home folder moves.

use std::collections::VecDeque;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::env::files::{read_regular, replace};
use crate::env::{real, unique_id};
use crate::error::Failure;
use crate::model::{Sort, from_json, list, printable_line, to_json};
use crate::ops::Workspace;
use crate::ops::team::workspace::{below, project_path};
use crate::store::TeamFolder;

/// A file of the index is smaller.
const LARGEST: u64 = 16 * 1024;
/// The length of an id and of a file's name, in hex digits.
const ID: usize = 32;
/// An error names no more projects.
const MOST_NAMED: usize = 10;
/// A scan looks into no more folders.
const MOST_SCANNED: usize = 200_000;

/// A project of the index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KnownProject {
    /// Its root.
    pub(crate) path: PathBuf,
    pub(crate) state: Found,
    id: Option<String>,
    file: PathBuf,
}

/// Whether a project is where the index has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    Here,
    /// The same repository is at another path of the index.
    Moved(PathBuf),
    Gone,
}

#[derive(Serialize, Deserialize)]
struct IndexFile {
    path: String,
    /// `None`: the repository's own folder could not be written.
    id: Option<String>,
}

/// What a scan found.
#[derive(Debug, PartialEq)]
pub(crate) struct Scan {
    pub(crate) added: usize,
    /// Projects that are no longer where the index had them.
    pub(crate) forgotten: Vec<PathBuf>,
    /// False: there are more folders than a scan looks into.
    pub(crate) is_whole: bool,
}

/// Adds a project to the index, unless it is there: that costs looking for one file. Nothing depends on it, so a failure
/// is only logged.
pub(in crate::ops) fn remember(env: &Env, workspace: &Workspace) {
    let Some((folder, path)) = env.user_data().zip(indexed_path(workspace)) else { return };
    if let Err(error) = add(env, &folder.join("projects"), project_id(workspace), &path) {
        tracing::debug!("{} cannot be added to the index of projects: {error}", path.display());
    }
}

/// Returns whether it is new.
fn add(env: &Env, folder: &Path, id: Option<String>, path: &Path) -> std::io::Result<bool> {
    let path = stored(env, path);
    let file = folder.join(format!("{}.json", hash(path.as_bytes())));
    let known = read_regular(&file, LARGEST).and_then(|bytes| from_json::<IndexFile>(bytes).ok());
    let project = IndexFile { path, id };
    // Another project may have taken the place of the one that was there.
    if known.is_some_and(|known| known.id == project.id) {
        return Ok(false);
    }
    replace(&file, to_json(&project)?.as_bytes())?;
    Ok(true)
}

/// The path of a workspace's project. `None`: there is no team, or it is another work tree's. In a linked work tree it is
/// the project of the main one, if that has the team, too.
fn indexed_path(workspace: &Workspace) -> Option<PathBuf> {
    let folder = &workspace.folder;
    if folder.is_borrowed() || !folder.is_there() {
        return None;
    }
    let in_main = workspace.repository.main_work_dir().map(|main| {
        let place = project_path(folder, &workspace.work_dir);
        if place.is_empty() { real(main) } else { real(main).join(place) }
    });
    in_main.filter(|root| TeamFolder::of(root).is_there()).or_else(|| Some(folder.root.clone()))
}

/// Whether somebody has needed this project's id before.
pub(super) fn has_project_id(workspace: &Workspace) -> bool {
    id_file(workspace).exists()
}

/// Stays the same when the repository moves. A repository that has none gets one.
pub(super) fn project_id(workspace: &Workspace) -> Option<String> {
    let new = || {
        let new = unique_id().simple().to_string();
        replace(&id_file(workspace), new.as_bytes()).ok().map(|()| new)
    };
    known_id(workspace).or_else(new).map(|repository| id_in(workspace, &repository))
}

fn id_file(workspace: &Workspace) -> PathBuf {
    workspace.local().join("project")
}

/// A repository may hold several teams.
fn id_in(workspace: &Workspace, repository: &str) -> String {
    below(repository, &project_path(&workspace.folder, &workspace.work_dir))
}

/// The repository's id, if it has one.
fn known_id(workspace: &Workspace) -> Option<String> {
    let is_id = |text: &String| text.len() == ID && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    read_regular(&id_file(workspace), LARGEST).and_then(|bytes| String::from_utf8(bytes).ok()).filter(is_id)
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..ID].to_owned()
}

fn home(env: &Env) -> Option<PathBuf> {
    env.variable("HOME").map(|home| real(Path::new(home))).filter(|home| home.is_absolute())
}

fn stored(env: &Env, path: &Path) -> String {
    match home(env).and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(inner) => Path::new("~").join(inner).display().to_string(),
        None => path.display().to_string(),
    }
}

/// Replaces the user's home by `~`, for people.
pub(crate) fn shown(env: &Env, path: &Path) -> String {
    printable_line(&stored(env, path))
}

fn expanded(env: &Env, stored: &str) -> Option<PathBuf> {
    let path = match Path::new(stored).strip_prefix("~") {
        Ok(inner) => home(env)?.join(inner),
        Err(_) => PathBuf::from(stored),
    };
    // Anybody may have written the file; what it names is only read, like a path that was typed.
    path.is_absolute().then_some(path)
}

/// The projects of the index, by path.
pub(crate) fn all(env: &Env) -> Vec<KnownProject> {
    let folder = env.user_data().map(|folder| folder.join("projects"));
    let files = folder.into_iter().flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
    let read = |file: PathBuf| {
        let IndexFile { path, id, .. } = from_json(read_regular(&file, LARGEST)?).ok()?;
        let path = expanded(env, &path)?;
        let state = if TeamFolder::of(&path).is_there() { Found::Here } else { Found::Gone };
        Some(KnownProject { path, state, id, file })
    };
    let json = files.filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    let mut all: Vec<KnownProject> = json.filter_map(read).collect();
    all.stable_sort_by(|one, other| one.path.cmp(&other.path));
    all.dedup_by(|one, other| one.path == other.path);
    let here: Vec<_> = all.iter().filter(|known| known.state == Found::Here).cloned().collect();
    for gone in all.iter_mut().filter(|known| known.state == Found::Gone && known.id.is_some()) {
        if let Some(now) = here.iter().find(|here| here.id == gone.id) {
            gone.state = Found::Moved(now.path.clone());
        }
    }
    all
}

impl KnownProject {
    /// The name of its folder.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// The end of its path, of so many parts, with `/`.
    fn end(&self, parts: usize) -> String {
        let names = self.path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        let names: Vec<String> = names.collect();
        names[names.len().saturating_sub(parts)..].join("/")
    }

    fn is_named(&self) -> bool {
        !matches!(self.state, Found::Moved(_))
    }

    /// Whether a name, or the end of a path, means this project.
    fn goes_by(&self, name: &str) -> bool {
        let name = name.trim_end_matches('/');
        self.end(name.split('/').count()).eq_ignore_ascii_case(name)
    }

    /// The shortest end of its path that means no other of these projects.
    pub(crate) fn handle(&self, all: &[Self]) -> String {
        let is_unique = |end: &String| {
            let others = all.iter().filter(|other| other.path != self.path && other.is_named());
            !others.into_iter().any(|other| other.goes_by(end))
        };
        let ends = (1..=self.path.components().count()).map(|parts| self.end(parts));
        { ends }.find(is_unique).unwrap_or_else(|| self.path.display().to_string())
    }
}

/// The one project of this name: that of its folder, or the end of its path.
pub(crate) fn find(env: &Env, name: &str) -> Result<KnownProject, Failure> {
    let all = all(env);
    let of_name: Vec<&KnownProject> = all.iter().filter(|known| known.goes_by(name)).collect();
    // One whose disk is away for now has its name, too.
    let named: Vec<&KnownProject> = of_name.iter().copied().filter(|known| known.is_named()).collect();
    match (&named[..], &of_name[..]) {
        ([only], _) if only.state == Found::Here => Ok((*only).clone()),
        ([] | [_], [gone, ..]) => Err(match &gone.state {
            Found::Moved(to) => {
                let to = all.iter().find(|known| known.path == *to).unwrap_or(gone);
                Failure::usage(format!("`{name}` was {} and is now {}", shown(env, &gone.path), shown(env, &to.path)))
                    .hint(format!("use `{}`", to.handle(&all)))
            }
            _ => Failure::usage(format!("`{name}` was {}, where there is no team any more", shown(env, &gone.path)))
                .hint("`squad squads --scan DIR` finds a project that has moved below DIR"),
        }),
        (_, []) => {
            let here = all.iter().filter(|known| known.state == Found::Here);
            let handles = here.take(MOST_NAMED).map(|known| printable_line(&known.handle(&all)));
            Err(Failure::usage(format!("you have no project called `{name}`")).hint(match list(handles).as_str() {
                "" => "`squad squads --scan DIR` looks for your projects below DIR".to_owned(),
                names => format!("there are {names}; `squad squads --scan DIR` looks for more below DIR"),
            }))
        }
        (several, _) => {
            let handles = list(several.iter().map(|known| format!("`{}`", known.handle(&all))));
            Err(Failure::usage(format!("`{name}` is ambiguous: {handles}")).hint("use more of the path"))
        }
    }
}

/// Looks for projects below a folder, and forgets those of the index that are gone. Follows no links, looks into no hidden
/// folder nor into squad's own, where agents' clones are, and writes nothing to what it finds.
pub(crate) fn scan(env: &Env, directory: &Path) -> Result<Scan, Failure> {
    let root = real(directory);
    if !root.is_dir() {
        return Err(Failure::usage(format!("there is no folder {}", directory.display())).hint("--scan names a folder"));
    }
    let unset = || Failure::team("cannot tell where your data folder is: neither XDG_DATA_HOME nor HOME is set");
    let folder = env.user_data().ok_or_else(unset)?.join("projects");
    let unwritable = |error| Failure::failed(format!("cannot be written: {error}")).at(folder.display());
    let mut scan = Scan { added: 0, forgotten: Vec::new(), is_whole: true };
    env.damage.activity().begin(format!("looking for projects below {}", shown(env, &root)));
    let own = env.user_state().as_deref().map(real);
    let mut waiting = VecDeque::from([root]);
    let mut looked = 0;
    while let Some(place) = waiting.pop_front() {
        looked += 1;
        if looked > MOST_SCANNED {
            scan.is_whole = false;
            break;
        }
        if own.as_ref().is_some_and(|own| place.starts_with(own)) {
            continue;
        }
        // What lies in a project with a team is the project's, as the teams in a project's tests are.
        if TeamFolder::of(&place).is_there()
            && let Ok(workspace) = Workspace::find(env, &place)
            && let Some(path) = indexed_path(&workspace)
        {
            let id = known_id(&workspace).map(|id| id_in(&workspace, &id));
            scan.added += usize::from(add(env, &folder, id, &path).map_err(unwritable)?);
            continue;
        }
        let entries = fs::read_dir(&place).into_iter().flatten().flatten();
        let is_searched = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            let is_hidden = name.to_string_lossy().starts_with('.') || name == "node_modules";
            !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
        };
        waiting.extend(entries.filter(is_searched).map(|entry| entry.path()));
    }
    for gone in all(env).into_iter().filter(|known| known.state != Found::Here) {
        fs::remove_file(&gone.file).map_err(unwritable)?;
        scan.forgotten.push(gone.path);
    }
    Ok(scan)
}
