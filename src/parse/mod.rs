//! Reads team files into the model. Never fails: text that it cannot read becomes a [`Problem`] with file and line.
//!
//! Its input is [`Files`], the contents of a `.squad/` folder, so it needs no disk.

mod abroad;
mod bytes;
mod casting;
mod ceremonies;
mod charter;
mod conflicts;
mod context;
mod decisions;
mod fields;
mod front_matter;
mod hidden;
mod identity;
mod json;
pub(crate) mod learned;
mod markdown;
mod role;
mod roster;
mod routing;
mod skills;
mod words;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use bytes::{Encoding, line_end, text_of};
pub(crate) use charter::FORMERLY;
pub(crate) use conflicts::{CONFLICT, conflicts};
#[cfg(test)]
pub(crate) use decisions::decision_file;
pub(crate) use decisions::{
    IMPORTED, KNOWLEDGE, NO_DECISION, Piece, holds_decisions, is_record_of_decisions, main_file, sources, split,
    stands_before_another,
};
pub(crate) use fields::without_active_fields;
pub(crate) use front_matter::body;
pub(crate) use role::{RoleText, codex_role, role};
pub(crate) use roster::{
    BOT, Columns as RosterColumns, Folders, HELPERS, is_of_the_retired, names_everyone, names_nobody,
    tables as roster_tables,
};
pub(crate) use routing::{TableKind, at_arrow, tables as rule_tables};
pub(crate) use words::{is_blank, remark, without_pictographs};

use markdown::Document;
pub(crate) use markdown::PlacedTable;
use serde::{Deserialize, Serialize};

use crate::model::{Decision, IntoMap, IntoSet, Problem, Severity, Slug, Sort, Source, Team};

/// Paths, from the team folder, of the files that the roster and the routing file link to: charters in other places,
/// and JSON tables.
pub(crate) fn linked_files(files: &Files) -> Vec<String> {
    let charters = files.text("team.md").map(roster::linked_charters);
    let tables = files.text("routing.md").map(routing::linked_tables);
    charters.into_iter().chain(tables).flatten().collect()
}

/// The text files of a team folder, by their path in it, with `/`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Files {
    /// The folder's path from the project's root: `.squad`.
    pub(crate) folder: String,
    pub(crate) texts: BTreeMap<String, String>,
}

impl Files {
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(|text| without_mark(text))
    }

    /// The `config.*` files, and the charters that bring MCP servers.
    pub(crate) fn configuration(&self) -> Self {
        self.only(|path| path.starts_with("config.") || self.charter_servers(path).is_some())
    }

    /// The MCP servers in a charter's front matter, with its agent and the line.
    pub(crate) fn charter_servers<'p>(&self, path: &'p str) -> Option<(serde_json::Value, &'p str, usize)> {
        let inner = path.strip_prefix("agents/")?;
        let agent = match inner.split_once('/') {
            Some((folder, file)) => file.eq_ignore_ascii_case("charter.md").then_some(folder)?,
            None => inner.strip_suffix(".md")?,
        };
        let (servers, line) = charter::servers(self.text(path)?)?;
        Some((servers, agent, line))
    }

    /// Without the files that these problems are about.
    fn without(&self, problems: &[Problem]) -> Self {
        self.only(|path| problems.iter().all(|problem| problem.file != self.shown(path)))
    }

    fn only(&self, is_kept: impl Fn(&str) -> bool) -> Self {
        let texts = self.texts.iter().filter(|(path, _)| is_kept(path));
        Self { folder: self.folder.clone(), texts: texts.map(|(path, text)| (path.clone(), text.clone())).into_map() }
    }

    /// A file's path from the project's root, as messages show it.
    pub(crate) fn shown(&self, path: &str) -> String {
        format!("{}/{path}", self.folder)
    }

    fn at(&self, path: &str, line: usize) -> Source {
        Source::new(self.shown(path), line)
    }
}

/// Reads a whole team. If a merge is unfinished, only that is reported: it causes all other problems.
pub(crate) fn team(files: &Files) -> (Team, Vec<Problem>) {
    let (team, _, problems) = team_and_notes(files);
    (team, problems)
}

/// The same with its notes of knowledge, which hold beyond this project, newest first if dated.
pub(crate) fn team_and_notes(files: &Files) -> (Team, Vec<Decision>, Vec<Problem>) {
    let conflicts = conflicts(files);
    if conflicts.is_empty() {
        return whole_team(files);
    }
    let (team, notes, _) = whole_team(&files.without(&conflicts));
    (team, notes, conflicts)
}

fn whole_team(files: &Files) -> (Team, Vec<Decision>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut team = Team::default();
    let folders = Folders::new(files);
    let (mut models, mut coordinator) = (BTreeMap::new(), None);

    match files.text("team.md") {
        Some(text) => {
            let roster = roster::read(files, &folders, &line_feeds(text), &mut problems);
            team.name = roster.name;
            team.members = roster.members;
            team.context = roster.context;
            models = roster.models;
            coordinator = roster.coordinator;
            team.casts = casting::read(files, &mut problems);
            casting::compare(&team.casts, &mut team.members, &roster.silent, &mut problems);
        }
        None => problems.push(
            Problem::new(Severity::Error, files.at("team.md", 1), "roster-missing", "there is no team.md")
                .hint(folders.as_a_roster()),
        ),
    }
    team.coordinator = coordinator.as_ref().and_then(|path| context::of_coordinator(files, path));
    read_agents(files, &folders, coordinator.as_deref(), &mut team, &mut problems);
    fill_in(&mut team, &models, &mut problems);
    match files.text("routing.md") {
        Some(text) => {
            let routing = routing::read(files, &line_feeds(text), &team.members, &mut problems);
            team.rules = routing.rules;
            team.modules = routing.modules;
            team.labels = routing.labels;
            team.routing = routing.prose;
        }
        None => problems.push(
            Problem::warning(files.at("routing.md", 1), "routing-missing", "there is no routing.md")
                .hint("without it, routing uses only @mentions and charters"),
        ),
    }
    team.skills = skills::read(files, &mut problems);
    team.notes = identity::read(files);
    team.ceremonies = ceremonies::read(files, &team.members, &mut problems);
    let decisions = decisions::read(files, &mut problems);
    hidden::say_hidden(files, &mut problems);
    team.decisions = decisions.current;
    team.archived = decisions.archived;
    problems.stable_sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line))));
    (team, decisions.knowledge, problems)
}

/// How many members the roster has.
pub(crate) fn members(files: &Files) -> usize {
    let text = files.text("team.md").map(line_feeds).unwrap_or_default();
    roster::read(files, &Folders::new(files), &text, &mut Vec::new()).members.len()
}

/// Only the decisions, archived ones and notes of knowledge last: a file on the branch is in force wherever it is. Files
/// with an unfinished merge are skipped.
pub(crate) fn decisions(files: &Files) -> Vec<Decision> {
    let conflicts = conflicts(files);
    let sound = if conflicts.is_empty() { None } else { Some(files.without(&conflicts)) };
    let decisions = decisions::read(sound.as_ref().unwrap_or(files), &mut Vec::new());
    decisions.current.into_iter().chain(decisions.archived).chain(decisions.knowledge).collect()
}

/// Reads the members' charters and histories, role files, and charters of agents that are not on the roster.
fn read_agents(
    files: &Files,
    folders: &Folders,
    coordinator: Option<&str>,
    team: &mut Team,
    problems: &mut Vec<Problem>,
) {
    let mut used: BTreeSet<String> = coordinator.map(str::to_owned).into_iter().into_set();
    for member in &team.members {
        let shown = member.charter.as_deref().and_then(|path| path.strip_prefix(&files.folder));
        if let Some(path) = shown.map(|path| path.trim_start_matches('/'))
            && let Some(text) = files.text(path)
        {
            team.charters.insert(member.slug.clone(), charter::read(files, path, text, problems));
            used.insert(path.to_owned());
        }
        let folder = folders.folder(&member.slug).unwrap_or_default();
        if let Some(text) = files.text(&format!("{folder}/history.md")) {
            team.histories.insert(member.slug.clone(), line_feeds(text));
        }
    }
    let has_roster = !team.members.is_empty();
    // Other tools give every team these helpers. They need no row in the roster.
    let is_helper = |slug: &Slug| HELPERS.contains(&slug.as_str());
    let others = folders.with_charter().filter(|(slug, path)| !used.contains(*path) && !is_helper(slug));
    for (slug, path) in others.filter(|_| has_roster) {
        let message = format!("`{slug}` has a charter but is not on the roster");
        problems.push(
            Problem::new(Severity::Note, files.at(path, 1), "agent-not-on-roster", message)
                .hint("add a row for it to team.md, or delete its folder"),
        );
    }
    let members: BTreeSet<&Slug> = team.members.iter().map(|member| &member.slug).into_set();
    for (slug, path) in folders.role_files().filter(|(_, path)| !used.contains(*path)) {
        if let Some(text) = files.text(path).filter(|_| !members.contains(slug)) {
            team.roles.insert(slug.clone(), charter::read(files, path, text, problems));
        }
    }
}

/// Fills in roles from charters, and models from the roster.
fn fill_in(team: &mut Team, models: &BTreeMap<Slug, String>, problems: &mut Vec<Problem>) {
    for member in team.members.iter_mut().filter(|member| member.role.is_empty()) {
        let charter = team.charters.get(&member.slug);
        member.role = charter.and_then(|charter| charter.role.clone()).unwrap_or_default();
        if member.role.is_empty() && member.is_startable() {
            let message = format!("{} has no role, here or in a charter", member.name);
            problems.push(
                Problem::new(Severity::Note, member.source.clone(), "roster-role", message)
                    .hint("say what it does: routing uses the role"),
            );
        }
    }
    for (slug, text) in models {
        if let Some(model) = charter::model_name(text) {
            let charter = team.charters.entry(slug.clone()).or_default();
            charter.model = charter.model.take().or(Some(model));
        }
    }
}

/// Reports rows of a table that are not read.
fn report_stray_rows(files: &Files, path: &str, document: &Document<'_>, problems: &mut Vec<Problem>) {
    problems.extend(document.stray_rows().map(|line| {
        let message = "these rows are separated from their table and are not read";
        Problem::warning(files.at(path, line), "table-rows", message)
            .hint("join them to the table above, or give them a header and a line of dashes")
    }));
}

fn without_mark(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

/// Converts line ends to LF, so that the same text compiles to the same bytes on every platform.
pub(crate) fn line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests;
