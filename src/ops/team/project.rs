//! A project: a workspace, the team in it, and the settings for it.

use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::compile::NoteIndex;
use crate::env::{Env, real};
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{Decision, Member, Problem, Severity, Source, Team, list, plural};
use crate::ops::Workspace;
use crate::ops::ledger::contents as ledger;
use crate::ops::ledger::contents::{newest_first, order_of};
use crate::ops::team::cache::{Cache, CachedTeam, OwnNote};
use crate::ops::team::layers::settings;
use crate::ops::team::projects;
use crate::ops::team::trust;
use crate::parse;
use crate::policy::PolicyRules;
use crate::settings::{
    BAD_VALUE, Layer, NOT_TOML, Origin, PolicyEntry, PolicyScope, PolicySubject, PolicyWord, Sessions, Settings,
    Trusted,
};
use crate::store::{self, TeamFolder};

pub(crate) struct Project {
    workspace: Workspace,
    pub(crate) team: Team,
    pub(crate) settings: Settings,
    pub(crate) problems: Vec<Problem>,
    pub(in crate::ops) cache: Cache,
    notes: Option<Arc<NoteIndex>>,
    /// Those notes, once they were read.
    knowledge: OnceLock<Vec<Decision>>,
}

/// Gives access to the workspace's fields and methods.
impl Deref for Project {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl Project {
    /// Reads everything. Opens teams with errors too; commands check for the errors that matter to them.
    pub(crate) fn open(env: &Env, directory: &Path, flags: Layer) -> Result<Self, Failure> {
        Ok(Opening::new(env, Workspace::find(env, directory)?, flags).read())
    }

    /// Reads everything, and writes nothing to the repository.
    pub(in crate::ops) fn look_at(env: &Env, directory: &Path) -> Result<Self, Failure> {
        let Workspace { repository, work_dir, folder } = Workspace::find(env, directory)?;
        let workspace = Workspace { repository: repository.looked_at(), work_dir, folder };
        Ok(Opening::of(env, workspace, Layer::default()).read())
    }

    /// Reads everything of a workspace that is no project of the user's.
    pub(in crate::ops) fn of_workspace(env: &Env, workspace: Workspace) -> Self {
        Opening::of(env, workspace, Layer::default()).read()
    }

    /// The same project in another work tree of its repository.
    pub(crate) fn moved_to(&self, repository: Repository, work_dir: &Path) -> Self {
        let root = work_dir.join(self.path_in_repository());
        let root = real(&root);
        let folder = TeamFolder { path: root.join(self.folder.name), root, name: self.folder.name };
        let workspace = Workspace { repository, work_dir: work_dir.to_owned(), folder };
        let (team, settings, problems) = (self.team.clone(), self.settings.clone(), self.problems.clone());
        let (cache, notes, knowledge) = (self.cache.clone(), self.notes.clone(), OnceLock::new());
        Self { workspace, team, settings, problems, cache, notes, knowledge }
    }

    /// The rules of `[policy]`.
    pub(crate) fn policy(&self) -> PolicyRules {
        PolicyRules::new(self.settings.policy_rules(), &self.team)
    }

    /// What a person has allowed in this project's later runs too.
    pub(crate) fn kept_rules(&self) -> Vec<String> {
        // Whoever has kept something has needed the id.
        let key = projects::has_project_id(self).then(|| self.kept_key());
        key.and_then(|key| self.settings.policy.kept.get(&key)).cloned().unwrap_or_default()
    }

    /// The place, for people who read it, and the id: another repository at the same place has other rules.
    fn kept_key(&self) -> String {
        let id = projects::project_id(self).unwrap_or_default();
        format!("{} {}", self.folder.root.display(), id.trim_end_matches('/'))
    }

    /// The setting that holds them.
    pub(crate) fn kept_name(&self) -> String {
        format!("policy.kept.{}", self.kept_key())
    }

    /// For commands that look at what is recorded; see [`Workspace::find_or_recorded`].
    pub(crate) fn open_or_recorded(env: &Env, directory: &Path) -> Result<Self, Failure> {
        Ok(Opening::new(env, Workspace::find_or_recorded(env, directory)?, Layer::default()).read())
    }

    /// For what needs no team: one is read if it is there.
    pub(crate) fn open_without_team(env: &Env, directory: &Path, flags: Layer) -> Result<Self, Failure> {
        Ok(Opening::new(env, Workspace::find_without_team(env, directory)?, flags).read())
    }

    /// Whether there is anybody on it, or should be.
    pub(crate) fn has_team(&self) -> bool {
        self.folder.path.join("team.md").exists() || !self.team.members.is_empty()
    }

    /// Fails with the first error in the team or its configuration.
    pub(crate) fn require_sound(&self) -> Result<(), Failure> {
        self.fail_on(|_| true)
    }

    /// Fails if a file cannot be read or contains conflict markers: the file must not be treated as missing.
    pub(crate) fn require_readable(&self) -> Result<(), Failure> {
        self.fail_on(is_unread)
    }

    /// Fails also if a file of settings cannot be read: what it names must not be treated as missing.
    pub(crate) fn require_configuration(&self) -> Result<(), Failure> {
        self.fail_on(|problem| is_unread(problem) || problem.code == NOT_TOML)
    }

    /// Fails also if a setting cannot be read that has to be.
    pub(crate) fn require_settings(&self) -> Result<(), Failure> {
        self.require_configuration()?;
        self.fail_on(|problem| problem.code == BAD_VALUE)
    }

    /// Fails for `--check` if there is none.
    pub(crate) fn require_check(&self) -> Result<(), Failure> {
        if !self.settings.check.is_empty() {
            return Ok(());
        }
        let brought = self.problems.iter().find(|problem| problem.message.contains("`check.run` is ignored"));
        Err(match brought {
            Some(problem) => Failure::team(format!("--check: the check of {} is not approved", problem.file))
                .hint("squad trust approve check.run"),
            None => Failure::team("--check: no check is configured")
                .hint("squad config set --user check.run cargo,test; or write it in .squad/config.toml and approve it"),
        })
    }

    fn fail_on(&self, matters: impl Fn(&Problem) -> bool) -> Result<(), Failure> {
        fail_on(&self.problems, matters)
    }

    /// The decisions in the work tree's files.
    pub(crate) fn decisions(&self) -> &[Decision] {
        &self.team.decisions
    }

    /// The notes of knowledge in the work tree's files. Reads them all: most commands need few, and use the index.
    pub(crate) fn knowledge(&self) -> Result<&[Decision], Failure> {
        if let Some(known) = self.knowledge.get() {
            return Ok(known);
        }
        let notes = self.notes.as_ref().map_or(Some(Vec::new()), |notes| notes.all::<OwnNote>());
        let notes = notes.ok_or_else(damaged_index)?.into_iter().map(|(note, source)| Decision { source, ..note });
        Ok(self.knowledge.get_or_init(|| notes.collect()))
    }

    pub(crate) fn has_notes(&self) -> bool {
        self.notes.is_some()
    }

    /// An index of them; `None`: there are none.
    pub(in crate::ops) fn note_index(&self) -> Option<&NoteIndex> {
        self.notes.as_deref()
    }

    /// One of them, by its place in the index.
    pub(in crate::ops) fn own_note(&self, place: usize) -> Result<Decision, Failure> {
        let note = self.notes.as_ref().and_then(|notes| notes.get::<OwnNote>(place));
        note.map(|(note, source)| Decision { source, ..note }).ok_or_else(damaged_index)
    }
}

pub(in crate::ops) fn damaged_index() -> Failure {
    Failure::failed("the index of the notes of knowledge is damaged").hint("run the command again: it is made anew")
}

/// Like [`Project::require_readable`], for commands that do not need the decisions: their files are not read.
pub(crate) fn require_readable(workspace: &Workspace) -> Result<(), Failure> {
    let (files, mut problems) = store::read_but_decisions(&workspace.folder);
    problems.extend(parse::conflicts(&files));
    fail_on(&problems, is_unread)
}

/// Fails if one of these problems is an unfinished merge: half of it is nobody's team.
pub(crate) fn require_merged(problems: &[Problem]) -> Result<(), Failure> {
    fail_on(problems, |problem| problem.code == parse::CONFLICT)
}

/// Fails with the first error that matters.
fn fail_on(problems: &[Problem], matters: impl Fn(&Problem) -> bool) -> Result<(), Failure> {
    match problems.iter().find(|problem| problem.severity == Severity::Error && matters(problem)) {
        None => Ok(()),
        Some(problem) => Err(Failure::of_problem(problem)),
    }
}

/// Whether this problem prevents reading a file.
fn is_unread(problem: &Problem) -> bool {
    problem.code == store::UNREADABLE || problem.code == parse::CONFLICT
}

/// A project whose team is not parsed yet. Its key tells whether results made from it can come from the cache.
pub(in crate::ops) struct Opening {
    pub(in crate::ops) workspace: Workspace,
    pub(in crate::ops) cache: Cache,
    pub(in crate::ops) cached: CachedTeam,
    settings: Settings,
    settings_problems: Vec<Problem>,
}

impl Opening {
    pub(in crate::ops) fn new(env: &Env, workspace: Workspace, flags: Layer) -> Self {
        projects::remember(env, &workspace);
        Self::of(env, workspace, flags)
    }

    fn of(env: &Env, workspace: Workspace, flags: Layer) -> Self {
        let cache = Cache::new(env, &workspace.local());
        let cache = if workspace.repository.is_looked_at() { cache.read_only() } else { cache };
        let cached = cache.look_up(&workspace.folder);
        let trusted = |layers: &[Layer]| trust::trusted(env, &workspace, layers);
        let (settings, settings_problems) = settings(env, cached.config(), flags, trusted);
        Self { workspace, cache, cached, settings, settings_problems }
    }

    /// Identifies everything that a project is read from: with the same key, team, settings and problems are the same.
    /// `None` if something could not be read.
    pub(in crate::ops) fn key(&self) -> Option<String> {
        // The Debug format includes every field and layer.
        let settings = format!("{:?}\n{:?}", self.settings, self.settings_problems);
        Some(format!("{}\n{:?}\n{settings}", self.cached.key()?, self.cached.problems()))
    }

    pub(in crate::ops) fn read(self) -> Project {
        let Self { workspace, cache, cached, settings, settings_problems } = self;
        let mut problems = cached.problems().to_vec();
        let (mut team, notes, mut more) = cache.team(cached);
        more.retain(|problem| problem.code != parse::CONFLICT);
        settle_ties(&workspace, &mut team.decisions);
        // Files that cannot be read are not missing, and other problems may only follow from that.
        let unreadable = problems.iter().any(is_unread);
        problems.extend(more.into_iter().filter(|problem| !unreadable || !problem.code.ends_with("-missing")));
        if !workspace.folder.path.exists() {
            // Whoever comes here without a team knows it.
            problems.retain(|problem| !problem.code.ends_with("-missing"));
        }
        if unreadable {
            problems.retain(|problem| is_unread(problem) || problem.severity == Severity::Note);
        }
        // Conflict markers in a settings file were already reported with the team's files.
        let new = settings_problems.into_iter().filter(|new| new.code != parse::CONFLICT || !problems.contains(new));
        let new: Vec<Problem> = new.collect();
        problems.extend(new);
        problems.extend(core_problems(&team, &settings));
        problems.extend(rules_for_nobody(&team, &settings));
        problems.extend(idle_rules(&workspace.folder.root, &settings));
        problems.extend(server_problems(&team, &settings));
        let (notes, knowledge) = (notes.map(Arc::new), OnceLock::new());
        Project { workspace, team, settings, problems, cache, notes, knowledge }
    }
}

/// The agents that `sessions.core` names, by name or by role, and those of them that do not count. A repository names no
/// more than squad does by itself, and than may work at a time: if all its agents came first and were kept ready, the
/// user would pay for it.
pub(in crate::ops) fn core_agents<'t>(team: &'t Team, settings: &Settings) -> (Vec<&'t Member>, Vec<&'t Member>) {
    let Sessions { core: named, max_concurrent, .. } = &settings.sessions;
    let mut core: Vec<_> = team.startable().filter(|member| named.iter().any(|name| member.goes_by(name))).collect();
    let most = match settings.origin("sessions.core") {
        Origin::Project(..) => Settings::default().sessions.core.len().min(*max_concurrent),
        _ => core.len(),
    };
    let more = core.split_off(most.min(core.len()));
    (core, more)
}

/// Unknown and too many names in the project's `sessions.core`. The user's own list is not checked, since it serves many
/// teams.
fn core_problems(team: &Team, settings: &Settings) -> Vec<Problem> {
    let Origin::Project(file, line) = settings.origin("sessions.core") else { return Vec::new() };
    let is_unknown = |name: &&String| !team.startable().any(|member| member.goes_by(name));
    let problem = |name: &String| {
        let message = format!("`sessions.core` names `{name}`, and no agent has that name or role");
        let source = Source { file: file.clone(), line };
        Problem::warning(source, "config-unknown-agent", message).hint("`squad agents` lists the agents")
    };
    let unknown = settings.sessions.core.iter().filter(is_unknown).map(problem);
    let (core, more) = core_agents(team, settings);
    let too_many = (!more.is_empty()).then(|| {
        let message = format!(
            "`sessions.core` names {}, and a repository may name no more than {}, so squad leaves out {}",
            plural(core.len() + more.len(), "agent"),
            core.len(),
            list(more.iter().map(|member| &member.slug))
        );
        let source = Source { file: file.clone(), line };
        Problem::warning(source, "config-raised", message)
            .hint("name fewer, or set it in your own configuration file or with its SQUAD_ variable")
    });
    unknown.chain(too_many).collect()
}

/// MCP servers of the project for agents that it does not have, and charters that allow all tools of a server where nothing
/// lists them.
fn server_problems(team: &Team, settings: &Settings) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, server) in &settings.mcp {
        let key = format!("mcp.servers.{name}.agents");
        let is_unknown = |named: &&String| !team.startable().any(|member| member.goes_by(named));
        let unknown = server.agents.iter().flatten().find(is_unknown);
        if let (Some(named), Origin::Project(file, line)) = (unknown, settings.origin(&key)) {
            let message = format!("`{key}` names `{named}`, and no agent has that name or role");
            let problem = Problem::warning(Source { file, line }, "config-unknown-agent", message);
            problems.push(problem.hint("`squad agents` lists the agents"));
        }
        let all = format!("{name}/*");
        for member in team.startable().filter(|_| server.tools.is_none()) {
            let tools = team.charters.get(&member.slug).and_then(|charter| charter.tools.as_ref());
            let Some(file) = member.charter.clone().filter(|_| tools.is_some_and(|tools| tools.contains(&all))) else {
                continue;
            };
            let message = format!("allows `{all}`, and no list says which tools these are, so it allows none of them");
            let problem = Problem::warning(Source { file, line: 0 }, "charter-tools", message);
            problems.push(problem.hint(format!("list them in the server's `tools`, or name each: `{name}/…`")));
        }
    }
    problems
}

/// The project's rules for agents that it does not have. The user's own file serves many teams.
fn rules_for_nobody(team: &Team, settings: &Settings) -> Vec<Problem> {
    let problem = |rule: PolicyEntry| {
        let PolicyScope::Agent(named) = &rule.scope else { return None };
        let is_known = team.startable().any(|member| member.goes_by(named));
        if is_known || !matches!(rule.origin, Origin::Project(..)) {
            return None;
        }
        let message = format!("`{}` is for nobody: no agent has the name or role `{named}`", rule.name);
        let problem = Problem::new(Severity::Error, rule.origin.source(), "config-unknown-agent", message);
        Some(problem.hint("`squad agents` lists the agents"))
    };
    settings.policy_rules().filter_map(problem).collect()
}

/// Rules that have no effect: those that another one denies, and the project's for files that it does not have.
fn idle_rules(root: &Path, settings: &Settings) -> Vec<Problem> {
    let rules: Vec<PolicyEntry> = settings.policy_rules().collect();
    let why = |rule: &PolicyEntry, pattern: &String| {
        let denies = |other: &&PolicyEntry| {
            let is_for_it = other.scope == PolicyScope::Everybody || other.scope == rule.scope;
            other.word == PolicyWord::Deny
                && other.subject == rule.subject
                && is_for_it
                && other.patterns.contains(pattern)
        };
        let denied = rules.iter().find(denies).filter(|_| rule.word != PolicyWord::Deny);
        let is_of_files = rule.subject == PolicySubject::Writes && matches!(rule.origin, Origin::Project(..));
        // Up to what matches several.
        let plain = match pattern.find(['*', '?', '[', '{', '@']) {
            Some(at) => &pattern[..pattern[..at].rfind('/').unwrap_or(0)],
            None => pattern,
        };
        match denied {
            Some(other) => Some(format!("has `{pattern}`, which `{}` denies ({})", other.name, other.origin)),
            None if is_of_files && root.join(plain).symlink_metadata().is_err() => {
                Some(format!("has `{pattern}`, and the project has no `{plain}`"))
            }
            None => None,
        }
    };
    let whys = |rule: &PolicyEntry| -> Vec<Problem> {
        let whys = rule.patterns.iter().filter_map(|pattern| why(rule, pattern));
        let problem =
            |why| Problem::warning(rule.origin.source(), "config-idle-rule", format!("`{}` {why}", rule.name));
        whys.map(problem).collect()
    };
    rules.iter().flat_map(whys).collect()
}

/// Sorts decisions with the same time by their order in the ledger, if it has them.
fn settle_ties(workspace: &Workspace, decisions: &mut [Decision]) {
    let is_tie = |pair: &[Decision]| {
        let at = pair[0].moment().filter(|at| at.contains('T'));
        at.is_some() && at == pair[1].moment()
    };
    if decisions.windows(2).any(is_tie)
        && let Ok(logged) = ledger::decisions(&workspace.repository, &workspace.ledger_prefix())
    {
        newest_first(decisions, |decision| (&decision.id, decision.date.as_deref()), &order_of(&logged));
    }
}

/// The settings of a team, or the user's alone. Reads nothing else of it.
pub(crate) fn team_settings(env: &Env, workspace: Option<&Workspace>) -> (Settings, Vec<Problem>) {
    let read = workspace.map(|workspace| store::read_configuration(&workspace.folder));
    let (files, mut problems) = read.unwrap_or_default();
    let trusted =
        |layers: &[Layer]| workspace.map_or(Ok(Trusted::default()), |workspace| trust::trusted(env, workspace, layers));
    let (settings, more) = settings(env, &files, Layer::default(), trusted);
    problems.extend(more);
    (settings, problems)
}
