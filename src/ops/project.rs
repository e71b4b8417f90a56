//! A project: a workspace, the team in it, and the settings for it.

use std::fs;
use std::io;
use std::ops::Deref;
use std::path::Path;

use super::Workspace;
use super::cache::{Cache, Glance};
use crate::env::Env;
use crate::error::Failure;
use crate::model::{Decision, Problem, Severity, Source, Team};
use crate::parse::{self, Files};
use crate::settings::{self, Layer, Origin, Settings};
use crate::store;

pub(crate) struct Project {
    workspace: Workspace,
    pub(crate) team: Team,
    pub(crate) settings: Settings,
    pub(crate) problems: Vec<Problem>,
}

/// A project is first of all a place.
impl Deref for Project {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl Project {
    /// Reads everything. A team with errors is a project too: commands that need a sound one say so.
    pub(crate) fn open(env: &Env, directory: &Path, flags: Layer) -> Result<Self, Failure> {
        Ok(Opening::new(env, Workspace::find(env, directory)?, flags).read())
    }

    /// The first error, as a failure: the team or its configuration cannot be used.
    pub(crate) fn insist_on_sound(&self) -> Result<(), Failure> {
        self.insist(|_| true)
    }

    /// What cannot be read is not the same as what is not there, and half a merge is nobody's team.
    pub(crate) fn insist_on_readable(&self) -> Result<(), Failure> {
        self.insist(is_unread)
    }

    fn insist(&self, matters: impl Fn(&Problem) -> bool) -> Result<(), Failure> {
        match self.problems.iter().find(|problem| problem.severity == Severity::Error && matters(problem)) {
            None => Ok(()),
            Some(problem) => Err(failure(problem)),
        }
    }

    /// The decision files on the branch, as they are in the work tree.
    pub(crate) fn decisions(&self) -> &[Decision] {
        &self.team.decisions
    }
}

/// Whether a file is not read because of it.
fn is_unread(problem: &Problem) -> bool {
    problem.code == store::UNREADABLE || problem.code == parse::CONFLICT
}

/// That the team or its configuration cannot be used.
pub(super) fn failure(problem: &Problem) -> Failure {
    let failure = Failure::team(problem.message.clone());
    let failure = match problem.line {
        0 => failure.at(&problem.file),
        line => failure.at(format!("{}:{line}", problem.file)),
    };
    match &problem.hint {
        Some(hint) => failure.hint(hint.clone()),
        None => failure,
    }
}

/// A project that has been looked at and not been read: enough to know whether what follows from it is known already.
pub(super) struct Opening {
    pub(super) workspace: Workspace,
    pub(super) cache: Cache,
    pub(super) glance: Glance,
    settings: Settings,
    settings_problems: Vec<Problem>,
}

impl Opening {
    pub(super) fn new(env: &Env, workspace: Workspace, flags: Layer) -> Self {
        let cache = Cache::new(env, &workspace.local());
        let glance = cache.glance(&workspace.folder);
        let (settings, settings_problems) = settings(env, glance.config(), flags);
        Self { workspace, cache, glance, settings, settings_problems }
    }

    /// Identifies everything that a project is read from: the same key, the same team, settings and problems. `None`
    /// where something could not be read.
    pub(super) fn key(&self) -> Option<String> {
        // With Debug, no field and no layer can be forgotten.
        let settings = format!("{:?}\n{:?}", self.settings, self.settings_problems);
        Some(format!("{}\n{:?}\n{settings}", self.glance.key()?, self.glance.problems()))
    }

    pub(super) fn read(self) -> Project {
        let Self { workspace, cache, glance, settings, settings_problems } = self;
        let mut problems = glance.problems().to_vec();
        let (team, more) = cache.team(glance);
        // What cannot be read is not missing, and what follows from it is no news.
        let unreadable = problems.iter().any(is_unread);
        problems.extend(more.into_iter().filter(|problem| !unreadable || !problem.code.ends_with("-missing")));
        if unreadable {
            problems.retain(|problem| is_unread(problem) || problem.severity == Severity::Note);
        }
        // A conflict in a file of settings is the team's too.
        problems.extend(settings_problems.into_iter().filter(|problem| problem.code != parse::CONFLICT));
        Project { workspace, team, settings, problems }
    }
}

/// The settings of a team, without reading anything else of it.
pub(crate) fn team_settings(env: &Env, workspace: &Workspace) -> (Settings, Vec<Problem>) {
    let (files, mut problems) = store::read_configuration(&workspace.folder);
    let (settings, more) = settings(env, &files, Layer::default());
    problems.extend(more);
    (settings, problems)
}

/// The settings outside of any project.
pub(crate) fn own_settings(env: &Env) -> Settings {
    settings(env, &Files::default(), Layer::default()).0
}

/// The settings that the team's files alone make: the same for everyone.
pub(super) fn shared_settings(files: &Files) -> Settings {
    Settings::resolve(team_layers(files, &mut Vec::new())).0
}

/// What cannot be understood of them.
pub(super) fn shared_problems(files: &Files) -> Vec<Problem> {
    let mut problems = Vec::new();
    let layers = team_layers(files, &mut problems);
    problems.extend(Settings::resolve(layers).1);
    problems
}

/// What the team's own files set, the lowest first.
fn team_layers(files: &Files, problems: &mut Vec<Problem>) -> Vec<Layer> {
    let mut layers = Vec::new();
    let conflicts = parse::conflicts(&files.configuration());
    if !conflicts.is_empty() {
        problems.extend(conflicts);
        return layers;
    }
    // What another tool left: the lowest layer, so that our own file wins.
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

fn settings(env: &Env, files: &Files, flags: Layer) -> (Settings, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut layers = team_layers(files, &mut problems);
    if let Some(path) = env.user_config() {
        let shown = path.display().to_string();
        match fs::read_to_string(&path) {
            Ok(text) => {
                let (layer, more) = settings::from_toml(&text, |line| Origin::User(shown.clone(), line));
                problems.extend(more);
                layers.push(layer);
            }
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
    let (settings, more) = Settings::resolve(layers);
    problems.extend(more);
    (settings, problems)
}
