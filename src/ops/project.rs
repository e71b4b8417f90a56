//! A project: a repository, the team in it, and the settings for it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::lease::{self, LiveRun};
use crate::env::Env;
use crate::error::Failure;
use crate::git::{self, Repository};
use crate::model::{Decision, Problem, Severity, Team};
use crate::parse;
use crate::settings::{self, Layer, Origin, Settings};
use crate::store::{self, TeamFolder};

pub(crate) struct Project {
    pub(crate) repository: Repository,
    /// The work tree's root, as the operating system names it.
    pub(crate) work_dir: PathBuf,
    pub(crate) folder: TeamFolder,
    pub(crate) team: Team,
    pub(crate) settings: Settings,
    pub(crate) problems: Vec<Problem>,
}

/// What git is given of the outside world.
pub(super) fn git_environment(env: &Env) -> git::Environment {
    git::Environment { git: PathBuf::from("git"), variables: env.os_variables() }
}

/// The repository that `directory` is in, with its work tree.
pub(crate) fn repository(env: &Env, directory: &Path) -> Result<(Repository, PathBuf), Failure> {
    let repository = Repository::discover(directory, &git_environment(env))?;
    let Some(work_dir) = repository.work_dir() else {
        return Err(Failure::team(format!(
            "{} is a bare repository; squad works in a work tree",
            repository.git_dir().display()
        ))
        .hint("clone it, or make a work tree with `git worktree add`"));
    };
    let work_dir = real(work_dir);
    Ok((repository, work_dir))
}

/// The team that counts in a folder.
pub(super) fn team_folder(repository: &Repository, start: &Path, work_dir: &Path) -> Option<TeamFolder> {
    let main = repository.main_work_dir().map(real);
    store::locate(start, work_dir, main.as_deref())
}

impl Project {
    /// Reads everything. A team with errors is a project too: commands that need a sound one say so.
    pub(crate) fn open(env: &Env, directory: &Path, flags: Layer) -> Result<Self, Failure> {
        let (repository, work_dir) = repository(env, directory)?;
        let start = real(directory);
        let Some(folder) = team_folder(&repository, &start, &work_dir) else {
            return Err(Failure::team(format!(
                "there is no team in {}: no folder `.squad` there or above",
                start.display()
            ))
            .hint("`squad init` makes a team"));
        };
        if folder.root.to_str().is_none() {
            return Err(Failure::team(format!("the path {} is not Unicode", folder.root.display()))
                .hint("squad keeps a team's record under its path; rename the folder"));
        }
        let (files, mut problems) = store::read(&folder);
        let (team, more) = parse::team(&files);
        // What cannot be read is not missing, and what follows from it is no news.
        let unreadable = problems.iter().any(|problem| problem.code == "unreadable");
        problems.extend(more.into_iter().filter(|problem| !unreadable || !problem.code.ends_with("-missing")));
        if unreadable {
            problems.retain(|problem| problem.code == "unreadable" || problem.severity == Severity::Note);
        }
        let (settings, more) = settings(env, &files, flags);
        problems.extend(more);
        Ok(Self { repository, work_dir, folder, team, settings, problems })
    }

    /// The first error, as a failure: the team or its configuration cannot be used.
    pub(crate) fn insist_on_sound(&self) -> Result<(), Failure> {
        self.insist(|_| true)
    }

    /// What cannot be read is not the same as what is not there.
    pub(crate) fn insist_on_readable(&self) -> Result<(), Failure> {
        self.insist(|problem| problem.code == "unreadable")
    }

    fn insist(&self, matters: impl Fn(&Problem) -> bool) -> Result<(), Failure> {
        match self.problems.iter().find(|problem| problem.severity == Severity::Error && matters(problem)) {
            None => Ok(()),
            Some(problem) => {
                let failure = Failure::team(problem.message.clone());
                let failure = match problem.line {
                    0 => failure.at(&problem.file),
                    line => failure.at(format!("{}:{line}", problem.file)),
                };
                Err(match &problem.hint {
                    Some(hint) => failure.hint(hint.clone()),
                    None => failure,
                })
            }
        }
    }

    /// What the team's paths in the ledger begin with; see `record::entry_path`.
    pub(crate) fn ledger_prefix(&self) -> String {
        ledger_prefix(&place(&self.folder, &self.work_dir))
    }

    /// The team folder from the repository's root, with `/`.
    pub(crate) fn folder_in_repository(&self) -> String {
        below(&place(&self.folder, &self.work_dir), self.folder.name)
    }

    /// The decision files on the branch, as they are in the work tree.
    pub(crate) fn decisions(&self) -> &[Decision] {
        &self.team.decisions
    }

    pub(crate) fn live_runs(&self) -> Vec<LiveRun> {
        lease::live(&self.local())
    }

    /// Squad's local folder, shared by all work trees: `.git/squad`. Throw-away.
    pub(crate) fn local(&self) -> PathBuf {
        self.repository.common_dir().join("squad")
    }
}

/// A team's project root from the repository's, with `/`; empty for the repository's own.
pub(super) fn place(folder: &TeamFolder, work_dir: &Path) -> String {
    let relative = folder.root.strip_prefix(work_dir).unwrap_or(Path::new(""));
    relative.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

pub(super) fn ledger_prefix(place: &str) -> String {
    if place.is_empty() {
        return String::new();
    }
    // One folder a team, whatever its place is called.
    format!("teams/{}/", place.replace('%', "%25").replace('/', "%2F"))
}

pub(super) fn below(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") }
}

/// The settings outside of any project.
pub(crate) fn own_settings(env: &Env) -> Settings {
    settings(env, &parse::Files::default(), Layer::default()).0
}

/// Links resolved, so that paths of one place compare equal.
fn real(path: &Path) -> PathBuf {
    dunce::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn settings(env: &Env, files: &parse::Files, flags: Layer) -> (Settings, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut layers = Vec::new();
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
                crate::model::Source::new(shown, 0),
                "unreadable",
                format!("cannot be read: {error}"),
            )),
        }
    }
    layers.push(settings::from_variables(env.variables.clone()));
    layers.push(flags);
    let (settings, more) = Settings::resolve(layers);
    problems.extend(more);
    (settings, problems)
}

impl From<git::Error> for Failure {
    fn from(error: git::Error) -> Self {
        let failure = Self::team(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
