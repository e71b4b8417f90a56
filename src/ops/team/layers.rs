//! Reads the layers of the configuration from files and environment variables.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::env::Env;
use crate::model::{Problem, Severity, Source};
use crate::parse::{self, Files};
use crate::settings::{self, Layer, Origin, Settings, Trusted};
use crate::store;

/// The user's settings, without any project.
pub(crate) fn own_settings(env: &Env) -> Settings {
    settings(env, &Files::default(), Layer::default(), |_| Ok(Trusted::default())).0
}

/// The settings from the team's files alone, which are the same for everyone.
pub(in crate::ops) fn shared_settings(files: &Files) -> Settings {
    Settings::resolve(team_layers(files, &mut Vec::new())).0
}

/// Problems in the settings of the team's files.
pub(in crate::ops) fn shared_problems(files: &Files) -> Vec<Problem> {
    let mut problems = Vec::new();
    let layers = team_layers(files, &mut problems);
    problems.extend(Settings::resolve(layers).1);
    problems
}

/// The layers from the team's files, lowest first.
pub(super) fn team_layers(files: &Files, problems: &mut Vec<Problem>) -> Vec<Layer> {
    let mut layers = Vec::new();
    let conflicts = parse::conflicts(&files.configuration());
    if !conflicts.is_empty() {
        problems.extend(conflicts);
        return layers;
    }
    layers.extend(charter_servers(files, problems));
    // The configuration of another tool is below ours, so config.toml overrides it.
    let charters = layers.len();
    if let Some(text) = files.text("config.json") {
        let file = format!("{}/config.json", files.folder);
        let (layer, more) = settings::from_json(text, |line| Origin::Project(file.clone(), line));
        problems.extend(more);
        layers.push(layer);
    }
    if let Some(text) = files.text("config.toml") {
        let file = format!("{}/config.toml", files.folder);
        let (layer, more) = settings::from_toml(text, |line| Origin::Project(file.clone(), line));
        problems.extend(more);
        if let Some(other) = layers.get(charters) {
            problems.extend(settings::overlaps(other, &layer));
        }
        layers.push(layer);
    }
    layers
}

/// The MCP servers that charters bring, each for its agent. Two charters may bring the same, but not two under one name.
fn charter_servers(files: &Files, problems: &mut Vec<Problem>) -> Option<Layer> {
    let mut found: BTreeMap<String, (serde_json::Value, Vec<&str>, Origin)> = BTreeMap::new();
    for path in files.texts.keys() {
        let Some((serde_json::Value::Object(servers), agent, line)) = files.charter_servers(path) else { continue };
        let origin = Origin::Project(files.shown(path), line);
        for (name, server) in servers {
            let known = found.entry(name.clone()).or_insert_with(|| (server.clone(), Vec::new(), origin.clone()));
            if known.0 == server {
                known.1.push(agent);
                continue;
            }
            let message = format!("the MCP server `{name}` is left out: another has this name in {}", known.2);
            problems.push(Problem::warning(origin.source(), "charter-servers", message).hint("give it another name"));
        }
    }
    let entries = found
        .iter()
        .flat_map(|(name, (server, agents, origin))| settings::server_entries(name, server, agents, origin));
    let entries: Vec<_> = entries.collect();
    (!entries.is_empty()).then_some(Layer { entries })
}

/// The user may keep the configuration under version control too.
fn conflict(path: &Path, text: &str) -> Option<Problem> {
    let (folder, name) = (path.parent()?.display().to_string(), path.file_name()?.to_str()?.to_owned());
    parse::conflicts(&Files { folder, texts: BTreeMap::from([(name, text.to_owned())]) }).pop()
}

/// The settings from all layers, with what the user has `trusted` of the team's, and the problems in them.
pub(in crate::ops) fn settings(
    env: &Env,
    files: &Files,
    flags: Layer,
    trusted: impl FnOnce(&[Layer]) -> Result<Trusted, Problem>,
) -> (Settings, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut layers = team_layers(files, &mut problems);
    let trusted = trusted(&layers).unwrap_or_else(|problem| {
        problems.push(problem);
        Trusted::default()
    });
    let file = || format!("{}/config.toml", files.folder);
    problems.extend(trusted.removed.iter().map(|name| settings::removed(name, file())));
    if let Some(path) = env.user_config() {
        let shown = path.display().to_string();
        match fs::read_to_string(&path) {
            Ok(text) => match conflict(&path, &text) {
                Some(conflict) => problems.push(conflict),
                None => {
                    let (layer, more) = settings::from_toml(&text, |line| Origin::User(shown.clone(), line));
                    problems.extend(more);
                    layers.push(layer);
                }
            },
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => problems.push(Problem::new(
                Severity::Error,
                Source::new(shown, 0),
                store::UNREADABLE,
                format!("cannot be read: {error}"),
            )),
        }
    }
    let (variables, more) = settings::from_variables(env.variables.clone());
    problems.extend(more);
    layers.push(variables);
    layers.push(flags);
    let (mut settings, more) = Settings::resolve_trusting(layers, &trusted);
    problems.extend(more);
    problems.extend(settings.fill_in(|name| env.variable(name)));
    (settings, problems)
}
