//! Installs a team: a few Markdown files, in one commit.

use std::fs;
use std::path::Path;

use include_dir::{Dir, include_dir};

use super::repository;
use super::workspace::not_left_out;
use crate::env::Env;
use crate::error::Failure;
use crate::git::{Change, Landing};
use crate::store;

static TEMPLATE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates/team");

pub(super) const FOLDER: &str = ".squad";

/// The job that reviews pull requests, for GitHub.
const WORKFLOW: &str = ".github/workflows/squad-review.yml";
static WORKFLOW_TEXT: &[u8] = include_bytes!("../../templates/ci/squad-review.yml");

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// In a commit.
    pub(crate) commit: bool,
    /// The job that reviews pull requests too.
    pub(crate) ci: bool,
}

/// What `init` did.
pub(crate) enum Installed {
    /// Everything was there already; nothing was changed.
    Already { folder: String },
    Committed {
        /// From the repository's root.
        files: Vec<String>,
        commit: String,
    },
    /// The files are there and not committed; why.
    Written { files: Vec<String>, reason: String },
}

/// Puts the team at the repository's root, and what else is asked for. What is there stays as it is: running it again
/// changes nothing.
pub(crate) fn init(env: &Env, directory: &Path, wish: Wish) -> Result<Installed, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    let there = standing_team(&work_dir)?;
    let mut files = Vec::new();
    if there.is_none() {
        not_left_out(&repository)?;
        let team = template_files();
        write(&work_dir, &team)?;
        files.extend(team.into_iter().map(|(path, bytes)| (format!("{FOLDER}/{path}"), bytes)));
    }
    if wish.ci && work_dir.join(WORKFLOW).symlink_metadata().is_err() {
        write_workflow(&work_dir.join(WORKFLOW))?;
        files.push((WORKFLOW.to_owned(), WORKFLOW_TEXT.to_vec()));
    }
    if let Some(folder) = there.filter(|_| files.is_empty()) {
        return Ok(Installed::Already { folder });
    }
    let paths: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
    let written = |reason: String| Ok(Installed::Written { files: paths.clone(), reason });
    if !wish.commit {
        return written("--no-commit".to_owned());
    }
    if let Some(ignored) = [FOLDER, WORKFLOW]
        .iter()
        .find(|path| files.iter().any(|(file, _)| file.starts_with(**path)) && repository.is_ignored(path))
    {
        return written(format!("git ignores {ignored}"));
    }
    let Some(branch) = repository.head()?.branch else { return written("HEAD is detached".to_owned()) };
    let message = if paths.len() == 1 { WORKFLOW_MESSAGE } else { MESSAGE }.to_owned();
    let change = Change { branch, allow_unborn: true, files, edits: Vec::new(), message };
    // The files are there, whatever becomes of the commit.
    match repository.land(&change, repository.identity().as_ref(), env.clock.now()) {
        Ok(Landing::Landed { commit }) => Ok(Installed::Committed { files: paths.clone(), commit }),
        Ok(Landing::NotLanded { reason, hint }) => written(format!("{reason} ({hint})")),
        Err(error) => written(error.to_string()),
    }
}

const MESSAGE: &str = "squad: install a team\n\n\
    The team of agents that works in this repository, and how work is routed to it.\n";

const WORKFLOW_MESSAGE: &str = "squad: review pull requests in CI\n\n\
    Posts what a pull request decides as a comment under it.\n";

/// The team that is there already, by its folder's name.
fn standing_team(work_dir: &Path) -> Result<Option<String>, Failure> {
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
        return Err(Failure::team("it is there and is no folder").at(place.display()).hint("move it away"));
    }
    Ok(None)
}

fn write_workflow(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, WORKFLOW_TEXT))
        .map_err(|error| Failure::failed(format!("cannot write the workflow: {error}")).at(path.display()))
}

/// All files or none: they are written beside their place and then moved there.
fn write(work_dir: &Path, files: &[(String, Vec<u8>)]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot write the team: {error}"))
            .at(work_dir.join(FOLDER).display())
            .hint("check the folder's permissions")
    };
    let beside = tempfile::Builder::new().prefix(".squad-new-").tempdir_in(work_dir).map_err(failed)?;
    // A folder for people, unlike a temporary one.
    let team = beside.path().join("team");
    for (path, bytes) in files {
        let target = team.join(path);
        fs::create_dir_all(target.parent().unwrap_or(&team))
            .and_then(|()| fs::write(&target, bytes))
            .map_err(failed)?;
    }
    fs::rename(&team, work_dir.join(FOLDER)).map_err(failed)
}

/// The template's files by path, with `/`.
fn template_files() -> Vec<(String, Vec<u8>)> {
    fn collect(folder: &Dir<'_>, files: &mut Vec<(String, Vec<u8>)>) {
        for file in folder.files() {
            let path =
                file.path().components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
            files.push((path, file.contents().to_vec()));
        }
        folder.dirs().for_each(|inner| collect(inner, files));
    }
    let mut files = Vec::new();
    collect(&TEMPLATE, &mut files);
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Severity;
    use crate::parse::{Files, team};
    use crate::route::{Request, Router, Wishes};

    fn installed() -> Files {
        let texts = template_files().into_iter().map(|(path, bytes)| (path, String::from_utf8(bytes).expect("UTF-8")));
        Files { folder: FOLDER.to_owned(), texts: texts.collect() }
    }

    #[test]
    fn the_template_is_small_and_sound() {
        let files = template_files();
        assert!(files.len() <= 40, "{}", files.len());
        assert!(files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= 64 * 1024);
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
}
