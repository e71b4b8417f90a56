//! Makes members from role files of other hosts. Their texts become charters, word for word.

use std::fs;
use std::path::Path;

use crate::edit::{self, NewMember};
use crate::env::files::read_regular;
use crate::error::Failure;
use crate::model::{IntoMap, SkippedFile, Slug, Team, first_line};
use crate::ops::change::FileChange;
use crate::ops::team::hosts::{MARK, PROMPT};
use crate::parse::{self, Files, text_of};
use crate::store;

/// Folders of role files and the endings of the file names: Claude Code, Copilot and Codex.
const PLACES: [(&str, &str); 3] =
    [(".claude/agents", ".md"), (".github/agents", ".agent.md"), (".codex/agents", ".toml")];

/// Role files are smaller than this.
const MAX_SIZE: u64 = 256 * 1024;

/// A role that a file describes.
pub(super) struct Role {
    pub(super) slug: Slug,
    pub(super) name: String,
    /// What it does, in a few words.
    pub(super) role: String,
    /// The charter.
    pub(super) text: String,
    /// The role file, relative to the project's root.
    pub(super) source: String,
}

impl Role {
    /// Whether a member of the team has this name or text.
    pub(super) fn is_member_of(&self, team: &Team) -> bool {
        team.members.iter().any(|member| member.slug == self.slug || member.name == self.name)
            || team.charters.values().any(|charter| charter.text == self.text)
    }
}

/// The role files of a project.
#[derive(Default)]
pub(super) struct Roles {
    pub(super) all: Vec<Role>,
    pub(super) skipped: Vec<SkippedFile>,
}

impl Roles {
    pub(super) fn read(root: &Path) -> Self {
        let mut roles = Self::default();
        for (folder, end) in PLACES {
            let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
            let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            for stem in names.iter().filter_map(|name| name.strip_suffix(end)) {
                let path = format!("{folder}/{stem}{end}");
                if path != PROMPT && !stem.eq_ignore_ascii_case("readme") {
                    roles.add(root, path, stem);
                }
            }
        }
        roles
    }

    fn add(&mut self, root: &Path, path: String, stem: &str) {
        match role(root, &path, stem) {
            Ok(None) => {}
            Ok(Some(role)) if self.all.iter().any(|known| known.slug == role.slug) => {
                let why = format!("there is another role called `{}`", role.slug);
                self.skipped.push(SkippedFile { path, why });
            }
            Ok(Some(role)) => self.all.push(role),
            Err(why) => self.skipped.push(SkippedFile { path, why }),
        }
    }

    pub(super) fn sources(&self) -> Vec<&str> {
        self.all.iter().map(|role| role.source.as_str()).collect()
    }

    /// The files of a new team.
    pub(super) fn as_team(&self) -> Files {
        let charters = self.all.iter().map(|role| (charter_path(&role.slug), role.text.clone()));
        let own = [("team.md".to_owned(), roster(&self.all)), ("routing.md".to_owned(), routing(&self.all))];
        Files { folder: store::FOLDERS[0].to_owned(), texts: charters.chain(own).into_map() }
    }

    /// Adds the roles that are not on the team yet. Returns the team's files and those roles.
    pub(super) fn join(self, mut files: Files) -> Result<(Files, Vec<Role>), Failure> {
        let mut joined = Vec::new();
        for role in self.all {
            if role.is_member_of(&parse::team(&files).0) {
                continue;
            }
            let signals = vec![role.role.replace(',', " ")];
            let new = |signals| NewMember { name: role.name.clone(), role: role.role.clone(), model: None, signals };
            // If there is no table for a routing row, routing uses only the charter.
            let edited = edit::add(&files, &new(signals)).or_else(|_| edit::add(&files, &new(Vec::new())));
            let edited = edited.map_err(|problem| Failure::of_problem(&problem))?;
            files = edited.files;
            let shown = parse::team(&files).0.members.into_iter().find(|member| member.slug == edited.slug);
            let charter = shown.and_then(|member| member.charter);
            let inner = charter.as_deref().and_then(|path| path.strip_prefix(&files.folder)).map(str::to_owned);
            if let Some(path) = inner {
                files.texts.insert(path.trim_start_matches('/').to_owned(), role.text.clone());
            }
            joined.push(role);
        }
        Ok((files, joined))
    }
}

/// The changes that add a new team's files, with paths from the repository's root.
pub(super) fn added(files: &Files) -> Vec<FileChange> {
    files.texts.iter().map(|(path, text)| FileChange::added(format!("{}/{path}", files.folder), text.clone())).collect()
}

fn charter_path(slug: &Slug) -> String {
    format!("agents/{slug}/charter.md")
}

/// Reads a role file. `None`: squad generated it. Fails with the reason if it is not a role.
fn role(root: &Path, path: &str, stem: &str) -> Result<Option<Role>, String> {
    let place = root.join(path);
    let text = text_of(read_regular(&place, MAX_SIZE).ok_or("not a regular file of up to 256 KiB")?).0;
    if text.lines().take(3).any(|line| line.starts_with(MARK)) {
        return Ok(None);
    }
    let text = if path.ends_with(".toml") { parse::codex_role(&text)? } else { text };
    let read = parse::role(&text).map_err(|(line, what)| format!("line {line}: {what}"))?;
    let (title_name, title_role) = read.title;
    let name = title_name.or(read.name).unwrap_or_else(|| stem.to_owned());
    let description = Some(read.description).filter(|description| !description.is_empty());
    let role = title_role.or(description).unwrap_or_else(|| "Agent".to_owned());
    let slug = Slug::fold(&name).or_else(|| Slug::of_folder(stem)).ok_or("its name has no letters")?;
    Ok(Some(Role { slug, name: cell(&name), role: cell(&role), text, source: path.to_owned() }))
}

/// The first sentence of a text, for a table cell.
fn cell(text: &str) -> String {
    const MAX_LENGTH: usize = 80;
    let line = text.replace('|', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line.split(". ").next().unwrap_or(&line).trim().trim_end_matches('.');
    first_line(sentence, MAX_LENGTH)
}

fn roster(roles: &[Role]) -> String {
    let rows = roles
        .iter()
        .map(|role| format!("| {} | {} | `.squad/agents/{}/charter.md` | Active |\n", role.name, role.role, role.slug));
    format!(
        "# Team\n\n## Members\n\n| Name | Role | Charter | Status |\n|---|---|---|---|\n{}",
        rows.collect::<String>()
    )
}

fn routing(roles: &[Role]) -> String {
    let rows: String = roles.iter().map(|role| format!("| {} | {} | |\n", role.role, role.name)).collect();
    format!(
        "# Routing\n\nWho works on what. Examples in the third column make routing more certain.\n\n\
         | Work Type | Route To | Examples |\n|---|---|---|\n{rows}"
    )
}
