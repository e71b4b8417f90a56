//! Adopting a team of another tool: what people wrote stays, what that tool installed and nobody changed goes, and what
//! calls that tool calls squad. One commit, which `git revert` undoes to the byte.

mod files;
mod known;
mod plan;
mod roles;
mod state;

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::compile::tokens;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{Kind, Problem, list, plural};
use crate::ops::decisions::landing::Lander;
use crate::ops::team::agents::{self, AgentReport, DecisionCount, TeamReport};
use crate::ops::team::changeset::{ChangedFile, Changeset, FileChange};
use crate::ops::team::membership::Outlet;
use crate::ops::team::project::insist_on_readable;
use crate::ops::team::shell::{self, OtherSquad};
use crate::ops::team::workspace::not_left_out;
use crate::ops::{Workspace, repository};
use crate::parse;
use crate::store;
use files::ToolFiles;
use known::Known;
pub(crate) use plan::Left;
use plan::{PROMPT, Plan, in_team};
use roles::Roles;
pub(crate) use state::StateTaken;

pub(crate) const COMMAND: &str = "adopt";

/// What adopting does, or would.
#[derive(Serialize)]
pub(crate) struct Adopted {
    /// Where the team is then, from the repository's root.
    pub(crate) folder: String,
    /// The release that the coordinator's prompt says it is of.
    pub(crate) release: Option<String>,
    pub(crate) read: TeamRead,
    pub(crate) files: Vec<ChangedFile>,
    pub(crate) left: Vec<Left>,
    /// MCP servers that are squad's now, as `FILE: NAME`.
    pub(crate) servers: Vec<String>,
    /// Lines of `.gitignore` that hid decisions, as `FILE:LINE`.
    pub(crate) lifted: Vec<String>,
    /// `None` for a team that is new.
    pub(crate) before: Option<Measure>,
    pub(crate) after: Option<Measure>,
    /// What the other tool kept in refs of its own, and the ledger has now.
    pub(crate) state: Option<StateTaken>,
    /// What a shell calls `squad`, where that is not this program.
    pub(crate) other_squad: Option<OtherSquad>,
    pub(crate) commit: Option<String>,
    #[serde(skip)]
    pub(crate) diff: String,
}

/// What squad understands of the team.
#[derive(Serialize)]
pub(crate) struct TeamRead {
    pub(crate) agents: usize,
    /// Built-in helpers, people and bots: listed, and never started.
    pub(crate) others: usize,
    pub(crate) rules: usize,
    pub(crate) decisions: DecisionCount,
    /// What was not understood, and where.
    pub(crate) problems: Vec<Problem>,
}

impl TeamRead {
    /// `Read 5 agents, 3 other members, 12 routing rules and 40 decisions.`
    pub(crate) fn summary(&self) -> String {
        let parts = [
            plural(self.agents, "agent"),
            plural(self.others, "other member"),
            plural(self.rules, "routing rule"),
            plural(self.decisions.total + self.decisions.archived, "decision"),
        ];
        format!("Read {}.", list(parts))
    }
}

/// What a team costs.
#[derive(Serialize)]
pub(crate) struct Measure {
    pub(crate) files: usize,
    pub(crate) bytes: usize,
    /// What an agent is told or told to read before its task, about; of all startable agents on average.
    pub(crate) agent_tokens: usize,
    /// The coordinator's prompt for hosts.
    pub(crate) coordinator_tokens: usize,
    /// Routing rules that are understood.
    pub(crate) rules: usize,
}

pub(crate) fn adopt(env: &Env, directory: &Path, outlet: Outlet) -> Result<Adopted, Failure> {
    let workspace = match Workspace::find(env, directory) {
        Ok(workspace) => workspace,
        Err(failure) => return new_team(env, directory, outlet, failure),
    };
    if workspace.folder.is_borrowed() {
        return Err(Failure::team("the team is the main work tree's").hint("adopt it there"));
    }
    let _turn = match outlet {
        Outlet::Shown { .. } => None,
        Outlet::Commit | Outlet::WorkTree => Some(Lander::new(env, &workspace).turn()?),
    };
    insist_on_readable(&workspace)?;
    let report = agents::report(env, directory)?;
    let files = ToolFiles::read(&workspace, outlet)?;
    let Plan { changes, left, servers, lifted } = Plan::new(&files, workspace.folder.name, &Known::of(env));
    let message = message(&files, &changes);
    let changeset = Changeset { command: COMMAND.to_owned(), message, files: changes };
    let mut adopted = Adopted {
        folder: files.full(store::FOLDERS[0]),
        release: files.texts.get(PROMPT).and_then(|prompt| known::release(prompt)),
        before: Some(before(&files, &report, &changeset)),
        after: Some(after(&files, &report, &changeset)),
        read: read(report),
        files: changeset.changed_files(),
        left,
        servers,
        lifted,
        state: None,
        other_squad: shell::other_squad(env),
        commit: None,
        diff: if matches!(outlet, Outlet::Shown { .. }) { changeset.diff() } else { String::new() },
    };
    let is_to_write = !matches!(outlet, Outlet::Shown { .. });
    adopted.state = state::take(env, &workspace, false)?;
    let has_state = adopted.state.as_ref().is_some_and(|state| !state.is_nothing());
    // A commit asks for itself; what goes to the ledger goes first.
    if outlet.is_of_the_branch() && (has_state || !is_to_write) {
        changeset.insist_on_room(&workspace.repository)?;
    }
    if has_state && is_to_write {
        adopted.state = state::take(env, &workspace, true)?;
    }
    if !changeset.files.is_empty() {
        match outlet {
            Outlet::Commit => adopted.commit = Some(changeset.commit(env, &workspace.repository)?),
            Outlet::WorkTree => changeset.write(&workspace.repository)?,
            Outlet::Shown { .. } => {}
        }
    }
    let [new, old] = store::FOLDERS.map(|folder| workspace.folder.root.join(folder));
    // Killed after its commit, an earlier call may have left what git does not know of.
    let is_rest = !files.has_any(store::FOLDERS[1]) && !old.join("team.md").exists();
    if is_to_write && is_rest && new.is_dir() {
        bring(&old, &new);
    }
    Ok(adopted)
}

/// A team out of role files at the repository's root, if there are any and no team is on the branch.
fn new_team(env: &Env, directory: &Path, outlet: Outlet, no_team: Failure) -> Result<Adopted, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    not_left_out(&repository)?;
    if store::FOLDERS.iter().any(|folder| work_dir.join(folder).symlink_metadata().is_ok()) {
        return Err(no_team);
    }
    let roles = Roles::read(&work_dir);
    if roles.sources.is_empty() {
        return Err(no_team);
    }
    let changes = roles.changes();
    let message = format!("squad: make a team of role files\n\nTheir texts, as charters: {}.\n", list(&roles.sources));
    let changeset = Changeset { command: COMMAND.to_owned(), message, files: changes };
    let (team, problems) = parse::team(&roles.files);
    let read = TeamRead {
        agents: team.members.len(),
        others: 0,
        rules: team.rules.len(),
        decisions: DecisionCount { total: 0, dated: 0, attributed: 0, archived: 0 },
        problems,
    };
    let mut adopted = Adopted {
        folder: store::FOLDERS[0].to_owned(),
        release: None,
        read,
        files: changeset.changed_files(),
        left: roles.left,
        servers: Vec::new(),
        lifted: Vec::new(),
        before: None,
        after: None,
        state: None,
        other_squad: shell::other_squad(env),
        commit: None,
        diff: if matches!(outlet, Outlet::Shown { .. }) { changeset.diff() } else { String::new() },
    };
    match outlet {
        Outlet::Commit => adopted.commit = Some(changeset.commit(env, &repository)?),
        Outlet::WorkTree => changeset.write(&repository)?,
        Outlet::Shown { as_commit: true } => changeset.insist_on_room(&repository)?,
        Outlet::Shown { as_commit: false } => {}
    }
    Ok(adopted)
}

/// Moves what is in a folder to another, where it has nothing of that name. What cannot be moved stays.
fn bring(old: &Path, new: &Path) {
    // A link leads to somebody else's files.
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    if !is_folder(old) || !is_folder(new) {
        return;
    }
    for entry in fs::read_dir(old).into_iter().flatten().flatten() {
        let target = new.join(entry.file_name());
        match target.symlink_metadata() {
            Err(_) => drop(fs::rename(entry.path(), target)),
            Ok(_) => bring(&entry.path(), &target),
        }
    }
    let _ = fs::remove_dir(old);
}

fn message(files: &ToolFiles, changes: &[FileChange]) -> String {
    let release = files.texts.get(PROMPT).and_then(|prompt| known::release(prompt));
    let tool =
        release.map_or_else(|| "another tool".to_owned(), |release| format!("release {release} of another tool"));
    let count = |is: fn(&FileChange) -> bool| changes.iter().filter(|file| is(file)).count();
    let (removed, moved) = (count(|file| file.new.is_none()), count(|file| file.from.is_some()));
    format!(
        "squad: adopt the team\n\nTakes it over from {tool}: {} removed, {moved} moved, {} changed.\n\
         What people wrote is as it was.\n",
        plural(removed, "file"),
        changes.len() - removed - moved
    )
}

/// What squad understands of a team.
pub(crate) fn read(report: TeamReport) -> TeamRead {
    TeamRead {
        agents: report.agents.iter().filter(|agent| agent.kind == Kind::Agent).count(),
        others: report.agents.iter().filter(|agent| agent.kind != Kind::Agent).count(),
        rules: report.rules.len(),
        decisions: report.decisions,
        problems: report.problems,
    }
}

/// Whether a file is the team's or the other tool's.
fn counts(path: &str, changeset: &Changeset, files: &ToolFiles) -> bool {
    in_team(path).is_some()
        || path == PROMPT
        || changeset.files.iter().any(|file| file.new.is_none() && file.path == files.full(path))
}

fn before(files: &ToolFiles, report: &TeamReport, changeset: &Changeset) -> Measure {
    let size = |path: &str| files.texts.get(path).map_or(0, Vec::len);
    let text = |path: &str| files.texts.get(path).map_or(0, |bytes| tokens(&String::from_utf8_lossy(bytes)));
    let all: Vec<&String> = files.texts.keys().filter(|path| counts(path, changeset, files)).collect();
    let decisions: usize = store::FOLDERS.iter().map(|folder| text(&format!("{folder}/decisions.md"))).sum();
    // Each agent is told to read its charter, its history and all decisions.
    let told = |agent: &AgentReport| {
        let charter = agent.charter.as_deref().unwrap_or_default();
        let history = charter.rsplit_once('/').map(|(folder, _)| format!("{folder}/history.md"));
        text(charter) + history.map_or(0, |history| text(&history)) + decisions
    };
    Measure {
        files: all.len(),
        bytes: all.iter().map(|path| size(path)).sum(),
        agent_tokens: average(report.agents.iter().filter(|agent| agent.kind == Kind::Agent).map(told)),
        coordinator_tokens: text(PROMPT),
        rules: store::FOLDERS
            .iter()
            .filter_map(|folder| files.texts.get(&format!("{folder}/routing.md")))
            .map(|text| rules_of_the_tool(&String::from_utf8_lossy(text)))
            .next()
            .unwrap_or_default(),
    }
}

/// How many rules the other tool's parser finds: rows with two cells below `## Routing Table`, after a row that says
/// `Work Type` or `Pattern`.
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

fn after(files: &ToolFiles, report: &TeamReport, changeset: &Changeset) -> Measure {
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
