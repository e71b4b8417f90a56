//! Reads `squad-export.json` of the npm package `@bradygaster/squad-cli`, format version 1.0, as releases 0.8.18 and
//! 0.10.0 write it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::Contents;
use crate::error::Failure;
use crate::git::NewFile;
use crate::model::{Problem, Severity, Slug, Source, from_json};
use crate::ops::team::export::MAX_SIZE;

#[derive(Deserialize)]
struct Export {
    version: String,
    /// Releases before 0.10.0 do not export the roster.
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
    let failed = |what: String| Failure::team(what).at(file.display()).hint("use a file that `squad export` wrote");
    let length = fs::metadata(file).map_or(0, |facts| facts.len());
    if length > MAX_SIZE {
        return Err(failed(format!("its size is {} MiB, more than any team's export", length >> 20)));
    }
    let bytes = fs::read(file).map_err(|error| failed(format!("cannot be read: {error}")))?;
    let export: Export =
        from_json(bytes).map_err(|error| failed(format!("it is neither a git bundle nor a team's export: {error}")))?;
    if export.version != "1.0" {
        return Err(failed(format!("its format version is {:?}, and squad reads only 1.0", export.version)));
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
            return Err(failed(format!("{name:?} is not a valid folder name for an agent")));
        }
        put(format!("agents/{name}/charter.md"), agent.charter);
        put(format!("agents/{name}/history.md"), agent.history);
    }
    for (name, value) in &export.casting {
        match is_name(name) {
            true => {
                put(format!("casting/{name}.json"), serde_json::to_string_pretty(value).ok().map(|text| text + "\n"))
            }
            false => return Err(failed(format!("{name:?} is not a valid name for a casting file"))),
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
        let message = "it contains no routing table: older releases do not export it";
        problems.push(Problem::new(Severity::Note, source, "import-routing", message));
    }
    let files = files.into_iter().map(|(path, bytes)| NewFile::plain(path, bytes)).collect();
    Ok(Contents { files, ledger: None, problems })
}

fn is_name(name: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && name.len() <= 100 && name.chars().all(is_valid)
}

/// A roster of the agents with charters. Their roles are in the charters.
fn roster<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let rows = names.map(|name| format!("| {name} | Agent | agents/{name}/charter.md | Active |\n"));
    format!(
        "# Team\n\n| Name | Role | Charter | Status |\n|------|------|---------|--------|\n{}",
        rows.collect::<String>()
    )
}
