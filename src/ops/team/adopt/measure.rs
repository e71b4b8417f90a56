//! Measures a team before and after its adoption.

use serde::Serialize;

use super::files::ToolFiles;
use super::plan::in_team;
use crate::compile::tokens;
use crate::model::Kind;
use crate::ops::team::agents::{AgentReport, TeamReport};
use crate::ops::team::changeset::Changeset;
use crate::ops::team::hosts::PROMPT;
use crate::store;

/// The size of a team.
#[derive(Serialize)]
pub(crate) struct Measure {
    pub(crate) files: usize,
    pub(crate) bytes: usize,
    /// About how much an agent reads before its task; the average of all startable agents.
    pub(crate) agent_tokens: usize,
    /// The size of the coordinator's prompt for hosts.
    pub(crate) coordinator_tokens: usize,
    /// The routing rules that the tool's parser, or squad's, can read.
    pub(crate) rules: usize,
}

/// Whether a file belongs to the team or to the other tool.
fn counts(path: &str, changeset: &Changeset, files: &ToolFiles) -> bool {
    in_team(path).is_some()
        || path == PROMPT
        || changeset.files.iter().any(|file| file.new.is_none() && file.path == files.full(path))
}

pub(super) fn before(files: &ToolFiles, report: &TeamReport, changeset: &Changeset) -> Measure {
    let size = |path: &str| files.texts.get(path).map_or(0, Vec::len);
    let text = |path: &str| files.texts.get(path).map_or(0, |bytes| tokens(&String::from_utf8_lossy(bytes)));
    let all: Vec<&String> = files.texts.keys().filter(|path| counts(path, changeset, files)).collect();
    let decisions: usize = store::FOLDERS.iter().map(|folder| text(&format!("{folder}/decisions.md"))).sum();
    // The other tool has each agent read its charter, its history and all decisions.
    let read_by = |agent: &AgentReport| {
        let charter = agent.charter.as_deref().unwrap_or_default();
        let history = charter.rsplit_once('/').map(|(folder, _)| format!("{folder}/history.md"));
        text(charter) + history.map_or(0, |history| text(&history)) + decisions
    };
    Measure {
        files: all.len(),
        bytes: all.iter().map(|path| size(path)).sum(),
        agent_tokens: average(report.agents.iter().filter(|agent| agent.kind == Kind::Agent).map(read_by)),
        coordinator_tokens: text(PROMPT),
        rules: store::FOLDERS
            .iter()
            .filter_map(|folder| files.texts.get(&format!("{folder}/routing.md")))
            .map(|text| rules_of_the_tool(&String::from_utf8_lossy(text)))
            .next()
            .unwrap_or_default(),
    }
}

/// The number of rules that the other tool's parser finds: rows with two cells below `## Routing Table`, after a row
/// that contains `Work Type` or `Pattern`.
fn rules_of_the_tool(routing: &str) -> usize {
    let (mut is_in_section, mut is_in_table, mut rules) = (false, false, 0);
    for line in routing.lines().map(str::trim) {
        let lower = line.to_lowercase();
        if line.starts_with("##") {
            is_in_section = lower.contains("## routing table") || lower.contains("##routing table");
            is_in_table = false;
        } else if is_in_section && line.starts_with('|') {
            if lower.contains("work type") || lower.contains("pattern") {
                is_in_table = true;
            } else if is_in_table && !line.contains("---") && !line.contains("===") {
                let cells = line.split('|').filter(|cell| !cell.trim().is_empty()).count();
                rules += usize::from(cells >= 2);
            }
        }
    }
    rules
}

pub(super) fn after(files: &ToolFiles, report: &TeamReport, changeset: &Changeset) -> Measure {
    let full = |path: &str| changeset.files.iter().find(|file| file.path == files.full(path));
    let counted = files.texts.iter().filter(|(path, _)| counts(path, changeset, files));
    let sizes: Vec<usize> = counted
        .filter_map(|(path, bytes)| match full(path) {
            Some(change) => change.new.as_ref().map(Vec::len),
            None => Some(bytes.len()),
        })
        .collect();
    let prompt = full(PROMPT).and_then(|change| change.new.as_deref()).or(files.texts.get(PROMPT).map(Vec::as_slice));
    Measure {
        files: sizes.len(),
        bytes: sizes.iter().sum(),
        agent_tokens: average(
            report.agents.iter().filter(|agent| agent.kind == Kind::Agent).map(|agent| agent.prompt_tokens),
        ),
        coordinator_tokens: prompt.map_or(0, |prompt| tokens(&String::from_utf8_lossy(prompt))),
        rules: report.rules.len(),
    }
}

fn average(all: impl Iterator<Item = usize>) -> usize {
    let (count, sum) = all.fold((0, 0), |(count, sum), one| (count + 1, sum + one));
    sum / count.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_reads_one_form_of_routing() {
        let table = "| Work Type | Route To |\n|---|---|\n| API | Ada |\n| Tests |\n";
        assert_eq!(rules_of_the_tool(&format!("## Routing Table\r\n\r\n{table}\n## More\n| UI | Bob |\n")), 1);
        assert_eq!(rules_of_the_tool(&format!("# Routing\n\n{table}")), 0);
        assert_eq!(rules_of_the_tool("## Routing Table\n| Signal | Agent |\n|---|---|\n| API | Ada |\n"), 0);
    }
}
