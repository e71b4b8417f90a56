//! A team out of role files of other hosts, where there is none yet: their texts become charters, word for word.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::plan::Left;
use crate::model::{Charter, Slug, first_line};
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

/// Role files of a project, as files of a team.
#[derive(Default)]
pub(super) struct Roles {
    pub(super) files: Files,
    /// Where each charter comes from.
    pub(super) sources: Vec<String>,
    pub(super) left: Vec<Left>,
}

impl Roles {
    pub(super) fn read(root: &Path) -> Self {
        let mut roles =
            Self { files: Files { folder: store::FOLDERS[0].to_owned(), ..Files::default() }, ..Self::default() };
        let mut rows: Vec<(String, String, String)> = Vec::new();
        for (folder, end) in PLACES {
            let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
            let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            for stem in names.iter().filter_map(|name| name.strip_suffix(end)) {
                let path = format!("{folder}/{stem}{end}");
                if path == PROMPT || stem.eq_ignore_ascii_case("readme") {
                    continue;
                }
                match role(root, &path, stem) {
                    Err(why) => roles.left.push(Left { path, why }),
                    Ok((slug, ..)) if roles.files.texts.contains_key(&charter_path(&slug)) => {
                        let why = format!("there is another role called `{slug}`");
                        roles.left.push(Left { path, why });
                    }
                    Ok((slug, charter, text)) => {
                        let name = charter.name.unwrap_or_else(|| stem.to_owned());
                        rows.push((cell(&name), cell(charter.role.as_deref().unwrap_or("Agent")), slug.to_string()));
                        roles.files.texts.insert(charter_path(&slug), text);
                        roles.sources.push(path);
                    }
                }
            }
        }
        if !rows.is_empty() {
            roles.files.texts.insert("team.md".to_owned(), roster(&rows));
            roles.files.texts.insert("routing.md".to_owned(), routing(&rows));
        }
        roles
    }

    /// With paths from the repository's root.
    pub(super) fn changes(&self) -> Vec<FileChange> {
        let added = |(path, text): (&String, &String)| FileChange {
            path: format!("{}/{path}", self.files.folder),
            from: None,
            old: None,
            new: Some(text.as_bytes().to_vec()),
        };
        self.files.texts.iter().map(added).collect()
    }
}

fn charter_path(slug: &Slug) -> String {
    format!("agents/{slug}/charter.md")
}

/// A role, what its front matter says, and its text; or why it is none.
fn role(root: &Path, path: &str, stem: &str) -> Result<(Slug, Charter, String), String> {
    let place = root.join(path);
    match fs::symlink_metadata(&place) {
        Ok(metadata) if metadata.is_file() && metadata.len() <= LARGEST => {}
        _ => return Err("no plain file of up to 256 KiB".to_owned()),
    }
    let text = text_of(fs::read(&place).map_err(|error| error.to_string())?).0;
    if text.lines().take(3).any(|line| line.starts_with(MARK)) {
        return Err("squad made it from a charter".to_owned());
    }
    let text = if path.ends_with(".toml") { of_codex(&text)? } else { text };
    // As squad reads role files of a team.
    let files = Files {
        folder: store::FOLDERS[0].to_owned(),
        texts: BTreeMap::from([(format!("agents/{stem}.md"), text.clone())]),
    };
    let (team, _) = parse::team(&files);
    let Some((slug, charter)) = team.roles.into_iter().next() else {
        return Err("squad finds no role in it".to_owned());
    };
    Ok((charter.name.as_deref().and_then(Slug::fold).unwrap_or(slug), charter, text))
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

fn roster(rows: &[(String, String, String)]) -> String {
    let rows = rows
        .iter()
        .map(|(name, role, slug)| format!("| {name} | {role} | `.squad/agents/{slug}/charter.md` | Active |\n"));
    format!(
        "# Team\n\n## Members\n\n| Name | Role | Charter | Status |\n|---|---|---|---|\n{}",
        rows.collect::<String>()
    )
}

fn routing(rows: &[(String, String, String)]) -> String {
    let rows = rows.iter().map(|(name, role, _)| format!("| {role} | {name} | |\n"));
    let rows: String = rows.collect();
    format!(
        "# Routing\n\nWho works on what. Examples in the third column make routing surer.\n\n\
         | Work Type | Route To | Examples |\n|---|---|---|\n{rows}"
    )
}
