//! Adopting a team of another tool: what people wrote stays, what that tool installed and nobody changed goes, and what
//! calls that tool calls squad. One commit, which `git revert` undoes to the byte.

mod files;
mod known;
mod measure;
mod members;
mod plan;
mod roles;
mod state;

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{Kind, Problem, list, plural};
use crate::ops::team::agents::{self, DecisionCount, TeamReport};
use crate::ops::team::changeset::{ChangedFile, Changeset, FileChange};
use crate::ops::team::hosts::PROMPT;
use crate::ops::team::membership::Outlet;
use crate::ops::team::project::insist_on_readable;
use crate::ops::team::shell::{self, OtherSquad};
use crate::ops::team::workspace::not_left_out;
use crate::ops::{Workspace, repository};
use crate::parse;
use crate::store;
use files::ToolFiles;
use known::Known;
pub(crate) use measure::Measure;
use measure::{after, before};
pub(crate) use members::Joined;
pub(crate) use plan::Left;
use plan::Plan;
use roles::{Roles, added};
pub(crate) use state::StateTaken;

pub(crate) const COMMAND: &str = "adopt";
pub(crate) const ROLES: &str = "adopt --roles";

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
    /// Role files that are members now.
    pub(crate) joined: Vec<Joined>,
    /// Role files of which nobody on the team has the name.
    pub(crate) waiting: Vec<String>,
    /// What the other tool kept in refs of its own, and the ledger has now.
    pub(crate) state: Option<StateTaken>,
    /// What a shell calls `squad`, where that is not this program.
    pub(crate) other_squad: Option<OtherSquad>,
    /// What stands against doing it now, where it is only shown.
    pub(crate) obstacle: Option<Obstacle>,
    pub(crate) commit: Option<String>,
    #[serde(skip)]
    pub(crate) diff: String,
}

impl Adopted {
    /// Whether anything of the other tool's is left to take over.
    pub(crate) fn has_work(&self) -> bool {
        !self.files.is_empty() || self.state.as_ref().is_some_and(|state| !state.is_nothing())
    }
}

#[derive(Serialize)]
pub(crate) struct Obstacle {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
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

pub(crate) fn adopt(env: &Env, directory: &Path, outlet: Outlet) -> Result<Adopted, Failure> {
    let workspace = match Workspace::find(env, directory) {
        Ok(workspace) => workspace,
        Err(failure) => return new_team(env, directory, outlet, failure),
    };
    let _lock = outlet.lock(env, &workspace, "adopt")?;
    insist_on_readable(&workspace)?;
    let report = agents::report(env, directory)?;
    let files = ToolFiles::read(&workspace, outlet)?;
    let Plan { changes, left, servers, lifted } = Plan::new(&files, workspace.folder.name, &Known::of(env));
    let message = message(&files, &changes);
    let changeset = Changeset::new(COMMAND, message, changes);
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
        joined: Vec::new(),
        waiting: members::waiting(&workspace),
        state: None,
        other_squad: shell::other_squad(env),
        obstacle: None,
        commit: None,
        diff: if matches!(outlet, Outlet::Shown { .. }) { changeset.diff() } else { String::new() },
    };
    let is_to_write = !matches!(outlet, Outlet::Shown { .. });
    adopted.state = state::take(env, &workspace, false)?;
    let has_state = adopted.state.as_ref().is_some_and(|state| !state.is_nothing());
    // A commit asks for itself; what goes to the ledger goes first.
    if outlet == Outlet::Commit && has_state {
        changeset.insist_on_room(&workspace.repository)?;
    }
    if outlet.is_of_the_branch() && !is_to_write {
        adopted.obstacle = changeset
            .insist_on_room(&workspace.repository)
            .err()
            .map(|failure| Obstacle { message: failure.message, hint: failure.hint });
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

/// Adds members out of role files to the team that is there.
pub(crate) fn adopt_roles(env: &Env, directory: &Path, outlet: Outlet) -> Result<Adopted, Failure> {
    let workspace = match Workspace::find(env, directory) {
        Ok(workspace) => workspace,
        Err(failure) => return new_team(env, directory, outlet, failure),
    };
    let _lock = outlet.lock(env, &workspace, "adopt")?;
    let (changeset, joined, left) = members::join(&workspace, outlet, ROLES)?;
    let mut adopted = Adopted {
        folder: workspace.folder_in_repository(),
        release: None,
        read: read(agents::report(env, directory)?),
        files: changeset.changed_files(),
        left,
        servers: Vec::new(),
        lifted: Vec::new(),
        before: None,
        after: None,
        joined,
        waiting: Vec::new(),
        state: None,
        other_squad: None,
        obstacle: None,
        commit: None,
        diff: if matches!(outlet, Outlet::Shown { .. }) { changeset.diff() } else { String::new() },
    };
    if !changeset.files.is_empty() {
        match outlet {
            Outlet::Commit => adopted.commit = Some(changeset.commit(env, &workspace.repository)?),
            Outlet::WorkTree => changeset.write(&workspace.repository)?,
            Outlet::Shown { as_commit: true } => changeset.insist_on_room(&workspace.repository)?,
            Outlet::Shown { as_commit: false } => {}
        }
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
    if roles.all.is_empty() {
        return Err(no_team);
    }
    let files = roles.as_team();
    let message = format!("squad: make a team of role files\n\nTheir texts, as charters: {}.\n", list(roles.sources()));
    let changeset = Changeset::new(COMMAND, message, added(&files));
    let (team, problems) = parse::team(&files);
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
        joined: Vec::new(),
        waiting: Vec::new(),
        state: None,
        other_squad: shell::other_squad(env),
        obstacle: None,
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
fn read(report: TeamReport) -> TeamRead {
    TeamRead {
        agents: report.agents.iter().filter(|agent| agent.kind == Kind::Agent).count(),
        others: report.agents.iter().filter(|agent| agent.kind != Kind::Agent).count(),
        rules: report.rules.len(),
        decisions: report.decisions,
        problems: report.problems,
    }
}
