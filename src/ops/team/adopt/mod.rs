//! Adopts a team of another tool. Keeps what people wrote, removes the unchanged files that the tool installed, and
//! replaces its prompt and MCP server by squad's. All in one commit, which `git revert` undoes completely.

mod files;

mod members;
mod plan;
mod roles;
mod state;

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{ChangeKind, Kind, Problem, SkippedFile, list, plural};
use crate::ops::change::{Change, Changed, FileChange, WriteMode};
use crate::ops::team::agents::{self, DecisionCount, TeamReport};
use crate::ops::team::hosts::PROMPT;
use crate::ops::team::known_files::{self, KnownFiles};
use crate::ops::team::project::require_readable;
use crate::ops::team::shell::{self, OtherSquad};
use crate::ops::team::workspace::not_left_out;
use crate::ops::{Workspace, repository};
use crate::parse;
use crate::store;
use files::ToolFiles;
pub(crate) use members::Joined;
use plan::Plan;
use roles::{Roles, added};
pub(crate) use state::ImportedState;

/// What an adoption says beside its files.
#[derive(Default, Serialize)]
pub(crate) struct Adopted {
    /// The team's new folder, relative to the repository's root.
    pub(crate) folder: String,
    /// The other tool's release, according to the coordinator's prompt.
    pub(crate) release: Option<String>,
    pub(crate) read: TeamRead,
    /// The other tool's files that stay.
    #[serde(rename = "left")]
    pub(crate) skipped: Vec<SkippedFile>,
    /// MCP servers that were replaced by squad's, as `FILE: NAME`.
    pub(crate) servers: Vec<String>,
    /// Removed `.gitignore` lines that hid decisions, as `FILE:LINE`.
    #[serde(rename = "lifted")]
    pub(crate) unignored: Vec<String>,
    /// Removed workflows that ran for issues: nothing takes their place.
    pub(crate) triage: Vec<String>,
    /// Role files that became members.
    pub(crate) joined: Vec<Joined>,
    /// Role files that no member corresponds to.
    #[serde(rename = "waiting")]
    pub(crate) unused_roles: Vec<String>,
    /// What the ledger received from the other tool's refs.
    pub(crate) state: Option<ImportedState>,
    /// Another program that shells run as `squad`.
    pub(crate) other_squad: Option<OtherSquad>,
    /// In a dry run, why the changes could not be committed now.
    pub(crate) obstacle: Option<Obstacle>,
}

impl Adopted {
    /// What the ledger received, if it was anything.
    pub(crate) fn new_state(&self) -> Option<&ImportedState> {
        self.state.as_ref().filter(|state| !state.is_empty())
    }
}

#[derive(Serialize)]
pub(crate) struct Obstacle {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// What squad has read of the team's files.
#[derive(Default, Serialize)]
pub(crate) struct TeamRead {
    pub(crate) agents: usize,
    /// Built-in helpers, people and bots, which squad never starts.
    pub(crate) others: usize,
    pub(crate) rules: usize,
    pub(crate) decisions: DecisionCount,
    /// What squad could not read.
    pub(crate) problems: Vec<Problem>,
}

impl TeamRead {
    /// `Read 5 agents, 3 other members, 12 routing rules and 40 decisions.`
    pub(crate) fn summary(&self) -> String {
        let rest = [
            (self.others, "other member"),
            (self.rules, "routing rule"),
            (self.decisions.total + self.decisions.archived, "decision"),
        ];
        let rest = rest.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| plural(count, noun));
        format!("Read {}.", list(std::iter::once(plural(self.agents, "agent")).chain(rest)))
    }
}

pub(crate) fn adopt(env: &Env, directory: &Path, mode: WriteMode) -> Result<Changed<Adopted>, Failure> {
    let workspace = match Workspace::find(env, directory) {
        Ok(workspace) => workspace,
        Err(failure) => return new_team(env, directory, mode, failure),
    };
    let _lock = mode.lock(&workspace, "adopt")?;
    require_readable(&workspace)?;
    let activity = env.damage.activity();
    activity.begin("reading the other tool's team");
    let files = ToolFiles::read(&workspace, mode)?;
    let Plan { changes, adopted } = Plan::new(&files, workspace.folder.name, &KnownFiles::of(env));
    let message = message(&files, &changes);
    let change = Change::new(ChangeKind::Adopt, message, changes);
    let mut adopted = Adopted {
        folder: files.full(store::FOLDERS[0]),
        release: files.texts.get(PROMPT).and_then(|prompt| known_files::release(prompt)),
        read: read(agents::report(env, directory)?),
        unused_roles: members::unused_roles(&workspace),
        state: state::import(env, &workspace, true)?,
        other_squad: shell::other_squad(env),
        ..adopted
    };
    activity.begin("writing the team");
    if mode.is_dry_run() {
        let refused = mode.uses_branch().then(|| change.require_committable(&workspace.repository).err()).flatten();
        adopted.obstacle = refused.map(|failure| Obstacle { message: failure.message, hint: failure.hint });
        return Ok(Changed { change: change.report(mode), kind: change.kind, details: adopted });
    }
    if adopted.new_state().is_some() {
        // The ledger is written first, so check that the commit will be possible.
        if mode == WriteMode::Commit {
            change.require_committable(&workspace.repository)?;
        }
        adopted.state = state::import(env, &workspace, false)?;
    }
    let report = change.apply(env, &workspace.repository, mode)?;
    let [new, old] = store::FOLDERS.map(|folder| workspace.folder.root.join(folder));
    // An earlier call that was killed after its commit may have left untracked files behind.
    let has_only_untracked = !files.has_any(store::FOLDERS[1]) && !old.join("team.md").exists();
    if has_only_untracked && new.is_dir() {
        move_contents(&old, &new);
    }
    Ok(Changed { kind: change.kind, details: adopted, change: report })
}

/// Adds members from role files to the existing team.
pub(crate) fn adopt_roles(env: &Env, directory: &Path, mode: WriteMode) -> Result<Changed<Adopted>, Failure> {
    let workspace = match Workspace::find(env, directory) {
        Ok(workspace) => workspace,
        Err(failure) => return new_team(env, directory, mode, failure),
    };
    let _lock = mode.lock(&workspace, "adopt")?;
    let (change, joined, skipped) = members::join(&workspace, mode)?;
    let (folder, read) = (workspace.folder_in_repository(), read(agents::report(env, directory)?));
    let details = Adopted { folder, read, skipped, joined, ..Adopted::default() };
    Ok(Changed { change: change.apply(env, &workspace.repository, mode)?, kind: change.kind, details })
}

/// Makes a team from the role files at the repository's root. Returns `no_team` if there are none, or if there is a team
/// folder.
fn new_team(env: &Env, directory: &Path, mode: WriteMode, no_team: Failure) -> Result<Changed<Adopted>, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    not_left_out(&repository)?;
    if store::FOLDERS.iter().any(|folder| work_dir.join(folder).symlink_metadata().is_ok()) {
        return Err(no_team);
    }
    let roles = Roles::read(&work_dir);
    if roles.all.is_empty() {
        return Err(no_team.hint(
            "`squad init` makes a team; `squad adopt` takes over one that @bradygaster/squad-cli made, or the role files in \
             .claude/agents, .github/agents and .codex/agents",
        ));
    }
    let files = roles.as_team();
    let message =
        format!("squad: make a team from role files\n\nThe charters are the texts of {}.\n", list(roles.sources()));
    let change = Change::new(ChangeKind::Adopt, message, added(&files));
    let (team, problems) = parse::team(&files);
    let (agents, rules) = (team.members.len(), team.rules.len());
    let details = Adopted {
        folder: store::FOLDERS[0].to_owned(),
        read: TeamRead { agents, rules, problems, ..TeamRead::default() },
        skipped: roles.skipped,
        other_squad: shell::other_squad(env),
        ..Adopted::default()
    };
    Ok(Changed { change: change.apply(env, &repository, mode)?, kind: change.kind, details })
}

/// Moves the contents of a folder to another, except for names that exist there. What cannot be moved stays.
fn move_contents(old: &Path, new: &Path) {
    // A link leads to files outside.
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    if !is_folder(old) || !is_folder(new) {
        return;
    }
    for entry in fs::read_dir(old).into_iter().flatten().flatten() {
        let target = new.join(entry.file_name());
        match target.symlink_metadata() {
            Err(_) => drop(fs::rename(entry.path(), target)),
            Ok(_) => move_contents(&entry.path(), &target),
        }
    }
    let _ = fs::remove_dir(old);
}

fn message(files: &ToolFiles, changes: &[FileChange]) -> String {
    let release = files.texts.get(PROMPT).and_then(|prompt| known_files::release(prompt));
    let tool =
        release.map_or_else(|| "another tool".to_owned(), |release| format!("release {release} of another tool"));
    let count = |is: fn(&FileChange) -> bool| changes.iter().filter(|file| is(file)).count();
    let (removed, moved) = (count(|file| file.new.is_none()), count(|file| file.from.is_some()));
    format!(
        "squad: adopt the team\n\nThe team was made with {tool}: {} removed, {moved} moved, {} changed.\n\
         What people wrote is unchanged.\n",
        plural(removed, "file"),
        changes.len() - removed - moved
    )
}

fn read(report: TeamReport) -> TeamRead {
    TeamRead {
        agents: report.agents.iter().filter(|agent| agent.kind == Kind::Agent).count(),
        others: report.agents.iter().filter(|agent| agent.kind != Kind::Agent).count(),
        rules: report.rules.len(),
        decisions: report.decisions,
        problems: report.problems,
    }
}
