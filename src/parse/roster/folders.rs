//! Agents' folders, and the members that they belong to.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Files;
use super::super::words::{is_blank, path_words, remark};
use super::HELPERS;
use crate::model::{IntoMap, Slug, list};

/// Names that teams give to the coordinator.
const COORDINATORS: [&str; 6] =
    ["coordinator", "squad", "squad-coordinator", "team-coordinator", "orchestrator", "squad-orchestrator"];

/// The contents of `agents/`, `charters/` and `roles/`.
pub(crate) struct Folders {
    /// Folders under `agents/`, by slug.
    folders: BTreeMap<Slug, Folder>,
    /// Their slugs by the letters and digits of their names. `None`: two are alike.
    squeezed: BTreeMap<String, Option<Slug>>,
    /// Role files, by slug.
    roles: BTreeMap<Slug, String>,
    /// All paths of the team.
    paths: BTreeSet<String>,
}

struct Folder {
    /// The path in the team folder.
    path: String,
    charter: Option<String>,
    /// It is inside a folder of folders, such as `_alumni`.
    is_nested: bool,
}

/// A member's files.
#[derive(Default)]
pub(super) struct MemberFiles {
    pub(super) slug: Option<Slug>,
    /// The path in the team folder.
    pub(super) charter: Option<String>,
    /// The charter path in the row, if there is no such file.
    pub(super) missing: Option<String>,
}

impl MemberFiles {
    /// Falls back to the folder that another cell names: `squad:ada` or `ada`.
    pub(super) fn or_in(self, folders: &Folders, cell: &str) -> Self {
        if self.slug.is_some() {
            return self;
        }
        let name = cell.trim_matches(['`', ' ']);
        let slug = Slug::of_folder(name.rsplit(':').next().unwrap_or(name));
        match slug.filter(|slug| folders.folders.contains_key(slug)) {
            // A member in a built-in helper's folder is more than that helper, so it keeps its own slug.
            Some(slug) if HELPERS.contains(&slug.as_str()) => Self { charter: folders.charter(&slug), ..self },
            Some(slug) => Self { charter: folders.charter(&slug), slug: Some(slug), ..self },
            None => self,
        }
    }
}

impl Folders {
    pub(crate) fn new(files: &Files) -> Self {
        let mut folders: BTreeMap<Slug, Folder> = BTreeMap::new();
        for path in files.texts.keys() {
            let Some((folder, is_nested)) = folder_in(path) else { continue };
            let name = folder.rsplit('/').next().unwrap_or(folder);
            let Some(slug) = Slug::of_folder(name) else { continue };
            let new = || Folder { path: folder.to_owned(), charter: None, is_nested };
            let known = folders.entry(slug.clone()).or_insert_with(new);
            if known.path == folder && is_charter(path) {
                known.charter = Some(path.clone());
            }
        }
        let mut squeezed = BTreeMap::new();
        for (slug, folder) in folders.iter().filter(|(_, folder)| !folder.is_nested) {
            put(&mut squeezed, squeeze(folder.name()), slug.clone());
        }
        for (slug, folder) in folders.iter().filter(|(_, folder)| folder.is_nested) {
            squeezed.entry(squeeze(folder.name())).or_insert_with(|| Some(slug.clone()));
        }
        let roles = files.texts.keys().filter_map(|path| Some((role_file(path)?, path.clone()))).into_map();
        Self { folders, squeezed, roles, paths: files.texts.keys().cloned().collect() }
    }

    /// The path of an agent's folder in the team folder.
    pub(crate) fn folder(&self, slug: &Slug) -> Option<&str> {
        self.folders.get(slug).map(|folder| folder.path.as_str())
    }

    /// All folders with a charter, without nested ones.
    pub(crate) fn with_charter(&self) -> impl Iterator<Item = (&Slug, &str)> {
        let beside = self.folders.iter().filter(|(_, folder)| !folder.is_nested);
        beside.filter_map(|(slug, folder)| Some((slug, folder.charter.as_deref()?)))
    }

    /// The coordinator's charter.
    pub(super) fn coordinator(&self) -> Option<String> {
        let mut slugs = COORDINATORS.into_iter().filter_map(Slug::fold);
        slugs.find_map(|slug| self.charter(&slug).or_else(|| self.roles.get(&slug).cloned()))
    }

    /// Role files with their slugs.
    pub(crate) fn role_files(&self) -> impl Iterator<Item = (&Slug, &str)> {
        self.roles.iter().map(|(slug, path)| (slug, path.as_str()))
    }

    /// A hint for writing a roster.
    pub(crate) fn as_a_roster(&self) -> String {
        const SHOWN: usize = 5;
        let slugs: Vec<&str> = self.with_charter().map(|(slug, _)| slug.as_str()).collect();
        let table = "a roster is a table with a Name and a Role column";
        match slugs.len() {
            0 => format!("write it: {table}"),
            count => {
                let more = if count > SHOWN { " and others" } else { "" };
                format!("write it: {table}; agents/ has {}{more}", list(slugs.into_iter().take(SHOWN)))
            }
        }
    }

    /// A member's files: where its row points to, or else by its name.
    pub(super) fn files_of(&self, name: &str, cell: &str, links: &[String]) -> MemberFiles {
        let pointed: Vec<String> =
            std::iter::once(cell).chain(links.iter().map(String::as_str)).filter_map(path_in).collect();
        let charter = pointed.iter().find(|path| path.ends_with(".md") && self.paths.contains(*path)).cloned();
        let folder = pointed.iter().find_map(|path| folder_of(path));
        let is_there = |slug: &Slug| self.folders.contains_key(slug);
        let named = folder.clone().filter(is_there).or_else(|| self.by_name(name));
        // A missing folder gives the slug only if it matches the name.
        let promised = || folder.clone().filter(|slug| is_within(slug, name));
        let slug = if charter.is_some() { folder.clone().or(named) } else { named.or_else(promised) };
        let own = || self.charter(slug.as_ref()?);
        let role_file = || {
            let slug = slug.clone().or_else(|| Slug::spelled(name))?;
            self.roles.get(&slug).cloned()
        };
        let charter = charter.or_else(own).or_else(role_file);
        let is_file = |path: &&String| path.ends_with(".md") && !self.paths.contains(*path);
        MemberFiles { missing: pointed.iter().find(is_file).cloned(), charter, slug }
    }

    /// The path of an agent's charter in the team folder.
    pub(super) fn charter(&self, slug: &Slug) -> Option<String> {
        self.folders.get(slug)?.charter.clone()
    }

    /// Whether a folder or a role file has this name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let name = super::names::clean_name(name);
        let folder = || self.squeezed.contains_key(&squeeze(&name));
        let role_file = || Slug::spelled(&name).is_some_and(|slug| self.roles.contains_key(&slug));
        !is_blank(&name) && (self.by_spelling(&name).is_some() || folder() || role_file())
    }

    /// Whether a folder of this name has a charter.
    pub(super) fn has_charter(&self, name: &str) -> bool {
        let name = super::names::clean_name(name);
        self.by_name(&name).is_some_and(|slug| self.charter(&slug).is_some())
    }

    fn by_name(&self, name: &str) -> Option<Slug> {
        let (before, inside) = remark(name);
        let mut words = before.split_whitespace();
        let (first, last) = (words.next().unwrap_or_default(), words.next_back().unwrap_or_default());
        [name, before, first, last, inside].into_iter().find_map(|text| self.by_spelling(text))
    }

    /// By the name in Latin letters, or as written.
    fn by_spelling(&self, name: &str) -> Option<Slug> {
        latin(name).iter().map(String::as_str).chain([name]).find_map(|text| {
            let exact = Slug::fold(text).filter(|slug| self.folders.contains_key(slug));
            exact.or_else(|| self.squeezed.get(&squeeze(text)).cloned().flatten())
        })
    }
}

impl Folder {
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The agent's folder in a path, and whether it is nested: `agents/ada`, `agents/_alumni/carl`.
fn folder_in(path: &str) -> Option<(&str, bool)> {
    let (folder, _) = path.rsplit_once('/')?;
    match folder.split('/').collect::<Vec<_>>()[..] {
        ["agents", _] => Some((folder, false)),
        ["agents", _, _] if is_charter(path) => Some((folder, true)),
        _ => None,
    }
}

fn is_charter(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|file| file.eq_ignore_ascii_case("charter.md"))
}

/// Inserts an entry; two different slugs for a key become `None`.
fn put(map: &mut BTreeMap<String, Option<Slug>>, key: String, slug: Slug) {
    map.entry(key).and_modify(|known| *known = known.take().filter(|known| *known == slug)).or_insert(Some(slug));
}

/// `agents/<name>.md`, `agents/<name>.agent.md`, `charters/<name>.md` or `roles/<name>.md`
fn role_file(path: &str) -> Option<Slug> {
    let parts: Vec<&str> = path.split('/').collect();
    let ["agents" | "charters" | "roles", name] = parts[..] else { return None };
    let stem = name.strip_suffix(".md")?;
    let stem = stem.strip_suffix(".agent").unwrap_or(stem);
    Slug::of_folder(stem).filter(|slug| slug.as_str() != "readme")
}

/// Lower-case letters and digits only: `Tech_Lead`, `tech-lead` and `TechLead` are alike.
fn squeeze(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Transliterations of a name: plain, and with German spellings of umlauts.
fn latin(name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    let german = lower.replace('ä', "ae").replace('ö', "oe").replace('ü', "ue").replace('å', "aa");
    [lower, german].iter().map(|text| deunicode::deunicode(text)).collect()
}

/// Whether a slug consists of consecutive words of a name.
fn is_within(slug: &Slug, name: &str) -> bool {
    let name = Slug::spelled(name).map(|name| format!("-{name}-")).unwrap_or_default();
    name.contains(&format!("-{slug}-"))
}

/// The path in a cell or a link, relative to the team folder.
fn path_in(text: &str) -> Option<String> {
    let text = text.replace('\\', "/");
    let path = text.split_whitespace().find(|word| word.contains('/'))?.trim_matches(['`', '(', ')', '<', '>']);
    let path =
        [".squad/", ".ai-team/"].iter().find_map(|folder| path.split_once(folder)).map_or(path, |(_, path)| path);
    let path = path.trim_start_matches("./").replace("%20", " ");
    (!path.contains("..") && !path.contains(".github/") && !path.contains("://")).then_some(path)
}

/// Paths of the charters that a roster links to outside `agents/`, such as `squads/<name>/agents/ada/charter.md`.
pub(crate) fn linked(roster: &str) -> Vec<String> {
    let is_elsewhere = |path: &String| {
        is_charter(path) && path.contains("/agents/") && !path.starts_with(['/', '~']) && !path.contains(':')
    };
    let words = path_words(roster).flat_map(|word| word.split(','));
    let mut paths: Vec<String> = words.filter_map(path_in).filter(is_elsewhere).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// `agents/<folder>/…`, `agents/<aside>/<folder>/charter.md` or `agents/<file>.md`
fn folder_of(path: &str) -> Option<Slug> {
    let rest = path.strip_prefix("agents/").or_else(|| path.split_once("/agents/").map(|(_, rest)| rest))?;
    let folder = match rest.split('/').collect::<Vec<_>>()[..] {
        [_, folder, file] if is_charter(file) => folder,
        [first, ..] => first,
        [] => return None,
    };
    let folder = folder.trim();
    (!is_blank(folder)).then(|| Slug::of_folder(folder.strip_suffix(".md").unwrap_or(folder)))?
}
