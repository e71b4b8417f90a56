//! Starting the engine that the settings name, or the first fallback that starts.

use std::fs;
use std::path::Path;

use serde::Serialize;
use tokio::time::Instant;

use crate::engine::{Engine, EngineError, EngineKind, copilot, rehearsal};
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{RunId, What, list, seconds};
use crate::ops::{Project, runtime};
use crate::pool::Reports;
use crate::settings::{McpServerSettings, Origin, ProviderSettings, Settings};

/// An engine's name must be known; where it came from decides whose mistake it is.
pub(crate) fn check_names(settings: &Settings) -> Result<(), Failure> {
    for (key, name) in [("engine.name", &settings.engine.name)]
        .into_iter()
        .chain(settings.engine.fallback.iter().map(|name| ("engine.fallback", name)))
    {
        if EngineKind::parse(name).is_none() {
            let origin = settings.origin(key);
            let kind = match origin {
                Origin::Flag(_) => FailureKind::Usage,
                _ => FailureKind::Team,
            };
            return Err(unknown(kind, name).at(origin));
        }
    }
    Ok(())
}

fn unknown(kind: FailureKind, name: &str) -> Failure {
    let engines = list(EngineKind::ALL.map(|engine| format!("`{}`", engine.name())));
    Failure::new(kind, format!("there is no engine `{name}`")).hint(format!("the engines are {engines}"))
}

/// Starts the engine, and says which one it is.
pub(crate) async fn start(
    env: &Env,
    project: &Project,
    run: &RunId,
    script: Option<rehearsal::Script>,
    reports: &Reports,
) -> Result<Engine, Failure> {
    let asked = Instant::now();
    let settings = &project.settings.engine;
    let mut fallbacks = Vec::new();
    let mut first_error = None;
    let mut script = Some(script);
    for (index, name) in std::iter::once(&settings.name).chain(&settings.fallback).enumerate() {
        let error = match start_one(env, project, run, name, script.take().flatten()).await {
            Ok(started) => {
                for (from, to, reason) in fallbacks {
                    reports.tell(None, What::EngineFallback { from, to, reason });
                }
                let (engine, version) = (started.kind().name().to_owned(), started.version());
                let seconds = seconds(asked.elapsed());
                reports.tell(None, What::EngineStarted { engine, version, seconds, warm: false });
                return Ok(started);
            }
            Err(error) => error,
        };
        if let Some(next) = settings.fallback.get(index) {
            fallbacks.push((name.clone(), next.clone(), error.to_string()));
        }
        first_error.get_or_insert(error);
    }
    let error =
        first_error.unwrap_or(EngineError::Missing { what: "no engine is configured".to_owned(), hint: String::new() });
    Err(Failure::from(error))
}

async fn start_one(
    env: &Env,
    project: &Project,
    run: &RunId,
    name: &str,
    script: Option<rehearsal::Script>,
) -> Result<Engine, EngineError> {
    let missing = || EngineError::Missing { what: format!("there is no engine `{name}`"), hint: String::new() };
    match EngineKind::parse(name).ok_or_else(missing)? {
        EngineKind::Rehearsal => Ok(Engine::Rehearsal(rehearsal::Rehearsal::start(script))),
        EngineKind::Copilot => {
            let options = copilot_options(env, Some(project), &project.folder.root, &project.settings, run.as_str())?;
            copilot::Copilot::start(options).await.map(Engine::Copilot)
        }
    }
}

/// The rehearsal's script, where one is named. A script for another engine is a mistake.
pub(crate) fn script(settings: &Settings, directory: &Path) -> Result<Option<rehearsal::Script>, Failure> {
    let Some(path) = &settings.engine.script else { return Ok(None) };
    let mut names = std::iter::once(&settings.engine.name).chain(&settings.engine.fallback);
    if !names.any(|name| EngineKind::parse(name) == Some(EngineKind::Rehearsal)) {
        if !matches!(settings.origin("engine.rehearsal.script"), Origin::Flag(_)) {
            return Ok(None);
        }
        return Err(Failure::usage(format!(
            "a script is for the rehearsal engine, and the engine is `{}`",
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

fn copilot_options(
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
        squad: env.program.clone(),
        program: own.path.as_ref().map(Into::into),
        variables,
        directory: directory.to_owned(),
        home,
        provider,
        mcp_servers: settings.mcp.iter().map(mcp_server).collect::<Result<_, _>>()?,
        run: run.to_owned(),
        timeouts: copilot::Timeouts::default(),
    })
}

/// Homes are apart by the team's place and by the work tree, so that no two of them share sessions.
fn home_name(project: &Project) -> String {
    let key = format!("{}\n{}", project.repository.git_dir().display(), project.folder_in_repository());
    blake3::hash(key.as_bytes()).to_hex()[..12].to_owned()
}

fn provider_of(env: &Env, settings: &ProviderSettings) -> Result<copilot::Provider, EngineError> {
    let mistake = |key: &str, reason: String| EngineError::Unusable {
        reason: format!("`engine.copilot.provider.{key}` {reason}"),
        hint: Some("fix it in your own squad/config.toml".to_owned()),
    };
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

/// A relative path would lead into whatever repository squad works in.
fn mcp_server((name, settings): (&String, &McpServerSettings)) -> Result<(String, copilot::McpServer), EngineError> {
    let mistake = |reason: &str| EngineError::Unusable {
        reason: format!("`mcp.servers.{name}` {reason}"),
        hint: Some("fix it in your own squad/config.toml".to_owned()),
    };
    let McpServerSettings { command, args, env, url, headers } = settings.clone();
    let server = match (command, url) {
        (Some(command), None) if Path::new(&command).is_absolute() || !command.contains(['/', '\\']) => {
            copilot::McpServer::Local { command, args, env }
        }
        (Some(_), None) => return Err(mistake("has a `command` that is neither a program's name nor a full path")),
        (None, Some(url)) if ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) => {
            copilot::McpServer::Http { url, headers }
        }
        (None, Some(_)) => return Err(mistake("has a `url` that does not begin with http:// or https://")),
        _ => return Err(mistake("needs a `command` or a `url`, and one only")),
    };
    Ok((name.clone(), server))
}

/// What is known of an engine after a look at it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) about: Option<String>,
    /// The one the settings choose.
    pub(crate) chosen: bool,
    pub(crate) ready: bool,
    pub(crate) program: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) protocol: Option<u64>,
    pub(crate) supported_protocol: Option<String>,
    pub(crate) login: Option<String>,
    pub(crate) models: Vec<copilot::ModelInfo>,
    pub(crate) problem: Option<String>,
    pub(crate) hint: Option<String>,
}

/// Looks at each engine, or at one.
pub(crate) fn look(env: &Env, directory: &Path, only: Option<&str>) -> Result<Vec<Report>, Failure> {
    if let Some(name) = only.filter(|name| EngineKind::parse(name).is_none()) {
        return Err(unknown(FailureKind::Usage, name));
    }
    // An engine can be looked at without a team, and without a repository.
    let project = Project::open(env, directory, crate::settings::Layer::default()).ok();
    let settings = match &project {
        Some(project) => project.settings.clone(),
        None => crate::ops::own_settings(env),
    };
    let runtime = runtime(env)?;
    let mut reports = Vec::new();
    for kind in EngineKind::ALL.into_iter().filter(|kind| only.is_none_or(|only| only == kind.name())) {
        let mut report = Report::new(kind);
        report.chosen = settings.engine.name == kind.name();
        let report = match kind {
            EngineKind::Rehearsal => rehearsal_report(report),
            EngineKind::Copilot => {
                runtime.block_on(copilot_report(report, env, project.as_ref(), directory, &settings))
            }
        };
        reports.push(report);
    }
    Ok(reports)
}

impl Report {
    fn new(kind: EngineKind) -> Self {
        Self {
            name: kind.name(),
            about: Some(kind.about().to_owned()),
            chosen: false,
            ready: false,
            program: None,
            version: None,
            protocol: None,
            supported_protocol: None,
            login: None,
            models: Vec::new(),
            problem: None,
            hint: None,
        }
    }

    fn trouble(mut self, error: &EngineError) -> Self {
        self.problem = Some(error.to_string());
        self.hint = error.hint().map(str::to_owned);
        self
    }
}

fn rehearsal_report(report: Report) -> Report {
    Report { ready: true, version: Some(env!("CARGO_PKG_VERSION").to_owned()), ..report }
}

async fn copilot_report(
    mut report: Report,
    env: &Env,
    project: Option<&Project>,
    directory: &Path,
    settings: &Settings,
) -> Report {
    let (start, end) = (copilot::PROTOCOL.start(), copilot::PROTOCOL.end());
    report.supported_protocol = Some(if start == end { start.to_string() } else { format!("{start} to {end}") });
    let options = match copilot_options(env, project, directory, settings, "engines") {
        Ok(options) => options,
        Err(error) => return report.trouble(&error),
    };
    let probe = match copilot::Copilot::probe(&options).await {
        Ok(probe) => probe,
        Err(error) => return report.trouble(&error),
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
        return report.trouble(&copilot::unauthenticated(&account));
    }
    report.ready = true;
    report.models = probe.models.unwrap_or_default();
    report
}

/// What a guardian does when its squad is gone.
#[cfg(target_os = "linux")]
pub(crate) fn guard(env: &Env, name: &str, value: &str, heard: &[u8]) -> Result<(), Failure> {
    let runtime = runtime(env)?;
    runtime.block_on(crate::engine::guard(name, value, heard));
    Ok(())
}
