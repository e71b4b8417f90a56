//! The folders of agents, and whose each is.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Files;
use super::super::words::{is_blank, remark};
use crate::model::Slug;

/// What stands in `agents/` and `roles/`.
pub(crate) struct Folders {
    /// Folders under `agents/`, by their slugs.
    folders: BTreeMap<Slug, String>,
    /// The same by the letters and digits of their names; `None` where two are alike.
    squeezed: BTreeMap<String, Option<Slug>>,
    /// Role files, by the slugs of their names.
    roles: BTreeMap<Slug, String>,
    /// Every path of the team.
    paths: BTreeSet<String>,
}

/// Where a member's files are.
#[derive(Default)]
pub(super) struct Place {
    pub(super) slug: Option<Slug>,
    /// From the team folder.
    pub(super) charter: Option<String>,
}

impl Folders {
    pub(crate) fn new(files: &Files) -> Self {
        let mut folders = BTreeMap::new();
        let mut squeezed: BTreeMap<String, Option<Slug>> = BTreeMap::new();
        for path in files.texts.keys() {
            let parts: Vec<&str> = path.split('/').collect();
            let ["agents", folder, _] = parts[..] else { continue };
            let Some(slug) = Slug::of_folder(folder) else { continue };
            if folders.insert(slug.clone(), folder.to_owned()).is_none() {
                let key = squeeze(folder);
                let alike = squeezed.contains_key(&key);
                squeezed.insert(key, (!alike).then_some(slug));
            }
        }
        let roles = files.texts.keys().filter_map(|path| Some((role_file(path)?, path.clone()))).collect();
        Self { folders, squeezed, roles, paths: files.texts.keys().cloned().collect() }
    }

    /// An agent's folder, from the team folder.
    pub(crate) fn folder(&self, slug: &Slug) -> Option<String> {
        self.folders.get(slug).map(|folder| format!("agents/{folder}"))
    }

    /// The slugs of all folders that have a charter.
    pub(crate) fn with_charter(&self) -> impl Iterator<Item = (&Slug, String)> {
        self.folders.iter().filter_map(|(slug, folder)| {
            let path = format!("agents/{folder}/charter.md");
            self.paths.contains(&path).then_some((slug, path))
        })
    }

    /// Role files, each with the slug of its name.
    pub(crate) fn role_files(&self) -> impl Iterator<Item = (&Slug, &str)> {
        self.roles.iter().map(|(slug, path)| (slug, path.as_str()))
    }

    /// A member's files: where its row points to, else by its name, whichever way the folder's name is folded.
    pub(super) fn place(&self, name: &str, cell: &str, links: &[String]) -> Place {
        let pointed: Vec<String> =
            std::iter::once(cell).chain(links.iter().map(String::as_str)).filter_map(path_in).collect();
        let charter = pointed.iter().find(|path| path.ends_with(".md") && self.paths.contains(*path)).cloned();
        let folder = pointed.iter().find_map(|path| folder_of(path));
        let named = folder.clone().filter(|slug| self.folders.contains_key(slug)).or_else(|| self.by_name(name));
        let slug = if charter.is_some() { folder.or(named) } else { named.or(folder) };
        let own = || {
            let slug = slug.as_ref()?;
            let path = format!("{}/charter.md", self.folder(slug)?);
            self.paths.contains(&path).then_some(path)
        };
        let role_file = || {
            let slug = slug.clone().or_else(|| Slug::fold(name))?;
            self.roles.get(&slug).cloned()
        };
        Place { charter: charter.or_else(own).or_else(role_file), slug }
    }

    fn by_name(&self, name: &str) -> Option<Slug> {
        let (before, inside) = remark(name);
        let mut words = before.split_whitespace();
        let (first, last) = (words.next().unwrap_or_default(), words.next_back().unwrap_or_default());
        [name, before, first, last, inside].into_iter().find_map(|text| {
            let exact = Slug::fold(text).filter(|slug| self.folders.contains_key(slug));
            exact.or_else(|| self.squeezed.get(&squeeze(text)).cloned().flatten())
        })
    }
}

/// `agents/<name>.md`, `agents/<name>.agent.md` or `roles/<name>.md`
fn role_file(path: &str) -> Option<Slug> {
    let parts: Vec<&str> = path.split('/').collect();
    let ["agents" | "roles", name] = parts[..] else { return None };
    let stem = name.strip_suffix(".md")?;
    let stem = stem.strip_suffix(".agent").unwrap_or(stem);
    Slug::of_folder(stem).filter(|slug| slug.as_str() != "readme")
}

/// Lower-case letters and digits only: `Tech_Lead`, `tech-lead` and `TechLead` are alike.
fn squeeze(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The path, from the team folder, that a cell or a link holds.
fn path_in(text: &str) -> Option<String> {
    let text = text.replace('\\', "/");
    let path = text.split_whitespace().find(|word| word.contains('/'))?.trim_matches(['`', '(', ')', '<', '>']);
    let path =
        [".squad/", ".ai-team/"].iter().find_map(|folder| path.split_once(folder)).map_or(path, |(_, path)| path);
    let path = path.trim_start_matches("./");
    (!path.contains("..") && !path.contains(".github/") && !path.contains("://")).then(|| path.to_owned())
}

/// `agents/<folder>/…` or `agents/<file>.md`
fn folder_of(path: &str) -> Option<Slug> {
    let rest = path.strip_prefix("agents/").or_else(|| path.split_once("/agents/").map(|(_, rest)| rest))?;
    let folder = rest.split('/').next()?.trim();
    (!is_blank(folder)).then(|| Slug::of_folder(folder.strip_suffix(".md").unwrap_or(folder)))?
}
