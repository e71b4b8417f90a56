//! Reads the layers of the configuration from files and environment variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use crate::env::Env;
use crate::model::{Problem, Severity, Source};
use crate::parse::{self, Files};
use crate::settings::{self, Layer, Origin, Settings};
use crate::store;

/// The user's settings, without any project.
pub(crate) fn own_settings(env: &Env) -> Settings {
    settings(env, &Files::default(), Layer::default(), |_| BTreeSet::new()).0
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
    // The configuration of another tool is the lowest layer, so config.toml overrides it.
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
        if let Some(other) = layers.first() {
            problems.extend(settings::overlaps(other, &layer));
        }
        layers.push(layer);
    }
    layers
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
    trusted: impl FnOnce(&[Layer]) -> BTreeSet<String>,
) -> (Settings, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut layers = team_layers(files, &mut problems);
    let trusted = trusted(&layers);
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
