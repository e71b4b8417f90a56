//! A team out of role files of other hosts, or more members of one: their texts become charters, word for word.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::plan::Left;
use crate::edit::{self, NewMember};
use crate::error::Failure;
use crate::model::{Slug, Team, first_line};
use crate::ops::team::changeset::FileChange;
use crate::ops::team::hosts::{MARK, PROMPT};
use crate::parse::{self, Files, text_of};
use crate::store;

/// Folders of role files and how their names end: of Claude Code, Copilot and Codex.
const PLACES: [(&str, &str); 3] =
    [(".claude/agents", ".md"), (".github/agents", ".agent.md"), (".codex/agents", ".toml")];

/// Larger files are no roles.
const LARGEST: u64 = 256 * 1024;

/// As Codex has it; the rest is for its sessions.
#[derive(Deserialize)]
struct CodexRole {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    developer_instructions: String,
    model: Option<String>,
}

/// A role that a file describes.
pub(super) struct Role {
    pub(super) slug: Slug,
    pub(super) name: String,
    /// What it does, in a few words.
    pub(super) role: String,
    /// Its text, as a charter.
    pub(super) text: String,
    /// The file, from the project's root.
    pub(super) source: String,
}

impl Role {
    /// Whether a team has it: somebody of its name, or with its text.
    pub(super) fn is_on(&self, team: &Team) -> bool {
        team.members.iter().any(|member| member.slug == self.slug || member.name == self.name)
            || team.charters.values().any(|charter| charter.text == self.text)
    }
}

/// Role files of a project.
#[derive(Default)]
pub(super) struct Roles {
    pub(super) all: Vec<Role>,
    pub(super) left: Vec<Left>,
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
                    roles.take(root, path, stem);
                }
            }
        }
        roles
    }

    fn take(&mut self, root: &Path, path: String, stem: &str) {
        match role(root, &path, stem) {
            Ok(None) => {}
            Ok(Some(role)) if self.all.iter().any(|known| known.slug == role.slug) => {
                let why = format!("there is another role called `{}`", role.slug);
                self.left.push(Left { path, why });
            }
            Ok(Some(role)) => self.all.push(role),
            Err(why) => self.left.push(Left { path, why }),
        }
    }

    pub(super) fn sources(&self) -> Vec<&str> {
        self.all.iter().map(|role| role.source.as_str()).collect()
    }

    /// As the files of a new team.
    pub(super) fn as_team(&self) -> Files {
        let charters = self.all.iter().map(|role| (charter_path(&role.slug), role.text.clone()));
        let own = [("team.md".to_owned(), roster(&self.all)), ("routing.md".to_owned(), routing(&self.all))];
        Files { folder: store::FOLDERS[0].to_owned(), texts: charters.chain(own).collect() }
    }

    /// A team with those of them that are not there yet, and who these are.
    pub(super) fn join(self, mut files: Files) -> Result<(Files, Vec<Role>), Failure> {
        let mut joined = Vec::new();
        for role in self.all {
            if role.is_on(&parse::team(&files).0) {
                continue;
            }
            let signals = vec![role.role.replace(',', " ")];
            let new = |signals| NewMember { name: role.name.clone(), role: role.role.clone(), model: None, signals };
            // Where there is no table for a row, the charter is all that routing has.
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

/// Files of a new team, with paths from the repository's root.
pub(super) fn added(files: &Files) -> Vec<FileChange> {
    let added = |(path, text): (&String, &String)| {
        FileChange::new(format!("{}/{path}", files.folder), None, Some(text.as_bytes().to_vec()))
    };
    files.texts.iter().map(added).collect()
}

fn charter_path(slug: &Slug) -> String {
    format!("agents/{slug}/charter.md")
}

/// A role; or why it is none. `None`: squad wrote it.
fn role(root: &Path, path: &str, stem: &str) -> Result<Option<Role>, String> {
    let place = root.join(path);
    match fs::symlink_metadata(&place) {
        Ok(metadata) if metadata.is_file() && metadata.len() <= LARGEST => {}
        _ => return Err("no plain file of up to 256 KiB".to_owned()),
    }
    let text = text_of(fs::read(&place).map_err(|error| error.to_string())?).0;
    if text.lines().take(3).any(|line| line.starts_with(MARK)) {
        return Ok(None);
    }
    let text = if path.ends_with(".toml") { of_codex(&text)? } else { text };
    let read = parse::role(&text).map_err(|(line, what)| format!("line {line}: {what}"))?;
    let (title_name, title_role) = read.title;
    let name = title_name.or(read.name).unwrap_or_else(|| stem.to_owned());
    let description = Some(read.description).filter(|description| !description.is_empty());
    let role = title_role.or(description).unwrap_or_else(|| "Agent".to_owned());
    let slug = Slug::fold(&name).or_else(|| Slug::of_folder(stem)).ok_or("its name has no letters")?;
    Ok(Some(Role { slug, name: cell(&name), role: cell(&role), text, source: path.to_owned() }))
}

fn of_codex(text: &str) -> Result<String, String> {
    let role: CodexRole = toml::from_str(text).map_err(|error| format!("no role of Codex: {}", error.message()))?;
    // JSON is YAML.
    let field = |name: &str, value: &str| match value {
        "" => String::new(),
        value => format!("{name}: {}\n", serde_json::json!(value)),
    };
    let fields = [
        field("name", &role.name),
        field("description", &role.description),
        field("model", role.model.as_deref().unwrap_or_default()),
    ];
    Ok(format!("---\n{}---\n\n{}\n", fields.concat(), role.developer_instructions.trim()))
}

/// A text for a table: its first sentence, without what would end the cell.
fn cell(text: &str) -> String {
    const LONGEST: usize = 80;
    let line = text.replace('|', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line.split(". ").next().unwrap_or(&line).trim().trim_end_matches('.');
    first_line(sentence, LONGEST)
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
        "# Routing\n\nWho works on what. Examples in the third column make routing surer.\n\n\
         | Work Type | Route To | Examples |\n|---|---|---|\n{rows}"
    )
}
