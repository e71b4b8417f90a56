//! An Agent Plugin 1.0 (agent-plugins.org): a manifest, skills in the format of agentskills.io, and squad as an MCP
//! server.

use std::collections::BTreeMap;

use serde_json::json;

use super::render::{Agent, HostText, HostTexts, MARK, PROMPT_TEXT, agents, field, one_line};
use crate::model::{IntoMap, Slug, Team, first_line};
use crate::ops::team::templates::hash;
use crate::parse;

pub(super) const FOLDER: &str = ".agents/plugins/squad-team";

/// Limits of agentskills.io.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;

/// `files` are the team's skills, by path from the team folder.
pub(super) fn texts(team: &Team, files: &HostTexts, team_folder: &str) -> HostTexts {
    let mut skills: BTreeMap<String, HostTexts> = BTreeMap::new();
    let squad = skill(
        "squad",
        "Hands work to the team of AI agents in .squad/, and shows what the team has decided and done. Use when the \
         user asks for the team, for one of its agents, or for a decision to be recorded.",
        "its own templates",
        parse::body(PROMPT_TEXT),
    );
    skills.insert("squad".to_owned(), BTreeMap::from([("SKILL.md".to_owned(), squad)]));
    for agent in agents(team) {
        let name = skill_name(&format!("squad-{}", agent.slug));
        skills
            .entry(name.clone())
            .or_insert_with(|| BTreeMap::from([("SKILL.md".to_owned(), agent_skill(&name, &agent))]));
    }
    for own in &team.skills {
        let Some(path) = own.path.strip_prefix(team_folder).map(|path| path.trim_start_matches('/')) else { continue };
        let Some((folder, _)) = path.rsplit_once('/') else { continue };
        let Some(text) = files.iter().find_map(|(path, file)| is_skill_file(path, folder).then_some(&file.bytes))
        else {
            continue;
        };
        let name = skill_name(folder.rsplit('/').next().unwrap_or(folder));
        if skills.contains_key(&name) {
            continue;
        }
        let description = match own.description.as_str() {
            "" => format!("A skill of this repository's team: {}.", own.name),
            description => description.to_owned(),
        };
        let text = String::from_utf8_lossy(text).replace("\r\n", "\n");
        let main = skill(&name, &description, &own.path, parse::body(&text));
        let others = files
            .iter()
            .filter(|(path, _)| !is_skill_file(path, folder))
            .filter_map(|(path, file)| Some((path.strip_prefix(folder)?.strip_prefix('/')?.to_owned(), file.clone())));
        skills.insert(name, others.chain([("SKILL.md".to_owned(), main)]).into_map());
    }
    let mut texts: HostTexts = skills
        .into_iter()
        .flat_map(|(name, files)| {
            files.into_iter().map(move |(path, file)| (format!("{FOLDER}/skills/{name}/{path}"), file))
        })
        .into_map();
    texts.insert(format!("{FOLDER}/mcp.json"), HostText::file(servers()));
    let manifest = manifest(&texts);
    texts.insert(format!("{FOLDER}/plugin.json"), HostText::file(manifest));
    texts
}

fn is_skill_file(path: &str, folder: &str) -> bool {
    let inner = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    inner.is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md"))
}

/// A name of lowercase letters, digits and single hyphens.
fn skill_name(text: &str) -> String {
    let name = Slug::spelled(text).map_or_else(|| "skill".to_owned(), |slug| slug.to_string());
    let short: String = name.chars().take(MAX_NAME).collect();
    short.trim_end_matches('-').to_owned()
}

fn agent_skill(name: &str, agent: &Agent<'_>) -> HostText {
    let lead = format!("Work as {}, {}, of the team in `.squad/`, by this charter.", one_line(agent.name), agent.role);
    let description = format!("Work as {}: {}", agent.name, agent.description);
    skill(name, &description, &agent.source, &format!("{lead}\n\n{}", agent.prompt))
}

fn skill(name: &str, description: &str, source: &str, body: &str) -> HostText {
    let description = first_line(&one_line(description), MAX_DESCRIPTION - 1);
    let mark = format!("{MARK}{}; `squad upgrade` updates it.", one_line(source));
    let fields = [field("name", name), field("description", description)];
    HostText::file(format!("---\n{mark}\n{}---\n\n{}\n", fields.concat(), body.trim()))
}

fn servers() -> String {
    let servers = json!({
        "$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
        "mcpServers": {"squad": {"type": "stdio", "command": "squad", "args": ["mcp"]}}
    });
    format!("{servers:#}\n")
}

/// The version is made from a hash of the plugin's content, so that clients notice changes.
fn manifest(texts: &HostTexts) -> String {
    let all: Vec<u8> = texts.iter().flat_map(|(path, text)| [path.as_bytes(), &text.bytes].concat()).collect();
    let version: String = hash(&all).chars().take(12).collect();
    let manifest = json!({
        "$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json",
        "name": "squad-team",
        "version": format!("1.0.0+{version}"),
        "description": "This repository's team of AI agents. Generated by `squad agents export --to plugin`; \
            `squad upgrade` updates it.",
    });
    format!("{manifest:#}\n")
}
