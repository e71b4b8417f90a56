//! Team files to the model. Never fails: what was not understood is a [`Problem`] with its file and line.
//!
//! Works over [`Files`], the contents of a `.squad/` folder, so that nothing here touches a disk.

mod charter;
mod decisions;
mod front_matter;
mod markdown;
mod roster;
mod routing;
mod words;

use std::collections::BTreeMap;

#[cfg(test)]
pub(crate) use decisions::decision_file;

use crate::model::{Decision, Problem, Severity, Slug, Source, Team};

/// The JSON files, by their paths from the team folder, that a routing file points to.
pub(crate) fn linked_tables(routing: &str) -> Vec<String> {
    routing::linked_tables(routing)
}

/// The text files of a team folder, by path from that folder, with `/`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// The folder's path from the project's root: `.squad`.
    pub(crate) folder: String,
    pub(crate) texts: BTreeMap<String, String>,
}

impl Files {
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(|text| without_mark(text))
    }

    /// The same file, as people call it: from the project's root.
    fn shown(&self, path: &str) -> String {
        format!("{}/{path}", self.folder)
    }

    fn at(&self, path: &str, line: usize) -> Source {
        Source::new(self.shown(path), line)
    }
}

/// Reads a whole team.
pub(crate) fn team(files: &Files) -> (Team, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut team = Team::default();

    match files.text("team.md") {
        Some(text) => {
            let roster = roster::read(files, text, &mut problems);
            team.name = roster.name;
            team.members = roster.members;
        }
        None => problems.push(
            Problem::new(Severity::Error, files.at("team.md", 1), "roster-missing", "there is no team.md")
                .hint("`squad init` makes a team"),
        ),
    }
    for member in &team.members {
        read_agent_folder(files, &member.slug, &mut team.charters, &mut team.histories, &mut problems);
    }
    match files.text("routing.md") {
        Some(text) => {
            let routing = routing::read(files, text, &team.members, &mut problems);
            team.rules = routing.rules;
            team.modules = routing.modules;
            team.labels = routing.labels;
        }
        None => problems.push(
            Problem::warning(files.at("routing.md", 1), "routing-missing", "there is no routing.md")
                .hint("without it only @mentions and charters decide who works"),
        ),
    }
    let decisions = decisions::read(files, &mut problems);
    team.decisions = decisions.current;
    team.archived = decisions.archived;
    problems.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line))));
    (team, problems)
}

/// The decisions alone, those in archives last: a file on the branch is in force wherever it lies.
pub(crate) fn decisions(files: &Files) -> Vec<Decision> {
    let decisions = decisions::read(files, &mut Vec::new());
    decisions.current.into_iter().chain(decisions.archived).collect()
}

fn read_agent_folder(
    files: &Files,
    slug: &Slug,
    charters: &mut BTreeMap<Slug, crate::model::Charter>,
    histories: &mut BTreeMap<Slug, String>,
    problems: &mut Vec<Problem>,
) {
    let folder = format!("agents/{slug}");
    let charter = format!("{folder}/charter.md");
    if let Some(text) = files.text(&charter) {
        charters.insert(slug.clone(), charter::read(files, &charter, text, problems));
    }
    if let Some(text) = files.text(&format!("{folder}/history.md")) {
        histories.insert(slug.clone(), line_feeds(text));
    }
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// LF line ends only, so that the same text compiles to the same bytes wherever it was checked out.
fn line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests;
