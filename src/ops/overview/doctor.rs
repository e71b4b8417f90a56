//! Finds problems of the repository, the team, the configuration and the engine, with hints to fix them.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::compile;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{DecisionState, NetworkAccess, Problem, SandboxLevel, Severity, Source, list, plural};
use crate::ops::Project;
use crate::ops::decisions::list as decisions;
use crate::ops::decisions::withdrawn::Withdrawn;
use crate::ops::ledger::examine::examine;
use crate::ops::ledger::prove::{self, Proof};
use crate::ops::run::order::flag_settings;
use crate::ops::team::engines::{self, Governed};
use crate::ops::team::hosts;
use crate::ops::team::manifest::{self, Manifest};
use crate::ops::team::sandbox::{self, Bounds};
use crate::ops::team::shell;
use crate::ops::team::templates::Templates;
use crate::program::Programs;
use crate::settings::Origin;

#[derive(Serialize)]
pub(crate) struct Diagnosis {
    pub(crate) problems: Vec<Finding>,
    /// What is in order, by what it is about.
    pub(crate) well: Vec<(&'static str, String)>,
    /// What holds for the writes and commands of each engine that the team uses.
    pub(crate) governed: BTreeMap<String, Governed>,
    /// What bounds the agents' programs, tried just now.
    pub(crate) sandbox: Option<SandboxLevel>,
    /// What of the network they reach, at level `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<NetworkAccess>,
    /// Why that is open, if nobody asked for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network_open: Option<String>,
    /// The result of `--prove`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) proof: Option<Proof>,
}

/// A problem and the area it belongs to.
pub(crate) struct Finding {
    pub(crate) area: Area,
    pub(crate) problem: Problem,
}

impl Finding {
    /// An engine or a folder is no file, and has no line.
    fn is_in_file(&self) -> bool {
        let Problem { file, line, .. } = &self.problem;
        self.area == Area::Team || *line > 0 || file.contains(['/', '.']) && Path::new(file).is_relative()
    }

    /// What is wrong, and where, but for the repository itself.
    pub(crate) fn text(&self) -> String {
        let Problem { file, message, .. } = &self.problem;
        let is_folder = matches!(self.area, Area::Repository | Area::Engine) && Path::new(file).is_dir();
        match file.strip_prefix("engine ") {
            Some(engine) => format!("{engine}: {message}"),
            None if is_folder => message.clone(),
            None => self.problem.to_string(),
        }
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Problem { file, line, severity, code, message, hint } = &self.problem;
        serde_json::json!({
            "area": self.area, "file": self.is_in_file().then_some(file), "line": (*line > 0).then_some(line),
            "severity": severity, "code": code, "message": message, "hint": hint,
        })
        .serialize(serializer)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Area {
    Repository,
    Team,
    Configuration,
    Engine,
}

impl Area {
    /// What a line about it begins with.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Repository => "repository",
            Self::Team => "team",
            Self::Configuration => "config",
            Self::Engine => "engine",
        }
    }
}

impl Diagnosis {
    /// Whether there are no errors or warnings.
    pub(crate) fn is_healthy(&self) -> bool {
        self.problems.iter().all(|finding| finding.problem.severity == Severity::Note)
    }

    pub(crate) fn lacks_team(&self) -> bool {
        self.problems.iter().any(|finding| finding.problem.code == NO_TEAM)
    }
}

/// Checks everything, and starts the engine as a test. Fails without a repository.
pub(crate) fn diagnose(env: &Env, directory: &Path, proves: bool) -> Result<Diagnosis, Failure> {
    let flags = engines::flags_without_team(env, directory);
    let project = Project::open_without_team(env, directory, flag_settings(&flags))?;
    let mut problems = repository(&project)?;
    // Without a team, there is nothing to be missing: roles need no roster.
    let is_of_team = |problem: &&Problem| !["roster-missing", "routing-missing"].contains(&&*problem.code);
    let has_team = project.has_team();
    for problem in project.problems.iter().filter(|problem| has_team || is_of_team(problem)) {
        let area = if problem.code.starts_with("config-") { Area::Configuration } else { Area::Team };
        problems.push(Finding { area, problem: problem.clone() });
    }
    problems.extend(models(&project));
    problems.extend(manifest(env, &project));
    problems.extend(hosts::problems(&project).into_iter().map(|problem| Finding { area: Area::Team, problem }));
    problems.extend(path(env, &project));
    let other = shell::other_squad(env).map(|other| Finding { area: Area::Configuration, problem: other.problem() });
    problems.extend(other);
    let mut well = Vec::new();
    if !has_team {
        problems.push(no_team(&project));
    } else if problems.iter().all(|finding| finding.area != Area::Team || finding.problem.severity == Severity::Note) {
        well.push(("team", team(&project)));
    }
    env.damage.activity().begin("asking the engines");
    let (found, governed, ready) = engines(env, &project)?;
    problems.extend(found);
    well.extend(ready.into_iter().map(|state| ("engine", state)));
    let (bounds, found) = bounds(env, &project);
    problems.extend(found);
    let level = bounds.as_ref().map(Bounds::level);
    let network = bounds
        .map(|bounds| engines::network(env, &project, &project.settings.engine.name, bounds))
        .transpose()?
        .flatten();
    let (network, network_open) = network.map_or((None, None), |(access, open)| (Some(access), open));
    let (proof, amount) = match proves {
        true => {
            let (proof, found) = prove::prove(&project.repository)?;
            problems.extend(found.into_iter().map(|problem| Finding { area: Area::Repository, problem }));
            let amount = (proof.entries, proof.runs);
            (Some(proof), amount)
        }
        false => {
            let snapshot = project.repository.ledger().snapshot()?;
            let examined = snapshot.map(|snapshot| examine(&project.repository, &snapshot)).transpose()?;
            (None, examined.map(|examined| (examined.entries, examined.runs.len())).unwrap_or_default())
        }
    };
    let damage: Vec<_> = env.damage.take().into_iter().map(|damage| damage.problem()).collect();
    if damage.is_empty() && amount.0 > 0 {
        well.push(("ledger", ledger(amount)));
    }
    problems.extend(damage.into_iter().map(|problem| Finding { area: Area::Repository, problem }));
    Ok(Diagnosis { problems, well, governed, sandbox: level, network, network_open, proof })
}

const NO_TEAM: &str = "team-missing";

fn no_team(project: &Project) -> Finding {
    let place = Source::new(format!("{}/team.md", project.folder.name), 0);
    let message = "there is none yet, so `squad orchestrate` has no agents";
    let problem = Problem::new(Severity::Note, place, NO_TEAM, message).hint("`squad init` makes a team");
    Finding { area: Area::Team, problem }
}

/// `6 members, 15 routes, 137 decisions`
fn team(project: &Project) -> String {
    let members = plural(project.team.members.len(), "member");
    let routes = plural(project.team.rules.len(), "route");
    let decisions = plural(compile::in_force(project.decisions()).len(), "decision");
    format!("{members}, {routes}, {decisions} in force")
}

/// `254 entries of 31 runs, all readable`
fn ledger((entries, runs): (usize, usize)) -> String {
    let of_runs = if runs == 0 { String::new() } else { format!(" of {}", plural(runs, "run")) };
    format!("{}{of_runs}, all readable", plural(entries, "entry"))
}

/// The state of the engines that can be used, where there is no team to look at.
pub(crate) fn ready_engines(env: &Env, directory: &Path) -> Vec<String> {
    let reports = engines::check(env, directory, None).unwrap_or_default();
    reports.iter().filter_map(usable).collect()
}

/// `copilot 1.0.102 is ready`
fn usable(report: &engines::Report) -> Option<String> {
    let version = report.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    report.ready.is_usable().then(|| format!("{}{version} is {}", report.name, report.ready.name()))
}

/// Which level of the sandbox the system has; `None`: no run can start.
fn bounds(env: &Env, project: &Project) -> (Option<Bounds>, Option<Finding>) {
    let find = |severity, message: String, hint: Option<String>| {
        let place = Source::new(project.work_dir.display().to_string(), 0);
        let problem = Problem::new(severity, place, "sandbox-weaker", message);
        Finding { area: Area::Engine, problem: hint.into_iter().fold(problem, Problem::hint) }
    };
    let bounds = match sandbox::of_run(env, project, &[]) {
        Ok(bounds) => bounds,
        Err(failure) => return (None, Some(find(Severity::Error, failure.message, failure.hint))),
    };
    let (level, wanted) = (bounds.level(), project.settings.sandbox.level);
    let found = bounds.weaker.clone().map(|reason| {
        let is_limited = fs::read_to_string(NAMESPACES_LIMITED).is_ok_and(|text| text.trim() == "1");
        let hint = match () {
            () if !reason.contains("namespace") && !reason.contains("Landlock") => None,
            () if is_limited => {
                Some("`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0` allows user namespaces")
            }
            () => Some("it needs a Linux kernel with Landlock (6.2) and user namespaces"),
        };
        let message = match level == wanted {
            true => format!("agents run in the sandbox `{level}`, but with an open network: {reason}"),
            false => format!("agents run in the sandbox `{level}` and not `{wanted}`: {reason}"),
        };
        find(Severity::Note, message, hint.map(str::to_owned))
    });
    (Some(bounds), found)
}

/// Ubuntu's limit of user namespaces.
const NAMESPACES_LIMITED: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// What models cost is not known here, so the repository's choice of them is only named.
fn models(project: &Project) -> Option<Finding> {
    let chosen = project.settings.values().filter(|(name, _, _)| name.starts_with("models."));
    let chosen: Vec<_> = chosen.filter(|(_, _, origin)| matches!(origin, Origin::Project(..))).collect();
    let (_, _, origin) = chosen.first()?;
    let named = list(chosen.iter().map(|(name, value, _)| format!("`{name} = {value}`")));
    let message = format!("the repository chooses models: {named}");
    let problem = Problem::new(Severity::Note, origin.source(), "config-models", message)
        .hint("your own configuration overrides it: `squad config set --user models.default MODEL`");
    Some(Finding { area: Area::Configuration, problem })
}

fn repository(project: &Project) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let mut find = |severity, code, message: &str, hint: &str| {
        let place = Source::new(project.work_dir.display().to_string(), 0);
        let problem = Problem::new(severity, place, code, message).hint(hint);
        findings.push(Finding { area: Area::Repository, problem });
    };
    let head = project.repository.head()?;
    if let Err(error) = project.repository.require_git() {
        find(Severity::Error, "no-git", &error.to_string(), &error.hint().unwrap_or_default());
        return Ok(findings);
    }
    if project.repository.identity().is_none() {
        let hint = "git config user.name \"Your Name\" && git config user.email you@example.com";
        find(Severity::Warning, "no-identity", "git does not know who you are, so no decision can land", hint);
    }
    if head.branch.is_none() {
        let hint = "`git switch` to a branch before a run whose decisions should land";
        find(Severity::Note, "detached", "HEAD is detached, so no decision can land", hint);
    }
    if let Some(operation) = project.repository.operation() {
        let message = format!("a {operation} is in progress, so no decision can land");
        find(Severity::Note, "operation", &message, "finish or abort it");
    }
    if let Some(begun) = project.repository.begun()? {
        let message = format!("`squad {}` was interrupted", begun.command);
        find(Severity::Warning, "unfinished", &message, &format!("`squad {}` finishes it", begun.command));
    }
    let withdrawn = Withdrawn::find(&project.repository, &project.folder_in_repository())?;
    if !withdrawn.is_empty() {
        find(Severity::Warning, "withdrawn", &withdrawn.message(), &withdrawn.hint());
    }
    for reference in project.repository.dangling_references()? {
        let message = format!("{reference} leads to no commit, so `git gc` and `git fsck` fail");
        find(Severity::Error, "ref-dangling", &message, "`squad doctor --repair` deletes it");
    }
    // If the ledger cannot be read at all, that is reported elsewhere.
    let is_readable = project.repository.ledger().snapshot()?.is_none_or(|ledger| ledger.is_there());
    let all = if is_readable { decisions::records(project)? } else { Vec::new() };
    let unlanded =
        |is_file| all.iter().filter(move |d| d.state == DecisionState::Unlanded && d.source.is_some() == is_file);
    let (recorded, written) = (unlanded(false).count(), unlanded(true).count());
    if recorded > 0 {
        let message = format!("{} recorded and on no branch yet", plural(recorded, "decision"));
        find(Severity::Warning, "unlanded", &message, "`squad decisions land` on the branch they were made for");
    }
    if written > 0 {
        let message = format!("{} written by hand and not committed yet", plural(written, "decision"));
        find(Severity::Note, "uncommitted", &message, "agents are told them all the same; commit or delete them");
    }
    Ok(findings)
}

/// Reports files of another release than this squad installs, and an invalid manifest.
fn manifest(env: &Env, project: &Project) -> Option<Finding> {
    let file = format!("{}/{}", project.folder.name, manifest::FILE);
    let text = fs::read_to_string(project.folder.path.join(manifest::FILE)).ok()?;
    let newest = Templates::newest(env);
    let (severity, message, hint) = match Manifest::read(&text, &file) {
        Err(failure) => (Severity::Warning, failure.message, failure.hint.unwrap_or_default()),
        Ok(Manifest { release, preset: None, .. }) if release < newest => {
            let message = format!("the team's files are of release {release}; this squad installs release {newest}");
            (Severity::Note, message, "`squad upgrade --dry-run` lists what would change".to_owned())
        }
        Ok(Manifest { release, .. }) if release > newest => {
            let message =
                format!("a newer squad wrote the team's files: release {release}; this one supports {newest}");
            (Severity::Note, message, "upgrade squad itself".to_owned())
        }
        Ok(_) => return None,
    };
    let problem = Problem::new(severity, Source::new(file, 0), "upgrade", message).hint(hint);
    Some(Finding { area: Area::Team, problem })
}

/// Reports folders in the `PATH` that agents' commands ignore, such as an activated `.venv`.
fn path(env: &Env, project: &Project) -> Vec<Finding> {
    let programs = Programs::new(&project.work_dir, &env.os_variables());
    let folders = programs.left_out().iter().filter(|folder| folder.is_dir());
    let note = |folder: &PathBuf| {
        let message = format!("{} is in the work tree; squad and agents' commands ignore it", folder.display());
        let problem = Problem::new(Severity::Note, Source::new("PATH", 0), "path-in-work-tree", message);
        Finding {
            area: Area::Configuration,
            problem: problem.hint("agents can still call a program there by its path, such as .venv/bin/pytest"),
        }
    };
    folders.map(note).collect()
}

/// Problems, what governs each engine, and the state of those that can be used.
type EngineFindings = (Vec<Finding>, BTreeMap<String, Governed>, Vec<String>);

/// Tries the engines that the team uses.
fn engines(env: &Env, project: &Project) -> Result<EngineFindings, Failure> {
    let at = |name: &str, severity, code, message: String, hint: Option<String>| {
        let problem =
            Problem { hint, ..Problem::new(severity, Source::new(format!("engine {name}"), 0), code, message) };
        Finding { area: Area::Engine, problem }
    };
    if let Err(failure) = engines::check_names(project) {
        let name = &project.settings.engine.name;
        let unknown = at(name, Severity::Error, "engine-unknown", failure.message, failure.hint);
        return Ok((vec![unknown], BTreeMap::new(), Vec::new()));
    }
    let (mut found, mut governed, mut ready) = (Vec::new(), BTreeMap::new(), Vec::new());
    for report in engines::check_used(env, project, None)? {
        let name = &report.name;
        ready.extend(usable(&report));
        governed.extend(report.governed.map(|governed| (name.clone(), governed)));
        if !report.ready.is_usable() {
            let message = report.problem.unwrap_or_else(|| "the engine is not ready".to_owned());
            found.push(at(name, Severity::Error, "engine-not-ready", message, report.hint));
        }
        let disobeyed = report.proved.as_ref().map(|proved| proved.disobeyed.clone()).unwrap_or_default();
        if !disobeyed.is_empty() {
            let message =
                format!("it does what it is told not to do: it failed {} when it was tried", list(&disobeyed));
            let hint = format!("use another version of it, and try that: `squad engines {name} --prove`");
            found.push(at(name, Severity::Error, "engine-disobeys", message, Some(hint)));
        }
        let unusable = report.servers.into_iter().filter_map(|(server, why)| Some((server, why?)));
        found.extend(unusable.map(|(server, why)| {
            let hint = format!("agents work without it; fix `mcp.servers.{server}` in your own squad/config.toml");
            let message = format!("the MCP server `{server}` cannot be used: {why}");
            at(name, Severity::Warning, "mcp-server", message, Some(hint))
        }));
    }
    Ok((found, governed, ready))
}
