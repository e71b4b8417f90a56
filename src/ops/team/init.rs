//! Installs a team: a few Markdown files, in one commit.

use std::fs;
use std::path::Path;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{Change, Landing, NewFile, Repository, Rewrite};
use crate::ops::repository;
use crate::ops::team::adopt::{self, TeamRead};
use crate::ops::team::fit::{self, TeamFiles};
use crate::ops::team::manifest::{FILE, Manifest};
use crate::ops::team::membership::Outlet;
use crate::ops::team::survey::{self, Survey};
use crate::ops::team::templates::Templates;
use crate::ops::team::workspace::not_left_out;
use crate::store;

pub(in crate::ops) const FOLDER: &str = ".squad";

/// The job that reviews pull requests, for GitHub.
const WORKFLOW: &str = ".github/workflows/squad-review.yml";
static WORKFLOW_TEXT: &[u8] = include_bytes!("../../../templates/ci/squad-review.yml");

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    /// Who is on the team, by their slugs; all of the built-in one where nobody is named.
    pub(crate) agents: Vec<String>,
    /// In a commit.
    pub(crate) commit: bool,
    /// The job that reviews pull requests too.
    pub(crate) ci: bool,
    /// A team's own preset, in the place of the built-in team.
    pub(crate) preset: Option<TeamFiles>,
}

/// What a person says of the team that is being made.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// What the project is for; what its README says where it is `None`.
    pub(crate) purpose: Option<String>,
    pub(crate) agents: Vec<String>,
    /// The usual one where it is `None`.
    pub(crate) engine: Option<String>,
}

/// What `init` did.
pub(crate) enum Installed {
    /// Everything was there already; nothing was changed. `read` is what squad understands of a team that `adopt`
    /// would take over.
    Already { folder: String, read: Option<TeamRead> },
    Committed {
        /// From the repository's root.
        files: Vec<String>,
        commit: String,
    },
    /// The files are there and not committed; why.
    Written { files: Vec<String>, reason: String },
}

/// Puts the team at the repository's root, and what else is asked for. What is there stays as it is: running it again
/// changes nothing. `ask` is given what the README says of the project's purpose.
pub(crate) fn init(
    env: &Env,
    directory: &Path,
    wish: Wish,
    ask: impl FnOnce(Option<&str>) -> Result<Answers, Failure>,
) -> Result<Installed, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    let there = standing_team(&work_dir)?;
    let mut files = Vec::new();
    if there.is_none() {
        not_left_out(&repository)?;
        let is_own = wish.preset.is_some();
        let mut team = wish.preset.unwrap_or_else(|| team_files(env));
        let mut survey = surveyed(&repository, &work_dir)?;
        let answers = ask(survey.purpose.as_deref())?;
        survey.purpose = answers.purpose.or(survey.purpose);
        let agents = if wish.agents.is_empty() { answers.agents } else { wish.agents };
        if !agents.is_empty() {
            fit::keep(&mut team, &agents)?;
        }
        fit::fill_in(&mut team, &survey, is_own);
        if let Some(engine) = answers.engine {
            fit::use_engine(&mut team, &engine);
        }
        files.extend(team.into_iter().map(|(path, bytes)| NewFile::plain(format!("{FOLDER}/{path}"), bytes)));
    }
    if wish.ci && work_dir.join(WORKFLOW).symlink_metadata().is_err() {
        files.push(NewFile::plain(WORKFLOW, WORKFLOW_TEXT.to_vec()));
    }
    if let Some(folder) = there.filter(|_| files.is_empty()) {
        let is_ours = work_dir.join(&folder).join(FILE).exists();
        let shown = Outlet::Shown { as_commit: false };
        let adopted = if is_ours { None } else { adopt::adopt(env, &work_dir, shown).ok() };
        let read = adopted.filter(|adopted| adopted.has_work()).map(|adopted| adopted.read);
        return Ok(Installed::Already { folder, read });
    }
    let message = if files.len() == 1 { WORKFLOW_MESSAGE } else { MESSAGE };
    install(env, (&repository, &work_dir), ("init", message), wish.commit, files)
}

/// Puts new files there, in a commit where that is wanted and can be.
pub(super) fn install(
    env: &Env,
    (repository, work_dir): (&Repository, &Path),
    (command, message): (&str, &str),
    is_to_commit: bool,
    files: Vec<NewFile>,
) -> Result<Installed, Failure> {
    let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    let committed = match is_to_commit {
        true => commit(env, repository, (command, message), &files)?,
        false => Err("--no-commit".to_owned()),
    };
    match committed {
        Ok(commit) => Ok(Installed::Committed { files: paths, commit }),
        // The files are there, whatever stands against the commit.
        Err(reason) => {
            write((repository, work_dir), command, &files).map(|()| Installed::Written { files: paths, reason })
        }
    }
}

/// The commit that holds the files, or why there is none.
fn commit(
    env: &Env,
    repository: &Repository,
    (command, message): (&str, &str),
    files: &[NewFile],
) -> Result<Result<String, String>, Failure> {
    for place in [FOLDER, WORKFLOW] {
        let first = files.iter().find(|file| file.path.starts_with(place));
        if let Some(first) = first
            && repository.would_ignore(&first.path)?
        {
            return Ok(Err(format!("git ignores {place}")));
        }
    }
    let Some(branch) = repository.head()?.branch else { return Ok(Err("HEAD is detached".to_owned())) };
    let (command, message) = (command.to_owned(), message.to_owned());
    let change = Change { command, branch, allow_unborn: true, files: files.to_vec(), edits: Vec::new(), message };
    Ok(match repository.land(&change, repository.identity().as_ref(), env.clock.now()) {
        Ok(Landing::Landed { commit }) => Ok(commit),
        Ok(Landing::NotLanded { reason, hint }) => Err(format!("{reason} ({hint})")),
        Err(error) => Err(error.to_string()),
    })
}

const MESSAGE: &str = "squad: install a team\n\n\
    The team of agents that works in this repository, and how work is routed to it.\n";

const WORKFLOW_MESSAGE: &str = "squad: review pull requests in CI\n\n\
    Posts what a pull request decides as a comment under it.\n";

/// The team that is there already, by its folder's name.
pub(super) fn standing_team(work_dir: &Path) -> Result<Option<String>, Failure> {
    if let Some(found) = store::locate(work_dir, work_dir, None) {
        return if found.path.join("team.md").is_file() {
            Ok(Some(found.name.to_owned()))
        } else {
            Err(Failure::team("the folder is there and holds no team.md")
                .at(found.path.display())
                .hint("move the folder away, or write a team.md: a table with a Name and a Role column"))
        };
    }
    let place = work_dir.join(FOLDER);
    if place.symlink_metadata().is_ok() {
        return Err(Failure::team("it exists and is not a folder").at(place.display()).hint("move it away"));
    }
    Ok(None)
}

/// All files or, where it is stopped, the rest with the next command.
fn write((repository, work_dir): (&Repository, &Path), command: &str, files: &[NewFile]) -> Result<(), Failure> {
    let failed = |cause: String, path: &str| {
        Failure::failed(format!("cannot write the team: {cause}"))
            .at(work_dir.join(path).display())
            .hint("check the folder's permissions")
    };
    let new = files
        .iter()
        .map(|file| Rewrite { executable: file.executable, ..Rewrite::new(&file.path, None, Some(&file.bytes)) });
    let left =
        repository.rewrite(command, &new.collect::<Vec<_>>()).map_err(|error| failed(error.to_string(), FOLDER))?;
    left.first().map_or(Ok(()), |path| Err(failed("something else is there".to_owned(), path)))
}

/// The files of a new team by path from its folder, and what `squad upgrade` will have to know of them.
fn team_files(env: &Env) -> TeamFiles {
    let templates = Templates::of(env);
    let manifest = (FILE.to_owned(), Manifest::of(&templates).text().into_bytes());
    templates.files.into_iter().chain([manifest]).collect()
}

/// What is in the repository, beside a team.
fn surveyed(repository: &Repository, work_dir: &Path) -> Result<Survey, Failure> {
    const LARGEST: u64 = 256 * 1024;
    let paths = repository.listed_files()?;
    let read = |path: &&String| {
        let place = work_dir.join(path);
        let is_small = place.symlink_metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST);
        let text = is_small.then(|| fs::read(&place).ok()).flatten().and_then(|bytes| String::from_utf8(bytes).ok())?;
        Some(((*path).clone(), text))
    };
    let texts = paths.iter().filter(|path| survey::is_telling(path)).filter_map(|path| read(&path)).collect();
    Ok(survey::survey(&paths, &texts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Severity;
    use crate::parse::{Files, team};
    use crate::route::{Request, Router, Wishes};

    fn files() -> TeamFiles {
        team_files(&Env::capture().expect("a world"))
    }

    fn installed() -> Files {
        let texts = files().into_iter().map(|(path, bytes)| (path, String::from_utf8(bytes).expect("UTF-8")));
        Files { folder: FOLDER.to_owned(), texts: texts.collect() }
    }

    #[test]
    fn the_template_is_small_and_sound() {
        let files = files();
        assert!(files.len() <= 40, "{}", files.len());
        assert!(files.values().map(Vec::len).sum::<usize>() <= 64 * 1024);
        let (team, problems) = team(&installed());
        assert_eq!(problems, []);
        let slugs: Vec<&str> = team.startable().map(|member| member.slug.as_str()).collect();
        assert_eq!(slugs, ["lead", "backend", "frontend", "tester", "docs", "reviewer"]);
        assert!(team.members.iter().all(|member| member.charter.is_some()));
        assert!(problems.iter().all(|problem| problem.severity == Severity::Note));
    }

    #[test]
    fn the_template_routes() {
        let (team, _) = team(&installed());
        let router = Router::new(&team, &[]);
        for (message, agents) in [
            ("write docs for login", &["docs"][..]),
            ("Add an endpoint that lists invoices", &["backend"]),
            ("The dialog's buttons overlap on small screens", &["frontend"]),
            ("Add regression tests for the parser", &["tester"]),
            ("Review the pull request", &["reviewer"]),
            ("Plan the architecture of the import", &["lead"]),
            ("Add a health endpoint with tests, and document it", &["backend", "tester", "docs"]),
        ] {
            let plan = router.plan(&Request::new(message), &Wishes::default());
            assert_eq!(plan.agents.iter().map(|slug| slug.as_str()).collect::<Vec<_>>(), agents, "{message}: {plan:?}");
        }
    }

    /// How many messages reach the right agent, and how many a wrong one; the rest are the coordinator's.
    fn reached(cases: &str) -> (usize, usize) {
        let (team, _) = team(&installed());
        let router = Router::new(&team, &[]);
        let (mut right, mut wrong) = (0, 0);
        for line in cases.lines() {
            let case: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let accepted = |slug: &str| case["accept"].as_array().is_some_and(|all| all.iter().any(|one| one == slug));
            let message = case["message"].as_str().expect("a message");
            let plan = router.plan(&Request::new(message), &Wishes::default());
            match &plan.agents[..] {
                [] => {}
                agents if agents.iter().all(|agent| accepted(agent.as_str())) => right += 1,
                _ => wrong += 1,
            }
        }
        (right, wrong)
    }

    /// Of a hundred, which the template was fitted to; of forty that were looked at once; and of forty that were written
    /// before anybody looked, and for which nothing was changed: 25 right is the figure to expect elsewhere.
    #[test]
    fn everyday_messages_reach_who_they_are_for() {
        let (right, wrong) = reached(include_str!("../../../fixtures/routing/everyday.jsonl"));
        assert!(right >= 80 && wrong <= 2, "{right} right, {wrong} wrong");
        let (right, wrong) = reached(include_str!("../../../fixtures/routing/fresh.jsonl"));
        assert!(right >= 23 && wrong <= 1, "{right} right, {wrong} wrong");
        let (right, wrong) = reached(include_str!("../../../fixtures/routing/unseen.jsonl"));
        assert!(right >= 24 && wrong <= 1, "{right} right, {wrong} wrong");
    }

    #[test]
    fn the_example_of_the_readme_reaches_somebody() {
        let (team, _) = team(&installed());
        let plan = Router::new(&team, &[]).plan(&Request::new("Fix the login form"), &Wishes::default());
        assert_eq!(plan.agents.iter().map(|slug| slug.as_str()).collect::<Vec<_>>(), ["frontend"], "{plan:?}");
    }
}
