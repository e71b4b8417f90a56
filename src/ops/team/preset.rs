//! Reads a preset from a folder or a git repository. Takes only Markdown and model names, nothing that could run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::fit::TeamFiles;
use crate::env::{Env, is_without_links};
use crate::error::Failure;
use crate::git::ForeignRepository;
use crate::model::{IntoMap, SkippedFile, Sort, plural};
use crate::ops::team::workspace::git_environment;
use crate::parse::{self, Files, text_of, without_active_fields};
use crate::policy::{Redactor, is_git};
use crate::store;

/// The maximum size of a team, which the built-in one must not exceed either.
const MAX_FILES: usize = 40;
const MAX_BYTES: usize = 64 * 1024;

/// The maximum number of files that are listed.
const MAX_ENTRIES: usize = 5_000;
const MAX_DEPTH: usize = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Preset {
    /// What the team's manifest records, so that `squad upgrade` finds the preset again: a URL without a password, or a
    /// folder's path from where the command ran.
    pub(crate) from: String,
    pub(crate) files: TeamFiles,
    pub(crate) left_out: Vec<SkippedFile>,
}
/// Where a preset is read from.
enum Source<'a> {
    Folder(&'a Path),
    Repository(Box<ForeignRepository>),
}

impl Preset {
    /// `from` is a folder or a repository's URL.
    pub(crate) fn read(env: &Env, directory: &Path, from: &str) -> Result<Self, Failure> {
        if from.trim().is_empty() {
            return Err(Failure::usage("--from names no preset").hint("a folder with a team.md, or a git URL"));
        }
        let folder = directory.join(from);
        if folder.is_dir() && !is_bare(&folder) {
            return Self::of(&Source::Folder(&folder), from);
        }
        if !folder.is_dir() {
            check_url(from)?;
        }
        let url = if folder.is_dir() { folder.display().to_string() } else { from.to_owned() };
        let fetched = ForeignRepository::fetch(&url, &git_environment(env, directory)).map_err(|error| {
            let shown = |text: &str| Redactor::new([]).text(text, &mut Vec::new());
            Failure::failed(shown(&format!("cannot fetch the preset: {error}")))
                .at(shown(from))
                .hint("`git ls-remote` with the same URL shows whether git can reach it")
        })?;
        Self::of(&Source::Repository(Box::new(fetched)), from)
    }

    fn of(source: &Source<'_>, from: &str) -> Result<Self, Failure> {
        let folders = ["", store::FOLDERS[0], store::FOLDERS[1]];
        let mut found = None;
        for folder in folders {
            if found.is_none() && source.has(&join(folder, "team.md"))? {
                found = Some(folder);
            }
        }
        let Some(folder) = found else {
            return Err(Failure::team("the preset contains no team.md")
                .at(from)
                .hint("a preset has a team.md at its root or in `.squad/`"));
        };
        let mut preset = Self { from: without_password(from), ..Self::default() };
        for (path, is_plain) in source.files(folder)? {
            preset.add(source, folder, &path, is_plain)?;
        }
        preset.left_out = grouped(preset.left_out);
        preset.check_size(from)?;
        let team = parse::team(&preset.as_files()).0;
        match team.startable().next() {
            Some(_) => Ok(preset),
            None => Err(Failure::team("the preset's team.md lists no agent that squad can start")
                .at(from)
                .hint("a team.md has a table with a Name and a Role column")),
        }
    }

    fn add(&mut self, source: &Source<'_>, folder: &str, path: &str, is_plain: bool) -> Result<(), Failure> {
        let mut omit = |why: &str| self.left_out.push(SkippedFile { path: path.to_owned(), why: why.to_owned() });
        if !is_plain {
            omit("a link, a submodule, or too large");
            return Ok(());
        }
        if path == "config.toml" {
            let text = source.read(&join(folder, path))?.map(text_of).map(|(text, _)| text).unwrap_or_default();
            return self.add_models(&text);
        }
        match kind(path) {
            Kind::Ignored => return Ok(()),
            Kind::LeftOut(why) => {
                omit(why);
                return Ok(());
            }
            Kind::Installed => {}
        }
        let Some(bytes) = source.read(&join(folder, path))? else { return Ok(()) };
        let Ok(text) = String::from_utf8(bytes) else {
            omit("not UTF-8");
            return Ok(());
        };
        let (text, removed) = without_active_fields(&text);
        for name in removed {
            omit_field(&mut self.left_out, path, &name);
        }
        self.files.insert(path.to_owned(), text.into_bytes());
        Ok(())
    }

    /// Adds only the models of a configuration.
    fn add_models(&mut self, text: &str) -> Result<(), Failure> {
        let config: toml::Table = toml::from_str(text)
            .map_err(|error| Failure::team(format!("is not TOML: {}", error.message())).at("config.toml"))?;
        let mut models = toml::Table::new();
        for (key, value) in config {
            let Some(table) = value.as_table().filter(|_| key == "models") else {
                omit_field(&mut self.left_out, "config.toml", &key);
                continue;
            };
            for (name, value) in table {
                match model(name, value) {
                    Some(value) => drop(models.insert(name.clone(), value)),
                    None => omit_field(&mut self.left_out, "config.toml", &format!("models.{name}")),
                }
            }
        }
        if !models.is_empty() {
            let table = toml::Table::from_iter([("models".to_owned(), toml::Value::Table(models))]);
            let text = format!("# The models of this team. `squad config list` shows what else can be set.\n\n{table}");
            self.files.insert("config.toml".to_owned(), text.into_bytes());
        }
        Ok(())
    }

    fn check_size(&self, from: &str) -> Result<(), Failure> {
        let bytes: usize = self.files.values().map(Vec::len).sum();
        if self.files.len() <= MAX_FILES && bytes <= MAX_BYTES {
            return Ok(());
        }
        let size = format!("{} with {} KB", plural(self.files.len(), "file"), bytes.div_ceil(1024));
        Err(Failure::team(format!("the preset is too large: {size}; the limit is {MAX_FILES} files with 64 KB"))
            .at(from)
            .hint("shorten it, since prompts contain it; to move a whole team, use `squad export` and `squad import`"))
    }

    fn as_files(&self) -> Files {
        let text = |(path, bytes): (&String, &Vec<u8>)| (path.clone(), String::from_utf8_lossy(bytes).into_owned());
        Files { folder: store::FOLDERS[0].to_owned(), texts: self.files.iter().map(text).into_map() }
    }

    /// The slugs of its agents.
    pub(crate) fn agents(&self) -> Vec<String> {
        let team = parse::team(&self.as_files()).0;
        team.startable().map(|member| member.slug.to_string()).collect()
    }
}

enum Kind {
    Installed,
    /// Not installed, and reported with this reason.
    LeftOut(&'static str),
    /// Not part of a team, such as the README or the license of the repository.
    Ignored,
}

fn kind(path: &str) -> Kind {
    let top = path.split('/').next().unwrap_or(path);
    let is_markdown = path.to_lowercase().ends_with(".md");
    match top {
        _ if path.ends_with("/history.md") => Kind::LeftOut("what another team has learned"),
        _ if path.starts_with("decisions") || path.starts_with("archive") => {
            Kind::LeftOut("what another team has decided")
        }
        "team.md" | "routing.md" | "ceremonies.md" => Kind::Installed,
        "agents" | "charters" | "roles" | "skills" | "identity" if is_markdown => Kind::Installed,
        "README.md" | "LICENSE" | "LICENSE.md" | ".gitignore" | ".gitattributes" => Kind::Ignored,
        _ if is_markdown => Kind::LeftOut("squad does not read it"),
        _ => Kind::LeftOut("neither Markdown nor models"),
    }
}

/// The value, if it is a model's id or a table of them.
fn model(name: &str, value: &toml::Value) -> Option<toml::Value> {
    let is_id = |id: &str| {
        (1..=100).contains(&id.len()) && id.chars().all(|c| c.is_ascii_alphanumeric() || "._:/@+-".contains(c))
    };
    match (name, value) {
        ("default" | "lightweight" | "premium" | "coordinator", toml::Value::String(id)) if is_id(id) => {
            Some(value.clone())
        }
        ("roles", toml::Value::Table(roles)) if roles.values().all(|id| id.as_str().is_some_and(is_id)) => {
            Some(value.clone())
        }
        _ => None,
    }
}

fn omit_field(left_out: &mut Vec<SkippedFile>, path: &str, name: &str) {
    let why = format!("its field `{name}`: only text and models are installed");
    left_out.push(SkippedFile { path: path.to_owned(), why });
}

/// Replaces many files of one folder with the same reason by the folder.
fn grouped(all: Vec<SkippedFile>) -> Vec<SkippedFile> {
    const MAX_LISTED: usize = 3;
    let mut groups: BTreeMap<(String, String), Vec<SkippedFile>> = BTreeMap::new();
    for left in all {
        let folder = left.path.split_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        groups.entry((folder, left.why.clone())).or_default().push(left);
    }
    let summary = |((folder, why), group): ((String, String), Vec<SkippedFile>)| match group.len() > MAX_LISTED
        && !folder.is_empty()
    {
        true => vec![SkippedFile { path: folder, why: format!("{}: {why}", plural(group.len(), "file")) }],
        false => group,
    };
    groups.into_iter().flat_map(summary).collect()
}

fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") }
}

fn is_bare(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir()
}

/// A URL without the password or token in it, which must not be recorded.
pub(super) fn without_password(url: &str) -> String {
    // A web address may have one behind the path too.
    let url = url.split(['?', '#']).next().filter(|_| url.starts_with("http")).unwrap_or(url);
    let parts = || {
        let (scheme, rest) = url.split_once("://")?;
        let (host, _) = rest.split_once(['/', '?', '#']).unwrap_or((rest, ""));
        let (user, host) = host.rsplit_once('@')?;
        let name = user.split(':').next().filter(|_| !scheme.starts_with("http"));
        let name = name.map(|name| format!("{name}@")).unwrap_or_default();
        Some(format!("{scheme}://{name}{host}{}", &rest[user.len() + 1 + host.len()..]))
    };
    parts().unwrap_or_else(|| url.to_owned())
}

/// Fails unless this is a repository's URL that cannot start a command.
pub(super) fn check_url(url: &str) -> Result<(), Failure> {
    let refused = |what: &str| {
        Err(Failure::usage(format!("{what}: `{url}`"))
            .hint("it is a folder, or a repository's URL with https, ssh, git or file"))
    };
    let is_scp = || url.split_once(':').is_some_and(|(host, path)| !host.contains('/') && !path.starts_with(':'));
    let schemes = ["https://", "http://", "ssh://", "git://", "file://"];
    let scheme = schemes.into_iter().find(|scheme| url.starts_with(scheme));
    let host = scheme.map_or(url, |scheme| &url[scheme.len()..]);
    match scheme {
        _ if url.starts_with('-') || host.starts_with('-') || url.contains(char::is_control) => {
            refused("this is not a URL")
        }
        _ if url.contains("::") => refused("squad does not follow URLs with a remote helper"),
        Some(_) => Ok(()),
        None if !url.contains("://") && is_scp() => Ok(()),
        None => refused("this is neither a folder nor a supported URL"),
    }
}

impl Source<'_> {
    fn has(&self, path: &str) -> Result<bool, Failure> {
        match self {
            Self::Folder(root) => Ok(root.join(path).is_file() && is_without_links(root, Path::new(path))),
            Self::Repository(repository) => Ok(repository.has(path)?),
        }
    }

    /// Paths relative to the folder, each with whether it is a regular file.
    fn files(&self, folder: &str) -> Result<Vec<(String, bool)>, Failure> {
        match self {
            Self::Folder(root) => {
                let mut found = BTreeSet::new();
                walk(&root.join(folder), "", 0, &mut found);
                Ok(found.into_iter().collect())
            }
            Self::Repository(repository) => {
                let (mut files, passed_over) = repository.files(folder)?;
                // Deep folders must not leave out what a team is made of.
                files.stable_sort_by_key(|file| file.path.matches('/').count());
                let inner = |path: &str| path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/').to_owned();
                // Of those that are not listed, the first is named as left out.
                let next = files.get(MAX_ENTRIES).map(|file| file.path.clone());
                let left_out = passed_over.into_iter().map(|passed_over| passed_over.path).chain(next);
                let left_out: Vec<_> = left_out.map(|path| (inner(&path), false)).collect();
                let files = files.into_iter().take(MAX_ENTRIES).map(|file| (inner(&file.path), file.is_plain));
                Ok(files.chain(left_out).collect())
            }
        }
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        const MAX_SIZE: u64 = 1024 * 1024;
        match self {
            Self::Folder(root) => {
                let place = root.join(path);
                let read = fs::read(&place)
                    .map_err(|error| Failure::failed(format!("cannot be read: {error}")).at(place.display()))?;
                Ok(Some(read))
            }
            Self::Repository(repository) => Ok(repository.read(path, MAX_SIZE)?),
        }
    }
}

/// Lists files, each with whether it is a regular file of up to a megabyte. Does not follow links.
fn walk(folder: &Path, inner: &str, depth: usize, found: &mut BTreeSet<(String, bool)>) {
    const MAX_SIZE: u64 = 1024 * 1024;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(metadata) = entry.path().symlink_metadata() else { continue };
        if is_git(&name) || found.len() >= MAX_ENTRIES {
            continue;
        }
        let path = join(inner, &name);
        match metadata.is_dir() {
            true if depth < MAX_DEPTH => walk(&entry.path(), &path, depth + 1, found),
            true => {}
            false => drop(found.insert((path, metadata.is_file() && metadata.len() <= MAX_SIZE))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{check_url, without_password};

    #[test]
    fn passwords_are_not_recorded() {
        for (url, kept) in [
            ("https://ann:pass@example.com/a@b.git", "https://example.com/a@b.git"),
            ("https://token@example.com/a", "https://example.com/a"),
            ("https://example.com/a.git?token=b#c", "https://example.com/a.git"),
            ("ssh://git:pass@example.com/a", "ssh://git@example.com/a"),
            ("ssh://git@example.com/a", "ssh://git@example.com/a"),
            ("git@example.com:a/b.git", "git@example.com:a/b.git"),
            ("https://example.com/a@b", "https://example.com/a@b"),
            ("../presets/a", "../presets/a"),
        ] {
            assert_eq!(without_password(url), kept);
        }
    }

    #[test]
    fn urls_that_start_commands_are_refused() {
        for url in ["https://example.com/a.git", "ssh://git@example.com/a", "git@example.com:a/b.git", "file:///a"] {
            assert!(check_url(url).is_ok(), "{url}");
        }
        for url in [
            "--upload-pack=touch x",
            "ext::sh -c x",
            "ssh://-oProxyCommand=x/a",
            "fd::3",
            "https://a\n",
            "ftp://a",
            "nowhere",
            "a::b",
            "-x:y",
        ] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
