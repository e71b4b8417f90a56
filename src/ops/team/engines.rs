//! Starts the configured engine, or the first fallback that works.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use crate::engine::command::{self, Profile};
use crate::engine::{Capabilities, EngineError, EngineKind, Startable, copilot, rehearsal, remote, with_hint};
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{Claim, IntoMap, IntoSet, NetworkAccess, Plan, PlanKind, RunId, SandboxLevel, Slug, list};
use crate::ops::team::proofs::{self, KnownProofs, Started};
use crate::ops::team::sandbox;
use crate::ops::{Project, Workspace, runtime};
use crate::policy::Permissions;
use crate::pool::{Engines, Quotas, Reports};
use crate::program::Programs;
use crate::sandbox::{Sandbox, level_of};
use crate::settings::{McpServerSettings, Origin, ProviderSettings, Settings};

/// Fails if a configured engine does not exist. An unknown name in a flag is a usage error, elsewhere a team error.
pub(crate) fn check_names(project: &Project) -> Result<(), Failure> {
    let settings = &project.settings;
    let (main, fallback) = (&settings.engine.name, &settings.engine.fallback);
    let mut named = vec![("engine.name".to_owned(), main)];
    named.extend(fallback.iter().map(|name| ("engine.fallback".to_owned(), name)));
    named.extend(settings.agent_engines.iter().map(|(agent, name)| (format!("agents.{agent}.engine"), name)));
    for (key, name) in named {
        if !is_known(name, settings) {
            let origin = settings.origin(&key);
            let kind = match origin {
                Origin::Flag(_) => FailureKind::Usage,
                _ => FailureKind::Team,
            };
            return Err(unknown(kind, name, settings).at(origin));
        }
    }
    for (slug, charter) in &project.team.charters {
        if let Some(name) = charter.engine.as_ref().filter(|name| !is_known(name, settings)) {
            let file = project.team.member(slug).and_then(|member| member.charter.clone());
            return Err(unknown(FailureKind::Team, name, settings).at(file.unwrap_or_else(|| slug.to_string())));
        }
    }
    Ok(())
}

/// Whether there is an engine with this name.
pub(crate) fn is_known(name: &str, settings: &Settings) -> bool {
    EngineKind::parse(name).is_some() || Profile::find(name, &settings.engines).is_some()
}

/// The names of all engines.
pub(crate) fn names(settings: &Settings) -> Vec<String> {
    let kinds = EngineKind::ALL.map(|kind| kind.name().to_owned());
    kinds.into_iter().chain(Profile::names(&settings.engines)).collect()
}

/// Fails if no engine has this name.
pub(crate) fn require_known(name: &str, settings: &Settings) -> Result<(), Failure> {
    if is_known(name, settings) { Ok(()) } else { Err(unknown(FailureKind::Usage, name, settings)) }
}

fn unknown(kind: FailureKind, name: &str, settings: &Settings) -> Failure {
    let engines = list(names(settings).iter().map(|engine| format!("`{engine}`")));
    Failure::new(kind, format!("there is no engine `{name}`")).hint(format!("the engines are {engines}"))
}

/// Those of some engines whose programs are there. Starts nothing, and does not look for a login.
pub(crate) fn installed(
    env: &Env,
    directory: &Path,
    settings: &Settings,
    names: impl Iterator<Item = String>,
) -> impl Iterator<Item = String> {
    let programs = Programs::new(directory, &env.os_variables());
    names.filter(move |name| match EngineKind::parse(name) {
        Some(EngineKind::Rehearsal) => true,
        Some(EngineKind::Copilot) => copilot_options(env, None, directory, settings, "engines")
            .is_ok_and(|options| Startable::Copilot(Box::new(options)).locate().is_ok()),
        None => profile(name, settings).is_ok_and(|profile| command::locate(&profile, &programs).is_ok()),
    })
}

/// The engines for a new team: the usual one first, then the others up to the first that is ready. Starts what it looks at.
pub(crate) fn until_ready(env: &Env, directory: &Path, settings: &Settings) -> Result<Vec<Report>, Failure> {
    let (runtime, usual, known) = (runtime(env)?, &settings.engine.name, KnownProofs::read(env));
    let is_other = |name: &String| name != usual && EngineKind::parse(name) != Some(EngineKind::Rehearsal);
    let mut reports: Vec<Report> = Vec::new();
    for name in std::iter::once(usual.clone()).chain(names(settings).into_iter().filter(is_other)) {
        if reports.last().is_some_and(|last| last.ready == Readiness::Ready) {
            break;
        }
        reports.push(runtime.block_on(report(&name, (env, &known), None, directory, settings)));
        share_login(&mut reports);
    }
    Ok(reports)
}

/// The user's settings, where there is no team and nobody has chosen an engine.
pub(crate) fn undecided(env: &Env, directory: &Path) -> Option<Settings> {
    let settings = crate::ops::own_settings(env);
    let is_free = matches!(settings.origin("engine.name"), Origin::Default) && Workspace::find(env, directory).is_err();
    is_free.then_some(settings)
}

/// Of the engines that are installed, the preferred one first: the first that is ready, else the first that may be, else
/// the first. Starts what it looks at, and nothing where there is no choice.
pub(crate) fn first_ready(
    env: &Env,
    directory: &Path,
    settings: &Settings,
    preferred: &str,
) -> Option<(String, Readiness)> {
    let is_other = |name: &String| name != preferred && EngineKind::parse(name) != Some(EngineKind::Rehearsal);
    let all = std::iter::once(preferred.to_owned()).chain(names(settings).into_iter().filter(is_other));
    let installed: Vec<String> = installed(env, directory, settings, all).collect();
    if let [] | [_] = installed[..] {
        return installed.into_iter().next().map(|only| (only, Readiness::Installed));
    }
    let (runtime, known) = (runtime(env).ok()?, KnownProofs::read(env));
    let mut best: Option<(String, Readiness)> = None;
    for name in installed {
        let ready = runtime.block_on(report(&name, (env, &known), None, directory, settings)).ready;
        if best.as_ref().is_none_or(|(_, found)| ready > *found) {
            best = Some((name, ready));
        }
        if ready == Readiness::Ready {
            break;
        }
    }
    best
}

/// Flags with the engine of a repository without a team, where nobody has chosen one: the usual one, or another that is
/// ready.
pub(crate) fn flags_without_team(env: &Env, directory: &Path) -> BTreeMap<String, String> {
    let found =
        undecided(env, directory).and_then(|settings| first_ready(env, directory, &settings, &settings.engine.name));
    found.map(|(engine, _)| ("engine".to_owned(), engine)).into_iter().collect()
}

/// The engine that is the same program as an MCP client.
pub(crate) fn of_client(name: &str) -> Option<&'static str> {
    const CLIENTS: [(&str, &str); 6] = [
        ("claude-code", "claude"),
        ("codex", "codex"),
        ("gemini-cli", "gemini"),
        ("cursor", "cursor"),
        ("opencode", "opencode"),
        ("copilot", "copilot"),
    ];
    let name = name.to_lowercase();
    CLIENTS.into_iter().find(|(client, _)| name.contains(client)).map(|(_, engine)| engine)
}

/// The engines that a run may need. Does not start them.
pub(crate) fn prepare(
    env: &Env,
    project: &Project,
    run: &RunId,
    script: Option<rehearsal::Script>,
    sandbox: Option<&Sandbox>,
) -> Engines {
    prepare_with(env, project, run, script, (&[], None), sandbox)
}

/// Like [`prepare`], with engines that were given to members, and one described by the user's environment.
pub(crate) fn prepare_with(
    env: &Env,
    project: &Project,
    run: &RunId,
    script: Option<rehearsal::Script>,
    (given, described): (&[String], Option<&Profile>),
    sandbox: Option<&Sandbox>,
) -> Engines {
    let settings = &project.settings;
    let mut startable = BTreeMap::new();
    if let Some(profile) = described {
        let how = of_profile(env, project, run, profile.clone(), sandbox).unwrap_or_else(Startable::Not);
        startable.insert(profile.name.clone(), how);
    }
    for name in named(project).chain(given) {
        let how = || startable_of(env, project, run, name, script.clone(), sandbox).unwrap_or_else(Startable::Not);
        startable.entry(name.clone()).or_insert_with(how);
    }
    let (known, mut broken) = (KnownProofs::read(env), BTreeMap::new());
    for (name, startable) in &mut startable {
        broken.insert(name.clone(), prove(&known, settings, (name, startable), sandbox));
    }
    broken.retain(|_, claims| !claims.is_empty());
    Engines::new(settings.engine.name.clone(), settings.engine.fallback.clone(), startable)
        .within(sandbox.cloned())
        .with_quotas(quotas(env))
        .breaking(broken)
}

/// One engine, as far as it may be started.
pub(crate) fn startable(
    env: &Env,
    project: &Project,
    run: &RunId,
    name: &str,
    script: Option<rehearsal::Script>,
    sandbox: Option<&Sandbox>,
) -> Startable {
    let mut startable = startable_of(env, project, run, name, script, sandbox).unwrap_or_else(Startable::Not);
    prove(&KnownProofs::read(env), &project.settings, (name, &mut startable), sandbox);
    startable
}

/// Keeps an engine from being started that breaks what is required of it. Returns the claims that it breaks otherwise.
fn prove(
    known: &KnownProofs,
    settings: &Settings,
    (name, startable): (&str, &mut Startable),
    sandbox: Option<&Sandbox>,
) -> Vec<Claim> {
    match proofs::require(known, settings, (name, startable), level_of(sandbox)) {
        Ok(claims) => claims,
        Err(error) => {
            *startable = Startable::Not(error);
            Vec::new()
        }
    }
}

/// The engines on another machine that a run may need there. `options`: how each is reached, by its name.
pub(crate) fn on_host(project: &Project, options: impl Fn(&str) -> remote::Options) -> Engines {
    let settings = &project.settings;
    let startable = named(project).map(|name| (name.clone(), Startable::Remote(Box::new(options(name)))));
    Engines::new(settings.engine.name.clone(), settings.engine.fallback.clone(), startable.into_map())
}

/// The engines that a project names.
fn named(project: &Project) -> impl Iterator<Item = &String> {
    let settings = &project.settings;
    let chartered = project.team.charters.values().filter_map(|charter| charter.engine.as_ref());
    let own = std::iter::once(&settings.engine.name).chain(&settings.engine.fallback);
    own.chain(settings.agent_engines.values()).chain(chartered)
}

/// What is known of the quotas of the user's accounts, on this machine.
pub(crate) fn quotas(env: &Env) -> Quotas {
    Quotas::new(env.user_state().map(|folder| folder.join("quota.json")), env.clock.clone())
}

pub(super) fn startable_of(
    env: &Env,
    project: &Project,
    run: &RunId,
    name: &str,
    script: Option<rehearsal::Script>,
    sandbox: Option<&Sandbox>,
) -> Result<Startable, EngineError> {
    Ok(match EngineKind::parse(name) {
        Some(EngineKind::Rehearsal) => {
            let (directory, variables) = (project.folder.root.clone(), env.os_variables());
            let (squad, sandbox) = (env.program.clone(), sandbox.cloned());
            Startable::Rehearsal(script, Box::new(rehearsal::Surroundings { directory, variables, squad, sandbox }))
        }
        Some(EngineKind::Copilot) => {
            let options = copilot_options(env, Some(project), &project.folder.root, &project.settings, run.as_str())?;
            Startable::Copilot(Box::new(copilot::Options { sandbox: sandbox.cloned(), ..options }))
        }
        None => of_profile(env, project, run, profile(name, &project.settings)?, sandbox)?,
    })
}

/// What an engine can do; `described` is the engine that the environment describes, which comes before one of its name.
pub(crate) fn capabilities(name: &str, described: Option<&Profile>, settings: &Settings) -> Capabilities {
    if let Some(profile) = described.filter(|profile| profile.name == name) {
        return profile.capabilities();
    }
    match EngineKind::parse(name) {
        Some(kind) => kind.capabilities(),
        None => profile(name, settings).map(|profile| profile.capabilities()).unwrap_or_default(),
    }
}

fn of_profile(
    env: &Env,
    project: &Project,
    run: &RunId,
    profile: Profile,
    sandbox: Option<&Sandbox>,
) -> Result<Startable, EngineError> {
    // A program that is started for each message gets none of them.
    let mcp_servers = match profile.protocol {
        Some(_) => mcp_servers(Some(project), &project.settings)?,
        None => copilot::McpServers::new(),
    };
    let repository = &project.repository;
    let is_first = repository.git_dir() == repository.common_dir() && project.ledger_prefix().is_empty();
    Ok(Startable::Command(Box::new(command::Options {
        profile,
        squad: env.program.clone(),
        variables: env.os_variables(),
        directory: project.folder.root.clone(),
        local: project.local(),
        place: if is_first { String::new() } else { home_name(project) },
        run: run.to_string(),
        sandbox: sandbox.cloned(),
        mcp_servers,
    })))
}

fn misconfigured(setting: &str, reason: &str) -> EngineError {
    let hint = Some("fix it in your own squad/config.toml".to_owned());
    EngineError::Unusable { reason: format!("`{setting}` {reason}"), hint }
}

pub(super) fn profile(name: &str, settings: &Settings) -> Result<Profile, EngineError> {
    let missing = || EngineError::Missing { what: format!("there is no engine `{name}`"), hint: String::new() };
    let unusable = |reason: String| misconfigured(&format!("engines.{name}"), &reason);
    Profile::find(name, &settings.engines).ok_or_else(missing)?.map_err(unusable)
}

/// Checks what is known of an engine without starting it: that its program exists, and may work with these permissions.
/// A main engine with a fallback needs no program. `None` is the main engine, or the one that the environment describes.
pub(crate) fn require_usable(
    env: &Env,
    project: &Project,
    name: Option<&str>,
    described: Option<&Profile>,
    permissions: Permissions,
) -> Result<(), EngineError> {
    let settings = &project.settings;
    let profile = match (name, described) {
        (None, Some(described)) => described.clone(),
        (Some(name), Some(described)) if described.name == name => described.clone(),
        (name, _) => {
            let name = name.unwrap_or(&settings.engine.name);
            match EngineKind::parse(name) {
                Some(EngineKind::Copilot) if settings.engine.fallback.is_empty() => {
                    let options = copilot_options(env, Some(project), &project.folder.root, settings, "engines")?;
                    return Startable::Copilot(Box::new(options)).locate().map(drop);
                }
                Some(_) => return Ok(()),
                None => profile(name, settings)?,
            }
        }
    };
    if !settings.engine.fallback.is_empty() {
        return Ok(());
    }
    profile.require_mode(permissions == Permissions::Allow)?;
    command::locate(&profile, &Programs::new(&project.folder.root, &env.os_variables())).map(drop)
}

/// Starts the engines that a plan needs, so that a missing one is reported before any agent starts.
pub(crate) async fn start(
    engines: &Engines,
    project: &Project,
    plan: &Plan,
    reports: &Reports,
) -> Result<(), NotStarted> {
    for name in needed(project, plan) {
        if let Err(error) = engines.get(name.as_deref(), reports).await {
            let engine = name.unwrap_or_else(|| project.settings.engine.name.clone());
            return Err(NotStarted { engine, failure: error.into() });
        }
    }
    Ok(())
}

/// Fails if an engine that a plan needs is not installed, nor any that may stand in for it. Starts nothing, so nothing has
/// to be recorded.
pub(crate) fn require_installed(env: &Env, project: &Project, run: &RunId, plan: &Plan) -> Result<(), Failure> {
    let engines = prepare(env, project, run, None, None);
    let located = |name: &Option<String>| engines.locate(name.as_deref());
    needed(project, plan).iter().try_for_each(located).map_err(|error| with_others(env, project, error.into()))
}

/// Names what is there instead.
fn with_others(env: &Env, project: &Project, failure: Failure) -> Failure {
    let is_engine = |name: &String| EngineKind::parse(name) != Some(EngineKind::Rehearsal);
    let all = names(&project.settings).into_iter().filter(is_engine);
    let others: Vec<String> = installed(env, &project.work_dir, &project.settings, all).collect();
    let Some(first) = others.first() else {
        return failure.hint_too("without one: squad demo, or `--engine rehearsal`, which plays a script");
    };
    let are = if others.len() == 1 { "is" } else { "are" };
    failure.hint_too(format!("{} {are} installed: squad orchestrate --engine {first} \"…\"", list(&others)))
}

/// The names of the engines that a plan needs; `None` is the main engine.
fn needed(project: &Project, plan: &Plan) -> BTreeSet<Option<String>> {
    let settings = &project.settings;
    let members = plan.agents.iter().chain(plan.reviewers()).filter_map(|slug| project.team.member(slug));
    // Others work with an engine of another machine.
    let here = members.filter(|member| settings.host_of(&member.names()).is_none());
    let mut needed: BTreeSet<Option<String>> = here.map(|member| of_agent(project, &member.slug)).into_set();
    if plan.kind != PlanKind::Agents || plan.agents.len() != 1 {
        needed.insert(settings.engine_of(&[Slug::COORDINATOR.to_owned()], None));
    }
    needed
}

/// The engine that is named for an agent; `None`: the run's engine.
pub(crate) fn of_agent(project: &Project, agent: &Slug) -> Option<String> {
    let chartered = project.team.charters.get(agent).and_then(|charter| charter.engine.as_deref());
    project.settings.engine_of(&project.team.member(agent)?.names(), chartered)
}

/// An engine that failed to start, so that the run cannot begin.
pub(crate) struct NotStarted {
    pub(crate) engine: String,
    pub(crate) failure: Failure,
}

/// The script for the rehearsal engine, if one is configured. Fails if a flag names one and another engine is used.
pub(crate) fn script(settings: &Settings, directory: &Path) -> Result<Option<rehearsal::Script>, Failure> {
    let Some(path) = &settings.engine.script else { return Ok(None) };
    let mut names = std::iter::once(&settings.engine.name).chain(&settings.engine.fallback);
    let is_agents = settings.agent_engines.values().any(|name| EngineKind::parse(name) == Some(EngineKind::Rehearsal));
    if !is_agents && !names.any(|name| EngineKind::parse(name) == Some(EngineKind::Rehearsal)) {
        if !matches!(settings.origin("engine.rehearsal.script"), Origin::Flag(_)) {
            return Ok(None);
        }
        return Err(Failure::usage(format!(
            "only the rehearsal engine runs scripts, and the engine is `{}`",
            settings.engine.name
        ))
        .at(settings.origin("engine.rehearsal.script"))
        .hint("add `--engine rehearsal`"));
    }
    let text = fs::read_to_string(directory.join(path))
        .map_err(|error| Failure::usage(format!("cannot read the script {path}: {error}")))?;
    rehearsal::Script::parse(&text)
        .map(Some)
        .map_err(|reason| Failure::usage(reason).at(path).hint("`squad orchestrate --help` describes scripts"))
}

pub(super) fn copilot_options(
    env: &Env,
    project: Option<&Project>,
    directory: &Path,
    settings: &Settings,
    run: &str,
) -> Result<copilot::Options, EngineError> {
    let variables = env.os_variables();
    let own = &settings.engine.copilot;
    let provider = match &own.provider {
        Some(provider) => Some(provider_of(env, provider)?),
        None => copilot::Provider::from_environment(&variables)?,
    };
    let local = project.map(|project| project.local().join("homes").join(home_name(project)).join("copilot"));
    let home = match (own.home.as_deref(), local) {
        (None | Some("auto"), Some(local)) => copilot::Home::Auto { local },
        (None | Some("auto" | "user"), _) => copilot::Home::User,
        (Some(folder), _) => copilot::Home::At(env.directory.join(folder)),
    };
    Ok(copilot::Options {
        // Only a run has one.
        sandbox: None,
        squad: env.program.clone(),
        program: own.path.as_ref().map(Into::into),
        variables,
        directory: directory.to_owned(),
        home,
        provider,
        mcp_servers: mcp_servers(project, settings)?,
        run: run.to_owned(),
        timeouts: copilot::Timeouts::default(),
    })
}

/// Each team in each work tree has its own home, so that no two share sessions.
pub(in crate::ops) fn home_name(project: &Project) -> String {
    let key = format!("{}\n{}", project.repository.git_dir().display(), project.folder_in_repository());
    blake3::hash(key.as_bytes()).to_hex()[..12].to_owned()
}

fn provider_of(env: &Env, settings: &ProviderSettings) -> Result<copilot::Provider, EngineError> {
    let mistake = |key: &str, reason: String| misconfigured(&format!("engine.copilot.provider.{key}"), &reason);
    let base_url = settings.base_url.clone().ok_or_else(|| mistake("base_url", "is missing".to_owned()))?;
    let kind = settings.kind.as_deref().unwrap_or("openai");
    let kind = copilot::ProviderKind::parse(kind)
        .ok_or_else(|| mistake("type", format!("is openai, anthropic or azure, not `{kind}`")))?;
    let wire_api = match settings.wire_api.as_deref() {
        None => None,
        Some(wire) => {
            let unknown = || mistake("wire_api", format!("is completions or responses, not `{wire}`"));
            Some(copilot::WireApi::parse(wire).ok_or_else(unknown)?)
        }
    };
    let api_key = match &settings.api_key_env {
        None => None,
        Some(name) => {
            let missing = || mistake("api_key_env", format!("names {name}, which is not set"));
            Some(env.variable(name).map(str::to_owned).ok_or_else(missing)?)
        }
    };
    let (models, max_prompt_tokens) = (settings.models.clone(), settings.max_prompt_tokens);
    Ok(copilot::Provider { kind, wire_api, base_url, api_key, models, max_prompt_tokens })
}

fn mcp_servers(project: Option<&Project>, settings: &Settings) -> Result<copilot::McpServers, EngineError> {
    settings.mcp.iter().map(|server| mcp_server(project, server)).collect()
}

/// Rejects relative paths: they would start a program from the repository that squad works in.
fn mcp_server(
    project: Option<&Project>,
    (name, settings): (&String, &McpServerSettings),
) -> Result<(String, copilot::McpServer), EngineError> {
    let mistake = |reason: &str| misconfigured(&format!("mcp.servers.{name}"), reason);
    let McpServerSettings { command, args, env, url, headers, kind, tools, timeout, agents } = settings.clone();
    let timeout = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    let agents = agents.map(|named| {
        let members = project.into_iter().flat_map(|project| project.team.startable());
        let meant = members.filter(|member| named.iter().any(|name| member.goes_by(name)));
        meant.map(|member| member.slug.clone()).collect()
    });
    let offer = copilot::McpOffer { tools, timeout, agents };
    let is_program = command.is_some();
    if kind.as_deref().is_some_and(|kind| (kind == "stdio") != is_program) {
        return Err(mistake("has a `type` that does not go with its `command` or `url`"));
    }
    let server = match (command, url) {
        (Some(command), None) if Path::new(&command).is_absolute() || !command.contains(['/', '\\']) => {
            copilot::McpServer::Local { command, args, env, offer }
        }
        (Some(_), None) => return Err(mistake("has a `command` that is neither a program's name nor a full path")),
        (None, Some(url)) if ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) => {
            match kind.as_deref() {
                Some("sse") => copilot::McpServer::Sse { url, headers, offer },
                _ => copilot::McpServer::Http { url, headers, offer },
            }
        }
        (None, Some(_)) => return Err(mistake("has a `url` that does not begin with http:// or https://")),
        _ => return Err(mistake("needs a `command` or a `url`, and one only")),
    };
    Ok((name.clone(), server))
}

/// What holds for the writes and commands of an engine's agents.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Governed {
    /// With `--permissions allow`.
    pub(crate) allow: String,
    pub(crate) otherwise: String,
}

impl Governed {
    /// The engine asks squad before it acts, or can act only through squad's tools.
    fn by_squad() -> Self {
        let allow = "each is allowed, but no file tool writes in `.git` and a few commands are refused";
        Self { allow: allow.to_owned(), otherwise: "squad decides on each write and command".to_owned() }
    }

    fn of(profile: &Profile, level: SandboxLevel) -> Self {
        if profile.protocol.is_some() || !profile.has_own_tools() {
            return Self::by_squad();
        }
        let otherwise = match profile.require_mode(false) {
            Ok(()) => profile.governed(false, level),
            Err(_) => "it is not started: it has no read-only mode".to_owned(),
        };
        Self { allow: format!("{}; squad checks no call", profile.governed(true, level)), otherwise }
    }

    pub(crate) fn under(&self, permissions: Permissions) -> &str {
        if permissions == Permissions::Allow { &self.allow } else { &self.otherwise }
    }
}

impl std::fmt::Display for Governed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "with `--permissions allow` {}; otherwise {}", self.allow, self.otherwise)
    }
}

/// What an engine's program did when it was tried.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Proved {
    pub(crate) at: Timestamp,
    pub(crate) passed: Vec<Claim>,
    pub(crate) failed: Vec<Claim>,
    /// What it did although it was told not to.
    #[serde(skip)]
    pub(crate) disobeyed: Vec<Claim>,
    pub(crate) sandbox: SandboxLevel,
}

impl Proved {
    /// The newest.
    fn of(known: &KnownProofs, name: &str, started: impl FnOnce() -> Started) -> Option<Self> {
        let proof = known.of(name, started).into_iter().next()?;
        let (passed, failed, disobeyed) = (proof.passed(), proof.failed(), proof.disobeyed());
        Some(Self { at: proof.at, sandbox: proof.sandbox, passed, failed, disobeyed })
    }
}

impl std::fmt::Display for Proved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.passed.len() + self.failed.len();
        write!(
            f,
            "on {} in the sandbox `{}`: keeps {} of {count}",
            self.at.strftime("%F"),
            self.sandbox,
            self.passed.len()
        )?;
        if self.failed.is_empty() { Ok(()) } else { write!(f, ", not {}", list(&self.failed)) }
    }
}

/// Whether an engine can be used, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Readiness {
    #[default]
    NotReady,
    /// It is installed, and whether it is logged in cannot be asked.
    Installed,
    Ready,
}

impl Readiness {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Installed => "installed; squad cannot ask whether it is logged in",
            Self::NotReady => "not ready",
        }
    }

    /// Nothing is known that keeps it from being used.
    pub(crate) fn is_usable(self) -> bool {
        self != Self::NotReady
    }
}

/// As `true` and `false`; `null`: not known.
impl Serialize for Readiness {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = (*self != Self::Installed).then_some(*self == Self::Ready);
        known.serialize(serializer)
    }
}

/// The result of checking an engine.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) about: Option<String>,
    /// Whether the settings select it.
    pub(crate) chosen: bool,
    pub(crate) installed: bool,
    pub(crate) ready: Readiness,
    pub(crate) program: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) protocol: Option<u64>,
    pub(crate) supported_protocol: Option<String>,
    pub(crate) login: Option<String>,
    /// What it can do: as its adapter or its profile says, whether it is installed or not.
    pub(crate) can: Capabilities,
    pub(crate) governed: Option<Governed>,
    /// What its agents' programs may write and read, tried just now; `None`: it was not tried.
    pub(crate) sandbox: Option<SandboxLevel>,
    /// What of the network they reach, at level `full`.
    pub(crate) network: Option<NetworkAccess>,
    /// Why that is open, if nobody asked for it.
    pub(crate) network_open: Option<String>,
    /// What was seen when its program was tried; `None`: it has not been.
    pub(crate) proved: Option<Proved>,
    pub(crate) models: Vec<copilot::ModelInfo>,
    /// The user's MCP servers by name, and why one cannot be used.
    pub(crate) servers: BTreeMap<String, Option<String>>,
    pub(crate) problem: Option<String>,
    pub(crate) hint: Option<String>,
}

/// Checks all engines, or one.
pub(crate) fn check(env: &Env, directory: &Path, only: Option<&str>) -> Result<Vec<Report>, Failure> {
    // Works without a team and without a repository.
    let project = Project::open(env, directory, crate::settings::Layer::default()).ok();
    let settings = match &project {
        Some(project) => project.settings.clone(),
        None => crate::ops::own_settings(env),
    };
    if let Some(name) = only.filter(|name| !is_known(name, &settings)) {
        return Err(unknown(FailureKind::Usage, name, &settings));
    }
    let (runtime, known) = (runtime(env)?, KnownProofs::read(env));
    let mut reports = Vec::new();
    for name in names(&settings).into_iter().filter(|name| only.is_none_or(|only| only == name)) {
        let mut report = runtime.block_on(report(&name, (env, &known), project.as_ref(), directory, &settings));
        // The one that a run would start, or that is asked about.
        if let Some(project) = project.as_ref().filter(|_| report.installed && (report.chosen || only.is_some()))
            && let Ok(bounds) = sandbox::of_run(env, project, &[])
        {
            report.sandbox = Some(bounds.level());
            let network = network(env, project, &name, bounds)?;
            (report.network, report.network_open) = network.map_or((None, None), |(access, open)| (Some(access), open));
        }
        reports.push(report);
    }
    share_login(&mut reports);
    Ok(reports)
}

/// Only its server mode says whether the Copilot CLI is logged in.
fn share_login(reports: &mut [Report]) {
    let of_server = reports.iter().find(|report| report.name == EngineKind::Copilot.name() && report.program.is_some());
    let Some((ready, problem, hint)) = of_server.map(|of| (of.ready, of.problem.clone(), of.hint.clone())) else {
        return;
    };
    for report in reports.iter_mut().filter(|report| report.name == "copilot-print" && report.installed) {
        (report.ready, report.problem, report.hint) = (ready, problem.clone(), hint.clone());
    }
}

/// Checks the engines that members may run on: the described one or the configured one, and those of single agents.
pub(crate) fn check_used(env: &Env, project: &Project, described: Option<&Profile>) -> Result<Vec<Report>, Failure> {
    let settings = &project.settings;
    let main = described.is_none().then_some(&settings.engine.name);
    let chartered = project.team.charters.values().filter_map(|charter| charter.engine.as_ref());
    let names: BTreeSet<&String> = main.into_iter().chain(settings.agent_engines.values()).chain(chartered).into_set();
    let (runtime, known) = (runtime(env)?, KnownProofs::read(env));
    let described = described.map(|profile| {
        let report = Report::new(&profile.name);
        runtime.block_on(profile_report(report, (env, &known), Some(project), &project.folder.root, profile))
    });
    let named = names.into_iter().filter(|name| is_known(name, settings));
    let reports =
        named.map(|name| runtime.block_on(report(name, (env, &known), Some(project), &project.folder.root, settings)));
    Ok(described.into_iter().chain(reports).collect())
}

async fn report(
    name: &str,
    (env, known): (&Env, &KnownProofs),
    project: Option<&Project>,
    directory: &Path,
    settings: &Settings,
) -> Report {
    let report = Report { chosen: settings.engine.name == name, ..Report::new(name) };
    match EngineKind::parse(name) {
        Some(EngineKind::Rehearsal) => {
            let (proved, version) = (
                Proved::of(known, name, || Started { program: None, profile: String::new() }),
                Some(env!("CARGO_PKG_VERSION").to_owned()),
            );
            Report { installed: true, ready: Readiness::Ready, version, proved, ..report }
        }
        Some(EngineKind::Copilot) => copilot_report(report, (env, known), project, directory, settings).await,
        None => match profile(name, settings) {
            Ok(profile) => profile_report(report, (env, known), project, directory, &profile).await,
            Err(error) => Report { installed: false, ..report.with_problem(&error) },
        },
    }
}

impl Report {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            about: EngineKind::parse(name).map(|kind| kind.about().to_owned()),
            can: EngineKind::parse(name).map(EngineKind::capabilities).unwrap_or_default(),
            governed: EngineKind::parse(name).map(|_| Governed::by_squad()),
            ..Self::default()
        }
    }

    /// What is wrong, with the way out.
    pub(crate) fn complaint(&self) -> Option<String> {
        Some(with_hint(self.problem.as_ref()?, self.hint.as_deref()))
    }

    fn with_problem(mut self, error: &EngineError) -> Self {
        self.installed = !matches!(error, EngineError::Missing { .. });
        self.problem = Some(error.to_string());
        self.hint = error.hint().map(str::to_owned);
        self
    }
}

async fn copilot_report(
    mut report: Report,
    (env, known): (&Env, &KnownProofs),
    project: Option<&Project>,
    directory: &Path,
    settings: &Settings,
) -> Report {
    let (start, end) = (copilot::PROTOCOL.start(), copilot::PROTOCOL.end());
    report.supported_protocol = Some(if start == end { start.to_string() } else { format!("{start} to {end}") });
    let options = match copilot_options(env, project, directory, settings, "engines") {
        Ok(options) => options,
        Err(error) => return report.with_problem(&error),
    };
    report.proved = Proved::of(known, &report.name, || Started::by(&Startable::Copilot(Box::new(options.clone()))));
    let (probe, unusable) = copilot::Copilot::probe(&options).await;
    report.servers = options.mcp_servers.keys().map(|name| (name.clone(), unusable.get(name).cloned())).into_map();
    let probe = match probe {
        Ok(probe) => probe,
        Err(error) => return report.with_problem(&error),
    };
    report.program = Some(probe.program.display().to_string());
    report.version = Some(probe.identity.version);
    report.protocol = Some(probe.identity.protocol);
    let account = probe.identity.account;
    report.login = match (&options.provider, account.authenticated) {
        (Some(provider), _) => Some(format!("none needed: models come from {}", provider.base_url)),
        (None, true) => {
            Some(account.login.clone().or(account.auth_type.clone()).unwrap_or_else(|| "logged in".to_owned()))
        }
        (None, false) => None,
    };
    if options.provider.is_none() && !account.authenticated {
        return report.with_problem(&copilot::unauthenticated(&account));
    }
    (report.installed, report.ready) = (true, Readiness::Ready);
    report.models = probe.models.unwrap_or_default();
    report
}

/// What of the network the programs of an engine reach in a project, and why that is open if nobody asked for it. `None`: at
/// level `full` only.
///
/// # Errors
///
/// A runtime cannot be started.
pub(crate) fn network(
    env: &Env,
    project: &Project,
    name: &str,
    bounds: sandbox::Bounds,
) -> Result<Option<(NetworkAccess, Option<String>)>, Failure> {
    let Some(sandbox) = bounds.sandbox.filter(|sandbox| sandbox.level() == SandboxLevel::Full) else { return Ok(None) };
    // Nothing is started for it.
    let Some(run) = RunId::parse("engines") else { return Ok(None) };
    let startable = startable_of(env, project, &run, name, None, Some(&sandbox));
    let startable = startable.unwrap_or_else(Startable::Not);
    let (access, open) = match startable.hosts() {
        Some((hosts, sandbox)) if sandbox.network() == NetworkAccess::Listed => {
            let (sandbox, open) = runtime(env)?.block_on(hosts.within(sandbox.clone()));
            (sandbox.network(), open)
        }
        _ => (sandbox.network(), bounds.network_open),
    };
    Ok(Some((access, open)))
}

/// The level of the sandbox in which a run would start a program, if that changes how it is started.
pub(crate) fn level_for(env: &Env, project: &Project, profile: &Profile) -> SandboxLevel {
    let bounds = profile.inside.is_some().then(|| sandbox::of_run(env, project, &[]));
    bounds.and_then(Result::ok).map_or(SandboxLevel::Rules, |bounds| bounds.level())
}

async fn profile_report(
    mut report: Report,
    (env, known): (&Env, &KnownProofs),
    project: Option<&Project>,
    directory: &Path,
    profile: &Profile,
) -> Report {
    report.about = Some(profile.about.clone());
    report.can = profile.capabilities();
    let level = project.map_or(SandboxLevel::Rules, |project| level_for(env, project, profile));
    report.governed = Some(Governed::of(profile, level));
    let variables = env.os_variables();
    match command::locate(profile, &Programs::new(directory, &variables)) {
        Ok(program) => {
            let (version, login) = tokio::join!(
                command::version(profile, &program, &variables),
                command::require_login(profile, &program, &variables)
            );
            report.version = version;
            report.proved = Proved::of(known, &report.name, || Started {
                program: Some(program.path().to_owned()),
                profile: profile.fingerprint(),
            });
            report.program = Some(program.path().display().to_string());
            match login {
                Ok(true) => Report { installed: true, ready: Readiness::Ready, ..report },
                Ok(false) => Report { installed: true, ready: Readiness::Installed, ..report },
                Err(error) => report.with_problem(&error),
            }
        }
        Err(error) => report.with_problem(&error),
    }
}

/// Runs the guardian process, which ends an engine when its squad has died.
#[cfg(unix)]
pub(crate) fn guard(env: &Env, name: &str, value: &str, at_once: bool, heard: &[u8]) -> Result<(), Failure> {
    let runtime = runtime(env)?;
    runtime.block_on(crate::engine::guard(name, value, at_once, heard));
    Ok(())
}
