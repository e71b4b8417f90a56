//! `squad-export.json` of the npm package `@bradygaster/squad-cli`, version 1.0 of its form: read off what releases 0.8.18
//! and 0.10.0 write.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::Contents;
use crate::error::Failure;
use crate::git::NewFile;
use crate::model::{Problem, Severity, Slug, Source};
use crate::ops::team::export::LARGEST;

#[derive(Deserialize)]
struct Export {
    version: String,
    /// Since 0.10.0; before, who is on the team was not exported.
    team_md: Option<String>,
    routing_md: Option<String>,
    decisions_md: Option<String>,
    #[serde(default)]
    casting: BTreeMap<String, Value>,
    agents: BTreeMap<String, Agent>,
    #[serde(default)]
    skills: Vec<String>,
}

#[derive(Deserialize)]
struct Agent {
    charter: Option<String>,
    history: Option<String>,
}

pub(super) fn read(file: &Path) -> Result<Contents, Failure> {
    let failed =
        |what: String| Failure::team(what).at(file.display()).hint("`squad export` writes what can be imported");
    let length = fs::metadata(file).map_or(0, |facts| facts.len());
    if length > LARGEST {
        return Err(failed(format!("it has {} MiB, more than any team's export", length >> 20)));
    }
    let bytes = fs::read(file).map_err(|error| failed(format!("cannot be read: {error}")))?;
    let export: Export = serde_json::from_slice(&bytes)
        .map_err(|error| failed(format!("it is neither a git bundle nor a team's export: {error}")))?;
    if export.version != "1.0" {
        return Err(failed(format!("its form is version {:?}, and squad reads 1.0", export.version)));
    }
    let mut files = BTreeMap::new();
    let mut problems = Vec::new();
    let mut put = |path: String, text: Option<String>| {
        if let Some(text) = text {
            files.insert(path, text.into_bytes());
        }
    };
    put("team.md".to_owned(), Some(export.team_md.unwrap_or_else(|| roster(export.agents.keys()))));
    put("routing.md".to_owned(), export.routing_md);
    put("decisions.md".to_owned(), export.decisions_md.filter(|text| !text.is_empty()));
    for (name, agent) in export.agents {
        if !is_name(&name) {
            return Err(failed(format!("{name:?} cannot be the folder of an agent")));
        }
        put(format!("agents/{name}/charter.md"), agent.charter);
        put(format!("agents/{name}/history.md"), agent.history);
    }
    for (name, value) in &export.casting {
        match is_name(name) {
            true => {
                put(format!("casting/{name}.json"), serde_json::to_string_pretty(value).ok().map(|text| text + "\n"))
            }
            false => return Err(failed(format!("{name:?} cannot be a file of its casting"))),
        }
    }
    for (at, text) in export.skills.into_iter().enumerate() {
        let named =
            text.lines().find_map(|line| Slug::fold(line.strip_prefix("name:")?.trim().trim_matches(['"', '\''])));
        let name = named.map_or_else(|| format!("skill-{}", at + 1), |slug| slug.to_string());
        put(format!("skills/{name}/SKILL.md"), Some(text));
    }
    if !files.contains_key("routing.md") {
        let source = Source::new(file.display().to_string(), 0);
        let message = "it holds no routing table: that release did not export one";
        problems.push(Problem::new(Severity::Note, source, "import-routing", message));
    }
    let files = files.into_iter().map(|(path, bytes)| NewFile::plain(path, bytes)).collect();
    Ok(Contents { files, entries: None, problems })
}

fn is_name(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && name.len() <= 100 && name.chars().all(is_fit)
}

/// Of those who have a charter. What they do is in it.
fn roster<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let rows = names.map(|name| format!("| {name} | Agent | agents/{name}/charter.md | Active |\n"));
    format!(
        "# Team\n\n| Name | Role | Charter | Status |\n|------|------|---------|--------|\n{}",
        rows.collect::<String>()
    )
}
