//! A whole team in one file.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{Problem, Severity, Source, plural};
use crate::ops::Workspace;
use crate::ops::ledger::journal::writer;
use crate::ops::team::secrets;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Wish {
    /// Named after the repository where it is `None`.
    pub(crate) file: Option<PathBuf>,
    pub(crate) ledger: bool,
    /// Over a file that is there, and with what looks like a secret.
    pub(crate) force: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Exported {
    pub(crate) file: PathBuf,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    pub(crate) ledger: bool,
    /// What is not in it as one might think, and what should not be.
    pub(crate) problems: Vec<Problem>,
}

/// Writes the team as the commit that is checked out has it.
pub(crate) fn export(env: &Env, directory: &Path, wish: &Wish) -> Result<Exported, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let repository = &workspace.repository;
    let folder = workspace.folder_in_repository();
    let committed = repository.head()?.commit;
    let has = |commit: &String| repository.has_at(commit, &format!("{folder}/team.md"));
    let Some(commit) = committed.map(|commit| Ok::<_, Failure>(has(&commit)?.then_some(commit))).transpose()?.flatten()
    else {
        return Err(Failure::failed(format!("{folder}/team.md is in no commit yet"))
            .hint("commit the team first: what is exported is what is committed"));
    };
    let files = repository.files_at(&commit, &folder, |_| Some(LARGEST))?;
    let texts = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
    let mut problems = secrets::suspicious(env, &workspace.work_dir, texts);
    if !wish.force {
        secrets::refuse(&problems, "take it out and commit that, or export it all the same with --force")?;
    }
    let changed = repository.changed_below(&folder)?;
    if let Some(path) = changed.first() {
        let message =
            format!("{} with changes that are not committed, and not exported", plural(changed.len(), "file"));
        problems.push(Problem::new(Severity::Warning, Source::new(path.clone(), 0), "export-uncommitted", message));
    }
    let file = std::path::absolute(directory.join(place(wish, &workspace))).unwrap_or_default();
    check_target(&file, wish.force)?;
    let unwritable = |cause: std::io::Error| Failure::failed(format!("cannot be written: {cause}")).at(file.display());
    // A link that somebody puts there meanwhile is replaced, not followed.
    let target_folder = file.parent().unwrap_or(directory);
    let fresh = tempfile::Builder::new().prefix(".squad-").tempfile_in(target_folder).map_err(unwritable)?;
    repository.write_bundle(&commit, &folder, wish.ledger, &writer(), fresh.path())?;
    let kept = if wish.force { fresh.persist(&file) } else { fresh.persist_noclobber(&file) };
    kept.map_err(|error| unwritable(error.error))?;
    let bytes = std::fs::metadata(&file).map_or(0, |facts| facts.len());
    let file = dunce::canonicalize(&file).unwrap_or(file);
    Ok(Exported { file, files: files.len(), bytes, ledger: wish.ledger, problems })
}

fn check_target(file: &Path, force: bool) -> Result<(), Failure> {
    const ANOTHER: &str = "name another file";
    let refused = |what: &str, hint: &str| Err(Failure::failed(what).at(file.display()).hint(hint));
    match file.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(facts) if facts.is_symlink() => refused("it is a link, and squad writes through none", ANOTHER),
        Ok(facts) if !facts.is_file() => refused("it is no file", ANOTHER),
        Ok(_) if force => Ok(()),
        Ok(_) => refused("it is there already", "name another file, or use --force"),
    }
}

/// No file of a team's is larger.
pub(super) const LARGEST: u64 = 64 * 1024 * 1024;

fn place(wish: &Wish, workspace: &Workspace) -> PathBuf {
    let named = || {
        let name = workspace.work_dir.file_name().map_or_else(|| "team".into(), |name| name.to_string_lossy());
        PathBuf::from(format!("{name}.squad"))
    };
    wish.file.clone().unwrap_or_else(named)
}
