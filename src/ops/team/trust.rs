//! What a repository brings that would act, reach elsewhere or loosen something, and what the user has approved of it.
//!
//! It is inert until the user approves it, and again once it changes: a setting's values, or a file of the repository that
//! they name. Approvals are kept for the repository's place, so a copy has none.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::env::{Env, files, real};
use crate::error::Failure;
use crate::model::{IntoSet, Problem, Severity, Source, from_json};
use crate::ops::Workspace;
use crate::ops::team::layers::team_layers;
use crate::ops::team::projects::{has_project_id, project_id};
use crate::settings::{self, Layer, Origin, Trusted};
use crate::store;

/// Something to approve.
#[derive(Debug)]
pub(crate) struct Unit {
    /// A setting's name, or that of a server or engine as a whole.
    pub(crate) name: String,
    pub(crate) entries: Vec<(String, Value, Origin)>,
    /// Files of the repository that its values name, relative to the project's root.
    pub(crate) files: Vec<String>,
    /// Folders that they name, which squad does not look into.
    pub(crate) folders: Vec<String>,
    pub(crate) state: State,
    /// Why it cannot be approved.
    unknown: Option<String>,
    hash: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    New,
    /// Something else was approved under this name.
    Changed,
    Approved,
    /// It was approved, and the repository brings nothing of this name now.
    Removed,
}

/// A repository's approvals, as they are kept.
#[derive(Default, Serialize, Deserialize)]
struct Approvals {
    /// Missing in the first one.
    #[serde(default)]
    version: u32,
    /// For people who look into the file.
    repository: String,
    approved: BTreeMap<String, String>,
}

/// A file at the top of a repository with patterns of ignored files that each clone gets a copy of. Other tools read it too.
pub(crate) const INCLUDED: &str = ".worktreeinclude";
/// Its bytes that are read.
const INCLUDED_MOST: u64 = 16 * 1024;

/// The patterns in [`INCLUDED`]; none if it is larger than 16 KiB.
pub(crate) fn included(workspace: &Workspace) -> Vec<String> {
    let bytes = files::read_regular(&workspace.work_dir.join(INCLUDED), INCLUDED_MOST).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let patterns = text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'));
    patterns.map(str::to_owned).collect()
}

/// The newest form of approvals that this squad reads.
const VERSION: u32 = 1;

impl Unit {
    fn removed(name: &str) -> Self {
        let (name, unknown, hash) = (name.to_owned(), None, String::new());
        let (entries, files, folders) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, entries, files, folders, state: State::Removed, unknown, hash }
    }
}

/// Everything that this repository's team needs the user's approval for.
pub(crate) fn needing_approval(env: &Env, workspace: &Workspace) -> (Vec<Unit>, Vec<Problem>) {
    let (files, mut problems) = store::read_configuration(&workspace.folder);
    let layers = team_layers(&files, &mut problems);
    let units = read(env, workspace, &layers, |_, _| true).map_err(|problem| problems.push(problem));
    (units.unwrap_or_default(), problems)
}

/// What the user has approved, as it is now or as it was. Fails if that cannot be told.
pub(super) fn trusted(env: &Env, workspace: &Workspace, layers: &[Layer]) -> Result<Trusted, Problem> {
    let mut trusted = Trusted::default();
    for unit in once_approved(env, workspace, layers)? {
        let names = match unit.state {
            State::Approved => &mut trusted.approved,
            State::Removed => &mut trusted.removed,
            State::New | State::Changed => &mut trusted.changed,
        };
        names.insert(unit.name);
    }
    Ok(trusted)
}

/// The files that approvals cover.
pub(crate) fn approved_files(env: &Env, workspace: &Workspace) -> BTreeSet<String> {
    let (files, _) = store::read_configuration(&workspace.folder);
    let layers = team_layers(&files, &mut Vec::new());
    approved_units(env, workspace, &layers).flat_map(|unit| unit.files).into_set()
}

/// Whether this is approved as it is now: what its files hold may have changed since the settings were read.
pub(crate) fn is_approved(env: &Env, workspace: &Workspace, name: &str) -> bool {
    let (files, _) = store::read_configuration(&workspace.folder);
    let layers = team_layers(&files, &mut Vec::new());
    approved_units(env, workspace, &layers).any(|unit| unit.name == name)
}

fn approved_units(env: &Env, workspace: &Workspace, layers: &[Layer]) -> impl Iterator<Item = Unit> {
    let units = once_approved(env, workspace, layers).unwrap_or_default();
    units.into_iter().filter(|unit| unit.state == State::Approved)
}

/// Looks at no file of what was never approved: a repository can name many.
fn once_approved(env: &Env, workspace: &Workspace, layers: &[Layer]) -> Result<Vec<Unit>, Problem> {
    read(env, workspace, layers, |approvals, name| approvals.approved.contains_key(name))
}

/// Approves these as they are, or takes the approval back.
pub(crate) fn settle(env: &Env, workspace: &Workspace, units: &[&Unit], is_approved: bool) -> Result<(), Failure> {
    if let Some(why) = units.iter().find_map(|unit| unit.unknown.as_ref()).filter(|_| is_approved) {
        return Err(Failure::failed(why.clone()));
    }
    let path = place(env, workspace).ok_or_else(nowhere)?;
    let mut approvals = kept(workspace, &path).map_err(|problem| Failure::of_problem(&problem))?;
    for Unit { name, hash, .. } in units {
        if is_approved {
            approvals.approved.insert(name.clone(), hash.clone());
        } else {
            approvals.approved.remove(name);
        }
    }
    write(workspace, &path, approvals)
}

/// Takes all approvals back, also those of what is not there now, and those that cannot be read.
pub(crate) fn revoke_all(env: &Env, workspace: &Workspace) -> Result<(), Failure> {
    let path = place(env, workspace).ok_or_else(nowhere)?;
    write(workspace, &path, Approvals::default())
}

fn nowhere() -> Failure {
    Failure::failed("cannot tell where approvals are kept: neither XDG_DATA_HOME nor HOME is set")
}

fn write(workspace: &Workspace, path: &Path, mut approvals: Approvals) -> Result<(), Failure> {
    approvals.version = VERSION;
    approvals.repository = workspace.repository.common_dir().display().to_string();
    let written = serde_json::to_value(&approvals)
        .map_err(io::Error::from)
        .and_then(|approvals| files::replace(path, format!("{approvals:#}").as_bytes()));
    written.map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

/// What in a team's own layers needs approval, as far as it is wanted. Fails if the approvals cannot be read.
fn read(
    env: &Env,
    workspace: &Workspace,
    layers: &[Layer],
    is_wanted: impl Fn(&Approvals, &str) -> bool,
) -> Result<Vec<Unit>, Problem> {
    let mut found: BTreeMap<String, Vec<(String, Value, Origin)>> = BTreeMap::new();
    for layer in layers {
        for (name, entries) in settings::restricted(layer) {
            found.entry(name).or_default().extend(entries);
        }
    }
    let patterns: Vec<Value> = included(workspace).into_iter().map(Value::String).collect();
    if !patterns.is_empty() {
        let origin = Origin::Project(INCLUDED.to_owned(), 1);
        found.insert(INCLUDED.to_owned(), vec![(INCLUDED.to_owned(), Value::Array(patterns), origin)]);
    }
    // Where nothing was approved, nothing is looked for.
    if found.is_empty() && !has_project_id(workspace) {
        return Ok(Vec::new());
    }
    let known = place(env, workspace).map(|path| kept(workspace, &path)).transpose();
    // Where nothing needs an approval, those that cannot be read deny nothing.
    let approvals = if found.is_empty() { known.unwrap_or_default() } else { known? }.unwrap_or_default();
    let (root, top) = (real(&workspace.folder.root), real(&workspace.work_dir));
    let unit = |(name, entries): (String, Vec<(String, Value, Origin)>)| {
        let mut hashes = Vec::new();
        let mut named = BTreeSet::new();
        for (name, value, _) in &entries {
            hashes.push(blake3::hash(format!("{name} = {value}").as_bytes()));
            // The files that its patterns match are not the repository's.
            if name != INCLUDED {
                texts(value, &mut |text| named.extend(named_in(text, (&root, &top))));
            }
        }
        let (files, folders): (Vec<String>, Vec<String>) =
            named.into_iter().partition(|path| root.join(path).is_file());
        let mut unknown = None;
        for file in &files {
            hashes.push(blake3::hash(file.as_bytes()));
            match files::hash(&root.join(file)) {
                Ok(hash) => hashes.push(hash),
                Err(error) => unknown = Some(format!("{file} cannot be recognized: {error}")),
            }
        }
        // Of one length each, so that no two lists are the same bytes.
        let all: Vec<u8> = hashes.iter().flat_map(|hash| *hash.as_bytes()).collect();
        let hash = blake3::hash(&all).to_hex().to_string();
        let state = match approvals.approved.get(&name) {
            Some(known) if *known == hash && unknown.is_none() => State::Approved,
            Some(_) => State::Changed,
            None => State::New,
        };
        Unit { name, entries, files, folders, state, unknown, hash }
    };
    let removed: Vec<Unit> =
        approvals.approved.keys().filter(|name| !found.contains_key(*name)).map(|name| Unit::removed(name)).collect();
    let wanted = found.into_iter().filter(|(name, _)| is_wanted(&approvals, name));
    Ok(wanted.map(unit).chain(removed).collect())
}

fn texts(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, take)),
        Value::Table(table) => table.values().for_each(|item| texts(item, take)),
        _ => {}
    }
}

/// The files and folders of the work tree `top` that a value may name, relative to the project's root: as a whole, or by a
/// word in it, behind an option's letter too.
pub(crate) fn named_in(text: &str, (root, top): (&Path, &Path)) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || "=:,;@'\"&|()<>$`{}".contains(c)).chain([text]);
    let glued = |word: &str| word.strip_prefix('-').and_then(|word| word.get(1..)).map(str::to_owned);
    // `$PWD/tools/run.sh`
    let below_variable = |word: &str| word.strip_prefix('/').filter(|_| text.contains(['$', '`'])).map(str::to_owned);
    let words = words.flat_map(|word| [Some(word.to_owned()), glued(word), below_variable(word)]).flatten();
    let up = root.strip_prefix(top).map_or(0, |inner| inner.components().count());
    let inside = words.filter(|word| !word.is_empty()).filter_map(|word| {
        let path = real(&root.join(word));
        let inner = match path.strip_prefix(root) {
            Ok(inner) => inner.to_str()?.to_owned(),
            Err(_) => "../".repeat(up) + path.strip_prefix(top).ok()?.to_str()?,
        };
        (path.exists() && !inner.is_empty()).then_some(inner)
    });
    inside.collect()
}

/// The file of a repository's approvals.
fn place(env: &Env, workspace: &Workspace) -> Option<PathBuf> {
    // A copy has the id, and another repository at the same place has the path.
    let path = real(workspace.repository.common_dir());
    let place = format!("{}\n{}", path.display(), project_id(workspace)?);
    let name = blake3::hash(place.as_bytes()).to_hex()[..16].to_owned();
    Some(env.user_data()?.join("trust").join(format!("{name}.json")))
}

/// The approvals in a file; none if it is missing. If it is damaged or another's, nobody knows what was approved to deny
/// something, so that is an error.
fn kept(workspace: &Workspace, path: &Path) -> Result<Approvals, Problem> {
    let mut is_content = true;
    let why = match files::read_own(path) {
        Ok(text) => match from_json::<Approvals>(text) {
            // It may say more than is read here.
            Ok(Approvals { version, .. }) if version > VERSION => {
                format!("cannot be read: a newer squad wrote them, in version {version}")
            }
            // A link may have led there.
            Ok(approvals) if real(Path::new(&approvals.repository)) == real(workspace.repository.common_dir()) => {
                return Ok(approvals);
            }
            Ok(approvals) => format!("are those of another repository, {}", approvals.repository),
            Err(error) => format!("cannot be read: {error}"),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Approvals::default()),
        Err(error) => {
            // What is no file, or lies in no folder, is not replaced.
            is_content = path.is_file();
            format!("cannot be read: {error}")
        }
    };
    let (source, message) = (Source::new(path.display().to_string(), 0), format!("your approvals {why}"));
    let hint = if is_content { "`squad trust revoke --all` starts anew" } else { "move it away" };
    Err(Problem::new(Severity::Error, source, store::UNREADABLE, message)
        .hint(format!("{hint}; no agent starts until then")))
}
