//! Fits a new team to a repository: selects agents, and fills in facts about the project and the owners of folders.

use std::collections::BTreeMap;

use super::proposal::{Fact, Proposal, YOURS};
use crate::error::Failure;
use crate::model::{list, printable_line};

/// Files by path from the team folder, with `/`.
pub(crate) type TeamFiles = BTreeMap<String, Vec<u8>>;

const ROSTER: &str = "team.md";
const ROUTING: &str = "routing.md";
const CONFIG: &str = "config.toml";

/// The agents of each built-in preset.
const PRESETS: [(&str, &[&str]); 7] = [
    ("default", &["lead", "backend", "frontend", "tester", "docs", "reviewer"]),
    ("solo", &["backend"]),
    ("library", &["lead", "backend", "tester", "docs", "reviewer"]),
    ("web", &["lead", "backend", "frontend", "tester", "reviewer"]),
    ("service", &["lead", "backend", "tester", "reviewer"]),
    ("docs", &["docs", "reviewer"]),
    ("research", &["lead", "backend", "docs"]),
];

/// The first of these that is on the team takes over the work of agents that are not.
const FALLBACK_AGENTS: [&str; 4] = ["backend", "docs", "lead", "reviewer"];

/// The slugs of a preset's agents.
pub(crate) fn preset(name: &str) -> Result<Vec<String>, Failure> {
    let found = PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, agents)| *agents);
    let agents = found.ok_or_else(|| {
        let names = list(PRESETS.map(|(preset, _)| preset));
        Failure::usage(format!("there is no preset `{name}`")).hint(format!("there are {names}"))
    })?;
    Ok(agents.iter().map(|agent| (*agent).to_owned()).collect())
}

/// Parses a preset's name or a comma-separated list of agents.
pub(crate) fn agents(answer: &str) -> Result<Vec<String>, Failure> {
    let answer = answer.trim().to_lowercase();
    let named: Vec<String> = answer.split(',').map(|name| name.trim().to_owned()).collect();
    let known = preset("default")?;
    match named.iter().all(|name| known.contains(name)) {
        true => Ok(named),
        false => preset(&answer).map_err(|_| {
            Failure::usage(format!("`{answer}` is neither a preset nor a list of agents")).hint(format!(
                "presets are {}; agents {}",
                list(PRESETS.map(|(preset, _)| preset)),
                list(&known)
            ))
        }),
    }
}

/// Names the command that checks the project in the configuration.
pub(super) fn use_check(files: &mut TeamFiles, Fact { value, source }: &Fact) {
    let run: Vec<toml::Value> = value.split(' ').map(toml::Value::from).collect();
    let (config, run) = (text(files, CONFIG), toml::Value::from(run));
    let gap = if config.is_empty() { "" } else { "\n" };
    let from = match source.as_str() {
        YOURS => "You named it at `squad init`".to_owned(),
        source => format!("From {}", printable_line(source)),
    };
    let section = format!("[check]\n# squad runs it on what agents change, once `squad trust` approves it. {from}:\n");
    put(files, CONFIG, format!("{config}{gap}{section}run = {run}\n"));
}

/// Sets the engine in the configuration; replaces the commented-out line for it, if there is one.
pub(super) fn use_engine(files: &mut TeamFiles, name: &str) {
    let placeholder = "# name = \"copilot\"\n";
    let line = format!("name = {}\n", toml::Value::from(name));
    let config = text(files, CONFIG);
    let gap = if config.is_empty() { "" } else { "\n" };
    let config = match config.contains(placeholder) {
        true => config.replacen(placeholder, &line, 1),
        false => format!("{config}{gap}[engine]\n{line}"),
    };
    put(files, CONFIG, config);
}

fn text(files: &TeamFiles, path: &str) -> String {
    files.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

fn put(files: &mut TeamFiles, path: &str, text: String) {
    files.insert(path.to_owned(), text.into_bytes());
}

/// The trimmed cells of a table row.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// Removes all other agents from the team. Their work goes to one of [`FALLBACK_AGENTS`]; removed reviewers are not
/// replaced.
pub(super) fn select_agents(files: &mut TeamFiles, agents: &[String]) -> Result<(), Failure> {
    let roster = text(files, ROSTER);
    let slug_of = |line: &str| {
        let name = cells(line)?.first()?.to_lowercase();
        files.contains_key(&format!("agents/{name}/charter.md")).then_some(name)
    };
    let known: Vec<String> = roster.lines().filter_map(slug_of).collect();
    if let Some(unknown) = agents.iter().find(|agent| !known.contains(agent)) {
        return Err(Failure::usage(format!("squad installs no agent `{unknown}`"))
            .hint(format!("it installs {}; `squad agents add` adds others", list(&known))));
    }
    let selection = Selection::new(&known, agents);
    let remaining = roster.lines().filter(|line| slug_of(line).is_none_or(|slug| !selection.removes(&slug)));
    let remaining: String = remaining.map(|line| format!("{line}\n")).collect();
    put(files, ROSTER, remaining);
    files.retain(|path, _| {
        path.split('/').nth(1).is_none_or(|slug| !path.starts_with("agents/") || !selection.removes(slug))
    });
    for (path, bytes) in files.iter_mut() {
        *bytes = selection.tailored(path, bytes);
    }
    Ok(())
}

/// Which agents of a team are installed, and what that makes of its files.
pub(super) struct Selection {
    removed: Vec<String>,
    /// Who gets the work of those that are not.
    fallback: String,
}

impl Selection {
    /// `known`: the slugs of all agents; `agents`: of those that are installed.
    pub(super) fn new(known: &[String], agents: &[String]) -> Self {
        let removed = known.iter().filter(|slug| !agents.contains(slug)).cloned().collect();
        let fallback = FALLBACK_AGENTS.into_iter().find(|slug| agents.iter().any(|one| one == slug));
        let fallback = fallback.or(agents.first().map(String::as_str)).map(capitalized).unwrap_or_default();
        Self { removed, fallback }
    }

    fn removes(&self, slug: &str) -> bool {
        self.removed.iter().any(|removed| removed == slug)
    }

    /// The routing, or a charter, without the agents that are not installed. Other files, and other lines, stay as they
    /// are, so that an upgrade finds them unchanged.
    pub(super) fn tailored(&self, path: &str, bytes: &[u8]) -> Vec<u8> {
        let is_removed = |slug: &str| self.removes(slug);
        let tailor = |line: &str| match path {
            ROUTING => rerouted(line, &is_removed, &self.fallback),
            _ => without_removed(line, &is_removed),
        };
        match std::str::from_utf8(bytes) {
            Ok(text) if !self.removed.is_empty() && (path == ROUTING || path.ends_with("/charter.md")) => {
                let tailor = |line: &str| {
                    let inner = line.trim_end_matches(['\r', '\n']);
                    tailor(inner) + &line[inner.len()..]
                };
                text.split_inclusive('\n').map(tailor).collect::<String>().into_bytes()
            }
            _ => bytes.to_vec(),
        }
    }
}

pub(crate) fn capitalized(slug: &str) -> String {
    let (first, rest) = slug.split_at(slug.len().min(1));
    format!("{}{rest}", first.to_uppercase())
}

/// A row of the routing table without removed agents.
fn rerouted(line: &str, is_removed: &impl Fn(&str) -> bool, fallback: &str) -> String {
    let Some([signal, who, examples]) = cells(line).and_then(|cells| <[&str; 3]>::try_from(cells).ok()) else {
        return line.to_owned();
    };
    let (worker, reviewer) = who.split_once(" + ").map_or((who, None), |(worker, reviewer)| (worker, Some(reviewer)));
    let slug = |name: &str| name.split(' ').next().unwrap_or_default().to_lowercase();
    let is_gone = is_removed(&slug(worker));
    let worker = if is_gone { fallback } else { worker };
    match reviewer.filter(|reviewer| !is_removed(&slug(reviewer)) && slug(reviewer) != slug(worker)) {
        kept if !is_gone && kept == reviewer => line.to_owned(),
        Some(reviewer) => format!("| {signal} | {worker} + {reviewer} | {examples} |"),
        None => format!("| {signal} | {worker} | {examples} |"),
    }
}

/// A charter's line that refers work to other agents, without removed agents.
fn without_removed(line: &str, is_removed: &impl Fn(&str) -> bool) -> String {
    let Some((head, rest)) = line.split_once("**I don't handle:** ") else { return line.to_owned() };
    let (rest, after) =
        rest.split_once(". ").map_or((rest, String::new()), |(rest, after)| (rest, format!(" {after}")));
    let mut items: Vec<String> = Vec::new();
    let mut depth = 0_usize;
    for part in rest.trim_end_matches('.').split(", ") {
        match items.last_mut().filter(|_| depth > 0) {
            Some(item) => item.push_str(&format!(", {part}")),
            None => items.push(part.to_owned()),
        }
        depth = (depth + part.matches('(').count()).saturating_sub(part.matches(')').count());
    }
    let of_team = |item: String| {
        let Some((work, names)) = item.rsplit_once(" (") else { return Some(item) };
        let names = names.trim_end_matches(')').split(", ").filter(|name| !is_removed(&name.to_lowercase()));
        let names = names.collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("{work} ({names})"))
    };
    let items = items.into_iter().filter_map(of_team).collect::<Vec<_>>().join(", ");
    match items.strip_prefix("or ").unwrap_or(&items) {
        "" => format!("{head}**I don't handle:** what the task does not ask for.{after}"),
        items => format!("{head}**I don't handle:** {items}.{after}"),
    }
}

/// The heading of the section that [`fill_in`] appends to the routing.
const OWNERSHIP: &str = "\n## Module Ownership\n";

/// The routing as it was before [`fill_in`] appended a section.
pub(super) fn without_ownership(routing: &str) -> Option<&str> {
    routing.find(OWNERSHIP).and_then(|at| routing.get(..at))
}

/// Fills in facts about the project and the owners of folders, and leaves out what is not known. With `only_blanks`, the
/// user's own preset keeps every line.
pub(super) fn fill_in(files: &mut TeamFiles, facts: &Proposal, only_blanks: bool) {
    let roster = text(files, ROSTER);
    let filled = |line: &str| match filled(line, facts) {
        _ if only_blanks && !is_blank(line) => Some(line.to_owned()),
        filled if only_blanks => filled.or_else(|| Some(line.to_owned())),
        filled => filled,
    };
    let filled: String = roster.lines().filter_map(filled).map(|line| format!("{line}\n")).collect();
    let has_agent = |owner: &str| files.contains_key(&format!("agents/{}/charter.md", owner.to_lowercase()));
    let owned = facts.owners().filter(|(_, owner)| has_agent(owner));
    let rows: String = owned.map(|(path, owner)| format!("| {path}/ | {owner} |\n")).collect();
    if roster != filled {
        put(files, ROSTER, filled);
    }
    let routing = text(files, ROUTING);
    if !rows.is_empty() && !routing.contains(OWNERSHIP) {
        let table = "| Path | Owner |\n|------|-------|\n";
        put(
            files,
            ROUTING,
            format!("{routing}{OWNERSHIP}\nA message that names a path goes to its owner.\n\n{table}{rows}"),
        );
    }
}

/// Whether a field is empty or holds only a placeholder.
fn is_blank(line: &str) -> bool {
    let value = line.split_once(":**").map_or(line, |(_, value)| value).trim();
    value.is_empty() || value.starts_with(['{', '<']) || ["TBD", "TODO", "…", "..."].contains(&value)
}

/// A line of the roster with what is known. `None`: a field of which nothing is.
fn filled(line: &str, facts: &Proposal) -> Option<String> {
    let Some((key, rest)) = line.strip_prefix("- **").and_then(|line| line.split_once(":**")) else {
        return Some(line.to_owned());
    };
    let code = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let rest = rest.trim();
    let value = match key {
        "Purpose" => facts.purpose.as_ref().map(|purpose| purpose.value.clone()),
        "Users" => facts.users.as_ref().map(|users| users.value.clone()),
        "Stack" => facts.stack.as_ref().map(|stack| format!("{}. Nothing is added without a decision.", stack.value)),
        "Build and test" if !facts.checks.is_empty() => {
            let commands: Vec<&str> = facts.checks.iter().map(|check| check.value.as_str()).collect();
            Some(format!("{}. A change is done when they pass.", code(&commands)))
        }
        "Conventions" if !facts.conventions.is_empty() => Some(format!("{rest} Read {}.", code(&facts.conventions))),
        "Off limits" => {
            facts.code_owners.as_ref().map(|path| format!("{rest} `{path}` says who approves changes of what."))
        }
        _ => None,
    };
    let value = value.unwrap_or_else(|| rest.to_owned());
    (!value.is_empty()).then(|| format!("- **{key}:** {value}"))
}
