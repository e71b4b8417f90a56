//! A workspace: a repository, one of its work trees, and the team's folder there.

use std::path::{Path, PathBuf};

use crate::env::{Env, ProjectPath, real};
use crate::error::Failure;
use crate::git::{self, Repository};
use crate::ops::run::lease::{self, Leases};
use crate::ops::team::layers::own_settings;
use crate::store::{self, TeamFolder};

/// Finding it does not read the team: commands that only need the ledger stay fast.
pub(crate) struct Workspace {
    pub(crate) repository: Repository,
    /// The work tree's root, as the operating system names it.
    pub(crate) work_dir: PathBuf,
    pub(crate) folder: TeamFolder,
}

impl Workspace {
    pub(crate) fn find(env: &Env, directory: &Path) -> Result<Self, Failure> {
        Self::find_or(env, directory, |_| None)
    }

    /// For commands that read commits. In a bare repository, or without a team in the work tree, the team is expected at
    /// the repository's root.
    pub(crate) fn find_or_root(env: &Env, directory: &Path) -> Result<Self, Failure> {
        let repository = Repository::discover(directory, &git_environment(env, directory))?.reporting_to(&env.damage);
        if repository.work_dir().is_none() {
            let place = real(repository.git_dir());
            return Ok(Self { folder: TeamFolder::expected(&place), work_dir: place, repository });
        }
        Self::find_or(env, directory, |work_dir| Some(TeamFolder::expected(work_dir)))
    }

    /// For commands that look at what is recorded: without a team, runs and decisions of `squad mcp` may be.
    pub(crate) fn find_or_recorded(env: &Env, directory: &Path) -> Result<Self, Failure> {
        let missing = match Self::find(env, directory) {
            Ok(workspace) => return Ok(workspace),
            Err(missing) => missing,
        };
        match Self::find_without_team(env, directory) {
            Ok(workspace) if workspace.repository.ledger().tip()?.is_some() => Ok(workspace),
            _ => Err(missing),
        }
    }

    /// With a team, or else the repository's root, if nothing of a team but roles is there.
    pub(crate) fn find_without_team(env: &Env, directory: &Path) -> Result<Self, Failure> {
        let failure = match Self::find(env, directory) {
            Ok(workspace) => return Ok(workspace),
            Err(failure) => failure,
        };
        let (repository, work_dir) = repository(env, directory)?;
        not_left_out(&repository)?;
        let folder = TeamFolder::expected(&work_dir);
        let is_taken = folder.path.symlink_metadata().is_ok() && !store::has_only_roles(&folder.path);
        if is_taken || work_dir.to_str().is_none() {
            return Err(failure);
        }
        Ok(Self { repository, work_dir, folder })
    }

    fn find_or(
        env: &Env,
        directory: &Path,
        otherwise: impl FnOnce(&Path) -> Option<TeamFolder>,
    ) -> Result<Self, Failure> {
        let (repository, work_dir) = repository(env, directory)?;
        let start = real(directory);
        let Some(folder) = team_folder(&repository, &start, &work_dir).or_else(|| otherwise(&work_dir)) else {
            not_left_out(&repository)?;
            return Err(Failure::team(format!(
                "there is no team in {}: no `.squad/team.md` there or above",
                start.display()
            ))
            .hint("`squad init` makes a team"));
        };
        if store::require_own(&folder, &folder.path).is_err() {
            return Err(Failure::team("the team's folder is a link out of the project's files")
                .at(folder.path.display())
                .hint("replace it by a real folder; `squad init --from PATH` copies a team's Markdown and models"));
        }
        if folder.root.to_str().is_none() {
            return Err(Failure::team(format!("the path {} is not Unicode", folder.root.display()))
                .hint("rename the folder: the ledger stores a team's entries under its path"));
        }
        Ok(Self { repository, work_dir, folder })
    }

    /// The workspace of another team in the same repository.
    pub(crate) fn of_team(&self, place: &str, name: &'static str) -> Self {
        let root = self.work_dir.join(place);
        let folder = TeamFolder { path: root.join(name), root, name };
        Self { repository: self.repository.clone(), work_dir: self.work_dir.clone(), folder }
    }

    /// The prefix of the team's paths in the ledger; see `record::entry_path`.
    pub(crate) fn ledger_prefix(&self) -> String {
        ledger_prefix(&project_path(&self.folder, &self.work_dir))
    }

    /// The team folder relative to the repository's root, with `/`.
    pub(crate) fn folder_in_repository(&self) -> String {
        below(&project_path(&self.folder, &self.work_dir), self.folder.name)
    }

    /// The project's root relative to the repository's, with a final `/`; empty if they are the same.
    pub(crate) fn path_in_repository(&self) -> String {
        below(&project_path(&self.folder, &self.work_dir), "")
    }

    /// Converts a path that the user typed in `directory` to one from the project's root, with `/`. Paths outside of the
    /// project are returned unchanged.
    pub(crate) fn path_from_root(&self, directory: &Path, path: &str) -> String {
        path_below(&self.folder.root, directory, path)
    }

    pub(crate) fn leases(&self) -> Leases {
        lease::look(&self.local())
    }

    /// See [`Repository::own_folder`].
    pub(crate) fn local(&self) -> PathBuf {
        self.repository.own_folder()
    }
}

/// Converts a path that the user typed in `directory` to one from `root`, with `/`. Paths outside of `root` are returned
/// unchanged.
pub(in crate::ops) fn path_below(root: &Path, directory: &Path, path: &str) -> String {
    ProjectPath::named(root, directory, path).map_or_else(|_| path.to_owned(), |path| path.shown)
}

/// The environment for git commands in `directory`.
pub(in crate::ops) fn git_environment(env: &Env, directory: &Path) -> git::Environment {
    let git = own_settings(env).git.program.unwrap_or_else(|| "git".to_owned());
    git::Environment::new(PathBuf::from(git), directory, env.os_variables())
}

/// The repository that contains `directory`, with its work tree.
pub(crate) fn repository(env: &Env, directory: &Path) -> Result<(Repository, PathBuf), Failure> {
    let repository = Repository::discover(directory, &git_environment(env, directory))?.reporting_to(&env.damage);
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

/// The folder of a team at the root of the checked-out commit. The work tree may lack it: in a sparse checkout, before
/// the first checkout, or because it was deleted.
pub(in crate::ops) fn left_out(repository: &Repository) -> Result<Option<&'static str>, Failure> {
    let Some(commit) = repository.head()?.commit else { return Ok(None) };
    for folder in store::FOLDERS {
        if repository.paths_at(&commit, folder)?.iter().any(|path| path.strip_prefix(folder) == Some("/team.md")) {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

/// How to get a team's folder that a work tree lacks.
pub(crate) fn restoring(folder: &str) -> String {
    format!("`git restore {folder}` restores it; in a sparse checkout, use `git sparse-checkout add {folder}`")
}

/// Fails if the checked-out commit has a team that the work tree lacks.
pub(in crate::ops) fn not_left_out(repository: &Repository) -> Result<(), Failure> {
    match left_out(repository)? {
        Some(folder) => Err(Failure::team(format!("the team in {folder} is on the branch but not in this work tree"))
            .hint(restoring(folder))),
        None => Ok(()),
    }
}

/// The team folder for `start`.
pub(in crate::ops) fn team_folder(repository: &Repository, start: &Path, work_dir: &Path) -> Option<TeamFolder> {
    let main = repository.main_work_dir().map(real);
    store::locate(start, work_dir, main.as_deref())
}

/// A team's project root relative to the repository's, with `/`; empty if they are the same.
pub(in crate::ops) fn project_path(folder: &TeamFolder, work_dir: &Path) -> String {
    let relative = folder.root.strip_prefix(work_dir).unwrap_or(Path::new(""));
    relative.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

pub(in crate::ops) fn ledger_prefix(place: &str) -> String {
    if place.is_empty() {
        return String::new();
    }
    // Escaped, so that each team has exactly one folder.
    format!("teams/{}/", place.replace('%', "%25").replace('/', "%2F"))
}

/// The project's path that a ledger's prefix stands for.
pub(in crate::ops) fn place_of(prefix: &str) -> String {
    let place = prefix.strip_prefix("teams/").unwrap_or_default().trim_end_matches('/');
    place.replace("%2F", "/").replace("%25", "%")
}

pub(in crate::ops) fn below(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") }
}

impl From<git::Error> for Failure {
    fn from(error: git::Error) -> Self {
        Self { hint: error.hint(), ..Self::team(error.to_string()) }
    }
}
