//! `squad engines NAME --prove`: tries an engine's program, in repositories and a home of their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use include_dir::{Dir, include_dir};
use serde_json::Value;
use tempfile::TempDir;

use super::engines::{copilot_options, profile, require_known, startable_of};
use super::proofs::{Proof, Started, keep, require_readable};
use super::sandbox;
use super::workspace::git_environment;
use crate::engine::command::{Profile, common_variables};
use crate::engine::prove::{Answer, Deed, LoopbackModel, MODEL, Stage, Turn, prove as try_claims};
use crate::engine::{Engine, EngineError, EngineKind, Startable, ToolSpec, copilot, rehearsal};
use crate::env::{Env, real};
use crate::error::{Failure, FailureKind};
use crate::git::Repository;
use crate::model::{IntoMap, RunId, SandboxLevel};
use crate::ops::{Project, own_settings, runtime};
use crate::settings::{Layer, Loopback, ProviderSettings, Settings};
use crate::tools::Tool;

/// A repository that configures engines: each of its files leaves another behind when an engine heeds it.
static REPOSITORY: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates/proof");

/// A key that no server knows, as long as some programs want it.
const KEY: &str = "sk-squad-proof-0123456789012345678901234567890123456789";
const KEY_VARIABLE: &str = "SQUAD_PROOF_KEY";

/// Tries an engine, tells each answer, and keeps them.
///
/// # Errors
///
/// There is no such engine, its program is missing or does not start, or nobody has said how it reaches a model here.
pub(crate) fn prove(env: &Env, directory: &Path, name: &str, tell: impl FnMut(&Answer)) -> Result<Proof, Failure> {
    let settings = settings(env, directory);
    require_known(name, &settings)?;
    require_readable(env)?;
    let proof = runtime(env)?.block_on(until_interrupted(env, tried(env, &settings, name, tell)))?;
    keep(env, &proof)?;
    Ok(proof)
}

/// Those of the project, or the user's own where there is none.
pub(super) fn settings(env: &Env, directory: &Path) -> Settings {
    Project::open(env, directory, Layer::default()).map_or_else(|_| own_settings(env), |project| project.settings)
}

/// Tries the program that the settings name for an engine. Keeps nothing.
pub(super) async fn tried(
    env: &Env,
    settings: &Settings,
    name: &str,
    tell: impl FnMut(&Answer),
) -> Result<Proof, Failure> {
    let model = LoopbackModel::start()
        .await
        .map_err(|error| Failure::failed(format!("cannot listen on the loopback address: {error}")))?;
    let place = Place::new(env, settings, name, model)?;
    // The program as it is before, should it update itself.
    let started = Started::by(&place.startable(place.plain(), &[])?);
    let mut proof = Proof::begun(name, started, place.level(), env.clock.now());
    proof.answers = try_claims(&place, tell).await?;
    Ok(proof)
}

/// What is interrupted removes what it made, as what ends does.
pub(super) async fn until_interrupted<T>(
    env: &Env,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let interrupted = async {
        if !env.signals || tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = work => ended,
        () = interrupted => Err(Failure::new(FailureKind::Interrupted, "interrupted; nothing was kept")),
    }
}

/// Two throw-away repositories, with a home of their own.
struct Place {
    env: Env,
    name: String,
    run: RunId,
    model: LoopbackModel,
    model_name: String,
    plain: (Project, sandbox::Bounds),
    repository: (Project, sandbox::Bounds),
    /// The last to go.
    _folder: TempDir,
}

impl Place {
    fn new(env: &Env, settings: &Settings, name: &str, model: LoopbackModel) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::failed(format!("cannot create a temporary folder: {error}"));
        let folder = tempfile::Builder::new().prefix("squad-proof-").tempdir().map_err(failed)?;
        let home = real(folder.path()).join("home");
        fs::create_dir(&home).map_err(failed)?;
        let mut inner = Env { variables: variables(env, &home), ..env.clone() };
        let mut settings = settings.clone();
        settings.mcp.clear();
        let mut model_name = MODEL.to_owned();
        match EngineKind::parse(name) {
            Some(EngineKind::Rehearsal) => {}
            Some(EngineKind::Copilot) => {
                let copilot = &mut settings.engine.copilot;
                copilot.home = None;
                copilot.provider = None;
                // It is looked for below the home that the user has.
                let options = copilot_options(env, None, &env.directory, &settings, "engines")?;
                let program = copilot::locate(&options)?.path().display().to_string();
                let copilot = &mut settings.engine.copilot;
                copilot.path = Some(program);
                inner.variables.insert(KEY_VARIABLE.to_owned(), KEY.to_owned());
                inner.variables.insert("COPILOT_OFFLINE".to_owned(), "true".to_owned());
                copilot.provider = Some(ProviderSettings {
                    kind: Some("openai".to_owned()),
                    wire_api: Some("completions".to_owned()),
                    base_url: Some(format!("{}/v1", model.url())),
                    api_key_env: Some(KEY_VARIABLE.to_owned()),
                    models: vec![MODEL.to_owned()],
                    max_prompt_tokens: None,
                });
            }
            None => model_name = on_loopback(&mut inner, &home, &profile(name, &settings)?, &model)?,
        }
        // The user's own, which no run shows either.
        let hidden = sandbox::hidden(env, &settings);
        let run = inner.ids.run(inner.clock.now());
        let project = |name: &str, dir: Option<&Dir<'_>>| -> Result<(Project, sandbox::Bounds), Failure> {
            let path = real(folder.path()).join(name);
            fs::create_dir(&path).map_err(failed)?;
            if let Some(dir) = dir {
                dir.extract(&path).map_err(failed)?;
            }
            Repository::create(&path, &git_environment(&inner, &path))?;
            let mut project = Project::open_without_team(&inner, &path, Layer::default())?;
            project.settings = settings.clone();
            let mut bounds = sandbox::of_run(&inner, &project, &[])?;
            bounds.sandbox = bounds.sandbox.map(|bounds| bounds.hiding(hidden.iter().cloned()));
            Ok((project, bounds))
        };
        let (plain, repository) = (project("plain", None)?, project("repository", Some(&REPOSITORY))?);
        Ok(Self { env: inner, name: name.to_owned(), run, model, model_name, plain, repository, _folder: folder })
    }

    fn plain(&self) -> &Path {
        &self.plain.0.folder.root
    }

    fn level(&self) -> SandboxLevel {
        self.plain.1.level()
    }

    fn startable(&self, directory: &Path, turns: &[Turn]) -> Result<Startable, EngineError> {
        let (project, bounds) = if directory == self.plain() { &self.plain } else { &self.repository };
        let script = match EngineKind::parse(&self.name) {
            Some(EngineKind::Rehearsal) if !turns.is_empty() => {
                let unusable = |reason| EngineError::Unusable { reason, hint: None };
                Some(rehearsal::Script::parse(&script(turns, self.plain())).map_err(unusable)?)
            }
            _ => None,
        };
        startable_of(&self.env, project, &self.run, &self.name, script, bounds.sandbox.as_ref())
    }
}

impl Stage for Place {
    type Engine = Engine;

    async fn start(&self, directory: &Path, turns: &[Turn]) -> Result<Engine, EngineError> {
        self.startable(directory, turns)?.start().await
    }

    fn model(&self) -> &LoopbackModel {
        &self.model
    }

    fn model_name(&self) -> &str {
        &self.model_name
    }

    fn directories(&self) -> (&Path, &Path) {
        (self.plain(), &self.repository.0.folder.root)
    }

    fn run(&self) -> &str {
        self.run.as_str()
    }

    fn tool(&self) -> ToolSpec {
        Tool::Status.spec()
    }
}

/// What programs need, without any login.
fn variables(env: &Env, home: &Path) -> BTreeMap<String, String> {
    let common = common_variables(&env.os_variables());
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let mut variables: BTreeMap<String, String> = common.into_iter().filter_map(text).into_map();
    // A proxy's address may hold a password.
    variables.retain(|name, _| !name.starts_with("XDG_") && !name.to_ascii_uppercase().ends_with("_PROXY"));
    for name in ["HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
        if name == "HOME" || variables.contains_key(name) {
            variables.insert(name.to_owned(), home.display().to_string());
        }
    }
    for name in ["NO_PROXY", "no_proxy"] {
        variables.insert(name.to_owned(), "127.0.0.1".to_owned());
    }
    variables
}

/// How a program reaches the model.
pub(super) fn loopback(profile: &Profile) -> Result<&Loopback, Failure> {
    let name = &profile.name;
    profile.loopback.as_ref().ok_or_else(|| {
        Failure::usage(format!("nobody has said how `{name}` reaches a model on this machine"))
            .hint(format!("`engines.{name}.loopback` says it; the README describes it, under `Does it obey?`"))
    })
}

/// Sets what makes a program use the model. Returns its name for the program.
fn on_loopback(env: &mut Env, home: &Path, profile: &Profile, model: &LoopbackModel) -> Result<String, Failure> {
    let name = &profile.name;
    let loopback = loopback(profile)?;
    let filled = |text: &String| text.replace("{url}", &model.url()).replace("{model}", MODEL).replace("{key}", KEY);
    for (name, value) in &loopback.env {
        env.variables.insert(name.clone(), filled(value));
    }
    for (inner, text) in &loopback.files {
        if !Path::new(inner).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(Failure::usage(format!(
                "`engines.{name}.loopback.files` names `{inner}`, which is no path below a home"
            )));
        }
        let path = home.join(inner);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, filled(text)));
        written.map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(loopback.model.as_ref().map_or_else(|| MODEL.to_owned(), filled))
}

/// The turns for the rehearsal engine, which has no model.
fn script(turns: &[Turn], directory: &Path) -> String {
    let table = |key: &str, value: toml::Value| toml::Table::from_iter([(key.to_owned(), value)]);
    let step = |deed: &Deed| match deed {
        Deed::Write(path, text) => {
            let path = Path::new(path).strip_prefix(directory).unwrap_or(Path::new(path)).display().to_string();
            let mut step = table("write", path.into());
            step.insert("text".to_owned(), text.clone().into());
            Some(step)
        }
        Deed::Run(line) => Some(table("run", line.clone().into())),
        Deed::Tool(name, Value::Object(_)) => Some(table("tool", name.clone().into())),
        Deed::Hear => Some(table("listen", true.into())),
        Deed::Say => Some(table("say", "Done.".into())),
        // It has no sub-agents.
        Deed::Delegate(_) | Deed::Tool(..) => None,
    };
    let turn = |Turn(deeds): &Turn| {
        let mut turn = table("agent", crate::model::Slug::COORDINATOR.into());
        let steps = deeds.iter().filter_map(step).map(toml::Value::Table).collect();
        turn.insert("steps".to_owned(), toml::Value::Array(steps));
        toml::Value::Table(turn)
    };
    table("turn", toml::Value::Array(turns.iter().map(turn).collect())).to_string()
}
