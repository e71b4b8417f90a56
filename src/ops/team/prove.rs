//! `squad engines NAME --prove`: tries an engine's program, keeps what was seen, and asks for it when the engine starts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use include_dir::{Dir, include_dir};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;

use super::engines::{copilot_options, profile, require_known, startable_of};
use super::sandbox;
use super::workspace::git_environment;
use crate::engine::command::{Profile, common_variables};
use crate::engine::prove::{Answer, Deed, LoopbackModel, MODEL, Stage, Turn, prove as try_claims};
use crate::engine::{Engine, EngineError, EngineKind, Startable, ToolSpec, copilot, rehearsal};
use crate::env::{Env, SharedFile, real};
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{Claim, RunId, SandboxLevel, list};
use crate::ops::{Project, own_settings, runtime};
use crate::settings::{Layer, Permission, ProviderSettings, Settings};
use crate::tools::Tool;

/// A repository that configures engines: each of its files leaves another behind when an engine heeds it.
static REPOSITORY: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates/proof");

/// A key that no server knows, as long as some programs want it.
const KEY: &str = "sk-squad-proof-0123456789012345678901234567890123456789";
const KEY_VARIABLE: &str = "SQUAD_PROOF_KEY";

/// What was seen of an engine's program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) engine: String,
    /// The program; squad's own version for an engine inside squad.
    pub(crate) program: String,
    /// Of the program's file; empty without one.
    pub(crate) hash: String,
    /// The file's size in bytes, and when it was changed, in nanoseconds since 1970: while both are the same, the file is
    /// taken to be.
    size: u64,
    changed: u128,
    /// What bounded it meanwhile.
    pub(crate) sandbox: SandboxLevel,
    pub(crate) at: Timestamp,
    pub(crate) answers: Vec<Answer>,
}

impl Proof {
    fn claims(&self, holds: bool) -> impl Iterator<Item = Claim> {
        self.answers.iter().filter(move |answer| answer.holds == holds).map(|answer| answer.claim)
    }

    pub(crate) fn passed(&self) -> Vec<Claim> {
        self.claims(true).collect()
    }

    pub(crate) fn failed(&self) -> Vec<Claim> {
        self.claims(false).collect()
    }

    /// What it did although it was told not to.
    fn disobeyed(&self) -> Vec<Claim> {
        self.claims(false).filter(|claim| claim.is_obedience()).collect()
    }
}

type Proofs = SharedFile<BTreeMap<String, Proof>>;

fn proofs(env: &Env) -> Option<Proofs> {
    Some(SharedFile::new(env.user_data()?.join("proofs.json")))
}

/// A program's file as it is now.
struct Stamp {
    size: u64,
    changed: u128,
}

impl Stamp {
    fn of(program: &Path) -> Option<Self> {
        let metadata = program.metadata().ok()?;
        let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        Some(Self { size: metadata.len(), changed })
    }
}

fn hash_of(program: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut fs::File::open(program).ok()?, &mut hasher).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

/// What was seen of an engine's program as it is now. An unreadable file of proofs counts as none: the engine is then tried
/// again.
pub(super) fn proof_of(env: &Env, name: &str, program: impl FnOnce() -> Option<PathBuf>) -> Option<Proof> {
    let proofs = proofs(env)?.read().ok()??;
    let mut of_engine = proofs.into_values().filter(|proof| proof.engine == name).peekable();
    of_engine.peek()?;
    let Some(program) = program() else {
        return of_engine.find(|proof| proof.program == env!("CARGO_PKG_VERSION"));
    };
    let program = real(&program);
    let (stamp, of_engine) = (Stamp::of(&program)?, Vec::from_iter(of_engine));
    let is_same = |proof: &&Proof| {
        Path::new(&proof.program) == program && (proof.size, proof.changed) == (stamp.size, stamp.changed)
    };
    if let Some(proof) = of_engine.iter().find(is_same) {
        return Some(proof.clone());
    }
    let hash = hash_of(&program)?;
    of_engine.into_iter().find(|proof| proof.hash == hash)
}

/// Fails if the engine may not be started: the settings require what it has not proved, or it did what was refused. The
/// claims that it did not keep, where it may be started all the same.
pub(super) fn require(
    env: &Env,
    settings: &Settings,
    name: &str,
    startable: &Startable,
) -> Result<Vec<Claim>, EngineError> {
    if EngineKind::parse(name) == Some(EngineKind::Rehearsal) || matches!(startable, Startable::Not(_)) {
        return Ok(Vec::new());
    }
    let proof = proof_of(env, name, || startable.program());
    let passed: BTreeSet<Claim> = proof.iter().flat_map(Proof::passed).collect();
    let missing: Vec<Claim> = settings.engine.require.difference(&passed).copied().collect();
    let tried = || format!("`squad engines {name} --prove` tries it");
    if !missing.is_empty() {
        let names = list(missing.iter().map(|claim| format!("`{claim}`")));
        let reason = match &proof {
            None => format!("`engine.require` asks for {names}, and {name}'s program has not been tried"),
            Some(_) => format!("`engine.require` asks for {names}, which {name}'s program does not keep"),
        };
        return Err(EngineError::Unusable { reason, hint: Some(tried()) });
    }
    let disobeyed = proof.as_ref().map(Proof::disobeyed).unwrap_or_default();
    if disobeyed.is_empty() || is_permitted(settings, name) {
        return Ok(disobeyed);
    }
    let names = list(disobeyed.iter().map(|claim| format!("`{claim}`")));
    let key = match EngineKind::parse(name) {
        Some(_) => format!("engine.{name}.permission"),
        None => format!("engines.{name}.permission"),
    };
    Err(EngineError::Unusable {
        reason: format!("{name} does what it is told not to do: its program failed {names} when it was tried"),
        hint: Some(format!(
            "use another version of it, which {}; or start it all the same: `squad config set --user {key} allow`",
            tried()
        )),
    })
}

fn is_permitted(settings: &Settings, name: &str) -> bool {
    let permission = match EngineKind::parse(name) {
        Some(_) => settings.engine.copilot.permission,
        None => settings.engines.get(name).and_then(|profile| profile.permission),
    };
    permission == Some(Permission::Allow)
}

/// Tries an engine, tells each answer, and keeps them.
///
/// # Errors
///
/// There is no such engine, its program is missing or does not start, or nobody has said how it reaches a model here.
pub(crate) fn prove(env: &Env, directory: &Path, name: &str, tell: impl FnMut(&Answer)) -> Result<Proof, Failure> {
    let settings = match Project::open(env, directory, Layer::default()) {
        Ok(project) => project.settings,
        Err(_) => own_settings(env),
    };
    require_known(name, &settings)?;
    let runtime = runtime(env)?;
    runtime.block_on(async {
        let model = LoopbackModel::start()
            .await
            .map_err(|error| Failure::failed(format!("cannot listen on the loopback address: {error}")))?;
        let place = Place::new(env, &settings, name, model)?;
        // The program as it was before, should it update itself.
        let program = place.startable(place.plain(), &[])?.program().map(|program| real(&program));
        let hash = program.as_deref().and_then(hash_of).unwrap_or_default();
        let stamp = program.as_deref().and_then(Stamp::of).unwrap_or(Stamp { size: 0, changed: 0 });
        let answers = try_claims(&place, tell).await?;
        let proof = Proof {
            engine: name.to_owned(),
            program: program.map_or_else(|| env!("CARGO_PKG_VERSION").to_owned(), |path| path.display().to_string()),
            hash,
            size: stamp.size,
            changed: stamp.changed,
            sandbox: place.level(),
            at: env.clock.now(),
            answers,
        };
        keep(env, &proof)?;
        Ok(proof)
    })
}

fn keep(env: &Env, proof: &Proof) -> Result<(), Failure> {
    let Some(proofs) = proofs(env) else { return Ok(()) };
    let key = format!("{} {}", proof.engine, proof.hash);
    let kept = proofs.change(|all| drop(all.get_or_insert_default().insert(key, proof.clone())));
    kept.map_err(|reason| {
        Failure::failed(format!("what was seen cannot be kept: {reason}"))
            .hint("move it away, and try the engine again")
    })
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
        settings.engine.require.clear();
        let mut model_name = MODEL.to_owned();
        match EngineKind::parse(name) {
            Some(EngineKind::Rehearsal) => {}
            Some(EngineKind::Copilot) => {
                let copilot = &mut settings.engine.copilot;
                // It is looked for below the home that the user has.
                copilot.path = Some(located(env)?);
                copilot.home = None;
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
            let bounds = sandbox::of_run(&inner, &project, run.as_str(), &[])?;
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

/// Where the Copilot CLI is for the user.
fn located(env: &Env) -> Result<String, Failure> {
    let options = copilot_options(env, None, &env.directory, &own_settings(env), "engines")?;
    Ok(copilot::locate(&options)?.path().display().to_string())
}

/// What programs need, without any login.
fn variables(env: &Env, home: &Path) -> BTreeMap<String, String> {
    let common = common_variables(&env.os_variables());
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let mut variables: BTreeMap<String, String> = common.into_iter().filter_map(text).collect();
    variables.retain(|name, _| !name.starts_with("XDG_"));
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

/// Sets what makes a program use the model. Returns its name for the program.
fn on_loopback(env: &mut Env, home: &Path, profile: &Profile, model: &LoopbackModel) -> Result<String, Failure> {
    let name = &profile.name;
    let Some(loopback) = &profile.loopback else {
        return Err(Failure::usage(format!("nobody has said how `{name}` reaches a model on this machine"))
            .hint(format!("`engines.{name}.loopback` says it; `squad help engines` describes it")));
    };
    let filled = |text: &String| text.replace("{url}", &model.url()).replace("{model}", MODEL).replace("{key}", KEY);
    for (name, value) in &loopback.env {
        env.variables.insert(name.clone(), filled(value));
    }
    for (path, text) in &loopback.files {
        let path: PathBuf = home.join(path);
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
