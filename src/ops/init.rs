//! Installs a team: a few Markdown files, in one commit.

use std::fs;
use std::path::Path;

use include_dir::{Dir, include_dir};

use super::repository;
use crate::env::Env;
use crate::error::Failure;
use crate::git::{Change, Landing};
use crate::store;

static TEMPLATE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates/team");

const FOLDER: &str = ".squad";

/// What `init` did.
pub(crate) enum Installed {
    /// There was a team already; nothing was changed.
    Already {
        folder: String,
    },
    Committed {
        files: usize,
        commit: String,
    },
    /// The files are there and not committed; why.
    Written {
        files: usize,
        reason: String,
    },
}

/// Puts the team at the repository's root. Running it again changes nothing.
pub(crate) fn init(env: &Env, directory: &Path, commit: bool) -> Result<Installed, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    if let Some(found) = store::locate(&work_dir, &work_dir, None) {
        return if found.path.join("team.md").is_file() {
            Ok(Installed::Already { folder: found.name.to_owned() })
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
    let files = template_files();
    write(&work_dir, &files)?;
    let written = |reason: String| Ok(Installed::Written { files: files.len(), reason });
    if !commit {
        return written("--no-commit".to_owned());
    }
    if repository.is_ignored(FOLDER) {
        return written(format!("git ignores {FOLDER}"));
    }
    let Some(branch) = repository.head()?.branch else { return written("HEAD is detached".to_owned()) };
    let paths = files.iter().map(|(path, bytes)| (format!("{FOLDER}/{path}"), bytes.clone())).collect();
    let change = Change { branch, allow_unborn: true, files: paths, message: MESSAGE.to_owned() };
    // The files are there, whatever becomes of the commit.
    match repository.land(&change, repository.identity().as_ref(), env.clock.now()) {
        Ok(Landing::Landed { commit }) => Ok(Installed::Committed { files: files.len(), commit }),
        Ok(Landing::NotLanded { reason, hint }) => written(format!("{reason} ({hint})")),
        Err(error) => written(error.to_string()),
    }
}

const MESSAGE: &str = "squad: install a team\n\n\
    The team of agents that works in this repository, and how work is routed to it.\n";

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
    use crate::route::{Wishes, plan};

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
        for (message, agents) in [
            ("write docs for login", &["docs"][..]),
            ("Add an endpoint that lists invoices", &["backend"]),
            ("The dialog's buttons overlap on small screens", &["frontend"]),
            ("Add regression tests for the parser", &["tester"]),
            ("Review the pull request", &["reviewer"]),
            ("Plan the architecture of the import", &["lead"]),
            ("Add a health endpoint with tests, and document it", &["backend", "tester", "docs"]),
        ] {
            let plan = plan(&team, message, &Wishes::default());
            assert_eq!(plan.agents.iter().map(|slug| slug.as_str()).collect::<Vec<_>>(), agents, "{message}: {plan:?}");
        }
    }
}
